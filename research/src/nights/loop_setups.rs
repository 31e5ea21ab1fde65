//! The setups with which people run Claude Code unattended, as data: each published loop with its prompt,
//! script and source, and `plimsoll run` with its arguments.

/// A setup for an unattended run.
pub struct LoopSetup {
    /// The key in rows and on the command line.
    pub key: &'static str,
    /// The name on the page.
    pub name: &'static str,
    /// The place where its rules are published, with the version or date.
    pub source: &'static str,
    /// The description of what is simulated, for the page.
    pub setup_description: &'static str,
    /// How it is started.
    pub loop_kind: LoopKind,
}

/// How the loop of a setup is started.
pub enum LoopKind {
    /// A shell loop around the client, with this prompt in PROMPT.md.
    Shell {
        prompt: &'static str,
        /// The loop's script; CLIENT and SESSIONS are filled in.
        script: &'static str,
        /// A program that the client calls when a turn ends.
        stop_hook: Option<&'static str>,
    },
    /// `plimsoll run` with these arguments.
    Plimsoll(&'static [&'static str]),
}

const BARE_PROMPT: &str = include_str!("peers/bare.md");
/// The bare prompt with every rule of Plimsoll's prompt that the agent notices, in other words.
const BARE_PROMPT_WITH_ALL_RULES: &str = include_str!("peers/sentences.md");
/// The key of the setup with which our prices are compared: the same rules, and the project's test.
pub const TEST_GATE_SETUP_KEY: &str = "bare-gate";

const fn shell_loop(prompt: &'static str, script: &'static str) -> LoopKind {
    LoopKind::Shell { prompt, script, stop_hook: None }
}

/// All setups in the order of the tables.
pub const LOOP_SETUPS: &[LoopSetup] = &[
    LoopSetup {
        key: "bare",
        name: "bare `while` loop",
        source: "[Geoffrey Huntley](https://ghuntley.com/ralph/), July 2025",
        setup_description: "a fresh session per item, notes in progress.txt, test and repair",
        loop_kind: shell_loop(BARE_PROMPT, include_str!("peers/bare.sh")),
    },
    LoopSetup {
        key: "bare-sentences",
        name: "bare, with rules",
        source: "ours",
        setup_description: "the bare loop with each rule of Plimsoll's prompt",
        loop_kind: shell_loop(BARE_PROMPT_WITH_ALL_RULES, include_str!("peers/sentences.sh")),
    },
    LoopSetup {
        key: TEST_GATE_SETUP_KEY,
        name: "bare, with test gate",
        source: "ours",
        setup_description: "the same, and `./check.sh` after each session",
        loop_kind: shell_loop(BARE_PROMPT_WITH_ALL_RULES, include_str!("peers/gate.sh")),
    },
    LoopSetup {
        key: "continue",
        name: "continued session",
        source: "Claude Code 2.1.329",
        setup_description: "the bare loop's prompt with `--continue` and automatic compaction",
        loop_kind: shell_loop(BARE_PROMPT, include_str!("peers/continue.sh")),
    },
    LoopSetup {
        key: "stop-hook",
        name: "Stop-hook loop",
        source: "Anthropic's ralph-wiggum 1.0.0",
        setup_description: "one session, which a Stop hook continues until it writes the promise",
        loop_kind: LoopKind::Shell {
            prompt: BARE_PROMPT,
            script: include_str!("peers/stop-hook.sh"),
            stop_hook: Some(include_str!("peers/again.sh")),
        },
    },
    LoopSetup {
        key: "orchestrator",
        name: "ralph-orchestrator",
        source: "ralph-orchestrator 2, spring 2026",
        setup_description: "one task per iteration, a scratchpad in each prompt",
        loop_kind: shell_loop(include_str!("peers/orchestrator.md"), include_str!("peers/orchestrator.sh")),
    },
    LoopSetup {
        key: "frankbria",
        name: "ralph-claude-code",
        source: "frankbria/ralph-claude-code 0.11",
        setup_description: "`--continue`, a status block, exit signals, a circuit breaker",
        loop_kind: shell_loop(include_str!("peers/frankbria.md"), include_str!("peers/frankbria.sh")),
    },
    LoopSetup {
        key: "plimsoll",
        name: "Plimsoll",
        source: "ours",
        setup_description: "`plimsoll run --objective …`",
        loop_kind: LoopKind::Plimsoll(&[]),
    },
    LoopSetup {
        key: "plimsoll-pack",
        name: "Plimsoll `--pack`",
        source: "ours",
        setup_description: "as many items per session as fit",
        loop_kind: LoopKind::Plimsoll(&["--pack"]),
    },
    LoopSetup {
        key: "plimsoll-verify",
        name: "Plimsoll `--verify`",
        source: "ours",
        setup_description: "the project's test as the verify command",
        loop_kind: LoopKind::Plimsoll(&["--verify", "./check.sh"]),
    },
];

/// Returns the setup with this key.
pub fn find_loop_setup(key: &str) -> Option<&'static LoopSetup> {
    LOOP_SETUPS.iter().find(|setup| setup.key == key)
}
