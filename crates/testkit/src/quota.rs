//! Model responses with the headers that report how much of a subscription's quota is used.

use crate::scripted_model::Step;

/// Adds the headers of the five-hour quota to a response. `resets_at` is in seconds since 1970.
pub fn with_five_hour_quota_headers(step: Step, status: &str, utilization: f64, resets_at: u64) -> Step {
    let reset_text = resets_at.to_string();
    step.with_header("anthropic-ratelimit-unified-status", status)
        .with_header("anthropic-ratelimit-unified-reset", reset_text.clone())
        .with_header("anthropic-ratelimit-unified-representative-claim", "five_hour")
        .with_header("anthropic-ratelimit-unified-5h-status", status)
        .with_header("anthropic-ratelimit-unified-5h-utilization", utilization.to_string())
        .with_header("anthropic-ratelimit-unified-5h-reset", reset_text)
}

/// Returns an error 429 for an account that has used up its five-hour quota. The quota resets at `resets_at` (seconds
/// since 1970).
pub fn usage_limit_error(resets_at: u64) -> Step {
    let error = Step::api_error(429, "This request would exceed your account's rate limit");
    with_five_hour_quota_headers(error, "rejected", 1.0, resets_at)
}
