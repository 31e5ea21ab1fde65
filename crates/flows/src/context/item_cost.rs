//! The cost of items in tokens, session by session, and the size of the files that they name.

use plimsoll_domain::item_set;
use plimsoll_domain::size::{ItemCost, MeasuredGrowth, MeasuredItem, OpenItemCost, Size};
use plimsoll_domain::{RunState, SessionRecord, TodoList};
use plimsoll_policy::item_growth::{GrowthReader, OpenItems, SessionGrowth, charge};
use plimsoll_policy::item_in_hand::item_in_hand;
use plimsoll_protocol::transcript::Line;
use plimsoll_store::{Project, clock, disk, tail};
use std::path::Path;

/// Items that this iteration has ticked and that are not estimated yet.
pub(crate) fn fresh(run: &RunState, todo: &TodoList) -> Vec<String> {
    let record = &run.iteration_record;
    let measured: Vec<String> = record.reckoned.iter().map(|measured| measured.item.clone()).collect();
    item_set::without(&todo.done(), &[&record.done_before, &measured])
}

/// Charges the items that the session has ticked with the growth of its context, and at its end the open item, too. Called
/// again, it changes nothing that it has recorded: growth is charged once.
pub(crate) fn record_costs(
    state: &mut RunState,
    session: &MeasuredSession<'_>,
    todo: &TodoList,
    has_ended: bool,
) {
    let ticked = fresh(state, todo);
    if ticked.is_empty() && !has_ended {
        return;
    }
    let Some(growth) = read_growth(state, session, &ticked) else {
        ticked.into_iter().for_each(|item| record_cost(state, session.project, item, 0));
        return;
    };
    let open = todo.open();
    let offered = session.record.continuation.as_ref().map(|offer| &offer.item);
    let own = offered.or(state.iteration_record.item.as_ref()).filter(|item| open.contains(item)).cloned();
    let next = item_in_hand(state).cloned();
    let charges = charge(&growth, OpenItems { own: own.as_deref(), next: next.as_deref() }, has_ended);
    if charges.last_ticked_before > 0
        && growth.growth.charged > 0
        && let Some(last) = state.iteration_record.reckoned.pop()
    {
        let tokens = state.forget_growth(&last).saturating_add(charges.last_ticked_before);
        record_cost(state, session.project, last.item, tokens);
    }
    for (item, tokens) in ticked.into_iter().zip(charges.ticked) {
        record_cost(state, session.project, item, tokens);
    }
    if let Some((item, tokens)) = charges.open {
        state.note_begun(OpenItemCost { item, tokens });
    }
    let growth = growth.growth;
    let charged = growth.charged.max(growth.tokens.saturating_sub(charges.left));
    state.iteration_record.measured_growth = MeasuredGrowth { charged, ..growth };
}

/// The session whose growth is charged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeasuredSession<'a> {
    pub(crate) project: &'a Project,
    pub(crate) record: &'a SessionRecord,
    pub(crate) transcript: Option<&'a Path>,
}

/// Reads the part of the transcript that came since the last measurement. `None` if nothing is known of the session's usage.
fn read_growth(state: &RunState, session: &MeasuredSession<'_>, ticked: &[String]) -> Option<SessionGrowth> {
    let transcript = session.transcript?;
    let mut before = state.iteration_record.measured_growth;
    if disk::size(transcript)? < before.read_bytes {
        // Another program has replaced the file: it is measured anew, and what was charged stays charged.
        before = MeasuredGrowth { charged: before.charged, ..MeasuredGrowth::default() };
    }
    let plan = state.options.todo_file.as_deref().unwrap_or_default();
    let plan_changed_at = disk::modified(&session.project.root().join(plan));
    let plan_changed_at = plan_changed_at.map(|at| clock::fine_stamp(at.into()));
    let mut reader = GrowthReader::new(plan, ticked, plan_changed_at, before);
    let read_bytes = tail::lines_from(transcript, before.read_bytes, &mut |bytes| {
        if let Some(line) = parse_needed(bytes, &reader) {
            reader.read_line(&line);
        }
    });
    let mut growth = reader.finish();
    growth.growth.read_bytes = read_bytes.ok()?;
    let is_known = growth.growth.peak.is_some() || growth.growth.tokens > 0;
    is_known.then_some(growth)
}

/// Most bytes of a transcript are results and contents that say nothing of the growth: only the parts that do are parsed.
fn parse_needed(bytes: &[u8], reader: &GrowthReader<'_>) -> Option<Line> {
    let has = |mark: &str| tail::has_mark(bytes, mark);
    if Line::MARKS.iter().any(|mark| has(mark)) {
        if has("[x") || has("[X") {
            return Line::parse(bytes);
        }
        let line = Line::parse_usage(bytes)?;
        let needs_calls = reader.needs_calls(&line) && has("\"tool_use\"");
        return if needs_calls { Line::parse(bytes) } else { Some(line) };
    }
    (reader.needs_errors() && has("\"is_error\":true")).then(|| Line::parse(bytes)).flatten()
}

/// Records what a ticked item took: in this session, and in the sessions before.
fn record_cost(state: &mut RunState, project: &Project, item: String, tokens: u64) {
    let tokens = tokens.saturating_add(state.take_begun(&item));
    // An item of unknown cost is no item that took nothing: it would make all estimates smaller.
    let cost = (tokens > 0).then(|| ItemCost { size: class_of(project, &item), tokens });
    cost.into_iter().for_each(|cost| state.note_growth(cost));
    state.iteration_record.reckoned.push(MeasuredItem { item, cost });
}

/// What it states, else what the files that it names make it.
fn class_of(project: &Project, item: &str) -> Option<Size> {
    Size::stated(item).or_else(|| lines_named(project, item).map(Size::of_lines))
}

/// No source file is longer.
const LONGEST_FILE: u64 = 4 * 1024 * 1024;

/// The lines of the files of this project that an item names.
pub fn lines_named(project: &Project, item: &str) -> Option<u64> {
    let is_name = |word: &&str| {
        word.contains('.') && !word.starts_with(['/', '~', '-']) && !word.split('/').any(|part| part == "..")
    };
    let lines = |word: &str| {
        let path = project.root().join(word);
        if disk::size(&path)? > LONGEST_FILE {
            return None;
        }
        let bytes = disk::read(&path).ok().flatten()?;
        Some(bytes.iter().filter(|byte| **byte == b'\n').count() as u64)
    };
    // What its check reads is not what it changes.
    plimsoll_domain::item_check::words(item)
        .split(|letter: char| letter.is_whitespace() || "`'\"(),;:".contains(letter))
        .map(|word| word.trim_end_matches('.'))
        .filter(is_name)
        .filter_map(lines)
        .reduce(|sum, more| sum + more)
}
