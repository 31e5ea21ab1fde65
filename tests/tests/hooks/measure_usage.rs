//! How full is it? The transcript's tail whatever lies in it, and every source by its rank; unknown rather than
//! guessed.

use cpu_time::ThreadTime;
use plimsoll_store::tail::{self, TranscriptTail};
use plimsoll_testkit::fixtures;
use plimsoll_testkit::world::{Finished, World};
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
const OTHER: &str = "11111111-aaaa-4bbb-8ccc-000000000002";

fn answer_at(id: &str, tokens: u64, model: &str, at: &str) -> String {
    let bare = model.trim_end_matches("[1m]");
    let message = json!({
        "id": id, "type": "message", "role": "assistant", "model": bare,
        "content": [{ "type": "tool_use", "id": format!("toolu_{id}"), "name": "Bash", "input": {} }],
        "usage": { "input_tokens": 3, "cache_creation_input_tokens": tokens / 2,
                   "cache_read_input_tokens": tokens - tokens / 2 - 3, "output_tokens": 500 },
    });
    json!({ "parentUuid": null, "isSidechain": false, "message": message, "requestedModel": model,
            "type": "assistant", "timestamp": at })
    .to_string()
        + "\n"
}

fn answer(id: &str, tokens: u64) -> String {
    answer_at(id, tokens, OPUS, "2026-01-07T10:00:00.000Z")
}

fn changed(line: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut value: Value = serde_json::from_str(line).expect(line);
    change(&mut value);
    value.to_string() + "\n"
}

fn sidechain(tokens: u64) -> String {
    changed(&answer("msg_side", tokens), |line| line["isSidechain"] = true.into())
}

fn synthetic() -> String {
    changed(&answer("msg_error", 10), |line| {
        line["isApiErrorMessage"] = true.into();
        line["message"]["model"] = "<synthetic>".into();
        line["message"]["usage"] = json!({ "input_tokens": 0, "output_tokens": 0,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0 });
    })
}

