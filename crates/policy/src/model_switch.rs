//! Decides what to tell the user about a switch to another model: the context may not fit the new window, the client may
//! compact it, and the prompt cache is lost.

use crate::prices::{MIN_NOTABLE_USD, cache_write_usd_if_listed};
use plimsoll_domain::cost::CostBasis;
use plimsoll_domain::level::{AutoCompactAction, AutoCompactThreshold};
use plimsoll_domain::text::{format_tokens, to_safe_single_line, truncate_end};
use plimsoll_protocol::event::ModelSwitch;

/// No model id is as long.
const MAX_MODEL_CHARS: usize = 60;

/// Renders the message for the user about a switch to another model, as one line: the client joins lines without a
/// space. Returns `None` if the context fits and the price is small.
///
/// `window` and `auto_compact` are those of the new model; `None` if its window is unknown.
pub fn render_model_switch_warning(
    switch: &ModelSwitch,
    window: Option<(u64, AutoCompactThreshold)>,
) -> Option<String> {
    let context_tokens = switch.context_tokens.filter(|tokens| *tokens > 0)?;
    // Fast mode is a switch to the same model.
    let to_model = switch.to_model.as_ref().filter(|model| switch.from_model.as_ref() != Some(model))?;
    let to_model = to_safe_model_name(to_model);
    let size_sentence = window.and_then(|(window, auto_compact)| {
        render_size_sentence_if_too_large(context_tokens, &to_model, window, auto_compact)
    });
    // A context that does not fit is not written to the cache.
    let price = if window.is_some_and(|(window, _)| context_tokens >= window) {
        None
    } else {
        cache_write_usd_if_cache_was_warm_and_notable(switch)
    };
    let price_sentence = price.map(|usd| {
        format!(
            "{} next request costs {}, because it writes {} tokens to the cache of {to_model}.",
            if size_sentence.is_some() { "The" } else { "the" },
            CostBasis::Estimated.format_usd(usd),
            format_tokens(context_tokens)
        )
    });
    if size_sentence.is_none() && price_sentence.is_none() {
        return None;
    }
    let return_sentence = switch
        .from_model
        .as_deref()
        .map(|model| format!("Until then, /model {} goes back.", to_safe_model_name(model)));
    let sentences = [size_sentence, price_sentence, return_sentence];
    Some(format!("Plimsoll: {}", sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")))
}

fn render_size_sentence_if_too_large(
    context_tokens: u64,
    to_model: &str,
    window: u64,
    auto_compact: AutoCompactThreshold,
) -> Option<String> {
    let used = format_tokens(context_tokens);
    let threshold = format_tokens(auto_compact.tokens);
    if context_tokens >= window {
        let window_size = format_tokens(window);
        return Some(format!(
            "the context of {used} tokens does not fit the window of {to_model} ({window_size}), so the next prompt may fail."
        ));
    }
    if context_tokens < auto_compact.tokens {
        return None;
    }
    Some(match auto_compact.action {
        AutoCompactAction::Refuses => format!(
            "with {to_model} Claude Code refuses prompts from {threshold} tokens on, and the context has {used} (automatic compaction is off)."
        ),
        AutoCompactAction::Compacts | AutoCompactAction::ApiRejectsPrompt => format!(
            "with {to_model} Claude Code compacts at {threshold} tokens, and the context has {used}, so the next prompt begins with a compaction."
        ),
    })
}

/// Returns the price of writing the context to the new model's cache. An expired cache is written again with any model.
fn cache_write_usd_if_cache_was_warm_and_notable(switch: &ModelSwitch) -> Option<f64> {
    if switch.is_cache_warm == Some(false) {
        return None;
    }
    // The client's figure comes first, because only the client knows prices that an administrator has configured.
    let usd = switch.cache_write_usd.filter(|usd| *usd > 0.0).or_else(|| {
        let is_kept_for_an_hour = switch.cache_ttl.as_deref() == Some("1h");
        cache_write_usd_if_listed(switch.to_model.as_deref()?, switch.context_tokens?, is_kept_for_an_hour)
    });
    usd.filter(|usd| *usd >= MIN_NOTABLE_USD)
}

fn to_safe_model_name(model: &str) -> String {
    truncate_end(&to_safe_single_line(model), MAX_MODEL_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thresholds::{CompactionConfig, compute_auto_compact_threshold_and_action};

    fn switch_to(model: &str, tokens: u64) -> ModelSwitch {
        ModelSwitch {
            from_model: Some("claude-opus-5-5".into()),
            to_model: Some(model.into()),
            context_tokens: Some(tokens),
            is_cache_warm: Some(true),
            cache_ttl: Some("5m".into()),
            cache_write_usd: None,
        }
    }

    fn warning(switch: &ModelSwitch, window: u64, config: &CompactionConfig) -> String {
        let auto_compact =
            compute_auto_compact_threshold_and_action(window, switch.to_model.as_deref(), config);
        render_model_switch_warning(switch, Some((window, auto_compact))).unwrap_or_default()
    }

    #[test]
    fn only_a_context_that_does_not_fit_or_costs_much_is_mentioned() {
        let default_config = CompactionConfig::default();
        let without_compaction = CompactionConfig { is_auto_compact_on: false, ..default_config };
        let (small, large) = (200_000, 1_000_000);
        let rows = [
            ("claude-haiku-4-5", 30_150, small, &default_config),
            ("claude-haiku-4-5", 200_000, small, &default_config),
            ("claude-haiku-4-5", 200_001, small, &default_config),
            ("claude-haiku-4-5", 400_000, small, &default_config),
            ("claude-sonnet-4-6", 166_999, small, &default_config),
            ("claude-sonnet-4-6", 167_000, small, &default_config),
            ("claude-sonnet-4-6", 177_000, small, &without_compaction),
            ("claude-sonnet-4-6", 900_000, small, &without_compaction),
            ("claude-haiku-5-5", 900_000, large, &default_config),
            ("claude-sonnet-5-5", 199_000, large, &default_config),
            ("claude-sonnet-5-5", 201_000, large, &default_config),
            ("claude-sonnet-5-5", 970_000, large, &default_config),
            ("a-proxy-model", 900_000, large, &default_config),
            ("claude-haiku-4-5", 0, small, &default_config),
        ];
        let lines = rows.map(|(model, tokens, window, config)| {
            let warning = warning(&switch_to(model, tokens), window, config);
            format!("{tokens} to {model}: {}", if warning.is_empty() { "-" } else { &warning })
        });
        insta::assert_snapshot!(lines.join("\n"), @"
        30150 to claude-haiku-4-5: -
        200000 to claude-haiku-4-5: Plimsoll: the context of 200k tokens does not fit the window of claude-haiku-4-5 (200k), so the next prompt may fail. Until then, /model claude-opus-5-5 goes back.
        200001 to claude-haiku-4-5: Plimsoll: the context of 200k tokens does not fit the window of claude-haiku-4-5 (200k), so the next prompt may fail. Until then, /model claude-opus-5-5 goes back.
        400000 to claude-haiku-4-5: Plimsoll: the context of 400k tokens does not fit the window of claude-haiku-4-5 (200k), so the next prompt may fail. Until then, /model claude-opus-5-5 goes back.
        166999 to claude-sonnet-4-6: Plimsoll: the next request costs about $0.63, because it writes 167k tokens to the cache of claude-sonnet-4-6. Until then, /model claude-opus-5-5 goes back.
        167000 to claude-sonnet-4-6: Plimsoll: with claude-sonnet-4-6 Claude Code compacts at 167k tokens, and the context has 167k, so the next prompt begins with a compaction. The next request costs about $0.63, because it writes 167k tokens to the cache of claude-sonnet-4-6. Until then, /model claude-opus-5-5 goes back.
        177000 to claude-sonnet-4-6: Plimsoll: with claude-sonnet-4-6 Claude Code refuses prompts from 177k tokens on, and the context has 177k (automatic compaction is off). The next request costs about $0.66, because it writes 177k tokens to the cache of claude-sonnet-4-6. Until then, /model claude-opus-5-5 goes back.
        900000 to claude-sonnet-4-6: Plimsoll: the context of 900k tokens does not fit the window of claude-sonnet-4-6 (200k), so the next prompt may fail. Until then, /model claude-opus-5-5 goes back.
        900000 to claude-haiku-5-5: -
        199000 to claude-sonnet-5-5: -
        201000 to claude-sonnet-5-5: Plimsoll: the next request costs about $0.50, because it writes 201k tokens to the cache of claude-sonnet-5-5. Until then, /model claude-opus-5-5 goes back.
        970000 to claude-sonnet-5-5: Plimsoll: with claude-sonnet-5-5 Claude Code compacts at 967k tokens, and the context has 970k, so the next prompt begins with a compaction. The next request costs about $2.42, because it writes 970k tokens to the cache of claude-sonnet-5-5. Until then, /model claude-opus-5-5 goes back.
        900000 to a-proxy-model: -
        0 to claude-haiku-4-5: -
        ");
    }

    #[test]
    fn the_price_of_the_client_counts_and_an_expired_cache_costs_nothing_more() {
        let price_of = |change: fn(&mut ModelSwitch)| {
            let mut switch = switch_to("claude-sonnet-5-5", 201_000);
            change(&mut switch);
            let warning = render_model_switch_warning(&switch, None).unwrap_or_default();
            warning.split_once("costs about ").map(|(_, price)| price[..5].to_owned())
        };
        let price = |usd: &str| Some(usd.to_owned());
        assert_eq!(price_of(|_| ()), price("$0.50"));
        assert_eq!(price_of(|switch| switch.cache_ttl = Some("1h".into())), price("$0.80"));
        assert_eq!(price_of(|switch| switch.cache_ttl = None), price("$0.50"));
        assert_eq!(price_of(|switch| switch.cache_write_usd = Some(1.25)), price("$1.25"));
        assert_eq!(price_of(|switch| switch.cache_write_usd = Some(0.49)), None);
        assert_eq!(price_of(|switch| switch.cache_write_usd = Some(0.0)), price("$0.50"));
        assert_eq!(price_of(|switch| switch.is_cache_warm = None), price("$0.50"));
        assert_eq!(price_of(|switch| switch.is_cache_warm = Some(false)), None);
        assert_eq!(price_of(|switch| switch.context_tokens = None), None);
        assert_eq!(price_of(|switch| switch.to_model = None), None);
        assert_eq!(price_of(|switch| switch.from_model.clone_from(&switch.to_model)), None);
        // The client computed $0.0377 for this switch (tests/fixtures/hooks/pre_model_switch.json).
        assert_eq!(
            cache_write_usd_if_listed("claude-haiku-4-5", 30_150, false).map(|usd| format!("{usd:.4}")),
            price("0.0377")
        );
        assert_eq!(cache_write_usd_if_listed("a-proxy-model", 30_150, false), None);
    }

    #[test]
    fn model_names_cannot_control_the_terminal() {
        let mut switch = switch_to("claude-haiku-4-5\n\u{1b}[31m", 400_000);
        switch.from_model = Some("x".repeat(500));
        let warning = warning(&switch, 200_000, &CompactionConfig::default());
        assert!(!warning.contains(['\n', '\u{1b}']) && warning.len() < 300, "{warning}");
    }
}
