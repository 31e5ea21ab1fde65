//! Transcripts and logs that change while they are read: many readers, truncated ends, rewritten files.

use crate::turn_log::harness::{FIRST, SECOND, record_kinds};
use plimsoll_domain::SessionId;
use plimsoll_domain::log_line::RecordKind;
use plimsoll_flows::turns::capture::{
    CaptureLimits, TranscriptSource, TurnMetadata, capture_new_turns_syncing_if_durable,
};
use plimsoll_flows::turns::{LoggedRecord, records_from_start};
use plimsoll_policy::turns::EndOfInput;
use plimsoll_store::{Project, TurnLog};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;

struct CaptureSetup {
    folder: TempDir,
    log: TurnLog,
    transcript: PathBuf,
}

impl CaptureSetup {
    fn new() -> CaptureSetup {
        let folder = tempfile::tempdir().unwrap();
        let log = TurnLog::for_session_where_started_or_current(
            &Project::with_local_files(folder.path()),
            &SessionId::from(FIRST),
        )
        .unwrap();
        let transcript = folder.path().join("transcript.jsonl");
        CaptureSetup { folder, log, transcript }
    }

    fn capture(
        &self,
        closing: EndOfInput<'_>,
        limits: CaptureLimits,
    ) -> Result<u64, plimsoll_store::StoreError> {
        capture_new_turns_syncing_if_durable(
            &self.log,
            &TranscriptSource::for_session(&self.transcript),
            TurnMetadata::default,
            closing,
            limits,
        )
    }

    fn capture_and_read_all(&self) -> Vec<LoggedRecord> {
        self.capture(EndOfInput::Complete, CaptureLimits::FOR_USER_COMMAND_OR_RUN).unwrap();
        let report = self.log.verify().unwrap();
        assert!(report.is_intact(), "{:?}", report.findings);
        records_from_start(&self.log).unwrap().map(Result::unwrap).collect()
    }
}

/// Returns the three lines of a prompt, a call and its result.
fn exchange_lines(number: usize) -> [Value; 3] {
    let timestamp = "2026-01-07T12:00:00Z";
    let call =
        json!({"type": "tool_use", "id": format!("t{number}"), "name": "Bash", "input": {"command": "x"}});
    let tool_result = json!({"type": "tool_result", "tool_use_id": format!("t{number}"), "content": format!("out {number}")});
    [
        json!({"type": "user", "timestamp": timestamp, "message": {"content": format!("prompt {number}")}}),
        json!({"type": "assistant", "timestamp": timestamp, "message":
            {"id": format!("m{number}"), "content": [call], "stop_reason": "tool_use"}}),
        json!({"type": "user", "timestamp": timestamp, "message": {"content": [tool_result]}}),
    ]
}

fn transcript_text(exchanges: std::ops::RangeInclusive<usize>) -> String {
    exchanges.flat_map(exchange_lines).map(|line| format!("{line}\n")).collect()
}

fn message_ids(records: &[LoggedRecord]) -> Vec<String> {
    records.iter().filter_map(|record| record.header.message_id.clone()).collect()
}

fn expected_message_ids(count: usize) -> Vec<String> {
    (1..=count).map(|n| format!("m{n}")).collect()
}

fn count_of_kind(records: &[LoggedRecord], kind: RecordKind) -> usize {
    record_kinds(records).iter().filter(|recorded_kind| **recorded_kind == kind).count()
}

