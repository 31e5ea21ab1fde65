//! Read-only git queries about the project: few child processes, no locks, and a timeout.

mod command;
mod diff_summary;
mod folder_guard;
mod git_writer;
mod index_files;
mod index_stat;
pub(crate) mod list_query;
mod programs;
mod protected;
mod read_only;
mod work_summary;

pub(crate) use command::{
    build_remote_git_command, git_path, offline_plimsoll_repository_command,
    plimsoll_repository_read_only_command,
};
pub(crate) use diff_summary::truncate_to_whole_lines;
pub use diff_summary::{ChangeSummary, summarize_changes_since};
pub(crate) use git_writer::{
    GitWriter, not_started_outcome, read_settings_disabling_all_drivers, run_write_command,
};
pub use index_files::{is_tracked, tracked_files_at_or_below};
pub use programs::AllowedPrograms;
pub(crate) use programs::remove_project_folders_from_search_path;
pub use protected::{
    GitAddError, ReferenceEntries, checked_out_branch_full_ref, entries_git_would_commit,
    entries_of_references_until_timeout, git_folder_identities_with_folder_prefix,
};
pub(crate) use read_only::{has_configured_filters, read_only_command, read_only_command_with_settings};
pub use work_summary::{
    ChangedFile, FileCommit, Hunk, LineCounts, RepositoryState, WorkBase, WorkQuery, WorkSummary,
    commits_of_file_with_changed_line_texts, format_last_merged_ranges_keeping_edited,
    start_filter_and_subject_queries, summarize_work,
};

use crate::time_limit::TimeLimit;
use crate::{CommandOutcome, run_without_stdin};
use plimsoll_domain::git_names::{CommitId, RepoPath};
use plimsoll_domain::record::GitCounts;
use plimsoll_domain::state::BaseRelation;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Git answers in milliseconds. On a cold disk or in a huge tree, a checkpoint continues without git's
/// result.
const HOOK_QUERY_TIMEOUT: Duration = Duration::from_secs(5);
/// Nobody waits for a run. On a busy machine it must not take a missing answer for a missing branch or commit.
const RUN_QUERY_TIMEOUT: Duration = Duration::from_secs(60);
static IS_RUN: AtomicBool = AtomicBool::new(false);

/// From now on this process waits for git as long as a run may, and not only as long as a hook.
pub fn use_query_timeout_of_runs() {
    IS_RUN.store(true, Ordering::Relaxed);
}

fn query_timeout() -> Duration {
    if IS_RUN.load(Ordering::Relaxed) { RUN_QUERY_TIMEOUT } else { HOOK_QUERY_TIMEOUT }
}
/// Queries the branch and the numbers of changed files for the status line, which waits at most `timeout`.
pub fn query_branch_and_change_counts(folder: &Path, timeout: Duration) -> ChangeCountResult {
    // For the full state of submodules, git would start another git in each.
    let arguments =
        ["status", "--porcelain=v2", "--branch", "--untracked-files=normal", "--ignore-submodules=dirty"];
    let limit = TimeLimit::from_now(timeout);
    let (outcome, has_filters) = match read_only::read_only_command_without_filters(folder, &arguments, limit)
    {
        Ok((command, has_filters)) => {
            (crate::run_with_short_grace_and_output_limit(command, None, limit.remaining()), has_filters)
        }
        Err(outcome) => (outcome, false),
    };
    match outcome {
        CommandOutcome { timed_out: true, .. } => ChangeCountResult::TimedOut,
        outcome if outcome.succeeded() => {
            let output = String::from_utf8_lossy(&outcome.stdout);
            let branch = output.lines().find_map(|line| line.strip_prefix("# branch.head "));
            let mut counts = parse_status_counts(&output);
            if has_filters {
                let modified_paths: Vec<String> =
                    output.lines().filter_map(path_if_only_unstaged).map(str::to_owned).collect();
                counts.modified -=
                    index_stat::files_under_filter_matching_index_stat(folder, &modified_paths, limit).len()
                        as u64;
            }
            ChangeCountResult::Counts(counts, branch.unwrap_or_default().to_owned())
        }
        _ => ChangeCountResult::Unavailable,
    }
}

/// Returns the path of a status line if the file is modified only in the working tree.
fn path_if_only_unstaged(line: &str) -> Option<&str> {
    line.strip_prefix("1 .M ")?.splitn(7, ' ').nth(6)
}

/// The result of [`query_branch_and_change_counts`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeCountResult {
    /// The counts and the name of the branch.
    Counts(GitCounts, String),
    TimedOut,
    /// Git is missing or fails, or the folder is not in a repository.
    Unavailable,
}

fn parse_status_counts(output: &str) -> GitCounts {
    let mut counts = GitCounts::default();
    for line in output.lines() {
        let mut fields = line.split(' ');
        match (fields.next(), fields.next()) {
            (Some("#"), Some("branch.ab")) => {
                let mut parse_number = || fields.next()?.get(1..)?.parse().ok();
                counts.ahead = parse_number().unwrap_or(0);
                counts.behind = parse_number().unwrap_or(0);
            }
            (Some("1" | "2"), Some(status_code)) => {
                counts.staged += u64::from(!status_code.starts_with('.'));
                counts.modified += u64::from(!status_code.ends_with('.'));
            }
            (Some("u"), _) => counts.conflicts += 1,
            (Some("?"), _) => counts.untracked += 1,
            _ => {}
        }
    }
    counts
}

