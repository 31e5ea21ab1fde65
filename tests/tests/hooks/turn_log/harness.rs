//! A project with our hooks, sessions in it, and the check that every log must stand.

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

/// A model that takes these steps, each with its own usage: (1,000 × n) + n of output for the nth.
pub(crate) fn model(steps: Vec<Step>) -> ScriptedModel {
    ScriptedModel::steps(steps.into_iter().zip(1..).map(|(step, n)| priced(step, n)).collect())
}

pub(crate) fn priced(step: Step, n: u64) -> Step {
    step.usage(1_000 * n).output_tokens(n)
}

/// What the first so many answers of [`model`] cost: sent, answered.
pub(crate) fn price(answers: u64) -> (u64, u64) {
    let sum = answers * (answers + 1) / 2;
    (1_000 * sum, sum)
}

/// A session with this id.
pub(crate) fn ask(world: &World, id: &str, prompt: &str) -> Launch {
    let arguments = ["-p", prompt, "--session-id", id, "--model", "opus", "--output-format", "json"];
    world.claude(&arguments).arg("--allowedTools").arg("Bash,Read,Agent,Monitor")
}

pub(crate) fn project(world: &World) -> Project {
    Project::with_local_files(&world.project())
}

pub(crate) fn log(world: &World, id: &str) -> TurnLog {
    TurnLog::for_session(&project(world), &SessionId::from(id)).expect("a plain id")
}

pub(crate) fn records(world: &World, id: &str) -> Vec<LoggedRecord> {
    records_from_start(&log(world, id)).unwrap().map(Result::unwrap).collect()
}

pub(crate) fn turns<'a>(records: &'a [LoggedRecord], stream: &str) -> Vec<&'a LoggedRecord> {
    records.iter().filter(|record| record.is_turn_record() && record.header.stream == stream).collect()
}

pub(crate) fn kinds(records: &[LoggedRecord]) -> Vec<RecordKind> {
    records.iter().map(|record| record.header.kind).collect()
}

/// The words of the main stream's endings, one a turn.
pub(crate) fn outcomes(records: &[LoggedRecord]) -> Vec<&'static str> {
    outcomes_of(records, MAIN_STREAM)
}

pub(crate) fn outcomes_of(records: &[LoggedRecord], stream: &str) -> Vec<&'static str> {
    let word = |record: &&LoggedRecord| {
        record.header.failure_reason.map_or("ok", plimsoll_domain::turn::FailureReason::as_str)
    };
    turns(records, stream).iter().map(word).collect()
}

/// Records what is missing of all sessions, and returns the number of turns.
pub(crate) fn sync(world: &World) -> u64 {
    let synced = world.plimsoll(&["turns", "sync"]).run().expect_success().stdout;
    synced.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{synced}"))
}

/// A session's transcript.
pub(crate) fn transcript(world: &World, id: &str) -> PathBuf {
    let name = format!("{id}.jsonl");
    let found = world.transcripts().into_iter().find(|path| path.ends_with(&name));
    found.unwrap_or_else(|| panic!("no transcript {name} among {:?}", world.transcripts()))
}

/// One message as the client wrote it: its id, its blocks byte for byte, its usage.
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) blocks: Vec<String>,
    pub(crate) usage: Value,
}

/// The messages of a transcript, read without any of our own code.
pub(crate) fn messages(path: &Path) -> Vec<Message> {
    #[derive(Deserialize)]
    struct Line {
        #[serde(rename = "type")]
        kind: String,
        message: Option<Inner>,
    }
    #[derive(Deserialize)]
    struct Inner {
        id: Option<String>,
        content: Box<RawValue>,
        usage: Option<Value>,
    }
    let mut found: Vec<Message> = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let Ok(Line { kind, message: Some(inner) }) = serde_json::from_str(line) else { continue };
        if kind != "assistant" {
            continue;
        }
        let blocks: Vec<Box<RawValue>> = serde_json::from_str(inner.content.get()).unwrap();
        let blocks = blocks.iter().map(|block| block.get().to_owned());
        let (id, usage) = (inner.id.unwrap_or_default(), inner.usage.unwrap_or_default());
        match found.iter_mut().find(|message| message.id == id) {
            Some(message) => {
                message.blocks.extend(blocks);
                message.usage = usage;
            }
            None => found.push(Message { id, blocks: blocks.collect(), usage }),
        }
    }
    found
}

/// What every log must stand: whole; each message of each transcript is one turn, in order, numbered without gaps,
/// its blocks byte for byte the client's, its usage counted once.
pub(crate) fn check(world: &World, id: &str) -> Vec<LoggedRecord> {
    let report = log(world, id).verify().unwrap();
    assert!(report.is_intact(), "{:?}", report.findings);
    let records = records(world, id);
    let main = transcript(world, id);
    for source in plimsoll_flows::turns::capture::TranscriptSource::all_of_session(&main) {
        let said = messages(&source.path);
        let turns = turns(&records, &source.stream_name);
        let of_turns: Vec<&str> =
            turns.iter().map(|turn| turn.header.message_id.as_deref().unwrap_or_default()).collect();
        let of_file: Vec<&str> = said.iter().map(|message| message.id.as_str()).collect();
        assert_eq!(of_turns, of_file, "one turn a message of {}: {:?}", source.stream_name, kinds(&records));
        for ((record, message), number) in turns.iter().zip(&said).zip(1..) {
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

/// What all turns together cost: sent, answered.
pub(crate) fn cost(records: &[LoggedRecord]) -> (u64, u64) {
    let tokens = records.iter().filter_map(|record| record.header.usage);
    tokens.fold((0, 0), |(sent, output), tokens| (sent + tokens.total_input(), output + tokens.output))
}