#[test]
fn many_readers_of_a_growing_transcript_record_each_turn_once() {
    const COUNT: usize = 150;
    let setup = CaptureSetup::new();
    let mut file = File::create(&setup.transcript).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    match setup.capture(EndOfInput::MoreMayFollow, CaptureLimits::FOR_HOOK) {
                        Ok(_) | Err(plimsoll_store::StoreError::Locked { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        for line in transcript_text(1..=COUNT).split_inclusive('\n') {
            let (half, rest) = line.split_at(line.len() / 2);
            file.write_all(half.as_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(2));
            file.write_all(rest.as_bytes()).unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
    });
    let records = setup.capture_and_read_all();
    assert_eq!(message_ids(&records), expected_message_ids(COUNT));
    assert_eq!(
        (count_of_kind(&records, RecordKind::Prompt), count_of_kind(&records, RecordKind::LateContent)),
        (COUNT, 0)
    );
    assert!(
        records.iter().filter_map(LoggedRecord::turn).all(|turn| turn.is_success()),
        "with their results"
    );
}

#[test]
fn a_truncated_log_is_restored_from_the_transcript() {
    for lost_lines in 1..6 {
        let setup = CaptureSetup::new();
        fs::write(&setup.transcript, transcript_text(1..=4)).unwrap();
        setup.capture_and_read_all();
        let text = fs::read_to_string(setup.log.path()).unwrap();
        let log_lines: Vec<&str> = text.split_inclusive('\n').collect();
        fs::write(setup.log.path(), log_lines[..log_lines.len() - lost_lines].concat()).unwrap();
        let records = setup.capture_and_read_all();
        assert_eq!(message_ids(&records), expected_message_ids(4), "{lost_lines} lost");
        assert_eq!(
            (count_of_kind(&records, RecordKind::Prompt), count_of_kind(&records, RecordKind::Repair)),
            (4, 1),
            "{lost_lines} lost"
        );
    }
}

#[test]
fn a_deleted_log_is_written_again_from_the_transcript() {
    let setup = CaptureSetup::new();
    fs::write(&setup.transcript, transcript_text(1..=4)).unwrap();
    setup.capture_and_read_all();
    fs::remove_dir_all(setup.folder.path().join(".claude")).unwrap();
    fs::write(&setup.transcript, transcript_text(1..=5)).unwrap();
    assert_eq!(message_ids(&setup.capture_and_read_all()), expected_message_ids(5));
}

/// A client that rewrites its transcript may leave lines out or keep them.
#[test]
fn a_rewritten_transcript_adds_new_turns_and_repeats_none() {
    let setup = CaptureSetup::new();
    fs::write(&setup.transcript, transcript_text(1..=6)).unwrap();
    setup.capture_and_read_all();
    fs::write(&setup.transcript, transcript_text(3..=4) + &transcript_text(7..=7)).unwrap();
    let records = setup.capture_and_read_all();
    assert_eq!(message_ids(&records), [expected_message_ids(6), vec!["m7".to_owned()]].concat());
    assert_eq!(
        count_of_kind(&records, RecordKind::LateContent),
        0,
        "results of recorded calls are no news: {:?}",
        record_kinds(&records)
    );
    assert_eq!(count_of_kind(&records, RecordKind::Prompt), 7, "{:?}", record_kinds(&records));
    fs::write(&setup.transcript, transcript_text(3..=4) + &transcript_text(7..=8)).unwrap();
    assert_eq!(message_ids(&setup.capture_and_read_all()).last().map(String::as_str), Some("m8"));
}

#[test]
fn two_sessions_of_one_project_have_separate_logs() {
    let setup = CaptureSetup::new();
    fs::write(&setup.transcript, transcript_text(1..=2)).unwrap();
    let other_log = TurnLog::for_session_where_started_or_current(
        &Project::with_local_files(setup.folder.path()),
        &SessionId::from(SECOND),
    )
    .unwrap();
    setup.capture_and_read_all();
    let source = TranscriptSource::for_session(&setup.transcript);
    capture_new_turns_syncing_if_durable(
        &other_log,
        &source,
        TurnMetadata::default,
        EndOfInput::Complete,
        CaptureLimits::FOR_USER_COMMAND_OR_RUN,
    )
    .unwrap();
    assert_eq!(
        records_from_start(&other_log).unwrap().count(),
        records_from_start(&setup.log).unwrap().count()
    );
}
