//! What the project's own state file may change about a run, compared with the run's ledger. The ledger is outside the
//! project, where only `plimsoll run`, `gate`, `start` and `stop` write; the file in the project may have been written by
//! an agent, or have come with a clone.

use plimsoll_domain::item_set;
use plimsoll_domain::limits::Limits;
use plimsoll_domain::state::{Items, RunOptions};
use plimsoll_domain::state::{IterationRecord, Phase};
use plimsoll_domain::{RunState, Status};

/// True for a file that tells nothing: another run's, or one that is older than the ledger. The ledger is written first, so after
/// a kill between the two writes the project's file is older.
pub fn is_behind(known: &RunState, claimed: &RunState) -> bool {
    claimed.run_id != known.run_id || claimed.revision < known.revision
}

/// The run as it is. What starts a program, counts, limits or ends it comes from `known`; what describes the work comes from
/// `claimed`, which may also make the run end sooner: cancelled, or by a smaller limit.
pub fn held(known: RunState, claimed: &RunState) -> RunState {
    if is_behind(&known, claimed) {
        return known;
    }
    // Believed in this direction only: it ends the run, and nothing in the file opens one again.
    let is_cancelled = claimed.lifecycle.status() == Status::Cancelled && !known.lifecycle.is_over();
    let claims_session = claims_session(&known, claimed);
    let mut state = RunState {
        iteration_record: iteration(known.iteration_record, &claimed.iteration_record, claims_session),
        session_id: if claims_session { claimed.session_id.clone() } else { known.session_id },
        context_checkpoint: claimed.context_checkpoint.clone(),
        half_done: claimed.half_done.clone(),
        context_history: claimed.context_history.clone(),
        revision: known.revision.max(claimed.revision),
        options: RunOptions {
            max_iterations: fewer(known.options.max_iterations, claimed.options.max_iterations),
            limits: tighter(&known.options.limits, &claimed.options.limits),
            ..known.options
        },
        items: Items {
            ever_done: joined(known.items.ever_done, &claimed.items.ever_done),
            todo_items: claimed.items.todo_items.clone(),
            completed_items: claimed.items.completed_items.clone(),
            growth: claimed.items.growth.clone(),
            begun: claimed.items.begun.clone(),
            ..known.items
        },
        ..known
    };
    if is_cancelled {
        state.lifecycle.cancel(claimed.lifecycle.ended_at().cloned());
    }
    state
}

/// In a shell loop the session's id is not known beforehand: the first session that starts with the run's variable claims
/// the iteration that was planned.
fn claims_session(known: &RunState, claimed: &RunState) -> bool {
    let planned = &known.iteration_record;
    known.session_id.is_none()
        && planned.phase == Phase::Planned
        && claimed.iteration_record.iteration == planned.iteration
        && claimed.iteration_record.phase == Phase::Spawned
}

/// What hooks note of the session at work.
fn iteration(mut record: IterationRecord, noted: &IterationRecord, claims_session: bool) -> IterationRecord {
    if noted.iteration != record.iteration {
        return record;
    }
    if claims_session {
        record.phase = Phase::Spawned;
        record.started_at.clone_from(&noted.started_at);
    }
    record.hooks_seen |= noted.hooks_seen;
    record.closed |= noted.closed;
    record.reckoned.clone_from(&noted.reckoned);
    record.measured_growth = noted.measured_growth;
    record
}

