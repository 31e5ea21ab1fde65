//! Answers of an API that tells a subscription how much of its quota is used.

use crate::scripted_model::Step;

/// Adds the headers about the five-hour quota to an answer. `resets_at` is in seconds since 1970.
pub fn with_quota(step: Step, status: &str, utilization: f64, resets_at: u64) -> Step {
    let reset = resets_at.to_string();
    step.header("anthropic-ratelimit-unified-status", status)
        .header("anthropic-ratelimit-unified-reset", reset.clone())
        .header("anthropic-ratelimit-unified-representative-claim", "five_hour")
        .header("anthropic-ratelimit-unified-5h-status", status)
        .header("anthropic-ratelimit-unified-5h-utilization", utilization.to_string())
        .header("anthropic-ratelimit-unified-5h-reset", reset)
}

/// Returns the answer of an API whose five-hour quota is used up until then.
pub fn usage_limit(resets_at: u64) -> Step {
    let refusal = Step::error(429, "This request would exceed your account's rate limit");
    with_quota(refusal, "rejected", 1.0, resets_at)
}
