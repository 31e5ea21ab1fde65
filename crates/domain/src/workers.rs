//! What a parallel run keeps beside its state, outside the project: the board, where its work comes together, and how far each
//! item's own run is.

use crate::board::Board;
use crate::format::Format;
use serde::{Deserialize, Serialize};

/// Everything that a parallel run decides by.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Workers {
    /// The format of the file.
    pub format: Format,
    /// Who works on what.
    pub board: Board,
    /// The branch into which everything is merged.
    pub target: String,
    /// The commit at which it began.
    pub began_at: String,
    /// The branch that was checked out then.
    pub users_branch: String,
    /// The plan, from the project's folder on.
    pub plan: String,
    /// True if git follows the plan: then its ticks are committed.
    pub plan_is_tracked: bool,
    /// Verify commands that have passed on the target: from then on they must.
    pub passed: Vec<String>,
    /// True while the board is paused because of what all runs of the user may spend on a day: a resume may allow more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_next_day: bool,
    /// One for each item of the board.
    pub works: Vec<Work>,
}

/// What is known of an item's work beside its place on the board.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Work {
    /// The commit at which its branch begins; empty for the target's end.
    pub start: String,
    /// Its own commits are those beyond this one.
    pub beyond: String,
    /// The run of an earlier attempt, which had come to its end in the worktree when the present one began there: until that has a
    /// state of its own, this is what lies there, and it says nothing of the present attempt.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub earlier_run: String,
    /// The worker, from 1; 0 before the first.
    pub worker: usize,
    /// The process of its run.
    pub pid: Option<u32>,
    /// When that began, in the system's ticks since boot.
    pub process_started: u64,
    /// What its present run may spend, in US dollars.
    pub allowance_usd: Option<f64>,
    /// What its present run has used.
    pub now: Used,
    /// What its earlier runs have used.
    pub before: Used,
}

/// What an item's sessions have used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Used {
    /// Dollars.
    pub cost_usd: f64,
    /// Tokens of all kinds.
    pub tokens: u64,
    /// Sessions.
    pub sessions: u32,
}

impl std::ops::AddAssign for Used {
    fn add_assign(&mut self, more: Used) {
        self.cost_usd += more.cost_usd;
        self.tokens = self.tokens.saturating_add(more.tokens);
        self.sessions = self.sessions.saturating_add(more.sessions);
    }
}

impl Workers {
    /// What all items have used together.
    pub fn used(&self) -> Used {
        let mut sum = Used::default();
        self.works.iter().for_each(|work| {
            sum += work.before;
            sum += work.now;
        });
        sum
    }

    /// The branch of one attempt at an item. Not below the target's name: git keeps no branch below another.
    pub fn branch(&self, item: usize, epoch: u64) -> String {
        let name = self.target.strip_prefix("plimsoll/").unwrap_or(&self.target);
        format!("plimsoll-items/{name}/{}/{epoch}", item + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_this_version_is_read_back_and_an_item_has_a_branch_for_each_attempt() {
        let text = include_str!("workers/old.json");
        let known: Workers = serde_json::from_str(text).expect("a record");
        assert_eq!(known.branch(1, 3), "plimsoll-items/fix_plan-1a2b3c4d/2/3");
        assert_eq!(known.used(), Used { cost_usd: 0.75, tokens: 3_000, sessions: 3 });
        let again: Workers =
            serde_json::from_str(&serde_json::to_string(&known).expect("JSON")).expect("same");
        assert_eq!(again, known);
        let mut old: serde_json::Value = serde_json::from_str(text).expect("JSON");
        old["format"] = 1.into();
        assert_eq!(serde_json::to_value(&known).expect("JSON"), old);
    }
}
