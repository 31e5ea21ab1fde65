//! The kinds of session that the replay supports.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use serde_json::{Value, json};

/// How a session is played.
pub(super) struct SessionKind {
    pub(super) name: &'static str,
    /// Arguments in addition to those of every session.
    pub(super) arguments: &'static [&'static str],
    /// The responses of the model; the last one is repeated.
    pub(super) steps: fn(&World) -> Vec<Step>,
    /// The shell line with which the hook of an event answers; the other hooks print nothing.
    pub(super) hook_answers: &'static [(&'static str, &'static str)],
    /// Prepares the project before the session.
    pub(super) prepare: fn(&World),
    /// The signal to send once the session is working.
    pub(super) signal: Option<Signal>,
    /// Calls run in parallel, so only what happened is compared, not the order.
    pub(super) is_unordered: bool,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Signal {
    Interrupt,
    Terminate,
}

const STREAM_ARGUMENTS: &[&str] = &["--output-format", "stream-json", "--verbose"];

const DEFAULT_KIND: SessionKind = SessionKind {
    name: "",
    arguments: STREAM_ARGUMENTS,
    steps: |_| vec![Step::from_text("done")],
    hook_answers: &[],
    prepare: |_| {},
    signal: None,
    is_unordered: false,
};

fn bash_call(command: &str) -> Step {
    Step::default().with_tool_call("Bash", json!({ "command": command, "description": "x" }))
}

fn error_steps(status: u16, message: &'static str) -> Vec<Step> {
    vec![bash_call("echo hi"), Step::api_error(status, message), Step::api_error(status, message)]
}

/// A tool call that takes longer than any test.
fn long_tool_call() -> Vec<Step> {
    vec![bash_call("touch at-work; timeout 60 tail -f /dev/null").with_text("working")]
}

fn slow_answer() -> Vec<Step> {
    vec![bash_call("touch at-work"), Step::from_text("never").with_delay(std::time::Duration::from_secs(60))]
}

fn file_input(world: &World, name: &str, fields: Value) -> Value {
    let mut input = json!({ "file_path": world.path(name) });
    for (key, value) in fields.as_object().unwrap() {
        input[key] = value.clone();
    }
    input
}

fn mixed_tool_calls(world: &World) -> Vec<Step> {
    let edit_input =
        |old: &str| file_input(world, "a.txt", json!({ "old_string": old, "new_string": "three" }));
    vec![
        bash_call("echo hi; echo oh >&2").with_text("working").with_input_token_breakdown(10, 1000, 30_000),
        Step::default().with_tool_call("Write", file_input(world, "b.txt", json!({ "content": "x\n" }))),
        Step::default().with_tool_call("Read", file_input(world, "a.txt", json!({}))),
        Step::default().with_tool_call("Read", file_input(world, "none.txt", json!({}))),
        // The client reminds a model that has written no text for a while.
        bash_call("false").with_text("on"),
        bash_call("pwd | wc -l; exit 3"),
        Step::default().with_tool_call("Edit", edit_input("one")),
        Step::default().with_tool_call("Edit", edit_input("not there")),
        Step::default().with_tool_call("Write", file_input(world, "a.txt", json!({ "content": "y\n" }))),
        Step::default().with_tool_call("Nonesuch", json!({ "a": 1 })).with_text("on"),
        bash_call("mkdir -p sub && cd sub"),
        bash_call("basename \"$PWD\""),
        bash_call("cd /"),
        bash_call("env | grep -E '^(CLAUDE|AI_|GIT_E|COREPACK|NoDef)' | grep -v EXECPATH | sort"),
        Step::from_text("done").with_output_tokens(70),
    ]
}

/// Prints a text for the model and one for the user.
const PRINT_CONTEXT_AND_MESSAGE: &str = r#"printf '{"hookSpecificOutput":{"hookEventName":"%s","additionalContext":"for the model"},"systemMessage":"for the user"}' "$1""#;
/// Blocks the first stop.
const BLOCK_FIRST_STOP: &str =
    r#"[ -e refused ] || { touch refused; echo '{"decision":"block","reason":"not yet"}'; }"#;
/// Continues after the first stop with a text for the model.
const ADD_CONTEXT_AT_FIRST_STOP: &str = r#"[ -e told ] || { touch told; printf '{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"for the model"}}'; }"#;
const STOP_SESSION: &str = r#"printf '{"continue":false,"stopReason":"enough","systemMessage":"for the user","hookSpecificOutput":{"hookEventName":"PostToolBatch","additionalContext":"for the model"}}'"#;

