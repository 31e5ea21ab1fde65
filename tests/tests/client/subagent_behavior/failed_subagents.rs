//! Subagents that end with an error.

use crate::subagent_behavior::harness::{HookCall, SubagentTestBench, agent_call_step};
use plimsoll_testkit::scripted_model::{RequestKind, Step};
use serde_json::Value;

/// Returns the model steps that end the subagents. Each subagent gets one of them, repeatedly, after it has written a
/// text and run a command.
fn final_steps() -> [Step; 9] {
    [
        Step::api_error(500, "broken"),
        Step::api_error(429, "broken"),
        Step::api_error(400, "bad words"),
        Step::from_text("no").with_stop_reason("refusal"),
        Step::from_text("and so on").with_stop_reason("max_tokens"),
        Step::from_text("half a text").with_cut_off_stream(),
        Step::from_text("half a text").with_stream_error("overloaded_error", "busy"),
        Step::default(),
        // This subagent writes nothing before the error.
        Step::api_error(500, "broken"),
    ]
}

/// Runs one session that starts a subagent for each of these final steps, one after the other, because starting a
/// client for each is slow.
fn run_session_with_failing_subagents() -> SubagentTestBench {
    let bench = SubagentTestBench::new(|request| match request.kind {
        RequestKind::Subagent => {
            let prompt = request.first_message_text();
            let number = (0..final_steps().len())
                .find(|number| prompt.contains(&format!("Go, {number}.")))
                .expect("a number");
            let writes_text_first = number + 1 < final_steps().len() && request.all_tool_results().is_empty();
            if writes_text_first && !request.full_text().contains("SUMMARY") {
                return Step::bash_call("echo frame-tool-ran").with_text("On the way.");
            }
            final_steps()[number].clone()
        }
        _ => {
            let messages = request.body["messages"].as_array().expect("messages");
            let response_count = messages.iter().filter(|message| message["role"] == "assistant").count();
            if response_count < final_steps().len() {
                agent_call_step(&format!("Go, {response_count}."))
            } else {
                Step::from_text("Done.")
            }
        }
    });
    bench.run_session();
    bench
}

/// The events and the result of one subagent's end.
#[derive(Debug)]
struct SubagentEnd {
    /// The subagent's last event, then the parent's.
    events: Vec<String>,
    /// The payload of the subagent's last event.
    last_payload: Value,
    /// The payload of the parent's event.
    parent_payload: Value,
    /// What the parent's model reads, and whether it is an error.
    text: String,
    is_error: bool,
    /// The number of the subagent's model requests.
    request_count: usize,
}

fn subagent_ends(bench: &SubagentTestBench) -> Vec<SubagentEnd> {
    let calls = bench.hook_calls();
    let is_end = |call: &&HookCall| {
        let is_of_subagent = !call.payload["agent_id"].is_null();
        match call.event.as_str() {
            "SubagentStop" | "StopFailure" => is_of_subagent,
            "PostToolUse" | "PostToolUseFailure" => !is_of_subagent && call.payload["tool_name"] == "Agent",
            _ => false,
        }
    };
    let mut end_calls: Vec<HookCall> = calls.iter().filter(is_end).cloned().collect();
    let start_calls: Vec<HookCall> =
        calls.into_iter().filter(|noted| noted.event == "SubagentStart").collect();
    assert_eq!(
        (start_calls.len(), end_calls.len()),
        (final_steps().len(), 2 * final_steps().len()),
        "{:#?}",
        bench.render_hook_calls()
    );
    let end_of_subagent = |(number, start): (usize, &HookCall)| {
        // The client does not wait for StopFailure.
        let subagent_end_index =
            end_calls.iter().position(|end| end.payload["agent_id"] == start.payload["agent_id"]);
        let last = end_calls.remove(subagent_end_index.expect("an end"));
        let parent_end_index = end_calls.iter().position(|end| end.payload["agent_id"].is_null());
        let returned = end_calls.remove(parent_end_index.expect("a return"));
        let (text, is_error) = bench.tool_result_of_message(number);
        let prompt = format!("Go, {number}.");
        let requests = bench.subagent_requests();
        SubagentEnd {
            events: vec![last.event, returned.event],
            last_payload: last.payload,
            parent_payload: returned.payload,
            text,
            is_error,
            request_count: requests
                .iter()
                .filter(|request| request.first_message_text().contains(&prompt))
                .count(),
        }
    };
    start_calls.iter().enumerate().map(end_of_subagent).collect()
}

