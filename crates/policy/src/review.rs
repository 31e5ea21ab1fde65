//! A second pair of eyes: when ticked items are reviewed, what of the answer counts, and what becomes of their ticks.
//!
//! The answer is foreign text. It can take a tick back, at most [`MOST`] times an item, and say why; nothing else. Without an
//! answer no tick counts: its item waits for the user.

use crate::item_in_hand::item_in_hand;
use plimsoll_domain::review::{Finding, ItemBegun, ItemPoints, Review, ReviewSession, Reviewed, Reviews};
use plimsoll_domain::taken_back::TakenBack;
use plimsoll_domain::text::{clip, counted, one_line};
use plimsoll_domain::{RunState, TodoList, item_set};
use plimsoll_protocol::foreign_words::visible;

/// So often the tick of an item is taken back for a review: what two sessions could not settle is for the user.
pub const MOST: u32 = 2;
/// So many findings of one answer count, and so much of each, in bytes.
const FINDINGS: usize = 10;
const LONGEST: usize = 600;
/// How much of the reason for a missing verdict a question quotes, in bytes.
const TROUBLE: usize = 200;

/// Why an answer says nothing of the work.
pub const UNREADABLE: &str =
    "its answer has no line `VERDICT: pass` or `VERDICT: findings` with findings below it";

/// True if the session of this state was reviewed already.
fn is_reviewed(state: &RunState) -> bool {
    let last = state.outcomes.reviews.last.as_ref();
    last.is_some_and(|review| review.is_of(state.iteration, state.session_id.as_ref()))
}

/// The ticked items that no review has looked at yet: those of earlier sessions, then those of this one.
fn waiting(state: &RunState, todo: &TodoList) -> Vec<String> {
    let done = todo.done();
    let is_done = item_set::set(&done);
    let earlier = state.outcomes.reviews.waiting.iter().filter(|item| is_done.contains(item.as_str()));
    let mut waiting: Vec<String> = earlier.cloned().collect();
    if !is_reviewed(state) {
        item_set::join(&mut waiting, &state.ticked_in_session(&done));
    }
    waiting
}

/// The items to review now, none if it is too early: once as many wait as the user said, once nothing is left to do, and at
/// once if one of them was reviewed before.
pub fn due(state: &RunState, todo: Option<&TodoList>) -> Vec<String> {
    let every = state.options.review_every as usize;
    let Some(todo) = todo.filter(|_| every > 0 && !is_reviewed(state)) else { return Vec::new() };
    let waiting = waiting(state, todo);
    let was_reviewed = |item: &String| state.outcomes.reviews.points_of(item).is_some();
    let is_due = waiting.len() >= every || todo.free().is_empty() || waiting.iter().any(was_reviewed);
    if is_due { waiting } else { Vec::new() }
}

/// Returns the reason why ticked items that still wait for their review contradict completion; `None` if none waits. Reviews do
/// not begin once the money, the tokens or the time are used up.
pub(crate) fn missing_review(state: &RunState, todo: Option<&TodoList>) -> Option<String> {
    let count = due(state, todo).len();
    let verb = if count == 1 { "waits for its review" } else { "wait for their review" };
    (count > 0).then(|| format!("{} {verb}", counted(count, "ticked item")))
}

/// Notes where the work on the item at hand begins, unless it began earlier.
pub fn begin(state: &mut RunState, head: Option<&str>) {
    if state.options.review_every == 0 {
        return;
    }
    let Some(item) = item_in_hand(state).cloned() else { return };
    let Reviews { begun, .. } = &mut state.outcomes.reviews;
    if !begun.iter().any(|known| known.item == item) {
        begun.push(ItemBegun { item, head: head.map(str::to_owned) });
    }
}

/// Where the work on these items began: HEAD at that time, none before the first commit.
pub fn base<'a>(state: &'a RunState, items: &[String]) -> Option<&'a str> {
    let begun = state.outcomes.reviews.begun.iter().find(|begun| items.contains(&begun.item));
    let of_iteration = || state.iteration_record.footing.as_ref().and_then(|footing| footing.head.as_deref());
    begun.map_or_else(of_iteration, |begun| begun.head.as_deref())
}

