//! Usage of a session for which the client reported no cost, combined from all sources that have part of it.

use crate::session_result::SessionResult;
use crate::turns::capture::TranscriptSource;
use crate::turns::{self, LoggedRecord, RecordBody};
use plimsoll_domain::cost::Cost;
use plimsoll_domain::log_line::{RecordKind, TokenUsage};
use plimsoll_domain::{SessionId, SessionRecord};
use plimsoll_policy::session_usage::SessionUsage;
use plimsoll_protocol::billing::{BilledUsage, ReportedUsage};
use plimsoll_store::turn_log::{ForwardLines, LineStart};
use plimsoll_store::{Project, TurnLog, config, disk};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Adds the estimated cost and tokens to the result of a session that ended without a cost report. A reported
/// cost is kept. A file that cannot be read is ignored, because missing usage is no reason to fail.
pub fn add_estimated_usage_if_cost_is_missing(
    project: &Project,
    session_id: &SessionId,
    record: &SessionRecord,
    result: SessionResult,
) -> SessionResult {
    if result.cost.is_some() {
        return result;
    }
    let mut usage = SessionUsage::default();
    // The output has only the usage at the start of a response (2.1.329), so the turn log and the transcripts
    // replace it.
    result.output_usage.iter().cloned().for_each(|output| usage.merge_by_response_id(output));
    add_usage_of_turn_log(project, session_id, &mut usage);
    let mut reader = TranscriptUsage { usage, ..TranscriptUsage::default() };
    reader.read_new_lines(session_id, record);
    let usage = reader.usage;
    let is_usage_known = result.output_usage.is_some()
        || !usage.is_empty()
        || recorded_and_client_transcript_paths(session_id, record).iter().any(|path| disk::exists(path));
    SessionResult {
        cost: is_usage_known.then(|| usage.total_cost()),
        tokens: usage.total_tokens().max(result.tokens),
        ..result
    }
}

/// Returns the transcripts of a session: the one that its hooks named, and the one in the client's folder.
/// Agents can write a project's records, so neither replaces the other.
fn recorded_and_client_transcript_paths(session_id: &SessionId, record: &SessionRecord) -> Vec<PathBuf> {
    let recorded_path = record.start.transcript_path.as_ref().map(PathBuf::from);
    let mut paths: Vec<PathBuf> =
        recorded_path.into_iter().chain(config::find_client_transcript(session_id)).collect();
    paths.dedup();
    paths
}

/// Usage of a session according to its transcripts. Each call continues where the last one stopped.
#[derive(Debug, Default)]
pub(crate) struct TranscriptUsage {
    usage: SessionUsage,
    /// First unread byte of each file.
    read_offsets: BTreeMap<PathBuf, u64>,
}

impl TranscriptUsage {
    /// Reads the new lines of the session's transcript and of its subagents' transcripts. A file that cannot
    /// be read adds nothing.
    pub(crate) fn read_new_lines(&mut self, session_id: &SessionId, record: &SessionRecord) {
        for transcript in recorded_and_client_transcript_paths(session_id, record) {
            for transcript_source in TranscriptSource::all_of_session(&transcript) {
                self.read_new_lines_of_file(&transcript_source.path);
            }
        }
    }

    fn read_new_lines_of_file(&mut self, path: &Path) {
        let offset = self.read_offsets.entry(path.to_owned()).or_default();
        let Ok(lines) = ForwardLines::open_at(path, LineStart { line_number: 0, offset: *offset }) else {
            return;
        };
        for line in lines.map_while(Result::ok) {
            self.usage.add_response_or_reported_usage_from_line(&line.bytes);
            // A last line without a line end is read again, because the client may still be writing it.
            if line.has_newline {
                *offset = line.start.offset + line.bytes.len() as u64 + 1;
            }
        }
    }

    /// Returns the estimated cost of the session so far.
    pub(crate) fn cost(&self) -> Cost {
        self.usage.total_cost()
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.usage.total_tokens()
    }
}

fn add_usage_of_turn_log(project: &Project, session_id: &SessionId, usage: &mut SessionUsage) {
    let records = TurnLog::for_session_where_started_or_current(project, session_id).and_then(|log| {
        turns::records_from_start(&log).ok().map(|records| records.map_while(Result::ok).collect::<Vec<_>>())
    });
    records.into_iter().flatten().for_each(|record| add_usage_of_turn_log_record(&record, usage));
}

/// Adds the usage in one record of a turn log. A turn whose content was erased still has its tokens, but not
/// its model.
pub fn add_usage_of_turn_log_record(record: &LoggedRecord, usage: &mut SessionUsage) {
    match (record.header.kind, &record.body) {
        (RecordKind::Cost, RecordBody::Event(fields)) => {
            usage.record_reported_usage_unless_cost_lower(ReportedUsage::from_value(&Value::Object(
                fields.clone(),
            )));
        }
        (RecordKind::Turn, body) => {
            let Some(id) = record.header.message_id.clone() else { return };
            let turn_usage = match body {
                RecordBody::Turn(turn) => turn.ext().get("usage").map(|usage_value| {
                    let text_field = |name: &str| turn.ext().get(name).and_then(Value::as_str);
                    (
                        text_field("requested_model").or(text_field("model")),
                        BilledUsage::from_value(usage_value),
                    )
                }),
                _ => None,
            };
            let header_usage = || record.header.usage.map(|tokens| (None, to_billed_usage(tokens)));
            match turn_usage {
                Some((model, billed_usage)) => usage.add_response(id, model, &billed_usage),
                None if usage.has_response(&id) => {}
                None => header_usage()
                    .into_iter()
                    .for_each(|(model, billed_usage)| usage.add_response(id.clone(), model, &billed_usage)),
            }
        }
        _ => {}
    }
}

