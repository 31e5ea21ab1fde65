//! What the client writes into a transcript when a hook could not be run, failed, or took too long.

use crate::lenient;
use serde::Deserialize;

/// A hook that came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookTrouble {
    /// When, RFC 3339; empty if it does not say.
    pub at: String,
    /// Under which event.
    pub event: String,
    /// What was started.
    pub command: String,
    /// What became of it, in the client's words.
    pub what: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    #[serde(deserialize_with = "lenient::text")]
    timestamp: Option<String>,
    #[serde(deserialize_with = "lenient::field")]
    attachment: Attachment,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Attachment {
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    hook_event: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    command: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    stderr: Option<String>,
    #[serde(deserialize_with = "lenient::field")]
    timed_out: bool,
}

impl HookTrouble {
    /// Without this a line reports none.
    pub const MARK: &str = "\"hook_";

    /// Reads a line of a transcript; none if it reports no such thing. A hook that was cancelled because another one
    /// had ended the session is none.
    pub fn parse(line: &[u8]) -> Option<HookTrouble> {
        let line: Line = crate::parse(line).ok()?;
        let attachment = line.attachment;
        let what = match attachment.kind.as_deref()? {
            "hook_non_blocking_error" => attachment.stderr.unwrap_or_default(),
            // `continue:false` of one hook kills the others of its event at once (2.1.329): no fault of theirs.
            "hook_cancelled" if attachment.timed_out => "it took too long, and was ended".to_owned(),
            _ => return None,
        };
        Some(HookTrouble {
            at: line.timestamp.unwrap_or_default(),
            event: attachment.hook_event.unwrap_or_default(),
            command: attachment.command.unwrap_or_default(),
            what,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_timeouts_of_hooks_are_told_apart_from_all_else() {
        // As 2.1.329 writes them.
        let error = r#"{"isSidechain":false,"attachment":{"type":"hook_non_blocking_error","hookName":"SessionStart:startup","hookEvent":"SessionStart","stderr":"ENOENT: posix_spawn '/nope/plimsoll-session-start'","stdout":"","exitCode":1,"command":"/nope/plimsoll-session-start","durationMs":51},"type":"attachment","timestamp":"2026-11-21T23:16:27.352Z"}"#;
        let trouble = HookTrouble::parse(error.as_bytes()).unwrap();
        assert_eq!(trouble.command, "/nope/plimsoll-session-start");
        assert_eq!(
            (trouble.event.as_str(), trouble.at.as_str()),
            ("SessionStart", "2026-11-21T23:16:27.352Z")
        );
        assert!(trouble.what.starts_with("ENOENT"), "{trouble:?}");
        let slow = r#"{"attachment":{"type":"hook_cancelled","hookEvent":"Stop","command":"sleep 5","timedOut":true},"type":"attachment"}"#;
        assert!(HookTrouble::parse(slow.as_bytes()).is_some_and(|trouble| trouble.what.contains("too long")));
        for other in [
            r#"{"attachment":{"type":"hook_cancelled","command":"sleep 5"},"type":"attachment"}"#,
            r#"{"attachment":{"type":"hook_success","command":"x"},"type":"attachment"}"#,
            r#"{"type":"user","message":{"content":"\"hook_cancelled"}}"#,
            "{",
        ] {
            assert_eq!(HookTrouble::parse(other.as_bytes()), None, "{other}");
        }
    }
}
