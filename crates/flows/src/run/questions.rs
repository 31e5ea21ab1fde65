//! Questions of sessions to the user: writes them into the plan, reads them from it, reports and answers
//! them.

use super::{RunEvent, Runner};
use crate::checkpoint::facts;
use crate::linear::notes::queue_note_about_iteration_questions;
use crate::run::archive::archive_run;
use crate::run::notify::notify_of_questions;
use crate::run_context::RunContext;
use plimsoll_domain::journal::{JournalEntry, JournalEvent, VerdictReached};
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::{RunState, RunStatus, TodoList, Verdict, plan_edit};
use plimsoll_policy::gate::SessionEvidence;
use plimsoll_policy::questions::{reason_all_items_are_parked, unwritten_question};
use plimsoll_policy::todo_list::render_unclear_lines_if_all_ticked;
use plimsoll_store::{Durability, Project, StoreError, clock, disk, journal, state_file};

/// Updates the open questions of a state that is displayed from the run's plan: the user may have answered
/// since.
pub fn refresh_open_questions(project: &Project, state: &mut RunState) {
    if let Some(todo) = facts::load_plan(project, state) {
        state.update_questions_from_plan(&todo);
    }
}

/// Returns the open questions of a plan; what the run knows about each, such as when it was asked, is kept.
pub fn open_questions_in_plan(state: &RunState, todo: &TodoList) -> Vec<OpenQuestion> {
    let mut refreshed_state = state.clone();
    refreshed_state.update_questions_from_plan(todo);
    refreshed_state.plan_items.parked_questions
}

/// Writes an answer below its question. Returns false if the question is gone or already has an answer.
pub fn write_answer(
    project: &Project,
    plan_file: &str,
    question: &OpenQuestion,
    answer_text: &str,
) -> Result<bool, StoreError> {
    let path = project.root().join(plan_file);
    // Read and replaced without a pause, because an agent may be editing the same file.
    let plan_text = disk::read(&path)?.unwrap_or_default();
    match plan_edit::add_answer_to_open_question(&plan_text, question, answer_text) {
        Some(new_plan_text) => disk::replace(&path, &new_plan_text, Durability::Durable).map(|()| true),
        None => Ok(false),
    }
}

/// Writes the question of a session that said it is blocked and wrote none itself into the plan. A repeat
/// after a kill finds the line and writes nothing.
pub(crate) fn write_unwritten_question(
    context: &RunContext<'_>,
    state: &RunState,
    evidence: &mut SessionEvidence,
) -> Result<(), StoreError> {
    let Some(unwritten_question) = unwritten_question(state, evidence) else { return Ok(()) };
    let Some(file) = &state.options.todo_file else { return Ok(()) };
    let path = context.project.root().join(file);
    let Some(plan_text) = disk::read(&path)? else { return Ok(()) };
    // Secrets are removed because a later session may commit the plan.
    let question = plimsoll_secrets::redact(&unwritten_question.question);
    if let Some(new_plan_text) =
        plan_edit::add_question_if_none_open(&plan_text, &unwritten_question.item, &question)
    {
        disk::replace(&path, &new_plan_text, Durability::Durable)?;
        evidence.todo = facts::load_plan(context.project, state);
    }
    Ok(())
}

/// Journals the questions that the current iteration asked, and leaves a note for Linear. Does nothing if
/// that was done.
pub(crate) fn journal_asked_questions(context: &RunContext<'_>, state: &RunState) -> Result<(), StoreError> {
    let to_entry = |open_question: &OpenQuestion| {
        let (item, question) = (open_question.item.clone(), open_question.question.clone());
        JournalEntry::for_run_session(state, JournalEvent::Parked { item, question })
    };
    let entries: Vec<JournalEntry> = state.questions_of_current_iteration().map(to_entry).collect();
    if entries.first().is_some_and(|entry| !journal::has_matching_entry(context.project, entry)) {
        entries.into_iter().try_for_each(|entry| journal::append_entry(context.project, entry))?;
    }
    queue_note_about_iteration_questions(context.project, state);
    Ok(())
}

/// Ends an open run as blocked if a session would have nothing to do: every open item of its plan waits for
/// an answer, or only lines that look like items are left. Returns the state in that case.
pub(crate) fn end_if_no_item_is_free(
    project: &Project,
    run: &RunState,
    todo: Option<&TodoList>,
) -> Result<Option<RunState>, StoreError> {
    let Some(todo) = todo.filter(|_| !run.lifecycle.is_over()) else { return Ok(None) };
    let Some(reason) = no_work_reason(run, todo) else { return Ok(None) };
    let verdict = Verdict::Stop { status: RunStatus::Blocked, reason };
    let state = state_file::update_state(project, Some(&run.run_id), Durability::Durable, |state| {
        state.update_items_from_plan(todo);
        state.lifecycle.stop_if_open(RunStatus::Blocked, &verdict, clock::to_timestamp(clock::now()));
        state.clone()
    })?;
    let Some(state) = state else { return Ok(None) };
    // It may have been canceled meanwhile, which was already journaled.
    if state.lifecycle.status() == RunStatus::Blocked {
        let event = JournalEvent::Verdict(Box::new(VerdictReached::from_verdict_without_evidence(&verdict)));
        journal::append_entry(project, JournalEntry::for_run(&state, event))?;
        archive_run(project, &state)?;
    }
    Ok(Some(state))
}

fn no_work_reason(run: &RunState, todo: &TodoList) -> Option<String> {
    let unclear_lines_reason =
        run.options.todo_file.as_ref().and_then(|file| render_unclear_lines_if_all_ticked(todo, file));
    // The usual case: nothing in the plan waits.
    if unclear_lines_reason.is_some() || todo.parked_items_with_questions().is_empty() {
        return unclear_lines_reason;
    }
    let mut refreshed_state = run.clone();
    refreshed_state.update_items_from_plan(todo);
    reason_all_items_are_parked(&refreshed_state, todo)
}

impl Runner<'_> {
    /// Reports each question to the user once.
    pub(super) fn report_new_questions(&mut self, state: &RunState) -> Result<(), StoreError> {
        if state.plan_items.parked_questions.iter().all(|question| question.was_notified) {
            return Ok(());
        }
        // Marked first: a kill before the message loses it, but `status` and the end of the run list the
        // question again. In the other order each resume could report it once more.
        let unreported = self.context.update_state(|state| {
            let unreported =
                state.plan_items.parked_questions.iter_mut().filter(|question| !question.was_notified);
            let unreported: Vec<OpenQuestion> = unreported
                .map(|question| {
                    question.was_notified = true;
                    question.clone()
                })
                .collect();
            (state.clone(), unreported)
        })?;
        let Some((state, unreported)) = unreported else { return Ok(()) };
        for question in &unreported {
            self.observer.on_event(&RunEvent::QuestionAsked { question });
        }
        notify_of_questions(self.context.project, &state, &unreported);
        Ok(())
    }
}
