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
use plimsoll_domain::journal::{JournalEvent, StreamEntry, StreamEvent};
use plimsoll_policy::telemetry::trace::{self, Trace};
use serde_json::{Map, Value};

/// Where an event is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// What `plimsoll run` tells.
    Stream,
    /// The file.
    Journal,
}

/// Where each event is read for the logs; none for those that are not in them. What both tell is read once.
#[rustfmt::skip]
fn source(event: &StreamEvent) -> Option<Source> {
    use JournalEvent as E;
    use StreamEvent as S;
    match event {
        S::Client { .. } | S::StopRequested | S::Reading(_) | S::Pause { .. } | S::PauseOver | S::Compacted
        | S::Retry { .. } | S::ToolsDenied { .. } | S::RunEnded(_) => Some(Source::Stream),
        // The client exports its tools itself.
        S::Tool { .. } => None,
        S::Journal(event) => match event {
            // With cost, tokens and what it ticked.
            E::IterationClosed(_) | E::SessionEnd(_) => Some(Source::Stream),
            E::RunStarted(_) | E::Resumed(_) | E::Note { .. } => Some(Source::Stream),
            E::Planned(_) | E::Spawned { .. } | E::Adopted { .. } | E::SessionStart { .. } | E::Checkpoint(_)
            | E::NotPacked(_) | E::Packed(_) | E::NoRoomForStep(_) | E::ProvisionalVerdict { .. } | E::Verdict(_)
            | E::Reviewed(_) | E::Verified(_) | E::WipCommit(_) | E::Cancelled | E::Notified { .. }
            | E::WorkerBegan(_) | E::WorkerEnded(_) | E::Landed(_) | E::LinearDelivered(_) | E::Warning(_)
            | E::Ended(_) | E::CutOffByClient { .. } | E::SetAside { .. } | E::Parked { .. } | E::TicksTakenBack(_)
            | E::ClientEnded { .. } | E::Unguarded { .. } | E::LeftBehind { .. } | E::Fault { .. }
            | E::PromptMended { .. } | E::TodoMended { .. } | E::StateMended { .. } | E::SentBack(_)
            | E::LinearFailed { .. } | E::BreakerOpened(_) => Some(Source::Journal),
            // What could not be exported cannot be exported either.
            E::TelemetryLost { .. } | E::Unknown(_) => None,
        },
    }
}

/// What wakes somebody is an error, what somebody should look at a warning.
fn severity(event: &StreamEvent) -> SeverityNumber {
    use JournalEvent as E;
    use StreamEvent as S;
    let is_error = matches!(event, S::Journal(E::BreakerOpened(_)))
        || matches!(event, S::RunEnded(ended) if matches!(ended.exit_code, 1 | 4 | 5));
    let is_warning = matches!(
        event,
        S::Compacted
            | S::Retry { .. }
            | S::ToolsDenied { .. }
            | S::Journal(
                E::Warning(_)
                    | E::Ended(_)
                    | E::CutOffByClient { .. }
                    | E::SetAside { .. }
                    | E::Parked { .. }
                    | E::TicksTakenBack(_)
                    | E::ClientEnded { .. }
                    | E::Unguarded { .. }
                    | E::LeftBehind { .. }
                    | E::Fault { .. }
                    | E::PromptMended { .. }
                    | E::TodoMended { .. }
                    | E::StateMended { .. }
                    | E::SentBack(_)
                    | E::LinearFailed { .. }
            )
    );
    match (is_error, is_warning) {
        (true, _) => SeverityNumber::Error,
        (false, true) => SeverityNumber::Warn,
        (false, false) => SeverityNumber::Info,
    }
}

/// The record of an event of this run, seen at this moment; none if it is in no log, or not from here.
pub(crate) fn record(
    entry: &StreamEntry,
    from: Source,
    run_id: &RunId,
    trace: &Trace,
    seen: u64,
) -> Option<LogRecord> {
    if source(&entry.event)? != from || entry.run_id.as_ref() != Some(run_id) {
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
        Some(session_id) => trace::session(run_id, session_id),
        None => trace::run(run_id),
    };
    let name = entry.event.name();
    Some(LogRecord {
        time_unix_nano: believed(nanos(&entry.at), seen),
        observed_time_unix_nano: seen,
        severity_number: severity.into(),
        severity_text: severity_text(severity).to_owned(),
        body: Some(AnyValue { value: Some(Any::StringValue(words(name, &facts))) }),
        attributes: attributes.list(),
        trace_id: bytes_of(&trace.id),
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
    use plimsoll_domain::journal::Line;
    const SEEN: u64 = 1_767_780_000_000_000_000;

    fn read(line: &str, source: Source) -> StreamEntry {
        match source {
            Source::Stream => StreamEntry::read(line.as_bytes()).unwrap(),
            Source::Journal => Line::read(line.as_bytes()).remove(0).into_entry().unwrap().into(),
        }
    }

    fn of(line: &str, source: Source) -> Option<LogRecord> {
        let run_id = RunId::from("r1");
        record(&read(line, source), source, &run_id, &Trace::of(&run_id, None), SEEN)
    }

    fn text(record: &LogRecord, key: &str) -> Option<String> {
        let found = record.attributes.iter().find(|one| one.key == key)?;
        Some(format!("{:?}", found.value.clone()?.value?))
    }

    #[test]
    fn an_event_is_read_where_it_is_told_best_and_only_of_this_run() {
        let verdict = r#"{"at":"2026-01-07T09:59:59.500Z","run_id":"r1","iteration":2,"session_id":"s","event":"verdict","marker":"RALPH_STOP|completed|done","verify":[{"command":"a","passed":true},{"command":"b","passed":false}]}"#;
        let record = of(verdict, Source::Journal).unwrap();
        assert_eq!(record.event_name, "plimsoll.verdict");
        assert_eq!(text(&record, "plimsoll.iteration").as_deref(), Some("IntValue(2)"));
        assert_eq!(text(&record, "plimsoll.verify_passed").as_deref(), Some("IntValue(1)"));
        assert!(text(&record, "plimsoll.verify_failed").unwrap().contains("\"b\""));
        assert_eq!(record.time_unix_nano, 1_767_779_999_500_000_000);
        assert!(format!("{:?}", record.body).contains("verdict: RALPH_STOP|completed|done"));
        assert_eq!(of(verdict, Source::Stream), None, "the journal tells it with its evidence");
        assert_eq!(of(&verdict.replace("r1", "r2"), Source::Journal), None);
        let reading = r#"{"at":"","run_id":"r1","event":"reading","percent":71}"#;
        assert!(of(reading, Source::Stream).is_some());
        assert_eq!(of(reading, Source::Journal), None, "a forged line of the stream is none");
        assert_eq!(of(r#"{"at":"","run_id":"r1","event":"invented","x":1}"#, Source::Journal), None);
    }

    #[test]
    fn a_moment_that_cannot_be_is_not_believed() {
        for at in ["", "2199-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2026-01-07T10:00:00.001Z"] {
            let line = format!(r#"{{"at":"{at}","run_id":"r1","event":"cancelled"}}"#);
            assert_eq!(of(&line, Source::Journal).unwrap().time_unix_nano, SEEN, "{at}");
        }
    }
}
