//! Logs in temporary folders of their own.

use plimsoll_domain::log_line::{LogLine, RecordKind};
use plimsoll_domain::turn::record::encode_fields;
use plimsoll_domain::{SessionId, Timestamp};
use plimsoll_store::turn_log::{NewRecord, VerificationReport};
use plimsoll_store::{Project, TurnLog};
use serde_json::{Map, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);
pub(crate) const SESSION_ID: &str = "11111111-1111-4111-8111-111111111111";

/// A turn log in a temporary folder.
pub(crate) struct TestLog {
    pub(crate) folder: TempDir,
    pub(crate) log: TurnLog,
}

impl TestLog {
    pub(crate) fn new() -> TestLog {
        let folder = tempfile::tempdir().unwrap();
        let log = log_in_folder(folder.path());
        TestLog { folder, log }
    }

    /// Creates the log on a memory file system if there is one: tests with kills need no disk, and thousands
    /// of syncs are slow.
    pub(crate) fn in_memory() -> TestLog {
        let memory = Path::new("/dev/shm");
        let folder =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let log = log_in_folder(folder.path());
        TestLog { folder, log }
    }

    /// Creates a log with this many records; the nth has the text `text n`.
    pub(crate) fn with_records(count: usize) -> TestLog {
        let test_log = TestLog::new();
        let records: Vec<NewRecord> = (1..=count).map(|n| prompt_record(&format!("text {n}"))).collect();
        test_log.append(&records);
        test_log
    }

    pub(crate) fn append(&self, records: &[NewRecord]) {
        let mut writer = self.log.open_writer(TIMEOUT).unwrap();
        writer.append_records_or_roll_back(records).unwrap();
        writer.close().unwrap();
    }

    pub(crate) fn turns_folder(&self) -> PathBuf {
        self.log.path().parent().unwrap().to_owned()
    }

    pub(crate) fn log_bytes(&self) -> Vec<u8> {
        fs::read(self.log.path()).unwrap()
    }

    pub(crate) fn log_lines(&self) -> Vec<String> {
        String::from_utf8(self.log_bytes()).unwrap().split_inclusive('\n').map(str::to_owned).collect()
    }

    pub(crate) fn overwrite_log(&self, bytes: impl AsRef<[u8]>) {
        fs::write(self.log.path(), bytes).unwrap();
    }

    pub(crate) fn prompt_texts(&self) -> Vec<String> {
        prompt_texts(&self.log)
    }

    pub(crate) fn verify(&self) -> VerificationReport {
        self.log.verify().unwrap()
    }

    /// Returns true if any file of the folder contains this text.
    pub(crate) fn any_file_contains(&self, secret: &str) -> bool {
        files_below(&self.turns_folder())
            .iter()
            .any(|path| contains_bytes(&fs::read(path).unwrap(), secret.as_bytes()))
    }
}

pub(crate) fn log_in_folder(folder: &Path) -> TurnLog {
    TurnLog::for_session_where_started_or_current(
        &Project::with_local_files(folder),
        &SessionId::from(SESSION_ID),
    )
    .unwrap()
}

pub(crate) fn prompt_record(text: &str) -> NewRecord {
    let fields = Map::from_iter([("text".to_owned(), json!(text))]);
    NewRecord::empty_in_main_stream(RecordKind::Prompt, Timestamp::from("2026-01-07T12:00:00Z"))
        .with_content(encode_fields(&fields))
}

/// Returns a text so long that it is stored as a blob.
pub(crate) fn large_text(word: &str) -> String {
    format!("{word} ").repeat(1_000)
}

/// Returns the texts of the prompts, in order.
pub(crate) fn prompt_texts(log: &TurnLog) -> Vec<String> {
    let lines = log.forward_lines().unwrap().map(Result::unwrap);
    let prompt_text = |line: plimsoll_store::turn_log::RawLine| {
        let parsed = LogLine::parse(&line.bytes).filter(|_| line.has_newline)?;
        let fetch = |hash: &str| log.read_blob(hash);
        let fields = plimsoll_domain::turn::record::decode_fields(parsed.content, &fetch).ok()?;
        Some(fields.get("text")?.as_str()?.to_owned())
    };
    lines.filter_map(prompt_text).collect()
}

pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            files.extend(files_below(&entry.path()));
        } else {
            files.push(entry.path());
        }
    }
    files
}

pub(crate) fn contains_bytes(bytes: &[u8], needle: &[u8]) -> bool {
    needle.is_empty() || bytes.windows(needle.len()).any(|window| window == needle)
}

/// Renders a report's findings, one per line.
pub(crate) fn render_findings(report: &VerificationReport) -> String {
    report
        .findings
        .iter()
        .map(|finding| format!("{}: {}\n", finding.line_number, finding.description))
        .collect()
}

/// Returns the name of a test of this program as `--exact` expects it: the module path without the name of
/// the program.
pub(crate) fn test_name(module_path: &str, test: &str) -> String {
    let (_, module) = module_path.split_once("::").unwrap();
    format!("{module}::{test}")
}
