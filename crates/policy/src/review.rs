//! Reviews of ticked items by a second session: when they are due, how an answer is parsed, and which ticks are taken
//! back.
//!
//! The answer is untrusted text. It can only take a tick back, at most [`MAX_UNTICKS`] times an item, and give the reason.
//! Without an answer no tick counts: its item waits for the user.

use crate::current_item::current_open_item;
use plimsoll_domain::reverted_ticks::RevertedTicks;
use plimsoll_domain::review::{
    Finding, ItemFindings, ItemWorkStart, Review, ReviewOutcome, ReviewSession, ReviewState,
};
use plimsoll_domain::text::{count_with_noun, to_single_line, truncate_end};
use plimsoll_domain::{RunState, TodoList, item_set};
use plimsoll_protocol::untrusted_text::escape_hidden_characters;

/// Maximum number of times that reviews take back the tick of an item. The user must decide what two sessions could
/// not settle.
pub const MAX_UNTICKS: u32 = 2;
/// Maximum number of findings of an answer that count, and the maximum length of each in characters.
const MAX_FINDINGS: usize = 10;
const MAX_FINDING_CHARS: usize = 600;
/// Maximum length of the quoted reason for a missing verdict, in characters.
const MAX_TROUBLE_CHARS: usize = 200;

/// The reason why an answer has no verdict.
pub const UNREADABLE_ANSWER: &str =
    "its answer has no line `VERDICT: pass` or `VERDICT: findings` with findings below it";

/// Returns true if the current session has been reviewed already.
fn is_session_reviewed(state: &RunState) -> bool {
    let last_review = state.outcomes.reviews.last_review.as_ref();
    last_review.is_some_and(|review| review.is_after_session(state.iteration, state.session_id.as_ref()))
}

/// Returns the ticked items that no review has covered yet: those of earlier sessions, then those of this one.
fn ticked_items_awaiting_review(state: &RunState, todo: &TodoList) -> Vec<String> {
    let done_items = todo.ticked_items();
    let done_set = item_set::to_text_set(&done_items);
    let waiting_before =
        state.outcomes.reviews.waiting_items.iter().filter(|item| done_set.contains(item.as_str()));
    let mut waiting: Vec<String> = waiting_before.cloned().collect();
    if !is_session_reviewed(state) {
        item_set::append_new_items(&mut waiting, &state.filter_ticked_in_session(&done_items));
    }
    waiting
}

/// Returns the items to review now: when as many wait as the user configured, when nothing is left to do, or at once
/// if one of them was reviewed before. Returns an empty list if it is too early.
pub fn items_to_review_now(state: &RunState, todo: Option<&TodoList>) -> Vec<String> {
    let review_every = state.options.items_per_review as usize;
    let Some(todo) = todo.filter(|_| review_every > 0 && !is_session_reviewed(state)) else {
        return Vec::new();
    };
    let waiting = ticked_items_awaiting_review(state, todo);
    let was_reviewed = |item: &String| state.outcomes.reviews.findings_for_item(item).is_some();
    let is_due = waiting.len() >= review_every
        || todo.unparked_open_items().is_empty()
        || waiting.iter().any(was_reviewed);
    if is_due { waiting } else { Vec::new() }
}

/// Returns the reason why ticked items that still wait for their review contradict completion; `None` if none waits. Reviews do
/// not begin once the money, the tokens or the time are used up.
pub(crate) fn missing_review_reason(state: &RunState, todo: Option<&TodoList>) -> Option<String> {
    let count = items_to_review_now(state, todo).len();
    let verb = if count == 1 { "waits for its review" } else { "wait for their review" };
    (count > 0).then(|| format!("{} {verb}", count_with_noun(count, "ticked item")))
}

/// Records the commit at which the work on the current item begins, unless it began earlier.
pub fn record_work_start(state: &mut RunState, head: Option<&str>) {
    if state.options.items_per_review == 0 {
        return;
    }
    let Some(item) = current_open_item(state).cloned() else { return };
    let ReviewState { work_starts: begun, .. } = &mut state.outcomes.reviews;
    if !begun.iter().any(|started| started.item == item) {
        begun.push(ItemWorkStart { item, head: head.map(str::to_owned) });
    }
}

