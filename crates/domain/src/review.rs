//! Reviews of ticked items: the outcome of each review, and the findings that are still open.

use crate::ids::SessionId;
use crate::text::{count_with_noun, to_safe_single_line, truncate_end};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The state of a run's reviews.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReviewState {
    /// The start of the work on each item that is not reviewed yet, in the order in which the work began.
    #[serde(rename = "begun")]
    pub work_starts: Vec<ItemWorkStart>,
    /// Ticked items that wait for their review.
    #[serde(rename = "waiting")]
    pub waiting_items: Vec<String>,
    /// The findings of reviews, one entry per item. Empty findings mean that the last review passed an item
    /// whose tick had been reverted.
    #[serde(rename = "points")]
    pub item_findings: Vec<ItemFindings>,
    /// The review session that has not answered yet.
    #[serde(rename = "session")]
    pub open_session: Option<ReviewSession>,
    #[serde(rename = "last")]
    pub last_review: Option<Review>,
    /// The number of reviews that ended without an answer.
    #[serde(rename = "unanswered")]
    pub unanswered_count: u32,
    /// The first review of the current ticks, if it gave no verdict. It is retried once.
    #[serde(rename = "failed_attempt")]
    pub attempt_without_verdict: Option<Review>,
}

impl ReviewState {
    /// Returns the findings of the last review for each ticked item that has any. The ticks of these items had been
    /// reverted before.
    pub fn open_findings_of_ticked_items<'a>(
        &'a self,
        ticked_items: &'a [String],
    ) -> impl Iterator<Item = &'a ItemFindings> {
        self.item_findings.iter().filter(|item_findings| {
            !item_findings.findings.is_empty() && ticked_items.contains(&item_findings.item)
        })
    }

    /// Returns the findings of reviews about an item.
    pub fn findings_for_item(&self, item: &str) -> Option<&ItemFindings> {
        self.item_findings.iter().find(|item_findings| item_findings.item == item)
    }
}

/// The commit at which the work on an item began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemWorkStart {
    pub item: String,
    /// HEAD at that time; `None` before the first commit.
    pub head: Option<String>,
}

/// The findings of reviews about an item.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemFindings {
    pub item: String,
    /// How many times its tick was reverted because of findings.
    #[serde(rename = "taken_back")]
    pub tick_revert_count: u32,
    /// The findings of the last review.
    pub findings: Vec<String>,
}

/// A review session. It is recorded before it starts, so that it is not started a second time after a crash.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReviewSession {
    pub id: SessionId,
    /// The iteration whose ticks are reviewed.
    pub iteration: u32,
    /// The session that made the last of these ticks.
    pub session_id: Option<SessionId>,
    pub items: Vec<String>,
    /// When it was recorded, RFC 3339 UTC.
    pub started_at: Timestamp,
    /// The process id; `None` until the process has started.
    pub pid: Option<u32>,
    /// The start time of that process, in the system's own ticks.
    #[serde(rename = "process_started")]
    pub process_started_at_ticks: Option<u64>,
}

/// A finished review.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Review {
    /// The iteration whose ticks were reviewed.
    pub iteration: u32,
    /// The session whose ticks were reviewed.
    pub session_id: Option<SessionId>,
    /// The outcome, with its fields on the same level in JSON.
    #[serde(flatten)]
    pub outcome: ReviewOutcome,
}

impl Review {
    /// Returns true if the review followed this session of this iteration.
    pub fn is_after_session(&self, iteration: u32, session_id: Option<&SessionId>) -> bool {
        self.iteration == iteration && self.session_id.as_ref() == session_id
    }
}

