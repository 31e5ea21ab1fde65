//! A summary of the work since a commit: files, lines, enclosing functions, and commits.

use super::read_only::{DisabledFilters, FilterQuery};
use super::{run_query, trimmed_stdout};
use crate::time_limit::TimeLimit;
use crate::{CommandOutcome, child};
use plimsoll_domain::git_names::{CommitId, RepoPath};
use plimsoll_domain::handoff::GitFacts;
use plimsoll_domain::state::CommitRef;
use std::path::Path;

/// Maximum number of line ranges that are listed for one file.
const MAX_LISTED_RANGES: usize = 12;
/// Limits the commits that are read to the newest 50.
const MAX_COUNT_OPTION: &str = "-n50";
/// With a lower threshold, git would report a new file as renamed if it only begins with the same lines as a
/// deleted one.
const RENAME_DETECTION_OPTION: &str = "--find-renames=90%";
/// Maximum length of a heading.
const MAX_HEADING_CHARS: usize = 60;

/// The point from which changes count as work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkBase<'a> {
    /// This commit: later commits belong to the work.
    Commit(&'a CommitId),
    /// Before the first commit: every commit belongs to the work.
    BeforeFirstCommit,
    /// A commit that HEAD no longer contains, because it was amended, rebased or reset: the two trees are
    /// compared.
    RewrittenCommit(&'a CommitId),
    /// HEAD: only uncommitted changes belong to the work.
    Head,
}

impl<'a> WorkBase<'a> {
    /// Returns true if this is [`WorkBase::Commit`] with this id.
    fn is_commit_with_id(self, id: &str) -> bool {
        matches!(self, WorkBase::Commit(commit) if commit.as_str() == id)
    }

    /// Returns the revision with which `git diff` compares the work.
    fn base_revision_or_empty_tree(self, head_id: &str) -> &'a str {
        match self {
            WorkBase::Commit(commit) | WorkBase::RewrittenCommit(commit) => commit.as_str(),
            WorkBase::BeforeFirstCommit if head_id.len() > SHA1_LENGTH => EMPTY_TREE_SHA256,
            WorkBase::BeforeFirstCommit => EMPTY_TREE_SHA1,
            WorkBase::Head => "HEAD",
        }
    }
}

/// The number of hex digits of a SHA-1 id; ids of SHA-256 are longer.
const SHA1_LENGTH: usize = 40;
/// The empty tree. Git knows its id in every repository, even if no object has it.
const EMPTY_TREE_SHA1: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const EMPTY_TREE_SHA256: &str = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";

/// The changed files and the commits of the work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkSummary {
    /// The current state of the repository.
    pub facts: GitFacts,
    /// The files: those with uncommitted changes first, then those with committed changes only.
    pub files: Vec<ChangedFile>,
    /// The commits, newest first.
    pub commits: Vec<CommitRef>,
}

/// A file that the work changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedFile {
    /// The path relative to the folder.
    pub path: String,
    /// The kind of change: `modified`, `new, untracked`, `deleted`, `renamed from …`.
    pub change_kind: String,
    /// The changed lines of the uncommitted change, else of the newest commit that touched the file.
    pub hunks: Vec<Hunk>,
    /// True if the file has no uncommitted change.
    pub is_committed: bool,
    /// True if the file is deleted.
    pub is_deleted: bool,
    /// The lines that the whole work added and removed; `None` if git does not count them.
    pub line_counts: Option<LineCounts>,
    /// True if excluded commits changed the file, too: the counts include their lines.
    pub has_excluded_commits: bool,
}

/// The numbers of lines that differ from the start of the work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineCounts {
    pub added: u64,
    pub removed: u64,
}

/// A range of adjacent changed lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hunk {
    /// The first line in the new file, counted from 1.
    pub first_line: u64,
    pub last_line: u64,
    /// The function or section that contains the lines, as git reports it; empty if unknown.
    pub heading: String,
}