/// Returns the commit id of HEAD; `None` outside git or before the first commit.
pub fn head_commit(folder: &Path) -> Option<CommitId> {
    object_id_of_revision(folder, "HEAD")
}

/// Returns the id of the object that a revision names. `reference` begins with `refs/`, is `HEAD`, or is a
/// revision made from an id.
pub(crate) fn object_id_of_revision(folder: &Path, reference: &str) -> Option<CommitId> {
    let outcome = run_query(folder, &["rev-parse", "--verify", "--quiet", reference]);
    outcome.succeeded().then(|| CommitId::parse(&trimmed_stdout(&outcome)).ok()).flatten()
}

/// A commit as `git log` lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    pub id: CommitId,
    /// The commit time, in seconds since 1970.
    pub committed_at: i64,
    /// The first line of its message.
    pub subject: String,
}

/// Returns the commit at HEAD; `None` outside git or before the first commit.
pub fn newest_commit(folder: &Path) -> Option<LogEntry> {
    let outcome = run_query(folder, &["log", "-n1", "--no-color", "--no-show-signature", LOG_FORMAT, "--"]);
    parse_log_line(String::from_utf8_lossy(&outcome.stdout).lines().next()?)
}

const LOG_FORMAT: &str = "--format=%H%x1f%ct%x1f%s";
/// The most commits that are listed.
const MAX_LOG_COUNT_OPTION: &str = "-n5000";

/// Returns the commits of HEAD since a time (RFC 3339), oldest first; empty outside git.
pub fn commits_since_time_oldest_first(folder: &Path, start_time: &str) -> Vec<LogEntry> {
    let since_option = format!("--since={start_time}");
    let outcome = run_query(
        folder,
        &["log", MAX_LOG_COUNT_OPTION, "--no-color", "--no-show-signature", &since_option, LOG_FORMAT, "--"],
    );
    let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let mut commits: Vec<LogEntry> = output.lines().filter_map(parse_log_line).collect();
    commits.reverse();
    commits
}

fn parse_log_line(line: &str) -> Option<LogEntry> {
    let mut fields = line.splitn(3, '\u{1f}');
    let (id, committed_at, subject) = (fields.next()?, fields.next()?, fields.next()?);
    Some(LogEntry {
        id: CommitId::parse(id).ok()?,
        committed_at: committed_at.parse().ok()?,
        subject: subject.to_owned(),
    })
}

pub(crate) fn run_query(folder: &Path, arguments: &[&str]) -> CommandOutcome {
    let limit = TimeLimit::from_now(query_timeout());
    read_only_command(folder, arguments, limit)
        .map_or_else(|outcome| outcome, |command| run_without_stdin(command, limit.remaining()))
}

pub(crate) fn trimmed_stdout(outcome: &CommandOutcome) -> String {
    String::from_utf8_lossy(&outcome.stdout).trim().to_owned()
}

/// Returns the paths that differ between a commit and HEAD, relative to `folder`; `None` if git fails, for
/// example because the commit does not exist.
pub fn paths_changed_from_base_to_head(folder: &Path, base: &CommitId) -> Option<Vec<String>> {
    let outcome = run_query(
        folder,
        &["diff", "--name-only", "--no-renames", "--relative", "-z", base.as_str(), "HEAD", "--"],
    );
    let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
    outcome.succeeded().then(|| output.split_terminator('\0').map(str::to_owned).collect())
}

/// The line counts of a file that differs between two commits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileLineChanges {
    /// The path relative to the folder.
    pub path: String,
    /// The number of added lines; 0 for a binary file.
    pub added: u64,
    pub removed: u64,
    /// True if the file is missing in the second commit.
    pub is_deleted: bool,
}

/// Returns the files of `base` that are changed or deleted in `end_commit`, with their line counts. Without
/// `end_commit`, `base` is compared with the working tree, or with HEAD if any filter is configured. Returns
/// nothing if one of the commits does not exist.
pub fn line_changes_of_base_files(
    folder: &Path,
    base: &CommitId,
    end_commit: Option<&CommitId>,
) -> Vec<FileLineChanges> {
    // With filters disabled, a file that a filter changes would differ from every commit.
    let has_filters = has_configured_filters(folder, TimeLimit::from_now(query_timeout())).unwrap_or(true);
    let end_revision = end_commit.map(CommitId::as_str).or(if has_filters { Some("HEAD") } else { None });
    let run_diff = |options: &[&str]| {
        let diff_arguments = [&["diff"][..], options, &["--no-renames", "--relative", "-z", base.as_str()]];
        let arguments: Vec<&str> =
            diff_arguments.concat().into_iter().chain(end_revision).chain(["--"]).collect();
        String::from_utf8_lossy(&run_query(folder, &arguments).stdout).into_owned()
    };
    let deleted_output = run_diff(&["--name-only", "--diff-filter=D"]);
    let is_deleted_path =
        |path: &str| deleted_output.split_terminator('\0').any(|deleted_path| deleted_path == path);
    let numstat_output = run_diff(&["--numstat", "--diff-filter=MDT"]);
    let parse_numstat_line = |line: &str| {
        let mut fields = line.splitn(3, '\t');
        let mut parse_count = || fields.next().map(|number| number.parse().unwrap_or(0));
        let (added, removed) = (parse_count()?, parse_count()?);
        let path = fields.next()?.to_owned();
        Some(FileLineChanges { is_deleted: is_deleted_path(&path), path, added, removed })
    };
    numstat_output.split_terminator('\0').filter_map(parse_numstat_line).collect()
}

