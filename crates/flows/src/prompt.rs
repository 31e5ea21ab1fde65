//! Writing PROMPT.md: only `run`, `start`, `gate` and `prompt` do, never a hook.

use crate::facts;
use session::RunState;
use session::journal::Entry;
use session::prompt::{self, Surroundings};
use store::{Durability, Project, StoreError, disk, journal};

/// So many of the last paragraphs of the progress file go into the prompt.
const PARAGRAPHS: usize = 2;

/// Why PROMPT.md could not be written.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// The disk.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The block has no end.
    #[error(
        "PROMPT.md begins with Plimsoll's block, and its end mark `<!-- plimsoll:end -->` is missing: put it back above your own text, or remove the whole block"
    )]
    NoEndMark,
}

/// The user's own text, byte for byte: of PROMPT.md, or of the copy where an agent has taken that away.
pub fn task_text(project: &Project) -> Result<Option<Vec<u8>>, PromptError> {
    match disk::read(&project.prompt())? {
        Some(file) => Ok(Some(prompt::task_text(&file).map_err(|_| PromptError::NoEndMark)?.to_vec())),
        None => Ok(disk::read(&copy_path(project))?),
    }
}

/// Writes PROMPT.md for the present iteration; answers with its bytes.
pub fn write(project: &Project, state: &RunState) -> Result<Vec<u8>, PromptError> {
    let task = whole_task(project, state)?.unwrap_or_else(|| state.objective.clone().into_bytes());
    keep_copy(project, &task)?;
    let around = Surroundings {
        resume: state.iteration_record.resuming.then(|| state.context_checkpoint.clone()),
        progress: last_paragraphs(project)?,
        noted: facts::noted(project, state),
    };
    let file = prompt::assemble(&prompt::block(state, &around), &task);
    disk::replace(&project.prompt(), &file, Durability::Durable)?;
    Ok(file)
}

/// The user's text; where an agent has emptied the file or torn our block, the copy, and what was there is kept.
fn whole_task(project: &Project, state: &RunState) -> Result<Option<Vec<u8>>, PromptError> {
    let copy = disk::read(&copy_path(project))?.filter(|copy| !is_blank(copy));
    let copy = match (task_text(project), copy) {
        (Err(PromptError::NoEndMark), Some(copy)) => copy,
        (Ok(Some(text)), Some(copy)) if is_blank(&text) => copy,
        (text, _) => return text,
    };
    let aside = project.copies().join("PROMPT.md.damaged");
    disk::replace(&aside, &disk::read(&project.prompt())?.unwrap_or_default(), Durability::Lazy)?;
    let entry = Entry::new("prompt_mended").run(Some((&state.run_id, state.iteration)));
    journal::note(project, entry.fact("old_file", aside.to_string_lossy()))?;
    Ok(Some(copy))
}

fn is_blank(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_whitespace)
}

/// A new run takes the user's text afresh.
pub fn keep_copy(project: &Project, task: &[u8]) -> Result<(), StoreError> {
    let copy = copy_path(project);
    if disk::read(&copy)?.as_deref() == Some(task) {
        return Ok(());
    }
    disk::replace(&copy, task, Durability::Lazy)
}

/// True where that text has been kept.
pub(crate) fn is_kept(project: &Project, task: Option<&[u8]>) -> Result<bool, StoreError> {
    Ok(task.is_some() && disk::read(&copy_path(project))?.as_deref() == task)
}

fn copy_path(project: &Project) -> std::path::PathBuf {
    project.copies().join("task.md")
}

fn last_paragraphs(project: &Project) -> Result<Vec<String>, StoreError> {
    let text = disk::read_text(&project.progress())?.unwrap_or_default();
    let paragraphs: Vec<String> =
        text.split("\n\n").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect();
    let skipped = paragraphs.len().saturating_sub(PARAGRAPHS);
    Ok(paragraphs.into_iter().skip(skipped).collect())
}
