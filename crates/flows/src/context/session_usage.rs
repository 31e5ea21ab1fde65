//! What a session used for which the client reported no cost, from everything that knows some of it.

use crate::session_result::SessionResult;
use crate::turns::capture::Source;
use crate::turns::{self, Body, Recorded};
use plimsoll_domain::log_line::{RecordKind, Tokens};
use plimsoll_domain::{SessionId, SessionRecord};
use plimsoll_policy::session_usage::SessionUsage;
use plimsoll_protocol::billing::{BilledUsage, ReportedUsage};
use plimsoll_store::turn_log::{Forwards, LineStart};
use plimsoll_store::{Project, TurnLog, config, disk};
use serde_json::Value;
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
    let transcripts = transcripts_of(session_id, record);
    transcripts.iter().for_each(|path| read_transcripts(path, &mut usage));
    let is_known = ended.output_usage.is_some()
        || !usage.is_empty()
        || transcripts.iter().any(|path| disk::exists(path));
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

/// Adds what a session's transcript and those of its subagents say.
fn read_transcripts(transcript: &Path, usage: &mut SessionUsage) {
    for source in Source::all(transcript) {
        let lines = Forwards::open(&source.path, LineStart::default()).into_iter().flatten();
        lines.map_while(Result::ok).for_each(|line| usage.read_line(&line.bytes));
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
        let reported = plimsoll_domain::cost::Cost { usd: 0.125, basis: CostBasis::Reported };
        let kept = complete(SessionResult { cost: Some(reported), tokens: 7, ..SessionResult::default() });
        assert_eq!((kept.cost, kept.tokens), (Some(reported), 7));
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
        assert_eq!(complete(no_response).cost, Some(plimsoll_domain::cost::Cost::default()));
        disk::replace(&path, b"{\"type\":\"user\"}\n", Durability::Lazy).unwrap();
        assert_eq!(complete(SessionResult::default()).cost, Some(plimsoll_domain::cost::Cost::default()));
    }
}
