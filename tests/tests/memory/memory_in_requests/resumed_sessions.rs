//! Sessions that start, are resumed, or start anew after `/clear`.

use crate::memory_in_requests::harness::{
    ScriptedSessions, echo_response, final_response, update_registers_response, with_heap_alloc,
};
use plimsoll_testkit::scripted_model::{Request, Step};
use plimsoll_testkit::terminal::Terminal;
use std::time::Duration;

/// Counts the blocks about the memory in a request.
fn count_blocks(request: &Request) -> usize {
    let text = request.full_text();
    text.matches("<plimsoll-memory ").count() + text.matches("<plimsoll-chunk ").count()
}

fn block_count_of_last_request(sessions: &ScriptedSessions) -> usize {
    sessions.inspect_requests("main", |requests| count_blocks(&requests.last().expect("a request").request))
}

#[test]
fn a_resumed_session_is_shown_only_what_is_new_to_it() {
    let sessions = ScriptedSessions::new(&[("main", vec![echo_response(), final_response()])]);
    let finished = sessions.run_session("Work.", &[]);
    assert_eq!(block_count_of_last_request(&sessions), 0, "nothing is written, and nothing told");
    let session_id = finished.last_result()["session_id"].as_str().expect("an id").to_owned();

    let alloc_step = with_heap_alloc(Step::default(), "spec", "add(a, b)");
    sessions.append_scripts(&[(
        "main",
        vec![update_registers_response(&[("R0_GOAL", "Build it")]), alloc_step.into(), final_response()],
    )]);
    sessions.run_session("Work on.", &["--resume", &session_id]);
    assert_eq!(block_count_of_last_request(&sessions), 0, "the model's own words are in its calls");

    sessions.append_scripts(&[("main", vec![echo_response(), final_response()])]);
    sessions.run_session("Go on.", &["--resume", &session_id]);
    assert_eq!(block_count_of_last_request(&sessions), 0, "it knows everything: {:?}", sessions.memory());

    sessions.write_as_other(&["set", "R4", "keep the API"]);
    sessions.append_scripts(&[("main", vec![echo_response(), final_response()])]);
    sessions.run_session("Go on.", &["--resume", &session_id]);
    assert_eq!(block_count_of_last_request(&sessions), 2, "the snapshot: an overview and a chunk");
    sessions.append_scripts(&[("main", vec![final_response()])]);
    sessions.run_session("Go on.", &["--resume", &session_id]);
    assert_eq!(block_count_of_last_request(&sessions), 2, "once");

    sessions.write_as_other(&["free", "spec"]);
    sessions.append_scripts(&[("main", vec![final_response()])]);
    sessions.run_session("Go on.", &["--resume", &session_id]);
    assert_eq!(block_count_of_last_request(&sessions), 3, "the new overview no longer names the chunk");
}

#[test]
fn a_new_session_is_shown_the_whole_memory_in_its_first_request() {
    let sessions =
        ScriptedSessions::new(&[("main", vec![final_response(), echo_response(), final_response()])]);
    sessions.write_as_other(&["set", "R0", "Build it"]);
    sessions.write_as_other(&["alloc", "spec", "add(a, b)"]);
    sessions.run_session("Work.", &[]);
    sessions.run_session("Work, all others.", &[]);
    let block_counts = sessions.inspect_requests("main", |requests| {
        requests.iter().map(|seen| count_blocks(&seen.request)).collect::<Vec<_>>()
    });
    assert_eq!(block_counts, [2, 2, 2]);
}

#[test]
fn a_killed_session_is_shown_the_whole_memory_when_resumed() {
    let hanging_response = Step::from_text("…").with_hang(Duration::from_secs(20));
    let sessions = ScriptedSessions::new(&[(
        "main",
        vec![echo_response().with_concurrent_write(&["set", "R4", "keep the API"]), hanging_response.into()],
    )]);
    let session_id = "11111111-2222-4333-8444-555555555555";
    let mut running = sessions.client_command("Work.", &["--session-id", session_id]).spawn();
    let has_second_request = || sessions.inspect_requests("main", |requests| requests.len() == 2);
    sessions.world.wait_until(has_second_request, "the second request");
    running.kill();
    running.wait_or_kill_and_panic(Duration::from_secs(10));
    sessions.append_scripts(&[("main", vec![echo_response(), final_response()])]);
    sessions.run_session("Go on.", &["--resume", session_id]);
    // It is unknown whether the client kept the hook's text, so it is sent again.
    let first_resumed_request = sessions.inspect_requests("main", |requests| requests[2].request.full_text());
    assert!(
        first_resumed_request.contains("R4 CONSTRAINTS: keep the API")
            && first_resumed_request.contains("(for each frame, the highest rev")
    );
}

#[test]
fn a_prompt_shows_the_writes_of_others_and_a_clear_the_whole_memory() {
    let sessions = ScriptedSessions::new(&[(
        "main",
        vec![update_registers_response(&[("R0_GOAL", "Build it")]), Step::from_text("FIRST-IS-DONE").into()],
    )]);
    sessions.append_scripts(&[(
        "main",
        vec![Step::from_text("SECOND-IS-DONE").into(), Step::from_text("THIRD-IS-DONE").into()],
    )]);
    // On a terminal the client would ask whether to use the project's MCP server.
    let mut settings = sessions.world.read_json(".claude/settings.local.json");
    settings["enabledMcpjsonServers"] = serde_json::json!(["plimsoll"]);
    sessions.world.write(".claude/settings.local.json", &settings.to_string());
    let mut terminal = Terminal::start_claude(&sessions.world, &["--model", "opus"], 100, 40);
    terminal.wait_for_text("❯");
    let mut type_and_wait = |prompt: &str, expected: &str| {
        terminal.submit_prompt(prompt);
        terminal.wait_for_text(expected);
    };
    type_and_wait("Work.", "FIRST-IS-DONE");
    sessions.write_as_other(&["set", "R4", "keep the API"]);
    type_and_wait("Work on.", "SECOND-IS-DONE");
    type_and_wait("/clear", "❯");
    std::thread::sleep(Duration::from_secs(1));
    type_and_wait("Work anew.", "THIRD-IS-DONE");
    terminal.close();
    sessions.assert_requests_correct();
    sessions.inspect_requests("main", |requests| {
        let second_request = &requests[requests.len() - 2].request;
        assert!(
            second_request.full_text().contains("FIRST-IS-DONE") && count_blocks(second_request) == 1,
            "{}",
            second_request.full_text()
        );
        let last_request = &requests.last().expect("a request").request;
        assert!(!last_request.full_text().contains("FIRST-IS-DONE"), "it was cleared");
        assert_eq!(count_blocks(last_request), 1, "{}", last_request.full_text());
    });
}
