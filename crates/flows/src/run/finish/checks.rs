//! The checks that a verdict or a tick depends on: verify commands, the review of ticks, protected files.

use super::gate_input::GateInput;
use crate::run::review::{Outcome, Reviewer, review_ticks};
use crate::run::verify::verify;
use crate::run::{protect, receipt};
use crate::run_context::RunContext;
use plimsoll_domain::Verdict;
use plimsoll_domain::taken_back::TakenBack;
use plimsoll_domain::verdict::PauseKind;
use plimsoll_policy::ticks;
use plimsoll_store::StoreError;

/// What came of the checks.
pub(super) enum Checked {
    /// What the gate judges after them.
    Judge(Box<GateInput>),
    /// They were given up, and the run is paused.
    Paused(Verdict),
    /// The run is gone.
    Gone,
}

impl Checked {
    fn judge(input: GateInput) -> Checked {
        Checked::Judge(Box::new(input))
    }
}

/// Runs the commands that the verdict or a tick depends on, has ticks reviewed that they leave standing, and takes back those that do
/// not hold. The decision to take ticks back is in the state before the plan changes: after a crash the next process carries it out and
/// runs nothing again. After a crash before the decision it runs the commands again.
pub(super) fn check(
    context: &RunContext<'_>,
    mut input: GateInput,
    give_up: &dyn Fn() -> bool,
    reviewer: Option<&mut Reviewer<'_>>,
) -> Result<Checked, StoreError> {
    if input.is_over() {
        return Ok(Checked::judge(input));
    }
    let decided = input.session.state.outcomes.taken_back.clone().filter(|taken| taken.is_pending);
    if let Some(taken) = decided {
        input.evidence.verify = ticks::outcomes_of(&taken);
        return take_back(context, input, &taken);
    }
    add_protected_changes(context, &mut input);
    if let Some(taken) = ticks::refused_for_protected(&input.session.state, &input.evidence) {
        return take_back(context, input, &taken);
    }
    if let Some(paused) = run_commands(context, &mut input, give_up)? {
        return Ok(Checked::Paused(paused));
    }
    let GateInput { session, evidence, .. } = &input;
    let refused = ticks::refused_for_protected(&session.state, evidence)
        .or_else(|| ticks::refused(&session.state, evidence));
    match refused {
        Some(taken) => take_back(context, input, &taken),
        None => review(context, input, give_up, reviewer),
    }
}

/// Runs the commands that are due. Returns the run's pause if they were given up.
fn run_commands(
    context: &RunContext<'_>,
    input: &mut GateInput,
    give_up: &dyn Fn() -> bool,
) -> Result<Option<Verdict>, StoreError> {
    let commands = ticks::commands_due(&input.session.state, &input.evidence);
    input.evidence.verify =
        verify(context.project, context.settings, &input.session.state, &commands, give_up);
    let has_changed = add_protected_changes(context, input);
    let GateInput { session, evidence, .. } = input;
    // The next session would undo what the commands change, and the commands would change it again.
    evidence.protected_needs_user |= has_changed && !commands.is_empty();
    if evidence.changed_protected.is_empty() {
        receipt::keep(context, &session.state, &commands, &evidence.verify)?;
    }
    if evidence.verify.len() < commands.len() { pause(context) } else { Ok(None) }
}

/// Reviews ticks that the commands leave standing, and takes those back in which the review found something.
fn review(
    context: &RunContext<'_>,
    mut input: GateInput,
    give_up: &dyn Fn() -> bool,
    reviewer: Option<&mut Reviewer<'_>>,
) -> Result<Checked, StoreError> {
    let Some(reviewer) = reviewer else { return Ok(Checked::judge(input)) };
    match review_ticks(context, &input.session.state, &input.evidence, reviewer, give_up)? {
        Outcome::State(state) => {
            input.session.state = *state;
            let found = input.session.state.outcomes.taken_back.clone().filter(|taken| taken.is_pending);
            match found {
                Some(taken) => take_back(context, input, &taken),
                None => Ok(Checked::judge(input)),
            }
        }
        Outcome::Paused(paused) => Ok(Checked::Paused(paused)),
        // A run that was cancelled meanwhile is judged.
        Outcome::GivenUp => Ok(pause(context)?.map_or_else(|| Checked::judge(input), Checked::Paused)),
    }
}

/// Compares the protected files once more, as a review may have taken long; a run that the user has stopped must know its changes, too.
/// Takes ticks back if files have changed. After a crash the next process compares them again.
pub(super) fn recheck_protected(
    context: &RunContext<'_>,
    mut input: GateInput,
) -> Result<Option<GateInput>, StoreError> {
    add_protected_changes(context, &mut input);
    let is_over = input.is_over();
    match ticks::refused_for_protected(&input.session.state, &input.evidence).filter(|_| !is_over) {
        Some(taken) => input.take_back(context, &taken),
        None => Ok(Some(input)),
    }
}

/// Adds the changes of protected files to the evidence; returns true if there are more than before.
fn add_protected_changes(context: &RunContext<'_>, input: &mut GateInput) -> bool {
    protect::record_changes(context, &input.session.state, &mut input.evidence)
}

fn take_back(context: &RunContext<'_>, input: GateInput, taken: &TakenBack) -> Result<Checked, StoreError> {
    Ok(input.take_back(context, taken)?.map_or(Checked::Gone, Checked::judge))
}

/// Pauses the run before its verdict; none for a run that has been cancelled meanwhile. The iteration stays "ended": the
/// next `--resume` verifies and judges it.
pub(in crate::run) fn pause(context: &RunContext<'_>) -> Result<Option<Verdict>, StoreError> {
    let paused = context.update(|state| {
        let open = !state.lifecycle.is_over();
        if open {
            state.lifecycle.wait(None);
        }
        open
    })?;
    let interrupted =
        Verdict::Pause { kind: PauseKind::Interrupted, until: None, reason: "interrupted".to_owned() };
    Ok(paused.filter(|paused| *paused).map(|_| interrupted))
}
