//! What the sessions of all items have used, and which limits that reaches.

use crate::context::running_sessions::FiguresReader;
use crate::workers::child;
use crate::workers::closing::Closing;
use crate::workers::context::ParallelRun;
use crate::workers::item_figures::read_items;
use crate::workers::shown_plan;
use crate::workers::slot::Slot;
use plimsoll_domain::run_figures::RunFigures;
use plimsoll_domain::text::counted;
use plimsoll_domain::{RunState, Status, Verdict};
use plimsoll_policy::run_figures::{ItemRunFacts, figures_of_workers};
use plimsoll_store::clock;

/// What was read of the items' runs.
#[derive(Default)]
pub(super) struct Usage {
    reader: FiguresReader,
    /// What the runs of items said then, an entry for each item.
    facts: Vec<ItemRunFacts>,
}

impl Usage {
    /// Reads what sessions have used, and notes it in the record.
    pub(super) fn read(&mut self, run: ParallelRun<'_>, slots: &[Option<Slot<'_>>]) {
        let now = run.record();
        self.facts = read_items(&mut self.reader, run.context.project, run.state, &now);
        for slot in slots.iter().flatten().filter(|slot| slot.process().is_some()) {
            let item = slot.claim.item;
            let used = child::used(&run.project_of(item), &now.works[item].earlier_run);
            run.board.table().touch(|workers| {
                let work = &mut workers.works[item];
                work.now = used.beyond(work.counted);
            });
        }
    }

    /// How full the session of an item is, in percent.
    pub(super) fn percent(&self, item: usize) -> Option<u64> {
        self.facts.get(item)?.percent
    }

    /// The figures of the whole run.
    pub(super) fn figures(&self, run: ParallelRun<'_>) -> RunFigures {
        figures_of_workers(&run.record(), &self.facts, true)
    }
}

/// Whoever reads the state alone, such as the status line, finds there what sessions have used, also while items are in work.
pub(super) fn show_used(run: ParallelRun<'_>, state: &RunState) {
    let used = run.record().used();
    if used != child::used_by(state) {
        // A write that fails must not end the run: it is repeated with the next look.
        let _ = shown_plan::show_used(run.context.project, run.state, used);
    }
}

/// Sessions that are at work when a limit is reached come to their end.
pub(super) fn limit_reached(run: ParallelRun<'_>, mut state: RunState) -> Option<Closing> {
    let (used, most) = (run.record().used(), run.state.options.max_iterations);
    (state.spent.cost_usd, state.spent.tokens) = (used.cost_usd, used.tokens);
    state.spent.add_cost_basis(used.cost_basis);
    let spent = match plimsoll_policy::bounds::spent(&state, &clock::stamp(clock::now())) {
        Some(Verdict::Stop { status, reason }) => Some(Closing::Stop(status, reason)),
        Some(Verdict::Pause { .. } | Verdict::Continue { .. }) | None => None,
    };
    let sessions = || {
        let used = counted(used.sessions as usize, "session") + " used";
        Closing::Stop(Status::MaxIterations, used)
    };
    spent.or_else(|| (used.sessions >= most).then(sessions))
}
