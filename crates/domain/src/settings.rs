//! Settings: `.claude/plimsoll.json` of the project over `~/.config/plimsoll/settings.json`.

pub mod authority;

use crate::item_model;
use crate::size::ItemSize;
use serde::{Deserialize, Serialize};

/// Plimsoll reads your own `~/.config/plimsoll/settings.json`, then the project's `.claude/plimsoll.json`. A file contains
/// only what differs from the defaults. Anyone may have written the project's file: it can set preferences and tighten
/// limits, but cannot start programs, send data or choose models.
// These doc comments are the descriptions in the published schema and in docs/settings.md.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(title = "Plimsoll settings"))]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// For editors; not read.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Thresholds, in percent of the context window. Lowered if they come too close to the auto-compact threshold.
    pub levels: Levels,
    /// Minimum distance below the auto-compact threshold, in tokens. L2 may be lowered further: see docs/measuring.md.
    pub margins: Margins,
    /// Batches of tool calls that the model may still make after L2.
    pub grace_batches: u32,
    /// Context windows in tokens, by model id, where Claude Code reports none or a wrong one.
    #[cfg_attr(feature = "schema", schemars(extend("additionalProperties" = { "type": "integer", "minimum": 1 })))]
    pub windows: std::collections::BTreeMap<String, u64>,
    /// Models for a run's items, by the size that the plan states.
    pub models: Models,
    /// Longest wait for Claude Code's transcript, in milliseconds; only near a threshold.
    pub freshness_wait_ms: u64,
    /// Maximum size of a handoff, in bytes.
    #[cfg_attr(feature = "schema", schemars(range(min = 1024)))]
    pub handoff_bytes: usize,
    /// What replaces the conversation at an automatic compaction: Claude Code's summary, your choice each time, or
    /// Plimsoll's handoff. Needs the module (`plimsoll init --module`). Not for runs.
    pub compaction: CompactionChoice,
    /// `l1`, `l2` or `l3`: once Claude has finished its work at this threshold, the module starts a fresh conversation with
    /// the handoff. Default: only if you ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff_at: Option<HandoffLevel>,
    /// Grace period for Claude Code to exit after a hook has ended its session.
    pub end_wait_seconds: u64,
    /// Longest wait for background tasks after Claude's last response.
    pub background_wait_seconds: u64,
    /// Timeout of one `--verify` command.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub verify_timeout_seconds: u64,
    /// Files and folders of the project that no session of a run may change; `--protect` adds more. Not for workers and fleets.
    pub protect: Vec<String>,
    /// Ends Claude Code after this much silence; 0 means never. `--idle-timeout` overrides it.
    pub idle_timeout_seconds: u64,
    /// The limit of silence while a tool runs, also in a subagent; 0 means never. `--tool-timeout` overrides it.
    pub tool_timeout_seconds: u64,
    /// The circuit breaker opens after this many sessions in a row with the same problem; 0 means no limit.
    pub breaker: BreakerLimits,
    /// Pauses the run after many checkpoints at thresholds without a finished item.
    pub thrash: ThrashLimits,
    /// Notes in Linear; see docs/linear.md.
    pub linear: LinearSettings,
    /// How long records are kept; by default forever. See `plimsoll prune --help`.
    #[serde(skip_serializing_if = "RetentionSettings::keeps_everything")]
    pub keep: RetentionSettings,
    /// The status line; see `plimsoll statusline explain`.
    pub statusline: crate::statusline::StatusLine,
    /// Any of these settings for one project, by its folder (absolute, or from `~/`).
    #[cfg_attr(feature = "schema", schemars(extend("default" = {})))]
    #[serde(skip_serializing)]
    pub projects: std::collections::BTreeMap<String, Settings>,
}

/// What takes the place of a conversation when the client compacts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CompactionChoice {
    /// Claude Code's summary.
    #[default]
    Client,
    /// A dialog asks. After a minute without an answer, Claude Code's summary.
    Ask,
    /// Plimsoll's handoff.
    Handoff,
}

impl CompactionChoice {
    pub const ALL: [CompactionChoice; 3] =
        [CompactionChoice::Client, CompactionChoice::Ask, CompactionChoice::Handoff];

