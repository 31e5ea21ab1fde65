//! The board of a parallel run: each item of the plan with its worker and its stage. On one machine it is
//! stored in the run's state, on several machines in a database. The decisions are in
//! `plimsoll_policy::workers`.

use serde::{Deserialize, Serialize};

/// A time in milliseconds, measured by the board's own clock.
pub type BoardMillis = u64;

/// The items of a plan, and the state that they share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BoardState {
    /// The items, in the plan's order.
    pub items: Vec<BoardItem>,
    /// No item starts before this time, because a usage limit that one worker reaches applies to all workers.
    pub paused_until: BoardMillis,
    /// The lease that allows its holder to merge finished items.
    #[serde(rename = "merger")]
    pub merger_lease: Lease,
    /// Incremented with each new merger.
    pub merger_epoch: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BoardItem {
    /// The item's text in the plan.
    pub text: String,
    /// Indices of the items that must be merged before this one may start.
    #[serde(rename = "needs")]
    pub dependency_indices: Vec<usize>,
    /// The paths that the item says it touches.
    #[serde(rename = "areas")]
    pub stated_areas: Vec<String>,
    /// The files in which its work conflicted with merged work. The item counts as touching these, too.
    #[serde(rename = "conflicts", skip_serializing_if = "Vec::is_empty")]
    pub conflict_files: Vec<String>,
    /// The files that its work changes; known once the merger has examined the work.
    #[serde(rename = "writes", skip_serializing_if = "Vec::is_empty")]
    pub changed_files: Vec<String>,
    pub stage: ItemStage,
    /// Incremented with each claim. Claims with an older epoch are rejected.
    pub epoch: u64,
    /// How many times its work could not be merged.
    #[serde(rename = "tries")]
    pub failed_merge_count: u32,
    /// The text for the item's next session: why its work was not merged, with the diffs or the output.
    #[serde(rename = "note")]
    pub next_session_note: String,
    /// Every commit with which a merger was about to merge the item. The item counts as merged once one of
    /// them is in the target branch, no matter who pushed it or when.
    #[serde(rename = "landings")]
    pub attempted_merge_commits: Vec<String>,
}

/// The progress of an item.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum ItemStage {
    /// No worker has it.
    #[default]
    Open,
    /// A worker has it.
    Leased {
        /// The worker, and when its lease expires without a renewal.
        lease: Lease,
    },
    /// The work is done and waits to be merged.
    #[serde(rename = "offered")]
    ReadyToMerge {
        /// The last commit of the item's branch.
        commit: String,
    },
    /// The work is in the target branch.
    Merged,
    /// No worker picks it up again without the user.
    #[serde(rename = "aside")]
    SetAside { reason: SetAsideReason },
}

/// Why an item was set aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetAsideReason {
    /// Its work could not be merged several times; the item's note has the reason.
    #[serde(rename = "tries")]
    TooManyFailedMerges,
    /// It waits for the user's answer to this question.
    Question(String),
    /// The item's run ended for this reason.
    #[serde(rename = "ended")]
    RunEnded(String),
}

/// A lease: who holds it, and until when nobody else may take it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lease {
    /// The name of the worker or merger; empty if nobody holds the lease.
    pub holder: String,
    /// When the lease expires unless it is renewed.
    #[serde(rename = "until")]
    pub expires_at: BoardMillis,
}

impl Lease {
    /// Returns true while the lease has a holder and has not expired.
    pub fn is_active(&self, now: BoardMillis) -> bool {
        !self.holder.is_empty() && now < self.expires_at
    }
}
