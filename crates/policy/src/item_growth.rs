//! Computes how much each item that a session ticked has added to the session's context, by the times of the ticks.
//!
//! The growth of a context is the sum over its compactions: from the first usage after one to the highest usage
//! before the next. It never shrinks, so each part of it belongs to exactly one item. Subagents' tokens do not count:
//! estimates are made for the window of the main conversation, which contains only the report of a subagent.

use crate::plan_ticks::{ticked_items_of_call, writes_other_file};
use plimsoll_domain::Timestamp;
use plimsoll_domain::size::ContextGrowth;
use plimsoll_protocol::transcript::{ContentBlock, TranscriptEntry};

/// Reads a transcript from where the last measurement ended, line by line.
#[derive(Debug)]
pub struct GrowthReader<'a> {
    plan_file: &'a str,
    /// Items whose ticks are looked for, in the plan's order.
    items: &'a [String],
    /// Time of the last change of the plan, if known. Ticks that no tool call shows were made no later than this.
    plan_changed_at: Option<Timestamp>,
    growth: ContextGrowth,
    /// Growth where reading began.
    tokens_at_start: u64,
    /// Message id of the current response.
    response_id: Option<String>,
    ticks: Vec<CallTick>,
    /// Index of the first tick that the current response has made.
    first_tick_of_response: usize,
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
    /// True for an edit that replaced an open box, so an earlier tick of the item did not last.
    replaces_open_box: bool,
    /// Growth after the response that makes the call.
    growth: u64,
}

