//! Converts events to log records: those of the journal, and those that only `plimsoll run --json` prints. The module is pure.
//!
//! An agent can write the journal, so its text is redacted and clipped, and unknown events are left out.

use crate::attributes::{Attributes, redact_and_clip};
use crate::ids::decode_hex;
use crate::spans::unix_nanos;
use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, SeverityNumber};
use plimsoll_domain::RunId;
use plimsoll_domain::journal::{EventSeverity, LogSource, StreamEntry, StreamEvent};
use plimsoll_policy::telemetry::trace::{self, TraceContext};
use serde_json::{Map, Value};

/// Returns the severity of an event: an error for one that needs immediate attention, a warning for one that should be
/// looked at.
fn severity_of_event(event: &StreamEvent) -> SeverityNumber {
    match event.severity() {
        EventSeverity::Routine | EventSeverity::Milestone => SeverityNumber::Info,
        EventSeverity::Notice | EventSeverity::Problem => SeverityNumber::Warn,
        EventSeverity::Alarm => SeverityNumber::Error,
    }
}

/// Converts an event to a log record. Returns `None` if the event belongs to another run, is not logged, or is logged from
/// the other source.
pub(crate) fn log_record_of_event(
    entry: &StreamEntry,
    source: LogSource,
    run_id: &RunId,
    trace: &TraceContext,
    observed_nanos: u64,
) -> Option<LogRecord> {
    if entry.event.log_source()? != source || entry.run_id.as_ref() != Some(run_id) {
        return None;
    }
    let severity = severity_of_event(&entry.event);
    let facts = without_command_lines(entry.event.facts());
    let mut attributes = Attributes::default();
    // For databases that do not support the record's field of this name.
    attributes.add_text("event.name", &format!("plimsoll.{}", entry.event.name()));
    attributes.add_event_facts(&facts).add_text_if_not_empty("session.id", entry.session_id.as_deref());
    if let Some(iteration) = entry.iteration {
        attributes.add_count("plimsoll.iteration", iteration);
    }
    add_verify_attributes(&mut attributes, &facts);
    let span_id = match &entry.session_id {
        Some(session_id) => trace::session_span_id(run_id, session_id),
        None => trace::run_span_id(run_id),
    };
    let name = entry.event.name();
    Some(LogRecord {
        time_unix_nano: plausible_event_time(unix_nanos(&entry.recorded_at), observed_nanos),
        observed_time_unix_nano: observed_nanos,
        severity_number: severity.into(),
        severity_text: severity_text(severity).to_owned(),
        body: Some(AnyValue { value: Some(Any::StringValue(render_body(name, &facts))) }),
        attributes: attributes.to_key_values(),
        trace_id: decode_hex(&trace.trace_id),
        span_id: decode_hex(&span_id),
        event_name: format!("plimsoll.{name}"),
        ..LogRecord::default()
    })
}

