//! Carries what sessions wrote into their copies of the plan over into the plan that the run shows. Nothing else of these copies
//! counts: boxes are the merger's, and lines that a session removed stay.
//!
//! A copy is read whenever an item's run has ended, before anything is done with its worktree, and before the worktree is removed.
//! The shown plan is written first, and what it has is not written again: a kill in between loses and repeats nothing.

use crate::workers::ground::ITEM_PLAN;
use crate::workers::shown_plan::{shown_path, shown_plan};
use crate::workers::tree::Trees;
use plimsoll_domain::added_notes::{AddedNote, added_notes};
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::text::{clip, one_line};
use plimsoll_domain::workers::Workers;
use plimsoll_domain::{TodoList, plan_edit};
use plimsoll_launcher::git;
use plimsoll_store::{Durability, Project, StoreError, disk};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// How much of another item's words a note of a fleet names.
const MAX_ITEM_CHARS: usize = 60;

/// Carries the notes of an item's sessions over into the plan that the run shows.
pub(super) fn carry_notes_to_shown_plan(
    project: &Project,
    now: &Workers,
    trees: &Trees,
    item: usize,
) -> Result<(), StoreError> {
    let Some(Written { copies, plan_copy, own_copy, .. }) = Written::read(now, trees, item) else {
        return Ok(());
    };
    let shown = shown_plan(project, now)?;
    let text = without_secrets(&shown);
    let mut added = copies.added(&text, plan_copy.as_deref());
    let own_copy = own_copy.map(|copy| copies.without_own_state(&copy));
    let items: Vec<&str> = copies.items().collect();
    added.extend(added_notes(&text, &own_copy.unwrap_or_default(), &text, &items, copies.own()));
    add_to(&shown_path(project, now), &shown, &added, copies.own())
}

/// Carries the notes that an item's sessions wrote into the copy of the plan over into the item's own plan, which travels with its
/// branch.
pub(super) fn carry_notes_to_item_plan(now: &Workers, trees: &Trees, item: usize) -> Result<(), StoreError> {
    let written = Written::read(now, trees, item);
    let Some(Written { copies, plan_copy, own_copy: Some(own_copy), item_plan }) = written else {
        return Ok(());
    };
    let added = copies.added(&own_copy, plan_copy.as_deref()).into_iter();
    let added: Vec<AddedNote> = added.map(|note| copies.name_other_item(note)).collect();
    add_to(&item_plan, &disk::read(&item_plan)?.unwrap_or_default(), &added, copies.own())
}

/// The notes that a plan has below its items, for the commit that lands one of them.
pub(super) fn with_shown_notes(plan: &[u8], shown: &[u8]) -> Vec<u8> {
    let there = TodoList::parse(&String::from_utf8_lossy(plan)).items;
    let there: HashSet<(&str, &str)> = there
        .iter()
        .flat_map(|item| item.notes.iter().map(|note| (item.text.as_str(), note.as_str())))
        .collect();
    let mut noted = plan.to_vec();
    for item in TodoList::parse(&String::from_utf8_lossy(shown)).items {
        let new = item.notes.iter().filter(|note| !there.contains(&(item.text.as_str(), note.as_str())));
        // The user may have noted something in the shown plan that belongs in no commit.
        let notes: Vec<String> = new.map(|note| plimsoll_secrets::without(note)).collect();
        while let Some(more) =
            (!notes.is_empty()).then(|| plan_edit::with_notes(&noted, &item.text, &notes)).flatten()
        {
            noted = more;
        }
    }
    noted
}

/// The plans in the worktree of an item.
struct Written<'a> {
    copies: Copies<'a>,
    /// The copy of the plan that git follows.
    plan_copy: Option<String>,
    /// The item's own plan.
    own_copy: Option<String>,
    item_plan: PathBuf,
}

impl<'a> Written<'a> {
    /// None if the item has no worktree.
    fn read(now: &'a Workers, trees: &Trees, item: usize) -> Option<Written<'a>> {
        let tree = trees.of_item(item);
        if !disk::exists(&tree) {
            return None;
        }
        let item_plan = trees.project(&tree).root().join(ITEM_PLAN);
        Some(Written {
            copies: Copies { now, item, base: base_plan(now, trees, item) },
            plan_copy: trees.plan_files.plan.as_ref().and_then(|plan| read_copy(&tree.join(plan.as_str()))),
            own_copy: read_copy(&item_plan),
            item_plan,
        })
    }
}

/// What the sessions of an item have written, and where from.
struct Copies<'a> {
    now: &'a Workers,
    item: usize,
    /// The plan as the commit has it at which the item's work begins.
    base: String,
}

impl Copies<'_> {
    fn own(&self) -> &str {
        &self.now.board.items[self.item].text
    }

    fn items(&self) -> impl Iterator<Item = &str> {
        self.now.board.items.iter().map(|row| row.text.as_str())
    }

    /// What the copy of the plan has, and neither its beginning nor this plan has.
    fn added(&self, shown: &str, copy: Option<&str>) -> Vec<AddedNote> {
        // The user's plan may have items that are none of the board's.
        let listed = [&self.base, shown].map(|plan| TodoList::parse(plan).items);
        let listed = listed.iter().flatten().map(|item| item.text.as_str());
        let items: Vec<&str> = self.items().chain(listed).collect();
        added_notes(&self.base, copy.unwrap_or_default(), shown, &items, self.own())
    }

    /// The item's own plan without the questions and answers, which are read elsewhere, and without parts that are done.
    fn without_own_state(&self, copy: &str) -> String {
        let is_done_part = |line: &str| {
            let items = TodoList::parse(line).items;
            items.first().is_some_and(|part| part.done && part.text != self.own())
        };
        let is_left = |line: &&str| !line.trim_start().starts_with(['?', '!']) && !is_done_part(line);
        copy.lines().filter(is_left).flat_map(|line| [line, "\n"]).collect()
    }

    fn name_other_item(&self, note: AddedNote) -> AddedNote {
        if note.item == self.own() {
            return note;
        }
        let text = format!("on \"{}\": {}", clip(&one_line(&note.item), MAX_ITEM_CHARS), note.text);
        AddedNote { item: self.own().to_owned(), text }
    }
}

