//! What each item that a session ticked has added to the session's context, by the times of the ticks.
//!
//! The growth of a context is the sum over its compactions: from the first usage after one to the highest usage before the
//! next. It never shrinks, so each part of it belongs to exactly one item. Subagents' tokens do not count: estimates are made
//! for the window of the main conversation, and of a subagent only its report is there.

use crate::plan_ticks::{ticks_of_call, writes_other_file};
use plimsoll_domain::Timestamp;
use plimsoll_domain::size::MeasuredGrowth;
use plimsoll_protocol::transcript::{Block, Line};

/// Reads a transcript from where the last measurement ended, line by line.
#[derive(Debug)]
pub struct GrowthReader<'a> {
    plan_file: &'a str,
    /// Items whose ticks are looked for, in the plan's order.
    items: &'a [String],
    /// When the plan was changed last, if known: ticks that no call shows were made then at the latest.
    plan_changed_at: Option<Timestamp>,
    growth: MeasuredGrowth,
    /// Growth where reading began.
    start: u64,
    /// Message id of the response at hand.
    response: Option<String>,
    ticks: Vec<CallTick>,
    /// Index of the first tick that the response at hand has made.
    first_of_response: usize,
    /// Growth when the plan was changed last.
    plan_change: Option<u64>,
    wrote_since_tick: bool,
    wrote_since_plan_change: bool,
}

/// A tick that a call of the transcript makes.
#[derive(Debug, Clone)]
struct CallTick {
    /// None if the call does not name the item.
    item: Option<usize>,
    call_id: Option<String>,
    /// True for an edit that replaced an open box, so an earlier tick of the item did not last.
    replaces_open_box: bool,
    /// Growth after the response that makes the call.
    growth: u64,
}

/// The growth of a session's context, and where in it the items were ticked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionGrowth {
    /// Growth up to the end of what was read; its `charged` is what items were charged with before.
    pub growth: MeasuredGrowth,
    /// For each item, in the plan's order: growth at its tick.
    pub ticked_at: Vec<u64>,
    /// True if the session has written files after the last tick.
    pub wrote_since_tick: bool,
}

