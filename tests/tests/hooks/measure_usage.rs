//! How the usage of the context window is measured: from the transcript's tail, whatever it contains, and from the
//! other sources by their rank. A usage that cannot be measured is unknown, never guessed.

use cpu_time::ThreadTime;
use plimsoll_store::tail::{self, TranscriptTail};
use plimsoll_testkit::fixtures_dir;
use plimsoll_testkit::world::{FinishedProgram, World};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write as _};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

const OPUS: &str = "claude-opus-5-5";
const SESSION: &str = "11111111-aaaa-4bbb-8ccc-000000000001";
const OTHER_SESSION: &str = "11111111-aaaa-4bbb-8ccc-000000000002";

fn answer_line_at(id: &str, tokens: u64, model: &str, timestamp: &str) -> String {
    let model_without_suffix = model.trim_end_matches("[1m]");
    let message = json!({
        "id": id, "type": "message", "role": "assistant", "model": model_without_suffix,
        "content": [{ "type": "tool_use", "id": format!("toolu_{id}"), "name": "Bash", "input": {} }],
        "usage": { "input_tokens": 3, "cache_creation_input_tokens": tokens / 2,
                   "cache_read_input_tokens": tokens - tokens / 2 - 3, "output_tokens": 500 },
    });
    json!({ "parentUuid": null, "isSidechain": false, "message": message, "requestedModel": model,
            "type": "assistant", "timestamp": timestamp })
    .to_string()
        + "\n"
}

fn answer_line(id: &str, tokens: u64) -> String {
    answer_line_at(id, tokens, OPUS, "2026-01-07T10:00:00.000Z")
}

fn with_changed_json(line: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut value: Value = serde_json::from_str(line).expect(line);
    change(&mut value);
    value.to_string() + "\n"
}

fn sidechain_answer_line(tokens: u64) -> String {
    with_changed_json(&answer_line("msg_side", tokens), |line| line["isSidechain"] = true.into())
}

fn api_error_line() -> String {
    with_changed_json(&answer_line("msg_error", 10), |line| {
        line["isApiErrorMessage"] = true.into();
        line["message"]["model"] = "<synthetic>".into();
        line["message"]["usage"] = json!({ "input_tokens": 0, "output_tokens": 0,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0 });
    })
}

