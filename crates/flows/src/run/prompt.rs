//! Writing PROMPT.md: only `run`, `start`, `gate` and `prompt` do, never a hook.

use crate::checkpoint::facts;
use crate::checkpoint::work;
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::item_notes::ItemNotes;
use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::prompt::{self, Surroundings};
use plimsoll_domain::resume::Staleness;
use plimsoll_domain::state::{Checkpoint, CommitRef};
use plimsoll_domain::{RunState, TodoList};
use plimsoll_launcher::git;
use plimsoll_policy::item_in_hand::item_in_hand;
use plimsoll_store::{Durability, Project, StoreError, disk, journal};

/// How many commits of others are named at most.
const COMMITS: usize = 8;

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

/// Writes PROMPT.md for the current iteration; answers with its bytes.
pub fn write(project: &Project, state: &RunState) -> Result<Vec<u8>, PromptError> {
    write_with(project, state, facts::todo(project, state).as_ref())
}

/// The same for a caller that has just read the plan.
pub fn write_with(
    project: &Project,
    state: &RunState,
    todo: Option<&TodoList>,
) -> Result<Vec<u8>, PromptError> {
    let task = whole_task(project, state)?.unwrap_or_else(|| state.options.objective.clone().into_bytes());
    keep_copy(project, &task)?;
    let resume = resumed(project, state, todo);
    // A resume and the reasons of a refusal say the same in other words.
    let is_told = resume.is_some() || !state.outcomes.refusals.is_empty();
    let item = item_in_hand(state);
    let around = Surroundings {
        item: item.cloned(),
        fruitless: if is_told { None } else { fruitless(project, state)? },
        resume,
        noted: todo.map(|todo| ItemNotes::of(todo, item)).unwrap_or_default(),
    };
    let file = prompt::assemble(&prompt::block(state, &around), &task);
    disk::replace(&project.prompt(), &file, Durability::Durable)?;
    Ok(file)
}

/// Takes our block out of a PROMPT.md of the user's own, which may be tracked: an agent's `git add -A` would commit the
/// block, and a run that is over would leave the file dirty. `run` pipes a copy with the block into the client, so the
/// file has it only until then; a shell loop pipes the file itself, which keeps it until the run ends or pauses.
pub fn put_back(project: &Project, state: &RunState) -> Result<(), PromptError> {
    if state.options.prompt_made {
        return Ok(());
    }
    let Some(file) = disk::read(&project.prompt())? else { return Ok(()) };
    let task = prompt::task_text(&file).map_err(|_| PromptError::NoEndMark)?;
    if task.len() < file.len() {
        disk::replace(&project.prompt(), task, Durability::Durable)?;
    }
    Ok(())
}

/// The checkpoint that the iteration resumes, or that is ready for the next one, with what has happened since.
fn resumed(project: &Project, state: &RunState, todo: Option<&TodoList>) -> Option<(Checkpoint, Staleness)> {
    let waits = plimsoll_policy::resume::due(&state.context_checkpoint, todo, &state.items.set_aside);
    let carried = || state.iteration_record.resuming.then(|| state.context_checkpoint.clone());
    let checkpoint = waits.or_else(carried)?;
    let since = staleness(project, &checkpoint);
    Some((checkpoint, since))
}

/// What has happened to the work since the checkpoint: the session that left it has ended by now.
fn staleness(project: &Project, checkpoint: &Checkpoint) -> Staleness {
    let root = project.root();
    let mut since = Staleness::default();
    let head = git::head(root);
    // A text that is no commit was written by somebody else.
    let before = checkpoint.head.as_deref().and_then(|id| CommitId::parse(id).ok());
    if let Some(before) = before.as_ref().filter(|before| Some(*before) != head.as_ref()) {
        if git::is_below_head(root, before) {
            let commits = git::commits_since(root, before);
            since.commit_count = commits.len();
            since.commits = commits
                .into_iter()
                .take(COMMITS)
                .map(|commit| CommitRef { id: commit.id.into(), subject: commit.subject })
                .collect();
        } else {
            // Reset, rebased or another branch: what is between the two commits says nothing about the work.
            since.left_behind = Some(before.to_string());
        }
    }
    for file in &checkpoint.files_in_progress {
        let Some(digest) = &file.digest else { continue };
        match work::digest(&root.join(&file.path)) {
            Some(now) if now == *digest => {}
            Some(_) => since.changed.push(file.path.clone()),
            None => since.gone.push(file.path.clone()),
        }
    }
    since
}

/// The user's text; where an agent has emptied the file or torn our block, the copy, and what was there is kept.
fn whole_task(project: &Project, state: &RunState) -> Result<Option<Vec<u8>>, PromptError> {
    let copy = disk::read(&copy_path(project))?.filter(|copy| !is_blank(copy));
    let copy = match (task_text(project), copy) {
        (Err(PromptError::NoEndMark), Some(copy)) => copy,
        (Ok(Some(text)), Some(copy)) if is_blank(&text) => copy,
        (text, _) => return text,
    };
    // Kept before `write` replaces it. A kill between the two comes here again, and writes the same bytes aside.
    let aside = project.copies().join("PROMPT.md.damaged");
    disk::replace(&aside, &disk::read(&project.prompt())?.unwrap_or_default(), Durability::Lazy)?;
    let event = JournalEvent::PromptMended { old_file: aside.to_string_lossy().into_owned() };
    journal::note(project, JournalEntry::of_run(state, event))?;
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

/// True if that text has been kept.
pub(crate) fn is_kept(project: &Project, task: Option<&[u8]>) -> Result<bool, StoreError> {
    Ok(task.is_some() && disk::read(&copy_path(project))?.as_deref() == task)
}

fn copy_path(project: &Project) -> std::path::PathBuf {
    project.copies().join("task.md")
}

/// The progress file's paragraph about the session before, if that ticked no item: what it tried need not be tried again.
fn fruitless(project: &Project, state: &RunState) -> Result<Option<String>, StoreError> {
    let before = state.context_history.iter().rfind(|entry| !entry.ending.is_empty());
    // One that asked the user has left its question below its item.
    let has_asked = |iteration| state.items.parked.iter().any(|question| question.iteration == iteration);
    if before.is_none_or(|entry| entry.items > 0 || has_asked(entry.iteration)) {
        return Ok(None);
    }
    let text = disk::read_text(&project.progress())?.unwrap_or_default();
    let last = text.rsplit("\n\n").map(str::trim).find(|part| !part.is_empty());
    // Behind the number of open items stands how it ended and what it said; without that there is nothing to learn from it.
    Ok(last.filter(|paragraph| paragraph.contains(" open. ")).map(str::to_owned))
}
