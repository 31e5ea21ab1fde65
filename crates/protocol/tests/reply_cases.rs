//! The oracle agrees with every recorded hook output.

#![expect(clippy::expect_used, reason = "a recording that cannot be read is a failed test")]

mod oracle;
#[path = "recorded/mod.rs"]
mod recorded;

use oracle::{Effect, ModelText, Output, what_the_client_does};
use serde_json::Value;

/// Rows whose number of requests or ending depends on more than the hook's output. Their texts are compared with the
/// oracle all the same.
const EXCEPTIONS: [(&str, u64, Option<&str>, &str); 12] = [
    ("e2/block_maxturns", 3, Some("max_turns"), "--max-turns 3 ended the blocks"),
    ("e2/cap_block", 9, Some("completed"), "it blocked every time; the client's cap of 8 ended it"),
    ("e2/cap_ctx", 9, Some("completed"), "a context blocks politely and counts for the same cap"),
    ("e2/cap_exit2", 9, Some("completed"), "exit 2 counts for the same cap"),
    ("e2/cap_block_env3", 4, Some("completed"), "the environment set the cap to 3"),
    ("e2/cap_block_env0", 31, Some("completed"), "no cap; the hook itself stopped blocking after 30"),
    (
        "e2/cap_block_tools",
        416,
        None,
        "tools between the blocks reset the cap; the recorder killed the client",
    ),
    ("e6f/pre_block", 6, Some("completed"), "compaction was refused, and the script ended before the limit"),
    ("e6f/pre_exit2", 6, Some("completed"), "the same, by exit 2"),
    ("e6f/pre_block_long", 4, Some("blocking_limit"), "compaction was refused until the window was full"),
    ("e6f/ptl_opus_preblock", 3, Some("prompt_too_long"), "the API refused, and so did the hook"),
    ("e6f/pre_cont", 8, Some("completed"), "a longer script, with two compactions"),
];

/// The recorder lists what was new in the second request and later, but a prompt's context is in the first.
const CONTEXT_IN_FIRST_REQUEST: [&str; 3] = ["e3/up_20k", "e3/up_ctx", "e3/up_text"];

/// Returns true for the results that the tools of the recordings produce by themselves, and for the client's own
/// message.
fn is_independent_of_hook(event: &str, role: &str, text: &str) -> bool {
    match role {
        "tool_result" => ["hi", "x", "/\n12"].contains(&text) || text.parse::<u64>().is_ok(),
        "tool_result(error)" => event == "PostToolUseFailure" && text == "Exit code 7",
        _ => text.starts_with("While bypass permissions mode is active:"),
    }
}

struct Case {
    row: Value,
    name: String,
    event: String,
    stdout: String,
    stderr: String,
}

impl Case {
    fn load_all() -> Vec<Case> {
        let files = recorded::recordings("hook_output");
        let file = files.iter().find(|file| file.name == "cases").expect("cases.jsonl");
        file.lines().map(|line| Case::from_row(serde_json::from_slice(line).expect("a row"))).collect()
    }

    fn from_row(row: Value) -> Case {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let big = "x".repeat(row["big_bytes"].as_u64().unwrap_or(0) as usize);
        let stderr =
            shortened_length(&text("stderr")).map_or_else(|| text("stderr"), |length| "x".repeat(length));
        let stdout = text("stdout").replace("@BIG@", &big);
        Case { name: text("case"), event: text("event"), stdout, stderr, row }
    }

    fn effect(&self) -> Effect {
        let exit = self.row["exit"].as_i64().expect("an exit code");
        what_the_client_does(Output { event: &self.event, stdout: &self.stdout, stderr: &self.stderr, exit })
    }

    fn observed_value(&self, pointer: &str) -> &Value {
        self.row.pointer(&format!("/observed/{pointer}")).unwrap_or(&Value::Null)
    }

    fn did_fire(&self, event: &str) -> bool {
        self.observed_value("hooks_fired").as_array().expect("events").iter().any(|fired| fired == event)
    }

    /// Returns role and text of the messages that the hook caused.
    fn messages_from_hook(&self) -> Vec<(&str, &str)> {
        let messages = self.observed_value("reached_model").as_array().expect("texts").iter();
        let role_and_text = messages
            .map(|one| (one["role"].as_str().expect("a role"), one["text"].as_str().expect("a text")));
        role_and_text.filter(|(role, text)| !is_independent_of_hook(&self.event, role, text)).collect()
    }

    fn exception(&self) -> Option<(u64, Option<&'static str>)> {
        let row = EXCEPTIONS.iter().find(|row| row.0 == self.name)?;
        Some((row.1, row.2))
    }
}

/// Returns the length in `<text 123 chars>`, which replaces a long text in the recordings.
fn shortened_length(text: &str) -> Option<usize> {
    text.strip_prefix("<text ")?.strip_suffix(" chars>")?.parse().ok()
}

