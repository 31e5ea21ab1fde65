//! Questions of sessions to the user: writes them into the plan, reads them from it, reports and answers
//! them.

use super::{RunEvent, Runner};
use crate::checkpoint::facts;
use crate::linear::notes::queue_note_about_iteration_questions;
use crate::run::archive::archive_run_and_clean_up_prompt_and_memory;
use crate::run::notify::notify_user_of_questions;
use crate::run_context::RunContext;
use plimsoll_domain::journal::{JournalEntry, JournalEvent, VerdictReached};
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::{RunState, RunStatus, TodoList, Verdict, plan_edit};
use plimsoll_policy::gate::SessionEvidence;
use plimsoll_policy::questions::{
    render_questions_if_all_items_parked, unwritten_question_of_blocked_session,
};
use plimsoll_policy::todo_list::render_unclear_lines_if_no_item_open;
use plimsoll_store::{Durability, Project, StoreError, clock, disk, journal, state_file};

/// Updates the open questions of a displayed state from the run's plan, because the user may have answered
/// some of them.
pub fn refresh_open_questions(project: &Project, state: &mut RunState) {
    if let Some(todo) = facts::load_plan(project, state) {
        state.update_parked_questions_from_plan(&todo);
    }
}

/// Returns the open questions of a plan, with what the run has recorded about each, such as when it was asked.
pub fn open_questions_in_plan(state: &RunState, todo: &TodoList) -> Vec<OpenQuestion> {
    let mut refreshed_state = state.clone();
    refreshed_state.update_parked_questions_from_plan(todo);
    refreshed_state.plan_items.parked_questions
}

/// Writes each answer below its question. Writes none of them and returns false if one of the questions was
/// removed or already has an answer.
pub fn write_answers_if_all_questions_still_open(
    project: &Project,
    plan_file: &str,
    questions_and_answers: &[(&OpenQuestion, String)],
) -> Result<bool, StoreError> {
    let path = project.root().join(plan_file);
    // Read and replaced without a pause, because an agent may be editing the same file.
    let mut plan_text = disk::read(&path)?.unwrap_or_default();
    for (question, answer_text) in questions_and_answers {
        match plan_edit::add_answer_to_open_question(&plan_text, question, answer_text) {
            Some(new_plan_text) => plan_text = new_plan_text,
            None => return Ok(false),
        }
    }
    disk::replace(&path, &plan_text, Durability::Durable).map(|()| true)
}

/// Adds a question to the plan for a session that reported itself blocked without writing one. A repeat after
/// a kill finds the line and writes nothing.
pub(crate) fn add_blocked_session_question_to_plan(
    context: &RunContext<'_>,
    state: &RunState,
    evidence: &mut SessionEvidence,
) -> Result<(), StoreError> {
    let Some(unwritten_question) = unwritten_question_of_blocked_session(state, evidence) else {
        return Ok(());
    };
    let Some(file) = &state.options.todo_file else { return Ok(()) };
    let path = context.project.root().join(file);
    let Some(plan_text) = disk::read(&path)? else { return Ok(()) };
    // Secrets are removed because a later session may commit the plan.
    let question = plimsoll_secrets::redact(&unwritten_question.question);
    if let Some(new_plan_text) =
        plan_edit::add_question_to_unparked_open_item(&plan_text, &unwritten_question.item, &question)
    {
        disk::replace(&path, &new_plan_text, Durability::Durable)?;
        evidence.todo = facts::load_plan(context.project, state);
    }
    Ok(())
}

/// Journals the questions that the current iteration asked, unless they are already in the journal, and queues
/// a note about them for Linear.
pub(crate) fn journal_iteration_questions_and_queue_note(
    context: &RunContext<'_>,
    state: &RunState,
) -> Result<(), StoreError> {
    let to_entry = |open_question: &OpenQuestion| {
        let (item, question) = (open_question.item.clone(), open_question.question.clone());
        JournalEntry::for_run_session(state, JournalEvent::Parked { item, question })
    };
    let entries: Vec<JournalEntry> = state.questions_of_current_iteration().map(to_entry).collect();
    if entries
        .first()
        .is_some_and(|entry| !journal::has_same_event_and_origin_near_end(context.project, entry))
    {
        entries.into_iter().try_for_each(|entry| journal::append_entry(context.project, entry))?;
    }
    queue_note_about_iteration_questions(context.project, state);
    Ok(())
}

