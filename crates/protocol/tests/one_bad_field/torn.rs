//! Texts cut inside a character, truncated documents, and input that no client would send.

use crate::recorded::recordings;
use cpu_time::ThreadTime;
use plimsoll_protocol::result::ClientResult;
use plimsoll_protocol::status::StatusPayload;
use plimsoll_protocol::stream::StreamLine;
use plimsoll_protocol::transcript::TranscriptEntry;
use plimsoll_protocol::{HookEvent, HookPayload};
use std::time::Duration;

/// Processor time. A tenth of a second is usual; a parser that backtracks repeatedly needs minutes.
const MAX_CPU_TIME: Duration = Duration::from_secs(10);

fn prompt_of_payload(bytes: &[u8]) -> Option<String> {
    let hook = HookPayload::parse(bytes).expect("a payload");
    assert_eq!(hook.session_id.as_deref(), Some("s"), "the good field is lost");
    match hook.event {
        HookEvent::UserPromptSubmit { prompt } => prompt,
        _ => None,
    }
}

fn prompt_payload(prompt: &[u8]) -> Vec<u8> {
    let head = br#"{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"#;
    [head.as_slice(), prompt, b"}"].concat()
}

#[test]
fn half_an_emoji_is_replaced_and_the_rest_of_the_text_is_kept() {
    for half in [r#""cut \ud83d""#, r#""cut \ude00""#, r#""cut \ud83d\ud83d""#, r#""cut \ud83dx""#] {
        let text = prompt_of_payload(&prompt_payload(half.as_bytes())).expect("the text");
        assert!(text.starts_with("cut \u{fffd}"), "{text:?}");
    }
    assert_eq!(
        prompt_of_payload(&prompt_payload(br#""whole \ud83d\ude00""#)).as_deref(),
        Some("whole \u{1f600}")
    );
}

#[test]
fn the_last_of_duplicate_keys_counts_and_no_other_field_is_lost() {
    for twice in ["session_id", "prompt", "hook_event_name"] {
        let bytes = format!(
            r#"{{"{twice}":"first","session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"p"}}"#
        );
        assert_eq!(prompt_of_payload(bytes.as_bytes()).as_deref(), Some("p"), "{twice}");
    }
    let line = br#"{"type":"assistant","message":{"id":"m","usage":{"input_tokens":1,"input_tokens":2},"model":"a"}}"#;
    let usage = TranscriptEntry::parse_usage_only(line).and_then(|line| line.message.usage).expect("usage");
    assert_eq!(usage.total_input_tokens(), 2);
}

#[test]
fn half_an_emoji_is_accepted_in_an_unknown_field() {
    let bytes =
        br#"{"session_id":"s","new":{"deep":["\ud83d"]},"hook_event_name":"UserPromptSubmit","prompt":"p"}"#;
    assert_eq!(prompt_of_payload(bytes).as_deref(), Some("p"));
}

#[test]
fn half_an_emoji_is_accepted_in_tool_calls_errors_and_transcripts() {
    let batch = br#"{"hook_event_name":"PostToolBatch","tool_calls":[{"tool_name":"Bash","tool_use_id":"t",
        "tool_input":{"command":"echo \ud83d","content":"ok"},"tool_response":"\ud83d!"}]}"#;
    let hook = HookPayload::parse(batch).expect("a payload");
    let call = &hook.event.tool_calls()[0];
    assert_eq!(call.tool_use_id.as_deref(), Some("t"));
    assert_eq!(call.tool_input.content.as_deref(), Some("ok"));
    assert!(call.tool_input.command.as_deref().is_some_and(|command| command.starts_with("echo ")));
    assert!(call.visible_size().text_bytes > 1);

    let result =
        ClientResult::parse(br#"{"errors":["cut \ud83d","whole"],"api_error_status":2}"#).expect("a result");
    assert_eq!((result.errors.len(), result.api_error_status), (2, Some(2)));

    let line = br#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"\ud83d"},{"type":"text","text":"b"}]}}"#;
    let texts: Vec<_> = TranscriptEntry::parse(line)
        .expect("a line")
        .message
        .blocks()
        .iter()
        .map(|block| block.text.clone())
        .collect();
    assert_eq!(texts.len(), 2);
    assert!(texts.iter().all(Option::is_some));
}

#[test]
fn invalid_utf8_is_replaced() {
    assert_eq!(prompt_of_payload(&prompt_payload(b"\"a\xff\xfeb\"")).as_deref(), Some("a\u{fffd}\u{fffd}b"));
    assert_eq!(prompt_of_payload(&prompt_payload(b"\"cut \xf0\x9f\x98\"")).as_deref(), Some("cut \u{fffd}"));
}

#[test]
fn a_byte_order_mark_and_surrounding_white_space_are_ignored() {
    for (before, after) in [("\u{feff}", ""), ("\n \t", "\r\n\n"), ("\u{feff}\n", "\n")] {
        let bytes = [before.as_bytes(), &prompt_payload(b"\"p\""), after.as_bytes()].concat();
        assert_eq!(prompt_of_payload(&bytes).as_deref(), Some("p"), "{before:?}");
    }
}