/// The end of a session: what it ticked waits for its review, if that did not come now.
pub fn wait(state: &mut RunState, todo: Option<&TodoList>) {
    let Some(todo) = todo.filter(|_| state.options.review_every > 0) else { return };
    let waiting = waiting(state, todo);
    // An item that a session took beside its own began with that session.
    let head = state.iteration_record.footing.as_ref().and_then(|footing| footing.head.clone());
    let Reviews { begun, waiting: kept, .. } = &mut state.outcomes.reviews;
    for item in &waiting {
        if !begun.iter().any(|known| known.item == *item) {
            begun.push(ItemBegun { item: item.clone(), head: head.clone() });
        }
    }
    *kept = waiting;
    // What is gone from the plan is not reviewed.
    let there = item_set::set(todo.items.iter().map(|item| &item.text));
    begun.retain(|begun| there.contains(begun.item.as_str()));
}

/// The findings in an answer about these items, none if it passes them. `None`: it cannot be read.
pub fn findings(answer: &str, items: &[String]) -> Option<Vec<Finding>> {
    let lines: Vec<&str> = answer.lines().map(str::trim).collect();
    let verdicts: Vec<(usize, &str)> =
        lines.iter().enumerate().filter_map(|(place, line)| Some((place, verdict(line)?))).collect();
    let [(place, verdict)] = verdicts[..] else { return None };
    let below = lines[place + 1..].iter().filter_map(|line| finding(line, items));
    let found: Vec<Finding> = below.take(FINDINGS).collect();
    match verdict {
        word if word.eq_ignore_ascii_case("pass") => found.is_empty().then_some(found),
        word if word.eq_ignore_ascii_case("findings") => (!found.is_empty()).then_some(found),
        _ => None,
    }
}

/// What stands behind `VERDICT:`. Models like to print such a line bold, or as code.
fn verdict(line: &str) -> Option<&str> {
    let line = line.trim_matches(['*', '`', ' ']);
    let (name, word) = line.split_once(':')?;
    let is_it = name.trim_matches(['*', ' ']).eq_ignore_ascii_case("verdict");
    is_it.then(|| word.trim_matches(['*', '`', ' ', '.']))
}

/// A line `- 2: words`; without a number of these items it is said of all of them.
fn finding(line: &str, items: &[String]) -> Option<Finding> {
    let words = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "))?.trim();
    let (item, words) = match numbered(words, items) {
        Some((item, words)) => (Some(item.clone()), words),
        None => (None, words),
    };
    (!words.is_empty()).then(|| Finding { item, words: clip(&visible(words), LONGEST) })
}

fn numbered<'a, 'b>(words: &'a str, items: &'b [String]) -> Option<(&'b String, &'a str)> {
    let (number, rest) = words.split_once(':')?;
    let number: usize = number.trim_matches(['*', ' ']).parse().ok()?;
    Some((items.get(number.checked_sub(1)?)?, rest.trim()))
}

/// What a reviewing session came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It said this.
    Text(String),
    /// It said nothing, for this reason.
    Missing(String),
}

/// The review of this session, of what it answered.
pub fn review(session: &ReviewSession, answer: &Answer) -> Review {
    let read = match answer {
        Answer::Text(text) => findings(text, &session.items),
        Answer::Missing(_) => None,
    };
    let trouble = match (&read, answer) {
        (Some(_), _) => None,
        (None, Answer::Text(_)) => Some(UNREADABLE.to_owned()),
        (None, Answer::Missing(why)) => Some(why.clone()),
    };
    let findings = read.unwrap_or_default();
    Review {
        iteration: session.iteration,
        session_id: session.session_id.clone(),
        facts: Reviewed { items: session.items.clone(), findings, trouble, ..Reviewed::default() },
    }
}

/// What follows a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterReview {
    /// It gave no verdict, and the same items are reviewed once more.
    Repeat,
    /// It is decided what becomes of the ticks.
    Decided,
}

