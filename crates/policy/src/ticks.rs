//! Checks the ticks of a session with the verify commands. A tick is reverted if a command fails that passed
//! earlier in this run, or if the check of the item itself fails: later items would build on something
//! broken.
//!
//! A command that has never passed reverts no tick. Otherwise a plan that makes a failing test suite pass
//! item by item would lose all its ticks. If a session ticked several items, it is unknown which of them
//! broke a command, so all of these ticks are reverted. The check of an item affects only that item.

use crate::completion::needs_verify_commands_before_verdict;
use crate::evidence::{SessionEvidence, VerifyOutcome};
use plimsoll_domain::item_check::{self, ItemCheck};
use plimsoll_domain::reverted_ticks::{FailedCommand, RevertedTicks};
use plimsoll_domain::size::{MeasuredItem, OpenItemCost};
use plimsoll_domain::state::checkpoint::UNKNOWN;
use plimsoll_domain::state::{Checkpoint, SessionOutcomes, VerifyRun, VerifyTiming};
use plimsoll_domain::{RunState, TodoList};

/// Returns the commands that must run after a session: all of them if completion depends on them; otherwise, if the
/// session ticked items and commands run after ticks, the run's verify commands and the checks of these items.
pub fn verify_commands_for_completion_or_ticks(state: &RunState, evidence: &SessionEvidence) -> Vec<String> {
    if needs_verify_commands_before_verdict(state, evidence) {
        return state.options.unique_verify_and_check_commands();
    }
    let ticked_items = items_ticked_in_session(state, evidence.todo.as_ref());
    if ticked_items.is_empty() || state.options.verify_timing != VerifyTiming::AfterTick {
        return Vec::new();
    }
    let mut commands = state.options.verify_commands.clone();
    for check in ticked_items.iter().filter_map(|item| state.find_check_allowed_at_run_start(item)) {
        if !commands.contains(&check.command) {
            commands.push(check.command.clone());
        }
    }
    commands
}

/// Returns the verify commands that have neither passed nor failed in this run so far. They run before the next session
/// as a baseline, so that a command that already fails is not blamed on that session. Empty if ticks do not depend on
/// commands or there is no plan.
pub fn tick_baseline_commands_without_outcome(state: &RunState) -> Vec<String> {
    let outcomes = &state.outcomes;
    if state.options.verify_timing != VerifyTiming::AfterTick || state.options.todo_file.is_none() {
        return Vec::new();
    }
    let has_outcome = |command: &&String| {
        outcomes.passed_verify_commands.contains(command)
            || outcomes.failing_verify_commands.contains(command)
    };
    state.options.verify_commands.iter().filter(|command| !has_outcome(command)).cloned().collect()
}

/// Returns the items that were ticked by the session that has just ended.
fn items_ticked_in_session(state: &RunState, todo: Option<&TodoList>) -> Vec<String> {
    state.filter_ticked_in_session(&todo.map(TodoList::ticked_items).unwrap_or_default())
}

/// Returns the checks of the items that the session ticked whose commands were not in the plan when the run began. They
/// do not run, because an agent may have written them. Empty if the user allowed no checks of the plan.
pub fn new_checks_of_ticked_items_if_plan_had_checks(
    state: &RunState,
    evidence: &SessionEvidence,
) -> Vec<ItemCheck> {
    let original_checks = &state.options.plan_checks;
    let parse_item_check = |item: String| {
        let command = item_check::parse_verify_command(&item)?;
        Some(ItemCheck { item_text: item, command })
    };
    let is_not_in_original_plan =
        |check: &ItemCheck| !original_checks.iter().any(|original| original.command == check.command);
    let ticked_items = if original_checks.is_empty() {
        Vec::new()
    } else {
        items_ticked_in_session(state, evidence.todo.as_ref())
    };
    ticked_items.into_iter().filter_map(parse_item_check).filter(is_not_in_original_plan).collect()
}

