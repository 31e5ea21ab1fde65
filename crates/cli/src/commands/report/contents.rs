//! The contents of the report: plain facts, and nothing that is not known. The page only writes them down.

use crate::render::redact::RedactedText;
use chrono::{DateTime, Utc};
use plimsoll_domain::cost::CostBasis;
use plimsoll_domain::subagent_usage::SubagentUsage;
use plimsoll_domain::{Ending, SessionId, Status};

/// A moment.
pub(crate) type At = DateTime<Utc>;

/// A run as it was, or as it is now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    pub(crate) name: RedactedText,
    pub(crate) objective: RedactedText,
    pub(crate) run_id: RedactedText,
    pub(crate) status: Status,
    /// Its status and reason, as in `plimsoll status`.
    pub(crate) standing: Vec<RedactedText>,
    pub(crate) started: Option<At>,
    /// None while it is not over.
    pub(crate) ended: Option<At>,
    /// True while it is active: a `plimsoll run`, or at least its client.
    pub(crate) is_live: bool,
    /// When this was looked up; nothing that is known is later.
    pub(crate) looked: At,
    /// Of its sessions so many count; those that a limit ended do not.
    pub(crate) counted: u32,
    pub(crate) max_sessions: u32,
    pub(crate) items: Vec<Item>,
    pub(crate) sessions: Vec<RunSession>,
    pub(crate) pauses: Vec<Pause>,
    pub(crate) moments: Vec<Moment>,
    /// Of a parallel run; none of any other.
    pub(crate) workers: Vec<Worker>,
    pub(crate) merges: Vec<Merge>,
    pub(crate) troubles: Vec<Trouble>,
    pub(crate) levels: Option<Levels>,
    pub(crate) cost: Cost,
    /// Seconds in verify commands.
    pub(crate) verified: u64,
    pub(crate) filling: Filling,
    pub(crate) handoffs: Vec<Handoff>,
    pub(crate) steps: Vec<Step>,
    /// What could not be read, and why.
    pub(crate) gaps: Vec<RedactedText>,
}

/// An item of the run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    pub(crate) name: RedactedText,
    pub(crate) outcome: ItemOutcome,
    /// Its sessions, by their place in the night.
    pub(crate) sessions: Vec<usize>,
    /// True if a session of it was about other items too: its figures are divided evenly among them.
    pub(crate) is_shared: bool,
    pub(crate) tokens: Option<f64>,
    pub(crate) usd: Option<f64>,
    pub(crate) seconds: Option<f64>,
    pub(crate) commits: Vec<Commit>,
}

/// What became of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemOutcome {
    Done,
    Open,
    SetAside,
    /// It waits for the user's answer.
    Parked,
    /// It was in the list, and is gone without having been ticked.
    Gone,
}

/// A commit of the time of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    /// The whole of it.
    pub(crate) id: String,
    pub(crate) subject: RedactedText,
    pub(crate) at: At,
}

/// One session of the run.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunSession {
    pub(crate) iteration: u32,
    pub(crate) session_id: Option<SessionId>,
    /// The item that its prompt named, where that was recorded.
    pub(crate) item: Option<RedactedText>,
    pub(crate) ticked: Vec<RedactedText>,
    pub(crate) resuming: bool,
    pub(crate) began: Option<At>,
    pub(crate) ended: Option<At>,
    /// The verdict's time.
    pub(crate) judged: Option<At>,
    /// Whole percent.
    pub(crate) peak: Option<u64>,
    pub(crate) ending: Option<Ending>,
    /// What its ending says more.
    pub(crate) detail: Option<RedactedText>,
    pub(crate) usd: Option<f64>,
    pub(crate) tokens: Option<u64>,
    /// Of the window.
    pub(crate) window: Option<u64>,
    /// Its load line: a piece for each conversation between two compactions.
    pub(crate) trace: Vec<Vec<Point>>,
    /// HEAD when it began.
    pub(crate) head: Option<String>,
    pub(crate) commits: Vec<Commit>,
}

/// A worker of a parallel run, and what it did one after the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Worker {
    pub(crate) number: usize,
    pub(crate) stints: Vec<Stint>,
}

/// What a worker did at an item, until the item's run ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stint {
    pub(crate) item: RedactedText,
    /// The item's number in the plan.
    pub(crate) item_number: usize,
    pub(crate) attempt: u64,
    pub(crate) from: At,
    /// None while it lasts.
    pub(crate) to: Option<At>,
    pub(crate) how: RedactedText,
    pub(crate) sessions: Vec<RunSession>,
    pub(crate) checkpoints: Vec<At>,
}

/// What became of an item where results come together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Merge {
    pub(crate) at: At,
    pub(crate) outcome: MergeOutcome,
    pub(crate) words: RedactedText,
}

