//! Decides which parts of the project's state file may change a run, compared with the run's ledger. The
//! ledger is outside the project, where only `plimsoll run`, `gate`, `start` and `stop` write. The file in
//! the project may have been written by an agent, or come with a clone.

use plimsoll_domain::item_set;
use plimsoll_domain::limits::RunLimits;
use plimsoll_domain::state::{IterationPhase, IterationRecord};
use plimsoll_domain::state::{PlanItems, RunOptions};
use plimsoll_domain::{RunState, RunStatus};

/// Returns true if the project's file must be ignored: it is another run's, or older than the ledger. The
/// ledger is written first, so after a kill between the two writes the project's file is older.
pub fn is_foreign_or_outdated(ledger_state: &RunState, file_state: &RunState) -> bool {
    file_state.run_id != ledger_state.run_id || file_state.revision < ledger_state.revision
}

/// Returns the state of the run, merged from the ledger (`ledger_state`) and the project's file
/// (`file_state`). Everything that starts a program, counts, limits or ends the run comes from the ledger.
/// The description of the work comes from the file, which may also make the run end sooner: by canceling it,
/// or by a smaller limit.
pub fn merge_permitted_file_changes_into_ledger(ledger_state: RunState, file_state: &RunState) -> RunState {
    if is_foreign_or_outdated(&ledger_state, file_state) {
        return ledger_state;
    }
    // The file may end the run, but nothing in it can reopen an ended run.
    let cancels_open_run =
        file_state.lifecycle.status() == RunStatus::Canceled && !ledger_state.lifecycle.has_ended();
    let claims_planned_iteration = file_claims_planned_iteration(&ledger_state, file_state);
    let mut state = RunState {
        iteration_record: merge_file_record_if_same_iteration(
            ledger_state.iteration_record,
            &file_state.iteration_record,
            claims_planned_iteration,
        ),
        session_id: if claims_planned_iteration {
            file_state.session_id.clone()
        } else {
            ledger_state.session_id
        },
        context_checkpoint: file_state.context_checkpoint.clone(),
        half_done_checkpoints: file_state.half_done_checkpoints.clone(),
        context_history: file_state.context_history.clone(),
        revision: ledger_state.revision.max(file_state.revision),
        options: RunOptions {
            max_iterations: stricter_max_iterations(
                ledger_state.options.max_iterations,
                file_state.options.max_iterations,
            ),
            limits: stricter_limits(&ledger_state.options.limits, &file_state.options.limits),
            ..ledger_state.options
        },
        plan_items: PlanItems {
            ever_ticked_items: union_of_ticked_items(
                ledger_state.plan_items.ever_ticked_items,
                &file_state.plan_items.ever_ticked_items,
            ),
            todo_items: file_state.plan_items.todo_items.clone(),
            completed_items: file_state.plan_items.completed_items.clone(),
            item_costs: file_state.plan_items.item_costs.clone(),
            open_item_costs: file_state.plan_items.open_item_costs.clone(),
            ..ledger_state.plan_items
        },
        ..ledger_state
    };
    if cancels_open_run {
        state.lifecycle.cancel_if_open(file_state.lifecycle.ended_at().cloned());
    }
    state
}

/// Returns true if the project's file claims the planned iteration for a session. In a shell loop the
/// session's id is not known in advance: the first session that starts with the run's environment variable
/// claims the planned iteration.
fn file_claims_planned_iteration(ledger_state: &RunState, file_state: &RunState) -> bool {
    let planned_record = &ledger_state.iteration_record;
    ledger_state.session_id.is_none()
        && planned_record.phase == IterationPhase::Planned
        && file_state.iteration_record.iteration == planned_record.iteration
        && file_state.iteration_record.phase == IterationPhase::Spawned
}

/// Merges what hooks recorded about the current session into the ledger's iteration record. A record of
/// another iteration is ignored.
fn merge_file_record_if_same_iteration(
    mut ledger_record: IterationRecord,
    file_record: &IterationRecord,
    claims_planned_iteration: bool,
) -> IterationRecord {
    if file_record.iteration != ledger_record.iteration {
        return ledger_record;
    }
    if claims_planned_iteration {
        ledger_record.phase = IterationPhase::Spawned;
        ledger_record.started_at.clone_from(&file_record.started_at);
    }
    ledger_record.has_hooks_running |= file_record.has_hooks_running;
    ledger_record.is_closed |= file_record.is_closed;
    ledger_record.measured_items.clone_from(&file_record.measured_items);
    ledger_record.context_growth = file_record.context_growth;
    ledger_record
}

// An agent that can write the plan can tick and remove items anyway, so merging the file's ticked items gives
// it no more authority.
fn union_of_ticked_items(mut ledger_items: Vec<String>, file_items: &[String]) -> Vec<String> {
    item_set::append_new_items(&mut ledger_items, file_items);
    ledger_items
}