/// Returns the session's ticks to revert because of failed commands, with these commands: all ticks if a
/// command failed that had passed before, otherwise those whose item's check failed. Returns `None` if all
/// ticks stay. A command that timed out or could not be started reverts nothing, because it says nothing
/// about the work.
pub fn ticks_to_revert_for_regression_or_item_check(
    state: &RunState,
    evidence: &SessionEvidence,
) -> Option<RevertedTicks> {
    if state.options.verify_timing != VerifyTiming::AfterTick {
        return None;
    }
    let ticked_items = items_ticked_in_session(state, evidence.todo.as_ref());
    let failed_outcomes =
        || evidence.verify_outcomes.iter().filter(|outcome| !outcome.passed && !outcome.is_inconclusive);
    let passed_before =
        |outcome: &VerifyOutcome| state.outcomes.passed_verify_commands.contains(&outcome.command);
    let is_check_of_item = |item: &String, outcome: &VerifyOutcome| {
        state.find_check_allowed_at_run_start(item).is_some_and(|check| check.command == outcome.command)
    };
    let has_regression = failed_outcomes().any(passed_before);
    let should_revert =
        |item: &&String| has_regression || failed_outcomes().any(|outcome| is_check_of_item(item, outcome));
    let items: Vec<String> = ticked_items.iter().filter(should_revert).cloned().collect();
    let is_cause_of_revert = |outcome: &&VerifyOutcome| {
        passed_before(outcome) || items.iter().any(|item| is_check_of_item(item, outcome))
    };
    let to_failed_command = |outcome: &VerifyOutcome| FailedCommand {
        command: outcome.command.clone(),
        output_excerpt: outcome.summary.clone(),
        seconds: outcome.seconds,
    };
    let failed_commands = failed_outcomes().filter(is_cause_of_revert).map(to_failed_command).collect();
    (!items.is_empty()).then(|| RevertedTicks { failed_commands, ..new_pending_revert(state, items) })
}

/// Returns the session's ticks, to be reverted, if protected files differ from the start of the run, no
/// matter which session changed them. `None` if the session ticked nothing, or if no protected file differs.
/// `--verify-each` does not disable this.
pub fn ticks_to_revert_if_protected_files_differ(
    state: &RunState,
    evidence: &SessionEvidence,
) -> Option<RevertedTicks> {
    let changed_files = evidence.protected_file_changes.clone();
    let items = items_ticked_in_session(state, evidence.todo.as_ref());
    (!items.is_empty() && !changed_files.is_empty())
        .then(|| RevertedTicks { protected_changes: changed_files, ..new_pending_revert(state, items) })
}

fn new_pending_revert(state: &RunState, items: Vec<String>) -> RevertedTicks {
    RevertedTicks {
        iteration: state.iteration,
        session_id: state.session_id.clone(),
        items,
        is_pending: true,
        ..RevertedTicks::default()
    }
}

/// Restores the outcomes of the failed commands for which the ticks were reverted, for a process that
/// continues after the previous one was killed.
pub fn failed_verify_outcomes_of_reverted_ticks(reverted_ticks: &RevertedTicks) -> Vec<VerifyOutcome> {
    let to_outcome = |failed: &FailedCommand| VerifyOutcome {
        command: failed.command.clone(),
        summary: failed.output_excerpt.clone(),
        seconds: failed.seconds,
        ..VerifyOutcome::default()
    };
    reverted_ticks.failed_commands.iter().map(to_outcome).collect()
}

