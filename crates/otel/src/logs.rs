//! Converts events to log records: those of the journal, and those that only `plimsoll run --json` prints. The module is pure.
//!
//! An agent can write the journal, so its text is redacted and truncated, and unknown events are left out.

use crate::attributes::{Attributes, redact_and_truncate_to_line};
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

/// Converts an event to a log record. Returns `None` if the event belongs to another run, is not logged at all, or is logged
/// from the other source.
pub(crate) fn log_record_if_from_source_and_run(
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
    let event_fields = without_command_lines(entry.event.fields_without_name());
    let mut attributes = Attributes::default();
    // This repeats `event_name` for databases that do not support that field of the record.
    attributes.add_text("event.name", &format!("plimsoll.{}", entry.event.name()));
    attributes
        .add_supported_event_fields(&event_fields)
        .add_text_if_not_empty("session.id", entry.session_id.as_deref());
    if let Some(iteration) = entry.iteration {
        attributes.add_count("plimsoll.iteration", iteration);
    }
    add_verify_pass_count_and_failed_commands(&mut attributes, &event_fields);
    let span_id = match &entry.session_id {
        Some(session_id) => trace::session_span_id(run_id, session_id),
        None => trace::run_span_id(run_id),
    };
    let name = entry.event.name();
    Some(LogRecord {
        time_unix_nano: event_time_or_observed_if_implausible(unix_nanos(&entry.recorded_at), observed_nanos),
        observed_time_unix_nano: observed_nanos,
        severity_number: severity.into(),
        severity_text: severity_text(severity).to_owned(),
        body: Some(AnyValue {
            value: Some(Any::StringValue(render_event_name_and_main_field(name, &event_fields))),
        }),
        attributes: attributes.to_key_values(),
        trace_id: decode_hex(&trace.trace_id),
        span_id: decode_hex(&span_id),
        event_name: format!("plimsoll.{name}"),
        ..LogRecord::default()
    })
}

/// Removes the fields with command lines, because an argument may be a key that the redaction does not recognize.
fn without_command_lines(mut event_fields: Map<String, Value>) -> Map<String, Value> {
    for name in ["program", "processes"] {
        event_fields.remove(name);
    }
    event_fields
}

fn severity_text(severity: SeverityNumber) -> &'static str {
    match severity {
        SeverityNumber::Error => "ERROR",
        SeverityNumber::Warn => "WARN",
        _ => "INFO",
    }
}

/// Returns the event's time, or the observed time if the event's time is in the future or at least a day ago, because
/// databases reject such records.
fn event_time_or_observed_if_implausible(event_nanos: u64, observed_nanos: u64) -> u64 {
    const DAY_NANOS: u64 = 24 * 3_600 * 1_000_000_000;
    if event_nanos <= observed_nanos && observed_nanos - event_nanos < DAY_NANOS {
        event_nanos
    } else {
        observed_nanos
    }
}

/// Renders the event's name, followed by its main field if it has one, as readable text.
fn render_event_name_and_main_field(event_name: &str, event_fields: &Map<String, Value>) -> String {
    const MAIN_FIELD_NAMES: [&str; 12] = [
        "marker", "item", "reason", "error", "words", "trouble", "handoff", "command", "question", "what",
        "ending", "model",
    ];
    let main_text = MAIN_FIELD_NAMES.iter().find_map(|field_name| event_fields.get(*field_name)?.as_str());
    let readable_name = event_name.replace('_', " ");
    match main_text.map(redact_and_truncate_to_line).filter(|text| !text.is_empty()) {
        Some(main_text) => format!("{readable_name}: {main_text}"),
        None => readable_name,
    }
}

/// Adds the number of passed verify commands and the list of failed ones. `add_supported_event_fields` leaves them out because
/// they are objects.
fn add_verify_pass_count_and_failed_commands(attributes: &mut Attributes, event_fields: &Map<String, Value>) {
    let Some(results) = event_fields.get("verify").and_then(Value::as_array) else { return };
    if !results.iter().all(Value::is_object) {
        return;
    }
    let (passed, failed): (Vec<_>, Vec<_>) = results.iter().partition(|result| result["passed"] == true);
    attributes.add_count("plimsoll.verify_passed", passed.len()).add_text_array_up_to_limit(
        "plimsoll.verify_failed",
        failed.iter().filter_map(|result| result["command"].as_str()),
    );
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
        log_record_if_from_source_and_run(
            &parse_entry(line, source),
            source,
            &run_id,
            &TraceContext::from_valid_traceparent_or_run_id(&run_id, None),
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
