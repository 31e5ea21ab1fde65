//! Reads protected files from commits. Objects are compared by their ids and modes: neither the index of the repository nor a
//! replaced object counts. Commits are read into an index, as a checkout does: a tree can have a name twice, and commands that list a
//! tree answer with another one than a checkout takes.

use super::{AllowedPrograms, GitWriter, asking_with};
use crate::child::{self, Terms};
use crate::git_output::{last_words, names};
use crate::time_limit::TimeLimit;
use crate::{MOST_OUTPUT, Outcome, run};
use plimsoll_domain::git_names::{BranchName, CommitId, RepoPath};
use plimsoll_domain::protected::{GitEntry, GitFailure};
use plimsoll_store::layout::common_folder;
use plimsoll_store::{disk, volume};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Hashing 64 MiB takes git a second; a trusted filter or a disk that wakes may take longer.
const DEADLINE: Duration = Duration::from_secs(60);
/// How often git is asked something that it does not answer in time.
const TRIES: u32 = 2;
/// Otherwise git would write beside the index, or leave files out of it.
const WHOLE_INDEX: [&str; 2] = ["core.splitIndex=false", "index.sparse=false"];
/// Otherwise the outcome would depend on settings that only warn or ask.
const ADDS_PLAINLY: [&str; 3] =
    ["core.safecrlf=false", "add.ignoreErrors=false", "advice.addEmbeddedRepo=false"];

/// Lists the files of an index with modes and ids.
const LIST: [&str; 3] = ["ls-files", "--stage", "-z"];

/// Git does not add files to an index, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("git add refuses them: {0}")]
pub struct AddRefused(String);

/// What a reference has, or why that is not known.
pub type EntriesOfReference = (String, Result<Vec<GitEntry>, GitFailure>);

/// Returns the identity of the repository that git itself uses in a folder, with the folder's path in it. A `.git` file can lead git,
/// which keeps the blanks at its end, to another repository than our own search finds.
pub fn repository_in_use(folder: &Path) -> Result<String, GitFailure> {
    let answer = query(folder, None, &["rev-parse", "--absolute-git-dir", "--show-prefix"])?;
    let identity = || {
        let mut lines = answer.stdout.split(|byte| *byte == b'\n');
        let git_folder = Path::new(OsStr::from_bytes(lines.next()?));
        let prefix = String::from_utf8_lossy(lines.next()?).into_owned();
        let common = common_folder(git_folder)?;
        Some(format!("{} {} {prefix}", volume::identity(git_folder)?, volume::identity(&common)?))
    };
    identity().filter(|_| answer.succeeded()).ok_or(GitFailure::Unreadable)
}

/// Returns the branch that is checked out, `refs/heads/NAME`; none if HEAD is detached or has no commit.
pub fn branch_in_use(folder: &Path) -> Result<Option<String>, GitFailure> {
    if read_commit(folder, "HEAD")?.is_none() {
        return Ok(None);
    }
    let answer = query(folder, None, &["symbolic-ref", "--quiet", "HEAD"])?;
    if answer.code == Some(1) && answer.stdout.is_empty() {
        return Ok(None);
    }
    let name = super::text(&answer);
    let name = name.strip_prefix("refs/heads/").and_then(|name| BranchName::parse(name).ok());
    name.filter(|_| answer.succeeded()).map(|name| Some(name.reference())).ok_or(GitFailure::Unreadable)
}

/// Returns the files at and below these paths that a checkout of each of these references would have. A HEAD without a commit has no
/// files. A reference is `HEAD` or begins with `refs/`. `index` is a new index for git, which is removed.
pub fn entries_of_references(
    folder: &Path,
    index: &Path,
    references: &[&str],
    paths: &[RepoPath],
) -> Vec<EntriesOfReference> {
    let mut last: Option<(CommitId, Vec<GitEntry>)> = None;
    let mut read = |reference: &str| -> Result<Vec<GitEntry>, GitFailure> {
        let Some(id) = read_commit(folder, reference)? else { return Ok(Vec::new()) };
        // HEAD and its branch are read once.
        if let Some((_, entries)) = last.as_ref().filter(|(known, _)| *known == id) {
            return Ok(entries.clone());
        }
        let entries = read_entries(folder, index, &id, paths)?;
        last = Some((id, entries.clone()));
        Ok(entries)
    };
    let mut found: Vec<EntriesOfReference> = Vec::new();
    for reference in references {
        let entries = read(reference);
        // The next question would be waited for as long.
        let is_silent = entries == Err(GitFailure::NoAnswer);
        found.push(((*reference).to_owned(), entries));
        if is_silent {
            break;
        }
    }
    remove_index(index);
    found
}

