//! Computes how many tokens each item that a session ticked has added to the session's context, from the positions of the
//! ticks.
//!
//! The growth of a context is summed over its compactions: from the first usage after one to the highest usage before the
//! next. It never shrinks, so each part of it belongs to exactly one item. Tokens of subagents do not count: estimates
//! refer to the window of the main conversation, which contains only the report of a subagent.

use crate::plan_ticks::{indexes_of_items_ticked_by_call, writes_file_other_than_plan};
use plimsoll_domain::Timestamp;
use plimsoll_domain::size::ContextGrowth;
use plimsoll_protocol::transcript::{ContentBlock, TranscriptEntry};

/// Reads a transcript from where the last measurement ended, line by line.
#[derive(Debug)]
pub struct GrowthReader<'a> {
    plan_file: &'a str,
    /// The items to look for, in the plan's order.
    items: &'a [String],
    /// Time of the last change of the plan, if available. Ticks that no tool call shows were made no later than this.
    plan_changed_at: Option<Timestamp>,
    growth: ContextGrowth,
    /// Growth at the start of reading.
    growth_at_start: u64,
    /// Message id of the current response.
    response_id: Option<String>,
    ticks: Vec<CallTick>,
    /// Index of the first tick that the current response has made.
    first_tick_index_of_response: usize,
    /// Growth at the last change of the plan.
    growth_at_plan_change: Option<u64>,
    wrote_file_since_tick: bool,
    wrote_file_since_plan_change: bool,
}

/// A tick made by a tool call in the transcript.
#[derive(Debug, Clone)]
struct CallTick {
    /// `None` if the call does not name the item.
    item_index: Option<usize>,
    call_id: Option<String>,
    /// True for an edit that replaced an unticked checkbox. In that case an earlier tick of the item was
    /// undone before.
    replaces_unticked_checkbox: bool,
    /// Growth after the response that makes the call.
    growth: u64,
}

/// The growth of a session's context, with its value at the tick of each item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionGrowth {
    /// Growth at the end of the lines that were read, and the part of it that is already attributed to items.
    pub growth: ContextGrowth,
    /// Growth at the tick of each item, in the plan's order.
    pub growth_at_ticks: Vec<u64>,
    /// True if the session has written files after the last tick.
    pub wrote_file_since_tick: bool,
}

