//! What the command says of the events of a parallel run.

use plimsoll_domain::journal::{JournalEvent, Landed, SentBack, WorkerBegan, WorkerEnded};
use plimsoll_domain::text::{clip, one_line};

/// How much of an item and of a reason stands on a line.
const ITEM: usize = 60;
const REASON: usize = 400;

/// An event of a parallel run in a line; none for any other.
pub fn words(event: &JournalEvent) -> Option<String> {
    if let JournalEvent::WorkerBegan(event) = event {
        Some(began(event))
    } else if let JournalEvent::WorkerEnded(event) = event {
        Some(ended(event))
    } else if let JournalEvent::Landed(event) = event {
        Some(landed(event))
    } else if let JournalEvent::SentBack(event) = event {
        Some(sent_back(event))
    } else if let JournalEvent::Note { words } = event {
        Some(one_line(words))
    } else {
        None
    }
}

fn item(item: &str) -> String {
    clip(&one_line(item), ITEM)
}

fn began(event: &WorkerBegan) -> String {
    let again = if event.attempt > 1 { format!(" (attempt {})", event.attempt) } else { String::new() };
    format!("worker {}: item {}, \"{}\"{again}", event.worker, event.number, item(&event.item))
}

fn ended(event: &WorkerEnded) -> String {
    let sessions = plimsoll_domain::text::counted(event.sessions as usize, "session");
    format!(
        "worker {}: \"{}\" {} ({sessions}, {})",
        event.worker,
        item(&event.item),
        clip(&one_line(&event.how), REASON),
        event.cost_basis.format_usd(event.cost_usd)
    )
}

fn landed(event: &Landed) -> String {
    let items: Vec<String> = event.items.iter().map(|text| format!("\"{}\"", item(text))).collect();
    format!("merged: {} ({})", items.join(", "), event.commit.chars().take(12).collect::<String>())
}

fn sent_back(event: &SentBack) -> String {
    let then = if event.is_set_aside { "set aside" } else { "to be tried again" };
    format!("\"{}\" {then}: {}", item(&event.item), clip(&one_line(&event.reason), REASON))
}