    /// Returns the value of the setting.
    pub fn as_str(self) -> &'static str {
        match self {
            CompactionChoice::Client => "client",
            CompactionChoice::Ask => "ask",
            CompactionChoice::Handoff => "handoff",
        }
    }
}

/// The threshold at which a fresh conversation begins by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HandoffLevel {
    #[serde(alias = "L1")]
    L1,
    #[serde(alias = "L2")]
    L2,
    #[serde(alias = "L3")]
    L3,
}

/// Models for the items of a run. A model costs money, so only the user's own settings choose one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Models {
    /// For `(trivial)` items, such as `opus`. Default: the model given after `--`.
    pub trivial: Option<String>,
    /// For `(simple)` items.
    pub simple: Option<String>,
    /// For `(medium)` items.
    pub medium: Option<String>,
    /// For `(complex)` items.
    pub complex: Option<String>,
    /// For `(very complex)` items.
    pub very_complex: Option<String>,
    /// Further models that an item may request with `(model: NAME)`.
    pub allowed: Vec<String>,
}

impl Models {
    /// Returns the model for items of this size.
    pub fn configured_model_for_size(&self, size: ItemSize) -> Option<&str> {
        let model = match size {
            ItemSize::Trivial => &self.trivial,
            ItemSize::Simple => &self.simple,
            ItemSize::Medium => &self.medium,
            ItemSize::Complex => &self.complex,
            ItemSize::VeryComplex => &self.very_complex,
        };
        model.as_deref()
    }

    /// Returns every configured model: those for a size, and the other allowed ones.
    pub fn all_configured_models(&self) -> impl Iterator<Item = &str> {
        let models_by_size = [&self.trivial, &self.simple, &self.medium, &self.complex, &self.very_complex];
        models_by_size.into_iter().flatten().chain(&self.allowed).map(String::as_str)
    }

    fn find_model_name_error(&self) -> Option<String> {
        let invalid_name =
            self.all_configured_models().find(|name| !item_model::is_valid_model_name(name))?;
        Some(format!("models: {invalid_name:?} is no model's name"))
    }
}

/// How much of what is recorded is kept: what exceeds it is removed when a session ends. Records of a run that is not over, of an
/// open session, and handoffs that no session has read always stay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename = "Keep", default, deny_unknown_fields)]
pub struct RetentionSettings {
    /// Removes sessions, handoffs and run output older than this.
    pub days: Option<u64>,
    /// Removes the oldest records of a project above this size.
    pub megabytes: Option<u64>,
    /// Compresses the turn logs of ended sessions, like `plimsoll prune`.
    pub compress: bool,
}

impl RetentionSettings {
    /// Returns true if nothing is ever deleted.
    pub fn keeps_everything(&self) -> bool {
        *self == RetentionSettings::default()
    }
}

/// Notes in Linear; nothing is sent anywhere without an issue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename = "Linear", default, deny_unknown_fields)]
pub struct LinearSettings {
    /// The issue, such as ENG-123.
    pub issue: Option<String>,
    /// Shell command that prints the API key. Used if LINEAR_API_KEY is not set.
    pub key_command: Option<String>,
}

/// How many times in a row each problem may occur before the breaker opens; 0 for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct BreakerLimits {
    /// Sessions without a commit, changed file, ticked item, new chunk in the working memory, or verify command that starts to pass.
    pub no_progress: u32,
    /// Sessions with the same error (paths, numbers, times and ids ignored) and no finished item.
    pub same_error: u32,
    /// Sessions with a rejected promise and no finished item.
    pub refused: u32,
    /// Sessions with a refused tool and no finished item.
    pub permission_denied: u32,
    /// Sessions without text or tool calls.
    pub empty_reply: u32,
    /// Sessions that fail before the model answers.
    pub quick_failure: u32,
}

/// This many threshold checkpoints within this many minutes, with no finished item, pause the run; 0 for never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename = "Thrash", default, deny_unknown_fields)]
pub struct ThrashLimits {
    /// Number of such checkpoints; 0 means never.
    pub checkpoints: u32,
    /// Within this many minutes.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub minutes: u32,
}

