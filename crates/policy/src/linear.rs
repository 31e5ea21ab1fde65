//! Renders the notes for Linear, and computes the delay before a failed delivery is retried. Text of the agent and of the
//! plan is escaped in Markdown, so that it cannot contain a heading, a link, or an image that a browser would load.

use plimsoll_domain::linear::{LinearNote, LinearNoteKind, latest_note_per_iteration_and_kind};
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::text::{count_with_noun, format_tokens, to_safe_single_line, truncate_end};
use plimsoll_domain::{RunState, Verdict};

/// Maximum length of a comment, to keep it readable. Linear's own limit is several times higher.
pub const MAX_COMMENT_CHARS: usize = 20_000;
/// Length of an old note that is shortened to make room.
const MAX_SHORTENED_NOTE_CHARS: usize = 120;
/// Maximum length of an item's text: an item is one line of a list.
const MAX_ITEM_CHARS: usize = 160;
/// Maximum number of items that a note names.
const MAX_LISTED_ITEMS: usize = 5;
/// Maximum length of a text written by the session, the same as in the prompt of the next session.
const MAX_SESSION_TEXT_CHARS: usize = 600;
/// First retry delay. Most failures are short.
const FIRST_BACKOFF_SECONDS: u64 = 60;
/// Longest retry delay. During a long outage delivery is retried twice an hour.
const MAX_BACKOFF_SECONDS: u64 = 1_800;

/// Removes secrets from untrusted text before it leaves this machine.
pub type Redact<'a> = &'a dyn Fn(&str) -> String;

/// Renders the note about the last checkpoint of a run.
pub fn render_checkpoint_note(state: &RunState, redact: Redact<'_>) -> String {
    let checkpoint = &state.context_checkpoint;
    let percent_text =
        checkpoint.percent_at_checkpoint.map(|percent| format!(" at {percent}%")).unwrap_or_default();
    let labeled_text = |label: &str, text: &str| match text {
        "" | "unknown" => String::new(),
        // The format string adds the full stop.
        text => format!(
            " {label}: {}.",
            redact_and_truncate_line(text, MAX_SESSION_TEXT_CHARS, redact).trim_end_matches('.')
        ),
    };
    let quote_item = |item: &str| format!("“{}”", redact_and_truncate_line(item, MAX_ITEM_CHARS, redact));
    let quoted_items: Vec<String> = checkpoint
        .item_work
        .ticked_items
        .iter()
        .take(MAX_LISTED_ITEMS)
        .map(|item| quote_item(item))
        .collect();
    let unlisted_count = checkpoint.item_work.ticked_items.len().saturating_sub(quoted_items.len());
    let unlisted_items_text =
        if unlisted_count > 0 { format!(" and {unlisted_count} more") } else { String::new() };
    let finished_text = match quoted_items.as_slice() {
        [] => String::new(),
        items => format!(" Finished: {}{unlisted_items_text}.", items.join(", ")),
    };
    let item_text = match (checkpoint.current_todo_item.as_str(), checkpoint.item_work.is_begun) {
        ("", _) => String::new(),
        (item, true) => format!(" Current item: {}.", quote_item(item)),
        (item, false) => format!(" Next item: {}.", quote_item(item)),
    };
    let handoff_text = match checkpoint.handoff_file.as_str() {
        "" => String::new(),
        file => format!(" Handoff: {}", redact_and_truncate_line(file, MAX_ITEM_CHARS, redact)),
    };
    format!(
        "checkpoint ({}, {}{percent_text}).{finished_text}{item_text}{}{}{} {}.{handoff_text}",
        checkpoint.cause.display_text(),
        checkpoint.level,
        labeled_text("Progress", &checkpoint.progress_on_item),
        labeled_text("Summary", &checkpoint.resume_summary),
        labeled_text("Next step", &checkpoint.next_step),
        render_done_and_open_item_counts(state),
    )
}

/// Renders the note about the questions that the current iteration asked.
pub fn render_note_on_iteration_questions(state: &RunState, redact: Redact<'_>) -> String {
    let questions_of_iteration: Vec<&OpenQuestion> = state.questions_of_current_iteration().collect();
    let render_question = |open_question: &&OpenQuestion| {
        let question_text = redact_and_truncate_line(&open_question.question, MAX_SESSION_TEXT_CHARS, redact);
        format!(
            "“{}” waits for an answer: {question_text}",
            redact_and_truncate_line(&open_question.item, MAX_ITEM_CHARS, redact)
        )
    };
    let rendered_questions: Vec<String> =
        questions_of_iteration.iter().take(MAX_LISTED_ITEMS).map(render_question).collect();
    let unlisted_count = questions_of_iteration.len().saturating_sub(rendered_questions.len());
    let unlisted_questions_text =
        if unlisted_count > 0 { format!("; and {unlisted_count} more") } else { String::new() };
    format!(
        "{}{unlisted_questions_text} (plimsoll status). {}.",
        rendered_questions.join("; "),
        render_done_and_open_item_counts(state)
    )
}

