//! Which events and fields the client passes to hooks, when it ignores hooks, and what its result and its transcript contain: one
//! session in which every hook only records its input.

use super::harness::{
    HookRecord, HookRecorders, call_subagent, headless_session, settings_with_hooks, transcript_lines,
    world_with_client,
};
use super::probes::Findings;
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::world::World;
use serde_json::{Value, json};

const PROMPT: &str = "Try everything.";
const BRIEF: &str = "Look into it.";

/// Events that all clients since 1.0.85 know.
const CLASSIC_EVENTS: [&str; 8] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "SubagentStop",
    "Stop",
    "PreCompact",
    "SessionEnd",
];
const NEWER_EVENTS: [&str; 4] = ["PostToolBatch", "PostToolUseFailure", "SubagentStart", "PostCompact"];

pub(crate) fn probe_events(version: &str, findings: &mut Findings) {
    let model = ScriptedModel::start(scripted_answer);
    let world = world_with_client(version, &model);
    let recorders = HookRecorders::new(&world);
    install_recorders(&world, &recorders);
    let finished = headless_session(&world, PROMPT, &["--allowedTools", "Bash,Task,Agent"]).run();
    let records = recorders.read_records();
    for event in CLASSIC_EVENTS {
        findings.record_bool(
            &format!("event.{event}"),
            records.iter().any(|record| record.recorder == "old" && record.event_name() == event),
        );
    }
    for event in NEWER_EVENTS {
        findings.record_bool(
            &format!("event.{event}"),
            records.iter().any(|record| record.event_name() == event),
        );
    }
    let restarted_after_compaction =
        records.iter().any(|record| record.recorder == "old" && record.payload["source"] == "compact");
    findings.record_bool("event.SessionStart after a compaction", restarted_after_compaction);
    findings.record_bool("entry.unknown event", records.iter().any(|record| record.recorder == "new"));
    findings.record_bool(
        "entry.args",
        records.iter().any(|record| record.recorder == "spaced" && record.arguments == "one two"),
    );
    record_payload_findings(&records, findings);
    record_result_findings(&finished.last_result(), findings);
    let lines = transcript_lines(&world);
    findings.record_bool(
        "transcript.requestedModel",
        lines.iter().any(|line| line["requestedModel"].is_string()),
    );
}

/// Writes the events that every client knows into one settings file and the others into another, which an old client ignores.
fn install_recorders(world: &World, recorders: &HookRecorders<'_>) {
    let classic_entry = json!({ "type": "command", "command": recorders.write_recorder("old"), "args": [] });
    let spaced_program = recorders.write_recorder("a folder/spaced");
    let entry_with_arguments = json!({ "type": "command", "command": spaced_program, "args": ["one two"] });
    let newer_entry = json!({ "type": "command", "command": recorders.write_recorder("new") });
    let mut entries: Vec<(&str, &Value)> =
        CLASSIC_EVENTS.iter().map(|event| (*event, &classic_entry)).collect();
    entries.push(("PreToolUse", &entry_with_arguments));
    world.write(".claude/settings.json", &settings_with_hooks(&entries));
    let mut entries: Vec<(&str, &Value)> = NEWER_EVENTS.iter().map(|event| (*event, &newer_entry)).collect();
    entries.extend([("SessionStart", &newer_entry), ("NoSuchEvent", &newer_entry)]);
    world.write(".claude/settings.local.json", &settings_with_hooks(&entries));
}

/// Plays a call, a failing one, a subagent, a window that fills until it is compacted, and an end.
fn scripted_answer(request: &Request) -> Step {
    let (first, step) = (request.first_message_text(), request.assistant_message_count());
    if first.contains(BRIEF) && !first.contains(PROMPT) {
        return match step {
            0 => Step::bash_call("echo inner").with_input_tokens(3_000),
            _ => Step::from_text("The report.").with_input_tokens(3_100),
        };
    }
    match step {
        // After a compaction, and for the client's own side requests.
        _ if !first.contains(PROMPT) => Step::from_text("done").with_input_tokens(4_000),
        0 => Step::bash_call("echo one").with_input_tokens(5_000),
        1 => Step::bash_call("exit 3").with_input_tokens(6_000),
        2 => call_subagent(request, BRIEF).with_input_tokens(7_000),
        3 => Step::bash_call("echo two").with_input_tokens(175_000),
        _ => Step::from_text("done").with_input_tokens(9_000),
    }
}

fn record_payload_findings(records: &[HookRecord], findings: &mut Findings) {
    let records_of = |event: &'static str| records.iter().filter(move |record| record.event_name() == event);
    let has_field =
        |event: &'static str, field: &str| records_of(event).any(|record| !record.payload[field].is_null());
    findings.record_bool("payload.tool_use_id", has_field("PostToolUse", "tool_use_id"));
    findings.record_bool("payload.agent_id", has_field("PostToolUse", "agent_id"));
    findings.record_bool("payload.last_assistant_message", has_field("Stop", "last_assistant_message"));
    findings.record_bool("payload.background_tasks", has_field("Stop", "background_tasks"));
}

fn record_result_findings(result: &Value, findings: &mut Findings) {
    for field in ["total_cost_usd", "permission_denials", "terminal_reason"] {
        findings.record_bool(&format!("result.{field}"), !result[field].is_null());
    }
    let windows = result["modelUsage"].as_object().into_iter().flat_map(|models| models.values());
    findings.record_bool(
        "result.contextWindow",
        windows.into_iter().any(|model| model["contextWindow"].is_u64()),
    );
}
