//! Usage levels of a session, and the thresholds at which they begin.

use serde::{Deserialize, Serialize};

/// The level of the context window's usage.
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
    /// Returns 0 to 3, the exit code of `plimsoll status --exit-code`.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Returns the level's name in plain words, as in the glossary.
    pub fn descriptive_name(self) -> &'static str {
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

/// The thresholds of the levels in one context window, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thresholds {
    /// The size of the window, in tokens.
    pub window: u64,
    /// The first token of L1.
    pub l1: u64,
    /// The first token of L2.
    pub l2: u64,
    /// The first token of L3.
    pub l3: u64,
    /// The threshold at which the client itself acts.
    #[serde(rename = "ceiling")]
    pub auto_compact: AutoCompactThreshold,
    /// True if a configured threshold was too close to the auto-compact threshold and was lowered.
    #[serde(rename = "clamped")]
    pub is_clamped: bool,
}

/// The usage at which the client itself acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoCompactThreshold {
    pub tokens: u64,
    pub action: AutoCompactAction,
}

/// What the client does at the auto-compact threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoCompactAction {
    /// It compacts: a summary replaces the conversation.
    Compacts,
    /// It refuses to continue, because automatic compaction is off.
    Refuses,
    /// The API refuses the prompt as too long.
    #[serde(rename = "rejected")]
    ApiRejectsPrompt,
}

impl AutoCompactAction {
    /// Describes the action as a clause of a sentence.
    pub fn describe(self) -> &'static str {
        match self {
            AutoCompactAction::Compacts => "Claude Code compacts",
            AutoCompactAction::Refuses => "Claude Code refuses to continue",
            AutoCompactAction::ApiRejectsPrompt => "the API refuses the prompt",
        }
    }
}

impl Thresholds {
    /// Returns the level of a usage in tokens.
    pub fn level_at(&self, tokens: u64) -> Level {
        match tokens {
            tokens if tokens >= self.l3 => Level::L3,
            tokens if tokens >= self.l2 => Level::L2,
            tokens if tokens >= self.l1 => Level::L1,
            _ => Level::L0,
        }
    }

    /// Returns a threshold in whole percent, rounded as readings are. Each level begins at a whole percent
    /// (`plimsoll_policy::thresholds::thresholds`): a reading that shows this percent has reached the level,
    /// and no reading that has reached it shows less. The client's own threshold may be any number, so its
    /// percent is off by up to half a percent.
    pub fn percent_of_window(&self, tokens: u64) -> u64 {
        crate::reading::rounded_percent(tokens, self.window).unwrap_or(0)
    }
}
