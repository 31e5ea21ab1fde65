//! The metadata of a handoff, for a list of handoffs. It is parsed from the document, which anybody may have
//! edited.

use super::parse_first_line_of_first_request;
use crate::ids::SessionId;
use crate::text::to_safe_single_line;
use crate::time::Timestamp;

/// The metadata of one handoff.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HandoffMetadata {
    /// The session that wrote it; empty if the document names none.
    pub session_id: SessionId,
    /// When it was last written.
    pub written_at: Timestamp,
    /// The run's name, id and iteration, as text; `None` for a session outside a run.
    pub run: Option<String>,
    /// The first line of the first request; `None` for a run.
    pub first_request_line: Option<String>,
}

impl HandoffMetadata {
    /// Parses a handoff document. Missing lines leave their fields empty.
    pub fn parse(document: &str) -> HandoffMetadata {
        let field_after_label = |label: &str| {
            let raw_value = document.lines().find_map(|line| line.strip_prefix("- ")?.strip_prefix(label));
            raw_value.map(to_safe_single_line).filter(|value| !value.is_empty())
        };
        // Each of these values is followed by text in parentheses.
        let first_word = |value: String| value.split_whitespace().next().unwrap_or_default().to_owned();
        let run = field_after_label("Run:").filter(|value| !value.starts_with("none"));
        HandoffMetadata {
            session_id: SessionId::from(field_after_label("Session:").map(first_word).unwrap_or_default()),
            written_at: Timestamp::from(field_after_label("Written:").map(first_word).unwrap_or_default()),
            run,
            first_request_line: parse_first_line_of_first_request(document).map(to_safe_single_line),
        }
    }
}
