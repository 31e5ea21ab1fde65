//! Tokens and what they cost.

use serde_json::{Value, json};

/// What a session has used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_creation: u64,
}

impl Spent {
    pub(super) fn add(&mut self, usage: &Value) {
        let number = |name: &str| usage[name].as_u64().unwrap_or(0);
        self.input += number("input_tokens");
        self.output += number("output_tokens");
        self.cache_read += number("cache_read_input_tokens");
        self.cache_creation += number("cache_creation_input_tokens");
    }

    /// In dollars, at the prices that the client was seen to estimate with: 4, 20, 0.20 and 5 a million.
    pub(super) fn dollars(&self) -> f64 {
        let parts =
            [(self.input, 4.0), (self.output, 20.0), (self.cache_read, 0.2), (self.cache_creation, 5.0)];
        #[expect(clippy::cast_precision_loss, reason = "tokens of a test")]
        parts.iter().map(|(tokens, price)| *tokens as f64 * price / 1e6).sum()
    }

    /// The four numbers of a result's `usage`.
    pub(super) fn fill(&self, usage: &mut Value) {
        usage["input_tokens"] = self.input.into();
        usage["output_tokens"] = self.output.into();
        usage["cache_read_input_tokens"] = self.cache_read.into();
        usage["cache_creation_input_tokens"] = self.cache_creation.into();
    }

    /// The same as one model's entry of `modelUsage`; nothing if nothing was used.
    pub(super) fn by_model(&self, model: &str) -> Value {
        if self.input + self.output == 0 {
            return json!({});
        }
        json!({ model: {
            "inputTokens": self.input, "outputTokens": self.output,
            "cacheReadInputTokens": self.cache_read, "cacheCreationInputTokens": self.cache_creation,
            "webSearchRequests": 0, "costUSD": self.dollars(), "contextWindow": 1_000_000, "maxOutputTokens": 128_000,
            "thinkingTokens": 0, "cacheCreationEphemeral5mInputTokens": 0, "cacheCreationEphemeral1hInputTokens": 0,
            "canonicalModel": model, "provider": "firstParty", "costBasis": "list",
        } })
    }
}
