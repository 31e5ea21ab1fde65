//! Sends operations to Linear, one request after another, with retries until a deadline.

use super::endpoint::Endpoint;
use super::error::LinearError;
use super::key::ApiKey;
use super::operations::{self, Issue, Operation, PostedComment, Viewer, WithWarnings};
use super::response::{self, GraphqlResponse, HttpResponse};
use plimsoll_network::{Client, RequestError};
use serde_json::json;
use std::time::{Duration, Instant};

/// The deadline of all operations of a caller, and the number of tries of each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetryLimits {
    pub(crate) deadline: Instant,
    /// Tries of one operation; at least one is made.
    pub(crate) max_tries: u32,
}

impl RetryLimits {
    /// Sets the deadline to `timeout` from now.
    pub(crate) fn from_now(timeout: Duration, max_tries: u32) -> RetryLimits {
        RetryLimits { deadline: Instant::now() + timeout, max_tries }
    }

    fn remaining_time(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// Timeout of one request. It leaves time for a retry if the server hangs.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// Backoff before the first retry; it doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_millis(250);
/// Longest accepted response; normal ones have a few hundred bytes.
const MAX_RESPONSE_BYTES: u64 = 1024 * 1024;

/// A client of Linear's API with one key.
#[derive(Debug)]
pub(crate) struct LinearClient {
    client: Client,
    endpoint: Endpoint,
    key: ApiKey,
}

impl LinearClient {
    /// Creates a client; nothing is sent yet. Fails if this computer has no root certificates.
    pub(crate) fn new(endpoint: Endpoint, key: ApiKey) -> Result<LinearClient, LinearError> {
        let user_agent = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));
        let client = Client::new(endpoint.uri(), user_agent, None);
        let client = client.map_err(|error| LinearError::NoCertificates { reason: error.to_string() })?;
        Ok(LinearClient { client, endpoint, key })
    }

    pub(crate) fn key(&self) -> &ApiKey {
        &self.key
    }

    /// Fetches the owner of the key.
    pub(crate) fn fetch_viewer(&self, limits: RetryLimits) -> Result<WithWarnings<Viewer>, LinearError> {
        self.send_with_retries_and_extract_data(
            &operations::viewer_query(),
            limits,
            operations::extract_viewer,
        )
    }

    /// Fetches an issue by its identifier.
    pub(crate) fn fetch_issue(
        &self,
        identifier: &str,
        limits: RetryLimits,
    ) -> Result<WithWarnings<Issue>, LinearError> {
        self.send_with_retries_and_extract_data(
            &operations::issue_query(identifier),
            limits,
            operations::extract_issue,
        )
    }

    /// Fetches a comment by its id.
    pub(crate) fn fetch_comment(
        &self,
        id: &str,
        limits: RetryLimits,
    ) -> Result<WithWarnings<PostedComment>, LinearError> {
        self.send_with_retries_and_extract_data(
            &operations::comment_query(id),
            limits,
            operations::extract_comment,
        )
    }

    /// Creates a comment with an id chosen by the caller. Linear rejects an id that exists already.
    pub(crate) fn create_comment(
        &self,
        comment_id: &str,
        issue_id: &str,
        body: &str,
        limits: RetryLimits,
    ) -> Result<WithWarnings<PostedComment>, LinearError> {
        self.send_with_retries_and_extract_data(
            &operations::create_comment_mutation(comment_id, issue_id, body),
            limits,
            operations::extract_comment_if_successful,
        )
    }

    /// Replaces the text of a comment.
    pub(crate) fn update_comment(
        &self,
        comment_id: &str,
        body: &str,
        limits: RetryLimits,
    ) -> Result<WithWarnings<PostedComment>, LinearError> {
        self.send_with_retries_and_extract_data(
            &operations::update_comment_mutation(comment_id, body),
            limits,
            operations::extract_comment_if_successful,
        )
    }

