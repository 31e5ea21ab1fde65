//! Writes PROMPT.md. Only `run`, `start`, `gate` and `prompt` do so, never a hook.

use crate::checkpoint::facts;
use crate::checkpoint::item_work;
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::item_notes::ItemNotes;
use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::prompt::{self, PromptContext};
use plimsoll_domain::resume::Staleness;
use plimsoll_domain::state::{Checkpoint, CommitRef};
use plimsoll_domain::{RunState, TodoList};
use plimsoll_launcher::git;
use plimsoll_policy::current_item::current_unparked_item;
use plimsoll_store::{Durability, Project, StoreError, disk, journal};

/// How many commits since the checkpoint are listed at most.
const MAX_LISTED_COMMITS: usize = 8;

/// Why PROMPT.md could not be written.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The block has no end marker.
    #[error(
        "PROMPT.md starts with Plimsoll's block, but the block's end marker `<!-- plimsoll:end -->` is missing: put it back above your own text, or remove the whole block"
    )]
    MissingEndMarker,
}

/// Returns the user's own text, byte for byte: from PROMPT.md, or from the copy if an agent has deleted that
/// file.
pub fn read_task_from_prompt_or_copy(project: &Project) -> Result<Option<Vec<u8>>, PromptError> {
    match disk::read(&project.prompt_path())? {
        Some(prompt_bytes) => Ok(Some(
            prompt::strip_prompt_block(&prompt_bytes).map_err(|_| PromptError::MissingEndMarker)?.to_vec(),
        )),
        None => Ok(disk::read(&task_copy_path(project))?),
    }
}

/// Writes PROMPT.md for the current iteration, and returns its content.
pub fn write_prompt(project: &Project, state: &RunState) -> Result<Vec<u8>, PromptError> {
    write_prompt_with_block_and_save_task_copy(project, state, facts::load_plan(project, state).as_ref())
}

/// Writes PROMPT.md for the current iteration from a plan that was just read, and returns its content.
pub fn write_prompt_with_block_and_save_task_copy(
    project: &Project,
    state: &RunState,
    todo: Option<&TodoList>,
) -> Result<Vec<u8>, PromptError> {
    let task_bytes = read_task_or_copy_saving_damaged_prompt(project, state)?
        .unwrap_or_else(|| state.options.objective.clone().into_bytes());
    save_task_copy(project, &task_bytes)?;
    let resumed_checkpoint = checkpoint_to_resume_with_staleness(project, state, todo);
    // A resumed checkpoint and the reasons for a refusal already contain this information.
    let is_no_progress_note_redundant = resumed_checkpoint.is_some() || !state.outcomes.refusals.is_empty();
    let item = current_unparked_item(state);
    let context = PromptContext {
        item: item.cloned(),
        no_progress_note: if is_no_progress_note_redundant {
            None
        } else {
            last_progress_if_no_tick_or_question(project, state)?
        },
        checkpoint_to_resume: resumed_checkpoint,
        item_notes: todo
            .map(|todo| ItemNotes::collect_notes_and_current_item_answers(todo, item))
            .unwrap_or_default(),
    };
    let prompt_bytes =
        prompt::assemble_prompt_file(&prompt::render_prompt_block(state, &context), &task_bytes);
    disk::replace(&project.prompt_path(), &prompt_bytes, Durability::Durable)?;
    Ok(prompt_bytes)
}

/// Removes our block from the user's own PROMPT.md, which may be tracked: an agent's `git add -A` would
/// commit the block, and a run that has ended would leave the file dirty. `run` pipes a copy with the block
/// into the client, so the file contains it only until then; a shell loop pipes the file itself, which keeps
/// the block until the run ends or pauses.
pub fn remove_block_from_user_prompt(project: &Project, state: &RunState) -> Result<(), PromptError> {
    if state.options.is_prompt_generated {
        return Ok(());
    }
    let Some(prompt_bytes) = disk::read(&project.prompt_path())? else { return Ok(()) };
    let task_bytes = prompt::strip_prompt_block(&prompt_bytes).map_err(|_| PromptError::MissingEndMarker)?;
    if task_bytes.len() < prompt_bytes.len() {
        disk::replace(&project.prompt_path(), task_bytes, Durability::Durable)?;
    }
    Ok(())
}

/// Returns the checkpoint that the iteration resumes, or that is due for the next one, and how stale it is.
fn checkpoint_to_resume_with_staleness(
    project: &Project,
    state: &RunState,
    todo: Option<&TodoList>,
) -> Option<(Checkpoint, Staleness)> {
    let due_checkpoint = plimsoll_policy::resume::checkpoint_to_resume_or_carry_to_next_item(
        &state.context_checkpoint,
        todo,
        &state.plan_items.set_aside_items,
    );
    let current_checkpoint =
        || state.iteration_record.resumes_checkpoint.then(|| state.context_checkpoint.clone());
    let checkpoint = due_checkpoint.or_else(current_checkpoint)?;
    let staleness = find_commits_and_changes_since_checkpoint(project, &checkpoint);
    Some((checkpoint, staleness))
}

