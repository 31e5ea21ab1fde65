//! Describes reviews: their cost, their open findings, and missing reviews.

use plimsoll_domain::RunState;
use plimsoll_domain::cost::format_usd;
use plimsoll_domain::review::ItemFindings;
use plimsoll_domain::text::{count_with_noun, format_tokens, to_safe_single_line, truncate_end};

/// Maximum characters of an item, and of a finding, on one line.
const MAX_ITEM_CHARS: usize = 60;
const MAX_FINDING_CHARS: usize = 300;

/// Describes how much of the cost was for reviews; `None` if there were none.
pub(crate) fn cost_text(state: &RunState) -> Option<String> {
    let spending = &state.spending;
    let reviews = count_with_noun(spending.review_count as usize, "review");
    (spending.review_count > 0)
        .then(|| format!("{} of it for {reviews}", format_usd(spending.review_cost_usd)))
}

/// Describes open findings and missing reviews in one line; `None` if there are none.
pub(crate) fn open_findings_and_missing_reviews_text(state: &RunState) -> Option<String> {
    let items_with_findings = findings_of_ticked_items(state);
    let finding_count: usize =
        items_with_findings.iter().map(|item_findings| item_findings.findings.len()).sum();
    let quoted_items: Vec<String> = items_with_findings
        .iter()
        .map(|item_findings| {
            format!("\"{}\"", truncate_end(&to_safe_single_line(&item_findings.item), MAX_ITEM_CHARS))
        })
        .collect();
    let findings_text = (finding_count > 0).then(|| {
        format!(
            "{} open, although it is ticked: {}",
            count_with_noun(finding_count, "finding"),
            quoted_items.join(", ")
        )
    });
    let parts: Vec<String> = findings_text
        .into_iter()
        .chain(unanswered_reviews_text(state))
        .chain(unreviewed_items_text(state))
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Returns the cost of the reviews, the open findings and the missing reviews, as lines.
pub(crate) fn cost_findings_and_missing_review_lines(state: &RunState) -> Vec<String> {
    let spending = &state.spending;
    let cost_line = (spending.review_count > 0).then(|| {
        let reviews = count_with_noun(spending.review_count as usize, "review");
        format!(
            "{reviews}: {}, {} tokens",
            format_usd(spending.review_cost_usd),
            format_tokens(spending.review_tokens)
        )
    });
    let item_finding_lines = findings_of_ticked_items(state).into_iter().flat_map(|item_findings| {
        let item = truncate_end(&to_safe_single_line(&item_findings.item), MAX_ITEM_CHARS);
        let heading = format!("\"{item}\" is ticked, but its review still found:");
        let finding_lines = item_findings
            .findings
            .iter()
            .map(|finding| format!("  - {}", truncate_end(&to_safe_single_line(finding), MAX_FINDING_CHARS)));
        std::iter::once(heading).chain(finding_lines).collect::<Vec<_>>()
    });
    cost_line
        .into_iter()
        .chain(item_finding_lines)
        .chain(unanswered_reviews_text(state))
        .chain(unreviewed_items_text(state))
        .collect()
}

fn findings_of_ticked_items(state: &RunState) -> Vec<&ItemFindings> {
    state.outcomes.reviews.open_findings_of_ticked_items(&state.plan_items.completed_items).collect()
}

fn unanswered_reviews_text(state: &RunState) -> Option<String> {
    match state.outcomes.reviews.unanswered_count {
        0 => None,
        count => Some(format!("{} gave no answer (plimsoll log)", count_with_noun(count as usize, "review"))),
    }
}

/// Counts the items that were still waiting for a review when the run ended.
fn unreviewed_items_text(state: &RunState) -> Option<String> {
    let waiting_count = state.outcomes.reviews.waiting_items.len();
    let has_unreviewed = waiting_count > 0 && state.lifecycle.has_ended();
    has_unreviewed.then(|| format!("{} not reviewed", count_with_noun(waiting_count, "ticked item")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::RunStatus;
    use plimsoll_domain::review::ReviewState;
    use plimsoll_domain::state::{Lifecycle, PlanItems, RunSpending, SessionOutcomes};

    #[test]
    fn review_cost_and_open_findings_are_shown_safely() {
        let points = |item: &str, findings: &[&str]| ItemFindings {
            item: item.to_owned(),
            tick_revert_count: 2,
            findings: findings.iter().map(|words| (*words).to_owned()).collect(),
        };
        let state = RunState {
            lifecycle: Lifecycle::with_status(RunStatus::Deadline),
            plan_items: PlanItems {
                completed_items: vec!["one".into(), "two".into()],
                ..PlanItems::default()
            },
            spending: RunSpending {
                review_count: 3,
                review_cost_usd: 0.125,
                review_tokens: 40_000,
                ..RunSpending::default()
            },
            outcomes: SessionOutcomes {
                reviews: ReviewState {
                    item_findings: vec![
                        points("one", &["a\u{1b}[2J"]),
                        points("two", &[]),
                        points("open", &["x"]),
                    ],
                    waiting_items: vec!["two".into()],
                    unanswered_count: 1,
                    ..ReviewState::default()
                },
                ..SessionOutcomes::default()
            },
            ..RunState::default()
        };
        assert_eq!(cost_text(&state).as_deref(), Some("$0.12 of it for 3 reviews"));
        assert_eq!(
            open_findings_and_missing_reviews_text(&state).as_deref(),
            Some(
                "1 finding open, although it is ticked: \"one\"; 1 review gave no answer (plimsoll log); 1 ticked item not reviewed"
            )
        );
        assert_eq!(
            cost_findings_and_missing_review_lines(&state),
            [
                "3 reviews: $0.12, 40k tokens",
                "\"one\" is ticked, but its review still found:",
                "  - a\\u{1b}[2J",
                "1 review gave no answer (plimsoll log)",
                "1 ticked item not reviewed",
            ]
        );
        let none = RunState::default();
        assert_eq!(
            (
                cost_text(&none),
                open_findings_and_missing_reviews_text(&none),
                cost_findings_and_missing_review_lines(&none)
            ),
            (None, None, Vec::new())
        );
    }
}
