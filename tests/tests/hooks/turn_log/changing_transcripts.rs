//! Transcripts and logs that change under the reader: crowds, cut ends, files written anew.

use crate::turn_log::harness::{FIRST, SECOND, kinds};
use plimsoll_domain::SessionId;
use plimsoll_domain::log_line::RecordKind;
use plimsoll_flows::turns::capture::{CaptureLimits, TranscriptSource, TurnSetting, capture_new_turns};
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

struct Place {
    folder: TempDir,
    log: TurnLog,
    transcript: PathBuf,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let log =
            TurnLog::for_session(&Project::with_local_files(folder.path()), &SessionId::from(FIRST)).unwrap();
        let transcript = folder.path().join("transcript.jsonl");
        Place { folder, log, transcript }
    }

    fn capture(
        &self,
        closing: EndOfInput<'_>,
        limits: CaptureLimits,
    ) -> Result<u64, plimsoll_store::StoreError> {
        capture_new_turns(
            &self.log,
            &TranscriptSource::for_session(&self.transcript),
            TurnSetting::default,
            closing,
            limits,
        )
    }

    fn read_all(&self) -> Vec<LoggedRecord> {
        self.capture(EndOfInput::Complete, CaptureLimits::USER).unwrap();
        let report = self.log.verify().unwrap();
        assert!(report.is_intact(), "{:?}", report.findings);
        records_from_start(&self.log).unwrap().map(Result::unwrap).collect()
    }
}

/// A prompt, a call and its result, three lines.
fn exchange(n: usize) -> [Value; 3] {
    let at = "2026-01-07T12:00:00Z";
    let call = json!({"type": "tool_use", "id": format!("t{n}"), "name": "Bash", "input": {"command": "x"}});
    let back = json!({"type": "tool_result", "tool_use_id": format!("t{n}"), "content": format!("out {n}")});
    [
        json!({"type": "user", "timestamp": at, "message": {"content": format!("prompt {n}")}}),
        json!({"type": "assistant", "timestamp": at, "message":
            {"id": format!("m{n}"), "content": [call], "stop_reason": "tool_use"}}),
        json!({"type": "user", "timestamp": at, "message": {"content": [back]}}),
    ]
}

fn lines(exchanges: std::ops::RangeInclusive<usize>) -> String {
    exchanges.flat_map(exchange).map(|line| format!("{line}\n")).collect()
}

fn messages(records: &[LoggedRecord]) -> Vec<String> {
    records.iter().filter_map(|record| record.header.message_id.clone()).collect()
}

fn expected(count: usize) -> Vec<String> {
    (1..=count).map(|n| format!("m{n}")).collect()
}

fn count(records: &[LoggedRecord], kind: RecordKind) -> usize {
    kinds(records).iter().filter(|found| **found == kind).count()
}

#[test]
fn many_readers_of_a_growing_transcript_record_each_turn_once() {
    const COUNT: usize = 150;
    let place = Place::new();
    let mut file = File::create(&place.transcript).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    match place.capture(EndOfInput::MoreMayFollow, CaptureLimits::HOOK) {
                        Ok(_) | Err(plimsoll_store::StoreError::Locked { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        for line in lines(1..=COUNT).split_inclusive('\n') {
            let (half, rest) = line.split_at(line.len() / 2);
            file.write_all(half.as_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(2));
            file.write_all(rest.as_bytes()).unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
    });
    let records = place.read_all();
    assert_eq!(messages(&records), expected(COUNT));
    assert_eq!((count(&records, RecordKind::Prompt), count(&records, RecordKind::LateContent)), (COUNT, 0));
    assert!(
        records.iter().filter_map(LoggedRecord::turn).all(|turn| turn.is_success()),
        "with their results"
    );
}

#[test]
fn a_log_whose_end_was_cut_off_gets_it_back_from_the_transcript() {
    for lost in 1..6 {
        let place = Place::new();
        fs::write(&place.transcript, lines(1..=4)).unwrap();
        place.read_all();
        let text = fs::read_to_string(place.log.path()).unwrap();
        let all: Vec<&str> = text.split_inclusive('\n').collect();
        fs::write(place.log.path(), all[..all.len() - lost].concat()).unwrap();
        let records = place.read_all();
        assert_eq!(messages(&records), expected(4), "{lost} lost");
        assert_eq!(
            (count(&records, RecordKind::Prompt), count(&records, RecordKind::Repair)),
            (4, 1),
            "{lost} lost"
        );
    }
}

#[test]
fn a_log_that_an_agent_took_away_is_written_anew_from_the_transcript() {
    let place = Place::new();
    fs::write(&place.transcript, lines(1..=4)).unwrap();
    place.read_all();
    fs::remove_dir_all(place.folder.path().join(".claude")).unwrap();
    fs::write(&place.transcript, lines(1..=5)).unwrap();
    assert_eq!(messages(&place.read_all()), expected(5));
}

/// What a client that writes its transcript anew leaves out or keeps.
#[test]
fn a_transcript_that_was_written_anew_brings_what_is_new_and_nothing_twice() {
    let place = Place::new();
    fs::write(&place.transcript, lines(1..=6)).unwrap();
    place.read_all();
    fs::write(&place.transcript, lines(3..=4) + &lines(7..=7)).unwrap();
    let records = place.read_all();
    assert_eq!(messages(&records), [expected(6), vec!["m7".to_owned()]].concat());
    assert_eq!(
        count(&records, RecordKind::LateContent),
        0,
        "results of recorded calls are no news: {:?}",
        kinds(&records)
    );
    assert_eq!(count(&records, RecordKind::Prompt), 7, "{:?}", kinds(&records));
    fs::write(&place.transcript, lines(3..=4) + &lines(7..=8)).unwrap();
    assert_eq!(messages(&place.read_all()).last().map(String::as_str), Some("m8"));
}

#[test]
fn two_sessions_of_one_project_have_each_their_own_log() {
    let place = Place::new();
    fs::write(&place.transcript, lines(1..=2)).unwrap();
    let other =
        TurnLog::for_session(&Project::with_local_files(place.folder.path()), &SessionId::from(SECOND))
            .unwrap();
    place.read_all();
    let source = TranscriptSource::for_session(&place.transcript);
    capture_new_turns(&other, &source, TurnSetting::default, EndOfInput::Complete, CaptureLimits::USER)
        .unwrap();
    assert_eq!(records_from_start(&other).unwrap().count(), records_from_start(&place.log).unwrap().count());
}
