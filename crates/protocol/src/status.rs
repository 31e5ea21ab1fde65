//! Status line payloads: the JSON that the client passes to a status line command on standard input.

use crate::lenient;
use crate::{MalformedJson, parse_json_object};
use serde::Deserialize;

/// One invocation of the status line.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct StatusPayload {
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub session_id: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub transcript_path: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub cwd: Option<String>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub model: StatusModel,
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub workspace: Workspace,
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub cost: StatusCost,
    /// Usage of the context window, in the client's own numbers.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub context_window: ContextWindow,
    /// The client's version.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub version: Option<String>,
    /// The reasoning effort; some models have none.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub effort: ReasoningEffort,
    /// The prompt cache; present after the first response.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub prompt_cache: PromptCache,
    /// The limits of a subscription; present after the first response.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub rate_limits: SubscriptionLimits,
}

/// The reasoning effort of the model.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ReasoningEffort {
    /// `low`, `medium`, `high`, …
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub level: Option<String>,
}

/// The prompt cache of a session.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PromptCache {
    /// True if the next request will hit the cache.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub warm: Option<bool>,
    /// The fraction of tokens that were read from the cache, 0 to 1.
    #[serde(deserialize_with = "lenient::non_negative_number")]
    pub hit_ratio: Option<f64>,
    /// Seconds since 1970.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub expires_at: Option<u64>,
}

/// The limits of a subscription.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SubscriptionLimits {
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub five_hour: Option<SubscriptionLimit>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub seven_day: Option<SubscriptionLimit>,
    /// The spending limit that a gateway sets for the user.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub spend_limit: Option<SubscriptionLimit>,
}

/// One limit of a subscription.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SubscriptionLimit {
    #[serde(deserialize_with = "lenient::non_negative_number")]
    pub used_percentage: Option<f64>,
    /// When it resets, in seconds since 1970.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub resets_at: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct StatusModel {
    /// The id with the `[1m]` suffix.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub id: Option<String>,
    /// The name that the user sees.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub display_name: Option<String>,
}

/// The directories of a session.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Workspace {
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub current_dir: Option<String>,
    /// The directory the client was started in.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub project_dir: Option<String>,
}

/// The cost of a session and the size of its edits.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct StatusCost {
    /// In US dollars, as reported by the client.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub total_cost_usd: Option<f64>,
    /// How long the session has been open, in milliseconds.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub total_duration_ms: Option<u64>,
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub total_lines_added: Option<u64>,
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub total_lines_removed: Option<u64>,
}

/// Usage of the context window, in the client's own numbers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ContextWindow {
    /// The size of the window in tokens.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub context_window_size: Option<u64>,
    /// Input, cache writes and cache reads of the last response; 0 before the first one. Before 2.1.132 it was the
    /// uncached input of all responses together.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub total_input_tokens: Option<u64>,
    /// Usage of the last response; `None` before the first one.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub current_usage: Option<crate::transcript::Usage>,
    /// Whole percent, rounded half up, at most 100; `None` before the first response.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub used_percentage: Option<f64>,
}

/// A payload exactly as the client writes it, parsed in one pass with borrowed texts. Any other payload is parsed
/// field by field.
#[derive(Deserialize)]
struct ExactPayload<'a> {
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
    context_window: ExactContextWindow,
    #[serde(borrow)]
    version: Option<&'a str>,
    #[serde(borrow)]
    effort: Option<ExactEffort<'a>>,
    prompt_cache: Option<ExactPromptCache>,
    rate_limits: Option<ExactLimits>,
}

#[derive(Deserialize)]
struct ExactEffort<'a> {
    #[serde(borrow)]
    level: Option<&'a str>,
}

#[derive(Deserialize)]
struct ExactPromptCache {
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
struct ExactContextWindow {
    context_window_size: Option<u64>,
    total_input_tokens: Option<u64>,
    current_usage: Option<crate::transcript::ExactUsage>,
    used_percentage: Option<f64>,
}

impl From<ExactPayload<'_>> for StatusPayload {
    fn from(payload: ExactPayload<'_>) -> StatusPayload {
        let non_empty_text = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        let (model, workspace, window) = (payload.model, payload.workspace, payload.context_window);
        StatusPayload {
            session_id: non_empty_text(Some(payload.session_id)),
            transcript_path: non_empty_text(payload.transcript_path),
            cwd: non_empty_text(payload.cwd),
            model: StatusModel {
                id: non_empty_text(Some(model.id)),
                display_name: non_empty_text(model.display_name),
            },
            workspace: Workspace {
                current_dir: non_empty_text(workspace.current_dir),
                project_dir: non_empty_text(workspace.project_dir),
            },
            cost: payload.cost.into(),
            context_window: ContextWindow {
                context_window_size: window.context_window_size,
                total_input_tokens: window.total_input_tokens,
                current_usage: window.current_usage.map(crate::transcript::Usage::from),
                used_percentage: window.used_percentage,
            },
            version: non_empty_text(payload.version),
            effort: ReasoningEffort { level: non_empty_text(payload.effort.and_then(|effort| effort.level)) },
            prompt_cache: payload.prompt_cache.map(PromptCache::from).unwrap_or_default(),
            rate_limits: payload.rate_limits.map(SubscriptionLimits::from).unwrap_or_default(),
        }
    }
}

