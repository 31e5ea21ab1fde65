//! The notes for Linear, and how long after a failure delivery is retried. Words of the agent and of the plan go
//! into Markdown as letters: nothing in them becomes a heading, a link, or an image that a browser fetches.

use plimsoll_domain::linear::{Note, NoteKind, folded};
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::text::{clip, counted, one_line, tokens};
use plimsoll_domain::{RunState, Verdict};

/// Longer comments are not read; Linear's own limit is a multiple of this.
pub const LONGEST_BODY: usize = 20_000;
/// What is left of an old note when the room is needed.
const SHORTENED: usize = 120;
/// An item is one line of a list.
const LONGEST_ITEM: usize = 160;
/// How many finished items are named at most.
const ITEMS_NAMED: usize = 5;
/// The session's own notes, cut to what the next session is told.
const LONGEST_CLAIM: usize = 600;
/// The first failure of a night is mostly a moment's; later ones last.
const FIRST_SECONDS: u64 = 60;
/// A network that is away for the night is asked twice an hour.
const LONGEST_SECONDS: u64 = 1_800;

/// Removes from foreign text what must not leave this machine.
pub type Clean<'a> = &'a dyn Fn(&str) -> String;

/// What is said about the last checkpoint of a run.
pub fn checkpoint(state: &RunState, clean: Clean<'_>) -> String {
    let checkpoint = &state.context_checkpoint;
    let at = checkpoint.percent_at_checkpoint.map(|percent| format!(" at {percent} %")).unwrap_or_default();
    let said = |name: &str, words: &str| match words {
        "" | "unknown" => String::new(),
        // The full stop is ours.
        words => format!(" {name}: {}.", line(words, LONGEST_CLAIM, clean).trim_end_matches('.')),
    };
    let quoted = |item: &str| format!("“{}”", line(item, LONGEST_ITEM, clean));
    let finished: Vec<String> =
        checkpoint.item_work.finished.iter().take(ITEMS_NAMED).map(|item| quoted(item)).collect();
    let rest = checkpoint.item_work.finished.len().saturating_sub(finished.len());
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let finished = match finished.as_slice() {
        [] => String::new(),
        items => format!(" Finished: {}{more}.", items.join(", ")),
    };
    let item = match (checkpoint.current_todo_item.as_str(), checkpoint.item_work.is_begun) {
        ("", _) => String::new(),
        (item, true) => format!(" Current item: {}.", quoted(item)),
        (item, false) => format!(" Next item: {}.", quoted(item)),
    };
    let handoff = match checkpoint.handoff_file.as_str() {
        "" => String::new(),
        file => format!(" Handoff: {}", line(file, LONGEST_ITEM, clean)),
    };
    format!(
        "checkpoint ({}, {}{at}).{finished}{item}{}{}{} {}.{handoff}",
        checkpoint.cause.shown_word(),
        checkpoint.level,
        said("Progress", &checkpoint.progress_on_item),
        said("Summary", &checkpoint.resume_summary),
        said("Next step", &checkpoint.next_step),
        items(state),
    )
}

/// What is said about the questions that the current iteration asked.
pub fn questions(state: &RunState, clean: Clean<'_>) -> String {
    let asked: Vec<&OpenQuestion> = state.asked_now().collect();
    let words = |one: &&OpenQuestion| {
        let question = line(&one.question, LONGEST_CLAIM, clean);
        format!("“{}” waits for an answer: {question}", line(&one.item, LONGEST_ITEM, clean))
    };
    let listed: Vec<String> = asked.iter().take(ITEMS_NAMED).map(words).collect();
    let rest = asked.len().saturating_sub(listed.len());
    let more = if rest > 0 { format!("; and {rest} more") } else { String::new() };
    format!("{}{more} (plimsoll status). {}.", listed.join("; "), items(state))
}

