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
    /// The item of the plan that was being worked on.
    pub current_item: Option<String>,
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
            current_item: parse_current_item(document).map(to_safe_single_line),
        }
    }
}

/// Returns the text of the section about the current item, without the counts of items behind it.
fn parse_current_item(document: &str) -> Option<&str> {
    let mut lines = document.lines().skip_while(|line| *line != "## Current item").skip(1);
    let text = lines.find(|line| !line.is_empty())?.strip_prefix("> ")?;
    let counts_start = text.rfind(" (").filter(|start| text[*start..].contains(" done, "));
    Some(&text[..counts_start.unwrap_or(text.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_item_is_read_without_its_counts() {
        let item = |text: &str| HandoffMetadata::parse(&format!("# Handoff\n\n{text}")).current_item;
        let section = "## Current item\n\n> Parse (all) dates (2 items done, 3 open in `fix_plan.md`)\n";
        assert_eq!(item(section).as_deref(), Some("Parse (all) dates"));
        assert_eq!(item("## Current item\n\n> Parse dates\n").as_deref(), Some("Parse dates"));
        assert_eq!(item("## Next\n\n> Parse dates\n"), None);
    }
}
