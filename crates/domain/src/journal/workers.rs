//! The facts of events in a parallel run.

use crate::RunId;
use crate::cost::CostBasis;
use serde::{Deserialize, Serialize};

/// A worker started or resumed an item.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerStarted {
    /// The worker's number, from 1.
    #[serde(rename = "worker")]
    pub worker_number: usize,
    pub item: String,
    /// The item's number in the plan.
    #[serde(rename = "number")]
    pub item_number: usize,
    /// The number of the attempt, from 1.
    #[serde(rename = "attempt")]
    pub attempt_number: u64,
    /// The path of the worktree.
    #[serde(rename = "folder")]
    pub worktree_path: String,
    /// True if the attempt continues after a pause, a kill or a raised cost limit.
    #[serde(rename = "goes_on", skip_serializing_if = "std::ops::Not::not")]
    pub is_continued_attempt: bool,
}

/// The run of an item ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerEnded {
    /// The worker's number, from 1.
    #[serde(rename = "worker")]
    pub worker_number: usize,
    pub item: String,
    /// How it ended, as text.
    #[serde(rename = "how")]
    pub outcome_text: String,
    /// The item's cost so far, in US dollars.
    pub cost_usd: f64,
    /// How reliable the cost is.
    #[serde(skip_serializing_if = "CostBasis::is_reported")]
    pub cost_basis: CostBasis,
    /// The number of sessions so far.
    #[serde(rename = "sessions")]
    pub session_count: u32,
    /// The run of the item, whose records have its sessions; `None` if it left no state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_run_id: Option<RunId>,
}

/// Items were merged into the run's branch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemsMerged {
    pub items: Vec<String>,
    /// The numbers of these items in the plan, in the same order.
    #[serde(rename = "numbers", skip_serializing_if = "Vec::is_empty")]
    pub item_numbers: Vec<usize>,
    /// The new head commit of the branch.
    #[serde(rename = "commit")]
    pub branch_head: String,
}

/// An item is open again, or set aside.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemReturned {
    pub item: String,
    /// The item's number in the plan; 0 in a journal of an older version.
    #[serde(rename = "number", skip_serializing_if = "is_zero")]
    pub item_number: usize,
    /// Why it was sent back.
    pub reason: String,
    /// True if the item is set aside, so no worker picks it up without the user.
    pub is_set_aside: bool,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}
