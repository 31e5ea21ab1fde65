//! A span that has begun.

use crate::attributes::{Attributes, clean};
use crate::ids::bytes_of;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status, span::SpanKind};
use plimsoll_policy::telemetry::trace::TraceContext;

#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) id: String,
    parent: String,
    name: &'static str,
    /// Nanoseconds since 1970.
    pub(super) from: u64,
    pub(super) attributes: Attributes,
    failure: Option<String>,
}

impl Open {
    pub(super) fn new(id: String, parent: String, name: &'static str, from: u64) -> Open {
        Open { id, parent, name, from, attributes: Attributes::default(), failure: None }
    }

    /// Says that it failed, and why.
    pub(super) fn fail(&mut self, why: &str) {
        self.failure = Some(clean(why));
    }

    pub(super) fn end(self, trace: &TraceContext, at: u64) -> Span {
        let status = self.failure.map(|message| Status { message, code: StatusCode::Error.into() });
        Span {
            trace_id: bytes_of(&trace.trace_id),
            span_id: bytes_of(&self.id),
            parent_span_id: bytes_of(&self.parent),
            name: self.name.to_owned(),
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: self.from,
            // A clock may have been set back.
            end_time_unix_nano: at.max(self.from),
            attributes: self.attributes.list(),
            status,
            ..Span::default()
        }
    }
}
