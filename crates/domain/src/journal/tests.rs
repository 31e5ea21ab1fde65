use super::*;
use crate::breaker::BreakerCause;
use crate::level::Level;
use crate::marker::Marker;
use crate::time::Timestamp;
use crate::verdict::{ContinueKind, SessionEnding};
use serde_json::json;

fn parse_single_entry(line: &str) -> JournalEntry {
    let mut lines = JournalLine::parse_line_and_appended_entry(line.as_bytes());
    assert_eq!(lines.len(), 1, "{line}");
    lines.remove(0).into_entry().expect("an entry")
}

/// One recorded line of each event.
const RECORDED_LINES: &str = include_str!("sample.jsonl");

#[test]
fn a_line_of_each_event_is_written_back_unchanged() {
    for line in RECORDED_LINES.lines() {
        let entry = parse_single_entry(line);
        assert!(!matches!(entry.event, JournalEvent::Unknown(_)), "{line}");
        assert_eq!(entry.to_line(), line);
    }
}

#[test]
fn a_line_has_its_time_and_session_before_the_event() {
    let mut entry = JournalEntry::new(JournalEvent::ClientAdopted { pid: 7 })
        .with_run(Some((&"r1".into(), 2)))
        .with_session(Some(&"s1".into()));
    entry.recorded_at = Timestamp::from("2026-01-07T11:45:00.000Z");
    let line = r#"{"at":"2026-01-07T11:45:00.000Z","run_id":"r1","iteration":2,"session_id":"s1","event":"adopted","pid":7}"#;
    assert_eq!(entry.to_line(), line);
    assert_eq!(parse_single_entry(line), entry);
}

#[test]
fn a_verdict_is_parsed_with_its_marker_and_ending() {
    let line = json!({
        "at": "2026-01-07T11:45:00.000Z", "event": "verdict", "run_id": "r1", "iteration": 2,
        "marker": "RALPH_CONTINUE|refused|1 open item", "ending": {"ending": "failed", "detail": "exit 1"},
        "ticked": ["a"], "error": null,
    });
    let JournalEvent::Verdict(facts) = parse_single_entry(&line.to_string()).event else {
        panic!("a verdict")
    };
    let refused = Marker::Continue { kind: ContinueKind::RefusedPromise, reason: "1 open item".to_owned() };
    assert_eq!(facts.marker, refused);
    assert_eq!(facts.ending, Some(SessionEnding::Failed("exit 1".to_owned())));
    assert_eq!((facts.error, facts.ticked_items), (None, Some(vec!["a".to_owned()])));
}

#[test]
fn an_unknown_event_keeps_its_name_and_its_facts() {
    for line in [
        json!({"event": "night_shift", "lamp": "on", "nested": {"a": [1]}}),
        json!({"event": "verdict", "marker": "RALPH_STOP|some_new_status|x"}),
        json!({"event": "checkpoint", "level": "L9", "percent": 3}),
        json!({"event": "breaker_opened", "cause": 7}),
        json!({"event": "session_start", "source": "teleport"}),
    ] {
        let entry = parse_single_entry(&line.to_string());
        assert!(matches!(entry.event, JournalEvent::Unknown(_)), "{entry:?}");
        assert_eq!(entry.event.name(), line["event"]);
        let mut facts = line.as_object().unwrap().clone();
        facts.remove("event");
        assert_eq!(entry.event.fields_without_name(), facts);
    }
}

#[test]
fn a_foreign_line_is_kept_and_an_entry_after_a_torn_one_is_parsed() {
    for line in ["[1]", "{\"at\":5}", "{}", "hello", "{\"event\": 3}", "{\"at\":\"2026"] {
        assert_eq!(
            JournalLine::parse_line_and_appended_entry(line.as_bytes()),
            [JournalLine::Foreign(line.to_owned())]
        );
    }
    assert_eq!(JournalLine::parse_line_and_appended_entry(b" \t"), []);
    let torn_line = "{\"at\":\"2026-01-06T21{\"at\":\"2026-01-06T21:04:11.000Z\",\"event\":\"cancelled\"}";
    let lines = JournalLine::parse_line_and_appended_entry(torn_line.as_bytes());
    assert_eq!(lines[0], JournalLine::Foreign("{\"at\":\"2026-01-06T21".to_owned()));
    assert!(
        matches!(&lines[1], JournalLine::Entry(entry) if entry.event == JournalEvent::Cancelled),
        "{lines:?}"
    );
}

