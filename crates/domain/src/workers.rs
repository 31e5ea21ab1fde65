//! The record of a parallel run, which is stored outside the project in addition to the run's state: the board, the target branch,
//! and the progress of each item's own run.

use crate::board::{BoardState, ItemStage};
use crate::cost::CostBasis;
use crate::format::FormatVersion;
use crate::git_names::{BranchName, CommitId, InvalidBranchName, InvalidCommitId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The environment variable with the URL of a fleet's database. It is only for the process that joined the fleet, and is removed
/// from the environment of commands that sessions wrote.
pub const DATABASE_URL_VARIABLE: &str = "PLIMSOLL_DATABASE_URL";

/// All data on which a parallel run bases its decisions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkersState {
    pub format: FormatVersion,
    /// The board, which assigns items to workers.
    pub board: BoardState,
    /// The target branch, into which all work is merged.
    #[serde(rename = "target")]
    pub target_branch_name: String,
    /// The commit at which the run began.
    #[serde(rename = "began_at")]
    pub start_commit_id: String,
    /// The branch that was checked out when the run began.
    #[serde(rename = "users_branch")]
    pub user_branch: String,
    /// Path of the plan, relative to the project.
    #[serde(rename = "plan")]
    pub plan_path: String,
    /// True if git tracks the plan; then its ticks are committed.
    pub plan_is_tracked: bool,
    /// Verify commands that have passed on the target branch. From then on they must always pass.
    #[serde(rename = "passed")]
    pub passed_verify_commands: Vec<String>,
    /// True while the board is paused because of the daily limit for all runs of the user. A resume may raise the limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_next_day: bool,
    /// Why no new item starts while the running sessions finish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// The progress of each item on the board.
    #[serde(rename = "works")]
    pub item_progress: Vec<ItemProgress>,
    /// Additional data of a machine that shares its board with a fleet. `board` is then the last known copy of the shared board.
    #[serde(rename = "member", skip_serializing_if = "Option::is_none")]
    pub fleet_member: Option<FleetMember>,
}

/// A text in a record that must not be passed to git.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// It is used as a commit id.
    #[error(transparent)]
    Commit(#[from] InvalidCommitId),
    /// It is used as a branch name.
    #[error(transparent)]
    Branch(#[from] InvalidBranchName),
}

/// A secret of one member of a fleet, with which the member authenticates itself to the fleet's database. It is stored only
/// in the record of the member's run.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MemberToken(String);

impl MemberToken {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for MemberToken {
    fn from(token: String) -> MemberToken {
        MemberToken(token)
    }
}

impl fmt::Debug for MemberToken {
    /// Writes no part of the token, so that it appears in no log and in no failed assertion.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_empty() { "MemberToken(empty)" } else { "MemberToken(hidden)" })
    }
}

/// A machine that works on the plan of a fleet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetMember {
    pub fleet: String,
    /// The name of this machine in the fleet. The names of its workers begin with it.
    pub name: String,
    /// The secret that belongs to the name. It is empty in the record of an older version.
    #[serde(skip_serializing_if = "MemberToken::is_empty")]
    pub token: MemberToken,
    /// The name of the remote in this clone.
    #[serde(rename = "remote")]
    pub remote_name: String,
    /// Results that still have to be sent to the shared board, in order.
    pub outbox: Vec<ItemResult>,
    /// The cost of each worker in runs that have ended, in US dollars; the first entry is worker 1.
    #[serde(rename = "spent_usd")]
    pub ended_run_costs_usd: Vec<f64>,
    /// No item starts on this machine before this time, by its own clock. A daily limit of this machine's user does not delay other
    /// machines.
    #[serde(skip_serializing_if = "is_zero")]
    pub paused_until: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The result of an item on this machine. It is sent once the branch is on the remote, and again until the board has accepted it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemResult {
    /// The index of the item on the board.
    pub item: usize,
    /// The epoch with which the item was claimed.
    pub epoch: u64,
    /// The last of its commits, where the next attempt begins; empty for the tip of the target branch.
    #[serde(rename = "start")]
    pub start_commit_id: String,
    /// The commit before the first commit of the item.
    #[serde(rename = "beyond")]
    pub base_commit_id: String,
    #[serde(rename = "used")]
    pub usage: WorkUsage,
    pub outcome: ItemOutcome,
}

/// The outcome of an item.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemOutcome {
    /// The work is done and ready to be merged.
    Offered,
    /// The run could not complete the item, for this reason.
    Failed(String),
    /// The item waits for the user's answer to this question.
    #[serde(rename = "asked")]
    WaitsForAnswer(String),
    /// This machine no longer works on the item.
    #[serde(rename = "given_back")]
    Released,
    /// Another machine has taken the item; only the branch is kept.
    #[default]
    #[serde(rename = "kept")]
    TakenByOther,
}

