//! The cost of items in tokens, session by session, and the size of the files that they name.

use crate::context::measure::Measurement;
use plimsoll_domain::item_set;
use plimsoll_domain::size::{ItemCost, MeasuredItem, OpenItemCost, Size};
use plimsoll_domain::{Reading, RunState, SessionRecord, TodoList};
use plimsoll_store::{Project, disk, tail};
use std::path::Path;

/// How much the session's usage has grown since its start, or since it continued with the next item.
pub(crate) fn of_session(record: &SessionRecord, measurement: &Measurement) -> Option<u64> {
    let transcript = record.start.transcript_path.as_ref().map(Path::new);
    let start = record.continuation.as_ref().map(|offer| offer.tokens);
    let start = start.or_else(|| tail::first_fill(transcript?))?;
    Some(measurement.reading.as_ref().map(Reading::projected)?.saturating_sub(start))
}

/// Items that this iteration has ticked and that are not estimated yet.
pub(crate) fn fresh(run: &RunState, todo: &TodoList) -> Vec<String> {
    let record = &run.iteration_record;
    let measured: Vec<String> = record.reckoned.iter().map(|measured| measured.item.clone()).collect();
    item_set::without(&todo.done(), &[&record.done_before, &measured])
}

/// The session has ended, and its item is still open: what it took will be added where the item is ticked.
pub(crate) fn keep_begun(state: &mut RunState, record: &SessionRecord, todo: &TodoList, grown: Option<u64>) {
    let offered = record.continuation.as_ref().map(|offer| &offer.item);
    let item = offered.or(state.iteration_record.item.as_ref()).cloned();
    if let Some((item, tokens)) = item.zip(grown).filter(|(item, _)| todo.open().contains(item)) {
        state.note_begun(OpenItemCost { item, tokens });
    }
}

/// What was ticked together shares what the session took; each has what earlier sessions took for it besides.
pub(crate) fn note_ticked(state: &mut RunState, project: &Project, ticked: &[String], grown: Option<u64>) {
    let share = grown.unwrap_or_default() / (ticked.len() as u64).max(1);
    for item in ticked {
        let tokens = share.saturating_add(state.take_begun(item));
        // An item of unknown cost is no item that took nothing: it would make all estimates smaller.
        let cost = (tokens > 0).then(|| ItemCost { size: class_of(project, item), tokens });
        cost.into_iter().for_each(|cost| state.note_growth(cost));
        state.iteration_record.reckoned.push(MeasuredItem { item: item.clone(), cost });
    }
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
