//! Groups of related fields of the state. The file holds all fields on one level, because users' scripts expect them there.

use super::{CheckpointCommitMode, VerifyTiming};
use crate::breaker::BreakerState;
use crate::changed_check::ChangedCheckFile;
use crate::cost::CostBasis;
use crate::item_brief::ItemBrief;
use crate::item_check::ItemCheck;
use crate::limits::{DayCost, RunLimits, SubscriptionQuotas, TodaysSpending};
use crate::promise::PromiseWord;
use crate::question::OpenQuestion;
use crate::reverted_ticks::RevertedTicks;
use crate::review::ReviewState;
use crate::size::{ItemCost, OpenItemCost};
use crate::subagent_usage::SubagentUsage;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The user's options, set at the start or by a later `--resume`. Sessions never change them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunOptions {
    /// A short name of the task, for people.
    pub task_name: String,
    /// The objective of the run.
    pub objective: String,
    /// Path of the plan, relative to the project; `None` if there is no plan.
    pub todo_file: Option<String>,
    /// The run ends after this many sessions.
    pub max_iterations: u32,
    /// The word that completes the run when the agent prints it.
    pub completion_promise: PromiseWord,
    /// True if only the exact promise line completes the run (`--strict-promise`).
    pub strict_promise: bool,
    /// Commands that must pass before completion is accepted.
    #[serde(rename = "verify")]
    pub verify_commands: Vec<String>,
    /// When the verify commands run.
    #[serde(rename = "verify_each")]
    pub verify_timing: VerifyTiming,
    /// The checks that items of the plan named when the run began, if the user allowed these commands to run.
    pub plan_checks: Vec<ItemCheck>,
    /// True if verify commands, checks and the worktree setup command run in a sandbox (`--verify-sandbox`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub verify_sandbox: bool,
    /// Files and folders that no session may change, relative to the project (`--protect`). Their contents are recorded next to
    /// the ledger.
    #[serde(rename = "protect", skip_serializing_if = "Vec::is_empty")]
    pub protected_paths: Vec<String>,
    /// A review runs each time this many items have been ticked; 0 for no reviews.
    #[serde(rename = "review_every")]
    pub items_per_review: u32,
    /// The model for reviews; `None` for the model of the sessions.
    pub review_model: Option<String>,
    /// The limits of the run, such as its budget and deadline.
    pub limits: RunLimits,
    /// True if a session may continue with the next item while the context window has room for it.
    #[serde(rename = "pack")]
    pub allows_several_items_per_session: bool,
    /// True if the run's sessions use the working memory; its root frame is the run.
    #[serde(rename = "memory")]
    pub uses_working_memory: bool,
    /// What happens to uncommitted work at a checkpoint.
    #[serde(rename = "commit")]
    pub commit_mode: CheckpointCommitMode,
    /// True if commits run the repository's own hooks and drivers (`--commit-hooks`).
    #[serde(rename = "commit_hooks", skip_serializing_if = "std::ops::Not::not")]
    pub runs_commit_hooks: bool,
    /// A program with its arguments, started when the run ends or pauses.
    #[serde(rename = "notify")]
    pub notify_command: Vec<String>,
    /// The client program that the user named, if any.
    pub client: Option<String>,
    /// Arguments passed on to the client; `run --resume` uses them again.
    pub client_arguments: Vec<String>,
    /// A client without any output for this long is ended; `None` for the value in the settings.
    pub idle_timeout_seconds: Option<u64>,
    /// A client without any output for this long is ended while a tool runs; `None` for the value in the settings.
    pub tool_timeout_seconds: Option<u64>,
    /// The branch on which the run works (`--branch`); `None` for the one that is checked out.
    pub branch: Option<String>,
    /// True if Plimsoll wrote the whole PROMPT.md, because the run was started with an objective.
    #[serde(rename = "prompt_made")]
    pub is_prompt_generated: bool,
    /// How several workers share the plan; `None` if sessions run one after another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<WorkerOptions>,
    /// The instructions that a run of a single item got from the run of the whole plan; `None` for a run with its own plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_brief: Option<ItemBrief>,
}

