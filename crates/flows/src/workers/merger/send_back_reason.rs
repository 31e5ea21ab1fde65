//! The reason why an item is sent back: on one line for people, and in full for the item's next session.

use super::MAX_NOTE_CHARS;
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::item_brief::{ReturnReason, ReturnedWork};
use plimsoll_domain::text::{to_safe_single_line, truncate_end, truncate_middle};
use plimsoll_launcher::merge_repository::MergeRepository;

/// The maximum size of each diff that the next session gets.
const MAX_DIFF_CHARS: usize = 60_000;

/// Why an item is sent back: a summary for people, and the details for the item's next session.
pub(super) struct SendBackReason {
    pub(super) summary: String,
    pub(super) returned_work: ReturnedWork,
    /// The files in which the item conflicts with what was merged since it began.
    pub(super) conflict_files: Vec<String>,
}

/// Shortens a commit id, as git does by default; other revisions stay as they are.
fn shorten_commit(revision: &str) -> &str {
    const SHORT_CHARS: usize = 7;
    let is_commit_id = revision.len() >= 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_commit_id { &revision[..SHORT_CHARS] } else { revision }
}

impl SendBackReason {
    /// Creates the reason for an error of git or of a hook that is not a conflict.
    pub(super) fn for_git_error(
        git_error: &str,
        [last_work_commit, base_commit]: [&CommitId; 2],
    ) -> SendBackReason {
        let returned_work = ReturnedWork {
            return_reason: ReturnReason::RefusedByGit,
            base_commit: base_commit.to_string(),
            end_revision: last_work_commit.to_string(),
            output: git_error.to_owned(),
            ..ReturnedWork::default()
        };
        SendBackReason {
            summary: format!(
                "git refuses: {}",
                truncate_end(&to_safe_single_line(git_error), MAX_NOTE_CHARS)
            ),
            returned_work,
            conflict_files: Vec::new(),
        }
    }

    /// Creates the reason for a verify command that fails on the work together with what others have merged.
    pub(super) fn for_failed_verify(
        repository: &MergeRepository,
        target_tip: &CommitId,
        last_work_commit: &CommitId,
        output: &str,
    ) -> SendBackReason {
        let returned_work = ReturnedWork {
            return_reason: ReturnReason::FailedCheck,
            base_commit: target_tip.to_string(),
            end_revision: last_work_commit.to_string(),
            output: output.to_owned(),
            own_diff: repository.diff_text(target_tip, last_work_commit, &[], MAX_DIFF_CHARS),
            ..ReturnedWork::default()
        };
        SendBackReason {
            conflict_files: Vec::new(),
            summary: format!(
                "on the merged branch, {}",
                truncate_middle(&to_safe_single_line(output), MAX_NOTE_CHARS)
            ),
            returned_work,
        }
    }

    /// Creates the reason for a conflict with what others have merged. `last_work_commit`, `base_commit` and
    /// `target_tip` are the last commit of the work, the commit before its first one, and the last commit of
    /// the target. The item's next session uses `last_work_revision` to refer to `last_work_commit`.
    pub(super) fn for_conflict(
        repository: &MergeRepository,
        last_work_revision: &str,
        [last_work_commit, base_commit, target_tip]: [&CommitId; 3],
        conflict_files: &[String],
        git_output: &str,
    ) -> SendBackReason {
        let conflict_file_list =
            truncate_end(&to_safe_single_line(&conflict_files.join(", ")), MAX_NOTE_CHARS / 2);
        let returned_work = ReturnedWork {
            return_reason: ReturnReason::Conflict,
            base_commit: base_commit.to_string(),
            end_revision: last_work_revision.to_owned(),
            conflict_files: conflict_files.to_vec(),
            output: git_output.to_owned(),
            own_diff: repository.diff_text(base_commit, last_work_commit, &[], MAX_DIFF_CHARS),
            merged_diff: repository.diff_text(base_commit, target_tip, conflict_files, MAX_DIFF_CHARS),
        };
        SendBackReason {
            // If nothing was merged meanwhile, the item's commits conflict with each other and not with
            // another item.
            conflict_files: if base_commit == target_tip { Vec::new() } else { conflict_files.to_vec() },
            summary: format!(
                "merge conflict in {conflict_file_list} (its commits: {}..{})",
                shorten_commit(base_commit.as_str()),
                shorten_commit(last_work_revision)
            ),
            returned_work,
        }
    }
}
