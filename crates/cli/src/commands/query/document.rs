//! The documents that can be queried, and where they are.

use super::inputs::Inputs;
use crate::record_json::{memory_json, turn_json};
use plimsoll_flows::turns::capture::CaptureLimits;
use plimsoll_flows::turns::catch_up;
use plimsoll_store::{Project, StoreError, TurnLog, disk, state_file};
use serde_json::Value;
use std::path::PathBuf;

/// A document that can be queried.
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

/// The reason why a document cannot be queried.
#[derive(Debug, thiserror::Error)]
pub(super) enum DocumentError {
    #[error("there is no run in {0}")]
    NoRun(PathBuf),
    #[error("nothing has been written to {0} yet")]
    NoJournal(PathBuf),
    #[error("there is no turn log in {0} yet")]
    NoTurns(PathBuf),
    #[error("there is no working memory in {0}")]
    NoMemory(PathBuf),
    #[error(transparent)]
    Unreadable(#[from] StoreError),
}

impl DocumentError {
    /// Returns what the user can do about the error.
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

type DocumentResult<T> = Result<T, DocumentError>;

impl Document {
    /// Opens the document as a sequence of JSON values.
    pub(super) fn open_as_inputs(self, project: &Project) -> DocumentResult<Inputs> {
        match self {
            Document::State => {
                // A query does not modify the state, so it can also read a state file that another program wrote.
                let is_foreign = state_file::load_state_document_of_other_program(project)?.is_some();
                let text = if is_foreign {
                    disk::read_text(project.state_path())?
                } else {
                    state_file::read_state_text(project)?
                };
                let text = text.ok_or_else(|| DocumentError::NoRun(project.root().to_owned()))?;
                Ok(Inputs::from_text(&project.relative_to_root(project.state_path()), text))
            }
            Document::Journal => {
                let path = project.journal_path();
                let text = disk::read_text(&path)?.ok_or_else(|| DocumentError::NoJournal(path.clone()))?;
                Ok(Inputs::from_json_lines_skipping_invalid(&project.relative_to_root(&path), &text))
            }
            Document::Turns => {
                Ok(Inputs::from_values("the turn log", record_missing_turns_and_read_all(project)?))
            }
            Document::Memory => {
                Ok(Inputs::from_values("the working memory", load_memory_as_single_value(project)?))
            }
        }
    }
}

/// Records turns that are missing from the turn logs, then returns the turns of all sessions and their subagents, session
/// by session, as JSON objects. Returns an error if there is no turn log.
fn record_missing_turns_and_read_all(
    project: &Project,
) -> DocumentResult<impl Iterator<Item = Value> + use<>> {
    let logs = TurnLog::one_per_session_oldest_modified_first(project);
    if logs.is_empty() {
        return Err(DocumentError::NoTurns(project.root().to_owned()));
    }
    if let Err(error) =
        catch_up::record_missing_turns_of_all_sessions(project, CaptureLimits::FOR_USER_COMMAND_OR_RUN)
    {
        plimsoll_terminal::console::print_warning(&format!("the newest turns may be missing: {error}"));
    }
    let read_records =
        |log: TurnLog| plimsoll_flows::turns::records_from_start(&log).map(Iterator::collect::<Vec<_>>);
    let records = logs.into_iter().flat_map(move |log| read_records(log).unwrap_or_default()).flatten();
    Ok(records.filter(plimsoll_flows::turns::LoggedRecord::is_turn_record).map(|turn| turn_json(&turn)))
}

/// Returns the working memory as a single JSON value with registers, frames and heap. Returns an error if there is no
/// working memory.
fn load_memory_as_single_value(project: &Project) -> DocumentResult<impl Iterator<Item = Value> + use<>> {
    if !plimsoll_store::memory::memory_exists(project) {
        return Err(DocumentError::NoMemory(project.root().to_owned()));
    }
    let memory = plimsoll_store::memory::load_memory(project)?;
    Ok(std::iter::once(memory_json(&memory)))
}
