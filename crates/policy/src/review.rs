//! Reviews of ticked items by a second session: when they are due, how an answer is parsed, and which items are unticked.
//!
//! The answer is untrusted text. It can only untick an item, at most [`MAX_UNTICKS`] times, and state the reason. Without
//! an answer no tick counts: the item waits for the user.

use crate::current_item::current_unparked_item;
use plimsoll_domain::reverted_ticks::RevertedTicks;
use plimsoll_domain::review::{
    Finding, ItemFindings, ItemWorkStart, Review, ReviewOutcome, ReviewSession, ReviewState,
};
use plimsoll_domain::text::{count_with_noun, to_safe_single_line, truncate_end};
use plimsoll_domain::{RunState, TodoList, item_set};
use plimsoll_protocol::untrusted_text::escape_hidden_characters;

/// Maximum number of times that reviews untick an item. After that, the user must decide what the two sessions could not
/// settle.
pub const MAX_UNTICKS: u32 = 2;
/// Maximum number of findings of an answer that count, and the maximum length of each in characters.
const MAX_FINDINGS: usize = 10;
const MAX_FINDING_CHARS: usize = 600;
/// Maximum length of the quoted reason for a missing verdict, in characters.
const MAX_FAILURE_CHARS: usize = 200;

/// The failure of a review whose answer contains no verdict.
pub const UNREADABLE_ANSWER: &str =
    "its answer has no line `VERDICT: pass` or `VERDICT: findings` with findings below it";

/// Returns true if the current session has been reviewed already.
fn is_session_reviewed(state: &RunState) -> bool {
    let last_review = state.outcomes.reviews.last_review.as_ref();
    last_review.is_some_and(|review| review.is_after_session(state.iteration, state.session_id.as_ref()))
}

/// Returns the ticked items that no review has covered yet: first those of earlier sessions, then those of this one.
fn ticked_items_awaiting_review(state: &RunState, todo: &TodoList) -> Vec<String> {
    let done_items = todo.ticked_items();
    let done_item_set = item_set::to_text_set(&done_items);
    let earlier_waiting_items =
        state.outcomes.reviews.waiting_items.iter().filter(|item| done_item_set.contains(item.as_str()));
    let mut waiting_items: Vec<String> = earlier_waiting_items.cloned().collect();
    if !is_session_reviewed(state) {
        item_set::append_new_items(&mut waiting_items, &state.filter_ticked_in_session(&done_items));
    }
    waiting_items
}

/// Returns the items to review now. Reviews are due when as many items wait as the user configured, when no other item is
/// open, or when one of the items was reviewed before. Returns an empty list if no review is due.
pub fn items_to_review_now(state: &RunState, todo: Option<&TodoList>) -> Vec<String> {
    let items_per_review = state.options.items_per_review as usize;
    let Some(todo) = todo.filter(|_| items_per_review > 0 && !is_session_reviewed(state)) else {
        return Vec::new();
    };
    let waiting_items = ticked_items_awaiting_review(state, todo);
    let was_reviewed = |item: &String| state.outcomes.reviews.findings_for_item(item).is_some();
    let is_due = waiting_items.len() >= items_per_review
        || todo.unparked_open_items().is_empty()
        || waiting_items.iter().any(was_reviewed);
    if is_due { waiting_items } else { Vec::new() }
}

/// Returns the reason why ticked items that wait for their review contradict completion; `None` if no review is due.
/// Reviews do not start once the budget of money, tokens or time is used up.
pub(crate) fn missing_review_reason(state: &RunState, todo: Option<&TodoList>) -> Option<String> {
    let count = items_to_review_now(state, todo).len();
    let verb = if count == 1 { "waits for its review" } else { "wait for their review" };
    (count > 0).then(|| format!("{} {verb}", count_with_noun(count, "ticked item")))
}

/// Records the commit at which the work on the current item starts, unless a start is already recorded.
pub fn record_work_start_on_current_item(state: &mut RunState, head: Option<&str>) {
    if state.options.items_per_review == 0 {
        return;
    }
    let Some(item) = current_unparked_item(state).cloned() else { return };
    let ReviewState { work_starts: recorded_starts, .. } = &mut state.outcomes.reviews;
    if !recorded_starts.iter().any(|work_start| work_start.item == item) {
        recorded_starts.push(ItemWorkStart { item, head: head.map(str::to_owned) });
    }
}

/// Returns HEAD at the start of the work on these items; `None` before the first commit.
pub fn commit_before_work_or_iteration_start<'a>(state: &'a RunState, items: &[String]) -> Option<&'a str> {
    let first_work_start =
        state.outcomes.reviews.work_starts.iter().find(|work_start| items.contains(&work_start.item));
    let head_at_iteration_start = || {
        state.iteration_record.fingerprint_before.as_ref().and_then(|fingerprint| fingerprint.head.as_deref())
    };
    first_work_start.map_or_else(head_at_iteration_start, |work_start| work_start.head.as_deref())
}

