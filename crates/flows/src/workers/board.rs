//! The board of a parallel run, and what the run's state and its plan show of it.

use crate::workers::FleetPlan;
use crate::workers::ground::Ground;
use crate::workers::table::Table;
use plimsoll_domain::board::{Aside, BoardItem, BoardState, Stage};
use plimsoll_domain::format::Format;
use plimsoll_domain::question::{OpenQuestion, Question};
use plimsoll_domain::workers::{Member, Used, Work, Workers};
use plimsoll_domain::{RunState, TodoList, plan_edit};
use plimsoll_policy::plan::Item;
use plimsoll_policy::workers::{board, reopen};
use plimsoll_store::{Durability, Project, StoreError, disk, state_file};
use std::path::PathBuf;

/// The plan as the run shows it, where git follows the plan itself: with the ticks of what is merged, with questions and the
/// user's answers. The user's own files stay as they are until the work is merged.
pub(super) const SHOWN: &str = ".claude/plimsoll/plan.md";
/// How much of a plan's name stands in that of the branch.
const NAME: usize = 40;

/// The record of a new parallel run.
pub(super) fn new_record(project: &Project, run: &RunState, ground: &Ground) -> Result<Workers, StoreError> {
    let plan = run.options.todo_file.clone().unwrap_or_default();
    let text = disk::read_text(&project.root().join(&plan))?.unwrap_or_default();
    let items: Vec<Item> = TodoList::parse(&text)
        .items
        .into_iter()
        .map(|item| Item { text: item.text, done: item.done, lines: None, model: None })
        .collect();
    let board = board(&items);
    let plan_is_tracked = ground.is_tracked(&plan);
    let is_shown_apart = plan_is_tracked && ground.repo_path(&plan) != ground.repo_path(SHOWN);
    let path = project.root().join(SHOWN);
    if let (true, Some(earlier)) = (is_shown_apart, disk::read(&path)?) {
        // An earlier run showed its own plan there. What the user answered in it is nowhere else.
        disk::replace(&path, &with_answers(text.as_bytes(), &earlier), Durability::Durable)?;
    }
    Ok(Workers {
        format: Format,
        works: vec![Work::default(); board.items.len()],
        board,
        target: format!("plimsoll/{}-{}", slug(&plan), run.run_id.chars().take(8).collect::<String>()),
        began_at: ground.commit.to_string(),
        users_branch: ground.branch.clone(),
        plan_is_tracked,
        plan,
        passed: Vec::new(),
        waits_for_next_day: false,
        stop_reason: None,
        member: None,
    })
}

/// The plan with the questions about its open items that have an answer in an earlier copy of it.
fn with_answers(plan: &[u8], earlier: &[u8]) -> Vec<u8> {
    let mut plan = plan.to_vec();
    for item in TodoList::parse(&String::from_utf8_lossy(earlier)).items {
        for asked in item.questions.iter().filter(|asked| !asked.answers.is_empty()) {
            let question = OpenQuestion {
                item: item.text.clone(),
                question: OpenQuestion::kept(&asked.text),
                ..OpenQuestion::default()
            };
            let asked_again = plan_edit::with_question(&plan, &item.text, &asked.text)
                .filter(|_| !has_asked(&plan, &item.text, &asked.text));
            let answers = asked.answers.join("\n");
            let answered = asked_again.and_then(|plan| plan_edit::with_answer(&plan, &question, &answers));
            plan = answered.unwrap_or(plan);
        }
    }
    plan
}

/// The record of a machine that joins a fleet; the board is looked at before anything is decided by it.
pub(super) fn record_of_member(plan: &FleetPlan, ground: &Ground) -> Workers {
    let row = |text: &String| BoardItem { text: text.clone(), ..BoardItem::default() };
    Workers {
        format: Format,
        board: BoardState { items: plan.items.iter().map(row).collect(), ..BoardState::default() },
        target: plan.target.clone(),
        began_at: plan.began_at.clone(),
        users_branch: ground.branch.clone(),
        plan: plan.tracked_plan.clone().unwrap_or_else(|| SHOWN.to_owned()),
        plan_is_tracked: plan.tracked_plan.is_some(),
        works: vec![Work::default(); plan.items.len()],
        member: Some(Member {
            fleet: plan.name.clone(),
            name: plan.member.clone(),
            remote: plan.remote.clone(),
            ..Member::default()
        }),
        ..Workers::default()
    }
}

