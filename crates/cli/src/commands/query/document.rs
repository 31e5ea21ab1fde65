//! The documents that can be queried, and where they are.

use super::inputs::Inputs;
use crate::record_json::{memory_json, turn_json};
use plimsoll_flows::turns::capture::CaptureLimits;
use plimsoll_flows::turns::catch_up;
use plimsoll_store::{Project, StoreError, TurnLog, disk, state_file};
use serde_json::Value;
use std::path::PathBuf;

/// What can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Document {
    /// The run's state.
    State,
    /// Every decision with its numbers.
    Journal,
    /// Every turn of the sessions.
    Turns,
    /// The working memory.
    Memory,
}

/// Why a document cannot be asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum DocumentError {
    /// No state.
    #[error("there is no run in {0}")]
    NoRun(PathBuf),
    /// No journal.
    #[error("nothing has been written to {0} yet")]
    NoJournal(PathBuf),
    /// No turn log.
    #[error("there is no turn log in {0} yet")]
    NoTurns(PathBuf),
    /// No working memory.
    #[error("there is no working memory in {0}")]
    NoMemory(PathBuf),
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(#[from] StoreError),
}

impl DocumentError {
    /// What the user can do about it.
    pub(super) fn hint(&self) -> &'static str {
        match self {
            DocumentError::NoRun(_) => "go to the project of the run, or start one with `plimsoll run`",
            DocumentError::NoJournal(_) => {
                "go to the project of the run, or install the hooks with `plimsoll init`"
            }
            DocumentError::NoTurns(_) | DocumentError::NoMemory(_) => "ask --on state or --on journal",
            DocumentError::Unreadable(error) => error.hint(),
        }
    }
}

type Opened<T> = Result<T, DocumentError>;

impl Document {
    /// Opens it.
    pub(super) fn open(self, project: &Project) -> Opened<Inputs> {
        match self {
            Document::State => {
                // A question changes nothing: a state that another program wrote is asked as it is.
                let is_foreign = state_file::foreign(project)?.is_some();
                let text =
                    if is_foreign { disk::read_text(project.state())? } else { state_file::text(project)? };
                let text = text.ok_or_else(|| DocumentError::NoRun(project.root().to_owned()))?;
                Ok(Inputs::one(&project.relative(project.state()), text))
            }
            Document::Journal => {
                let path = project.journal();
                let text = disk::read_text(&path)?.ok_or_else(|| DocumentError::NoJournal(path.clone()))?;
                Ok(Inputs::lines(&project.relative(&path), &text))
            }
            Document::Turns => Ok(Inputs::values("the turn log", turns(project)?)),
            Document::Memory => Ok(Inputs::values("the working memory", memory(project)?)),
        }
    }
}

/// The turns of all sessions and their subagents, session by session, each with its eight fields and `ext`.
fn turns(project: &Project) -> Opened<impl Iterator<Item = Value> + use<>> {
    let logs = TurnLog::all(project);
    if logs.is_empty() {
        return Err(DocumentError::NoTurns(project.root().to_owned()));
    }
    if let Err(error) = catch_up::sync(project, CaptureLimits::USER) {
        plimsoll_terminal::console::say_error(&format!("the newest turns may be missing: {error}"));
    }
    let of = |log: TurnLog| plimsoll_flows::turns::forwards(&log).map(Iterator::collect::<Vec<_>>);
    let records = logs.into_iter().flat_map(move |log| of(log).unwrap_or_default()).flatten();
    Ok(records.filter(plimsoll_flows::turns::Recorded::is_turn).map(|turn| turn_json(&turn)))
}

/// The working memory: registers, frames, heap.
fn memory(project: &Project) -> Opened<impl Iterator<Item = Value> + use<>> {
    if !plimsoll_store::memory::exists(project) {
        return Err(DocumentError::NoMemory(project.root().to_owned()));
    }
    let memory = plimsoll_store::memory::load(project)?;
    Ok(std::iter::once(memory_json(&memory)))
}
