//! The cost of items in tokens, charged session by session, and the size of the files that items name.

use plimsoll_domain::item_set;
use plimsoll_domain::size::{ContextGrowth, ItemCost, ItemSize, MeasuredItem, OpenItemCost};
use plimsoll_domain::{RunState, SessionRecord, TodoList};
use plimsoll_policy::current_item::current_unparked_item;
use plimsoll_policy::item_growth::{
    GrowthReader, OpenItems, SessionGrowth, attribute_growth_between_ticks_to_items,
};
use plimsoll_protocol::transcript::TranscriptEntry;
use plimsoll_store::{Project, clock, disk, tail};
use std::path::Path;

/// Returns the items that this iteration has ticked and whose cost is not recorded yet.
pub(crate) fn ticked_items_without_recorded_cost(run: &RunState, plan: &TodoList) -> Vec<String> {
    let record = &run.iteration_record;
    let measured_items: Vec<String> =
        record.measured_items.iter().map(|measured| measured.item.clone()).collect();
    item_set::items_not_in(&plan.ticked_items(), &[&record.ticked_before_iteration, &measured_items])
}

/// Charges the growth of the session's context to the items that it has ticked and, when the session has
/// ended, to the open item. Does nothing if no item was ticked and the session has not ended. May be called
/// repeatedly: growth is charged only once.
pub(crate) fn charge_growth_to_items_at_tick_or_session_end(
    state: &mut RunState,
    session: &MeasuredSession<'_>,
    plan: &TodoList,
    session_has_ended: bool,
) {
    let ticked_items = ticked_items_without_recorded_cost(state, plan);
    if ticked_items.is_empty() && !session_has_ended {
        return;
    }
    let Some(session_growth) = read_growth_since_last_measurement(state, session, &ticked_items) else {
        ticked_items
            .into_iter()
            .for_each(|item| record_total_cost_of_ticked_item(state, session.project, item, 0));
        return;
    };
    let open_items = plan.open_items();
    let continuation_item = session.record.continuation.as_ref().map(|notice| &notice.item);
    let assigned_item = continuation_item
        .or(state.iteration_record.item.as_ref())
        .filter(|item| open_items.contains(item))
        .cloned();
    let next_in_plan = current_unparked_item(state).cloned();
    let attribution = attribute_growth_between_ticks_to_items(
        &session_growth,
        OpenItems { assigned: assigned_item.as_deref(), next_in_plan: next_in_plan.as_deref() },
        session_has_ended,
    );
    if attribution.previous_item_tokens > 0
        && session_growth.growth.attributed_tokens > 0
        && let Some(last_measured) = state.iteration_record.measured_items.pop()
    {
        let tokens = state
            .remove_item_cost_returning_tokens(&last_measured)
            .saturating_add(attribution.previous_item_tokens);
        record_total_cost_of_ticked_item(state, session.project, last_measured.item, tokens);
    }
    for (item, tokens) in ticked_items.into_iter().zip(attribution.tokens_by_ticked_item) {
        record_total_cost_of_ticked_item(state, session.project, item, tokens);
    }
    if let Some((item, tokens)) = attribution.open_item_tokens {
        state.add_open_item_cost_and_drop_closed(OpenItemCost { item, tokens });
    }
    let context_growth = session_growth.growth;
    let charged_tokens = context_growth
        .attributed_tokens
        .max(context_growth.growth_tokens.saturating_sub(attribution.unattributed_tokens));
    state.iteration_record.context_growth =
        ContextGrowth { attributed_tokens: charged_tokens, ..context_growth };
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct MeasuredSession<'a> {
    pub(crate) project: &'a Project,
    pub(crate) record: &'a SessionRecord,
    pub(crate) transcript_path: Option<&'a Path>,
}

