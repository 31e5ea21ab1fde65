//! One request to a collector, and what its answer means: OTLP/HTTP with protobuf.

use crate::attributes::clean;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use plimsoll_domain::text::truncate_end;
use plimsoll_network::{Client, RequestError, TrustError, Uri};
use plimsoll_policy::telemetry::exporter::{ExportTarget, Signal};
use plimsoll_store::{StoreError, clock, disk};
use prost::Message;
use std::path::Path;
use std::time::Duration;

/// Why a collector cannot be asked at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CollectorError {
    #[error("the collector's address cannot be used")]
    Address,
    #[error("{path} cannot be used: {error}")]
    Certificate { path: String, error: TrustError },
    #[error(transparent)]
    File(StoreError),
    #[error("the file {0} (OTEL_EXPORTER_OTLP_CERTIFICATE) is not there")]
    NoFile(String),
    #[error(transparent)]
    Trust(TrustError),
}

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The collector has it, but for this many.
    Accepted { rejected: u64, why: String },
    /// It may take it later; not before this time, if it said so.
    Later { after: Option<Duration>, why: String },
    /// It never will.
    Refused { why: String },
}

/// A collector's longest answer: ours are a few bytes.
const LONGEST_ANSWER: u64 = 64 * 1024;
/// A longer wait is a fault of a clock.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

pub(crate) struct Collector {
    client: Client,
    signal: Signal,
    host: String,
    headers: Vec<(String, String)>,
    timeout: Duration,
}

impl Collector {
    pub(crate) fn new(signal: Signal, target: &ExportTarget) -> Result<Collector, CollectorError> {
        let uri: Uri = target.url.parse().map_err(|_| CollectorError::Address)?;
        let user_agent = concat!("plimsoll-otel/", env!("CARGO_PKG_VERSION"));
        let client = match &target.certificate {
            Some(path) => {
                let pem = disk::read(Path::new(path)).map_err(CollectorError::File)?;
                let pem = pem.ok_or_else(|| CollectorError::NoFile(path.clone()))?;
                Client::new(&uri, user_agent, Some(&pem))
                    .map_err(|error| CollectorError::Certificate { path: path.clone(), error })?
            }
            None => Client::new(&uri, user_agent, None).map_err(CollectorError::Trust)?,
        };
        Ok(Collector {
            client,
            signal,
            // Of the address only this is ever shown: the rest may hold a key.
            host: uri.host().unwrap_or_default().to_owned(),
            headers: target.headers.clone(),
            timeout: target.timeout,
        })
    }

    /// Sends a body, in no more than this time.
    pub(crate) fn send(&self, body: &[u8], limit: Duration) -> Answer {
        let limit = limit.min(self.timeout);
        let ours = ["content-type", "content-length", "host", "transfer-encoding"];
        let own = self.headers.iter().filter(|(name, _)| !ours.contains(&name.to_ascii_lowercase().as_str()));
        let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
        let headers: Vec<(&str, &str)> = own.chain([("Content-Type", "application/x-protobuf")]).collect();
        let response = match self.client.post(&headers, body, limit, LONGEST_ANSWER) {
            Ok(response) => response,
            Err(error) => return self.unanswered(&error, limit),
        };
        let wait = response.header("retry-after").and_then(waited);
        // An answer that cannot be read is none the less one: the status counts.
        self.judged(response.status, wait, &response.body.unwrap_or_default())
    }

    fn judged(&self, status: u16, after: Option<Duration>, body: &[u8]) -> Answer {
        let why = || format!("{} answered with the status {status}", self.host);
        match status {
            200..=299 => {
                let (rejected, words) = rejected(self.signal, body);
                let said = truncate_end(&clean(&words), 200);
                Answer::Accepted { rejected, why: format!("{} rejected some: {said}", self.host) }
            }
            // By the specification these, and no others, may be tried again.
            429 | 502 | 503 | 504 => Answer::Later { after, why: why() },
            300..=399 => Answer::Refused { why: format!("{}: a redirect, which is not followed", why()) },
            _ => Answer::Refused { why: why() },
        }
    }

    fn unanswered(&self, error: &RequestError, limit: Duration) -> Answer {
        let host = &self.host;
        let why = match error {
            RequestError::Timeout => format!("{host} did not answer within {:.1} s", limit.as_secs_f32()),
            RequestError::HostNotFound => format!("{host} cannot be found"),
            RequestError::Io(error) => format!("{host} cannot be reached: {error}"),
            RequestError::Tls(_) => format!("{host} is not trusted: check its certificate"),
            RequestError::Unsendable(_) => {
                return Answer::Refused { why: format!("no request can be made to {host}") };
            }
            // Whatever else it says may repeat the address.
            RequestError::Protocol(_) | RequestError::TooLong(_) | RequestError::Other(_) => {
                format!("{host} gave no answer that can be understood")
            }
        };
        Answer::Later { after: None, why }
    }
}

/// How many of a batch were not taken, and why; an answer that is no protobuf says nothing of it.
fn rejected(signal: Signal, body: &[u8]) -> (u64, String) {
    let partial = match signal {
        Signal::Traces => ExportTraceServiceResponse::decode(body)
            .ok()
            .and_then(|answer| answer.partial_success)
            .map(|partial| (partial.rejected_spans, partial.error_message)),
        Signal::Logs => ExportLogsServiceResponse::decode(body)
            .ok()
            .and_then(|answer| answer.partial_success)
            .map(|partial| (partial.rejected_log_records, partial.error_message)),
    };
    let (count, words) = partial.unwrap_or_default();
    (u64::try_from(count).unwrap_or(0), words)
}

/// What `Retry-After` asks for: seconds, or a moment.
fn waited(value: &str) -> Option<Duration> {
    let value = value.trim();
    let time = match value.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let moment = chrono::DateTime::parse_from_rfc2822(value).ok()?;
            (moment.to_utc() - clock::now()).to_std().unwrap_or_default()
        }
    };
    Some(time.min(LONGEST_WAIT))
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
    fn each_status_says_whether_it_is_worth_another_try() {
        let collector = collector();
        let wait = Some(Duration::from_secs(7));
        for (status, is_later) in [
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
            let answer = collector.judged(status, wait, b"");
            assert!(!format!("{answer:?}").contains("sesame"));
            match answer {
                Answer::Later { after, .. } => assert!(is_later && after == wait, "{status}"),
                Answer::Refused { why } => assert!(!is_later && why.contains(&status.to_string()), "{why}"),
                Answer::Accepted { .. } => panic!("{status}"),
            }
        }
    }

    #[test]
    fn what_was_rejected_is_counted_and_an_answer_that_is_none_is_not() {
        let collector = collector();
        let partial = ExportTracePartialSuccess { rejected_spans: 3, error_message: "too\nold".to_owned() };
        let body = ExportTraceServiceResponse { partial_success: Some(partial) }.encode_to_vec();
        let Answer::Accepted { rejected, why } = collector.judged(200, None, &body) else { panic!() };
        assert_eq!((rejected, why.as_str()), (3, "collector.example.com rejected some: too old"));
        for body in [&b""[..], b"<html>hello</html>", b"{}"] {
            assert!(matches!(collector.judged(200, None, body), Answer::Accepted { rejected: 0, .. }));
        }
    }

    #[test]
    fn a_wait_is_seconds_or_a_moment_and_never_long() {
        assert_eq!(waited(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(waited("99999999"), Some(LONGEST_WAIT));
        assert_eq!(waited("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        assert_eq!(waited("Mon, 21 Oct 2115 07:28:00 GMT"), Some(LONGEST_WAIT));
        assert_eq!(waited("soon"), None);
    }
}
