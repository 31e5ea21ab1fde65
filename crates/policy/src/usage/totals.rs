//! Sums of usage.

use super::UsageEntry;
use crate::prices::BilledTokens;
use plimsoll_domain::cost::Cost;
use std::collections::BTreeMap;

/// The usage of several responses.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct UsageTotals {
    pub response_count: usize,
    pub tokens: BilledTokens,
    pub cost: Cost,
    /// The part of `tokens` that subagents used.
    pub subagent_tokens: u64,
    /// The part of `cost` that subagents caused.
    pub subagent_cost: Cost,
}

impl UsageTotals {
    /// Returns the sum of both.
    pub fn plus(mut self, other: UsageTotals) -> UsageTotals {
        self.response_count += other.response_count;
        self.tokens.add(other.tokens);
        self.cost = self.cost + other.cost;
        self.subagent_tokens = self.subagent_tokens.saturating_add(other.subagent_tokens);
        self.subagent_cost = self.subagent_cost + other.subagent_cost;
        self
    }
}

impl From<&UsageEntry> for UsageTotals {
    fn from(entry: &UsageEntry) -> UsageTotals {
        let UsageEntry { tokens, cost, .. } = *entry;
        let (subagent_tokens, subagent_cost) =
            if entry.is_subagent { (tokens.total_tokens(), cost) } else { (0, Cost::default()) };
        let response_count = usize::from(entry.is_response);
        UsageTotals { response_count, tokens, cost, subagent_tokens, subagent_cost }
    }
}

impl std::iter::Sum for UsageTotals {
    fn sum<I: Iterator<Item = UsageTotals>>(totals: I) -> UsageTotals {
        totals.fold(UsageTotals::default(), UsageTotals::plus)
    }
}

impl<'a> FromIterator<&'a UsageEntry> for UsageTotals {
    fn from_iter<I: IntoIterator<Item = &'a UsageEntry>>(entries: I) -> UsageTotals {
        entries.into_iter().map(UsageTotals::from).sum()
    }
}

/// Sums the usage of the entries with each key.
pub fn group_usage<'a, K: Ord>(
    entries: impl IntoIterator<Item = &'a UsageEntry>,
    mut key: impl FnMut(&'a UsageEntry) -> K,
) -> BTreeMap<K, UsageTotals> {
    let mut groups: BTreeMap<K, UsageTotals> = BTreeMap::new();
    for entry in entries {
        let totals = groups.entry(key(entry)).or_default();
        *totals = totals.plus(entry.into());
    }
    groups
}
