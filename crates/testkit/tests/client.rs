//! The real client against the scripted model.
use plimsoll_testkit::scripted_model::{RequestKind, ScriptedModel, Step};
use plimsoll_testkit::world::{Finished, World};
use serde_json::json;
use std::time::Duration;

fn ask(model: &ScriptedModel, args: &[&str]) -> Finished {
    let mut world = World::new().without_plimsoll();
    world.use_model(model);
    let all = [&["-p", "hi", "--output-format", "stream-json", "--verbose"], args].concat();
    world.claude(&all).timeout(Duration::from_secs(30)).run()
}

#[test]
fn an_answer_and_its_usage_come_from_the_script() {
    let model =
        ScriptedModel::steps(vec![Step::text("Hello from the script").usage(12_345).output_tokens(7)]);
    let finished = ask(&model, &[]).expect_success();
    let result = finished.result();
    assert_eq!(result["result"], "Hello from the script");
    assert_eq!(result["usage"]["input_tokens"], 10);
    assert_eq!(result["usage"]["cache_read_input_tokens"], 12_335);
    assert_eq!(result["usage"]["output_tokens"], 7);
    assert_eq!(model.main_requests().len(), 1);
    assert!(model.main_requests()[0].last_text().contains("hi"));
}

#[test]
fn usage_can_follow_the_size_of_the_request() {
    let model = ScriptedModel::steps(vec![Step::text("x").auto_usage()]);
    let result = ask(&model, &[]).expect_success().result();
    assert_eq!(result["usage"]["input_tokens"], model.requests()[0].bytes() / 4);
}

#[test]
fn a_tool_call_makes_the_round_trip() {
    let script = vec![
        Step::bash("echo round-$((1+1))-trip").thinking("let me see"),
        Step::text("done").chunks(2, Duration::ZERO),
    ];
    let model = ScriptedModel::steps(script);
    let result = ask(&model, &["--allowedTools", "Bash"]).expect_success().result();
    assert_eq!(result["result"], "done");
    let requests = model.main_requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].last_text().contains("round-2-trip"), "{}", requests[1].last_text());
    let (id, output) = &requests[1].tool_results()[0];
    assert_eq!(id, "toolu_0001_0");
    assert!(output.contains("round-2-trip"));
}

#[test]
fn several_tool_calls_of_one_answer_come_back_together() {
    let model = ScriptedModel::steps(vec![
        Step::bash("echo one").tool("Bash", json!({ "command": "echo two", "description": "d" })),
        Step::text("done"),
    ]);
    ask(&model, &["--allowedTools", "Bash"]).expect_success();
    assert_eq!(model.main_requests()[1].tool_results().len(), 2);
}

fn check_error(step: Step, terminal_reason: &str, status: u64) {
    let model = ScriptedModel::steps(vec![step]);
    let finished = ask(&model, &[]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let result = finished.result();
    assert_eq!(result["is_error"], true);
    assert_eq!(result["terminal_reason"], terminal_reason, "{result}");
    assert_eq!(result["api_error_status"], status, "{result}");
}

#[test]
fn api_errors_reach_the_result() {
    check_error(Step::error(529, "Overloaded"), "api_error", 529);
    check_error(Step::error(429, "Slow down").header("retry-after", "0"), "api_error", 429);
    check_error(Step::error(401, "invalid x-api-key"), "api_error", 401);
    check_error(Step::error(400, "something else"), "api_error", 400);
    check_error(
        Step::error(400, "prompt is too long: 210000 tokens > 200000 maximum"),
        "prompt_too_long",
        400,
    );
}

#[test]
fn a_cut_stream_is_asked_again() {
    let model = ScriptedModel::steps(vec![Step::text("half an answer").cut(), Step::text("whole")]);
    let finished = ask(&model, &[]);
    assert!(model.requests().len() >= 2, "{finished:?}");
    assert_eq!(finished.result()["result"], "whole");
}

#[test]
fn an_error_in_the_stream_is_asked_again() {
    let model = ScriptedModel::steps(vec![
        Step::text("half").sse_error("overloaded_error", "busy"),
        Step::text("whole"),
    ]);
    assert_eq!(ask(&model, &[]).result()["result"], "whole");
}

#[test]
fn a_compaction_is_recognised_and_answered() {
    let script = vec![
        Step::bash("echo one").usage(5_000),
        Step::bash("echo two").usage(170_000),
        Step::text("after").usage(4_000),
    ];
    let model = ScriptedModel::steps(script);
    let result =
        ask(&model, &["--model", "claude-sonnet-4-6", "--allowedTools", "Bash"]).expect_success().result();
    assert_eq!(result["result"], "after");
    let kinds: Vec<_> = model.requests().iter().map(|request| request.kind).collect();
    assert_eq!(kinds, [RequestKind::Main, RequestKind::Main, RequestKind::Compaction, RequestKind::Main]);
    assert!(model.requests()[3].text().contains("SUMMARY-OF-WORK"));
}

#[test]
fn a_subagent_is_told_from_the_session() {
    let call = json!({ "description": "d", "prompt": "CHILD do it", "subagent_type": "general-purpose", "run_in_background": false });
    let model = ScriptedModel::start(move |request| match request.kind {
        RequestKind::Subagent => Step::text("child done"),
        _ if request.tool_results().is_empty() => Step::default().tool("Agent", call.clone()),
        _ => Step::text("parent done"),
    });
    let result = ask(&model, &["--allowedTools", "Agent"]).expect_success().result();
    assert_eq!(result["result"], "parent done");
    assert!(model.requests_of(RequestKind::Subagent)[0].first_text().contains("CHILD do it"));
    assert!(model.main_requests()[1].last_text().contains("child done"));
}

#[test]
fn a_model_that_hangs_can_be_left() {
    let model = ScriptedModel::steps(vec![Step::text("never").hang(Duration::from_secs(60))]);
    let mut world = World::new().without_plimsoll();
    world.use_model(&model);
    let mut running = world.claude(&["-p", "hi", "--output-format", "json"]).spawn();
    world.wait_until(|| !model.requests().is_empty(), "the client asks the model");
    running.terminate();
    assert_eq!(running.wait(Duration::from_secs(10)).code, Some(143));
    assert_eq!(world.transcripts().len(), 1);
}
