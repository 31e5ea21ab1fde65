//! The price table for tokens. It is used for sessions that ended without a cost report from the client.
//!
//! Claude Code 2.1.329 computed `total_cost_usd` with these prices on 2026-11-27. The table was measured by sending usage
//! to the client, one kind of token at a time. `tests/tests/client/price_table.rs` repeats that for every model here.
//! Neither the size of the context nor the service tier changed a price.

use crate::window::model_name_without_prefix_date_and_suffix;
use plimsoll_domain::cost::{Cost, CostBasis};
use plimsoll_protocol::billing::BilledUsage;
use plimsoll_protocol::result::ModelUsage;

/// List prices of a model in US dollars, per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelPrice {
    /// The model, as [`model_name_without_prefix_date_and_suffix`] spells it.
    pub model: &'static str,
    /// Input that is not cached. Cache writes cost a multiple of this.
    pub input: f64,
    pub output: f64,
    /// Input that is read from the cache.
    pub cache_read: f64,
    /// Factor for all tokens of a response with `speed: fast`.
    pub fast_factor: f64,
}

/// Creates a row of the table.
const fn new_price(
    model: &'static str,
    input: f64,
    output: f64,
    cache_read: f64,
    fast_factor: f64,
) -> ModelPrice {
    ModelPrice { model, input, output, cache_read, fast_factor }
}

/// The price table, with one row for each known model.
pub const PRICE_TABLE: [ModelPrice; 23] = [
    new_price("fable-5-2", 8.0, 40.0, 0.2, 2.0),
    new_price("fable-5-1", 10.0, 50.0, 0.25, 1.0),
    new_price("fable-5", 10.0, 50.0, 1.0, 1.0),
    new_price("mythos-5-1", 10.0, 50.0, 0.25, 1.0),
    new_price("mythos-5", 10.0, 50.0, 1.0, 1.0),
    new_price("opus-5-5", 4.0, 20.0, 0.2, 2.0),
    new_price("opus-5", 5.0, 25.0, 0.5, 2.0),
    new_price("opus-4-8", 5.0, 25.0, 0.5, 2.0),
    new_price("opus-4-7", 5.0, 25.0, 0.5, 6.0),
    new_price("opus-4-6", 5.0, 25.0, 0.5, 6.0),
    new_price("opus-4-5", 5.0, 25.0, 0.5, 1.0),
    new_price("opus-4-1", 15.0, 75.0, 1.5, 1.0),
    new_price("opus-4", 15.0, 75.0, 1.5, 1.0),
    new_price("sonnet-5-5", 2.0, 10.0, 0.1, 1.0),
    new_price("sonnet-5", 2.0, 10.0, 0.2, 1.0),
    new_price("sonnet-4-6", 3.0, 15.0, 0.3, 1.0),
    new_price("sonnet-4-5", 3.0, 15.0, 0.3, 1.0),
    new_price("sonnet-4", 3.0, 15.0, 0.3, 1.0),
    new_price("3-7-sonnet", 3.0, 15.0, 0.3, 1.0),
    new_price("3-5-sonnet", 3.0, 15.0, 0.3, 1.0),
    new_price("haiku-5-5", 0.1, 0.5, 0.01, 1.0),
    new_price("haiku-4-5", 1.0, 5.0, 0.1, 1.0),
    new_price("3-5-haiku", 0.8, 4.0, 0.08, 1.0),
];

/// Price of a cache write that is kept for five minutes, relative to input. It is the same for every model.
const CACHE_WRITE_5M_FACTOR: f64 = 1.25;
/// Price of a cache write that is kept for an hour, relative to input.
const CACHE_WRITE_1H_FACTOR: f64 = 2.0;
/// Price factor for a response that had to be computed in the United States (`inference_geo: us`).
const US_FACTOR: f64 = 1.1;
/// US dollars for one web search, independent of model, speed and region.
const WEB_SEARCH_USD: f64 = 0.01;
const MILLION: f64 = 1_000_000.0;

