//! What the command says of a run that has a branch of its own: on which branch the work is, and how to merge it.

use crate::endings::{PlainStep, step};
use plimsoll_domain::RunState;
use plimsoll_domain::text::one_line;
use plimsoll_policy::todo_list::shell_word;

/// In one line: the branch; once the run is over also the command that merges it. None without `--branch`.
pub(crate) fn words(state: &RunState) -> Option<String> {
    let (words, command) = merge_step(state)?;
    Some(match command {
        Some(command) => format!("{words} {command}"),
        None => words,
    })
}

/// The same as a step of the report.
pub(crate) fn merge_step(state: &RunState) -> Option<PlainStep> {
    let branch = state.options.branch.as_ref()?;
    let shown = one_line(branch);
    if !state.lifecycle.is_over() {
        return Some(step(format!("this run works on the branch `{shown}`"), ""));
    }
    Some(match &state.at_start.branch_before {
        Some(before) => step(
            format!("the work is on the branch `{shown}`; to merge it into `{}`:", one_line(before)),
            &format!("git switch {} && git merge {}", shell_word(before), shell_word(branch)),
        ),
        // The run began there.
        None => step(format!("the work is on the branch `{shown}`"), ""),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::Status;
    use plimsoll_domain::state::{AtStart, Lifecycle, RunOptions};

    #[test]
    fn the_branch_is_named_and_the_merge_is_one_command_once_the_run_is_over() {
        let of = |status, branch: Option<&str>, before: Option<&str>| {
            words(&RunState {
                lifecycle: Lifecycle::of(status),
                options: RunOptions { branch: branch.map(str::to_owned), ..RunOptions::default() },
                at_start: AtStart { branch_before: before.map(str::to_owned), ..AtStart::default() },
                ..RunState::default()
            })
        };
        let merge = "the work is on the branch `it's`; to merge it into `main`: git switch main && git merge 'it'\\''s'";
        for (status, branch, before, expected) in [
            (Status::Completed, None, None, None),
            (Status::Completed, Some("it's"), Some("main"), Some(merge)),
            (Status::MaxIterations, Some("it's"), Some("main"), Some(merge)),
            (Status::Completed, Some("night"), None, Some("the work is on the branch `night`")),
            (Status::Paused, Some("night"), Some("main"), Some("this run works on the branch `night`")),
        ] {
            assert_eq!(of(status, branch, before).as_deref(), expected, "{status} {branch:?}");
        }
    }
}