#[test]
fn anything_but_one_object_is_rejected() {
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
        assert!(HookPayload::parse(text.as_bytes()).is_err(), "hook: {text}");
        assert!(StatusPayload::parse(text.as_bytes()).is_err(), "status: {text}");
        assert!(ClientResult::parse(text.as_bytes()).is_err(), "result: {text}");
        assert!(TranscriptEntry::parse(text.as_bytes()).is_none(), "line: {text}");
        assert!(matches!(StreamLine::parse(text.as_bytes()), StreamLine::Other), "stream: {text}");
    }
    assert!(HookPayload::parse(b"{}").is_ok(), "an empty object is one object");
}

#[test]
fn a_document_truncated_at_any_byte_is_rejected() {
    for recording in recordings("hooks").iter().chain(&recordings("statusline")).chain(&recordings("result"))
    {
        let whole = recording.bytes.trim_ascii_end();
        for end in 0..whole.len() {
            assert!(HookPayload::parse(&whole[..end]).is_err(), "{} cut at {end}", recording.name);
            assert!(StatusPayload::parse(&whole[..end]).is_err(), "{} cut at {end}", recording.name);
            assert!(ClientResult::parse(&whole[..end]).is_err(), "{} cut at {end}", recording.name);
            assert!(matches!(StreamLine::parse(&whole[..end]), StreamLine::Other));
        }
    }
}

#[test]
fn a_transcript_line_truncated_at_any_byte_is_rejected() {
    let plain = recordings("transcripts").into_iter().find(|one| one.name == "plain").expect("the recording");
    for line in plain.lines().filter(|line| line.len() < 3000) {
        assert!((0..line.len()).all(|end| TranscriptEntry::parse(&line[..end]).is_none()));
    }
}

#[test]
fn ten_megabytes_are_parsed_and_measured_without_backtracking() {
    let text = "line of a file\\n\\\"quoted\\\"\\u00e9".repeat(170_000);
    let batch = format!(
        r#"{{"session_id":"s","tool_calls":[{{"tool_name":"Read","tool_input":{{"content":"{text}"}},"tool_response":[{{"type":"text","text":"{text}"}}]}}],"hook_event_name":"PostToolBatch"}}"#
    );
    assert!(batch.len() > 10_000_000);
    let begun = ThreadTime::now();
    let hook = HookPayload::parse(batch.as_bytes()).expect("a payload");
    let seen = hook.event.tool_calls()[0].visible_size();
    assert!(begun.elapsed() < MAX_CPU_TIME, "{:?}", begun.elapsed());
    assert_eq!(hook.session_id.as_deref(), Some("s"));
    assert!(seen.text_bytes > 4_000_000);
}

#[test]
fn deep_nesting_neither_crashes_nor_loses_the_other_fields() {
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
                let hook = HookPayload::parse(text.as_bytes()).expect("a payload");
                assert_eq!(hook.session_id.as_deref(), Some("s"), "{field} {depth}");
                let begun = ThreadTime::now();
                hook.event.tool_calls()[0].visible_size();
                assert!(begun.elapsed() < MAX_CPU_TIME, "{field} {depth}: {:?}", begun.elapsed());
            }
            let line =
                format!(r#"{{"type":"assistant","message":{{"id":"m","content":{nest},"usage":{nest}}}}}"#);
            let line = TranscriptEntry::parse(line.as_bytes()).expect("a line");
            assert_eq!(line.message.id.as_deref(), Some("m"));
            line.message.blocks().iter().for_each(|block| drop(block.result_text()));
        }
        assert!(HookPayload::parse("[".repeat(depth).as_bytes()).is_err());
        assert!(HookPayload::parse(r#"{"a":"#.repeat(depth).as_bytes()).is_err());
    }
}

#[test]
fn counts_are_whole_and_never_negative() {
    let tokens = |value: &str| {
        let text = format!(r#"{{"api_error_status":{value}}}"#);
        ClientResult::parse(text.as_bytes()).expect("a result").api_error_status
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
fn an_empty_id_counts_as_missing() {
    let hook = HookPayload::parse(br#"{"session_id":"","agent_id":"","hook_event_name":"Stop"}"#)
        .expect("a payload");
    assert_eq!(hook.session_id, None);
    assert!(!hook.is_in_subagent());
}

#[test]
fn a_list_is_never_read_as_an_object() {
    let status = StatusPayload::parse(br#"{"model":["m","M"],"context_window":[5]}"#).expect("a payload");
    assert_eq!((status.model.id, status.context_window.context_window_size), (None, None));
    let batch = br#"{"hook_event_name":"PostToolBatch","tool_calls":[["Bash","t"],{"tool_input":["/f"]}]}"#;
    let hook = HookPayload::parse(batch).expect("a payload");
    assert_eq!(hook.event.tool_calls().len(), 1, "{:?}", hook.event);
    assert_eq!(hook.event.tool_calls()[0].tool_input.file_path, None);
    let line =
        TranscriptEntry::parse(br#"{"message":{"content":[["text","words"],{"type":"text"}],"usage":[7]}}"#);
    let message = line.expect("a line").message;
    assert_eq!((message.blocks().len(), message.usage), (1, None));
}
