//! The reason why an item is sent back: on one line for people, and in full for the item's next session.

use super::MAX_NOTE_CHARS;
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::item_brief::{ReturnReason, ReturnedWork};
use plimsoll_domain::text::{to_single_line, truncate_end, truncate_middle};
use plimsoll_launcher::merge_repository::MergeRepository;

/// The maximum size of each diff that the next session gets.
const MAX_DIFF_CHARS: usize = 60_000;

/// Why an item is sent back, in both forms.
pub(super) struct SendBackReason {
    pub(super) summary: String,
    pub(super) returned_work: ReturnedWork,
    /// The files in which the item conflicts with what was merged since it began.
    pub(super) conflict_files: Vec<String>,
}

impl SendBackReason {
    /// For an error of git or of a hook that is no conflict.
    pub(super) fn for_git_error(git_error: &str, [work_end, base_commit]: [&CommitId; 2]) -> SendBackReason {
        let returned_work = ReturnedWork {
            return_reason: ReturnReason::RefusedByGit,
            base_commit: base_commit.to_string(),
            end_revision: work_end.to_string(),
            output: git_error.to_owned(),
            ..ReturnedWork::default()
        };
        SendBackReason {
            summary: format!("git refuses: {}", truncate_end(&to_single_line(git_error), MAX_NOTE_CHARS)),
            returned_work,
            conflict_files: Vec::new(),
        }
    }

    /// For a verify command that fails on the work together with what others have merged.
    pub(super) fn for_failed_verify(
        repository: &MergeRepository,
        target_tip: &CommitId,
        work_end: &CommitId,
        output: &str,
    ) -> SendBackReason {
        let returned_work = ReturnedWork {
            return_reason: ReturnReason::FailedCheck,
            base_commit: target_tip.to_string(),
            end_revision: work_end.to_string(),
            output: output.to_owned(),
            own_diff: repository.diff_text(target_tip, work_end, &[], MAX_DIFF_CHARS),
            ..ReturnedWork::default()
        };
        SendBackReason {
            conflict_files: Vec::new(),
            summary: format!(
                "with what others have merged meanwhile, {}",
                truncate_middle(&to_single_line(output), MAX_NOTE_CHARS)
            ),
            returned_work,
        }
    }

    /// For a conflict with what others have merged. `work_end`, `base_commit` and `target_end` are the last
    /// commit of the work, the commit before its first one, and the end of the target. `end_name` is how the
    /// item's next session refers to `work_end`.
    pub(super) fn for_conflict(
        repository: &MergeRepository,
        end_name: &str,
        [work_end, base_commit, target_end]: [&CommitId; 3],
        conflict_files: &[String],
        git_output: &str,
    ) -> SendBackReason {
        let file_names = truncate_end(&to_single_line(&conflict_files.join(", ")), MAX_NOTE_CHARS / 2);
        let returned_work = ReturnedWork {
            return_reason: ReturnReason::Conflict,
            base_commit: base_commit.to_string(),
            end_revision: end_name.to_owned(),
            conflict_files: conflict_files.to_vec(),
            output: git_output.to_owned(),
            own_diff: repository.diff_text(base_commit, work_end, &[], MAX_DIFF_CHARS),
            merged_diff: repository.diff_text(base_commit, target_end, conflict_files, MAX_DIFF_CHARS),
        };
        SendBackReason {
            // If nothing was merged meanwhile, the item's own commits conflict with each other, which is no
            // conflict with other items.
            conflict_files: if base_commit == target_end { Vec::new() } else { conflict_files.to_vec() },
            summary: format!(
                "it does not fit onto what others have merged meanwhile (conflict in {file_names}); its commits are {base_commit}..{end_name}"
            ),
            returned_work,
        }
    }
}