/// Updates the state after ticks were removed from the plan file: the items are open again, in the state and in the
/// checkpoint, and the tokens spent on them so far will count towards their final cost. A second call changes nothing.
pub fn reopen_reverted_items_keeping_their_costs(
    state: &mut RunState,
    reverted_ticks: &RevertedTicks,
    todo: &TodoList,
) {
    let is_reverted = |item: &String| reverted_ticks.items.contains(item);
    state.update_items_and_questions_from_plan(todo);
    let done_items = state.plan_items.completed_items.clone();
    state.plan_items.ever_ticked_items.retain(|item| !is_reverted(item) || done_items.contains(item));
    let measured_items = std::mem::take(&mut state.iteration_record.measured_items);
    let (reverted_items, remaining_items): (Vec<MeasuredItem>, Vec<MeasuredItem>) =
        measured_items.into_iter().partition(|measured| is_reverted(&measured.item));
    state.iteration_record.measured_items = remaining_items;
    for measured in reverted_items.into_iter().filter(|measured| measured.cost.is_some()) {
        let tokens = state.remove_item_cost_returning_tokens(&measured);
        state.add_open_item_cost_and_drop_closed(OpenItemCost { item: measured.item, tokens });
    }
    reopen_items_and_resume_first_if_none_begun(&mut state.context_checkpoint, &reverted_ticks.items);
}

/// Removes the items from the ticked items of a checkpoint, so that the handoff does not call them finished.
fn reopen_items_and_resume_first_if_none_begun(checkpoint: &mut Checkpoint, items: &[String]) {
    let item_work = &mut checkpoint.item_work;
    let Some(first_item) = item_work.ticked_items.iter().find(|item| items.contains(item)).cloned() else {
        return;
    };
    item_work.ticked_items.retain(|item| !items.contains(item));
    // If no item has been started, the first of these becomes the current one. Otherwise the handoff would name another
    // item to start with.
    if !item_work.is_begun {
        item_work.is_begun = true;
        checkpoint.current_todo_item = first_item;
        checkpoint.progress_on_item = UNKNOWN.to_owned();
    }
}

/// Records the outcomes of verify commands: which ones fail, which ones have ever passed, and the seconds they took in total.
pub fn record_conclusive_outcomes_and_add_seconds(state: &mut RunState, verify_outcomes: &[VerifyOutcome]) {
    if verify_outcomes.is_empty() {
        return;
    }
    let commands = state.options.unique_verify_and_check_commands();
    let SessionOutcomes {
        failing_verify_commands: failing_commands,
        passed_verify_commands: passed_commands,
        ..
    } = &mut state.outcomes;
    // Only some of the commands may have run; the others keep their last outcome.
    failing_commands.retain(|command| commands.contains(command));
    // A command that timed out or could not be started keeps its last outcome, too.
    for outcome in verify_outcomes.iter().filter(|outcome| !outcome.is_inconclusive) {
        failing_commands.retain(|command| *command != outcome.command);
        if !outcome.passed {
            failing_commands.push(outcome.command.clone());
        } else if !passed_commands.contains(&outcome.command) {
            passed_commands.push(outcome.command.clone());
        }
    }
    state.spending.verify_seconds += verify_outcomes.iter().map(|outcome| outcome.seconds).sum::<u64>();
}

/// The state of the working tree in which verify commands ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifiedTree {
    /// HEAD; `None` outside git, before the first commit, or if git failed.
    pub commit: Option<String>,
    /// True if tracked files had uncommitted changes.
    pub has_uncommitted_changes: bool,
}

/// Records the last outcome of each command and the tree that it ran on. A command that timed out or could not be started neither
/// passed nor failed, so it keeps its earlier record.
pub fn record_last_conclusive_verify_runs(
    state: &mut RunState,
    verify_outcomes: &[VerifyOutcome],
    tree: &VerifiedTree,
) {
    let commands = state.options.unique_verify_and_check_commands();
    let verify_runs = &mut state.outcomes.verify_runs;
    verify_runs.retain(|run| commands.contains(&run.command));
    for outcome in verify_outcomes.iter().filter(|outcome| !outcome.is_inconclusive) {
        verify_runs.retain(|run| run.command != outcome.command);
        verify_runs.push(VerifyRun {
            command: outcome.command.clone(),
            passed: outcome.passed,
            iteration: state.iteration,
            commit: tree.commit.clone(),
            has_uncommitted: tree.has_uncommitted_changes,
        });
    }
}

#[cfg(test)]
mod tests;
