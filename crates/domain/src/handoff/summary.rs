//! What a list of handoffs shows of one: read from the document, which anybody may have edited.

use super::first_request;
use crate::ids::SessionId;
use crate::text::one_line;
use crate::time::Timestamp;

/// One handoff in short.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HandoffSummary {
    /// The session that left it; empty if the document names none.
    pub session_id: SessionId,
    /// When it was written last.
    pub written_at: Timestamp,
    /// The run and its iteration, in words; none for an ordinary session.
    pub run: Option<String>,
    /// The first line of the first request; none of a run's.
    pub first_request: Option<String>,
}

impl HandoffSummary {
    /// Reads it.
    pub fn parse(document: &str) -> HandoffSummary {
        let labelled = |label: &str| {
            let rest = document.lines().find_map(|line| line.strip_prefix("- ")?.strip_prefix(label));
            rest.map(one_line).filter(|words| !words.is_empty())
        };
        // Behind each stands a remark in parentheses.
        let first_word = |words: String| words.split_whitespace().next().unwrap_or_default().to_owned();
        let run = labelled("Run:").filter(|words| !words.starts_with("none"));
        HandoffSummary {
            session_id: SessionId::from(labelled("Session:").map(first_word).unwrap_or_default()),
            written_at: Timestamp::from(labelled("Written:").map(first_word).unwrap_or_default()),
            run,
            first_request: first_request(document).map(one_line),
        }
    }
}
