//! Computes the figures of a run. All screens use them, so that they show the same numbers.

use crate::current_item::current_unparked_item;
use crate::remaining_work::{
    estimate_remaining_work_of_parallel_run, estimate_remaining_work_of_sequential_run,
};
use plimsoll_domain::RunState;
use plimsoll_domain::board::{ItemStage, SetAsideReason};
use plimsoll_domain::run_figures::{ItemCounts, RunFigures, WorkerActivity, WorkerFigures};
use plimsoll_domain::state::ApiRetryState;
use plimsoll_domain::workers::{ItemProgress, WorkUsage, WorkersState};

/// The usage of the running session so far. The sums in the run's state do not include it yet.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RunningSession {
    /// True while its client is running.
    pub is_alive: bool,
    /// Its cost and tokens; the session itself is counted separately.
    pub usage: WorkUsage,
}

/// The state of the run of one item that is not in the record of the parallel run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ItemRunSnapshot {
    /// The recorded process when this snapshot was taken. A snapshot of an earlier process does not count.
    pub pid: Option<u32>,
    /// True while the item's run is running.
    pub is_alive: bool,
    /// The usage of its sessions, including the running one; `None` if the run has no state.
    pub usage: Option<WorkUsage>,
    /// True while its client is running.
    pub is_session_running: bool,
    /// Usage of the context window of its session, in percent.
    pub window_percent: Option<u64>,
    /// Why its client is retrying a request; `None` if it is not.
    pub api_retry: Option<ApiRetryState>,
}

/// Returns the figures of a run with one session at a time.
pub fn figures_of_sequential_run(state: &RunState, session: Option<RunningSession>) -> RunFigures {
    let (spending, session) = (&state.spending, session.unwrap_or_default());
    let mut figures = RunFigures {
        sessions_running: u32::from(session.is_alive),
        items: count_plan_items(state, session.is_alive),
        ..RunFigures::default()
    };
    figures.add_usage(WorkUsage {
        cost_usd: spending.cost_usd,
        cost_basis: spending.cost_basis(),
        tokens: spending.tokens,
        sessions: state.iteration,
    });
    figures.add_usage(WorkUsage { sessions: 0, ..session.usage });
    figures.remaining = estimate_remaining_work_of_sequential_run(state, &figures.items);
    figures
}

fn count_plan_items(state: &RunState, is_session_running: bool) -> ItemCounts {
    let items = &state.plan_items;
    let (open, done) = (items.todo_items.len(), items.completed_items.len());
    ItemCounts {
        total: open + done,
        done,
        open,
        in_progress: usize::from(is_session_running && current_unparked_item(state).is_some()),
        waiting_to_merge: 0,
        set_aside: items.set_aside_items.len(),
        parked: items.parked_questions.len(),
    }
}

/// Returns the figures of a parallel run, from its record and from snapshots of the item runs. `item_run_snapshots` has
/// an entry for each item, or is empty. `seconds_of_work` is the time since the run began, if it has worked all that time.
pub fn figures_of_parallel_run(
    workers_state: &WorkersState,
    item_run_snapshots: &[ItemRunSnapshot],
    is_run_active: bool,
    seconds_of_work: Option<u64>,
) -> RunFigures {
    let mut figures =
        RunFigures { items: count_board_items_by_stage(workers_state), ..RunFigures::default() };
    for (item_index, progress) in workers_state.item_progress.iter().enumerate() {
        let snapshot = item_run_snapshots
            .get(item_index)
            .filter(|snapshot| is_from_recorded_process(snapshot, progress));
        let current_usage = snapshot
            .and_then(|snapshot| snapshot.usage)
            .map_or(progress.current_usage, |usage| usage.usage_since(progress.already_counted_usage));
        figures.add_usage(progress.earlier_usage);
        figures.add_usage(current_usage);
        figures.sessions_running += u32::from(snapshot.is_some_and(|snapshot| snapshot.is_session_running));
        if workers_state.is_leased_by_this_machine(item_index) {
            figures.workers.push(WorkerFigures {
                worker_number: progress.worker_number,
                item_number: item_index + 1,
                item_text: workers_state.board.items[item_index].text.clone(),
                activity: worker_activity(
                    progress,
                    snapshot.is_some_and(|snapshot| snapshot.is_alive),
                    is_run_active,
                ),
                session_number: current_usage.sessions,
                context_percent: snapshot.and_then(|snapshot| snapshot.window_percent),
                api_retry: snapshot.and_then(|snapshot| snapshot.api_retry.clone()),
                cost_usd: current_usage.cost_usd,
                cost_basis: current_usage.cost_basis,
                tokens: current_usage.tokens,
            });
        }
    }
    figures.remaining =
        estimate_remaining_work_of_parallel_run(workers_state, &figures.items, seconds_of_work);
    figures
}

