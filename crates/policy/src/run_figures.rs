//! The figures of a run, computed from what was read about it. Every screen takes them from here, so that none shows another number.

use crate::item_in_hand::item_in_hand;
use plimsoll_domain::RunState;
use plimsoll_domain::board::{Aside, Stage};
use plimsoll_domain::run_figures::{ItemCounts, RunFigures, WorkerActivity, WorkerFigures};
use plimsoll_domain::state::ApiTrouble;
use plimsoll_domain::workers::{Used, Work, Workers};

/// What the running session of a run has used so far. Nothing of it is in the run's own sums yet.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RunningSession {
    /// True while its client is running.
    pub is_alive: bool,
    /// Its cost and its tokens; it is counted among the sessions elsewhere.
    pub used: Used,
}

/// What is known of the run of one item beside the record of the parallel run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ItemRunFacts {
    /// The process that the record named when this was read: facts about an earlier process do not count.
    pub pid: Option<u32>,
    /// True while the item's run is at work.
    pub is_alive: bool,
    /// What its sessions have used, with the running one; none if the run has no state.
    pub used: Option<Used>,
    /// True while its client is running.
    pub is_session_running: bool,
    /// How full the window of its session is.
    pub percent: Option<u64>,
    /// Why its client retries a request at present; none if it does not.
    pub api_trouble: Option<ApiTrouble>,
}

/// Returns the figures of a run that has one session after another.
pub fn figures_of_sessions(state: &RunState, session: Option<RunningSession>) -> RunFigures {
    let (spent, session) = (&state.spent, session.unwrap_or_default());
    let mut figures = RunFigures {
        sessions_running: u32::from(session.is_alive),
        items: count_plan_items(state, session.is_alive),
        ..RunFigures::default()
    };
    figures.add_used(Used {
        cost_usd: spent.cost_usd,
        cost_basis: spent.cost_basis(),
        tokens: spent.tokens,
        sessions: state.iteration,
    });
    figures.add_used(Used { sessions: 0, ..session.used });
    figures
}

fn count_plan_items(state: &RunState, is_session_running: bool) -> ItemCounts {
    let items = &state.items;
    let (open, done) = (items.todo_items.len(), items.completed_items.len());
    ItemCounts {
        total: open + done,
        done,
        open,
        in_work: usize::from(is_session_running && item_in_hand(state).is_some()),
        to_merge: 0,
        set_aside: items.set_aside.len(),
        parked: items.parked.len(),
    }
}

/// Returns the figures of a parallel run: what the record says, with what is known of the runs of items. `facts` has an entry for each
/// item, or none.
pub fn figures_of_workers(record: &Workers, facts: &[ItemRunFacts], is_run_active: bool) -> RunFigures {
    let mut figures = RunFigures { items: count_board_items(record), ..RunFigures::default() };
    for (item, work) in record.works.iter().enumerate() {
        let facts = facts.get(item).filter(|facts| is_about_present_run(facts, work));
        let present = facts.and_then(|facts| facts.used).map_or(work.now, |used| used.beyond(work.counted));
        figures.add_used(work.before);
        figures.add_used(present);
        figures.sessions_running += u32::from(facts.is_some_and(|facts| facts.is_session_running));
        if record.is_held_here(item) {
            figures.workers.push(WorkerFigures {
                worker: work.worker,
                item: item + 1,
                text: record.board.items[item].text.clone(),
                activity: activity_of_worker(work, facts.is_some_and(|facts| facts.is_alive), is_run_active),
                session: present.sessions,
                percent: facts.and_then(|facts| facts.percent),
                api_trouble: facts.and_then(|facts| facts.api_trouble.clone()),
                cost_usd: present.cost_usd,
                cost_basis: present.cost_basis,
                tokens: present.tokens,
            });
        }
    }
    figures
}

/// A process that the record does not name yet is one that a kill has left: it was found by the lock that it holds.
fn is_about_present_run(facts: &ItemRunFacts, work: &Work) -> bool {
    facts.pid == work.pid && (facts.pid.is_some() || facts.is_alive)
}

fn activity_of_worker(work: &Work, is_alive: bool, is_run_active: bool) -> WorkerActivity {
    match (is_alive, is_run_active) {
        (true, _) => WorkerActivity::Working,
        (false, false) => WorkerActivity::Stopped,
        (false, true) if work.is_waiting => WorkerActivity::Waiting,
        (false, true) => WorkerActivity::Preparing,
    }
}