/// What has become of an item of a parallel run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemNews<'a> {
    /// It was merged, by this commit.
    Merged(&'a str),
    /// It was not merged, and somebody takes it up again.
    SentBack(&'a str),
    /// Nobody takes it up again by themselves.
    SetAside(&'a str),
    /// It waits for the user.
    Asked(&'a str),
}

/// What is said about an item of a parallel run.
pub fn item_news(item: &str, news: ItemNews<'_>, clean: Clean<'_>) -> String {
    let words = |words: &str| line(words, LONGEST_CLAIM, clean);
    let what = match news {
        ItemNews::Merged(commit) => {
            format!("was merged ({}).", commit.chars().take(12).collect::<String>())
        }
        ItemNews::SentBack(reason) => format!("was not merged and is tried again: {}", words(reason)),
        ItemNews::SetAside(reason) => format!("was set aside: {}", words(reason)),
        ItemNews::Asked(question) => {
            format!("waits for an answer: {} (plimsoll status).", words(question))
        }
    };
    format!("“{}” {what}", line(item, LONGEST_ITEM, clean))
}

/// What is said about a run that is over.
pub fn end(state: &RunState, clean: Clean<'_>) -> String {
    let reason = match state.lifecycle.last_verdict() {
        Some(Verdict::Stop { status, reason })
            if *status == state.lifecycle.status() && !reason.is_empty() =>
        {
            format!(" ({})", line(reason, LONGEST_CLAIM, clean))
        }
        _ => String::new(),
    };
    let cost = match state.spent.cost_usd {
        0.0 => String::new(),
        cost => format!(", {}", state.spent.cost_basis().format_usd(cost)),
    };
    format!(
        "the run ended: {}{reason}. {}; {}{cost}, {} tokens.",
        state.lifecycle.status().word(),
        items(state),
        counted(sessions(state), "session"),
        tokens(state.spent.tokens)
    )
}

/// How many sessions a run took: those of several workers are in the history of their items' runs.
fn sessions(state: &RunState) -> usize {
    match state.options.workers {
        Some(_) => state.iteration as usize,
        None => state.context_history.len(),
    }
}

fn items(state: &RunState) -> String {
    format!(
        "{} done, {} open",
        counted(state.items.completed_items.len(), "item"),
        state.items.todo_items.len()
    )
}

/// One line of foreign words. Cleaned first: half a secret is not known for one.
fn line(words: &str, most: usize, clean: Clean<'_>) -> String {
    clip(&clean(&one_line(words)), most)
}

/// Words as Markdown that shows them as they are.
fn plain(words: &str) -> String {
    let mut text = String::with_capacity(words.len());
    for letter in one_line(words).chars() {
        if "\\`*_[]<>#|~$@".contains(letter) {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

/// The whole comment of a run. Where it would become too long, the oldest notes are shortened and then left out; the
/// newest stands as it is.
pub fn body(notes: &[Note], most: usize) -> String {
    let notes = folded(notes);
    let Some(last) = notes.last() else { return String::new() };
    let run = last.run_id.split('-').next().unwrap_or_default();
    let head = format!("**Plimsoll: {}** (run {run})\n", plain(&clip(&last.task, LONGEST_ITEM)));
    let mut paragraphs: Vec<String> = notes.iter().map(|note| paragraph(note, usize::MAX)).collect();
    let length = |paragraphs: &[String]| {
        head.chars().count() + paragraphs.iter().map(|one| one.chars().count() + 1).sum::<usize>()
    };
    for (place, note) in notes.iter().enumerate().take(notes.len() - 1) {
        if length(&paragraphs) <= most {
            break;
        }
        paragraphs[place] = paragraph(note, SHORTENED);
    }
    let mut left_out = 0;
    if length(&paragraphs) > most {
        while length(&paragraphs) + LEFT_OUT > most && paragraphs.len() > 1 {
            paragraphs.remove(0);
            left_out += 1;
        }
    }
    let gap = match left_out {
        0 => String::new(),
        _ => format!("\n… {} left out; they are in the journal.\n", counted(left_out, "older note")),
    };
    format!("{head}{gap}{}", paragraphs.concat())
}

/// The line that mentions notes that were left out has this room.
const LEFT_OUT: usize = 80;

fn paragraph(note: &Note, most: usize) -> String {
    let about = if note.kind == NoteKind::Item { "Item" } else { "Iteration" };
    format!(
        "\n**{about} {}** · {} · {}\n",
        note.iteration,
        moment(note.at.as_str()),
        plain(&clip(&note.words, most))
    )
}

/// `2026-01-07T11:45:00Z` as shown to the user.
fn moment(stamp: &str) -> String {
    match stamp.get(..16) {
        Some(minute) => format!("{} UTC", minute.replace('T', " ")),
        None => stamp.to_owned(),
    }
}

/// Seconds until the next attempt after this many failures in a row.
pub fn backoff_seconds(failures: u32) -> u64 {
    FIRST_SECONDS.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(LONGEST_SECONDS)
}

#[cfg(test)]
mod tests;