/// Takes a review into the state: it decides which ticks are taken back, and they are still in the plan. A review without a
/// verdict is repeated once. If the second one gives none either, all of its ticks are taken back, and their items wait for the
/// user: a tick that nobody has looked at must not count. What an earlier review found stays open.
pub fn take(state: &mut RunState, mut review: Review) -> AfterReview {
    let reviews = &mut state.outcomes.reviews;
    reviews.unanswered += u32::from(review.facts.trouble.is_some());
    reviews.session = None;
    state.spent.review_count += 1;
    let is_first_attempt = |attempt: &Review| {
        attempt.is_of(review.iteration, review.session_id.as_ref())
            && attempt.facts.items == review.facts.items
    };
    match (reviews.failed_attempt.take().filter(is_first_attempt), &review.facts.trouble) {
        (None, Some(_)) => {
            reviews.failed_attempt = Some(review);
            return AfterReview::Repeat;
        }
        (Some(attempt), _) => {
            review.facts.cost_usd += attempt.facts.cost_usd;
            review.facts.tokens += attempt.facts.tokens;
            review.facts.seconds += attempt.facts.seconds;
        }
        (None, None) => {}
    }
    let facts = &mut review.facts;
    let question = facts.trouble.as_deref().map(question_without_verdict);
    let mut taken = Vec::new();
    if question.is_some() {
        taken.clone_from(&facts.items);
    } else {
        for item in &facts.items.clone() {
            let findings = facts.findings_of(item);
            let has_found = !findings.is_empty();
            if take_points(state, item, findings) {
                taken.push(item.clone());
            } else if has_found {
                facts.stand.push(item.clone());
            }
        }
    }
    let reviews = &mut state.outcomes.reviews;
    reviews.waiting.retain(|item| !facts.items.contains(item));
    // Of an item that is open again the next review sees all of the work.
    reviews.begun.retain(|begun| !facts.items.contains(&begun.item) || taken.contains(&begun.item));
    if !taken.is_empty() {
        let is_cause = |finding: &&Finding| finding.item.as_ref().is_none_or(|item| taken.contains(item));
        let findings = facts.findings.iter().filter(is_cause).map(|finding| finding.words.clone()).collect();
        state.outcomes.taken_back = Some(TakenBack {
            iteration: state.iteration,
            session_id: state.session_id.clone(),
            items: taken,
            findings,
            question,
            is_pending: true,
            ..TakenBack::default()
        });
    }
    state.outcomes.reviews.last = Some(review);
    AfterReview::Decided
}

/// What the user is asked about an item of which no review gave a verdict.
fn question_without_verdict(trouble: &str) -> String {
    format!(
        "Two reviews of this item gave no verdict ({}), so it is not done yet. Tick it yourself if it is, or answer what to do.",
        clip(&one_line(trouble), TROUBLE)
    )
}

/// Keeps what a review found about an item; true if its tick is taken back for that.
fn take_points(state: &mut RunState, item: &str, findings: Vec<String>) -> bool {
    let points = &mut state.outcomes.reviews.points;
    let times = points.iter().find(|known| known.item == item).map_or(0, |known| known.taken_back);
    let is_taken = !findings.is_empty() && times < MOST;
    points.retain(|known| known.item != item);
    let taken_back = times + u32::from(is_taken);
    if taken_back > 0 {
        points.push(ItemPoints { item: item.to_owned(), taken_back, findings });
    }
    is_taken
}

/// True if the session at hand was reviewed, and the review answered.
pub fn has_answered(state: &RunState) -> bool {
    is_reviewed(state)
        && state.outcomes.reviews.last.as_ref().is_some_and(|review| review.facts.trouble.is_none())
}

const MODEL: &str = "--model";

/// What a reviewing session takes over of the user's arguments for the client: no model, because it has one of its own, and
/// nothing that could let it do more than read inside the project, as `--dangerously-skip-permissions` of the run would.
pub fn arguments(given: &[String]) -> Vec<String> {
    let (given, _) = crate::models::without_option(given, MODEL);
    crate::read_only::split_arguments(&given).harmless
}

#[cfg(test)]
mod tests;
