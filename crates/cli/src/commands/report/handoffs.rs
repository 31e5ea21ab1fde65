//! The handoffs of a run, read from its journal and its files.

use super::chart_marks::checkpoint_cause;
use super::contents::RunHandoff;
use super::entry::RunEntry;
use crate::render::redact::RedactedText;
use plimsoll_domain::RunState;
use plimsoll_domain::handoff::HandoffNotes;
use plimsoll_domain::journal::{CheckpointWritten, JournalEvent};
use plimsoll_store::{Project, disk};
use std::path::{Component, Path, PathBuf};

/// Maximum number of handoffs in the report, and how many of them with their full text.
const MAX_SHOWN_HANDOFFS: usize = 40;
const MAX_FULL_TEXTS: usize = 3;
const MAX_TEXT_CHARS: usize = 12_000;

/// Returns the handoffs of a run, newest first, each file once.
pub(super) fn newest_distinct_handoffs(
    project: &Project,
    state: &RunState,
    entries: &[RunEntry<'_>],
) -> Vec<RunHandoff> {
    let mut listed_paths: Vec<&str> = Vec::new();
    let mut handoffs = Vec::new();
    for entry in entries.iter().rev() {
        let JournalEvent::Checkpoint(checkpoint) = entry.event() else { continue };
        if checkpoint.handoff_path.is_empty() || listed_paths.contains(&checkpoint.handoff_path.as_str()) {
            continue;
        }
        listed_paths.push(&checkpoint.handoff_path);
        if handoffs.len() < MAX_SHOWN_HANDOFFS {
            handoffs.push(read_and_summarize_handoff(
                project,
                state,
                entry,
                checkpoint,
                handoffs.len() < MAX_FULL_TEXTS,
            ));
        }
    }
    handoffs
}

fn read_and_summarize_handoff(
    project: &Project,
    state: &RunState,
    entry: &RunEntry<'_>,
    checkpoint: &CheckpointWritten,
    include_full_text: bool,
) -> RunHandoff {
    let path = checkpoint.handoff_path.as_str();
    let text =
        regular_file_in_handoffs_folder(project, path).and_then(|file| disk::read_text(&file).ok().flatten());
    let last_checkpoint = &state.context_checkpoint;
    let percent_text = checkpoint.percent.map(|percent| format!(" at {percent}%")).unwrap_or_default();
    RunHandoff {
        path: entry.redact(path),
        written_at: entry.recorded_at,
        iteration: entry.iteration(),
        cause: entry.redact(&format!("{}{percent_text}", checkpoint_cause(checkpoint))),
        item: checkpoint.item.as_ref().map(|item| entry.redact(item)),
        claims: text.as_deref().map(parse_nonempty_session_claims).unwrap_or_default(),
        text: if include_full_text {
            text.map(|text| RedactedText::multiple_lines(&text, MAX_TEXT_CHARS))
        } else {
            None
        },
        is_unresumed: last_checkpoint.active
            && last_checkpoint.handoff_file == path
            && !state.plan_items.todo_items.is_empty(),
    }
}

fn parse_nonempty_session_claims(text: &str) -> Vec<(&'static str, RedactedText)> {
    let notes = HandoffNotes::parse(text);
    let claims = [("Summary", notes.summary), ("Progress", notes.progress), ("Next step", notes.next_step)];
    claims
        .into_iter()
        .filter(|(_, claim)| !claim.is_empty())
        .map(|(name, claim)| (name, RedactedText::single_line(&claim, 400)))
        .collect()
}

/// Returns the absolute path if it is a regular file in the handoffs folder, else `None`. The path is not trusted,
/// because an agent can write to the journal.
fn regular_file_in_handoffs_folder(project: &Project, path: &str) -> Option<PathBuf> {
    let file = project.root().join(path);
    let has_no_parent_components =
        !Path::new(path).components().any(|component| matches!(component, Component::ParentDir));
    let is_regular_file_in_folder =
        file.starts_with(project.handoffs_folder()) && !disk::is_link(&file) && disk::is_file(&file);
    (has_no_parent_components && is_regular_file_in_folder).then_some(file)
}
