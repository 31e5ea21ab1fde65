//! Backup copies of files that an agent may delete with `git clean -fdx`: the plan, which the next session
//! needs, and the journal and the progress file, which the user reads. They are stored next to the copy of
//! the state.

use crate::checkpoint::facts;
use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::{RunState, TodoList};
use plimsoll_store::{Durability, Project, StoreError, disk, journal as journal_file, state_file};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Reads the plan, copies the file and records its ticks in the state, so that deleting the file later does
/// not undo them. A file that has lost an item is neither copied nor recorded. Returns the plan; `None` if
/// the run has none, or if the file is missing or was emptied.
pub fn load_plan_and_update_copy_and_items(
    project: &Project,
    state: &RunState,
) -> Result<Option<TodoList>, StoreError> {
    let Some(file) = &state.options.todo_file else { return Ok(None) };
    let Some(text) = disk::read_text(&project.root().join(file))? else { return Ok(None) };
    let todo = TodoList::parse(&text);
    update_plan_copy_and_state_unless_items_lost(project, state, &text, &todo)?;
    Ok((!facts::was_plan_emptied(&todo, state)).then_some(todo))
}

/// Updates the copy and the state's items from a plan that was just read, unless the plan has lost items.
fn update_plan_copy_and_state_unless_items_lost(
    project: &Project,
    state: &RunState,
    text: &str,
    todo: &TodoList,
) -> Result<(), StoreError> {
    let is_state_current =
        todo.has_exactly_items(&state.plan_items.todo_items, &state.plan_items.completed_items);
    let copy_path = plan_copy_path(project);
    let copy_text = disk::read_text(&copy_path)?;
    let is_copy_current = copy_text.as_deref() == Some(text);
    if (is_state_current && is_copy_current)
        || !todo.known_items_missing_from_lines(&state.plan_items.known_items).is_empty()
    {
        return Ok(());
    }
    // The copy is written first. After a kill between the two writes it does not match the state, so it is
    // not used for a restore; the next call reads the ticks from the file again.
    if !is_copy_current {
        disk::replace(&copy_path, text.as_bytes(), Durability::Lazy)?;
    }
    if is_state_current || state.lifecycle.has_ended() {
        return Ok(());
    }
    state_file::update_state(project, Some(&state.run_id), Durability::Lazy, |state| {
        state.update_items_and_questions_from_plan(todo);
    })
    .map(|_| ())
}

/// Returns the text with which to restore a lost plan file: the copy, or the items of the state if the copy
/// does not match them.
pub fn plan_text_from_copy_or_state(project: &Project, state: &RunState) -> Result<String, StoreError> {
    let copy_text = disk::read_text(&plan_copy_path(project))?.filter(|text| {
        TodoList::parse(text)
            .has_exactly_items(&state.plan_items.todo_items, &state.plan_items.completed_items)
    });
    let to_item = |is_ticked: bool| {
        move |text: &String| plimsoll_domain::todo::PlanItem {
            text: text.clone(),
            is_ticked,
            ..Default::default()
        }
    };
    let items = state
        .plan_items
        .completed_items
        .iter()
        .map(to_item(true))
        .chain(state.plan_items.todo_items.iter().map(to_item(false)));
    Ok(copy_text.unwrap_or_else(|| TodoList::from_items(items.collect()).render_markdown()))
}

/// Returns the plan. If an agent has deleted or emptied the file, it is first restored from the copy or the
/// state, and the restore is journaled.
pub fn load_or_restore_plan(project: &Project, state: &RunState) -> Result<Option<TodoList>, StoreError> {
    let Some(file) = &state.options.todo_file else { return Ok(None) };
    if let Some((text, todo)) = facts::load_plan_with_text(project, state) {
        update_plan_copy_and_state_unless_items_lost(project, state, &text, &todo)?;
        return Ok(Some(todo));
    }
    // The file may still contain text without items; that text is kept.
    let remaining_text = disk::read_text(&project.root().join(file))?.unwrap_or_default();
    let text = plan_text_from_copy_or_state(project, state)? + &remaining_text;
    let restored = TodoList::parse(&text);
    disk::replace(&project.root().join(file), text.as_bytes(), Durability::Durable)?;
    // A kill before this line loses only the journal entry, because the plan is already restored.
    let entry = JournalEntry::for_run(state, JournalEvent::PlanRestored { plan_path: file.clone() });
    journal_file::append_entry(project, entry)?;
    Ok(Some(restored))
}

