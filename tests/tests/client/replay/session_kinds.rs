//! The kinds of session that the replay knows.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use serde_json::{Value, json};

/// How a session is played.
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// Beside those of every session.
    pub(super) arguments: &'static [&'static str],
    /// What the model answers; the last one again and again.
    pub(super) steps: fn(&World) -> Vec<Step>,
    /// What a hook of an event answers, as a shell line; the others are silent.
    pub(super) answers: &'static [(&'static str, &'static str)],
    /// Prepares the project.
    pub(super) prepare: fn(&World),
    /// The signal that is sent once the session is at work.
    pub(super) signal: Option<Signal>,
    /// Calls run side by side: only what happened is compared, not the order.
    pub(super) is_unordered: bool,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Signal {
    Interrupt,
    Terminate,
}

const STREAM: &[&str] = &["--output-format", "stream-json", "--verbose"];

const USUAL: Kind = Kind {
    name: "",
    arguments: STREAM,
    steps: |_| vec![Step::text("done")],
    answers: &[],
    prepare: |_| {},
    signal: None,
    is_unordered: false,
};

fn bash(command: &str) -> Step {
    Step::default().tool("Bash", json!({ "command": command, "description": "x" }))
}

fn error(status: u16, message: &'static str) -> Vec<Step> {
    vec![bash("echo hi"), Step::error(status, message), Step::error(status, message)]
}

/// Longer than any test takes.
fn long() -> Vec<Step> {
    vec![bash("touch at-work; timeout 60 tail -f /dev/null").say("working")]
}

fn hanging() -> Vec<Step> {
    vec![bash("touch at-work"), Step::text("never").delay(std::time::Duration::from_secs(60))]
}

fn file(world: &World, name: &str, more: Value) -> Value {
    let mut input = json!({ "file_path": world.path(name) });
    for (key, value) in more.as_object().unwrap() {
        input[key] = value.clone();
    }
    input
}

fn tools(world: &World) -> Vec<Step> {
    let edit = |old: &str| file(world, "a.txt", json!({ "old_string": old, "new_string": "three" }));
    vec![
        bash("echo hi; echo oh >&2").say("working").usage_parts(10, 1000, 30_000),
        Step::default().tool("Write", file(world, "b.txt", json!({ "content": "x\n" }))),
        Step::default().tool("Read", file(world, "a.txt", json!({}))),
        Step::default().tool("Read", file(world, "none.txt", json!({}))),
        // The client reminds a model that says nothing for long.
        bash("false").say("on"),
        bash("pwd | wc -l; exit 3"),
        Step::default().tool("Edit", edit("one")),
        Step::default().tool("Edit", edit("not there")),
        Step::default().tool("Write", file(world, "a.txt", json!({ "content": "y\n" }))),
        Step::default().tool("Nonesuch", json!({ "a": 1 })).say("on"),
        bash("mkdir -p sub && cd sub"),
        bash("basename \"$PWD\""),
        bash("cd /"),
        bash("env | grep -E '^(CLAUDE|AI_|GIT_E|COREPACK|NoDef)' | grep -v EXECPATH | sort"),
        Step::text("done").output_tokens(70),
    ]
}

/// Says something for the model and something for the user.
const TALKS: &str = r#"printf '{"hookSpecificOutput":{"hookEventName":"%s","additionalContext":"for the model"},"systemMessage":"for the user"}' "$1""#;
/// Refuses the first end.
const REFUSES: &str =
    r#"[ -e refused ] || { touch refused; echo '{"decision":"block","reason":"not yet"}'; }"#;
/// Lets the first end go on with a word for the model.
const TELLS_ONCE: &str = r#"[ -e told ] || { touch told; printf '{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"for the model"}}'; }"#;
const STOPS: &str = r#"printf '{"continue":false,"stopReason":"enough","systemMessage":"for the user","hookSpecificOutput":{"hookEventName":"PostToolBatch","additionalContext":"for the model"}}'"#;

