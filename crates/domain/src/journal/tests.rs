use super::*;
use crate::breaker::BreakerCause;
use crate::level::Level;
use crate::marker::Marker;
use crate::time::Timestamp;
use crate::verdict::{ContinueKind, Ending};
use serde_json::json;

fn read(line: &str) -> JournalEntry {
    let mut lines = Line::read(line.as_bytes());
    assert_eq!(lines.len(), 1, "{line}");
    lines.remove(0).into_entry().expect("an entry")
}

/// One line of each event, recorded.
const SAMPLE: &str = include_str!("sample.jsonl");

#[test]
fn a_line_of_each_event_is_written_as_it_was_read() {
    for line in SAMPLE.lines() {
        let entry = read(line);
        assert!(!matches!(entry.event, JournalEvent::Unknown(_)), "{line}");
        assert_eq!(entry.to_line(), line);
    }
}

#[test]
fn a_line_begins_with_its_time_and_says_whose_it_is_before_what_happened() {
    let mut entry = JournalEntry::new(JournalEvent::Adopted { pid: 7 })
        .run(Some((&"r1".into(), 2)))
        .session(Some(&"s1".into()));
    entry.at = Timestamp::from("2026-01-07T11:45:00.000Z");
    let line = r#"{"at":"2026-01-07T11:45:00.000Z","run_id":"r1","iteration":2,"session_id":"s1","event":"adopted","pid":7}"#;
    assert_eq!(entry.to_line(), line);
    assert_eq!(read(line), entry);
}

#[test]
fn a_verdict_is_read_as_what_it_was() {
    let line = json!({
        "at": "2026-01-07T11:45:00.000Z", "event": "verdict", "run_id": "r1", "iteration": 2,
        "marker": "RALPH_CONTINUE|refused|1 open item", "ending": {"ending": "failed", "detail": "exit 1"},
        "ticked": ["a"], "error": null,
    });
    let JournalEvent::Verdict(reached) = read(&line.to_string()).event else { panic!("a verdict") };
    let refused = Marker::Continue { kind: ContinueKind::Refused, reason: "1 open item".to_owned() };
    assert_eq!(reached.marker, refused);
    assert_eq!(reached.ending, Some(Ending::Failed("exit 1".to_owned())));
    assert_eq!((reached.error, reached.ticked), (None, Some(vec!["a".to_owned()])));
}

#[test]
fn what_another_version_or_an_agent_wrote_keeps_its_name_and_its_facts() {
    for line in [
        json!({"event": "night_shift", "lamp": "on", "nested": {"a": [1]}}),
        json!({"event": "verdict", "marker": "RALPH_STOP|some_new_status|x"}),
        json!({"event": "checkpoint", "level": "L9", "percent": 3}),
        json!({"event": "breaker_opened", "cause": 7}),
        json!({"event": "session_start", "source": "teleport"}),
    ] {
        let entry = read(&line.to_string());
        assert!(matches!(entry.event, JournalEvent::Unknown(_)), "{entry:?}");
        assert_eq!(entry.event.name(), line["event"]);
        let mut facts = line.as_object().unwrap().clone();
        facts.remove("event");
        assert_eq!(entry.event.facts(), facts);
    }
}

#[test]
fn what_is_no_entry_is_told_as_it_stands_and_what_follows_a_torn_one_is_not_lost() {
    for line in ["[1]", "{\"at\":5}", "{}", "hello", "{\"event\": 3}", "{\"at\":\"2026"] {
        assert_eq!(Line::read(line.as_bytes()), [Line::Foreign(line.to_owned())]);
    }
    assert_eq!(Line::read(b" \t"), []);
    let torn = "{\"at\":\"2026-01-06T21{\"at\":\"2026-01-06T21:04:11.000Z\",\"event\":\"cancelled\"}";
    let lines = Line::read(torn.as_bytes());
    assert_eq!(lines[0], Line::Foreign("{\"at\":\"2026-01-06T21".to_owned()));
    assert!(matches!(&lines[1], Line::Entry(entry) if entry.event == JournalEvent::Cancelled), "{lines:?}");
}

#[test]
fn the_name_of_an_event_is_the_one_that_is_written() {
    let opened = BreakerOpened { cause: BreakerCause::NoProgress, count: 3, evidence: String::new() };
    let of_stream = StreamEvent::ToolsDenied { tools: Vec::new(), command: None };
    assert_eq!(serde_json::to_value(&of_stream).unwrap()["event"], of_stream.name());
    for event in [
        JournalEvent::NoRoomForStep(Room::default()),
        JournalEvent::BreakerOpened(opened),
        JournalEvent::Warning(LevelReached { level: Level::L1, ..LevelReached::default() }),
        JournalEvent::Cancelled,
        JournalEvent::Spawned { pid: None, model: None },
    ] {
        let written = serde_json::to_value(&event).unwrap();
        assert_eq!(written["event"], event.name());
        let in_stream = StreamEvent::from(event);
        assert_eq!((serde_json::to_value(&in_stream).unwrap()), written);
        assert_eq!(written["event"], in_stream.name());
    }
}

#[test]
fn an_entry_is_told_by_a_line_of_its_event_run_iteration_and_session() {
    let told =
        JournalEntry::new(JournalEvent::Cancelled).run(Some((&"r1".into(), 2))).session(Some(&"s1".into()));
    assert!(told.is_told_by(&told.to_line()));
    assert!(told.is_told_by(&format!("{{\"at\":\"2026-01-06T21{}", told.to_line())), "behind a torn one");
    for other in [
        told.clone().run(Some((&"r2".into(), 2))),
        told.clone().run(Some((&"r1".into(), 3))),
        told.clone().session(None),
        JournalEntry { event: JournalEvent::Adopted { pid: 7 }, ..told.clone() },
    ] {
        assert!(!told.is_told_by(&other.to_line()), "{other:?}");
    }
    assert!(!told.is_told_by("") && !told.is_told_by("cancelled"));
}

#[test]
fn a_line_of_the_stream_is_read_as_it_was_written_and_is_no_event_of_the_journal() {
    for line in [
        r#"{"at":"","run_id":"r1","iteration":2,"session_id":"s1","event":"reading","percent":71,"percent_used":70,"level":"L1"}"#,
        r#"{"at":"","run_id":"r1","iteration":2,"event":"pause","until":"2026-01-07T11:45:00Z","seconds":3,"reason":"limit"}"#,
        r#"{"at":"","run_id":"r1","iteration":2,"event":"pause_over"}"#,
        r#"{"at":"","run_id":"r1","iteration":2,"event":"run_ended","exit_code":4}"#,
    ] {
        let told = StreamEntry::read(line.as_bytes()).unwrap();
        assert!(!matches!(told.event, StreamEvent::Journal(_)), "{told:?}");
        assert_eq!(told.to_line(), line);
        let in_file = read(line);
        assert!(matches!(in_file.event, JournalEvent::Unknown(_)), "{in_file:?}");
        assert_eq!((in_file.to_line(), in_file.event.facts()), (line.to_owned(), told.event.facts()));
    }
    let of_both = r#"{"at":"","run_id":"r1","iteration":0,"event":"landed","items":["a"],"commit":"c"}"#;
    assert_eq!(StreamEntry::read(of_both.as_bytes()), Some(read(of_both).into()));
    assert_eq!(StreamEntry::read(b"{\"event\":3}"), None);
}
