//! What comes back from the Agent tool.

use crate::subagent_behavior::agent_call::one_frame;
use crate::subagent_behavior::harness::{Bench, frame};
use plimsoll_testkit::scripted_model::{RequestKind, Step};
use serde_json::Value;

const RECORDED: &str = include_str!("agent_tool_response.json");

/// The same with every number, text and id replaced by the name of its kind.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), shape(value))).collect(),
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::String(_) => "string".into(),
        Value::Number(_) => "number".into(),
        Value::Bool(_) => "bool".into(),
        Value::Null => "null".into(),
    }
}

/// A session that pushes as many frames as there are changes, all at once, and whose hook gives the Agent tool's result back,
/// each changed by one of these commands of `sed`.
fn replaced<const N: usize>(changes: [&str; N]) -> Bench {
    let prompt = |number: usize| format!("Original prompt, {number}.");
    let bench = Bench::new(move |request| match request.kind {
        RequestKind::Main if request.tool_results().is_empty() => {
            (0..N).fold(Step::default(), |step, number| step.tool("Agent", frame(&prompt(number))))
        }
        _ => one_frame(request),
    });
    let cut = r#"s/.*"tool_response":\(.*\),"tool_use_id".*/\1/"#;
    let print = r#"printf '{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":%s}}'"#;
    for (number, change) in changes.iter().enumerate() {
        let script = format!(r#"new=$(printf '%s' "$payload" | sed '{cut};{change}'); {print} "$new""#);
        bench.answer_with("PostToolUse", &prompt(number), &script);
    }
    bench.run();
    bench
}

/// The parts of a hand-back: what stands before the report, the report, what stands after it.
fn parts(text: &str) -> (&str, &str, &str) {
    let (before, rest) = text.split_once("[Subagent hand-back] ").expect("a hand-back");
    let (_, rest) = rest.split_once("The report follows:\n").expect("a report");
    let (report, after) = rest.split_once("\nagentId: ").expect("an id");
    (before, report, after)
}

const TOOLS_NOTE: &str = "  <tools-used-before-summary>Bash</tools-used-before-summary>\n  \n";

#[test]
fn the_hook_after_the_call_gets_a_result_of_the_recorded_shape_and_the_parent_the_last_words_alone() {
    let bench = Bench::new(one_frame);
    bench.run();
    the_hook_after_the_call_gets_a_result_of_the_recorded_shape(&bench);
    the_parent_sees_the_last_words_of_the_child_and_nothing_else_of_it(&bench);
}

fn the_hook_after_the_call_gets_a_result_of_the_recorded_shape(bench: &Bench) {
    let response = &bench.noted_of("PostToolUse").pop().expect("it returned")["tool_response"];
    let recorded: Value = serde_json::from_str(RECORDED).expect("JSON");
    assert_eq!(shape(response), shape(&recorded), "{response}");
    assert_eq!(response["content"], recorded["content"], "the client's note, then the child's last words");
    assert_eq!(response["harnessNoteCount"], 1, "so many blocks are the client's");
    assert_eq!(response["agentId"], bench.noted_of("SubagentStart")[0]["agent_id"]);
}

fn the_parent_sees_the_last_words_of_the_child_and_nothing_else_of_it(bench: &Bench) {
    let (text, error) = bench.handed_back();
    let (before, report, after) = parts(&text);
    assert_eq!((before, report, error), (TOOLS_NOTE, "  Words of the frame.", false));
    assert!(after.contains("SendMessage") && after.contains("tool_uses: 1"), "{after}");
    let last = bench.model.main_requests().pop().expect("the session goes on").body.to_string();
    for word in ["Said on the way", "Thought of the frame", "printed-in-the-frame"] {
        assert!(!last.contains(word), "{word}");
    }
}

#[test]
fn a_replaced_result_is_all_the_parent_sees() {
    let content = r#"s/"content":\[[^]]*\]/"content":[{"type":"text","text":"New 1\\nNew 2"},{"type":"text","text":"New 3"}]/"#;
    let harness = r#"s/"harnessNoteCount":1,"harnessTailCount":0,"harnessSectionHash":"[^"]*",//"#;
    let changes = [content, &format!("{content};{harness}")];
    let bench = replaced(changes);
    let starts = bench.noted_of("SubagentStart");
    let mut ids: Vec<&str> = starts.iter().filter_map(|start| start["agent_id"].as_str()).collect();
    for (number, change) in changes.iter().enumerate() {
        let (text, _) = bench.handed_back_by(number);
        let (before, report, after) = parts(&text);
        assert_eq!((before, report), ("", "  New 1\n  New 2\n  New 3"), "{change}");
        let own = ids.iter().position(|id| after.starts_with(id));
        ids.remove(own.unwrap_or_else(|| panic!("the frame around it stays: {after}")));
    }
    let last = bench.model.main_requests().pop().expect("the session goes on").body.to_string();
    assert!(!last.contains("Words of the frame"), "{last}");
    let batch = bench.noted_of("PostToolBatch").pop().expect("the session's");
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
    let bench = replaced(changes);
    for (number, change) in changes.iter().enumerate() {
        let (text, error) = bench.handed_back_by(number);
        let (before, report, _) = parts(&text);
        assert_eq!((before, report, error), (TOOLS_NOTE, "  Words of the frame.", false), "{change}");
    }
    let last = bench.model.main_requests().pop().expect("the session goes on").text();
    assert!(!last.contains("New"), "{last}");
}
