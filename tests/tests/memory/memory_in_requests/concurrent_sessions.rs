//! Two sessions at once in one project, and a write between two hooks of one event.

use crate::frames::harness::with_register_update;
use crate::memory_in_requests::harness::{
    ScriptedSessions, echo_response, final_response, update_registers_response, with_heap_alloc,
    with_heap_free,
};
use crate::memory_in_requests::independent_reader::RequestReader;
use plimsoll_testkit::scripted_model::Step;
use serde_json::{Value, json};

#[test]
fn two_concurrent_sessions_each_know_what_the_other_writes() {
    let new_step = Step::default;
    // The session that begins first waits for the other one, so that both really work at the same time.
    let session_script = |own_name: &'static str, register: &'static str, other_name: &'static str| {
        let mut responses = vec![
            update_registers_response(&[(register, own_name)]),
            echo_response().after_memory_contains(other_name),
        ];
        for number in 0..3 {
            let text = format!("{own_name} {number}");
            responses.push(update_registers_response(&[(register, &text), ("R7_STATUS", &text)]));
            responses.push(with_heap_alloc(new_step(), &format!("{own_name}-{number}"), &text).into());
            responses.push(
                with_register_update(
                    with_heap_free(new_step(), &format!("{own_name}-{number}")),
                    &[("R2_NEXT", &text)],
                )
                .into(),
            );
        }
        responses.push(with_heap_alloc(new_step(), own_name, "to stay").into());
        responses.push(echo_response());
        responses
    };
    let sessions = ScriptedSessions::new(&[
        ("main-a", session_script("alpha", "R4_CONSTRAINTS", "beta")),
        ("main-b", session_script("beta", "R5_ASSUMPTIONS", "alpha")),
    ]);
    sessions.allow_concurrent_writes();
    let running_sessions =
        ["main-a", "main-b"].map(|name| sessions.client_command(&format!("You are {name}."), &[]).spawn());
    for session in running_sessions {
        let finished = session.wait_or_kill_and_panic(std::time::Duration::from_secs(60));
        assert_eq!(finished.code, Some(0), "{finished:?}");
    }
    sessions.assert_requests_correct();
    // Each session saw the other's writes while it worked, and in the end both know the same memory.
    for (conversation, other_name) in [("main-a", "beta"), ("main-b", "alpha")] {
        let mention_count = sessions.inspect_requests(conversation, |requests| {
            requests.iter().filter(|seen| seen.request.full_text().contains(other_name)).count()
        });
        assert!(mention_count >= 1, "{conversation} has heard of {other_name}");
    }
    sessions.append_scripts(&[("main-a", vec![final_response()]), ("main-b", vec![final_response()])]);
    for name in ["main-a", "main-b"] {
        sessions.run_session(&format!("You are {name}, anew."), &[]);
        let errors = sessions.inspect_requests(name, |requests| {
            let last_request = requests.last().expect("a request");
            RequestReader::from_request(&last_request.request, 0).find_differences(&sessions.memory(), 0)
        });
        assert!(errors.is_empty(), "{errors:?}");
    }
}

/// Returns the additional context that a hook program gives the model.
fn hook_context(sessions: &ScriptedSessions, program: &str, arguments: &[&str], payload: &Value) -> String {
    let program_path = plimsoll_testkit::find_or_build_bin_dir().join(program);
    let finished =
        sessions.world.command(program_path, arguments).stdin(payload.to_string()).run().expect_success();
    if finished.stdout.is_empty() {
        return String::new();
    }
    finished.stdout_json()["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_write_between_two_hooks_of_a_start_arrives_with_the_next_event() {
    let sessions = ScriptedSessions::new(&[]);
    let build_payload = |event: &str, extra_fields: Value| {
        let mut payload =
            json!({"session_id": "s-1", "cwd": sessions.world.project(), "hook_event_name": event});
        payload
            .as_object_mut()
            .expect("an object")
            .extend(extra_fields.as_object().expect("an object").clone());
        payload
    };
    sessions.write_as_other(&["alloc", "spec", "old"]);
    for source in ["startup", "compact", "resume"] {
        let start_payload = build_payload("SessionStart", json!({"source": source}));
        let start_rev = sessions.memory().revision;
        sessions.write_as_other(&["write", "spec", &format!("before {source}")]);
        assert!(
            hook_context(&sessions, "plimsoll-memory", &["part-2"], &start_payload)
                .contains(&format!("before {source}")),
            "{source}"
        );
        sessions.write_as_other(&["write", "spec", &format!("after {source}")]);
        let overview = hook_context(&sessions, "plimsoll-session-start", &["memory"], &start_payload);
        assert!(overview.contains(&format!("rev=\"{}\"", start_rev + 2)), "{source}");
        let batch_payload = build_payload("PostToolBatch", json!({"tool_calls": []}));
        let batch_context = || hook_context(&sessions, "plimsoll-post-tool", &["memory"], &batch_payload);
        assert!(batch_context().contains(&format!("after {source}")), "{source}");
        assert_eq!(batch_context(), "", "{source}: once");
    }
}
