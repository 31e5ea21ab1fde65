//! The module on a terminal: the band, the key, the question, and the fresh conversation.

use super::harness::{
    FRESH_MARKER, FULL, MARKER, SUMMARY, handoff_text, shorten_question, summary_count, use_programs_of,
    world_with_module,
};
use plimsoll_protocol::handoff_message::parse_quoted_requests;
use plimsoll_protocol::settings::parse_version;
use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::{TIMEOUT, World};
use serde_json::json;
use std::time::{Duration, Instant};

/// Starts a model that answers the first prompt at this usage, and everything after a handoff at a low one.
fn model_with_usage(tokens: u64) -> ScriptedModel {
    ScriptedModel::start(move |request| {
        let text = request.full_text();
        if text.contains("[Plimsoll handoff") || text.contains(SUMMARY) {
            Step::from_text("answer after the handoff").with_input_tokens(30_000)
        } else if request.assistant_message_count() == 0 {
            // The client does not summarize a conversation without a tool call.
            Step::bash_call("echo hi").with_input_tokens(20_000)
        } else {
            Step::from_text("first answer").with_input_tokens(tokens)
        }
    })
    .with_compaction_step(Step::from_text(format!("<summary>{SUMMARY}</summary>")))
}

const ESCAPE: &str = "\u{1b}";
const DOWN: &str = "\u{1b}[B";
const QUESTION: &str = "What should take the place of the conversation?";

fn start_claude(world: &World) -> Terminal {
    let arguments = ["--model", "opus", "--permission-mode", "default", "--allowedTools", "Bash"];
    Terminal::start_claude(world, &arguments, 110, 40)
}

/// Presses a key until it has this effect. The client drops a key that comes before it is ready for it.
fn press_until(terminal: &mut Terminal, key: &str, has_effect: impl Fn(&Terminal) -> bool) {
    let started_at = Instant::now();
    while !has_effect(terminal) {
        assert!(started_at.elapsed() < TIMEOUT, "{key:?} does nothing:\n{}", terminal.screen_text());
        terminal.type_text(key);
        let pressed_at = Instant::now();
        while !has_effect(terminal) && pressed_at.elapsed() < KEY_INTERVAL {
            std::thread::sleep(Duration::from_millis(20));
        }
        // A key that came too early is the beginning of a prompt.
        if terminal.screen_text().replace('\u{a0}', " ").contains(&format!("❯ {key}")) {
            terminal.type_text("\u{7f}");
        }
    }
}

const KEY_INTERVAL: Duration = Duration::from_secs(2);

fn is_last_request_with(model: &ScriptedModel, text: &str) -> bool {
    model.main_requests().last().is_some_and(|request| request.full_text().contains(text))
}

#[test]
fn nothing_is_shown_below_l1_and_the_key_continues_in_a_fresh_conversation() {
    let model = model_with_usage(720_000);
    let world = world_with_module(&model, &json!({}));
    let mut terminal = start_claude(&world);
    terminal.wait_for_text("❯");
    assert!(!terminal.screen_text().contains("continue fresh"), "{}", terminal.screen_text());
    terminal.submit_prompt("The first request.");
    let screen = terminal.wait_for_text("continue fresh");
    assert!(
        screen.contains("72% of the context window used, 247k tokens left until Claude Code compacts"),
        "{screen}"
    );
    press_until(&mut terminal, "0", |_| is_last_request_with(&model, FRESH_MARKER));
    terminal.wait_for_text("answer after the handoff");
    let last = model.main_requests().into_iter().last().expect("a request");
    let text = handoff_text(&last);
    assert!(text.starts_with(FRESH_MARKER), "{text}");
    assert_eq!(parse_quoted_requests(&text), ["The first request."]);
    assert!(text.contains("> first answer"), "{text}");
    // A second handoff carries the first request on.
    terminal.submit_prompt("The second request.");
    terminal.wait_for_text("The second request.");
    terminal.submit_prompt("/handoff clear");
    let mut requests_in_handoff = Vec::new();
    let is_second_handoff = || {
        let last = model.main_requests().into_iter().last().expect("a request");
        requests_in_handoff = parse_quoted_requests(&handoff_text(&last));
        requests_in_handoff.len() > 1 && last.assistant_message_count() == 0
    };
    terminal.wait_until(is_second_handoff, "second handoff");
    assert_eq!(requests_in_handoff, ["The first request.", "The second request."]);
    assert_eq!(summary_count(&model), 0);
}

