//! A long session: own writes, frames, another writer, and compactions.

use crate::frames::harness::with_register_update;
use crate::memory_in_requests::harness::{
    FULL_WINDOW_TOKENS, ScriptedResponse, ScriptedSessions, echo_response, final_response,
    pop_frame_response, push_and_start_response, update_registers_response, with_frame_push,
    with_frame_start, with_heap_alloc, with_heap_free, with_heap_write,
};
use crate::memory_in_requests::token_budget::Budget;
use plimsoll_testkit::scripted_model::{RequestKind, Step};

/// A response that sets all eight registers to this text.
fn all_registers_response(text: &str) -> ScriptedResponse {
    let keys = [
        "R0_GOAL",
        "R1_PLAN",
        "R2_NEXT",
        "R3_PHASE",
        "R4_CONSTRAINTS",
        "R5_ASSUMPTIONS",
        "R6_OPEN_QUESTIONS",
        "R7_STATUS",
    ];
    let values = keys.map(|key| (key, format!("{text} of {key}\n  with a second line")));
    update_registers_response(&values.each_ref().map(|(key, text)| (*key, text.as_str())))
}

fn full_window_response() -> ScriptedResponse {
    Step::bash_call("echo a window that is full").with_input_tokens(FULL_WINDOW_TOKENS).into()
}

fn main_script() -> Vec<ScriptedResponse> {
    let (new_step, long_plan) = (Step::default, "p".repeat(990) + "END");
    let first_responses = vec![
        echo_response(),
        all_registers_response("first"),
        update_registers_response(&[("R1_PLAN", &long_plan), ("R2_NEXT", "cut by its limit")])
            .with_concurrent_write(&["set", "R4", "keep the API"]),
        with_heap_alloc(new_step(), "spec", "add(a, b)\nsub(a, b)").into(),
        // Both write the same register: the later write counts, whoever made it.
        update_registers_response(&[("R4_CONSTRAINTS", "my own word")]).with_concurrent_write(&[
            "set",
            "R4",
            "a word before it",
        ]),
        with_heap_write(new_step(), "spec", "add(a, b) only").into(),
        ScriptedResponse::from(with_register_update(
            with_heap_alloc(new_step(), "notes", "one"),
            &[("R7_STATUS", "")],
        ))
        .with_concurrent_write(&["set", "R2", ""]),
        echo_response()
            .with_concurrent_write(&["write", "notes", "two, by another"])
            .with_concurrent_write(&["alloc", "hint", "look left"]),
        with_heap_free(with_heap_write(new_step(), "notes", "three, my own"), "spec").into(),
        echo_response()
            .with_concurrent_write(&["free", "hint"])
            .with_concurrent_write(&["set", "R6", "who?"]),
        with_heap_alloc(with_heap_free(new_step(), "notes"), "notes", "four, anew").into(),
        full_window_response().with_concurrent_write(&["set", "R5", "written before the compaction"]),
        echo_response(),
        update_registers_response(&[("R2_NEXT", "after it")])
            .with_concurrent_write(&["set", "R3", "testing"]),
    ];
    let frame_responses = vec![
        push_and_start_response("one"),
        update_registers_response(&[("R1_PLAN", "the rest"), ("R2_NEXT", "look")]),
        // Pushed and popped without a subagent: the pop's merge writes registers that the model did not write.
        with_frame_push(new_step(), "never").into(),
        echo_response(),
        pop_frame_response("not needed").with_concurrent_write(&["set", "R5", "into the frame that waits"]),
        echo_response(),
        // Pushed and started in separate responses; the subagent does not return.
        with_frame_push(new_step(), "two").into(),
        with_frame_start(new_step(), "two").into(),
        echo_response(),
        full_window_response(),
        echo_response().with_concurrent_write(&["alloc", "late", "after the second compaction"]),
        ScriptedResponse::from(
            Step::default().with_tool_call("mcp__plimsoll__memory_show", serde_json::json!({})),
        )
        .with_concurrent_write(&["set", "R0", "new goal"]),
    ];
    // Enough calls that the registers are shown again without any change.
    let echo_responses = vec![echo_response(); 26];
    [
        first_responses,
        frame_responses,
        echo_responses,
        vec![update_registers_response(&[("R7_STATUS", "at the end")]), final_response()],
    ]
    .concat()
}

fn scripts() -> Vec<(&'static str, Vec<ScriptedResponse>)> {
    let new_step = Step::default;
    vec![
        ("main", main_script()),
        (
            "one",
            vec![
                update_registers_response(&[("R1_PLAN", "of one"), ("R5_ASSUMPTIONS", "of one")])
                    .with_concurrent_write(&["set", "R4", "said to one"]),
                ScriptedResponse::from(with_heap_write(new_step(), "notes", "five, by one"))
                    .with_concurrent_write(&["alloc", "x", "for one"]),
                push_and_start_response("deep"),
                ScriptedResponse::from(Step::bash_call("echo one goes on").with_input_tokens(870_000))
                    .with_concurrent_write(&["write", "x", "again"]),
                full_window_response().with_concurrent_write(&["set", "R7", "just before one is compacted"]),
                update_registers_response(&[("R6_OPEN_QUESTIONS", "asked by one")])
                    .with_concurrent_write(&["free", "x"]),
                echo_response(),
                pop_frame_response("one is done").with_concurrent_write(&["set", "R2", "too late for one"]),
                final_response(),
            ],
        ),
        (
            "deep",
            vec![
                with_heap_alloc(new_step(), "found", "by deep").into(),
                update_registers_response(&[("R7_STATUS", "deep at work")]).with_concurrent_write(&[
                    "set",
                    "R1",
                    "plan for deep",
                ]),
                pop_frame_response("deep is done"),
                final_response(),
            ],
        ),
        (
            "two",
            vec![
                update_registers_response(&[("R7_STATUS", "two at work")]),
                ScriptedResponse::from(Step::from_text("I stop here.")).with_concurrent_write(&[
                    "set",
                    "R6",
                    "while two stops",
                ]),
                Step::from_text("I have stopped.").into(),
            ],
        ),
    ]
}

#[test]
fn every_request_of_a_long_session_shows_the_current_memory() {
    let sessions = ScriptedSessions::new(&scripts());
    let finished = sessions.run_session("Work.", &[]);
    assert_eq!(finished.last_result()["result"], "done", "{}", finished.stderr);
    let (request_count, checked_count, has_conversation) = sessions.inspect_requests("", |requests| {
        let checked_count = requests.iter().filter(|recorded| recorded.frame_depth.is_some()).count();
        (
            requests.len(),
            checked_count,
            ["main", "one", "deep", "two"]
                .map(|conversation| requests.iter().any(|seen| seen.conversation == conversation)),
        )
    });
    assert!(
        request_count >= 60 && checked_count + 4 >= request_count,
        "{checked_count} of {request_count} were held against the store"
    );
    assert_eq!(has_conversation, [true; 4]);
    let compactions = sessions.model.requests_of_kind(RequestKind::Compaction);
    let frame_compaction_count =
        compactions.iter().filter(|request| request.full_text().contains("You work in the frame")).count();
    assert_eq!(
        (compactions.len(), frame_compaction_count),
        (3, 1),
        "two compactions of the session, one in a frame"
    );
    let memory = sessions.memory();
    assert_eq!((memory.depth(), memory.heap.len()), (0, 3), "{memory:?}");
    Budget::from_sessions(&sessions).assert_and_print();
}
