//! Settings: `.claude/plimsoll.json` of the project over `~/.config/plimsoll/settings.json`.

pub mod authority;

use serde::{Deserialize, Serialize};

/// What a user may set. Every field has a default; a file holds only what differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// For editors; not read.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Where the levels begin, in percent of the window.
    pub levels: Levels,
    /// How far below the auto-compact threshold the levels must stay, in tokens.
    pub margins: Margins,
    /// How many batches of tools the model has to wrap up after L2.
    pub grace_batches: u32,
    /// Windows in tokens by model id, where the client's own word is wrong or missing.
    pub windows: std::collections::BTreeMap<String, u64>,
    /// Longest wait for the client's transcript writer, in milliseconds.
    pub freshness_wait_ms: u64,
    /// The longest handoff, in bytes.
    pub handoff_bytes: usize,
    /// How long a client may live on after a hook of ours ended its session, in seconds.
    pub end_wait_seconds: u64,
    /// How long a client may wait for its background tasks after its turn has ended, in seconds.
    pub background_wait_seconds: u64,
    /// How long one `--verify` command may take, in seconds.
    pub verify_timeout_seconds: u64,
    /// A client that is silent for this long is ended, in seconds; 0 for never.
    pub idle_timeout_seconds: u64,
    /// The same while a tool runs: a long build is silent, too.
    pub tool_timeout_seconds: u64,
    /// How many times in a row each problem may occur before the breaker opens; 0 for no limit.
    pub breaker: BreakerLimits,
    /// Checkpoints that follow one another too fast.
    pub thrash: Thrash,
    /// Notes in Linear; nothing is sent anywhere without an issue.
    pub linear: Linear,
    /// How the status line looks.
    pub statusline: crate::statusline::StatusLine,
    /// What differs in one project, by the project's folder; only in the user's own file.
    #[serde(skip_serializing)]
    pub projects: std::collections::BTreeMap<String, Settings>,
}

/// Notes in Linear; nothing is sent anywhere without an issue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Linear {
    /// The issue that a run's notes go to, such as `ENG-123`.
    pub issue: Option<String>,
    /// A command that prints the API key, where `LINEAR_API_KEY` is not set; a shell runs it.
    pub key_command: Option<String>,
}

/// How many times in a row each problem may occur before the breaker opens; 0 for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BreakerLimits {
    /// Sessions that change nothing.
    pub no_progress: u32,
    /// Sessions with the same error and no finished item.
    pub same_error: u32,
    /// Promises that do not hold, with no finished item.
    pub refused: u32,
    /// Sessions in which the client refused a tool, with no finished item.
    pub permission_denied: u32,
    /// Sessions that say and do nothing.
    pub empty_reply: u32,
    /// Sessions that fail before the model has answered.
    pub quick_failure: u32,
}

/// This many threshold checkpoints within this many minutes, with no finished item, pause the run; 0 for never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Thrash {
    /// Checkpoints.
    pub checkpoints: u32,
    /// Minutes.
    pub minutes: u32,
}

impl Default for BreakerLimits {
    /// A refused tool stays refused, so two are enough; an error may need a few tries.
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

impl Default for Thrash {
    /// Three windows filled in a quarter of an hour are no work.
    fn default() -> Self {
        Thrash { checkpoints: 3, minutes: 15 }
    }
}

/// Where the levels begin, in percent of the window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Levels {
    /// Warn.
    pub l1: f64,
    /// Checkpoint.
    pub l2: f64,
    /// Emergency.
    pub l3: f64,
}

/// How far below the auto-compact threshold the levels must stay, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Margins {
    /// L2 below the auto-compact threshold.
    pub l2: u64,
    /// L3 below the auto-compact threshold.
    pub l3: u64,
}

impl Default for Levels {
    /// The thresholds of the original design.
    fn default() -> Self {
        Levels { l1: 70.0, l2: 85.0, l3: 95.0 }
    }
}

impl Default for Margins {
    /// One large Read is about 20,000 tokens whatever the window: L3 leaves room for one, L2 for two.
    fn default() -> Self {
        Margins { l2: 40_000, l3: 20_000 }
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
            // The client's writer was seen to lag up to 89 ms behind a hook (2.1.329).
            freshness_wait_ms: 250,
            handoff_bytes: 8 * 1024,
            end_wait_seconds: 10,
            background_wait_seconds: 120,
            verify_timeout_seconds: 600,
            // The client's own longest Bash call is 10 minutes: three of them in silence are a hang.
            idle_timeout_seconds: 1800,
            // Longer than any build or test run that a session should wait for; shorter than a night.
            tool_timeout_seconds: 7200,
            breaker: BreakerLimits::default(),
            thrash: Thrash::default(),
            linear: Linear::default(),
            statusline: crate::statusline::StatusLine::default(),
            projects: std::collections::BTreeMap::new(),
        }
    }
}

impl Settings {
    /// Says what is wrong with values that parse and still make no sense.
    pub fn problem(&self) -> Option<String> {
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
        issue.and_then(crate::linear::problem_of_issue).or_else(|| self.statusline.problem())
    }
}
