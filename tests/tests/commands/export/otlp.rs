//! OTLP/JSON, judged by the `opentelemetry-proto` package.

use crate::export::{RECORDED, export, judged, record_fixture, record_nested, record_subagent};
use plimsoll_testkit::world::World;
use serde_json::Value;
use std::collections::BTreeMap;

fn spans(world: &World, session: &str) -> Vec<Value> {
    let document = export(world, session, "otel");
    assert_eq!(document, export(world, session, "otel"), "the same session is the same trace");
    judged(world, "otlp.py", &document).as_array().unwrap().clone()
}

fn of<'a>(spans: &'a [Value], operation: &str) -> Vec<&'a Value> {
    spans.iter().filter(|span| span["attributes"]["gen_ai.operation.name"] == operation).collect()
}

#[test]
fn every_recorded_session_is_one_trace_of_one_tree() {
    let world = World::without_git();
    for name in RECORDED {
        record_fixture(&world, name);
        let spans = spans(&world, name);
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
        assert!(!of(&spans, "chat").is_empty(), "{name}");
    }
}

#[test]
fn names_and_numbers_are_those_of_the_conventions() {
    let world = World::without_git();
    record_fixture(&world, "compaction");
    let spans = spans(&world, "compaction");
    let chats = of(&spans, "chat");
    let third = &chats[2]["attributes"];
    assert_eq!(chats[2]["name"], "chat claude-opus-5-5");
    assert_eq!(chats[2]["schema"], "https://opentelemetry.io/schemas/gen-ai/0.1.0");
    // An agent inside the process has a name there, and no id.
    assert!(spans.iter().all(|span| span["attributes"]["gen_ai.agent.id"].is_null()));
    assert_eq!(third["gen_ai.usage.input_tokens"], 975_500, "with what came from the cache");
    assert_eq!(third["gen_ai.usage.output_tokens"], 50);
    assert_eq!(third["gen_ai.response.finish_reasons"], serde_json::json!(["tool_use"]));
    assert!(third["gen_ai.response.id"].as_str().unwrap().starts_with("msg_"));
    let call = &of(&spans, "execute_tool")[0];
    assert_eq!(call["name"], "execute_tool Bash");
    assert_eq!(call["attributes"]["gen_ai.tool.call.id"], "toolu_0001_0");
    assert_eq!(call["attributes"]["gen_ai.tool.name"], "Bash");
}

#[test]
fn what_failed_says_why() {
    let world = World::without_git();
    record_fixture(&world, "parallel_tools");
    let spans_of = |name: &str| spans(&world, name);
    let all = spans_of("parallel_tools");
    let errors: Vec<_> = of(&all, "execute_tool")
        .iter()
        .filter(|span| span["failed"] == true)
        .map(|span| span["attributes"]["error.type"].clone())
        .collect();
    assert_eq!(errors, ["tool_error", "tool_error"]);
    record_fixture(&world, "api_error.529_after_tool");
    let all = spans_of("api_error");
    let failed: Vec<_> = of(&all, "chat").into_iter().filter(|span| span["failed"] == true).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["attributes"]["error.type"], "api_error");
    assert_eq!(failed[0]["name"], "chat", "no model answered");
}

#[test]
fn a_subagent_stands_below_the_call_that_started_it() {
    let world = World::without_git();
    let agent = record_subagent(&world);
    let spans = spans(&world, "subagent");
    let agents = of(&spans, "invoke_agent");
    assert_eq!(agents.len(), 2);
    assert_eq!(agents[1]["attributes"]["plimsoll.stream"], agent);
    let parent = spans.iter().find(|span| span["id"] == agents[1]["parent"]).unwrap();
    assert_eq!(parent["name"], "execute_tool Agent");
    assert!(of(&spans, "chat").iter().any(|chat| chat["parent"] == agents[1]["id"]));
}

#[test]
fn subagents_of_subagents_are_further_in_and_lost_ones_are_kept() {
    let world = World::without_git();
    record_nested(&world);
    let page = export(&world, "nested", "html");
    let places = [
        "Subagent one",
        "Subagent two",
        "deep words",
        "two is back",
        "one is back",
        "Subagent lost",
        "lost words",
    ];
    let found: Vec<usize> = places.iter().map(|words| page.find(words).expect(words)).collect();
    assert!(found.is_sorted(), "{found:?}");
    let spans = spans(&world, "nested");
    assert_eq!(
        of(&spans, "invoke_agent").iter().map(|span| span["parent"] == "").collect::<Vec<_>>(),
        [true, false, false, true]
    );
}