/// Lengths were recorded before the recorder's own path was replaced; it was longer by this number of characters.
const RECORDER_PATH_EXTRA_CHARS: usize = 1;

fn is_recorded_message(said: &ModelText, (role, text): (&str, &str)) -> bool {
    let paths = said.text.matches("/home/dev/bin/hook").count();
    let same = match shortened_length(text) {
        Some(length) if said.whole => length == said.text.chars().count() + paths * RECORDER_PATH_EXTRA_CHARS,
        Some(length) => (2000..3000).contains(&length),
        None => said.whole && said.text == text,
    };
    said.role == role && same
}

#[test]
fn the_oracle_predicts_the_models_messages_in_every_recording() {
    for case in Case::load_all() {
        let mut said = case.effect().reaches_model;
        if let Some(input) = case.effect().replaces_input {
            let echo =
                input["command"].as_str().and_then(|command| command.strip_prefix("echo ")).expect("an echo");
            said.push(ModelText { role: "tool_result", text: echo.to_owned(), whole: true });
        }
        let heard = case.messages_from_hook();
        if CONTEXT_IN_FIRST_REQUEST.contains(&case.name.as_str()) {
            assert!(heard.is_empty() && said.len() == 1, "{}: the table is out of date", case.name);
            continue;
        }
        let rounds = if said.is_empty() { 0 } else { heard.len() / said.len() };
        assert_eq!(heard.len(), rounds * said.len(), "{}: {said:?}\nheard {heard:?}", case.name);
        assert_eq!(rounds == 0, said.is_empty(), "{}: {said:?}\nheard {heard:?}", case.name);
        assert!(rounds <= 1 || case.exception().is_some(), "{}: said {rounds} times", case.name);
        for (said, heard) in said.iter().cycle().zip(heard) {
            assert!(is_recorded_message(said, heard), "{}: {said:?}\nheard {heard:?}", case.name);
        }
    }
}

#[test]
fn the_oracle_predicts_requests_and_ending_in_every_recording() {
    for case in Case::load_all() {
        let effect = case.effect();
        let requests = match case.event.as_str() {
            "PreCompact" | "PostCompact" => 5,
            "UserPromptSubmit" if effect.stops_loop => 0,
            "Stop" => 1 + u64::from(effect.blocks),
            _ => 2 - u64::from(effect.stops_loop),
        };
        let erased = case.event == "UserPromptSubmit" && effect.stops_loop;
        let ending = effect.terminal_reason.or((!erased).then_some("completed"));
        let expected = case.exception().unwrap_or((requests, ending));
        let found = (
            case.observed_value("model_requests").as_u64().expect("a number"),
            case.observed_value("result/terminal_reason").as_str(),
        );
        assert_eq!(found, expected, "{}: {effect:?}", case.name);
    }
}

#[test]
fn the_oracle_predicts_which_hooks_fire_in_every_recording() {
    for case in Case::load_all() {
        let effect = case.effect();
        assert!(case.did_fire("SessionEnd") && case.did_fire("SessionStart"), "{}", case.name);
        match case.event.as_str() {
            "PreCompact" => assert_eq!(case.did_fire("PostCompact"), !effect.blocks, "{}", case.name),
            "PreToolUse" => {
                let runs = !effect.blocks && effect.terminal_reason != Some("tool_deferred");
                assert_eq!(case.did_fire("PostToolUse"), runs, "{}", case.name);
                assert_eq!(case.did_fire("PostToolBatch"), !effect.stops_loop, "{}", case.name);
            }
            "PostToolUse" => assert_eq!(case.did_fire("PostToolBatch"), !effect.stops_loop, "{}", case.name),
            _ => {}
        }
        if !matches!(case.event.as_str(), "PreCompact" | "Stop") {
            assert_eq!(case.did_fire("Stop"), !effect.stops_loop, "{}", case.name);
        }
    }
}

#[test]
fn the_oracle_predicts_lost_last_words_in_every_recording() {
    for case in Case::load_all().iter().filter(|case| case.exception().is_none()) {
        let text = case.observed_value("result/result").as_str().expect("a text");
        let lost =
            text.is_empty() || text.starts_with("Operation stopped") || text.contains("blocked by hook");
        assert_eq!(lost, case.effect().loses_last_text, "{}: {text}", case.name);
        assert_eq!(case.observed_value("exit_code"), 0, "{}: a hook never makes the client fail", case.name);
    }
}

#[test]
fn every_row_exists_and_every_exception_is_needed() {
    let cases = Case::load_all();
    assert_eq!(cases.len(), 135);
    for name in EXCEPTIONS.iter().map(|row| row.0).chain(CONTEXT_IN_FIRST_REQUEST) {
        assert_eq!(cases.iter().filter(|case| case.name == name).count(), 1, "{name}");
    }
    assert!(EXCEPTIONS.iter().all(|row| !row.3.is_empty()));
}
