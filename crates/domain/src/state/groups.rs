//! The parts of the state that are read and written together. In the file their fields stand side by side, as other people's
//! scripts know them.

use super::{Commit, VerifyEach};
use crate::breaker::Breaker;
use crate::changed_check::ChangedCheck;
use crate::cost::CostBasis;
use crate::item_brief::ItemBrief;
use crate::item_check::ItemCheck;
use crate::limits::{DayCost, Limits, Quota, SpentToday};
use crate::promise::PromiseWord;
use crate::question::OpenQuestion;
use crate::review::Reviews;
use crate::size::{ItemCost, OpenItemCost};
use crate::subagent_usage::SubagentUsage;
use crate::taken_back::TakenBack;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// What the user asked for: at the start, or with a later `--resume`. No session changes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunOptions {
    /// A short name for people.
    pub task_name: String,
    /// What is to be done.
    pub objective: String,
    /// The to-do file, relative to the project; none without one.
    pub todo_file: Option<String>,
    /// The run ends after so many sessions.
    pub max_iterations: u32,
    /// The word of the promise.
    pub completion_promise: PromiseWord,
    /// True when only the exact promise line completes the run (`--strict-promise`).
    pub strict_promise: bool,
    /// Commands that must pass before completion is believed.
    pub verify: Vec<String>,
    /// When they run.
    pub verify_each: VerifyEach,
    /// What the items of the plan named as their checks when the run began, if the user allowed these commands to run.
    pub plan_checks: Vec<ItemCheck>,
    /// True when these commands, and the one that prepares worktrees, run in a sandbox (`--verify-sandbox`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub verify_sandbox: bool,
    /// Files and folders that no session may change, relative to the project (`--protect`). What they hold is recorded beside the
    /// ledger.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<String>,
    /// A review comes after so many ticked items; 0 for none.
    pub review_every: u32,
    /// The model that reviews; none for that of the sessions.
    pub review_model: Option<String>,
    /// What the run may use.
    pub limits: Limits,
    /// True when a session may go on with the next item while the window has room for it.
    pub pack: bool,
    /// True when the run's sessions have the working memory: its root frame is the run.
    pub memory: bool,
    /// What becomes of uncommitted work at a checkpoint.
    pub commit: Commit,
    /// True when commits run the repository's own hooks and drivers (`--commit-hooks`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub commit_hooks: bool,
    /// A program with its arguments, told of the end and of pauses.
    pub notify: Vec<String>,
    /// The client, as the user named it; none where nobody did.
    pub client: Option<String>,
    /// What the user passes on to the client: `run --resume` uses it again.
    pub client_arguments: Vec<String>,
    /// A client that says nothing for so long is ended; none for the settings' value.
    pub idle_timeout_seconds: Option<u64>,
    /// The same while a tool runs; none for the settings' value.
    pub tool_timeout_seconds: Option<u64>,
    /// The branch on which the run works (`--branch`); none for whichever is checked out.
    pub branch: Option<String>,
    /// True when PROMPT.md is ours as a whole (the run was started with an objective).
    pub prompt_made: bool,
    /// How several workers share the plan; none for one session after another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<WorkerOptions>,
    /// What the run of a single item was told by the run of the whole plan; none for a run with a plan of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_brief: Option<ItemBrief>,
}

/// How several workers share a plan (`--workers`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerOptions {
    /// So many at once.
    pub count: usize,
    /// A command that prepares a worktree.
    pub setup: Option<String>,
    /// Where the work goes in the end.
    pub deliver: Deliver,
    /// The user's plan, of which the run shows a copy; empty where it shows the plan itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub plan: String,
    /// The fleet whose plan it is; none for a plan of this machine alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet: Option<String>,
}

/// Where the work of a parallel run goes in the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deliver {
    /// It stays on the run's branch.
    #[default]
    Branch,
    /// The branch that was checked out at the beginning is moved forward to it.
    Merge,
}

impl RunOptions {
    /// True if the run ends once every item is ticked and the verify commands pass, without a promise. The run of a single
    /// item does: its work is verified once more before it is merged.
    pub fn ends_with_last_tick(&self) -> bool {
        self.item_brief.is_some() && !self.strict_promise
    }

    /// The plan as the user knows it; none without one.
    pub fn users_plan(&self) -> Option<&str> {
        let plan = self.workers.as_ref().map(|workers| workers.plan.as_str());
        plan.filter(|plan| !plan.is_empty()).or(self.todo_file.as_deref())
    }

    /// All commands that have to pass before completion is believed, each once.
    pub fn commands(&self) -> Vec<String> {
        let mut commands: Vec<String> = Vec::new();
        for command in self.verify.iter().chain(self.plan_checks.iter().map(|check| &check.command)) {
            if !commands.contains(command) {
                commands.push(command.clone());
            }
        }
        commands
    }
}