/// Returns the paths that a commit changed, including deleted ones, relative to `folder`.
pub fn paths_changed_in_commit(folder: &Path, commit: &CommitId) -> Vec<String> {
    let options =
        ["diff-tree", "--root", "--no-commit-id", "--name-only", "--no-renames", "--relative", "-r", "-z"];
    let outcome = run_query(folder, &[&options[..], &[commit.as_str(), "--"]].concat());
    let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
    output.split_terminator('\0').map(str::to_owned).collect()
}

/// Returns the path of a commit's loose object file, which exists until git packs the object. The mtime of that
/// file is the time of the commit, to the nanosecond.
pub fn loose_object_path(folder: &Path, commit: &CommitId) -> Option<PathBuf> {
    let (directory_name, file_name) = commit.as_str().split_at_checked(2)?;
    let outcome =
        run_query(folder, &["rev-parse", "--git-path", &format!("objects/{directory_name}/{file_name}")]);
    outcome.succeeded().then(|| folder.join(trimmed_stdout(&outcome)))
}

/// Returns the parent of a commit; `None` for the first commit.
pub fn parent_commit(folder: &Path, id: &CommitId) -> Option<CommitId> {
    object_id_of_revision(folder, &format!("{id}^"))
}

/// Returns the tree of a commit.
pub fn tree_of_commit(folder: &Path, id: &CommitId) -> Option<CommitId> {
    object_id_of_revision(folder, &format!("{id}^{{tree}}"))
}

/// Returns the content of a file in a commit, as git stores it; `None` if the commit has no such file.
pub fn file_content_in_commit(folder: &Path, id: &CommitId, file: &RepoPath) -> Option<Vec<u8>> {
    let outcome = run_query(folder, &["cat-file", "blob", &format!("{id}:{}", file.as_str())]);
    outcome.succeeded().then_some(outcome.stdout)
}

/// Returns the commit that a revision from the user names, for example a branch, a tag or an id.
pub fn resolve_user_revision(folder: &Path, revision: &str) -> Option<CommitId> {
    let revision = format!("{revision}^{{commit}}");
    let outcome = run_query(folder, &["rev-parse", "--verify", "--quiet", "--end-of-options", &revision]);
    outcome
        .succeeded()
        .then(|| trimmed_stdout(&outcome).lines().last().and_then(|id| CommitId::parse(id).ok()))
        .flatten()
}

/// Returns the message of a commit.
pub fn commit_message(folder: &Path, id: &CommitId) -> String {
    trimmed_stdout(&run_query(
        folder,
        &["log", "-n1", "--no-color", "--no-show-signature", "--format=%B", id.as_str(), "--"],
    ))
}

/// Returns true if a commit is HEAD or an ancestor of HEAD.
pub fn is_head_or_ancestor(folder: &Path, commit: &CommitId) -> bool {
    run_query(folder, &["merge-base", "--is-ancestor", commit.as_str(), "HEAD"]).succeeded()
}

/// Returns the relation of a run's base commit to HEAD: ancestor, rewritten or missing.
pub fn classify_base_ancestor_rewritten_or_missing(folder: &Path, base: &CommitId) -> BaseRelation {
    let outcome = run_query(folder, &["merge-base", "--is-ancestor", base.as_str(), "HEAD"]);
    if outcome.succeeded() {
        return BaseRelation::Ancestor;
    }
    match object_id_of_revision(folder, &format!("{base}^{{commit}}")) {
        Some(_) => BaseRelation::Rewritten,
        None => BaseRelation::Missing,
    }
}

/// Returns the commits after `commit` up to HEAD, newest first.
pub fn commits_since(folder: &Path, commit: &CommitId) -> Vec<LogEntry> {
    commits_between_newest_first(folder, commit, None)
}

/// Returns the commits after `base` up to `end`, or up to HEAD, newest first.
pub fn commits_between_newest_first(folder: &Path, base: &CommitId, end: Option<&CommitId>) -> Vec<LogEntry> {
    let range = format!("{base}..{}", end.map_or("HEAD", CommitId::as_str));
    let outcome = run_query(
        folder,
        &["log", MAX_LOG_COUNT_OPTION, "--no-color", "--no-show-signature", LOG_FORMAT, &range, "--"],
    );
    let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
    output.lines().filter_map(parse_log_line).collect()
}