/// A tool result that is exactly so long, line end included, and full of words that look like an answer.
fn user(length: usize) -> String {
    let line = |text: &str| {
        json!({ "type": "user", "isSidechain": false,
            "message": { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t", "content": text }] } })
        .to_string()
            + "\n"
    };
    let lure = "\"type\":\"assistant\" \"usage\":{\"input_tokens\":999999} compact_boundary ";
    let (empty, with_lure) = (line("").len(), line(lure).len());
    let lure = if length > with_lure { lure } else { "" };
    let rest = length.saturating_sub(if lure.is_empty() { empty } else { with_lure });
    line(&format!("{lure}{}", "x".repeat(rest)))
}

fn boundary(post_tokens: u64) -> String {
    json!({ "type": "system", "subtype": "compact_boundary", "isSidechain": false,
        "compactMetadata": { "trigger": "auto", "preTokens": 967_100, "postTokens": post_tokens },
        "timestamp": "2026-01-07T10:30:00.000Z" })
    .to_string()
        + "\n"
}

fn read_bytes(bytes: &[u8]) -> TranscriptTail {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(file.path(), bytes).expect("a temporary file");
    tail::read_tail(file.path(), &[]).expect("a readable file")
}

fn used(text: &str) -> Option<u64> {
    read_bytes(text.as_bytes()).last_response.map(|answer| answer.input_tokens)
}

/// As if no session had been here.
fn forget(world: &World) {
    fs::remove_dir_all(world.path(".claude")).expect("our own folder");
    fs::create_dir_all(world.path(".claude/plimsoll")).expect("it was removed");
}

#[test]
fn the_last_answer_of_the_main_conversation_counts() {
    let two = answer("msg_1", 100_000) + &answer("msg_2", 200_000);
    for (text, expected, why) in [
        (String::new(), None, "an empty file"),
        ("\n\n\n".to_owned(), None, "empty lines"),
        (user(500), None, "no answer yet"),
        (synthetic(), None, "only an error"),
        (sidechain(900_000), None, "only a subagent"),
        (two.clone(), Some(200_000), "the newest"),
        (two.clone() + &user(852_000), Some(200_000), "852 KB after it"),
        (two.clone() + &user(852_000).repeat(5), Some(200_000), "five such lines"),
        (two.clone() + &user(3_000_000), Some(200_000), "3 MB after it"),
        (user(3_000_000) + &two, Some(200_000), "3 MB before it"),
        (two.clone() + &sidechain(900_000), Some(200_000), "a subagent after it"),
        (two.clone() + &synthetic() + &user(300) + &synthetic(), Some(200_000), "errors after it"),
        (
            two.clone() + &answer("msg_3", 300_000).repeat(4),
            Some(300_000),
            "four lines of one answer count once",
        ),
        (two.clone() + answer("msg_3", 300_000).trim_end(), Some(300_000), "no line end at the end"),
        (two.clone() + &answer("msg_3", 300_000)[..200], Some(200_000), "a torn last line"),
        (two.clone() + "{\"type\":\"assistant\",\"message\":[]}\n", Some(200_000), "a line of another shape"),
        (two.clone() + "null\n[]\n\"assistant\"\n", Some(200_000), "lines that are no objects"),
        (two.replace('\n', "\r\n"), Some(200_000), "line ends of another system"),
        (two.clone() + &boundary(9_000), None, "a compaction makes it void"),
        (
            two.clone() + &boundary(9_000) + &answer("msg_3", 40_000),
            Some(40_000),
            "the first after a compaction",
        ),
        (
            two.clone() + &changed(&boundary(1), |line| line["isSidechain"] = true.into()),
            Some(200_000),
            "a subagent's compaction",
        ),
    ] {
        assert_eq!(used(&text), expected, "{why}");
    }
    let torn =
        two.into_bytes().into_iter().chain(*b"{\"type\":\"assistant\", \xff\xfe\xc3").collect::<Vec<u8>>();
    assert_eq!(
        read_bytes(&torn).last_response.map(|answer| answer.input_tokens),
        Some(200_000),
        "bytes that are no text"
    );
}

#[test]
fn after_a_compaction_its_own_figure_holds_with_the_model_from_before() {
    let tail =
        read_bytes((answer("msg_1", 960_000) + &boundary(7_000) + &boundary(9_000) + &user(99)).as_bytes());
    let compaction = tail.compaction.expect("a compaction");
    assert_eq!(compaction.metadata.post_tokens, Some(9_000), "the newest");
    assert_eq!(compaction.model.as_deref(), Some(OPUS));
    assert!(tail.last_response.is_none());
}

#[test]
fn a_call_is_found_in_any_line_of_its_answer_and_in_no_other_answer() {
    let part = |id: &str, call: &str| {
        changed(&answer(id, 50_000), |line| line["message"]["content"][0]["id"] = call.into())
    };
    let text = part("msg_1", "toolu_old")
        + &part("msg_2", "toolu_a")
        + &user(300)
        + &part("msg_2", "toolu_b")
        + &sidechain(900_000)
        + &part("msg_2", "toolu_d");
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(file.path(), text).expect("a temporary file");
    let found = |ids: &[&str]| {
        tail::read_tail(file.path(), ids)
            .expect("readable")
            .last_response
            .expect("an answer")
            .has_requested_tool_call
    };
    assert!(found(&["toolu_d"]));
    assert!(found(&["toolu_a"]), "the hook of the first of three parallel tools");
    assert!(found(&["toolu_c", "toolu_b"]));
    assert!(!found(&["toolu_c"]));
    assert!(!found(&["toolu_old"]), "an older answer is not the one at hand");
}

/// The chunks end 32 KB, 160 KB and 416 KB before the end: a line is cut there at each of its bytes once.
#[test]
fn a_line_may_be_cut_by_a_chunk_at_any_byte() {
    let line = answer("msg_7", 77_000);
    let before = answer("msg_6", 66_000);
    for (border, step) in [(32 * 1024, 1), (160 * 1024, 7), (416 * 1024, 31)] {
        for cut in (0..=line.len() + 1).step_by(step) {
            let text = format!("{before}{line}{}", user(border - line.len() + cut));
            assert_eq!(used(&text), Some(77_000), "border {border}, cut {cut}");
        }
    }
}

/// The same by reading everything from the front.
fn forward(bytes: &[u8]) -> (Option<u64>, Option<u64>) {
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

fn any_line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (5_000_u64..990_000).prop_map(|tokens| answer(&format!("msg_{tokens}"), tokens)),
        2 => (5_000_u64..990_000, 1_usize..4).prop_map(|(tokens, parts)| answer("msg_parts", tokens).repeat(parts)),
        1 => (5_000_u64..990_000, 20_000_usize..400_000).prop_map(|(tokens, length)| {
            changed(&answer("msg_long", tokens), |line| line["message"]["content"] = "w".repeat(length).into())
        }),
        2 => (5_000_u64..990_000).prop_map(sidechain),
        2 => Just(synthetic()),
        1 => (1_000_u64..50_000).prop_map(boundary),
        3 => (200_usize..2_000).prop_map(user),
        3 => (32_000_usize..34_000).prop_map(user),
        2 => (120_000_usize..300_000).prop_map(user),
        1 => (850_000_usize..1_200_000).prop_map(user),
        1 => Just("\n".to_owned()),
        1 => Just("{\"type\":\"assistant\",\"mess\n".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reading_backwards_finds_what_reading_forwards_finds(
        lines in prop::collection::vec(any_line(), 0..12),
        torn in prop::option::of(1_usize..400),
        other_line_ends in any::<bool>(),
    ) {
        let mut text: String = lines.concat();
        if let Some(length) = torn {
            text.push_str(&answer("msg_torn", 5_555)[..length.min(answer("msg_torn", 5_555).len() - 1)]);
        }
        if other_line_ends {
            text = text.replace('\n', "\r\n");
        }
        let tail = read_bytes(text.as_bytes());
        let ours = (
            tail.last_response.map(|answer| answer.input_tokens),
            tail.compaction.and_then(|compaction| compaction.metadata.post_tokens),
        );
        prop_assert_eq!(ours, forward(text.as_bytes()));
    }
}

/// A file with so much before its last megabyte.
fn large(path: &Path, size: u64) {
    let mut file = File::create(path).expect("a temporary file");
    file.set_len(size).expect("a file with a hole");
    let mut end = String::from("\n");
    while end.len() < 900_000 {
        let _ = write!(end, "{}{}", user(40_000), answer("msg_1", 123_456));
    }
    file.seek(SeekFrom::Start(size)).expect("a seek");
    file.write_all((end + &user(100_000)).as_bytes()).expect("a write");
}

#[test]
fn the_cost_does_not_depend_on_the_size_of_the_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (small, huge) = (folder.path().join("small"), folder.path().join("huge"));
    large(&small, 0);
    large(&huge, 300 * 1024 * 1024);
    let time = |path: &Path| {
        let start = ThreadTime::now();
        for _ in 0..50 {
            assert_eq!(
                tail::read_tail(path, &[]).expect("readable").last_response.expect("an answer").input_tokens,
                123_456
            );
        }
        start.elapsed()
    };
    time(&small);
    let (of_small, of_huge) = (time(&small), time(&huge));
    // Reading all of it once takes longer than these fifty together.
    assert!(of_huge < of_small * 4 + Duration::from_millis(100), "{of_small:?} and {of_huge:?}");
}

#[test]
fn too_far_from_the_end_is_unknown_and_quick() {
    let text = answer("msg_1", 100_000) + &user(900_000).repeat(30);
    let start = ThreadTime::now();
    assert_eq!(used(&text), None, "27 MB of tool results after the last answer");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

// The hook and the command.

fn world() -> World {
    World::without_git()
}

fn transcript(world: &World, text: &str) -> String {
    world.write("transcript.jsonl", text);
    world.path("transcript.jsonl").display().to_string()
}

fn payload(world: &World, transcript: &str, response: &Value) -> Value {
    json!({
        "session_id": SESSION, "transcript_path": transcript, "cwd": world.project(),
        "hook_event_name": "PostToolBatch",
        "tool_calls": [{ "tool_name": "Bash", "tool_input": { "command": "x" }, "tool_use_id": "toolu_msg_1",
                         "tool_response": response }],
    })
}

fn hook(world: &World, transcript: &str) -> Finished {
    hook_with(world, transcript, &json!("ok"), &[])
}

fn hook_with(world: &World, transcript: &str, response: &Value, env: &[(&str, &str)]) -> Finished {
    let mut launch = world.hook("plimsoll-post-tool", &payload(world, transcript, response));
    for (name, value) in env {
        launch = launch.env(*name, *value);
    }
    let finished = launch.run();
    let reply: Value = serde_json::from_str(&finished.stdout).expect(&finished.stdout);
    assert!(reply.is_object(), "{finished:?}");
    finished
}

fn record(world: &World) -> Value {
    world.json(format!(".claude/plimsoll/sessions/{SESSION}.json"))
}

fn context(world: &World, session: &str) -> Value {
    let asked = world.plimsoll(&["status", "--json"]).env("CLAUDE_CODE_SESSION_ID", session).run();
    asked.expect_success().json()["context"].take()
}

#[test]
fn what_is_no_file_is_unknown_and_never_hangs() {
    let world = world();
    let path = |name: &str| world.path(name).display().to_string();
    world.write("folder/x", "");
    let made = world.command("mkfifo", &["pipe"]).run();
    assert_eq!(made.code, Some(0), "{made:?}");
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
        let finished = hook(&world, &transcript);
        assert_eq!((finished.code, finished.stdout.trim()), (Some(0), "{}"), "{transcript:?} {finished:?}");
        assert!(finished.elapsed < Duration::from_secs(20), "{transcript:?} {finished:?}");
        assert!(finished.stderr.lines().count() <= 1, "{transcript:?} {finished:?}");
        assert!(!world.exists(".claude/plimsoll/sessions"), "{transcript:?}: nothing to remember");
        let record = json!({ "session_id": "asked", "transcript_path": transcript });
        world.write(".claude/plimsoll/sessions/asked.json", &record.to_string());
        let said = context(&world, "asked");
        assert!(
            said["percent"].is_null() && said["reading"].is_null() && said["level"].is_null(),
            "{transcript:?} {said}"
        );
        forget(&world);
    }
    let pipe = world.path("pipe");
    assert!(tail::read_tail(&pipe, &[]).is_err(), "the crate says why");
    assert!(tail::read_tail(&world.path("folder"), &[]).is_err());
}

#[test]
fn used_and_projected_are_what_was_sent_answered_and_added() {
    let world = world();
    let transcript = transcript(&world, &answer("msg_1", 300_000));
    for (response, added) in [
        (json!("x".repeat(40_000)), 10_000),
        (json!({ "stdout": "x".repeat(40_000), "stderr": "", "originalFile": "y".repeat(90_000) }), 10_000),
        (json!([{ "type": "image", "source": { "type": "base64", "data": "A".repeat(288_000) } }]), 1_600),
        (json!({ "type": "image", "file": { "base64": "A".repeat(288_000) } }), 1_600),
    ] {
        hook_with(&world, &transcript, &response, &[]);
        let record = record(&world);
        let reading = &record["reading"];
        assert_eq!(
            (reading["used"].as_u64(), reading["output"].as_u64()),
            (Some(300_000), Some(500)),
            "{record}"
        );
        let ours = reading["added"].as_u64().expect("a number");
        assert!((added..=added + 16).contains(&ours), "{ours} added, not {added}: {record}");
        let percent = (300_500 + ours + 5_000) / 10_000;
        assert_eq!(
            (record["percent"].as_u64(), record["percent_used"].as_u64()),
            (Some(percent), Some(30)),
            "{record}"
        );
        assert_eq!(reading["behind"], false, "{record}");
        forget(&world);
    }
}

#[test]
fn the_percent_is_rounded_half_up_as_the_client_does() {
    let world = world();
    for (tokens, percent) in [(424_999, 42), (425_000, 43), (994_999, 99), (4_999, 0), (5_000, 1)] {
        let transcript = transcript(&world, &answer("msg_1", tokens));
        let record = json!({ "session_id": "asked", "transcript_path": transcript });
        world.write(".claude/plimsoll/sessions/asked.json", &record.to_string());
        assert_eq!(context(&world, "asked")["percent_used"], percent, "{tokens}");
    }
}

fn status(world: &World, session: &str, change: impl FnOnce(&mut Value)) {
    let mut record = json!({ "session_id": session, "model": OPUS, "window": 500_000, "used": 100_000,
        "output": 500, "at": "2026-01-07T09:00:00.000Z" });
    change(&mut record);
    world.write(format!(".claude/plimsoll/sessions/{session}.status.json"), &record.to_string());
}

#[test]
fn the_first_source_of_the_window_that_speaks_wins() {
    let world = world();
    let path = transcript(&world, &answer("msg_1", 100_000));
    world.write(".claude/plimsoll.json", &json!({ "windows": { OPUS: 300_000 } }).to_string());
    status(&world, SESSION, |_| ());
    status(&world, OTHER, |record| record["window"] = 123_000.into());
    world.write(
        ".claude/plimsoll/windows.json",
        &json!({ OPUS: 400_000, "claude-opus-5-5[1m]": 1 }).to_string(),
    );
    let window = |env: &[(&str, &str)]| {
        hook_with(&world, &path, &json!("ok"), env);
        let window = record(&world)["reading"]["window"].clone();
        let _ = fs::remove_file(world.path(format!(".claude/plimsoll/sessions/{SESSION}.json")));
        (window["tokens"].as_u64().expect("tokens"), window["source"].as_str().expect("a source").to_owned())
    };
    let is = |tokens: u64, source: &str| (tokens, source.to_owned());
    assert_eq!(window(&[]), is(300_000, "settings"));
    fs::remove_file(world.path(".claude/plimsoll.json")).expect("our own file");
    assert_eq!(window(&[]), is(500_000, "status_line"));
    fs::remove_file(world.path(format!(".claude/plimsoll/sessions/{SESSION}.status.json")))
        .expect("our own file");
    assert_eq!(window(&[]), is(400_000, "learned"));
    assert_eq!(window(&[("CLAUDE_CODE_DISABLE_1M_CONTEXT", "1")]).0, 200_000, "it caps what was learned");
    fs::remove_file(world.path(".claude/plimsoll/windows.json")).expect("our own file");
    assert_eq!(window(&[]), is(1_000_000, "table"));
    assert_eq!(window(&[("CLAUDE_CODE_DISABLE_1M_CONTEXT", "1")]), is(200_000, "table"));
    assert_eq!(window(&[("CLAUDE_CODE_DISABLE_1M_CONTEXT", "0")]), is(1_000_000, "table"));
    for (model, tokens, source) in [
        ("claude-sonnet-4-5", 200_000, "table"),
        ("claude-sonnet-4-5[1m]", 1_000_000, "table"),
        ("a-proxy-of-mine", 1_000_000, "assumed"),
    ] {
        transcript(&world, &answer_at("msg_1", 100_000, model, "2026-01-07T10:00:00.000Z"));
        assert_eq!(window(&[]), is(tokens, source), "{model}");
    }
    transcript(&world, &answer_at("msg_1", 230_000, "claude-haiku-4-5", "2026-01-07T10:00:00.000Z"));
    assert_eq!(window(&[]), is(1_000_000, "used"), "a window is at least what was used");
}

#[test]
fn an_old_clients_window_is_that_of_its_version() {
    let world = world();
    for (version, model, percent) in [
        ("2.0.77", "claude-opus-4-1-20250805", 50),
        ("2.0.77", "some-proxy-model", 50),
        ("2.1.101", "claude-opus-4-1-20250805", 50),
        ("2.1.329", "claude-opus-4-1-20250805", 10),
        ("2.1.329", "some-proxy-model", 10),
    ] {
        let line = answer_at("msg_1", 100_000, model, "2026-01-07T10:00:00.000Z");
        let boundary = boundary(100_000);
        let of_version = |line: &str| changed(line, |line| line["version"] = version.into());
        let path = transcript(&world, &of_version(&line));
        let record = json!({ "session_id": SESSION, "transcript_path": path });
        world.write(format!(".claude/plimsoll/sessions/{SESSION}.json"), &record.to_string());
        assert_eq!(context(&world, SESSION)["percent"], percent, "{version} {model}");
        let compacted =
            of_version(&answer_at("msg_0", 900, model, "2026-01-07T09:00:00.000Z")) + &of_version(&boundary);
        transcript(&world, &compacted);
        assert_eq!(context(&world, SESSION)["percent"], percent, "{version} {model}, after a compaction");
    }
}

/// With `CLAUDE_CODE_CHILD_SESSION` in its environment the client writes no transcript.
#[test]
fn without_a_transcript_the_status_lines_record_of_this_session_counts() {
    let world = world();
    let path = world.path("no-such-file.jsonl").display().to_string();
    status(&world, OTHER, |record| record["used"] = 490_000.into());
    assert_eq!(hook(&world, &path).stdout.trim(), "{}", "another session's");
    status(&world, SESSION, |record| record["used"] = 480_000.into());
    // 480,000 of 500,000 tokens.
    insta::assert_snapshot!(world.stable_text(&hook(&world, &path).stdout), @r#"{"systemMessage":"CCS_WARNING|L3|96|Context at 96%\nThe context window is 96% full. Claude Code compacts at about 93%. A handoff is ready. To go on in a fresh session: /clear, then: Continue from @.claude/handoffs/[DATE-TIME].md","hookSpecificOutput":{"hookEventName":"PostToolBatch","additionalContext":"CCS_WARNING|L3|96|Context at 96%\nFor information: the context window is 96% full (emergency). Claude Code compacts at about 93%. A handoff with the facts of this session is ready in .claude/handoffs/[DATE-TIME].md. No action is required; this only helps you to plan."}}"#);
}

#[test]
fn after_a_compaction_that_does_not_say_what_is_left_an_older_figure_is_none() {
    let world = world();
    let compacted = changed(&boundary(0), |line| {
        line["compactMetadata"].as_object_mut().expect("an object").remove("postTokens");
    });
    let path = transcript(&world, &(answer("msg_1", 480_000) + &compacted));
    status(&world, SESSION, |record| record["used"] = 480_000.into());
    assert_eq!(hook(&world, &path).stdout.trim(), "{}", "it is from before the compaction");
    status(&world, SESSION, |record| {
        (record["used"], record["at"]) = (480_000.into(), "2026-01-07T10:31:00.000Z".into());
    });
    // The next answer's figure counts.
    assert_eq!(warning(&hook(&world, &path)), "CCS_WARNING|L3|96|Context at 96%");
}

#[test]
fn the_status_lines_record_counts_only_where_it_is_newer_and_this_sessions() {
    let world = world();
    let path = transcript(&world, &answer("msg_1", 100_000));
    world.write(
        format!(".claude/plimsoll/sessions/{SESSION}.json"),
        &json!({ "session_id": SESSION, "transcript_path": path }).to_string(),
    );
    let reading = || {
        let said = context(&world, SESSION);
        let reading = &said["reading"];
        (
            reading["used"].as_u64(),
            reading["source"].as_str().unwrap_or("-").to_owned(),
            said["percent_used"].as_u64(),
        )
    };
    let is = |used, source: &str, percent| (Some(used), source.to_owned(), Some(percent));
    let million = |record: &mut Value, used: u64, at: &str| {
        (record["window"], record["used"], record["at"]) = (1_000_000.into(), used.into(), at.into());
    };
    status(&world, OTHER, |record| million(record, 970_000, "2026-01-07T12:00:00.000Z"));
    assert_eq!(reading(), is(100_000, "transcript", 10), "another session's is never used");
    status(&world, SESSION, |record| million(record, 640_000, "2026-01-07T09:59:59.999Z"));
    assert_eq!(reading(), is(100_000, "transcript", 10), "an older one is not used");
    status(&world, SESSION, |record| million(record, 640_000, "2026-01-07T10:00:00.001Z"));
    assert_eq!(reading(), is(640_000, "status_line", 64), "a newer one is");
    status(&world, SESSION, |record| {
        million(record, 640_000, "2026-01-07T10:00:00.001Z");
        record["session_id"] = OTHER.into();
    });
    assert_eq!(reading(), is(100_000, "transcript", 10), "nor a file of this name that speaks of another");
    status(&world, SESSION, |record| {
        million(record, 100_000, "2026-01-07T10:00:09.000Z");
        (record["model"], record["window"]) = ("claude-haiku-4-5".into(), 200_000.into());
    });
    assert_eq!(reading(), is(100_000, "transcript", 50), "a switch of models shows there first");
    status(&world, SESSION, |record| million(record, 960_000, "2026-01-07T10:00:01.000Z"));
    transcript(&world, &(answer("msg_0", 20_000) + &answer("msg_1", 960_000) + &boundary(30_000)));
    assert_eq!(reading(), is(30_000, "compaction", 0), "the figure from before a compaction is void");
    status(&world, SESSION, |record| million(record, 0, "2026-01-07T11:00:00.000Z"));
    assert_eq!(reading(), is(30_000, "compaction", 0), "the client's 0 after a compaction is no fill");
    assert_eq!(context(&world, SESSION)["percent"], 5);
}

/// The client (2.1.329) reports the tokens of the messages that are left: the next request also holds system prompt and tools.
#[test]
fn after_a_compaction_the_sessions_overhead_is_part_of_what_the_window_holds() {
    let world = world();
    let prompt = |bytes: usize| {
        let line = json!({"type": "user", "isSidechain": false, "message": {"role": "user", "content": "x".repeat(bytes)}});
        line.to_string() + "\n"
    };
    for (before, used, percent) in [
        (answer("msg_0", 40_000), 30_000, 7),
        (prompt(80_000) + &answer("msg_0", 60_000), 30_000, 7),
        (answer("msg_0", 960_000), 30_000, 28),
        (answer("msg_0", 40_000), 665_000, 71),
    ] {
        let text = before + &answer("msg_1", 960_000) + &boundary(used);
        let path = transcript(&world, &text);
        let record = json!({ "session_id": SESSION, "transcript_path": path });
        world.write(format!(".claude/plimsoll/sessions/{SESSION}.json"), &record.to_string());
        let said = context(&world, SESSION);
        assert_eq!(
            (said["percent"].as_u64(), said["percent_used"].as_u64()),
            (Some(percent), Some(0)),
            "{used}: {said}"
        );
        assert_eq!(said["reading"]["used"], used, "{said}");
    }
    let warned = hook(&world, &world.path("transcript.jsonl").display().to_string());
    insta::assert_snapshot!(world.stable_text(&warned.stdout), @r#"{"systemMessage":"CCS_WARNING|L1|71|Context at 71%\nThe context window is 71% full. Claude Code compacts at about 97%. A handoff follows at 85%.","hookSpecificOutput":{"hookEventName":"PostToolBatch","additionalContext":"CCS_WARNING|L1|71|Context at 71%\nFor information: the context window is 71% full (warn). Claude Code compacts at about 97%. No action is required; this only helps you to plan."}}"#);
}

#[test]
fn the_users_own_figure_is_the_last_source() {
    let world = world();
    let path = transcript(&world, &answer("msg_1", 100_000));
    let env = [("CLAUDE_CONTEXT_PERCENT", "72")];
    hook_with(&world, &path, &json!("ok"), &env);
    assert_eq!(record(&world)["percent_used"], 10, "the transcript is better");
    forget(&world);
    let none = world.path("none.jsonl").display().to_string();
    let said = hook_with(&world, &none, &json!("ok"), &env);
    assert_eq!(warning(&said), "CCS_WARNING|L1|72|Context at 72%");
    assert_eq!(record(&world)["reading"]["source"], "environment");
    for wrong in ["", "many", "-1", "101", "NaN", "inf"] {
        forget(&world);
        let said = hook_with(&world, &none, &json!("ok"), &[("CLAUDE_CONTEXT_PERCENT", wrong)]);
        assert_eq!(said.stdout.trim(), "{}", "{wrong:?}");
        world.write(".claude/x", "");
    }
}

/// Returns the first line of what the user reads.
fn warning(finished: &Finished) -> String {
    let reply = finished.json();
    reply["systemMessage"].as_str().and_then(|text| text.lines().next()).unwrap_or_default().to_owned()
}

/// Returns the screen of `status` without the age of the figure and the size of the records.
fn stable_screen(world: &World, screen: &str) -> String {
    let (screen, _) = screen.split_once("\nRecords: ").expect("the size of the records");
    let screen = screen.replace(SESSION, "[THIS SESSION]").replace(OTHER, "[OTHER SESSION]");
    let Some((before, after)) = screen.split_once(", measured ") else { return world.stable_text(&screen) };
    let (_, after) = after.split_once(" ago\n").expect("an age");
    world.stable_text(&format!("{before}, measured [AGE] ago\n{after}"))
}

/// The one command for users; the hidden command `context` prints the same.
#[test]
fn status_shows_the_context_usage_of_a_session_without_a_run() {
    let world = world();
    let none = world.plimsoll(&["status"]).run().expect_success().stdout;
    insta::assert_snapshot!(world.stable_text(&none), @"There is no run in [PROJECT]. Start one with `plimsoll run`.");
    let path = transcript(&world, &answer("msg_1", 860_000));
    let record = json!({ "session_id": SESSION, "transcript_path": path });
    world.write(format!(".claude/plimsoll/sessions/{SESSION}.json"), &record.to_string());
    hook(&world, &path);
    let shown = world.plimsoll(&["status"]).run().expect_success().stdout;
    insta::assert_snapshot!(stable_screen(&world, &shown), @"
    Session      [THIS SESSION], measured [AGE] ago
    Context      86% (860k of 1M tokens), L2 (checkpoint); the handoff was due at 85%
    Next         Finish the current edit and start a fresh session. The checkpoint was due at 85%. The
                 handoff is .claude/handoffs/[DATE-TIME].md.
    More         plimsoll status --markdown
    There is no run in [PROJECT]. Start one with `plimsoll run`.
    ");
    let status = world.plimsoll(&["status", "--json"]).run().expect_success().json();
    assert_eq!((&status["context"]["percent_used"], &status["context"]["level"]), (&json!(86), &json!("L2")));
    let table = world.plimsoll(&["status", "--markdown"]).run().expect_success().stdout;
    insta::assert_snapshot!(world.stable_text(&table), @"
    ## Context Status

    | Metric              | Value |
    |---------------------|-------|
    | Current Context     | 86% (860k of 1M tokens) |
    | Level               | L2 (Checkpoint) |
    | Estimated Remaining | ~0 tokens to the checkpoint, ~107k to the auto-compact threshold (97%: the client compacts) |
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
fn after_clear_and_in_a_new_session_no_older_figure_shows() {
    let world = world();
    let old = transcript(&world, &answer("msg_1", 970_000));
    world.write(
        format!(".claude/plimsoll/sessions/{SESSION}.json"),
        &json!({ "session_id": SESSION, "transcript_path": old }).to_string(),
    );
    let finished = hook(&world, &old);
    assert_eq!(warning(&finished), "CCS_WARNING|L3|97|Context at 97%");
    // The status line of the old session spoke, too, by its own program.
    let recorded =
        fs::read_to_string(fixtures().join("statusline/usage.1m.near_limit.json")).expect("a fixture");
    let tell = |session: &str, change: &dyn Fn(&mut Value)| {
        let mut told: Value = serde_json::from_str(&recorded).expect("JSON");
        told["session_id"] = session.into();
        told["workspace"] =
            json!({ "current_dir": world.project(), "project_dir": world.project(), "added_dirs": [] });
        change(&mut told);
        world.hook("plimsoll-statusline", &told).env("NO_COLOR", "1").run().expect_success().stdout
    };
    insta::assert_snapshot!(tell(SESSION, &|_| ()), @"Opus 5.5 │ project │ ▕███████████████████┃▏ 97% 966k/1M · 1k left │ $5.66");
    world.write("cleared.jsonl", &(user(400) + &user(500)));
    let cleared = world.path("cleared.jsonl").display().to_string();
    world.write(
        format!(".claude/plimsoll/sessions/{OTHER}.json"),
        &json!({ "session_id": OTHER, "transcript_path": cleared }).to_string(),
    );
    let line = tell(OTHER, &|told| {
        told["context_window"] = json!({ "total_input_tokens": 0, "total_output_tokens": 0,
            "context_window_size": 1_000_000, "current_usage": null, "used_percentage": null, "remaining_percentage": null });
    });
    insta::assert_snapshot!(line, @"Opus 5.5 │ project │ ▕░░░░░░░░░░░░░░┆░░┆░┃▏ ? │ $5.66");
    let said = context(&world, OTHER);
    assert!(said["percent"].is_null() && said["percent_used"].is_null() && said["level"].is_null(), "{said}");
    let mut payload = payload(&world, &cleared, &json!("ok"));
    payload["session_id"] = OTHER.into();
    let finished = world.hook("plimsoll-post-tool", &payload).run();
    assert_eq!((finished.code, finished.stdout.trim()), (Some(0), "{}"), "{finished:?}");
    let shell = world.plimsoll(&["status"]).env("CLAUDE_CODE_SESSION_ID", OTHER).run();
    insta::assert_snapshot!(stable_screen(&world, &shell.stdout), @"
    Session      [OTHER SESSION]
    Context      ? (nothing has been answered yet, or the transcript cannot be read)
    Next         none; the usage will be known after the next answer.
    More         plimsoll status --markdown
    There is no run in [PROJECT]. Start one with `plimsoll run`.
    ");
    assert_eq!(context(&world, SESSION)["percent_used"], 97, "the old one keeps its own");
}
