//! `plimsoll answer`: the questions that sessions ask the user, and the answers, which go into the plan.

use crate::console::{fail, nothing_to_show, say, say_error};
use crate::endings::{RESUME, ending_words};
use crate::standard_input::{InputError, text_of};
use crate::value_parsers;
use crate::{foreign_state, questions};
use clap::Args;
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::text::{counted, one_line};
use plimsoll_domain::todo::DEFAULT_PLAN;
use plimsoll_domain::{RunState, TodoList};
use plimsoll_flows::run::questions::{among, answer as write_answer};
use plimsoll_policy::todo_list::shell_word;
use plimsoll_store::{Project, StoreError, disk, lock, state_file};
use std::process::ExitCode;
use thiserror::Error;

/// Which question, and the answer.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AnswerArguments {
    /// The number of the question, as `plimsoll answer` lists it
    #[arg(value_name = "N", value_parser = value_parsers::whole_number::<usize>)]
    number: Option<usize>,
    /// The answer; `-` reads standard input
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    text: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll answer                     the open questions, numbered
  plimsoll answer 1 Use port 8042     answer the first one
  plimsoll answer 1 - < answer.txt

The answer is written into the plan as a line `  ! …` below the question; you may write that line yourself. If the run
is active, it returns to the item when its turn comes; if it has ended, continue it with `plimsoll run --resume`.";

/// Why nothing was answered.
#[derive(Debug, Error)]
enum AnswerError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("there is no plan {0}, so there are no questions")]
    NoPlan(String),
    #[error("there is no question {number}: {found}; `plimsoll answer` lists them")]
    NoQuestion { number: usize, found: String },
    #[error(
        "this run belongs to the fleet `{0}`, whose questions are answered for all: plimsoll fleet answer {0} ITEM TEXT"
    )]
    OfFleet(String),
    #[error("the answer is empty: plimsoll answer {0} TEXT, or - for standard input")]
    Empty(usize),
    #[error(
        "nothing was written: the question is no longer open in {0} (it was answered, changed or removed meanwhile); `plimsoll answer` lists the open ones"
    )]
    Gone(String),
}

/// Lists the questions, or answers one; 1 where that is not possible.
pub(crate) fn answer(arguments: &AnswerArguments) -> ExitCode {
    let project = Project::of_command();
    if let Some(words) = foreign_state::words(&project) {
        return fail(words, 1);
    }
    match list_or_answer(&project, arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error, 1),
    }
}

fn list_or_answer(project: &Project, arguments: &AnswerArguments) -> Result<(), AnswerError> {
    let state = state_file::load(project, None)?.unwrap_or_default();
    let file = state.options.todo_file.clone().unwrap_or_else(|| DEFAULT_PLAN.to_owned());
    let plan = disk::read_text(&project.root().join(&file))?;
    let Some(plan) = plan else {
        if arguments.number.is_some() {
            return Err(AnswerError::NoPlan(one_line(&file)));
        }
        nothing_to_show(format!("No question is open: there is no plan {}.", one_line(&file)));
        return Ok(());
    };
    let open = among(&state, &TodoList::parse(&plan));
    let Some(number) = arguments.number else {
        if open.is_empty() {
            nothing_to_show(format!("No question is open in {}.", one_line(&file)));
        } else {
            say(list(&open));
        }
        return Ok(());
    };
    if let Some(fleet) = state.options.workers.as_ref().and_then(|workers| workers.fleet.clone()) {
        return Err(AnswerError::OfFleet(one_line(&fleet)));
    }
    let words = match arguments.text.as_slice() {
        [word] => text_of(word)?,
        words => words.join(" "),
    };
    if words.trim().is_empty() {
        return Err(AnswerError::Empty(number));
    }
    let question = number.checked_sub(1).and_then(|place| open.get(place));
    let question = question.ok_or_else(|| {
        let found = if open.is_empty() {
            "none is open".to_owned()
        } else {
            format!("{} open", counted(open.len(), "question"))
        };
        AnswerError::NoQuestion { number, found }
    })?;
    if !write_answer(project, &file, question, &words)? {
        return Err(AnswerError::Gone(one_line(&file)));
    }
    say(format!(
        "answered in {}: \"{}\": {}",
        one_line(&file),
        one_line(&question.item),
        one_line(&question.question)
    ));
    say_error(&what_now(project, &state, open.len() - 1));
    Ok(())
}

fn list(open: &[OpenQuestion]) -> String {
    let entry = |(number, open): (usize, &OpenQuestion)| {
        let since = match open.iteration {
            0 => String::new(),
            iteration => format!(" (asked in iteration {iteration})"),
        };
        format!("{number}. {}{since}\n   {}\n", one_line(&open.item), one_line(&open.question))
    };
    let entries: String = (1..).zip(open).map(entry).collect();
    format!("{entries}\nTo answer: {}", questions::command(1))
}

/// Who takes the item up again.
fn what_now(project: &Project, state: &RunState, left: usize) -> String {
    let more = match left {
        0 => String::new(),
        left => format!("; {} still open: plimsoll answer", counted(left, "question")),
    };
    let file = state.options.todo_file.as_deref().unwrap_or(DEFAULT_PLAN);
    let new = if file == DEFAULT_PLAN {
        "plimsoll run".to_owned()
    } else {
        format!("plimsoll run --todo {}", shell_word(file))
    };
    let is_for_good = ending_words(state).is_some_and(|ending| ending.way_on.is_none());
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