impl From<ExactCost> for StatusCost {
    fn from(cost: ExactCost) -> StatusCost {
        let ExactCost { total_cost_usd, total_duration_ms, total_lines_added, total_lines_removed } = cost;
        StatusCost { total_cost_usd, total_duration_ms, total_lines_added, total_lines_removed }
    }
}

impl From<ExactPromptCache> for PromptCache {
    fn from(cache: ExactPromptCache) -> PromptCache {
        let ExactPromptCache { warm, hit_ratio, expires_at } = cache;
        PromptCache { warm, hit_ratio: hit_ratio.filter(|ratio| *ratio >= 0.0), expires_at }
    }
}

impl From<ExactLimits> for SubscriptionLimits {
    fn from(limits: ExactLimits) -> SubscriptionLimits {
        let convert_limit = |limit: ExactLimit| SubscriptionLimit {
            used_percentage: limit.used_percentage.filter(|percent| *percent >= 0.0),
            resets_at: limit.resets_at,
        };
        SubscriptionLimits {
            five_hour: limits.five_hour.map(convert_limit),
            seven_day: limits.seven_day.map(convert_limit),
            spend_limit: limits.spend_limit.map(convert_limit),
        }
    }
}

impl StatusPayload {
    /// Parses the status line's standard input. Fails only if it is not one JSON object.
    pub fn parse(bytes: &[u8]) -> Result<StatusPayload, MalformedJson> {
        let text = std::str::from_utf8(bytes).ok();
        let payload = text.and_then(|text| serde_json::from_str::<ExactPayload<'_>>(text).ok());
        payload.map_or_else(|| parse_json_object(bytes), |payload| Ok(payload.into()))
    }
}

impl ContextWindow {
    /// Returns the input tokens of the last response. If the client reports no usage, returns its total or an estimate
    /// from the percentage. Returns `None` before the first response and between a compaction and the next response,
    /// because the client reports 0 then.
    pub fn reported_or_estimated_used_tokens(&self) -> Option<u64> {
        let tokens_used = match &self.current_usage {
            Some(usage) => usage.total_input_tokens(),
            // The client's own total counts only if it yields the percentage; see `total_input_tokens`.
            None => {
                let percentage = self.used_percentage?;
                let size = self.context_window_size?;
                let matches_percentage =
                    |total: &u64| rounded_percent(*total, size) == Some(percentage.round() as u64);
                let estimated_tokens = (size as f64 * percentage / 100.0).round() as u64;
                self.total_input_tokens.filter(matches_percentage).unwrap_or(estimated_tokens)
            }
        };
        Some(tokens_used).filter(|tokens| *tokens > 0)
    }

    /// Returns the output tokens of the last response; `None` before the first one.
    pub fn output_tokens(&self) -> Option<u64> {
        self.current_usage.as_ref().map(crate::transcript::Usage::output_tokens_or_zero)
    }

    /// Returns the client's percentage. Returns `None` if the usage is unknown, or if it is not between 0 and 100.
    pub fn valid_used_percentage(&self) -> Option<f64> {
        self.reported_or_estimated_used_tokens()?;
        self.used_percentage.filter(|percent| (0.0..=100.0).contains(percent))
    }
}

fn rounded_percent(tokens: u64, window: u64) -> Option<u64> {
    let rounding_numerator = tokens.checked_mul(200)?.checked_add(window)?;
    Some(rounding_numerator.checked_div(window.checked_mul(2)?)?.min(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_version_yields_the_input_of_the_last_response() {
        for (text, used, output) in [
            // 2.1.101: the totals cover the whole session, without the cache.
            (
                r#"{"total_input_tokens": 500, "total_output_tokens": 195, "context_window_size": 200000, "used_percentage": 82,
                    "current_usage": {"input_tokens": 130, "output_tokens": 70, "cache_creation_input_tokens": 1000,
                                      "cache_read_input_tokens": 163000}}"#,
                Some(164_130),
                Some(70),
            ),
            // 2.1.101 after hours of work.
            (
                r#"{"total_input_tokens": 3000000, "context_window_size": 200000, "used_percentage": 41,
                    "current_usage": {"input_tokens": 2000, "cache_read_input_tokens": 80000}}"#,
                Some(82_000),
                Some(0),
            ),
            // Without the usage: the percentage is correct, the total only if it agrees with it.
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
            assert_eq!(
                (window.reported_or_estimated_used_tokens(), window.output_tokens()),
                (used, output),
                "{text}"
            );
            assert_eq!(window.valid_used_percentage().is_some(), used.is_some(), "{text}");
        }
    }
}
