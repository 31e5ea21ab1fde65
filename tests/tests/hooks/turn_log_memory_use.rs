//! A session of 500 MB is recorded with the memory use of a small one.

use cpu_time::ProcessTime;
use plimsoll_domain::{SessionId, SessionRecord, Timestamp};
use plimsoll_flows::turns::capture::CaptureLimits;
use plimsoll_flows::turns::catch_up::record_missing_turns_of_all_sessions;
use plimsoll_store::{Durability, Project, TurnLog, sessions};
use serde_json::json;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

const ID: &str = "11111111-1111-4111-8111-111111111111";
const MB: u64 = 1024 * 1024;

/// Writes a transcript of about this many bytes: a call and its result in each turn, an image now and then, and the
/// client's own notes, which are most of it. Returns the number of turns.
fn write_transcript(path: &Path, project: &Path, byte_count: u64) -> u64 {
    let mut file = BufWriter::new(File::create(path).unwrap());
    let (output, image, client_note) =
        ("line of output\n".repeat(200), "iVBORw0KGgo".repeat(50_000), "x".repeat(36_000));
    let (mut written, mut turns) = (0, 0);
    while written < byte_count {
        turns += 1;
        let (id, at) = (format!("toolu_{turns}"), "2026-01-07T12:00:00.000Z");
        let content = if turns % 100 == 0 {
            json!([{"type": "image", "source": {"type": "base64", "data": format!("{turns}{image}")}}])
        } else {
            json!(format!("{turns}\n{output}"))
        };
        let lines = [
            json!({"type": "assistant", "timestamp": at, "cwd": project, "message": {
                "id": format!("msg_{turns}"), "model": "claude-opus-5-5", "stop_reason": "tool_use",
                "content": [{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": format!("step {turns}")}}],
                "usage": {"input_tokens": 10, "cache_read_input_tokens": turns * 100, "output_tokens": 50},
            }}),
            json!({"type": "user", "timestamp": at, "toolUseResult": {"stdout": output, "stderr": ""},
                "message": {"content": [{"type": "tool_result", "tool_use_id": id, "content": content}]}}),
            json!({"type": "api-request-shape", "note": client_note}),
        ];
        for line in lines {
            let line = line.to_string() + "\n";
            file.write_all(line.as_bytes()).unwrap();
            written += line.len() as u64;
        }
    }
    file.flush().unwrap();
    turns
}

/// What one process needed to record a session.
struct RecordingCost {
    turns: u64,
    seconds: f64,
    peak_kb: u64,
}

/// Runs this program again with the test below, which does nothing in an ordinary run.
fn record_in_another_process(project: &Path) -> RecordingCost {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            &plimsoll_tests::exact_test_name(module_path!(), "recording_subprocess"),
            "--exact",
            "--nocapture",
        ])
        .env("PLIMSOLL_RECORD", project)
        .env("CLAUDE_CONFIG_DIR", project)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers = text.lines().find_map(|line| line.strip_prefix("COST ")).expect(&text);
    let numbers: Vec<f64> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
    RecordingCost { turns: numbers[0] as u64, seconds: numbers[1], peak_kb: numbers[2] as u64 }
}

/// Does nothing unless [`record_in_another_process`] starts it.
#[test]
fn recording_subprocess() {
    let Some(folder) = std::env::var_os("PLIMSOLL_RECORD") else { return };
    let start = ProcessTime::now();
    let turns = record_missing_turns_of_all_sessions(
        &Project::with_local_files(Path::new(&folder)),
        CaptureLimits::FOR_USER_COMMAND_OR_RUN,
    )
    .unwrap();
    let seconds = start.elapsed().as_secs_f64();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    println!("\nCOST {turns} {seconds} {}", peak.trim().trim_end_matches(" kB"));
}

/// A folder that is removed when it is dropped, also if the test fails.
struct ScratchFolder(PathBuf);

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn record_session_of_size(byte_count: u64) -> (RecordingCost, f64) {
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("turn-log-{byte_count}-{}", std::process::id()));
    let scratch = ScratchFolder(folder.clone());
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("projects/x").join(format!("{ID}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let turns = write_transcript(&path, &folder, byte_count);
    let project = Project::with_local_files(&folder);
    let mut record = SessionRecord { session_id: SessionId::from(ID), ..SessionRecord::default() };
    record.start.transcript_path = Some(path.display().to_string());
    record.end.ended_at = Some(Timestamp::from("2026-01-07T13:00:00Z"));
    sessions::set_aside_invalid_and_save_record(&project, &record, Durability::Lazy).unwrap();
    let start = ProcessTime::now();
    let lines = BufReader::with_capacity(256 * 1024, File::open(&path).unwrap()).split(b'\n').count() as u64;
    let scan_seconds = start.elapsed().as_secs_f64();
    assert_eq!(lines, turns * 3);
    let cost = record_in_another_process(&folder);
    assert_eq!(cost.turns, turns, "every turn");
    let log = TurnLog::for_session_where_started_or_current(&project, &SessionId::from(ID)).unwrap();
    let last = log.backward_lines().unwrap().next().unwrap().unwrap();
    let last = plimsoll_domain::log_line::LogLine::parse(&last.bytes).unwrap().header;
    assert_eq!((last.turn_number, last.message_id), (Some(turns), Some(format!("msg_{turns}"))));
    let second_cost = record_in_another_process(&folder);
    assert_eq!(second_cost.turns, 0, "nothing is read twice");
    assert!(second_cost.seconds < 1.0, "{} s for nothing new", second_cost.seconds);
    drop(scratch);
    (cost, scan_seconds)
}

#[test]
fn recording_500_mb_takes_no_more_memory_than_recording_50_mb() {
    let (small, _) = record_session_of_size(50 * MB);
    let (large, scan_seconds) = record_session_of_size(500 * MB);
    let rate = |seconds: f64| 500.0 / seconds;
    println!(
        "500 MB, {} turns: {:.1} s ({:.0} MB/s; a plain scan of its lines {:.0} MB/s), peak {} MB; 50 MB: {:.1} s, peak {} MB",
        large.turns,
        large.seconds,
        rate(large.seconds),
        rate(scan_seconds),
        large.peak_kb / 1024,
        small.seconds,
        small.peak_kb / 1024
    );
    assert!(large.peak_kb < small.peak_kb + 6 * 1024, "{} kB, {} kB", large.peak_kb, small.peak_kb);
}
