//! Replaces estimated costs by the client's own totals, where a session has them.
//!
//! The client counts from the start of a process, and writes its totals when the process ends. A process that resumes a session
//! continues the count, so only the highest totals of a session count. A process that forks a session continues the count of
//! the original, whose totals at that time are subtracted. If they are missing, the responses that were copied are subtracted.
//! The totals are split over the responses by their list prices; tokens beyond the totals, such as those of a process that was
//! killed, keep their list price.

use super::copies::Copies;
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
    /// The last response before the end; also its id, as in the entry.
    last_response_at: i64,
    last_id_hash: u64,
    models: BTreeMap<String, ReportedModel>,
}

/// The client's total for one model.
#[derive(Debug, Clone, Copy, Default)]
struct ReportedModel {
    tokens: BilledTokens,
    cost: Cost,
}

/// The client's totals for a session, and the responses that they cover.
#[derive(Debug)]
struct ReportedSession {
    transcript_index: usize,
    last_response_at: i64,
    started_at: Option<i64>,
    models: BTreeMap<String, ReportedModel>,
    /// The entries of the session and its subagents.
    entry_indexes: Vec<usize>,
    /// The entries of other sessions that the totals include.
    copied_entry_indexes: Vec<usize>,
}

impl ProcessTotals {
    /// Returns `None` if a cost is too high to be true.
    pub(super) fn new(state: &CostState, last_entry: Option<&UsageEntry>) -> Option<ProcessTotals> {
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
            last_response_at: last_entry.map_or(UNDATED, |entry| entry.responded_at),
            last_id_hash: last_entry.map_or(0, |entry| entry.id_hash),
            models: models.collect(),
        };
        let (sum_usd, total_usd) = (totals.usd(), state.totals.cost_usd.unwrap_or(0.0));
        if total_usd > 0.0 {
            totals.models.values_mut().for_each(|model| model.cost.usd *= share(total_usd, sum_usd));
        }
        (sum_usd.max(total_usd) < MAX_PLAUSIBLE_USD).then_some(totals)
    }

    /// Returns the start of the count in Unix time, if the client wrote it.
    fn started_at(&self) -> Option<i64> {
        i64::try_from(self.start / 1000).ok().filter(|_| self.start > 0)
    }

    fn usd(&self) -> f64 {
        self.models.values().map(|model| model.cost.usd).sum()
    }
}

/// Sets the costs of all entries that the client's totals cover, and adds an entry for each model with requests that no
/// transcript contains. The entries must be sorted by the hash of their id.
pub(super) fn apply_reported_costs(
    transcripts: &[TranscriptUsage],
    copies: &Copies,
    entries: &mut Vec<UsageEntry>,
) {
    let sessions = collect_reported_sessions(transcripts, copies, entries);
    let mut unrecorded_entries = Vec::new();
    for session in sessions.values() {
        for (model, reported) in &session.models {
            let of_model = |index: &&usize| entries[**index].tariff.model == *model;
            let own_indexes = session.entry_indexes.iter().filter(of_model);
            let copied_indexes = session.copied_entry_indexes.iter().filter(of_model);
            let indexes: Vec<usize> = own_indexes.chain(copied_indexes).copied().collect();
            let model_entries = indexes.iter().map(|index| &entries[*index]);
            let Some((cost, unrecorded_tokens)) =
                total_cost_and_unrecorded_tokens_if_known(model_entries.clone(), *reported)
            else {
                continue;
            };
            let tariff = Arc::new(Tariff { model: model.clone(), ..Tariff::default() });
            let unrecorded_weight = tariff.price_usd_or_highest_if_unlisted(unrecorded_tokens);
            let sum_weight = model_entries.map(list_usd).sum::<f64>() + unrecorded_weight;
            for index in indexes {
                let entry = &mut entries[index];
                let session_id = transcripts[entry.transcript_index].session_id.as_str();
                // Another session's totals cover its responses better.
                if session_id == session.id(transcripts) || !sessions.contains_key(session_id) {
                    entry.cost =
                        Cost { usd: share(list_usd(entry), sum_weight) * cost.usd, basis: cost.basis };
                }
            }
            if unrecorded_tokens != BilledTokens::default() {
                let cost = Cost { usd: share(unrecorded_weight, sum_weight) * cost.usd, basis: cost.basis };
                unrecorded_entries.push(session.unrecorded_entry(tariff, unrecorded_tokens, cost));
            }
        }
    }
    entries.extend(unrecorded_entries);
}