/// The growth of a session's context, and where in it the items were ticked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionGrowth {
    /// Growth up to the end of the lines that were read, with the part that was charged to items before.
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
            tokens_at_start: growth.grown_tokens,
            response_id: None,
            ticks: Vec::new(),
            first_tick_of_response: 0,
            growth_at_plan_change: None,
            wrote_file_since_tick: false,
            wrote_file_since_plan_change: false,
        }
    }

    /// Returns true if it matters which tools this response calls, besides those that tick the plan. The line may lack its
    /// content.
    pub fn needs_tool_calls(&self, line: &TranscriptEntry) -> bool {
        let is_after_tick = self.items.is_empty() || !self.ticks.is_empty();
        is_after_tick && !self.wrote_file_since_tick
            || !self.wrote_file_since_plan_change && self.is_after_plan_change(line)
    }

    fn is_after_plan_change(&self, line: &TranscriptEntry) -> bool {
        let written_at = line.timestamp.as_deref().map(Timestamp::from);
        self.plan_changed_at
            .as_ref()
            .zip(written_at)
            .is_some_and(|(plan_changed_at, at)| *plan_changed_at < at)
    }

    /// Returns true if a failed call may be one that ticked the plan.
    pub fn needs_failed_results(&self) -> bool {
        !self.ticks.is_empty()
    }

    /// Processes the next line of the transcript.
    pub fn read_line(&mut self, line: &TranscriptEntry) {
        if line.is_sidechain {
            return;
        }
        if let Some(compaction) = line.compaction_metadata() {
            // Tool results since the last response were in the window, too.
            if let Some(tokens_before) = compaction.pre_tokens {
                self.growth.add_growth_above_peak(tokens_before);
            }
            // The client's `postTokens` leave its own prompt out (2.1.329), so growth continues from the next
            // response's usage.
            self.growth.peak_usage = None;
            self.response_id = None;
            self.first_tick_of_response = self.ticks.len();
            return;
        }
        if line.has_main_usage() {
            self.read_response(line);
        } else if line.kind.as_deref() == Some("user") && self.needs_failed_results() {
            for failed_result in line.message.blocks().iter().filter(|block| block.is_error) {
                self.ticks.retain(|tick| tick.call_id.is_none() || tick.call_id != failed_result.tool_use_id);
                self.first_tick_of_response = self.first_tick_of_response.min(self.ticks.len());
            }
        }
    }

    /// Processes one line of a response. A response has a line for each of its parts, and the figures of the last
    /// line count.
    fn read_response(&mut self, line: &TranscriptEntry) {
        if line.message.id.is_none() || line.message.id != self.response_id {
            self.response_id.clone_from(&line.message.id);
            self.first_tick_of_response = self.ticks.len();
            if self.growth_at_plan_change.is_none() && self.is_after_plan_change(line) {
                self.growth_at_plan_change = Some(self.growth.grown_tokens);
            }
        }
        let usage = line.message.usage.unwrap_or_default();
        self.growth.add_growth_above_peak(usage.total_input_tokens());
        self.growth
            .add_growth_above_peak(usage.total_input_tokens().saturating_add(usage.output_tokens_or_zero()));
        for call in line.message.blocks().iter().filter(|block| block.kind.as_deref() == Some("tool_use")) {
            self.read_call(call);
        }
        let growth = self.growth.grown_tokens;
        self.ticks[self.first_tick_of_response..].iter_mut().for_each(|tick| tick.growth = growth);
    }

    fn read_call(&mut self, call: &ContentBlock) {
        let ticks = ticked_items_of_call(&call.input, self.plan_file, self.items);
        if !ticks.is_empty() {
            self.wrote_file_since_tick = false;
        } else if writes_other_file(&call.input, self.plan_file) {
            // Files that are written and items that are ticked in one response belong together.
            self.wrote_file_since_tick |= self.ticks.len() == self.first_tick_of_response;
            self.wrote_file_since_plan_change |= self.growth_at_plan_change.is_some();
        }
        self.ticks.extend(ticks.into_iter().map(|item| CallTick {
            item_index: item,
            call_id: call.id.clone(),
            replaces_open_box: call.input.old_string.is_some(),
            growth: 0,
        }));
    }

    /// Returns the growth, and where the items were ticked.
    ///
    /// - An item that calls name: at the first of them, or at the last edit that replaced its open box.
    /// - Items that no call names: at the last calls that tick an item without naming it, in the plan's order.
    /// - Items whose ticks no call shows (a script, a subagent, the user): where the next item of the plan was ticked, with
    ///   which they share its growth; without such an item, when the plan was changed last, else at the end.
    pub fn finish(self) -> SessionGrowth {
        let growth_at_end = self.growth.grown_tokens;
        let mut growth_at_ticks: Vec<Option<u64>> =
            (0..self.items.len()).map(|item| self.growth_at_named_tick(item)).collect();
        let unnamed_tick_growth: Vec<u64> =
            self.ticks.iter().filter(|tick| tick.item_index.is_none()).map(|tick| tick.growth).collect();
        let unnamed_item_count = growth_at_ticks.iter().filter(|at| at.is_none()).count();
        let mut last_unnamed_growth = unnamed_tick_growth
            [unnamed_tick_growth.len().saturating_sub(unnamed_item_count)..]
            .iter()
            .copied();
        let mut last_growth = None;
        for growth in growth_at_ticks.iter_mut().filter(|at| at.is_none()) {
            last_growth = last_unnamed_growth.next().or(last_growth);
            *growth = last_growth;
        }
        // If the plan seems older than the last measurement, the time of its change is not usable.
        let growth_at_plan_change =
            self.growth_at_plan_change.filter(|growth| *growth > self.tokens_at_start);
        let mut growth_of_next_item = growth_at_plan_change.unwrap_or(growth_at_end);
        let is_last_tick_unseen = growth_at_ticks.last().is_some_and(Option::is_none);
        let is_last_tick_by_call =
            !is_last_tick_unseen || growth_at_ticks.iter().flatten().any(|at| *at > growth_of_next_item);
        for growth in growth_at_ticks.iter_mut().rev() {
            growth_of_next_item = *growth.get_or_insert(growth_of_next_item);
        }
        let wrote_file_since_tick =
            if is_last_tick_by_call { self.wrote_file_since_tick } else { self.wrote_file_since_plan_change };
        // Growth that the last measurement left uncharged came from files written after its last tick.
        let has_uncharged_growth =
            growth_at_ticks.is_empty() && self.growth.charged_tokens < self.tokens_at_start;
        SessionGrowth {
            growth: self.growth,
            growth_at_ticks: growth_at_ticks.into_iter().flatten().collect(),
            wrote_file_since_tick: wrote_file_since_tick || has_uncharged_growth,
        }
    }

    fn growth_at_named_tick(&self, item_index: usize) -> Option<u64> {
        let mut ticks_of_item = self.ticks.iter().filter(|tick| tick.item_index == Some(item_index));
        let first_tick = ticks_of_item.clone().next()?;
        Some(ticks_of_item.rfind(|tick| tick.replaces_open_box).unwrap_or(first_tick).growth)
    }
}

