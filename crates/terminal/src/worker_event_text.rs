//! Descriptions of the events of a parallel run.

use plimsoll_domain::journal::{ItemReturned, ItemsMerged, JournalEvent, WorkerEnded, WorkerStarted};
use plimsoll_domain::text::{to_safe_single_line, truncate_end};

/// Maximum lengths of an item and of a reason in a line.
const MAX_ITEM_CHARS: usize = 60;
const MAX_REASON_CHARS: usize = 400;

/// Describes an event of a parallel run, or a note, in one line. Returns `None` for any other event.
pub fn render_parallel_run_or_note_event(event: &JournalEvent) -> Option<String> {
    if let JournalEvent::WorkerBegan(event) = event {
        Some(render_worker_started(event))
    } else if let JournalEvent::WorkerEnded(event) = event {
        Some(render_worker_ended(event))
    } else if let JournalEvent::ItemsMerged(event) = event {
        Some(render_items_merged(event))
    } else if let JournalEvent::ItemReturned(event) = event {
        Some(render_returned_item_with_next_step(event))
    } else if let JournalEvent::Note { text } = event {
        Some(to_safe_single_line(text))
    } else {
        None
    }
}

fn clip_item_text(item_text: &str) -> String {
    truncate_end(&to_safe_single_line(item_text), MAX_ITEM_CHARS)
}

fn render_worker_started(event: &WorkerStarted) -> String {
    let attempt_suffix =
        if event.attempt_number > 1 { format!(" (attempt {})", event.attempt_number) } else { String::new() };
    format!(
        "worker {}: item {}, \"{}\"{attempt_suffix}",
        event.worker_number,
        event.item_number,
        clip_item_text(&event.item)
    )
}

fn render_worker_ended(event: &WorkerEnded) -> String {
    let sessions = plimsoll_domain::text::count_with_noun(event.session_count as usize, "session");
    format!(
        "worker {}: \"{}\" {} ({sessions}, {})",
        event.worker_number,
        clip_item_text(&event.item),
        truncate_end(&to_safe_single_line(&event.outcome_text), MAX_REASON_CHARS),
        event.cost_basis.format_usd(event.cost_usd)
    )
}

fn render_items_merged(event: &ItemsMerged) -> String {
    let items: Vec<String> = event.items.iter().map(|text| format!("\"{}\"", clip_item_text(text))).collect();
    format!("merged: {} ({})", items.join(", "), event.branch_head.chars().take(12).collect::<String>())
}

fn render_returned_item_with_next_step(event: &ItemReturned) -> String {
    let next_step = if event.is_set_aside { "set aside" } else { "to be tried again" };
    format!(
        "\"{}\" {next_step}: {}",
        clip_item_text(&event.item),
        truncate_end(&to_safe_single_line(&event.reason), MAX_REASON_CHARS)
    )
}