/// The progress of an item's work, in addition to its entry on the board.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemProgress {
    /// The commit at which its branch begins; empty for the tip of the target branch.
    #[serde(rename = "start")]
    pub start_commit_id: String,
    /// The commit before the first commit of the item.
    #[serde(rename = "beyond")]
    pub base_commit_id: String,
    /// The run of an earlier attempt that had ended in the worktree when the current attempt began there. Until the current run has
    /// written its own state, the worktree holds the state of that earlier run, which says nothing about the current attempt.
    #[serde(rename = "earlier_run", skip_serializing_if = "String::is_empty")]
    pub earlier_run_id: String,
    /// The number of the worker, from 1; 0 before the first one.
    #[serde(rename = "worker")]
    pub worker_number: usize,
    /// True if the worker waits for the end of a limit, for budget, or for its turn.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_waiting: bool,
    /// The epoch with which this machine last claimed the item, if other machines claim items as well.
    #[serde(skip_serializing_if = "is_zero")]
    pub epoch: u64,
    /// The process id of its run.
    pub pid: Option<u32>,
    /// When that process started, in the system's clock ticks since boot.
    #[serde(rename = "process_started")]
    pub process_start_ticks: u64,
    /// The budget of its current run, in US dollars.
    #[serde(rename = "allowance_usd")]
    pub allowed_cost_usd: Option<f64>,
    /// What its current run has used since the last attempt began.
    #[serde(rename = "now")]
    pub current_usage: WorkUsage,
    /// What its earlier runs have used, and its current run in earlier attempts.
    #[serde(rename = "before")]
    pub earlier_usage: WorkUsage,
    /// What the current run had already used in earlier attempts, because it was continued.
    #[serde(rename = "counted", skip_serializing_if = "WorkUsage::is_zero")]
    pub already_counted_usage: WorkUsage,
    /// The last question that a fleet's sessions asked about the item, with the user's answer.
    #[serde(rename = "answered", skip_serializing_if = "Option::is_none")]
    pub answered_question: Option<(String, String)>,
}

impl ItemProgress {
    /// Parses the commit at which its branch begins; `None` for the tip of the target branch.
    pub fn parse_start_commit(&self) -> Option<Result<CommitId, InvalidCommitId>> {
        (!self.start_commit_id.is_empty()).then(|| CommitId::parse(&self.start_commit_id))
    }
}

/// The cost, tokens and sessions that an item's work has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkUsage {
    /// US dollars.
    pub cost_usd: f64,
    /// How reliable the cost is.
    #[serde(skip_serializing_if = "CostBasis::is_reported")]
    pub cost_basis: CostBasis,
    /// Tokens of all kinds.
    pub tokens: u64,
    /// The number of sessions.
    pub sessions: u32,
}

impl WorkUsage {
    fn is_zero(&self) -> bool {
        *self == WorkUsage::default()
    }

    /// Returns the usage since an earlier total. Never negative.
    pub fn usage_since(self, earlier: WorkUsage) -> WorkUsage {
        WorkUsage {
            cost_usd: (self.cost_usd - earlier.cost_usd).max(0.0),
            cost_basis: self.cost_basis,
            tokens: self.tokens.saturating_sub(earlier.tokens),
            sessions: self.sessions.saturating_sub(earlier.sessions),
        }
    }
}

impl std::ops::AddAssign for WorkUsage {
    fn add_assign(&mut self, added: WorkUsage) {
        self.cost_usd += added.cost_usd;
        self.cost_basis = self.cost_basis.max(added.cost_basis);
        self.tokens = self.tokens.saturating_add(added.tokens);
        self.sessions = self.sessions.saturating_add(added.sessions);
    }
}

