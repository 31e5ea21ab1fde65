//! What a session used, put together from several sources, and what that costs.
//!
//! A session that ends as it should reports its cost. One that is killed does not, or reports it only in its transcript
//! (2.1.329: after SIGINT and SIGTERM, never after SIGKILL). Then the responses are counted: the output of the client, the turn
//! log and the transcripts each know some of them.

use crate::prices::{BilledTokens, Tariff};
use crate::window::family_name;
use plimsoll_domain::cost::{Cost, CostBasis};
use plimsoll_protocol::billing::{BilledLine, BilledUsage, ReportedUsage};
use std::collections::BTreeMap;

/// The usage of one session, with its subagents.
#[derive(Debug, Clone, Default)]
pub struct SessionUsage {
    responses: BTreeMap<String, Response>,
    reported: Option<ReportedUsage>,
}

/// The usage of one response.
#[derive(Debug, Clone)]
struct Response {
    tariff: Tariff,
    tokens: BilledTokens,
}

impl SessionUsage {
    /// Reads a line of the client's output or of a transcript.
    pub fn read_line(&mut self, line: &[u8]) {
        match BilledLine::parse(line) {
            Some(BilledLine::Response { id, model, usage }) => {
                self.add_response(id, model.as_deref(), &usage);
            }
            Some(BilledLine::Account(account)) => self.add_account(account),
            None => {}
        }
    }

    /// Adds a response, or replaces what was known of it: each response counts once, with its last usage.
    pub fn add_response(&mut self, id: String, model: Option<&str>, usage: &BilledUsage) {
        let (tariff, tokens) = (Tariff::new(model, usage), BilledTokens::from_usage(usage));
        self.responses.insert(id, Response { tariff, tokens });
    }

    /// Takes the client's own account. It grows, so of several the one with the highest cost counts.
    pub fn add_account(&mut self, account: ReportedUsage) {
        let usd = |account: &ReportedUsage| account.cost_usd.filter(|usd| usd.is_finite());
        let known = self.reported.as_ref().and_then(usd);
        if usd(&account).is_some_and(|usd| known.is_none_or(|known| usd >= known)) {
            self.reported = Some(account);
        }
    }

    /// Returns the cost in the client's own account, if it gave one.
    pub fn reported_usd(&self) -> Option<f64> {
        self.reported.as_ref().and_then(|account| account.cost_usd)
    }

    /// Returns true if the response is known.
    pub fn has_response(&self, id: &str) -> bool {
        self.responses.contains_key(id)
    }

    /// Adds what another source knows; of a response that both know the other source counts.
    pub fn merge(&mut self, other: SessionUsage) {
        self.responses.extend(other.responses);
        other.reported.into_iter().for_each(|account| self.add_account(account));
    }

    /// Returns true if no source knew anything.
    pub fn is_empty(&self) -> bool {
        self.responses.is_empty() && self.reported.is_none()
    }

    /// Returns all tokens, each counted once.
    pub fn tokens(&self) -> u64 {
        let reported: u64 =
            self.reported_by_family().values().map(|tokens| tokens.tokens()).fold(0, u64::saturating_add);
        let missing = self.missing_in_account();
        missing.into_iter().map(|(_, tokens)| tokens.tokens()).fold(reported, u64::saturating_add)
    }

    /// Computes the cost: what the client reported, and for tokens that are missing in its account the list price. The account
    /// misses the response that was interrupted by SIGTERM, and everything after the last result of a killed session.
    pub fn cost(&self) -> Cost {
        let reported = self.reported_usd().unwrap_or(0.0);
        let mut cost = Cost { usd: reported, basis: CostBasis::Reported };
        for (tariff, tokens) in self.missing_in_account() {
            let basis = if tariff.is_known() { CostBasis::Estimated } else { CostBasis::AtMost };
            cost.usd += tariff.price(tokens);
            cost.basis = cost.basis.max(basis);
        }
        cost
    }

