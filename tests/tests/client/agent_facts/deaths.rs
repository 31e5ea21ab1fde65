//! A subagent that dies.

use crate::agent_facts::bench::{Bench, push};
use plimsoll_testkit::scripted_model::{RequestKind, Step};
use serde_json::Value;

/// A session whose frame says something and runs something, then gets this from the model again and again.
fn dying(end: Step) -> Bench {
    let bench = Bench::new(move |request| match request.kind {
        RequestKind::Subagent if request.tool_results().is_empty() && !request.text().contains("SUMMARY") => {
            Step::bash("echo frame-tool-ran").say("On the way.")
        }
        RequestKind::Subagent => end.clone(),
        _ if request.tool_results().is_empty() => push("Go."),
        _ => Step::text("Done."),
    });
    bench.run();
    bench
}

/// Of how the frame ended: its own last event, and the parent's.
fn ending(bench: &Bench) -> Vec<String> {
    let mut story = bench.story_of(&["SubagentStop", "StopFailure", "PostToolUse Agent", "Failure Agent"]);
    // The client does not wait for StopFailure.
    story.sort_by_key(|line| !line.contains(" a1"));
    story
}

/// The payload that says what the frame died of, and what the parent heard.
fn dead(bench: &Bench) -> (Value, String) {
    assert_eq!(ending(bench), ["StopFailure a1=frame", "PostToolUseFailure Agent"], "{:#?}", bench.story());
    let failed = bench.noted_of("PostToolUseFailure").remove(0);
    assert!(failed["agent_id"].is_null() && failed["tool_response"].is_null(), "it names no agent: {failed}");
    assert_eq!(failed["tool_use_id"], "toolu_0001_0");
    assert_eq!(failed["is_interrupt"], false);
    let (text, error) = bench.handed_back();
    assert!(error && failed["error"] == text.as_str(), "{text}");
    assert!(text.starts_with("Agent terminated early due to an API error: "), "{text}");
    (bench.noted_of("StopFailure").remove(0), text)
}

#[test]
fn a_subagent_whose_request_is_refused_is_a_failed_call() {
    let (stop, text) = dead(&dying(Step::error(400, "bad words")));
    assert_eq!(stop["error"], "unknown");
    assert!(text.contains("API Error: 400 bad words (error type unknown, HTTP 400,"), "{text}");
    let (stop, _) = dead(&dying(Step::text("no").stop_reason("refusal")));
    assert_eq!(stop["error"], "invalid_request");
    let (stop, _) = dead(&dying(Step::text("and so on").stop_reason("max_tokens")));
    assert_eq!(stop["error"], "max_output_tokens");
}

#[test]
fn a_subagent_that_had_said_nothing_when_the_server_failed_is_a_failed_call() {
    let bench = Bench::new(|request| match request.kind {
        RequestKind::Subagent => Step::error(500, "broken"),
        _ if request.tool_results().is_empty() => push("Go."),
        _ => Step::text("Done."),
    });
    bench.run();
    let (stop, text) = dead(&bench);
    assert_eq!(stop["error"], "server_error");
    assert!(text.contains("API Error: 500 broken"), "{text}");
    assert_eq!(bench.frame_requests().len(), 2, "one retry, as CLAUDE_CODE_MAX_RETRIES says");
}

#[test]
fn a_subagent_that_had_said_something_when_the_server_failed_counts_as_completed_with_a_note() {
    for (status, error) in [(500, "server_error"), (429, "rate_limit")] {
        let bench = dying(Step::error(status, "broken"));
        assert_eq!(ending(&bench), ["StopFailure a1=frame", "PostToolUse Agent"]);
        assert_eq!(bench.noted_of("StopFailure")[0]["error"], error);
        let response = &bench.noted_of("PostToolUse").pop().expect("it returned")["tool_response"];
        assert_eq!((&response["status"], &response["harnessNoteCount"]), (&"completed".into(), &2.into()));
        let note = response["content"][0]["text"].as_str().expect("a note");
        assert!(note.starts_with("Agent terminated early due to an API error: "), "{note}");
        assert!(note.contains("Everything below is PARTIAL output"), "{note}");
        assert_eq!(response["content"][2]["text"], "On the way.");
        let (text, error) = bench.handed_back();
        assert!(!error && text.contains("PARTIAL output") && text.contains("  On the way."), "{text}");
    }
}

#[test]
fn a_subagent_whose_stream_broke_off_ends_as_if_it_had_finished() {
    for end in
        [Step::text("half a text").cut(), Step::text("half a text").sse_error("overloaded_error", "busy")]
    {
        let bench = dying(end);
        assert_eq!(ending(&bench), ["SubagentStop a1=frame", "PostToolUse Agent"]);
        assert_eq!(bench.noted_of("SubagentStop")[0]["last_assistant_message"], "half a text");
        let (text, error) = bench.handed_back();
        assert!(!error && !text.contains("PARTIAL") && text.contains("  half a text"), "{text}");
    }
}

#[test]
fn an_empty_end_hands_back_the_words_before_it() {
    let bench = dying(Step::default());
    assert_eq!(ending(&bench), ["SubagentStop a1=frame", "PostToolUse Agent"]);
    assert!(bench.noted_of("SubagentStop")[0]["last_assistant_message"].is_null());
    assert_eq!(bench.frame_requests().len(), 3, "it was asked once more");
    let (text, error) = bench.handed_back();
    assert!(!error && text.contains("  On the way."), "{text}");
}

#[test]
fn a_subagent_that_does_not_fit_compacts_until_the_client_gives_up() {
    let bench = Bench::new(|request| match (request.kind, request.text().contains("frame-tool-ran")) {
        (RequestKind::Subagent, false) => Step::bash("echo frame-tool-ran"),
        (RequestKind::Subagent, true) => {
            Step::error(400, "prompt is too long: 210000 tokens > 200000 maximum")
        }
        _ if request.tool_results().is_empty() => push("Go."),
        _ => Step::text("Done."),
    });
    bench.run();
    let compactions = bench.story_of(&["PreCompact auto a1=frame"]).len();
    assert_eq!(compactions, 3, "{:#?}", bench.story());
    assert_eq!(bench.noted_of("StopFailure")[0]["error"], "invalid_request");
    let (text, error) = bench.handed_back();
    assert!(error && text.contains("Autocompact is thrashing"), "{text}");
}
