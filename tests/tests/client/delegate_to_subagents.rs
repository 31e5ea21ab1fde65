//! The model is advised to delegate large reads to subagents, and the tokens that stayed with them are computed from the turn log.

use plimsoll_testkit::scripted_agent::{AgentTurn, tick_item_command};
use plimsoll_testkit::scripted_model::{RequestKind, Step};
use plimsoll_tests::{
    LIFELIKE_DELAY, ScriptedAgent, first_request_of_iteration, run_with_objective, world_with_plan_and_dates,
};
use serde_json::{Value, json};

const PROJECT_TOTAL_PREFIX: &str = "(in this project so far, ";

/// Plays a subagent that reads what would have filled the window: 9,000 tokens at first, 40,000 when it answers with 100.
fn subagent_turn(turn: &AgentTurn<'_>) -> Step {
    match turn.request.full_text().contains("looked-around") {
        false => Step::bash_call("echo looked-around").with_input_tokens(9_000),
        true => Step::from_text("It is in src/dates.txt.").with_input_tokens(40_000).with_output_tokens(100),
    }
    .with_delay(LIFELIKE_DELAY)
}

fn call_explorer(prompt: &str) -> Step {
    let input = json!({"description": "look around", "prompt": prompt, "subagent_type": "Explore"});
    Step::default().with_tool_call("Agent", input)
}

#[test]
fn tokens_kept_in_subagents_are_reported_to_the_next_session_and_run() {
    let mut world = world_with_plan_and_dates("- [ ] Item one\n- [ ] Item two\n- [ ] Item three\n");
    let model = ScriptedAgent::new(|turn| {
        if turn.request.kind == RequestKind::Subagent {
            return subagent_turn(turn);
        }
        let item = turn.item_text.clone().unwrap_or_default();
        match (item.as_str(), turn.assistant_message_count) {
            ("Item one", 0) => call_explorer("Where is it?").with_input_tokens(20_000),
            ("Item one" | "Item two", 1) | ("Item two", 0) => {
                Step::bash_call(tick_item_command(&item)).with_input_tokens(21_000)
            }
            ("Item three", 0) => Step::bash_call(tick_item_command(&item)).with_input_tokens(21_000),
            ("Item three", _) => {
                Step::from_text(format!("All done.\n\n{}", turn.promise_line)).with_input_tokens(21_000)
            }
            _ => Step::from_text("Done.").with_input_tokens(21_000),
        }
        .with_delay(LIFELIKE_DELAY)
    })
    .with_real_client()
    .start(&mut world);
    let finished = run_with_objective(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let first_request = first_request_of_iteration(&model, 1);
    assert!(
        first_request
            .contains("to subagents; only their answer comes back.\n  To find files and code: `Explore`."),
        "{first_request}"
    );
    assert!(!first_request.contains(PROJECT_TOTAL_PREFIX), "nothing has stayed anywhere yet");
    // 40,000 tokens with its last answer of 100, less the 9,000 that it began with and the answer that it returned.
    let expected = format!("{PROJECT_TOTAL_PREFIX}about 31k tokens stayed with 1 subagent).");
    assert!(
        first_request_of_iteration(&model, 2).contains(&expected),
        "{}",
        first_request_of_iteration(&model, 2)
    );
    let state: Value = serde_json::from_str(&world.read(".claude/ralph-state.json")).expect("the state");
    assert_eq!(state["context_history"][0]["delegated"], json!({"agents": 1, "tokens": 31_000}));
    assert_eq!(state["context_history"][1]["delegated"], json!({"agents": 0, "tokens": 0}));
    let stats = world.plimsoll(&["turns", "stats"]).run();
    assert!(stats.stdout.contains("about 31k tokens stayed with 1 subagent"), "{stats:?}");

    world.write("fix_plan.md", "- [ ] Item three\n");
    let second_run = run_with_objective(&world, &[]);
    assert_eq!(second_run.code, Some(0), "{second_run:?}");
    let requests = model.main_requests();
    let last = requests.last().expect("a request").first_message_text();
    assert!(last.contains(&expected), "{last}");
}
