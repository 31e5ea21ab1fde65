//! What can go wrong with one request.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// A fault of one request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// This status with this body, and the operation is not done.
    Status(u16, String),
    /// GraphQL errors with the status 400: a code and a message.
    Refused(&'static str, String),
    /// Too many requests as Linear says it, until this moment in milliseconds since the beginning of 1970.
    Limited(u64),
    /// The same with the status 429.
    TooMany(u64),
    /// The connection is cut, and the operation is not done.
    Cut,
    /// The operation is done, and the connection is cut before the answer.
    CutAfter,
    /// The operation is done, and the answer comes so late.
    Late(Duration),
    /// The operation is done, and the answer holds an error beside its data.
    Partial,
}

type Reply = (u16, BTreeMap<String, String>, Value);

impl Fault {
    pub(super) fn lets_it_happen(&self) -> bool {
        matches!(self, Fault::CutAfter | Fault::Late(_) | Fault::Partial)
    }

    /// The status (0 for none), headers and body in the place of the right ones.
    pub(super) fn answer(self, status: u16, body: Value, pause: impl Fn(Duration)) -> Reply {
        let none = BTreeMap::new();
        match self {
            Fault::Status(status, text) => (status, none, Value::String(text)),
            Fault::Refused(code, message) => (400, none, errors(code, &message)),
            Fault::Limited(until) => (400, resets(until), errors("RATELIMITED", "Rate limit exceeded")),
            Fault::TooMany(until) => (429, resets(until), Value::String("too many".to_owned())),
            Fault::Cut | Fault::CutAfter => (0, none, Value::Null),
            Fault::Late(length) => {
                pause(length);
                (status, none, body)
            }
            Fault::Partial => (status, none, super::partial(body)),
        }
    }
}

fn resets(until: u64) -> BTreeMap<String, String> {
    [("X-RateLimit-Requests-Remaining", "0".to_owned()), ("X-RateLimit-Requests-Reset", until.to_string())]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
}

/// The body of an answer that has no data.
pub(super) fn errors(code: &str, message: &str) -> Value {
    let kind = match code {
        "AUTHENTICATION_ERROR" => "authentication error",
        "FORBIDDEN" => "forbidden",
        "RATELIMITED" => "ratelimited",
        _ => "invalid input",
    };
    let extensions = json!({ "type": kind, "code": code, "userPresentableMessage": message });
    json!({ "errors": [{ "message": message, "extensions": extensions }], "data": null })
}
