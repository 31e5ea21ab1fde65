//! Renders a turn as a collapsible element: the summary line shows its outcome, the details everything else.

use super::{render_preformatted, render_subagent};
use crate::commands::turns::export::exported_session::{AgentStream, turn_model};
use crate::render::visible::{call_arguments_text, pretty_json, show_hidden_characters, time_of_day_or_text};
use maud::{Markup, html};
use plimsoll_domain::Turn;
use plimsoll_domain::log_line::MAIN_STREAM;
use plimsoll_domain::text::{format_tokens, to_safe_single_line, truncate_end};
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
                time { (time_of_day_or_text(header.recorded_at.as_str())) } " "
                b.number { (number) } " "
                (render_tools_failure_summary_and_tokens(record))
            }
            @match &record.body {
                RecordBody::Turn(turn) => { (render_turn_details(record, turn, stream)) }
                RecordBody::DecodeError(reason) => { p.gone { "[cannot be read: " (show_hidden_characters(reason)) "]" } }
                _ => { p.gone { "[erased]" } }
            }
        }
    }
}

fn render_tools_failure_summary_and_tokens(record: &LoggedRecord) -> Markup {
    let turn = record.turn();
    let calls = turn.map(Turn::tool_calls).unwrap_or_default();
    let single_line_text = turn.map(|turn| truncate_end(&to_safe_single_line(&turn.joined_text()), 120));
    let summary = match (&record.body, single_line_text) {
        (_, Some(text)) if !text.is_empty() => text,
        (RecordBody::Turn(_), _) => calls
            .first()
            .map(|call| truncate_end(&to_safe_single_line(&call_arguments_text(&call.args)), 120))
            .unwrap_or_default(),
        (RecordBody::DecodeError(_), _) => "[cannot be read]".to_owned(),
        _ => "[erased]".to_owned(),
    };
    html! {
        @for call in calls { span.tool.bad[!call.is_ok()] { (show_hidden_characters(&to_safe_single_line(&call.name))) } " " }
        @if let Some(reason) = record.header.failure_reason { span.reason { (reason.as_str()) } " " }
        span.what { (show_hidden_characters(&summary)) }
        @if let Some(usage) = record.header.usage { " " span.tokens { (format_tokens(usage.total_input())) } }
    }
}

fn render_turn_details(record: &LoggedRecord, turn: &Turn, stream: &AgentStream<'_>) -> Markup {
    let failure_without_failed_call =
        turn.parsed_failure().filter(|_| turn.tool_calls().iter().all(ToolCall::is_ok));
    let usage_text = record.header.usage.map(|usage| {
        format!(
            "input {}, {} from the cache, {} into the cache, output {}",
            usage.input, usage.cache_read, usage.cache_creation, usage.output
        )
    });
    let stop_reason =
        turn.ext().get("stop_reason").and_then(Value::as_str).map(|stop| format!("stopped: {stop}"));
    let optional_notes = [
        turn_model(record).map(str::to_owned),
        usage_text,
        stop_reason,
        Some(record.header.recorded_at.clone().to_string()),
    ];
    let notes: Vec<String> = optional_notes.into_iter().flatten().collect();
    html! {
        @for block in turn.raw_response() { (render_block_unless_tool_call(block)) }
        @for (call_index, call) in turn.tool_calls().iter().enumerate() {
            (render_call(call))
            @if let Some(subagent) = stream.subagents.get(&(record.header.sequence_number, call_index)) { (render_subagent(subagent, "")) }
        }
        @if let Some(failure) = failure_without_failed_call { p.gone { (show_hidden_characters(&failure.message)) } }
        p.note { (show_hidden_characters(&notes.join(" · "))) }
    }
}

fn render_block_unless_tool_call(block: &Block) -> Markup {
    let value = block.parse_value();
    let visible_field_text = |name: &str| show_hidden_characters(value[name].as_str().unwrap_or_default());
    match value["type"].as_str().unwrap_or_default() {
        "text" => render_preformatted("words", &visible_field_text("text")),
        "thinking" if visible_field_text("thinking").is_empty() => html! {},
        "thinking" => {
            html! { details.reasoning { summary { "reasoning" } (render_preformatted("words", &visible_field_text("thinking"))) } }
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
                (show_hidden_characters(&to_safe_single_line(&call.name))) " "
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
            @for (media_type, data) in call.result.as_array().into_iter().flatten().filter_map(supported_image_type_and_base64_data) {
                img alt="what the tool returned" src=(format!("data:{media_type};base64,{data}"));
            }
        }
    }
}

/// Returns the media type and the base64 data of an image that a tool returned; `None` if the type is not
/// supported or the data is not valid.
fn supported_image_type_and_base64_data(block: &Value) -> Option<(&str, &str)> {
    let media_type = block["source"]["media_type"].as_str()?;
    let data = block["source"]["data"].as_str()?;
    let is_base64_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let is_supported_type = matches!(media_type, "image/png" | "image/jpeg" | "image/gif" | "image/webp");
    (is_supported_type && !data.is_empty() && data.bytes().all(is_base64_byte)).then_some((media_type, data))
}
