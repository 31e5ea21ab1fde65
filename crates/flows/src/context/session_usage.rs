//! What a session used for which the client reported no cost, from everything that knows some of it.

use crate::session_result::SessionResult;
use crate::turns::capture::Source;
use crate::turns::{self, Body, Recorded};
use plimsoll_domain::cost::Cost;
use plimsoll_domain::log_line::{RecordKind, Tokens};
use plimsoll_domain::{SessionId, SessionRecord};
use plimsoll_policy::session_usage::SessionUsage;
use plimsoll_protocol::billing::{BilledUsage, ReportedUsage};
use plimsoll_store::turn_log::{Forwards, LineStart};
use plimsoll_store::{Project, TurnLog, config, disk};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Completes the result of a session that ended without a report of its cost. Returns it unchanged if the client reported one. A file
/// that cannot be read counts nothing: a missing figure is no reason to fail.
pub fn complete_cost(
    project: &Project,
    session_id: &SessionId,
    record: &SessionRecord,
    ended: SessionResult,
) -> SessionResult {
    if ended.cost.is_some() {
        return ended;
    }
    let mut usage = SessionUsage::default();
    // The output has the usage with which a response began (2.1.329), so the log and the transcripts replace it.
    ended.output_usage.iter().cloned().for_each(|output| usage.merge(output));
    read_turn_log(project, session_id, &mut usage);
    let mut reader = TranscriptUsage { usage, ..TranscriptUsage::default() };
    reader.read_on(session_id, record);
    let usage = reader.usage;
    let is_known = ended.output_usage.is_some()
        || !usage.is_empty()
        || transcripts_of(session_id, record).iter().any(|path| disk::exists(path));
    SessionResult { cost: is_known.then(|| usage.cost()), tokens: usage.tokens().max(ended.tokens), ..ended }
}

/// Finds the transcripts of a session: the one that its hooks named, and the one in the client's own folder. A project's records
/// are writable for agents, so neither replaces the other.
fn transcripts_of(session_id: &SessionId, record: &SessionRecord) -> Vec<PathBuf> {
    let named = record.start.transcript_path.as_ref().map(PathBuf::from);
    let mut paths: Vec<PathBuf> = named.into_iter().chain(config::client_transcript(session_id)).collect();
    paths.dedup();
    paths
}

/// The usage of a session as its transcripts have it. They are read on from where they ended the last time.
#[derive(Debug, Default)]
pub(crate) struct TranscriptUsage {
    usage: SessionUsage,
    /// The first byte of each file that has not been read.
    offsets: BTreeMap<PathBuf, u64>,
}

impl TranscriptUsage {
    /// Reads what a session's transcript and those of its subagents have more by now. A file that cannot be read adds nothing.
    pub(crate) fn read_on(&mut self, session_id: &SessionId, record: &SessionRecord) {
        for transcript in transcripts_of(session_id, record) {
            for source in Source::all(&transcript) {
                self.read_file(&source.path);
            }
        }
    }

    fn read_file(&mut self, path: &Path) {
        let offset = self.offsets.entry(path.to_owned()).or_default();
        let Ok(lines) = Forwards::open(path, LineStart { line: 0, offset: *offset }) else { return };
        for line in lines.map_while(Result::ok) {
            self.usage.read_line(&line.bytes);
            // A last line without a break is read again: the client may be writing it.
            if line.is_ended {
                *offset = line.place.offset + line.bytes.len() as u64 + 1;
            }
        }
    }

    /// The cost of the session so far, of which the client has reported nothing yet.
    pub(crate) fn cost(&self) -> Cost {
        self.usage.cost()
    }

    /// The tokens of the session so far.
    pub(crate) fn tokens(&self) -> u64 {
        self.usage.tokens()
    }
}

/// Adds what the session's turn log says.
fn read_turn_log(project: &Project, session_id: &SessionId, usage: &mut SessionUsage) {
    let records = TurnLog::of(project, session_id).and_then(|log| {
        turns::forwards(&log).ok().map(|records| records.map_while(Result::ok).collect::<Vec<_>>())
    });
    records.into_iter().flatten().for_each(|record| add_record(&record, usage));
}

/// Adds what one record of a turn log says about usage. Of a turn whose content was erased the tokens are left, but not the model.
pub fn add_record(record: &Recorded, usage: &mut SessionUsage) {
    match (record.header.kind, &record.body) {
        (RecordKind::Cost, Body::Event(fields)) => {
            usage.add_account(ReportedUsage::from_value(&Value::Object(fields.clone())));
        }
        (RecordKind::Turn, body) => {
            let Some(id) = record.header.message.clone() else { return };
            let of_turn = match body {
                Body::Turn(turn) => turn.ext().get("usage").map(|found| {
                    let text = |name: &str| turn.ext().get(name).and_then(Value::as_str);
                    (text("requested_model").or(text("model")), BilledUsage::from_value(found))
                }),
                _ => None,
            };
            let of_header = || record.header.usage.map(|tokens| (None, billed_usage(tokens)));
            match of_turn {
                Some((model, billed)) => usage.add_response(id, model, &billed),
                None if usage.has_response(&id) => {}
                None => of_header()
                    .into_iter()
                    .for_each(|(model, billed)| usage.add_response(id.clone(), model, &billed)),
            }
        }
        _ => {}
    }
}

