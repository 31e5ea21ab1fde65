//! The usage, compared with ccusage on the same transcripts, day by day and model by model.

use super::{Lines, unchanged, usage_json, world_in_time_zone, write_transcript};
use plimsoll_testkit::world::World;
use plimsoll_testkit::{target_dir, workspace_root};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Tokens by day and model: input, output, cache writes and cache reads.
type Tokens = BTreeMap<(String, String), [u64; 4]>;

const TIME: &str = "2026-10-24T22:30:00Z";
const TIME_ZONE: &str = "Europe/Berlin";

fn tokens_of_ccusage(world: &World) -> Tokens {
    let packages = target_dir().join("judges-node/node_modules/@ccusage");
    let folders = std::fs::read_dir(&packages)
        .unwrap_or_else(|_| panic!("scripts/judges.sh installs {}", packages.display()));
    let program =
        folders.map(|folder| folder.unwrap().path().join("bin/ccusage")).find(|path| path.exists()).unwrap();
    let arguments = ["claude", "daily", "--json", "--offline", "--timezone", TIME_ZONE];
    let output = world.command(program, &arguments).run().expect_success().stdout_json();
    let mut tokens = Tokens::new();
    for day in output["daily"].as_array().unwrap() {
        for model in day["modelBreakdowns"].as_array().unwrap() {
            let name = model["modelName"].as_str().unwrap().trim_start_matches("claude-");
            // ccusage appends `-fast`, and keeps the date of the model.
            let (name, suffix) = name.strip_suffix("-fast").map_or((name, ""), |name| (name, " fast"));
            let name = name.trim_end_matches("-20251101").trim_end_matches("-20250929");
            let kinds = ["inputTokens", "outputTokens", "cacheCreationTokens", "cacheReadTokens"];
            let counts = kinds.map(|kind| model[kind].as_u64().unwrap());
            if counts != [0; 4] {
                tokens.insert((day["date"].as_str().unwrap().to_owned(), format!("{name}{suffix}")), counts);
            }
        }
    }
    tokens
}

fn tokens_of_plimsoll(world: &World) -> Tokens {
    let mut tokens = Tokens::new();
    for day in usage_json(world, &["daily"])["daily"].as_array().unwrap() {
        for (name, model) in day["models"].as_object().unwrap() {
            let count = |kind: &str| model[kind].as_u64().unwrap();
            let cache_writes = count("cache_write_5m_tokens") + count("cache_write_1h_tokens");
            let counts =
                [count("input_tokens"), count("output_tokens"), cache_writes, count("cache_read_tokens")];
            tokens.insert((day["date"].as_str().unwrap().to_owned(), name.clone()), counts);
        }
    }
    tokens
}

fn new_world() -> World {
    world_in_time_zone(TIME_ZONE)
}

#[test]
fn recorded_sessions_have_the_same_tokens_of_each_day_and_model() {
    let world = new_world();
    let folder = workspace_root().join("tests/fixtures/transcripts");
    let mut file_count = 0;
    for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        // The scripted model numbers the responses of each recording from 1, and sends no durations of cache writes.
        let text =
            std::fs::read_to_string(&file).unwrap().replace("\"msg_", &format!("\"msg_{name}_")).replace(
                r#""cache_creation":{"ephemeral_1h_input_tokens":0,"ephemeral_5m_input_tokens":0},"#,
                "",
            );
        // The client's own totals contain more requests than the transcript.
        let lines: Vec<&str> =
            text.lines().filter(|line| !line.contains("\"type\":\"cost-state\"")).collect();
        write_transcript(&world, &format!("-p/{name}.jsonl"), &Lines(lines.join("\n") + "\n"));
        file_count += 1;
    }
    let ours = tokens_of_plimsoll(&world);
    assert!(file_count >= 10 && ours.values().flatten().sum::<u64>() > 1_000_000, "{ours:?}");
    assert_eq!(ours, tokens_of_ccusage(&world));
}

