//! Does a tick hold? After a session that ticked an item the commands run that have to pass. If one that had passed in this
//! run fails, or an item's own check does, the tick is taken back: what builds on it would build on something broken.
//!
//! A command that has never passed refuses no tick: in a plan that makes a failing test suite pass item by item, all would be
//! refused. Nobody knows which of several ticks of one session broke a command, so all of them are taken back; an item's own
//! check concerns its item alone.

use crate::completion::needs_verify;
use crate::evidence::{Evidence, VerifyOutcome};
use plimsoll_domain::item_check::{self, ItemCheck};
use plimsoll_domain::size::{MeasuredItem, OpenItemCost};
use plimsoll_domain::state::checkpoint::UNKNOWN;
use plimsoll_domain::state::{Checkpoint, Outcomes, VerifyEach, VerifyRun};
use plimsoll_domain::taken_back::{FailedCommand, TakenBack};
use plimsoll_domain::{RunState, TodoList};

/// The commands that have to run after a session: all of them if completion depends on them, else those that its ticks
/// depend on.
pub fn commands_due(state: &RunState, evidence: &Evidence) -> Vec<String> {
    if needs_verify(state, evidence) {
        return state.options.commands();
    }
    let ticked = ticked(state, evidence.todo.as_ref());
    if ticked.is_empty() || state.options.verify_each != VerifyEach::Tick {
        return Vec::new();
    }
    let mut commands = state.options.verify.clone();
    for check in ticked.iter().filter_map(|item| state.check_of(item)) {
        if !commands.contains(&check.command) {
            commands.push(check.command.clone());
        }
    }
    commands
}

/// The commands of which this run does not know whether they pass, and whose ticks that decides. They run before the next
/// session, so that a command that fails already is not held against it.
pub fn unknown(state: &RunState) -> Vec<String> {
    let outcomes = &state.outcomes;
    if state.options.verify_each != VerifyEach::Tick || state.options.todo_file.is_none() {
        return Vec::new();
    }
    let is_known = |command: &&String| {
        outcomes.verify_passed.contains(command) || outcomes.verify_failing.contains(command)
    };
    state.options.verify.iter().filter(|command| !is_known(command)).cloned().collect()
}

/// Items that the session ticked which has just ended.
fn ticked(state: &RunState, todo: Option<&TodoList>) -> Vec<String> {
    state.ticked_in_session(&todo.map(TodoList::done).unwrap_or_default())
}

/// Checks of items that the session ticked which were not in the plan when the run began: they do not run, for an agent may
/// have written them. None in a run whose user has allowed no check of the plan.
pub fn not_run(state: &RunState, evidence: &Evidence) -> Vec<ItemCheck> {
    let checks = &state.options.plan_checks;
    let named = |item: String| {
        let command = item_check::command(&item)?;
        Some(ItemCheck { item, command })
    };
    let is_new = |check: &ItemCheck| !checks.iter().any(|known| known.command == check.command);
    let items = if checks.is_empty() { Vec::new() } else { ticked(state, evidence.todo.as_ref()) };
    items.into_iter().filter_map(named).filter(is_new).collect()
}

/// The ticks that do not hold, and why; none if all do. What a deadline cut off, or what could not be started, says nothing
/// of the work.
pub fn refused(state: &RunState, evidence: &Evidence) -> Option<TakenBack> {
    if state.options.verify_each != VerifyEach::Tick {
        return None;
    }
    let ticked = ticked(state, evidence.todo.as_ref());
    let failing = || evidence.verify.iter().filter(|outcome| !outcome.passed && !outcome.is_undecided);
    let is_broken = |outcome: &VerifyOutcome| state.outcomes.verify_passed.contains(&outcome.command);
    let own = |item: &String, outcome: &VerifyOutcome| {
        state.check_of(item).is_some_and(|check| check.command == outcome.command)
    };
    let is_any_broken = failing().any(is_broken);
    let fails = |item: &&String| is_any_broken || failing().any(|outcome| own(item, outcome));
    let items: Vec<String> = ticked.iter().filter(fails).cloned().collect();
    let is_cause =
        |outcome: &&VerifyOutcome| is_broken(outcome) || items.iter().any(|item| own(item, outcome));
    let told = |outcome: &VerifyOutcome| FailedCommand {
        command: outcome.command.clone(),
        words: outcome.words.clone(),
        seconds: outcome.seconds,
    };
    let failed = failing().filter(is_cause).map(told).collect();
    (!items.is_empty()).then(|| TakenBack { failed, ..taken_back(state, items) })
}