/// Reads the part of the transcript that was written since the last measurement. Returns `None` if the
/// session's usage is unknown.
fn read_growth_since_last_measurement(
    state: &RunState,
    session: &MeasuredSession<'_>,
    ticked_items: &[String],
) -> Option<SessionGrowth> {
    let transcript = session.transcript_path?;
    let mut previous_growth = state.iteration_record.context_growth;
    if disk::file_size(transcript)? < previous_growth.read_bytes {
        // Another program has replaced the file, so it is read from the start; tokens already charged stay
        // charged.
        previous_growth = ContextGrowth {
            attributed_tokens: previous_growth.attributed_tokens,
            ..ContextGrowth::default()
        };
    }
    let plan_path = state.options.todo_file.as_deref().unwrap_or_default();
    let plan_changed_at = disk::modified_at(&session.project.root().join(plan_path));
    let plan_changed_at = plan_changed_at.map(|time| clock::to_millis_timestamp(time.into()));
    let mut reader = GrowthReader::new(plan_path, ticked_items, plan_changed_at, previous_growth);
    let read_bytes = tail::visit_lines_and_partial_from_resume_offset(
        transcript,
        previous_growth.read_bytes,
        &mut |bytes| {
            if let Some(line) = parse_line_if_relevant_to_growth(bytes, &reader) {
                reader.record_growth_and_ticks_dropping_failed(&line);
            }
        },
    );
    let mut session_growth = reader.into_session_growth_inferring_missing_ticks();
    session_growth.growth.read_bytes = read_bytes.ok()?;
    let has_usage = session_growth.growth.peak_usage.is_some() || session_growth.growth.growth_tokens > 0;
    has_usage.then_some(session_growth)
}

/// Parses a line only if it affects the growth, and only the parts that do: most of a transcript consists of
/// results and file contents.
fn parse_line_if_relevant_to_growth(bytes: &[u8], reader: &GrowthReader<'_>) -> Option<TranscriptEntry> {
    let contains = |marker: &str| tail::contains_marker(bytes, marker);
    if TranscriptEntry::USAGE_MARKERS.iter().any(|marker| contains(marker)) {
        if contains("[x") || contains("[X") {
            return TranscriptEntry::parse(bytes);
        }
        let line = TranscriptEntry::parse_usage_only(bytes)?;
        let needs_calls = reader.needs_tool_calls(&line) && contains("\"tool_use\"");
        return if needs_calls { TranscriptEntry::parse(bytes) } else { Some(line) };
    }
    (reader.needs_failed_results() && contains("\"is_error\":true"))
        .then(|| TranscriptEntry::parse(bytes))
        .flatten()
}

/// Records the tokens that a ticked item took in this session and in earlier ones.
fn record_total_cost_of_ticked_item(state: &mut RunState, project: &Project, item: String, tokens: u64) {
    let tokens = tokens.saturating_add(state.remove_open_item_tokens(&item));
    // An item of unknown cost must not count as free: that would lower all estimates.
    let cost = (tokens > 0).then(|| ItemCost { size: item_size(project, &item), tokens });
    cost.into_iter().for_each(|cost| state.record_item_cost(cost));
    state.iteration_record.measured_items.push(MeasuredItem { item, cost });
}

/// Returns the size that the item states, otherwise the size derived from the files that it names.
fn item_size(project: &Project, item: &str) -> Option<ItemSize> {
    ItemSize::parse_from_item(item)
        .or_else(|| count_lines_of_named_files(project, item).map(ItemSize::from_line_count))
}

/// Larger files are not source files and are not counted.
const MAX_SOURCE_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Counts the lines of the project's files that an item names.
pub fn count_lines_of_named_files(project: &Project, item: &str) -> Option<u64> {
    let may_be_file_name = |word: &&str| {
        word.contains('.') && !word.starts_with(['/', '~', '-']) && !word.split('/').any(|part| part == "..")
    };
    let count_lines = |word: &str| {
        let path = project.root().join(word);
        if disk::file_size(&path)? > MAX_SOURCE_FILE_BYTES {
            return None;
        }
        let bytes = disk::read(&path).ok().flatten()?;
        Some(bytes.iter().filter(|byte| **byte == b'\n').count() as u64)
    };
    // The verify command is excluded, because the item does not change the files that it reads.
    plimsoll_domain::item_check::text_before_verify_command(item)
        .split(|character: char| character.is_whitespace() || "`'\"(),;:".contains(character))
        .map(|word| word.trim_end_matches('.'))
        .filter(may_be_file_name)
        .filter_map(count_lines)
        .reduce(|sum, line_count| sum + line_count)
}
