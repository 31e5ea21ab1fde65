//! RULE: the only crate that knows Claude Code's JSON.
//!
//! It reads what the client writes: a hook's payload ([`event`]), the status line's ([`status`]), the transcript
//! ([`transcript`]), the stream of `claude -p` ([`stream`], [`result`]) and settings files ([`settings`]). It writes what the
//! client reads: a hook's answer ([`reply`]) and our entries in settings files, edited as text so that all else stays byte
//! for byte. The types are the client's own words; what they mean for us is decided in `domain` and `policy`.
//!
//! Everything the client writes is foreign: unknown fields are ignored, `null` equals missing, and a wrong type in one field
//! never loses the others. What we answer is serialised without a single `null`, because the client drops a whole reply that
//! holds one. Text from others is cleaned by one rule ([`foreign_words`]).
//!
//! Limits: it does not promise that a field is there, or true; every one is optional. It knows the versions of the client that
//! the tests recorded: of a newer one it reads what it finds. It opens no file.
//!
//! ```
//! use plimsoll_protocol::{Event, Hook, Reply};
//!
//! let payload = br#"{"hook_event_name": "SessionEnd", "session_id": "s-1", "cwd": 7, "reason": "other", "new": {}}"#;
//! let hook = Hook::parse(payload).expect("one JSON object");
//! assert_eq!(hook.session_id.as_deref(), Some("s-1"));
//! assert_eq!(hook.cwd, None, "a wrong type loses this field alone");
//! assert!(matches!(hook.event, Event::SessionEnd { reason: Some(reason) } if reason == "other"));
//!
//! let reply = Reply::default().tell_model("PostToolBatch", "72% of the window is used");
//! assert!(!reply.to_line().contains("null"));
//! ```

pub mod agent;
pub mod billing;
pub mod client_environment;
pub mod client_settings;
pub mod client_tasks;
pub mod event;
pub mod foreign_words;
pub mod hook_trouble;
mod lenient;
pub mod rate_limit;
pub mod recording;
pub mod reply;
pub mod result;
pub mod settings;
pub mod status;
pub mod stream;
pub mod tool;
pub mod transcript;
pub mod user_request;

pub use event::{Event, Hook};
pub use reply::Reply;
use std::borrow::Cow;

/// Why a document could not be read at all.
#[derive(Debug, thiserror::Error)]
#[error("not one JSON object: {0}")]
pub struct Malformed(serde_json::Error);

/// Parses one JSON object, with invalid UTF-8 replaced rather than refused and a byte order mark passed over.
fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, Malformed> {
    // `from_utf8_lossy` alone looks at every byte by itself, which costs as much as the parsing.
    let text = std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with('[') {
        // serde would fill the fields from a list, in their order.
        return Err(Malformed(serde::de::Error::custom("a list")));
    }
    lenient::object(text).map_err(Malformed)
}
