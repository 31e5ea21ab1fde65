//! The verdict in words: what was ticked, what follows, why, and what it has cost so far.

use super::entry::Entry;
use super::sentence::Tone;
use session::text::clip;
use store::clock;

/// Endings that the verdict's own words need not name: they are as they should be, or they are the reason.
const TOLD: [&str; 9] = [
    "completed",
    "hook_stopped",
    "unknown",
    "fatal",
    "limit",
    "overloaded",
    "interrupted",
    "cancelled",
    "out_of_time",
];

/// Puts a verdict into words.
pub(super) fn verdict(entry: &Entry) -> (String, Tone) {
    let marker = entry.known("marker");
    let mut fields = marker.splitn(3, '|');
    let mut field = || fields.next().unwrap_or_default();
    let (kind, what, why) = (field(), field(), field());
    let (words, tone) = match (kind, what) {
        ("RALPH_STOP", "completed") => (because("run completed", why), Tone::Good),
        ("RALPH_STOP", status) => (because(&format!("run over ({status})"), why), Tone::Bad),
        ("RALPH_PAUSE", until) => (because(&format!("paused{}", until_words(until)), why), Tone::Bold),
        ("RALPH_CONTINUE", "refused") => (because("promise refused", why), Tone::Bad),
        ("RALPH_CONTINUE", "checkpoint") => (format!("goes on from {why}"), Tone::Bold),
        ("RALPH_CONTINUE", _) => (because("goes on", why), Tone::Bold),
        _ => (marker.clone(), Tone::Bold),
    };
    let tells_ending = kind == "RALPH_CONTINUE" && what == "next";
    let ending = if tells_ending { String::new() } else { ending(entry) };
    // An open breaker's own words count.
    let trouble = if what == "circuit_breaker" { String::new() } else { trouble(entry) };
    (format!("{}{ending}{words}{trouble}{}", ticked(entry), cost(entry)), tone)
}

fn because(words: &str, why: &str) -> String {
    if why.is_empty() { words.to_owned() } else { format!("{words}: {why}") }
}

fn until_words(until: &str) -> String {
    clock::parse(until).map(|until| format!(" until {}", clock::for_people(until))).unwrap_or_default()
}

fn ticked(entry: &Entry) -> String {
    let items: Vec<String> =
        entry.list("ticked").iter().map(|item| format!("\"{}\"", clip(item, 60))).collect();
    if items.is_empty() { String::new() } else { format!("ticked {}; ", items.join(", ")) }
}

fn ending(entry: &Entry) -> String {
    let Some(ending) = entry.part("ending") else { return String::new() };
    let word = ending.known("ending");
    if TOLD.contains(&word.as_str()) {
        return String::new();
    }
    let detail =
        ending.words("detail").map(|detail| format!(" ({})", clip(&detail, 100))).unwrap_or_default();
    match word.as_str() {
        "silent" => format!("plimsoll ended the session{detail}; "),
        _ => format!("the session ended as {word}{detail}; "),
    }
}

/// What the breaker counts.
fn trouble(entry: &Entry) -> String {
    let count = |name: &str| entry.number(name).filter(|count| *count > 1);
    let same = count("same_errors").map(|count| format!(" [the same error {count} times]"));
    let stuck = count("no_change_count").map(|count| format!(" [{count} sessions without progress]"));
    format!("{}{}", same.unwrap_or_default(), stuck.unwrap_or_default())
}

fn cost(entry: &Entry) -> String {
    entry.amount("cost_usd").map(|cost| format!(" (${cost:.2} so far)")).unwrap_or_default()
}
