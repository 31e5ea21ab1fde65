//! The message that takes the place of a conversation. The client stores it like a prompt of the user, so it has to
//! be recognized: a later handoff must quote the user's requests, and not the handoff before it.

/// Where the message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandoffMessageKind {
    /// In place of the summary of a compaction, in the middle of a session.
    Compaction,
    /// The first prompt after `/clear`.
    FreshConversation,
}

/// The start of the first line of each of these messages.
const MARKER_START: &str = "[Plimsoll handoff";
const COMPACTION_MARKER: &str = "[Plimsoll handoff, in place of a summary]";
const FRESH_CONVERSATION_MARKER: &str = "[Plimsoll handoff, for a fresh conversation]";

/// The heading of the quoted requests.
pub const REQUESTS_HEADING: &str = "## What the user asked for";

impl HandoffMessageKind {
    /// Returns the first line of a message of this kind.
    pub fn marker_line(self) -> &'static str {
        match self {
            HandoffMessageKind::Compaction => COMPACTION_MARKER,
            HandoffMessageKind::FreshConversation => FRESH_CONVERSATION_MARKER,
        }
    }

    /// Returns the kind of a message by its first line. Returns `None` for every other text.
    pub fn of_message(text: &str) -> Option<HandoffMessageKind> {
        let text = text.trim_start();
        if !text.starts_with(MARKER_START) {
            return None;
        }
        [HandoffMessageKind::Compaction, HandoffMessageKind::FreshConversation]
            .into_iter()
            .find(|kind| text.lines().next().map(str::trim_end) == Some(kind.marker_line()))
    }
}

/// Quotes requests so that [`parse_quoted_requests`] returns them unchanged: one block of quoted lines for each.
pub fn quote_requests(requests: &[String]) -> String {
    let quote_request = |request: &String| {
        request
            .trim()
            .lines()
            .map(|line| format!("> {line}").trim_end().to_owned() + "\n")
            .collect::<String>()
    };
    requests.iter().map(quote_request).collect::<Vec<_>>().join("\n")
}

/// Returns the requests that a handoff message quotes, oldest first. They are its first section: a heading with these
/// words further below is not ours.
pub fn parse_quoted_requests(message: &str) -> Vec<String> {
    let mut lines = message.lines().skip_while(|line| !line.starts_with('#'));
    if !lines.next().is_some_and(|heading| heading.starts_with(REQUESTS_HEADING)) {
        return Vec::new();
    }
    let mut requests: Vec<Vec<&str>> = Vec::new();
    let mut continues_request = false;
    for line in lines.take_while(|line| !line.starts_with('#')) {
        match line.strip_prefix('>') {
            Some(quoted_line) => {
                let quoted_line = quoted_line.strip_prefix(' ').unwrap_or(quoted_line);
                match requests.last_mut().filter(|_| continues_request) {
                    Some(request) => request.push(quoted_line),
                    None => requests.push(vec![quoted_line]),
                }
                continues_request = true;
            }
            None => continues_request = false,
        }
    }
    requests.into_iter().map(|lines| lines.join("\n")).filter(|request| !request.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_requests_are_parsed_unchanged() {
        let requests: Vec<String> = [
            "Fix the parser.",
            "Two paragraphs.\n\nThe second, with > a quote.\n> and a quoted line",
            "# not a heading\n## What the user asked for",
            "ends with an empty quote\n>",
            "größer als 日本語",
        ]
        .map(str::to_owned)
        .to_vec();
        let message = format!(
            "{}\n\nIntroduction.\n\n{REQUESTS_HEADING} (oldest first)\n\n{}\n# Handoff\n\n> not a request\n",
            HandoffMessageKind::Compaction.marker_line(),
            quote_requests(&requests)
        );
        assert_eq!(parse_quoted_requests(&message), requests);
        assert_eq!(parse_quoted_requests("no section\n> quoted"), Vec::<String>::new());
        let in_another_section = format!("# Handoff\n\n{REQUESTS_HEADING}\n\n> not a request\n");
        assert_eq!(parse_quoted_requests(&in_another_section), Vec::<String>::new());
    }

    #[test]
    fn only_the_exact_first_line_marks_a_message() {
        for kind in [HandoffMessageKind::Compaction, HandoffMessageKind::FreshConversation] {
            let message = format!("\n{}\r\nmore", kind.marker_line());
            assert_eq!(HandoffMessageKind::of_message(&message), Some(kind));
            assert_eq!(HandoffMessageKind::of_message(&format!("See: {message}")), None);
            assert_eq!(HandoffMessageKind::of_message(&format!("{} and more", kind.marker_line())), None);
        }
        assert_eq!(HandoffMessageKind::of_message("[Plimsoll handoff"), None);
        assert_eq!(HandoffMessageKind::of_message(""), None);
    }
}
