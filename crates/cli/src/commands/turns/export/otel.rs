//! OpenTelemetry spans as OTLP/JSON, with the names of the GenAI conventions (v0.1.0, their first release in a repository of
//! their own): an agent's invocation, in it each response (`chat`) and each call (`execute_tool`), in a call the subagent that it
//! started. Ids are digests of the session and the record, so that the same session is always the same trace.
//!
//! The log knows when a response's first line was written, when its last result came, and how long each call took:
//! a call's span ends when its turn ended, and began so much earlier; a response was asked for when the record
//! before it was written.

mod attributes;

use super::exported::{Exported, SYNTHETIC, Stream, model_of};
use crate::render::visible::event;
use attributes::Attributes;
use plimsoll_domain::digest::sha256;
use plimsoll_domain::turn::ToolCall;
use plimsoll_flows::turns::{Body, Recorded};
use plimsoll_store::clock;
use serde_json::{Value, json};

/// Names the version of the conventions, so that who receives the spans need not guess.
const SCHEMA: &str = "https://opentelemetry.io/schemas/gen-ai/0.1.0";

pub(crate) fn render(exported: &Exported) -> String {
    let mut trace = Trace { exported, id: digest(&exported.id, "", 32), spans: Vec::new() };
    for stream in exported.streams() {
        trace.agent(&stream, "");
    }
    let resource = Attributes::default().text("service.name", "claude-code").text("session.id", &exported.id);
    let scope = json!({"name": "plimsoll", "version": env!("CARGO_PKG_VERSION")});
    let document = json!({"resourceSpans": [{
        "resource": {"attributes": resource.list()},
        "scopeSpans": [{"scope": scope, "spans": trace.spans, "schemaUrl": SCHEMA}],
    }]});
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

struct Trace<'a> {
    exported: &'a Exported,
    id: String,
    spans: Vec<Value>,
}

/// From when to when, nanoseconds since 1970.
#[derive(Clone, Copy)]
struct Span {
    from: u64,
    to: u64,
}