fn to_billed_usage(tokens: TokenUsage) -> BilledUsage {
    BilledUsage {
        input_tokens: Some(tokens.input),
        output_tokens: Some(tokens.output),
        cache_read_input_tokens: Some(tokens.cache_read),
        cache_creation_input_tokens: Some(tokens.cache_creation),
        ..BilledUsage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::cost::CostBasis;
    use plimsoll_store::Durability;
    use std::path::Path;

    fn response_line(id: &str, model: &str, input: u64, output: u64) -> String {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{id}","model":"{model}","usage":{{"input_tokens":{input},"output_tokens":{output}}}}}}}"#
        )
    }

    fn record_with_transcript(path: &Path) -> SessionRecord {
        let mut record = SessionRecord::default();
        record.start.transcript_path = Some(path.display().to_string());
        record
    }

    #[test]
    fn an_interrupted_sessions_cost_is_estimated_and_a_report_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        let path = folder.path().join("s1.jsonl");
        let write_lines = |path: &Path, lines: &[String]| {
            disk::replace(path, lines.join("\n").as_bytes(), Durability::Lazy).unwrap();
        };
        let torn_line = r#"{"type":"assistant","message":{"id":"m9","us"#.to_owned();
        let opus = "claude-opus-5-5";
        write_lines(
            &path,
            &[response_line("m1", opus, 100_000, 1), response_line("m1", opus, 100_000, 10_000), torn_line],
        );
        write_lines(
            &folder.path().join("s1/subagents/agent-a1.jsonl"),
            &[response_line("m2", "claude-haiku-4-5", 50_000, 0)],
        );
        let complete = |result: SessionResult| {
            add_estimated_usage_if_cost_is_missing(
                &project,
                &"s1".into(),
                &record_with_transcript(&path),
                result,
            )
        };
        let completed = complete(SessionResult::default());
        let cost = completed.cost.unwrap();
        assert!((cost.usd - (0.4 + 0.2 + 0.05)).abs() < 1e-9, "{cost:?}");
        assert_eq!((cost.basis, completed.tokens), (CostBasis::Estimated, 160_000));
        // The client's output has what the transcript lacks: a response that was being written.
        let mut output = SessionUsage::default();
        [response_line("m1", opus, 100_000, 1), response_line("m3", opus, 100_000, 1)]
            .iter()
            .for_each(|line| output.add_response_or_reported_usage_from_line(line.as_bytes()));
        let with_output = complete(SessionResult { output_usage: Some(output), ..SessionResult::default() });
        assert_eq!(with_output.tokens, 160_000 + 100_001);
        // A reported cost replaces the estimate.
        let reported = Cost { usd: 0.125, basis: CostBasis::Reported };
        let kept = complete(SessionResult { cost: Some(reported), tokens: 7, ..SessionResult::default() });
        assert_eq!((kept.cost, kept.tokens), (Some(reported), 7));
    }

    #[test]
    fn growing_transcripts_are_read_on_and_count_each_response_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s1.jsonl");
        let lines =
            [response_line("m1", "claude-opus-5-5", 100, 1), response_line("m2", "claude-opus-5-5", 200, 2)];
        let text = format!("{}\n{}\n", lines[0], lines[1]);
        let mut usage = TranscriptUsage::default();
        // The end of a line may not be written yet, and its line end may come separately.
        for (end, tokens) in
            [(0, 0), (20, 0), (lines[0].len(), 101), (lines[0].len() + 1, 101), (text.len(), 303)]
        {
            disk::replace(&path, &text.as_bytes()[..end], Durability::Lazy).unwrap();
            usage.read_new_lines(&"s1".into(), &record_with_transcript(&path));
            assert_eq!(usage.tokens(), tokens, "{end} bytes");
        }
        let agent = folder.path().join("s1/subagents/agent-a1.jsonl");
        let line = response_line("m3", "claude-haiku-4-5", 50, 0) + "\n";
        disk::replace(&agent, line.as_bytes(), Durability::Lazy).unwrap();
        usage.read_new_lines(&"s1".into(), &record_with_transcript(&path));
        assert_eq!((usage.tokens(), usage.cost().basis), (353, CostBasis::Estimated));
    }

    #[test]
    fn cost_is_unknown_without_sources_and_zero_for_an_empty_transcript() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        let path = folder.path().join("s1.jsonl");
        let complete = |result: SessionResult| {
            add_estimated_usage_if_cost_is_missing(
                &project,
                &"s1".into(),
                &record_with_transcript(&path),
                result,
            )
        };
        assert_eq!(complete(SessionResult::default()).cost, None);
        // A client whose output is in our file and has no response used nothing.
        let no_response =
            SessionResult { output_usage: Some(SessionUsage::default()), ..SessionResult::default() };
        assert_eq!(complete(no_response).cost, Some(Cost::default()));
        disk::replace(&path, b"{\"type\":\"user\"}\n", Durability::Lazy).unwrap();
        assert_eq!(complete(SessionResult::default()).cost, Some(Cost::default()));
    }
}
