//! Copies of what an agent's `git clean -fdx` removes and is needed: the plan for the next
//! session, the journal and the progress file for the user in the morning. They are next to the state's copy.

use crate::checkpoint::facts;
use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::{RunState, TodoList};
use plimsoll_store::{Durability, Project, StoreError, disk, journal as journal_file, state_file};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Takes the ticks of the plan file into the state, and keeps the file, as soon as they are seen: a file that
/// is deleted a moment later has not undone them. A file that has lost an item is not kept. Returns the plan; none if the run
/// has none, or if the file is missing or was emptied.
pub fn todo(project: &Project, state: &RunState) -> Result<Option<TodoList>, StoreError> {
    let Some(file) = &state.options.todo_file else { return Ok(None) };
    let Some(text) = disk::read_text(&project.root().join(file))? else { return Ok(None) };
    let todo = TodoList::parse(&text);
    todo_as_read(project, state, &text, &todo)?;
    Ok((!facts::is_emptied(&todo, state)).then_some(todo))
}

/// The same for a caller that has just read the file.
fn todo_as_read(project: &Project, state: &RunState, text: &str, todo: &TodoList) -> Result<(), StoreError> {
    let is_known = todo.has_exactly(&state.items.todo_items, &state.items.completed_items);
    let copy = todo_copy(project);
    let kept = disk::read_text(&copy)?;
    let is_kept = kept.as_deref() == Some(text);
    if (is_known && is_kept) || !todo.vanished(&state.items.known_items).is_empty() {
        return Ok(());
    }
    // The copy first. After a kill between the two it does not agree with the state, so `lost_todo` does not use
    // it; the next look takes the ticks from the file again.
    if !is_kept {
        disk::replace(&copy, text.as_bytes(), Durability::Lazy)?;
    }
    if is_known || state.lifecycle.is_over() {
        return Ok(());
    }
    state_file::update(project, Some(&state.run_id), Durability::Lazy, |state| {
        state.take_items(todo);
    })
    .map(|_| ())
}

/// The text of a plan file that is gone: the copy, or what the state knows where the copy knows less.
pub fn lost_todo(project: &Project, state: &RunState) -> Result<String, StoreError> {
    let copy = disk::read_text(&todo_copy(project))?.filter(|text| {
        TodoList::parse(text).has_exactly(&state.items.todo_items, &state.items.completed_items)
    });
    let item = |done: bool| {
        move |text: &String| plimsoll_domain::todo::Item { text: text.clone(), done, ..Default::default() }
    };
    let items = state
        .items
        .completed_items
        .iter()
        .map(item(true))
        .chain(state.items.todo_items.iter().map(item(false)));
    Ok(copy.unwrap_or_else(|| TodoList::from_items(items.collect()).render()))
}

/// The plan as it is; where an agent has taken the whole file away, or emptied it, it is written again
/// from what the state knows.
pub fn mend_todo(project: &Project, state: &RunState) -> Result<Option<TodoList>, StoreError> {
    let Some(file) = &state.options.todo_file else { return Ok(None) };
    if let Some((text, there)) = facts::todo_with_text(project, state) {
        todo_as_read(project, state, &text, &there)?;
        return Ok(Some(there));
    }
    // What is in a list that has been emptied is no item, and is not lost.
    let rest = disk::read_text(&project.root().join(file))?.unwrap_or_default();
    let text = lost_todo(project, state)? + &rest;
    let mended = TodoList::parse(&text);
    disk::replace(&project.root().join(file), text.as_bytes(), Durability::Durable)?;
    // A kill before this costs the line alone: the next look finds the list in place.
    let line = JournalEntry::of_run(state, JournalEvent::TodoMended { file: file.clone() });
    journal_file::note(project, line)?;
    Ok(Some(mended))
}

fn todo_copy(project: &Project) -> PathBuf {
    project.copies().join("todo.md")
}

/// A new run starts from what is there: what the user has removed before it stays removed.
pub fn afresh(project: &Project) -> Result<(), StoreError> {
    for copy in [todo_copy(project), journal_copy(project), progress_copy(project)] {
        disk::remove(&copy)?;
    }
    keep(&project.journal(), &journal_copy(project))?;
    keep(&project.progress(), &progress_copy(project))
}

fn journal_copy(project: &Project) -> PathBuf {
    project.copies().join("journal.jsonl")
}

fn progress_copy(project: &Project) -> PathBuf {
    project.copies().join("progress.txt")
}

/// Brings the journal and its copy together: lines that the journal has lost come back before its new ones.
pub fn journal(project: &Project) -> Result<(), StoreError> {
    let copy = journal_copy(project);
    // Restored first: `keep` would take the loss over into the copy.
    restore(&project.journal(), &copy, "\n")?;
    keep(&project.journal(), &copy)
}

/// Adds a paragraph to the progress file. One that has become shorter has lost some: they come back first. One
/// that was rewritten stays as it is.
pub fn append_progress(project: &Project, paragraph: &str) -> Result<(), StoreError> {
    let (file, copy) = (project.progress(), progress_copy(project));
    if disk::size(&file).unwrap_or(0) < disk::size(&copy).unwrap_or(0) {
        restore(&file, &copy, "\n\n")?;
    }
    // A process that was killed after this write comes here again.
    let words = |paragraph: &str| paragraph.split_once("] ").map(|(_, words)| words.trim_end().to_owned());
    let text = disk::read_text(&file)?.unwrap_or_default();
    let is_there = text.trim_end().rsplit("\n\n").next().and_then(words) == words(paragraph);
    if !is_there || words(paragraph).is_none() {
        disk::append(&file, paragraph.as_bytes())?;
    }
    // Copied last: after a kill the file is longer than its copy, which is no loss.
    keep(&file, &copy)
}

