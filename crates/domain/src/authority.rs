//! What the project's own state file may say of a run, held against what the run's ledger knows. The ledger lies outside the
//! project, where only `plimsoll run`, `gate`, `start` and `stop` write; the file in the project may have been written by
//! an agent, or have come with a clone.

use crate::ids::SessionId;
use crate::limits::Limits;
use crate::state::{IterationRecord, Phase};
use crate::{RunState, Status};

/// The run as it is. What starts a program, counts, limits or ends it comes from `known`; what tells of the work comes from
/// `claimed`, which may also make the run end sooner: cancelled, or by a smaller limit.
pub fn held(known: &RunState, claimed: RunState) -> RunState {
    // The ledger is written first: whoever died between the two has left the project's file behind.
    if claimed.run_id != known.run_id || claimed.revision < known.revision {
        return known.clone();
    }
    let is_cancelled = claimed.status == Status::Cancelled && !known.status.is_over();
    let mut state = RunState {
        iteration_record: iteration(known, &claimed),
        session_id: session(known, &claimed),
        max_iterations: fewer(known.max_iterations, claimed.max_iterations),
        limits: tighter(&known.limits, &claimed.limits),
        ever_done: joined(&known.ever_done, claimed.ever_done),
        todo_items: claimed.todo_items,
        completed_items: claimed.completed_items,
        context_checkpoint: claimed.context_checkpoint,
        half_done: claimed.half_done,
        context_history: claimed.context_history,
        growth: claimed.growth,
        begun: claimed.begun,
        revision: known.revision.max(claimed.revision),
        ..known.clone()
    };
    if is_cancelled {
        state.status = Status::Cancelled;
        state.ended_at = claimed.ended_at;
    }
    state
}

/// In a shell loop nobody knows the session's id beforehand: the first session that starts with the run's variable claims
/// the iteration that was planned.
fn claims_session(known: &RunState, claimed: &RunState) -> bool {
    let planned = &known.iteration_record;
    known.session_id.is_none()
        && planned.phase == Phase::Planned
        && claimed.iteration_record.iteration == planned.iteration
        && claimed.iteration_record.phase == Phase::Spawned
}

fn session(known: &RunState, claimed: &RunState) -> Option<SessionId> {
    let claims = claims_session(known, claimed);
    if claims { claimed.session_id.clone() } else { known.session_id.clone() }
}

/// What hooks note of the session at work.
fn iteration(known: &RunState, claimed: &RunState) -> IterationRecord {
    let (mut record, noted) = (known.iteration_record.clone(), &claimed.iteration_record);
    if noted.iteration != record.iteration {
        return record;
    }
    if claims_session(known, claimed) {
        record.phase = Phase::Spawned;
        record.started_at.clone_from(&noted.started_at);
    }
    record.hooks_seen |= noted.hooks_seen;
    record.closed |= noted.closed;
    record.reckoned.clone_from(&noted.reckoned);
    record
}

/// Whoever may write the plan can tick an item and take it out of the list: to be told so is no more authority.
fn joined(known: &[String], claimed: Vec<String>) -> Vec<String> {
    let new = claimed.into_iter().filter(|item| !known.contains(item));
    known.iter().cloned().chain(new).collect()
}

/// No bound is lifted; 0 is what a file says that does not speak of one.
fn fewer(known: u32, claimed: u32) -> u32 {
    if claimed == 0 { known } else { known.min(claimed) }
}