/// A commit that touched one file, with its changes to that file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCommit {
    pub id: CommitId,
    /// The commit time, in seconds since 1970.
    pub committed_at: i64,
    pub added_lines: Vec<String>,
    pub removed_lines: Vec<String>,
}

/// Summarizes all changes in a folder since `work_base`, by any program, without the commits in
/// `excluded_commits`. Returns `None` outside git.
pub fn summarize_work(
    folder: &Path,
    work_base: WorkBase<'_>,
    excluded_commits: &[String],
) -> Option<WorkSummary> {
    Some(
        start_filter_and_subject_queries(folder)?
            .wait_and_read_uncommitted_changes()?
            .into_work_summary(work_base, excluded_commits),
    )
}

/// Starts the first git queries for a work summary; the caller can do other work meanwhile. Returns `None`
/// outside git.
pub fn start_filter_and_subject_queries(folder: &Path) -> Option<WorkQuery<'_>> {
    let limit = TimeLimit::from_now(super::query_timeout());
    let filter_query = super::read_only::start_filter_query(folder, limit).ok()?;
    let subject_query =
        super::read_only_command(folder, &["log", "-1", "--format=%s"], limit).and_then(|command| {
            child::start_in_new_process_group(command, child::ChildOptions::with_timeout(limit.remaining()))
        });
    Some(WorkQuery { folder, filter_query, subject_query })
}

/// The running git queries for a work summary.
pub struct WorkQuery<'a> {
    folder: &'a Path,
    filter_query: FilterQuery,
    /// The query for the subject of HEAD; an error if it could not be started.
    subject_query: Result<child::RunningChild<'static>, CommandOutcome>,
}

impl std::fmt::Debug for WorkQuery<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Begun").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl<'a> WorkQuery<'a> {
    /// Waits for the queries and reads the uncommitted changes with `git status`. Returns `None` if git fails.
    pub fn wait_and_read_uncommitted_changes(self) -> Option<RepositoryState<'a>> {
        let WorkQuery { folder, filter_query, subject_query } = self;
        let limit = TimeLimit::from_now(super::query_timeout());
        // Changes inside a submodule could be reported only by a git running inside it.
        let options = ["--porcelain=v2", "--branch", "--untracked-files=all", "--ignore-submodules=dirty"];
        let arguments = [&["status"], &options[..], &["-z", "--", "."]].concat();
        let (status_outcome, disabled_filters) = match filter_query.wait_and_disable_filters() {
            Ok(disabled_filters) => (
                crate::run_without_stdin(
                    disabled_filters.read_only_command(folder, &arguments),
                    limit.remaining(),
                ),
                disabled_filters,
            ),
            Err(outcome) => (outcome, DisabledFilters::default()),
        };
        let subject_outcome = subject_query.map(child::RunningChild::wait_with_output);
        if status_outcome.timed_out {
            let file_list_error = Some("git status took too long".into());
            let facts = GitFacts { branch: "?".into(), file_list_error, ..GitFacts::default() };
            return Some(RepositoryState {
                folder,
                disabled_filters,
                uncommitted_work: WorkSummary { facts, ..WorkSummary::default() },
            });
        }
        if !status_outcome.succeeded() {
            return None;
        }
        let (mut facts, mut files) = parse_status(&String::from_utf8_lossy(&status_outcome.stdout));
        if disabled_filters.has_filters {
            let is_modified = |file: &&ChangedFile| file.change_kind == MODIFIED;
            let modified_paths: Vec<String> =
                files.iter().filter(is_modified).map(|file| file.path.clone()).collect();
            let unchanged_paths =
                super::index_stat::files_under_filter_matching_index_stat(folder, &modified_paths, limit);
            files.retain(|file| !unchanged_paths.contains(&file.path));
        }
        // `--porcelain` lists paths relative to the root of the working tree, whatever the current folder.
        let prefix = prefix_in_working_tree(folder);
        for file in &mut files {
            file.path = file.path.strip_prefix(&prefix).unwrap_or(&file.path).to_owned();
        }
        if facts.head_commit.is_some() {
            facts.head_subject = subject_outcome.map(|outcome| trimmed_stdout(&outcome)).unwrap_or_default();
        }
        Some(RepositoryState {
            folder,
            disabled_filters,
            uncommitted_work: WorkSummary { facts, files, commits: Vec::new() },
        })
    }
}

