//! The token usage and cost of a session, merged from several sources.
//!
//! A session that ends normally reports its cost. A killed session does not, or reports it only in its transcript (2.1.329: after
//! SIGINT and SIGTERM, never after SIGKILL). In that case the responses are counted: the client's output, the turn log and the
//! transcripts each contain some of them.

use crate::prices::{BilledTokens, Tariff};
use crate::window::model_name_without_prefix_date_and_suffix;
use plimsoll_domain::cost::{Cost, CostBasis};
use plimsoll_protocol::billing::{BilledLine, BilledUsage, ReportedUsage};
use std::collections::BTreeMap;

/// The usage of one session, including its subagents.
#[derive(Debug, Clone, Default)]
pub struct SessionUsage {
    responses: BTreeMap<String, ResponseUsage>,
    reported: Option<ReportedUsage>,
}

/// The tokens of one response and the tariff that applies to them.
#[derive(Debug, Clone)]
struct ResponseUsage {
    tariff: Tariff,
    tokens: BilledTokens,
}

impl SessionUsage {
    /// Adds the usage in a line of the client's output or of a transcript. Ignores lines without usage.
    pub fn add_response_or_reported_usage_from_line(&mut self, line: &[u8]) {
        match BilledLine::parse_response_or_reported_totals(line) {
            Some(BilledLine::Response { id, model, usage }) => {
                self.add_response(id, model.as_deref(), &usage);
            }
            Some(BilledLine::Reported(reported)) => self.record_reported_usage_unless_cost_lower(reported),
            None => {}
        }
    }

    /// Adds a response, or replaces its earlier usage: each response counts once, with its last usage.
    pub fn add_response(&mut self, id: String, model: Option<&str>, usage: &BilledUsage) {
        let (tariff, tokens) = (Tariff::new(model, usage), BilledTokens::from_usage(usage));
        self.responses.insert(id, ResponseUsage { tariff, tokens });
    }

    /// Records the usage that the client reported, unless an earlier report has a higher cost. The figures are
    /// cumulative.
    pub fn record_reported_usage_unless_cost_lower(&mut self, reported: ReportedUsage) {
        let finite_cost =
            |reported_usage: &ReportedUsage| reported_usage.cost_usd.filter(|usd| usd.is_finite());
        let current_usd = self.reported.as_ref().and_then(finite_cost);
        if finite_cost(&reported).is_some_and(|usd| current_usd.is_none_or(|current| usd >= current)) {
            self.reported = Some(reported);
        }
    }

    /// Returns the cost that the client reported, if any.
    pub fn reported_cost_usd(&self) -> Option<f64> {
        self.reported.as_ref().and_then(|reported| reported.cost_usd)
    }

    /// Returns true if the response with this id was added.
    pub fn has_response(&self, id: &str) -> bool {
        self.responses.contains_key(id)
    }

    /// Adds the usage from another source. For a response in both, the usage from `other` counts.
    pub fn merge_by_response_id(&mut self, other: SessionUsage) {
        self.responses.extend(other.responses);
        other
            .reported
            .into_iter()
            .for_each(|reported| self.record_reported_usage_unless_cost_lower(reported));
    }

    /// Returns true if no source had any usage.
    pub fn is_empty(&self) -> bool {
        self.responses.is_empty() && self.reported.is_none()
    }

    /// Returns the number of reported and unreported tokens, each counted once.
    pub fn total_tokens(&self) -> u64 {
        let reported_tokens: u64 = self
            .reported_tokens_by_family()
            .values()
            .map(|tokens| tokens.total_tokens())
            .fold(0, u64::saturating_add);
        let unreported = self.nonzero_unreported_tokens_by_tariff();
        unreported
            .into_iter()
            .map(|(_, tokens)| tokens.total_tokens())
            .fold(reported_tokens, u64::saturating_add)
    }

    /// Computes the cost: the reported cost plus the list price of tokens that the client did not report. The report
    /// lacks a response that was interrupted by SIGTERM, and everything after the last result of a killed session.
    pub fn total_cost(&self) -> Cost {
        let reported = self.reported_cost_usd().unwrap_or(0.0);
        let mut cost = Cost { usd: reported, basis: CostBasis::Reported };
        for (tariff, tokens) in self.nonzero_unreported_tokens_by_tariff() {
            cost = cost + tariff.list_cost(tokens);
        }
        cost
    }

