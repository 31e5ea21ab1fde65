//! When the window will be as full as a threshold.

use crate::text::counted;
use serde::Serialize;

/// No forecast goes beyond this many turns.
pub const FARTHEST: u64 = 200;

/// How full the window was after a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    /// Tokens sent with it.
    pub used: u64,
    /// When, in seconds since 1970.
    pub at: Option<i64>,
}

/// The median, and the range that holds in at least 80 of 100 cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Span {
    /// One of ten comes sooner.
    pub soonest: u64,
    /// As many come sooner as later.
    pub likely: u64,
    /// One of ten comes later.
    pub latest: u64,
}

/// When a threshold will be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Outlook {
    /// Responses of the model until then, at most [`FARTHEST`].
    pub turns: Span,
    /// Minutes until then, half up; none if times are not known, or it is too far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<Span>,
}

/// When each threshold will be reached that is not reached yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Forecast {
    /// The responses that it is made from.
    pub samples: usize,
    /// The warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l1: Option<Outlook>,
    /// The checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l2: Option<Outlook>,
    /// Where the client acts.
    #[serde(rename = "ceiling", skip_serializing_if = "Option::is_none")]
    pub auto_compact: Option<Outlook>,
}

impl Span {
    /// The range in brackets; none if both ends are equal. An end that was cut is a lower bound.
    fn words(&self, is_cut: bool) -> String {
        let over = if is_cut { "over " } else { "" };
        if self.soonest == self.latest && !is_cut {
            return String::new();
        }
        format!(" ({} to {over}{})", self.soonest, self.latest)
    }
}

impl Outlook {
    /// `about 14 turns (9 to 22), 25 min (15 to 40)`.
    pub fn words(&self) -> String {
        let turns = &self.turns;
        // The forecast ends after this many turns, so the minutes end there, too.
        let (is_far, is_cut) = (turns.likely >= FARTHEST, turns.latest >= FARTHEST);
        let in_turns = if is_far {
            format!("over {FARTHEST} turns")
        } else {
            format!("about {}{}", counted(turns.likely as usize, "turn"), turns.words(is_cut))
        };
        let minutes = self.minutes.map(|minutes| match minutes.likely {
            likely if is_far => format!(", over {likely} min"),
            0 => ", under a minute".to_owned(),
            likely => format!(", {likely} min{}", minutes.words(is_cut)),
        });
        in_turns + &minutes.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sure_has_no_span_and_what_is_far_no_figure() {
        let span = |soonest, likely, latest| Span { soonest, likely, latest };
        let said = |turns, minutes| Outlook { turns, minutes }.words();
        assert_eq!(
            said(span(9, 14, 22), Some(span(15, 25, 40))),
            "about 14 turns (9 to 22), 25 min (15 to 40)"
        );
        assert_eq!(said(span(1, 1, 1), Some(span(0, 0, 1))), "about 1 turn, under a minute");
        assert_eq!(said(span(90, 150, 200), None), "about 150 turns (90 to over 200)");
        assert_eq!(said(span(120, 200, 200), None), "over 200 turns");
    }

    #[test]
    fn minutes_are_cut_where_turns_are() {
        let span = |soonest, likely, latest| Span { soonest, likely, latest };
        let said = |turns, minutes| Outlook { turns, minutes: Some(minutes) }.words();
        assert_eq!(
            said(span(84, 130, 200), span(28, 43, 68)),
            "about 130 turns (84 to over 200), 43 min (28 to over 68)"
        );
        assert_eq!(
            said(span(84, 130, 199), span(28, 43, 68)),
            "about 130 turns (84 to 199), 43 min (28 to 68)"
        );
        assert_eq!(
            said(span(180, 190, 200), span(2, 2, 2)),
            "about 190 turns (180 to over 200), 2 min (2 to over 2)"
        );
        assert_eq!(said(span(120, 200, 200), span(40, 68, 68)), "over 200 turns, over 68 min");
    }
}