/// The open items that a session may have worked on after its last tick.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenItems<'a> {
    /// The item that the session was last told to do, if it is open.
    pub assigned: Option<&'a str>,
    /// The next open item of the plan.
    pub next_in_plan: Option<&'a str>,
}

/// The tokens charged to items. Together with the tokens left for later they are all of the growth that was not
/// charged before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ItemCharges {
    /// Tokens of each ticked item, in the plan's order.
    pub tokens_by_ticked_item: Vec<u64>,
    /// The open item that the session worked on last, and its tokens.
    pub open_item_tokens: Option<(String, u64)>,
    /// Tokens of the item that the session ticked last among those that were charged before.
    pub previous_item_tokens: u64,
    /// Tokens that are left for the next measurement.
    pub uncharged_tokens: u64,
}

/// Charges each ticked item with the growth between the previous tick and its own; items that were ticked together
/// share it equally. Growth after the last tick belongs to the open item if the session has begun that item, else to
/// the last ticked item.
pub fn charge_items(
    session_growth: &SessionGrowth,
    open_items: OpenItems<'_>,
    has_session_ended: bool,
) -> ItemCharges {
    let SessionGrowth { growth, growth_at_ticks, wrote_file_since_tick } = session_growth;
    let charged_before = growth.charged_tokens.min(growth.grown_tokens);
    let growth_at_tick_of = |item: usize| growth_at_ticks[item].clamp(charged_before, growth.grown_tokens);
    let mut sorted_ticks: Vec<u64> = (0..growth_at_ticks.len()).map(growth_at_tick_of).collect();
    let last_ticked_item = (0..sorted_ticks.len())
        .reduce(|last, item| if sorted_ticks[item] >= sorted_ticks[last] { item } else { last });
    let ticks_by_item = sorted_ticks.clone();
    sorted_ticks.sort_unstable();
    let mut charges =
        ItemCharges { tokens_by_ticked_item: vec![0; ticks_by_item.len()], ..ItemCharges::default() };
    let (mut charged_count, mut previous_tick) = (0, charged_before);
    while let Some(current_tick) = sorted_ticks.get(charged_count).copied() {
        let tied_count = sorted_ticks[charged_count..].partition_point(|place| *place <= current_tick);
        let (share, mut remainder) = (
            (current_tick - previous_tick) / tied_count as u64,
            (current_tick - previous_tick) % tied_count as u64,
        );
        for (item, _) in ticks_by_item.iter().enumerate().filter(|(_, place)| **place == current_tick) {
            charges.tokens_by_ticked_item[item] = share + u64::from(remainder > 0);
            remainder = remainder.saturating_sub(1);
        }
        (charged_count, previous_tick) = (charged_count + tied_count, current_tick);
    }
    let growth_after_last_tick = growth.grown_tokens - previous_tick;
    let begun_item = if *wrote_file_since_tick {
        open_items.assigned.or(open_items.next_in_plan)
    } else {
        open_items.assigned.filter(|_| growth_at_ticks.is_empty())
    };
    match (begun_item, last_ticked_item) {
        _ if growth_after_last_tick == 0 => {}
        (Some(_), _) if !has_session_ended => charges.uncharged_tokens = growth_after_last_tick,
        (Some(item), _) => charges.open_item_tokens = Some((item.to_owned(), growth_after_last_tick)),
        (None, Some(ticked_item)) => charges.tokens_by_ticked_item[ticked_item] += growth_after_last_tick,
        (None, None) => charges.previous_item_tokens = growth_after_last_tick,
    }
    charges
}

#[cfg(test)]
mod tests;
