//! The data of the report, as it was recorded. The page only renders it.

use crate::render::redact::RedactedText;
use chrono::{DateTime, Utc};
use plimsoll_domain::cost::CostBasis;
use plimsoll_domain::subagent_usage::SubagentUsage;
use plimsoll_domain::{RunStatus, SessionEnding, SessionId};

pub(crate) type UtcTime = DateTime<Utc>;

/// The data about a run, which may have ended or still be open.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    pub(crate) name: RedactedText,
    pub(crate) objective: RedactedText,
    pub(crate) run_id: RedactedText,
    pub(crate) status: RunStatus,
    /// The status and its reason, as in `plimsoll status`.
    pub(crate) status_texts: Vec<RedactedText>,
    pub(crate) started_at: Option<UtcTime>,
    /// `None` while the run is open.
    pub(crate) ended_at: Option<UtcTime>,
    /// True while a `plimsoll run`, or at least its client, is active.
    pub(crate) is_live: bool,
    /// Time at which the files were read. No recorded time is later.
    pub(crate) observed_at: UtcTime,
    /// Number of sessions that count towards the maximum; those ended by a usage limit do not.
    pub(crate) counted_sessions: u32,
    pub(crate) max_sessions: u32,
    pub(crate) items: Vec<ReportItem>,
    pub(crate) sessions: Vec<RunSession>,
    /// The sentence about modules of other plugins, if any acted in the run's sessions.
    pub(crate) other_modules: Option<RedactedText>,
    pub(crate) pauses: Vec<RunPause>,
    pub(crate) marks: Vec<ChartMark>,
    /// The workers of a parallel run; empty for any other run.
    pub(crate) workers: Vec<Worker>,
    pub(crate) merges: Vec<MergeEvent>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) thresholds: Option<ThresholdPercents>,
    pub(crate) cost: RunCost,
    /// Seconds spent in verify commands.
    pub(crate) verify_seconds: u64,
    pub(crate) window_usage: WindowUsage,
    pub(crate) handoffs: Vec<RunHandoff>,
    pub(crate) next_steps: Vec<NextStep>,
    /// Messages about what could not be read.
    pub(crate) read_errors: Vec<RedactedText>,
}

/// An item of the run's plan, with the sessions, tokens, cost, time and commits that it took.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReportItem {
    pub(crate) name: RedactedText,
    pub(crate) outcome: ItemOutcome,
    /// The indexes of its sessions in [`Report::sessions`].
    pub(crate) session_indexes: Vec<usize>,
    /// True if one of its sessions also worked on other items. That session's figures are divided evenly among them.
    pub(crate) has_shared_session: bool,
    pub(crate) tokens: Option<f64>,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) seconds: Option<f64>,
    pub(crate) commits: Vec<SessionCommit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemOutcome {
    Done,
    Open,
    SetAside,
    /// Waits for the user's answer.
    Parked,
    /// Removed from the plan without having been ticked.
    RemovedUnticked,
}

/// A commit that was made during a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionCommit {
    /// The full object id.
    pub(crate) id: String,
    pub(crate) subject: RedactedText,
    pub(crate) committed_at: UtcTime,
}

/// One session of the run.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunSession {
    pub(crate) iteration: u32,
    pub(crate) session_id: Option<SessionId>,
    /// The item that the session's prompt named, if that was recorded.
    pub(crate) item: Option<RedactedText>,
    pub(crate) ticked_items: Vec<RedactedText>,
    pub(crate) resumes_checkpoint: bool,
    pub(crate) started_at: Option<UtcTime>,
    pub(crate) ended_at: Option<UtcTime>,
    /// Time of the verdict.
    pub(crate) verdict_at: Option<UtcTime>,
    /// Peak usage of the window, in whole percent.
    pub(crate) peak_percent: Option<u64>,
    pub(crate) ending: Option<SessionEnding>,
    /// Details of the ending, such as an error message.
    pub(crate) ending_detail: Option<RedactedText>,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) tokens: Option<u64>,
    /// Size of the context window, in tokens.
    pub(crate) window_tokens: Option<u64>,
    /// The load line, with one segment for each part of the conversation between two compactions.
    pub(crate) load_line: Vec<Vec<UsagePoint>>,
    /// HEAD when the session began.
    pub(crate) head_at_start: Option<String>,
    pub(crate) commits: Vec<SessionCommit>,
}

/// A worker of a parallel run, with its work periods in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Worker {
    pub(crate) number: usize,
    pub(crate) work_periods: Vec<WorkPeriod>,
}

/// The period in which a worker worked on an item, until the item's run ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkPeriod {
    pub(crate) item: RedactedText,
    /// The item's number in the plan.
    pub(crate) item_number: usize,
    pub(crate) attempt: u64,
    pub(crate) started_at: UtcTime,
    /// `None` while the worker is still on the item.
    pub(crate) ended_at: Option<UtcTime>,
    pub(crate) ending_text: RedactedText,
    pub(crate) sessions: Vec<RunSession>,
    pub(crate) checkpoint_times: Vec<UtcTime>,
}

/// An event of the merge queue: an item that was merged, returned or set aside.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MergeEvent {
    pub(crate) occurred_at: UtcTime,
    pub(crate) outcome: MergeOutcome,
    pub(crate) description: RedactedText,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MergeOutcome {
    Merged,
    Returned,
    SetAside,
}

/// A point of the load line: the usage of the window at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct UsagePoint {
    pub(crate) measured_at: UtcTime,
    pub(crate) percent: f64,
}