/// HEAD and the uncommitted changes, which are read before the base of the work is known.
pub struct RepositoryState<'a> {
    folder: &'a Path,
    disabled_filters: DisabledFilters,
    uncommitted_work: WorkSummary,
}

impl std::fmt::Debug for RepositoryState<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Look").field("work", &self.uncommitted_work).finish_non_exhaustive()
    }
}

impl RepositoryState<'_> {
    /// Returns true if `work_base` is the commit at HEAD, so that nothing was committed since.
    pub fn is_base_at_head(&self, work_base: WorkBase<'_>) -> bool {
        self.uncommitted_work
            .facts
            .head_commit
            .as_deref()
            .is_some_and(|head| work_base.is_commit_with_id(head))
    }

    /// Summarizes all changes since `work_base`, by any program, without the commits in `excluded_commits`.
    pub fn into_work_summary(self, work_base: WorkBase<'_>, excluded_commits: &[String]) -> WorkSummary {
        let RepositoryState { folder, disabled_filters, uncommitted_work: mut work } = self;
        if let Some(head) = work.facts.head_commit.clone() {
            let is_tracked = |file: &ChangedFile| file.change_kind != UNTRACKED;
            let needs_line_counts = !matches!(work_base, WorkBase::Head)
                && !work_base.is_commit_with_id(&head)
                || work.files.iter().any(is_tracked);
            // Git counts lines while it is queried for hunks and commits.
            let line_count_query = needs_line_counts
                .then(|| start_line_count_query(folder, &disabled_filters, work_base, &head));
            add_uncommitted_hunks(folder, &disabled_filters, &mut work);
            add_committed_changes(folder, &disabled_filters, work_base, &head, excluded_commits, &mut work);
            if let Some(Ok(line_count_query)) = line_count_query {
                let outcome = line_count_query.wait_with_output();
                if outcome.succeeded() {
                    apply_line_counts_or_mark_submodules(
                        &String::from_utf8_lossy(&outcome.stdout),
                        disabled_filters.has_filters,
                        &mut work.files,
                    );
                }
            }
        }
        work
    }
}

/// Returns the commits since `work_base` that touched one file, newest first, with the changed lines.
pub fn commits_of_file_with_changed_line_texts(
    folder: &Path,
    work_base: WorkBase<'_>,
    file: &RepoPath,
) -> Vec<FileCommit> {
    let Some(commit_range) = commit_range_unless_base_is_head(work_base) else { return Vec::new() };
    let outcome = run_patch_log(folder, &commit_range, &["--no-renames", "--", &file.to_literal_pathspec()]);
    if !outcome.succeeded() {
        return Vec::new();
    }
    let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let mut commits: Vec<FileCommit> = Vec::new();
    // Before a patch's first hunk stand the lines `--- a/FILE` and `+++ b/FILE`; in a hunk, such lines are content.
    let mut is_in_hunk = false;
    for line in output.lines() {
        if let Some(fields) = line.strip_prefix(COMMIT_HEADER_PREFIX) {
            is_in_hunk = false;
            let mut fields = fields.splitn(3, '\u{1f}');
            let Ok(id) = CommitId::parse(fields.next().unwrap_or_default()) else { continue };
            let committed_at = fields.next().and_then(|text| text.parse().ok()).unwrap_or(0);
            commits.push(FileCommit { id, committed_at, added_lines: Vec::new(), removed_lines: Vec::new() });
        } else if let Some(commit) = commits.last_mut() {
            is_in_hunk = !line.starts_with("diff --git ") && (is_in_hunk || line.starts_with("@@ "));
            if !is_in_hunk {
                continue;
            }
            if let Some(added) = line.strip_prefix('+') {
                commit.added_lines.push(added.to_owned());
            } else if let Some(removed) = line.strip_prefix('-') {
                commit.removed_lines.push(removed.to_owned());
            }
        }
    }
    commits
}

