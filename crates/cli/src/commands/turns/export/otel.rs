//! Renders a session as OpenTelemetry spans in OTLP/JSON, with the names of the GenAI conventions (v0.1.0,
//! their first release in a repository of their own). The span of an agent (`invoke_agent`) contains a span
//! for each response (`chat`) and each tool call (`execute_tool`). The span of a call contains the subagent
//! that the call started. Ids are digests of the session and the record, so the same session always gives
//! the same trace.
//!
//! The log has the time of a response's first line, the time of its last result, and the duration of each
//! call. A call's span ends when its turn ended; its duration gives the start. A response's span starts when
//! the previous record was written.

mod attributes;

use super::exported_session::{AgentStream, ExportedSession, SYNTHETIC_MODEL, turn_model};
use crate::render::visible::event_headline_and_text;
use attributes::SpanAttributes;
use plimsoll_domain::digest::sha256_hex;
use plimsoll_domain::turn::ToolCall;
use plimsoll_flows::turns::{LoggedRecord, RecordBody};
use plimsoll_store::clock;
use serde_json::{Value, json};

/// Schema URL of the conventions, which tells receivers their version.
const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/gen-ai/0.1.0";

pub(crate) fn render_otlp_json(session: &ExportedSession) -> String {
    let mut collector =
        SpanCollector { session, trace_id: hex_id_from_digest(&session.id, "", 32), spans: Vec::new() };
    for stream in session.root_streams_with_subagents() {
        collector.add_agent_span_and_turn_spans(&stream, "");
    }
    let resource = SpanAttributes::default()
        .with_text("service.name", "claude-code")
        .with_text("session.id", &session.id);
    let scope = json!({"name": "plimsoll", "version": env!("CARGO_PKG_VERSION")});
    let document = json!({"resourceSpans": [{
        "resource": {"attributes": resource.into_values()},
        "scopeSpans": [{"scope": scope, "spans": collector.spans, "schemaUrl": SCHEMA_URL}],
    }]});
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

struct SpanCollector<'a> {
    session: &'a ExportedSession,
    trace_id: String,
    spans: Vec<Value>,
}

/// Start and end, in nanoseconds since 1970.
#[derive(Clone, Copy)]
struct TimeSpan {
    start_nanos: u64,
    end_nanos: u64,
}

