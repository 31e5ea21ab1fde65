//! `plimsoll turns export`, checked with the packages of the formats, in a browser, and with a corpus of secrets.

mod erased_turns;
mod html_page;
mod otlp;
mod secrets;

use plimsoll_testkit::world::{FinishedProgram, World};
use plimsoll_testkit::{fixtures_dir, target_dir, workspace_root};
use plimsoll_tests::browser::open_in_browser;
use serde_json::{Value, json};

/// The names of the recorded transcripts; each becomes a session of this name.
const RECORDED_TRANSCRIPTS: [&str; 9] = [
    "api_error.529_after_tool",
    "api_error.prompt_too_long_after_tool",
    "compaction",
    "hook_stopped",
    "interactive_1m_suffix",
    "natural_sizes",
    "parallel_tools",
    "plain",
    "stop_block",
];

/// Records a transcript's turns as the hook at the end of its session does, then removes the transcript, because the
/// client deletes transcripts too.
fn record_session(world: &World, session: &str, transcript: &str, agents: &[(&str, &str)]) {
    let path = world.path(format!("transcripts/{session}.jsonl"));
    let agent_path = |id: &str| world.path(format!("transcripts/{session}/subagents/agent-{id}.jsonl"));
    world.write(&path, transcript);
    for (id, text) in agents {
        world.write(agent_path(id), text);
    }
    let payload = json!({
        "session_id": session,
        "transcript_path": path,
        "cwd": world.project(),
        "hook_event_name": "SessionEnd",
        "reason": "other",
    });
    let project = world.project().display().to_string();
    world.hook("plimsoll-session-end", &payload).env("CLAUDE_PROJECT_DIR", project).run().expect_success();
    std::fs::remove_dir_all(world.path("transcripts")).unwrap();
}

fn read_transcript_fixture(name: &str) -> String {
    std::fs::read_to_string(fixtures_dir().join(format!("transcripts/{name}.jsonl"))).unwrap()
}

fn record_fixture(world: &World, name: &str) {
    record_session(world, name, &read_transcript_fixture(name), &[]);
}

/// Records the session with a subagent and returns the agent's id.
fn record_subagent(world: &World) -> String {
    let main = read_transcript_fixture("subagent.main");
    let agent = main
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|line| line["toolUseResult"]["agentId"].as_str().map(str::to_owned))
        .unwrap();
    record_session(world, "subagent", &main, &[(&agent, &read_transcript_fixture("subagent.sidechain"))]);
    agent
}

fn run_export(world: &World, session: &str, format: &str, options: &[&str]) -> FinishedProgram {
    let session_options: Vec<&str> =
        ["--session", session, "--format", format].iter().chain(options).copied().collect();
    let command = ["turns", "export"];
    world.plimsoll(&[command.as_slice(), &session_options].concat()).run()
}

fn export_session(world: &World, session: &str, format: &str) -> String {
    run_export(world, session, format, &[]).expect_success().stdout
}

/// Returns the JSON that a judge in Python prints for a document.
fn run_judge(world: &World, script: &str, document: &str) -> Value {
    let path = world.path(format!("judged-{script}"));
    world.write(&path, document);
    let python = target_dir().join("judges/bin/python");
    assert!(python.exists(), "{} is missing: scripts/judges.sh installs it", python.display());
    let script = workspace_root().join("tests/judges").join(script).display().to_string();
    world.command(python, &[&script, &path.display().to_string()]).run().expect_success().stdout_json()
}

/// A builder of transcripts.
#[derive(Default)]
struct TranscriptBuilder {
    lines: String,
    seconds: u32,
    message_count: u32,
}

impl TranscriptBuilder {
    fn push_line(&mut self, mut line: Value) {
        self.seconds += 1;
        line["timestamp"] =
            json!(format!("2026-01-07T12:{:02}:{:02}.000Z", self.seconds / 60, self.seconds % 60));
        line["isSidechain"] = json!(false);
        self.lines += &format!("{line}\n");
    }

    fn with_prompt(mut self, text: &str) -> TranscriptBuilder {
        self.push_line(json!({"type": "user", "message": {"role": "user", "content": text}}));
        self
    }

