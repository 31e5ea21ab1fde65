//! OTLP/JSON exports, checked with the `opentelemetry-proto` package.

use crate::export::{
    RECORDED_TRANSCRIPTS, export_session, record_fixture, record_nested, record_subagent, run_judge,
};
use plimsoll_testkit::world::World;
use serde_json::Value;
use std::collections::BTreeMap;

fn export_spans(world: &World, session: &str) -> Vec<Value> {
    let document = export_session(world, session, "otel");
    assert_eq!(document, export_session(world, session, "otel"), "the same session is the same trace");
    run_judge(world, "otlp.py", &document).as_array().unwrap().clone()
}

fn spans_of_operation<'a>(spans: &'a [Value], operation: &str) -> Vec<&'a Value> {
    spans.iter().filter(|span| span["attributes"]["gen_ai.operation.name"] == operation).collect()
}

#[test]
fn every_recorded_session_is_one_trace_of_one_tree() {
    let world = World::without_git();
    for name in RECORDED_TRANSCRIPTS {
        record_fixture(&world, name);
        let spans = export_spans(&world, name);
        let by_id: BTreeMap<&str, &Value> =
            spans.iter().map(|span| (span["id"].as_str().unwrap(), span)).collect();
        assert_eq!(by_id.len(), spans.len(), "{name}: ids are unique");
        let roots: Vec<_> = spans.iter().filter(|span| span["parent"] == "").collect();
        assert_eq!(roots.len(), 1, "{name}");
        assert_eq!(roots[0]["name"], "invoke_agent claude-code");
        assert!(roots[0]["events"].as_array().unwrap().contains(&Value::from("plimsoll.prompt")), "{name}");
        for span in &spans {
            assert_eq!(span["trace"], spans[0]["trace"]);
            assert!(
                span["from"].as_u64() <= span["to"].as_u64() && span["from"].as_u64() > Some(0),
                "{name}: {span}"
            );
            let parent = span["parent"].as_str().unwrap();
            assert!(parent.is_empty() || by_id.contains_key(parent), "{name}: {span}");
        }
        assert!(!spans_of_operation(&spans, "chat").is_empty(), "{name}");
    }
}

#[test]
fn span_names_and_values_follow_the_gen_ai_conventions() {
    let world = World::without_git();
    record_fixture(&world, "compaction");
    let spans = export_spans(&world, "compaction");
    let chats = spans_of_operation(&spans, "chat");
    let third = &chats[2]["attributes"];
    assert_eq!(chats[2]["name"], "chat claude-opus-5-5");
    assert_eq!(chats[2]["schema"], "https://opentelemetry.io/schemas/gen-ai/0.1.0");
    // In the conventions, an agent inside the process has a name and no id.
    assert!(spans.iter().all(|span| span["attributes"]["gen_ai.agent.id"].is_null()));
    assert_eq!(third["gen_ai.usage.input_tokens"], 975_500, "with what came from the cache");
    assert_eq!(third["gen_ai.usage.output_tokens"], 50);
    assert_eq!(third["gen_ai.response.finish_reasons"], serde_json::json!(["tool_use"]));
    assert!(third["gen_ai.response.id"].as_str().unwrap().starts_with("msg_"));
    let call = &spans_of_operation(&spans, "execute_tool")[0];
    assert_eq!(call["name"], "execute_tool Bash");
    assert_eq!(call["attributes"]["gen_ai.tool.call.id"], "toolu_0001_0");
    assert_eq!(call["attributes"]["gen_ai.tool.name"], "Bash");
}

#[test]
fn failed_spans_carry_their_error_type() {
    let world = World::without_git();
    record_fixture(&world, "parallel_tools");
    let spans_of = |name: &str| export_spans(&world, name);
    let spans = spans_of("parallel_tools");
    let errors: Vec<_> = spans_of_operation(&spans, "execute_tool")
        .iter()
        .filter(|span| span["failed"] == true)
        .map(|span| span["attributes"]["error.type"].clone())
        .collect();
    assert_eq!(errors, ["tool_error", "tool_error"]);
    record_fixture(&world, "api_error.529_after_tool");
    let spans = spans_of("api_error");
    let failed: Vec<_> =
        spans_of_operation(&spans, "chat").into_iter().filter(|span| span["failed"] == true).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["attributes"]["error.type"], "api_error");
    assert_eq!(failed[0]["name"], "chat", "no model answered");
}

#[test]
fn a_subagents_span_is_below_the_call_that_started_it() {
    let world = World::without_git();
    let agent = record_subagent(&world);
    let spans = export_spans(&world, "subagent");
    let agents = spans_of_operation(&spans, "invoke_agent");
    assert_eq!(agents.len(), 2);
    assert_eq!(agents[1]["attributes"]["plimsoll.stream"], agent);
    let parent = spans.iter().find(|span| span["id"] == agents[1]["parent"]).unwrap();
    assert_eq!(parent["name"], "execute_tool Agent");
    assert!(spans_of_operation(&spans, "chat").iter().any(|chat| chat["parent"] == agents[1]["id"]));
}

#[test]
fn nested_subagents_are_nested_and_orphaned_ones_are_kept() {
    let world = World::without_git();
    record_nested(&world);
    let page = export_session(&world, "nested", "html");
    let places = [
        "Subagent one",
        "Subagent two",
        "deep words",
        "two is back",
        "one is back",
        "Subagent lost",
        "lost words",
    ];
    let positions: Vec<usize> = places.iter().map(|words| page.find(words).expect(words)).collect();
    assert!(positions.is_sorted(), "{positions:?}");
    let spans = export_spans(&world, "nested");
    assert_eq!(
        spans_of_operation(&spans, "invoke_agent")
            .iter()
            .map(|span| span["parent"] == "")
            .collect::<Vec<_>>(),
        [true, false, false, true]
    );
}