pub(super) const SESSION_KINDS: &[SessionKind] = &[
    SessionKind { name: "tools", steps: mixed_tool_calls, ..DEFAULT_KIND },
    SessionKind {
        name: "talk",
        arguments: &["--output-format", "stream-json", "--verbose", "--append-system-prompt", "Be brief."],
        steps: |_| {
            vec![
                bash_call("echo hi").with_text("working"),
                Step::from_text("done"),
                Step::from_text("done again"),
            ]
        },
        hook_answers: &[
            ("SessionStart", PRINT_CONTEXT_AND_MESSAGE),
            ("UserPromptSubmit", PRINT_CONTEXT_AND_MESSAGE),
            ("PreToolUse", PRINT_CONTEXT_AND_MESSAGE),
            ("PostToolUse", PRINT_CONTEXT_AND_MESSAGE),
            ("PostToolBatch", PRINT_CONTEXT_AND_MESSAGE),
            ("Stop", BLOCK_FIRST_STOP),
        ],
        ..DEFAULT_KIND
    },
    SessionKind {
        name: "stopped_by_a_batch",
        steps: |_| vec![bash_call("echo hi").with_text("working"), Step::from_text("never")],
        hook_answers: &[("PostToolBatch", STOP_SESSION)],
        ..DEFAULT_KIND
    },
    SessionKind {
        name: "stopped_at_the_end",
        hook_answers: &[("Stop", r#"echo '{"continue":false,"stopReason":"enough"}'"#)],
        ..DEFAULT_KIND
    },
    SessionKind {
        name: "refused_by_exit_code",
        steps: |_| vec![Step::from_text("done"), Step::from_text("done again")],
        hook_answers: &[("Stop", "[ -e refused ] || { touch refused; echo 'not yet' >&2; exit 2; }")],
        ..DEFAULT_KIND
    },
    SessionKind {
        name: "two_calls_at_once",
        steps: |_| {
            let call = |command: &str| json!({ "command": command, "description": "x" });
            vec![
                Step::default()
                    .with_tool_call("Bash", call("echo hi"))
                    .with_tool_call("Bash", call("echo ho")),
                Step::from_text("done"),
            ]
        },
        is_unordered: true,
        ..DEFAULT_KIND
    },
    SessionKind { name: "overloaded", steps: |_| error_steps(529, "Overloaded"), ..DEFAULT_KIND },
    SessionKind { name: "broken", steps: |_| error_steps(500, "Internal server error"), ..DEFAULT_KIND },
    SessionKind {
        name: "rate_limited",
        steps: |_| {
            let limited = |step: Step| {
                step.with_header("anthropic-ratelimit-unified-representative-claim", "five_hour")
                    .with_header("anthropic-ratelimit-unified-reset", "1795434851")
            };
            error_steps(429, "Slow down").into_iter().map(limited).collect()
        },
        ..DEFAULT_KIND
    },
    SessionKind { name: "unauthorized", steps: |_| error_steps(401, "invalid x-api-key"), ..DEFAULT_KIND },
    SessionKind {
        name: "interrupted_in_a_tool",
        steps: |_| long_tool_call(),
        signal: Some(Signal::Interrupt),
        ..DEFAULT_KIND
    },
    SessionKind {
        name: "killed_in_a_tool",
        steps: |_| long_tool_call(),
        signal: Some(Signal::Terminate),
        ..DEFAULT_KIND
    },
    SessionKind {
        name: "interrupted_in_an_answer",
        steps: |_| slow_answer(),
        signal: Some(Signal::Interrupt),
        ..DEFAULT_KIND
    },
    SessionKind {
        name: "killed_in_an_answer",
        steps: |_| slow_answer(),
        signal: Some(Signal::Terminate),
        ..DEFAULT_KIND
    },
    SessionKind { name: "in_text", arguments: &[], ..DEFAULT_KIND },
    SessionKind { name: "in_json", arguments: &["--output-format", "json"], ..DEFAULT_KIND },
    SessionKind {
        name: "denied",
        steps: |_| {
            vec![
                bash_call("echo x > .claude/foo"),
                bash_call("echo x >> .git/config"),
                Step::from_text("done"),
            ]
        },
        ..DEFAULT_KIND
    },
    SessionKind {
        name: "settings_of_all_places",
        steps: |_| vec![bash_call("echo $OURS"), Step::from_text("done")],
        prepare: |world| {
            let entry = |name: &str, fields: Value| {
                let command = format!("echo {name} $OURS >> {}", world.path("entries.txt").display());
                let mut entry = json!({ "type": "command", "command": command });
                for (key, value) in fields.as_object().unwrap() {
                    entry[key] = value.clone();
                }
                json!([{ "matcher": "Bash", "hooks": [entry] }])
            };
            let no_fields = json!({});
            let exec =
                json!({ "command": "sh", "args": ["-c", "echo ${CLAUDE_PROJECT_DIR} >> entries.txt"] });
            let user = json!({
                "env": { "OURS": "by the user" },
                "hooks": { "PreToolUse": entry("same", no_fields.clone()), "PostToolUse": entry("exec", exec) },
            });
            let project = json!({ "hooks": { "PreToolUse": entry("same", no_fields.clone()) } });
            let local_settings = json!({ "hooks": { "PreToolUse": [{ "matcher": "Read|Edit", "hooks": [{ "type": "command", "command": "echo never >> entries.txt" }] }] } });
            std::fs::create_dir_all(world.home().join(".claude")).unwrap();
            std::fs::write(world.home().join(".claude/settings.json"), user.to_string()).unwrap();
            world.write(".claude/settings.json", &project.to_string());
            world.write(".claude/settings.local.json", &local_settings.to_string());
        },
        ..DEFAULT_KIND
    },
    SessionKind {
        name: "told_more_at_the_end",
        steps: |_| vec![bash_call("echo hi"), Step::from_text("done"), Step::from_text("done again")],
        hook_answers: &[("Stop", ADD_CONTEXT_AT_FIRST_STOP)],
        ..DEFAULT_KIND
    },
    SessionKind {
        name: "out_of_turns",
        arguments: &["--output-format", "stream-json", "--verbose", "--max-turns", "2"],
        steps: |_| vec![bash_call("echo hi")],
        ..DEFAULT_KIND
    },
    SessionKind {
        name: "plain_words",
        steps: |_| vec![bash_call("echo hi"), Step::from_text("done")],
        hook_answers: &[
            ("SessionStart", "echo plain words"),
            ("UserPromptSubmit", "echo plain words"),
            ("PostToolUse", "echo lost"),
            ("PostToolBatch", "echo lost"),
            ("Stop", "echo lost"),
        ],
        ..DEFAULT_KIND
    },
];