/// A plan's name as a part of a branch's.
fn slug(plan: &str) -> String {
    let name = plan.rsplit('/').next().unwrap_or_default();
    let name = name.rsplit_once('.').map_or(name, |(name, _)| name);
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
    let slug: String = name.chars().take(NAME).map(plain).collect();
    let slug = slug.trim_matches('-');
    if slug.is_empty() { "plan".to_owned() } else { slug.to_owned() }
}

/// Opens again whatever was set aside without a question.
pub(super) fn reopen_all(board: &mut BoardState) {
    let is_stuck = |stage: &Stage| matches!(stage, Stage::Aside { reason: Aside::Tries | Aside::Ended(_) });
    let stuck: Vec<usize> =
        (0..board.items.len()).filter(|place| is_stuck(&board.items[*place].stage)).collect();
    for place in stuck {
        reopen(board, place);
    }
}

/// The items that nobody takes up again by themselves, and that wait for no answer.
fn set_aside(board: &BoardState) -> Vec<String> {
    let is_it = |stage: &Stage| matches!(stage, Stage::Aside { reason: Aside::Tries | Aside::Ended(_) });
    board.items.iter().filter(|row| is_it(&row.stage)).map(|row| row.text.clone()).collect()
}

/// The items with whether their boxes are ticked: what is merged, and what is about to land.
pub(super) fn ticks(now: &Workers, is_here: impl Fn(usize) -> bool) -> Vec<(&str, bool)> {
    let ticked = |(place, row): (usize, &BoardItem)| row.stage == Stage::Merged || is_here(place);
    now.board.items.iter().enumerate().map(|(place, row)| (row.text.as_str(), ticked((place, row)))).collect()
}

/// The file in which the run shows its plan.
fn shown(now: &Workers) -> &str {
    if now.plan_is_tracked || now.member.is_some() { SHOWN } else { &now.plan }
}

/// Where the run shows its plan.
pub(super) fn shown_path(project: &Project, now: &Workers) -> PathBuf {
    project.root().join(shown(now))
}

/// The plan as the run shows it; what is not there is read off the plan itself.
pub(super) fn shown_plan(project: &Project, now: &Workers) -> Result<Vec<u8>, StoreError> {
    match disk::read(&shown_path(project, now))? {
        Some(plan) => Ok(plan),
        None => Ok(disk::read(&project.root().join(&now.plan))?.unwrap_or_default()),
    }
}

/// Shows in the state what the sessions of all items have used.
pub(super) fn show_used(project: &Project, run: &RunState, used: Used) -> Result<(), StoreError> {
    state_file::update(project, Some(&run.run_id), Durability::Lazy, |state| take_used(state, used))?;
    Ok(())
}

fn take_used(state: &mut RunState, used: Used) {
    (state.spent.cost_usd, state.spent.tokens, state.iteration) = (used.cost_usd, used.tokens, used.sessions);
    state.spent.add_cost_basis(used.cost_basis);
}

/// Shows in plan and state what is merged, what waits for an answer, and what was used. Repeated it changes nothing.
pub(super) fn show(project: &Project, run: &RunState, table: &Table) -> Result<(), StoreError> {
    let now = table.now();
    let before = shown_plan(project, &now)?;
    let mut plan = plan_edit::with_ticks(&before, &ticks(&now, |_| false)).unwrap_or_else(|| before.clone());
    for row in &now.board.items {
        if let Stage::Aside { reason: Aside::Question(question) } = &row.stage {
            let question = plimsoll_secrets::without(question);
            plan = plan_edit::with_question(&plan, &row.text, &question)
                .filter(|_| !has_asked(&plan, &row.text, &question))
                .unwrap_or(plan);
        }
    }
    let path = shown_path(project, &now);
    if plan != before || !disk::exists(&path) {
        disk::replace(&path, &plan, Durability::Durable)?;
    }
    let todo = TodoList::parse(&String::from_utf8_lossy(&plan));
    state_file::update(project, Some(&run.run_id), Durability::Durable, |state| {
        state.options.todo_file = Some(shown(&now).to_owned());
        if let Some(workers) = state.options.workers.as_mut().filter(|_| shown(&now) != now.plan) {
            workers.plan.clone_from(&now.plan);
        }
        let of_remote = |member: &Member| format!("{}/{}", member.remote, now.target);
        state.options.branch = Some(now.member.as_ref().map_or_else(|| now.target.clone(), of_remote));
        state.at_start.branch_before = Some(now.users_branch.clone());
        state.take_items(&todo);
        state.items.set_aside = set_aside(&now.board);
        take_used(state, now.used());
    })?;
    Ok(())
}