impl SpanCollector<'_> {
    /// Adds the span of a stream's agent, and then the spans of its turns, tool calls and subagents.
    fn add_agent_span_and_turn_spans(&mut self, stream: &AgentStream<'_>, parent_span_id: &str) {
        let record_times = || {
            stream
                .records
                .iter()
                .flat_map(|record| {
                    [turn_start_nanos(record), parse_unix_nanos(record.header.recorded_at.as_str())]
                })
                .flatten()
        };
        let time_span = TimeSpan {
            start_nanos: record_times().min().unwrap_or(0),
            end_nanos: record_times().max().unwrap_or(0),
        };
        let agent_span_id = self.span_id(&format!("stream/{}", stream.name));
        let agent_name = stream.agent_type.unwrap_or("claude-code");
        let attributes = SpanAttributes::default()
            .with_text("gen_ai.operation.name", "invoke_agent")
            .with_text("gen_ai.provider.name", "anthropic")
            .with_text("gen_ai.agent.name", agent_name)
            .with_text("plimsoll.stream", stream.name)
            .with_text("gen_ai.conversation.id", &self.session.id);
        let attributes = match self.session.last_reported_cost_usd() {
            Some(cost) if parent_span_id.is_empty() => attributes.with_number("plimsoll.cost_usd", cost),
            _ => attributes,
        };
        let mut span = self.span_json(
            &agent_span_id,
            parent_span_id,
            &format!("invoke_agent {agent_name}"),
            1,
            time_span,
            attributes,
        );
        span["events"] = stream
            .records
            .iter()
            .filter(|record| !record.is_turn_record())
            .map(|record| non_turn_record_as_span_event(record))
            .collect();
        self.spans.push(span);
        let mut previous_record_at = None;
        for record in &stream.records {
            if record.is_turn_record() {
                self.add_chat_and_tool_call_spans(record, stream, &agent_span_id, previous_record_at);
            }
            previous_record_at = parse_unix_nanos(record.header.recorded_at.as_str()).or(previous_record_at);
        }
    }

    fn add_chat_and_tool_call_spans(
        &mut self,
        record: &LoggedRecord,
        stream: &AgentStream<'_>,
        agent_span_id: &str,
        previous_record_at: Option<u64>,
    ) {
        let header = &record.header;
        let ended_at = parse_unix_nanos(header.recorded_at.as_str()).unwrap_or(0);
        let response_started_at = turn_start_nanos(record).unwrap_or(ended_at).min(ended_at);
        let calls = record.turn().map(plimsoll_domain::Turn::tool_calls).unwrap_or_default();
        let chat_time_span = TimeSpan {
            start_nanos: previous_record_at.unwrap_or(response_started_at).min(response_started_at),
            end_nanos: if calls.is_empty() { ended_at } else { response_started_at },
        };
        let chat_span_id = self.span_id(&format!("{}/chat", header.sequence_number));
        let attributes = attributes::chat_attributes(record, &self.session.id);
        // The model is unknown if the client generated the response itself, or if the record is erased.
        let model = turn_model(record).filter(|model| *model != SYNTHETIC_MODEL);
        let chat_span_name = model.map_or_else(|| "chat".to_owned(), |model| format!("chat {model}"));
        let mut span =
            self.span_json(&chat_span_id, agent_span_id, &chat_span_name, 3, chat_time_span, attributes);
        let failure_reason = header.failure_reason.map(plimsoll_domain::turn::FailureReason::as_str);
        // The failure of a call is reported on the call's span.
        if let Some(reason) = failure_reason
            && calls.iter().all(ToolCall::is_ok)
        {
            let message =
                record.turn().and_then(plimsoll_domain::Turn::parsed_failure).map(|failure| failure.message);
            set_span_error(&mut span, reason, &message.unwrap_or_default());
        }
        self.spans.push(span);
        for (call_index, call) in calls.iter().enumerate() {
            let call_span_id = self.span_id(&format!("{}/call/{call_index}", header.sequence_number));
            let duration_nanos =
                call.ext.get("duration_ms").and_then(Value::as_u64).unwrap_or(0).saturating_mul(1_000_000);
            let time_span = TimeSpan {
                start_nanos: ended_at.saturating_sub(duration_nanos).max(response_started_at),
                end_nanos: ended_at,
            };
            let attributes = attributes::tool_call_attributes(call, header.turn_number, &self.session.id);
            let mut span = self.span_json(
                &call_span_id,
                agent_span_id,
                &format!("execute_tool {}", call.name),
                1,
                time_span,
                attributes,
            );
            if !call.is_ok() {
                let error = call.ext.get("error").and_then(Value::as_str).unwrap_or_default();
                let is_denied = call.ext.contains_key("denied");
                set_span_error(
                    &mut span,
                    failure_reason.unwrap_or(if is_denied { "tool_denied" } else { "tool_error" }),
                    error,
                );
            }
            self.spans.push(span);
            if let Some(subagent) = stream.subagents.get(&(header.sequence_number, call_index)) {
                self.add_agent_span_and_turn_spans(subagent, &call_span_id);
            }
        }
    }

    fn span_json(
        &self,
        id: &str,
        parent_span_id: &str,
        name: &str,
        kind: u8,
        time_span: TimeSpan,
        attributes: SpanAttributes,
    ) -> Value {
        let mut span = json!({
            "traceId": self.trace_id,
            "spanId": id,
            "name": name,
            "kind": kind,
            "startTimeUnixNano": time_span.start_nanos.to_string(),
            "endTimeUnixNano": time_span.end_nanos.to_string(),
            "attributes": attributes.into_values(),
        });
        if !parent_span_id.is_empty() {
            span["parentSpanId"] = json!(parent_span_id);
        }
        span
    }

    fn span_id(&self, span_path: &str) -> String {
        hex_id_from_digest(&self.session.id, span_path, 16)
    }
}

fn set_span_error(span: &mut Value, reason: &str, message: &str) {
    span["status"] = json!({"code": 2, "message": message});
    if let Some(attributes) = span["attributes"].as_array_mut() {
        attributes.extend(SpanAttributes::default().with_text("error.type", reason).into_values());
    }
}

/// Converts a record that is not a turn to an event of its agent's span.
fn non_turn_record_as_span_event(record: &LoggedRecord) -> Value {
    let kind = json!(record.header.kind);
    let kind = kind.as_str().unwrap_or("other");
    let (headline, text) = event_headline_and_text(record);
    let attributes = SpanAttributes::default().with_integer("plimsoll.seq", record.header.sequence_number);
    let attributes = match (&record.body, text) {
        (RecordBody::Event(fields), _) => {
            attributes.with_text("plimsoll.content", &Value::Object(fields.clone()).to_string())
        }
        _ => attributes.with_text("plimsoll.content", &headline),
    };
    let at_nanos = parse_unix_nanos(record.header.recorded_at.as_str()).unwrap_or(0);
    json!({"timeUnixNano": at_nanos.to_string(), "name": format!("plimsoll.{kind}"), "attributes": attributes.into_values()})
}

fn turn_start_nanos(record: &LoggedRecord) -> Option<u64> {
    parse_unix_nanos(record.turn()?.ext().get("began_at")?.as_str()?)
}

fn parse_unix_nanos(timestamp: &str) -> Option<u64> {
    u64::try_from(clock::parse_rfc3339(timestamp)?.timestamp_nanos_opt()?).ok()
}

fn hex_id_from_digest(session_id: &str, span_path: &str, length: usize) -> String {
    let mut digest = sha256_hex(&[b"plimsoll/", session_id.as_bytes(), b"/", span_path.as_bytes()]);
    digest.truncate(length);
    digest
}