/// The items of the plan, and what they took.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Items {
    /// Open items.
    pub todo_items: Vec<String>,
    /// Ticked items.
    pub completed_items: Vec<String>,
    /// Items that were known at the start; none may vanish unticked.
    pub known_items: Vec<String>,
    /// Items that were ticked at any time: one that is then removed from the list has not vanished.
    pub ever_done: Vec<String>,
    /// Open items that are passed over while others are open: nobody got anywhere with them.
    pub set_aside: Vec<String>,
    /// Open items that wait for the user's answer: they are passed over until the plan holds one.
    pub parked: Vec<OpenQuestion>,
    /// What the last items took.
    pub growth: Vec<ItemCost>,
    /// What sessions took so far for items that are still open.
    pub begun: Vec<OpenItemCost>,
}

/// What the sessions so far came to: what the breaker and the next prompt go by.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcomes {
    /// Iterations in a row without progress.
    pub no_change_count: u32,
    /// What the files looked like after the last iteration, apart from ours: two equal ones, nothing has changed.
    pub last_diff_hash: String,
    /// Fingerprints of the last errors.
    pub error_hashes: Vec<String>,
    /// What the last iteration did, in a sentence; empty before the first verdict.
    pub last_action: String,
    /// Why the last promise was refused; the next prompt carries it.
    pub refusals: Vec<String>,
    /// Sessions in a row that should have made the promise and did not, while every item was ticked.
    pub promise_failures: u32,
    /// Verify commands that failed when they were last run.
    pub verify_failing: Vec<String>,
    /// How each verify command ended last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verify_runs: Vec<VerifyRun>,
    /// Files that check the work and that the run has changed, as they were when it ended last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_checks: Vec<ChangedCheck>,
    /// The changes of protected files when a session was judged last, each with how it is undone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_protected: Vec<String>,
    /// True if no session could undo one of these changes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub protected_needs_user: bool,
    /// Commands that have passed in this run: a tick after which one of them fails is taken back.
    pub verify_passed: Vec<String>,
    /// The ticks that were taken back last; none once a later tick holds.
    pub taken_back: Option<TakenBack>,
    /// Reviews, and what they found.
    pub reviews: Reviews,
    /// Tools that the client has refused in sessions of this run, each once. Also one that is allowed by now.
    pub denied_tools: Vec<String>,
    /// What has gone wrong in a row.
    pub breaker: Breaker,
}

/// How a verify command ended when the run executed it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerifyRun {
    /// The command line.
    pub command: String,
    /// True if it exited with 0 in time.
    pub passed: bool,
    /// The iteration after which it ran; 0 before the first one.
    pub iteration: u32,
    /// HEAD at that moment; none outside git and before the first commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// True if files were uncommitted then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_uncommitted: bool,
}

/// What the run has used so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// US dollars spent by all sessions, as reported by the client; estimated for sessions that ended without a report.
    pub cost_usd: f64,
    /// True if a session ended without a report of its cost. Read [`Spent::cost_basis`] instead.
    #[serde(rename = "cost_is_reckoned")]
    pub cost_is_estimated: bool,
    /// True if such a session used a model without a known price.
    pub cost_is_at_most: bool,
    /// Tokens of all sessions, as the client counts them: input, output, cache written and cache read.
    pub tokens: u64,
    /// Seconds spent in verify commands.
    pub verify_seconds: u64,
    /// How many reviews there were.
    pub review_count: u32,
    /// What of the cost was for reviews, US dollars.
    pub review_cost_usd: f64,
    /// What of the tokens was for reviews.
    pub review_tokens: u64,
    /// What of the cost was spent on the day that it was last added to.
    #[serde(skip_serializing_if = "is_none_of_a_day")]
    pub cost_of_day: DayCost,
    /// What all runs have spent today; only where the run has a limit for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent_today: Option<SpentToday>,
    /// The client's own quotas, as it last told them.
    pub quota: Quota,
}

impl Spent {
    /// Returns how far the cost can be relied on.
    pub fn cost_basis(&self) -> CostBasis {
        match (self.cost_is_at_most, self.cost_is_estimated) {
            (true, _) => CostBasis::AtMost,
            (false, true) => CostBasis::Estimated,
            (false, false) => CostBasis::Reported,
        }
    }

    /// Notes that a part of the cost has this basis.
    pub fn add_cost_basis(&mut self, basis: CostBasis) {
        self.cost_is_estimated |= !basis.is_reported();
        self.cost_is_at_most |= basis == CostBasis::AtMost;
    }
}

fn is_none_of_a_day(cost: &DayCost) -> bool {
    cost.day.is_empty()
}

/// How the project stood when the run began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AtStart {
    /// RFC 3339 UTC.
    pub started_at: Timestamp,
    /// The commit that was checked out; none outside git and in a repository without a commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The files that lay in a repository without a commit when the run began: to git an edit of them is a new file.
    pub files_at_start: Vec<String>,
    /// The git folder of the project when the run began, as the file system knows it; empty where there was none. A
    /// repository that was made since is its agent's. None if it is not known.
    pub repository_at_start: Option<String>,
    /// The branch that was checked out before the run switched to its own: where its work is to be merged. None without
    /// `--branch`, and where the run began on that branch.
    pub branch_before: Option<String>,
    /// What stayed with the subagents of earlier runs in this project.
    pub delegated_before: SubagentUsage,
}
