//! The questions that sessions ask the user, and the answers, which go into the plan: `--answer` of `plimsoll status` and
//! `plimsoll run`.

use crate::endings::{RESUME, ending_words};
use crate::{foreign_state, questions};
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::state::Items;
use plimsoll_domain::text::{counted, one_line};
use plimsoll_domain::todo::DEFAULT_PLAN;
use plimsoll_domain::{RunState, TodoList};
use plimsoll_flows::run::questions::{among, answer as write_answer};
use plimsoll_policy::todo_list::shell_word;
use plimsoll_store::{Project, StoreError, disk, lock, state_file};
use plimsoll_terminal::console::{fail, say, say_error};
use plimsoll_terminal::standard_input::{InputError, text_of};
use std::process::ExitCode;
use thiserror::Error;

/// Why nothing was answered.
#[derive(Debug, Error)]
pub(crate) enum AnswerError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("there is no plan {0}, so there are no questions")]
    NoPlan(String),
    #[error("there is no question {number}: {found}; `plimsoll status` lists them")]
    NoQuestion { number: String, found: String },
    #[error(
        "this run belongs to the fleet `{0}`, whose questions are answered for all: plimsoll fleet answer {0} ITEM TEXT"
    )]
    OfFleet(String),
    #[error("the answer is empty: --answer {0} TEXT, or - for standard input")]
    Empty(String),
    #[error(
        "nothing was written: the question is no longer open in {0} (it was answered, changed or removed meanwhile); `plimsoll status` lists the open ones"
    )]
    Gone(String),
}

/// The open questions of the project's plan.
pub(crate) struct QuestionList {
    state: RunState,
    plan_file: String,
    /// None if there is no plan.
    questions: Option<Vec<OpenQuestion>>,
}

impl QuestionList {
    pub(crate) fn read(project: &Project) -> Result<QuestionList, StoreError> {
        let state = state_file::load(project, None)?.unwrap_or_default();
        let plan_file = state.options.todo_file.clone().unwrap_or_else(|| DEFAULT_PLAN.to_owned());
        let plan = disk::read_text(&project.root().join(&plan_file))?;
        let questions = plan.map(|plan| among(&state, &TodoList::parse(&plan)));
        Ok(QuestionList { state, plan_file, questions })
    }

    /// Returns the lines that `plimsoll status` shows in a project without a run.
    pub(crate) fn to_lines(&self) -> Vec<String> {
        let parked = self.questions.clone().unwrap_or_default();
        questions::lines(&RunState { items: Items { parked, ..Items::default() }, ..RunState::default() })
    }

    fn find_question(&self, number: &str) -> Result<&OpenQuestion, AnswerError> {
        let Some(open) = &self.questions else { return Err(AnswerError::NoPlan(one_line(&self.plan_file))) };
        let place = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        place.and_then(|place| open.get(place)).ok_or_else(|| {
            let found = if open.is_empty() {
                "none is open".to_owned()
            } else {
                format!("{} open", counted(open.len(), "question"))
            };
            AnswerError::NoQuestion { number: one_line(number), found }
        })
    }
}

/// Answers the questions, and prints what follows; 1 if that is not possible. `answers` has pairs of a question's number and a text,
/// as `--answer N TEXT` gives them.
pub(crate) fn answer(project: &Project, answers: &[String]) -> ExitCode {
    if let Some(words) = foreign_state::words(project) {
        return fail(words);
    }
    match write_answers(project, answers) {
        Ok(answered) => {
            answered.sentences.iter().for_each(say);
            say_error(&answered.what_now);
            ExitCode::SUCCESS
        }
        Err(error) => fail(error),
    }
}

/// Answers that were written into the plan.
pub(crate) struct Answered {
    /// One for each answer.
    pub(crate) sentences: Vec<String>,
    what_now: String,
}

/// Writes the answers into the plan. Nothing is written if one of the questions is not open, or one of the texts is empty.
pub(crate) fn write_answers(project: &Project, answers: &[String]) -> Result<Answered, AnswerError> {
    let list = QuestionList::read(project)?;
    if let Some(fleet) = list.state.options.workers.as_ref().and_then(|workers| workers.fleet.clone()) {
        return Err(AnswerError::OfFleet(one_line(&fleet)));
    }
    let mut chosen = Vec::new();
    for (number, text) in answers.chunks_exact(2).map(|pair| (&pair[0], &pair[1])) {
        let text = text_of(text)?;
        if text.trim().is_empty() {
            return Err(AnswerError::Empty(one_line(number)));
        }
        chosen.push((list.find_question(number)?, text));
    }
    let mut sentences = Vec::new();
    let file = one_line(&list.plan_file);
    for (question, text) in chosen {
        if !write_answer(project, &list.plan_file, question, &text)? {
            return Err(AnswerError::Gone(file));
        }
        let (item, question) = (one_line(&question.item), one_line(&question.question));
        sentences.push(format!("answered in {file}: \"{item}\": {question}"));
    }
    let open = list.questions.as_ref().map_or(0, Vec::len);
    let what_now = what_now(project, &list.state, open.saturating_sub(sentences.len()));
    Ok(Answered { sentences, what_now })
}

/// Who takes the item up again.
fn what_now(project: &Project, state: &RunState, left: usize) -> String {
    let more = match left {
        0 => String::new(),
        left => format!("; {} still open: plimsoll status", counted(left, "question")),
    };
    let file = state.options.todo_file.as_deref().unwrap_or(DEFAULT_PLAN);
    let new = if file == DEFAULT_PLAN {
        "plimsoll run".to_owned()
    } else {
        format!("plimsoll run --todo {}", shell_word(file))
    };
    let is_for_good = state.lifecycle.status().is_final();
    let then = if state.run_id.is_empty() || is_for_good {
        format!("to start a run: {new}")
    } else if lock::is_run_held(project) {
        "the run will return to the item when its turn comes".to_owned()
    } else {
        let way_on = ending_words(state).and_then(|ending| ending.way_on);
        format!("to continue: {}", way_on.as_deref().unwrap_or(RESUME))
    };
    format!("{then}{more}")
}
