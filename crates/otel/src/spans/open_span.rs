//! A span that has begun but not ended.

use crate::attributes::{Attributes, redact_and_truncate_to_line};
use crate::ids::decode_hex;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status, span::SpanKind};
use plimsoll_policy::telemetry::trace::TraceContext;

#[derive(Debug, Clone)]
pub(super) struct OpenSpan {
    pub(super) id: String,
    parent_id: String,
    name: &'static str,
    /// Unix time in nanoseconds.
    pub(super) start_nanos: u64,
    pub(super) attributes: Attributes,
    failure_message: Option<String>,
}

impl OpenSpan {
    pub(super) fn new(id: String, parent_id: String, name: &'static str, start_nanos: u64) -> OpenSpan {
        OpenSpan {
            id,
            parent_id,
            name,
            start_nanos,
            attributes: Attributes::default(),
            failure_message: None,
        }
    }

    /// Marks the span as failed. The reason is redacted and truncated.
    pub(super) fn mark_failed(&mut self, reason: &str) {
        self.failure_message = Some(redact_and_truncate_to_line(reason));
    }

    pub(super) fn into_span(self, trace: &TraceContext, end_nanos: u64) -> Span {
        let status = self.failure_message.map(|message| Status { message, code: StatusCode::Error.into() });
        Span {
            trace_id: decode_hex(&trace.trace_id),
            span_id: decode_hex(&self.id),
            parent_span_id: decode_hex(&self.parent_id),
            name: self.name.to_owned(),
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: self.start_nanos,
            // The clock may have been set back; the end must not precede the start.
            end_time_unix_nano: end_nanos.max(self.start_nanos),
            attributes: self.attributes.to_key_values(),
            status,
            ..Span::default()
        }
    }
}
