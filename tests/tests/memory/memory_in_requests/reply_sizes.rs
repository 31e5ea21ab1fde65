//! The client shows only a preview of a hook's text that is too long. No text of our hooks is ever too long.

use crate::memory_in_requests::harness::{
    FULL_WINDOW_TOKENS, ScriptedResponse, ScriptedSessions, echo_response, final_response,
    pop_frame_response, push_and_start_response, update_registers_response, with_heap_alloc, with_heap_write,
};
use plimsoll_domain::memory::{HARD_LIMIT_UTF16_UNITS, Register};
use plimsoll_testkit::scripted_model::{Request, RequestKind, Step};
use serde_json::json;

/// Characters of 2 UTF-16 units each: the largest value of a register with this many characters.
fn wide_text(char_count: usize) -> String {
    "🦀".repeat(char_count)
}

/// Writes three chunks that fill the heap to its hard limit, except for a few units.
fn fill_heap(sessions: &ScriptedSessions, letter: &str) {
    for name in ["large-1", "large-2", "large-3"] {
        sessions.write_as_other(&[
            "alloc",
            name,
            &letter.repeat(HARD_LIMIT_UTF16_UNITS / 3 - 5),
            "--description",
            &"d".repeat(80),
        ]);
    }
}

fn heap_utf16_units(sessions: &ScriptedSessions) -> usize {
    sessions.memory().heap.iter().map(|chunk| chunk.content.encode_utf16().count()).sum()
}

#[test]
fn a_full_heap_is_shown_whole_at_start_after_compaction_and_on_resume() {
    let sessions = ScriptedSessions::new(&[(
        "main",
        vec![
            echo_response(),
            Step::bash_call("echo full").with_input_tokens(FULL_WINDOW_TOKENS).into(),
            echo_response(),
            final_response(),
            // The session is resumed after another writer has changed the memory.
            echo_response(),
            final_response(),
        ],
    )]);
    fill_heap(&sessions, "x");
    for register in Register::ALL {
        sessions.write_as_other(&["set", register.key(), &wide_text(register.max_chars())]);
    }
    assert!(heap_utf16_units(&sessions) > HARD_LIMIT_UTF16_UNITS - 100);
    let first_result = sessions.run_session("Work.", &[]).last_result();
    assert_eq!(first_result["result"], "done");
    sessions.write_as_other(&["write", "large-2", &"y".repeat(9_000 - 1_100)]);
    let session_id = first_result["session_id"].as_str().expect("an id");
    assert_eq!(sessions.run_session("Go on.", &["--resume", session_id]).last_result()["result"], "done");
    assert_eq!(sessions.model.requests_of_kind(RequestKind::Compaction).len(), 1);
    sessions.inspect_requests("main", |requests| {
        assert_eq!(requests.len(), 6);
        let full_block_count =
            |request: &Request| request.full_text().matches("(for each frame, the highest rev").count();
        assert_eq!([0, 1, 2, 3, 4].map(|index| full_block_count(&requests[index].request)), [1, 1, 1, 1, 2]);
    });
}

#[test]
fn a_frame_gets_the_full_heap_in_its_brief_and_after_its_compaction() {
    let push_arguments = json!({"name": "large", "objective": "o".repeat(4_000), "context": "c".repeat(10_000),
        "return_spec": "r".repeat(2_000)});
    let agent_arguments = json!({"subagent_type": "frame", "description": "large", "prompt": "p"});
    let report = wide_text(10_000);
    let sessions = ScriptedSessions::new(&[
        (
            "main",
            vec![
                Step::default()
                    .with_tool_call("mcp__plimsoll__push_frame", push_arguments)
                    .with_tool_call("Agent", agent_arguments)
                    .into(),
                echo_response(),
                echo_response(),
                final_response(),
            ],
        ),
        (
            "large",
            vec![
                Step::bash_call("echo large").with_input_tokens(870_000).into(),
                Step::bash_call("echo full").with_input_tokens(FULL_WINDOW_TOKENS).into(),
                echo_response(),
                pop_frame_response(&report),
                final_response(),
            ],
        ),
    ]);
    fill_heap(&sessions, "x");
    assert_eq!(sessions.run_session("Work.", &[]).last_result()["result"], "done");
    let requests_with_context = sessions.inspect_requests("large", |requests| {
        assert_eq!(requests.iter().filter(|recorded| recorded.frame_depth.is_some()).count(), 4);
        let has_whole_context = |recorded: &&&crate::memory_in_requests::harness::RecordedRequest| {
            recorded.request.full_text().contains(&"c".repeat(10_000))
        };
        requests.iter().filter(has_whole_context).count()
    });
    assert_eq!(
        requests_with_context, 2,
        "the context is whole in the brief; after the compaction it is cut to one entry"
    );
    let is_report_shown =
        sessions.inspect_requests("main", |requests| requests[1].request.full_text().contains(&report));
    assert!(is_report_shown, "the report is told whole");
}

/// Below the heap's soft limit every change fits into one hook's text. Above it a frame may return with more, so two
/// hooks report its end.
#[test]
fn a_parent_knows_two_hook_texts_of_changes_when_its_frame_returns() {
    let new_step = Step::default;
    let chunk_content = |letter: &str| letter.repeat(8_500);
    let sessions = ScriptedSessions::new(&[
        (
            "main",
            vec![
                update_registers_response(&[("R1_PLAN", "p")]),
                push_and_start_response("busy"),
                echo_response(),
                final_response(),
            ],
        ),
        (
            "busy",
            vec![
                ScriptedResponse::from(with_heap_alloc(
                    with_heap_alloc(new_step(), "a", &chunk_content("a")),
                    "b",
                    "short",
                )),
                with_heap_write(new_step(), "b", &chunk_content("b")).into(),
                update_registers_response(&[("R6_OPEN_QUESTIONS", &"q".repeat(600))]),
                pop_frame_response(&"r".repeat(300)),
                final_response(),
            ],
        ),
    ]);
    assert_eq!(sessions.run_session("Work.", &[]).last_result()["result"], "done");
}

/// Changes beyond the size of one hook's text arrive in whole pieces with the next events; the first one announces
/// it.
#[test]
fn changes_beyond_one_hook_text_are_announced_and_arrive_in_pieces() {
    let chunk_content = |letter: &str| letter.repeat(7_000);
    let sessions = ScriptedSessions::new(&[(
        "main",
        vec![
            echo_response()
                .with_concurrent_write(&["alloc", "a", &chunk_content("a")])
                .with_concurrent_write(&["alloc", "b", &chunk_content("b")])
                .with_concurrent_write(&["alloc", "c", &chunk_content("c")]),
            echo_response(),
            echo_response(),
            final_response(),
        ],
    )]);
    sessions.client_command("Work.", &[]).run().expect_success();
    sessions.inspect_requests("main", |requests| {
        let shown_letters = |index: usize| {
            let text = requests[index].request.full_text();
            ["a", "b", "c"].map(|letter| text.contains(&chunk_content(letter)))
        };
        assert_eq!(
            [0, 1, 2, 3].map(shown_letters),
            [[false; 3], [true, false, false], [true, true, false], [true; 3]]
        );
        let announcement_count = |index: usize| {
            requests[index].request.full_text().matches("the rest follows with your next calls").count()
        };
        assert_eq!([0, 1, 2, 3].map(announcement_count), [0, 1, 2, 2]);
        assert!(!requests[3].request.full_text().contains("<persisted-output>"));
    });
}