/// Returns a line with a tool result of exactly this many bytes, line end included. It is full of text that looks like
/// an answer.
fn tool_result_line(line_bytes: usize) -> String {
    let line = |text: &str| {
        json!({ "type": "user", "isSidechain": false,
            "message": { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t", "content": text }] } })
        .to_string()
            + "\n"
    };
    let lure = "\"type\":\"assistant\" \"usage\":{\"input_tokens\":999999} compact_boundary ";
    let (empty, with_lure) = (line("").len(), line(lure).len());
    let lure = if line_bytes > with_lure { lure } else { "" };
    let rest = line_bytes.saturating_sub(if lure.is_empty() { empty } else { with_lure });
    line(&format!("{lure}{}", "x".repeat(rest)))
}

fn compact_boundary_line(post_tokens: u64) -> String {
    json!({ "type": "system", "subtype": "compact_boundary", "isSidechain": false,
        "compactMetadata": { "trigger": "auto", "preTokens": 967_100, "postTokens": post_tokens },
        "timestamp": "2026-01-07T10:30:00.000Z" })
    .to_string()
        + "\n"
}

fn read_tail_of_bytes(bytes: &[u8]) -> TranscriptTail {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(file.path(), bytes).expect("a temporary file");
    tail::find_last_response_or_compaction(file.path(), &[]).expect("a readable file")
}

fn used_tokens_in(text: &str) -> Option<u64> {
    read_tail_of_bytes(text.as_bytes()).last_response.map(|answer| answer.input_tokens)
}

/// Removes our records, as if no session had been here.
fn remove_our_records(world: &World) {
    fs::remove_dir_all(world.path(".claude")).expect("our own folder");
    fs::create_dir_all(world.path(".claude/plimsoll")).expect("it was removed");
}

#[test]
fn usage_is_that_of_the_last_answer_in_the_main_conversation() {
    let two_answers = answer_line("msg_1", 100_000) + &answer_line("msg_2", 200_000);
    for (text, expected, why) in [
        (String::new(), None, "an empty file"),
        ("\n\n\n".to_owned(), None, "empty lines"),
        (tool_result_line(500), None, "no answer yet"),
        (api_error_line(), None, "only an error"),
        (sidechain_answer_line(900_000), None, "only a subagent"),
        (two_answers.clone(), Some(200_000), "the newest"),
        (two_answers.clone() + &tool_result_line(852_000), Some(200_000), "852 KB after it"),
        (two_answers.clone() + &tool_result_line(852_000).repeat(5), Some(200_000), "five such lines"),
        (two_answers.clone() + &tool_result_line(3_000_000), Some(200_000), "3 MB after it"),
        (tool_result_line(3_000_000) + &two_answers, Some(200_000), "3 MB before it"),
        (two_answers.clone() + &sidechain_answer_line(900_000), Some(200_000), "a subagent after it"),
        (
            two_answers.clone() + &api_error_line() + &tool_result_line(300) + &api_error_line(),
            Some(200_000),
            "errors after it",
        ),
        (
            two_answers.clone() + &answer_line("msg_3", 300_000).repeat(4),
            Some(300_000),
            "four lines of one answer count once",
        ),
        (
            two_answers.clone() + answer_line("msg_3", 300_000).trim_end(),
            Some(300_000),
            "no line end at the end",
        ),
        (two_answers.clone() + &answer_line("msg_3", 300_000)[..200], Some(200_000), "a torn last line"),
        (
            two_answers.clone() + "{\"type\":\"assistant\",\"message\":[]}\n",
            Some(200_000),
            "a line of another shape",
        ),
        (two_answers.clone() + "null\n[]\n\"assistant\"\n", Some(200_000), "lines that are no objects"),
        (two_answers.replace('\n', "\r\n"), Some(200_000), "line ends of another system"),
        (two_answers.clone() + &compact_boundary_line(9_000), None, "a compaction makes it void"),
        (
            two_answers.clone() + &compact_boundary_line(9_000) + &answer_line("msg_3", 40_000),
            Some(40_000),
            "the first after a compaction",
        ),
        (
            two_answers.clone()
                + &with_changed_json(&compact_boundary_line(1), |line| line["isSidechain"] = true.into()),
            Some(200_000),
            "a subagent's compaction",
        ),
    ] {
        assert_eq!(used_tokens_in(&text), expected, "{why}");
    }
    let torn = two_answers
        .into_bytes()
        .into_iter()
        .chain(*b"{\"type\":\"assistant\", \xff\xfe\xc3")
        .collect::<Vec<u8>>();
    assert_eq!(
        read_tail_of_bytes(&torn).last_response.map(|answer| answer.input_tokens),
        Some(200_000),
        "bytes that are no text"
    );
}

#[test]
fn after_a_compaction_its_token_count_and_the_earlier_model_are_read() {
    let tail = read_tail_of_bytes(
        (answer_line("msg_1", 960_000)
            + &compact_boundary_line(7_000)
            + &compact_boundary_line(9_000)
            + &tool_result_line(99))
            .as_bytes(),
    );
    let compaction = tail.compaction.expect("a compaction");
    assert_eq!(compaction.metadata.post_tokens, Some(9_000), "the newest");
    assert_eq!(compaction.model.as_deref(), Some(OPUS));
    assert!(tail.last_response.is_none());
}

#[test]
fn a_call_id_is_found_in_any_line_of_the_last_answer_but_no_older_one() {
    let answer_line_with_call = |id: &str, call: &str| {
        with_changed_json(&answer_line(id, 50_000), |line| line["message"]["content"][0]["id"] = call.into())
    };
    let text = answer_line_with_call("msg_1", "toolu_old")
        + &answer_line_with_call("msg_2", "toolu_a")
        + &tool_result_line(300)
        + &answer_line_with_call("msg_2", "toolu_b")
        + &sidechain_answer_line(900_000)
        + &answer_line_with_call("msg_2", "toolu_d");
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(file.path(), text).expect("a temporary file");
    let matches_last_answer = |ids: &[&str]| {
        tail::find_last_response_or_compaction(file.path(), ids)
            .expect("readable")
            .last_response
            .expect("an answer")
            .has_requested_tool_call
    };
    assert!(matches_last_answer(&["toolu_d"]));
    assert!(matches_last_answer(&["toolu_a"]), "the hook of the first of three parallel tools");
    assert!(matches_last_answer(&["toolu_c", "toolu_b"]));
    assert!(!matches_last_answer(&["toolu_c"]));
    assert!(!matches_last_answer(&["toolu_old"]), "an older answer is not the one at hand");
}

/// The chunks end 32 KB, 160 KB and 416 KB before the end of the file. At the first border the line is cut at each of
/// its bytes, at the others at every 7th and every 31st byte.
#[test]
fn an_answer_is_read_wherever_a_chunk_border_cuts_its_line() {
    let line = answer_line("msg_7", 77_000);
    let before = answer_line("msg_6", 66_000);
    for (border, step) in [(32 * 1024, 1), (160 * 1024, 7), (416 * 1024, 31)] {
        for cut in (0..=line.len() + 1).step_by(step) {
            let text = format!("{before}{line}{}", tool_result_line(border - line.len() + cut));
            assert_eq!(used_tokens_in(&text), Some(77_000), "border {border}, cut {cut}");
        }
    }
}

/// Computes the expected result by reading everything from the front.
fn read_forwards(bytes: &[u8]) -> (Option<u64>, Option<u64>) {
    let (mut answered, mut compacted) = (None, None);
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(line) = serde_json::from_slice::<Value>(line) else { continue };
        if line["isSidechain"] == true {
            continue;
        }
        if line["subtype"] == "compact_boundary" {
            (answered, compacted) = (None, line["compactMetadata"]["postTokens"].as_u64());
        }
        let usage = &line["message"]["usage"];
        let sum: u64 = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"]
            .iter()
            .filter_map(|name| usage[*name].as_u64())
            .sum();
        if line["type"] == "assistant" && line["isApiErrorMessage"] != true && sum > 0 {
            (answered, compacted) = (Some(sum), None);
        }
    }
    (answered, compacted)
}

fn any_transcript_line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (5_000_u64..990_000).prop_map(|tokens| answer_line(&format!("msg_{tokens}"), tokens)),
        2 => (5_000_u64..990_000, 1_usize..4).prop_map(|(tokens, parts)| answer_line("msg_parts", tokens).repeat(parts)),
        1 => (5_000_u64..990_000, 20_000_usize..400_000).prop_map(|(tokens, length)| {
            with_changed_json(&answer_line("msg_long", tokens), |line| line["message"]["content"] = "w".repeat(length).into())
        }),
        2 => (5_000_u64..990_000).prop_map(sidechain_answer_line),
        2 => Just(api_error_line()),
        1 => (1_000_u64..50_000).prop_map(compact_boundary_line),
        3 => (200_usize..2_000).prop_map(tool_result_line),
        3 => (32_000_usize..34_000).prop_map(tool_result_line),
        2 => (120_000_usize..300_000).prop_map(tool_result_line),
        1 => (850_000_usize..1_200_000).prop_map(tool_result_line),
        1 => Just("\n".to_owned()),
        1 => Just("{\"type\":\"assistant\",\"mess\n".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reading_backwards_finds_what_reading_forwards_finds(
        lines in prop::collection::vec(any_transcript_line(), 0..12),
        torn in prop::option::of(1_usize..400),
        other_line_ends in any::<bool>(),
    ) {
        let mut text: String = lines.concat();
        if let Some(length) = torn {
            text.push_str(&answer_line("msg_torn", 5_555)[..length.min(answer_line("msg_torn", 5_555).len() - 1)]);
        }
        if other_line_ends {
            text = text.replace('\n', "\r\n");
        }
        let tail = read_tail_of_bytes(text.as_bytes());
        let read_backwards = (
            tail.last_response.map(|answer| answer.input_tokens),
            tail.compaction.and_then(|compaction| compaction.metadata.post_tokens),
        );
        prop_assert_eq!(read_backwards, read_forwards(text.as_bytes()));
    }
}

/// Writes a file with this many bytes before its last megabyte.
fn write_large_transcript(path: &Path, hole_bytes: u64) {
    let mut file = File::create(path).expect("a temporary file");
    file.set_len(hole_bytes).expect("a file with a hole");
    let mut end = String::from("\n");
    while end.len() < 900_000 {
        let _ = write!(end, "{}{}", tool_result_line(40_000), answer_line("msg_1", 123_456));
    }
    file.seek(SeekFrom::Start(hole_bytes)).expect("a seek");
    file.write_all((end + &tool_result_line(100_000)).as_bytes()).expect("a write");
}

#[test]
fn reading_the_tail_takes_no_longer_for_a_huge_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (small, huge) = (folder.path().join("small"), folder.path().join("huge"));
    write_large_transcript(&small, 0);
    write_large_transcript(&huge, 300 * 1024 * 1024);
    let time = |path: &Path| {
        let start = ThreadTime::now();
        for _ in 0..50 {
            assert_eq!(
                tail::find_last_response_or_compaction(path, &[])
                    .expect("readable")
                    .last_response
                    .expect("an answer")
                    .input_tokens,
                123_456
            );
        }
        start.elapsed()
    };
    time(&small);
    let (small_time, huge_time) = (time(&small), time(&huge));
    // Reading the whole file once takes longer than these fifty reads together.
    assert!(huge_time < small_time * 4 + Duration::from_millis(100), "{small_time:?} and {huge_time:?}");
}

#[test]
fn usage_is_unknown_if_the_last_answer_is_too_far_from_the_end() {
    let text = answer_line("msg_1", 100_000) + &tool_result_line(900_000).repeat(30);
    let start = ThreadTime::now();
    assert_eq!(used_tokens_in(&text), None, "27 MB of tool results after the last answer");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

// Tests of the hook and of the command.

fn world_without_git() -> World {
    World::without_git()
}

fn write_transcript(world: &World, text: &str) -> String {
    world.write("transcript.jsonl", text);
    world.path("transcript.jsonl").display().to_string()
}

fn batch_payload(world: &World, transcript: &str, tool_response: &Value) -> Value {
    json!({
        "session_id": SESSION, "transcript_path": transcript, "cwd": world.project(),
        "hook_event_name": "PostToolBatch",
        "tool_calls": [{ "tool_name": "Bash", "tool_input": { "command": "x" }, "tool_use_id": "toolu_msg_1",
                         "tool_response": tool_response }],
    })
}

fn run_batch_hook(world: &World, transcript: &str) -> FinishedProgram {
    run_batch_hook_with(world, transcript, &json!("ok"), &[])
}

fn run_batch_hook_with(
    world: &World,
    transcript: &str,
    tool_response: &Value,
    env: &[(&str, &str)],
) -> FinishedProgram {
    let mut launch = world.hook("plimsoll-post-tool", &batch_payload(world, transcript, tool_response));
    for (name, value) in env {
        launch = launch.env(*name, *value);
    }
    let finished = launch.run();
    let reply: Value = serde_json::from_str(&finished.stdout).expect(&finished.stdout);
    assert!(reply.is_object(), "{finished:?}");
    finished
}

fn session_record(world: &World) -> Value {
    world.read_json(format!(".claude/plimsoll/sessions/{SESSION}.json"))
}

fn context_from_status(world: &World, session: &str) -> Value {
    let finished = world.plimsoll(&["status", "--json"]).env("CLAUDE_CODE_SESSION_ID", session).run();
    finished.expect_success().stdout_json()["context"].take()
}

#[test]
fn a_transcript_that_is_no_regular_file_is_unknown_and_never_hangs() {
    let world = world_without_git();
    let path = |name: &str| world.path(name).display().to_string();
    world.write("folder/x", "");
    let mkfifo = world.command("mkfifo", &["pipe"]).run();
    assert_eq!(mkfifo.code, Some(0), "{mkfifo:?}");
    symlink("pipe", world.path("link")).expect("a link");
    symlink("loop", world.path("loop")).expect("a link");
    world.write("plain", "");
    for transcript in [
        "/dev/zero".to_owned(),
        "/dev/tty".to_owned(),
        path("folder"),
        path("pipe"),
        path("link"),
        path("loop"),
        path("missing"),
        path("plain/inside"),
        path("plain"),
        "/proc/self/mem".to_owned(),
        String::new(),
        "x\0y".to_owned(),
    ] {
        let finished = run_batch_hook(&world, &transcript);
        assert_eq!((finished.code, finished.stdout.trim()), (Some(0), "{}"), "{transcript:?} {finished:?}");
        assert!(finished.elapsed < Duration::from_secs(20), "{transcript:?} {finished:?}");
        assert!(finished.stderr.lines().count() <= 1, "{transcript:?} {finished:?}");
        assert!(!world.exists(".claude/plimsoll/sessions"), "{transcript:?}: nothing to remember");
        let record = json!({ "session_id": "asked", "transcript_path": transcript });
        world.write(".claude/plimsoll/sessions/asked.json", &record.to_string());
        let shown_context = context_from_status(&world, "asked");
        assert!(
            shown_context["percent"].is_null()
                && shown_context["reading"].is_null()
                && shown_context["level"].is_null(),
            "{transcript:?} {shown_context}"
        );
        remove_our_records(&world);
    }
    let pipe = world.path("pipe");
    assert!(tail::find_last_response_or_compaction(&pipe, &[]).is_err(), "the crate says why");
    assert!(tail::find_last_response_or_compaction(&world.path("folder"), &[]).is_err());
}

#[test]
fn projected_usage_adds_the_output_and_new_results_to_the_request() {
    let world = world_without_git();
    let transcript = write_transcript(&world, &answer_line("msg_1", 300_000));
    for (response, added) in [
        (json!("x".repeat(40_000)), 10_000),
        (json!({ "stdout": "x".repeat(40_000), "stderr": "", "originalFile": "y".repeat(90_000) }), 10_000),
        (json!([{ "type": "image", "source": { "type": "base64", "data": "A".repeat(288_000) } }]), 1_600),
        (json!({ "type": "image", "file": { "base64": "A".repeat(288_000) } }), 1_600),
    ] {
        run_batch_hook_with(&world, &transcript, &response, &[]);
        let record = session_record(&world);
        let reading = &record["reading"];
        assert_eq!(
            (reading["used"].as_u64(), reading["output"].as_u64()),
            (Some(300_000), Some(500)),
            "{record}"
        );
        let actual_added = reading["added"].as_u64().expect("a number");
        assert!((added..=added + 16).contains(&actual_added), "{actual_added} added, not {added}: {record}");
        let percent = (300_500 + actual_added + 5_000) / 10_000;
        assert_eq!(
            (record["percent"].as_u64(), record["percent_used"].as_u64()),
            (Some(percent), Some(30)),
            "{record}"
        );
        assert_eq!(reading["behind"], false, "{record}");
        remove_our_records(&world);
    }
}

#[test]
fn the_percentage_is_rounded_half_up_like_the_clients() {
    let world = world_without_git();
    for (tokens, percent) in [(424_999, 42), (425_000, 43), (994_999, 99), (4_999, 0), (5_000, 1)] {
        let transcript = write_transcript(&world, &answer_line("msg_1", tokens));
        let record = json!({ "session_id": "asked", "transcript_path": transcript });
        world.write(".claude/plimsoll/sessions/asked.json", &record.to_string());
        assert_eq!(context_from_status(&world, "asked")["percent_used"], percent, "{tokens}");
    }
}

fn write_status_record(world: &World, session: &str, change: impl FnOnce(&mut Value)) {
    let mut record = json!({ "session_id": session, "model": OPUS, "window": 500_000, "used": 100_000,
        "output": 500, "at": "2026-01-07T09:00:00.000Z" });
    change(&mut record);
    world.write(format!(".claude/plimsoll/sessions/{session}.status.json"), &record.to_string());
}

#[test]
fn the_window_comes_from_the_highest_ranked_source_that_knows_it() {
    let world = world_without_git();
    let path = write_transcript(&world, &answer_line("msg_1", 100_000));
    world.write(".claude/plimsoll.json", &json!({ "windows": { OPUS: 300_000 } }).to_string());
    write_status_record(&world, SESSION, |_| ());
    write_status_record(&world, OTHER_SESSION, |record| record["window"] = 123_000.into());
    world.write(
        ".claude/plimsoll/windows.json",
        &json!({ OPUS: 400_000, "claude-opus-5-5[1m]": 1 }).to_string(),
    );
    let window_with_env = |env: &[(&str, &str)]| {
        run_batch_hook_with(&world, &path, &json!("ok"), env);
        let window = session_record(&world)["reading"]["window"].clone();
        let _ = fs::remove_file(world.path(format!(".claude/plimsoll/sessions/{SESSION}.json")));
        (window["tokens"].as_u64().expect("tokens"), window["source"].as_str().expect("a source").to_owned())
    };
    let expected = |tokens: u64, source: &str| (tokens, source.to_owned());
    assert_eq!(window_with_env(&[]), expected(300_000, "settings"));
    fs::remove_file(world.path(".claude/plimsoll.json")).expect("our own file");
    assert_eq!(window_with_env(&[]), expected(500_000, "status_line"));
    fs::remove_file(world.path(format!(".claude/plimsoll/sessions/{SESSION}.status.json")))
        .expect("our own file");
    assert_eq!(window_with_env(&[]), expected(400_000, "learned"));
    assert_eq!(
        window_with_env(&[("CLAUDE_CODE_DISABLE_1M_CONTEXT", "1")]).0,
        200_000,
        "it caps what was learned"
    );
    fs::remove_file(world.path(".claude/plimsoll/windows.json")).expect("our own file");
    assert_eq!(window_with_env(&[]), expected(1_000_000, "table"));
    assert_eq!(window_with_env(&[("CLAUDE_CODE_DISABLE_1M_CONTEXT", "1")]), expected(200_000, "table"));
    assert_eq!(window_with_env(&[("CLAUDE_CODE_DISABLE_1M_CONTEXT", "0")]), expected(1_000_000, "table"));
    for (model, tokens, source) in [
        ("claude-sonnet-4-5", 200_000, "table"),
        ("claude-sonnet-4-5[1m]", 1_000_000, "table"),
        ("a-proxy-of-mine", 1_000_000, "assumed"),
    ] {
        write_transcript(&world, &answer_line_at("msg_1", 100_000, model, "2026-01-07T10:00:00.000Z"));
        assert_eq!(window_with_env(&[]), expected(tokens, source), "{model}");
    }
    write_transcript(
        &world,
        &answer_line_at("msg_1", 230_000, "claude-haiku-4-5", "2026-01-07T10:00:00.000Z"),
    );
    assert_eq!(window_with_env(&[]), expected(1_000_000, "used"), "a window is at least what was used");
}

#[test]
fn the_window_depends_on_the_version_of_the_client() {
    let world = world_without_git();
    for (version, model, percent) in [
        ("2.0.77", "claude-opus-4-1-20250805", 50),
        ("2.0.77", "some-proxy-model", 50),
        ("2.1.101", "claude-opus-4-1-20250805", 50),
        ("2.1.329", "claude-opus-4-1-20250805", 10),
        ("2.1.329", "some-proxy-model", 10),
    ] {
        let line = answer_line_at("msg_1", 100_000, model, "2026-01-07T10:00:00.000Z");
        let boundary = compact_boundary_line(100_000);
        let with_version = |line: &str| with_changed_json(line, |line| line["version"] = version.into());
        let path = write_transcript(&world, &with_version(&line));
        let record = json!({ "session_id": SESSION, "transcript_path": path });
        world.write(format!(".claude/plimsoll/sessions/{SESSION}.json"), &record.to_string());
        assert_eq!(context_from_status(&world, SESSION)["percent"], percent, "{version} {model}");
        let compacted = with_version(&answer_line_at("msg_0", 900, model, "2026-01-07T09:00:00.000Z"))
            + &with_version(&boundary);
        write_transcript(&world, &compacted);
        assert_eq!(
            context_from_status(&world, SESSION)["percent"],
            percent,
            "{version} {model}, after a compaction"
        );
    }
}

/// With `CLAUDE_CODE_CHILD_SESSION` in its environment the client writes no transcript.
#[test]
fn without_a_transcript_this_sessions_status_line_record_is_used() {
    let world = world_without_git();
    let path = world.path("no-such-file.jsonl").display().to_string();
    write_status_record(&world, OTHER_SESSION, |record| record["used"] = 490_000.into());
    assert_eq!(run_batch_hook(&world, &path).stdout.trim(), "{}", "another session's");
    write_status_record(&world, SESSION, |record| record["used"] = 480_000.into());
    // 480,000 of 500,000 tokens.
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&run_batch_hook(&world, &path).stdout), @r#"{"systemMessage":"Plimsoll: context is 96% full. Claude Code compacts at about 93%. A handoff is ready. To continue in a fresh session: /clear, then: Continue from @.claude/handoffs/[DATE-TIME].md\nCCS_WARNING|L3|96|Context at 96%","hookSpecificOutput":{"hookEventName":"PostToolBatch","additionalContext":"CCS_WARNING|L3|96|Context at 96%\nFor information: the context window is 96% full (emergency). Claude Code compacts at about 93%. A handoff with the facts of this session is ready in .claude/handoffs/[DATE-TIME].md. No action is required."}}"#);
}

#[test]
fn a_status_line_record_from_before_a_compaction_is_not_used() {
    let world = world_without_git();
    let compacted = with_changed_json(&compact_boundary_line(0), |line| {
        line["compactMetadata"].as_object_mut().expect("an object").remove("postTokens");
    });
    let path = write_transcript(&world, &(answer_line("msg_1", 480_000) + &compacted));
    write_status_record(&world, SESSION, |record| record["used"] = 480_000.into());
    assert_eq!(run_batch_hook(&world, &path).stdout.trim(), "{}", "it is from before the compaction");
    write_status_record(&world, SESSION, |record| {
        (record["used"], record["at"]) = (480_000.into(), "2026-01-07T10:31:00.000Z".into());
    });
    // The figure of the next answer counts.
    assert_eq!(announced_marker(&run_batch_hook(&world, &path)), "CCS_WARNING|L3|96|Context at 96%");
}

#[test]
fn a_status_line_record_is_used_only_if_newer_and_of_this_session() {
    let world = world_without_git();
    let path = write_transcript(&world, &answer_line("msg_1", 100_000));
    world.write(
        format!(".claude/plimsoll/sessions/{SESSION}.json"),
        &json!({ "session_id": SESSION, "transcript_path": path }).to_string(),
    );
    let reading = || {
        let shown_context = context_from_status(&world, SESSION);
        let reading = &shown_context["reading"];
        (
            reading["used"].as_u64(),
            reading["source"].as_str().unwrap_or("-").to_owned(),
            shown_context["percent_used"].as_u64(),
        )
    };
    let expected = |used, source: &str, percent| (Some(used), source.to_owned(), Some(percent));
    let set_usage_of_million = |record: &mut Value, used: u64, at: &str| {
        (record["window"], record["used"], record["at"]) = (1_000_000.into(), used.into(), at.into());
    };
    write_status_record(&world, OTHER_SESSION, |record| {
        set_usage_of_million(record, 970_000, "2026-01-07T12:00:00.000Z")
    });
    assert_eq!(reading(), expected(100_000, "transcript", 10), "another session's is never used");
    write_status_record(&world, SESSION, |record| {
        set_usage_of_million(record, 640_000, "2026-01-07T09:59:59.999Z")
    });
    assert_eq!(reading(), expected(100_000, "transcript", 10), "an older one is not used");
    write_status_record(&world, SESSION, |record| {
        set_usage_of_million(record, 640_000, "2026-01-07T10:00:00.001Z")
    });
    assert_eq!(reading(), expected(640_000, "status_line", 64), "a newer one is");
    write_status_record(&world, SESSION, |record| {
        set_usage_of_million(record, 640_000, "2026-01-07T10:00:00.001Z");
        record["session_id"] = OTHER_SESSION.into();
    });
    assert_eq!(
        reading(),
        expected(100_000, "transcript", 10),
        "nor a file of this name that speaks of another"
    );
    write_status_record(&world, SESSION, |record| {
        set_usage_of_million(record, 100_000, "2026-01-07T10:00:09.000Z");
        (record["model"], record["window"]) = ("claude-haiku-4-5".into(), 200_000.into());
    });
    assert_eq!(reading(), expected(100_000, "transcript", 50), "a switch of models shows there first");
    write_status_record(&world, SESSION, |record| {
        set_usage_of_million(record, 960_000, "2026-01-07T10:00:01.000Z")
    });
    write_transcript(
        &world,
        &(answer_line("msg_0", 20_000) + &answer_line("msg_1", 960_000) + &compact_boundary_line(30_000)),
    );
    assert_eq!(reading(), expected(30_000, "compaction", 0), "the figure from before a compaction is void");
    write_status_record(&world, SESSION, |record| {
        set_usage_of_million(record, 0, "2026-01-07T11:00:00.000Z")
    });
    assert_eq!(reading(), expected(30_000, "compaction", 0), "the client's 0 after a compaction is no fill");
    assert_eq!(context_from_status(&world, SESSION)["percent"], 5);
}

/// The client (2.1.329) reports the tokens of the messages that are left: the next request also holds system prompt and tools.
#[test]
fn after_a_compaction_the_system_prompt_and_tools_count_as_usage() {
    let world = world_without_git();
    let prompt = |bytes: usize| {
        let line = json!({"type": "user", "isSidechain": false, "message": {"role": "user", "content": "x".repeat(bytes)}});
        line.to_string() + "\n"
    };
    for (before, used, percent) in [
        (answer_line("msg_0", 40_000), 30_000, 7),
        (prompt(80_000) + &answer_line("msg_0", 60_000), 30_000, 7),
        (answer_line("msg_0", 960_000), 30_000, 28),
        (answer_line("msg_0", 40_000), 665_000, 71),
    ] {
        let text = before + &answer_line("msg_1", 960_000) + &compact_boundary_line(used);
        let path = write_transcript(&world, &text);
        let record = json!({ "session_id": SESSION, "transcript_path": path });
        world.write(format!(".claude/plimsoll/sessions/{SESSION}.json"), &record.to_string());
        let shown_context = context_from_status(&world, SESSION);
        assert_eq!(
            (shown_context["percent"].as_u64(), shown_context["percent_used"].as_u64()),
            (Some(percent), Some(0)),
            "{used}: {shown_context}"
        );
        assert_eq!(shown_context["reading"]["used"], used, "{shown_context}");
    }
    let finished = run_batch_hook(&world, &world.path("transcript.jsonl").display().to_string());
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stdout), @r#"{"systemMessage":"Plimsoll: context is 71% full. A handoff will be written at 85%. Claude Code compacts at about 97%.\nCCS_WARNING|L1|71|Context at 71%","hookSpecificOutput":{"hookEventName":"PostToolBatch","additionalContext":"CCS_WARNING|L1|71|Context at 71%\nFor information: the context window is 71% full (warn). Claude Code compacts at about 97%. No action is required."}}"#);
}

