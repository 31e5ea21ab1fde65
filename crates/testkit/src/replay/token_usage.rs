//! Token usage and its cost.

use serde_json::{Value, json};

/// The tokens used by a session.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TokenUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: u64,
    cache_creation_tokens: u64,
}

impl TokenUsage {
    pub(super) fn add_usage(&mut self, usage: &Value) {
        let token_count = |name: &str| usage[name].as_u64().unwrap_or(0);
        self.input_tokens += token_count("input_tokens");
        self.output_tokens += token_count("output_tokens");
        self.cache_read_tokens += token_count("cache_read_input_tokens");
        self.cache_creation_tokens += token_count("cache_creation_input_tokens");
    }

    /// Returns the cost in dollars at the client's estimated prices: 4, 20, 0.20 and 5 per million tokens.
    pub(super) fn cost_usd(&self) -> f64 {
        let tokens_and_prices = [
            (self.input_tokens, 4.0),
            (self.output_tokens, 20.0),
            (self.cache_read_tokens, 0.2),
            (self.cache_creation_tokens, 5.0),
        ];
        #[expect(clippy::cast_precision_loss, reason = "tokens of a test")]
        tokens_and_prices.iter().map(|(tokens, price)| *tokens as f64 * price / 1e6).sum()
    }

    /// Writes the four token counts into the `usage` of a result.
    pub(super) fn write_token_counts_into(&self, usage: &mut Value) {
        usage["input_tokens"] = self.input_tokens.into();
        usage["output_tokens"] = self.output_tokens.into();
        usage["cache_read_input_tokens"] = self.cache_read_tokens.into();
        usage["cache_creation_input_tokens"] = self.cache_creation_tokens.into();
    }

    /// Returns `modelUsage` with an entry for this model, or an empty object if no tokens were used.
    pub(super) fn model_usage_or_empty_object(&self, model: &str) -> Value {
        if self.input_tokens + self.output_tokens == 0 {
            return json!({});
        }
        json!({ model: {
            "inputTokens": self.input_tokens, "outputTokens": self.output_tokens,
            "cacheReadInputTokens": self.cache_read_tokens, "cacheCreationInputTokens": self.cache_creation_tokens,
            "webSearchRequests": 0, "costUSD": self.cost_usd(), "contextWindow": 1_000_000, "maxOutputTokens": 128_000,
            "thinkingTokens": 0, "cacheCreationEphemeral5mInputTokens": 0, "cacheCreationEphemeral1hInputTokens": 0,
            "canonicalModel": model, "provider": "firstParty", "costBasis": "list",
        } })
    }
}
