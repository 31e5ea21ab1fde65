//! What the client hands to a status line command.

use crate::lenient;
use crate::{Malformed, parse};
use serde::Deserialize;

/// One call of the status line.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct StatusPayload {
    /// The session.
    #[serde(deserialize_with = "lenient::text")]
    pub session_id: Option<String>,
    /// Its transcript.
    #[serde(deserialize_with = "lenient::text")]
    pub transcript_path: Option<String>,
    /// The current working directory.
    #[serde(deserialize_with = "lenient::text")]
    pub cwd: Option<String>,
    /// The model.
    #[serde(deserialize_with = "lenient::field")]
    pub model: Model,
    /// Where the session works.
    #[serde(deserialize_with = "lenient::field")]
    pub workspace: Workspace,
    /// What it has cost.
    #[serde(deserialize_with = "lenient::field")]
    pub cost: Cost,
    /// How full the window is, in the client's own figures.
    #[serde(deserialize_with = "lenient::field")]
    pub context_window: ContextWindow,
    /// The client's version.
    #[serde(deserialize_with = "lenient::text")]
    pub version: Option<String>,
    /// How hard the model thinks; some models have none.
    #[serde(deserialize_with = "lenient::field")]
    pub effort: Effort,
    /// The prompt cache; from the first answer on.
    #[serde(deserialize_with = "lenient::field")]
    pub prompt_cache: PromptCache,
    /// The limits of a subscription; from the first answer on.
    #[serde(deserialize_with = "lenient::field")]
    pub rate_limits: Limits,
}

/// How hard the model thinks.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Effort {
    /// `low`, `medium`, `high`, …
    #[serde(deserialize_with = "lenient::text")]
    pub level: Option<String>,
}

/// The prompt cache of a session.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PromptCache {
    /// Whether the next request will find it.
    #[serde(deserialize_with = "lenient::field")]
    pub warm: Option<bool>,
    /// The share of tokens that were read from it, 0 to 1.
    #[serde(deserialize_with = "lenient::share")]
    pub hit_ratio: Option<f64>,
    /// Seconds since 1970.
    #[serde(deserialize_with = "lenient::count")]
    pub expires_at: Option<u64>,
}

/// The limits of a subscription.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Of five hours.
    #[serde(deserialize_with = "lenient::field")]
    pub five_hour: Option<Limit>,
    /// Of a week.
    #[serde(deserialize_with = "lenient::field")]
    pub seven_day: Option<Limit>,
    /// Of the money that a gateway lets the user spend.
    #[serde(deserialize_with = "lenient::field")]
    pub spend_limit: Option<Limit>,
}

/// One limit.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Limit {
    /// How much of it is used.
    #[serde(deserialize_with = "lenient::share")]
    pub used_percentage: Option<f64>,
    /// When it starts again, seconds since 1970.
    #[serde(deserialize_with = "lenient::count")]
    pub resets_at: Option<u64>,
}

/// The model of a status payload.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Model {
    /// With the `[1m]` suffix.
    #[serde(deserialize_with = "lenient::text")]
    pub id: Option<String>,
    /// As shown to the user.
    #[serde(deserialize_with = "lenient::text")]
    pub display_name: Option<String>,
}

/// Where the session works.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Workspace {
    /// The current working directory.
    #[serde(deserialize_with = "lenient::text")]
    pub current_dir: Option<String>,
    /// The directory the client was started in.
    #[serde(deserialize_with = "lenient::text")]
    pub project_dir: Option<String>,
}

/// What the session has cost.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// In US dollars, as reported by the client.
    #[serde(deserialize_with = "lenient::field")]
    pub total_cost_usd: Option<f64>,
    /// How long the session has been open, in milliseconds.
    #[serde(deserialize_with = "lenient::count")]
    pub total_duration_ms: Option<u64>,
    /// By the session's edits.
    #[serde(deserialize_with = "lenient::count")]
    pub total_lines_added: Option<u64>,
    /// By the session's edits.
    #[serde(deserialize_with = "lenient::count")]
    pub total_lines_removed: Option<u64>,
}