    /// Returns the tokens that the client did not report, by tariff, without zero entries.
    fn nonzero_unreported_tokens_by_tariff(&self) -> Vec<(&Tariff, BilledTokens)> {
        let mut tokens_by_tariff: BTreeMap<&Tariff, BilledTokens> = BTreeMap::new();
        for response in self.responses.values() {
            tokens_by_tariff.entry(&response.tariff).or_default().add(response.tokens);
        }
        let mut reported = self.reported_tokens_by_family();
        tokens_by_tariff
            .into_iter()
            .map(|(tariff, tokens)| match reported.get_mut(&tariff.model) {
                Some(reported_tokens) => (tariff, subtract_and_consume_reported(tokens, reported_tokens)),
                None => (tariff, tokens),
            })
            .filter(|(_, unreported)| *unreported != BilledTokens::default())
            .collect()
    }

    /// Returns the tokens that the client reported, by model family.
    fn reported_tokens_by_family(&self) -> BTreeMap<String, BilledTokens> {
        let mut tokens_by_family: BTreeMap<String, BilledTokens> = BTreeMap::new();
        for (model, usage) in self.reported.iter().flat_map(|reported| &reported.models) {
            let family = model_name_without_prefix_date_and_suffix(model).to_owned();
            tokens_by_family.entry(family).or_default().add(BilledTokens::from_model_usage(usage));
        }
        tokens_by_family
    }
}