/// The outcome of a review.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReviewOutcome {
    pub items: Vec<String>,
    /// The findings; empty if the items passed.
    pub findings: Vec<Finding>,
    /// Items whose ticks are kept in spite of findings.
    #[serde(rename = "stand", skip_serializing_if = "Vec::is_empty")]
    pub kept_ticks: Vec<String>,
    /// The reason if the review gave no answer.
    #[serde(rename = "trouble", skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The requested model; `None` for the client's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The cost in US dollars, as reported by the client.
    pub cost_usd: f64,
    /// The tokens used, as counted by the client.
    pub tokens: u64,
    /// How long the review took, in seconds, including an attempt that gave no verdict.
    pub seconds: u64,
}

/// A finding of a review.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Finding {
    /// The item; `None` if it concerns all items of the review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The description of the finding.
    #[serde(rename = "words")]
    pub text: String,
}

impl ReviewOutcome {
    /// Returns the findings about an item, including those that concern all items.
    pub fn findings_for_item(&self, item: &str) -> Vec<String> {
        let applies_to_item =
            |finding: &&Finding| finding.item.as_deref().is_none_or(|finding_item| finding_item == item);
        self.findings.iter().filter(applies_to_item).map(|finding| finding.text.clone()).collect()
    }

    /// Describes the outcome in a sentence without a full stop.
    pub fn describe(&self) -> String {
        let items = quote_first_items(&self.items);
        let cost_note = if self.cost_usd > 0.0 {
            format!(" ({})", crate::cost::format_usd(self.cost_usd))
        } else {
            String::new()
        };
        if let Some(failure) = &self.failure {
            return format!(
                "the review of {items} gave no answer{cost_note}: {}",
                truncate_end(&to_safe_single_line(failure), 200)
            );
        }
        if self.findings.is_empty() {
            return format!("the review passed {items}{cost_note}");
        }
        let kept_ticks_note = match self.kept_ticks.len() {
            0 => String::new(),
            1 => format!("; the tick of {} stands", quote_first_items(&self.kept_ticks)),
            _ => format!("; the ticks of {} stand", quote_first_items(&self.kept_ticks)),
        };
        format!(
            "the review of {items} has {}{cost_note}{kept_ticks_note}",
            count_with_noun(self.findings.len(), "finding")
        )
    }
}

/// Quotes at most three items, separated by commas, and appends how many more there are.
pub fn quote_first_items(items: &[String]) -> String {
    const MAX_QUOTED_ITEMS: usize = 3;
    let quoted_items: Vec<String> = items
        .iter()
        .take(MAX_QUOTED_ITEMS)
        .map(|item| format!("\"{}\"", truncate_end(&to_safe_single_line(item), 80)))
        .collect();
    let unnamed_count = items.len().saturating_sub(quoted_items.len());
    let more_note = if unnamed_count > 0 { format!(" and {unnamed_count} more") } else { String::new() };
    format!("{}{more_note}", quoted_items.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_of_a_review_is_described_in_a_sentence() {
        let numbered_items =
            |count: usize| (1..=count).map(|number| format!("item {number}")).collect::<Vec<_>>();
        let findings = vec![Finding { item: None, text: "x".into() }];
        let cost_usd = 0.25;
        for (outcome, expected) in [
            (
                ReviewOutcome { items: numbered_items(1), cost_usd, ..ReviewOutcome::default() },
                "the review passed \"item 1\" ($0.25)",
            ),
            (
                ReviewOutcome {
                    items: numbered_items(5),
                    findings: findings.clone(),
                    ..ReviewOutcome::default()
                },
                "the review of \"item 1\", \"item 2\", \"item 3\" and 2 more has 1 finding",
            ),
            (
                ReviewOutcome {
                    items: numbered_items(1),
                    findings,
                    kept_ticks: numbered_items(1),
                    cost_usd,
                    ..ReviewOutcome::default()
                },
                "the review of \"item 1\" has 1 finding ($0.25); the tick of \"item 1\" stands",
            ),
            (
                ReviewOutcome {
                    items: numbered_items(1),
                    failure: Some("too\nlate".into()),
                    ..ReviewOutcome::default()
                },
                "the review of \"item 1\" gave no answer: too late",
            ),
        ] {
            assert_eq!(outcome.describe(), expected);
        }
    }
}