fn billed_usage(tokens: Tokens) -> BilledUsage {
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

    fn answer(id: &str, model: &str, input: u64, output: u64) -> String {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{id}","model":"{model}","usage":{{"input_tokens":{input},"output_tokens":{output}}}}}}}"#
        )
    }

    fn record(path: &Path) -> SessionRecord {
        let mut record = SessionRecord::default();
        record.start.transcript_path = Some(path.display().to_string());
        record
    }

    #[test]
    fn an_interrupted_session_costs_what_its_transcripts_say_and_a_report_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        let path = folder.path().join("s1.jsonl");
        let write = |path: &Path, lines: &[String]| {
            disk::replace(path, lines.join("\n").as_bytes(), Durability::Lazy).unwrap();
        };
        let torn = r#"{"type":"assistant","message":{"id":"m9","us"#.to_owned();
        let opus = "claude-opus-5-5";
        write(&path, &[answer("m1", opus, 100_000, 1), answer("m1", opus, 100_000, 10_000), torn]);
        write(
            &folder.path().join("s1/subagents/agent-a1.jsonl"),
            &[answer("m2", "claude-haiku-4-5", 50_000, 0)],
        );
        let complete = |ended: SessionResult| complete_cost(&project, &"s1".into(), &record(&path), ended);
        let completed = complete(SessionResult::default());
        let cost = completed.cost.unwrap();
        assert!((cost.usd - (0.4 + 0.2 + 0.05)).abs() < 1e-9, "{cost:?}");
        assert_eq!((cost.basis, completed.tokens), (CostBasis::Estimated, 160_000));
        // The output of the client has what the transcript lacks: a response that was being written.
        let mut output = SessionUsage::default();
        [answer("m1", opus, 100_000, 1), answer("m3", opus, 100_000, 1)]
            .iter()
            .for_each(|line| output.read_line(line.as_bytes()));
        let with_output = complete(SessionResult { output_usage: Some(output), ..SessionResult::default() });
        assert_eq!(with_output.tokens, 160_000 + 100_001);
        // What the client reported replaces the estimate.
        let reported = Cost { usd: 0.125, basis: CostBasis::Reported };
        let kept = complete(SessionResult { cost: Some(reported), tokens: 7, ..SessionResult::default() });
        assert_eq!((kept.cost, kept.tokens), (Some(reported), 7));
    }

    #[test]
    fn transcripts_that_grow_are_read_on_and_count_each_response_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s1.jsonl");
        let whole = [answer("m1", "claude-opus-5-5", 100, 1), answer("m2", "claude-opus-5-5", 200, 2)];
        let text = format!("{}\n{}\n", whole[0], whole[1]);
        let mut usage = TranscriptUsage::default();
        // The end of a line may not be written yet, and its break may come alone.
        for (end, tokens) in
            [(0, 0), (20, 0), (whole[0].len(), 101), (whole[0].len() + 1, 101), (text.len(), 303)]
        {
            disk::replace(&path, &text.as_bytes()[..end], Durability::Lazy).unwrap();
            usage.read_on(&"s1".into(), &record(&path));
            assert_eq!(usage.tokens(), tokens, "{end} bytes");
        }
        let agent = folder.path().join("s1/subagents/agent-a1.jsonl");
        let line = answer("m3", "claude-haiku-4-5", 50, 0) + "\n";
        disk::replace(&agent, line.as_bytes(), Durability::Lazy).unwrap();
        usage.read_on(&"s1".into(), &record(&path));
        assert_eq!((usage.tokens(), usage.cost().basis), (353, CostBasis::Estimated));
    }

    #[test]
    fn without_transcript_and_turn_log_the_cost_is_unknown_and_an_empty_transcript_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        let path = folder.path().join("s1.jsonl");
        let complete = |ended: SessionResult| complete_cost(&project, &"s1".into(), &record(&path), ended);
        assert_eq!(complete(SessionResult::default()).cost, None);
        // A client that wrote its output into our file, and has no response there, used nothing.
        let no_response =
            SessionResult { output_usage: Some(SessionUsage::default()), ..SessionResult::default() };
        assert_eq!(complete(no_response).cost, Some(Cost::default()));
        disk::replace(&path, b"{\"type\":\"user\"}\n", Durability::Lazy).unwrap();
        assert_eq!(complete(SessionResult::default()).cost, Some(Cost::default()));
    }
}
