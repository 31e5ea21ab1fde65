//! The way to Linear and back: one request after another, each within what is left of the time.

use super::answer::{self, Answer, Received};
use super::endpoint::Endpoint;
use super::error::LinearError;
use super::key::Key;
use super::operations::{self, Issue, Operation, Posted, Viewer, WithWarnings};
use plimsoll_network::{Client, RequestError};
use serde_json::json;
use std::time::{Duration, Instant};

/// How long a caller waits in all, and how often a trouble that may pass is tolerated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetryLimits {
    /// No call lasts beyond it.
    pub(crate) until: Instant,
    /// Tries of one operation, at least one.
    pub(crate) tries: u32,
}

impl RetryLimits {
    /// This much time from now.
    pub(crate) fn of(time: Duration, tries: u32) -> RetryLimits {
        RetryLimits { until: Instant::now() + time, tries }
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}

/// One call waits no longer, whatever time there is.
const LONGEST_CALL: Duration = Duration::from_secs(15);
/// The first try after a failure comes soon, and each further one after twice the time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest answer: ours are a few hundred bytes.
const LONGEST_ANSWER: u64 = 1024 * 1024;

/// Linear, for one key.
#[derive(Debug)]
pub(crate) struct Linear {
    client: Client,
    endpoint: Endpoint,
    key: Key,
}

impl Linear {
    /// Makes ready; nothing is sent yet.
    pub(crate) fn new(endpoint: Endpoint, key: Key) -> Result<Linear, LinearError> {
        let user_agent = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));
        let client = Client::new(endpoint.uri(), user_agent, None);
        let client = client.map_err(|error| LinearError::Certificates { why: error.to_string() })?;
        Ok(Linear { client, endpoint, key })
    }

    /// The key that is sent.
    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// Whose key it is.
    pub(crate) fn viewer(&self, limits: RetryLimits) -> Result<WithWarnings<Viewer>, LinearError> {
        self.take(&operations::viewer(), limits, operations::take_viewer)
    }

    /// An issue by its identifier.
    pub(crate) fn issue(&self, id: &str, limits: RetryLimits) -> Result<WithWarnings<Issue>, LinearError> {
        self.take(&operations::issue(id), limits, operations::take_issue)
    }

    /// A comment by its id.
    pub(crate) fn comment(&self, id: &str, limits: RetryLimits) -> Result<WithWarnings<Posted>, LinearError> {
        self.take(&operations::comment(id), limits, operations::take_comment)
    }

    /// Makes a comment with an id of our choice. One that is there already is refused by Linear.
    pub(crate) fn create(
        &self,
        id: &str,
        issue: &str,
        body: &str,
        limits: RetryLimits,
    ) -> Result<WithWarnings<Posted>, LinearError> {
        self.take(&operations::create(id, issue, body), limits, operations::take_payload)
    }

    /// Puts a new text into a comment.
    pub(crate) fn update(
        &self,
        id: &str,
        body: &str,
        limits: RetryLimits,
    ) -> Result<WithWarnings<Posted>, LinearError> {
        self.take(&operations::update(id, body), limits, operations::take_payload)
    }

    fn take<T>(
        &self,
        operation: &Operation,
        limits: RetryLimits,
        take: impl Fn(&serde_json::Value) -> Option<T>,
    ) -> Result<WithWarnings<T>, LinearError> {
        let answer = self.ask(operation, limits)?;
        operations::read(answer, take).map_err(|errors| {
            if errors.is_empty() {
                let what = "the answer lacks the requested data".to_owned();
                LinearError::Strange { host: self.endpoint.host().to_owned(), what }
            } else {
                LinearError::Refused { errors }
            }
        })
    }

    /// Asks until there is an answer, or a trouble that does not pass, or no time.
    fn ask(&self, operation: &Operation, limits: RetryLimits) -> Result<Answer, LinearError> {
        let body = json!({ "query": operation.document, "variables": operation.variables }).to_string();
        let mut pause = FIRST_PAUSE;
        let mut tries = 0;
        loop {
            tries += 1;
            let error = match self.send(&body, limits.left().min(LONGEST_CALL)) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            // A pause that outlasts the time is not begun: nothing could be sent after it.
            if !error.may_pass() || tries >= limits.tries || limits.left() <= pause {
                return Err(error);
            }
            std::thread::sleep(pause);
            pause *= 2;
        }
    }

    fn send(&self, body: &str, limit: Duration) -> Result<Answer, LinearError> {
        let host = self.endpoint.host();
        if limit.is_zero() {
            return Err(LinearError::Silent { host: host.to_owned(), limit });
        }
        let received = self.post(body, limit).map_err(|error| self.trouble(error, limit))?;
        answer::read(&received, host, &self.key)
    }

    fn post(&self, body: &str, limit: Duration) -> Result<Received, RequestError> {
        let headers = [("Authorization", self.key.authorization()), ("Content-Type", "application/json")];
        let response = self.client.post(&headers, body.as_bytes(), limit, LONGEST_ANSWER)?;
        Ok(Received { status: response.status, headers: response.headers, body: readable(&response.body?) })
    }

    fn trouble(&self, error: RequestError, limit: Duration) -> LinearError {
        let host = self.endpoint.host().to_owned();
        match error {
            RequestError::Timeout => LinearError::Silent { host, limit },
            RequestError::HostNotFound => {
                LinearError::Unreachable { host, why: "there is no such host, or no network".to_owned() }
            }
            RequestError::Tls(why) => LinearError::Tls { host, why },
            RequestError::Protocol(what) => LinearError::Strange { host, what },
            RequestError::TooLong(_) => LinearError::Strange { host, what: error.to_string() },
            // TLS speaks through the socket's errors where it fails while it reads.
            RequestError::Io(why) if why.kind() == std::io::ErrorKind::InvalidData => {
                LinearError::Tls { host, why: why.to_string() }
            }
            RequestError::Io(_) | RequestError::Unsendable(_) | RequestError::Other(_) => {
                LinearError::Unreachable { host, why: self.key.taken_out_of(&error.to_string()) }
            }
        }
    }
}

/// The text of an answer, with a `?` for each byte that is no text.
fn readable(body: &[u8]) -> String {
    let chunks = body.utf8_chunks();
    chunks.map(|chunk| format!("{}{}", chunk.valid(), "?".repeat(chunk.invalid().len()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_is_no_text_is_a_question_mark() {
        assert_eq!(readable("ä\u{fffd}".as_bytes()), "ä\u{fffd}");
        assert_eq!(readable(b"<p>\xff\xc3</p>"), "<p>??</p>");
    }
}
