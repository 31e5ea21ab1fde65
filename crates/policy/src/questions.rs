//! Items that wait for the user's answer: which question of a session is still to be written down, whether anything else is
//! open, and what is said of the questions.

use crate::completion::Completion;
use crate::evidence::Evidence;
use crate::near_miss::find_near_miss;
use plimsoll_domain::item_set;
use plimsoll_domain::promise::{self, Claim};
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::text::{clip, one_line};
use plimsoll_domain::{RunState, TodoList};

/// How many questions a reason lists, and how much of each.
const LISTED: usize = 5;
const QUESTION: usize = 200;
const ITEM: usize = 80;

/// What a session that asks the user leaves to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asking {
    /// It asked nothing.
    No,
    /// It could not go on with its item, and another one is open.
    OthersOpen,
    /// Nothing else is open, for these questions.
    NothingElse(String),
}

/// The item that a session said it cannot go on with, and why, if it left that to be written into the plan.
pub fn unwritten(state: &RunState, evidence: &Evidence) -> Option<OpenQuestion> {
    let message = evidence.last_message.as_deref().unwrap_or_default();
    let claim = promise::claim(message, &state.options.completion_promise, &state.nonce);
    let (Claim::Blocked(reason), Some(todo)) = (claim, plan(state, evidence)) else { return None };
    let mut now = state.clone();
    now.take_questions(todo);
    let own = open_own_item(&now, evidence, todo);
    let item = match own {
        Some(item) if now.is_parked(item) => return None,
        // What it cannot go on with is the other item that it asked about: its own stays free.
        Some(_) | None if now.asked_now().next().is_some() => return None,
        Some(item) => item.clone(),
        None => crate::resume::next_free(todo, &now.items.set_aside)?,
    };
    let reason = one_line(&reason);
    if now.items.parked.iter().any(|known| is_echo(known, &reason, state.iteration)) {
        return None;
    }
    let question = if reason.is_empty() {
        "The session could not go on, and did not say why.".to_owned()
    } else {
        reason
    };
    Some(OpenQuestion { item, question, iteration: state.iteration, told: false })
}

/// How many sessions may repeat a question that they read of another item, before the words are taken for their own item's.
const ECHOES: u32 = 2;

/// True if a session gives as its reason what has just been asked about another item: it read that, and its own item stays
/// free. A session that says so again and again means its own item.
fn is_echo(known: &OpenQuestion, reason: &str, iteration: u32) -> bool {
    let question = one_line(&known.question);
    let is_same = question.contains(reason) || reason.contains(&question);
    !reason.is_empty() && !question.is_empty() && is_same && iteration <= known.iteration + ECHOES
}

/// Takes what the session asked into the state, and says what that leaves to do.
pub(crate) fn asking(state: &mut RunState, evidence: &Evidence, completion: &Completion) -> Asking {
    let Some(todo) = plan(state, evidence) else { return Asking::No };
    // At Stop the line of a blocked session is not in the plan yet.
    let unwritten = unwritten(state, evidence);
    state.take_questions(todo);
    state.items.parked.extend(unwritten);
    if let Some(reason) = nothing_free(state, todo) {
        return Asking::NothingElse(reason);
    }
    let is_own_parked = open_own_item(state, evidence, todo)
        .is_some_and(|own| state.asked_now().any(|question| question.item == *own));
    match completion {
        Completion::Blocked(_) => Asking::OthersOpen,
        Completion::NotClaimed if is_own_parked => Asking::OthersOpen,
        // The question says what the line was meant to say.
        Completion::Refused(_) if is_own_parked && is_nearly_blocked(state, evidence) => Asking::OthersOpen,
        Completion::NotClaimed | Completion::Refused(_) | Completion::Plausible => Asking::No,
    }
}

fn is_nearly_blocked(state: &RunState, evidence: &Evidence) -> bool {
    let message = evidence.last_message.as_deref().unwrap_or_default();
    find_near_miss(message, &state.options.completion_promise, &state.nonce)
        .is_some_and(|miss| miss.is_blocked)
}

/// Why no session can work on this plan: something is open, and all of it waits for answers. None if a session can.
pub fn nothing_free(state: &RunState, todo: &TodoList) -> Option<String> {
    let open = todo.open();
    let parked = item_set::set(state.items.parked.iter().map(|question| &question.item));
    let is_stuck = !open.is_empty() && open.iter().all(|item| parked.contains(item.as_str()));
    is_stuck.then(|| reason(&state.items.parked))
}

/// The questions as the reason of an ending.
pub fn reason(questions: &[OpenQuestion]) -> String {
    let words = |one: &OpenQuestion| {
        let (question, item) = (clip(&one_line(&one.question), QUESTION), clip(&one_line(&one.item), ITEM));
        format!("{question} (item \"{item}\")")
    };
    let listed: Vec<String> = questions.iter().take(LISTED).map(words).collect();
    let rest = questions.len().saturating_sub(LISTED);
    let more = if rest > 0 { format!("; and {rest} more") } else { String::new() };
    format!("{}{more}", listed.join("; "))
}

/// The plan of a run that has one, while something in it is open.
fn plan<'a>(state: &RunState, evidence: &'a Evidence) -> Option<&'a TodoList> {
    let todo = evidence.todo.as_ref().filter(|_| state.options.todo_file.is_some())?;
    todo.items.iter().any(|item| !item.done).then_some(todo)
}

/// The item that the session worked on last, while it is open.
fn open_own_item<'a>(state: &'a RunState, evidence: &'a Evidence, todo: &TodoList) -> Option<&'a String> {
    let own = evidence.own_item(state)?;
    todo.items.iter().any(|item| !item.done && item.text == *own).then_some(own)
}
