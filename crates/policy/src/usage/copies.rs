//! Copies of responses in other transcripts.

use super::{UNDATED, UsageEntry};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The copies that were removed.
#[derive(Debug)]
pub(super) struct Copies {
    /// The transcript of each copy, and the hash of its id.
    removed: BTreeSet<(usize, u64)>,
    /// The time of each transcript's first response that is no copy.
    first_response_at: Vec<i64>,
    /// True for each transcript that begins with copies, also those of which the original is gone.
    has_copies: Vec<bool>,
}

impl Copies {
    /// Keeps one entry of each response, and sorts the entries by the hash of their id. A subagent's transcript can repeat what
    /// the main conversation said before it, and a forked session begins with a copy of the original. Old clients did not mark
    /// copies; there the original is the session that ended first.
    pub(super) fn remove_from(entries: &mut Vec<UsageEntry>, transcript_count: usize) -> Copies {
        let mut last_responded_at = vec![UNDATED; transcript_count];
        for entry in entries.iter() {
            let last = &mut last_responded_at[entry.transcript_index];
            *last = entry.responded_at.max(*last);
        }
        entries.sort_unstable_by_key(|entry| {
            let index = entry.transcript_index;
            (
                entry.id_hash,
                entry.is_subagent,
                entry.is_copy,
                last_responded_at[index],
                index,
                entry.responded_at,
            )
        });
        let mut copies = Copies {
            removed: BTreeSet::new(),
            first_response_at: vec![i64::MAX; transcript_count],
            has_copies: vec![false; transcript_count],
        };
        entries.dedup_by(|copy, kept| {
            let is_copy = copy.id_hash != 0 && copy.id_hash == kept.id_hash;
            if is_copy && copy.transcript_index != kept.transcript_index {
                copies.removed.insert((copy.transcript_index, copy.id_hash));
                copies.has_copies[copy.transcript_index] = true;
            }
            // While a response arrives, its lines have less than its final usage.
            if is_copy
                && copy.is_subagent == kept.is_subagent
                && copy.tokens.total_tokens() > kept.tokens.total_tokens()
            {
                (kept.tokens, kept.cost) = (copy.tokens, copy.cost);
                kept.tariff = Arc::clone(&copy.tariff);
            }
            is_copy
        });
        for entry in entries.iter() {
            let index = entry.transcript_index;
            copies.has_copies[index] |= entry.is_copy;
            copies.first_response_at[index] = copies.first_response_at[index].min(entry.responded_at);
        }
        copies
    }

    /// Returns true if this transcript has a copy of the response with this id.
    pub(super) fn contains(&self, transcript_index: usize, id_hash: u64) -> bool {
        self.removed.contains(&(transcript_index, id_hash))
    }

    /// Returns the hashes of the ids of a transcript's copies.
    pub(super) fn of_transcript(&self, transcript_index: usize) -> impl Iterator<Item = u64> {
        self.removed.range((transcript_index, 0)..=(transcript_index, u64::MAX)).map(|(_, id_hash)| *id_hash)
    }

    pub(super) fn has_copies(&self, transcript_index: usize) -> bool {
        self.has_copies[transcript_index]
    }

    /// Returns the time of a transcript's first response that is no copy, or the highest time if it has none.
    pub(super) fn first_response_at(&self, transcript_index: usize) -> i64 {
        self.first_response_at[transcript_index]
    }
}
