//! Sends requests to a collector (OTLP/HTTP with protobuf) and interprets the responses.

use crate::attributes::redact_and_truncate_to_line;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use plimsoll_domain::text::truncate_end;
use plimsoll_network::{Client, RequestError, TrustError, Uri};
use plimsoll_policy::telemetry::exporter::{ExportTarget, Signal};
use plimsoll_store::{StoreError, clock, disk};
use prost::Message;
use std::path::Path;
use std::time::Duration;

/// The reason why no request can be sent to a collector.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CollectorError {
    #[error("the collector's address cannot be used")]
    InvalidAddress,
    #[error("{path} cannot be used: {error}")]
    InvalidCertificateFile { path: String, error: TrustError },
    #[error(transparent)]
    CertificateFileUnreadable(StoreError),
    #[error("the file {0} (OTEL_EXPORTER_OTLP_CERTIFICATE) does not exist")]
    CertificateFileMissing(String),
    #[error(transparent)]
    Trust(TrustError),
}

/// The outcome of an export request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ExportOutcome {
    /// The collector accepted all items except `rejected_count`.
    Accepted { rejected_count: u64, message: String },
    /// The request may be retried, but not before `retry_after` if the collector specified it.
    RetryLater { retry_after: Option<Duration>, reason: String },
    /// A permanent error; the request must not be retried.
    Rejected { reason: String },
}

/// Maximum size of a response; normal ones have a few bytes.
const MAX_RESPONSE_BYTES: u64 = 64 * 1024;
/// Upper limit for `Retry-After`. A longer wait is probably a clock error.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

pub(crate) struct Collector {
    client: Client,
    signal: Signal,
    host: String,
    headers: Vec<(String, String)>,
    timeout: Duration,
}

impl Collector {
    pub(crate) fn new(signal: Signal, target: &ExportTarget) -> Result<Collector, CollectorError> {
        let uri: Uri = target.url.parse().map_err(|_| CollectorError::InvalidAddress)?;
        let user_agent = concat!("plimsoll-otel/", env!("CARGO_PKG_VERSION"));
        let client = match &target.certificate {
            Some(path) => {
                let pem = disk::read(Path::new(path)).map_err(CollectorError::CertificateFileUnreadable)?;
                let pem = pem.ok_or_else(|| CollectorError::CertificateFileMissing(path.clone()))?;
                Client::new(&uri, user_agent, Some(&pem))
                    .map_err(|error| CollectorError::InvalidCertificateFile { path: path.clone(), error })?
            }
            None => Client::new(&uri, user_agent, None).map_err(CollectorError::Trust)?,
        };
        Ok(Collector {
            client,
            signal,
            // Only the host is shown in messages, because other parts of the address may contain a key.
            host: uri.host().unwrap_or_default().to_owned(),
            headers: target.headers.clone(),
            timeout: target.timeout,
        })
    }

    /// Posts a request body. The shorter of `timeout` and the configured timeout applies.
    pub(crate) fn send(&self, body: &[u8], timeout: Duration) -> ExportOutcome {
        let timeout = timeout.min(self.timeout);
        let reserved_names = ["content-type", "content-length", "host", "transfer-encoding"];
        let user_headers = self
            .headers
            .iter()
            .filter(|(name, _)| !reserved_names.contains(&name.to_ascii_lowercase().as_str()));
        let user_headers = user_headers.map(|(name, value)| (name.as_str(), value.as_str()));
        let headers: Vec<(&str, &str)> =
            user_headers.chain([("Content-Type", "application/x-protobuf")]).collect();
        let response = match self.client.post(&headers, body, timeout, MAX_RESPONSE_BYTES) {
            Ok(response) => response,
            Err(error) => return self.outcome_of_request_error(&error, timeout),
        };
        let retry_after = response.header("retry-after").and_then(parse_retry_after);
        // If the response body cannot be read, only the status determines the outcome.
        self.outcome_of_response(response.status, retry_after, &response.body.unwrap_or_default())
    }

    fn outcome_of_response(&self, status: u16, retry_after: Option<Duration>, body: &[u8]) -> ExportOutcome {
        let reason = || format!("{} answered with the status {status}", self.host);
        match status {
            200..=299 => {
                let (rejected_count, error_message) = parse_rejected_count_and_message(self.signal, body);
                let error_message = truncate_end(&redact_and_truncate_to_line(&error_message), 200);
                ExportOutcome::Accepted {
                    rejected_count,
                    message: format!("{} rejected some: {error_message}", self.host),
                }
            }
            // The OTLP specification allows retries only for these statuses.
            429 | 502 | 503 | 504 => ExportOutcome::RetryLater { retry_after, reason: reason() },
            300..=399 => {
                ExportOutcome::Rejected { reason: format!("{}: a redirect, which is not followed", reason()) }
            }
            _ => ExportOutcome::Rejected { reason: reason() },
        }
    }

