//! A project with our hooks, sessions in it, and the check that every log must pass.

use plimsoll_domain::SessionId;
use plimsoll_domain::log_line::{MAIN_STREAM, RecordKind};
use plimsoll_flows::turns::{LoggedRecord, records_from_start};
use plimsoll_store::{Project, TurnLog};
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::{Launch, World};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub(crate) const FIRST: &str = "11111111-1111-4111-8111-111111111111";
pub(crate) const SECOND: &str = "22222222-2222-4222-8222-222222222222";

/// Returns a model that takes these steps. The nth step uses 1,000 × n tokens of input and n tokens of output.
pub(crate) fn model_with_steps(steps: Vec<Step>) -> ScriptedModel {
    ScriptedModel::start_with_steps_repeating_last(
        steps.into_iter().zip(1..).map(|(step, n)| with_nth_usage(step, n)).collect(),
    )
}

pub(crate) fn with_nth_usage(step: Step, n: u64) -> Step {
    step.with_input_tokens(1_000 * n).with_output_tokens(n)
}

/// Returns what the first answers of [`model`] cost: tokens of input and of output.
pub(crate) fn expected_cost(answer_count: u64) -> (u64, u64) {
    let sum = answer_count * (answer_count + 1) / 2;
    (1_000 * sum, sum)
}

/// Returns a launch of a session with this id.
pub(crate) fn session_launch(world: &World, session_id: &str, prompt: &str) -> Launch {
    let arguments = ["-p", prompt, "--session-id", session_id, "--model", "opus", "--output-format", "json"];
    world.claude(&arguments).arg("--allowedTools").arg("Bash,Read,Agent,Monitor")
}

pub(crate) fn project(world: &World) -> Project {
    Project::with_local_files(&world.project())
}

pub(crate) fn turn_log(world: &World, session_id: &str) -> TurnLog {
    TurnLog::for_session_where_started_or_current(&project(world), &SessionId::from(session_id))
        .expect("a plain id")
}

pub(crate) fn read_records(world: &World, session_id: &str) -> Vec<LoggedRecord> {
    records_from_start(&turn_log(world, session_id)).unwrap().map(Result::unwrap).collect()
}

pub(crate) fn turns_of_stream<'a>(records: &'a [LoggedRecord], stream: &str) -> Vec<&'a LoggedRecord> {
    records.iter().filter(|record| record.is_turn_record() && record.header.stream == stream).collect()
}

pub(crate) fn record_kinds(records: &[LoggedRecord]) -> Vec<RecordKind> {
    records.iter().map(|record| record.header.kind).collect()
}

/// Returns the outcome of each turn of the main stream: `ok` or the reason for its failure.
pub(crate) fn main_outcomes(records: &[LoggedRecord]) -> Vec<&'static str> {
    outcomes_of_stream(records, MAIN_STREAM)
}

pub(crate) fn outcomes_of_stream(records: &[LoggedRecord], stream: &str) -> Vec<&'static str> {
    let outcome = |record: &&LoggedRecord| {
        record.header.failure_reason.map_or("ok", plimsoll_domain::turn::FailureReason::as_str)
    };
    turns_of_stream(records, stream).iter().map(outcome).collect()
}

/// Records what is missing from the logs of all sessions, and returns the number of new turns.
pub(crate) fn sync_all_turns(world: &World) -> u64 {
    let synced = world.plimsoll(&["turns", "sync"]).run().expect_success().stdout;
    synced.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{synced}"))
}

/// Returns the path of a session's transcript.
pub(crate) fn transcript_path(world: &World, session_id: &str) -> PathBuf {
    let name = format!("{session_id}.jsonl");
    let matching_path = world.transcript_paths().into_iter().find(|path| path.ends_with(&name));
    matching_path.unwrap_or_else(|| panic!("no transcript {name} among {:?}", world.transcript_paths()))
}

/// One message as the client wrote it: its id, its blocks byte for byte, its usage.
pub(crate) struct TranscriptMessage {
    pub(crate) id: String,
    pub(crate) blocks: Vec<String>,
    pub(crate) usage: Value,
}

/// Reads the messages of a transcript without any of our own code.
pub(crate) fn read_messages(path: &Path) -> Vec<TranscriptMessage> {
    #[derive(Deserialize)]
    struct Line {
        #[serde(rename = "type")]
        kind: String,
        message: Option<LineMessage>,
    }
    #[derive(Deserialize)]
    struct LineMessage {
        id: Option<String>,
        content: Box<RawValue>,
        usage: Option<Value>,
    }
    let mut messages: Vec<TranscriptMessage> = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let Ok(Line { kind, message: Some(inner) }) = serde_json::from_str(line) else { continue };
        if kind != "assistant" {
            continue;
        }
        let blocks: Vec<Box<RawValue>> = serde_json::from_str(inner.content.get()).unwrap();
        let blocks = blocks.iter().map(|block| block.get().to_owned());
        let (id, usage) = (inner.id.unwrap_or_default(), inner.usage.unwrap_or_default());
        match messages.iter_mut().find(|message| message.id == id) {
            Some(message) => {
                message.blocks.extend(blocks);
                message.usage = usage;
            }
            None => messages.push(TranscriptMessage { id, blocks: blocks.collect(), usage }),
        }
    }
    messages
}

/// Checks the log of a session and returns its records. The log is whole; each message of each transcript is one turn,
/// in order and numbered without gaps. Its blocks are the client's byte for byte, and its usage is counted once.
pub(crate) fn check_log(world: &World, session_id: &str) -> Vec<LoggedRecord> {
    let report = turn_log(world, session_id).verify().unwrap();
    assert!(report.is_intact(), "{:?}", report.findings);
    let records = read_records(world, session_id);
    let main = transcript_path(world, session_id);
    for source in plimsoll_flows::turns::capture::TranscriptSource::all_of_session(&main) {
        let messages = read_messages(&source.path);
        let turns = turns_of_stream(&records, &source.stream_name);
        let turn_message_ids: Vec<&str> =
            turns.iter().map(|turn| turn.header.message_id.as_deref().unwrap_or_default()).collect();
        let transcript_message_ids: Vec<&str> = messages.iter().map(|message| message.id.as_str()).collect();
        assert_eq!(
            turn_message_ids,
            transcript_message_ids,
            "one turn a message of {}: {:?}",
            source.stream_name,
            record_kinds(&records)
        );
        for ((record, message), number) in turns.iter().zip(&messages).zip(1..) {
            let turn = record.turn().unwrap_or_else(|| panic!("{:?}", record.body));
            assert_eq!((turn.number(), record.header.turn_number), (number, Some(number)));
            let blocks: Vec<&str> =
                turn.raw_response().iter().map(plimsoll_domain::turn::Block::json).collect();
            assert_eq!(blocks, message.blocks, "byte for byte");
            assert_eq!(turn.ext()["usage"], message.usage, "the last line's");
        }
    }
    let streams: BTreeSet<&str> = records.iter().map(|record| record.header.stream.as_str()).collect();
    assert!(streams.contains(MAIN_STREAM), "{streams:?}");
    records
}

/// Returns what all turns cost together: tokens of input and of output.
pub(crate) fn total_cost(records: &[LoggedRecord]) -> (u64, u64) {
    let tokens = records.iter().filter_map(|record| record.header.usage);
    tokens.fold((0, 0), |(sent, output), tokens| (sent + tokens.total_input(), output + tokens.output))
}