/// Formats line ranges as in `3-9, 45-120`. Ranges at most three lines apart are merged. If there are too
/// many, only the last ones and the one that contains `last_edited` are listed.
pub fn format_last_merged_ranges_keeping_edited(
    ranges: &[(u64, u64)],
    last_edited: Option<(u64, u64)>,
) -> String {
    let mut merged_ranges: Vec<(u64, u64)> = Vec::new();
    for range in ranges {
        match merged_ranges.last_mut() {
            Some(last_range) if range.0 <= last_range.1 + 3 => last_range.1 = last_range.1.max(range.1),
            _ => merged_ranges.push(*range),
        }
    }
    let omitted_count = merged_ranges.len().saturating_sub(MAX_LISTED_RANGES);
    let (omitted_ranges, listed_ranges) = merged_ranges.split_at(omitted_count);
    let contains_last_edited =
        |range: &&(u64, u64)| last_edited.is_some_and(|(first, last)| range.0 <= first && last <= range.1);
    let format_range = |(first, last): &(u64, u64)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let ellipsis = || "…".to_owned();
    let mut parts: Vec<String> = Vec::new();
    if let Some(index) = omitted_ranges.iter().position(|range| contains_last_edited(&range)) {
        parts.extend((index > 0).then(ellipsis));
        parts.push(format_range(&omitted_ranges[index]));
        parts.extend((index + 1 < omitted_count).then(ellipsis));
    } else {
        parts.extend((omitted_count > 0).then(ellipsis));
    }
    parts.extend(listed_ranges.iter().map(format_range));
    parts.join(", ")
}

/// Options for a patch without context lines and without anything that the user's configuration could add.
const PLAIN_PATCH_OPTIONS: [&str; 6] = [
    "--unified=0",
    "--inter-hunk-context=0",
    "--no-color",
    "--relative",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

fn add_uncommitted_hunks(folder: &Path, disabled_filters: &DisabledFilters, work: &mut WorkSummary) {
    // Git shows no lines of untracked files.
    if work.files.iter().all(|file| file.change_kind == UNTRACKED) {
        return;
    }
    let arguments =
        [&["diff", "HEAD", "--no-renames", "--ignore-submodules=dirty"], &PLAIN_PATCH_OPTIONS[..]].concat();
    let limit = TimeLimit::from_now(super::query_timeout());
    let diff_outcome =
        crate::run_without_stdin(disabled_filters.read_only_command(folder, &arguments), limit.remaining());
    if diff_outcome.timed_out {
        work.facts.file_list_error = Some("git diff took too long: no line ranges".into());
    }
    let patches = parse_changed_files(&String::from_utf8_lossy(&diff_outcome.stdout));
    for file in &mut work.files {
        if let Some(patch) = patches.iter().find(|patch| patch.path == file.path) {
            file.hunks.clone_from(&patch.hunks);
        }
    }
}

/// Starts a diff that counts the lines changed since the base. With filters disabled, a file that a filter
/// changes would differ from every commit, so the diff then ends at HEAD.
fn start_line_count_query(
    folder: &Path,
    disabled_filters: &DisabledFilters,
    work_base: WorkBase<'_>,
    head_id: &str,
) -> Result<child::RunningChild<'static>, CommandOutcome> {
    let options = [
        "diff",
        "--raw",
        "--numstat",
        "-z",
        "--relative",
        RENAME_DETECTION_OPTION,
        "--ignore-submodules=dirty",
    ];
    let end_arguments: &[&str] = if disabled_filters.has_filters { &["HEAD", "--"] } else { &["--"] };
    let arguments = [&options[..], &[work_base.base_revision_or_empty_tree(head_id)], end_arguments].concat();
    child::start_in_new_process_group(
        disabled_filters.read_only_command(folder, &arguments),
        child::ChildOptions::with_timeout(super::query_timeout()),
    )
}

