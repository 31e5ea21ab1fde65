//! The figures of a run at one moment, which its screens, `plimsoll status` and the report show.

use crate::cost::{Cost, CostBasis, format_usd_limit, render_cost_without_title};
use crate::remaining_work::RemainingWork;
use crate::state::ApiRetryState;
use crate::workers::WorkUsage;
use serde::Serialize;

/// The usage and the progress of a run, including the sessions that are running.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RunFigures {
    /// The number of sessions that have started.
    pub sessions_started: u32,
    /// The number of sessions whose client is running.
    pub sessions_running: u32,
    /// The cost in US dollars; estimated for the sessions that are running.
    pub cost_usd: f64,
    /// How reliable the cost is.
    pub cost_basis: CostBasis,
    /// Tokens of all kinds.
    pub tokens: u64,
    /// The number of items of the plan by state.
    pub items: ItemCounts,
    /// The items that workers of this machine have, in the plan's order; empty in a run without workers.
    pub workers: Vec<WorkerFigures>,
    /// The estimate for the open items; `None` if too few items were measured, or none is left to work on.
    pub remaining: Option<RemainingWork>,
}

/// The number of items of a plan by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ItemCounts {
    pub total: usize,
    /// Ticked; in a run with workers, ticked and merged.
    pub done: usize,
    /// Not done, for whatever reason.
    pub open: usize,
    /// Open, and a session or a worker is working on them.
    #[serde(rename = "in_work")]
    pub in_progress: usize,
    /// Open, with work that waits to be merged.
    #[serde(rename = "to_merge")]
    pub waiting_to_merge: usize,
    /// Open, and skipped after repeated failure.
    pub set_aside: usize,
    /// Open, and waiting for the user's answer.
    pub parked: usize,
}

impl ItemCounts {
    /// Returns the number of open items that sessions can work on: neither set aside nor waiting for an answer.
    pub fn remaining(&self) -> usize {
        self.open.saturating_sub(self.set_aside + self.parked)
    }
}

/// A worker with its item.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WorkerFigures {
    /// The worker's number, from 1.
    #[serde(rename = "worker")]
    pub worker_number: usize,
    /// The item's number in the plan, from 1.
    #[serde(rename = "item")]
    pub item_number: usize,
    #[serde(rename = "text")]
    pub item_text: String,
    /// The worker's current activity.
    pub activity: WorkerActivity,
    /// The number of sessions of this attempt so far, including the one that is running.
    #[serde(rename = "session")]
    pub session_number: u32,
    /// The context usage of the running session, in percent.
    #[serde(rename = "percent")]
    pub context_percent: Option<u64>,
    /// Why its client is currently retrying a request; `None` if it is not.
    #[serde(rename = "api_trouble")]
    pub api_retry: Option<ApiRetryState>,
    /// The cost of this attempt in US dollars.
    pub cost_usd: f64,
    /// How reliable the cost is.
    pub cost_basis: CostBasis,
    /// The tokens used by this attempt.
    pub tokens: u64,
}

/// The current activity of a worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerActivity {
    /// Its worktree is being prepared.
    #[default]
    Preparing,
    /// The item's run is active.
    Working,
    /// The item's run is suspended, because of a usage limit or until there is budget.
    Waiting,
    /// Nobody works on the item: the run's process has ended.
    Stopped,
}

impl RunFigures {
    /// Returns the cost of all sessions.
    pub fn total_cost(&self) -> Cost {
        Cost { usd: self.cost_usd, basis: self.cost_basis }
    }

    /// Returns the API trouble of the first active worker, if all active workers have API trouble.
    pub fn api_retry_if_all_workers_retry(&self) -> Option<&ApiRetryState> {
        let working_workers =
            || self.workers.iter().filter(|worker| worker.activity == WorkerActivity::Working);
        let first_retry = working_workers().next()?.api_retry.as_ref();
        first_retry.filter(|_| working_workers().all(|worker| worker.api_retry.is_some()))
    }

    /// Formats the cost of all sessions; `unknown` if a session has started and no cost is known.
    pub fn format_cost(&self) -> String {
        self.cost_basis.format_usd_of_sessions(self.cost_usd, self.sessions_started)
    }

    /// Formats the cost of all sessions and its limit, if there is one: `about $1.20 of $5.00`.
    pub fn format_cost_and_limit(&self, limit_usd: Option<f64>) -> String {
        match limit_usd {
            Some(limit_usd) if self.cost_usd > 0.0 || self.sessions_started == 0 => {
                self.cost_basis.format_usd_spent_of_limit(self.cost_usd, limit_usd)
            }
            Some(limit_usd) => format!("{} (limit {})", self.format_cost(), format_usd_limit(limit_usd)),
            None => self.format_cost(),
        }
    }

    /// Renders the cost of all sessions where no title says that it is a cost: `about $1.20`, or `cost unknown`.
    pub fn render_cost_without_title(&self) -> String {
        render_cost_without_title(self.cost_basis, self.cost_usd, self.sessions_started)
    }

    /// Renders the estimate of the rest, or `no estimate yet`. Returns `None` if no item remains to be worked on.
    pub fn render_remaining_work(&self) -> Option<String> {
        match &self.remaining {
            Some(remaining) => Some(remaining.render()),
            None => (self.items.remaining() > 0).then(|| "no estimate yet".to_owned()),
        }
    }

    /// Adds the usage of sessions to the totals.
    pub fn add_usage(&mut self, usage: WorkUsage) {
        self.sessions_started = self.sessions_started.saturating_add(usage.sessions);
        self.cost_usd += usage.cost_usd;
        self.cost_basis = self.cost_basis.max(usage.cost_basis);
        self.tokens = self.tokens.saturating_add(usage.tokens);
    }
}
