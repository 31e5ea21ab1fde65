//! The reading: one measurement of how full a session is.

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// One measurement. What is unknown is absent, never guessed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Tokens sent with the last request: what the client's own `used_percentage` is made of.
    pub used: u64,
    /// Tokens of the answer to it; the next request sends them too.
    pub output: u64,
    /// Estimate of what else the next request holds: tool results that the model has still to read; after a compaction also
    /// system prompt and tools.
    pub added: u64,
    /// The window; none while no model has been seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// The model that was asked for, with its `[1m]` suffix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Where `used` comes from.
    pub source: UsedSource,
    /// The response it was read from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// When that response was written, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// True when the message at hand is not in the transcript yet: the figure is one request old.
    pub behind: bool,
}

/// A window in tokens, with where the number came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// In tokens.
    pub tokens: u64,
    /// Where the number came from.
    pub source: WindowSource,
}

/// Where `used` comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsedSource {
    /// The last answer in the transcript.
    Transcript,
    /// A compaction in the transcript, with no answer after it.
    Compaction,
    /// The status line's last record of this session.
    StatusLine,
    /// `CLAUDE_CONTEXT_PERCENT`, set by the user.
    Environment,
}

/// Where a window's size comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowSource {
    /// The settings say so.
    Settings,
    /// Reported by the client to this session's status line.
    StatusLine,
    /// Reported by the client in an earlier session with exactly this model.
    Learned,
    /// The table of models with 200k windows, or the `[1m]` suffix.
    Table,
    /// Nothing known: the client's own assumption for models it does not know.
    Assumed,
    /// More was used than the window that was believed.
    Used,
}

impl WindowSource {
    /// As shown to the user.
    pub fn words(self) -> &'static str {
        match self {
            WindowSource::Settings => "settings",
            WindowSource::StatusLine => "the client's status line",
            WindowSource::Learned => "learned from the client",
            WindowSource::Table => "table of models",
            WindowSource::Assumed => "assumed: the client's default for unknown models",
            WindowSource::Used => "raised: usage exceeded the expected limit",
        }
    }
}

impl UsedSource {
    /// As shown to the user.
    pub fn words(self) -> &'static str {
        match self {
            UsedSource::Transcript => "transcript",
            UsedSource::Compaction => "compaction in the transcript",
            UsedSource::StatusLine => "status line",
            UsedSource::Environment => "CLAUDE_CONTEXT_PERCENT",
        }
    }
}

/// A share in whole percent, half up, as the client rounds it.
pub fn percent(tokens: u64, window: u64) -> Option<u64> {
    (window > 0).then(|| tokens.saturating_mul(200).saturating_add(window) / window.saturating_mul(2))
}

/// The fewest tokens that are shown as this percent of a window: the inverse of [`percent`].
pub fn tokens_shown_as(percent: u64, window: u64) -> u64 {
    let half_percents = u128::from(percent.saturating_mul(2).saturating_sub(1)) * u128::from(window);
    u64::try_from(half_percents.div_ceil(200)).unwrap_or(u64::MAX)
}

impl Reading {
    /// What the next request will contain for certain: all input and output so far.
    pub fn measured(&self) -> u64 {
        self.used.saturating_add(self.output)
    }

    /// What the next request will probably hold: the deciding figure.
    pub fn projected(&self) -> u64 {
        self.measured().saturating_add(self.added)
    }

    /// The deciding figure in whole percent.
    pub fn percent(&self) -> Option<u64> {
        percent(self.projected(), self.window.as_ref()?.tokens)
    }

    /// The client's own figure: whole percent of what was sent, at most 100. After a compaction nothing has been
    /// sent yet.
    pub fn percent_used(&self) -> Option<u64> {
        let sent = if self.source == UsedSource::Compaction { 0 } else { self.used };
        Some(percent(sent, self.window.as_ref()?.tokens)?.min(100))
    }
}