    fn send_with_retries_and_extract_data<T>(
        &self,
        operation: &Operation,
        limits: RetryLimits,
        extract: impl Fn(&serde_json::Value) -> Option<T>,
    ) -> Result<WithWarnings<T>, LinearError> {
        let response = self.send_with_retries(operation, limits)?;
        operations::extract_data(response, extract).map_err(|errors| {
            if errors.is_empty() {
                let problem = "the answer lacks the requested data".to_owned();
                LinearError::UnexpectedResponse { host: self.endpoint.host().to_owned(), problem }
            } else {
                LinearError::Rejected { errors }
            }
        })
    }

    /// Sends an operation until there is a response or a permanent error, or until the time or the tries are used up.
    fn send_with_retries(
        &self,
        operation: &Operation,
        limits: RetryLimits,
    ) -> Result<GraphqlResponse, LinearError> {
        let body = json!({ "query": operation.document, "variables": operation.variables }).to_string();
        let mut backoff = FIRST_BACKOFF;
        let mut try_count = 0;
        loop {
            try_count += 1;
            let error = match self.send_once(&body, limits.remaining_time().min(REQUEST_TIMEOUT)) {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            // Do not wait past the deadline, because nothing could be sent after it.
            if !error.is_transient() || try_count >= limits.max_tries || limits.remaining_time() <= backoff {
                return Err(error);
            }
            std::thread::sleep(backoff);
            backoff *= 2;
        }
    }

    fn send_once(&self, body: &str, timeout: Duration) -> Result<GraphqlResponse, LinearError> {
        let host = self.endpoint.host();
        if timeout.is_zero() {
            return Err(LinearError::Timeout { host: host.to_owned(), timeout });
        }
        let response =
            self.post_json(body, timeout).map_err(|error| self.convert_request_error(error, timeout))?;
        response::parse_response(&response, host, &self.key)
    }

    fn post_json(&self, body: &str, timeout: Duration) -> Result<HttpResponse, RequestError> {
        let headers =
            [("Authorization", self.key.authorization_header()), ("Content-Type", "application/json")];
        let response = self.client.post(&headers, body.as_bytes(), timeout, MAX_RESPONSE_BYTES)?;
        Ok(HttpResponse {
            status: response.status,
            headers: response.headers,
            body: decode_with_question_marks(&response.body?),
        })
    }

    fn convert_request_error(&self, error: RequestError, timeout: Duration) -> LinearError {
        let host = self.endpoint.host().to_owned();
        match error {
            RequestError::Timeout => LinearError::Timeout { host, timeout },
            RequestError::HostNotFound => {
                LinearError::Unreachable { host, reason: "there is no such host, or no network".to_owned() }
            }
            RequestError::Tls(reason) => LinearError::Tls { host, reason },
            RequestError::Protocol(problem) => LinearError::UnexpectedResponse { host, problem },
            RequestError::ResponseTooLarge(_) => {
                LinearError::UnexpectedResponse { host, problem: error.to_string() }
            }
            // rustls reports failures during a read as I/O errors of this kind.
            RequestError::Io(io_error) if io_error.kind() == std::io::ErrorKind::InvalidData => {
                LinearError::Tls { host, reason: io_error.to_string() }
            }
            RequestError::Io(_) | RequestError::InvalidRequest(_) | RequestError::Other(_) => {
                LinearError::Unreachable { host, reason: self.key.redact_from(&error.to_string()) }
            }
        }
    }
}

/// Decodes a response body as UTF-8. Each invalid byte becomes a `?`.
fn decode_with_question_marks(body: &[u8]) -> String {
    let chunks = body.utf8_chunks();
    chunks.map(|chunk| format!("{}{}", chunk.valid(), "?".repeat(chunk.invalid().len()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_invalid_byte_becomes_a_question_mark() {
        assert_eq!(decode_with_question_marks("ä\u{fffd}".as_bytes()), "ä\u{fffd}");
        assert_eq!(decode_with_question_marks(b"<p>\xff\xc3</p>"), "<p>??</p>");
    }
}