/// Transcripts, each with its path below `projects`.
type Transcripts = Vec<(&'static str, Lines)>;

fn one_file(lines: Lines) -> Transcripts {
    vec![("-p/s.jsonl", lines)]
}

fn sidechain(line: &mut Value) {
    line["isSidechain"] = json!(true);
}

#[test]
fn oddities_that_both_understand_have_the_same_tokens() {
    let response = |id: &str, tokens: u64| Lines::default().response(id, TIME, tokens, unchanged);
    let cases: Vec<(&str, Transcripts)> = vec![
        ("repeated lines", one_file(response("1", 5).response("1", TIME, 5, unchanged).response("2", TIME, 7, unchanged))),
        ("a usage that grows", one_file(response("1", 5).response("1", TIME, 50, unchanged))),
        ("a fork", vec![("-p/a.jsonl", response("1", 5)), ("-p/b.jsonl", response("1", 5).response("2", TIME, 7, unchanged))]),
        ("a side question", vec![
            ("-p/a.jsonl", response("1", 5)),
            ("-p/a/subagents/agent-b.jsonl", Lines::default().response("1", TIME, 900, |line| {
                sidechain(line);
                line["requestId"] = json!("req_other");
            }).response("2", TIME, 7, sidechain)),
        ]),
        ("synthetic and failed", one_file(response("1", 5).response("2", TIME, 0, |line| {
            line["message"]["model"] = json!("<synthetic>");
            line["isApiErrorMessage"] = json!(true);
        }))),
        ("a torn last line", one_file(response("1", 5).raw(r#"{"type":"assistant","message":{"id":"msg_2","usage":{"input"#))),
        ("fast mode", one_file(Lines::default().response("1", TIME, 5, |line| line["message"]["usage"]["speed"] = json!("fast")))),
        ("durations of cache writes", one_file(Lines::default().response("1", TIME, 5, |line| {
            line["message"]["usage"]["cache_creation_input_tokens"] = json!(30);
            line["message"]["usage"]["cache_creation"] = json!({"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20});
        }))),
        ("both sides of midnight", one_file(response("1", 5).response("2", "2026-10-25T23:30:00Z", 7, unchanged))),
        ("text that looks like usage", one_file(Lines::default().response("1", TIME, 5, |line| {
            line["message"]["content"] = json!([{"type": "tool_use", "input": {"usage": {"input_tokens": 900}, "stop_reason": "x"}}]);
        }))),
    ];
    for (name, transcripts) in cases {
        let world = new_world();
        transcripts.iter().for_each(|(path, lines)| write_transcript(&world, path, lines));
        let ours = tokens_of_plimsoll(&world);
        assert!(!ours.is_empty(), "{name}");
        assert_eq!(ours, tokens_of_ccusage(&world), "{name}");
    }
}

/// Each case has our input tokens, those of ccusage, and why they differ.
#[test]
fn differences_from_ccusage_are_known() {
    let response = |change: fn(&mut Value)| Lines::default().response("1", TIME, 5, change);
    let cases: Vec<(Lines, u64, u64, &str)> = vec![
        (
            response(|line| line["requestId"] = Value::Null),
            5,
            0,
            "ccusage drops a line with a null id, but it was billed",
        ),
        (
            response(|line| line["version"] = json!("dev")),
            5,
            0,
            "ccusage drops versions without three numbers",
        ),
        (
            response(|line| line["requestId"] = json!("a"))
                .response("1", TIME, 5, |line| line["requestId"] = json!("b")),
            5,
            10,
            "the API gives each response its own id, so this is one response",
        ),
        (
            response(|line| line["message"]["id"] = json!(""))
                .response("1", TIME, 5, |line| line["message"]["id"] = json!("")),
            5,
            0,
            "ccusage drops empty ids; the request's id tells that this is one response",
        ),
        (
            response(unchanged)
                .response("2", TIME, 7, |line| drop(line.as_object_mut().unwrap().remove("timestamp"))),
            12,
            5,
            "a response without a time counts with the one before it",
        ),
        (
            response(unchanged).response("2", "2199-01-01T00:00:00Z", 7, unchanged),
            5,
            12,
            "a response dated in the future is named instead of counted",
        ),
        (
            response(unchanged).raw(&format!(
                "{}\n",
                json!({"type": "cost-state", "startTime": 1, "totalCostUSD": 1,
                "modelUsage": {super::OPUS: {"inputTokens": 9, "costUSD": 1}}})
            )),
            9,
            5,
            "the client's totals contain requests that the transcript does not, such as a compaction",
        ),
    ];
    for (lines, ours, theirs, reason) in cases {
        let world = new_world();
        write_transcript(&world, "-p/s.jsonl", &lines);
        let input_tokens = |tokens: Tokens| tokens.values().map(|counts| counts[0]).sum::<u64>();
        assert_eq!(
            (input_tokens(tokens_of_plimsoll(&world)), input_tokens(tokens_of_ccusage(&world))),
            (ours, theirs),
            "{reason}"
        );
    }
}
