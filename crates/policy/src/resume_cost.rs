//! Compares the cost of the first request of a resumed session whose prompt cache has expired with that of a fresh session
//! that continues from a handoff.

use crate::prices::MIN_NOTABLE_USD;
use plimsoll_domain::cost::CostBasis;
use plimsoll_domain::text::{format_tokens, to_safe_single_line};
use plimsoll_protocol::event::ResumedContext;

/// A fresh session must cost less than this share of resuming. It also has to read again what it needs of the old
/// conversation, so a smaller difference may be none.
const MAX_FRESH_SHARE: f64 = 0.5;

/// The costs of the first request, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResumeCost {
    /// The resumed session's cost: its whole context is written to the cache again.
    pub resumed_usd: f64,
    /// The cost of a fresh session with a handoff.
    pub fresh_usd: f64,
    /// The tokens of the resumed session.
    pub context_tokens: u64,
}

impl ResumeCost {
    /// Compares the costs by the price per token that the client reports, which is the model's. Returns `None` if the
    /// cache is intact, a figure is missing, or a fresh session saves little.
    pub fn compare_if_cache_expired_and_notable(
        resumed: &ResumedContext,
        fresh_session_tokens: u64,
    ) -> Option<ResumeCost> {
        let context_tokens = resumed.context_tokens.filter(|tokens| *tokens > 0)?;
        let resumed_usd = resumed.cache_write_usd.filter(|usd| *usd >= MIN_NOTABLE_USD)?;
        let fresh_usd = resumed_usd / context_tokens as f64 * fresh_session_tokens as f64;
        let is_clearly_cheaper = fresh_usd <= resumed_usd * MAX_FRESH_SHARE;
        (resumed.is_cache_likely_expired && is_clearly_cheaper).then_some(ResumeCost {
            resumed_usd,
            fresh_usd,
            context_tokens,
        })
    }

    /// Renders the message for the user. `continue_command` continues from the handoff.
    pub fn render_for_user(&self, continue_command: &str) -> String {
        format!(
            "Plimsoll: the prompt cache of this session has expired. The next request costs {} to write {} tokens again. A fresh session with the handoff costs {}: /clear, then: {}",
            CostBasis::Estimated.format_usd(self.resumed_usd),
            format_tokens(self.context_tokens),
            CostBasis::Estimated.format_usd(self.fresh_usd),
            to_safe_single_line(continue_command)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_expensive_resumption_is_mentioned() {
        let resumed = |context_tokens, is_cache_likely_expired, cache_write_usd| ResumedContext {
            context_tokens,
            is_cache_likely_expired,
            cache_write_usd,
        };
        let compare = |resumed: ResumedContext, fresh_session_tokens| {
            ResumeCost::compare_if_cache_expired_and_notable(&resumed, fresh_session_tokens)
                .map(|cost| format!("{:.2} {:.2}", cost.resumed_usd, cost.fresh_usd))
        };
        let usd = |text: &str| Some(text.to_owned());
        for (context, fresh_session_tokens, expected) in [
            (resumed(Some(210_000), true, Some(1.05)), 21_000, usd("1.05 0.11")),
            (resumed(Some(210_000), true, Some(1.05)), 105_000, usd("1.05 0.53")),
            (resumed(Some(210_000), true, Some(1.05)), 105_001, None),
            (resumed(Some(210_000), false, Some(1.05)), 21_000, None),
            (resumed(Some(210_000), true, Some(0.49)), 21_000, None),
            (resumed(Some(210_000), true, Some(0.5)), 0, usd("0.50 0.00")),
            (resumed(Some(0), true, Some(1.05)), 21_000, None),
            (resumed(None, true, Some(1.05)), 21_000, None),
            (resumed(Some(210_000), true, None), 21_000, None),
            (resumed(Some(1), true, Some(1.05)), u64::MAX, None),
            (ResumedContext::default(), 0, None),
        ] {
            assert_eq!(
                compare(context, fresh_session_tokens),
                expected,
                "{context:?} {fresh_session_tokens}"
            );
        }
    }

    #[test]
    fn the_message_is_one_line_with_the_steps() {
        let cost = ResumeCost { resumed_usd: 1.05, fresh_usd: 0.105, context_tokens: 210_000 };
        insta::assert_snapshot!(cost.render_for_user("/handoff continue"), @"Plimsoll: the prompt cache of this session has expired. The next request costs about $1.05 to write 210k tokens again. A fresh session with the handoff costs about $0.10: /clear, then: /handoff continue");
        assert!(!cost.render_for_user("a\n\u{1b}[31mb").contains(['\n', '\u{1b}']));
    }
}