fn plan_copy_path(project: &Project) -> PathBuf {
    project.copies_folder().join("todo.md")
}

/// Removes the copy of the plan, and copies the journal and the progress file anew, so that lines that the
/// user removed before the run are not restored.
pub fn recreate_backup_copies_for_new_run(project: &Project) -> Result<(), StoreError> {
    for copy_path in [plan_copy_path(project), journal_copy_path(project), progress_copy_path(project)] {
        disk::remove_if_exists(&copy_path)?;
    }
    update_copy(&project.journal_path(), &journal_copy_path(project))?;
    update_copy(&project.progress_path(), &progress_copy_path(project))
}

fn journal_copy_path(project: &Project) -> PathBuf {
    project.copies_folder().join("journal.jsonl")
}

fn progress_copy_path(project: &Project) -> PathBuf {
    project.copies_folder().join("progress.txt")
}

/// Synchronizes the journal and its copy: lines that the journal has lost are restored before its new lines.
pub fn sync_journal(project: &Project) -> Result<(), StoreError> {
    let copy_path = journal_copy_path(project);
    // Restored first, because `update_copy` would otherwise overwrite the copy with the shortened file.
    restore_lost_parts_from_copy(&project.journal_path(), &copy_path, "\n")?;
    update_copy(&project.journal_path(), &copy_path)
}

/// Appends a paragraph to the progress file unless it is already the last one. If the file has become shorter
/// than its copy, its lost paragraphs are restored first. A file that was rewritten is not restored.
pub fn restore_progress_and_append_paragraph_once(
    project: &Project,
    paragraph: &str,
) -> Result<(), StoreError> {
    let (file, copy_path) = (project.progress_path(), progress_copy_path(project));
    if disk::file_size(&file).unwrap_or(0) < disk::file_size(&copy_path).unwrap_or(0) {
        restore_lost_parts_from_copy(&file, &copy_path, "\n\n")?;
    }
    // After a kill that followed this write, the same paragraph is passed again, with another timestamp.
    let paragraph_body =
        |paragraph: &str| paragraph.split_once("] ").map(|(_, body)| body.trim_end().to_owned());
    let text = disk::read_text(&file)?.unwrap_or_default();
    let is_already_last =
        text.trim_end().rsplit("\n\n").next().and_then(paragraph_body) == paragraph_body(paragraph);
    if !is_already_last || paragraph_body(paragraph).is_none() {
        disk::append(&file, paragraph.as_bytes())?;
    }
    // Copied last: after a kill the file is longer than its copy, so nothing is lost.
    update_copy(&file, &copy_path)
}

/// Restores the parts that a file has lost since it was copied: writes the whole copy, then the new parts of
/// the file. A file that only grew is not read into memory. Returns an error if a file is too large.
fn restore_lost_parts_from_copy(file: &Path, copy: &Path, separator: &str) -> Result<(), StoreError> {
    const MAX_RESTORE_BYTES: u64 = 16 * 1024 * 1024;
    if disk::copy_length_if_prefix(file, copy)?.is_some() {
        return Ok(());
    }
    if let Some(path) =
        [file, copy].into_iter().find(|path| disk::file_size(path).unwrap_or(0) > MAX_RESTORE_BYTES)
    {
        return Err(StoreError::TooLarge { path: path.to_owned(), max_bytes: MAX_RESTORE_BYTES });
    }
    let copy_text = disk::read_text(copy)?.unwrap_or_default();
    let file_text = disk::read_text(file)?.unwrap_or_default();
    let copied_parts: HashSet<&str> = copy_text.split_inclusive(separator).collect();
    let new_parts = file_text.split_inclusive(separator).filter(|part| !copied_parts.contains(part));
    let merged: String = std::iter::once(copy_text.as_str()).chain(new_parts).collect();
    disk::replace(file, merged.as_bytes(), Durability::Lazy)
}