/// A period in which the run was paused.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunPause {
    pub(crate) started_at: UtcTime,
    /// `None` while the run is still paused.
    pub(crate) ended_at: Option<UtcTime>,
    pub(crate) reason: RedactedText,
}

/// An event that is marked on the load line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChartMark {
    pub(crate) occurred_at: UtcTime,
    pub(crate) kind: MarkKind,
    pub(crate) percent: Option<f64>,
    pub(crate) description: RedactedText,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MarkKind {
    Checkpoint,
    Compaction,
    SessionEnd,
    AbnormalSessionEnd,
    RefusedPromise,
    CircuitBreaker,
}

/// Something that went wrong, with its evidence. Repetitions are collected in one problem.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Problem {
    pub(crate) kind: &'static str,
    pub(crate) description: RedactedText,
    pub(crate) evidence: Vec<RedactedText>,
    /// The time of each occurrence, and the number of its session if there was one.
    pub(crate) occurrences: Vec<(UtcTime, Option<u32>)>,
}

/// The thresholds, in percent of the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ThresholdPercents {
    pub(crate) l1: f64,
    pub(crate) l2: f64,
    pub(crate) l3: f64,
    pub(crate) auto_compact: f64,
    pub(crate) auto_compact_action: &'static str,
    pub(crate) window_tokens: u64,
    pub(crate) changed_during_run: bool,
}

/// The tokens, cost and time that the run has used, as recorded in its state.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunCost {
    pub(crate) cost_usd: f64,
    pub(crate) cost_basis: CostBasis,
    pub(crate) max_cost_usd: Option<f64>,
    /// The number of reviews. `review_cost_usd` is their part of the cost.
    pub(crate) review_count: u32,
    pub(crate) review_cost_usd: f64,
    pub(crate) tokens: u64,
    pub(crate) max_tokens: Option<u64>,
}

/// The contents of the context windows of the run's sessions, by category.
#[derive(Debug, Clone, Default)]
pub(crate) struct WindowUsage {
    /// The categories, sorted by tokens, largest first.
    pub(crate) categories: Vec<UsageCategory>,
    pub(crate) largest_results: Vec<LargeResult>,
    /// Number of sessions whose turns were recorded.
    pub(crate) session_count: usize,
    /// The usage of subagents, which have context windows of their own.
    pub(crate) subagent_usage: SubagentUsage,
}

/// A category of window contents: a tool, or another source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsageCategory {
    pub(crate) name: RedactedText,
    pub(crate) is_tool: bool,
    pub(crate) tokens: u64,
    pub(crate) call_count: u64,
    pub(crate) failed_call_count: u64,
}

/// A single large tool result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LargeResult {
    pub(crate) tool: RedactedText,
    pub(crate) arguments: RedactedText,
    pub(crate) tokens: u64,
    /// The turn's name, as `plimsoll turns show` accepts it.
    pub(crate) turn_name: RedactedText,
}

/// A handoff that was written during the run.
#[derive(Debug, Clone)]
pub(crate) struct RunHandoff {
    pub(crate) path: RedactedText,
    pub(crate) written_at: UtcTime,
    pub(crate) iteration: Option<u32>,
    pub(crate) cause: RedactedText,
    pub(crate) item: Option<RedactedText>,
    /// The claims of the session, which are not verified: summary, progress, next step.
    pub(crate) claims: Vec<(&'static str, RedactedText)>,
    /// The full text, which only the newest handoffs have.
    pub(crate) text: Option<RedactedText>,
    pub(crate) is_unresumed: bool,
}

/// A step that the user should take now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NextStep {
    pub(crate) description: RedactedText,
    pub(crate) command: Option<RedactedText>,
}

impl Report {
    /// Returns the sessions of the run and those of its workers.
    pub(crate) fn all_sessions(&self) -> impl Iterator<Item = &RunSession> {
        let work_periods = self.workers.iter().flat_map(|worker| &worker.work_periods);
        self.sessions.iter().chain(work_periods.flat_map(|period| &period.sessions))
    }

    /// Returns the end of the run. While the run is open, returns the time at which the files were read.
    pub(crate) fn end_or_now(&self) -> UtcTime {
        self.ended_at.unwrap_or(self.observed_at)
    }

    /// Returns the total duration of all sessions in seconds, or `None` if there are sessions but no duration was recorded.
    pub(crate) fn total_session_seconds(&self) -> Option<i64> {
        let durations: Vec<i64> =
            self.all_sessions().filter_map(|session| self.session_duration_seconds(session)).collect();
        (!durations.is_empty() || self.all_sessions().next().is_none()).then(|| durations.iter().sum())
    }

    /// Returns the total duration of all pauses in seconds.
    pub(crate) fn total_paused_seconds(&self) -> i64 {
        let run_end = self.end_or_now();
        let duration =
            |pause: &RunPause| (pause.ended_at.unwrap_or(run_end) - pause.started_at).num_seconds().max(0);
        self.pauses.iter().map(duration).sum()
    }

    /// Returns the duration of a session in seconds. For the last session of a live run, the end is the time at which the
    /// files were read.
    pub(crate) fn session_duration_seconds(&self, session: &RunSession) -> Option<i64> {
        let is_last_session =
            || self.sessions.last().is_some_and(|last| last.started_at == session.started_at);
        let now_if_running = || (is_last_session() && self.is_live).then_some(self.observed_at);
        let end = session.ended_at.or(session.verdict_at).or_else(now_if_running)?;
        Some((end - session.started_at?).num_seconds().max(0))
    }
}
