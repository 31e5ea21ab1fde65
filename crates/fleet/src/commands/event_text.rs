//! Descriptions of the fleet's journal events.

use super::fleet_text::redact_and_truncate_to_line;
use crate::fleet::journal::FleetEvent;
use plimsoll_domain::text::{to_safe_single_line, truncate_end};

/// Returns the ANSI color code (SGR) of an event's line, or `None` for the default color.
pub(super) fn event_ansi_color_code(event: &FleetEvent) -> Option<&'static str> {
    match event.kind.as_str() {
        "merged" | "done" => Some("1;32"),
        "failed" | "refused" | "set_aside" | "stopped" | "lost" => Some("1;31"),
        "created" | "claimed" | "draining" | "resumed" => Some("1"),
        _ => None,
    }
}

/// Describes an event in one line. `item_text` is the item's text, if the event is about an item.
pub(super) fn describe_event_in_one_line(event: &FleetEvent, item_text: Option<&str>) -> String {
    let item_number = event.item_index.map(|index| index + 1);
    let item_label = match (item_number, item_text) {
        (Some(number), Some(text)) => {
            format!("item {number} \"{}\"", truncate_end(&to_safe_single_line(text), 60))
        }
        (Some(number), None) => format!("item {number}"),
        (None, _) => String::new(),
    };
    let worker = event.worker.as_ref().map(|worker| to_safe_single_line(worker));
    let worker_suffix = worker.as_ref().map(|worker| format!(" (worker {worker})")).unwrap_or_default();
    let detail = redact_and_truncate_to_line(&event.detail);
    let detail_suffix = if detail.is_empty() { String::new() } else { format!(": {detail}") };
    let attempt_suffix = match event.epoch {
        Some(epoch @ 2..) => format!(", attempt {epoch}"),
        _ => String::new(),
    };
    match event.kind.as_str() {
        "created" => format!("the fleet was created{detail_suffix}"),
        "claimed" => {
            format!(
                "{} started {item_label}{attempt_suffix}",
                worker.unwrap_or_else(|| "a worker".to_owned())
            )
        }
        "offered" => {
            format!(
                "{item_label} is done and waits to be merged{worker_suffix}: {}",
                short_commit(&event.detail)
            )
        }
        "given_back" => format!("{item_label} was given back{worker_suffix}{detail_suffix}"),
        "failed" => format!("{item_label} was given back after a failure{worker_suffix}{detail_suffix}"),
        "set_aside" => format!("{item_label} was set aside{worker_suffix}{detail_suffix}"),
        "reopened" => format!("{item_label} is open again"),
        "answered" => format!("the question of {item_label} was answered{detail_suffix}"),
        "merger" => format!("{detail} now merges the items"),
        "landing" => format!("{item_label} is about to be merged as {}", short_commit(&event.detail)),
        "merged" => format!("{item_label} is merged{detail_suffix}"),
        "refused" => format!("{item_label} could not be merged{detail_suffix}"),
        "paused" => format!("the fleet pauses{detail_suffix}"),
        "draining" => "the fleet is draining: no new item starts".to_owned(),
        "resumed" => "the fleet was resumed".to_owned(),
        "stopped" => "the fleet was stopped".to_owned(),
        "done" => "every item is merged".to_owned(),
        unknown_kind => describe_event_of_unknown_kind(
            &to_safe_single_line(unknown_kind),
            &item_label,
            worker.as_deref(),
            &detail_suffix,
        ),
    }
}

/// Describes an event that a newer version of Plimsoll wrote, by its worker, kind, item and detail.
fn describe_event_of_unknown_kind(
    kind: &str,
    item_label: &str,
    worker: Option<&str>,
    detail_suffix: &str,
) -> String {
    let parts = [worker.unwrap_or_default(), &kind.replace('_', " "), item_label];
    let non_empty_parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{}{detail_suffix}", non_empty_parts.join(" "))
}

fn short_commit(commit: &str) -> String {
    to_safe_single_line(commit).chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_a_sentence_and_unknown_events_are_still_described() {
        let event = |kind: &str, item: Option<usize>, epoch, worker: &str, detail: &str| FleetEvent {
            sequence_number: 1,
            occurred_at: 0,
            item_index: item,
            epoch,
            worker: Some(worker.to_owned()).filter(|worker| !worker.is_empty()),
            kind: kind.to_owned(),
            detail: detail.to_owned(),
        };
        for (event, expected) in [
            (event("created", None, None, "", "3 items"), "the fleet was created: 3 items"),
            (event("claimed", Some(0), Some(1), "a/1", ""), "a/1 started item 1 \"Parse\""),
            (event("claimed", Some(0), Some(3), "a/1", ""), "a/1 started item 1 \"Parse\", attempt 3"),
            (
                event("offered", Some(0), Some(1), "a/1", "0123456789abcdef"),
                "item 1 \"Parse\" is done and waits to be merged (worker a/1): 0123456789ab",
            ),
            (event("merged", Some(0), Some(1), "", ""), "item 1 \"Parse\" is merged"),
            (
                event("refused", Some(0), Some(1), "", "a\\nb"),
                "item 1 \"Parse\" could not be merged: a\\\\nb",
            ),
            (event("left_port", None, None, "a/1", "x"), "a/1 left port: x"),
            (event("stopped", None, None, "", ""), "the fleet was stopped"),
        ] {
            let expected = expected.replace("\\\\", "\\");
            assert_eq!(describe_event_in_one_line(&event, event.item_index.map(|_| "Parse")), expected);
        }
    }
}
