//! The fleet's journal in words.

use super::words::reason;
use crate::fleet::journal::Event;
use plimsoll_domain::text::{clip, one_line};

/// How an event sounds: the colour of its line.
pub(super) fn colour(event: &Event) -> Option<&'static str> {
    match event.kind.as_str() {
        "merged" | "done" => Some("1;32"),
        "failed" | "refused" | "set_aside" | "stopped" | "lost" => Some("1;31"),
        "created" | "claimed" | "draining" | "resumed" => Some("1"),
        _ => None,
    }
}

/// What happened. `text` is the item's, where it is about one.
pub(super) fn sentence(event: &Event, text: Option<&str>) -> String {
    let number = event.item.map(|place| place + 1);
    let item = match (number, text) {
        (Some(number), Some(text)) => format!("item {number} \"{}\"", clip(&one_line(text), 60)),
        (Some(number), None) => format!("item {number}"),
        (None, _) => String::new(),
    };
    let by = event.worker.as_ref().map(|worker| one_line(worker));
    let of_worker = by.as_ref().map(|worker| format!(" (worker {worker})")).unwrap_or_default();
    let detail = reason(&event.detail);
    let because = if detail.is_empty() { String::new() } else { format!(": {detail}") };
    let attempt = match event.epoch {
        Some(epoch @ 2..) => format!(", attempt {epoch}"),
        _ => String::new(),
    };
    match event.kind.as_str() {
        "created" => format!("the fleet was created{because}"),
        "claimed" => format!("{} began {item}{attempt}", by.unwrap_or_else(|| "a worker".to_owned())),
        "offered" => format!("{item} is done and waits to be merged{of_worker}: {}", short(&event.detail)),
        "given_back" => format!("{item} was given back{of_worker}{because}"),
        "failed" => format!("{item} was given back after a failure{of_worker}{because}"),
        "set_aside" => format!("{item} was set aside{of_worker}{because}"),
        "reopened" => format!("{item} is open again"),
        "answered" => format!("the question of {item} was answered{because}"),
        "merger" => format!("{detail} merges from here on"),
        "landing" => format!("{item} is about to be merged as {}", short(&event.detail)),
        "merged" => format!("{item} is merged{because}"),
        "refused" => format!("{item} could not be merged{because}"),
        "paused" => format!("the fleet pauses{because}"),
        "draining" => "the fleet drains: nothing new is begun".to_owned(),
        "resumed" => "the fleet goes on".to_owned(),
        "stopped" => "the fleet was stopped".to_owned(),
        "done" => "every item is merged".to_owned(),
        other => other_words(&one_line(other), &item, by.as_deref(), &because),
    }
}

/// An event of a newer version: what it is about, and what it says.
fn other_words(kind: &str, item: &str, worker: Option<&str>, because: &str) -> String {
    let about = [worker.unwrap_or_default(), &kind.replace('_', " "), item];
    let about: Vec<&str> = about.into_iter().filter(|words| !words.is_empty()).collect();
    format!("{}{because}", about.join(" "))
}

fn short(commit: &str) -> String {
    one_line(commit).chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_a_sentence_and_one_of_a_newer_version_is_still_told() {
        let event = |kind: &str, item: Option<usize>, epoch, worker: &str, detail: &str| Event {
            number: 1,
            at: 0,
            item,
            epoch,
            worker: Some(worker.to_owned()).filter(|worker| !worker.is_empty()),
            kind: kind.to_owned(),
            detail: detail.to_owned(),
        };
        for (event, expected) in [
            (event("created", None, None, "", "3 items"), "the fleet was created: 3 items"),
            (event("claimed", Some(0), Some(1), "a/1", ""), "a/1 began item 1 \"Parse\""),
            (event("claimed", Some(0), Some(3), "a/1", ""), "a/1 began item 1 \"Parse\", attempt 3"),
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
            assert_eq!(sentence(&event, event.item.map(|_| "Parse")), expected);
        }
    }
}
