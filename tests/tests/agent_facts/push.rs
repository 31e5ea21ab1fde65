//! The call of the Agent tool and the hooks around it.

use crate::bench::{Bench, push};
use serde_json::json;
use testkit::scripted_model::{RequestKind, Request, Step};

fn one_frame(request: &Request) -> Step {
    let asked = !request.tool_results().is_empty();
    match request.kind {
        RequestKind::Subagent if asked => Step::text("Words of the frame.").thinking("Hidden."),
        RequestKind::Subagent => Step::bash("echo printed-in-the-frame").say("Said on the way."),
        _ if asked => Step::text("Done."),
        _ => push("Original prompt."),
    }
}

#[test]
fn p1_plain() {
    let bench = Bench::new(one_frame);
    let finished = bench.ask("Work.");
    bench.show(&finished);
}

#[test]
fn p2_updated_input_whole() {
    let bench = Bench::new(one_frame);
    bench.answer_if("PreToolUse", "\"tool_name\":\"Agent\"", json!({"updatedInput": {"description": "d", "prompt": "New prompt.", "subagent_type": "frame", "run_in_background": false}}));
    let finished = bench.ask("Work.");
    bench.show(&finished);
}

#[test]
fn p3_updated_input_part() {
    let bench = Bench::new(one_frame);
    bench.answer_if("PreToolUse", "\"tool_name\":\"Agent\"", json!({"permissionDecision": "allow", "updatedInput": {"prompt": "New prompt."}}));
    let finished = bench.ask("Work.");
    bench.show(&finished);
}

#[test]
fn p4_deny() {
    let bench = Bench::new(one_frame);
    bench.answer_if("PreToolUse", "\"tool_name\":\"Agent\"", json!({"permissionDecision": "deny", "permissionDecisionReason": "Only after push_frame."}));
    let finished = bench.ask("Work.");
    bench.show(&finished);
}


fn out(name: &str, change: &str) {
    let bench = Bench::new(one_frame);
    bench.answer_with("PostToolUse", "\"tool_name\":\"Agent\"", &format!(r#"r=$(printf '%s' "$payload" | sed 's/.*"tool_response":\(.*\),"tool_use_id".*/\1/;{change}'); printf '{{"hookSpecificOutput":{{"hookEventName":"PostToolUse","updatedToolOutput":%s}}}}' "$r""#));
    bench.ask("Work.");
    let last = bench.model.requests().pop().unwrap();
    eprintln!("{name}: {:?}\n   {}\n", last.tool_results(), last.body["messages"].as_array().unwrap().last().unwrap().to_string().chars().take(900).collect::<String>());
}

#[test]
fn q() {
    out("whole shape", "s/Words of the frame/REPLACED/");
    out("no harness", r#"s/Words of the frame/REPLACED/;s/"harnessNoteCount":1,"harnessTailCount":0,"harnessSectionHash":"[^"]*",//"#);
    out("one block count kept", r#"s/"content":\[[^]]*\]/"content":[{"type":"text","text":"REPLACED"}]/"#);
    out("one block count 0", r#"s/"content":\[[^]]*\]/"content":[{"type":"text","text":"REPLACED"}]/;s/"harnessNoteCount":1/"harnessNoteCount":0/"#);
    out("one block no harness", r#"s/"content":\[[^]]*\]/"content":[{"type":"text","text":"REPLACED"}]/;s/"harnessNoteCount":1,"harnessTailCount":0,"harnessSectionHash":"[^"]*",//"#);
    out("multiline", r#"s/"content":\[[^]]*\]/"content":[{"type":"text","text":"REPLACED 1\\nREPLACED 2"},{"type":"text","text":"REPLACED 3"}]/;s/"harnessNoteCount":1,"harnessTailCount":0,"harnessSectionHash":"[^"]*",//"#);
    out("no agentId", r#"s/Words of the frame/REPLACED/;s/"agentId":"[^"]*",//"#);
    out("string", r#"s/.*/"REPLACED"/"#);
    out("content array", r#"s/.*/[{"type":"text","text":"REPLACED"}]/"#);
    out("minimal", r#"s/.*/{"status":"completed","content":[{"type":"text","text":"REPLACED"}]}/"#);
}