/// Sets the line counts of the files, and the kind of change of submodules. If `has_filters` is true, `output`
/// lacks uncommitted changes.
fn apply_line_counts_or_mark_submodules(output: &str, has_filters: bool, files: &mut [ChangedFile]) {
    let counted_files = parse_line_counts_and_submodules(output);
    for file in files {
        let counted_file = counted_files.iter().find(|candidate| candidate.path == file.path);
        if counted_file.is_some_and(|counted_file| counted_file.is_submodule) {
            (file.change_kind, file.hunks) = (SUBMODULE.to_owned(), Vec::new());
        } else if file.change_kind != UNTRACKED && (file.is_committed || !has_filters) {
            // A tracked file that the diff does not list is unchanged since the base, or exists neither
            // there nor now.
            let is_unchanged = counted_file.is_none() && !file.is_deleted;
            file.line_counts = counted_file
                .and_then(|counted_file| counted_file.counts)
                .or_else(|| is_unchanged.then(LineCounts::default));
        }
    }
}

/// One file in the output of `diff --raw --numstat`.
#[derive(Debug, PartialEq, Eq)]
struct CountedFile {
    path: String,
    /// `None` for a binary file.
    counts: Option<LineCounts>,
    is_submodule: bool,
}

/// Parses the output of `diff --raw --numstat -z`: first one entry for each file with its modes, then one
/// with its counts. A renamed file has its old and its new path in separate fields.
fn parse_line_counts_and_submodules(output: &str) -> Vec<CountedFile> {
    let mut files: Vec<CountedFile> = Vec::new();
    let mut submodule_paths: Vec<&str> = Vec::new();
    let mut fields = output.split_terminator('\0');
    while let Some(field) = fields.next() {
        if let Some(raw_entry) = field.strip_prefix(':') {
            let is_renamed =
                raw_entry.rsplit(' ').next().is_some_and(|status| status.starts_with(['R', 'C']));
            let path = if is_renamed { fields.nth(1) } else { fields.next() };
            let is_submodule = raw_entry.split(' ').take(2).any(|mode| mode == "160000");
            submodule_paths.extend(path.filter(|_| is_submodule));
            continue;
        }
        let mut numstat_fields = field.splitn(3, '\t');
        let (Some(added), Some(removed), Some(path)) =
            (numstat_fields.next(), numstat_fields.next(), numstat_fields.next())
        else {
            continue;
        };
        let Some(path) = (if path.is_empty() { fields.nth(1) } else { Some(path) }) else { break };
        let counts = added.parse().ok().zip(removed.parse().ok());
        files.push(CountedFile {
            path: path.to_owned(),
            counts: counts.map(|(added, removed)| LineCounts { added, removed }),
            is_submodule: submodule_paths.contains(&path),
        });
    }
    files
}

/// The first character of a commit's header line: no line of a patch begins with it.
const COMMIT_HEADER_PREFIX: char = '\u{1e}';
const COMMIT_FORMAT: &str = "--format=%x1e%H%x1f%ct%x1f%s";

fn commit_range_unless_base_is_head(work_base: WorkBase<'_>) -> Option<String> {
    match work_base {
        WorkBase::Commit(base) | WorkBase::RewrittenCommit(base) => Some(format!("{base}..HEAD")),
        WorkBase::BeforeFirstCommit => Some("HEAD".to_owned()),
        WorkBase::Head => None,
    }
}

