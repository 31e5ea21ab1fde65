//! The facts of a parallel run's events.

use crate::RunId;
use crate::cost::CostBasis;
use serde::{Deserialize, Serialize};

/// A worker begins.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerBegan {
    /// The worker, from 1.
    pub worker: usize,
    /// Its item.
    pub item: String,
    /// The item's number in the plan.
    pub number: usize,
    /// Which attempt it is, from 1.
    pub attempt: u64,
    /// Where it works.
    pub folder: String,
    /// True if the attempt goes on after a pause, a kill or for more money.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub goes_on: bool,
}

/// The run of an item has ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerEnded {
    /// The worker, from 1.
    pub worker: usize,
    /// Its item.
    pub item: String,
    /// How it ended, in words.
    pub how: String,
    /// What the item has cost so far.
    pub cost_usd: f64,
    /// How far that can be relied on.
    #[serde(skip_serializing_if = "CostBasis::is_reported")]
    pub cost_basis: CostBasis,
    /// How many sessions it took so far.
    pub sessions: u32,
    /// The item's run, whose records have its sessions; none if it has left no state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_run_id: Option<RunId>,
}

/// Items have landed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Landed {
    /// The items.
    pub items: Vec<String>,
    /// The branch's new end.
    pub commit: String,
}

/// An item is open again, or set aside.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SentBack {
    /// The item.
    pub item: String,
    /// Why.
    pub reason: String,
    /// True if nobody takes it up again by themselves.
    pub is_set_aside: bool,
}
