//! Failed and timed-out hooks, as the client reports them in a transcript.

use crate::lenient;
use serde::Deserialize;

/// A hook that failed or timed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookFailure {
    /// RFC 3339; empty if the line has no timestamp.
    pub timestamp: String,
    pub event: String,
    /// The command that the client started.
    pub command: String,
    /// The hook's error output, or a sentence about the timeout.
    pub description: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HookFailureLine {
    #[serde(deserialize_with = "lenient::non_empty_text")]
    timestamp: Option<String>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    attachment: Attachment,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Attachment {
    #[serde(rename = "type", deserialize_with = "lenient::non_empty_text")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    hook_event: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    command: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    stderr: Option<String>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    timed_out: bool,
}

impl HookFailure {
    /// Every line that reports a failed hook contains this text.
    pub const LINE_MARKER: &str = "\"hook_";

    /// Parses a transcript line. Returns `None` if it reports no failed hook. A hook that was canceled because
    /// another one ended the session is not a failure.
    pub fn from_error_or_timeout_line(line: &[u8]) -> Option<HookFailure> {
        let line: HookFailureLine = crate::parse_json_object(line).ok()?;
        let attachment = line.attachment;
        let description = match attachment.kind.as_deref()? {
            "hook_non_blocking_error" => attachment.stderr.unwrap_or_default(),
            // `continue:false` from one hook cancels the other hooks of its event at once (2.1.329); those have not failed.
            "hook_cancelled" if attachment.timed_out => "it took too long and was ended".to_owned(),
            _ => return None,
        };
        Some(HookFailure {
            timestamp: line.timestamp.unwrap_or_default(),
            event: attachment.hook_event.unwrap_or_default(),
            command: attachment.command.unwrap_or_default(),
            description,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hook_errors_and_timeouts_are_hook_failures() {
        // Lines as written by 2.1.329.
        let error = r#"{"isSidechain":false,"attachment":{"type":"hook_non_blocking_error","hookName":"SessionStart:startup","hookEvent":"SessionStart","stderr":"ENOENT: posix_spawn '/nope/plimsoll-session-start'","stdout":"","exitCode":1,"command":"/nope/plimsoll-session-start","durationMs":51},"type":"attachment","timestamp":"2026-11-21T23:16:27.352Z"}"#;
        let failure = HookFailure::from_error_or_timeout_line(error.as_bytes()).unwrap();
        assert_eq!(failure.command, "/nope/plimsoll-session-start");
        assert_eq!(
            (failure.event.as_str(), failure.timestamp.as_str()),
            ("SessionStart", "2026-11-21T23:16:27.352Z")
        );
        assert!(failure.description.starts_with("ENOENT"), "{failure:?}");
        let slow = r#"{"attachment":{"type":"hook_cancelled","hookEvent":"Stop","command":"sleep 5","timedOut":true},"type":"attachment"}"#;
        assert!(
            HookFailure::from_error_or_timeout_line(slow.as_bytes())
                .is_some_and(|trouble| trouble.description.contains("too long"))
        );
        for unrelated_line in [
            r#"{"attachment":{"type":"hook_cancelled","command":"sleep 5"},"type":"attachment"}"#,
            r#"{"attachment":{"type":"hook_success","command":"x"},"type":"attachment"}"#,
            r#"{"type":"user","message":{"content":"\"hook_cancelled"}}"#,
            "{",
        ] {
            assert_eq!(
                HookFailure::from_error_or_timeout_line(unrelated_line.as_bytes()),
                None,
                "{unrelated_line}"
            );
        }
    }
}
