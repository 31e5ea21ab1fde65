//! Why an item goes back to its branch: in a line for its notes, and whole in a file that its next session reads.

use super::NOTE;
use plimsoll_domain::board::Stage;
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::text::{clip, clip_middle, one_line};
use plimsoll_domain::workers::Workers;
use plimsoll_launcher::merge_repository::MergeRepository;

/// How much of each difference the next session is told.
const DIFFERENCE: usize = 60_000;

/// Why, in both forms.
pub(super) struct Refusal {
    pub(super) reason: String,
    pub(super) whole: String,
}

impl Refusal {
    /// Git or a hook refuses, and there is no conflict.
    pub(super) fn by_git(why: &str) -> Refusal {
        Refusal { reason: format!("git refuses: {}", clip(&one_line(why), NOTE)), whole: why.to_owned() }
    }

    /// Put together with what others have merged, a verify command fails.
    pub(super) fn red(repository: &MergeRepository, tip: &CommitId, end: &CommitId, output: &str) -> Refusal {
        let work = repository.difference(tip, end, &[], DIFFERENCE);
        Refusal {
            reason: format!(
                "with what others have merged meanwhile, {}",
                clip_middle(&one_line(output), NOTE)
            ),
            whole: format!(
                "# Why this work was not merged\n\nPut together with what others have merged meanwhile, it fails:\n\n{output}\n\nThis worktree has both. Repair it here.\n\n## The work on this item\n\n{work}\n"
            ),
        }
    }

    /// It conflicts with what others have merged: its end, the commit before its own, and the end of what is merged.
    pub(super) fn conflict(
        repository: &MergeRepository,
        now: &Workers,
        item: usize,
        [end, beyond, onto]: [&CommitId; 3],
        files: &[String],
        words: &str,
    ) -> Refusal {
        // A fleet's branch is on the remote, its commits are here. Without what a session changed in the plan it is another commit.
        let branch = match (&now.member, &now.board.items[item].stage) {
            (Some(_), Stage::Offered { commit }) => commit.clone(),
            (None, Stage::Offered { commit }) if commit != end.as_str() => end.to_string(),
            _ => now.branch(item, now.board.items[item].epoch),
        };
        let ours = repository.difference(beyond, end, &[], DIFFERENCE);
        let theirs = repository.difference(beyond, onto, files, DIFFERENCE);
        let files = files.join(", ");
        let named = clip(&one_line(&files), NOTE / 2);
        Refusal {
            reason: format!(
                "it does not fit onto what others have merged meanwhile (conflict in {named}); its commits are {beyond}..{branch}"
            ),
            whole: format!(
                "# Why this work was not merged\n\nIt conflicts with what has been merged meanwhile, in: {files}\n\nThis worktree begins at what has been merged. The earlier work on the item is {branch} (`git log -p {beyond}..{branch}`). Bring it over so that nothing of either side is lost.\n\n## What git said\n\n{words}\n\n## The earlier work on this item\n\n{ours}\n\n## What others have merged since it began, in these files\n\n{theirs}\n"
            ),
        }
    }
}