#[test]
fn the_name_of_an_event_equals_its_serialized_name() {
    let opened = BreakerOpened { cause: BreakerCause::NoProgress, failure_count: 3, evidence: String::new() };
    let stream_event = StreamEvent::ToolsDenied { tools: Vec::new(), command: None };
    assert_eq!(serde_json::to_value(&stream_event).unwrap()["event"], stream_event.name());
    for event in [
        JournalEvent::NoRoomForStep(NextStepSizeEstimate::default()),
        JournalEvent::BreakerOpened(opened),
        JournalEvent::Warning(LevelReached { level: Level::L1, ..LevelReached::default() }),
        JournalEvent::Cancelled,
        JournalEvent::ClientStarted { pid: None, model: None },
    ] {
        let written = serde_json::to_value(&event).unwrap();
        assert_eq!(written["event"], event.name());
        let in_stream = StreamEvent::from(event);
        assert_eq!((serde_json::to_value(&in_stream).unwrap()), written);
        assert_eq!(written["event"], in_stream.name());
    }
}

#[test]
fn an_entry_matches_a_line_of_its_event_run_iteration_and_session() {
    let entry = JournalEntry::new(JournalEvent::Cancelled)
        .with_run(Some((&"r1".into(), 2)))
        .with_session(Some(&"s1".into()));
    assert!(entry.has_same_event_name_and_origin(&entry.to_line()));
    assert!(
        entry.has_same_event_name_and_origin(&format!("{{\"at\":\"2026-01-06T21{}", entry.to_line())),
        "behind a torn one"
    );
    for other in [
        entry.clone().with_run(Some((&"r2".into(), 2))),
        entry.clone().with_run(Some((&"r1".into(), 3))),
        entry.clone().with_session(None),
        JournalEntry { event: JournalEvent::ClientAdopted { pid: 7 }, ..entry.clone() },
    ] {
        assert!(!entry.has_same_event_name_and_origin(&other.to_line()), "{other:?}");
    }
    assert!(!entry.has_same_event_name_and_origin("") && !entry.has_same_event_name_and_origin("cancelled"));
}

#[test]
fn a_stream_line_is_written_back_and_is_unknown_to_the_journal() {
    for line in [
        r#"{"at":"","run_id":"r1","iteration":2,"session_id":"s1","event":"reading","percent":71,"percent_used":70,"level":"L1"}"#,
        r#"{"at":"","run_id":"r1","iteration":2,"event":"pause","until":"2026-01-07T11:45:00Z","seconds":3,"reason":"limit"}"#,
        r#"{"at":"","run_id":"r1","iteration":2,"event":"pause_over"}"#,
        r#"{"at":"","run_id":"r1","iteration":2,"event":"run_ended","exit_code":4}"#,
    ] {
        let entry = StreamEntry::from_line_bytes(line.as_bytes()).unwrap();
        assert!(!matches!(entry.event, StreamEvent::Journal(_)), "{entry:?}");
        assert_eq!(entry.to_line(), line);
        let journal_entry = parse_single_entry(line);
        assert!(matches!(journal_entry.event, JournalEvent::Unknown(_)), "{journal_entry:?}");
        assert_eq!(
            (journal_entry.to_line(), journal_entry.event.fields_without_name()),
            (line.to_owned(), entry.event.fields_without_name())
        );
    }
    let shared_line = r#"{"at":"","run_id":"r1","iteration":0,"event":"landed","items":["a"],"commit":"c"}"#;
    assert_eq!(
        StreamEntry::from_line_bytes(shared_line.as_bytes()),
        Some(parse_single_entry(shared_line).into())
    );
    assert_eq!(StreamEntry::from_line_bytes(b"{\"event\":3}"), None);
}
