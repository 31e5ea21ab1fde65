//! What the command says of reviews: what they cost, what they left open, and what they could not say.

use plimsoll_domain::RunState;
use plimsoll_domain::review::ItemPoints;
use plimsoll_domain::text::{clip, counted, one_line, tokens};

/// How much of an item and of a finding stands on one line.
const ITEM: usize = 60;
const FINDING: usize = 300;

/// What of the cost was for reviews; none if there were none.
pub(crate) fn cost(state: &RunState) -> Option<String> {
    let spent = &state.spent;
    let reviews = counted(spent.review_count as usize, "review");
    (spent.review_count > 0).then(|| format!("${:.2} of it for {reviews}", spent.review_cost_usd))
}

/// What reviews left open, in one line; none if that is nothing.
pub(crate) fn open(state: &RunState) -> Option<String> {
    let standing = standing(state);
    let findings: usize = standing.iter().map(|points| points.findings.len()).sum();
    let items: Vec<String> =
        standing.iter().map(|points| format!("\"{}\"", clip(&one_line(&points.item), ITEM))).collect();
    let left = (findings > 0).then(|| {
        format!("{} open, although it is ticked: {}", counted(findings, "finding"), items.join(", "))
    });
    let parts: Vec<String> = left.into_iter().chain(unanswered(state)).chain(waiting(state)).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The same with the findings, as lines, and what the reviews cost first.
pub(crate) fn lines(state: &RunState) -> Vec<String> {
    let spent = &state.spent;
    let of = (spent.review_count > 0).then(|| {
        let reviews = counted(spent.review_count as usize, "review");
        format!("{reviews}: ${:.2}, {} tokens", spent.review_cost_usd, tokens(spent.review_tokens))
    });
    let findings = standing(state).into_iter().flat_map(|points| {
        let item = clip(&one_line(&points.item), ITEM);
        let first = format!("\"{item}\" is ticked, but its review still found:");
        let found = points.findings.iter().map(|words| format!("  - {}", clip(&one_line(words), FINDING)));
        std::iter::once(first).chain(found).collect::<Vec<_>>()
    });
    of.into_iter().chain(findings).chain(unanswered(state)).chain(waiting(state)).collect()
}

fn standing(state: &RunState) -> Vec<&ItemPoints> {
    state.outcomes.reviews.standing(&state.items.completed_items).collect()
}

fn unanswered(state: &RunState) -> Option<String> {
    match state.outcomes.reviews.unanswered {
        0 => None,
        count => Some(format!("{} gave no answer (plimsoll log)", counted(count as usize, "review"))),
    }
}

/// Items that a run which is over has not reviewed, for want of time or money.
fn waiting(state: &RunState) -> Option<String> {
    let waiting = state.outcomes.reviews.waiting.len();
    let is_left = waiting > 0 && state.lifecycle.is_over();
    is_left.then(|| format!("{} not reviewed", counted(waiting, "ticked item")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::Status;
    use plimsoll_domain::review::Reviews;
    use plimsoll_domain::state::{Items, Lifecycle, Outcomes, Spent};

    #[test]
    fn what_reviews_cost_and_left_open_is_said_and_steers_nothing() {
        let points = |item: &str, findings: &[&str]| ItemPoints {
            item: item.to_owned(),
            taken_back: 2,
            findings: findings.iter().map(|words| (*words).to_owned()).collect(),
        };
        let state = RunState {
            lifecycle: Lifecycle::of(Status::Deadline),
            items: Items { completed_items: vec!["one".into(), "two".into()], ..Items::default() },
            spent: Spent {
                review_count: 3,
                review_cost_usd: 0.125,
                review_tokens: 40_000,
                ..Spent::default()
            },
            outcomes: Outcomes {
                reviews: Reviews {
                    points: vec![points("one", &["a\u{1b}[2J"]), points("two", &[]), points("open", &["x"])],
                    waiting: vec!["two".into()],
                    unanswered: 1,
                    ..Reviews::default()
                },
                ..Outcomes::default()
            },
            ..RunState::default()
        };
        assert_eq!(cost(&state).as_deref(), Some("$0.12 of it for 3 reviews"));
        assert_eq!(
            open(&state).as_deref(),
            Some(
                "1 finding open, although it is ticked: \"one\"; 1 review gave no answer (plimsoll log); 1 ticked item not reviewed"
            )
        );
        assert_eq!(
            lines(&state),
            [
                "3 reviews: $0.12, 40k tokens",
                "\"one\" is ticked, but its review still found:",
                "  - a\\u{1b}[2J",
                "1 review gave no answer (plimsoll log)",
                "1 ticked item not reviewed",
            ]
        );
        let none = RunState::default();
        assert_eq!((cost(&none), open(&none), lines(&none)), (None, None, Vec::new()));
    }
}
