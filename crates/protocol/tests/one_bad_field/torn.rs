//! Texts that were cut in the wrong place, documents that were torn, and things no client would send.

use crate::recorded::recordings;
use cpu_time::ThreadTime;
use plimsoll_protocol::result::RunResult;
use plimsoll_protocol::status::StatusPayload;
use plimsoll_protocol::stream::StreamLine;
use plimsoll_protocol::transcript::Line;
use plimsoll_protocol::{Event, Hook};
use std::time::Duration;

/// Of a processor: a tenth of a second is usual; what goes back to the beginning again and again takes minutes.
const BOUND: Duration = Duration::from_secs(10);

fn prompt(bytes: &[u8]) -> Option<String> {
    let hook = Hook::parse(bytes).expect("a payload");
    assert_eq!(hook.session_id.as_deref(), Some("s"), "the good field is lost");
    match hook.event {
        Event::UserPromptSubmit { prompt } => prompt,
        _ => None,
    }
}

fn payload(prompt: &[u8]) -> Vec<u8> {
    let head = br#"{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"#;
    [head.as_slice(), prompt, b"}"].concat()
}

#[test]
fn half_an_emoji_in_a_text_costs_only_that_half() {
    for half in [r#""cut \ud83d""#, r#""cut \ude00""#, r#""cut \ud83d\ud83d""#, r#""cut \ud83dx""#] {
        let text = prompt(&payload(half.as_bytes())).expect("the text");
        assert!(text.starts_with("cut \u{fffd}"), "{text:?}");
    }
    assert_eq!(prompt(&payload(br#""whole \ud83d\ude00""#)).as_deref(), Some("whole \u{1f600}"));
}

#[test]
fn of_a_key_that_stands_twice_the_last_counts_and_nothing_else_is_lost() {
    for twice in ["session_id", "prompt", "hook_event_name"] {
        let bytes = format!(
            r#"{{"{twice}":"first","session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"p"}}"#
        );
        assert_eq!(prompt(bytes.as_bytes()).as_deref(), Some("p"), "{twice}");
    }
    let line = br#"{"type":"assistant","message":{"id":"m","usage":{"input_tokens":1,"input_tokens":2},"model":"a"}}"#;
    let usage = Line::parse_usage(line).and_then(|line| line.message.usage).expect("usage");
    assert_eq!(usage.input(), 2);
}

#[test]
fn half_an_emoji_is_forgiven_in_a_field_nobody_reads() {
    let bytes =
        br#"{"session_id":"s","new":{"deep":["\ud83d"]},"hook_event_name":"UserPromptSubmit","prompt":"p"}"#;
    assert_eq!(prompt(bytes).as_deref(), Some("p"));
}

#[test]
fn half_an_emoji_is_forgiven_in_tool_calls_errors_and_transcripts() {
    let batch = br#"{"hook_event_name":"PostToolBatch","tool_calls":[{"tool_name":"Bash","tool_use_id":"t",
        "tool_input":{"command":"echo \ud83d","content":"ok"},"tool_response":"\ud83d!"}]}"#;
    let hook = Hook::parse(batch).expect("a payload");
    let call = &hook.event.tool_calls()[0];
    assert_eq!(call.tool_use_id.as_deref(), Some("t"));
    assert_eq!(call.tool_input.content.as_deref(), Some("ok"));
    assert!(call.tool_input.command.as_deref().is_some_and(|command| command.starts_with("echo ")));
    assert!(call.visible().bytes > 1);

    let result =
        RunResult::parse(br#"{"errors":["cut \ud83d","whole"],"api_error_status":2}"#).expect("a result");
    assert_eq!((result.errors.len(), result.api_error_status), (2, Some(2)));

    let line = br#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"\ud83d"},{"type":"text","text":"b"}]}}"#;
    let texts: Vec<_> =
        Line::parse(line).expect("a line").message.blocks().iter().map(|block| block.text.clone()).collect();
    assert_eq!(texts.len(), 2);
    assert!(texts.iter().all(Option::is_some));
}

#[test]
fn bytes_that_are_no_utf8_are_replaced() {
    assert_eq!(prompt(&payload(b"\"a\xff\xfeb\"")).as_deref(), Some("a\u{fffd}\u{fffd}b"));
    assert_eq!(prompt(&payload(b"\"cut \xf0\x9f\x98\"")).as_deref(), Some("cut \u{fffd}"));
}

#[test]
fn a_byte_order_mark_and_white_space_around_the_object_do_no_harm() {
    for (before, after) in [("\u{feff}", ""), ("\n \t", "\r\n\n"), ("\u{feff}\n", "\n")] {
        let bytes = [before.as_bytes(), &payload(b"\"p\""), after.as_bytes()].concat();
        assert_eq!(prompt(&bytes).as_deref(), Some("p"), "{before:?}");
    }
}

#[test]
fn what_is_not_one_object_is_refused() {
    for text in [
        "",
        " ",
        "null",
        "true",
        "5",
        "\"x\"",
        "[]",
        "[[]]",
        r#"["Stop","s"]"#,
        "{} {}",
        "{}x",
        "{",
        "{,}",
        "}",
    ] {
        assert!(Hook::parse(text.as_bytes()).is_err(), "hook: {text}");
        assert!(StatusPayload::parse(text.as_bytes()).is_err(), "status: {text}");
        assert!(RunResult::parse(text.as_bytes()).is_err(), "result: {text}");
        assert!(Line::parse(text.as_bytes()).is_none(), "line: {text}");
        assert!(matches!(StreamLine::parse(text.as_bytes()), StreamLine::Other), "stream: {text}");
    }
    assert!(Hook::parse(b"{}").is_ok(), "an empty object is one object");
}

#[test]
fn a_document_cut_at_any_byte_is_refused_and_never_panics() {
    for recording in recordings("hooks").iter().chain(&recordings("statusline")).chain(&recordings("result"))
    {
        let whole = recording.bytes.trim_ascii_end();
        for end in 0..whole.len() {
            assert!(Hook::parse(&whole[..end]).is_err(), "{} cut at {end}", recording.name);
            assert!(StatusPayload::parse(&whole[..end]).is_err(), "{} cut at {end}", recording.name);
            assert!(RunResult::parse(&whole[..end]).is_err(), "{} cut at {end}", recording.name);
            assert!(matches!(StreamLine::parse(&whole[..end]), StreamLine::Other));
        }
    }
}

#[test]
fn a_transcript_line_cut_at_any_byte_is_no_line() {
    let plain = recordings("transcripts").into_iter().find(|one| one.name == "plain").expect("the recording");
    for line in plain.lines().filter(|line| line.len() < 3000) {
        assert!((0..line.len()).all(|end| Line::parse(&line[..end]).is_none()));
    }
}

#[test]
fn ten_megabytes_are_read_and_measured_without_going_back() {
    let text = "line of a file\\n\\\"quoted\\\"\\u00e9".repeat(170_000);
    let batch = format!(
        r#"{{"session_id":"s","tool_calls":[{{"tool_name":"Read","tool_input":{{"content":"{text}"}},"tool_response":[{{"type":"text","text":"{text}"}}]}}],"hook_event_name":"PostToolBatch"}}"#
    );
    assert!(batch.len() > 10_000_000);
    let begun = ThreadTime::now();
    let hook = Hook::parse(batch.as_bytes()).expect("a payload");
    let seen = hook.event.tool_calls()[0].visible();
    assert!(begun.elapsed() < BOUND, "{:?}", begun.elapsed());
    assert_eq!(hook.session_id.as_deref(), Some("s"));
    assert!(seen.bytes > 4_000_000);
}

#[test]
fn deep_nesting_neither_crashes_nor_loses_the_good_fields() {
    for depth in [100, 1000, 100_000] {
        let nests = [
            format!("{}{}", "[".repeat(depth), "]".repeat(depth)),
            format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth)),
        ];
        for nest in &nests {
            for field in [
                "new",
                "cwd",
                "tool_input",
                "tool_response",
                "tool_calls",
                "background_tasks",
                "stop_hook_active",
            ] {
                let text =
                    format!(r#"{{"session_id":"s","hook_event_name":"PostToolUse","{field}":{nest}}}"#);
                let hook = Hook::parse(text.as_bytes()).expect("a payload");
                assert_eq!(hook.session_id.as_deref(), Some("s"), "{field} {depth}");
                let begun = ThreadTime::now();
                hook.event.tool_calls()[0].visible();
                assert!(begun.elapsed() < BOUND, "{field} {depth}: {:?}", begun.elapsed());
            }
            let line =
                format!(r#"{{"type":"assistant","message":{{"id":"m","content":{nest},"usage":{nest}}}}}"#);
            let line = Line::parse(line.as_bytes()).expect("a line");
            assert_eq!(line.message.id.as_deref(), Some("m"));
            line.message.blocks().iter().for_each(|block| drop(block.result_text()));
        }
        assert!(Hook::parse("[".repeat(depth).as_bytes()).is_err());
        assert!(Hook::parse(r#"{"a":"#.repeat(depth).as_bytes()).is_err());
    }
}

#[test]
fn counts_are_whole_and_never_negative() {
    let tokens = |value: &str| {
        let text = format!(r#"{{"api_error_status":{value}}}"#);
        RunResult::parse(text.as_bytes()).expect("a result").api_error_status
    };
    assert_eq!(tokens("12"), Some(12));
    assert_eq!(tokens("12.5"), Some(13));
    assert_eq!(tokens("1e3"), Some(1000));
    assert_eq!(tokens("18446744073709551615"), Some(u64::MAX));
    for none in ["-1", "-0.6", "1e300", "1e999", "99999999999999999999", "\"12\"", "null", "[12]"] {
        assert_eq!(tokens(none), None, "{none}");
    }
}

#[test]
fn an_empty_id_is_no_id() {
    let hook =
        Hook::parse(br#"{"session_id":"","agent_id":"","hook_event_name":"Stop"}"#).expect("a payload");
    assert_eq!(hook.session_id, None);
    assert!(!hook.in_subagent());
}

#[test]
fn a_list_is_never_taken_for_an_object() {
    let status = StatusPayload::parse(br#"{"model":["m","M"],"context_window":[5]}"#).expect("a payload");
    assert_eq!((status.model.id, status.context_window.context_window_size), (None, None));
    let batch = br#"{"hook_event_name":"PostToolBatch","tool_calls":[["Bash","t"],{"tool_input":["/f"]}]}"#;
    let hook = Hook::parse(batch).expect("a payload");
    assert_eq!(hook.event.tool_calls().len(), 1, "{:?}", hook.event);
    assert_eq!(hook.event.tool_calls()[0].tool_input.file_path, None);
    let line = Line::parse(br#"{"message":{"content":[["text","words"],{"type":"text"}],"usage":[7]}}"#);
    let message = line.expect("a line").message;
    assert_eq!((message.blocks().len(), message.usage), (1, None));
}