/// Updates, at the end of a session, the list of ticked items that wait for their review, and the starts of the work on
/// them.
pub fn update_items_awaiting_review_and_work_starts(state: &mut RunState, todo: Option<&TodoList>) {
    let Some(todo) = todo.filter(|_| state.options.items_per_review > 0) else { return };
    let current_waiting_items = ticked_items_awaiting_review(state, todo);
    // Work on an item that a session did in addition to its assigned one began with that session.
    let head =
        state.iteration_record.fingerprint_before.as_ref().and_then(|fingerprint| fingerprint.head.clone());
    let ReviewState { work_starts: recorded_starts, waiting_items: recorded_waiting_items, .. } =
        &mut state.outcomes.reviews;
    for item in &current_waiting_items {
        if !recorded_starts.iter().any(|work_start| work_start.item == *item) {
            recorded_starts.push(ItemWorkStart { item: item.clone(), head: head.clone() });
        }
    }
    *recorded_waiting_items = current_waiting_items;
    // Items that are no longer in the plan are not reviewed.
    let plan_items = item_set::to_text_set(todo.items.iter().map(|item| &item.text));
    recorded_starts.retain(|work_start| plan_items.contains(work_start.item.as_str()));
}

/// Parses the findings about these items in an answer; empty if the answer passes them. Returns `None` unless the answer
/// contains exactly one verdict that is consistent with its findings.
pub fn parse_findings_matching_verdict(answer: &str, items: &[String]) -> Option<Vec<Finding>> {
    let lines: Vec<&str> = answer.lines().map(str::trim).collect();
    let verdicts: Vec<(usize, &str)> =
        lines.iter().enumerate().filter_map(|(index, line)| Some((index, parse_verdict(line)?))).collect();
    let [(verdict_index, verdict)] = verdicts[..] else { return None };
    let findings_below =
        lines[verdict_index + 1..].iter().filter_map(|line| parse_finding_bullet(line, items));
    let findings: Vec<Finding> = findings_below.take(MAX_FINDINGS).collect();
    match verdict {
        verdict_text if verdict_text.eq_ignore_ascii_case("pass") => findings.is_empty().then_some(findings),
        verdict_text if verdict_text.eq_ignore_ascii_case("findings") => {
            (!findings.is_empty()).then_some(findings)
        }
        _ => None,
    }
}

/// Returns the value after `VERDICT:`. Models often print such a line in bold or as code.
fn parse_verdict(line: &str) -> Option<&str> {
    let line = line.trim_matches(['*', '`', ' ']);
    let (name, value) = line.split_once(':')?;
    let is_verdict = name.trim_matches(['*', ' ']).eq_ignore_ascii_case("verdict");
    is_verdict.then(|| value.trim_matches(['*', '`', ' ', '.']))
}

/// Parses a line `- 2: text`. Without the number of an item the finding is about all of them.
fn parse_finding_bullet(line: &str, items: &[String]) -> Option<Finding> {
    let text = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "))?.trim();
    let (item, text) = match split_item_number(text, items) {
        Some((item, finding_text)) => (Some(item.clone()), finding_text),
        None => (None, text),
    };
    (!text.is_empty())
        .then(|| Finding { item, text: truncate_end(&escape_hidden_characters(text), MAX_FINDING_CHARS) })
}

fn split_item_number<'a, 'b>(text: &'a str, items: &'b [String]) -> Option<(&'b String, &'a str)> {
    let (number, finding_text) = text.split_once(':')?;
    let number: usize = number.trim_matches(['*', ' ']).parse().ok()?;
    Some((items.get(number.checked_sub(1)?)?, finding_text.trim()))
}

/// The result of a reviewing session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewAnswer {
    /// The session answered with this text.
    Text(String),
    /// The session gave no answer, for this reason.
    Missing(String),
}

/// Builds the review of a session from the answer of the reviewer.
pub fn build_review(session: &ReviewSession, answer: &ReviewAnswer) -> Review {
    let parsed_findings = match answer {
        ReviewAnswer::Text(text) => parse_findings_matching_verdict(text, &session.items),
        ReviewAnswer::Missing(_) => None,
    };
    let failure_reason = match (&parsed_findings, answer) {
        (Some(_), _) => None,
        (None, ReviewAnswer::Text(_)) => Some(UNREADABLE_ANSWER.to_owned()),
        (None, ReviewAnswer::Missing(reason)) => Some(reason.clone()),
    };
    let findings = parsed_findings.unwrap_or_default();
    Review {
        iteration: session.iteration,
        session_id: session.session_id.clone(),
        outcome: ReviewOutcome {
            items: session.items.clone(),
            findings,
            failure: failure_reason,
            ..ReviewOutcome::default()
        },
    }
}

/// Whether the review has been decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewProgress {
    /// The review gave no verdict and must be repeated for the same items.
    Repeat,
    /// The items to untick have been determined.
    Decided,
}