/// The tokens and web searches that a response is billed for, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BilledTokens {
    /// Input tokens that were not cached.
    pub input: u64,
    pub output: u64,
    /// Input tokens that were read from the cache.
    pub cache_read: u64,
    /// Input tokens that were written to the cache for five minutes.
    pub cache_write_5m: u64,
    /// Input tokens that were written to the cache for an hour.
    pub cache_write_1h: u64,
    pub web_searches: u64,
}

impl BilledTokens {
    /// Splits the usage of a response by kind as the client does. Cache writes without a duration count as five minutes.
    pub fn from_usage(usage: &BilledUsage) -> BilledTokens {
        let cache_writes_by_duration = &usage.cache_creation;
        let cache_write_5m = cache_writes_by_duration.ephemeral_5m_input_tokens.unwrap_or(0);
        let cache_write_1h = cache_writes_by_duration.ephemeral_1h_input_tokens.unwrap_or(0);
        let cache_writes = usage
            .cache_creation_input_tokens
            .filter(|tokens| *tokens > 0)
            .unwrap_or(cache_write_5m.saturating_add(cache_write_1h));
        BilledTokens::from_model_usage(&ModelUsage {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_read_input_tokens: usage.cache_read_input_tokens,
            cache_creation_input_tokens: Some(cache_writes),
            cache_creation_1h: Some(cache_write_1h),
            web_search_requests: usage.server_tool_use.web_search_requests,
            ..ModelUsage::default()
        })
    }

    /// Splits the client's totals for a model by kind.
    pub(crate) fn from_model_usage(usage: &ModelUsage) -> BilledTokens {
        let cache_writes = usage.cache_creation_input_tokens.unwrap_or(0);
        let cache_write_1h = usage.cache_creation_1h.unwrap_or(0).min(cache_writes);
        BilledTokens {
            input: usage.input_tokens.unwrap_or(0),
            output: usage.output_tokens.unwrap_or(0),
            cache_read: usage.cache_read_input_tokens.unwrap_or(0),
            cache_write_5m: cache_writes - cache_write_1h,
            cache_write_1h,
            web_searches: usage.web_search_requests.unwrap_or(0),
        }
    }

    /// Returns the sum of the tokens of all kinds.
    pub fn total_tokens(self) -> u64 {
        [self.input, self.output, self.cache_read, self.cache_write_5m, self.cache_write_1h]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// Returns the sum of the input tokens, cached or not.
    pub fn total_input(self) -> u64 {
        BilledTokens { output: 0, ..self }.total_tokens()
    }

    /// Adds the tokens and web searches of another response.
    pub fn add(&mut self, other: BilledTokens) {
        let BilledTokens { input, output, cache_read, cache_write_5m, cache_write_1h, web_searches } = self;
        for (total, addend) in [
            (input, other.input),
            (output, other.output),
            (cache_read, other.cache_read),
            (cache_write_5m, other.cache_write_5m),
            (cache_write_1h, other.cache_write_1h),
            (web_searches, other.web_searches),
        ] {
            *total = total.saturating_add(addend);
        }
    }
}

/// The properties of a response that determine its price, besides its tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tariff {
    /// The model, as [`model_name_without_prefix_date_and_suffix`] spells it; empty if unknown.
    pub model: String,
    /// True for `speed: fast`.
    pub is_fast: bool,
    /// True for `inference_geo: us`.
    pub is_us_inference: bool,
}

impl Tariff {
    /// Creates the tariff of a response by this model.
    pub fn new(model: Option<&str>, usage: &BilledUsage) -> Tariff {
        let (model, is_fast, is_us_inference) = model_is_fast_is_us_inference(model, usage);
        Tariff { model: model.to_owned(), is_fast, is_us_inference }
    }

    /// Returns true if this is the tariff of a response by this model.
    pub fn applies_to(&self, model: Option<&str>, usage: &BilledUsage) -> bool {
        (self.model.as_str(), self.is_fast, self.is_us_inference)
            == model_is_fast_is_us_inference(model, usage)
    }

    /// Returns the model's name for display: `opus-5-5`, `opus-5-5 fast`, or `unknown`.
    pub fn display_name(&self) -> String {
        let model = if self.model.is_empty() { "unknown" } else { &self.model };
        if self.is_fast { format!("{model} fast") } else { model.to_owned() }
    }

