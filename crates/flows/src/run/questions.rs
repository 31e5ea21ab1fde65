//! Questions of sessions to the user: writing them into the plan, reading them off it, telling the user, and answering them.

use super::{Progress, Runner};
use crate::checkpoint::facts;
use crate::linear::notes::note_questions;
use crate::run::archive::archive;
use crate::run::notify::notify_of_questions;
use crate::run_context::RunContext;
use plimsoll_domain::journal::{JournalEntry, JournalEvent, VerdictReached};
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::{RunState, Status, TodoList, Verdict, plan_edit};
use plimsoll_policy::gate::Evidence;
use plimsoll_policy::questions::{nothing_free, unwritten};
use plimsoll_policy::todo_list::unclear_at_end;
use plimsoll_store::{Durability, Project, StoreError, clock, disk, journal, state_file};

/// Takes the open questions of the run's plan as it is now into a state that is shown: the user may have answered since.
pub fn refresh(project: &Project, state: &mut RunState) {
    if let Some(todo) = facts::todo(project, state) {
        state.take_questions(&todo);
    }
}

/// The open questions of a plan; what the run knows of each, such as when it was asked, is kept.
pub fn among(state: &RunState, todo: &TodoList) -> Vec<OpenQuestion> {
    let mut now = state.clone();
    now.take_questions(todo);
    now.items.parked
}

/// Writes an answer below its question; false if the question is no longer there, or has an answer.
pub fn answer(
    project: &Project,
    file: &str,
    question: &OpenQuestion,
    words: &str,
) -> Result<bool, StoreError> {
    let path = project.root().join(file);
    // Read and replaced at once: an agent may be editing the same file.
    let plan = disk::read(&path)?.unwrap_or_default();
    match plan_edit::with_answer(&plan, question, words) {
        Some(plan) => disk::replace(&path, &plan, Durability::Durable).map(|()| true),
        None => Ok(false),
    }
}

/// Writes down the question of a session that said it is blocked and wrote none itself. A repeat after a kill finds the line
/// and writes nothing.
pub(crate) fn write_down(
    context: &RunContext<'_>,
    state: &RunState,
    evidence: &mut Evidence,
) -> Result<(), StoreError> {
    let Some(asked) = unwritten(state, evidence) else { return Ok(()) };
    let Some(file) = &state.options.todo_file else { return Ok(()) };
    let path = context.project.root().join(file);
    let Some(plan) = disk::read(&path)? else { return Ok(()) };
    // A later session may commit the plan.
    let question = plimsoll_secrets::without(&asked.question);
    if let Some(plan) = plan_edit::with_question(&plan, &asked.item, &question) {
        disk::replace(&path, &plan, Durability::Durable)?;
        evidence.todo = facts::todo(context.project, state);
    }
    Ok(())
}

/// Journals the questions that the current iteration asked, and leaves a note for Linear; nothing if that was done.
pub(crate) fn note(context: &RunContext<'_>, state: &RunState) -> Result<(), StoreError> {
    let line = |asked: &OpenQuestion| {
        let (item, question) = (asked.item.clone(), asked.question.clone());
        JournalEntry::of_run_session(state, JournalEvent::Parked { item, question })
    };
    let lines: Vec<JournalEntry> = state.asked_now().map(line).collect();
    if lines.first().is_some_and(|line| !journal::tells(context.project, line)) {
        lines.into_iter().try_for_each(|line| journal::note(context.project, line))?;
    }
    note_questions(context.project, state);
    Ok(())
}

/// Ends an open run as blocked if a session would have nothing to do: everything that is open in its plan waits for an answer, or
/// nothing is open but lines that only look like items. Returns the state if so.
pub(crate) fn end_if_nothing_is_free(
    project: &Project,
    run: &RunState,
    todo: Option<&TodoList>,
) -> Result<Option<RunState>, StoreError> {
    let Some(todo) = todo.filter(|_| !run.lifecycle.is_over()) else { return Ok(None) };
    let Some(reason) = nothing_to_do(run, todo) else { return Ok(None) };
    let verdict = Verdict::Stop { status: Status::Blocked, reason };
    let state = state_file::update(project, Some(&run.run_id), Durability::Durable, |state| {
        state.take_items(todo);
        state.lifecycle.stop(Status::Blocked, &verdict, clock::stamp(clock::now()));
        state.clone()
    })?;
    let Some(state) = state else { return Ok(None) };
    // It may have been cancelled meanwhile: that was journaled.
    if state.lifecycle.status() == Status::Blocked {
        let event = JournalEvent::Verdict(Box::new(VerdictReached::of(&verdict)));
        journal::note(project, JournalEntry::of_run(&state, event))?;
        archive(project, &state)?;
    }
    Ok(Some(state))
}

fn nothing_to_do(run: &RunState, todo: &TodoList) -> Option<String> {
    let unclear = run.options.todo_file.as_ref().and_then(|file| unclear_at_end(todo, file));
    // Mostly nothing in it waits.
    if unclear.is_some() || todo.parked().is_empty() {
        return unclear;
    }
    let mut now = run.clone();
    now.take_items(todo);
    nothing_free(&now, todo)
}

impl Runner<'_> {
    /// Tells the user of each question once.
    pub(super) fn tell_questions(&mut self, state: &RunState) -> Result<(), StoreError> {
        if state.items.parked.iter().all(|question| question.told) {
            return Ok(());
        }
        // Marked first: a kill before the message costs it, but `status` and the end name the question again. The other way
        // round each resume might send it once more.
        let untold = self.context.update(|state| {
            let untold = state.items.parked.iter_mut().filter(|question| !question.told);
            let untold: Vec<OpenQuestion> = untold
                .map(|question| {
                    question.told = true;
                    question.clone()
                })
                .collect();
            (state.clone(), untold)
        })?;
        let Some((state, untold)) = untold else { return Ok(()) };
        for question in &untold {
            self.watcher.tell(&Progress::Parked { question });
        }
        notify_of_questions(self.context.project, &state, &untold);
        Ok(())
    }
}