/// An agent that can write the plan can tick and remove items anyway: taking this from the file gives it no more authority.
fn joined(mut known: Vec<String>, claimed: &[String]) -> Vec<String> {
    item_set::join(&mut known, claimed);
    known
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
        max_cost_per_day_usd: least(&known.max_cost_per_day_usd, &claimed.max_cost_per_day_usd),
        max_tokens: least(&known.max_tokens, &claimed.max_tokens),
        // Moments of one form: the earlier one sorts first.
        deadline: least(&known.deadline, &claimed.deadline),
        stop_at_limit_percent: least(&known.stop_at_limit_percent, &claimed.stop_at_limit_percent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::item_check::ItemCheck;
    use plimsoll_domain::promise::PromiseCode;
    use plimsoll_domain::state::Checkpoint;
    use plimsoll_domain::state::{Items, Lifecycle, Outcomes, RunOptions, Spent, VerifyEach};
    use plimsoll_domain::taken_back::TakenBack;

    fn known() -> RunState {
        RunState {
            run_id: "r1".into(),
            nonce: "1a2b3c4d".parse().expect("a code"),
            iteration: 3,
            iteration_record: IterationRecord {
                iteration: 3,
                phase: Phase::Spawned,
                pid: Some(77),
                ..IterationRecord::default()
            },
            session_id: Some("s3".into()),
            options: RunOptions {
                verify: vec!["cargo test".into()],
                verify_sandbox: true,
                notify: vec!["notify-send".into()],
                client: Some("claude".into()),
                protect: vec!["tests".into()],
                max_iterations: 10,
                limits: Limits { max_cost_usd: Some(5.0), ..Limits::default() },
                ..RunOptions::default()
            },
            items: Items { known_items: vec!["one".into(), "two".into()], ..Items::default() },
            spent: Spent { cost_usd: 2.0, ..Spent::default() },
            outcomes: Outcomes { changed_protected: vec!["tests/a".into()], ..Outcomes::default() },
            ..RunState::default()
        }
    }

    /// What a project's file says is taken for its word exactly in these.
    #[test]
    fn nothing_that_a_file_of_the_project_says_has_authority() {
        let forged = |forge: fn(&mut RunState)| {
            let mut claimed = known();
            forge(&mut claimed);
            held(known(), &claimed)
        };
        assert_eq!(forged(|_| ()), known(), "what both say holds");
        let forgeries: [fn(&mut RunState); 26] = [
            |state| state.lifecycle.stay(Status::Completed),
            |state| state.lifecycle.wait(None),
            |state| state.options.verify.clear(),
            |state| state.options.verify = vec!["evil".into()],
            |state| state.options.verify_each = VerifyEach::Promise,
            |state| state.options.verify_sandbox = false,
            |state| {
                state.options.plan_checks =
                    vec![ItemCheck { command: "evil".into(), ..ItemCheck::default() }];
            },
            |state| state.outcomes.verify_passed = vec!["evil".into()],
            |state| state.outcomes.taken_back = Some(TakenBack { is_pending: true, ..TakenBack::default() }),
            |state| state.options.protect.clear(),
            |state| state.outcomes.changed_protected.clear(),
            |state| state.options.review_every = 1,
            |state| state.outcomes.reviews.unanswered = 1,
            |state| state.options.notify = vec!["evil".into()],
            |state| state.options.client = Some("evil".into()),
            |state| state.options.client_arguments = vec!["--evil".into()],
            |state| state.items.known_items.clear(),
            |state| state.items.ever_done.clear(),
            |state| state.nonce = PromiseCode::default(),
            |state| state.options.max_iterations = 99,
            |state| state.options.max_iterations = 0,
            |state| state.options.limits.max_cost_usd = Some(99.0),
            |state| state.options.limits.max_cost_usd = None,
            |state| state.spent.cost_usd = 0.0,
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
            held(known(), &claimed)
        };
        assert_eq!(with(|state| state.lifecycle.cancel(None)).lifecycle.status(), Status::Cancelled);
        assert_eq!(with(|state| state.options.max_iterations = 4).options.max_iterations, 4);
        let limits = with(|state| {
            state.options.limits = Limits {
                max_cost_usd: Some(1.0),
                deadline: Some("2026-01-01T00:00:00Z".into()),
                ..Limits::default()
            };
        })
        .options
        .limits;
        assert_eq!((limits.max_cost_usd, limits.deadline.is_some()), (Some(1.0), true));
        let told = with(|state| {
            state.items.todo_items = vec!["two".into()];
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
        assert_eq!((told.items.todo_items.len(), told.revision), (1, 9));
    }

    #[test]
    fn a_file_that_is_behind_the_ledger_tells_nothing() {
        let known = RunState {
            revision: 5,
            items: Items { todo_items: vec!["two".into()], ..known().items },
            ..known()
        };
        let behind = RunState {
            revision: 4,
            items: Items { todo_items: vec!["one".into(), "two".into()], ..known.items.clone() },
            ..known.clone()
        };
        assert_eq!(held(known.clone(), &behind), known);
    }

    #[test]
    fn a_run_that_is_over_is_not_cancelled_and_an_older_iteration_notes_nothing() {
        let over = RunState { lifecycle: Lifecycle::of(Status::Completed), ..known() };
        let claimed = RunState { lifecycle: Lifecycle::of(Status::Cancelled), ..known() };
        assert_eq!(held(over, &claimed).lifecycle.status(), Status::Completed);
        let mut late = known();
        late.iteration_record = IterationRecord { iteration: 2, closed: true, ..IterationRecord::default() };
        assert!(!held(known(), &late).iteration_record.closed);
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
        let state = held(planned.clone(), &claimed);
        assert_eq!((state.session_id.as_deref(), state.iteration_record.phase), (Some("s9"), Phase::Spawned));
        claimed.iteration_record.iteration = 2;
        assert_eq!(held(planned, &claimed).session_id, None);
    }
}