#[test]
fn claude_context_percent_is_used_only_if_no_other_source_exists() {
    let world = world_without_git();
    let path = write_transcript(&world, &answer_line("msg_1", 100_000));
    let env = [("CLAUDE_CONTEXT_PERCENT", "72")];
    run_batch_hook_with(&world, &path, &json!("ok"), &env);
    assert_eq!(session_record(&world)["percent_used"], 10, "the transcript is better");
    remove_our_records(&world);
    let none = world.path("none.jsonl").display().to_string();
    let finished = run_batch_hook_with(&world, &none, &json!("ok"), &env);
    assert_eq!(announced_marker(&finished), "CCS_WARNING|L1|72|Context at 72%");
    assert_eq!(session_record(&world)["reading"]["source"], "environment");
    for wrong in ["", "many", "-1", "101", "NaN", "inf"] {
        remove_our_records(&world);
        let finished = run_batch_hook_with(&world, &none, &json!("ok"), &[("CLAUDE_CONTEXT_PERCENT", wrong)]);
        assert_eq!(finished.stdout.trim(), "{}", "{wrong:?}");
        world.write(".claude/x", "");
    }
}

fn announced_marker(finished: &FinishedProgram) -> String {
    plimsoll_tests::marker_in_user_message(&finished.stdout_json())
}

