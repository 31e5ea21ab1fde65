//! The way to Linear and back: one request after another, each within what is left of the time.

use crate::answer::{self, Answer, Received};
use crate::operations::{self, Issue, Operation, Posted, Viewer, WithWarnings};
use crate::{Endpoint, Key, LinearError};
use serde_json::json;
use std::time::{Duration, Instant};
use ureq::{Agent, Error};

/// How long a caller waits in all, and how often a trouble that may pass is tolerated.
#[derive(Debug, Clone, Copy)]
pub struct RetryLimits {
    /// No call lasts beyond it.
    pub until: Instant,
    /// Tries of one operation, at least one.
    pub tries: u32,
}

impl RetryLimits {
    /// This much time from now.
    pub fn of(time: Duration, tries: u32) -> RetryLimits {
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
pub struct Linear {
    agent: Agent,
    endpoint: Endpoint,
    key: Key,
}

impl Linear {
    /// Makes ready; nothing is sent yet.
    pub fn new(endpoint: Endpoint, key: Key) -> Result<Linear, LinearError> {
        let user_agent = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));
        let agent = plimsoll_transport::agent(endpoint.uri(), user_agent, None);
        let agent = agent.map_err(|error| LinearError::Certificates { why: error.to_string() })?;
        Ok(Linear { agent, endpoint, key })
    }

    /// The key that is sent.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Whose key it is.
    pub fn viewer(&self, limits: RetryLimits) -> Result<WithWarnings<Viewer>, LinearError> {
        self.take(&operations::viewer(), limits, operations::take_viewer)
    }

    /// An issue by its identifier.
    pub fn issue(&self, id: &str, limits: RetryLimits) -> Result<WithWarnings<Issue>, LinearError> {
        self.take(&operations::issue(id), limits, operations::take_issue)
    }

    /// A comment by its id.
    pub fn comment(&self, id: &str, limits: RetryLimits) -> Result<WithWarnings<Posted>, LinearError> {
        self.take(&operations::comment(id), limits, operations::take_comment)
    }

    /// Makes a comment with an id of our choice. One that is there already is refused by Linear.
    pub fn create(
        &self,
        id: &str,
        issue: &str,
        body: &str,
        limits: RetryLimits,
    ) -> Result<WithWarnings<Posted>, LinearError> {
        self.take(&operations::create(id, issue, body), limits, operations::take_payload)
    }

    /// Puts a new text into a comment.
    pub fn update(
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

    fn post(&self, body: &str, limit: Duration) -> Result<Received, Error> {
        let request = self.agent.post(self.endpoint.uri()).config().timeout_global(Some(limit)).build();
        let mut response = request
            .header("Authorization", self.key.authorization())
            .header("Content-Type", "application/json")
            .send(body)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let headers = response.headers().iter();
        let headers =
            headers.map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes()))).collect();
        let status = response.status().as_u16();
        let body =
            response.body_mut().with_config().limit(LONGEST_ANSWER).lossy_utf8(true).read_to_string()?;
        Ok(Received { status, headers, body })
    }

    fn trouble(&self, error: Error, limit: Duration) -> LinearError {
        let host = self.endpoint.host().to_owned();
        match error {
            Error::Timeout(_) => LinearError::Silent { host, limit },
            Error::HostNotFound => {
                LinearError::Unreachable { host, why: "there is no such host, or no network".to_owned() }
            }
            Error::Tls(why) => LinearError::Tls { host, why: why.to_owned() },
            Error::Rustls(why) => LinearError::Tls { host, why: why.to_string() },
            Error::Protocol(why) => LinearError::Strange { host, what: why.to_string() },
            Error::BodyExceedsLimit(most) => {
                LinearError::Strange { host, what: format!("an answer of more than {most} bytes") }
            }
            // TLS speaks through the socket's errors where it fails while it reads.
            Error::Io(why) if why.kind() == std::io::ErrorKind::InvalidData => {
                LinearError::Tls { host, why: why.to_string() }
            }
            other => LinearError::Unreachable { host, why: self.key.taken_out_of(&other.to_string()) },
        }
    }
}
