//! Replaces estimated costs by the client's own totals, where a session has them.
//!
//! The client counts from the start of a process, and a process that resumes or forks a session continues the count: two
//! totals with the same start are not added, the higher one includes the other. Sessions that share a count are therefore
//! evaluated together. The totals are split over the responses by their list prices; tokens beyond the totals, such as those of
//! a process that was killed, keep their list price.

use super::{MAX_PLAUSIBLE_USD, TranscriptUsage, UsageEntry};
use crate::prices::{BilledTokens, Tariff};
use crate::session_usage::subtract_and_consume_reported;
use plimsoll_domain::cost::{Cost, CostBasis};
use plimsoll_protocol::billing::BilledUsage;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The client's totals for one model, from one or more counts.
#[derive(Debug, Clone, Copy, Default)]
struct ReportedModel {
    tokens: BilledTokens,
    cost: Cost,
}

/// Sessions that share a count of the client.
#[derive(Debug, Default)]
struct SessionGroup {
    /// The transcript whose totals have the highest cost.
    transcript_index: usize,
    started_at: i64,
    models: BTreeMap<String, ReportedModel>,
}

/// Sets the costs of all entries that the client's totals cover, and adds an entry for each model with requests that no
/// transcript contains.
pub(super) fn apply_reported_costs(transcripts: &[TranscriptUsage], entries: &mut Vec<UsageEntry>) {
    let group_of_session = group_sessions_by_count(transcripts);
    let groups = add_highest_totals_of_each_count(transcripts, &group_of_session);
    let mut entries_of_groups: Vec<Vec<&mut UsageEntry>> = groups.iter().map(|_| Vec::new()).collect();
    for entry in entries.iter_mut() {
        let session_id = transcripts[entry.transcript_index].session_id.as_str();
        if let Some(group) = group_of_session.get(session_id) {
            entries_of_groups[*group].push(entry);
        }
    }
    let unrecorded_entries: Vec<UsageEntry> = groups
        .into_iter()
        .zip(entries_of_groups)
        .flat_map(|(group, mut entries)| group.apply_costs_and_create_unrecorded_entries(&mut entries))
        .collect();
    entries.extend(unrecorded_entries);
}

/// Returns the number of the group of each session that has totals. Sessions with a count of the same start are in one group.
fn group_sessions_by_count(transcripts: &[TranscriptUsage]) -> HashMap<&str, usize> {
    let mut group_of_session: HashMap<&str, usize> = HashMap::new();
    let mut group_of_count: HashMap<u64, usize> = HashMap::new();
    for (index, transcript) in
        transcripts.iter().enumerate().filter(|(_, usage)| !usage.cost_states.is_empty())
    {
        let session_id = transcript.session_id.as_str();
        let mut merged_groups: Vec<usize> = group_of_session.get(session_id).copied().into_iter().collect();
        // A count without a start is the session's own.
        let starts = transcript.cost_states.keys().filter(|start| **start > 0);
        merged_groups.extend(starts.clone().filter_map(|start| group_of_count.get(start)));
        let group = merged_groups.first().copied().unwrap_or(index);
        group_of_session.insert(session_id, group);
        group_of_count.extend(starts.map(|start| (*start, group)));
        if merged_groups.iter().any(|other| *other != group) {
            let all_groups = group_of_session.values_mut().chain(group_of_count.values_mut());
            all_groups.filter(|other| merged_groups.contains(other)).for_each(|other| *other = group);
        }
    }
    let mut numbers: HashMap<usize, usize> = HashMap::new();
    for group in group_of_session.values_mut() {
        let next_number = numbers.len();
        *group = *numbers.entry(*group).or_insert(next_number);
    }
    group_of_session
}

/// Returns the totals of each group: the sum over its counts. Of the totals of one count only those with the highest cost are
/// added, because they include the others.
fn add_highest_totals_of_each_count(
    transcripts: &[TranscriptUsage],
    group_of_session: &HashMap<&str, usize>,
) -> Vec<SessionGroup> {
    let mut last_totals: BTreeMap<(usize, u64), (usize, f64)> = BTreeMap::new();
    for (index, transcript) in transcripts.iter().enumerate() {
        let Some(group) = group_of_session.get(transcript.session_id.as_str()) else { continue };
        for (start, state) in &transcript.cost_states {
            let usd = state.totals.cost_usd.filter(|usd| *usd < MAX_PLAUSIBLE_USD).unwrap_or(0.0);
            let last = last_totals.entry((*group, *start)).or_insert((index, usd));
            if usd > last.1 {
                *last = (index, usd);
            }
        }
    }
    let group_count = group_of_session.values().max().map_or(0, |group| group + 1);
    let mut groups: Vec<SessionGroup> = (0..group_count).map(|_| SessionGroup::default()).collect();
    let mut highest_usd = vec![-1.0; group_count];
    for ((group, start), (transcript_index, usd)) in last_totals {
        if usd > highest_usd[group] {
            highest_usd[group] = usd;
            groups[group].transcript_index = transcript_index;
            groups[group].started_at = i64::try_from(start / 1000).unwrap_or(0);
        }
        groups[group].add_count(&transcripts[transcript_index], start, usd);
    }
    groups
}

impl SessionGroup {
    /// Adds a count's totals by model.
    fn add_count(&mut self, transcript: &TranscriptUsage, start: u64, total_usd: f64) {
        let Some(state) = transcript.cost_states.get(&start) else { return };
        let models: Vec<(Tariff, BilledTokens, f64)> = state
            .totals
            .models
            .iter()
            .map(|(model, usage)| {
                let tariff = Tariff::new(Some(model), &BilledUsage::default());
                let tokens = BilledTokens::from_model_usage(usage);
                let usd = usage.cost_usd.unwrap_or_else(|| tariff.price_usd_or_highest_if_unlisted(tokens));
                (tariff, tokens, usd)
            })
            .collect();
        let sum_usd: f64 = models.iter().map(|(_, _, usd)| usd).sum();
        for (tariff, tokens, usd) in models {
            let is_guess = state.has_unknown_model_cost && !tariff.has_listed_price();
            let basis = if is_guess { CostBasis::Estimated } else { CostBasis::Reported };
            let reported = self.models.entry(tariff.model).or_default();
            reported.tokens.add(tokens);
            reported.cost = reported.cost + Cost { usd: share(usd, sum_usd) * total_usd, basis };
        }
    }

    /// Splits the cost of each reported model over its entries, and returns an entry for each model with further tokens.
    fn apply_costs_and_create_unrecorded_entries(self, entries: &mut [&mut UsageEntry]) -> Vec<UsageEntry> {
        let last_responded_at = entries.iter().map(|entry| entry.responded_at).max();
        let mut unrecorded_entries = Vec::new();
        for (model, reported) in self.models {
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
                    responded_at: last_responded_at.unwrap_or(self.started_at),
                    transcript_index: self.transcript_index,
                    tariff,
                    tokens: unrecorded_tokens,
                    cost: Cost { usd: share(unrecorded_weight, sum_weight) * cost.usd, basis: cost.basis },
                    is_subagent: false,
                    is_response: false,
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

/// Returns the cost of a model in a group, and the tokens that no transcript contains. Returns `None` if the client reported
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
