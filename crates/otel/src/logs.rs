//! The journal as log records, and with it what only `plimsoll run --json` prints. Pure.
//!
//! An agent can write the journal: a line of it is text that is clipped and cleaned, and nothing else. What no version of ours
//! writes is left out.

use crate::attributes::{Attributes, clean};
use crate::ids::bytes_of;
use crate::spans::nanos;
use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, SeverityNumber};
use plimsoll_domain::RunId;
use plimsoll_domain::journal::{EventSeverity, LogSource, StreamEntry, StreamEvent};
use plimsoll_policy::telemetry::trace::{self, TraceContext};
use serde_json::{Map, Value};

/// What wakes somebody is an error, what somebody should look at a warning.
fn severity(event: &StreamEvent) -> SeverityNumber {
    match event.severity() {
        EventSeverity::Routine | EventSeverity::Milestone => SeverityNumber::Info,
        EventSeverity::Notice | EventSeverity::Problem => SeverityNumber::Warn,
        EventSeverity::Alarm => SeverityNumber::Error,
    }
}

/// The record of an event of this run, seen at this moment; none if it is in no log, or not from here.
pub(crate) fn record(
    entry: &StreamEntry,
    from: LogSource,
    run_id: &RunId,
    trace: &TraceContext,
    seen: u64,
) -> Option<LogRecord> {
    if entry.event.log_source()? != from || entry.run_id.as_ref() != Some(run_id) {
        return None;
    }
    let severity = severity(&entry.event);
    let facts = told(entry.event.facts());
    let mut attributes = Attributes::default();
    // Where databases look for it that do not know the field of that name.
    attributes.text("event.name", &format!("plimsoll.{}", entry.event.name()));
    attributes.facts(&facts).maybe("session.id", entry.session_id.as_deref());
    if let Some(iteration) = entry.iteration {
        attributes.count("plimsoll.iteration", iteration);
    }
    verify_facts(&mut attributes, &facts);
    let span = match &entry.session_id {
        Some(session_id) => trace::session_span_id(run_id, session_id),
        None => trace::run_span_id(run_id),
    };
    let name = entry.event.name();
    Some(LogRecord {
        time_unix_nano: believed(nanos(&entry.recorded_at), seen),
        observed_time_unix_nano: seen,
        severity_number: severity.into(),
        severity_text: severity_text(severity).to_owned(),
        body: Some(AnyValue { value: Some(Any::StringValue(words(name, &facts))) }),
        attributes: attributes.list(),
        trace_id: bytes_of(&trace.trace_id),
        span_id: bytes_of(&span),
        event_name: format!("plimsoll.{name}"),
        ..LogRecord::default()
    })
}

/// Command lines stay here: what a program is given may be a key, which no single word of it shows.
fn told(mut facts: Map<String, Value>) -> Map<String, Value> {
    for name in ["program", "processes"] {
        facts.remove(name);
    }
    facts
}

fn severity_text(severity: SeverityNumber) -> &'static str {
    match severity {
        SeverityNumber::Error => "ERROR",
        SeverityNumber::Warn => "WARN",
        _ => "INFO",
    }
}

/// A line tells its own moment; one of another day or to come is not believed: databases refuse such records.
fn believed(at: u64, seen: u64) -> u64 {
    const DAY: u64 = 24 * 3_600 * 1_000_000_000;
    if at <= seen && seen - at < DAY { at } else { seen }
}

/// The event with its main fact, for those who read.
fn words(name: &str, facts: &Map<String, Value>) -> String {
    const MAIN: [&str; 12] = [
        "marker", "item", "reason", "error", "words", "trouble", "handoff", "command", "question", "what",
        "ending", "model",
    ];
    let main = MAIN.iter().find_map(|main| facts.get(*main)?.as_str());
    let name = name.replace('_', " ");
    match main.map(clean).filter(|main| !main.is_empty()) {
        Some(main) => format!("{name}: {main}"),
        None => name,
    }
}

/// Verify commands are made of parts: which failed, and how many passed.
fn verify_facts(attributes: &mut Attributes, facts: &Map<String, Value>) {
    let Some(all) = facts.get("verify").and_then(Value::as_array) else { return };
    if !all.iter().all(Value::is_object) {
        return;
    }
    let (passed, failed): (Vec<_>, Vec<_>) = all.iter().partition(|one| one["passed"] == true);
    attributes
        .count("plimsoll.verify_passed", passed.len())
        .texts("plimsoll.verify_failed", failed.iter().filter_map(|one| one["command"].as_str()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::journal::JournalLine;

    const SEEN: u64 = 1_767_780_000_000_000_000;

    fn read(line: &str, source: LogSource) -> StreamEntry {
        match source {
            LogSource::Stream => StreamEntry::from_line_bytes(line.as_bytes()).unwrap(),
            LogSource::Journal => {
                JournalLine::parse_all(line.as_bytes()).remove(0).into_entry().unwrap().into()
            }
        }
    }

    fn of(line: &str, source: LogSource) -> Option<LogRecord> {
        let run_id = RunId::from("r1");
        record(&read(line, source), source, &run_id, &TraceContext::for_run(&run_id, None), SEEN)
    }

    fn text(record: &LogRecord, key: &str) -> Option<String> {
        let found = record.attributes.iter().find(|one| one.key == key)?;
        Some(format!("{:?}", found.value.clone()?.value?))
    }

    #[test]
    fn an_event_is_read_where_it_is_told_best_and_only_of_this_run() {
        let verdict = r#"{"at":"2026-01-07T09:59:59.500Z","run_id":"r1","iteration":2,"session_id":"s","event":"verdict","marker":"RALPH_STOP|completed|done","verify":[{"command":"a","passed":true},{"command":"b","passed":false}]}"#;
        let record = of(verdict, LogSource::Journal).unwrap();
        assert_eq!(record.event_name, "plimsoll.verdict");
        assert_eq!(text(&record, "plimsoll.iteration").as_deref(), Some("IntValue(2)"));
        assert_eq!(text(&record, "plimsoll.verify_passed").as_deref(), Some("IntValue(1)"));
        assert!(text(&record, "plimsoll.verify_failed").unwrap().contains("\"b\""));
        assert_eq!(record.time_unix_nano, 1_767_779_999_500_000_000);
        assert!(format!("{:?}", record.body).contains("verdict: RALPH_STOP|completed|done"));
        assert_eq!(of(verdict, LogSource::Stream), None, "the journal tells it with its evidence");
        assert_eq!(of(&verdict.replace("r1", "r2"), LogSource::Journal), None);
        let reading = r#"{"at":"","run_id":"r1","event":"reading","percent":71}"#;
        assert!(of(reading, LogSource::Stream).is_some());
        assert_eq!(of(reading, LogSource::Journal), None, "a forged line of the stream is none");
        assert_eq!(of(r#"{"at":"","run_id":"r1","event":"invented","x":1}"#, LogSource::Journal), None);
    }

    #[test]
    fn a_moment_that_cannot_be_is_not_believed() {
        for at in ["", "2199-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2026-01-07T10:00:00.001Z"] {
            let line = format!(r#"{{"at":"{at}","run_id":"r1","event":"cancelled"}}"#);
            assert_eq!(of(&line, LogSource::Journal).unwrap().time_unix_nano, SEEN, "{at}");
        }
    }
}
