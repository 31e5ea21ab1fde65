//! The board of a parallel run: each item of the plan with who works on it and how far its work has come. The run's own state
//! keeps it on one machine, a database on several; the decisions are in `plimsoll_policy::workers`.

use serde::{Deserialize, Serialize};

/// A moment in milliseconds, by the one clock that the board has.
pub type Moment = u64;

/// The items of a plan, and what holds for all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BoardState {
    /// In the plan's order.
    pub items: Vec<BoardItem>,
    /// Nothing is begun before: a usage limit that one worker met holds for all.
    pub paused_until: Moment,
    /// Who may land what is offered.
    pub merger: Lease,
    /// One more with each new merger.
    pub merger_epoch: u64,
}

/// An item on the board.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BoardItem {
    /// Its words in the plan.
    pub text: String,
    /// The places on the board of the items that have to be merged before it is begun.
    pub needs: Vec<usize>,
    /// The paths that it says it touches.
    pub areas: Vec<String>,
    /// The files in which its work conflicted with what was merged: it touches these, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// The files that its work changes, once the merger has looked at that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// How far it is.
    pub stage: Stage,
    /// One more with each claim: what an earlier worker still does counts for nothing.
    pub epoch: u64,
    /// How often its work could not be merged.
    pub tries: u32,
    /// What its next session is told: why its work was not merged, with the differences or the output.
    pub note: String,
    /// Every commit by which somebody was about to land it. It has landed when one of them is in the target, whoever pushed it
    /// and however late.
    pub landings: Vec<String>,
}

/// How far an item is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum Stage {
    /// Nobody works on it.
    #[default]
    Open,
    /// Somebody works on it.
    Leased {
        /// Who, and how long that holds without a word from them.
        lease: Lease,
    },
    /// Its work is done, and waits to be merged.
    Offered {
        /// The last commit of its branch.
        commit: String,
    },
    /// Its work is in the target.
    Merged,
    /// Nobody takes it up again by themselves.
    Aside {
        /// Why.
        reason: Aside,
    },
}

/// Why an item was set aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aside {
    /// Its work could not be merged, again and again; the note says why.
    Tries,
    /// It waits for the user's answer to this question.
    Question(String),
    /// Its run ended for this reason.
    Ended(String),
}

/// Who holds something, and until when nobody else may take it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lease {
    /// The worker's or merger's name; empty for nobody.
    pub holder: String,
    /// The end, unless it is renewed.
    pub until: Moment,
}

impl Lease {
    /// True while it may not be taken from its holder.
    pub fn holds(&self, now: Moment) -> bool {
        !self.holder.is_empty() && now < self.until
    }
}
