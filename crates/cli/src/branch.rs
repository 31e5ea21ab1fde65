//! The line and the report step about the branch of a run (`--branch`), and how to merge it.

use crate::endings::{AdviceStep, advice_step};
use plimsoll_domain::RunState;
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_policy::todo_list::quote_for_shell;

/// Renders one line with the run's branch and, once the run has ended, the command that merges it. Returns `None` without
/// `--branch`.
pub(crate) fn render_branch_and_merge_command(state: &RunState) -> Option<String> {
    let (text, command) = branch_or_merge_command_step(state)?;
    Some(match command {
        Some(command) => format!("{text} {command}"),
        None => text,
    })
}

/// Returns the report step about the run's branch: its name while the run is open, the merge command once it has ended. Returns
/// `None` without `--branch`.
pub(crate) fn branch_or_merge_command_step(state: &RunState) -> Option<AdviceStep> {
    let branch = state.options.branch.as_ref()?;
    let displayed_branch = to_safe_single_line(branch);
    if !state.lifecycle.has_ended() {
        return Some(advice_step(format!("this run works on the branch `{displayed_branch}`"), ""));
    }
    Some(match &state.project_at_start.original_branch {
        Some(original_branch) => advice_step(
            format!(
                "the work is on the branch `{displayed_branch}`; to merge it into `{}`:",
                to_safe_single_line(original_branch)
            ),
            &format!(
                "git switch {} && git merge {}",
                quote_for_shell(original_branch),
                quote_for_shell(branch)
            ),
        ),
        // The run began on this branch, so there is nothing to merge into.
        None => advice_step(format!("the work is on the branch `{displayed_branch}`"), ""),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::RunStatus;
    use plimsoll_domain::state::{Lifecycle, ProjectAtStart, RunOptions};

    #[test]
    fn the_merge_command_is_shown_once_the_run_is_over() {
        let branch_line = |status, branch: Option<&str>, original_branch: Option<&str>| {
            render_branch_and_merge_command(&RunState {
                lifecycle: Lifecycle::with_status(status),
                options: RunOptions { branch: branch.map(str::to_owned), ..RunOptions::default() },
                project_at_start: ProjectAtStart {
                    original_branch: original_branch.map(str::to_owned),
                    ..ProjectAtStart::default()
                },
                ..RunState::default()
            })
        };
        let merge = "the work is on the branch `it's`; to merge it into `main`: git switch main && git merge 'it'\\''s'";
        for (status, branch, before, expected) in [
            (RunStatus::Completed, None, None, None),
            (RunStatus::Completed, Some("it's"), Some("main"), Some(merge)),
            (RunStatus::MaxIterations, Some("it's"), Some("main"), Some(merge)),
            (RunStatus::Completed, Some("night"), None, Some("the work is on the branch `night`")),
            (RunStatus::Paused, Some("night"), Some("main"), Some("this run works on the branch `night`")),
        ] {
            assert_eq!(branch_line(status, branch, before).as_deref(), expected, "{status} {branch:?}");
        }
    }
}
