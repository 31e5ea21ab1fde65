//! Reads what the sessions of all items have used, and checks the limits of the run.

use crate::context::running_sessions::RunFiguresReader;
use crate::run_duration::seconds_of_work_if_never_paused;
use crate::workers::closing_reason::ClosingReason;
use crate::workers::context::ParallelRun;
use crate::workers::item_figures::read_snapshot_or_default_of_every_item;
use crate::workers::item_run;
use crate::workers::shown_plan;
use crate::workers::slot::Slot;
use plimsoll_domain::run_figures::RunFigures;
use plimsoll_domain::text::count_with_noun;
use plimsoll_domain::{RunState, RunStatus, Verdict};
use plimsoll_policy::run_figures::{ItemRunSnapshot, figures_of_parallel_run};
use plimsoll_store::clock;

/// The figures that were last read about the items' runs.
#[derive(Default)]
pub(super) struct ItemRunUsage {
    reader: RunFiguresReader,
    /// The figures of the items' runs, one entry for each item.
    item_runs: Vec<ItemRunSnapshot>,
}

impl ItemRunUsage {
    /// Reads what sessions have used, and updates the usage of running items in memory.
    pub(super) fn refresh_item_runs_and_running_usage(
        &mut self,
        parallel_run: ParallelRun<'_>,
        slots: &[Option<Slot<'_>>],
    ) {
        let workers_state = parallel_run.workers_state();
        self.item_runs = read_snapshot_or_default_of_every_item(
            &mut self.reader,
            parallel_run.context.project,
            parallel_run.initial_state,
            &workers_state,
        );
        for slot in slots.iter().flatten().filter(|slot| slot.running_process().is_some()) {
            let item = slot.claim.item_index;
            let usage = item_run::usage_of_current_run(
                &parallel_run.item_project(item),
                &workers_state.item_progress[item].earlier_run_id,
            );
            parallel_run.board.workers_file().update_in_memory(|workers| {
                let item_progress = &mut workers.item_progress[item];
                item_progress.current_usage = usage.usage_since(item_progress.already_counted_usage);
            });
        }
    }

    /// Returns the used percentage of the context window of an item's session.
    pub(super) fn context_percent(&self, item: usize) -> Option<u64> {
        self.item_runs.get(item)?.window_percent
    }

    /// Returns the figures of the whole run.
    pub(super) fn run_figures(&self, parallel_run: ParallelRun<'_>) -> RunFigures {
        let seconds_of_work = seconds_of_work_if_never_paused(parallel_run.initial_state);
        figures_of_parallel_run(&parallel_run.workers_state(), &self.item_runs, true, seconds_of_work)
    }
}

/// Writes the usage of all sessions to the state, so that readers of the state alone, such as the status
/// line, have current values while items are running.
pub(super) fn write_usage_to_state_if_changed(parallel_run: ParallelRun<'_>, state: &RunState) {
    let usage = parallel_run.workers_state().total_usage_of_all_items();
    if usage != item_run::usage_of_ended_sessions_of_run(state) {
        // An error must not end the run: the write is repeated at the next interval.
        let _ =
            shown_plan::write_usage_to_state(parallel_run.context.project, parallel_run.initial_state, usage);
    }
}

/// Returns the closing reason if a limit of the run is reached. Running sessions are allowed to finish.
pub(super) fn closing_reason_if_limit_reached(
    parallel_run: ParallelRun<'_>,
    mut state: RunState,
) -> Option<ClosingReason> {
    let (usage, max_iterations) = (
        parallel_run.workers_state().total_usage_of_all_items(),
        parallel_run.initial_state.options.max_iterations,
    );
    (state.spending.cost_usd, state.spending.tokens) = (usage.cost_usd, usage.tokens);
    state.spending.add_cost_basis(usage.cost_basis);
    let budget_or_deadline_reason = match plimsoll_policy::bounds::stop_if_budget_spent_or_deadline_passed(
        &state,
        &clock::to_timestamp(clock::now()),
    ) {
        Some(Verdict::Stop { status, reason }) => Some(ClosingReason::Stop(status, reason)),
        Some(Verdict::Pause { .. } | Verdict::Continue { .. }) | None => None,
    };
    let session_limit_reason = || {
        let reason = count_with_noun(usage.sessions as usize, "session") + " used";
        ClosingReason::Stop(RunStatus::MaxIterations, reason)
    };
    budget_or_deadline_reason.or_else(|| (usage.sessions >= max_iterations).then(session_limit_reason))
}
