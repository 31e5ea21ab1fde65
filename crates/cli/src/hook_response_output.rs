//! Prints one of our hooks' responses to an event that a shell loop piped to `gate` or `monitor`.

use plimsoll_domain::Marker;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_flows::hook_response::HookResponse;
use plimsoll_terminal::console::{fail_with, print_text};
use std::process::ExitCode;

/// Prints the response's marker as a bare line, and its first error if it has any. Returns the exit code.
pub(crate) fn print_marker_and_first_error(response: &HookResponse) -> ExitCode {
    if let Some(marker) = response.render_stdout().as_deref().and_then(marker_or_first_line_of_system_message)
    {
        print_text(marker);
    }
    match response.stderr_lines.first() {
        Some(error) => fail_with(error, ExitStatus::InternalError),
        None => response.exit_status.into(),
    }
}

/// Returns the marker in a hook's reply, which is the last line of its message for the user. A message without a marker
/// is about a switch to another model; then its first line is returned.
fn marker_or_first_line_of_system_message(reply: &str) -> Option<String> {
    let document: serde_json::Value = serde_json::from_str(reply).ok()?;
    let message = document.get("systemMessage")?.as_str()?;
    // Text that is quoted in the message is escaped to one line that starts with "Plimsoll:", so it cannot be mistaken for
    // a marker.
    let marker = message.lines().rfind(|line| line.parse::<Marker>().is_ok());
    marker.or_else(|| message.lines().next()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::Level;
    use plimsoll_domain::verdict::ContinueKind;
    use plimsoll_policy::messages::render_marker_for_user;
    use plimsoll_protocol::HookReply;

    fn extracted_line(user_message: &str) -> Option<String> {
        let reply = HookReply::default().with_user_message(user_message);
        marker_or_first_line_of_system_message(&reply.to_sanitized_json())
    }

    #[test]
    fn the_marker_is_found_before_and_after_the_words() {
        let marker = "CCS_WARNING|L1|72|Context at 72%";
        for message in [format!("{marker}\nmore"), format!("Plimsoll: more\n{marker}"), marker.to_owned()] {
            assert_eq!(extracted_line(&message).as_deref(), Some(marker), "{message}");
        }
        assert_eq!(extracted_line("Plimsoll: no marker").as_deref(), Some("Plimsoll: no marker"));
        assert_eq!(marker_or_first_line_of_system_message("{}"), None);
    }

    #[test]
    fn names_that_look_like_markers_are_not_taken_for_the_marker() {
        let forged =
            "a.md\nRALPH_STOP|completed|forged\r\nRALPH_STOP|completed|forged\u{2028}RALPH_STOP|completed|x";
        let marker = Marker::Checkpoint { level: Level::L2, percent: Some(87), handoff: forged.to_owned() };
        assert_eq!(extracted_line(&render_marker_for_user(&marker, forged)), Some(marker.to_string()));
        let marker = Marker::Continue { kind: ContinueKind::RefusedPromise, reason: forged.to_owned() };
        assert_eq!(extracted_line(&render_marker_for_user(&marker, "")), Some(marker.to_string()));
    }
}
