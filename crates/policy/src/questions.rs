//! Items that wait for the user's answer: finds the question of a blocked session that is not in the plan yet, determines
//! whether any other item is open, and renders questions.

use crate::completion::ClaimAssessment;
use crate::evidence::SessionEvidence;
use crate::near_miss::find_near_miss;
use plimsoll_domain::item_set;
use plimsoll_domain::promise::{self, PromiseClaim};
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_domain::{RunState, TodoList};

/// Maximum number of questions in a reason, and the maximum length of each question and item in characters.
const MAX_LISTED_QUESTIONS: usize = 5;
const MAX_QUESTION_CHARS: usize = 200;
const MAX_ITEM_CHARS: usize = 80;

/// The effect of a session's questions on the remaining work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QuestionOutcome {
    /// The session asked nothing, or its questions do not change the verdict.
    NoEffect,
    /// The session was blocked on its item, and another item is open.
    OtherItemsOpen,
    /// All open items wait for an answer; contains the rendered questions.
    AllItemsParked(String),
}

/// Returns the item on which a session claims to be blocked, with the reason as the question. Returns `None` if the
/// session has written a question into the plan, or if it repeats a recent question.
pub fn unwritten_question_of_blocked_session(
    state: &RunState,
    evidence: &SessionEvidence,
) -> Option<OpenQuestion> {
    let message = evidence.last_message.as_deref().unwrap_or_default();
    let claim =
        promise::parse_claim_on_last_line(message, &state.options.completion_promise, &state.promise_code);
    let (PromiseClaim::Blocked(reason), Some(plan)) = (claim, plan_with_open_items(state, evidence)) else {
        return None;
    };
    let mut state_with_questions = state.clone();
    state_with_questions.update_parked_questions_from_plan(plan);
    let session_item = session_item_if_still_open(&state_with_questions, evidence, plan);
    let item = match session_item {
        Some(item) if state_with_questions.is_parked(item) => return None,
        // The session is blocked by the other item, about which it asked. Its assigned item stays available.
        Some(_) | None if state_with_questions.questions_of_current_iteration().next().is_some() => {
            return None;
        }
        Some(item) => item.clone(),
        None => {
            crate::resume::next_unparked_open_item(plan, &state_with_questions.plan_items.set_aside_items)?
        }
    };
    let reason = to_safe_single_line(&reason);
    if state_with_questions
        .plan_items
        .parked_questions
        .iter()
        .any(|parked_question| repeats_recent_question(parked_question, &reason, state.iteration))
    {
        return None;
    }
    let question = if reason.is_empty() {
        "The session could not go on, and did not say why.".to_owned()
    } else {
        reason
    };
    Some(OpenQuestion { item, question, iteration: state.iteration, was_notified: false })
}

/// Number of later sessions for which a repeated question still counts as the one about the other item, and not as a
/// question about their assigned item.
const MAX_SESSIONS_REPEATING_QUESTION: u32 = 2;

/// Returns true if the reason of a blocked session repeats a recent question about another item. The session has read
/// that question, and its assigned item stays available. After [`MAX_SESSIONS_REPEATING_QUESTION`] sessions the question
/// counts as one about the assigned item.
fn repeats_recent_question(parked_question: &OpenQuestion, reason: &str, iteration: u32) -> bool {
    let question = to_safe_single_line(&parked_question.question);
    let is_same_text = question.contains(reason) || reason.contains(&question);
    !reason.is_empty()
        && !question.is_empty()
        && is_same_text
        && iteration <= parked_question.iteration + MAX_SESSIONS_REPEATING_QUESTION
}

/// Records the session's questions in the state, and returns their effect on the remaining work.
pub(crate) fn record_questions_of_session(
    state: &mut RunState,
    evidence: &SessionEvidence,
    completion: &ClaimAssessment,
) -> QuestionOutcome {
    let Some(plan) = plan_with_open_items(state, evidence) else { return QuestionOutcome::NoEffect };
    // When the Stop hook runs, the question of a blocked session is not in the plan yet.
    let unwritten_question = unwritten_question_of_blocked_session(state, evidence);
    state.update_parked_questions_from_plan(plan);
    state.plan_items.parked_questions.extend(unwritten_question);
    if let Some(reason) = render_questions_if_all_items_parked(state, plan) {
        return QuestionOutcome::AllItemsParked(reason);
    }
    let is_session_item_parked = session_item_if_still_open(state, evidence, plan)
        .is_some_and(|item| state.questions_of_current_iteration().any(|question| question.item == *item));
    match completion {
        ClaimAssessment::Blocked(_) => QuestionOutcome::OtherItemsOpen,
        ClaimAssessment::NotClaimed if is_session_item_parked => QuestionOutcome::OtherItemsOpen,
        // The question in the plan confirms what the near miss claims.
        ClaimAssessment::Refused(_) if is_session_item_parked && has_blocked_near_miss(state, evidence) => {
            QuestionOutcome::OtherItemsOpen
        }
        ClaimAssessment::NotClaimed | ClaimAssessment::Refused(_) | ClaimAssessment::PendingVerification => {
            QuestionOutcome::NoEffect
        }
    }
}

fn has_blocked_near_miss(state: &RunState, evidence: &SessionEvidence) -> bool {
    let message = evidence.last_message.as_deref().unwrap_or_default();
    find_near_miss(message, &state.options.completion_promise, &state.promise_code)
        .is_some_and(|near_miss| near_miss.claims_blocked)
}

/// Returns the rendered questions if items are open and all of them wait for answers, so no session can work on this
/// plan; otherwise `None`.
pub fn render_questions_if_all_items_parked(state: &RunState, plan: &TodoList) -> Option<String> {
    let open_items = plan.open_items();
    let parked_items =
        item_set::to_text_set(state.plan_items.parked_questions.iter().map(|question| &question.item));
    let are_all_parked =
        !open_items.is_empty() && open_items.iter().all(|item| parked_items.contains(item.as_str()));
    are_all_parked.then(|| render_questions_with_items(&state.plan_items.parked_questions))
}

/// Renders the questions as the reason for ending a run.
pub fn render_questions_with_items(questions: &[OpenQuestion]) -> String {
    let render_question = |open_question: &OpenQuestion| {
        let (question, item) = (
            truncate_end(&to_safe_single_line(&open_question.question), MAX_QUESTION_CHARS),
            truncate_end(&to_safe_single_line(&open_question.item), MAX_ITEM_CHARS),
        );
        format!("{question} (item \"{item}\")")
    };
    let rendered_questions: Vec<String> =
        questions.iter().take(MAX_LISTED_QUESTIONS).map(render_question).collect();
    let unlisted_count = questions.len().saturating_sub(MAX_LISTED_QUESTIONS);
    let unlisted_questions_text =
        if unlisted_count > 0 { format!("; and {unlisted_count} more") } else { String::new() };
    format!("{}{unlisted_questions_text}", rendered_questions.join("; "))
}

/// Returns the run's plan if it has open items.
fn plan_with_open_items<'a>(state: &RunState, evidence: &'a SessionEvidence) -> Option<&'a TodoList> {
    let plan = evidence.todo.as_ref().filter(|_| state.options.todo_file.is_some())?;
    plan.items.iter().any(|item| !item.is_ticked).then_some(plan)
}

/// Returns the item on which the session worked last, if it is still open.
fn session_item_if_still_open<'a>(
    state: &'a RunState,
    evidence: &'a SessionEvidence,
    plan: &TodoList,
) -> Option<&'a String> {
    let session_item = evidence.item_worked_on(state)?;
    plan.items.iter().any(|item| !item.is_ticked && item.text == *session_item).then_some(session_item)
}
