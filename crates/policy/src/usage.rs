//! The usage of all sessions, from their transcripts: each response counts once, with its cost.
//!
//! The client's own figure is used where it wrote one, and the price table otherwise. A transcript does not contain every
//! request: compactions and the titles of sessions are only in the client's totals, and count from there.

mod blocks;
mod copies;
mod reported;
mod totals;

pub use blocks::{BLOCK_SECONDS, UsageBlock, split_into_blocks};
pub use totals::{UsageTotals, group_usage};

use crate::prices::{BilledTokens, Tariff};
use chrono::DateTime;
use copies::Copies;
use plimsoll_domain::cost::{Cost, CostBasis};
use plimsoll_protocol::usage_line::{ResponseLine, UsageLine};
use reported::ProcessTotals;
use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A response this far in the future was written by a machine whose clock was wrong, not by one that is slightly ahead.
const MAX_CLOCK_DIFFERENCE_SECONDS: i64 = 3600;

/// A higher cost is an error, and could not be added.
const MAX_PLAUSIBLE_USD: f64 = 1e12;

/// The time of a response that has none, until that of another one is used.
const UNDATED: i64 = i64::MIN;

thread_local! {
    /// The parser's buffer. There are too many transcripts for one each.
    static LINE_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The usage in one transcript.
#[derive(Debug, Default)]
pub struct TranscriptUsage {
    pub session_id: String,
    /// True for the transcript of a subagent. The session's own transcript is another file.
    pub is_subagent: bool,
    /// The working directory of the first response.
    pub folder: Option<String>,
    /// The git branch of the last response.
    pub branch: Option<String>,
    /// The model of the last response.
    pub model: Option<String>,
    /// The most input tokens of one request of the main conversation.
    pub peak_tokens: u64,
    pub compaction_count: usize,
    /// The number of lines that have usage and cannot be parsed. An unfinished last line does not count.
    pub malformed_line_count: usize,
    /// The number of responses that are dated in the future. They are not counted.
    pub future_response_count: usize,
    /// The number of responses without a time in a transcript in which no response has one. They are not counted.
    pub undated_response_count: usize,
    entries: Vec<UsageEntry>,
    /// The client's totals at the end of each of its processes.
    totals: Vec<ProcessTotals>,
}

/// The usage of one response, or of the requests that only the client's totals contain.
#[derive(Debug, Clone)]
pub struct UsageEntry {
    /// Unix time in seconds.
    pub responded_at: i64,
    /// The index of the transcript that it belongs to. A copy in a forked session does not count.
    pub transcript_index: usize,
    pub tariff: Arc<Tariff>,
    pub tokens: BilledTokens,
    pub cost: Cost,
    /// True for a subagent's response.
    pub is_subagent: bool,
    /// False for the requests that only the client's totals contain.
    pub is_response: bool,
    /// True if the client marked the line as a copy from another session.
    is_copy: bool,
    /// Hash of the response's id; 0 if it has none. Ids are hashed because there may be a million.
    id_hash: u64,
}

impl TranscriptUsage {
    /// Creates the usage of a transcript of this session.
    pub fn new(session_id: &str, is_subagent: bool) -> TranscriptUsage {
        TranscriptUsage { session_id: session_id.to_owned(), is_subagent, ..TranscriptUsage::default() }
    }

    /// Adds a line of the transcript. A line without a line end may be unfinished.
    pub fn add_line(&mut self, line: &[u8], has_line_end: bool) {
        LINE_BUFFER.with_borrow_mut(|buffer| match UsageLine::parse(line, buffer) {
            Ok(Some(UsageLine::Response(response))) => self.add_response(&response),
            Ok(Some(UsageLine::CostState(state))) => {
                self.totals.extend(ProcessTotals::new(&state, self.entries.last()));
            }
            Ok(Some(UsageLine::Compaction)) => self.compaction_count += 1,
            Ok(None) => {}
            Err(_) => self.malformed_line_count += usize::from(has_line_end),
        });
    }

    fn add_response(&mut self, response: &ResponseLine<'_>) {
        let Some(usage) = response.usage() else { return };
        let tokens = BilledTokens::from_usage(usage);
        let last_tariff = self.entries.last().map(|entry| &entry.tariff);
        // Most responses have the tariff of the one before.
        let tariff = last_tariff
            .filter(|tariff| tariff.applies_to(response.model(), usage))
            .map_or_else(|| Arc::new(Tariff::new(response.model(), usage)), Arc::clone);
        let is_subagent = self.is_subagent || response.is_sidechain;
        if !is_subagent {
            self.peak_tokens = self.peak_tokens.max(tokens.total_input());
        }
        if self.folder.is_none() {
            self.folder = response.cwd.as_deref().map(str::to_owned);
        }
        if let Some(branch) = &response.git_branch
            && self.branch.as_ref().is_none_or(|last| last != branch)
        {
            self.branch = Some(branch.clone().into_owned());
        }
        if self.model.as_deref() != response.model() {
            self.model = response.model().map(str::to_owned);
        }
        if self.session_id.is_empty() {
            self.session_id = response.session_id.clone().unwrap_or_default().into_owned();
        }
        let reported_cost = response
            .cost_usd
            .filter(|usd| *usd < MAX_PLAUSIBLE_USD)
            .map(|usd| Cost { usd, basis: CostBasis::Reported });
        let time = response.timestamp.as_deref().and_then(|text| DateTime::parse_from_rfc3339(text).ok());
        let last_time = || self.entries.last().map(|entry| entry.responded_at);
        let entry = UsageEntry {
            // Without a time of its own it counts for the time of the one before it.
            responded_at: time.map(|time| time.timestamp()).or_else(last_time).unwrap_or(UNDATED),
            transcript_index: 0,
            cost: reported_cost.unwrap_or_else(|| tariff.list_cost(tokens)),
            tariff,
            tokens,
            is_subagent,
            is_response: true,
            is_copy: response.is_copy(),
            id_hash: response.id().map_or(0, hash_id),
        };
        match self.entries.last_mut() {
            // The lines of one response usually follow each other, and the last one has the final usage.
            Some(last_entry) if entry.id_hash != 0 && last_entry.id_hash == entry.id_hash => {
                if entry.tokens.total_tokens() >= last_entry.tokens.total_tokens() {
                    *last_entry = UsageEntry { responded_at: last_entry.responded_at, ..entry };
                }
            }
            _ => self.entries.push(entry),
        }
    }
}

fn hash_id(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish().max(1)
}

/// Removes the entries from the transcripts and returns each response once, oldest first, with its cost.
pub fn take_each_response_once(transcripts: &mut [TranscriptUsage], now: i64) -> Vec<UsageEntry> {
    let mut entries = Vec::with_capacity(transcripts.iter().map(|transcript| transcript.entries.len()).sum());
    for (index, transcript) in transcripts.iter_mut().enumerate() {
        let mut times = transcript.entries.iter().map(|entry| entry.responded_at);
        let first_time = times.find(|time| *time != UNDATED).unwrap_or(UNDATED);
        entries.extend(std::mem::take(&mut transcript.entries).into_iter().map(|entry| UsageEntry {
            responded_at: if entry.responded_at == UNDATED { first_time } else { entry.responded_at },
            transcript_index: index,
            ..entry
        }));
    }
    let copies = Copies::remove_from(&mut entries, transcripts.len());
    reported::apply_reported_costs(transcripts, &copies, &mut entries);
    entries.retain(|entry| {
        let transcript = &mut transcripts[entry.transcript_index];
        let is_in_future = entry.responded_at > now.saturating_add(MAX_CLOCK_DIFFERENCE_SECONDS);
        transcript.future_response_count += usize::from(is_in_future);
        transcript.undated_response_count += usize::from(entry.responded_at == UNDATED);
        !is_in_future && entry.responded_at != UNDATED
    });
    entries.sort_by_key(|entry| entry.responded_at);
    entries
}

/// Returns the project of a working directory: the client and `plimsoll run --workers` create worktrees inside of it.
pub fn project_of_folder(folder: &str) -> &str {
    let separators = ["/.claude/worktrees/", "\\.claude\\worktrees\\"];
    separators
        .iter()
        .find_map(|separator| folder.split_once(separator))
        .map_or(folder, |(project, _)| project)
}

#[cfg(test)]
mod tests;
