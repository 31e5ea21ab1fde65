//! A turn on the page: one line with its outcome, and everything else folded behind it.

use super::{agent, pre};
use crate::commands::turns::export::exported::{Stream, model_of};
use crate::render::visible::{asked, pretty, time, visible};
use maud::{Markup, html};
use plimsoll_domain::Turn;
use plimsoll_domain::log_line::MAIN;
use plimsoll_domain::text::{clip, one_line, tokens};
use plimsoll_domain::turn::{Block, ToolCall};
use plimsoll_flows::turns::{Body, Recorded};
use serde_json::Value;

pub(super) fn render(record: &Recorded, stream: &Stream<'_>) -> Markup {
    let header = &record.header;
    let class = if header.success == Some(false) { "turn failed" } else { "turn" };
    let number = header.number.unwrap_or(0);
    let id = if stream.name == MAIN { format!("t{number}") } else { format!("s{}", header.seq) };
    html! {
        details class=(class) id=(id) data-turn=(number) {
            summary {
                time { (time(header.at.as_str())) } " "
                b.number { (number) } " "
                (headline(record))
            }
            @match &record.body {
                Body::Turn(turn) => { (whole(record, turn, stream)) }
                Body::DecodeError(why) => { p.gone { "[cannot be read: " (visible(why)) "]" } }
                _ => { p.gone { "[erased]" } }
            }
        }
    }
}

fn headline(record: &Recorded) -> Markup {
    let turn = record.turn();
    let calls = turn.map(Turn::tool_calls).unwrap_or_default();
    let first = turn.map(|turn| clip(&one_line(&turn.text()), 120));
    let words = match (&record.body, first) {
        (_, Some(text)) if !text.is_empty() => text,
        (Body::Turn(_), _) => {
            calls.first().map(|call| clip(&one_line(&asked(&call.args)), 120)).unwrap_or_default()
        }
        (Body::DecodeError(_), _) => "[cannot be read]".to_owned(),
        _ => "[erased]".to_owned(),
    };
    html! {
        @for call in calls { span.tool.bad[!call.is_ok()] { (visible(&one_line(&call.name))) } " " }
        @if let Some(reason) = record.header.reason { span.reason { (reason.word()) } " " }
        span.what { (visible(&words)) }
        @if let Some(usage) = record.header.usage { " " span.tokens { (tokens(usage.sent())) } }
    }
}

fn whole(record: &Recorded, turn: &Turn, stream: &Stream<'_>) -> Markup {
    let failure = turn.failure_of().filter(|_| turn.tool_calls().iter().all(ToolCall::is_ok));
    let usage = record.header.usage.map(|usage| {
        format!(
            "input {}, {} from the cache, {} into the cache, output {}",
            usage.input, usage.cache_read, usage.cache_creation, usage.output
        )
    });
    let stop = turn.ext().get("stop_reason").and_then(Value::as_str).map(|stop| format!("stopped: {stop}"));
    let notes =
        [model_of(record).map(str::to_owned), usage, stop, Some(record.header.at.clone().to_string())];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    html! {
        @for block in turn.raw_response() { (part(block)) }
        @for (place, one) in turn.tool_calls().iter().enumerate() {
            (call(one))
            @if let Some(started) = stream.agents.get(&(record.header.seq, place)) { (agent(started, "")) }
        }
        @if let Some(failure) = failure { p.gone { (visible(&failure.message)) } }
        p.note { (visible(&notes.join(" · "))) }
    }
}

fn part(block: &Block) -> Markup {
    let value = block.value();
    let text = |name: &str| visible(value[name].as_str().unwrap_or_default());
    match value["type"].as_str().unwrap_or_default() {
        "text" => pre("words", &text("text")),
        "thinking" if text("thinking").is_empty() => html! {},
        "thinking" => {
            html! { details.reasoning { summary { "reasoning" } (pre("words", &text("thinking"))) } }
        }
        "tool_use" | "server_tool_use" | "mcp_tool_use" => html! {},
        _ => pre("code", &pretty(&value)),
    }
}

fn call(call: &ToolCall) -> Markup {
    let took = call.ext.get("duration_ms").and_then(Value::as_u64);
    let result = visible(&call.result_text());
    html! {
        div.call.bad[!call.is_ok()] {
            h3 {
                (visible(&one_line(&call.name))) " "
                small {
                    @if call.is_ok() { "ok" } @else { "failed" }
                    @if let Some(took) = took { " · " (took) " ms" }
                }
            }
            (pre("code", &asked(&call.args)))
            @if call.result.is_null() {
                p.gone { "It did not return." }
            } @else if result.is_empty() {
                p.gone { "It returned nothing." }
            } @else {
                (pre("result", &result))
            }
            @for (kind, data) in call.result.as_array().into_iter().flatten().filter_map(picture) {
                img alt="what the tool returned" src=(format!("data:{kind};base64,{data}"));
            }
        }
    }
}

/// A picture that the model was shown: its kind, and its bytes in base 64.
fn picture(block: &Value) -> Option<(&str, &str)> {
    let kind = block["source"]["media_type"].as_str()?;
    let data = block["source"]["data"].as_str()?;
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let is_known = matches!(kind, "image/png" | "image/jpeg" | "image/gif" | "image/webp");
    (is_known && !data.is_empty() && data.bytes().all(is_base64)).then_some((kind, data))
}