/// In which of three ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MergeOutcome {
    Merged,
    SentBack,
    SetAside,
}

/// How full the window was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) at: At,
    pub(crate) percent: f64,
}

/// When the run stood still.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pause {
    pub(crate) from: At,
    /// None while it lasts.
    pub(crate) to: Option<At>,
    pub(crate) reason: RedactedText,
}

/// Something that is marked on the load line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moment {
    pub(crate) at: At,
    pub(crate) what: Mark,
    pub(crate) percent: Option<f64>,
    pub(crate) words: RedactedText,
}

/// What a mark stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    Checkpoint,
    Compaction,
    End,
    BadEnd,
    Refused,
    Breaker,
}

/// What went wrong, with its evidence; repetitions are counted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Trouble {
    pub(crate) kind: &'static str,
    pub(crate) words: RedactedText,
    pub(crate) evidence: Vec<RedactedText>,
    /// When, and in which session where there was one.
    pub(crate) times: Vec<(At, Option<u32>)>,
}

/// Where the levels lay, in percent of the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Levels {
    pub(crate) l1: f64,
    pub(crate) l2: f64,
    pub(crate) l3: f64,
    pub(crate) auto_compact: f64,
    pub(crate) auto_compact_does: &'static str,
    pub(crate) window: u64,
    /// True if they changed during the run.
    pub(crate) moved: bool,
}

/// What the run has used, by the state's own account.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    pub(crate) usd: f64,
    pub(crate) basis: CostBasis,
    pub(crate) max_usd: Option<f64>,
    /// How many reviews there were, and what of the cost was for them.
    pub(crate) reviews: u32,
    pub(crate) review_usd: f64,
    pub(crate) tokens: u64,
    pub(crate) max_tokens: Option<u64>,
}

/// What filled the windows of the run's sessions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filling {
    /// Largest first.
    pub(crate) parts: Vec<Part>,
    pub(crate) largest: Vec<Large>,
    /// Sessions whose turns were recorded.
    pub(crate) sessions: usize,
    /// What subagents kept out of these windows.
    pub(crate) delegated: SubagentUsage,
}

/// A kind of thing in the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) name: RedactedText,
    pub(crate) is_tool: bool,
    pub(crate) tokens: u64,
    pub(crate) calls: u64,
    pub(crate) failed: u64,
}

/// A single result that was large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Large {
    pub(crate) tool: RedactedText,
    pub(crate) asked: RedactedText,
    pub(crate) tokens: u64,
    /// As `plimsoll turns show` takes it.
    pub(crate) turn: RedactedText,
}

/// A handoff that was written.
#[derive(Debug, Clone)]
pub(crate) struct Handoff {
    pub(crate) path: RedactedText,
    pub(crate) at: At,
    pub(crate) iteration: Option<u32>,
    pub(crate) why: RedactedText,
    pub(crate) item: Option<RedactedText>,
    /// What the session says itself: summary, progress, next step.
    pub(crate) claims: Vec<(&'static str, RedactedText)>,
    /// The whole of it, where there is room.
    pub(crate) text: Option<RedactedText>,
    /// True while no session has resumed it.
    pub(crate) is_waiting: bool,
}

/// Something for the user to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) words: RedactedText,
    pub(crate) command: Option<RedactedText>,
}

impl Report {
    /// Its own sessions, or those of its items' runs.
    pub(crate) fn all_sessions(&self) -> impl Iterator<Item = &RunSession> {
        let of_workers = self.workers.iter().flat_map(|worker| &worker.stints);
        self.sessions.iter().chain(of_workers.flat_map(|stint| &stint.sessions))
    }

    /// The last moment that the page is about.
    pub(crate) fn until(&self) -> At {
        self.ended.unwrap_or(self.looked)
    }

    /// Seconds in which a session was at work; none if no session's times are known.
    pub(crate) fn worked(&self) -> Option<i64> {
        let known: Vec<i64> = self.all_sessions().filter_map(|session| self.lasted(session)).collect();
        (!known.is_empty() || self.all_sessions().next().is_none()).then(|| known.iter().sum())
    }

    /// Seconds in which the run stood still.
    pub(crate) fn stood(&self) -> i64 {
        let until = self.until();
        let one = |pause: &Pause| (pause.to.unwrap_or(until) - pause.from).num_seconds().max(0);
        self.pauses.iter().map(one).sum()
    }

    /// How long a session took; one that is at work, until now.
    pub(crate) fn lasted(&self, session: &RunSession) -> Option<i64> {
        let is_last = || self.sessions.last().is_some_and(|last| last.began == session.began);
        let open = || (is_last() && self.is_live).then_some(self.looked);
        let end = session.ended.or(session.judged).or_else(open)?;
        Some((end - session.began?).num_seconds().max(0))
    }
}
