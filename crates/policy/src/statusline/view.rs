//! What the line may show.

use super::Hidden;
use plimsoll_domain::Timestamp;
use plimsoll_domain::forecast::Fill;
use plimsoll_domain::level::Thresholds;
use plimsoll_domain::memory::{Memory, Pressure, Register, share};
use plimsoll_domain::record::GitCounts;
use plimsoll_protocol::status::StatusPayload;
use std::collections::BTreeMap;

/// What the line may show. What is not known is none, and costs its own segment alone.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// What the client reports: its model, cost, version and effort.
    pub client: StatusPayload,
    /// The working directory, with `~` for the home.
    pub directory: Option<String>,
    /// The repository there.
    pub git: Option<GitView>,
    /// How full the window is.
    pub load: LoadView,
    /// The project's run, while it is open.
    pub run: Option<RunView>,
    /// The working memory, where the session has it in mind.
    pub memory: Option<MemoryView>,
    /// The prompt cache.
    pub cache: Option<CacheView>,
    /// The five-hour limit.
    pub five_hour: Option<LimitView>,
    /// The weekly limit.
    pub weekly: Option<LimitView>,
    /// The limit of what may be spent.
    pub spend: Option<LimitView>,
    /// What is amiss with ourselves.
    pub health: Option<String>,
    /// The user's own segments: each its value, or why there is none.
    pub own: BTreeMap<String, Result<String, Hidden>>,
    /// False with `NO_COLOR`.
    pub colour: bool,
    /// How wide the terminal is; none if not stated.
    pub columns: Option<usize>,
}

/// How full the window is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadView {
    /// The client's own figure, whole percent.
    pub percent: Option<u64>,
    /// Tokens sent with the last request.
    pub used: Option<u64>,
    /// Where the levels begin.
    pub thresholds: Option<Thresholds>,
    /// The fill after each of the last responses since the last compaction, oldest first.
    pub fills: Vec<Fill>,
}

/// The repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitView {
    /// The branch, or the first letters of a detached HEAD.
    pub branch: String,
    /// HEAD is on no branch.
    pub detached: bool,
    /// The name of a linked worktree.
    pub worktree: Option<String>,
    /// What is in progress: `merge`, `rebase 2/5`, …
    pub action: Option<String>,
    /// What one `git status` counted, once it has.
    pub counts: Option<GitCounts>,
    /// It did not answer in time now.
    pub stale: bool,
}

/// The project's run, while it is open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunView {
    /// The current iteration.
    pub iteration: u32,
    /// The last one allowed.
    pub max_iterations: u32,
    /// Ticked items.
    pub done: usize,
    /// All items; 0 without a plan.
    pub items: usize,
    /// The current item.
    pub item: Option<String>,
    /// The percent of a checkpoint that waits for its resume.
    pub checkpoint: Option<u64>,
    /// While it is paused: until when, or `?`.
    pub paused: Option<String>,
}

/// What the line says of the working memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryView {
    /// How deep the current frame is; 0 is the root.
    pub depth: usize,
    /// Its name; empty for the root.
    pub frame: String,
    /// What the heap holds, in percent of its soft limit.
    pub heap_percent: usize,
    /// How near that is.
    pub pressure: Pressure,
    /// Registers that every step should write and that are stale.
    pub stale: Vec<Register>,
}

impl MemoryView {
    /// Of a memory.
    pub fn of(memory: &Memory) -> MemoryView {
        MemoryView {
            depth: memory.depth(),
            frame: memory.top().name.clone(),
            heap_percent: share(memory.heap_size()),
            pressure: memory.pressure(),
            stale: memory.stale(),
        }
    }
}

/// The prompt cache.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CacheView {
    /// Whether it is.
    pub warm: Option<bool>,
    /// The share of tokens that were read from it, 0 to 1.
    pub hit_ratio: Option<f64>,
    /// When it expires, as shown to the user.
    pub until: Option<Timestamp>,
}

/// A limit of a subscription.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LimitView {
    /// How much of it is used, in percent.
    pub percent: Option<f64>,
    /// When it starts again, as shown to the user.
    pub reset: Option<String>,
}