fn run_patch_log(folder: &Path, range: &str, more_arguments: &[&str]) -> CommandOutcome {
    let arguments = ["log", "-p", MAX_COUNT_OPTION, "--no-show-signature", COMMIT_FORMAT, range];
    run_query(folder, &[&arguments[..], &PLAIN_PATCH_OPTIONS[..], more_arguments].concat())
}

/// Adds the commits since the base and the files that they changed, each with its newest change. Adds nothing
/// if the base commit no longer exists.
fn add_committed_changes(
    folder: &Path,
    disabled_filters: &DisabledFilters,
    work_base: WorkBase<'_>,
    head_id: &str,
    excluded_commits: &[String],
    work: &mut WorkSummary,
) {
    if work_base.is_commit_with_id(head_id) {
        return;
    }
    let Some(commit_range) = commit_range_unless_base_is_head(work_base) else { return };
    let outcome = run_patch_log(folder, &commit_range, &[RENAME_DETECTION_OPTION, "--"]);
    if outcome.timed_out {
        work.facts.file_list_error = Some("git log took too long: committed files may be missing".into());
    }
    let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let mut renamed_paths: Vec<String> = Vec::new();
    let mut excluded_paths: Vec<String> = Vec::new();
    for commit in output.split(COMMIT_HEADER_PREFIX).skip(1) {
        let (header, patch) = commit.split_once('\n').unwrap_or((commit, ""));
        let mut fields = header.splitn(3, '\u{1f}');
        let id = fields.next().unwrap_or_default().to_owned();
        if excluded_commits.contains(&id) {
            excluded_paths.extend(parse_changed_files(patch).into_iter().map(|file| file.path));
            continue;
        }
        let subject = plimsoll_domain::text::truncate_end(fields.nth(1).unwrap_or_default(), 80);
        work.commits.push(CommitRef { id, subject });
        if matches!(work_base, WorkBase::RewrittenCommit(_)) {
            continue;
        }
        for mut file in parse_changed_files(patch) {
            let is_listed = work.files.iter().any(|listed_file| listed_file.path == file.path);
            // Commits come newest first: a file that a later commit renamed is already listed under its new
            // name.
            let was_renamed_later = renamed_paths.contains(&file.path);
            if let Some(old_path) = file.change_kind.strip_prefix(RENAMED_FROM_PREFIX) {
                renamed_paths.push(old_path.to_owned());
            }
            if !is_listed && !was_renamed_later {
                file.is_committed = true;
                work.files.push(file);
            }
        }
    }
    if let WorkBase::RewrittenCommit(base) = work_base {
        add_committed_files_differing_from_base(folder, disabled_filters, base, work);
    }
    for file in &mut work.files {
        file.has_excluded_commits = excluded_paths.contains(&file.path);
    }
}

/// Adds the committed files that differ from a base commit which HEAD no longer contains. The patches of single
/// commits cannot be used: an amended commit also contains the lines of the commit that it replaced.
fn add_committed_files_differing_from_base(
    folder: &Path,
    disabled_filters: &DisabledFilters,
    base: &CommitId,
    work: &mut WorkSummary,
) {
    let arguments = [
        &["diff"],
        &PLAIN_PATCH_OPTIONS[..],
        &[RENAME_DETECTION_OPTION, "--ignore-submodules=dirty", base.as_str(), "HEAD", "--"],
    ]
    .concat();
    let limit = TimeLimit::from_now(super::query_timeout());
    let diff_outcome =
        crate::run_without_stdin(disabled_filters.read_only_command(folder, &arguments), limit.remaining());
    if diff_outcome.timed_out {
        work.facts.file_list_error = Some("git diff took too long: committed files may be missing".into());
    }
    for file in parse_changed_files(&String::from_utf8_lossy(&diff_outcome.stdout)) {
        if !work.files.iter().any(|listed_file| listed_file.path == file.path) {
            work.files.push(ChangedFile { is_committed: true, ..file });
        }
    }
}