/// Returns HEAD at the time when the work on these items began; `None` before the first commit.
pub fn commit_before_work<'a>(state: &'a RunState, items: &[String]) -> Option<&'a str> {
    let first_started = state.outcomes.reviews.work_starts.iter().find(|begun| items.contains(&begun.item));
    let head_at_iteration_start =
        || state.iteration_record.fingerprint_before.as_ref().and_then(|footing| footing.head.as_deref());
    first_started.map_or_else(head_at_iteration_start, |started| started.head.as_deref())
}

/// Records, at the end of a session, the ticked items that still wait for their review.
pub fn record_items_awaiting_review(state: &mut RunState, todo: Option<&TodoList>) {
    let Some(todo) = todo.filter(|_| state.options.items_per_review > 0) else { return };
    let waiting = ticked_items_awaiting_review(state, todo);
    // The work on an item that a session took beside its own began with that session.
    let head = state.iteration_record.fingerprint_before.as_ref().and_then(|footing| footing.head.clone());
    let ReviewState { work_starts: begun, waiting_items: waiting_before, .. } = &mut state.outcomes.reviews;
    for item in &waiting {
        if !begun.iter().any(|started| started.item == *item) {
            begun.push(ItemWorkStart { item: item.clone(), head: head.clone() });
        }
    }
    *waiting_before = waiting;
    // Items that are no longer in the plan are not reviewed.
    let plan_items = item_set::to_text_set(todo.items.iter().map(|item| &item.text));
    begun.retain(|begun| plan_items.contains(begun.item.as_str()));
}

/// Parses the findings about these items in an answer; empty if it passes them. Returns `None` if the answer cannot
/// be read.
pub fn parse_findings(answer: &str, items: &[String]) -> Option<Vec<Finding>> {
    let lines: Vec<&str> = answer.lines().map(str::trim).collect();
    let verdicts: Vec<(usize, &str)> =
        lines.iter().enumerate().filter_map(|(index, line)| Some((index, parse_verdict(line)?))).collect();
    let [(verdict_index, verdict)] = verdicts[..] else { return None };
    let findings_below = lines[verdict_index + 1..].iter().filter_map(|line| parse_finding(line, items));
    let findings: Vec<Finding> = findings_below.take(MAX_FINDINGS).collect();
    match verdict {
        word if word.eq_ignore_ascii_case("pass") => findings.is_empty().then_some(findings),
        word if word.eq_ignore_ascii_case("findings") => (!findings.is_empty()).then_some(findings),
        _ => None,
    }
}

/// Returns the word behind `VERDICT:`. Models like to print such a line bold, or as code.
fn parse_verdict(line: &str) -> Option<&str> {
    let line = line.trim_matches(['*', '`', ' ']);
    let (name, word) = line.split_once(':')?;
    let is_verdict = name.trim_matches(['*', ' ']).eq_ignore_ascii_case("verdict");
    is_verdict.then(|| word.trim_matches(['*', '`', ' ', '.']))
}

/// Parses a line `- 2: words`. Without a number of these items the finding is about all of them.
fn parse_finding(line: &str, items: &[String]) -> Option<Finding> {
    let text = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "))?.trim();
    let (item, text) = match split_item_number(text, items) {
        Some((item, words)) => (Some(item.clone()), words),
        None => (None, text),
    };
    (!text.is_empty())
        .then(|| Finding { item, text: truncate_end(&escape_hidden_characters(text), MAX_FINDING_CHARS) })
}

fn split_item_number<'a, 'b>(text: &'a str, items: &'b [String]) -> Option<(&'b String, &'a str)> {
    let (number, rest) = text.split_once(':')?;
    let number: usize = number.trim_matches(['*', ' ']).parse().ok()?;
    Some((items.get(number.checked_sub(1)?)?, rest.trim()))
}

/// The result of a reviewing session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewAnswer {
    /// It answered with this text.
    Text(String),
    /// It gave no answer, for this reason.
    Missing(String),
}

/// Builds the review of a session from the answer.
pub fn build_review(session: &ReviewSession, answer: &ReviewAnswer) -> Review {
    let parsed_findings = match answer {
        ReviewAnswer::Text(text) => parse_findings(text, &session.items),
        ReviewAnswer::Missing(_) => None,
    };
    let trouble = match (&parsed_findings, answer) {
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
            failure: trouble,
            ..ReviewOutcome::default()
        },
    }
}

