//! Copies the notes that sessions wrote into their copies of the plan to the plan that the run shows. Nothing
//! else is copied: the merger sets the checkboxes, and lines that a session removed are kept.
//!
//! A copy is read when an item's run has ended, before its worktree is used for anything else, and before the
//! worktree is removed. The shown plan is written first, and notes that it already has are not added again,
//! so a kill in between neither loses nor repeats a note.

use crate::workers::project_checkout::ITEM_PLAN_FILE;
use crate::workers::shown_plan::{read_shown_plan_or_user_plan, shown_plan_path};
use crate::workers::worktrees::Worktrees;
use plimsoll_domain::added_notes::{AddedNote, collect_added_notes};
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_domain::workers::WorkersState;
use plimsoll_domain::{TodoList, plan_edit};
use plimsoll_launcher::git;
use plimsoll_store::{Durability, Project, StoreError, disk};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The maximum length of another item's text in a note of a fleet.
const MAX_ITEM_CHARS: usize = 60;

/// Adds the notes of an item's sessions to the plan that the run shows.
pub(super) fn add_session_notes_to_shown_plan(
    project: &Project,
    workers_state: &WorkersState,
    worktrees: &Worktrees,
    item: usize,
) -> Result<(), StoreError> {
    let Some(WorktreePlans { note_source, plan_copy, item_plan, .. }) =
        WorktreePlans::read(workers_state, worktrees, item)
    else {
        return Ok(());
    };
    let shown_plan = read_shown_plan_or_user_plan(project, workers_state)?;
    let shown_text = redact_plan_text(&shown_plan);
    let mut added_notes =
        note_source.notes_added_in_copy_missing_in_destination(&shown_text, plan_copy.as_deref());
    let notes_in_item_plan = item_plan
        .map(|item_plan_text| note_source.remove_questions_answers_and_ticked_parts(&item_plan_text));
    let item_texts: Vec<&str> = note_source.item_texts().collect();
    added_notes.extend(collect_added_notes(
        &shown_text,
        &notes_in_item_plan.unwrap_or_default(),
        &shown_text,
        &item_texts,
        note_source.item_text(),
    ));
    add_notes_and_write_plan_if_changed(
        &shown_plan_path(project, workers_state),
        &shown_plan,
        &added_notes,
        note_source.item_text(),
    )
}

/// Adds the notes that an item's sessions wrote into the copy of the plan to the item's own plan, which is
/// transferred with the item's branch.
pub(super) fn copy_notes_from_plan_copy_to_item_plan(
    workers_state: &WorkersState,
    worktrees: &Worktrees,
    item: usize,
) -> Result<(), StoreError> {
    let worktree_plans = WorktreePlans::read(workers_state, worktrees, item);
    let Some(WorktreePlans { note_source, plan_copy, item_plan: Some(item_plan_text), item_plan_path }) =
        worktree_plans
    else {
        return Ok(());
    };
    let notes_in_copy = note_source
        .notes_added_in_copy_missing_in_destination(&item_plan_text, plan_copy.as_deref())
        .into_iter();
    let added_notes: Vec<AddedNote> =
        notes_in_copy.map(|note| note_source.move_note_to_this_item_with_prefix(note)).collect();
    add_notes_and_write_plan_if_changed(
        &item_plan_path,
        &disk::read(&item_plan_path)?.unwrap_or_default(),
        &added_notes,
        note_source.item_text(),
    )
}

/// Adds the notes of the shown plan, with secrets redacted, to a plan that is about to be committed with an
/// item's work.
pub(super) fn add_redacted_notes_of_shown_plan(plan: &[u8], shown_plan: &[u8]) -> Vec<u8> {
    let plan_items = TodoList::parse(&String::from_utf8_lossy(plan)).items;
    let existing_notes: HashSet<(&str, &str)> = plan_items
        .iter()
        .flat_map(|item| item.notes.iter().map(|note| (item.text.as_str(), note.as_str())))
        .collect();
    let mut plan_with_notes = plan.to_vec();
    for item in TodoList::parse(&String::from_utf8_lossy(shown_plan)).items {
        let new_notes =
            item.notes.iter().filter(|note| !existing_notes.contains(&(item.text.as_str(), note.as_str())));
        // The user may have written a secret into the shown plan, which must not be committed.
        let notes: Vec<String> = new_notes.map(|note| plimsoll_secrets::redact(note)).collect();
        while let Some(extended_plan) = (!notes.is_empty())
            .then(|| plan_edit::add_new_notes_to_item(&plan_with_notes, &item.text, &notes))
            .flatten()
        {
            plan_with_notes = extended_plan;
        }
    }
    plan_with_notes
}