/// How full the window is, in the client's own figures.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ContextWindow {
    /// The window in tokens.
    #[serde(deserialize_with = "lenient::count")]
    pub context_window_size: Option<u64>,
    /// Input, cache creation and cache read of the last response; 0 before the first. Before 2.1.132 it was the input outside the
    /// cache of all responses together.
    #[serde(deserialize_with = "lenient::count")]
    pub total_input_tokens: Option<u64>,
    /// Usage of the last response; none before the first.
    #[serde(deserialize_with = "lenient::field")]
    pub current_usage: Option<crate::transcript::Usage>,
    /// Whole percent, half up, at most 100; none before the first response.
    #[serde(deserialize_with = "lenient::field")]
    pub used_percentage: Option<f64>,
}

/// A payload exactly as the client writes it, read in one go, with its texts borrowed. Whatever is
/// different is read field by field.
#[derive(Deserialize)]
struct Exact<'a> {
    session_id: &'a str,
    #[serde(borrow)]
    transcript_path: Option<&'a str>,
    #[serde(borrow)]
    cwd: Option<&'a str>,
    #[serde(borrow)]
    model: ExactModel<'a>,
    #[serde(borrow)]
    workspace: ExactWorkspace<'a>,
    cost: ExactCost,
    context_window: ExactWindow,
    #[serde(borrow)]
    version: Option<&'a str>,
    #[serde(borrow)]
    effort: Option<ExactEffort<'a>>,
    prompt_cache: Option<ExactCache>,
    rate_limits: Option<ExactLimits>,
}

#[derive(Deserialize)]
struct ExactEffort<'a> {
    #[serde(borrow)]
    level: Option<&'a str>,
}

#[derive(Deserialize)]
struct ExactCache {
    warm: Option<bool>,
    hit_ratio: Option<f64>,
    expires_at: Option<u64>,
}

#[derive(Deserialize)]
struct ExactLimits {
    five_hour: Option<ExactLimit>,
    seven_day: Option<ExactLimit>,
    spend_limit: Option<ExactLimit>,
}

#[derive(Deserialize)]
struct ExactLimit {
    used_percentage: Option<f64>,
    resets_at: Option<u64>,
}

#[derive(Deserialize)]
struct ExactModel<'a> {
    id: &'a str,
    #[serde(borrow)]
    display_name: Option<&'a str>,
}

#[derive(Deserialize)]
struct ExactWorkspace<'a> {
    #[serde(borrow)]
    current_dir: Option<&'a str>,
    #[serde(borrow)]
    project_dir: Option<&'a str>,
}

#[derive(Deserialize)]
struct ExactCost {
    total_cost_usd: Option<f64>,
    total_duration_ms: Option<u64>,
    total_lines_added: Option<u64>,
    total_lines_removed: Option<u64>,
}

#[derive(Deserialize)]
struct ExactWindow {
    context_window_size: Option<u64>,
    total_input_tokens: Option<u64>,
    current_usage: Option<crate::transcript::ExactUsage>,
    used_percentage: Option<f64>,
}

impl From<Exact<'_>> for StatusPayload {
    fn from(exact: Exact<'_>) -> StatusPayload {
        let text = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        let (model, workspace, window) = (exact.model, exact.workspace, exact.context_window);
        StatusPayload {
            session_id: text(Some(exact.session_id)),
            transcript_path: text(exact.transcript_path),
            cwd: text(exact.cwd),
            model: Model { id: text(Some(model.id)), display_name: text(model.display_name) },
            workspace: Workspace {
                current_dir: text(workspace.current_dir),
                project_dir: text(workspace.project_dir),
            },
            cost: exact.cost.into(),
            context_window: ContextWindow {
                context_window_size: window.context_window_size,
                total_input_tokens: window.total_input_tokens,
                current_usage: window.current_usage.map(crate::transcript::Usage::from),
                used_percentage: window.used_percentage,
            },
            version: text(exact.version),
            effort: Effort { level: text(exact.effort.and_then(|effort| effort.level)) },
            prompt_cache: exact.prompt_cache.map(PromptCache::from).unwrap_or_default(),
            rate_limits: exact.rate_limits.map(Limits::from).unwrap_or_default(),
        }
    }
}

impl From<ExactCost> for Cost {
    fn from(exact: ExactCost) -> Cost {
        let ExactCost { total_cost_usd, total_duration_ms, total_lines_added, total_lines_removed } = exact;
        Cost { total_cost_usd, total_duration_ms, total_lines_added, total_lines_removed }
    }
}

impl From<ExactCache> for PromptCache {
    fn from(exact: ExactCache) -> PromptCache {
        let ExactCache { warm, hit_ratio, expires_at } = exact;
        PromptCache { warm, hit_ratio: hit_ratio.filter(|ratio| *ratio >= 0.0), expires_at }
    }
}

