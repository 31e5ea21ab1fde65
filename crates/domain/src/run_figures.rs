//! The figures of a run at one moment: what its screens, `plimsoll status` and the report show.

use crate::cost::{Cost, CostBasis};
use crate::state::ApiTrouble;
use crate::workers::Used;
use serde::Serialize;

/// What a run has used and how far it has come, with the sessions that are running.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RunFigures {
    /// Sessions that have started.
    pub sessions_started: u32,
    /// Sessions whose client is running.
    pub sessions_running: u32,
    /// US dollars; estimated for the sessions that are running.
    pub cost_usd: f64,
    /// How far the cost can be relied on.
    pub cost_basis: CostBasis,
    /// Tokens of all kinds.
    pub tokens: u64,
    /// The items of the plan, counted.
    pub items: ItemCounts,
    /// The items that a worker of this machine holds, in the plan's order; empty in a run without workers.
    pub workers: Vec<WorkerFigures>,
}

/// The items of a plan, counted by how far they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ItemCounts {
    /// All items.
    pub total: usize,
    /// Ticked; in a run with workers also merged.
    pub done: usize,
    /// Not done, for whatever reason.
    pub open: usize,
    /// Open, and a session or a worker has them.
    pub in_work: usize,
    /// Open, with work that waits to be merged.
    pub to_merge: usize,
    /// Open, and passed over after repeated failure.
    pub set_aside: usize,
    /// Open, and waiting for the user's answer.
    pub parked: usize,
}

/// A worker with its item.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WorkerFigures {
    /// The worker, from 1.
    pub worker: usize,
    /// The item's number in the plan, from 1.
    pub item: usize,
    /// The item's text.
    pub text: String,
    /// What the worker does.
    pub activity: WorkerActivity,
    /// The sessions of this attempt so far: the number of the one that is running, if one is.
    pub session: u32,
    /// How full the window of the running session is.
    pub percent: Option<u64>,
    /// Why its client retries a request at present; none if it does not.
    pub api_trouble: Option<ApiTrouble>,
    /// US dollars for this attempt.
    pub cost_usd: f64,
    /// How far the cost can be relied on.
    pub cost_basis: CostBasis,
    /// Tokens for this attempt.
    pub tokens: u64,
}

/// What a worker does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerActivity {
    /// Its worktree is being prepared.
    #[default]
    Preparing,
    /// The item's run is at work.
    Working,
    /// The item's run has ended for now: for a limit, or until there is money.
    Waiting,
    /// Nobody works on the item: the run's process has ended.
    Stopped,
}

impl RunFigures {
    /// The cost of all sessions.
    pub fn cost(&self) -> Cost {
        Cost { usd: self.cost_usd, basis: self.cost_basis }
    }

    /// The trouble of the API, if all sessions of workers that are running have some.
    pub fn api_trouble(&self) -> Option<&ApiTrouble> {
        let running = || self.workers.iter().filter(|worker| worker.activity == WorkerActivity::Working);
        let first = running().next()?.api_trouble.as_ref();
        first.filter(|_| running().all(|worker| worker.api_trouble.is_some()))
    }

    /// Adds what sessions have used.
    pub fn add_used(&mut self, used: Used) {
        self.sessions_started = self.sessions_started.saturating_add(used.sessions);
        self.cost_usd += used.cost_usd;
        self.cost_basis = self.cost_basis.max(used.cost_basis);
        self.tokens = self.tokens.saturating_add(used.tokens);
    }
}
