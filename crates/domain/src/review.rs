//! A second pair of eyes: what a reviewing session said of ticked items, and what of that is still open.

use crate::ids::SessionId;
use crate::text::{clip, counted, one_line};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// What the run knows of its reviews.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reviews {
    /// Where the work on each item began that is not reviewed yet, in that order.
    pub begun: Vec<ItemBegun>,
    /// Ticked items that wait for their review.
    pub waiting: Vec<String>,
    /// What reviews found, one entry an item. Empty findings: the last review of an item whose tick was taken back passed it.
    pub points: Vec<ItemPoints>,
    /// The reviewing session that has not answered yet.
    pub session: Option<ReviewSession>,
    /// The last review.
    pub last: Option<Review>,
    /// Reviews that ended without an answer.
    pub unanswered: u32,
    /// The first review of the current ticks, if it gave no verdict: one more follows.
    pub failed_attempt: Option<Review>,
}

impl Reviews {
    /// The items that are ticked although their last review found something: their ticks had been taken back before.
    pub fn standing<'a>(&'a self, done: &'a [String]) -> impl Iterator<Item = &'a ItemPoints> {
        self.points.iter().filter(|points| !points.findings.is_empty() && done.contains(&points.item))
    }

    /// What reviews found about an item.
    pub fn points_of(&self, item: &str) -> Option<&ItemPoints> {
        self.points.iter().find(|points| points.item == item)
    }
}

/// Where the work on an item began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemBegun {
    /// The item.
    pub item: String,
    /// HEAD at that time; none before the first commit.
    pub head: Option<String>,
}

/// What reviews found about an item.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemPoints {
    /// The item.
    pub item: String,
    /// How often its tick was taken back for that.
    pub taken_back: u32,
    /// What the last review found.
    pub findings: Vec<String>,
}

/// A reviewing session, noted before it is started: after a kill it is found by this, and started no second time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReviewSession {
    /// Its id.
    pub id: SessionId,
    /// The iteration whose ticks it reviews.
    pub iteration: u32,
    /// The session that made the last of them.
    pub session_id: Option<SessionId>,
    /// The items.
    pub items: Vec<String>,
    /// When it was noted, RFC 3339 UTC.
    pub started_at: Timestamp,
    /// Its process, once that is known.
    pub pid: Option<u32>,
    /// When that process began, in the system's own ticks.
    pub process_started: Option<u64>,
}

/// One review.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Review {
    /// The iteration after which it came.
    pub iteration: u32,
    /// The session whose ticks made it due.
    pub session_id: Option<SessionId>,
    /// What came of it.
    #[serde(flatten)]
    pub facts: Reviewed,
}

impl Review {
    /// True if it came after this session of this iteration.
    pub fn is_of(&self, iteration: u32, session_id: Option<&SessionId>) -> bool {
        self.iteration == iteration && self.session_id.as_ref() == session_id
    }
}

/// What came of a review.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reviewed {
    /// The items.
    pub items: Vec<String>,
    /// What it found; empty if it passed them.
    pub findings: Vec<Finding>,
    /// Items whose ticks stand although it found something.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stand: Vec<String>,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// The model that was asked for; none for the client's own choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it cost, US dollars, as reported by the client.
    pub cost_usd: f64,
    /// What it used, in tokens as the client counts them.
    pub tokens: u64,
    /// How long it took.
    pub seconds: u64,
}

/// Something that a review found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Finding {
    /// The item; none for all of the review's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// What.
    pub words: String,
}

impl Reviewed {
    /// What it found about an item: what it says of all of them is said of each.
    pub fn findings_of(&self, item: &str) -> Vec<String> {
        let is_its = |finding: &&Finding| finding.item.as_deref().is_none_or(|named| named == item);
        self.findings.iter().filter(is_its).map(|finding| finding.words.clone()).collect()
    }

    /// What came of it, in a sentence without its end.
    pub fn words(&self) -> String {
        let of = named(&self.items);
        let price = if self.cost_usd > 0.0 { format!(" (${:.2})", self.cost_usd) } else { String::new() };
        if let Some(trouble) = &self.trouble {
            return format!("the review of {of} gave no answer{price}: {}", clip(&one_line(trouble), 200));
        }
        if self.findings.is_empty() {
            return format!("the review passed {of}{price}");
        }
        let stand = match self.stand.len() {
            0 => String::new(),
            1 => format!("; the tick of {} stands", named(&self.stand)),
            _ => format!("; the ticks of {} stand", named(&self.stand)),
        };
        format!("the review of {of} has {}{price}{stand}", counted(self.findings.len(), "finding"))
    }
}

/// Items for a sentence, the first of them.
pub fn named(items: &[String]) -> String {
    const NAMED: usize = 3;
    let named: Vec<String> =
        items.iter().take(NAMED).map(|item| format!("\"{}\"", clip(&one_line(item), 80))).collect();
    let more = items.len().saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_of_a_review_is_told_in_a_sentence() {
        let items = |count: usize| (1..=count).map(|number| format!("item {number}")).collect::<Vec<_>>();
        let found = vec![Finding { item: None, words: "x".into() }];
        let cost_usd = 0.25;
        for (reviewed, words) in [
            (
                Reviewed { items: items(1), cost_usd, ..Reviewed::default() },
                "the review passed \"item 1\" ($0.25)",
            ),
            (
                Reviewed { items: items(5), findings: found.clone(), ..Reviewed::default() },
                "the review of \"item 1\", \"item 2\", \"item 3\" and 2 more has 1 finding",
            ),
            (
                Reviewed {
                    items: items(1),
                    findings: found,
                    stand: items(1),
                    cost_usd,
                    ..Reviewed::default()
                },
                "the review of \"item 1\" has 1 finding ($0.25); the tick of \"item 1\" stands",
            ),
            (
                Reviewed { items: items(1), trouble: Some("too\nlate".into()), ..Reviewed::default() },
                "the review of \"item 1\" gave no answer: too late",
            ),
        ] {
            assert_eq!(reviewed.words(), words);
        }
    }
}
