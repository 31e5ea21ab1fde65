//! Agent Trajectory Interchange Format 1.8. Prompts are the user's steps, turns the agent's, everything else the
//! system's; each subagent is a trajectory of its own inside, named by the result of the call that started it.

use super::exported::{Exported, SYNTHETIC, Stream, model_of};
use crate::render::visible::event;
use plimsoll_domain::Turn;
use plimsoll_domain::log_line::{RecordKind, Tokens};
use plimsoll_domain::turn::ToolCall;
use plimsoll_flows::turns::{Body, Recorded};
use serde_json::{Map, Value, json};

pub(crate) fn render(exported: &Exported) -> String {
    let mut streams = exported.streams().into_iter();
    let own = streams.next();
    let mut steps = Vec::new();
    let mut inside = Vec::new();
    if let Some(own) = &own {
        steps = all_steps(own);
        inside.extend(own.agents.values().map(|agent| trajectory(exported, agent)));
    }
    // Their parents are not in the log.
    inside.extend(streams.map(|stream| trajectory(exported, &stream)));
    let mut totals = own.as_ref().map(|own| metrics(own, &steps)).unwrap_or_default();
    if let Some(cost) = exported.cost() {
        totals.insert("total_cost_usd".to_owned(), json!(cost));
    }
    let root = document(exported, &exported.id, &steps, &totals, &inside, exported.model());
    let mut text = serde_json::to_string_pretty(&root).unwrap_or_default();
    text.push('\n');
    text
}

/// A subagent's trajectory.
fn trajectory(exported: &Exported, stream: &Stream<'_>) -> Value {
    let steps = all_steps(stream);
    let totals = metrics(stream, &steps);
    let inside: Vec<Value> = stream.agents.values().map(|agent| trajectory(exported, agent)).collect();
    let model = stream.records.iter().filter_map(|record| model_of(record)).find(|model| *model != SYNTHETIC);
    let mut document = document(exported, stream.name, &steps, &totals, &inside, model);
    document["extra"]["agent_type"] = json!(stream.kind);
    document
}

fn document(
    exported: &Exported,
    id: &str,
    steps: &[Value],
    totals: &Map<String, Value>,
    inside: &[Value],
    model: Option<&str>,
) -> Value {
    let mut document = json!({
        "schema_version": "ATIF-v1.8",
        "session_id": exported.id,
        "trajectory_id": id,
        "agent": {"name": "claude-code", "version": "unknown", "model_name": model},
        "steps": steps,
        "notes": "From Plimsoll's turn log. prompt_tokens counts all input tokens, cached or not; total_cost_usd is the cost of the whole session as reported by Claude Code, subagents included.",
        "final_metrics": totals,
        "extra": {"exported_by": concat!("plimsoll ", env!("CARGO_PKG_VERSION"))},
    });
    if id == exported.id
        && let Some(window) = &exported.window
    {
        document["extra"]["context_window"] = json!(window.tokens);
    }
    if !inside.is_empty() {
        document["subagent_trajectories"] = json!(inside);
    }
    document
}

fn all_steps(stream: &Stream<'_>) -> Vec<Value> {
    let step = |(place, record): (usize, &&Recorded)| {
        let mut step = step(record, stream);
        step["step_id"] = json!(place + 1);
        if record.header.at.is_known() {
            step["timestamp"] = json!(record.header.at);
        }
        step["extra"]["seq"] = json!(record.header.seq);
        step["extra"]["kind"] = json!(record.header.kind);
        step
    };
    let records = stream.records.iter().filter(|record| record.header.kind != RecordKind::Cost);
    records.enumerate().map(step).collect()
}

fn step(record: &Recorded, stream: &Stream<'_>) -> Value {
    if record.is_turn() {
        return agent_step(record, stream);
    }
    let Body::Event(fields) = &record.body else {
        return json!({"source": "system", "message": event(record).0, "extra": {}});
    };
    let text = fields.get("text").and_then(Value::as_str);
    match record.header.kind {
        RecordKind::Prompt if fields.get("meta") != Some(&json!(true)) => {
            json!({"source": "user", "message": text.unwrap_or_default(), "extra": {}})
        }
        RecordKind::Prompt | RecordKind::Context => {
            json!({"source": "system", "message": text.unwrap_or_default(), "extra": {"from": fields.get("from")}})
        }
        _ => json!({"source": "system", "message": event(record).0, "extra": {"content": fields}}),
    }
}