/// Applies a review to the state and determines which items to untick; the plan itself is not changed yet. A review
/// without a verdict is repeated once. If the second one gives none either, all of its items are unticked and wait for
/// the user, because a tick that was not reviewed must not count. Findings of an earlier review stay open.
pub fn apply_review(state: &mut RunState, mut review: Review) -> ReviewProgress {
    let reviews = &mut state.outcomes.reviews;
    reviews.unanswered_count += u32::from(review.outcome.failure.is_some());
    reviews.open_session = None;
    state.spending.review_count += 1;
    let is_attempt_at_same_review = |attempt: &Review| {
        attempt.is_after_session(review.iteration, review.session_id.as_ref())
            && attempt.outcome.items == review.outcome.items
    };
    match (reviews.attempt_without_verdict.take().filter(is_attempt_at_same_review), &review.outcome.failure)
    {
        (None, Some(_)) => {
            reviews.attempt_without_verdict = Some(review);
            return ReviewProgress::Repeat;
        }
        (Some(attempt), _) => {
            review.outcome.cost_usd += attempt.outcome.cost_usd;
            review.outcome.tokens += attempt.outcome.tokens;
            review.outcome.seconds += attempt.outcome.seconds;
        }
        (None, None) => {}
    }
    let outcome = &mut review.outcome;
    let question = outcome.failure.as_deref().map(render_missing_verdict_question);
    let mut unticked_items = Vec::new();
    if question.is_some() {
        unticked_items.clone_from(&outcome.items);
    } else {
        for item in &outcome.items.clone() {
            let findings = outcome.findings_for_item(item);
            let has_findings = !findings.is_empty();
            if record_findings_and_decide_untick(state, item, findings) {
                unticked_items.push(item.clone());
            } else if has_findings {
                outcome.kept_ticks.push(item.clone());
            }
        }
    }
    let reviews = &mut state.outcomes.reviews;
    reviews.waiting_items.retain(|item| !outcome.items.contains(item));
    // The next review of an unticked item covers all of the work on it.
    reviews.work_starts.retain(|work_start| {
        !outcome.items.contains(&work_start.item) || unticked_items.contains(&work_start.item)
    });
    if !unticked_items.is_empty() {
        let is_about_unticked_item =
            |finding: &&Finding| finding.item.as_ref().is_none_or(|item| unticked_items.contains(item));
        let findings = outcome
            .findings
            .iter()
            .filter(is_about_unticked_item)
            .map(|finding| finding.text.clone())
            .collect();
        state.outcomes.reverted_ticks = Some(RevertedTicks {
            iteration: state.iteration,
            session_id: state.session_id.clone(),
            items: unticked_items,
            findings,
            question,
            is_pending: true,
            ..RevertedTicks::default()
        });
    }
    state.outcomes.reviews.last_review = Some(review);
    ReviewProgress::Decided
}

/// Renders the question to the user about an item whose reviews gave no verdict.
fn render_missing_verdict_question(failure: &str) -> String {
    format!(
        "Two reviews of this item gave no verdict ({}), so it is not done yet. Tick it yourself if it is, or answer what to do.",
        truncate_end(&to_safe_single_line(failure), MAX_FAILURE_CHARS)
    )
}

/// Records the findings of a review about an item, and returns true if the item must be unticked.
fn record_findings_and_decide_untick(state: &mut RunState, item: &str, findings: Vec<String>) -> bool {
    let findings_by_item = &mut state.outcomes.reviews.item_findings;
    let earlier_untick_count =
        findings_by_item.iter().find(|entry| entry.item == item).map_or(0, |entry| entry.tick_revert_count);
    let should_untick = !findings.is_empty() && earlier_untick_count < MAX_UNTICKS;
    findings_by_item.retain(|entry| entry.item != item);
    let untick_count = earlier_untick_count + u32::from(should_untick);
    if untick_count > 0 {
        findings_by_item.push(ItemFindings {
            item: item.to_owned(),
            tick_revert_count: untick_count,
            findings,
        });
    }
    should_untick
}

/// Returns true if the current session was reviewed and the review gave a verdict.
pub fn has_review_verdict(state: &RunState) -> bool {
    is_session_reviewed(state)
        && state.outcomes.reviews.last_review.as_ref().is_some_and(|review| review.outcome.failure.is_none())
}

const MODEL_OPTION: &str = "--model";

/// Returns the user's arguments for the client that are passed to a reviewing session: without the model, which is
/// configured separately, and without anything that allows more than reading inside the project, such as
/// `--dangerously-skip-permissions`.
pub fn reviewer_arguments(user_arguments: &[String]) -> Vec<String> {
    let (arguments_without_model, _) = crate::models::split_off_option(user_arguments, MODEL_OPTION);
    crate::read_only::split_harmless_arguments(&arguments_without_model).harmless
}

#[cfg(test)]
mod tests;