    /// Returns true if the price table contains the model.
    pub fn has_listed_price(&self) -> bool {
        find_listed_price(&self.model).is_some()
    }

    /// Returns the estimated cost of the tokens, which is an upper bound for a model that is not in the table.
    pub fn list_cost(&self, tokens: BilledTokens) -> Cost {
        let basis = if self.has_listed_price() { CostBasis::Estimated } else { CostBasis::AtMost };
        Cost { usd: self.price_usd_or_highest_if_unlisted(tokens), basis }
    }

    /// Computes the price in US dollars. For a model that is not in the table, the highest price of the table
    /// applies to each kind of token, so that no limit is exceeded unnoticed.
    pub fn price_usd_or_highest_if_unlisted(&self, tokens: BilledTokens) -> f64 {
        let listed_price = find_listed_price(&self.model);
        let prices = listed_price.map_or(&PRICE_TABLE[..], std::slice::from_ref);
        // The factor is applied to each model: the most expensive model in fast mode is not the most expensive one
        // otherwise.
        let highest_price = |price_of_kind: fn(&ModelPrice) -> f64| {
            let price_in_row =
                |row: &ModelPrice| price_of_kind(row) * if self.is_fast { row.fast_factor } else { 1.0 };
            prices.iter().map(price_in_row).fold(0.0, f64::max)
        };
        let input_price = highest_price(|row| row.input);
        let usd = tokens.input as f64 * input_price
            + tokens.output as f64 * highest_price(|row| row.output)
            + tokens.cache_read as f64 * highest_price(|row| row.cache_read)
            + tokens.cache_write_5m as f64 * input_price * CACHE_WRITE_5M_FACTOR
            + tokens.cache_write_1h as f64 * input_price * CACHE_WRITE_1H_FACTOR;
        let factor = if self.is_us_inference { US_FACTOR } else { 1.0 };
        usd * factor / MILLION + tokens.web_searches as f64 * WEB_SEARCH_USD
    }
}

/// Returns the fields of the tariff of a response by this model.
fn model_is_fast_is_us_inference<'a>(model: Option<&'a str>, usage: &BilledUsage) -> (&'a str, bool, bool) {
    (
        model.map(model_name_without_prefix_date_and_suffix).unwrap_or_default(),
        usage.speed.as_deref() == Some("fast"),
        usage.inference_geo.as_deref() == Some("us"),
    )
}

/// A one-off cost below this many US dollars is not worth a line. A turn of ten requests at half a window of a million
/// tokens costs about as much with an intact cache, so a user of such a context pays it every few minutes anyway.
pub const MIN_NOTABLE_USD: f64 = 0.5;

/// Returns the price in US dollars of writing tokens to a model's prompt cache; `None` if the table lacks the model.
pub fn cache_write_usd_if_listed(model: &str, tokens: u64, is_kept_for_an_hour: bool) -> Option<f64> {
    let tariff = Tariff::new(Some(model), &BilledUsage::default());
    let tokens = match is_kept_for_an_hour {
        true => BilledTokens { cache_write_1h: tokens, ..BilledTokens::default() },
        false => BilledTokens { cache_write_5m: tokens, ..BilledTokens::default() },
    };
    tariff.has_listed_price().then(|| tariff.price_usd_or_highest_if_unlisted(tokens))
}

