//! A session that was exported as OTLP/JSON, as OTLP/protobuf: the same message in its other form.

use opentelemetry_proto::tonic::trace::v1::TracesData;
use prost::Message;

/// The longest export: a session with images has some ten megabytes.
pub(crate) const LONGEST: u64 = 1024 * 1024 * 1024;

/// What is no OTLP/JSON.
#[derive(Debug, thiserror::Error)]
#[error("standard input is no OTLP/JSON: {0}")]
pub(crate) struct NotOtlp(#[from] serde_json::Error);

/// The protobuf of a message in JSON.
pub(crate) fn encode(json: &[u8]) -> Result<Vec<u8>, NotOtlp> {
    Ok(serde_json::from_slice::<TracesData>(json)?.encode_to_vec())
}