/// Returns the files at and below these paths that a commit of what is on the disk would have, also of those that git ignores; an
/// error has git's reason. `index` is a new index for git, which is removed. `committed` are the files that HEAD has. Objects and a tree
/// are written to the repository, where nothing refers to them.
pub fn entries_if_committed(
    folder: &Path,
    index: &Path,
    paths: &[RepoPath],
    committed: &[GitEntry],
    allowed: AllowedPrograms,
) -> Result<Vec<GitEntry>, AddRefused> {
    let mut writer = GitWriter::new(folder, allowed).map_err(|outcome| refused(&outcome))?;
    writer.set(ADDS_PLAINLY.into_iter().chain(WHOLE_INDEX).map(Into::into));
    let limit = TimeLimit::within(DEADLINE);
    let run = |arguments: &[&str]| {
        let mut command = writer.command(arguments);
        command.env("GIT_INDEX_FILE", index);
        let outcome = child::run(command, Terms::within(limit.left()));
        if outcome.succeeded() { Ok(outcome) } else { Err(refused(&outcome)) }
    };
    let paths = pathspecs(paths);
    let head = read_commit(folder, "HEAD").map_err(|_| AddRefused("git cannot read HEAD".to_owned()))?;
    let add_all = || {
        if let Some(head) = &head {
            run(&["read-tree", head.as_str()])?;
        }
        run(&with_paths(&["add", "--force"], &paths))?;
        let tree = run(&["write-tree", "--missing-ok"])?;
        let listed = run(&with_paths(&LIST, &paths))?;
        parse_entries(&listed, &super::text(&tree))
            .ok_or_else(|| AddRefused("its list of files is too long".to_owned()))
    };
    let entries = add_all();
    remove_index(index);
    let source = |entry: GitEntry| {
        let is_same = |one: &&GitEntry| one.path == entry.path && one.object == entry.object;
        committed.iter().find(is_same).cloned().unwrap_or(entry)
    };
    Ok(entries?.into_iter().map(source).collect())
}

fn refused(outcome: &Outcome) -> AddRefused {
    let silence = || "git does not answer in time".to_owned();
    AddRefused(if outcome.timed_out { silence() } else { last_words(outcome) })
}

/// Returns the commit of a reference; none for a HEAD without a commit.
fn read_commit(folder: &Path, reference: &str) -> Result<Option<CommitId>, GitFailure> {
    let answer = query(folder, None, &["rev-parse", "--verify", "--quiet", reference])?;
    if answer.succeeded() {
        return CommitId::parse(&super::text(&answer)).map(Some).map_err(|_| GitFailure::Unreadable);
    }
    // Of a branch that is not there git says the same as of a HEAD that names one.
    let is_unborn = reference == "HEAD" && answer.code == Some(1) && answer.stdout.is_empty();
    if is_unborn { Ok(None) } else { Err(GitFailure::Unreadable) }
}

fn read_entries(
    folder: &Path,
    index: &Path,
    id: &CommitId,
    paths: &[RepoPath],
) -> Result<Vec<GitEntry>, GitFailure> {
    if !query(folder, Some(index), &["read-tree", id.as_str()])?.succeeded() {
        return Err(GitFailure::Unreadable);
    }
    let listed = query(folder, Some(index), &with_paths(&LIST, &pathspecs(paths)))?;
    parse_entries(&listed, id.as_str()).ok_or(GitFailure::Unreadable)
}

/// Asks git something, once more if it does not answer in time, could not be started, or was ended by a signal: then nothing is wrong
/// with the repository.
fn query(folder: &Path, index: Option<&Path>, arguments: &[&str]) -> Result<Outcome, GitFailure> {
    for _ in 0..TRIES {
        let mut command = asking_with(folder, &WHOLE_INDEX, arguments).map_err(|_| GitFailure::Unreadable)?;
        if let Some(index) = index {
            // A git that was ended may have left it.
            let _ = disk::remove(&lock_of(index));
            command.env("GIT_INDEX_FILE", index);
        }
        let outcome = run(command, DEADLINE);
        if !outcome.timed_out && outcome.code.is_some() {
            return Ok(outcome);
        }
    }
    Err(GitFailure::NoAnswer)
}

fn remove_index(index: &Path) {
    for file in [index, &lock_of(index)] {
        let _ = disk::remove(file);
    }
}

/// The file that git makes while it writes an index.
fn lock_of(index: &Path) -> PathBuf {
    let mut lock = index.as_os_str().to_owned();
    lock.push(".lock");
    lock.into()
}

fn pathspecs(paths: &[RepoPath]) -> Vec<String> {
    paths.iter().map(RepoPath::pathspec).collect()
}

fn with_paths<'a>(command: &[&'a str], paths: &'a [String]) -> Vec<&'a str> {
    command.iter().copied().chain(["--"]).chain(paths.iter().map(String::as_str)).collect()
}

/// Parses `MODE ID STAGE<tab>PATH`.
fn parse_entries(listed: &Outcome, source: &str) -> Option<Vec<GitEntry>> {
    // A list that was cut off says nothing of the rest.
    if !listed.succeeded() || listed.stdout.len() >= MOST_OUTPUT {
        return None;
    }
    let parse = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        let (about, path) = line.split_once('\t')?;
        let mut words = about.split(' ');
        let (mode, id) = (words.next()?, words.next()?);
        Some(GitEntry { path: path.to_owned(), object: format!("{mode} {id}"), source: source.to_owned() })
    };
    names(&listed.stdout).map(parse).collect()
}