/// Returns the smaller limit, so that the file can never raise it. 0 in the file means that it sets no limit.
fn stricter_max_iterations(ledger_limit: u32, file_limit: u32) -> u32 {
    if file_limit == 0 { ledger_limit } else { ledger_limit.min(file_limit) }
}

fn stricter_limits(ledger_limits: &RunLimits, file_limits: &RunLimits) -> RunLimits {
    fn smaller_limit<T: PartialOrd + Clone>(ledger_limit: &Option<T>, file_limit: &Option<T>) -> Option<T> {
        match (ledger_limit, file_limit) {
            (Some(ledger_value), Some(file_value)) if file_value < ledger_value => Some(file_value.clone()),
            (None, Some(file_value)) => Some(file_value.clone()),
            (ledger_value, _) => ledger_value.clone(),
        }
    }
    RunLimits {
        max_cost_usd: smaller_limit(&ledger_limits.max_cost_usd, &file_limits.max_cost_usd),
        max_cost_per_day_usd: smaller_limit(
            &ledger_limits.max_cost_per_day_usd,
            &file_limits.max_cost_per_day_usd,
        ),
        max_tokens: smaller_limit(&ledger_limits.max_tokens, &file_limits.max_tokens),
        // Timestamps of one format: the earlier one sorts first.
        deadline: smaller_limit(&ledger_limits.deadline, &file_limits.deadline),
        stop_at_limit_percent: smaller_limit(
            &ledger_limits.stop_at_limit_percent,
            &file_limits.stop_at_limit_percent,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::item_check::ItemCheck;
    use plimsoll_domain::promise::PromiseCode;
    use plimsoll_domain::reverted_ticks::RevertedTicks;
    use plimsoll_domain::state::Checkpoint;
    use plimsoll_domain::state::{
        Lifecycle, PlanItems, RunOptions, RunSpending, SessionOutcomes, VerifyTiming,
    };

    fn sample_ledger_state() -> RunState {
        RunState {
            run_id: "r1".into(),
            promise_code: "1a2b3c4d".parse().expect("a code"),
            iteration: 3,
            iteration_record: IterationRecord {
                iteration: 3,
                phase: IterationPhase::Spawned,
                pid: Some(77),
                ..IterationRecord::default()
            },
            session_id: Some("s3".into()),
            options: RunOptions {
                verify_commands: vec!["cargo test".into()],
                verify_sandbox: true,
                notify_command: vec!["notify-send".into()],
                client: Some("claude".into()),
                protected_paths: vec!["tests".into()],
                max_iterations: 10,
                limits: RunLimits { max_cost_usd: Some(5.0), ..RunLimits::default() },
                ..RunOptions::default()
            },
            plan_items: PlanItems { known_items: vec!["one".into(), "two".into()], ..PlanItems::default() },
            spending: RunSpending { cost_usd: 2.0, ..RunSpending::default() },
            outcomes: SessionOutcomes {
                protected_changes: vec!["tests/a".into()],
                ..SessionOutcomes::default()
            },
            ..RunState::default()
        }
    }

    /// Tries every field of the project's file that must not override the ledger.
    #[test]
    fn a_forged_project_file_has_no_authority() {
        let merge_forged = |forge: fn(&mut RunState)| {
            let mut file_state = sample_ledger_state();
            forge(&mut file_state);
            merge_permitted_file_changes_into_ledger(sample_ledger_state(), &file_state)
        };
        assert_eq!(merge_forged(|_| ()), sample_ledger_state(), "what both say holds");
        let forgeries: [fn(&mut RunState); 26] = [
            |state| state.lifecycle.restore_status(RunStatus::Completed),
            |state| state.lifecycle.pause_if_open(None),
            |state| state.options.verify_commands.clear(),
            |state| state.options.verify_commands = vec!["evil".into()],
            |state| state.options.verify_timing = VerifyTiming::BeforeCompletion,
            |state| state.options.verify_sandbox = false,
            |state| {
                state.options.plan_checks =
                    vec![ItemCheck { command: "evil".into(), ..ItemCheck::default() }];
            },
            |state| state.outcomes.passed_verify_commands = vec!["evil".into()],
            |state| {
                state.outcomes.reverted_ticks =
                    Some(RevertedTicks { is_pending: true, ..RevertedTicks::default() });
            },
            |state| state.options.protected_paths.clear(),
            |state| state.outcomes.protected_changes.clear(),
            |state| state.options.items_per_review = 1,
            |state| state.outcomes.reviews.unanswered_count = 1,
            |state| state.options.notify_command = vec!["evil".into()],
            |state| state.options.client = Some("evil".into()),
            |state| state.options.client_arguments = vec!["--evil".into()],
            |state| state.plan_items.known_items.clear(),
            |state| state.plan_items.ever_ticked_items.clear(),
            |state| state.promise_code = PromiseCode::default(),
            |state| state.options.max_iterations = 99,
            |state| state.options.max_iterations = 0,
            |state| state.options.limits.max_cost_usd = Some(99.0),
            |state| state.options.limits.max_cost_usd = None,
            |state| state.spending.cost_usd = 0.0,
            |state| state.iteration_record.pid = Some(1),
            |state| state.session_id = Some("another".into()),
        ];
        for (index, forge) in forgeries.into_iter().enumerate() {
            assert_eq!(merge_forged(forge), sample_ledger_state(), "forgery {index}");
        }
        assert_eq!(merge_forged(|state| state.run_id = "r2".into()), sample_ledger_state());
    }

    #[test]
    fn the_file_may_end_the_run_sooner_and_describe_the_work() {
        let merge_changed = |change: fn(&mut RunState)| {
            let mut file_state = sample_ledger_state();
            change(&mut file_state);
            merge_permitted_file_changes_into_ledger(sample_ledger_state(), &file_state)
        };
        assert_eq!(
            merge_changed(|state| state.lifecycle.cancel_if_open(None)).lifecycle.status(),
            RunStatus::Canceled
        );
        assert_eq!(merge_changed(|state| state.options.max_iterations = 4).options.max_iterations, 4);
        let limits = merge_changed(|state| {
            state.options.limits = RunLimits {
                max_cost_usd: Some(1.0),
                deadline: Some("2026-01-01T00:00:00Z".into()),
                ..RunLimits::default()
            };
        })
        .options
        .limits;
        assert_eq!((limits.max_cost_usd, limits.deadline.is_some()), (Some(1.0), true));
        let merged = merge_changed(|state| {
            state.plan_items.todo_items = vec!["two".into()];
            state.context_checkpoint = Checkpoint { active: true, ..Checkpoint::default() };
            state.iteration_record.has_hooks_running = true;
            state.iteration_record.is_closed = true;
            state.revision = 9;
        });
        assert!(
            merged.context_checkpoint.active
                && merged.iteration_record.has_hooks_running
                && merged.iteration_record.is_closed
        );
        assert_eq!((merged.plan_items.todo_items.len(), merged.revision), (1, 9));
    }

    #[test]
    fn a_file_older_than_the_ledger_is_ignored() {
        let ledger_state = RunState {
            revision: 5,
            plan_items: PlanItems { todo_items: vec!["two".into()], ..sample_ledger_state().plan_items },
            ..sample_ledger_state()
        };
        let outdated_state = RunState {
            revision: 4,
            plan_items: PlanItems {
                todo_items: vec!["one".into(), "two".into()],
                ..ledger_state.plan_items.clone()
            },
            ..ledger_state.clone()
        };
        assert_eq!(
            merge_permitted_file_changes_into_ledger(ledger_state.clone(), &outdated_state),
            ledger_state
        );
    }

    #[test]
    fn an_ended_run_is_not_canceled_and_older_iterations_are_ignored() {
        let completed_state =
            RunState { lifecycle: Lifecycle::with_status(RunStatus::Completed), ..sample_ledger_state() };
        let canceled_state =
            RunState { lifecycle: Lifecycle::with_status(RunStatus::Canceled), ..sample_ledger_state() };
        assert_eq!(
            merge_permitted_file_changes_into_ledger(completed_state, &canceled_state).lifecycle.status(),
            RunStatus::Completed
        );
        let mut older_iteration_state = sample_ledger_state();
        older_iteration_state.iteration_record =
            IterationRecord { iteration: 2, is_closed: true, ..IterationRecord::default() };
        assert!(
            !merge_permitted_file_changes_into_ledger(sample_ledger_state(), &older_iteration_state)
                .iteration_record
                .is_closed
        );
    }

    #[test]
    fn only_a_planned_iteration_without_a_session_is_claimed() {
        let mut ledger_state = sample_ledger_state();
        ledger_state.session_id = None;
        ledger_state.iteration_record.phase = IterationPhase::Planned;
        let mut file_state = ledger_state.clone();
        file_state.session_id = Some("s9".into());
        file_state.iteration_record.phase = IterationPhase::Spawned;
        file_state.iteration_record.started_at = Some("2026-01-01T00:00:00Z".into());
        let merged = merge_permitted_file_changes_into_ledger(ledger_state.clone(), &file_state);
        assert_eq!(
            (merged.session_id.as_deref(), merged.iteration_record.phase),
            (Some("s9"), IterationPhase::Spawned)
        );
        file_state.iteration_record.iteration = 2;
        assert_eq!(merge_permitted_file_changes_into_ledger(ledger_state, &file_state).session_id, None);
    }
}