/// Returns the sessions that have totals, by their ids.
fn collect_reported_sessions<'a>(
    transcripts: &'a [TranscriptUsage],
    copies: &Copies,
    entries: &[UsageEntry],
) -> BTreeMap<&'a str, ReportedSession> {
    let mut totals_by_start: BTreeMap<u64, Vec<(usize, &ProcessTotals)>> = BTreeMap::new();
    for (index, transcript) in transcripts.iter().enumerate() {
        for totals in &transcript.totals {
            totals_by_start.entry(totals.start).or_default().push((index, totals));
        }
    }
    let mut sessions: BTreeMap<&str, ReportedSession> = BTreeMap::new();
    for all_totals in totals_by_start.values() {
        let mut highest_totals: BTreeMap<usize, &ProcessTotals> = BTreeMap::new();
        for (index, totals) in all_totals {
            let highest = highest_totals.entry(*index).or_insert(totals);
            if totals.usd() > highest.usd() {
                *highest = totals;
            }
        }
        for (index, totals) in highest_totals {
            let session =
                sessions.entry(&transcripts[index].session_id).or_insert_with(|| ReportedSession::new(index));
            let original = find_totals_of_original(all_totals, copies, (index, totals));
            session.add_difference(totals, original);
            if original.is_none() {
                let started_at = totals.started_at().unwrap_or(UNDATED);
                let find_entry =
                    |id_hash: u64| entries.binary_search_by_key(&id_hash, |entry| entry.id_hash).ok();
                let copied = copies.of_transcript(index).filter_map(find_entry);
                let counted = copied.filter(|index| entries[*index].responded_at >= started_at);
                session.copied_entry_indexes.extend(counted);
            }
        }
    }
    for (index, entry) in entries.iter().enumerate() {
        if let Some(session) = sessions.get_mut(transcripts[entry.transcript_index].session_id.as_str()) {
            session.last_response_at = session.last_response_at.max(entry.responded_at);
            session.entry_indexes.push(index);
        }
    }
    sessions
}

/// Returns the highest totals that the original of a forked session had when it was forked. `all_totals` are those with the
/// same start, with the indexes of their transcripts.
fn find_totals_of_original<'a>(
    all_totals: &[(usize, &'a ProcessTotals)],
    copies: &Copies,
    (index, totals): (usize, &ProcessTotals),
) -> Option<&'a ProcessTotals> {
    let is_before_fork = |other: &ProcessTotals| {
        if copies.has_copies(index) {
            copies.contains(index, other.last_id_hash)
        } else {
            // A fork of a compacted session has no copies.
            other.last_response_at < copies.first_response_at(index)
        }
    };
    let is_of_original = |(other_index, other): &&(usize, &ProcessTotals)| {
        totals.start > 0 && *other_index != index && other.usd() <= totals.usd() && is_before_fork(other)
    };
    let originals = all_totals.iter().filter(is_of_original);
    originals.map(|(_, totals)| *totals).max_by(|first, second| first.usd().total_cmp(&second.usd()))
}

impl ReportedSession {
    fn new(transcript_index: usize) -> ReportedSession {
        ReportedSession {
            transcript_index,
            last_response_at: UNDATED,
            started_at: None,
            models: BTreeMap::new(),
            entry_indexes: Vec::new(),
            copied_entry_indexes: Vec::new(),
        }
    }

    fn id<'a>(&self, transcripts: &'a [TranscriptUsage]) -> &'a str {
        &transcripts[self.transcript_index].session_id
    }

    /// Adds what the totals have beyond earlier ones.
    fn add_difference(&mut self, totals: &ProcessTotals, earlier_totals: Option<&ProcessTotals>) {
        self.started_at = self.started_at.max(totals.started_at());
        self.last_response_at = self.last_response_at.max(totals.last_response_at);
        for (model, reported) in &totals.models {
            let earlier = earlier_totals.and_then(|earlier| earlier.models.get(model));
            let mut earlier = earlier.copied().unwrap_or_default();
            let sum = self.models.entry(model.clone()).or_default();
            sum.tokens.add(subtract_and_consume_reported(reported.tokens, &mut earlier.tokens));
            let usd = (reported.cost.usd - earlier.cost.usd).max(0.0);
            sum.cost = sum.cost + Cost { usd, basis: reported.cost.basis };
        }
    }

    /// Creates an entry for requests that no transcript contains. It counts for the time of the last response.
    fn unrecorded_entry(&self, tariff: Arc<Tariff>, tokens: BilledTokens, cost: Cost) -> UsageEntry {
        let last_response_at = Some(self.last_response_at).filter(|time| *time != UNDATED);
        UsageEntry {
            responded_at: last_response_at.or(self.started_at).unwrap_or(UNDATED),
            transcript_index: self.transcript_index,
            tariff,
            tokens,
            cost,
            is_subagent: false,
            is_response: false,
            is_copy: false,
            id_hash: 0,
        }
    }
}

fn list_usd(entry: &UsageEntry) -> f64 {
    entry.tariff.price_usd_or_highest_if_unlisted(entry.tokens)
}

fn share(part: f64, total: f64) -> f64 {
    if total > 0.0 { part / total } else { 0.0 }
}

/// Returns the cost of a model in a session, and the tokens that no transcript contains. Returns `None` if the client reported
/// no cost for tokens that were used, as for a model whose price it does not know.
fn total_cost_and_unrecorded_tokens_if_known<'a>(
    entries: impl Iterator<Item = &'a UsageEntry>,
    reported: ReportedModel,
) -> Option<(Cost, BilledTokens)> {
    let mut counted: BTreeMap<&Tariff, BilledTokens> = BTreeMap::new();
    entries.for_each(|entry| counted.entry(&entry.tariff).or_default().add(entry.tokens));
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
