//! A subagent that dies.

use crate::subagent_behavior::harness::{Bench, Noted, push};
use plimsoll_testkit::scripted_model::{RequestKind, Step};
use serde_json::Value;

/// What a frame gets from the model again and again, after it has said something and run something.
fn ends() -> [Step; 9] {
    [
        Step::error(500, "broken"),
        Step::error(429, "broken"),
        Step::error(400, "bad words"),
        Step::text("no").stop_reason("refusal"),
        Step::text("and so on").stop_reason("max_tokens"),
        Step::text("half a text").cut(),
        Step::text("half a text").sse_error("overloaded_error", "busy"),
        Step::default(),
        // This one says nothing before.
        Step::error(500, "broken"),
    ]
}

/// A session that pushes a frame for each of these ends, one after the other: starting a client for each costs far more than
/// what it shows.
fn session() -> Bench {
    let bench = Bench::new(|request| match request.kind {
        RequestKind::Subagent => {
            let words = request.first_text();
            let number =
                (0..ends().len()).find(|number| words.contains(&format!("Go, {number}."))).expect("a number");
            let speaks = number + 1 < ends().len() && request.tool_results().is_empty();
            if speaks && !request.text().contains("SUMMARY") {
                return Step::bash("echo frame-tool-ran").say("On the way.");
            }
            ends()[number].clone()
        }
        _ => {
            let messages = request.body["messages"].as_array().expect("messages");
            let answered = messages.iter().filter(|message| message["role"] == "assistant").count();
            if answered < ends().len() { push(&format!("Go, {answered}.")) } else { Step::text("Done.") }
        }
    });
    bench.run();
    bench
}

/// What the hooks and the parent heard of one frame's end.
#[derive(Debug)]
struct Death {
    /// The frame's last event and the parent's.
    events: Vec<String>,
    /// The payload of the frame's last event.
    last: Value,
    /// The payload of the parent's event.
    returned: Value,
    /// What the parent's model reads, and whether it is an error.
    text: String,
    is_error: bool,
    /// How often the frame's model was asked.
    requests: usize,
}

fn deaths(bench: &Bench) -> Vec<Death> {
    let noted = bench.noted();
    let is_end = |noted: &&Noted| {
        let is_of_frame = !noted.payload["agent_id"].is_null();
        match noted.event.as_str() {
            "SubagentStop" | "StopFailure" => is_of_frame,
            "PostToolUse" | "PostToolUseFailure" => !is_of_frame && noted.payload["tool_name"] == "Agent",
            _ => false,
        }
    };
    let mut ends: Vec<Noted> = noted.iter().filter(is_end).cloned().collect();
    let frames: Vec<Noted> = noted.into_iter().filter(|noted| noted.event == "SubagentStart").collect();
    assert_eq!(
        (frames.len(), ends.len()),
        (self::ends().len(), 2 * self::ends().len()),
        "{:#?}",
        bench.story()
    );
    let death = |(number, start): (usize, &Noted)| {
        // The client does not wait for StopFailure.
        let of_frame = ends.iter().position(|end| end.payload["agent_id"] == start.payload["agent_id"]);
        let last = ends.remove(of_frame.expect("an end"));
        let of_parent = ends.iter().position(|end| end.payload["agent_id"].is_null());
        let returned = ends.remove(of_parent.expect("a return"));
        let (text, is_error) = bench.handed_back_in(number);
        let words = format!("Go, {number}.");
        let requests = bench.frame_requests();
        Death {
            events: vec![last.event, returned.event],
            last: last.payload,
            returned: returned.payload,
            text,
            is_error,
            requests: requests.iter().filter(|request| request.first_text().contains(&words)).count(),
        }
    };
    frames.iter().enumerate().map(death).collect()
}

/// A frame whose end is a failed call: what it died of.
fn assert_failed_call(death: &Death, error: &str) {
    assert_eq!(death.events, ["StopFailure", "PostToolUseFailure"], "{death:#?}");
    assert!(death.returned["agent_id"].is_null() && death.returned["tool_response"].is_null(), "{death:#?}");
    assert_eq!(death.returned["is_interrupt"], false);
    assert!(death.is_error && death.returned["error"] == death.text.as_str(), "{death:#?}");
    assert!(death.text.starts_with("Agent terminated early due to an API error: "), "{death:#?}");
    assert_eq!(death.last["error"], error, "{death:#?}");
}

#[test]
fn the_end_of_a_subagent_says_what_it_died_of_and_returns_what_it_had_said() {
    let bench = session();
    let deaths = deaths(&bench);
    let [server, rate, refused, refusal, too_long, cut, broken, empty, silent] = &deaths[..] else {
        panic!("{deaths:#?}")
    };
    // A request that is refused is a failed call.
    assert_failed_call(refused, "unknown");
    assert!(refused.text.contains("API Error: 400 bad words (error type unknown, HTTP 400,"), "{refused:#?}");
    assert_failed_call(refusal, "invalid_request");
    assert_failed_call(too_long, "max_output_tokens");
    // So is one that had said nothing when the server failed.
    assert_failed_call(silent, "server_error");
    assert!(silent.text.contains("API Error: 500 broken"), "{silent:#?}");
    assert_eq!(silent.requests, 2, "one retry, as CLAUDE_CODE_MAX_RETRIES says");
    // One that had said something counts as completed, with a note.
    assert_eq!(server.returned["tool_use_id"], "toolu_0001_0");
    // A second note names the tools that the subagent used; the second subagent that used the same ones comes without it.
    let used = server.returned["tool_response"]["content"][1]["text"].as_str().unwrap_or_default();
    assert!(used.starts_with("<tools-used-before-summary>Bash<"), "{server:#?}");
    for (death, error, notes) in [(server, "server_error", 2), (rate, "rate_limit", 1)] {
        assert_eq!(death.events, ["StopFailure", "PostToolUse"], "{death:#?}");
        assert_eq!(death.last["error"], error);
        let response = &death.returned["tool_response"];
        assert_eq!(
            (&response["status"], &response["harnessNoteCount"]),
            (&"completed".into(), &notes.into())
        );
        let note = response["content"][0]["text"].as_str().expect("a note");
        assert!(note.starts_with("Agent terminated early due to an API error: "), "{note}");
        assert!(note.contains("Everything below is PARTIAL output"), "{note}");
        assert_eq!(response["content"][notes]["text"], "On the way.");
        assert!(!death.is_error, "{death:#?}");
        assert!(death.text.contains("PARTIAL output") && death.text.contains("  On the way."), "{death:#?}");
    }
    // One whose stream broke off ends as if it had finished.
    for death in [cut, broken] {
        assert_eq!(death.events, ["SubagentStop", "PostToolUse"], "{death:#?}");
        assert_eq!(death.last["last_assistant_message"], "half a text");
        assert!(!death.is_error && !death.text.contains("PARTIAL"), "{death:#?}");
        assert!(death.text.contains("  half a text"), "{death:#?}");
    }
    // An empty end returns the words before it.
    assert_eq!(empty.events, ["SubagentStop", "PostToolUse"], "{empty:#?}");
    assert!(empty.last["last_assistant_message"].is_null());
    assert_eq!(empty.requests, 3, "it was asked once more");
    assert!(!empty.is_error && empty.text.contains("  On the way."), "{empty:#?}");
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
