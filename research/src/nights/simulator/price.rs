//! What a night's requests cost by a published price list.

use serde::{Deserialize, Serialize};

/// Dollars for a million tokens: Claude Opus 5.5, <https://platform.claude.com/docs/en/about-claude/pricing>, October 2026. The
/// client estimates with the same numbers (`replay::spent`).
pub const INPUT: f64 = 4.0;
/// Input that is written into the cache for five minutes.
pub const CACHE_WRITE: f64 = 5.0;
/// Input that is read from the cache.
pub const CACHE_READ: f64 = 0.20;
/// Output.
pub const OUTPUT: f64 = 20.0;
/// How long the cache keeps what nobody reads, in seconds.
const CACHED_FOR: f64 = 300.0;
/// Beside its words and calls an answer has about so many tokens of thinking.
const THINKING: u64 = 400;

/// Tokens by kind, at a token for four bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tokens {
    /// Written into the cache.
    pub written: u64,
    /// Read from it.
    pub read: u64,
    /// Answered.
    pub output: u64,
}

impl Tokens {
    /// All that was sent.
    pub fn sent(&self) -> u64 {
        self.written + self.read
    }

    /// What they cost.
    pub fn dollars(&self) -> f64 {
        let parts = [(self.written, CACHE_WRITE), (self.read, CACHE_READ), (self.output, OUTPUT)];
        parts.iter().map(|(tokens, price)| *tokens as f64 * price / 1e6).sum()
    }
}

/// What is in the cache: the system prompt with the tools, and the conversation of the last session.
#[derive(Debug, Default)]
pub(super) struct Cache {
    session: String,
    conversation: u64,
    last: Option<f64>,
}

impl Cache {
    /// Books a request of so many bytes, of which the system prompt and the tools take `common`, and its answer; the client
    /// marks everything for the cache.
    pub(super) fn book(&mut self, asked: &Asked<'_>, tokens: &mut Tokens) -> u64 {
        let (all, common) = (asked.bytes / 4, asked.common / 4);
        let is_warm = self.last.is_some_and(|last| asked.at - last <= CACHED_FOR);
        let read = match (is_warm, self.session == asked.session) {
            (false, _) => 0,
            (true, true) => self.conversation.min(all),
            (true, false) => common.min(all),
        };
        let output = asked.answered / 4 + THINKING;
        tokens.read += read;
        tokens.written += all - read;
        tokens.output += output;
        *self = Cache { session: asked.session.to_owned(), conversation: all, last: Some(asked.at) };
        output
    }
}

/// A request that is answered.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) session: &'a str,
    pub(super) at: f64,
    pub(super) bytes: u64,
    pub(super) common: u64,
    /// The bytes of the answer.
    pub(super) answered: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_read_from_the_cache_for_five_minutes_and_a_new_session_only_in_its_common_part() {
        let (mut cache, mut tokens) = (Cache::default(), Tokens::default());
        let mut book = |session, at, bytes| {
            cache.book(&Asked { session, at, bytes, common: 4_000, answered: 0 }, &mut tokens);
            (tokens.written, tokens.read)
        };
        assert_eq!(book("a", 0.0, 40_000), (10_000, 0));
        assert_eq!(book("a", 60.0, 48_000), (12_000, 10_000));
        assert_eq!(book("b", 120.0, 40_000), (21_000, 11_000));
        assert_eq!(book("b", 500.0, 44_000), (32_000, 11_000));
        assert_eq!(tokens.output, 4 * THINKING);
        assert!((tokens.dollars() - (0.16 + 0.0022 + 0.032)).abs() < 1e-9, "{}", tokens.dollars());
    }
}