impl Default for BreakerLimits {
    /// A refused tool stays refused, so two sessions are enough; an error may need a few retries.
    fn default() -> Self {
        BreakerLimits {
            no_progress: 3,
            same_error: 5,
            refused: 3,
            permission_denied: 2,
            empty_reply: 3,
            quick_failure: 3,
        }
    }
}

impl Default for ThrashLimits {
    /// Three full context windows within a quarter of an hour mean that the item does not fit one session.
    fn default() -> Self {
        ThrashLimits { checkpoints: 3, minutes: 15 }
    }
}

/// Where the levels begin, in percent of the window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Levels {
    /// Warn.
    #[cfg_attr(feature = "schema", schemars(range(max = 100), extend("exclusiveMinimum" = 0)))]
    pub l1: f64,
    /// Checkpoint.
    #[cfg_attr(feature = "schema", schemars(range(max = 100), extend("exclusiveMinimum" = 0)))]
    pub l2: f64,
    /// End the session.
    #[cfg_attr(feature = "schema", schemars(range(max = 100), extend("exclusiveMinimum" = 0)))]
    pub l3: f64,
}

/// How far below the auto-compact threshold the levels must stay, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Margins {
    /// For L2; must be larger than `l3`.
    pub l2: u64,
    /// For L3.
    pub l3: u64,
}

impl Default for Levels {
    /// The thresholds of the original design.
    fn default() -> Self {
        Levels { l1: 70.0, l2: 85.0, l3: 95.0 }
    }
}

impl Default for Margins {
    /// One large Read is about 20,000 tokens in any window: L2 leaves room for one, L3 for half of one. If a session takes
    /// larger steps, its L2 is lowered accordingly.
    fn default() -> Self {
        Margins { l2: 20_000, l3: 10_000 }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            schema: None,
            levels: Levels::default(),
            margins: Margins::default(),
            // Enough to finish an edit, complete the handoff's notes and commit.
            grace_batches: 5,
            windows: std::collections::BTreeMap::new(),
            models: Models::default(),
            // The client's writer lagged up to 89 ms behind a hook in measurements (2.1.329).
            freshness_wait_ms: 250,
            handoff_bytes: 8 * 1024,
            compaction: CompactionChoice::default(),
            handoff_at: None,
            end_wait_seconds: 10,
            background_wait_seconds: 120,
            verify_timeout_seconds: 600,
            protect: Vec::new(),
            // The client limits one Bash call to 10 minutes, so three times that without output means that it
            // hangs.
            idle_timeout_seconds: 1800,
            // Longer than any build or test run that a session should wait for; shorter than a night.
            tool_timeout_seconds: 7200,
            breaker: BreakerLimits::default(),
            thrash: ThrashLimits::default(),
            linear: LinearSettings::default(),
            keep: RetentionSettings::default(),
            statusline: crate::statusline::StatusLine::default(),
            projects: std::collections::BTreeMap::new(),
        }
    }
}

impl Settings {
    /// Returns a message about the first value that parses but is not valid.
    pub fn find_validation_error(&self) -> Option<String> {
        let Levels { l1, l2, l3 } = self.levels;
        if !(0.0 < l1 && l1 < l2 && l2 < l3 && l3 <= 100.0) {
            return Some(format!("levels must rise: 0 < l1 ({l1}) < l2 ({l2}) < l3 ({l3}) <= 100"));
        }
        if self.margins.l2 <= self.margins.l3 {
            return Some(format!(
                "margins.l2 ({}) must be larger than margins.l3 ({})",
                self.margins.l2, self.margins.l3
            ));
        }
        if self.thrash.minutes == 0 {
            return Some(
                "thrash.minutes must be at least 1 (thrash.checkpoints 0 switches it off)".to_owned(),
            );
        }
        if self.handoff_bytes < 1024 {
            return Some(format!("handoff_bytes ({}) must be at least 1024", self.handoff_bytes));
        }
        let issue = self.linear.issue.as_deref();
        let issue_error = issue.and_then(crate::linear::describe_invalid_issue_name);
        issue_error
            .or_else(|| self.models.find_model_name_error())
            .or_else(|| self.statusline.find_validation_error())
    }
}