impl WorkersState {
    /// Checks that all commit ids and the target branch are valid, so that nothing else is passed to git. Fails on the
    /// first invalid one.
    pub fn validate_commits_and_target_branch(&self) -> Result<(), InvalidName> {
        let progress_commits = self
            .item_progress
            .iter()
            .flat_map(|progress| [&progress.start_commit_id, &progress.base_commit_id]);
        let ready_to_merge_commits = self.board.items.iter().filter_map(|row| match &row.stage {
            ItemStage::ReadyToMerge { commit } => Some(commit),
            ItemStage::Open | ItemStage::Leased { .. } | ItemStage::Merged | ItemStage::SetAside { .. } => {
                None
            }
        });
        let attempted_merge_commits = self.board.items.iter().flat_map(|row| &row.attempted_merge_commits);
        let all_commits = progress_commits
            .chain(ready_to_merge_commits)
            .chain(attempted_merge_commits)
            .chain([&self.start_commit_id]);
        // An empty commit id means the tip of the target branch.
        for commit in all_commits.filter(|commit| !commit.is_empty()) {
            CommitId::parse(commit)?;
        }
        Ok(self.parse_target_branch().map(drop)?)
    }

    /// Returns the target branch, into which all work is merged. Fails if the stored name is not a valid branch name.
    pub fn parse_target_branch(&self) -> Result<BranchName, InvalidBranchName> {
        BranchName::parse(&self.target_branch_name)
    }

    /// Returns the branch of one attempt at an item. Fails if the name is not a valid branch name.
    pub fn parse_attempt_branch(&self, item: usize, epoch: u64) -> Result<BranchName, InvalidBranchName> {
        BranchName::parse(&self.attempt_branch_name(item, epoch))
    }

    /// Returns true if a worker of this machine holds the lease on an item.
    pub fn is_leased_by_this_machine(&self, item: usize) -> bool {
        let Some(ItemStage::Leased { lease }) = self.board.items.get(item).map(|row| &row.stage) else {
            return false;
        };
        let is_held_by_member = |member: &FleetMember| {
            lease.holder.strip_prefix(member.name.as_str()).is_some_and(|suffix| suffix.starts_with('/'))
        };
        self.fleet_member.as_ref().is_none_or(is_held_by_member)
    }

    /// Returns the total usage of all items.
    pub fn total_usage_of_all_items(&self) -> WorkUsage {
        let mut total = WorkUsage::default();
        self.item_progress.iter().for_each(|progress| {
            total += progress.earlier_usage;
            total += progress.current_usage;
        });
        total
    }

    /// Returns the branch name of one attempt at an item. It does not begin with the target branch and a slash, because git cannot
    /// store a branch below another branch.
    pub fn attempt_branch_name(&self, item: usize, epoch: u64) -> String {
        let run_name =
            || self.target_branch_name.strip_prefix("plimsoll/").unwrap_or(&self.target_branch_name);
        let name = self.fleet_member.as_ref().map_or_else(run_name, |member| &member.fleet);
        format!("plimsoll-items/{name}/{}/{epoch}", item + 1)
    }
}

impl WorkersState {
    /// Queues the outcome of an item for the shared board. Does nothing if the board is not shared.
    pub fn queue_item_result_if_fleet_member(&mut self, item: usize, epoch: u64, outcome: ItemOutcome) {
        let Some(member) = &mut self.fleet_member else { return };
        let progress = &self.item_progress[item];
        // If the item has no commits, the next attempt begins at what is then the tip of the target branch.
        let has_no_commits =
            progress.start_commit_id == progress.base_commit_id && outcome != ItemOutcome::Offered;
        let commit_id = |commit: &String| if has_no_commits { String::new() } else { commit.clone() };
        let (next_start_commit, next_base_commit, current_usage) = (
            commit_id(&progress.start_commit_id),
            commit_id(&progress.base_commit_id),
            progress.current_usage,
        );
        member.outbox.push(ItemResult {
            item,
            epoch,
            start_commit_id: next_start_commit,
            base_commit_id: next_base_commit,
            usage: current_usage,
            outcome,
        });
    }

    /// Records verify commands that have passed on the target branch.
    pub fn record_passed_commands(&mut self, commands: &[String]) {
        for command in commands {
            if !self.passed_verify_commands.contains(command) {
                self.passed_verify_commands.push(command.clone());
            }
        }
    }

    /// Returns the total cost of a worker of this machine, in US dollars.
    pub fn worker_cost_usd(&self, worker_number: usize) -> f64 {
        let ended_runs_cost = self
            .fleet_member
            .as_ref()
            .and_then(|member| member.ended_run_costs_usd.get(worker_number.wrapping_sub(1)));
        let current_items =
            self.item_progress.iter().filter(|progress| progress.worker_number == worker_number);
        ended_runs_cost.copied().unwrap_or_default()
            + current_items.map(|work| work.current_usage.cost_usd).sum::<f64>()
    }

