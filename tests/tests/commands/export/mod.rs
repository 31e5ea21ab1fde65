//! `plimsoll turns export`: judged by the packages of the formats, by a browser, and by a corpus of secrets.

mod erased_turns;
mod html_page;
mod otlp;
mod secrets;

use plimsoll_testkit::world::{Finished, World};
use plimsoll_testkit::{fixtures, target_dir, workspace_root};
use plimsoll_tests::browser::browser;
use serde_json::{Value, json};

/// The recorded transcripts, and under which name each becomes a session.
const RECORDED: [&str; 9] = [
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

/// Records a transcript's turns as the end of its session does, and takes the transcript away: the client deletes
/// them too.
fn record(world: &World, session: &str, transcript: &str, agents: &[(&str, &str)]) {
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

fn fixture(name: &str) -> String {
    std::fs::read_to_string(fixtures().join(format!("transcripts/{name}.jsonl"))).unwrap()
}

fn record_fixture(world: &World, name: &str) {
    record(world, name, &fixture(name), &[]);
}

/// The one with a subagent; answers the agent's id.
fn record_subagent(world: &World) -> String {
    let main = fixture("subagent.main");
    let agent = main
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|line| line["toolUseResult"]["agentId"].as_str().map(str::to_owned))
        .unwrap();
    record(world, "subagent", &main, &[(&agent, &fixture("subagent.sidechain"))]);
    agent
}

fn run_export(world: &World, session: &str, format: &str, options: &[&str]) -> Finished {
    let all: Vec<&str> = ["--session", session, "--format", format].iter().chain(options).copied().collect();
    let verb = ["turns", "export"];
    world.plimsoll(&[verb.as_slice(), &all].concat()).run()
}

fn export(world: &World, session: &str, format: &str) -> String {
    run_export(world, session, format, &[]).expect_success().stdout
}

/// What a judge in Python says of a document.
fn judged(world: &World, script: &str, document: &str) -> Value {
    let path = world.path(format!("judged-{script}"));
    world.write(&path, document);
    let python = target_dir().join("judges/bin/python");
    assert!(python.exists(), "{} is missing: scripts/judges.sh installs it", python.display());
    let script = workspace_root().join("tests/judges").join(script).display().to_string();
    world.command(python, &[&script, &path.display().to_string()]).run().expect_success().json()
}

/// A transcript in the making.
#[derive(Default)]
struct Transcript {
    lines: String,
    clock: u32,
    messages: u32,
}

impl Transcript {
    fn line(&mut self, mut line: Value) {
        self.clock += 1;
        line["timestamp"] =
            json!(format!("2026-01-07T12:{:02}:{:02}.000Z", self.clock / 60, self.clock % 60));
        line["isSidechain"] = json!(false);
        self.lines += &format!("{line}\n");
    }

    fn prompt(mut self, text: &str) -> Transcript {
        self.line(json!({"type": "user", "message": {"role": "user", "content": text}}));
        self
    }

    /// A response with text and calls, and what came back.
    fn turn(mut self, text: &str, calls: &[(&str, Value, &str)]) -> Transcript {
        self.messages += 1;
        let number = self.messages;
        let id = |place: usize| format!("toolu_{number}_{place}");
        let mut blocks = vec![json!({"type": "text", "text": text})];
        for (place, (name, input, _)) in calls.iter().enumerate() {
            blocks.push(json!({"type": "tool_use", "id": id(place), "name": name, "input": input}));
        }
        let stop = if calls.is_empty() { "end_turn" } else { "tool_use" };
        let usage = json!({"input_tokens": 10, "cache_creation_input_tokens": 500,
            "cache_read_input_tokens": 1000 * number, "output_tokens": 7});
        self.line(json!({"type": "assistant", "requestedModel": "claude-opus-5-5", "message": {
            "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "claude-opus-5-5",
            "content": blocks, "stop_reason": stop, "usage": usage}}));
        for (place, (_, _, result)) in calls.iter().enumerate() {
            let content = json!([{"type": "tool_result", "tool_use_id": id(place), "content": result}]);
            self.line(json!({"type": "user", "message": {"role": "user", "content": content},
                "toolUseResult": {"stdout": result, "stderr": "", "interrupted": false}}));
        }
        self
    }
}

/// A session whose subagent `one` started `two`, and one, `lost`, whose starter is not in the log.
fn record_nested(world: &World) {
    let starter = |agent: &str| {
        let transcript =
            Transcript::default().prompt("go").turn("over to you", &[("Agent", json!({}), "STARTED")]);
        let behind = json!({"agentId": agent, "agentType": "frame"}).to_string();
        let lines = transcript.turn(&format!("{agent} is back"), &[]).lines;
        lines.replace(r#"{"stdout":"STARTED","stderr":"","interrupted":false}"#, &behind)
    };
    let last = |words: &str| Transcript::default().prompt("go").turn(words, &[]).lines;
    let inside = |lines: String| lines.replace("\"isSidechain\":false", "\"isSidechain\":true");
    let (one, two, lost) = (inside(starter("two")), inside(last("deep words")), inside(last("lost words")));
    record(world, "nested", &starter("one"), &[("one", &one), ("two", &two), ("lost", &lost)]);
}

#[test]
fn json_lines_have_everything_the_log_has() {
    let world = World::without_git();
    record_fixture(&world, "parallel_tools");
    let lines: Vec<Value> =
        export(&world, "parallel", "jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (place, line) in lines.iter().enumerate() {
        assert_eq!(
            (line["seq"].as_u64(), &line["session"]),
            (Some(place as u64 + 1), &json!("parallel_tools"))
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
fn without_a_session_it_says_what_to_do() {
    let world = World::without_git();
    let none = world.plimsoll(&["turns", "export", "--format", "html"]).run();
    assert_eq!(none.code, Some(1));
    assert_eq!(none.stdout, "");
    insta::assert_snapshot!(world.stable_text(&none.stderr), @"
    plimsoll: no session has been recorded in [PROJECT]/.claude/plimsoll/turns
    hint: `plimsoll init` sets up the hooks that record them
    ");
    record_fixture(&world, "plain");
    let wrong = run_export(&world, "nobody", "html", &[]);
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    insta::assert_snapshot!(world.stable_text(&wrong.stderr), @"plimsoll: no session begins with `nobody` in [PROJECT]/.claude/plimsoll/turns");
}

#[test]
fn a_file_gets_what_standard_output_gets() {
    let world = World::without_git();
    record_fixture(&world, "plain");
    let finished =
        world.plimsoll(&["turns", "export", "--format", "jsonl", "--output", "session.jsonl"]).run();
    assert_eq!(finished.expect_success().stdout, "");
    assert_eq!(world.read("session.jsonl"), export(&world, "plain", "jsonl"));
}
