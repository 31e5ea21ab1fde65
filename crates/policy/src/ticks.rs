//! Checks the ticks of a session with the verify commands. A tick is revoked if a command fails that passed earlier in this run,
//! or if the item's own check fails: later items would build on something broken.
//!
//! A command that has never passed revokes no tick. Otherwise a plan that makes a failing test suite pass item by item would lose
//! all its ticks. If a session ticked several items, it is unknown which of them broke a command, so all of these ticks are
//! revoked. An item's own check affects only that item.

use crate::completion::needs_verify_commands;
use crate::evidence::{SessionEvidence, VerifyOutcome};
use plimsoll_domain::item_check::{self, ItemCheck};
use plimsoll_domain::reverted_ticks::{FailedCommand, RevertedTicks};
use plimsoll_domain::size::{MeasuredItem, OpenItemCost};
use plimsoll_domain::state::checkpoint::UNKNOWN;
use plimsoll_domain::state::{Checkpoint, SessionOutcomes, VerifyRun, VerifyTiming};
use plimsoll_domain::{RunState, TodoList};

/// Returns the commands that must run after a session: all of them if completion depends on them, otherwise those on which the
/// session's ticks depend.
pub fn verify_commands_to_run(state: &RunState, evidence: &SessionEvidence) -> Vec<String> {
    if needs_verify_commands(state, evidence) {
        return state.options.all_verify_commands();
    }
    let ticked_items = items_ticked_in_session(state, evidence.todo.as_ref());
    if ticked_items.is_empty() || state.options.verify_timing != VerifyTiming::AfterTick {
        return Vec::new();
    }
    let mut commands = state.options.verify_commands.clone();
    for check in ticked_items.iter().filter_map(|item| state.allowed_check_of_item(item)) {
        if !commands.contains(&check.command) {
            commands.push(check.command.clone());
        }
    }
    commands
}

/// Returns the verify commands that neither passed nor failed in this run so far. They run before the next session, so that a
/// command that already fails is not blamed on that session. Empty if ticks do not depend on commands.
pub fn commands_without_known_outcome(state: &RunState) -> Vec<String> {
    let outcomes = &state.outcomes;
    if state.options.verify_timing != VerifyTiming::AfterTick || state.options.todo_file.is_none() {
        return Vec::new();
    }
    let is_known = |command: &&String| {
        outcomes.passed_verify_commands.contains(command)
            || outcomes.failing_verify_commands.contains(command)
    };
    state.options.verify_commands.iter().filter(|command| !is_known(command)).cloned().collect()
}

/// Returns the items that were ticked by the session that has just ended.
fn items_ticked_in_session(state: &RunState, todo: Option<&TodoList>) -> Vec<String> {
    state.filter_ticked_in_session(&todo.map(TodoList::ticked_items).unwrap_or_default())
}

/// Returns the checks of ticked items that were not in the plan when the run began. They do not run, because an agent may have
/// written them. Empty if the user allowed no checks of the plan.
pub fn checks_not_in_original_plan(state: &RunState, evidence: &SessionEvidence) -> Vec<ItemCheck> {
    let checks = &state.options.plan_checks;
    let parse_item_check = |item: String| {
        let command = item_check::parse_verify_command(&item)?;
        Some(ItemCheck { item_text: item, command })
    };
    let is_new = |check: &ItemCheck| !checks.iter().any(|allowed| allowed.command == check.command);
    let ticked_items =
        if checks.is_empty() { Vec::new() } else { items_ticked_in_session(state, evidence.todo.as_ref()) };
    ticked_items.into_iter().filter_map(parse_item_check).filter(is_new).collect()
}

/// Returns the ticks to revoke because of failed commands, with these commands; `None` if all ticks stay. A command that timed out
/// or could not be started revokes nothing, because it says nothing about the work.
pub fn ticks_to_revoke_for_failed_commands(
    state: &RunState,
    evidence: &SessionEvidence,
) -> Option<RevertedTicks> {
    if state.options.verify_timing != VerifyTiming::AfterTick {
        return None;
    }
    let ticked_items = items_ticked_in_session(state, evidence.todo.as_ref());
    let failed_outcomes =
        || evidence.verify_outcomes.iter().filter(|outcome| !outcome.passed && !outcome.is_undecided);
    let passed_before =
        |outcome: &VerifyOutcome| state.outcomes.passed_verify_commands.contains(&outcome.command);
    let is_own_check = |item: &String, outcome: &VerifyOutcome| {
        state.allowed_check_of_item(item).is_some_and(|check| check.command == outcome.command)
    };
    let has_regression = failed_outcomes().any(passed_before);
    let should_revoke =
        |item: &&String| has_regression || failed_outcomes().any(|outcome| is_own_check(item, outcome));
    let items: Vec<String> = ticked_items.iter().filter(should_revoke).cloned().collect();
    let is_cause_of_revocation = |outcome: &&VerifyOutcome| {
        passed_before(outcome) || items.iter().any(|item| is_own_check(item, outcome))
    };
    let to_failed_command = |outcome: &VerifyOutcome| FailedCommand {
        command: outcome.command.clone(),
        output_excerpt: outcome.summary.clone(),
        seconds: outcome.seconds,
    };
    let failed_commands = failed_outcomes().filter(is_cause_of_revocation).map(to_failed_command).collect();
    (!items.is_empty()).then(|| RevertedTicks { failed_commands, ..pending_revocation(state, items) })
}

