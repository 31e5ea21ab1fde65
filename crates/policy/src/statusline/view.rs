//! The data that the status line can show.

use super::HiddenReason;
use plimsoll_domain::Timestamp;
use plimsoll_domain::forecast::UsageSample;
use plimsoll_domain::level::Thresholds;
use plimsoll_domain::memory::{HeapPressure, Memory, Register, percent_of_soft_limit};
use plimsoll_domain::record::GitCounts;
use plimsoll_protocol::status::StatusPayload;
use std::collections::BTreeMap;

/// The data that the status line can show. A value that is unknown hides only its own segment.
#[derive(Debug, Clone, Default)]
pub struct StatusLineView {
    /// The client's payload: model, cost, version and effort.
    pub payload: StatusPayload,
    /// The working directory, with `~` for the home folder.
    pub directory: Option<String>,
    /// The git repository of the working directory.
    pub git: Option<GitView>,
    pub context_usage: ContextUsageView,
    /// The project's run, while it is open.
    pub run: Option<RunView>,
    /// The working memory, if the session uses it.
    pub memory: Option<MemoryView>,
    pub prompt_cache: Option<CacheView>,
    pub five_hour_limit: Option<LimitView>,
    pub weekly_limit: Option<LimitView>,
    /// The spending limit.
    pub spend_limit: Option<LimitView>,
    /// A problem with Plimsoll itself.
    pub health_problem: Option<String>,
    /// User-defined segments by name: the value, or why there is none.
    pub custom_values: BTreeMap<String, Result<String, HiddenReason>>,
    /// False with `NO_COLOR`.
    pub use_color: bool,
    /// The width of the terminal; `None` if unknown.
    pub columns: Option<usize>,
}

/// How much of the context window is used.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ContextUsageView {
    /// The whole percent that the client reports.
    pub used_percent: Option<u64>,
    /// The tokens of the last request.
    pub used_tokens: Option<u64>,
    pub thresholds: Option<Thresholds>,
    /// The usage after each of the last responses since the last compaction, oldest first.
    pub usage_samples: Vec<UsageSample>,
}

/// The state of the git repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitView {
    /// The branch, or the abbreviated commit id of a detached HEAD.
    pub branch: String,
    /// True if HEAD is detached.
    pub is_detached: bool,
    /// The name of a linked worktree.
    pub worktree: Option<String>,
    /// The operation in progress: `merge`, `rebase 2/5`, …
    pub operation_in_progress: Option<String>,
    /// The counts of the last `git status` that finished; `None` before the first.
    pub counts: Option<GitCounts>,
    /// True if `git status` did not finish in time, so that the counts are old or missing.
    pub is_stale: bool,
}

/// The progress of the project's open run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunView {
    pub iteration: u32,
    /// The limit of iterations.
    pub max_iterations: u32,
    /// The number of ticked items.
    pub done_count: usize,
    /// The number of all items; 0 without a plan.
    pub item_count: usize,
    /// The item that is being worked on.
    pub current_item: Option<String>,
    /// The used percent at a checkpoint from which no session has resumed yet.
    pub checkpoint_percent: Option<u64>,
    /// The end of the pause as text, such as `until 14:30`; `None` if the run is not paused.
    pub paused_until: Option<String>,
}

/// The part of the working memory that the status line shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryView {
    /// The depth of the current frame; 0 is the root.
    pub frame_depth: usize,
    /// The name of the current frame; empty for the root.
    pub frame_name: String,
    /// The size of the heap in percent of its soft limit.
    pub heap_percent: usize,
    /// How close the heap is to its limit.
    pub pressure: HeapPressure,
    /// The registers that every step should write and that are stale.
    pub stale_registers: Vec<Register>,
}

impl MemoryView {
    pub fn from_memory(memory: &Memory) -> MemoryView {
        MemoryView {
            frame_depth: memory.depth(),
            frame_name: memory.current_frame().name.clone(),
            heap_percent: percent_of_soft_limit(memory.heap_size_in_chars()),
            pressure: memory.heap_pressure(),
            stale_registers: memory.stale_next_and_status_registers(),
        }
    }
}

/// The state of the prompt cache.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CacheView {
    /// Whether the cache is still valid; `None` if the client does not report it.
    pub is_warm: Option<bool>,
    /// The share of tokens that were read from the cache, from 0 to 1.
    pub hit_ratio: Option<f64>,
    /// The time at which the cache expires, formatted for display.
    pub expires_at: Option<Timestamp>,
}

/// A usage limit of a subscription.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LimitView {
    /// The used part of the limit, in percent.
    pub used_percent: Option<f64>,
    /// The time at which the limit resets, formatted for display.
    pub resets_at: Option<String>,
}
