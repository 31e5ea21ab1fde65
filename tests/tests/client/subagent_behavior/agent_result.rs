//! The result of the Agent tool.

use crate::subagent_behavior::agent_call::answer_with_one_frame;
use crate::subagent_behavior::harness::{SubagentTestBench, agent_call_input};
use plimsoll_testkit::scripted_model::{RequestKind, Step};
use serde_json::Value;

const RECORDED_RESPONSE: &str = include_str!("agent_tool_response.json");

/// Returns the value with every scalar replaced by the name of its type.
fn type_shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), type_shape(value))).collect()
        }
        Value::Array(items) => items.iter().map(type_shape).collect(),
        Value::String(_) => "string".into(),
        Value::Number(_) => "number".into(),
        Value::Bool(_) => "bool".into(),
        Value::Null => "null".into(),
    }
}

/// Runs a session that makes one Agent call per change, all in one message. A hook after each call returns the tool's
/// result, changed by this `sed` command.
fn run_with_replaced_results<const N: usize>(changes: [&str; N]) -> SubagentTestBench {
    let prompt = |number: usize| format!("Original prompt, {number}.");
    let bench = SubagentTestBench::new(move |request| match request.kind {
        RequestKind::Main if request.all_tool_results().is_empty() => (0..N)
            .fold(Step::default(), |step, number| {
                step.with_tool_call("Agent", agent_call_input(&prompt(number)))
            }),
        _ => answer_with_one_frame(request),
    });
    let extract_response = r#"s/.*"tool_response":\(.*\),"tool_use_id".*/\1/"#;
    let print_output =
        r#"printf '{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":%s}}'"#;
    for (number, change) in changes.iter().enumerate() {
        let script = format!(
            r#"new=$(printf '%s' "$payload" | sed '{extract_response};{change}'); {print_output} "$new""#
        );
        bench.run_script_if_payload_contains("PostToolUse", &prompt(number), &script);
    }
    bench.run_session();
    bench
}

/// Splits an agent result into the text before the report, the report, and the text after it.
fn split_agent_result(text: &str) -> (&str, &str, &str) {
    let (before, rest) = text.split_once("[Subagent hand-back] ").expect("a hand-back");
    let (_, rest) = rest.split_once("The report follows:\n").expect("a report");
    let (report, after) = rest.split_once("\nagentId: ").expect("an id");
    (before, report, after)
}

const TOOLS_NOTE: &str = "  <tools-used-before-summary>Bash</tools-used-before-summary>\n  \n";

#[test]
fn post_tool_use_gets_the_recorded_shape_and_the_parent_the_last_text() {
    let bench = SubagentTestBench::new(answer_with_one_frame);
    bench.run_session();
    assert_post_tool_use_gets_the_recorded_shape(&bench);
    assert_parent_sees_only_the_last_text(&bench);
}

fn assert_post_tool_use_gets_the_recorded_shape(bench: &SubagentTestBench) {
    let response = &bench.payloads_of_event("PostToolUse").pop().expect("it returned")["tool_response"];
    let recorded: Value = serde_json::from_str(RECORDED_RESPONSE).expect("JSON");
    assert_eq!(type_shape(response), type_shape(&recorded), "{response}");
    assert_eq!(response["content"], recorded["content"], "the client's note, then the child's last words");
    assert_eq!(response["harnessNoteCount"], 1, "so many blocks are the client's");
    assert_eq!(response["agentId"], bench.payloads_of_event("SubagentStart")[0]["agent_id"]);
}

fn assert_parent_sees_only_the_last_text(bench: &SubagentTestBench) {
    let (text, error) = bench.first_tool_result();
    let (before, report, after) = split_agent_result(&text);
    assert_eq!((before, report, error), (TOOLS_NOTE, "  Words of the frame.", false));
    assert!(after.contains("SendMessage") && after.contains("tool_uses: 1"), "{after}");
    let last = bench.model.main_requests().pop().expect("the session goes on").body.to_string();
    for word in ["Said on the way", "Thought of the frame", "printed-in-the-frame"] {
        assert!(!last.contains(word), "{word}");
    }
}

#[test]
fn the_parent_sees_only_the_replaced_result() {
    let replace_content = r#"s/"content":\[[^]]*\]/"content":[{"type":"text","text":"New 1\\nNew 2"},{"type":"text","text":"New 3"}]/"#;
    let remove_harness_fields =
        r#"s/"harnessNoteCount":1,"harnessTailCount":0,"harnessSectionHash":"[^"]*",//"#;
    let changes = [replace_content, &format!("{replace_content};{remove_harness_fields}")];
    let bench = run_with_replaced_results(changes);
    let starts = bench.payloads_of_event("SubagentStart");
    let mut ids: Vec<&str> = starts.iter().filter_map(|start| start["agent_id"].as_str()).collect();
    for (number, change) in changes.iter().enumerate() {
        let (text, _) = bench.tool_result_of_call(number);
        let (before, report, after) = split_agent_result(&text);
        assert_eq!((before, report), ("", "  New 1\n  New 2\n  New 3"), "{change}");
        let id_index = ids.iter().position(|id| after.starts_with(id));
        ids.remove(id_index.unwrap_or_else(|| panic!("the frame around it stays: {after}")));
    }
    let last = bench.model.main_requests().pop().expect("the session goes on").body.to_string();
    assert!(!last.contains("Words of the frame"), "{last}");
    let batch = bench.payloads_of_event("PostToolBatch").pop().expect("the session's");
    let calls = batch["tool_calls"].as_array().expect("calls");
    assert_eq!(calls.len(), 2);
    for call in calls {
        let call = call.to_string();
        assert!(call.contains("New 1") && !call.contains("Words of the frame"), "{call}");
    }
}

#[test]
fn a_replaced_result_of_another_shape_is_silently_ignored() {
    let changes = [
        r#"s/.*/"New"/"#,
        r#"s/.*/[{"type":"text","text":"New"}]/"#,
        r#"s/.*/{"status":"completed","content":[{"type":"text","text":"New"}]}/"#,
        r#"s/Words of the frame/New/;s/"agentId":"[^"]*",//"#,
    ];
    let bench = run_with_replaced_results(changes);
    for (number, change) in changes.iter().enumerate() {
        let (text, error) = bench.tool_result_of_call(number);
        let (before, report, _) = split_agent_result(&text);
        assert_eq!((before, report, error), (TOOLS_NOTE, "  Words of the frame.", false), "{change}");
    }
    let last = bench.model.main_requests().pop().expect("the session goes on").full_text();
    assert!(!last.contains("New"), "{last}");
}
