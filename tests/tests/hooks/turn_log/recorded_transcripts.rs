//! The recorded transcripts of the real client, captured in one pass and while they grow.

use crate::turn_log::harness::{FIRST, read_messages};
use plimsoll_domain::SessionId;
use plimsoll_flows::turns::capture::{
    CaptureLimits, TranscriptSource, TurnMetadata, capture_new_turns_syncing_if_durable,
};
use plimsoll_flows::turns::{LoggedRecord, records_from_start};
use plimsoll_policy::turns::EndOfInput;
use plimsoll_store::{Project, TurnLog};
use std::fs;
use std::path::{Path, PathBuf};

fn recorded_transcript_paths() -> Vec<PathBuf> {
    let folder = plimsoll_testkit::fixtures_dir().join("transcripts");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() > 8, "{paths:?}");
    paths
}

/// Captures a transcript that grows in these steps, and returns its records.
fn capture_growing_transcript(
    bytes: &[u8],
    is_main: bool,
    lengths: impl Iterator<Item = usize>,
) -> Vec<LoggedRecord> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("transcript.jsonl");
    let source = if is_main {
        TranscriptSource::for_session(&path)
    } else {
        TranscriptSource::for_subagent("a1", &path)
    };
    let log = TurnLog::for_session_where_started_or_current(
        &Project::with_local_files(folder.path()),
        &SessionId::from(FIRST),
    )
    .unwrap();
    let capture_prefix = |length: usize, closing| {
        fs::write(&path, &bytes[..length]).unwrap();
        capture_new_turns_syncing_if_durable(
            &log,
            &source,
            TurnMetadata::default,
            closing,
            CaptureLimits::FOR_USER_COMMAND_OR_RUN,
        )
        .unwrap();
    };
    lengths.for_each(|upto| capture_prefix(upto, EndOfInput::MoreMayFollow));
    capture_prefix(bytes.len(), EndOfInput::Complete);
    let report = log.verify().unwrap();
    assert!(report.is_intact(), "{:?}", report.findings);
    records_from_start(&log).unwrap().map(Result::unwrap).collect()
}

/// Returns everything in the records except the position of reading in the transcript.
fn contents_without_positions(records: &[LoggedRecord]) -> Vec<String> {
    let content_without_position = |record: &LoggedRecord| {
        let header = &record.header;
        format!("{:?} {:?} {:?} {:?}", header.kind, header.turn_number, header.failure_reason, record.body)
    };
    records.iter().map(content_without_position).collect()
}

fn check_transcript(path: &Path) {
    let bytes = fs::read(path).unwrap();
    let is_main = !path.to_string_lossy().contains("sidechain");
    let at_once = capture_growing_transcript(&bytes, is_main, std::iter::empty());
    let turns: Vec<&LoggedRecord> = at_once.iter().filter(|record| record.is_turn_record()).collect();
    let messages = read_messages(path);
    assert_eq!(turns.len(), messages.len(), "{}", path.display());
    for (turn, message) in turns.iter().zip(&messages) {
        assert_eq!(turn.header.message_id.as_deref(), Some(message.id.as_str()));
        let turn = turn.turn().unwrap();
        let blocks: Vec<&str> = turn.raw_response().iter().map(plimsoll_domain::turn::Block::json).collect();
        assert_eq!(blocks, message.blocks);
    }
    // The ends of lines of Windows are no part of a turn.
    let crlf_bytes = String::from_utf8(bytes.clone()).unwrap().replace('\n', "\r\n").into_bytes();
    let from_crlf = capture_growing_transcript(&crlf_bytes, is_main, std::iter::empty());
    assert_eq!(
        contents_without_positions(&from_crlf),
        contents_without_positions(&at_once),
        "{}",
        path.display()
    );
    // Reading stops at the ends of lines, and 40 bytes before them.
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let ends: Vec<usize> = ends.collect();
    let line_interval = 1 + ends.len() / 40;
    let steps = ends.iter().step_by(line_interval).flat_map(|end| [end.saturating_sub(40), *end]);
    let grown = capture_growing_transcript(&bytes, is_main, steps);
    assert_eq!(
        contents_without_positions(&grown),
        contents_without_positions(&at_once),
        "{}",
        path.display()
    );
}

#[test]
fn arc_010_a_recorded_transcript_gives_the_same_turns_whole_and_growing() {
    recorded_transcript_paths().iter().for_each(|path| check_transcript(path));
}