impl Trace<'_> {
    /// A stream: the agent, and everything in it. Answers nothing; the spans are added, the agent's first.
    fn agent(&mut self, stream: &Stream<'_>, parent: &str) {
        let moments = || {
            stream
                .records
                .iter()
                .flat_map(|record| [began(record), moment(record.header.at.as_str())])
                .flatten()
        };
        let whole = Span { from: moments().min().unwrap_or(0), to: moments().max().unwrap_or(0) };
        let id = self.span_id(&format!("stream/{}", stream.name));
        let name = stream.kind.unwrap_or("claude-code");
        let attributes = Attributes::default()
            .text("gen_ai.operation.name", "invoke_agent")
            .text("gen_ai.provider.name", "anthropic")
            .text("gen_ai.agent.name", name)
            .text("plimsoll.stream", stream.name)
            .text("gen_ai.conversation.id", &self.exported.id);
        let attributes = match self.exported.cost() {
            Some(cost) if parent.is_empty() => attributes.number("plimsoll.cost_usd", cost),
            _ => attributes,
        };
        let mut span = self.span(&id, parent, &format!("invoke_agent {name}"), 1, whole, attributes);
        span["events"] =
            stream.records.iter().filter(|record| !record.is_turn()).map(|record| noted(record)).collect();
        self.spans.push(span);
        let mut before = None;
        for record in &stream.records {
            if record.is_turn() {
                self.turn(record, stream, &id, before);
            }
            before = moment(record.header.at.as_str()).or(before);
        }
    }

    fn turn(&mut self, record: &Recorded, stream: &Stream<'_>, agent: &str, before: Option<u64>) {
        let header = &record.header;
        let end = moment(header.at.as_str()).unwrap_or(0);
        let first = began(record).unwrap_or(end).min(end);
        let calls = record.turn().map(plimsoll_domain::Turn::tool_calls).unwrap_or_default();
        let asked =
            Span { from: before.unwrap_or(first).min(first), to: if calls.is_empty() { end } else { first } };
        let id = self.span_id(&format!("{}/chat", header.seq));
        let attributes = attributes::chat(record, &self.exported.id);
        // Where the client spoke for itself, or the record is erased, no model can be named.
        let model = model_of(record).filter(|model| *model != SYNTHETIC);
        let name = model.map_or_else(|| "chat".to_owned(), |model| format!("chat {model}"));
        let mut span = self.span(&id, agent, &name, 3, asked, attributes);
        let reason = header.reason.map(plimsoll_domain::turn::Reason::word);
        // What a call did wrong is said at the call.
        if let Some(reason) = reason
            && calls.iter().all(ToolCall::is_ok)
        {
            let message =
                record.turn().and_then(plimsoll_domain::Turn::failure_of).map(|failure| failure.message);
            fail(&mut span, reason, &message.unwrap_or_default());
        }
        self.spans.push(span);
        for (place, call) in calls.iter().enumerate() {
            let id = self.span_id(&format!("{}/call/{place}", header.seq));
            let took =
                call.ext.get("duration_ms").and_then(Value::as_u64).unwrap_or(0).saturating_mul(1_000_000);
            let span = Span { from: end.saturating_sub(took).max(first), to: end };
            let attributes = attributes::call(call, header.number, &self.exported.id);
            let mut span = self.span(&id, agent, &format!("execute_tool {}", call.name), 1, span, attributes);
            if !call.is_ok() {
                let error = call.ext.get("error").and_then(Value::as_str).unwrap_or_default();
                let is_denied = call.ext.contains_key("denied");
                fail(
                    &mut span,
                    reason.unwrap_or(if is_denied { "tool_denied" } else { "tool_error" }),
                    error,
                );
            }
            self.spans.push(span);
            if let Some(started) = stream.agents.get(&(header.seq, place)) {
                self.agent(started, &id);
            }
        }
    }

    fn span(
        &self,
        id: &str,
        parent: &str,
        name: &str,
        kind: u8,
        span: Span,
        attributes: Attributes,
    ) -> Value {
        let mut made = json!({
            "traceId": self.id,
            "spanId": id,
            "name": name,
            "kind": kind,
            "startTimeUnixNano": span.from.to_string(),
            "endTimeUnixNano": span.to.to_string(),
            "attributes": attributes.list(),
        });
        if !parent.is_empty() {
            made["parentSpanId"] = json!(parent);
        }
        made
    }

    fn span_id(&self, what: &str) -> String {
        digest(&self.exported.id, what, 16)
    }
}

fn fail(span: &mut Value, reason: &str, message: &str) {
    span["status"] = json!({"code": 2, "message": message});
    if let Some(attributes) = span["attributes"].as_array_mut() {
        attributes.extend(Attributes::default().text("error.type", reason).list());
    }
}

/// A record that is no turn, as an event of its agent's span.
fn noted(record: &Recorded) -> Value {
    let kind = json!(record.header.kind);
    let kind = kind.as_str().unwrap_or("other");
    let (line, words) = event(record);
    let attributes = Attributes::default().integer("plimsoll.seq", record.header.seq);
    let attributes = match (&record.body, words) {
        (Body::Event(fields), _) => {
            attributes.text("plimsoll.content", &Value::Object(fields.clone()).to_string())
        }
        _ => attributes.text("plimsoll.content", &line),
    };
    let at = moment(record.header.at.as_str()).unwrap_or(0);
    json!({"timeUnixNano": at.to_string(), "name": format!("plimsoll.{kind}"), "attributes": attributes.list()})
}

fn began(record: &Recorded) -> Option<u64> {
    moment(record.turn()?.ext().get("began_at")?.as_str()?)
}

fn moment(at: &str) -> Option<u64> {
    u64::try_from(clock::parse(at)?.timestamp_nanos_opt()?).ok()
}

fn digest(session: &str, what: &str, length: usize) -> String {
    let mut digest = sha256(&[b"plimsoll/", session.as_bytes(), b"/", what.as_bytes()]);
    digest.truncate(length);
    digest
}