fn tighter(known: &Limits, claimed: &Limits) -> Limits {
    fn least<T: PartialOrd + Clone>(known: &Option<T>, claimed: &Option<T>) -> Option<T> {
        match (known, claimed) {
            (Some(known), Some(claimed)) if claimed < known => Some(claimed.clone()),
            (None, Some(claimed)) => Some(claimed.clone()),
            (known, _) => known.clone(),
        }
    }
    Limits {
        max_cost_usd: least(&known.max_cost_usd, &claimed.max_cost_usd),
        max_tokens: least(&known.max_tokens, &claimed.max_tokens),
        // Moments of one form: the earlier one sorts first.
        deadline: least(&known.deadline, &claimed.deadline),
        stop_at_limit_percent: least(&known.stop_at_limit_percent, &claimed.stop_at_limit_percent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Checkpoint;

    fn known() -> RunState {
        RunState {
            run_id: "r1".into(),
            nonce: "1a2b3c4d".into(),
            verify: vec!["cargo test".into()],
            notify: vec!["notify-send".into()],
            client: Some("claude".into()),
            known_items: vec!["one".into(), "two".into()],
            max_iterations: 10,
            iteration: 3,
            cost_usd: 2.0,
            limits: Limits { max_cost_usd: Some(5.0), ..Limits::default() },
            iteration_record: IterationRecord {
                iteration: 3,
                phase: Phase::Spawned,
                pid: Some(77),
                ..IterationRecord::default()
            },
            session_id: Some("s3".into()),
            ..RunState::default()
        }
    }

    /// What a project's file says is taken for its word exactly in these.
    #[test]
    fn nothing_that_a_file_of_the_project_says_has_authority() {
        let forged = |forge: fn(&mut RunState)| {
            let mut claimed = known();
            forge(&mut claimed);
            held(&known(), claimed)
        };
        let forgeries: [fn(&mut RunState); 17] = [
            |state| state.status = Status::Completed,
            |state| state.status = Status::Paused,
            |state| state.verify.clear(),
            |state| state.verify = vec!["evil".into()],
            |state| state.notify = vec!["evil".into()],
            |state| state.client = Some("evil".into()),
            |state| state.client_arguments = vec!["--evil".into()],
            |state| state.known_items.clear(),
            |state| state.ever_done.clear(),
            |state| state.nonce = String::new(),
            |state| state.max_iterations = 99,
            |state| state.max_iterations = 0,
            |state| state.limits.max_cost_usd = Some(99.0),
            |state| state.limits.max_cost_usd = None,
            |state| state.cost_usd = 0.0,
            |state| state.iteration_record.pid = Some(1),
            |state| state.session_id = Some("another".into()),
        ];
        for (place, forge) in forgeries.into_iter().enumerate() {
            assert_eq!(forged(forge), known(), "forgery {place}");
        }
        assert_eq!(forged(|state| state.run_id = "r2".into()), known());
    }

    #[test]
    fn it_may_end_the_run_sooner_and_tell_of_the_work() {
        let with = |change: fn(&mut RunState)| {
            let mut claimed = known();
            change(&mut claimed);
            held(&known(), claimed)
        };
        assert_eq!(with(|state| state.status = Status::Cancelled).status, Status::Cancelled);
        assert_eq!(with(|state| state.max_iterations = 4).max_iterations, 4);
        let limits = with(|state| {
            state.limits = Limits {
                max_cost_usd: Some(1.0),
                deadline: Some("2026-01-01T00:00:00Z".into()),
                ..Limits::default()
            };
        })
        .limits;
        assert_eq!((limits.max_cost_usd, limits.deadline.is_some()), (Some(1.0), true));
        let told = with(|state| {
            state.todo_items = vec!["two".into()];
            state.context_checkpoint = Checkpoint { active: true, ..Checkpoint::default() };
            state.iteration_record.hooks_seen = true;
            state.iteration_record.closed = true;
            state.revision = 9;
        });
        assert!(
            told.context_checkpoint.active
                && told.iteration_record.hooks_seen
                && told.iteration_record.closed
        );
        assert_eq!((told.todo_items.len(), told.revision), (1, 9));
    }

    #[test]
    fn a_file_that_is_behind_the_ledger_tells_nothing() {
        let known = RunState { revision: 5, todo_items: vec!["two".into()], ..known() };
        let behind = RunState { revision: 4, todo_items: vec!["one".into(), "two".into()], ..known.clone() };
        assert_eq!(held(&known, behind), known);
    }

    #[test]
    fn a_run_that_is_over_is_not_cancelled_and_an_older_iteration_notes_nothing() {
        let over = RunState { status: Status::Completed, ..known() };
        let claimed = RunState { status: Status::Cancelled, ..known() };
        assert_eq!(held(&over, claimed).status, Status::Completed);
        let mut late = known();
        late.iteration_record = IterationRecord { iteration: 2, closed: true, ..IterationRecord::default() };
        assert!(!held(&known(), late).iteration_record.closed);
    }

    #[test]
    fn only_a_planned_iteration_without_a_session_is_claimed() {
        let mut planned = known();
        planned.session_id = None;
        planned.iteration_record.phase = Phase::Planned;
        let mut claimed = planned.clone();
        claimed.session_id = Some("s9".into());
        claimed.iteration_record.phase = Phase::Spawned;
        claimed.iteration_record.started_at = Some("2026-01-01T00:00:00Z".into());
        let state = held(&planned, claimed.clone());
        assert_eq!((state.session_id.as_deref(), state.iteration_record.phase), (Some("s9"), Phase::Spawned));
        claimed.iteration_record.iteration = 2;
        assert_eq!(held(&planned, claimed).session_id, None);
    }
}
