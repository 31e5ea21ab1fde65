//! What git knows about the project: few children, no locks taken, and a deadline.

mod asking;
mod command;
mod folder_guard;
mod noted;
mod programs;
mod protected;
pub(crate) mod question;
mod shown;
mod tracked;
mod work;
mod writing;

pub(crate) use asking::{asking, asking_with, has_filters};
pub(crate) use command::{own_command, own_reading_command, talking};
pub use programs::AllowedPrograms;
pub(crate) use programs::search_outside_project;
pub use protected::{
    AddRefused, EntriesOfReference, branch_in_use, entries_if_committed, entries_of_references,
    repository_in_use,
};
pub(crate) use shown::whole_lines;
pub use shown::{Changes, changes_since};
pub use tracked::{is_tracked, tracked};
pub use work::{
    Begun, ChangedFile, FileCommit, Hunk, LineCounts, Look, Since, Work, begin, history_of, join, work,
};
pub(crate) use writing::{GitWriter, not_started, settings_without_drivers, write};

use crate::time_limit::TimeLimit;
use crate::{Outcome, run};
use plimsoll_domain::git_names::{CommitId, RepoPath};
use plimsoll_domain::record::GitCounts;
use plimsoll_domain::state::BaseRelation;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Git answers in milliseconds; on a cold disk or a huge tree a checkpoint continues without it.
const DEADLINE: Duration = Duration::from_secs(5);
/// How long the status line waits for git, once.
pub fn count(folder: &Path, deadline: Duration) -> Counted {
    // Submodules would each start a git of their own.
    let arguments =
        ["status", "--porcelain=v2", "--branch", "--untracked-files=normal", "--ignore-submodules=dirty"];
    let limit = TimeLimit::within(deadline);
    let (outcome, has_filters) = match asking::asking_without_filters(folder, &arguments, limit) {
        Ok((command, has_filters)) => (crate::ask(command, None, limit.left()), has_filters),
        Err(outcome) => (outcome, false),
    };
    match outcome {
        Outcome { timed_out: true, .. } => Counted::Late,
        outcome if outcome.succeeded() => {
            let output = String::from_utf8_lossy(&outcome.stdout);
            let branch = output.lines().find_map(|line| line.strip_prefix("# branch.head "));
            let mut counts = parse_counts(&output);
            if has_filters {
                let changed: Vec<String> =
                    output.lines().filter_map(only_written).map(str::to_owned).collect();
                counts.modified -= noted::unwritten(folder, &changed, limit).len() as u64;
            }
            Counted::As(counts, branch.unwrap_or_default().to_owned())
        }
        _ => Counted::Nothing,
    }
}

/// The path of a line of a file that differs from the index, and that is all.
fn only_written(line: &str) -> Option<&str> {
    line.strip_prefix("1 .M ")?.splitn(7, ' ').nth(6)
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counted {
    /// It answered, and named the branch.
    As(GitCounts, String),
    /// It was ended at its deadline.
    Late,
    /// There is no git, or it knows no repository there.
    Nothing,
}

fn parse_counts(output: &str) -> GitCounts {
    let mut counts = GitCounts::default();
    for line in output.lines() {
        let mut words = line.split(' ');
        match (words.next(), words.next()) {
            (Some("#"), Some("branch.ab")) => {
                let mut number = || words.next()?.get(1..)?.parse().ok();
                counts.ahead = number().unwrap_or(0);
                counts.behind = number().unwrap_or(0);
            }
            (Some("1" | "2"), Some(letters)) => {
                counts.staged += u64::from(!letters.starts_with('.'));
                counts.modified += u64::from(!letters.ends_with('.'));
            }
            (Some("u"), _) => counts.conflicts += 1,
            (Some("?"), _) => counts.untracked += 1,
            _ => {}
        }
    }
    counts
}

/// HEAD's id; none outside git or before the first commit.
pub fn head(folder: &Path) -> Option<CommitId> {
    commit(folder, "HEAD")
}

/// The commit that a reference names. `reference` begins with `refs/`, or is `HEAD` or a revision made of an id.
pub(crate) fn commit(folder: &Path, reference: &str) -> Option<CommitId> {
    let outcome = git(folder, &["rev-parse", "--verify", "--quiet", reference]);
    outcome.succeeded().then(|| CommitId::parse(&text(&outcome)).ok()).flatten()
}

/// A commit, as the log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// Its id.
    pub id: CommitId,
    /// When it was committed, in seconds since 1970.
    pub at: i64,
    /// The first line of its message.
    pub subject: String,
}

