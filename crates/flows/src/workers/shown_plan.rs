//! What the plan and the state of a parallel run show of its board.

use crate::workers::table::Table;
use plimsoll_domain::board::{Aside, BoardItem, BoardState, Stage};
use plimsoll_domain::question::Question;
use plimsoll_domain::workers::{Member, Used, Workers};
use plimsoll_domain::{RunState, TodoList, plan_edit};
use plimsoll_policy::workers::reopen;
use plimsoll_store::{Durability, Project, StoreError, disk, state_file};
use std::path::PathBuf;

/// The plan as the run shows it, where git follows the plan itself: with the ticks of what is merged, with questions and the
/// user's answers. The user's own files stay as they are until the work is merged.
pub(super) const SHOWN: &str = ".claude/plimsoll/plan.md";

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

/// Returns true if the plan has a question below an item.
pub(super) fn has_asked(plan: &[u8], item: &str, question: &str) -> bool {
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