/// Returns which commits and files have changed since the checkpoint.
fn find_commits_and_changes_since_checkpoint(project: &Project, checkpoint: &Checkpoint) -> Staleness {
    let root = project.root();
    let mut staleness = Staleness::default();
    let head = git::head_commit(root);
    // Plimsoll writes only commit ids; anything else is ignored.
    let checkpoint_head = checkpoint.head.as_deref().and_then(|id| CommitId::parse(id).ok());
    if let Some(checkpoint_head) = checkpoint_head.as_ref().filter(|commit| Some(*commit) != head.as_ref()) {
        if git::is_head_or_ancestor(root, checkpoint_head) {
            let commits = git::commits_since(root, checkpoint_head);
            staleness.new_commit_count = commits.len();
            staleness.new_commits = commits
                .into_iter()
                .take(MAX_LISTED_COMMITS)
                .map(|commit| CommitRef { id: commit.id.into(), subject: commit.subject })
                .collect();
        } else {
            // After a reset, a rebase or a switch of branches, the commits in between do not describe the work.
            staleness.lost_commit = Some(checkpoint_head.to_string());
        }
    }
    for file in &checkpoint.files_in_progress {
        let Some(digest) = &file.digest else { continue };
        match item_work::content_digest(&root.join(&file.path)) {
            Some(current_digest) if current_digest == *digest => {}
            Some(_) => staleness.changed_files.push(file.path.clone()),
            None => staleness.missing_files.push(file.path.clone()),
        }
    }
    staleness
}

/// Returns the user's text. If an agent has emptied PROMPT.md or damaged our block, returns the copy of the
/// text instead, and saves and journals the damaged file.
fn read_task_or_copy_saving_damaged_prompt(
    project: &Project,
    state: &RunState,
) -> Result<Option<Vec<u8>>, PromptError> {
    let copy = disk::read(&task_copy_path(project))?.filter(|copy| !is_blank(copy));
    let copy = match (read_task_from_prompt_or_copy(project), copy) {
        (Err(PromptError::MissingEndMarker), Some(copy)) => copy,
        (Ok(Some(text)), Some(copy)) if is_blank(&text) => copy,
        (text, _) => return text,
    };
    // The damaged file is saved before PROMPT.md is replaced. After a kill between the two, the next call
    // saves the same bytes again.
    let damaged_prompt_path = project.copies_folder().join("PROMPT.md.damaged");
    disk::replace(
        &damaged_prompt_path,
        &disk::read(&project.prompt_path())?.unwrap_or_default(),
        Durability::Lazy,
    )?;
    let event = JournalEvent::PromptRestored { old_file: damaged_prompt_path.to_string_lossy().into_owned() };
    journal::append_entry(project, JournalEntry::for_run(state, event))?;
    Ok(Some(copy))
}

fn is_blank(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_whitespace)
}

/// Saves a copy of the task; a new run replaces the copy of an earlier one.
pub fn save_task_copy(project: &Project, task: &[u8]) -> Result<(), StoreError> {
    let copy_path = task_copy_path(project);
    if disk::read(&copy_path)?.as_deref() == Some(task) {
        return Ok(());
    }
    disk::replace(&copy_path, task, Durability::Lazy)
}

/// Returns true if the copy contains exactly this text.
pub(crate) fn is_saved_task(project: &Project, task: Option<&[u8]>) -> Result<bool, StoreError> {
    Ok(task.is_some() && disk::read(&task_copy_path(project))?.as_deref() == task)
}

fn task_copy_path(project: &Project) -> std::path::PathBuf {
    project.copies_folder().join("task.md")
}

/// Returns the progress file's paragraph about the previous session if that session neither ticked an item nor
/// asked a question, so that its attempts are not repeated.
fn last_progress_if_no_tick_or_question(
    project: &Project,
    state: &RunState,
) -> Result<Option<String>, StoreError> {
    let last_entry = state.context_history.iter().rfind(|entry| !entry.ending.is_empty());
    // A session that asked the user has left its question below its item.
    let has_asked_question =
        |iteration| state.plan_items.parked_questions.iter().any(|question| question.iteration == iteration);
    if last_entry.is_none_or(|entry| entry.ticked_item_count > 0 || has_asked_question(entry.iteration)) {
        return Ok(None);
    }
    let text = disk::read_text(&project.progress_path())?.unwrap_or_default();
    let last_paragraph = text.rsplit("\n\n").map(str::trim).find(|part| !part.is_empty());
    // After the number of open items the paragraph says how the session ended and its last message; without
    // these there is nothing to learn from it.
    Ok(last_paragraph.filter(|paragraph| paragraph.contains(" open. ")).map(str::to_owned))
}