    /// Adds a response with a text and tool calls, and the results of the calls.
    fn with_turn(mut self, text: &str, calls: &[(&str, Value, &str)]) -> TranscriptBuilder {
        self.message_count += 1;
        let number = self.message_count;
        let id = |index: usize| format!("toolu_{number}_{index}");
        let mut blocks = vec![json!({"type": "text", "text": text})];
        for (index, (name, input, _)) in calls.iter().enumerate() {
            blocks.push(json!({"type": "tool_use", "id": id(index), "name": name, "input": input}));
        }
        let stop = if calls.is_empty() { "end_turn" } else { "tool_use" };
        let usage = json!({"input_tokens": 10, "cache_creation_input_tokens": 500,
            "cache_read_input_tokens": 1000 * number, "output_tokens": 7});
        self.push_line(json!({"type": "assistant", "requestedModel": "claude-opus-5-5", "message": {
            "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "claude-opus-5-5",
            "content": blocks, "stop_reason": stop, "usage": usage}}));
        for (index, (_, _, result)) in calls.iter().enumerate() {
            let content = json!([{"type": "tool_result", "tool_use_id": id(index), "content": result}]);
            self.push_line(json!({"type": "user", "message": {"role": "user", "content": content},
                "toolUseResult": {"stdout": result, "stderr": "", "interrupted": false}}));
        }
        self
    }
}

/// Records a session whose subagent `one` started `two`, and a subagent `lost` whose starter is not in the log.
fn record_nested(world: &World) {
    let starter = |agent: &str| {
        let transcript = TranscriptBuilder::default()
            .with_prompt("go")
            .with_turn("over to you", &[("Agent", json!({}), "STARTED")]);
        let agent_result = json!({"agentId": agent, "agentType": "frame"}).to_string();
        let lines = transcript.with_turn(&format!("{agent} is back"), &[]).lines;
        lines.replace(r#"{"stdout":"STARTED","stderr":"","interrupted":false}"#, &agent_result)
    };
    let transcript_with_one_turn =
        |text: &str| TranscriptBuilder::default().with_prompt("go").with_turn(text, &[]).lines;
    let as_sidechain = |lines: String| lines.replace("\"isSidechain\":false", "\"isSidechain\":true");
    let (one, two, lost) = (
        as_sidechain(starter("two")),
        as_sidechain(transcript_with_one_turn("deep words")),
        as_sidechain(transcript_with_one_turn("lost words")),
    );
    record_session(world, "nested", &starter("one"), &[("one", &one), ("two", &two), ("lost", &lost)]);
}

#[test]
fn jsonl_has_every_field_of_the_turn_log() {
    let world = World::without_git();
    record_fixture(&world, "parallel_tools");
    let lines: Vec<Value> = export_session(&world, "parallel", "jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (index, line) in lines.iter().enumerate() {
        assert_eq!(
            (line["seq"].as_u64(), &line["session"]),
            (Some(index as u64 + 1), &json!("parallel_tools"))
        );
        assert!(line["kind"].is_string() && line["stream"] == "main" && line["at"].is_string(), "{line}");
    }
    let turns: Vec<&Value> = lines.iter().filter(|line| line["kind"] == "turn").collect();
    assert_eq!(turns.len(), 2);
    for turn in &turns {
        for field in [
            "number",
            "raw_response",
            "program",
            "result",
            "prints",
            "tool_calls",
            "memory",
            "success",
            "ext",
        ] {
            assert!(turn.get(field).is_some(), "{field}");
        }
    }
    assert!(lines.iter().any(|line| line["kind"] == "prompt" && line["content"]["text"] == "do it"));
}

#[test]
fn export_without_a_matching_session_fails_with_a_hint() {
    let world = World::without_git();
    let no_session = world.plimsoll(&["turns", "export", "--format", "html"]).run();
    assert_eq!(no_session.code, Some(1));
    assert_eq!(no_session.stdout, "");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&no_session.stderr), @"
    error: no session has been recorded in [PROJECT]/.claude/plimsoll/turns
    hint: `plimsoll init` sets up the hooks that record them
    ");
    record_fixture(&world, "plain");
    let wrong = run_export(&world, "nobody", "html", &[]);
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&wrong.stderr), @"error: no session begins with `nobody` in [PROJECT]/.claude/plimsoll/turns");
}

#[test]
fn output_to_a_file_equals_standard_output() {
    let world = World::without_git();
    record_fixture(&world, "plain");
    let finished =
        world.plimsoll(&["turns", "export", "--format", "jsonl", "--output", "session.jsonl"]).run();
    assert_eq!(finished.expect_success().stdout, "");
    assert_eq!(world.read("session.jsonl"), export_session(&world, "plain", "jsonl"));
}
