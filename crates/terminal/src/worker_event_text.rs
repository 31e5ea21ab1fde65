//! Descriptions of the events of a parallel run.

use plimsoll_domain::journal::{ItemReturned, ItemsMerged, JournalEvent, WorkerEnded, WorkerStarted};
use plimsoll_domain::text::{to_safe_single_line, truncate_end};

/// Maximum lengths of an item and of a reason in a line.
const MAX_ITEM_CHARS: usize = 60;
const MAX_REASON_CHARS: usize = 400;
/// The length of a commit id that people read, as in git's own output.
const SHORT_COMMIT_CHARS: usize = 7;

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
        "worker {}: {}{attempt_suffix}",
        event.worker_number,
        render_item(Some(event.item_number), &event.item)
    )
}

fn render_worker_ended(event: &WorkerEnded) -> String {
    let sessions = plimsoll_domain::text::count_with_noun(event.session_count as usize, "session");
    format!(
        "worker {}: \"{}\" {} ({sessions}, {})",
        event.worker_number,
        clip_item_text(&event.item),
        truncate_end(&to_safe_single_line(&event.outcome_text), MAX_REASON_CHARS),
        event.cost_basis.format_usd_of_sessions(event.cost_usd, event.session_count)
    )
}

/// Renders `merged item 3 "Parse dates" (1a2b3c4)`.
fn render_items_merged(event: &ItemsMerged) -> String {
    let numbers = event.item_numbers.iter().map(Some).chain(std::iter::repeat(None));
    let items: Vec<String> =
        event.items.iter().zip(numbers).map(|(text, number)| render_item(number.copied(), text)).collect();
    let commit: String = event.branch_head.chars().take(SHORT_COMMIT_CHARS).collect();
    format!("merged {} ({commit})", items.join(", "))
}

/// Renders `item 3 "Parse dates"`, or `"Parse dates"` if the number is unknown.
fn render_item(number: Option<usize>, text: &str) -> String {
    let quoted_text = format!("\"{}\"", clip_item_text(text));
    number
        .filter(|number| *number > 0)
        .map_or_else(|| quoted_text.clone(), |number| format!("item {number} {quoted_text}"))
}

/// Renders `item 3 "Parse dates": merge conflict in src/dates.rs; retrying on the merged branch`.
fn render_returned_item_with_next_step(event: &ItemReturned) -> String {
    let reason = truncate_end(&to_safe_single_line(&event.reason), MAX_REASON_CHARS);
    let next_step = match event.is_set_aside {
        true => "set aside",
        false if reason.starts_with("merge conflict") => "retrying on the merged branch",
        false => "retrying",
    };
    format!("{}: {reason}; {next_step}", render_item(Some(event.item_number), &event.item))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_and_conflicts_name_the_item_and_what_follows() {
        let merged = |item_numbers: Vec<usize>| {
            JournalEvent::ItemsMerged(ItemsMerged {
                items: vec!["Parse dates".into(), "Print\ndates".into()],
                item_numbers,
                branch_head: "1a2b3c4d5e6f".into(),
            })
        };
        let returned = |item_number, reason: &str, is_set_aside| {
            JournalEvent::ItemReturned(ItemReturned {
                item: "Parse dates".into(),
                item_number,
                reason: reason.into(),
                is_set_aside,
            })
        };
        for (event, expected) in [
            (merged(vec![3, 4]), "merged item 3 \"Parse dates\", item 4 \"Print dates\" (1a2b3c4)"),
            (merged(vec![]), "merged \"Parse dates\", \"Print dates\" (1a2b3c4)"),
            (
                returned(3, "merge conflict in a.rs", false),
                "item 3 \"Parse dates\": merge conflict in a.rs; retrying on the merged branch",
            ),
            (returned(0, "`make` failed", false), "\"Parse dates\": `make` failed; retrying"),
            (
                returned(3, "merge conflict in a.rs", true),
                "item 3 \"Parse dates\": merge conflict in a.rs; set aside",
            ),
        ] {
            assert_eq!(render_parallel_run_or_note_event(&event).as_deref(), Some(expected));
        }
    }
}