/// The commit that HEAD is; none outside git or before the first.
pub fn newest(folder: &Path) -> Option<Logged> {
    let outcome = git(folder, &["log", "-n1", "--no-color", "--no-show-signature", FORM, "--"]);
    logged(String::from_utf8_lossy(&outcome.stdout).lines().next()?)
}

const FORM: &str = "--format=%H%x1f%ct%x1f%s";
/// So many commits are asked for.
const LOGGED: &str = "-n5000";

/// The commits that HEAD has since a moment (RFC 3339), oldest first; none outside git.
pub fn log_since(folder: &Path, since: &str) -> Vec<Logged> {
    let since = format!("--since={since}");
    let outcome = git(folder, &["log", LOGGED, "--no-color", "--no-show-signature", &since, FORM, "--"]);
    let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let mut commits: Vec<Logged> = output.lines().filter_map(logged).collect();
    commits.reverse();
    commits
}

fn logged(line: &str) -> Option<Logged> {
    let mut fields = line.splitn(3, '\u{1f}');
    let (id, at, subject) = (fields.next()?, fields.next()?, fields.next()?);
    Some(Logged { id: CommitId::parse(id).ok()?, at: at.parse().ok()?, subject: subject.to_owned() })
}

pub(crate) fn git(folder: &Path, arguments: &[&str]) -> Outcome {
    let limit = TimeLimit::within(DEADLINE);
    asking(folder, arguments, limit).map_or_else(|outcome| outcome, |command| run(command, limit.left()))
}

pub(crate) fn text(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.stdout).trim().to_owned()
}

/// The paths that differ between a commit and HEAD, from the folder on; none if git does not know the commit.
pub fn paths_since(folder: &Path, base: &CommitId) -> Option<Vec<String>> {
    let outcome = git(
        folder,
        &["diff", "--name-only", "--no-renames", "--relative", "-z", base.as_str(), "HEAD", "--"],
    );
    let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
    outcome.succeeded().then(|| output.split_terminator('\0').map(str::to_owned).collect())
}

/// A file that differs between two commits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedLines {
    /// Its path, from the folder on.
    pub path: String,
    /// The number of added lines; 0 for what git does not take for text.
    pub added: u64,
    /// The number of removed lines.
    pub removed: u64,
    /// True if the second commit does not have it.
    pub is_deleted: bool,
}

/// Returns the files of a commit that another one has changed or deleted, with the numbers of lines; without another one those
/// of the working tree. Nothing if git does not know one of the commits.
pub fn changed_lines(folder: &Path, base: &CommitId, end: Option<&CommitId>) -> Vec<ChangedLines> {
    // With filters switched off, a file that one of them changes would differ from every commit.
    let has_filters = has_filters(folder, TimeLimit::within(DEADLINE)).unwrap_or(true);
    let end = end.map(CommitId::as_str).or(if has_filters { Some("HEAD") } else { None });
    let ask = |question: &[&str]| {
        let first = [&["diff"][..], question, &["--no-renames", "--relative", "-z", base.as_str()]];
        let arguments: Vec<&str> = first.concat().into_iter().chain(end).chain(["--"]).collect();
        String::from_utf8_lossy(&git(folder, &arguments).stdout).into_owned()
    };
    let deleted = ask(&["--name-only", "--diff-filter=D"]);
    let is_deleted = |path: &str| deleted.split_terminator('\0').any(|known| known == path);
    let counted = ask(&["--numstat", "--diff-filter=MDT"]);
    let read = |line: &str| {
        let mut fields = line.splitn(3, '\t');
        let mut number = || fields.next().map(|number| number.parse().unwrap_or(0));
        let (added, removed) = (number()?, number()?);
        let path = fields.next()?.to_owned();
        Some(ChangedLines { is_deleted: is_deleted(&path), path, added, removed })
    };
    counted.split_terminator('\0').filter_map(read).collect()
}