pub(super) const KINDS: &[Kind] = &[
    Kind { name: "tools", steps: tools, ..USUAL },
    Kind {
        name: "talk",
        arguments: &["--output-format", "stream-json", "--verbose", "--append-system-prompt", "Be brief."],
        steps: |_| vec![bash("echo hi").say("working"), Step::text("done"), Step::text("done again")],
        answers: &[
            ("SessionStart", TALKS),
            ("UserPromptSubmit", TALKS),
            ("PreToolUse", TALKS),
            ("PostToolUse", TALKS),
            ("PostToolBatch", TALKS),
            ("Stop", REFUSES),
        ],
        ..USUAL
    },
    Kind {
        name: "stopped_by_a_batch",
        steps: |_| vec![bash("echo hi").say("working"), Step::text("never")],
        answers: &[("PostToolBatch", STOPS)],
        ..USUAL
    },
    Kind {
        name: "stopped_at_the_end",
        answers: &[("Stop", r#"echo '{"continue":false,"stopReason":"enough"}'"#)],
        ..USUAL
    },
    Kind {
        name: "refused_by_exit_code",
        steps: |_| vec![Step::text("done"), Step::text("done again")],
        answers: &[("Stop", "[ -e refused ] || { touch refused; echo 'not yet' >&2; exit 2; }")],
        ..USUAL
    },
    Kind {
        name: "two_calls_at_once",
        steps: |_| {
            let call = |command: &str| json!({ "command": command, "description": "x" });
            vec![
                Step::default().tool("Bash", call("echo hi")).tool("Bash", call("echo ho")),
                Step::text("done"),
            ]
        },
        is_unordered: true,
        ..USUAL
    },
    Kind { name: "overloaded", steps: |_| error(529, "Overloaded"), ..USUAL },
    Kind { name: "broken", steps: |_| error(500, "Internal server error"), ..USUAL },
    Kind {
        name: "rate_limited",
        steps: |_| {
            let limited = |step: Step| {
                step.header("anthropic-ratelimit-unified-representative-claim", "five_hour")
                    .header("anthropic-ratelimit-unified-reset", "1795434851")
            };
            error(429, "Slow down").into_iter().map(limited).collect()
        },
        ..USUAL
    },
    Kind { name: "unauthorized", steps: |_| error(401, "invalid x-api-key"), ..USUAL },
    Kind { name: "interrupted_in_a_tool", steps: |_| long(), signal: Some(Signal::Interrupt), ..USUAL },
    Kind { name: "killed_in_a_tool", steps: |_| long(), signal: Some(Signal::Terminate), ..USUAL },
    Kind { name: "interrupted_in_an_answer", steps: |_| hanging(), signal: Some(Signal::Interrupt), ..USUAL },
    Kind { name: "killed_in_an_answer", steps: |_| hanging(), signal: Some(Signal::Terminate), ..USUAL },
    Kind { name: "in_text", arguments: &[], ..USUAL },
    Kind { name: "in_json", arguments: &["--output-format", "json"], ..USUAL },
    Kind {
        name: "denied",
        steps: |_| vec![bash("echo x > .claude/foo"), bash("echo x >> .git/config"), Step::text("done")],
        ..USUAL
    },
    Kind {
        name: "settings_of_all_places",
        steps: |_| vec![bash("echo $OURS"), Step::text("done")],
        prepare: |world| {
            let entry = |name: &str, more: Value| {
                let note = format!("echo {name} $OURS >> {}", world.path("entries.txt").display());
                let mut entry = json!({ "type": "command", "command": note });
                for (key, value) in more.as_object().unwrap() {
                    entry[key] = value.clone();
                }
                json!([{ "matcher": "Bash", "hooks": [entry] }])
            };
            let shell = json!({});
            let exec =
                json!({ "command": "sh", "args": ["-c", "echo ${CLAUDE_PROJECT_DIR} >> entries.txt"] });
            let user = json!({
                "env": { "OURS": "by the user" },
                "hooks": { "PreToolUse": entry("same", shell.clone()), "PostToolUse": entry("exec", exec) },
            });
            let project = json!({ "hooks": { "PreToolUse": entry("same", shell.clone()) } });
            let other = json!({ "hooks": { "PreToolUse": [{ "matcher": "Read|Edit", "hooks": [{ "type": "command", "command": "echo never >> entries.txt" }] }] } });
            std::fs::create_dir_all(world.home().join(".claude")).unwrap();
            std::fs::write(world.home().join(".claude/settings.json"), user.to_string()).unwrap();
            world.write(".claude/settings.json", &project.to_string());
            world.write(".claude/settings.local.json", &other.to_string());
        },
        ..USUAL
    },
    Kind {
        name: "told_more_at_the_end",
        steps: |_| vec![bash("echo hi"), Step::text("done"), Step::text("done again")],
        answers: &[("Stop", TELLS_ONCE)],
        ..USUAL
    },
    Kind {
        name: "out_of_turns",
        arguments: &["--output-format", "stream-json", "--verbose", "--max-turns", "2"],
        steps: |_| vec![bash("echo hi")],
        ..USUAL
    },
    Kind {
        name: "plain_words",
        steps: |_| vec![bash("echo hi"), Step::text("done")],
        answers: &[
            ("SessionStart", "echo plain words"),
            ("UserPromptSubmit", "echo plain words"),
            ("PostToolUse", "echo lost"),
            ("PostToolBatch", "echo lost"),
            ("Stop", "echo lost"),
        ],
        ..USUAL
    },
];