/// Returns the screen of `status` without the age of the figure and the size of the records.
fn stable_screen(world: &World, screen: &str) -> String {
    let (screen, _) = screen.split_once("\nRecords: ").expect("the size of the records");
    let screen = screen.replace(SESSION, "[THIS SESSION]").replace(OTHER_SESSION, "[OTHER SESSION]");
    let Some((before, after)) = screen.split_once(", measured ") else {
        return world.replace_varying_parts_with_placeholders(&screen);
    };
    let (_, after) = after.split_once(" ago\n").expect("an age");
    world.replace_varying_parts_with_placeholders(&format!("{before}, measured [AGE] ago\n{after}"))
}

/// `status` is the one command for users; the hidden command `context` prints the same.
#[test]
fn status_shows_the_context_usage_of_a_session_without_a_run() {
    let world = world_without_git();
    let none = world.plimsoll(&["status"]).run().expect_success().stdout;
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&none), @"There is no run in [PROJECT]. Start one with `plimsoll run`.");
    let path = write_transcript(&world, &answer_line("msg_1", 860_000));
    let record = json!({ "session_id": SESSION, "transcript_path": path });
    world.write(format!(".claude/plimsoll/sessions/{SESSION}.json"), &record.to_string());
    run_batch_hook(&world, &path);
    let shown = world.plimsoll(&["status"]).run().expect_success().stdout;
    insta::assert_snapshot!(stable_screen(&world, &shown), @"
    Session      [THIS SESSION], measured [AGE] ago
    Context      86% (860k of 1M tokens), L2 (checkpoint); the handoff was due at 85%
    Next         Finish the current edit and start a fresh session. The checkpoint was due at 85%. The
                 handoff is .claude/handoffs/[DATE-TIME].md.
    More         plimsoll status --markdown
    There is no run in [PROJECT]. Start one with `plimsoll run`.
    ");
    let status = world.plimsoll(&["status", "--json"]).run().expect_success().stdout_json();
    assert_eq!((&status["context"]["percent_used"], &status["context"]["level"]), (&json!(86), &json!("L2")));
    let table = world.plimsoll(&["status", "--markdown"]).run().expect_success().stdout;
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&table), @"
    ## Context Status

    | Metric              | Value |
    |---------------------|-------|
    | Current Context     | 86% (860k of 1M tokens) |
    | Level               | L2 (Checkpoint) |
    | Estimated Remaining | ~0 tokens to the checkpoint, ~107k to the auto-compact threshold (97%: Claude Code compacts) |
    | Forecast            | too little data yet (1 turn) |
    | Session             | [ID] |
    | Next Request        | about 861k tokens, with the answer and what has been added since |
    | Source              | transcript, [DURATION] old |
    | Window              | 1M tokens (table of models), claude-opus-5-5 |
    | Thresholds          | L1 70%, L2 85%, L3 95% |

    **Recommendation**: Finish the current edit and start a fresh session.

    The checkpoint was due at 85%. The handoff is .claude/handoffs/[DATE-TIME].md.
    ");
    let level = world.plimsoll(&["status", "--exit-code"]).run();
    assert_eq!(level.code, Some(2), "{level:?}");
}