impl<'a> GrowthReader<'a> {
    /// A reader for the lines that come after the last measurement.
    pub fn new(
        plan_file: &'a str,
        items: &'a [String],
        plan_changed_at: Option<Timestamp>,
        growth: MeasuredGrowth,
    ) -> GrowthReader<'a> {
        GrowthReader {
            plan_file,
            items,
            plan_changed_at,
            growth,
            start: growth.tokens,
            response: None,
            ticks: Vec::new(),
            first_of_response: 0,
            plan_change: None,
            wrote_since_tick: false,
            wrote_since_plan_change: false,
        }
    }

    /// Returns true if it matters which tools this response calls, besides those that tick the plan. The line may lack its
    /// content.
    pub fn needs_calls(&self, line: &Line) -> bool {
        let is_after_tick = self.items.is_empty() || !self.ticks.is_empty();
        is_after_tick && !self.wrote_since_tick
            || !self.wrote_since_plan_change && self.is_after_plan_change(line)
    }

    fn is_after_plan_change(&self, line: &Line) -> bool {
        let at = line.timestamp.as_deref().map(Timestamp::from);
        self.plan_changed_at.as_ref().zip(at).is_some_and(|(changed, at)| *changed < at)
    }

    /// Returns true if a failed call may be one that ticked the plan.
    pub fn needs_errors(&self) -> bool {
        !self.ticks.is_empty()
    }

    /// Takes the next line of the transcript.
    pub fn read_line(&mut self, line: &Line) {
        if line.is_sidechain {
            return;
        }
        if let Some(compaction) = line.compaction() {
            // What the tools brought since the last response was in the window, too.
            if let Some(before) = compaction.pre_tokens {
                self.growth.add_usage(before);
            }
            // The client's `postTokens` leave its own prompt out (2.1.329): growth goes on from the next response's usage.
            self.growth.peak = None;
            self.response = None;
            self.first_of_response = self.ticks.len();
            return;
        }
        if line.speaks_of_usage() {
            self.read_response(line);
        } else if line.kind.as_deref() == Some("user") && self.needs_errors() {
            for result in line.message.blocks().iter().filter(|block| block.is_error) {
                self.ticks.retain(|tick| tick.call_id.is_none() || tick.call_id != result.tool_use_id);
                self.first_of_response = self.first_of_response.min(self.ticks.len());
            }
        }
    }

    /// A response has a line for each of its parts, and the last one has the figures that count.
    fn read_response(&mut self, line: &Line) {
        if line.message.id.is_none() || line.message.id != self.response {
            self.response.clone_from(&line.message.id);
            self.first_of_response = self.ticks.len();
            if self.plan_change.is_none() && self.is_after_plan_change(line) {
                self.plan_change = Some(self.growth.tokens);
            }
        }
        let usage = line.message.usage.unwrap_or_default();
        self.growth.add_usage(usage.input());
        self.growth.add_usage(usage.input().saturating_add(usage.output()));
        for call in line.message.blocks().iter().filter(|block| block.kind.as_deref() == Some("tool_use")) {
            self.read_call(call);
        }
        let growth = self.growth.tokens;
        self.ticks[self.first_of_response..].iter_mut().for_each(|tick| tick.growth = growth);
    }

    fn read_call(&mut self, call: &Block) {
        let ticks = ticks_of_call(&call.input, self.plan_file, self.items);
        if !ticks.is_empty() {
            self.wrote_since_tick = false;
        } else if writes_other_file(&call.input, self.plan_file) {
            // What one response writes and ticks belongs together.
            self.wrote_since_tick |= self.ticks.len() == self.first_of_response;
            self.wrote_since_plan_change |= self.plan_change.is_some();
        }
        self.ticks.extend(ticks.into_iter().map(|item| CallTick {
            item,
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
        let end = self.growth.tokens;
        let mut ticked_at: Vec<Option<u64>> = (0..self.items.len()).map(|item| self.named(item)).collect();
        let unnamed: Vec<u64> =
            self.ticks.iter().filter(|tick| tick.item.is_none()).map(|tick| tick.growth).collect();
        let missing = ticked_at.iter().filter(|at| at.is_none()).count();
        let mut unnamed = unnamed[unnamed.len().saturating_sub(missing)..].iter().copied();
        let mut last = None;
        for at in ticked_at.iter_mut().filter(|at| at.is_none()) {
            last = unnamed.next().or(last);
            *at = last;
        }
        // A plan that seems older than what was measured before has a time that says nothing.
        let plan_change = self.plan_change.filter(|growth| *growth > self.start);
        let mut next = plan_change.unwrap_or(end);
        let is_last_unseen = ticked_at.last().is_some_and(Option::is_none);
        let is_by_call = !is_last_unseen || ticked_at.iter().flatten().any(|at| *at > next);
        for at in ticked_at.iter_mut().rev() {
            next = *at.get_or_insert(next);
        }
        let wrote_since_tick = if is_by_call { self.wrote_since_tick } else { self.wrote_since_plan_change };
        // What the last measurement has left was written after the last tick of that one.
        let was_left = ticked_at.is_empty() && self.growth.charged < self.start;
        SessionGrowth {
            growth: self.growth,
            ticked_at: ticked_at.into_iter().flatten().collect(),
            wrote_since_tick: wrote_since_tick || was_left,
        }
    }

    fn named(&self, item: usize) -> Option<u64> {
        let mut ticks = self.ticks.iter().filter(|tick| tick.item == Some(item));
        let first = ticks.clone().next()?;
        Some(ticks.rfind(|tick| tick.replaces_open_box).unwrap_or(first).growth)
    }
}

/// The open items that a session may have worked on after its last tick.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenItems<'a> {
    /// The item that the session was last told to do, if it is open.
    pub own: Option<&'a str>,
    /// The open item that is next.
    pub next: Option<&'a str>,
}

/// What items are charged with. Together with `left` this is all of the growth that was not charged before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Charges {
    /// For each item that was ticked, in the plan's order.
    pub ticked: Vec<u64>,
    /// The open item that the session worked on last, and its tokens.
    pub open: Option<(String, u64)>,
    /// For the item that the session ticked last of those that were charged before.
    pub last_ticked_before: u64,
    /// For the next measurement.
    pub left: u64,
}

/// Charges each ticked item with the growth between the tick before it and its own; items that were ticked together share it
/// equally. What follows the last tick belongs to the open item if the session has begun that, else to the last ticked item.
pub fn charge(session: &SessionGrowth, open: OpenItems<'_>, has_ended: bool) -> Charges {
    let SessionGrowth { growth, ticked_at, wrote_since_tick } = session;
    let start = growth.charged.min(growth.tokens);
    let place_of = |item: usize| ticked_at[item].clamp(start, growth.tokens);
    let mut places: Vec<u64> = (0..ticked_at.len()).map(place_of).collect();
    let last = (0..places.len()).reduce(|last, item| if places[item] >= places[last] { item } else { last });
    let by_item = places.clone();
    places.sort_unstable();
    let mut charges = Charges { ticked: vec![0; by_item.len()], ..Charges::default() };
    let (mut taken, mut before) = (0, start);
    while let Some(at) = places.get(taken).copied() {
        let together = places[taken..].partition_point(|place| *place <= at);
        let (share, mut odd) = ((at - before) / together as u64, (at - before) % together as u64);
        for (item, _) in by_item.iter().enumerate().filter(|(_, place)| **place == at) {
            charges.ticked[item] = share + u64::from(odd > 0);
            odd = odd.saturating_sub(1);
        }
        (taken, before) = (taken + together, at);
    }
    let rest = growth.tokens - before;
    let begun =
        if *wrote_since_tick { open.own.or(open.next) } else { open.own.filter(|_| ticked_at.is_empty()) };
    match (begun, last) {
        _ if rest == 0 => {}
        (Some(_), _) if !has_ended => charges.left = rest,
        (Some(item), _) => charges.open = Some((item.to_owned(), rest)),
        (None, Some(last)) => charges.ticked[last] += rest,
        (None, None) => charges.last_ticked_before = rest,
    }
    charges
}

#[cfg(test)]
mod tests;