    fn outcome_of_request_error(&self, error: &RequestError, timeout: Duration) -> ExportOutcome {
        let host = &self.host;
        let reason = match error {
            RequestError::Timeout => format!("{host} did not answer within {:.1} s", timeout.as_secs_f32()),
            RequestError::HostNotFound => format!("{host} cannot be found"),
            RequestError::Io(io_error) => format!("{host} cannot be reached: {io_error}"),
            RequestError::Tls(_) => format!("{host} is not trusted: check its certificate"),
            RequestError::InvalidRequest(_) => {
                return ExportOutcome::Rejected { reason: format!("no request can be made to {host}") };
            }
            // The text of these errors may contain the address.
            RequestError::Protocol(_) | RequestError::ResponseTooLarge(_) | RequestError::Other(_) => {
                format!("{host} sent an invalid answer")
            }
        };
        ExportOutcome::RetryLater { retry_after: None, reason }
    }
}

/// Returns how many items of a batch the collector rejected, and its error message. If the response is not valid protobuf, no item
/// counts as rejected.
fn parse_rejected_count_and_message(signal: Signal, body: &[u8]) -> (u64, String) {
    let partial_success = match signal {
        Signal::Traces => ExportTraceServiceResponse::decode(body)
            .ok()
            .and_then(|response| response.partial_success)
            .map(|partial_success| (partial_success.rejected_spans, partial_success.error_message)),
        Signal::Logs => ExportLogsServiceResponse::decode(body)
            .ok()
            .and_then(|response| response.partial_success)
            .map(|partial_success| (partial_success.rejected_log_records, partial_success.error_message)),
    };
    let (count, error_message) = partial_success.unwrap_or_default();
    (u64::try_from(count).unwrap_or(0), error_message)
}

/// Parses `Retry-After` (seconds or an HTTP date) into a wait of at most `MAX_RETRY_AFTER`.
fn parse_retry_after(value: &str) -> Option<Duration> {
    let value = value.trim();
    let wait = match value.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let retry_time = chrono::DateTime::parse_from_rfc2822(value).ok()?;
            (retry_time.to_utc() - clock::now()).to_std().unwrap_or_default()
        }
    };
    Some(wait.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;

    fn collector() -> Collector {
        let target = ExportTarget {
            url: "http://collector.example.com/v1/traces?key=sesame".to_owned(),
            headers: Vec::new(),
            timeout: Duration::from_secs(1),
            certificate: None,
        };
        Collector::new(Signal::Traces, &target).unwrap()
    }

    #[test]
    fn only_the_statuses_of_the_specification_are_retried() {
        let collector = collector();
        let requested_delay = Some(Duration::from_secs(7));
        for (status, should_retry) in [
            (429, true),
            (502, true),
            (503, true),
            (504, true),
            (400, false),
            (401, false),
            (404, false),
            (500, false),
            (302, false),
        ] {
            let outcome = collector.outcome_of_response(status, requested_delay, b"");
            assert!(!format!("{outcome:?}").contains("sesame"));
            match outcome {
                ExportOutcome::RetryLater { retry_after, .. } => {
                    assert!(should_retry && retry_after == requested_delay, "{status}");
                }
                ExportOutcome::Rejected { reason } => {
                    assert!(!should_retry && reason.contains(&status.to_string()), "{reason}");
                }
                ExportOutcome::Accepted { .. } => panic!("{status}"),
            }
        }
    }

    #[test]
    fn rejected_items_are_counted_and_invalid_responses_reject_none() {
        let collector = collector();
        let partial = ExportTracePartialSuccess { rejected_spans: 3, error_message: "too\nold".to_owned() };
        let body = ExportTraceServiceResponse { partial_success: Some(partial) }.encode_to_vec();
        let ExportOutcome::Accepted { rejected_count, message } =
            collector.outcome_of_response(200, None, &body)
        else {
            panic!()
        };
        assert_eq!((rejected_count, message.as_str()), (3, "collector.example.com rejected some: too old"));
        for body in [&b""[..], b"<html>hello</html>", b"{}"] {
            assert!(matches!(
                collector.outcome_of_response(200, None, body),
                ExportOutcome::Accepted { rejected_count: 0, .. }
            ));
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_and_is_limited() {
        assert_eq!(parse_retry_after(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(parse_retry_after("99999999"), Some(MAX_RETRY_AFTER));
        assert_eq!(parse_retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        assert_eq!(parse_retry_after("Mon, 21 Oct 2115 07:28:00 GMT"), Some(MAX_RETRY_AFTER));
        assert_eq!(parse_retry_after("soon"), None);
    }
}