/// Returns the path of the folder relative to the root of its working tree, with a slash at its end; git's
/// paths start at the root.
fn prefix_in_working_tree(folder: &Path) -> String {
    let root = folder.ancestors().find(|folder| folder.join(".git").exists());
    let relative_path = root
        .and_then(|root| folder.strip_prefix(root).ok())
        .map(|relative_path| relative_path.to_string_lossy());
    relative_path
        .filter(|relative_path| !relative_path.is_empty())
        .map_or(String::new(), |path| format!("{path}/"))
}

const RENAMED_FROM_PREFIX: &str = "renamed from ";

fn parse_status(output: &str) -> (GitFacts, Vec<ChangedFile>) {
    let mut facts = GitFacts::default();
    let mut files = Vec::new();
    let mut entries = output.split('\0');
    while let Some(entry) = entries.next() {
        let (kind, remaining_fields) = entry.split_once(' ').unwrap_or((entry, ""));
        match kind {
            "#" => parse_branch_header(remaining_fields, &mut facts),
            "1" => files.extend(
                remaining_fields
                    .splitn(8, ' ')
                    .nth(7)
                    .map(|path| new_changed_file(path, describe_status_change(remaining_fields))),
            ),
            "2" => {
                let path = remaining_fields.splitn(9, ' ').nth(8);
                // With `-z` the old path is a separate entry after the new one.
                let old_path = entries.next().unwrap_or_default();
                files.extend(
                    path.map(|path| new_changed_file(path, &format!("{RENAMED_FROM_PREFIX}{old_path}"))),
                );
            }
            "u" => files.extend(
                remaining_fields.splitn(10, ' ').nth(9).map(|path| new_changed_file(path, "conflict")),
            ),
            "?" => files.push(new_changed_file(remaining_fields, UNTRACKED)),
            _ => {}
        }
    }
    (facts, files)
}

fn parse_branch_header(line: &str, facts: &mut GitFacts) {
    match line.split_once(' ') {
        Some(("branch.oid", id)) if id != "(initial)" => facts.head_commit = Some(id.to_owned()),
        Some(("branch.head", name)) => {
            facts.branch = if name == "(detached)" { "HEAD (detached)".into() } else { name.into() }
        }
        _ => {}
    }
}

const MODIFIED: &str = "modified";
const UNTRACKED: &str = "new, untracked";
const DELETED: &str = "deleted";
const SUBMODULE: &str = "submodule at another commit";

fn describe_status_change(status_fields: &str) -> &'static str {
    let status_code = status_fields.get(..2).unwrap_or_default();
    match status_code {
        _ if status_code.contains('D') => DELETED,
        _ if status_code.contains('A') => "new, staged",
        _ if status_code.starts_with('.') => MODIFIED,
        _ if status_code.ends_with('.') => "modified, staged",
        _ => "modified, partly staged",
    }
}

fn new_changed_file(path: &str, change_kind: &str) -> ChangedFile {
    ChangedFile {
        path: path.to_owned(),
        change_kind: change_kind.to_owned(),
        is_deleted: change_kind == DELETED,
        ..ChangedFile::default()
    }
}