fn base_plan(now: &Workers, trees: &Trees, item: usize) -> String {
    let beyond = CommitId::parse(&now.works[item].beyond).ok();
    let file = beyond.zip(trees.plan_files.plan.as_ref());
    let base = file.and_then(|(beyond, plan)| git::file_at(&trees.ground.repository, &beyond, plan));
    without_secrets(&base.unwrap_or_default())
}

/// The text of a copy. One that cannot be read is the session's own doing, and has no notes.
fn read_copy(path: &Path) -> Option<String> {
    let bytes = disk::read(path).ok().flatten()?;
    Some(without_secrets(&bytes))
}

/// Copies and what they are compared with lose the same, so that what is left can be compared.
fn without_secrets(plan: &[u8]) -> String {
    plimsoll_secrets::without(&String::from_utf8_lossy(plan))
}

/// Writes notes into a plan, each below its item. An item that is not there any more gives its notes to the session's own, and that
/// to the first one.
fn add_to(path: &Path, before: &[u8], added: &[AddedNote], own_item: &str) -> Result<(), StoreError> {
    let mut plan = before.to_vec();
    let items = TodoList::parse(&String::from_utf8_lossy(before)).items;
    for note in added {
        let mut wanted = [note.item.as_str(), own_item].into_iter();
        let place = wanted.find(|wanted| items.iter().any(|item| item.text == **wanted));
        let place = place.or_else(|| items.first().map(|item| item.text.as_str()));
        let notes = [note.text.clone()];
        plan = place.and_then(|place| plan_edit::with_notes(&plan, place, &notes)).unwrap_or(plan);
    }
    if plan == before { Ok(()) } else { disk::replace(path, &plan, Durability::Durable) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::board::{BoardItem, BoardState};

    #[test]
    fn a_fleet_names_the_item_that_a_note_is_about() {
        let row = |text: &str| BoardItem { text: text.to_owned(), ..BoardItem::default() };
        let board = BoardState { items: vec![row("one"), row("two")], ..BoardState::default() };
        let now = Workers { board, ..Workers::default() };
        let copies = Copies { now: &now, item: 1, base: "- [ ] one\n- [ ] two\n".to_owned() };
        let copy = "- [x] one\n  > here\n- [x] two\n  > there\n- [ ] three\n";
        let added = copies.added("- [ ] two\n", Some(copy)).into_iter();
        let texts: Vec<String> = added.map(|note| copies.name_other_item(note).text).collect();
        assert_eq!(texts, ["on \"one\": here", "there", "new item: three"]);
    }

    #[test]
    fn an_items_own_plan_gives_its_notes_and_open_parts_and_nothing_that_is_read_elsewhere() {
        let row = BoardItem { text: "one".to_owned(), ..BoardItem::default() };
        let now =
            Workers { board: BoardState { items: vec![row], ..BoardState::default() }, ..Workers::default() };
        let copies = Copies { now: &now, item: 0, base: String::new() };
        let own = copies.without_own_state(
            "- [x] one\n  > a\n  ? Which port?\n  ! 8042\n  - [x] part\n    > b\n  - [ ] rest\n",
        );
        assert_eq!(own, "- [x] one\n  > a\n    > b\n  - [ ] rest\n");
    }

    #[test]
    fn a_note_whose_item_is_gone_is_kept_below_the_sessions_own_item_or_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.md");
        let note = AddedNote { item: "gone".to_owned(), text: "a".to_owned() };
        for (own, expected) in
            [("two", "- [ ] one\n- [ ] two\n  > a\n"), ("three", "- [ ] one\n  > a\n- [ ] two\n")]
        {
            add_to(&path, b"- [ ] one\n- [ ] two\n", std::slice::from_ref(&note), own).unwrap();
            assert_eq!(disk::read_text(&path).unwrap().as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_landing_brings_all_shown_notes_once_and_no_secret() {
        let plan = "- [x] one\n    > old\n- [ ] two\n";
        let key = "AKIA2OGYBAH6STMMNXNN";
        let many: String = (0..50).map(|number| format!("  > note {number}\n")).collect();
        let shown =
            format!("- [ ] one\n  > old\n  > new\n- [ ] two\n  > {key}\n{many}- [ ] three\n  > gone\n");
        let noted = with_shown_notes(plan.as_bytes(), shown.as_bytes());
        let text = String::from_utf8(noted.clone()).unwrap();
        assert!(text.starts_with("- [x] one\n    > old\n  > new\n- [ ] two\n  > "), "{text}");
        assert!(text.ends_with("  > note 49\n") && !text.contains(key) && !text.contains("gone"), "{text}");
        assert_eq!(with_shown_notes(&noted, shown.as_bytes()), noted);
    }
}