/// Two handoffs, each with its own `/clear`, would throw away what came between them.
#[test]
fn a_key_that_is_pressed_again_continues_once() {
    let model = model_with_usage(720_000);
    let world = world_with_module(&model, &json!({}));
    let real = find_or_build_bin_dir().join("plimsoll").display().to_string();
    let calls = world.path("calls");
    let script = format!("#!/bin/sh\necho \"$1\" >> {}\nsleep 1\nexec {real} \"$@\"\n", calls.display());
    world.write_program("slow/plimsoll", &script);
    use_programs_of(&world, &world.path("slow").display().to_string());
    let mut terminal = start_claude(&world);
    terminal.wait_for_text("❯");
    terminal.submit_prompt("The first request.");
    terminal.wait_for_text("continue fresh");
    let count_checkpoints = || world.read(&calls).matches("checkpoint").count();
    press_until(&mut terminal, "0", |_| count_checkpoints() == 1);
    terminal.type_text("0");
    world.wait_until(|| is_last_request_with(&model, FRESH_MARKER), "the handoff");
    terminal.wait_for_text("answer after the handoff");
    // A second handoff would follow within two seconds.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(count_checkpoints(), 1, "{}", terminal.screen_text());
    assert_eq!(model.main_requests().len(), 3, "two before, one after\n{}", terminal.screen_text());
}

#[test]
fn the_question_is_answered_by_the_user_or_after_a_minute_by_the_client() {
    for (key, expected_summaries) in [(Some("\r"), 0), (Some("2"), 1), (Some(ESCAPE), 1), (None, 1)] {
        let model = model_with_usage(FULL);
        let world = world_with_module(&model, &json!({"compaction": "ask"}));
        if key.is_none() {
            shorten_question(&world);
        }
        let mut terminal = start_claude(&world);
        terminal.wait_for_text("❯");
        terminal.submit_prompt("The first request.");
        terminal.wait_for_text("first answer");
        terminal.submit_prompt("The second request.");
        let screen = terminal.wait_for_text(QUESTION);
        assert!(screen.contains("Plimsoll's handoff (at once)"), "{screen}");
        match key {
            Some(ESCAPE) => {
                // A second Escape would interrupt the turn, so this one must not come too early either.
                press_until(&mut terminal, DOWN, |terminal| !terminal.screen_text().contains("❯ 1."));
                terminal.type_text(ESCAPE);
            }
            Some(key) => {
                press_until(&mut terminal, key, |terminal| !terminal.screen_text().contains(QUESTION));
            }
            None => {}
        }
        let expected_text = if expected_summaries == 0 { MARKER } else { SUMMARY };
        world.wait_until(
            || is_last_request_with(&model, expected_text),
            &format!("{expected_text} after {key:?}"),
        );
        assert_eq!(summary_count(&model), expected_summaries, "{key:?}\n{}", terminal.screen_text());
        // The client cannot take an unanswered question back, but the turn has gone on.
        terminal.wait_for_text("answer after the handoff");
    }
}

#[test]
fn the_setting_continues_at_the_end_of_a_turn_once() {
    // The fresh conversation is as full as the old one.
    let model = ScriptedModel::start(|request| {
        let is_fresh = request.full_text().contains("[Plimsoll handoff");
        match (is_fresh, request.assistant_message_count()) {
            (false, 0) => Step::bash_call("echo hi").with_input_tokens(20_000),
            (false, _) => Step::from_text("first answer").with_input_tokens(860_000),
            (true, 0) => Step::from_text("answer after the handoff").with_input_tokens(860_000),
            (true, _) => Step::from_text("last answer").with_input_tokens(861_000),
        }
    });
    let world = world_with_module(&model, &json!({"handoff_at": "l2"}));
    let mut terminal = start_claude(&world);
    terminal.wait_for_text("❯");
    terminal.submit_prompt("The first request.");
    terminal.wait_for_text("answer after the handoff");
    let text = handoff_text(model.main_requests().last().expect("a request"));
    assert_eq!(parse_quoted_requests(&text), ["The first request."], "{text}");
    terminal.wait_for_text("continue fresh");
    terminal.submit_prompt("The second request.");
    terminal.wait_for_text("last answer");
    terminal.wait_for_text("continue fresh");
    // A second handoff would follow within a second.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(model.main_requests().len(), 4, "two before, two after\n{}", terminal.screen_text());
}

/// From 2.1.332 on, a module can draw the status line.
#[test]
fn the_status_line_is_drawn_where_the_user_has_none() {
    let model = model_with_usage(720_000);
    let world = world_with_module(&model, &json!({}));
    let path = world.home().join(".claude/settings.json");
    let mut settings = world.read_json(&path);
    settings.as_object_mut().expect("settings").remove("statusLine").expect("the status line of init");
    world.write(&path, &settings.to_string());
    let version = world.claude(&["--version"]).run().expect_success().stdout;
    let draws_status_line = parse_version(&version) >= parse_version("2.1.332");
    let mut terminal = start_claude(&world);
    terminal.wait_for_text("❯");
    terminal.submit_prompt("The first request.");
    terminal.wait_for_text("continue fresh");
    if draws_status_line {
        let screen = terminal.wait_for_text("▏ 72%");
        assert!(screen.contains("720k/1M"), "{screen}");
    } else {
        assert!(!terminal.screen_text().contains("▏ 72%"), "{}", terminal.screen_text());
    }
}