impl<'a> GrowthReader<'a> {
    /// Creates a reader for the lines after the last measurement.
    pub fn new(
        plan_file: &'a str,
        items: &'a [String],
        plan_changed_at: Option<Timestamp>,
        growth: ContextGrowth,
    ) -> GrowthReader<'a> {
        GrowthReader {
            plan_file,
            items,
            plan_changed_at,
            growth,
            growth_at_start: growth.growth_tokens,
            response_id: None,
            ticks: Vec::new(),
            first_tick_index_of_response: 0,
            growth_at_plan_change: None,
            wrote_file_since_tick: false,
            wrote_file_since_plan_change: false,
        }
    }

    /// Returns true if the caller must load all tool calls of this response, not only those that tick the plan. `entry`
    /// may lack its content.
    pub fn needs_tool_calls(&self, entry: &TranscriptEntry) -> bool {
        let is_after_tick = self.items.is_empty() || !self.ticks.is_empty();
        is_after_tick && !self.wrote_file_since_tick
            || !self.wrote_file_since_plan_change && self.is_entry_known_to_follow_plan_change(entry)
    }

    fn is_entry_known_to_follow_plan_change(&self, entry: &TranscriptEntry) -> bool {
        let written_at = entry.timestamp.as_deref().map(Timestamp::from);
        self.plan_changed_at
            .as_ref()
            .zip(written_at)
            .is_some_and(|(plan_changed_at, entry_time)| *plan_changed_at < entry_time)
    }

    /// Returns true if the caller must load failed tool results, because a failed call may be one that ticked the plan.
    pub fn needs_failed_results(&self) -> bool {
        !self.ticks.is_empty()
    }

    /// Processes the next line of the transcript.
    pub fn record_growth_and_ticks_dropping_failed(&mut self, entry: &TranscriptEntry) {
        if entry.is_sidechain {
            return;
        }
        if let Some(compaction) = entry.compaction_metadata() {
            // Tool results since the last response were in the window, too.
            if let Some(tokens_before) = compaction.pre_tokens {
                self.growth.add_growth_above_peak(tokens_before);
            }
            // The client's `postTokens` leave its own prompt out (2.1.329), so growth continues from the next
            // response's usage.
            self.growth.peak_usage = None;
            self.response_id = None;
            self.first_tick_index_of_response = self.ticks.len();
            return;
        }
        if entry.has_nonzero_main_conversation_usage() {
            self.record_response_growth_and_ticks(entry);
        } else if entry.kind.as_deref() == Some("user") && self.needs_failed_results() {
            for failed_result in entry.message.blocks().iter().filter(|block| block.is_error) {
                self.ticks.retain(|tick| tick.call_id.is_none() || tick.call_id != failed_result.tool_use_id);
                self.first_tick_index_of_response = self.first_tick_index_of_response.min(self.ticks.len());
            }
        }
    }

    /// Adds the growth of a response and the ticks that it makes. Each content block of a response has its own line; the
    /// usage on the last line counts.
    fn record_response_growth_and_ticks(&mut self, entry: &TranscriptEntry) {
        if entry.message.id.is_none() || entry.message.id != self.response_id {
            self.response_id.clone_from(&entry.message.id);
            self.first_tick_index_of_response = self.ticks.len();
            if self.growth_at_plan_change.is_none() && self.is_entry_known_to_follow_plan_change(entry) {
                self.growth_at_plan_change = Some(self.growth.growth_tokens);
            }
        }
        let usage = entry.message.usage.unwrap_or_default();
        self.growth.add_growth_above_peak(usage.total_input_tokens());
        self.growth
            .add_growth_above_peak(usage.total_input_tokens().saturating_add(usage.output_tokens_or_zero()));
        for call in entry.message.blocks().iter().filter(|block| block.kind.as_deref() == Some("tool_use")) {
            self.record_ticks_and_file_writes(call);
        }
        let growth = self.growth.growth_tokens;
        self.ticks[self.first_tick_index_of_response..].iter_mut().for_each(|tick| tick.growth = growth);
    }

    fn record_ticks_and_file_writes(&mut self, call: &ContentBlock) {
        let ticked_item_indexes = indexes_of_items_ticked_by_call(&call.input, self.plan_file, self.items);
        if !ticked_item_indexes.is_empty() {
            self.wrote_file_since_tick = false;
        } else if writes_file_other_than_plan(&call.input, self.plan_file) {
            // A file written in the same response as a tick belongs to the ticked item.
            self.wrote_file_since_tick |= self.ticks.len() == self.first_tick_index_of_response;
            self.wrote_file_since_plan_change |= self.growth_at_plan_change.is_some();
        }
        self.ticks.extend(ticked_item_indexes.into_iter().map(|item_index| CallTick {
            item_index,
            call_id: call.id.clone(),
            replaces_unticked_checkbox: call.input.old_string.is_some(),
            growth: 0,
        }));
    }

    /// Returns the growth, with its value at the tick of each item:
    ///
    /// - If calls name the item: at the first of these calls, or at the last edit that replaced its open box.
    /// - If no call names the item: at one of the last calls that tick an item without naming it, in the plan's order.
    /// - If no call shows the tick (it was made by a script, a subagent or the user): at the tick of the next item in the
    ///   plan, with which the item shares the growth. Without a next item, at the last change of the plan, otherwise at
    ///   the end.
    pub fn into_session_growth_inferring_missing_ticks(self) -> SessionGrowth {
        let growth_at_end = self.growth.growth_tokens;
        let mut growth_at_ticks: Vec<Option<u64>> =
            (0..self.items.len()).map(|item_index| self.growth_at_tick_naming_item(item_index)).collect();
        let growth_at_unnamed_ticks: Vec<u64> =
            self.ticks.iter().filter(|tick| tick.item_index.is_none()).map(|tick| tick.growth).collect();
        let unnamed_item_count = growth_at_ticks.iter().filter(|growth| growth.is_none()).count();
        let mut last_unnamed_tick_growths = growth_at_unnamed_ticks
            [growth_at_unnamed_ticks.len().saturating_sub(unnamed_item_count)..]
            .iter()
            .copied();
        let mut last_growth = None;
        for growth in growth_at_ticks.iter_mut().filter(|growth| growth.is_none()) {
            last_growth = last_unnamed_tick_growths.next().or(last_growth);
            *growth = last_growth;
        }
        // If the plan seems older than the last measurement, the time of its change cannot be used.
        let growth_at_plan_change =
            self.growth_at_plan_change.filter(|growth| *growth > self.growth_at_start);
        let mut growth_at_next_tick = growth_at_plan_change.unwrap_or(growth_at_end);
        let lacks_call_for_last_item = growth_at_ticks.last().is_some_and(Option::is_none);
        let was_latest_tick_made_by_call = !lacks_call_for_last_item
            || growth_at_ticks.iter().flatten().any(|growth| *growth > growth_at_next_tick);
        for growth in growth_at_ticks.iter_mut().rev() {
            growth_at_next_tick = *growth.get_or_insert(growth_at_next_tick);
        }
        let wrote_file_since_tick = if was_latest_tick_made_by_call {
            self.wrote_file_since_tick
        } else {
            self.wrote_file_since_plan_change
        };
        // Growth left unattributed by the last measurement came from files written after its last tick.
        let has_unattributed_growth =
            growth_at_ticks.is_empty() && self.growth.attributed_tokens < self.growth_at_start;
        SessionGrowth {
            growth: self.growth,
            growth_at_ticks: growth_at_ticks.into_iter().flatten().collect(),
            wrote_file_since_tick: wrote_file_since_tick || has_unattributed_growth,
        }
    }

    fn growth_at_tick_naming_item(&self, item_index: usize) -> Option<u64> {
        let mut ticks_of_item = self.ticks.iter().filter(|tick| tick.item_index == Some(item_index));
        let first_tick = ticks_of_item.clone().next()?;
        Some(ticks_of_item.rfind(|tick| tick.replaces_unticked_checkbox).unwrap_or(first_tick).growth)
    }
}