/// Asserts that a subagent's end makes the Agent call fail, with this error in the StopFailure event.
fn assert_ends_as_failed_call(end: &SubagentEnd, error: &str) {
    assert_eq!(end.events, ["StopFailure", "PostToolUseFailure"], "{end:#?}");
    assert!(
        end.parent_payload["agent_id"].is_null() && end.parent_payload["tool_response"].is_null(),
        "{end:#?}"
    );
    assert_eq!(end.parent_payload["is_interrupt"], false);
    assert!(end.is_error && end.parent_payload["error"] == end.text.as_str(), "{end:#?}");
    assert!(end.text.starts_with("Agent terminated early due to an API error: "), "{end:#?}");
    assert_eq!(end.last_payload["error"], error, "{end:#?}");
}

#[test]
fn a_failed_subagent_reports_its_error_and_returns_its_earlier_text() {
    let bench = run_session_with_failing_subagents();
    let ends = subagent_ends(&bench);
    let [server, rate, refused, refusal, too_long, cut, broken, empty, silent] = &ends[..] else {
        panic!("{ends:#?}")
    };
    // A rejected request makes the Agent call fail.
    assert_ends_as_failed_call(refused, "unknown");
    assert!(refused.text.contains("API Error: 400 bad words (error type unknown, HTTP 400,"), "{refused:#?}");
    assert_ends_as_failed_call(refusal, "invalid_request");
    assert_ends_as_failed_call(too_long, "max_output_tokens");
    // A server error also makes the call fail if the subagent has written nothing before.
    assert_ends_as_failed_call(silent, "server_error");
    assert!(silent.text.contains("API Error: 500 broken"), "{silent:#?}");
    assert_eq!(silent.request_count, 2, "one retry, as CLAUDE_CODE_MAX_RETRIES says");
    // A subagent that has already written a text counts as completed, with a note.
    assert_eq!(server.parent_payload["tool_use_id"], "toolu_0001_0");
    // A second note names the tools that the subagent used. The result of the next subagent with the same tools lacks
    // it.
    let tools_note =
        server.parent_payload["tool_response"]["content"][1]["text"].as_str().unwrap_or_default();
    assert!(tools_note.starts_with("<tools-used-before-summary>Bash<"), "{server:#?}");
    for (end, error, notes) in [(server, "server_error", 2), (rate, "rate_limit", 1)] {
        assert_eq!(end.events, ["StopFailure", "PostToolUse"], "{end:#?}");
        assert_eq!(end.last_payload["error"], error);
        let response = &end.parent_payload["tool_response"];
        assert_eq!(
            (&response["status"], &response["harnessNoteCount"]),
            (&"completed".into(), &notes.into())
        );
        let note = response["content"][0]["text"].as_str().expect("a note");
        assert!(note.starts_with("Agent terminated early due to an API error: "), "{note}");
        assert!(note.contains("Everything below is PARTIAL output"), "{note}");
        assert_eq!(response["content"][notes]["text"], "On the way.");
        assert!(!end.is_error, "{end:#?}");
        assert!(end.text.contains("PARTIAL output") && end.text.contains("  On the way."), "{end:#?}");
    }
    // A subagent whose stream breaks off ends as if it had finished.
    for end in [cut, broken] {
        assert_eq!(end.events, ["SubagentStop", "PostToolUse"], "{end:#?}");
        assert_eq!(end.last_payload["last_assistant_message"], "half a text");
        assert!(!end.is_error && !end.text.contains("PARTIAL"), "{end:#?}");
        assert!(end.text.contains("  half a text"), "{end:#?}");
    }
    // An empty response returns the text before it.
    assert_eq!(empty.events, ["SubagentStop", "PostToolUse"], "{empty:#?}");
    assert!(empty.last_payload["last_assistant_message"].is_null());
    assert_eq!(empty.request_count, 3, "it was asked once more");
    assert!(!empty.is_error && empty.text.contains("  On the way."), "{empty:#?}");
}

#[test]
fn a_subagent_that_never_fits_compacts_three_times_and_then_fails() {
    let bench = SubagentTestBench::new(|request| {
        match (request.kind, request.full_text().contains("frame-tool-ran")) {
            (RequestKind::Subagent, false) => Step::bash_call("echo frame-tool-ran"),
            (RequestKind::Subagent, true) => {
                Step::api_error(400, "prompt is too long: 210000 tokens > 200000 maximum")
            }
            _ if request.all_tool_results().is_empty() => agent_call_step("Go."),
            _ => Step::from_text("Done."),
        }
    });
    bench.run_session();
    let compactions = bench.hook_call_lines_containing(&["PreCompact auto a1=frame"]).len();
    assert_eq!(compactions, 3, "{:#?}", bench.render_hook_calls());
    assert_eq!(bench.payloads_of_event("StopFailure")[0]["error"], "invalid_request");
    let (text, error) = bench.first_tool_result();
    assert!(error && text.contains("Autocompact is thrashing"), "{text}");
}