/// Ends an open run as blocked if a session would have nothing to do: every open item of its plan waits for
/// an answer, or all items are ticked and only unclear lines are left. Returns the new state in that case.
pub(crate) fn end_run_as_blocked_if_nothing_to_work_on(
    project: &Project,
    run: &RunState,
    todo: Option<&TodoList>,
) -> Result<Option<RunState>, StoreError> {
    let Some(todo) = todo.filter(|_| !run.lifecycle.has_ended()) else { return Ok(None) };
    let Some(reason) = reason_only_parked_or_unclear_items(run, todo) else { return Ok(None) };
    let verdict = Verdict::Stop { status: RunStatus::Blocked, reason };
    let state = state_file::update_state(project, Some(&run.run_id), Durability::Durable, |state| {
        state.update_items_and_questions_from_plan(todo);
        state.lifecycle.stop_if_open(RunStatus::Blocked, &verdict, clock::to_timestamp(clock::now()));
        state.clone()
    })?;
    let Some(state) = state else { return Ok(None) };
    // It may have been canceled meanwhile, which was already journaled.
    if state.lifecycle.status() == RunStatus::Blocked {
        let event = JournalEvent::Verdict(Box::new(VerdictReached::from_verdict_without_evidence(&verdict)));
        journal::append_entry(project, JournalEntry::for_run(&state, event))?;
        archive_run_and_clean_up_prompt_and_memory(project, &state)?;
    }
    Ok(Some(state))
}

fn reason_only_parked_or_unclear_items(run: &RunState, todo: &TodoList) -> Option<String> {
    let unclear_lines_reason =
        run.options.todo_file.as_ref().and_then(|file| render_unclear_lines_if_no_item_open(todo, file));
    // The usual case: no item waits for an answer.
    if unclear_lines_reason.is_some() || todo.parked_items_with_questions().is_empty() {
        return unclear_lines_reason;
    }
    let mut refreshed_state = run.clone();
    refreshed_state.update_items_and_questions_from_plan(todo);
    render_questions_if_all_items_parked(&refreshed_state, todo)
}

impl Runner<'_> {
    /// Reports each question to the user once.
    pub(super) fn mark_and_report_unnotified_questions(
        &mut self,
        state: &RunState,
    ) -> Result<(), StoreError> {
        if state.plan_items.parked_questions.iter().all(|question| question.was_notified) {
            return Ok(());
        }
        // The state is written first: a kill before the notification loses it, but `status` and the end of the
        // run list the question again. In the other order each resume could report it once more.
        let updated = self.context.update_state(|state| {
            let unreported_questions =
                state.plan_items.parked_questions.iter_mut().filter(|question| !question.was_notified);
            let unreported_questions: Vec<OpenQuestion> = unreported_questions
                .map(|question| {
                    question.was_notified = true;
                    question.clone()
                })
                .collect();
            (state.clone(), unreported_questions)
        })?;
        let Some((state, unreported_questions)) = updated else { return Ok(()) };
        for question in &unreported_questions {
            self.observer.on_event(&RunEvent::QuestionAsked { question });
        }
        notify_user_of_questions(self.context.project, &state, &unreported_questions);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_answer_is_written_if_one_of_the_questions_is_no_longer_open() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        let plan_path = folder.path().join("plan.md");
        let question = |item: &str| OpenQuestion {
            item: item.to_owned(),
            question: "Which port?".to_owned(),
            iteration: 1,
            was_notified: true,
        };
        let (first, second) = (question("Item 1"), question("Item 2"));
        let answers = [(&first, "80".to_owned()), (&second, "81".to_owned())];
        let open_plan = "- [ ] Item 1\n  ? Which port?\n- [ ] Item 2\n  ? Which port?\n";
        let answered_plan = "- [ ] Item 1\n  ? Which port?\n- [ ] Item 2\n  ? Which port?\n  ! 90\n";
        for (plan, is_written, expected) in [
            (answered_plan, false, answered_plan),
            (
                open_plan,
                true,
                "- [ ] Item 1\n  ? Which port?\n  ! 80\n- [ ] Item 2\n  ? Which port?\n  ! 81\n",
            ),
        ] {
            disk::replace(&plan_path, plan.as_bytes(), Durability::Lazy).unwrap();
            assert_eq!(
                write_answers_if_all_questions_still_open(&project, "plan.md", &answers).unwrap(),
                is_written
            );
            assert_eq!(disk::read_text(&plan_path).unwrap().as_deref(), Some(expected));
        }
    }
}