fn agent_step(record: &Recorded, stream: &Stream<'_>) -> Value {
    let header = &record.header;
    let extra = json!({"number": header.number, "success": header.success, "failure": header.reason});
    let mut step = json!({"source": "agent", "extra": extra});
    if let Some(usage) = header.usage {
        step["metrics"] = json!({
            "prompt_tokens": usage.sent(),
            "completion_tokens": usage.output,
            "cached_tokens": usage.cache_read,
            "extra": {"cache_creation_tokens": usage.cache_creation, "uncached_tokens": usage.input},
        });
    }
    let turn = match &record.body {
        Body::Turn(turn) => turn,
        Body::DecodeError(why) => {
            step["message"] = json!(format!("[cannot be read: {why}]"));
            return step;
        }
        _ => {
            step["message"] = json!("[erased]");
            return step;
        }
    };
    let model = model_of(record);
    step["message"] = json!(turn.text());
    if model == Some(SYNTHETIC) {
        // The client spoke for itself; no model was asked.
        step["llm_call_count"] = json!(0);
        step.as_object_mut().map(|step| step.remove("metrics"));
    } else {
        step["llm_call_count"] = json!(1);
        step["model_name"] = json!(model);
        step["reasoning_content"] = json!(reasoning(turn));
    }
    for name in
        ["message", "stop_reason", "request_id", "requested_model", "api_error", "reasoning", "began_at"]
    {
        if let Some(value) = turn.ext().get(name) {
            step["extra"][name] = value.clone();
        }
    }
    if let Some(failure) = turn.failure_of() {
        step["extra"]["failure_message"] = json!(failure.message);
    }
    if !turn.tool_calls().is_empty() {
        let calls = || turn.tool_calls().iter().enumerate();
        step["tool_calls"] = calls().map(|(place, call)| asked(call, place)).collect();
        let results: Vec<Value> =
            calls().map(|(place, call)| returned(call, place, record, stream)).collect();
        step["observation"] = json!({"results": results});
    }
    step
}

/// The model's reasoning, where the transcript had its words.
fn reasoning(turn: &Turn) -> Option<String> {
    let words = |block: &plimsoll_domain::turn::Block| {
        let block = block.value();
        (block["type"] == "thinking").then(|| block["thinking"].as_str().unwrap_or_default().to_owned())
    };
    let words: Vec<String> = turn.raw_response().iter().filter_map(words).collect();
    let words = words.join("\n");
    (!words.is_empty()).then_some(words)
}

fn call_id(call: &ToolCall, place: usize) -> String {
    if call.id().is_empty() { format!("call-{place}") } else { call.id().to_owned() }
}

fn asked(call: &ToolCall, place: usize) -> Value {
    let arguments = if call.args.is_object() { call.args.clone() } else { json!({"unparsed": call.args}) };
    json!({"tool_call_id": call_id(call, place), "function_name": call.name, "arguments": arguments})
}

fn returned(call: &ToolCall, place: usize, record: &Recorded, stream: &Stream<'_>) -> Value {
    let extra: Map<String, Value> = call
        .ext
        .iter()
        .filter(|(name, _)| *name != "id")
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let mut result = json!({"source_call_id": call_id(call, place), "extra": extra});
    result["content"] = if call.result.is_null() { Value::Null } else { json!(call.result_text()) };
    if let Some(agent) = stream.agents.get(&(record.header.seq, place)) {
        result["subagent_trajectory_ref"] = json!([{"trajectory_id": agent.name}]);
    }
    result
}

/// The sums over the steps of one trajectory.
fn metrics(stream: &Stream<'_>, steps: &[Value]) -> Map<String, Value> {
    let usages: Vec<Tokens> = stream.records.iter().filter_map(|record| record.header.usage).collect();
    let sum = |of: fn(&Tokens) -> u64| json!(usages.iter().map(of).fold(0, u64::saturating_add));
    Map::from_iter([
        ("total_prompt_tokens".to_owned(), sum(|usage| usage.sent())),
        ("total_completion_tokens".to_owned(), sum(|usage| usage.output)),
        ("total_cached_tokens".to_owned(), sum(|usage| usage.cache_read)),
        ("total_steps".to_owned(), json!(steps.len())),
    ])
}
