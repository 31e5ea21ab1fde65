//! The questions that sessions ask the user, and the answers, which are written into the plan (`--answer` of `plimsoll status` and
//! `plimsoll run`).

use crate::endings::{RESUME_COMMAND, ending_text};
use crate::{foreign_state, questions};
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::state::PlanItems;
use plimsoll_domain::text::{count_with_noun, to_safe_single_line};
use plimsoll_domain::todo::DEFAULT_PLAN;
use plimsoll_domain::{RunState, TodoList};
use plimsoll_flows::run::questions::{open_questions_in_plan, write_answers_if_all_questions_still_open};
use plimsoll_policy::todo_list::quote_for_shell;
use plimsoll_store::{Project, StoreError, disk, lock, state_file};
use plimsoll_terminal::console::{fail, print_hint, print_text};
use plimsoll_terminal::standard_input::{InputError, text_or_stdin_if_dash};
use std::process::ExitCode;
use thiserror::Error;

/// The reason why no answer was written.
#[derive(Debug, Error)]
pub(crate) enum AnswerError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("there is no plan {0}, so there are no questions")]
    NoPlan(String),
    #[error("there is no question {number}: {available}; `plimsoll status` lists them")]
    NoQuestion { number: String, available: String },
    #[error(
        "this run belongs to the fleet `{0}`, whose questions are answered for all: plimsoll fleet answer {0} ITEM TEXT"
    )]
    BelongsToFleet(String),
    #[error("the answer is empty: --answer {0} TEXT, or - for standard input")]
    EmptyAnswer(String),
    #[error("question {0} has two answers: give one --answer for each question")]
    TwoAnswers(String),
    #[error(
        "nothing was written: the question is no longer open in {0} (it was answered, changed or removed meanwhile); `plimsoll status` lists the open ones"
    )]
    QuestionNoLongerOpen(String),
}

/// The open questions of the project's plan.
pub(crate) struct QuestionList {
    state: RunState,
    plan_file: String,
    /// `None` if there is no plan.
    questions: Option<Vec<OpenQuestion>>,
}

impl QuestionList {
    pub(crate) fn read_from_plan(project: &Project) -> Result<QuestionList, StoreError> {
        let state = state_file::load_state(project, None)?.unwrap_or_default();
        let plan_file = state.options.todo_file.clone().unwrap_or_else(|| DEFAULT_PLAN.to_owned());
        let plan = disk::read_text(&project.root().join(&plan_file))?;
        let questions = plan.map(|plan| open_questions_in_plan(&state, &TodoList::parse(&plan)));
        Ok(QuestionList { state, plan_file, questions })
    }

    /// Returns the lines that `plimsoll status` shows in a project without a run.
    pub(crate) fn render_questions_and_answer_command(&self) -> Vec<String> {
        let parked = self.questions.clone().unwrap_or_default();
        questions::questions_and_answer_command(&RunState {
            plan_items: PlanItems { parked_questions: parked, ..PlanItems::default() },
            ..RunState::default()
        })
    }

    fn find_open_question_by_number(&self, number: &str) -> Result<&OpenQuestion, AnswerError> {
        let Some(open_questions) = &self.questions else {
            return Err(AnswerError::NoPlan(to_safe_single_line(&self.plan_file)));
        };
        let index = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        index.and_then(|index| open_questions.get(index)).ok_or_else(|| {
            let available = if open_questions.is_empty() {
                "none is open".to_owned()
            } else {
                format!("{} open", count_with_noun(open_questions.len(), "question"))
            };
            AnswerError::NoQuestion { number: to_safe_single_line(number), available }
        })
    }
}

/// Writes the answers into the plan and prints the next step. Returns exit code 1 if that fails. `numbers_and_texts` alternates the
/// number of a question and the text of its answer, as `--answer N TEXT` passes them.
pub(crate) fn write_answers_and_print_next_step(project: &Project, numbers_and_texts: &[String]) -> ExitCode {
    if let Some(message) = foreign_state::describe_foreign_state(project) {
        return fail(message);
    }
    match write_answers_to_plan(project, numbers_and_texts) {
        Ok(written) => {
            written.sentences.iter().for_each(print_text);
            print_hint(&written.next_step);
            ExitCode::SUCCESS
        }
        Err(error) => fail(error),
    }
}

/// The messages to print after answers were written into the plan.
pub(crate) struct AnswerReport {
    /// One sentence for each answer.
    pub(crate) sentences: Vec<String>,
    next_step: String,
}

/// Writes the answers into the plan. Writes nothing if one of the questions is not open, or one of the texts is empty.
pub(crate) fn write_answers_to_plan(
    project: &Project,
    numbers_and_texts: &[String],
) -> Result<AnswerReport, AnswerError> {
    let question_list = QuestionList::read_from_plan(project)?;
    if let Some(fleet) =
        question_list.state.options.workers.as_ref().and_then(|workers| workers.fleet_name.clone())
    {
        return Err(AnswerError::BelongsToFleet(to_safe_single_line(&fleet)));
    }
    let mut questions_and_texts: Vec<(&OpenQuestion, String)> = Vec::new();
    for (number, text) in numbers_and_texts.chunks_exact(2).map(|pair| (&pair[0], &pair[1])) {
        let text = text_or_stdin_if_dash(text)?;
        if text.trim().is_empty() {
            return Err(AnswerError::EmptyAnswer(to_safe_single_line(number)));
        }
        let question = question_list.find_open_question_by_number(number)?;
        if questions_and_texts.iter().any(|(other, _)| std::ptr::eq(*other, question)) {
            return Err(AnswerError::TwoAnswers(to_safe_single_line(number)));
        }
        questions_and_texts.push((question, text));
    }
    let plan_file = to_safe_single_line(&question_list.plan_file);
    if !write_answers_if_all_questions_still_open(project, &question_list.plan_file, &questions_and_texts)? {
        return Err(AnswerError::QuestionNoLongerOpen(plan_file));
    }
    let mut sentences = Vec::new();
    for (question, _) in questions_and_texts {
        let (item, question) = (to_safe_single_line(&question.item), to_safe_single_line(&question.question));
        sentences.push(format!("answered in {plan_file}: \"{item}\": {question}"));
    }
    let open_count = question_list.questions.as_ref().map_or(0, Vec::len);
    let next_step =
        render_next_step(project, &question_list.state, open_count.saturating_sub(sentences.len()));
    Ok(AnswerReport { sentences, next_step })
}

/// Renders the next step: an active run returns to the answered items by itself; otherwise the command that starts or
/// continues a run.
fn render_next_step(project: &Project, state: &RunState, open_question_count: usize) -> String {
    let open_questions_text = match open_question_count {
        0 => String::new(),
        open_question_count => {
            format!("; {} still open: plimsoll status", count_with_noun(open_question_count, "question"))
        }
    };
    let plan_file = state.options.todo_file.as_deref().unwrap_or(DEFAULT_PLAN);
    let run_command = if plan_file == DEFAULT_PLAN {
        "plimsoll run".to_owned()
    } else {
        format!("plimsoll run --todo {}", quote_for_shell(plan_file))
    };
    let has_final_status = state.lifecycle.status().is_final();
    let next_step = if state.run_id.is_empty() || has_final_status {
        format!("to start a run: {run_command}")
    } else if lock::is_run_locked(project) {
        "the run will return to the item when its turn comes".to_owned()
    } else {
        let next_command = ending_text(state).and_then(|ending| ending.resume_command);
        format!("to continue: {}", next_command.as_deref().unwrap_or(RESUME_COMMAND))
    };
    format!("{next_step}{open_questions_text}")
}
