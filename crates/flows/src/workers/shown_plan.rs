//! Writes the progress of a parallel run into the plan that the run shows and into its state, and reads the
//! user's answers.

use crate::workers::workers_file::WorkersFile;
use plimsoll_domain::board::{BoardItem, BoardState, ItemStage, SetAsideReason};
use plimsoll_domain::question::Question;
use plimsoll_domain::workers::{FleetMember, WorkUsage, WorkersState};
use plimsoll_domain::{RunState, TodoList, plan_edit};
use plimsoll_policy::workers::reopen_set_aside_item_and_reset_failures;
use plimsoll_store::{Durability, Project, StoreError, disk, state_file};
use std::path::PathBuf;

/// The plan file that a run shows if git tracks the plan itself. It has the ticks of merged items, the
/// questions, and the user's answers. The user's own files stay unchanged until the work is merged.
pub(super) const SHOWN_PLAN_FILE: &str = ".claude/plimsoll/plan.md";

/// Reopens the items that were set aside after repeated failure.
pub(super) fn reopen_failed_items(board: &mut BoardState) {
    let has_failed = |stage: &ItemStage| {
        matches!(
            stage,
            ItemStage::SetAside { reason: SetAsideReason::TooManyFailedMerges | SetAsideReason::RunEnded(_) }
        )
    };
    let failed_items: Vec<usize> =
        (0..board.items.len()).filter(|index| has_failed(&board.items[*index].stage)).collect();
    for index in failed_items {
        reopen_set_aside_item_and_reset_failures(board, index);
    }
}

/// Returns the texts of the items that were set aside after repeated failure, and that do not wait for an
/// answer.
fn failed_item_texts(board: &BoardState) -> Vec<String> {
    let has_failed = |stage: &ItemStage| {
        matches!(
            stage,
            ItemStage::SetAside { reason: SetAsideReason::TooManyFailedMerges | SetAsideReason::RunEnded(_) }
        )
    };
    board
        .items
        .iter()
        .filter(|board_item| has_failed(&board_item.stage))
        .map(|board_item| board_item.text.clone())
        .collect()
}

/// Returns the text of each item, and whether its checkbox is ticked: the item is merged or about to be
/// merged.
pub(super) fn item_texts_with_ticks(
    workers_state: &WorkersState,
    is_about_to_merge: impl Fn(usize) -> bool,
) -> Vec<(&str, bool)> {
    let is_ticked = |(index, board_item): (usize, &BoardItem)| {
        board_item.stage == ItemStage::Merged || is_about_to_merge(index)
    };
    workers_state
        .board
        .items
        .iter()
        .enumerate()
        .map(|(index, board_item)| (board_item.text.as_str(), is_ticked((index, board_item))))
        .collect()
}

/// Returns the path of the file in which the run shows its plan, relative to the project.
fn shown_plan_file_or_untracked_user_plan(workers_state: &WorkersState) -> &str {
    if workers_state.plan_is_tracked || workers_state.fleet_member.is_some() {
        SHOWN_PLAN_FILE
    } else {
        &workers_state.plan_path
    }
}

/// Returns the path of the file in which the run shows its plan.
pub(super) fn shown_plan_path(project: &Project, workers_state: &WorkersState) -> PathBuf {
    project.root().join(shown_plan_file_or_untracked_user_plan(workers_state))
}

/// Reads the plan that the run shows, or the user's plan if that file does not exist.
pub(super) fn read_shown_plan_or_user_plan(
    project: &Project,
    workers_state: &WorkersState,
) -> Result<Vec<u8>, StoreError> {
    match disk::read(&shown_plan_path(project, workers_state))? {
        Some(plan) => Ok(plan),
        None => Ok(disk::read(&project.root().join(&workers_state.plan_path))?.unwrap_or_default()),
    }
}

/// Writes the usage of the sessions of all items into the state.
pub(super) fn write_usage_to_state(
    project: &Project,
    run_state: &RunState,
    usage: WorkUsage,
) -> Result<(), StoreError> {
    state_file::update_state(project, Some(&run_state.run_id), Durability::Lazy, |state| {
        set_usage(state, usage);
    })?;
    Ok(())
}

fn set_usage(state: &mut RunState, usage: WorkUsage) {
    (state.spending.cost_usd, state.spending.tokens, state.iteration) =
        (usage.cost_usd, usage.tokens, usage.sessions);
    state.spending.add_cost_basis(usage.cost_basis);
}