fn parse_changed_files(patch: &str) -> Vec<ChangedFile> {
    let mut files: Vec<ChangedFile> = Vec::new();
    let mut is_in_header = false;
    for line in patch.lines() {
        if let Some(paths) = line.strip_prefix("diff --git ") {
            is_in_header = true;
            files.push(new_changed_file(path_in_diff_header(paths).unwrap_or_default(), "modified"));
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        if is_in_header && !line.starts_with("@@ ") {
            apply_patch_header_line(line, file);
        } else if line.starts_with("@@ ") {
            is_in_header = false;
            file.hunks.extend(parse_hunk_header(line));
        } else if let (Some(added), Some(hunk)) = (line.strip_prefix('+'), file.hunks.last_mut()) {
            // Git's heading is the section before the changed lines. If an added line starts a section
            // itself, that section is the right one.
            if starts_section(added) {
                hunk.heading = clean_heading(added);
            }
        }
    }
    files.retain(|file| !file.path.is_empty());
    files
}

/// Returns the path in `a/PATH b/PATH` if both are equal. Binary files, empty files and mode changes have no
/// other line with the path; if the paths differ, later lines of the header contain them.
fn path_in_diff_header(paths: &str) -> Option<&str> {
    let (old_path, new_path) = paths.split_at_checked(paths.len() / 2)?;
    let old_path = old_path.trim_matches('"').strip_prefix("a/")?;
    let new_path = new_path.strip_prefix(' ')?.trim_matches('"').strip_prefix("b/")?;
    (old_path == new_path).then_some(new_path)
}

fn apply_patch_header_line(line: &str, file: &mut ChangedFile) {
    let clean_path = |text: &str, side_prefix: &str| {
        // Git ends a path that contains a space with a tab.
        let text = text.trim_end_matches('\t').trim_matches('"');
        text.strip_prefix(side_prefix).unwrap_or(text).to_owned()
    };
    if let Some(old_path) = line.strip_prefix("rename from ") {
        file.change_kind = format!("{RENAMED_FROM_PREFIX}{}", clean_path(old_path, ""));
    } else if let Some(new_path) = line.strip_prefix("rename to ") {
        file.path = clean_path(new_path, "");
    } else if line.starts_with("new file mode") {
        file.change_kind = "new".to_owned();
    } else if line.starts_with("deleted file mode") {
        file.change_kind = DELETED.to_owned();
        file.is_deleted = true;
    } else if file.is_deleted
        && let Some(old_path) = line.strip_prefix("--- ")
    {
        file.path = clean_path(old_path, "a/");
    } else if let Some(new_path) = line.strip_prefix("+++ ").filter(|path| *path != "/dev/null") {
        file.path = clean_path(new_path, "b/");
    }
}

fn parse_hunk_header(line: &str) -> Option<Hunk> {
    let mut parts = line.splitn(3, "@@");
    let (ranges, section) = (parts.nth(1)?, parts.next().unwrap_or_default());
    let new_range = ranges.split(' ').find_map(|part| part.strip_prefix('+'))?;
    let (start, count) = new_range.split_once(',').unwrap_or((new_range, "1"));
    let (start, count): (u64, u64) = (start.parse().ok()?, count.parse().ok()?);
    // If lines were only removed at the beginning of a file, git reports line 0.
    let first_line = start.max(1);
    let heading = if is_section_heading_or_definition(section.trim_start()) {
        clean_heading(section)
    } else {
        String::new()
    };
    Some(Hunk { first_line, last_line: first_line + count.saturating_sub(1), heading })
}

/// Returns true if an unindented line starts a function or section. This is stricter than git's own rule for
/// headings, because it is applied to every added line.
fn starts_section(line: &str) -> bool {
    let is_unindented =
        line.starts_with(|character: char| character.is_alphabetic() || character == '_' || character == '$');
    is_unindented && line.trim_end().ends_with(['{', ':', '(', ')'])
}

/// Returns true if a heading from git names a function or section. Git takes any unindented line as a
/// heading, even a line of prose, and cuts long lines, so the end may be missing.
fn is_section_heading_or_definition(line: &str) -> bool {
    const KEYWORDS: [&str; 12] = [
        "fn",
        "def",
        "class",
        "function",
        "struct",
        "enum",
        "trait",
        "impl",
        "interface",
        "module",
        "type",
        "func",
    ];
    let has_keyword = line.split_whitespace().take(4).any(|word| KEYWORDS.contains(&word));
    starts_section(line) || has_keyword
}

fn clean_heading(line: &str) -> String {
    let line = plimsoll_domain::text::to_safe_single_line(line);
    plimsoll_domain::text::truncate_end(line.trim_end_matches(['{', ' ', ':']), MAX_HEADING_CHARS)
}

#[cfg(test)]
mod tests;
