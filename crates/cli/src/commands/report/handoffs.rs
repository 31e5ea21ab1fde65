//! The handoffs of a run, as its journal names them.

use super::contents::Handoff;
use super::entry::RunLine;
use super::moments::why;
use crate::render::redact::RedactedText;
use plimsoll_domain::RunState;
use plimsoll_domain::handoff::Notes;
use plimsoll_domain::journal::{CheckpointWritten, JournalEvent};
use plimsoll_store::{Project, disk};
use std::path::{Component, Path, PathBuf};

/// So many of the newest are shown, and so many of these as a whole.
const SHOWN: usize = 40;
const WHOLE: usize = 3;
/// How much of one.
const TEXT: usize = 12_000;

/// The newest first.
pub(super) fn handoffs(project: &Project, state: &RunState, entries: &[RunLine<'_>]) -> Vec<Handoff> {
    let mut seen: Vec<&str> = Vec::new();
    let mut handoffs = Vec::new();
    for entry in entries.iter().rev() {
        let JournalEvent::Checkpoint(written) = entry.event() else { continue };
        if written.handoff.is_empty() || seen.contains(&written.handoff.as_str()) {
            continue;
        }
        seen.push(&written.handoff);
        if handoffs.len() < SHOWN {
            handoffs.push(handoff(project, state, entry, written, handoffs.len() < WHOLE));
        }
    }
    handoffs
}

fn handoff(
    project: &Project,
    state: &RunState,
    entry: &RunLine<'_>,
    written: &CheckpointWritten,
    whole: bool,
) -> Handoff {
    let path = written.handoff.as_str();
    let text = file(project, path).and_then(|file| disk::read_text(&file).ok().flatten());
    let last = &state.context_checkpoint;
    let percent = written.percent.map(|percent| format!(" at {percent} %")).unwrap_or_default();
    Handoff {
        path: entry.words(path),
        at: entry.at,
        iteration: entry.iteration(),
        why: entry.words(&format!("{}{percent}", why(written))),
        item: written.item.as_ref().map(|item| entry.words(item)),
        claims: text.as_deref().map(claims).unwrap_or_default(),
        text: if whole { text.map(|text| RedactedText::lines(&text, TEXT)) } else { None },
        is_waiting: last.active && last.handoff_file == path && !state.items.todo_items.is_empty(),
    }
}

fn claims(text: &str) -> Vec<(&'static str, RedactedText)> {
    let notes = Notes::parse(text);
    let claims = [("Summary", notes.summary), ("Progress", notes.progress), ("Next step", notes.next)];
    claims
        .into_iter()
        .filter(|(_, said)| !said.is_empty())
        .map(|(name, said)| (name, RedactedText::line(&said, 400)))
        .collect()
}

/// The file, where the path leads to one of our handoffs: an agent can write into the journal, too.
fn file(project: &Project, path: &str) -> Option<PathBuf> {
    let file = project.root().join(path);
    let is_plain = !Path::new(path).components().any(|part| matches!(part, Component::ParentDir));
    let is_ours = file.starts_with(project.handoffs()) && !disk::is_link(&file) && disk::is_file(&file);
    (is_plain && is_ours).then_some(file)
}