/// Puts back what a file has lost since it was kept: all of the copy, then the parts that are new. A file that only grew
/// is not taken into memory, and one that is too large for that is nothing that was lost.
fn restore(file: &Path, copy: &Path, separator: &str) -> Result<(), StoreError> {
    const MOST: u64 = 16 * 1024 * 1024;
    if disk::goes_on_from(file, copy)?.is_some() {
        return Ok(());
    }
    if let Some(path) = [file, copy].into_iter().find(|path| disk::size(path).unwrap_or(0) > MOST) {
        return Err(StoreError::TooLarge { path: path.to_owned(), most: MOST });
    }
    let kept = disk::read_text(copy)?.unwrap_or_default();
    let now = disk::read_text(file)?.unwrap_or_default();
    let known: HashSet<&str> = kept.split_inclusive(separator).collect();
    let new = now.split_inclusive(separator).filter(|part| !known.contains(part));
    let whole: String = std::iter::once(kept.as_str()).chain(new).collect();
    disk::replace(file, whole.as_bytes(), Durability::Lazy)
}

/// Brings the copy up to date; mostly it only grows.
fn keep(file: &Path, copy: &Path) -> Result<(), StoreError> {
    match disk::goes_on_from(file, copy)? {
        Some(known) => disk::append_rest(file, known, copy),
        None => disk::replace(copy, &disk::read(file)?.unwrap_or_default(), Durability::Lazy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::state::{Items, RunOptions};

    fn project() -> (tempfile::TempDir, Project) {
        let folder = tempfile::tempdir().unwrap();
        disk::create_folder(&folder.path().join(".git")).unwrap();
        let project = Project::at(folder.path()).with_runs_in(&folder.path().join("runs"));
        plimsoll_store::ledger::keep();
        (folder, project)
    }

    fn put(path: &Path, text: &str) {
        disk::replace(path, text.as_bytes(), Durability::Lazy).unwrap();
    }

    fn text(path: &Path) -> String {
        disk::read_text(path).unwrap().unwrap_or_default()
    }

    #[test]
    fn journal_lines_that_are_lost_come_back_before_the_new_ones() {
        let (_folder, project) = project();
        let path = project.journal();
        for (now, whole) in [
            ("", ""),
            ("1\n2\n", "1\n2\n"),
            ("1\n2\n3\n", "1\n2\n3\n"),
            // All gone, and a new line.
            ("4\n", "1\n2\n3\n4\n"),
            // An old state of it, and a new line.
            ("1\n2\n5\n", "1\n2\n3\n4\n5\n"),
        ] {
            put(&path, now);
            journal(&project).unwrap();
            assert_eq!((text(&path), text(&journal_copy(&project))), (whole.into(), whole.into()), "{now:?}");
        }
        disk::remove(&path).unwrap();
        afresh(&project).unwrap();
        journal(&project).unwrap();
        assert!(!disk::exists(&path), "a new run does not bring back what a person has removed");
    }

    #[test]
    fn progress_that_is_lost_comes_back_and_a_rewritten_file_stays() {
        let (_folder, project) = project();
        let path = project.progress();
        append_progress(&project, "one\n\n").unwrap();
        append_progress(&project, "two\n\n").unwrap();
        disk::remove(&path).unwrap();
        append_progress(&project, "three\n\n").unwrap();
        assert_eq!(text(&path), "one\n\ntwo\n\nthree\n\n", "gone");
        put(&path, "one\n\n");
        append_progress(&project, "four\n\n").unwrap();
        assert_eq!(text(&path), "one\n\ntwo\n\nthree\n\nfour\n\n", "an old state of it");
        put(&path, "A person has written another text, which is longer.\n\n");
        append_progress(&project, "five\n\n").unwrap();
        assert_eq!(text(&path), "A person has written another text, which is longer.\n\nfive\n\n");
    }

    #[test]
    fn a_to_do_file_comes_back_with_its_last_ticks_and_its_own_words() {
        let (_folder, project) = project();
        let file = project.root().join("plan.md");
        let state = RunState {
            run_id: "r1".into(),
            options: RunOptions { todo_file: Some("plan.md".into()), ..RunOptions::default() },
            items: Items {
                todo_items: vec!["one".into(), "two".into()],
                known_items: vec!["one".into(), "two".into()],
                ..Items::default()
            },
            ..RunState::default()
        };
        state_file::create(&project, &state).unwrap();
        let now = || state_file::load(&project, Some(&"r1".into())).unwrap().unwrap();
        put(&file, "# My plan\n- [x] one\n- [ ] two\n");
        todo(&project, &now()).unwrap();
        assert_eq!(
            (now().items.completed_items, now().items.todo_items),
            (vec!["one".to_owned()], vec!["two".to_owned()])
        );
        // An item that vanishes is not taken over.
        put(&file, "- [x] one\n");
        todo(&project, &now()).unwrap();
        disk::remove(&file).unwrap();
        todo(&project, &now()).unwrap();
        assert_eq!(lost_todo(&project, &now()).unwrap(), "# My plan\n- [x] one\n- [ ] two\n");
        disk::remove(&todo_copy(&project)).unwrap();
        assert_eq!(lost_todo(&project, &now()).unwrap(), "- [x] one\n- [ ] two\n");
    }
}
