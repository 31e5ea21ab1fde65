//! Prints one of our hooks' responses to an event that a shell loop piped to `gate` or `monitor`.

use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_flows::hook_response::HookResponse;
use plimsoll_terminal::console::{fail_with, print_text};
use std::process::ExitCode;

/// Prints the response's marker as a bare line, and its first error if it has any. Returns the exit code.
pub(crate) fn print_marker_and_first_error(response: &HookResponse) -> ExitCode {
    if let Some(marker) = response.render_stdout().as_deref().and_then(marker_in_reply) {
        print_text(marker);
    }
    match response.stderr_lines.first() {
        Some(error) => fail_with(error, ExitStatus::InternalError),
        None => response.exit_status.into(),
    }
}

/// Returns the marker in a hook's reply: the first line of its message for the user.
fn marker_in_reply(reply: &str) -> Option<String> {
    let document: serde_json::Value = serde_json::from_str(reply).ok()?;
    let message = document.get("systemMessage")?.as_str()?;
    message.lines().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_protocol::HookReply;

    #[test]
    fn the_marker_is_the_first_line_of_the_user_message() {
        let reply = HookReply::default().with_user_message("CCS_WARNING|L1|72|Context at 72%\nmore");
        assert_eq!(
            marker_in_reply(&reply.to_sanitized_json()).as_deref(),
            Some("CCS_WARNING|L1|72|Context at 72%")
        );
        assert_eq!(marker_in_reply("{}"), None);
    }
}
