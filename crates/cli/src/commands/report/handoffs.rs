//! The handoffs of a run, as its journal names them.

use super::contents::Handoff;
use super::entry::RunLine;
use super::moments::why;
use crate::render::redact::RedactedText;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_domain::RunState;
use plimsoll_domain::handoff::Notes;
use plimsoll_domain::journal::{CheckpointWritten, JournalEvent};
use plimsoll_store::{Project, disk};
use std::path::{Component, Path, PathBuf};

/// So many of the newest are shown, and so many of these as a whole.
const SHOWN: usize = 40;
const WHOLE: usize = 3;
/// The characters that are percent-encoded in a part of a URL's path.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// How much of one.
const TEXT: usize = 12_000;

/// The newest first.
pub(super) fn handoffs(
    project: &Project,
    state: &RunState,
    entries: &[RunLine<'_>],
    folder: Option<&Path>,
) -> Vec<Handoff> {
    let mut seen: Vec<&str> = Vec::new();
    let mut handoffs = Vec::new();
    for entry in entries.iter().rev() {
        let JournalEvent::Checkpoint(written) = entry.event() else { continue };
        if written.handoff.is_empty() || seen.contains(&written.handoff.as_str()) {
            continue;
        }
        seen.push(&written.handoff);
        if handoffs.len() < SHOWN {
            handoffs.push(handoff(project, state, entry, written, folder, handoffs.len() < WHOLE));
        }
    }
    handoffs
}

fn handoff(
    project: &Project,
    state: &RunState,
    entry: &RunLine<'_>,
    written: &CheckpointWritten,
    folder: Option<&Path>,
    whole: bool,
) -> Handoff {
    let path = written.handoff.as_str();
    let file = file(project, path);
    let text = file.as_ref().and_then(|file| disk::read_text(file).ok().flatten());
    let last = &state.context_checkpoint;
    let percent = written.percent.map(|percent| format!(" at {percent} %")).unwrap_or_default();
    let link = match (&file, &text, folder) {
        (Some(file), Some(_), Some(folder)) => link(file, folder),
        _ => None,
    };
    Handoff {
        path: entry.words(path),
        link,
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

/// The way from the folder of the page to the file, as an address.
fn link(file: &Path, folder: &Path) -> Option<String> {
    let folder = disk::canonical(folder);
    let file = disk::canonical(file);
    let above = folder.ancestors().position(|above| file.starts_with(above))?;
    let below = file.strip_prefix(folder.ancestors().nth(above)?).ok()?;
    let parts = below.iter().map(|part| utf8_percent_encode(&part.to_string_lossy(), RESERVED).to_string());
    Some(std::iter::repeat_n("..".to_owned(), above).chain(parts).collect::<Vec<_>>().join("/"))
}