/// How several workers share a plan (`--workers`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerOptions {
    /// How many workers run at the same time.
    #[serde(rename = "count")]
    pub worker_count: usize,
    /// A command that prepares each worktree.
    #[serde(rename = "setup")]
    pub setup_command: Option<String>,
    /// Where the finished work goes.
    #[serde(rename = "deliver")]
    pub delivery_mode: DeliveryMode,
    /// Path of the user's plan if the run works on a copy of it; empty if it works on the plan itself.
    #[serde(rename = "plan", skip_serializing_if = "String::is_empty")]
    pub user_plan_path: String,
    /// The fleet that shares the plan; `None` if only this machine works on it.
    #[serde(rename = "fleet", skip_serializing_if = "Option::is_none")]
    pub fleet_name: Option<String>,
}

/// Where the finished work of a parallel run goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryMode {
    /// It stays on the run's branch.
    #[default]
    Branch,
    /// The branch that was checked out at the start is fast-forwarded to the run's branch.
    Merge,
}

impl RunOptions {
    /// Returns true if the run ends without a promise once every item is ticked and the verify commands pass. That holds for the
    /// run of a single item, because its work is verified again before it is merged.
    pub fn completes_without_promise(&self) -> bool {
        self.item_brief.is_some() && !self.strict_promise
    }

    /// Returns the path of the plan that the user wrote, not of a copy; `None` if there is no plan.
    pub fn user_plan_path(&self) -> Option<&str> {
        let user_plan_path = self.workers.as_ref().map(|workers| workers.user_plan_path.as_str());
        user_plan_path.filter(|path| !path.is_empty()).or(self.todo_file.as_deref())
    }

    /// Returns all commands that must pass before completion is accepted, verify commands and allowed checks, without
    /// duplicates.
    pub fn unique_verify_and_check_commands(&self) -> Vec<String> {
        let mut commands: Vec<String> = Vec::new();
        for command in self.verify_commands.iter().chain(self.plan_checks.iter().map(|check| &check.command))
        {
            if !commands.contains(command) {
                commands.push(command.clone());
            }
        }
        commands
    }
}

/// The items of the plan, and their costs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanItems {
    pub todo_items: Vec<String>,
    pub completed_items: Vec<String>,
    /// Items that the plan had at the start; none of them may disappear from the plan unticked.
    pub known_items: Vec<String>,
    /// Items that were ticked at any time. Such an item may be removed from the plan.
    #[serde(rename = "ever_done")]
    pub ever_ticked_items: Vec<String>,
    /// Open items that are skipped while others are open, because no session made progress on them.
    #[serde(rename = "set_aside")]
    pub set_aside_items: Vec<String>,
    /// Questions of open items that wait for the user's answer. The items are skipped until the plan holds the answer.
    #[serde(rename = "parked")]
    pub parked_questions: Vec<OpenQuestion>,
    /// The costs of the last items.
    #[serde(rename = "growth")]
    pub item_costs: Vec<ItemCost>,
    /// The cost so far of items that are still open.
    #[serde(rename = "begun")]
    pub open_item_costs: Vec<OpenItemCost>,
}

/// Results of the sessions so far. The circuit breaker and the next prompt depend on them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionOutcomes {
    /// Consecutive iterations without progress.
    pub no_change_count: u32,
    /// A hash of the project's files after the last iteration, without Plimsoll's own files. Two equal hashes in a row mean that
    /// nothing has changed.
    pub last_diff_hash: String,
    /// Fingerprints of the last errors.
    pub error_hashes: Vec<String>,
    /// A sentence about what the last iteration did; empty before the first verdict.
    pub last_action: String,
    /// Why the last promise was refused; the next prompt contains it.
    pub refusals: Vec<String>,
    /// Consecutive sessions that should have made the promise, because every item was ticked, and did not.
    pub promise_failures: u32,
    /// Verify commands that failed when they last ran.
    #[serde(rename = "verify_failing")]
    pub failing_verify_commands: Vec<String>,
    /// The last result of each verify command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verify_runs: Vec<VerifyRun>,
    /// Files that check the work, such as tests, and that the run has changed; as of the last end of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_checks: Vec<ChangedCheckFile>,
    /// Changes of protected files when a session was last judged, each with how to undo it.
    #[serde(rename = "changed_protected", skip_serializing_if = "Vec::is_empty")]
    pub protected_changes: Vec<String>,
    /// True if one of these changes cannot be undone by a session.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub protected_needs_user: bool,
    /// Commands that have passed in this run. If one of them fails after a tick, the tick is reverted.
    #[serde(rename = "verify_passed")]
    pub passed_verify_commands: Vec<String>,
    /// The ticks that were last reverted; `None` once a later tick is accepted.
    #[serde(rename = "taken_back")]
    pub reverted_ticks: Option<RevertedTicks>,
    pub reviews: ReviewState,
    /// Tools that the client has refused in sessions of this run, without duplicates. May include a tool that is allowed by now.
    pub denied_tools: Vec<String>,
    /// Consecutive failures, counted by the circuit breaker.
    pub breaker: BreakerState,
}

