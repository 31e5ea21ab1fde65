//! What the client tells hooks, where it drops them, and what stands in its result and its transcript: one session in
//! which every hook only writes down what it is told.

use super::harness::{Record, Recorders, agent, session, settings, transcript_lines, world};
use super::probes::Findings;
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::world::World;
use serde_json::{Value, json};

const PROMPT: &str = "Try everything.";
const BRIEF: &str = "Look into it.";

/// What clients have known since 1.0.85.
const OLD: [&str; 8] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "SubagentStop",
    "Stop",
    "PreCompact",
    "SessionEnd",
];
const NEW: [&str; 4] = ["PostToolBatch", "PostToolUseFailure", "SubagentStart", "PostCompact"];

pub(crate) fn look(version: &str, findings: &mut Findings) {
    let model = ScriptedModel::start(answer);
    let world = world(version, &model);
    let recorders = Recorders::new(&world);
    hang_in(&world, &recorders);
    let finished = session(&world, PROMPT, &["--allowedTools", "Bash,Task,Agent"]).run();
    let told = recorders.told();
    for event in OLD {
        findings
            .note(&format!("event.{event}"), told.iter().any(|one| one.by == "old" && one.event() == event));
    }
    for event in NEW {
        findings.note(&format!("event.{event}"), told.iter().any(|one| one.event() == event));
    }
    let again = told.iter().any(|one| one.by == "old" && one.payload["source"] == "compact");
    findings.note("event.SessionStart after a compaction", again);
    findings.note("entry.unknown event", told.iter().any(|one| one.by == "new"));
    findings.note("entry.args", told.iter().any(|one| one.by == "spaced" && one.arguments == "one two"));
    of_payloads(&told, findings);
    of_result(&finished.result(), findings);
    let lines = transcript_lines(&world);
    findings.note("transcript.requestedModel", lines.iter().any(|line| line["requestedModel"].is_string()));
}

/// The events that every client knows in one file, the others in another: an old client drops that one whole.
fn hang_in(world: &World, recorders: &Recorders<'_>) {
    let old = json!({ "type": "command", "command": recorders.program("old"), "args": [] });
    let spaced = recorders.program("a folder/spaced");
    let spaced = json!({ "type": "command", "command": spaced, "args": ["one two"] });
    let new = json!({ "type": "command", "command": recorders.program("new") });
    let mut entries: Vec<(&str, &Value)> = OLD.iter().map(|event| (*event, &old)).collect();
    entries.push(("PreToolUse", &spaced));
    world.write(".claude/settings.json", &settings(&entries));
    let mut entries: Vec<(&str, &Value)> = NEW.iter().map(|event| (*event, &new)).collect();
    entries.extend([("SessionStart", &new), ("NoSuchEvent", &new)]);
    world.write(".claude/settings.local.json", &settings(&entries));
}

/// A call, a failing one, a subagent, a window that fills until it is compacted, and an end.
fn answer(request: &Request) -> Step {
    let (first, step) = (request.first_text(), request.answers());
    if first.contains(BRIEF) && !first.contains(PROMPT) {
        return match step {
            0 => Step::bash("echo inner").usage(3_000),
            _ => Step::text("The report.").usage(3_100),
        };
    }
    match step {
        // After a compaction, and for what the client asks aside.
        _ if !first.contains(PROMPT) => Step::text("done").usage(4_000),
        0 => Step::bash("echo one").usage(5_000),
        1 => Step::bash("exit 3").usage(6_000),
        2 => agent(request, BRIEF).usage(7_000),
        3 => Step::bash("echo two").usage(175_000),
        _ => Step::text("done").usage(9_000),
    }
}

fn of_payloads(told: &[Record], findings: &mut Findings) {
    let of = |event: &'static str| told.iter().filter(move |one| one.event() == event);
    let has = |event: &'static str, field: &str| of(event).any(|one| !one.payload[field].is_null());
    findings.note("payload.tool_use_id", has("PostToolUse", "tool_use_id"));
    findings.note("payload.agent_id", has("PostToolUse", "agent_id"));
    findings.note("payload.last_assistant_message", has("Stop", "last_assistant_message"));
    findings.note("payload.background_tasks", has("Stop", "background_tasks"));
}

fn of_result(result: &Value, findings: &mut Findings) {
    for field in ["total_cost_usd", "permission_denials", "terminal_reason"] {
        findings.note(&format!("result.{field}"), !result[field].is_null());
    }
    let windows = result["modelUsage"].as_object().into_iter().flat_map(|models| models.values());
    findings.note("result.contextWindow", windows.into_iter().any(|model| model["contextWindow"].is_u64()));
}
