//! The handoff in place of the client's summary.

use super::harness::{
    FULL, MARKER, handoff_text, model_that_fills_the_window, run_session, summary_count, world_with_module,
};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_protocol::handoff_message::parse_quoted_requests;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_tests::{events_named, read_journal};
use serde_json::json;

#[test]
fn the_turn_goes_on_with_the_handoff_and_without_a_request_for_a_summary() {
    let model = model_that_fills_the_window();
    let world = world_with_module(&model, &json!({"compaction": "handoff"}));
    // With records in the project, as a test reads them.
    world.plimsoll(&["init", "--project"]).run().expect_success();
    world.plimsoll(&["memory", "alloc", "port", "8443", "--description", "the port"]).run().expect_success();
    let finished = run_session(&world, "Count to three.", &[]).expect_success();
    assert_eq!(finished.stdout_json()["result"], "after the handoff", "{finished:?}");
    assert_eq!(summary_count(&model), 0);
    let requests = model.main_requests();
    let first_after =
        requests.iter().find(|request| request.full_text().contains(MARKER)).expect("a handoff");
    assert_eq!(first_after.assistant_message_count(), 0, "no block of the old conversation is kept");
    let text = handoff_text(first_after);
    assert_eq!(parse_quoted_requests(&text), ["Count to three."]);
    assert!(text.contains("step-2"), "the result that nobody has read: {text}");
    let journal = read_journal(&world);
    let causes: Vec<&str> =
        events_named(&journal, "checkpoint").iter().filter_map(|entry| entry["cause"].as_str()).collect();
    assert_eq!(causes.last(), Some(&"compact"), "{journal:?}");
    let session = finished.stdout_json()["session_id"].as_str().expect("a session").to_owned();
    let record = world.read_json(format!(".claude/plimsoll/sessions/{session}.json"));
    assert_eq!(record["compactions"], 1, "{record}");
    let used = record["reading"]["used"].as_u64().expect("a reading");
    assert!(used <= 31_000, "the old usage is forgotten: {record}");
    let turns = world.plimsoll(&["turns", "stats", "--json"]).run().expect_success().stdout_json();
    assert_eq!(turns["compactions"], 1, "{turns}");
    let kinds = crate::plugin::harness::turn_log_kinds(&world);
    assert!(kinds.contains(&RecordKind::Compaction) && kinds.contains(&RecordKind::Context), "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == RecordKind::Prompt).count(), 1, "{kinds:?}");
}

#[test]
fn requests_survive_ten_handoffs_with_a_resume_after_each() {
    let model = ScriptedModel::start(|request| {
        let is_fresh = request.full_text().contains(MARKER);
        match request.text_since_last_assistant_message() {
            text if text.contains("[Plimsoll handoff") => {
                Step::from_text("I go on.").with_input_tokens(30_000)
            }
            text if text.contains("tool-output") => Step::from_text("full").with_input_tokens(FULL),
            _ if is_fresh => Step::bash_call("echo tool-output").with_input_tokens(FULL),
            _ => Step::bash_call("echo tool-output").with_input_tokens(FULL),
        }
    });
    let world = world_with_module(&model, &json!({"compaction": "handoff"}));
    let mut prompts = vec!["Request 0:\n\nfix the parser > twice".to_owned()];
    let first = run_session(&world, &prompts[0], &[]).expect_success().stdout_json();
    let session = first["session_id"].as_str().expect("a session").to_owned();
    for number in 1..10 {
        let prompt = format!("Request {number}.");
        run_session(&world, &prompt, &["--resume", &session]).expect_success();
        prompts.push(prompt);
    }
    assert_eq!(summary_count(&model), 0, "no client's summary came in between");
    let last = model.main_requests().into_iter().rfind(|request| !handoff_text(request).is_empty());
    let last = last.expect("a handoff");
    let text = handoff_text(&last);
    assert_eq!(parse_quoted_requests(&text), prompts, "{text}");
    assert_eq!(last.full_text().matches("fix the parser").count(), 1, "no old conversation came back");
    let compactions = world.read(&world.transcript_paths()[0]).matches("compact_boundary").count();
    assert!(compactions >= 10, "{compactions}");
}

#[test]
fn a_prompt_typed_into_a_full_window_is_the_last_request() {
    let model = ScriptedModel::start(|request| match request.full_text().contains(MARKER) {
        true => Step::from_text("answered").with_input_tokens(30_000),
        false => Step::from_text("full").with_input_tokens(FULL),
    });
    let world = world_with_module(&model, &json!({"compaction": "handoff"}));
    let first = run_session(&world, "The first.", &[]).expect_success().stdout_json();
    let session = first["session_id"].as_str().expect("a session").to_owned();
    let second = run_session(&world, "The second.", &["--resume", &session]).expect_success().stdout_json();
    assert_eq!(second["result"], "answered");
    let last = model.main_requests().into_iter().last().expect("a request");
    assert_eq!(parse_quoted_requests(&handoff_text(&last)), ["The first.", "The second."]);
}