struct WorktreePlans<'a> {
    note_source: SessionNoteSource<'a>,
    /// The copy of the plan that git tracks.
    plan_copy: Option<String>,
    /// The text of the item's own plan.
    item_plan: Option<String>,
    item_plan_path: PathBuf,
}

impl<'a> WorktreePlans<'a> {
    /// Reads the plans in the worktree of an item. Returns `None` if there is no worktree.
    fn read(
        workers_state: &'a WorkersState,
        worktrees: &Worktrees,
        item: usize,
    ) -> Option<WorktreePlans<'a>> {
        let worktree = worktrees.item_worktree(item);
        if !disk::exists(&worktree) {
            return None;
        }
        let item_plan_path = worktrees.project_in(&worktree).root().join(ITEM_PLAN_FILE);
        Some(WorktreePlans {
            note_source: SessionNoteSource {
                workers_state,
                item,
                base_plan: read_redacted_base_plan_or_empty(workers_state, worktrees, item),
            },
            plan_copy: worktrees
                .plan_files
                .plan
                .as_ref()
                .and_then(|plan| read_redacted_plan_if_readable(&worktree.join(plan.as_str()))),
            item_plan: read_redacted_plan_if_readable(&item_plan_path),
            item_plan_path,
        })
    }
}

/// The source of notes: the item whose sessions wrote them, and the plan with which they started.
struct SessionNoteSource<'a> {
    workers_state: &'a WorkersState,
    item: usize,
    /// The plan in the commit at which the item's work begins.
    base_plan: String,
}

impl SessionNoteSource<'_> {
    fn item_text(&self) -> &str {
        &self.workers_state.board.items[self.item].text
    }

    fn item_texts(&self) -> impl Iterator<Item = &str> {
        self.workers_state.board.items.iter().map(|board_item| board_item.text.as_str())
    }

    /// Returns the notes that a copy of the plan has, and that neither the base plan nor the destination has.
    fn notes_added_in_copy_missing_in_destination(
        &self,
        destination_plan: &str,
        plan_copy: Option<&str>,
    ) -> Vec<AddedNote> {
        // The user's plan may have items that the board does not have.
        let parsed_plans = [&self.base_plan, destination_plan].map(|plan| TodoList::parse(plan).items);
        let listed_item_texts = parsed_plans.iter().flatten().map(|item| item.text.as_str());
        let item_texts: Vec<&str> = self.item_texts().chain(listed_item_texts).collect();
        collect_added_notes(
            &self.base_plan,
            plan_copy.unwrap_or_default(),
            destination_plan,
            &item_texts,
            self.item_text(),
        )
    }

    /// Returns the item's plan without questions and answers, which are read elsewhere, and without ticked
    /// parts of the item.
    fn remove_questions_answers_and_ticked_parts(&self, item_plan: &str) -> String {
        let is_ticked_part = |line: &str| {
            let items = TodoList::parse(line).items;
            items.first().is_some_and(|part| part.is_ticked && part.text != self.item_text())
        };
        let is_kept_line = |line: &&str| !line.trim_start().starts_with(['?', '!']) && !is_ticked_part(line);
        item_plan.lines().filter(is_kept_line).flat_map(|line| [line, "\n"]).collect()
    }

    fn move_note_to_this_item_with_prefix(&self, note: AddedNote) -> AddedNote {
        if note.item == self.item_text() {
            return note;
        }
        let text = format!(
            "on \"{}\": {}",
            truncate_end(&to_safe_single_line(&note.item), MAX_ITEM_CHARS),
            note.text
        );
        AddedNote { item: self.item_text().to_owned(), text }
    }
}

fn read_redacted_base_plan_or_empty(
    workers_state: &WorkersState,
    worktrees: &Worktrees,
    item: usize,
) -> String {
    let base_commit = CommitId::parse(&workers_state.item_progress[item].base_commit_id).ok();
    let commit_and_plan = base_commit.zip(worktrees.plan_files.plan.as_ref());
    let plan_bytes = commit_and_plan.and_then(|(base_commit, plan)| {
        git::file_content_in_commit(&worktrees.checkout.repository_root, &base_commit, plan)
    });
    redact_plan_text(&plan_bytes.unwrap_or_default())
}

/// Reads a plan and redacts secrets. Returns `None` if it cannot be read: a session may have damaged it.
fn read_redacted_plan_if_readable(path: &Path) -> Option<String> {
    let bytes = disk::read(path).ok().flatten()?;
    Some(redact_plan_text(&bytes))
}

/// Redacts secrets in copies and in the plans that they are compared with, so that equal notes stay equal.
fn redact_plan_text(plan: &[u8]) -> String {
    plimsoll_secrets::redact(&String::from_utf8_lossy(plan))
}