#[test]
fn after_clear_no_usage_of_the_old_session_is_shown() {
    let world = world_without_git();
    let old = write_transcript(&world, &answer_line("msg_1", 970_000));
    world.write(
        format!(".claude/plimsoll/sessions/{SESSION}.json"),
        &json!({ "session_id": SESSION, "transcript_path": old }).to_string(),
    );
    let finished = run_batch_hook(&world, &old);
    assert_eq!(announced_marker(&finished), "CCS_WARNING|L3|97|Context at 97%");
    // The status line of the old session reported its usage, too, through its own program.
    let recorded =
        fs::read_to_string(fixtures_dir().join("statusline/usage.1m.near_limit.json")).expect("a fixture");
    let run_status_line = |session: &str, change: &dyn Fn(&mut Value)| {
        let mut status_payload: Value = serde_json::from_str(&recorded).expect("JSON");
        status_payload["session_id"] = session.into();
        status_payload["workspace"] =
            json!({ "current_dir": world.project(), "project_dir": world.project(), "added_dirs": [] });
        change(&mut status_payload);
        world.hook("plimsoll-statusline", &status_payload).env("NO_COLOR", "1").run().expect_success().stdout
    };
    insta::assert_snapshot!(run_status_line(SESSION, &|_| ()), @"Opus 5.5 │ project │ ▕███████████████████┃▏ 97% 966k/1M · 1k left │ $5.66");
    world.write("cleared.jsonl", &(tool_result_line(400) + &tool_result_line(500)));
    let cleared = world.path("cleared.jsonl").display().to_string();
    world.write(
        format!(".claude/plimsoll/sessions/{OTHER_SESSION}.json"),
        &json!({ "session_id": OTHER_SESSION, "transcript_path": cleared }).to_string(),
    );
    let line = run_status_line(OTHER_SESSION, &|status_payload| {
        status_payload["context_window"] = json!({ "total_input_tokens": 0, "total_output_tokens": 0,
            "context_window_size": 1_000_000, "current_usage": null, "used_percentage": null, "remaining_percentage": null });
    });
    insta::assert_snapshot!(line, @"Opus 5.5 │ project │ ▕░░░░░░░░░░░░░░┆░░┆░┃▏ ? │ $5.66");
    let shown_context = context_from_status(&world, OTHER_SESSION);
    assert!(
        shown_context["percent"].is_null()
            && shown_context["percent_used"].is_null()
            && shown_context["level"].is_null(),
        "{shown_context}"
    );
    let mut payload = batch_payload(&world, &cleared, &json!("ok"));
    payload["session_id"] = OTHER_SESSION.into();
    let finished = world.hook("plimsoll-post-tool", &payload).run();
    assert_eq!((finished.code, finished.stdout.trim()), (Some(0), "{}"), "{finished:?}");
    let shell = world.plimsoll(&["status"]).env("CLAUDE_CODE_SESSION_ID", OTHER_SESSION).run();
    insta::assert_snapshot!(stable_screen(&world, &shell.stdout), @"
    Session      [OTHER SESSION]
    Context      ? (nothing has been answered yet, or the transcript cannot be read)
    Next         none; the usage will be known after the next answer.
    More         plimsoll status --markdown
    There is no run in [PROJECT]. Start one with `plimsoll run`.
    ");
    assert_eq!(context_from_status(&world, SESSION)["percent_used"], 97, "the old one keeps its own");
}