impl From<ExactLimits> for Limits {
    fn from(exact: ExactLimits) -> Limits {
        let limit = |exact: ExactLimit| Limit {
            used_percentage: exact.used_percentage.filter(|percent| *percent >= 0.0),
            resets_at: exact.resets_at,
        };
        Limits {
            five_hour: exact.five_hour.map(limit),
            seven_day: exact.seven_day.map(limit),
            spend_limit: exact.spend_limit.map(limit),
        }
    }
}

impl StatusPayload {
    /// Reads the status line's standard input; fails only where it is not one JSON object.
    pub fn parse(bytes: &[u8]) -> Result<StatusPayload, Malformed> {
        let text = std::str::from_utf8(bytes).ok();
        let exact = text.and_then(|text| serde_json::from_str::<Exact<'_>>(text).ok());
        exact.map_or_else(|| parse(bytes), |exact| Ok(exact.into()))
    }
}

impl ContextWindow {
    /// Returns the input tokens of the last response; none before the first, and none after a compaction until the next one: the
    /// client says 0 then.
    pub fn used(&self) -> Option<u64> {
        let summed = match &self.current_usage {
            Some(usage) => usage.input(),
            // The client's own sum counts where it is the one that the percentage was made of; see the field.
            None => {
                let percentage = self.used_percentage?;
                let size = self.context_window_size?;
                let is_of_last =
                    |total: &u64| percent_half_up(*total, size) == Some(percentage.round() as u64);
                let of_percentage = (size as f64 * percentage / 100.0).round() as u64;
                self.total_input_tokens.filter(is_of_last).unwrap_or(of_percentage)
            }
        };
        Some(summed).filter(|tokens| *tokens > 0)
    }

    /// Returns the output tokens of the last response; none before the first.
    pub fn output(&self) -> Option<u64> {
        self.current_usage.as_ref().map(crate::transcript::Usage::output)
    }

    /// Returns the client's percentage; none where it says 0 because nothing is known.
    pub fn percentage(&self) -> Option<f64> {
        self.used()?;
        self.used_percentage.filter(|percent| (0.0..=100.0).contains(percent))
    }
}

fn percent_half_up(tokens: u64, window: u64) -> Option<u64> {
    let doubled = tokens.checked_mul(200)?.checked_add(window)?;
    Some(doubled.checked_div(window.checked_mul(2)?)?.min(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_the_input_of_the_last_response_with_every_client() {
        for (text, used, output) in [
            // 2.1.101: the totals are those of the whole session, without the cache.
            (
                r#"{"total_input_tokens": 500, "total_output_tokens": 195, "context_window_size": 200000, "used_percentage": 82,
                    "current_usage": {"input_tokens": 130, "output_tokens": 70, "cache_creation_input_tokens": 1000,
                                      "cache_read_input_tokens": 163000}}"#,
                Some(164_130),
                Some(70),
            ),
            // The same after hours of work.
            (
                r#"{"total_input_tokens": 3000000, "context_window_size": 200000, "used_percentage": 41,
                    "current_usage": {"input_tokens": 2000, "cache_read_input_tokens": 80000}}"#,
                Some(82_000),
                Some(0),
            ),
            // Without the usage: the percentage is right, the total only where it agrees.
            (
                r#"{"total_input_tokens": 500, "context_window_size": 200000, "used_percentage": 82}"#,
                Some(164_000),
                None,
            ),
            (
                r#"{"total_input_tokens": 163900, "context_window_size": 200000, "used_percentage": 82}"#,
                Some(163_900),
                None,
            ),
            (r#"{"total_input_tokens": 500, "used_percentage": 82}"#, None, None),
            // Before the first response, and after a compaction.
            (
                r#"{"total_input_tokens": 0, "context_window_size": 200000, "current_usage": null}"#,
                None,
                None,
            ),
            (
                r#"{"total_input_tokens": 0, "context_window_size": 200000, "used_percentage": 0,
                    "current_usage": {"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0}}"#,
                None,
                Some(0),
            ),
            (
                r#"{"total_input_tokens": 9000, "context_window_size": 200000, "used_percentage": 0}"#,
                None,
                None,
            ),
        ] {
            let window: ContextWindow = serde_json::from_str(text).unwrap();
            assert_eq!((window.used(), window.output()), (used, output), "{text}");
            assert_eq!(window.percentage().is_some(), used.is_some(), "{text}");
        }
    }
}