fn has_asked(plan: &[u8], item: &str, question: &str) -> bool {
    let todo = TodoList::parse(&String::from_utf8_lossy(plan));
    let is_it =
        |text: &str| plimsoll_domain::text::one_line(text) == plimsoll_domain::text::one_line(question);
    todo.items
        .iter()
        .any(|known| known.text == item && known.questions.iter().any(|asked| is_it(&asked.text)))
}

/// Opens again what waited for an answer that the plan holds by now; true if there is any.
pub(super) fn take_answers(project: &Project, table: &Table) -> Result<bool, StoreError> {
    let now = table.now();
    // Those of a fleet are given to the fleet.
    if now.member.is_some() {
        return Ok(false);
    }
    let waits =
        |place: &usize| matches!(now.board.items[*place].stage, Stage::Aside { reason: Aside::Question(_) });
    let waiting: Vec<usize> = (0..now.board.items.len()).filter(waits).collect();
    if waiting.is_empty() {
        return Ok(false);
    }
    let todo = TodoList::parse(&String::from_utf8_lossy(&shown_plan(project, &now)?));
    let is_answered = |place: &usize| {
        let item = todo.items.iter().find(|item| item.text == now.board.items[*place].text);
        item.is_some_and(|item| !item.questions.is_empty() && item.open_question().is_none())
    };
    let answered: Vec<usize> = waiting.into_iter().filter(is_answered).collect();
    if answered.is_empty() {
        return Ok(false);
    }
    table.change(|workers| {
        for place in &answered {
            let tries = workers.board.items[*place].tries;
            reopen(&mut workers.board, *place);
            workers.board.items[*place].tries = tries;
        }
    })?;
    Ok(true)
}

/// An item as its own run's plan has it: with its notes, its questions and answers.
pub(super) fn item_plan(
    project: &Project,
    now: &Workers,
    item: usize,
) -> Result<plimsoll_domain::todo::Item, StoreError> {
    let row = &now.board.items[item];
    let todo = TodoList::parse(&String::from_utf8_lossy(&shown_plan(project, now)?));
    let known = todo.items.into_iter().find(|known| known.text == row.text).unwrap_or_default();
    let mut questions = known.questions;
    if let Some((text, answer)) = &now.works[item].answered {
        questions.retain(|known| known.text != *text);
        questions.push(Question { text: text.clone(), answers: vec![answer.clone()] });
    }
    Ok(plimsoll_domain::todo::Item { text: row.text.clone(), done: false, notes: known.notes, questions })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_an_earlier_run_are_kept_for_items_that_are_still_open() {
        let earlier = "- [ ] one\n  > a note\n  ? Which port?\n  ! 8042\n  ! or 8043\n  ? Who?\n- [ ] two\n  ? Why?\n  ! So.\n- [ ] gone\n  ? a?\n  ! b\n";
        let plan = "# Next\n- [x] two\n- [ ] one\n- [ ] three\n";
        let expected = "# Next\n- [x] two\n- [ ] one\n  ? Which port?\n  ! 8042\n  ! or 8043\n- [ ] three\n";
        let kept = with_answers(plan.as_bytes(), earlier.as_bytes());
        assert_eq!(String::from_utf8(kept.clone()).unwrap(), expected);
        assert_eq!(with_answers(&kept, earlier.as_bytes()), kept);
    }

    #[test]
    fn a_plan_of_any_name_makes_a_part_of_a_branch() {
        for (plan, name) in [
            ("fix_plan.md", "fix_plan"),
            ("docs/My plan (2).md", "My-plan--2"),
            ("../.md", "plan"),
            ("a..b.lock", "a--b"),
            ("ünï", "n"),
        ] {
            assert_eq!(slug(plan), name, "{plan}");
        }
    }
}
