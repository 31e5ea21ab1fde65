//! Why an item goes back to its branch: in a line for people, and whole for its next session.

use super::NOTE;
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::item_brief::{ReturnReason, ReturnedWork};
use plimsoll_domain::text::{clip, clip_middle, one_line};
use plimsoll_launcher::merge_repository::MergeRepository;

/// How much of each difference the next session is told.
const DIFFERENCE: usize = 60_000;

/// Why, in both forms.
pub(super) struct Refusal {
    pub(super) reason: String,
    pub(super) work: ReturnedWork,
    /// The files in which it conflicts with what was merged since it began.
    pub(super) conflicts: Vec<String>,
}

impl Refusal {
    /// Git or a hook refuses, and there is no conflict.
    pub(super) fn by_git(why: &str, [end, beyond]: [&CommitId; 2]) -> Refusal {
        let work = ReturnedWork {
            reason: ReturnReason::RefusedByGit,
            base: beyond.to_string(),
            end: end.to_string(),
            output: why.to_owned(),
            ..ReturnedWork::default()
        };
        Refusal {
            reason: format!("git refuses: {}", clip(&one_line(why), NOTE)),
            work,
            conflicts: Vec::new(),
        }
    }

    /// Put together with what others have merged, a verify command fails.
    pub(super) fn red(repository: &MergeRepository, tip: &CommitId, end: &CommitId, output: &str) -> Refusal {
        let work = ReturnedWork {
            reason: ReturnReason::FailedCheck,
            base: tip.to_string(),
            end: end.to_string(),
            output: output.to_owned(),
            own_diff: repository.difference(tip, end, &[], DIFFERENCE),
            ..ReturnedWork::default()
        };
        Refusal {
            conflicts: Vec::new(),
            reason: format!(
                "with what others have merged meanwhile, {}",
                clip_middle(&one_line(output), NOTE)
            ),
            work,
        }
    }

    /// It conflicts with what others have merged: its end, the commit before its own, and the end of what is merged. `name` is how its
    /// next session names its end.
    pub(super) fn conflict(
        repository: &MergeRepository,
        name: &str,
        [end, beyond, onto]: [&CommitId; 3],
        files: &[String],
        words: &str,
    ) -> Refusal {
        let named = clip(&one_line(&files.join(", ")), NOTE / 2);
        let work = ReturnedWork {
            reason: ReturnReason::Conflict,
            base: beyond.to_string(),
            end: name.to_owned(),
            files: files.to_vec(),
            output: words.to_owned(),
            own_diff: repository.difference(beyond, end, &[], DIFFERENCE),
            merged_diff: repository.difference(beyond, onto, files, DIFFERENCE),
        };
        Refusal {
            // Without anything that was merged meanwhile its own commits do not fit onto each other: that is no conflict with others.
            conflicts: if beyond == onto { Vec::new() } else { files.to_vec() },
            reason: format!(
                "it does not fit onto what others have merged meanwhile (conflict in {named}); its commits are {beyond}..{name}"
            ),
            work,
        }
    }
}
