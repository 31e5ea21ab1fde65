//! The real client against the scripted model.
use plimsoll_testkit::scripted_model::{RequestKind, ScriptedModel, Step};
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::json;
use std::time::Duration;

fn run_client(model: &ScriptedModel, args: &[&str]) -> FinishedProgram {
    let mut world = World::new().without_plimsoll_programs();
    world.put_client_on_path_with_model_and_settings(model);
    let all_args = [&["-p", "hi", "--output-format", "stream-json", "--verbose"], args].concat();
    world.claude(&all_args).timeout(Duration::from_secs(30)).run()
}

#[test]
fn an_answer_and_its_usage_come_from_the_script() {
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::from_text("Hello from the script").with_input_tokens(12_345).with_output_tokens(7),
    ]);
    let finished = run_client(&model, &[]).expect_success();
    let result = finished.last_result();
    assert_eq!(result["result"], "Hello from the script");
    assert_eq!(result["usage"]["input_tokens"], 10);
    assert_eq!(result["usage"]["cache_read_input_tokens"], 12_335);
    assert_eq!(result["usage"]["output_tokens"], 7);
    assert_eq!(model.main_requests().len(), 1);
    assert!(model.main_requests()[0].text_since_last_assistant_message().contains("hi"));
}

#[test]
fn usage_can_follow_the_size_of_the_request() {
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::from_text("x").with_input_tokens_from_request_size(),
    ]);
    let result = run_client(&model, &[]).expect_success().last_result();
    assert_eq!(result["usage"]["input_tokens"], model.requests()[0].body_bytes() / 4);
}

#[test]
fn a_tool_result_is_sent_back_to_the_model() {
    let script = vec![
        Step::bash_call("echo round-$((1+1))-trip").with_thinking("let me see"),
        Step::from_text("done").with_text_in_deltas(2, Duration::ZERO),
    ];
    let model = ScriptedModel::start_with_steps_repeating_last(script);
    let result = run_client(&model, &["--allowedTools", "Bash"]).expect_success().last_result();
    assert_eq!(result["result"], "done");
    let requests = model.main_requests();
    assert_eq!(requests.len(), 2);
    assert!(
        requests[1].text_since_last_assistant_message().contains("round-2-trip"),
        "{}",
        requests[1].text_since_last_assistant_message()
    );
    let (id, output) = &requests[1].all_tool_results()[0];
    assert_eq!(id, "toolu_0001_0");
    assert!(output.contains("round-2-trip"));
}

#[test]
fn results_of_parallel_tool_calls_return_in_one_request() {
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::bash_call("echo one")
            .with_tool_call("Bash", json!({ "command": "echo two", "description": "d" })),
        Step::from_text("done"),
    ]);
    run_client(&model, &["--allowedTools", "Bash"]).expect_success();
    assert_eq!(model.main_requests()[1].all_tool_results().len(), 2);
}

fn assert_error_in_result(step: Step, terminal_reason: &str, status: u64) {
    let model = ScriptedModel::start_with_steps_repeating_last(vec![step]);
    let finished = run_client(&model, &[]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let result = finished.last_result();
    assert_eq!(result["is_error"], true);
    assert_eq!(result["terminal_reason"], terminal_reason, "{result}");
    assert_eq!(result["api_error_status"], status, "{result}");
}

#[test]
fn api_errors_appear_in_the_result() {
    assert_error_in_result(Step::api_error(529, "Overloaded"), "api_error", 529);
    assert_error_in_result(
        Step::api_error(429, "Slow down").with_header("retry-after", "0"),
        "api_error",
        429,
    );
    assert_error_in_result(Step::api_error(401, "invalid x-api-key"), "api_error", 401);
    assert_error_in_result(Step::api_error(400, "something else"), "api_error", 400);
    assert_error_in_result(
        Step::api_error(400, "prompt is too long: 210000 tokens > 200000 maximum"),
        "prompt_too_long",
        400,
    );
}

#[test]
fn the_client_retries_after_a_cut_stream() {
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::from_text("half an answer").with_cut_off_stream(),
        Step::from_text("whole"),
    ]);
    let finished = run_client(&model, &[]);
    assert!(model.requests().len() >= 2, "{finished:?}");
    assert_eq!(finished.last_result()["result"], "whole");
}

#[test]
fn the_client_retries_after_an_error_in_the_stream() {
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::from_text("half").with_stream_error("overloaded_error", "busy"),
        Step::from_text("whole"),
    ]);
    assert_eq!(run_client(&model, &[]).last_result()["result"], "whole");
}

#[test]
fn the_model_recognizes_and_answers_a_compaction_request() {
    let script = vec![
        Step::bash_call("echo one").with_input_tokens(5_000),
        Step::bash_call("echo two").with_input_tokens(170_000),
        Step::from_text("after").with_input_tokens(4_000),
    ];
    let model = ScriptedModel::start_with_steps_repeating_last(script);
    let result = run_client(&model, &["--model", "claude-sonnet-4-6", "--allowedTools", "Bash"])
        .expect_success()
        .last_result();
    assert_eq!(result["result"], "after");
    let kinds: Vec<_> = model.requests().iter().map(|request| request.kind).collect();
    assert_eq!(kinds, [RequestKind::Main, RequestKind::Main, RequestKind::Compaction, RequestKind::Main]);
    assert!(model.requests()[3].full_text().contains("SUMMARY-OF-WORK"));
}

#[test]
fn subagent_requests_are_recognized_as_such() {
    let subagent_call = json!({ "description": "d", "prompt": "CHILD do it", "subagent_type": "general-purpose", "run_in_background": false });
    let model = ScriptedModel::start(move |request| match request.kind {
        RequestKind::Subagent => Step::from_text("child done"),
        _ if request.all_tool_results().is_empty() => {
            Step::default().with_tool_call("Agent", subagent_call.clone())
        }
        _ => Step::from_text("parent done"),
    });
    let result = run_client(&model, &["--allowedTools", "Agent"]).expect_success().last_result();
    assert_eq!(result["result"], "parent done");
    assert!(model.requests_of_kind(RequestKind::Subagent)[0].first_message_text().contains("CHILD do it"));
    assert!(model.main_requests()[1].text_since_last_assistant_message().contains("child done"));
}

#[test]
fn sigterm_ends_a_client_that_waits_for_the_model() {
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::from_text("never").with_hang(Duration::from_secs(60)),
    ]);
    let mut world = World::new().without_plimsoll_programs();
    world.put_client_on_path_with_model_and_settings(&model);
    let mut running = world.claude(&["-p", "hi", "--output-format", "json"]).spawn();
    world.wait_until(|| !model.requests().is_empty(), "the client asks the model");
    running.terminate();
    assert_eq!(running.wait_or_kill_and_panic(Duration::from_secs(10)).code, Some(143));
    assert_eq!(world.transcript_paths().len(), 1);
}
