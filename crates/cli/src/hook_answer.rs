//! What a hook of ours answered to an event that a shell loop piped to `gate` or `monitor`.

use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_flows::hook_response::HookResponse;
use plimsoll_terminal::console::{fail_with, say};
use std::process::ExitCode;

/// Its marker as a bare line, and its exit code.
pub(crate) fn print(answer: &HookResponse) -> ExitCode {
    if let Some(marker) = answer.stdout().as_deref().and_then(marker_of) {
        say(marker);
    }
    match answer.complaints.first() {
        Some(complaint) => fail_with(complaint, ExitStatus::InternalError),
        None => answer.exit.into(),
    }
}

/// The marker in a hook's reply: the first line of its message for the user.
fn marker_of(reply: &str) -> Option<String> {
    let document: serde_json::Value = serde_json::from_str(reply).ok()?;
    let message = document.get("systemMessage")?.as_str()?;
    message.lines().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_protocol::Reply;

    #[test]
    fn the_marker_is_the_first_line_for_the_person() {
        let reply = Reply::default().tell_user("CCS_WARNING|L1|72|Context at 72%\nmore");
        assert_eq!(marker_of(&reply.to_line()).as_deref(), Some("CCS_WARNING|L1|72|Context at 72%"));
        assert_eq!(marker_of("{}"), None);
    }
}
