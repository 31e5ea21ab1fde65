//! The module on a terminal: the band, the key, the question, and the fresh conversation.

use super::harness::{FRESH_MARKER, FULL, MARKER, SUMMARY, handoff_text, summary_count, world_with_module};
use plimsoll_protocol::handoff_message::parse_quoted_requests;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use serde_json::json;

/// Starts a model that answers the first prompt at this usage, and everything after a handoff at a low one.
fn model_with_usage(tokens: u64) -> ScriptedModel {
    ScriptedModel::start(move |request| {
        let text = request.full_text();
        if text.contains("[Plimsoll handoff") || text.contains(SUMMARY) {
            Step::from_text("answer after the handoff").with_input_tokens(30_000)
        } else {
            Step::from_text("first answer").with_input_tokens(tokens)
        }
    })
    .with_compaction_step(Step::from_text(format!("<summary>{SUMMARY}</summary>")))
}

fn start_claude(world: &World) -> Terminal {
    Terminal::start_claude(world, &["--model", "opus", "--permission-mode", "default"], 110, 40)
}

/// Presses the key of the band. The client takes a key that comes too early for the beginning of a prompt.
fn press_band_key(world: &World, terminal: &mut Terminal) {
    let is_typed = |terminal: &Terminal| terminal.screen_text().contains("❯ 0");
    loop {
        terminal.type_text("0");
        world.wait_until(
            || is_typed(terminal) || !terminal.screen_text().contains("first answer"),
            "the key to be taken",
        );
        if !is_typed(terminal) {
            return;
        }
        terminal.type_text("\u{7f}");
        world.wait_until(|| !is_typed(terminal), "an empty prompt");
    }
}

fn send(terminal: &mut Terminal, text: &str) {
    terminal.type_text(text);
    terminal.press_enter();
}

#[test]
fn nothing_is_shown_below_l1_and_the_key_continues_in_a_fresh_conversation() {
    let model = model_with_usage(720_000);
    let world = world_with_module(&model, &json!({}));
    let mut terminal = start_claude(&world);
    terminal.wait_for_text("❯");
    assert!(!terminal.screen_text().contains("continue fresh"), "{}", terminal.screen_text());
    send(&mut terminal, "The first request.");
    let screen = terminal.wait_for_text("continue fresh");
    assert!(
        screen.contains("72% of the context window used, 247k tokens left until the client compacts"),
        "{screen}"
    );
    press_band_key(&world, &mut terminal);
    let screen = terminal.wait_for_text("answer after the handoff");
    assert!(!screen.contains("first answer"), "the screen was cleared: {screen}");
    let last = model.main_requests().into_iter().last().expect("a request");
    let text = handoff_text(&last);
    assert!(text.starts_with(FRESH_MARKER), "{text}");
    assert_eq!(parse_quoted_requests(&text), ["The first request."]);
    assert!(text.contains("> first answer"), "{text}");
    // A second handoff carries the first request on.
    send(&mut terminal, "The second request.");
    terminal.wait_for_text("The second request.");
    send(&mut terminal, "/handoff clear");
    let is_second_handoff = || {
        let last = model.main_requests().into_iter().last().expect("a request");
        parse_quoted_requests(&handoff_text(&last)) == ["The first request.", "The second request."]
            && last.assistant_message_count() == 0
    };
    world.wait_until(is_second_handoff, "the second handoff");
    assert_eq!(summary_count(&model), 0);
}

#[test]
fn the_question_is_answered_by_the_user_or_after_a_minute_by_the_client() {
    for (key, expected_summaries) in [(Some("\r"), 0), (Some("2"), 1), (Some("\u{1b}"), 1), (None, 1)] {
        let model = model_with_usage(FULL);
        let world = world_with_module(&model, &json!({"compaction": "ask"}));
        let mut terminal = start_claude(&world);
        terminal.wait_for_text("❯");
        send(&mut terminal, "The first request.");
        terminal.wait_for_text("first answer");
        send(&mut terminal, "The second request.");
        let screen = terminal.wait_for_text("What should take the place of the conversation?");
        assert!(screen.contains("Plimsoll's handoff (at once)"), "{screen}");
        if let Some(key) = key {
            terminal.type_text(key);
        }
        let expected_text = if expected_summaries == 0 { MARKER } else { SUMMARY };
        let is_replaced = || {
            model.main_requests().last().is_some_and(|request| request.full_text().contains(expected_text))
        };
        world.wait_until(is_replaced, expected_text);
        assert_eq!(summary_count(&model), expected_summaries, "{key:?}\n{}", terminal.screen_text());
    }
}

#[test]
fn the_setting_continues_at_the_end_of_a_turn_once() {
    let model = model_with_usage(860_000);
    let world = world_with_module(&model, &json!({"handoff_at": "l2"}));
    let mut terminal = start_claude(&world);
    terminal.wait_for_text("❯");
    send(&mut terminal, "The first request.");
    terminal.wait_for_text("answer after the handoff");
    let request_count = model.main_requests().len();
    assert_eq!(request_count, 2, "one before, one after");
    let text = handoff_text(model.main_requests().last().expect("a request"));
    assert_eq!(parse_quoted_requests(&text), ["The first request."], "{text}");
}