/// Updates the copy; usually only the new end of the file is appended.
fn update_copy(file: &Path, copy: &Path) -> Result<(), StoreError> {
    match disk::copy_length_if_prefix(file, copy)? {
        Some(copied_length) => disk::append_tail_to_copy(file, copied_length, copy),
        None => disk::replace(copy, &disk::read(file)?.unwrap_or_default(), Durability::Lazy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::state::{PlanItems, RunOptions};

    fn new_project() -> (tempfile::TempDir, Project) {
        let folder = tempfile::tempdir().unwrap();
        disk::create_folder(&folder.path().join(".git")).unwrap();
        let project = Project::with_local_files(folder.path()).with_runs_folder(&folder.path().join("runs"));
        plimsoll_store::ledger::enable_ledger_writes();
        (folder, project)
    }

    fn write_text(path: &Path, text: &str) {
        disk::replace(path, text.as_bytes(), Durability::Lazy).unwrap();
    }

    fn read_text(path: &Path) -> String {
        disk::read_text(path).unwrap().unwrap_or_default()
    }

    #[test]
    fn lost_journal_lines_are_restored_before_the_new_ones() {
        let (_folder, project) = new_project();
        let path = project.journal_path();
        for (text_now, expected) in [
            ("", ""),
            ("1\n2\n", "1\n2\n"),
            ("1\n2\n3\n", "1\n2\n3\n"),
            // Everything was lost, and a new line was added.
            ("4\n", "1\n2\n3\n4\n"),
            // An older version of the file, with a new line.
            ("1\n2\n5\n", "1\n2\n3\n4\n5\n"),
        ] {
            write_text(&path, text_now);
            sync_journal(&project).unwrap();
            assert_eq!(
                (read_text(&path), read_text(&journal_copy_path(&project))),
                (expected.into(), expected.into()),
                "{text_now:?}"
            );
        }
        disk::remove_if_exists(&path).unwrap();
        recreate_backup_copies_for_new_run(&project).unwrap();
        sync_journal(&project).unwrap();
        assert!(!disk::exists(&path), "a new run does not bring back what a person has removed");
    }

    #[test]
    fn lost_progress_is_restored_and_a_rewritten_file_stays() {
        let (_folder, project) = new_project();
        let path = project.progress_path();
        restore_progress_and_append_paragraph_once(&project, "one\n\n").unwrap();
        restore_progress_and_append_paragraph_once(&project, "two\n\n").unwrap();
        disk::remove_if_exists(&path).unwrap();
        restore_progress_and_append_paragraph_once(&project, "three\n\n").unwrap();
        assert_eq!(read_text(&path), "one\n\ntwo\n\nthree\n\n", "gone");
        write_text(&path, "one\n\n");
        restore_progress_and_append_paragraph_once(&project, "four\n\n").unwrap();
        assert_eq!(read_text(&path), "one\n\ntwo\n\nthree\n\nfour\n\n", "an old state of it");
        write_text(&path, "A person has written another text, which is longer.\n\n");
        restore_progress_and_append_paragraph_once(&project, "five\n\n").unwrap();
        assert_eq!(read_text(&path), "A person has written another text, which is longer.\n\nfive\n\n");
    }

    #[test]
    fn a_lost_plan_is_restored_with_its_ticks_and_text() {
        let (_folder, project) = new_project();
        let file = project.root().join("plan.md");
        let state = RunState {
            run_id: "r1".into(),
            options: RunOptions { todo_file: Some("plan.md".into()), ..RunOptions::default() },
            plan_items: PlanItems {
                todo_items: vec!["one".into(), "two".into()],
                known_items: vec!["one".into(), "two".into()],
                ..PlanItems::default()
            },
            ..RunState::default()
        };
        state_file::create_ledger_and_write_initial_state(&project, &state).unwrap();
        let load_state = || state_file::load_state(&project, Some(&"r1".into())).unwrap().unwrap();
        write_text(&file, "# My plan\n- [x] one\n- [ ] two\n");
        load_plan_and_update_copy_and_items(&project, &load_state()).unwrap();
        assert_eq!(
            (load_state().plan_items.completed_items, load_state().plan_items.todo_items),
            (vec!["one".to_owned()], vec!["two".to_owned()])
        );
        // A file that has lost an item is not copied.
        write_text(&file, "- [x] one\n");
        load_plan_and_update_copy_and_items(&project, &load_state()).unwrap();
        disk::remove_if_exists(&file).unwrap();
        load_plan_and_update_copy_and_items(&project, &load_state()).unwrap();
        assert_eq!(
            plan_text_from_copy_or_state(&project, &load_state()).unwrap(),
            "# My plan\n- [x] one\n- [ ] two\n"
        );
        disk::remove_if_exists(&plan_copy_path(&project)).unwrap();
        assert_eq!(plan_text_from_copy_or_state(&project, &load_state()).unwrap(), "- [x] one\n- [ ] two\n");
    }
}
