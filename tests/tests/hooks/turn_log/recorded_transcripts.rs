//! The recorded transcripts of the real client, read at once and as they grew.

use crate::turn_log::harness::{FIRST, messages};
use plimsoll_domain::SessionId;
use plimsoll_flows::turns::capture::{CaptureLimits, TranscriptSource, TurnSetting, capture_new_turns};
use plimsoll_flows::turns::{LoggedRecord, records_from_start};
use plimsoll_policy::turns::EndOfInput;
use plimsoll_store::{Project, TurnLog};
use std::fs;
use std::path::{Path, PathBuf};

fn recordings() -> Vec<PathBuf> {
    let folder = plimsoll_testkit::fixtures().join("transcripts");
    let mut found: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    assert!(found.len() > 8, "{found:?}");
    found
}

/// Records a transcript that grows in these steps.
fn record(bytes: &[u8], is_main: bool, steps: impl Iterator<Item = usize>) -> Vec<LoggedRecord> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("transcript.jsonl");
    let source = if is_main {
        TranscriptSource::for_session(&path)
    } else {
        TranscriptSource::for_subagent("a1", &path)
    };
    let log =
        TurnLog::for_session(&Project::with_local_files(folder.path()), &SessionId::from(FIRST)).unwrap();
    let read = |upto: usize, closing| {
        fs::write(&path, &bytes[..upto]).unwrap();
        capture_new_turns(&log, &source, TurnSetting::default, closing, CaptureLimits::USER).unwrap();
    };
    steps.for_each(|upto| read(upto, EndOfInput::MoreMayFollow));
    read(bytes.len(), EndOfInput::Complete);
    let report = log.verify().unwrap();
    assert!(report.is_intact(), "{:?}", report.findings);
    records_from_start(&log).unwrap().map(Result::unwrap).collect()
}

/// Everything but where reading stood.
fn essence(records: &[LoggedRecord]) -> Vec<String> {
    let essence = |record: &LoggedRecord| {
        let header = &record.header;
        format!("{:?} {:?} {:?} {:?}", header.kind, header.turn_number, header.failure_reason, record.body)
    };
    records.iter().map(essence).collect()
}

fn check(path: &Path) {
    let bytes = fs::read(path).unwrap();
    let is_main = !path.to_string_lossy().contains("sidechain");
    let at_once = record(&bytes, is_main, std::iter::empty());
    let turns: Vec<&LoggedRecord> = at_once.iter().filter(|record| record.is_turn_record()).collect();
    let said = messages(path);
    assert_eq!(turns.len(), said.len(), "{}", path.display());
    for (turn, message) in turns.iter().zip(&said) {
        assert_eq!(turn.header.message_id.as_deref(), Some(message.id.as_str()));
        let turn = turn.turn().unwrap();
        let blocks: Vec<&str> = turn.raw_response().iter().map(plimsoll_domain::turn::Block::json).collect();
        assert_eq!(blocks, message.blocks);
    }
    // After each line, and in the middle of some.
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let ends: Vec<usize> = ends.collect();
    let every = 1 + ends.len() / 40;
    let steps = ends.iter().step_by(every).flat_map(|end| [end.saturating_sub(40), *end]);
    let grown = record(&bytes, is_main, steps);
    assert_eq!(essence(&grown), essence(&at_once), "{}", path.display());
}

#[test]
fn arc_010_every_recorded_transcript_gives_the_same_turns_at_once_and_as_it_grew() {
    recordings().iter().for_each(|path| check(path));
}
