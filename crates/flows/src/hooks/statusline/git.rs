//! The git segment. Operations in progress are read from git's files. Changes are counted with `git status`, which runs
//! again if HEAD or the index has changed or the counts are older than a few seconds.

use super::StatusLineInvocation;
use plimsoll_domain::record::{GitRecord, StatusLineRecord};
use plimsoll_domain::statusline::SegmentKind;
use plimsoll_launcher::git::ChangeCountResult;
use plimsoll_policy::statusline::GitView;
use plimsoll_store::layout::find_git_folder;
use plimsoll_store::{clock, disk};
use std::path::Path;
use std::time::UNIX_EPOCH;

/// Maximum age of the counts. They expire because an edit changes neither HEAD nor the index.
const MAX_COUNTS_AGE_MS: i64 = 5_000;
/// How long to wait after a timeout before `git status` runs again.
const TIMEOUT_RETRY_INTERVAL_MS: i64 = 60_000;
/// The fields that need `git status`.
const COUNT_FIELDS: [&str; 6] = ["ahead", "behind", "conflicts", "staged", "modified", "untracked"];

/// Content of HEAD in a repository with `--ref-format=reftable`, where only git can read the branch.
const REFTABLE_HEAD: &str = "ref: refs/heads/.invalid";

/// Returns the git values of a folder, and stores the result of `git status` in the record. `None` outside a repository.
pub(super) fn build_git_view_caching_counts_in_record(
    invocation: &StatusLineInvocation<'_>,
    folder: &Path,
    record: &mut StatusLineRecord,
) -> Option<GitView> {
    let git_folder = find_git_folder(folder)?;
    let head = read_trimmed_text(&git_folder.join("HEAD"))?;
    let mut view = view_from_git_files(&git_folder, &head);
    let line_settings = &invocation.settings.statusline;
    let head_names_branch = head != REFTABLE_HEAD;
    if !head_names_branch || line_settings.uses_any_field(SegmentKind::Git, &COUNT_FIELDS) {
        let head_and_index_stamp = format!("{head} {}", index_modified_nanos(&git_folder));
        let previous = record.git.take().filter(|record| Path::new(&record.folder) == folder);
        let git_record = query_git_status_cached(
            folder,
            head_and_index_stamp,
            previous,
            line_settings.segment_timeout(SegmentKind::Git.name()),
        );
        (view.counts, view.is_stale) = (git_record.counts, git_record.timed_out);
        if !head_names_branch {
            view.is_detached = git_record.branch == "(detached)";
            view.branch =
                if git_record.branch.is_empty() { "?".to_owned() } else { git_record.branch.clone() };
        }
        record.git = Some(git_record);
    }
    Some(view)
}

fn query_git_status_cached(
    folder: &Path,
    head_and_index_stamp: String,
    previous: Option<GitRecord>,
    timeout: std::time::Duration,
) -> GitRecord {
    let now = clock::now().timestamp_millis();
    if let Some(previous) = previous.as_ref() {
        let age = now - previous.queried_at_ms;
        let is_fresh = if previous.timed_out {
            age < TIMEOUT_RETRY_INTERVAL_MS
        } else {
            age < MAX_COUNTS_AGE_MS && previous.head_and_index_stamp == head_and_index_stamp
        };
        if age >= 0 && is_fresh {
            return previous.clone();
        }
    }
    let previous = previous.unwrap_or_default();
    let (counts, branch, timed_out) =
        match plimsoll_launcher::git::query_branch_and_change_counts(folder, timeout) {
            ChangeCountResult::Counts(counts, branch) => (Some(counts), branch, false),
            ChangeCountResult::TimedOut => (previous.counts, previous.branch, true),
            ChangeCountResult::Unavailable => (None, String::new(), false),
        };
    // The branch is stored only if HEAD does not name it (reftable).
    let branch = if head_and_index_stamp.starts_with(REFTABLE_HEAD) { branch } else { String::new() };
    GitRecord {
        folder: folder.to_string_lossy().into_owned(),
        head_and_index_stamp,
        counts,
        queried_at_ms: now,
        timed_out,
        branch,
    }
}

/// Reads the branch, the worktree and the operation in progress from git's files.
fn view_from_git_files(git_folder: &Path, head: &str) -> GitView {
    // One directory listing is cheaper than a check for each file, because most of these files do not exist.
    let present_files = disk::existing_names(git_folder, &STATE_FILES);
    let file_exists = |name: &str| present_files.contains(&name);
    let rebase_names = ["rebase-merge", "rebase-apply"].into_iter().filter(|name| file_exists(name));
    let rebase_folder = rebase_names.map(|name| git_folder.join(name)).find(|folder| disk::is_folder(folder));
    let rebased_branch =
        rebase_folder.as_deref().and_then(|rebase| read_trimmed_text(&rebase.join("head-name")));
    let ref_name = head.strip_prefix("ref: ").map(str::to_owned).or(rebased_branch);
    let branch = ref_name.as_deref().map(|name| name.strip_prefix("refs/heads/").unwrap_or(name).to_owned());
    GitView {
        is_detached: branch.is_none(),
        branch: branch.unwrap_or_else(|| head.chars().take(7).collect()),
        // Only a linked worktree's git folder contains `commondir`.
        worktree: file_exists("commondir")
            .then(|| git_folder.file_name().unwrap_or_default().to_string_lossy().into_owned()),
        operation_in_progress: rebase_folder
            .map(|rebase| describe_rebase_or_am_progress(&rebase))
            .or_else(|| describe_merge_pick_revert_or_bisect(file_exists)),
        ..GitView::default()
    }
}

/// Files that exist in the git folder only during an operation, or only for a linked worktree.
const STATE_FILES: [&str; 7] = [
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "BISECT_LOG",
    "rebase-merge",
    "rebase-apply",
    "commondir",
];

/// Describes the rebase or `git am` in progress, such as `rebase 2/5`; without the steps if they are unknown.
fn describe_rebase_or_am_progress(rebase_folder: &Path) -> String {
    let read_number_text = |name: &str| read_trimmed_text(&rebase_folder.join(name));
    let steps = read_number_text("msgnum")
        .zip(read_number_text("end"))
        .or_else(|| read_number_text("next").zip(read_number_text("last")));
    let operation = if disk::exists(&rebase_folder.join("applying")) { "am" } else { "rebase" };
    steps.map_or_else(|| operation.to_owned(), |(step, last)| format!("{operation} {step}/{last}"))
}

fn describe_merge_pick_revert_or_bisect(file_exists: impl Fn(&str) -> bool) -> Option<String> {
    let operations = [
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("BISECT_LOG", "bisect"),
    ];
    operations.into_iter().find(|(file, _)| file_exists(file)).map(|(_, operation)| operation.to_owned())
}

fn read_trimmed_text(path: &Path) -> Option<String> {
    disk::read_text(path).ok().flatten().map(|text| text.trim().to_owned())
}

fn index_modified_nanos(git_folder: &Path) -> u128 {
    let modified = disk::modified_at(&git_folder.join("index"));
    modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0, |time| time.as_nanos())
}