    /// Returns the usage that the client's account misses, by tariff; only what is not zero.
    fn missing_in_account(&self) -> Vec<(&Tariff, BilledTokens)> {
        let mut by_tariff: BTreeMap<&Tariff, BilledTokens> = BTreeMap::new();
        for response in self.responses.values() {
            by_tariff.entry(&response.tariff).or_default().add(response.tokens);
        }
        let mut reported = self.reported_by_family();
        by_tariff
            .into_iter()
            .map(|(tariff, tokens)| match reported.get_mut(&tariff.model) {
                Some(account) => (tariff, take_accounted(tokens, account)),
                None => (tariff, tokens),
            })
            .filter(|(_, missing)| *missing != BilledTokens::default())
            .collect()
    }

    /// Returns the client's account by model family.
    fn reported_by_family(&self) -> BTreeMap<String, BilledTokens> {
        let mut families: BTreeMap<String, BilledTokens> = BTreeMap::new();
        for (model, usage) in self.reported.iter().flat_map(|account| &account.models) {
            let cache_writes = usage.cache_creation_input_tokens.unwrap_or(0);
            let cache_write_1h = usage.cache_creation_1h.unwrap_or(0).min(cache_writes);
            families.entry(family_name(model).to_owned()).or_default().add(BilledTokens {
                input: usage.input_tokens.unwrap_or(0),
                output: usage.output_tokens.unwrap_or(0),
                cache_read: usage.cache_read_input_tokens.unwrap_or(0),
                cache_write_5m: cache_writes - cache_write_1h,
                cache_write_1h,
                web_searches: usage.web_search_requests.unwrap_or(0),
            });
        }
        families
    }
}