/// Returns the session's ticks, to be revoked, if protected files differ from the start of the run, no matter which session changed
/// them. `None` if the session ticked nothing, or if no protected file differs. `--verify-each` does not disable this.
pub fn ticks_to_revoke_for_protected_files(
    state: &RunState,
    evidence: &SessionEvidence,
) -> Option<RevertedTicks> {
    let changed_files = evidence.changed_protected.clone();
    let items = items_ticked_in_session(state, evidence.todo.as_ref());
    (!items.is_empty() && !changed_files.is_empty())
        .then(|| RevertedTicks { protected_changes: changed_files, ..pending_revocation(state, items) })
}

fn pending_revocation(state: &RunState, items: Vec<String>) -> RevertedTicks {
    RevertedTicks {
        iteration: state.iteration,
        session_id: state.session_id.clone(),
        items,
        is_pending: true,
        ..RevertedTicks::default()
    }
}

/// Restores the outcomes of the commands that revoked the ticks, for a process that continues after the previous one was killed.
pub fn outcomes_of_failed_commands(revocation: &RevertedTicks) -> Vec<VerifyOutcome> {
    let outcome = |failed: &FailedCommand| VerifyOutcome {
        command: failed.command.clone(),
        summary: failed.output_excerpt.clone(),
        seconds: failed.seconds,
        ..VerifyOutcome::default()
    };
    revocation.failed_commands.iter().map(outcome).collect()
}

/// Updates the state after ticks were removed from the plan: the items are open again, and the tokens spent on them so far will
/// count towards their final cost. A second call changes nothing.
pub fn revoke_ticks(state: &mut RunState, revocation: &RevertedTicks, todo: &TodoList) {
    let is_revoked = |item: &String| revocation.items.contains(item);
    state.update_items_from_plan(todo);
    let done_items = state.plan_items.completed_items.clone();
    state.plan_items.ever_ticked_items.retain(|item| !is_revoked(item) || done_items.contains(item));
    let measured = std::mem::take(&mut state.iteration_record.measured_items);
    let (revoked, kept): (Vec<MeasuredItem>, Vec<MeasuredItem>) =
        measured.into_iter().partition(|measured| is_revoked(&measured.item));
    state.iteration_record.measured_items = kept;
    for measured in revoked.into_iter().filter(|measured| measured.cost.is_some()) {
        let tokens = state.remove_item_cost(&measured);
        state.add_open_item_cost(OpenItemCost { item: measured.item, tokens });
    }
    reopen_items_in_checkpoint(&mut state.context_checkpoint, &revocation.items);
}

/// Removes the items from the finished items of a checkpoint, so that the handoff does not call them finished.
fn reopen_items_in_checkpoint(checkpoint: &mut Checkpoint, items: &[String]) {
    let work = &mut checkpoint.item_work;
    let Some(first) = work.ticked_items.iter().find(|item| items.contains(item)).cloned() else { return };
    work.ticked_items.retain(|item| !items.contains(item));
    // Otherwise the handoff would tell the next session to begin another item.
    if !work.is_begun {
        work.is_begun = true;
        checkpoint.current_todo_item = first;
        checkpoint.progress_on_item = UNKNOWN.to_owned();
    }
}

/// Records the outcomes of verify commands: which ones fail, which ones have passed, and the seconds they took.
pub fn record_verify_outcomes(state: &mut RunState, verify_outcomes: &[VerifyOutcome]) {
    if verify_outcomes.is_empty() {
        return;
    }
    let commands = state.options.all_verify_commands();
    let SessionOutcomes {
        failing_verify_commands: verify_failing,
        passed_verify_commands: verify_passed,
        ..
    } = &mut state.outcomes;
    // Only some of the commands may have run; the others keep their last outcome.
    verify_failing.retain(|command| commands.contains(command));
    // A command that timed out or could not be started keeps its last outcome, too.
    for outcome in verify_outcomes.iter().filter(|outcome| !outcome.is_undecided) {
        verify_failing.retain(|command| *command != outcome.command);
        if !outcome.passed {
            verify_failing.push(outcome.command.clone());
        } else if !verify_passed.contains(&outcome.command) {
            verify_passed.push(outcome.command.clone());
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
    pub has_uncommitted: bool,
}

/// Records the last outcome of each command and the tree that it ran on. A command that timed out or could not be started neither
/// passed nor failed, so it keeps its earlier record.
pub fn record_verify_runs(state: &mut RunState, verify_outcomes: &[VerifyOutcome], tree: &VerifiedTree) {
    let commands = state.options.all_verify_commands();
    let runs = &mut state.outcomes.verify_runs;
    runs.retain(|run| commands.contains(&run.command));
    for outcome in verify_outcomes.iter().filter(|outcome| !outcome.is_undecided) {
        runs.retain(|run| run.command != outcome.command);
        runs.push(VerifyRun {
            command: outcome.command.clone(),
            passed: outcome.passed,
            iteration: state.iteration,
            commit: tree.commit.clone(),
            has_uncommitted: tree.has_uncommitted,
        });
    }
}

#[cfg(test)]
mod tests;