/// Removes command lines, because an argument of a program may be a key that cannot be recognized as one.
fn without_command_lines(mut facts: Map<String, Value>) -> Map<String, Value> {
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

/// Returns the event's own time, or the observed time if the former is in the future or a day or more ago: databases
/// reject such records.
fn plausible_event_time(event_nanos: u64, observed_nanos: u64) -> u64 {
    const DAY_NANOS: u64 = 24 * 3_600 * 1_000_000_000;
    if event_nanos <= observed_nanos && observed_nanos - event_nanos < DAY_NANOS {
        event_nanos
    } else {
        observed_nanos
    }
}

/// Renders the event's name with its main fact as readable text.
fn render_body(event_name: &str, facts: &Map<String, Value>) -> String {
    const MAIN_FACT_NAMES: [&str; 12] = [
        "marker", "item", "reason", "error", "words", "trouble", "handoff", "command", "question", "what",
        "ending", "model",
    ];
    let main_fact = MAIN_FACT_NAMES.iter().find_map(|fact_name| facts.get(*fact_name)?.as_str());
    let readable_name = event_name.replace('_', " ");
    match main_fact.map(redact_and_clip).filter(|text| !text.is_empty()) {
        Some(main_fact) => format!("{readable_name}: {main_fact}"),
        None => readable_name,
    }
}

/// Adds the number of passed verify commands and the list of failed ones, which the generic facts leave out.
fn add_verify_attributes(attributes: &mut Attributes, facts: &Map<String, Value>) {
    let Some(results) = facts.get("verify").and_then(Value::as_array) else { return };
    if !results.iter().all(Value::is_object) {
        return;
    }
    let (passed, failed): (Vec<_>, Vec<_>) = results.iter().partition(|result| result["passed"] == true);
    attributes
        .add_count("plimsoll.verify_passed", passed.len())
        .add_texts("plimsoll.verify_failed", failed.iter().filter_map(|result| result["command"].as_str()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::journal::JournalLine;

    const OBSERVED_NANOS: u64 = 1_767_780_000_000_000_000;

    fn parse_entry(line: &str, source: LogSource) -> StreamEntry {
        match source {
            LogSource::Stream => StreamEntry::from_line_bytes(line.as_bytes()).unwrap(),
            LogSource::Journal => JournalLine::parse_line_and_appended_entry(line.as_bytes())
                .remove(0)
                .into_entry()
                .unwrap()
                .into(),
        }
    }

    fn log_record_of_line(line: &str, source: LogSource) -> Option<LogRecord> {
        let run_id = RunId::from("r1");
        log_record_of_event(
            &parse_entry(line, source),
            source,
            &run_id,
            &TraceContext::for_run(&run_id, None),
            OBSERVED_NANOS,
        )
    }

    fn attribute_text(record: &LogRecord, key: &str) -> Option<String> {
        let attribute = record.attributes.iter().find(|attribute| attribute.key == key)?;
        Some(format!("{:?}", attribute.value.clone()?.value?))
    }

    #[test]
    fn each_event_is_logged_from_one_source_and_only_for_this_run() {
        let verdict = r#"{"at":"2026-01-07T09:59:59.500Z","run_id":"r1","iteration":2,"session_id":"s","event":"verdict","marker":"RALPH_STOP|completed|done","verify":[{"command":"a","passed":true},{"command":"b","passed":false}]}"#;
        let record = log_record_of_line(verdict, LogSource::Journal).unwrap();
        assert_eq!(record.event_name, "plimsoll.verdict");
        assert_eq!(attribute_text(&record, "plimsoll.iteration").as_deref(), Some("IntValue(2)"));
        assert_eq!(attribute_text(&record, "plimsoll.verify_passed").as_deref(), Some("IntValue(1)"));
        assert!(attribute_text(&record, "plimsoll.verify_failed").unwrap().contains("\"b\""));
        assert_eq!(record.time_unix_nano, 1_767_779_999_500_000_000);
        assert!(format!("{:?}", record.body).contains("verdict: RALPH_STOP|completed|done"));
        assert_eq!(
            log_record_of_line(verdict, LogSource::Stream),
            None,
            "the journal tells it with its evidence"
        );
        assert_eq!(log_record_of_line(&verdict.replace("r1", "r2"), LogSource::Journal), None);
        let reading = r#"{"at":"","run_id":"r1","event":"reading","percent":71}"#;
        assert!(log_record_of_line(reading, LogSource::Stream).is_some());
        assert_eq!(
            log_record_of_line(reading, LogSource::Journal),
            None,
            "a forged line of the stream is none"
        );
        assert_eq!(
            log_record_of_line(r#"{"at":"","run_id":"r1","event":"invented","x":1}"#, LogSource::Journal),
            None
        );
    }

    #[test]
    fn implausible_event_time_is_replaced_by_the_observed_time() {
        for at in ["", "2199-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2026-01-07T10:00:00.001Z"] {
            let line = format!(r#"{{"at":"{at}","run_id":"r1","event":"cancelled"}}"#);
            assert_eq!(
                log_record_of_line(&line, LogSource::Journal).unwrap().time_unix_nano,
                OBSERVED_NANOS,
                "{at}"
            );
        }
    }
}