/// Subtracts from `seen` what the account has of it, and takes that out of the account. Returns the rest. Cache writes are compared
/// as a whole: older clients report them without their durations.
fn take_accounted(seen: BilledTokens, account: &mut BilledTokens) -> BilledTokens {
    let take = |seen: u64, account: &mut u64| {
        let common = seen.min(*account);
        *account -= common;
        seen - common
    };
    let mut account_writes = account.cache_write_5m.saturating_add(account.cache_write_1h);
    let writes = take(seen.cache_write_5m.saturating_add(seen.cache_write_1h), &mut account_writes);
    (account.cache_write_5m, account.cache_write_1h) = (account_writes, 0);
    let cache_write_1h = seen.cache_write_1h.min(writes);
    BilledTokens {
        input: take(seen.input, &mut account.input),
        output: take(seen.output, &mut account.output),
        cache_read: take(seen.cache_read, &mut account.cache_read),
        cache_write_5m: writes - cache_write_1h,
        cache_write_1h,
        web_searches: take(seen.web_searches, &mut account.web_searches),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(id: &str, model: &str, input: u64, output: u64) -> String {
        format!(
            r#"{{"type":"assistant","requestedModel":"{model}","message":{{"id":"{id}","model":"x","usage":{{"input_tokens":{input},"output_tokens":{output}}}}}}}"#
        )
    }

    fn account(usd: f64, model: &str, input: u64, output: u64) -> String {
        format!(
            r#"{{"type":"cost-state","totalCostUSD":{usd},"modelUsage":{{"{model}":{{"inputTokens":{input},"outputTokens":{output}}}}}}}"#
        )
    }

    fn usage(lines: &[String]) -> SessionUsage {
        let mut usage = SessionUsage::default();
        lines.iter().for_each(|line| usage.read_line(line.as_bytes()));
        usage
    }

    fn assert_cost(usage: &SessionUsage, usd: f64, basis: CostBasis, tokens: u64) {
        let cost = usage.cost();
        assert!((cost.usd - usd).abs() < 1e-9, "{cost:?}");
        assert_eq!((cost.basis, usage.tokens()), (basis, tokens));
    }

    const OPUS: &str = "claude-opus-5-5";

    #[test]
    fn without_an_account_each_response_counts_once_with_its_last_usage() {
        let lines = [
            response("m1", OPUS, 100_000, 1),
            response("m1", OPUS, 100_000, 10_000),
            response("m2", "claude-haiku-4-5", 100_000, 0),
        ];
        assert_cost(&usage(&lines), 0.4 + 0.2 + 0.1, CostBasis::Estimated, 210_000);
    }

    #[test]
    fn the_account_of_the_client_replaces_the_estimate() {
        // It counts a compaction, too, which no transcript shows.
        let whole = usage(&[response("m1", OPUS, 100_000, 10), account(0.75, OPUS, 150_000, 10)]);
        assert_cost(&whole, 0.75, CostBasis::Reported, 150_010);
        // An unknown model has a price by then: the client's.
        let unknown = usage(&[response("m1", "zork", 100_000, 0), account(0.4, "zork", 100_000, 0)]);
        assert_cost(&unknown, 0.4, CostBasis::Reported, 100_000);
        // The client names the model with the suffix of its window.
        let suffix = usage(&[
            response("m1", "claude-sonnet-4-5", 10, 0),
            account(0.1, "claude-sonnet-4-5[1m]", 10, 0),
        ]);
        assert_cost(&suffix, 0.1, CostBasis::Reported, 10);
    }

    #[test]
    fn what_the_account_misses_is_added_at_list_price() {
        // SIGTERM in the first response: the client reports nothing of it (2.1.329).
        let nothing = r#"{"type":"cost-state","totalCostUSD":0,"modelUsage":{}}"#.to_owned();
        assert_cost(
            &usage(&[response("m1", OPUS, 10_000, 1), nothing]),
            0.04002,
            CostBasis::Estimated,
            10_001,
        );
        // A result, and another turn after it.
        let result = r#"{"type":"result","total_cost_usd":0.5,"modelUsage":{"claude-opus-5-5":{"inputTokens":100,"outputTokens":5}}}"#;
        let lines = [response("m1", OPUS, 100, 5), result.to_owned(), response("m2", OPUS, 100_000, 0)];
        assert_cost(&usage(&lines), 0.9, CostBasis::Estimated, 100_105);
    }

    #[test]
    fn cache_writes_are_compared_whatever_their_duration() {
        let line = r#"{"type":"assistant","message":{"id":"m1","model":"claude-opus-5-5","usage":{"cache_creation_input_tokens":1000000,
            "cache_creation":{"ephemeral_1h_input_tokens":1000000}}}}"#;
        let account = |tokens: u64| {
            format!(
                r#"{{"type":"cost-state","totalCostUSD":1,"modelUsage":{{"claude-opus-5-5":{{"cacheCreationInputTokens":{tokens}}}}}}}"#
            )
        };
        assert_cost(&usage(&[line.to_owned(), account(1_000_000)]), 1.0, CostBasis::Reported, 1_000_000);
        assert_cost(&usage(&[line.to_owned(), account(500_000)]), 1.0 + 4.0, CostBasis::Estimated, 1_000_000);
    }

    #[test]
    fn an_unknown_model_is_at_most_and_zero_tokens_are_nothing() {
        let both = [response("m1", OPUS, 100_000, 0), response("m2", "zork", 10_000, 0)];
        assert_cost(&usage(&both), 0.4 + 0.15, CostBasis::AtMost, 110_000);
        let none = [response("m1", OPUS, 0, 0), response("m2", "<synthetic>", 0, 0)];
        assert_cost(&usage(&none), 0.0, CostBasis::Reported, 0);
        assert!(!usage(&none).is_empty() && usage(&[]).is_empty());
        assert_cost(&usage(&[]), 0.0, CostBasis::Reported, 0);
    }

    #[test]
    fn sources_are_merged_by_response_and_the_greatest_account_counts() {
        let mut merged = usage(&[response("m1", OPUS, 100, 1), response("m3", OPUS, 100, 1)]);
        merged.merge(usage(&[response("m1", OPUS, 100, 50), response("m2", OPUS, 100, 1)]));
        assert_eq!(merged.tokens(), 150 + 101 + 101);
        merged.merge(usage(&[account(0.5, OPUS, 300, 52)]));
        merged.merge(usage(&[account(0.0, OPUS, 0, 0)]));
        assert_cost(&merged, 0.5, CostBasis::Reported, 352);
    }
}
