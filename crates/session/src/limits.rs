//! What a run may use: money, tokens, time, and the user's share of the client's own quotas.

use serde::{Deserialize, Serialize};

/// Where a run ends whatever is open. What is absent does not limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// US dollars, as the client reckons them.
    pub max_cost_usd: Option<f64>,
    /// Tokens of all sessions, as the client counts them: input, output, cache written and cache read.
    pub max_tokens: Option<u64>,
    /// RFC 3339 UTC, whole seconds.
    pub deadline: Option<String>,
    /// Of the five-hour or weekly quota: from there the run waits for the reset.
    pub stop_at_limit_percent: Option<u8>,
}

/// The quotas of a subscription, as the client last told them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quota {
    /// The five-hour window.
    pub five_hour: Option<QuotaWindow>,
    /// The weekly window.
    pub seven_day: Option<QuotaWindow>,
}

/// One quota.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuotaWindow {
    /// How much of it is used, 0 to 100.
    pub percent: f64,
    /// When it begins anew, RFC 3339 UTC.
    pub resets_at: Option<String>,
}
