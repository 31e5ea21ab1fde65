//! Measurements of the context usage of a session.

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// One measurement of the context usage. Unknown values are absent, never guessed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageReading {
    /// Input tokens of the last request. The client computes its own `used_percentage` from them.
    #[serde(rename = "used")]
    pub used_tokens: u64,
    /// Output tokens of the response to that request. The next request contains them too.
    #[serde(rename = "output")]
    pub output_tokens: u64,
    /// Estimated tokens that the next request adds: tool results that the model has not read yet and, after a
    /// compaction, the system prompt and the tools.
    #[serde(rename = "added")]
    pub estimated_added_tokens: u64,
    /// The context window; `None` until the model is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowSize>,
    /// The requested model, with its `[1m]` suffix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The source of the used tokens.
    #[serde(rename = "source")]
    pub usage_source: UsageSource,
    /// The id of the response that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The time of that response (RFC 3339).
    #[serde(rename = "at", skip_serializing_if = "Option::is_none")]
    pub responded_at: Option<Timestamp>,
    /// True if the current message is not in the transcript yet, so that the values are one request old.
    #[serde(rename = "behind")]
    pub is_one_request_behind: bool,
}

/// The size of a context window, and the source of the number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowSize {
    /// The size in tokens.
    pub tokens: u64,
    /// The source of the number.
    pub source: WindowSource,
}

/// The source of the used tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageSource {
    /// The last response in the transcript.
    Transcript,
    /// A compaction in the transcript without a response after it.
    Compaction,
    /// The status line's last record of this session.
    StatusLine,
    /// `CLAUDE_CONTEXT_PERCENT`, set by the user.
    Environment,
    /// The client itself, asked by our module.
    Client,
}

/// The source of a window's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowSource {
    /// The settings.
    Settings,
    /// Reported by the client to this session's status line.
    StatusLine,
    /// Reported by the client in an earlier session with exactly this model.
    Learned,
    /// The table of models with 200k windows, or the `[1m]` suffix.
    #[serde(rename = "table")]
    ModelTable,
    /// The client's default for unknown models.
    Assumed,
    /// Raised, because more tokens were used than the expected window has.
    #[serde(rename = "used")]
    RaisedByUsage,
    /// The client itself, asked by our module.
    Client,
}

impl WindowSource {
    /// Returns the name of the source that is shown to the user.
    pub fn describe(self) -> &'static str {
        match self {
            WindowSource::Settings => "settings",
            WindowSource::StatusLine => "Claude Code's status line",
            WindowSource::Learned => "learned from Claude Code",
            WindowSource::ModelTable => "table of models",
            WindowSource::Assumed => "assumed: Claude Code's default for unknown models",
            WindowSource::RaisedByUsage => "raised: usage exceeded the expected limit",
            WindowSource::Client => "Claude Code",
        }
    }
}

impl UsageSource {
    /// Returns the name of the source that is shown to the user.
    pub fn describe(self) -> &'static str {
        match self {
            UsageSource::Transcript => "transcript",
            UsageSource::Compaction => "compaction in the transcript",
            UsageSource::StatusLine => "status line",
            UsageSource::Environment => "CLAUDE_CONTEXT_PERCENT",
            UsageSource::Client => "Claude Code",
        }
    }
}

/// Returns tokens as a percentage of the window, rounded half up as the client does. Returns `None` if the
/// window is 0.
pub fn rounded_percent(tokens: u64, window: u64) -> Option<u64> {
    (window > 0).then(|| tokens.saturating_mul(200).saturating_add(window) / window.saturating_mul(2))
}

/// Returns the smallest number of tokens that [`rounded_percent`] rounds to this percentage of a window.
pub fn min_tokens_for_percent(percent: u64, window: u64) -> u64 {
    let half_percents = u128::from(percent.saturating_mul(2).saturating_sub(1)) * u128::from(window);
    u64::try_from(half_percents.div_ceil(200)).unwrap_or(u64::MAX)
}

impl UsageReading {
    /// Returns the tokens that the next request is certain to contain: all input and output so far.
    pub fn measured_tokens(&self) -> u64 {
        self.used_tokens.saturating_add(self.output_tokens)
    }

    /// Returns the tokens that the next request will probably contain. The thresholds are compared with this
    /// value.
    pub fn projected_tokens(&self) -> u64 {
        self.measured_tokens().saturating_add(self.estimated_added_tokens)
    }

    /// Returns the projected usage as a whole percentage of the window.
    pub fn projected_percent(&self) -> Option<u64> {
        rounded_percent(self.projected_tokens(), self.window.as_ref()?.tokens)
    }

    /// Returns the percentage that the client shows: the input tokens of the last request, at most 100. After a
    /// compaction it is 0, because no request has been sent yet.
    pub fn percent_shown_by_client(&self) -> Option<u64> {
        let sent_tokens = if self.usage_source == UsageSource::Compaction { 0 } else { self.used_tokens };
        Some(rounded_percent(sent_tokens, self.window.as_ref()?.tokens)?.min(100))
    }
}
