//! `claude --resume` in a terminal after the prompt cache has expired: what the session costs again, and the cheaper way.

use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use plimsoll_tests::LIFELIKE_DELAY;

const SESSION_ID: &str = "11111111-1111-4111-8111-111111111111";

/// Plays a session that uses this many tokens, two hours ago if its cache shall have expired.
fn world_with_ended_session(context_tokens: u64, has_cache_expired: bool) -> (World, ScriptedModel) {
    let model = ScriptedModel::start(move |request| {
        let step = match request.assistant_message_count() {
            0 => Step::bash_call("echo one").with_input_tokens(20_000),
            _ => Step::from_text("The parser reads dates.").with_input_tokens(context_tokens),
        };
        step.with_output_tokens(1).with_delay(LIFELIKE_DELAY)
    });
    let mut world = World::without_plimsoll_files();
    world.put_client_on_path_with_model_and_settings(&model);
    world.plimsoll(&["init", "--user"]).run().expect_success();
    let arguments =
        ["-p", "Fix the parser", "--model", "opus", "--session-id", SESSION_ID, "--allowedTools", "Bash"];
    world.claude(&arguments).run().expect_success();
    if has_cache_expired {
        move_transcript_two_hours_back(&world);
    }
    (world, model)
}

fn move_transcript_two_hours_back(world: &World) {
    let [transcript] = world.transcript_paths().try_into().expect("one transcript");
    let text = std::fs::read_to_string(&transcript).expect("the transcript");
    let mut parts = text.split("\"timestamp\":\"");
    let mut moved = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (timestamp, rest) = part.split_once('"').expect("a timestamp");
        let time = chrono::DateTime::parse_from_rfc3339(timestamp).expect("a time");
        let earlier = (time - chrono::Duration::hours(2)).to_utc().format("%Y-%m-%dT%H:%M:%S%.3fZ");
        moved += &format!("\"timestamp\":\"{earlier}\"{rest}");
    }
    std::fs::write(&transcript, moved).expect("the transcript");
}

/// Waits for a text that the client may wrap.
fn wait_for_wrapped_text(terminal: &Terminal, text: &str) {
    let joined_screen = || terminal.screen_text().split_whitespace().collect::<Vec<_>>().join(" ");
    terminal.wait_until(|| joined_screen().contains(text), text);
}

#[test]
fn an_expensive_resumption_is_shown_with_the_steps_to_a_fresh_session() {
    let (world, model) = world_with_ended_session(400_000, true);
    let mut terminal =
        Terminal::start_claude(&world, &["--resume", SESSION_ID, "--permission-mode", "default"], 200, 50);
    wait_for_wrapped_text(
        &terminal,
        "Plimsoll: the prompt cache of this session has expired. The next request costs about $2.00 to write 400k tokens again. A fresh session with the handoff costs about $0.11: /clear, then: /handoff continue",
    );
    terminal.submit_prompt("/clear");
    terminal.wait_for_text("Plimsoll: an earlier session left a handoff");
    let handoffs = world.plimsoll(&["handoffs", "--json"]).run().expect_success().stdout;
    assert!(handoffs.contains("Fix the parser"), "{handoffs}");
    assert_eq!(model.main_requests().len(), 2, "nothing was sent since the session ended");
}

#[test]
fn a_cheap_or_headless_resumption_shows_nothing_and_writes_no_handoff() {
    for (context_tokens, has_cache_expired) in [(60_000, true), (400_000, false)] {
        let (world, _model) = world_with_ended_session(context_tokens, has_cache_expired);
        let mut terminal = Terminal::start_claude(
            &world,
            &["--resume", SESSION_ID, "--permission-mode", "default"],
            200,
            50,
        );
        terminal.wait_for_text("The parser reads dates.");
        terminal.submit_prompt("/exit");
        terminal.wait_for_exit();
        assert_no_handoff(&world, &String::from_utf8_lossy(&terminal.received_bytes()));
    }
    let (world, _model) = world_with_ended_session(400_000, true);
    let arguments = ["-p", "Go on", "--resume", SESSION_ID, "--output-format", "stream-json", "--verbose"];
    let finished = world.claude(&arguments).run().expect_success();
    assert!(finished.stdout.contains("SessionStart"), "{finished:?}");
    assert_no_handoff(&world, &finished.stdout);
}

fn assert_no_handoff(world: &World, output: &str) {
    assert!(!output.contains("prompt cache of this session"), "{output}");
    let handoffs = world.plimsoll(&["handoffs", "--json"]).run().expect_success().stdout;
    assert!(!handoffs.contains("Fix the parser"), "{handoffs}");
}