/// Adds notes to a plan, each below its item, and writes the plan if it has changed. If the item is not in
/// the plan, the note goes below the fallback item or, if that is missing too, below the first item.
fn add_notes_and_write_plan_if_changed(
    path: &Path,
    old_plan: &[u8],
    added_notes: &[AddedNote],
    fallback_item_text: &str,
) -> Result<(), StoreError> {
    let mut plan = old_plan.to_vec();
    let items = TodoList::parse(&String::from_utf8_lossy(old_plan)).items;
    for note in added_notes {
        let mut candidate_item_texts = [note.item.as_str(), fallback_item_text].into_iter();
        let item_text =
            candidate_item_texts.find(|candidate| items.iter().any(|item| item.text == **candidate));
        let item_text = item_text.or_else(|| items.first().map(|item| item.text.as_str()));
        let notes = [note.text.clone()];
        plan = item_text
            .and_then(|item_text| plan_edit::add_new_notes_to_item(&plan, item_text, &notes))
            .unwrap_or(plan);
    }
    if plan == old_plan { Ok(()) } else { disk::replace(path, &plan, Durability::Durable) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::board::{BoardItem, BoardState};

    #[test]
    fn a_note_of_a_fleet_names_the_other_item_that_it_is_about() {
        let board_item = |text: &str| BoardItem { text: text.to_owned(), ..BoardItem::default() };
        let board = BoardState { items: vec![board_item("one"), board_item("two")], ..BoardState::default() };
        let workers_state = WorkersState { board, ..WorkersState::default() };
        let note_source = SessionNoteSource {
            workers_state: &workers_state,
            item: 1,
            base_plan: "- [ ] one\n- [ ] two\n".to_owned(),
        };
        let plan_copy = "- [x] one\n  > here\n- [x] two\n  > there\n- [ ] three\n";
        let added = note_source
            .notes_added_in_copy_missing_in_destination("- [ ] two\n", Some(plan_copy))
            .into_iter();
        let texts: Vec<String> =
            added.map(|note| note_source.move_note_to_this_item_with_prefix(note).text).collect();
        assert_eq!(texts, ["on \"one\": here", "there", "new item: three"]);
    }

    #[test]
    fn questions_answers_and_done_parts_are_removed_from_the_item_plan() {
        let board_item = BoardItem { text: "one".to_owned(), ..BoardItem::default() };
        let workers_state = WorkersState {
            board: BoardState { items: vec![board_item], ..BoardState::default() },
            ..WorkersState::default()
        };
        let note_source =
            SessionNoteSource { workers_state: &workers_state, item: 0, base_plan: String::new() };
        let remaining_plan = note_source.remove_questions_answers_and_ticked_parts(
            "- [x] one\n  > a\n  ? Which port?\n  ! 8042\n  - [x] part\n    > b\n  - [ ] rest\n",
        );
        assert_eq!(remaining_plan, "- [x] one\n  > a\n    > b\n  - [ ] rest\n");
    }

    #[test]
    fn a_note_on_a_missing_item_goes_below_the_own_item_or_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.md");
        let note = AddedNote { item: "gone".to_owned(), text: "a".to_owned() };
        for (own, expected) in
            [("two", "- [ ] one\n- [ ] two\n  > a\n"), ("three", "- [ ] one\n  > a\n- [ ] two\n")]
        {
            add_notes_and_write_plan_if_changed(
                &path,
                b"- [ ] one\n- [ ] two\n",
                std::slice::from_ref(&note),
                own,
            )
            .unwrap();
            assert_eq!(disk::read_text(&path).unwrap().as_deref(), Some(expected));
        }
    }

    #[test]
    fn shown_notes_are_added_once_and_without_secrets() {
        let plan = "- [x] one\n    > old\n- [ ] two\n";
        let secret = "AKIA2OGYBAH6STMMNXNN";
        let many_notes: String = (0..50).map(|number| format!("  > note {number}\n")).collect();
        let shown = format!(
            "- [ ] one\n  > old\n  > new\n- [ ] two\n  > {secret}\n{many_notes}- [ ] three\n  > gone\n"
        );
        let plan_with_notes = add_redacted_notes_of_shown_plan(plan.as_bytes(), shown.as_bytes());
        let text = String::from_utf8(plan_with_notes.clone()).unwrap();
        assert!(text.starts_with("- [x] one\n    > old\n  > new\n- [ ] two\n  > "), "{text}");
        assert!(
            text.ends_with("  > note 49\n") && !text.contains(secret) && !text.contains("gone"),
            "{text}"
        );
        assert_eq!(add_redacted_notes_of_shown_plan(&plan_with_notes, shown.as_bytes()), plan_with_notes);
    }
}
