//! RULE: the only crate that knows Claude Code's JSON.
//!
//! It reads what the client writes: hook payloads ([`event`]), status line payloads ([`status`]), transcripts
//! ([`transcript`]), the stream of `claude -p` ([`stream`], [`result`]) and settings files ([`settings`]). It writes
//! what the client reads: hook replies ([`reply`]) and our entries in settings files, which it edits as text so that
//! everything else stays byte for byte. The types use the client's own terms; `domain` and `policy` interpret them.
//!
//! Nothing the client writes is trusted: unknown fields are ignored, `null` equals missing, and a wrong type in one
//! field never loses the other fields. Replies are serialized without any `null`, because the client drops a whole
//! reply that contains one. Text from others is sanitized in one place ([`untrusted_text`]).
//!
//! Limits: every field is optional, and its value may be wrong. The crate knows the client versions that the tests
//! recorded; for a newer client it reads the fields it recognizes. It opens no file.
//!
//! ```
//! use plimsoll_protocol::{HookEvent, HookPayload, HookReply};
//!
//! let payload = br#"{"hook_event_name": "SessionEnd", "session_id": "s-1", "cwd": 7, "reason": "other", "new": {}}"#;
//! let hook_payload = HookPayload::parse(payload).expect("one JSON object");
//! assert_eq!(hook_payload.session_id.as_deref(), Some("s-1"));
//! assert_eq!(hook_payload.cwd, None, "a wrong type loses this field alone");
//! assert!(matches!(hook_payload.event, HookEvent::SessionEnd { reason: Some(reason) } if reason == "other"));
//!
//! let reply = HookReply::default().with_model_context("PostToolBatch", "72% of the window is used");
//! assert!(!reply.to_sanitized_json().contains("null"));
//! ```

pub mod agent;
pub mod billing;
pub mod client_environment;
pub mod client_report;
pub mod client_settings;
pub mod client_tasks;
pub mod event;
pub mod handoff_message;
pub mod hook_failure;
mod lenient;
pub mod rate_limit;
pub mod reply;
pub mod result;
pub mod settings;
pub mod status;
pub mod stream;
pub mod tool;
pub mod transcript;
pub mod transcript_content;
pub mod untrusted_text;
pub mod usage_line;
pub mod user_request;

pub use event::{HookEvent, HookPayload};
pub use reply::HookReply;
use std::borrow::Cow;

/// The document is not one JSON object.
#[derive(Debug, thiserror::Error)]
#[error("not one JSON object: {0}")]
pub struct MalformedJson(serde_json::Error);

/// Parses one JSON object. Replaces invalid UTF-8 and skips a byte order mark.
fn parse_json_object<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, MalformedJson> {
    // `from_utf8_lossy` alone examines every byte separately, which costs as much as the parsing.
    let text = std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with('[') {
        // serde would fill the fields from a list by position.
        return Err(MalformedJson(serde::de::Error::custom("a list")));
    }
    lenient::parse_last_key_wins(text).map_err(MalformedJson)
}