/// The paths that a commit changed, from the folder on, gone ones among them.
pub fn paths_in(folder: &Path, commit: &CommitId) -> Vec<String> {
    let first =
        ["diff-tree", "--root", "--no-commit-id", "--name-only", "--no-renames", "--relative", "-r", "-z"];
    let outcome = git(folder, &[&first[..], &[commit.as_str(), "--"]].concat());
    let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
    output.split_terminator('\0').map(str::to_owned).collect()
}

/// Where git keeps a commit that it has not packed yet: the file is as old as the commit, to the nanosecond.
pub fn loose_object(folder: &Path, commit: &CommitId) -> Option<PathBuf> {
    let (first, rest) = commit.as_str().split_at_checked(2)?;
    let outcome = git(folder, &["rev-parse", "--git-path", &format!("objects/{first}/{rest}")]);
    outcome.succeeded().then(|| folder.join(text(&outcome)))
}

/// The commit before another; none for the first.
pub fn parent(folder: &Path, id: &CommitId) -> Option<CommitId> {
    commit(folder, &format!("{id}^"))
}

/// The tree of a commit.
pub fn tree(folder: &Path, id: &CommitId) -> Option<CommitId> {
    commit(folder, &format!("{id}^{{tree}}"))
}

/// The content that a commit has of a file, as git stores it. None if the commit has no such file.
pub fn file_at(folder: &Path, id: &CommitId, file: &RepoPath) -> Option<Vec<u8>> {
    let outcome = git(folder, &["cat-file", "blob", &format!("{id}:{}", file.as_str())]);
    outcome.succeeded().then_some(outcome.stdout)
}

/// The commit that a user names: a branch, a tag, an id or the like.
pub fn resolve(folder: &Path, revision: &str) -> Option<CommitId> {
    let revision = format!("{revision}^{{commit}}");
    let outcome = git(folder, &["rev-parse", "--verify", "--quiet", "--end-of-options", &revision]);
    outcome
        .succeeded()
        .then(|| text(&outcome).lines().last().and_then(|id| CommitId::parse(id).ok()))
        .flatten()
}

/// The message of a commit.
pub fn message(folder: &Path, id: &CommitId) -> String {
    text(&git(folder, &["log", "-n1", "--no-color", "--no-show-signature", "--format=%B", id.as_str(), "--"]))
}

/// True if a commit is HEAD or one that HEAD stands on.
pub fn is_below_head(folder: &Path, commit: &CommitId) -> bool {
    git(folder, &["merge-base", "--is-ancestor", commit.as_str(), "HEAD"]).succeeded()
}

/// Returns how a commit on which work began stands to HEAD.
pub fn base_relation(folder: &Path, base: &CommitId) -> BaseRelation {
    let outcome = git(folder, &["merge-base", "--is-ancestor", base.as_str(), "HEAD"]);
    if outcome.succeeded() {
        return BaseRelation::Ancestor;
    }
    match commit(folder, &format!("{base}^{{commit}}")) {
        Some(_) => BaseRelation::Rewritten,
        None => BaseRelation::Missing,
    }
}

/// The commits from one (not counted) to HEAD, newest first.
pub fn commits_since(folder: &Path, commit: &CommitId) -> Vec<Logged> {
    commits_between(folder, commit, None)
}

/// The commits from one (not counted) to another, or to HEAD, newest first.
pub fn commits_between(folder: &Path, from: &CommitId, to: Option<&CommitId>) -> Vec<Logged> {
    let range = format!("{from}..{}", to.map_or("HEAD", CommitId::as_str));
    let outcome = git(folder, &["log", LOGGED, "--no-color", "--no-show-signature", FORM, &range, "--"]);
    let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
    output.lines().filter_map(logged).collect()
}