/// Returns the ticks of a session after which protected files are not as they were when the run began, whichever session changed them;
/// none if it ticked nothing, or if all files are as they were. No `--verify-each` switches this off.
pub fn refused_for_protected(state: &RunState, evidence: &Evidence) -> Option<TakenBack> {
    let protected = evidence.changed_protected.clone();
    let items = ticked(state, evidence.todo.as_ref());
    (!items.is_empty() && !protected.is_empty()).then(|| TakenBack { protected, ..taken_back(state, items) })
}

fn taken_back(state: &RunState, items: Vec<String>) -> TakenBack {
    TakenBack {
        iteration: state.iteration,
        session_id: state.session_id.clone(),
        items,
        is_pending: true,
        ..TakenBack::default()
    }
}

/// What the commands said that took the ticks back, for a process that comes after a kill.
pub fn outcomes_of(taken: &TakenBack) -> Vec<VerifyOutcome> {
    let outcome = |failed: &FailedCommand| VerifyOutcome {
        command: failed.command.clone(),
        words: failed.words.clone(),
        seconds: failed.seconds,
        ..VerifyOutcome::default()
    };
    taken.failed.iter().map(outcome).collect()
}

/// Makes the state forget ticks that the plan no longer has: the items are open, and what they took so far will be added to
/// what they take in the end. Done twice, it changes nothing.
pub fn take_back(state: &mut RunState, taken: &TakenBack, todo: &TodoList) {
    let is_taken = |item: &String| taken.items.contains(item);
    state.take_items(todo);
    let done = state.items.completed_items.clone();
    state.items.ever_done.retain(|item| !is_taken(item) || done.contains(item));
    let measured = std::mem::take(&mut state.iteration_record.reckoned);
    let (taken_now, kept): (Vec<MeasuredItem>, Vec<MeasuredItem>) =
        measured.into_iter().partition(|measured| is_taken(&measured.item));
    state.iteration_record.reckoned = kept;
    for measured in taken_now.into_iter().filter(|measured| measured.cost.is_some()) {
        let tokens = state.forget_growth(&measured);
        state.note_begun(OpenItemCost { item: measured.item, tokens });
    }
    reopen(&mut state.context_checkpoint, &taken.items);
}

/// A checkpoint must not hand on that these items are finished.
fn reopen(checkpoint: &mut Checkpoint, items: &[String]) {
    let work = &mut checkpoint.item_work;
    let Some(first) = work.finished.iter().find(|item| items.contains(item)).cloned() else { return };
    work.finished.retain(|item| !items.contains(item));
    // It would tell the next session to begin another item.
    if !work.is_begun {
        work.is_begun = true;
        checkpoint.current_todo_item = first;
        checkpoint.progress_on_item = UNKNOWN.to_owned();
    }
}

/// Notes what the commands said: which fail, which have passed, and how long they took.
pub fn note(state: &mut RunState, verify: &[VerifyOutcome]) {
    if verify.is_empty() {
        return;
    }
    let commands = state.options.commands();
    let Outcomes { verify_failing, verify_passed, .. } = &mut state.outcomes;
    // These may be some of the commands only: of the others the last word stands.
    verify_failing.retain(|known| commands.contains(known));
    // What a deadline cut off, or what could not be started, is as unknown as before.
    for outcome in verify.iter().filter(|outcome| !outcome.is_undecided) {
        verify_failing.retain(|known| *known != outcome.command);
        if !outcome.passed {
            verify_failing.push(outcome.command.clone());
        } else if !verify_passed.contains(&outcome.command) {
            verify_passed.push(outcome.command.clone());
        }
    }
    state.spent.verify_seconds += verify.iter().map(|outcome| outcome.seconds).sum::<u64>();
}

/// The files on which verify commands ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifiedTree {
    /// HEAD; none outside git, before the first commit, and where git could not say.
    pub commit: Option<String>,
    /// True if files that git follows were not committed.
    pub has_uncommitted: bool,
}

/// Records how each command ended last, and on what. What a deadline cut off, or what could not be started, leaves the earlier
/// record: the command neither passed nor failed.
pub fn record_verify_runs(state: &mut RunState, verify: &[VerifyOutcome], tree: &VerifiedTree) {
    let commands = state.options.commands();
    let runs = &mut state.outcomes.verify_runs;
    runs.retain(|known| commands.contains(&known.command));
    for outcome in verify.iter().filter(|outcome| !outcome.is_undecided) {
        runs.retain(|known| known.command != outcome.command);
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
