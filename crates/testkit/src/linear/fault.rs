//! Faults that a test can inject into individual requests.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// A fault injected into one request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The response has this HTTP status and body; the operation is not executed.
    HttpStatus(u16, String),
    /// The response has status 400 and a GraphQL error with this code and message; the operation is not executed.
    GraphqlErrors(&'static str, String),
    /// A rate limit error in Linear's format (status 400). The value is the reset time in milliseconds since 1970.
    RateLimited(u64),
    /// A rate limit error with status 429. The value is the reset time in milliseconds since 1970.
    RateLimitedWith429(u64),
    /// The connection is closed and the operation is not executed.
    ConnectionCut,
    /// The operation is executed and the connection is closed before the response.
    CutAfterOperation,
    /// The operation is executed and the response is delayed by this duration.
    DelayedResponse(Duration),
    /// The operation is executed and the response contains both data and an error.
    PartialResponse,
}

type HttpResponse = (u16, BTreeMap<String, String>, Value);

impl Fault {
    pub(super) fn executes_operation(&self) -> bool {
        matches!(self, Fault::CutAfterOperation | Fault::DelayedResponse(_) | Fault::PartialResponse)
    }

    /// Returns the status (0 for no response), the headers and the body to send instead of the correct response.
    pub(super) fn replace_response(self, status: u16, body: Value, sleep: impl Fn(Duration)) -> HttpResponse {
        let no_headers = BTreeMap::new();
        match self {
            Fault::HttpStatus(fault_status, text) => (fault_status, no_headers, Value::String(text)),
            Fault::GraphqlErrors(code, message) => (400, no_headers, graphql_error_body(code, &message)),
            Fault::RateLimited(resets_at_ms) => (
                400,
                rate_limit_headers(resets_at_ms),
                graphql_error_body("RATELIMITED", "Rate limit exceeded"),
            ),
            Fault::RateLimitedWith429(resets_at_ms) => {
                (429, rate_limit_headers(resets_at_ms), Value::String("too many".to_owned()))
            }
            Fault::ConnectionCut | Fault::CutAfterOperation => (0, no_headers, Value::Null),
            Fault::DelayedResponse(delay) => {
                sleep(delay);
                (status, no_headers, body)
            }
            Fault::PartialResponse => (status, no_headers, super::with_partial_error(body)),
        }
    }
}

fn rate_limit_headers(resets_at_ms: u64) -> BTreeMap<String, String> {
    [
        ("X-RateLimit-Requests-Remaining", "0".to_owned()),
        ("X-RateLimit-Requests-Reset", resets_at_ms.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Returns a GraphQL response body with one error and no data.
pub(super) fn graphql_error_body(code: &str, message: &str) -> Value {
    let error_type = match code {
        "AUTHENTICATION_ERROR" => "authentication error",
        "FORBIDDEN" => "forbidden",
        "RATELIMITED" => "ratelimited",
        _ => "invalid input",
    };
    let extensions = json!({ "type": error_type, "code": code, "userPresentableMessage": message });
    json!({ "errors": [{ "message": message, "extensions": extensions }], "data": null })
}
