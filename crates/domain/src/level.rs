//! Levels, and the thresholds where they begin.

use serde::{Deserialize, Serialize};

/// How deep the session is loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// Below every threshold.
    #[default]
    L0,
    /// Warn.
    L1,
    /// Checkpoint.
    L2,
    /// Emergency.
    L3,
}

impl Level {
    /// 0 to 3, the exit code of `plimsoll status --exit-code`.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The word of the glossary.
    pub fn word(self) -> &'static str {
        match self {
            Level::L0 => "normal",
            Level::L1 => "warn",
            Level::L2 => "checkpoint",
            Level::L3 => "emergency",
        }
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "L{}", self.number())
    }
}

/// Where the levels begin in one window, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thresholds {
    /// The window in tokens.
    pub window: u64,
    /// First token of L1.
    pub l1: u64,
    /// First token of L2.
    pub l2: u64,
    /// First token of L3.
    pub l3: u64,
    /// Where the client itself acts.
    #[serde(rename = "ceiling")]
    pub auto_compact: AutoCompact,
    /// True when a configured level lay too near the auto-compact threshold and was moved down.
    pub clamped: bool,
}

/// The fill at which the client itself acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoCompact {
    /// In tokens.
    pub tokens: u64,
    /// What the client does there.
    pub action: AutoCompactAction,
}

/// What the client does at the auto-compact threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoCompactAction {
    /// It compacts: a summary replaces the conversation.
    Compacts,
    /// It refuses to continue (automatic compaction is off).
    Refuses,
    /// The API refuses the prompt as too long.
    Rejected,
}

impl AutoCompactAction {
    /// What follows at the auto-compact threshold, in words.
    pub fn words(self) -> &'static str {
        match self {
            AutoCompactAction::Compacts => "the client compacts",
            AutoCompactAction::Refuses => "the client refuses to continue",
            AutoCompactAction::Rejected => "the API refuses the prompt",
        }
    }
}

impl Thresholds {
    /// The level of a fill in tokens.
    pub fn level(&self, tokens: u64) -> Level {
        match tokens {
            tokens if tokens >= self.l3 => Level::L3,
            tokens if tokens >= self.l2 => Level::L2,
            tokens if tokens >= self.l1 => Level::L1,
            _ => Level::L0,
        }
    }

    /// A threshold in whole percent, rounded as readings are. The levels are where a whole percent begins
    /// (`plimsoll_policy::thresholds::thresholds`), so a reading that is shown with this percent has reached the level, and none that has
    /// is shown with less. The client's own threshold may be anywhere: its percent is right to within half a percent.
    pub fn percent(&self, tokens: u64) -> u64 {
        crate::reading::percent(tokens, self.window).unwrap_or(0)
    }
}