/// Returns true if the snapshot is of the recorded process. A running process without a recorded pid has survived a kill
/// and was found by its lock.
fn is_from_recorded_process(snapshot: &ItemRunSnapshot, progress: &ItemProgress) -> bool {
    snapshot.pid == progress.pid && (snapshot.pid.is_some() || snapshot.is_alive)
}

fn worker_activity(progress: &ItemProgress, is_item_run_alive: bool, is_run_active: bool) -> WorkerActivity {
    match (is_item_run_alive, is_run_active) {
        (true, _) => WorkerActivity::Working,
        (false, false) => WorkerActivity::Stopped,
        (false, true) if progress.is_waiting => WorkerActivity::Waiting,
        (false, true) => WorkerActivity::Preparing,
    }
}

fn count_board_items_by_stage(workers_state: &WorkersState) -> ItemCounts {
    let mut counts = ItemCounts { total: workers_state.board.items.len(), ..ItemCounts::default() };
    for board_item in &workers_state.board.items {
        match &board_item.stage {
            ItemStage::Open => {}
            ItemStage::Leased { .. } => counts.in_progress += 1,
            ItemStage::ReadyToMerge { .. } => counts.waiting_to_merge += 1,
            ItemStage::Merged => counts.done += 1,
            ItemStage::SetAside { reason: SetAsideReason::Question(_) } => counts.parked += 1,
            ItemStage::SetAside {
                reason: SetAsideReason::TooManyFailedMerges | SetAsideReason::RunEnded(_),
            } => counts.set_aside += 1,
        }
    }
    counts.open = counts.total - counts.done;
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::board::{BoardItem, BoardState, Lease};
    use plimsoll_domain::cost::CostBasis;
    use plimsoll_domain::state::{PlanItems, RunSpending};
    use plimsoll_domain::workers::FleetMember;

    fn usage(cost_usd: f64, tokens: u64, sessions: u32) -> WorkUsage {
        WorkUsage { cost_usd, tokens, sessions, ..WorkUsage::default() }
    }

    fn leased_stage(holder: &str) -> ItemStage {
        ItemStage::Leased { lease: Lease { holder: holder.into(), expires_at: 0 } }
    }

    fn record_with_stages(stages: Vec<ItemStage>) -> WorkersState {
        let works = vec![ItemProgress::default(); stages.len()];
        let to_board_item = |stage| BoardItem { text: "Item".into(), stage, ..BoardItem::default() };
        let items = stages.into_iter().map(to_board_item).collect();
        WorkersState {
            item_progress: works,
            board: BoardState { items, ..BoardState::default() },
            ..WorkersState::default()
        }
    }

    #[test]
    fn the_running_session_counts_with_its_estimated_cost() {
        let state = RunState {
            iteration: 3,
            spending: RunSpending { cost_usd: 2.0, tokens: 1_000, ..RunSpending::default() },
            plan_items: PlanItems {
                todo_items: vec!["a".into(), "b".into()],
                completed_items: vec!["c".into()],
                ..PlanItems::default()
            },
            ..RunState::default()
        };
        let session = RunningSession {
            is_alive: true,
            usage: WorkUsage { cost_basis: CostBasis::Estimated, ..usage(0.5, 500, 1) },
        };
        let figures = figures_of_sequential_run(&state, Some(session));
        assert_eq!((figures.sessions_started, figures.sessions_running, figures.tokens), (3, 1, 1_500));
        assert_eq!(figures.total_cost().basis.format_usd(figures.cost_usd), "about $2.50");
        let items = figures.items;
        assert_eq!((items.total, items.done, items.open, items.in_progress), (3, 1, 2, 1));
        let between_sessions = figures_of_sequential_run(&state, None);
        assert_eq!((between_sessions.sessions_running, between_sessions.items.in_progress), (0, 0));
        assert_eq!(between_sessions.total_cost().basis.format_usd(between_sessions.cost_usd), "$2.00");
    }

    #[test]
    fn running_workers_count_with_the_figures_of_their_own_runs() {
        let question = ItemStage::SetAside { reason: SetAsideReason::Question("?".into()) };
        let mut record = record_with_stages(vec![
            leased_stage("worker 1"),
            leased_stage("worker 2"),
            ItemStage::Merged,
            ItemStage::ReadyToMerge { commit: String::new() },
            question,
            ItemStage::SetAside { reason: SetAsideReason::TooManyFailedMerges },
            ItemStage::Open,
        ]);
        (record.item_progress[0].worker_number, record.item_progress[0].pid) = (1, Some(10));
        record.item_progress[0].earlier_usage = usage(1.0, 100, 1);
        record.item_progress[0].already_counted_usage = usage(0.5, 50, 1);
        (record.item_progress[1].worker_number, record.item_progress[1].pid) = (2, None);
        record.item_progress[2].current_usage = usage(3.0, 300, 2);
        let current_usage = WorkUsage { cost_basis: CostBasis::Estimated, ..usage(0.75, 80, 2) };
        let facts = ItemRunSnapshot {
            pid: Some(10),
            is_alive: true,
            usage: Some(current_usage),
            is_session_running: true,
            window_percent: Some(7),
            api_retry: Some(ApiRetryState::default()),
        };
        let figures = figures_of_parallel_run(&record, std::slice::from_ref(&facts), true, None);
        assert_eq!(
            figures.api_retry_if_all_workers_retry(),
            Some(&ApiRetryState::default()),
            "the only session that is running has some"
        );
        assert_eq!((figures.sessions_started, figures.sessions_running, figures.tokens), (4, 1, 430));
        assert_eq!(figures.total_cost().basis.format_usd(figures.cost_usd), "about $4.25");
        let items = figures.items;
        assert_eq!((items.total, items.done, items.open, items.in_progress), (7, 1, 6, 2));
        assert_eq!((items.waiting_to_merge, items.set_aside, items.parked), (1, 1, 1));
        let workers: Vec<_> = figures
            .workers
            .iter()
            .map(|worker| (worker.worker_number, worker.item_number, worker.activity, worker.session_number))
            .collect();
        assert_eq!(workers, [(1, 1, WorkerActivity::Working, 1), (2, 2, WorkerActivity::Preparing, 0)]);
        // The next attempt has begun since the facts were read: they are about a run that is already counted
        // elsewhere.
        record.item_progress[0].pid = Some(11);
        assert_eq!(figures_of_parallel_run(&record, &[facts], true, None).tokens, 400);
    }

    #[test]
    fn a_worker_waits_or_has_stopped_if_its_item_has_no_process() {
        for (is_waiting, is_run_active, expected) in [
            (false, true, WorkerActivity::Preparing),
            (true, true, WorkerActivity::Waiting),
            (true, false, WorkerActivity::Stopped),
        ] {
            let mut record = record_with_stages(vec![leased_stage("worker 1")]);
            record.item_progress[0].is_waiting = is_waiting;
            assert_eq!(
                figures_of_parallel_run(&record, &[], is_run_active, None).workers[0].activity,
                expected
            );
        }
        let orphan = ItemRunSnapshot { is_alive: true, ..ItemRunSnapshot::default() };
        let figures = figures_of_parallel_run(
            &record_with_stages(vec![leased_stage("worker 1")]),
            &[orphan],
            false,
            None,
        );
        assert_eq!(figures.workers[0].activity, WorkerActivity::Working);
    }

    #[test]
    fn an_item_of_another_machine_is_in_work_and_no_worker_of_this_one() {
        let mut record = record_with_stages(vec![leased_stage("here/1"), leased_stage("there/1")]);
        record.fleet_member = Some(FleetMember { name: "here".into(), ..FleetMember::default() });
        let figures = figures_of_parallel_run(&record, &[], true, None);
        assert_eq!((figures.items.in_progress, figures.workers.len()), (2, 1));
    }
}