fn count_board_items(record: &Workers) -> ItemCounts {
    let mut counts = ItemCounts { total: record.board.items.len(), ..ItemCounts::default() };
    for row in &record.board.items {
        match &row.stage {
            Stage::Open => {}
            Stage::Leased { .. } => counts.in_work += 1,
            Stage::Offered { .. } => counts.to_merge += 1,
            Stage::Merged => counts.done += 1,
            Stage::Aside { reason: Aside::Question(_) } => counts.parked += 1,
            Stage::Aside { reason: Aside::Tries | Aside::Ended(_) } => counts.set_aside += 1,
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
    use plimsoll_domain::state::{Items, Spent};
    use plimsoll_domain::workers::Member;

    fn used(cost_usd: f64, tokens: u64, sessions: u32) -> Used {
        Used { cost_usd, tokens, sessions, ..Used::default() }
    }

    fn leased(holder: &str) -> Stage {
        Stage::Leased { lease: Lease { holder: holder.into(), until: 0 } }
    }

    fn record(stages: Vec<Stage>) -> Workers {
        let works = vec![Work::default(); stages.len()];
        let row = |stage| BoardItem { text: "Item".into(), stage, ..BoardItem::default() };
        let items = stages.into_iter().map(row).collect();
        Workers { works, board: BoardState { items, ..BoardState::default() }, ..Workers::default() }
    }

    #[test]
    fn the_running_session_counts_with_its_estimated_cost() {
        let state = RunState {
            iteration: 3,
            spent: Spent { cost_usd: 2.0, tokens: 1_000, ..Spent::default() },
            items: Items {
                todo_items: vec!["a".into(), "b".into()],
                completed_items: vec!["c".into()],
                ..Items::default()
            },
            ..RunState::default()
        };
        let session = RunningSession {
            is_alive: true,
            used: Used { cost_basis: CostBasis::Estimated, ..used(0.5, 500, 1) },
        };
        let figures = figures_of_sessions(&state, Some(session));
        assert_eq!((figures.sessions_started, figures.sessions_running, figures.tokens), (3, 1, 1_500));
        assert_eq!(figures.cost().basis.format_usd(figures.cost_usd), "about $2.50");
        let items = figures.items;
        assert_eq!((items.total, items.done, items.open, items.in_work), (3, 1, 2, 1));
        let between = figures_of_sessions(&state, None);
        assert_eq!((between.sessions_running, between.items.in_work), (0, 0));
        assert_eq!(between.cost().basis.format_usd(between.cost_usd), "$2.00");
    }

    #[test]
    fn workers_at_work_count_with_what_their_own_runs_say() {
        let question = Stage::Aside { reason: Aside::Question("?".into()) };
        let mut record = record(vec![
            leased("worker 1"),
            leased("worker 2"),
            Stage::Merged,
            Stage::Offered { commit: String::new() },
            question,
            Stage::Aside { reason: Aside::Tries },
            Stage::Open,
        ]);
        (record.works[0].worker, record.works[0].pid) = (1, Some(10));
        record.works[0].before = used(1.0, 100, 1);
        record.works[0].counted = used(0.5, 50, 1);
        (record.works[1].worker, record.works[1].pid) = (2, None);
        record.works[2].now = used(3.0, 300, 2);
        let present = Used { cost_basis: CostBasis::Estimated, ..used(0.75, 80, 2) };
        let facts = ItemRunFacts {
            pid: Some(10),
            is_alive: true,
            used: Some(present),
            is_session_running: true,
            percent: Some(7),
            api_trouble: Some(ApiTrouble::default()),
        };
        let figures = figures_of_workers(&record, std::slice::from_ref(&facts), true);
        assert_eq!(
            figures.api_trouble(),
            Some(&ApiTrouble::default()),
            "the only session that is running has some"
        );
        assert_eq!((figures.sessions_started, figures.sessions_running, figures.tokens), (4, 1, 430));
        assert_eq!(figures.cost().basis.format_usd(figures.cost_usd), "about $4.25");
        let items = figures.items;
        assert_eq!((items.total, items.done, items.open, items.in_work), (7, 1, 6, 2));
        assert_eq!((items.to_merge, items.set_aside, items.parked), (1, 1, 1));
        let told: Vec<_> =
            figures.workers.iter().map(|one| (one.worker, one.item, one.activity, one.session)).collect();
        assert_eq!(told, [(1, 1, WorkerActivity::Working, 1), (2, 2, WorkerActivity::Preparing, 0)]);
        // The next attempt has begun since the facts were read: they are of a run that is counted elsewhere by now.
        record.works[0].pid = Some(11);
        assert_eq!(figures_of_workers(&record, &[facts], true).tokens, 400);
    }

    #[test]
    fn a_worker_waits_or_has_stopped_if_its_item_has_no_process() {
        for (is_waiting, is_run_active, expected) in [
            (false, true, WorkerActivity::Preparing),
            (true, true, WorkerActivity::Waiting),
            (true, false, WorkerActivity::Stopped),
        ] {
            let mut record = record(vec![leased("worker 1")]);
            record.works[0].is_waiting = is_waiting;
            assert_eq!(figures_of_workers(&record, &[], is_run_active).workers[0].activity, expected);
        }
        let orphan = ItemRunFacts { is_alive: true, ..ItemRunFacts::default() };
        let found = figures_of_workers(&record(vec![leased("worker 1")]), &[orphan], false);
        assert_eq!(found.workers[0].activity, WorkerActivity::Working);
    }

    #[test]
    fn an_item_of_another_machine_is_in_work_and_no_worker_of_this_one() {
        let mut record = record(vec![leased("here/1"), leased("there/1")]);
        record.member = Some(Member { name: "here".into(), ..Member::default() });
        let figures = figures_of_workers(&record, &[], true);
        assert_eq!((figures.items.in_work, figures.workers.len()), (2, 1));
    }
}