/// An event of an item of a parallel run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParallelItemEvent<'a> {
    /// The item was merged as this commit.
    Merged(&'a str),
    /// The item was not merged for this reason, and is retried.
    Requeued(&'a str),
    /// The item was set aside for this reason, and is not retried automatically.
    SetAside(&'a str),
    /// The item waits for the user's answer to this question.
    WaitsForAnswer(&'a str),
}

/// Renders the note about an item of a parallel run.
pub fn render_item_note(item: &str, event: ParallelItemEvent<'_>, redact: Redact<'_>) -> String {
    let redacted_text = |text: &str| redact_and_truncate_line(text, MAX_SESSION_TEXT_CHARS, redact);
    let event_text = match event {
        ParallelItemEvent::Merged(commit) => {
            format!("was merged ({}).", commit.chars().take(12).collect::<String>())
        }
        ParallelItemEvent::Requeued(reason) => {
            format!("was not merged and is tried again: {}", redacted_text(reason))
        }
        ParallelItemEvent::SetAside(reason) => format!("was set aside: {}", redacted_text(reason)),
        ParallelItemEvent::WaitsForAnswer(question) => {
            format!("waits for an answer: {} (plimsoll status).", redacted_text(question))
        }
    };
    format!("“{}” {event_text}", redact_and_truncate_line(item, MAX_ITEM_CHARS, redact))
}

/// Renders the note about a run that has ended.
pub fn render_run_end_note(state: &RunState, redact: Redact<'_>) -> String {
    let reason_text = match state.lifecycle.last_verdict() {
        Some(Verdict::Stop { status, reason })
            if *status == state.lifecycle.status() && !reason.is_empty() =>
        {
            format!(" ({})", redact_and_truncate_line(reason, MAX_SESSION_TEXT_CHARS, redact))
        }
        _ => String::new(),
    };
    let cost_text = match state.spending.cost_usd {
        0.0 => String::new(),
        cost => format!(", {}", state.spending.cost_basis().format_usd(cost)),
    };
    format!(
        "the run ended: {}{reason_text}. {}; {}{cost_text}, {} tokens.",
        state.lifecycle.status().as_str(),
        render_done_and_open_item_counts(state),
        count_with_noun(count_run_sessions(state), "session"),
        format_tokens(state.spending.tokens)
    )
}

/// Returns the number of sessions of a run. With several workers the session history is in the runs of the items, so the
/// counter is used.
fn count_run_sessions(state: &RunState) -> usize {
    match state.options.workers {
        Some(_) => state.iteration as usize,
        None => state.context_history.len(),
    }
}

fn render_done_and_open_item_counts(state: &RunState) -> String {
    format!(
        "{} done, {} open",
        count_with_noun(state.plan_items.completed_items.len(), "item"),
        state.plan_items.todo_items.len()
    )
}

/// Returns untrusted text on one line, redacted and then truncated. In the reverse order, half of a secret would remain
/// unrecognized.
fn redact_and_truncate_line(text: &str, max_chars: usize, redact: Redact<'_>) -> String {
    truncate_end(&redact(&to_safe_single_line(text)), max_chars)
}

/// Puts text on one line and escapes it, so that Markdown shows it unchanged.
fn escape_markdown_on_one_line(raw_text: &str) -> String {
    let mut escaped = String::with_capacity(raw_text.len());
    for character in to_safe_single_line(raw_text).chars() {
        if "\\`*_[]<>#|~$@".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// Renders the whole comment of a run. If it would be longer than `max_chars`, the oldest notes are shortened and then
/// omitted; the newest note is always complete.
pub fn render_comment_shortening_or_omitting_oldest(notes: &[LinearNote], max_chars: usize) -> String {
    let notes = latest_note_per_iteration_and_kind(notes);
    let Some(newest_note) = notes.last() else { return String::new() };
    let short_run_id = newest_note.run_id.split('-').next().unwrap_or_default();
    let heading = format!(
        "**Plimsoll: {}** (run {short_run_id})\n",
        escape_markdown_on_one_line(&truncate_end(&newest_note.task_name, MAX_ITEM_CHARS))
    );
    let mut paragraphs: Vec<String> =
        notes.iter().map(|note| render_note_paragraph(note, usize::MAX)).collect();
    let total_chars = |paragraphs: &[String]| {
        heading.chars().count()
            + paragraphs.iter().map(|paragraph| paragraph.chars().count() + 1).sum::<usize>()
    };
    for (index, note) in notes.iter().enumerate().take(notes.len() - 1) {
        if total_chars(&paragraphs) <= max_chars {
            break;
        }
        paragraphs[index] = render_note_paragraph(note, MAX_SHORTENED_NOTE_CHARS);
    }
    let mut omitted_count = 0;
    if total_chars(&paragraphs) > max_chars {
        while total_chars(&paragraphs) + OMISSION_LINE_CHARS > max_chars && paragraphs.len() > 1 {
            paragraphs.remove(0);
            omitted_count += 1;
        }
    }
    let omission_line = match omitted_count {
        0 => String::new(),
        _ => format!(
            "\n… {} left out; they are in the journal.\n",
            count_with_noun(omitted_count, "older note")
        ),
    };
    format!("{heading}{omission_line}{}", paragraphs.concat())
}

/// Space reserved for the line that mentions omitted notes.
const OMISSION_LINE_CHARS: usize = 80;

fn render_note_paragraph(note: &LinearNote, max_chars: usize) -> String {
    let kind_label = if note.kind == LinearNoteKind::Item { "Item" } else { "Session" };
    format!(
        "\n**{kind_label} {}** · {} · {}\n",
        note.iteration_or_item_number,
        format_timestamp(note.recorded_at.as_str()),
        escape_markdown_on_one_line(&truncate_end(&note.text, max_chars))
    )
}

/// Formats `2026-01-07T11:45:00Z` for the user.
fn format_timestamp(timestamp: &str) -> String {
    match timestamp.get(..16) {
        Some(minute) => format!("{} UTC", minute.replace('T', " ")),
        None => timestamp.to_owned(),
    }
}

/// Returns the seconds to wait before the next attempt.
pub fn backoff_seconds(consecutive_failures: u32) -> u64 {
    FIRST_BACKOFF_SECONDS
        .saturating_mul(1 << consecutive_failures.saturating_sub(1).min(16))
        .min(MAX_BACKOFF_SECONDS)
}

#[cfg(test)]
mod tests;
