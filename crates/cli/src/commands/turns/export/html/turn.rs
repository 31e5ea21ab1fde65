//! Renders a turn: one line with its outcome, and everything else collapsed.

use super::{render_preformatted, render_subagent};
use crate::commands::turns::export::exported_session::{AgentStream, turn_model};
use crate::render::visible::{call_arguments_text, clock_time, pretty_json, show_hidden_characters};
use maud::{Markup, html};
use plimsoll_domain::Turn;
use plimsoll_domain::log_line::MAIN_STREAM;
use plimsoll_domain::text::{format_tokens, to_single_line, truncate_end};
use plimsoll_domain::turn::{Block, ToolCall};
use plimsoll_flows::turns::{LoggedRecord, RecordBody};
use serde_json::Value;

pub(super) fn render_turn(record: &LoggedRecord, stream: &AgentStream<'_>) -> Markup {
    let header = &record.header;
    let class = if header.succeeded == Some(false) { "turn failed" } else { "turn" };
    let number = header.turn_number.unwrap_or(0);
    let id = if stream.name == MAIN_STREAM {
        format!("t{number}")
    } else {
        format!("s{}", header.sequence_number)
    };
    html! {
        details class=(class) id=(id) data-turn=(number) {
            summary {
                time { (clock_time(header.recorded_at.as_str())) } " "
                b.number { (number) } " "
                (render_headline(record))
            }
            @match &record.body {
                RecordBody::Turn(turn) => { (render_turn_details(record, turn, stream)) }
                RecordBody::DecodeError(reason) => { p.gone { "[cannot be read: " (show_hidden_characters(reason)) "]" } }
                _ => { p.gone { "[erased]" } }
            }
        }
    }
}

fn render_headline(record: &LoggedRecord) -> Markup {
    let turn = record.turn();
    let calls = turn.map(Turn::tool_calls).unwrap_or_default();
    let first_text = turn.map(|turn| truncate_end(&to_single_line(&turn.joined_text()), 120));
    let summary = match (&record.body, first_text) {
        (_, Some(text)) if !text.is_empty() => text,
        (RecordBody::Turn(_), _) => calls
            .first()
            .map(|call| truncate_end(&to_single_line(&call_arguments_text(&call.args)), 120))
            .unwrap_or_default(),
        (RecordBody::DecodeError(_), _) => "[cannot be read]".to_owned(),
        _ => "[erased]".to_owned(),
    };
    html! {
        @for call in calls { span.tool.bad[!call.is_ok()] { (show_hidden_characters(&to_single_line(&call.name))) } " " }
        @if let Some(reason) = record.header.failure_reason { span.reason { (reason.as_str()) } " " }
        span.what { (show_hidden_characters(&summary)) }
        @if let Some(usage) = record.header.usage { " " span.tokens { (format_tokens(usage.total_input())) } }
    }
}

fn render_turn_details(record: &LoggedRecord, turn: &Turn, stream: &AgentStream<'_>) -> Markup {
    let failure = turn.parsed_failure().filter(|_| turn.tool_calls().iter().all(ToolCall::is_ok));
    let usage = record.header.usage.map(|usage| {
        format!(
            "input {}, {} from the cache, {} into the cache, output {}",
            usage.input, usage.cache_read, usage.cache_creation, usage.output
        )
    });
    let stop_reason =
        turn.ext().get("stop_reason").and_then(Value::as_str).map(|stop| format!("stopped: {stop}"));
    let notes = [
        turn_model(record).map(str::to_owned),
        usage,
        stop_reason,
        Some(record.header.recorded_at.clone().to_string()),
    ];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    html! {
        @for block in turn.raw_response() { (render_block(block)) }
        @for (call_index, call) in turn.tool_calls().iter().enumerate() {
            (render_call(call))
            @if let Some(subagent) = stream.subagents.get(&(record.header.sequence_number, call_index)) { (render_subagent(subagent, "")) }
        }
        @if let Some(failure) = failure { p.gone { (show_hidden_characters(&failure.message)) } }
        p.note { (show_hidden_characters(&notes.join(" · "))) }
    }
}

fn render_block(block: &Block) -> Markup {
    let value = block.parse_value();
    let text = |name: &str| show_hidden_characters(value[name].as_str().unwrap_or_default());
    match value["type"].as_str().unwrap_or_default() {
        "text" => render_preformatted("words", &text("text")),
        "thinking" if text("thinking").is_empty() => html! {},
        "thinking" => {
            html! { details.reasoning { summary { "reasoning" } (render_preformatted("words", &text("thinking"))) } }
        }
        "tool_use" | "server_tool_use" | "mcp_tool_use" => html! {},
        _ => render_preformatted("code", &pretty_json(&value)),
    }
}

fn render_call(call: &ToolCall) -> Markup {
    let duration_ms = call.ext.get("duration_ms").and_then(Value::as_u64);
    let result = show_hidden_characters(&call.result_text());
    html! {
        div.call.bad[!call.is_ok()] {
            h3 {
                (show_hidden_characters(&to_single_line(&call.name))) " "
                small {
                    @if call.is_ok() { "ok" } @else { "failed" }
                    @if let Some(milliseconds) = duration_ms { " · " (milliseconds) " ms" }
                }
            }
            (render_preformatted("code", &call_arguments_text(&call.args)))
            @if call.result.is_null() {
                p.gone { "It did not return." }
            } @else if result.is_empty() {
                p.gone { "It returned nothing." }
            } @else {
                (render_preformatted("result", &result))
            }
            @for (kind, data) in call.result.as_array().into_iter().flatten().filter_map(image_type_and_data) {
                img alt="what the tool returned" src=(format!("data:{kind};base64,{data}"));
            }
        }
    }
}

/// Returns the media type and the base64 data of an image that a tool returned.
fn image_type_and_data(block: &Value) -> Option<(&str, &str)> {
    let media_type = block["source"]["media_type"].as_str()?;
    let data = block["source"]["data"].as_str()?;
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let is_known_type = matches!(media_type, "image/png" | "image/jpeg" | "image/gif" | "image/webp");
    (is_known_type && !data.is_empty() && data.bytes().all(is_base64)).then_some((media_type, data))
}
