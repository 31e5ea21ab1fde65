//! Replaces estimated costs by the client's own totals, where a session has them.
//!
//! The client counts from the start of a process, and writes its totals when the process ends. A process that resumes a session
//! continues the count, so only the highest totals of a session count. A process that forks a session continues the count of
//! the original, whose totals at that time are subtracted. The totals are split over the responses by their list prices; tokens
//! beyond the totals, such as those of a process that was killed, keep their list price.

use super::{MAX_PLAUSIBLE_USD, TranscriptUsage, UNDATED, UsageEntry};
use crate::prices::{BilledTokens, Tariff};
use crate::session_usage::subtract_and_consume_reported;
use plimsoll_domain::cost::{Cost, CostBasis};
use plimsoll_protocol::billing::BilledUsage;
use plimsoll_protocol::usage_line::CostState;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The client's totals at the end of a process.
#[derive(Debug)]
pub(super) struct ProcessTotals {
    /// The start of the count; 0 if the client did not write it.
    start: u64,
    /// The time of the last response before the end.
    last_response_at: i64,
    models: BTreeMap<String, ReportedModel>,
}

/// The client's total for one model.
#[derive(Debug, Clone, Copy, Default)]
struct ReportedModel {
    tokens: BilledTokens,
    cost: Cost,
}

/// What the client reported for a session, and the responses that it covers.
#[derive(Debug, Default)]
struct ReportedSession<'a> {
    transcript_index: usize,
    started_at: Option<i64>,
    models: BTreeMap<String, ReportedModel>,
    /// The responses of the session and its subagents.
    entries: Vec<&'a mut UsageEntry>,
}

impl ProcessTotals {
    /// Returns `None` if a cost is too high to be true.
    pub(super) fn new(state: &CostState, last_response_at: i64) -> Option<ProcessTotals> {
        let models = state.totals.models.iter().map(|(model, usage)| {
            let tariff = Tariff::new(Some(model), &BilledUsage::default());
            let tokens = BilledTokens::from_model_usage(usage);
            let is_guess = state.has_unknown_model_cost && !tariff.has_listed_price();
            let basis = if is_guess { CostBasis::Estimated } else { CostBasis::Reported };
            let usd = usage.cost_usd.unwrap_or_else(|| tariff.price_usd_or_highest_if_unlisted(tokens));
            (tariff.model, ReportedModel { tokens, cost: Cost { usd, basis } })
        });
        let mut totals = ProcessTotals {
            start: state.start_time.unwrap_or(0),
            last_response_at,
            models: models.collect(),
        };
        let (sum_usd, total_usd) = (totals.usd(), state.totals.cost_usd.unwrap_or(0.0));
        if total_usd > 0.0 {
            totals.models.values_mut().for_each(|model| model.cost.usd *= share(total_usd, sum_usd));
        }
        (sum_usd.max(total_usd) < MAX_PLAUSIBLE_USD).then_some(totals)
    }

    fn usd(&self) -> f64 {
        self.models.values().map(|model| model.cost.usd).sum()
    }
}

/// Sets the costs of all entries that the client's totals cover, and adds an entry for each model with requests that no
/// transcript contains. `original_indexes` has the original of each forked session.
pub(super) fn apply_reported_costs(
    transcripts: &[TranscriptUsage],
    original_indexes: &[Option<usize>],
    entries: &mut Vec<UsageEntry>,
) {
    let mut first_responded_at = vec![i64::MAX; transcripts.len()];
    for entry in entries.iter().filter(|entry| !entry.is_subagent) {
        let first = &mut first_responded_at[entry.transcript_index];
        *first = entry.responded_at.min(*first);
    }
    let mut sessions: BTreeMap<&str, ReportedSession> = BTreeMap::new();
    for (index, transcript) in transcripts.iter().enumerate().filter(|(_, usage)| !usage.totals.is_empty()) {
        let session = sessions.entry(&transcript.session_id).or_default();
        session.transcript_index = index;
        let mut counts: BTreeMap<u64, &ProcessTotals> = BTreeMap::new();
        for totals in &transcript.totals {
            let highest = counts.entry(totals.start).or_insert(totals);
            if totals.usd() > highest.usd() {
                *highest = totals;
            }
        }
        for (start, totals) in counts {
            let original = original_indexes[index].map(|original| &transcripts[original].totals);
            let totals_before_fork = original.into_iter().flatten().filter(|totals| {
                totals.start == start && totals.last_response_at <= first_responded_at[index]
            });
            let original = totals_before_fork.max_by(|first, second| first.usd().total_cmp(&second.usd()));
            session.add_difference(totals, original);
        }
    }
    for entry in entries.iter_mut() {
        if let Some(session) = sessions.get_mut(transcripts[entry.transcript_index].session_id.as_str()) {
            session.entries.push(entry);
        }
    }
    let unrecorded_entries: Vec<UsageEntry> =
        sessions.into_values().flat_map(ReportedSession::apply_costs_and_create_unrecorded_entries).collect();
    entries.extend(unrecorded_entries);
}