/// Whether the review is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewProgress {
    /// It gave no verdict, and the same items are reviewed once more.
    Repeat,
    /// It is decided which ticks are taken back.
    Decided,
}

/// Applies a review to the state: decides which ticks are taken back, while the plan still has them. A review without
/// a verdict is repeated once. If the second one gives none either, all of its ticks are taken back, and their items
/// wait for the user, because a tick that nobody has reviewed must not count. Findings of an earlier review stay
/// open.
pub fn apply_review(state: &mut RunState, mut review: Review) -> ReviewProgress {
    let reviews = &mut state.outcomes.reviews;
    reviews.unanswered_count += u32::from(review.outcome.failure.is_some());
    reviews.open_session = None;
    state.spending.review_count += 1;
    let is_first_attempt = |attempt: &Review| {
        attempt.is_after_session(review.iteration, review.session_id.as_ref())
            && attempt.outcome.items == review.outcome.items
    };
    match (reviews.attempt_without_verdict.take().filter(is_first_attempt), &review.outcome.failure) {
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
    let facts = &mut review.outcome;
    let question = facts.failure.as_deref().map(render_missing_verdict_question);
    let mut unticked_items = Vec::new();
    if question.is_some() {
        unticked_items.clone_from(&facts.items);
    } else {
        for item in &facts.items.clone() {
            let findings = facts.findings_for_item(item);
            let has_findings = !findings.is_empty();
            if record_findings_of_item(state, item, findings) {
                unticked_items.push(item.clone());
            } else if has_findings {
                facts.kept_ticks.push(item.clone());
            }
        }
    }
    let reviews = &mut state.outcomes.reviews;
    reviews.waiting_items.retain(|item| !facts.items.contains(item));
    // When an item is open again, its next review covers all of the work.
    reviews
        .work_starts
        .retain(|begun| !facts.items.contains(&begun.item) || unticked_items.contains(&begun.item));
    if !unticked_items.is_empty() {
        let is_about_unticked_item =
            |finding: &&Finding| finding.item.as_ref().is_none_or(|item| unticked_items.contains(item));
        let findings = facts
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

/// Renders the question to the user about an item for which no review gave a verdict.
fn render_missing_verdict_question(trouble: &str) -> String {
    format!(
        "Two reviews of this item gave no verdict ({}), so it is not done yet. Tick it yourself if it is, or answer what to do.",
        truncate_end(&to_single_line(trouble), MAX_TROUBLE_CHARS)
    )
}

/// Records the findings of a review about an item, and returns true if its tick is taken back for them.
fn record_findings_of_item(state: &mut RunState, item: &str, findings: Vec<String>) -> bool {
    let points = &mut state.outcomes.reviews.item_findings;
    let earlier_unticks =
        points.iter().find(|known| known.item == item).map_or(0, |known| known.taken_back_count);
    let unticks_item = !findings.is_empty() && earlier_unticks < MAX_UNTICKS;
    points.retain(|known| known.item != item);
    let untick_count = earlier_unticks + u32::from(unticks_item);
    if untick_count > 0 {
        points.push(ItemFindings { item: item.to_owned(), taken_back_count: untick_count, findings });
    }
    unticks_item
}

/// Returns true if the current session was reviewed, and the review gave a verdict.
pub fn has_review_verdict(state: &RunState) -> bool {
    is_session_reviewed(state)
        && state.outcomes.reviews.last_review.as_ref().is_some_and(|review| review.outcome.failure.is_none())
}

const MODEL_OPTION: &str = "--model";

/// Returns the user's arguments for the client that a reviewing session gets: no model, because it has one of its
/// own, and nothing that could let it do more than read inside the project, such as `--dangerously-skip-permissions`.
pub fn reviewer_arguments(user_arguments: &[String]) -> Vec<String> {
    let (arguments_without_model, _) = crate::models::split_off_option(user_arguments, MODEL_OPTION);
    crate::read_only::split_harmless_arguments(&arguments_without_model).harmless
}

#[cfg(test)]
mod tests;
