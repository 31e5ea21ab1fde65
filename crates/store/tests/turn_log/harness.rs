//! Logs in folders of their own.

use plimsoll_domain::log_line::{LogLine, RecordKind};
use plimsoll_domain::turn::record::encode_fields;
use plimsoll_domain::{SessionId, Timestamp};
use plimsoll_store::turn_log::{NewRecord, Report};
use plimsoll_store::{Project, TurnLog};
use serde_json::{Map, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);
pub(crate) const ID: &str = "11111111-1111-4111-8111-111111111111";

/// A folder with a log in it.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) log: TurnLog,
}

impl Place {
    pub(crate) fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let log = log_at(folder.path());
        Place { folder, log }
    }

    /// In memory where that is to be had: kills need no disk, and thousands of syncs take their time.
    pub(crate) fn in_memory() -> Place {
        let memory = Path::new("/dev/shm");
        let folder =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let log = log_at(folder.path());
        Place { folder, log }
    }

    /// With so many records, the nth about `text n`.
    pub(crate) fn with(count: usize) -> Place {
        let place = Place::new();
        let entries: Vec<NewRecord> = (1..=count).map(|n| prompt(&format!("text {n}"))).collect();
        place.append(&entries);
        place
    }

    pub(crate) fn append(&self, entries: &[NewRecord]) {
        let mut writer = self.log.write(TIMEOUT).unwrap();
        writer.append(entries).unwrap();
        writer.close().unwrap();
    }

    pub(crate) fn turns(&self) -> PathBuf {
        self.log.path().parent().unwrap().to_owned()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(self.log.path()).unwrap()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        String::from_utf8(self.bytes()).unwrap().split_inclusive('\n').map(str::to_owned).collect()
    }

    pub(crate) fn put(&self, bytes: impl AsRef<[u8]>) {
        fs::write(self.log.path(), bytes).unwrap();
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        texts(&self.log)
    }

    pub(crate) fn verify(&self) -> Report {
        self.log.verify().unwrap()
    }

    /// True if any file of the folder holds these bytes.
    pub(crate) fn holds(&self, secret: &str) -> bool {
        files(&self.turns()).iter().any(|path| contains(&fs::read(path).unwrap(), secret.as_bytes()))
    }
}

pub(crate) fn log_at(folder: &Path) -> TurnLog {
    TurnLog::of(&Project::at(folder), &SessionId::from(ID)).unwrap()
}

pub(crate) fn prompt(text: &str) -> NewRecord {
    let fields = Map::from_iter([("text".to_owned(), json!(text))]);
    NewRecord::new(RecordKind::Prompt, Timestamp::from("2026-01-07T12:00:00Z"))
        .holding(encode_fields(&fields))
}

/// A text that is stored beside the log.
pub(crate) fn large(word: &str) -> String {
    format!("{word} ").repeat(1_000)
}

/// The texts of the prompts, in order.
pub(crate) fn texts(log: &TurnLog) -> Vec<String> {
    let lines = log.forwards().unwrap().map(Result::unwrap);
    let text = |line: plimsoll_store::turn_log::RawLine| {
        let parsed = LogLine::parse(&line.bytes).filter(|_| line.is_ended)?;
        let fetch = |hash: &str| log.blob(hash);
        let fields = plimsoll_domain::turn::record::decode_fields(parsed.content, &fetch).ok()?;
        Some(fields.get("text")?.as_str()?.to_owned())
    };
    lines.filter_map(text).collect()
}

pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() { found.extend(files(&entry.path())) } else { found.push(entry.path()) }
    }
    found
}

pub(crate) fn contains(bytes: &[u8], part: &[u8]) -> bool {
    part.is_empty() || bytes.windows(part.len()).any(|window| window == part)
}

/// What a report says, for messages and for looking into.
pub(crate) fn said(report: &Report) -> String {
    report.findings.iter().map(|finding| format!("{}: {}\n", finding.line, finding.what)).collect()
}

/// The name of a test of this program, as `--exact` expects it: its module's path without the name of the program.
pub(crate) fn test_name(module_path: &str, test: &str) -> String {
    let (_, module) = module_path.split_once("::").unwrap();
    format!("{module}::{test}")
}