/// The open items on which a session may have worked after its last tick.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenItems<'a> {
    /// The item that was last assigned to the session, if it is open.
    pub assigned: Option<&'a str>,
    /// The next open item of the plan.
    pub next_in_plan: Option<&'a str>,
}

/// The tokens attributed to items. Together with `unattributed_tokens` they add up to the growth that was not
/// attributed before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ItemAttribution {
    /// Tokens of each ticked item, in the plan's order.
    pub tokens_by_ticked_item: Vec<u64>,
    /// The open item that the session worked on last, and its tokens.
    pub open_item_tokens: Option<(String, u64)>,
    /// Tokens for the item that the session ticked last before this measurement.
    pub previous_item_tokens: u64,
    /// Tokens left for the next measurement.
    pub unattributed_tokens: u64,
}

/// Attributes to each ticked item the growth between the previous tick and its own; items ticked together
/// share it equally. Growth after the last tick belongs to the open item if the session has started that
/// item, otherwise to the item that was ticked last. While the session is running, growth of an open
/// item stays unattributed.
pub fn attribute_growth_between_ticks_to_items(
    session_growth: &SessionGrowth,
    open_items: OpenItems<'_>,
    has_session_ended: bool,
) -> ItemAttribution {
    let SessionGrowth { growth, growth_at_ticks, wrote_file_since_tick } = session_growth;
    let attributed_before = growth.attributed_tokens.min(growth.growth_tokens);
    let clamped_growth_at_tick =
        |item_index: usize| growth_at_ticks[item_index].clamp(attributed_before, growth.growth_tokens);
    let mut sorted_tick_growths: Vec<u64> = (0..growth_at_ticks.len()).map(clamped_growth_at_tick).collect();
    let last_ticked_item_index = (0..sorted_tick_growths.len()).reduce(|last_index, item_index| {
        if sorted_tick_growths[item_index] >= sorted_tick_growths[last_index] {
            item_index
        } else {
            last_index
        }
    });
    let growth_at_tick_by_item = sorted_tick_growths.clone();
    sorted_tick_growths.sort_unstable();
    let mut attribution = ItemAttribution {
        tokens_by_ticked_item: vec![0; growth_at_tick_by_item.len()],
        ..ItemAttribution::default()
    };
    let (mut attributed_item_count, mut previous_tick_growth) = (0, attributed_before);
    while let Some(current_tick_growth) = sorted_tick_growths.get(attributed_item_count).copied() {
        let tied_item_count = sorted_tick_growths[attributed_item_count..]
            .partition_point(|tick_growth| *tick_growth <= current_tick_growth);
        let (share, mut remainder) = (
            (current_tick_growth - previous_tick_growth) / tied_item_count as u64,
            (current_tick_growth - previous_tick_growth) % tied_item_count as u64,
        );
        for (item_index, _) in growth_at_tick_by_item
            .iter()
            .enumerate()
            .filter(|(_, tick_growth)| **tick_growth == current_tick_growth)
        {
            attribution.tokens_by_ticked_item[item_index] = share + u64::from(remainder > 0);
            remainder = remainder.saturating_sub(1);
        }
        (attributed_item_count, previous_tick_growth) =
            (attributed_item_count + tied_item_count, current_tick_growth);
    }
    let growth_after_last_tick = growth.growth_tokens - previous_tick_growth;
    let item_in_progress = if *wrote_file_since_tick {
        open_items.assigned.or(open_items.next_in_plan)
    } else {
        open_items.assigned.filter(|_| growth_at_ticks.is_empty())
    };
    match (item_in_progress, last_ticked_item_index) {
        _ if growth_after_last_tick == 0 => {}
        (Some(_), _) if !has_session_ended => attribution.unattributed_tokens = growth_after_last_tick,
        (Some(item), _) => attribution.open_item_tokens = Some((item.to_owned(), growth_after_last_tick)),
        (None, Some(ticked_item_index)) => {
            attribution.tokens_by_ticked_item[ticked_item_index] += growth_after_last_tick;
        }
        (None, None) => attribution.previous_item_tokens = growth_after_last_tick,
    }
    attribution
}

#[cfg(test)]
mod tests;