/// Returns the counted tokens without the reported ones, and subtracts the matched tokens from `reported`. Older clients report
/// cache writes without their durations, so reported writes that match none of their duration are matched with the others.
pub(crate) fn subtract_and_consume_reported(
    counted: BilledTokens,
    reported: &mut BilledTokens,
) -> BilledTokens {
    let subtract_and_consume = |counted: u64, reported: &mut u64| {
        let common = counted.min(*reported);
        *reported -= common;
        counted - common
    };
    let cache_write_5m = subtract_and_consume(counted.cache_write_5m, &mut reported.cache_write_5m);
    let cache_write_1h = subtract_and_consume(counted.cache_write_1h, &mut reported.cache_write_1h);
    BilledTokens {
        input: subtract_and_consume(counted.input, &mut reported.input),
        output: subtract_and_consume(counted.output, &mut reported.output),
        cache_read: subtract_and_consume(counted.cache_read, &mut reported.cache_read),
        cache_write_5m: subtract_and_consume(cache_write_5m, &mut reported.cache_write_1h),
        cache_write_1h: subtract_and_consume(cache_write_1h, &mut reported.cache_write_5m),
        web_searches: subtract_and_consume(counted.web_searches, &mut reported.web_searches),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response_line(id: &str, model: &str, input: u64, output: u64) -> String {
        format!(
            r#"{{"type":"assistant","requestedModel":"{model}","message":{{"id":"{id}","model":"x","usage":{{"input_tokens":{input},"output_tokens":{output}}}}}}}"#
        )
    }

    fn cost_state_line(usd: f64, model: &str, input: u64, output: u64) -> String {
        format!(
            r#"{{"type":"cost-state","totalCostUSD":{usd},"modelUsage":{{"{model}":{{"inputTokens":{input},"outputTokens":{output}}}}}}}"#
        )
    }

    fn usage_from_lines(lines: &[String]) -> SessionUsage {
        let mut usage = SessionUsage::default();
        lines.iter().for_each(|line| usage.add_response_or_reported_usage_from_line(line.as_bytes()));
        usage
    }

    fn assert_cost(usage: &SessionUsage, usd: f64, basis: CostBasis, tokens: u64) {
        let cost = usage.total_cost();
        assert!((cost.usd - usd).abs() < 1e-9, "{cost:?}");
        assert_eq!((cost.basis, usage.total_tokens()), (basis, tokens));
    }

    const OPUS: &str = "claude-opus-5-5";

    #[test]
    fn without_a_report_each_response_counts_once_with_its_last_usage() {
        let lines = [
            response_line("m1", OPUS, 100_000, 1),
            response_line("m1", OPUS, 100_000, 10_000),
            response_line("m2", "claude-haiku-4-5", 100_000, 0),
        ];
        assert_cost(&usage_from_lines(&lines), 0.4 + 0.2 + 0.1, CostBasis::Estimated, 210_000);
    }

    #[test]
    fn the_cost_reported_by_the_client_replaces_the_estimate() {
        // The report also counts a compaction, which no transcript shows.
        let with_compaction = usage_from_lines(&[
            response_line("m1", OPUS, 100_000, 10),
            cost_state_line(0.75, OPUS, 150_000, 10),
        ]);
        assert_cost(&with_compaction, 0.75, CostBasis::Reported, 150_010);
        // An unknown model has no list price, so the client's cost is used.
        let unknown = usage_from_lines(&[
            response_line("m1", "zork", 100_000, 0),
            cost_state_line(0.4, "zork", 100_000, 0),
        ]);
        assert_cost(&unknown, 0.4, CostBasis::Reported, 100_000);
        // The client names the model with the suffix of its window.
        let suffix = usage_from_lines(&[
            response_line("m1", "claude-sonnet-4-5", 10, 0),
            cost_state_line(0.1, "claude-sonnet-4-5[1m]", 10, 0),
        ]);
        assert_cost(&suffix, 0.1, CostBasis::Reported, 10);
    }

    #[test]
    fn unreported_tokens_are_added_at_list_price() {
        // After SIGTERM during the first response the client reports none of it (2.1.329).
        let nothing = r#"{"type":"cost-state","totalCostUSD":0,"modelUsage":{}}"#.to_owned();
        assert_cost(
            &usage_from_lines(&[response_line("m1", OPUS, 10_000, 1), nothing]),
            0.04002,
            CostBasis::Estimated,
            10_001,
        );
        // A result is followed by another turn.
        let result = r#"{"type":"result","total_cost_usd":0.5,"modelUsage":{"claude-opus-5-5":{"inputTokens":100,"outputTokens":5}}}"#;
        let lines =
            [response_line("m1", OPUS, 100, 5), result.to_owned(), response_line("m2", OPUS, 100_000, 0)];
        assert_cost(&usage_from_lines(&lines), 0.9, CostBasis::Estimated, 100_105);
    }

    #[test]
    fn cache_writes_are_compared_regardless_of_their_duration() {
        let line = r#"{"type":"assistant","message":{"id":"m1","model":"claude-opus-5-5","usage":{"cache_creation_input_tokens":1000000,
            "cache_creation":{"ephemeral_1h_input_tokens":1000000}}}}"#;
        let cost_state_with_cache_writes = |tokens: u64| {
            format!(
                r#"{{"type":"cost-state","totalCostUSD":1,"modelUsage":{{"claude-opus-5-5":{{"cacheCreationInputTokens":{tokens}}}}}}}"#
            )
        };
        assert_cost(
            &usage_from_lines(&[line.to_owned(), cost_state_with_cache_writes(1_000_000)]),
            1.0,
            CostBasis::Reported,
            1_000_000,
        );
        assert_cost(
            &usage_from_lines(&[line.to_owned(), cost_state_with_cache_writes(500_000)]),
            1.0 + 4.0,
            CostBasis::Estimated,
            1_000_000,
        );
    }

    #[test]
    fn cache_writes_of_both_durations_are_subtracted_separately() {
        let writes = |cache_write_5m, cache_write_1h| BilledTokens {
            cache_write_5m,
            cache_write_1h,
            ..BilledTokens::default()
        };
        for (counted, reported, unreported, hidden) in [
            (writes(3, 6), writes(2, 4), writes(1, 2), writes(0, 0)),
            (writes(3, 6), writes(9, 0), writes(0, 0), writes(0, 0)),
            (writes(3, 6), writes(5, 6), writes(0, 0), writes(2, 0)),
            (writes(3, 0), writes(0, 4), writes(0, 0), writes(0, 1)),
        ] {
            let mut remaining = reported;
            assert_eq!(subtract_and_consume_reported(counted, &mut remaining), unreported);
            assert_eq!(remaining, hidden);
        }
    }

    #[test]
    fn an_unknown_model_gives_an_upper_bound_and_zero_tokens_cost_nothing() {
        let both = [response_line("m1", OPUS, 100_000, 0), response_line("m2", "zork", 10_000, 0)];
        assert_cost(&usage_from_lines(&both), 0.4 + 0.15, CostBasis::AtMost, 110_000);
        let none = [response_line("m1", OPUS, 0, 0), response_line("m2", "<synthetic>", 0, 0)];
        assert_cost(&usage_from_lines(&none), 0.0, CostBasis::Reported, 0);
        assert!(!usage_from_lines(&none).is_empty() && usage_from_lines(&[]).is_empty());
        assert_cost(&usage_from_lines(&[]), 0.0, CostBasis::Reported, 0);
    }

    #[test]
    fn sources_are_merged_by_response_and_the_highest_report_counts() {
        let mut merged =
            usage_from_lines(&[response_line("m1", OPUS, 100, 1), response_line("m3", OPUS, 100, 1)]);
        merged.merge_by_response_id(usage_from_lines(&[
            response_line("m1", OPUS, 100, 50),
            response_line("m2", OPUS, 100, 1),
        ]));
        assert_eq!(merged.total_tokens(), 150 + 101 + 101);
        merged.merge_by_response_id(usage_from_lines(&[cost_state_line(0.5, OPUS, 300, 52)]));
        merged.merge_by_response_id(usage_from_lines(&[cost_state_line(0.0, OPUS, 0, 0)]));
        assert_cost(&merged, 0.5, CostBasis::Reported, 352);
    }
}