/// Writes the board's progress to the shown plan and to the state: merged items, open questions and usage. It
/// is idempotent.
pub(super) fn write_board_to_shown_plan_and_state(
    project: &Project,
    run_state: &RunState,
    workers_file: &WorkersFile,
) -> Result<(), StoreError> {
    let workers_state = workers_file.workers_state();
    let old_plan = read_shown_plan_or_user_plan(project, &workers_state)?;
    let mut plan = plan_edit::set_item_ticks(&old_plan, &item_texts_with_ticks(&workers_state, |_| false))
        .unwrap_or_else(|| old_plan.clone());
    for board_item in &workers_state.board.items {
        if let ItemStage::SetAside { reason: SetAsideReason::Question(question) } = &board_item.stage {
            let question = plimsoll_secrets::redact(question);
            plan = plan_edit::add_question_to_unparked_open_item(&plan, &board_item.text, &question)
                .filter(|_| !has_question_below_item(&plan, &board_item.text, &question))
                .unwrap_or(plan);
        }
    }
    let plan_path = shown_plan_path(project, &workers_state);
    if plan != old_plan || !disk::exists(&plan_path) {
        disk::replace(&plan_path, &plan, Durability::Durable)?;
    }
    let todo_list = TodoList::parse(&String::from_utf8_lossy(&plan));
    state_file::update_state(project, Some(&run_state.run_id), Durability::Durable, |state| {
        state.options.todo_file = Some(shown_plan_file_or_untracked_user_plan(&workers_state).to_owned());
        if let Some(workers) = state
            .options
            .workers
            .as_mut()
            .filter(|_| shown_plan_file_or_untracked_user_plan(&workers_state) != workers_state.plan_path)
        {
            workers.user_plan_path.clone_from(&workers_state.plan_path);
        }
        let remote_branch_name = |fleet_member: &FleetMember| {
            format!("{}/{}", fleet_member.remote_name, workers_state.target_branch_name)
        };
        state.options.branch = Some(
            workers_state
                .fleet_member
                .as_ref()
                .map_or_else(|| workers_state.target_branch_name.clone(), remote_branch_name),
        );
        state.project_at_start.original_branch = Some(workers_state.user_branch.clone());
        state.update_items_and_questions_from_plan(&todo_list);
        state.plan_items.set_aside_items = failed_item_texts(&workers_state.board);
        set_usage(state, workers_state.total_usage_of_all_items());
    })?;
    Ok(())
}

/// Returns true if the plan has this question below the item.
pub(super) fn has_question_below_item(plan: &[u8], item_text: &str, question: &str) -> bool {
    let todo_list = TodoList::parse(&String::from_utf8_lossy(plan));
    let is_same_question = |text: &str| {
        plimsoll_domain::text::to_safe_single_line(text)
            == plimsoll_domain::text::to_safe_single_line(question)
    };
    todo_list.items.iter().any(|plan_item| {
        plan_item.text == item_text
            && plan_item.questions.iter().any(|existing_question| is_same_question(&existing_question.text))
    })
}

/// Reopens the items whose questions are all answered in the shown plan. Returns true if it reopened any.
pub(super) fn reopen_answered_items(
    project: &Project,
    workers_file: &WorkersFile,
) -> Result<bool, StoreError> {
    let workers_state = workers_file.workers_state();
    let waits_for_answer = |index: &usize| {
        matches!(
            workers_state.board.items[*index].stage,
            ItemStage::SetAside { reason: SetAsideReason::Question(_) }
        )
    };
    let waiting_items: Vec<usize> = (0..workers_state.board.items.len()).filter(waits_for_answer).collect();
    if waiting_items.is_empty() {
        return Ok(false);
    }
    let todo_list =
        TodoList::parse(&String::from_utf8_lossy(&read_shown_plan_or_user_plan(project, &workers_state)?));
    let is_answered = |index: &usize| {
        let item = todo_list.items.iter().find(|item| item.text == workers_state.board.items[*index].text);
        item.is_some_and(|item| !item.questions.is_empty() && item.unanswered_question().is_none())
    };
    let answered_items: Vec<usize> = waiting_items.into_iter().filter(is_answered).collect();
    if answered_items.is_empty() {
        return Ok(false);
    }
    workers_file.update_and_write_file(|workers| {
        for index in &answered_items {
            let failed_merge_count = workers.board.items[*index].failed_merge_count;
            reopen_set_aside_item_and_reset_failures(&mut workers.board, *index);
            workers.board.items[*index].failed_merge_count = failed_merge_count;
        }
    })?;
    Ok(true)
}

/// Reads an item from the shown plan for the plan of its own run, with its notes, questions and answers.
pub(super) fn read_plan_item_with_answers(
    project: &Project,
    workers_state: &WorkersState,
    item: usize,
) -> Result<plimsoll_domain::todo::PlanItem, StoreError> {
    let board_item = &workers_state.board.items[item];
    let todo_list =
        TodoList::parse(&String::from_utf8_lossy(&read_shown_plan_or_user_plan(project, workers_state)?));
    let plan_item = todo_list
        .items
        .into_iter()
        .find(|listed_item| listed_item.text == board_item.text)
        .unwrap_or_default();
    let mut questions = plan_item.questions;
    if let Some((text, answer)) = &workers_state.item_progress[item].answered_question {
        questions.retain(|listed_question| listed_question.text != *text);
        questions.push(Question { text: text.clone(), answers: vec![answer.clone()] });
    }
    Ok(plimsoll_domain::todo::PlanItem {
        text: board_item.text.clone(),
        is_ticked: false,
        notes: plan_item.notes,
        questions,
    })
}