/// Finds a model's row. `sonnet-4-0` and `sonnet-4` are names of the same model.
fn find_listed_price(family: &str) -> Option<&'static ModelPrice> {
    let name = family.strip_suffix("-0").unwrap_or(family);
    PRICE_TABLE.iter().find(|row| row.model == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn price_usd(model: Option<&str>, usage: &Value) -> f64 {
        let usage = BilledUsage::from_value(usage);
        Tariff::new(model, &usage).price_usd_or_highest_if_unlisted(BilledTokens::from_usage(&usage))
    }

    #[test]
    fn each_kind_of_token_has_the_price_of_its_model() {
        let cache = |total: u64, five_minutes: u64, hour: u64| {
            json!({"cache_creation_input_tokens": total, "cache_creation":
                {"ephemeral_5m_input_tokens": five_minutes, "ephemeral_1h_input_tokens": hour}})
        };
        let million = 1_000_000;
        for (usage, expected) in [
            (json!({"input_tokens": million}), 4.0),
            (json!({"output_tokens": million}), 20.0),
            (json!({"cache_read_input_tokens": million}), 0.2),
            (json!({"cache_creation_input_tokens": million}), 5.0),
            (cache(million, million, 0), 5.0),
            (cache(million, 0, million), 8.0),
            (cache(million, 0, million / 2), 6.5),
            // The total is missing, or smaller than its parts.
            (cache(0, million, million), 13.0),
            (cache(million, million, million), 8.0),
            (json!({"server_tool_use": {"web_search_requests": 3}}), 0.03),
            (json!({"input_tokens": million, "speed": "fast"}), 8.0),
            (json!({"input_tokens": million, "inference_geo": "us"}), 4.4),
            (json!({"input_tokens": million, "speed": "fast", "inference_geo": "us"}), 8.8),
            (
                json!({"server_tool_use": {"web_search_requests": 3}, "speed": "fast", "inference_geo": "us"}),
                0.03,
            ),
            (
                json!({"input_tokens": million, "speed": "turbo", "inference_geo": "eu", "service_tier": "batch"}),
                4.0,
            ),
            (json!({}), 0.0),
        ] {
            let usd = price_usd(Some("claude-opus-5-5"), &usage);
            assert!((usd - expected).abs() < 1e-9, "{usage}: {usd}");
        }
    }

    #[test]
    fn a_model_is_found_under_each_of_its_names() {
        let usage = json!({"input_tokens": 1_000_000});
        for (model, expected) in [
            ("claude-sonnet-4-5", 3.0),
            ("claude-sonnet-4-5-20250929", 3.0),
            ("claude-sonnet-4-5[1m]", 3.0),
            ("claude-sonnet-4-5@20250929", 3.0),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 3.0),
            ("claude-3-5-haiku-latest", 0.8),
            ("us.anthropic.claude-opus-4-1-20250805-v1:0", 15.0),
            ("claude-opus-4-20250514", 15.0),
            ("claude-sonnet-4-0", 3.0),
            ("claude-fable-5-2", 8.0),
        ] {
            assert!(Tariff::new(Some(model), &BilledUsage::default()).has_listed_price(), "{model}");
            let usd = price_usd(Some(model), &usage);
            assert!((usd - expected).abs() < 1e-9, "{model}: {usd}");
        }
    }

    #[test]
    fn an_unknown_model_has_the_highest_price_for_each_kind() {
        for model in [None, Some("zork"), Some("claude-opus-9"), Some("")] {
            assert!(!Tariff::new(model, &BilledUsage::default()).has_listed_price());
            for (usage, expected) in [
                (json!({"input_tokens": 1_000_000}), 15.0),
                (json!({"output_tokens": 1_000_000}), 75.0),
                (json!({"cache_read_input_tokens": 1_000_000}), 1.5),
                (json!({"cache_creation_input_tokens": 1_000_000}), 18.75),
                // Opus 4.6 costs six times as much in fast mode.
                (json!({"input_tokens": 1_000_000, "speed": "fast"}), 30.0),
                (json!({}), 0.0),
            ] {
                let usd = price_usd(model, &usage);
                assert!((usd - expected).abs() < 1e-9, "{model:?} {usage}: {usd}");
            }
        }
    }

    #[test]
    fn counts_of_any_size_have_a_finite_price() {
        let huge = json!({"input_tokens": u64::MAX, "output_tokens": u64::MAX, "cache_creation_input_tokens": u64::MAX});
        let usd = price_usd(None, &huge);
        assert!(usd.is_finite() && usd > 0.0, "{usd}");
        let mut sum = BilledTokens { input: u64::MAX, ..BilledTokens::default() };
        sum.add(BilledTokens { input: 1, output: 2, ..BilledTokens::default() });
        assert_eq!((sum.input, sum.output, sum.total_tokens()), (u64::MAX, 2, u64::MAX));
    }
}
