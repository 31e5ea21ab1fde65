//! What a working tree holds that its HEAD does not, as git sees it; every name as the bytes it has on the disk.

use crate::child::{self, Terms};
use crate::git;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A list of names may be long; one that is longer is no list we want to work through.
const MOST_LIST: usize = 64 * 1024 * 1024;

/// A moment by which several questions have to be answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Until(Instant);

impl Until {
    pub(crate) fn within(time: Duration) -> Until {
        Until(Instant::now() + time)
    }

    pub(crate) fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    pub(crate) fn is_over(self) -> bool {
        self.left().is_zero()
    }
}

/// A path that differs from HEAD, from the project folder on. An untracked repository ends with a slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) path: Vec<u8>,
    /// The mode git would commit; none where there is nothing on the disk or git does not follow the file.
    pub(crate) mode: Option<String>,
    pub(crate) is_tracked: bool,
}

impl Change {
    pub(crate) fn name(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }
}

/// Where a folder lies in its working tree.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) root: PathBuf,
    /// From the root to the folder, with a slash at its end; empty at the root.
    pub(crate) prefix: Vec<u8>,
}

impl Place {
    /// None outside a working tree.
    pub(crate) fn of(folder: &Path, until: Until) -> Result<Option<Place>, String> {
        let question = ["rev-parse", "--is-inside-work-tree", "--show-cdup", "--show-prefix"];
        let outcome = crate::run(git::asking(folder, &question), until.left());
        if outcome.timed_out {
            return Err(TOO_LONG.into());
        }
        Ok(outcome.succeeded().then(|| Place::parse(folder, &outcome.stdout)).flatten())
    }

    fn parse(folder: &Path, answer: &[u8]) -> Option<Place> {
        let rest = answer.strip_prefix(b"true\n")?;
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let prefix = rest.get(end + 1..)?.strip_suffix(b"\n")?;
        Some(Place { root: folder.join(OsStr::from_bytes(&rest[..end])), prefix: prefix.to_owned() })
    }
}

/// May the index be renewed while git compares? If not, a file that was only touched is named as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Index {
    Untouched,
    Renewed,
}

/// Everything below the folder that differs from HEAD: first what git follows, then what it does not and does
/// not ignore. Whether it is staged makes no difference.
pub(crate) fn since_head(
    folder: &Path,
    head: Option<&str>,
    index: Index,
    until: Until,
) -> Result<Vec<Change>, String> {
    let mut changes = match head {
        Some(head) => {
            let renew = format!("diff.autoRefreshIndex={}", index == Index::Renewed);
            let how = ["--raw", "-z", "--no-renames", "--no-ext-diff", "--relative"];
            let submodules = match index {
                // Who may not write wants to know all, who commits can commit only their commits.
                Index::Untouched => "--ignore-submodules=none",
                Index::Renewed => "--ignore-submodules=dirty",
            };
            let question = [&["-c", &renew, "diff"], &how[..], &[submodules, head, "--", "."]].concat();
            parse_diff(&answer(folder, &question, None, until)?)
        }
        None => parse_stage(&answer(folder, &["ls-files", "--stage", "-z", "--", "."], None, until)?),
    };
    let question = ["ls-files", "--others", "--exclude-standard", "-z", "--", "."];
    let untracked = answer(folder, &question, None, until)?;
    changes.extend(names(&untracked).map(|path| Change {
        path: path.to_owned(),
        mode: None,
        is_tracked: false,
    }));
    Ok(changes)
}

/// What git answers; why not, if it does not.
pub(crate) fn answer(
    folder: &Path,
    arguments: &[&str],
    input: Option<Vec<u8>>,
    until: Until,
) -> Result<Vec<u8>, String> {
    let terms = Terms { input, most_output: MOST_LIST, ..Terms::within(until.left()) };
    let outcome = child::run(git::asking(folder, arguments), terms);
    if outcome.timed_out {
        return Err(TOO_LONG.into());
    }
    if !outcome.succeeded() {
        return Err(last_words(&outcome));
    }
    if outcome.stdout.len() >= MOST_LIST {
        return Err("git names too many files".into());
    }
    Ok(outcome.stdout)
}

const TOO_LONG: &str = "git took too long";

/// Why a git failed: its own verdict, else the last line that it or a hook printed.
pub(crate) fn last_words(outcome: &crate::Outcome) -> String {
    let errors = String::from_utf8_lossy(&outcome.stderr);
    let output = String::from_utf8_lossy(&outcome.stdout);
    let mut lines = errors.lines().rev().chain(output.lines().rev());
    let verdict = errors.lines().find_map(|line| line.strip_prefix("fatal: "));
    let words = verdict.or_else(|| lines.find(|line| !line.trim().is_empty())).map(str::to_owned);
    words.or_else(|| outcome.trouble.clone()).unwrap_or_else(|| "git failed without a word".into())
}

/// The entries of a list whose entries end with a zero byte.
pub(crate) fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).filter(|name| !name.is_empty())
}

/// `:100644 100755 <id> <id> M`, then the path.
fn parse_diff(output: &[u8]) -> Vec<Change> {
    let mut entries = names(output);
    let mut changes = Vec::new();
    while let (Some(what), Some(path)) = (entries.next(), entries.next()) {
        let mode = String::from_utf8_lossy(what).split(' ').nth(1).map(str::to_owned);
        let mode = mode.filter(|mode| mode != "000000");
        changes.push(Change { path: path.to_owned(), mode, is_tracked: true });
    }
    changes
}

/// `100644 <id> 0`, a tabulator, the path.
fn parse_stage(output: &[u8]) -> Vec<Change> {
    let entries = names(output).filter_map(|entry| {
        let tabulator = entry.iter().position(|byte| *byte == b'\t')?;
        let mode = String::from_utf8_lossy(entry.get(..6)?).into_owned();
        Some(Change { path: entry[tabulator + 1..].to_owned(), mode: Some(mode), is_tracked: true })
    });
    entries.collect()
}
