//! The cost of a simulation's requests at published prices.

use serde::{Deserialize, Serialize};

/// Dollars for a million tokens of input: Claude Opus 5.5,
/// <https://platform.claude.com/docs/en/about-claude/pricing>, October 2026. The client and its replay use the
/// same prices for their estimates.
pub const INPUT_PRICE: f64 = 4.0;
/// Dollars for a million tokens that are written into the five-minute cache.
pub const CACHE_WRITE_PRICE: f64 = 5.0;
/// Dollars for a million tokens that are read from the cache.
pub const CACHE_READ_PRICE: f64 = 0.20;
/// Dollars for a million tokens of output.
pub const OUTPUT_PRICE: f64 = 20.0;
/// How long the cache keeps content that is not used, in seconds.
const CACHE_SECONDS: f64 = 300.0;
/// The thinking tokens of an answer, in addition to its text and tool calls.
const THINKING_TOKENS: u64 = 400;

/// Token counts by kind, at four bytes per token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TokenCounts {
    /// Input that was written into the cache.
    #[serde(rename = "written")]
    pub cache_write: u64,
    /// Input that was read from the cache.
    #[serde(rename = "read")]
    pub cache_read: u64,
    pub output: u64,
}

impl TokenCounts {
    /// Returns all input tokens.
    pub fn input(&self) -> u64 {
        self.cache_write + self.cache_read
    }

    /// Returns the cost in dollars.
    pub fn cost_dollars(&self) -> f64 {
        let priced_counts = [
            (self.cache_write, CACHE_WRITE_PRICE),
            (self.cache_read, CACHE_READ_PRICE),
            (self.output, OUTPUT_PRICE),
        ];
        priced_counts.iter().map(|(tokens, price)| *tokens as f64 * price / 1e6).sum()
    }
}

/// The content of the cache: the system prompt with the tools, and the conversation of the last session.
#[derive(Debug, Default)]
pub(super) struct PromptCache {
    session_id: String,
    conversation_tokens: u64,
    last_used_seconds: Option<f64>,
}

impl PromptCache {
    /// Adds the tokens of a request and its answer to `counts` and returns the output tokens. The client caches
    /// every request completely.
    pub(super) fn add_request_tokens_and_get_output_tokens(
        &mut self,
        request: &AnsweredRequest<'_>,
        counts: &mut TokenCounts,
    ) -> u64 {
        let (input_tokens, system_and_tools_tokens) =
            (request.request_bytes / 4, request.system_and_tools_bytes / 4);
        let is_cache_valid = self
            .last_used_seconds
            .is_some_and(|last_seconds| request.time_seconds - last_seconds <= CACHE_SECONDS);
        let cached_tokens = match (is_cache_valid, self.session_id == request.session_id) {
            (false, _) => 0,
            (true, true) => self.conversation_tokens.min(input_tokens),
            (true, false) => system_and_tools_tokens.min(input_tokens),
        };
        let output_tokens = request.answer_bytes / 4 + THINKING_TOKENS;
        counts.cache_read += cached_tokens;
        counts.cache_write += input_tokens - cached_tokens;
        counts.output += output_tokens;
        *self = PromptCache {
            session_id: request.session_id.to_owned(),
            conversation_tokens: input_tokens,
            last_used_seconds: Some(request.time_seconds),
        };
        output_tokens
    }
}

/// A request that is answered.
#[derive(Debug)]
pub(super) struct AnsweredRequest<'a> {
    pub(super) session_id: &'a str,
    pub(super) time_seconds: f64,
    pub(super) request_bytes: u64,
    pub(super) system_and_tools_bytes: u64,
    pub(super) answer_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_lasts_five_minutes_and_a_new_session_shares_only_the_common_part() {
        let (mut cache, mut tokens) = (PromptCache::default(), TokenCounts::default());
        let mut record = |session_id, at_seconds, request_bytes| {
            cache.add_request_tokens_and_get_output_tokens(
                &AnsweredRequest {
                    session_id,
                    time_seconds: at_seconds,
                    request_bytes,
                    system_and_tools_bytes: 4_000,
                    answer_bytes: 0,
                },
                &mut tokens,
            );
            (tokens.cache_write, tokens.cache_read)
        };
        assert_eq!(record("a", 0.0, 40_000), (10_000, 0));
        assert_eq!(record("a", 60.0, 48_000), (12_000, 10_000));
        assert_eq!(record("b", 120.0, 40_000), (21_000, 11_000));
        assert_eq!(record("b", 500.0, 44_000), (32_000, 11_000));
        assert_eq!(tokens.output, 4 * THINKING_TOKENS);
        assert!((tokens.cost_dollars() - (0.16 + 0.0022 + 0.032)).abs() < 1e-9, "{}", tokens.cost_dollars());
    }
}
