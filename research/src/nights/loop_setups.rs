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
        source: "Geoffrey Huntley, ghuntley.com/ralph (July 2025), with progress.txt as in snarktank/ralph (January 2026)",
        setup_description: "a fresh session each time; one item; notes; test, and repair what fails; plus the sentence about git status and a quarter of an hour of sleep after a session that fails",
        loop_kind: shell_loop(BARE_PROMPT, include_str!("peers/bare.sh")),
    },
    LoopSetup {
        key: "bare-sentences",
        name: "bare with the same sentences",
        source: "not published: the bare loop with a prompt that says in other words everything that the agent notices in Plimsoll's",
        setup_description: "as above; not to guess but to look it up or search earlier sessions' transcripts, not to touch tests, and how to ask a person; it also ends when only questions are open",
        loop_kind: shell_loop(BARE_PROMPT_WITH_ALL_RULES, include_str!("peers/sentences.sh")),
    },
    LoopSetup {
        key: TEST_GATE_SETUP_KEY,
        name: "bare with a test gate",
        source: "not published: the row above with six more lines of shell",
        setup_description: "`./check.sh` runs after each session that worked; the next session is told what fails; it ends when nothing but questions is open and the test passes",
        loop_kind: shell_loop(BARE_PROMPT_WITH_ALL_RULES, include_str!("peers/gate.sh")),
    },
    LoopSetup {
        key: "continue",
        name: "continued session",
        source: "the prompt of the bare loop with Claude Code's own `--continue` and automatic compaction (2.1.329)",
        setup_description: "as the bare loop, but one conversation",
        loop_kind: shell_loop(BARE_PROMPT, include_str!("peers/continue.sh")),
    },
    LoopSetup {
        key: "stop-hook",
        name: "Stop-hook loop",
        source: "Anthropic's plugin ralph-wiggum 1.0.0 (anthropics/claude-code, plugins/ralph-wiggum, November 2025)",
        setup_description: "one session that a Stop hook sends back to the same prompt until the promise; somebody starts it again a quarter of an hour after it has ended",
        loop_kind: LoopKind::Shell {
            prompt: BARE_PROMPT,
            script: include_str!("peers/stop-hook.sh"),
            stop_hook: Some(include_str!("peers/again.sh")),
        },
    },
    LoopSetup {
        key: "orchestrator",
        name: "ralph-orchestrator",
        source: "mikeyobrien/ralph-orchestrator 2 (hatless prompt and defaults, spring 2026)",
        setup_description: "one task an iteration, the scratchpad in each prompt, LOOP_COMPLETE; no wait between iterations, the end after five failures in a row; without its hats, events and task tool",
        loop_kind: shell_loop(include_str!("peers/orchestrator.md"), include_str!("peers/orchestrator.sh")),
    },
    LoopSetup {
        key: "frankbria",
        name: "ralph-claude-code",
        source: "frankbria/ralph-claude-code 0.11 (template, README and CLAUDE.md, spring 2026)",
        setup_description: "`--continue`, its status block, the end when every item is ticked or after two exit signals, its circuit breaker (three loops without a change), an hour of sleep at a usage limit; without its cap of calls an hour",
        loop_kind: shell_loop(include_str!("peers/frankbria.md"), include_str!("peers/frankbria.sh")),
    },
    LoopSetup {
        key: "plimsoll",
        name: "Plimsoll",
        source: "this repository",
        setup_description: "`plimsoll run --objective …`",
        loop_kind: LoopKind::Plimsoll(&[]),
    },
    LoopSetup {
        key: "plimsoll-pack",
        name: "Plimsoll `--pack`",
        source: "this repository",
        setup_description: "several items a session, as far as they fit",
        loop_kind: LoopKind::Plimsoll(&["--pack"]),
    },
    LoopSetup {
        key: "plimsoll-verify",
        name: "Plimsoll `--verify`",
        source: "this repository",
        setup_description: "with the project's test as the verify command",
        loop_kind: LoopKind::Plimsoll(&["--verify", "./check.sh"]),
    },
];

/// Returns the setup with this key.
pub fn find_loop_setup(key: &str) -> Option<&'static LoopSetup> {
    LOOP_SETUPS.iter().find(|setup| setup.key == key)
}