    /// Moves the current usage of an item to its earlier usage, and adds its cost to that of its worker. It is called
    /// before another run begins, or before the current run continues in another attempt.
    pub fn move_current_usage_to_earlier_totals(&mut self, item: usize, continues_run: bool) {
        let progress = &mut self.item_progress[item];
        let current_usage = std::mem::take(&mut progress.current_usage);
        progress.earlier_usage += current_usage;
        match continues_run {
            true => progress.already_counted_usage += current_usage,
            false => progress.already_counted_usage = WorkUsage::default(),
        }
        if let (Some(member), Some(worker_index)) =
            (&mut self.fleet_member, progress.worker_number.checked_sub(1))
        {
            if member.ended_run_costs_usd.len() <= worker_index {
                member.ended_run_costs_usd.resize(worker_index + 1, 0.0);
            }
            member.ended_run_costs_usd[worker_index] += current_usage.cost_usd;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_worker_never_decreases_if_another_takes_its_items() {
        let usage = |cost_usd| WorkUsage { cost_usd, ..WorkUsage::default() };
        let cents = |state: &WorkersState| {
            [1, 2].map(|worker| (state.worker_cost_usd(worker) * 100.0).round() as u32)
        };
        let member = Some(FleetMember { fleet: "night".into(), ..FleetMember::default() });
        let mut state = WorkersState {
            item_progress: vec![ItemProgress::default(); 2],
            fleet_member: member,
            ..WorkersState::default()
        };
        (state.item_progress[0].worker_number, state.item_progress[0].current_usage) = (2, usage(1.0));
        (state.item_progress[1].worker_number, state.item_progress[1].current_usage) = (1, usage(0.5));
        assert_eq!(cents(&state), [50, 100]);
        state.move_current_usage_to_earlier_totals(0, true);
        assert_eq!(usage(1.5).usage_since(state.item_progress[0].already_counted_usage), usage(0.5));
        state.item_progress[0].worker_number = 1;
        state.item_progress[0].current_usage = usage(0.25);
        assert_eq!(cents(&state), [75, 100]);
        assert_eq!(state.attempt_branch_name(0, 2), "plimsoll-items/night/1/2");
        (state.item_progress[0].start_commit_id, state.item_progress[0].base_commit_id) =
            ("a".into(), "b".into());
        state.queue_item_result_if_fleet_member(0, 2, ItemOutcome::Offered);
        let text = serde_json::to_string(&state).expect("JSON");
        assert_eq!(serde_json::from_str::<WorkersState>(&text).expect("a record"), state);
    }

    #[test]
    fn a_member_token_is_kept_in_the_record_and_hidden_in_debug_output() {
        let token = MemberToken::from("tok-3f9a".to_owned());
        let member = FleetMember { token: token.clone(), ..FleetMember::default() };
        let state = WorkersState { fleet_member: Some(member), ..WorkersState::default() };
        assert!(!format!("{state:?} {state:#?} {token:?}").contains("3f9a"));
        let text = serde_json::to_string(&state).expect("JSON");
        let read_back: WorkersState = serde_json::from_str(&text).expect("a record");
        assert_eq!(read_back.fleet_member.expect("a member").token.as_str(), "tok-3f9a");
        // A record of an older version has no token.
        let old_member: FleetMember =
            serde_json::from_str(r#"{"fleet":"night","name":"a"}"#).expect("a member");
        assert!(old_member.token.is_empty());
    }

    #[test]
    fn a_record_survives_a_round_trip_and_each_attempt_has_a_branch() {
        let text = include_str!("workers/sample.json");
        let state: WorkersState = serde_json::from_str(text).expect("a record");
        assert_eq!(state.attempt_branch_name(1, 3), "plimsoll-items/fix_plan-1a2b3c4d/2/3");
        assert_eq!(
            state.total_usage_of_all_items(),
            WorkUsage { cost_usd: 0.75, tokens: 3_000, sessions: 3, ..WorkUsage::default() }
        );
        let read_back: WorkersState =
            serde_json::from_str(&serde_json::to_string(&state).expect("JSON")).expect("same");
        assert_eq!(read_back, state);
        let sample: serde_json::Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(serde_json::to_value(&state).expect("JSON"), sample);
    }
}