/// The result of a verify command that the run executed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerifyRun {
    pub command: String,
    /// True if the command exited with 0 before its timeout.
    pub passed: bool,
    /// The iteration after which it ran; 0 before the first one.
    pub iteration: u32,
    /// HEAD at that moment; `None` outside git and before the first commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_uncommitted: bool,
}

/// The dollars, tokens and seconds that the run has used so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSpending {
    /// US dollars spent by all sessions, as reported by the client; estimated for sessions that ended without a report.
    pub cost_usd: f64,
    /// True if a session ended without a report of its cost. Read [`RunSpending::cost_basis`] instead.
    #[serde(rename = "cost_is_reckoned")]
    pub cost_is_estimated: bool,
    /// True if a session that ended without a report used a model without a known price.
    pub cost_is_at_most: bool,
    /// Tokens of all sessions, as the client counts them: input, output, cache written and cache read.
    pub tokens: u64,
    /// Seconds spent in verify commands.
    pub verify_seconds: u64,
    pub review_count: u32,
    /// The part of `cost_usd` that reviews cost.
    pub review_cost_usd: f64,
    /// The part of `tokens` that reviews used.
    pub review_tokens: u64,
    /// The part of the cost that was spent on the last day on which any was added.
    #[serde(rename = "cost_of_day", skip_serializing_if = "has_no_day")]
    pub cost_of_last_day: DayCost,
    /// What all runs have spent today; only set if the run has a daily limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent_today: Option<TodaysSpending>,
    /// The quotas that the client last reported.
    pub quota: SubscriptionQuotas,
}

impl RunSpending {
    /// Returns how reliable the cost is.
    pub fn cost_basis(&self) -> CostBasis {
        match (self.cost_is_at_most, self.cost_is_estimated) {
            (true, _) => CostBasis::AtMost,
            (false, true) => CostBasis::Estimated,
            (false, false) => CostBasis::Reported,
        }
    }

    /// Records that a part of the cost has this basis.
    pub fn add_cost_basis(&mut self, basis: CostBasis) {
        self.cost_is_estimated |= !basis.is_reported();
        self.cost_is_at_most |= basis == CostBasis::AtMost;
    }
}

fn has_no_day(cost: &DayCost) -> bool {
    cost.day.is_empty()
}

/// The state of the project when the run began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProjectAtStart {
    /// When the run began, RFC 3339 UTC.
    pub started_at: Timestamp,
    /// The commit that was checked out; `None` outside git and in a repository without a commit.
    #[serde(rename = "head", skip_serializing_if = "Option::is_none")]
    pub head_commit: Option<String>,
    /// The files in a repository without a commit when the run began. git shows an edit of such a file as a new file, so they are
    /// remembered here.
    pub files_at_start: Vec<String>,
    /// The file system identity of the project's git folder when the run began; empty if there was none. It shows whether the
    /// agent has created the repository since then. `None` if unknown.
    #[serde(rename = "repository_at_start")]
    pub git_folder_id_at_start: Option<String>,
    /// The branch that was checked out before the run switched to its own, and into which its work is to be merged. `None`
    /// without `--branch`, and if the run began on that branch.
    #[serde(rename = "branch_before")]
    pub original_branch: Option<String>,
    /// The tokens that stayed in the context windows of subagents of earlier runs in this project.
    #[serde(rename = "delegated_before")]
    pub earlier_subagent_usage: SubagentUsage,
}