impl ReportedSession<'_> {
    /// Adds what the totals have beyond those of the original.
    fn add_difference(&mut self, totals: &ProcessTotals, original: Option<&ProcessTotals>) {
        self.started_at =
            i64::try_from(totals.start / 1000).ok().filter(|start| *start > 0).max(self.started_at);
        for (model, reported) in &totals.models {
            let mut before =
                original.and_then(|original| original.models.get(model)).copied().unwrap_or_default();
            let sum = self.models.entry(model.clone()).or_default();
            sum.tokens.add(subtract_and_consume_reported(reported.tokens, &mut before.tokens));
            let usd = (reported.cost.usd - before.cost.usd).max(0.0);
            sum.cost = sum.cost + Cost { usd, basis: reported.cost.basis };
        }
    }

    /// Splits the cost of each reported model over its entries, and returns an entry for each model with further tokens.
    fn apply_costs_and_create_unrecorded_entries(self) -> Vec<UsageEntry> {
        let ReportedSession { transcript_index, started_at, models, mut entries } = self;
        let last_responded_at = entries.iter().map(|entry| entry.responded_at).max();
        let mut unrecorded_entries = Vec::new();
        for (model, reported) in models {
            let mut entries: Vec<&mut UsageEntry> = entries
                .iter_mut()
                .filter(|entry| entry.tariff.model == model)
                .map(|entry| &mut **entry)
                .collect();
            let Some((cost, unrecorded_tokens)) =
                cost_and_unrecorded_tokens_if_cost_known(&entries, reported)
            else {
                continue;
            };
            let tariff = Arc::new(Tariff { model, ..Tariff::default() });
            let unrecorded_weight = tariff.price_usd_or_highest_if_unlisted(unrecorded_tokens);
            let sum_weight = entries.iter().map(|entry| entry.cost.usd).sum::<f64>() + unrecorded_weight;
            for entry in &mut entries {
                entry.cost = Cost { usd: share(entry.cost.usd, sum_weight) * cost.usd, basis: cost.basis };
            }
            if unrecorded_tokens != BilledTokens::default() {
                unrecorded_entries.push(UsageEntry {
                    responded_at: last_responded_at.or(started_at).unwrap_or(UNDATED),
                    transcript_index,
                    tariff,
                    tokens: unrecorded_tokens,
                    cost: Cost { usd: share(unrecorded_weight, sum_weight) * cost.usd, basis: cost.basis },
                    is_subagent: false,
                    is_response: false,
                    is_copy: false,
                    id_hash: 0,
                });
            }
        }
        unrecorded_entries
    }
}

fn share(part: f64, total: f64) -> f64 {
    if total > 0.0 { part / total } else { 0.0 }
}

/// Returns the cost of a model in a session, and the tokens that no transcript contains. Returns `None` if the client reported
/// no cost for tokens that were used, as for a model whose price it does not know.
fn cost_and_unrecorded_tokens_if_cost_known(
    entries: &[&mut UsageEntry],
    reported: ReportedModel,
) -> Option<(Cost, BilledTokens)> {
    let mut counted: BTreeMap<&Tariff, BilledTokens> = BTreeMap::new();
    entries.iter().for_each(|entry| counted.entry(&entry.tariff).or_default().add(entry.tokens));
    let mut unrecorded_tokens = reported.tokens;
    let mut cost = reported.cost;
    for (tariff, tokens) in counted {
        let unreported = subtract_and_consume_reported(tokens, &mut unrecorded_tokens);
        if unreported != BilledTokens::default() {
            cost = cost + tariff.list_cost(unreported);
        }
    }
    let is_known = reported.cost.usd > 0.0 || reported.tokens == BilledTokens::default();
    is_known.then_some((cost, unrecorded_tokens))
}
