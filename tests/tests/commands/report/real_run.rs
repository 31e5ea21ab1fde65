//! The report of a real run, with the real client, its hooks, a checkpoint and commits.

use plimsoll_testkit::scripted_agent::AgentTurn;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_tests::{
    LIFELIKE_DELAY, ScriptedAgent, THREE_ITEM_PLAN, honest_agent, run_with_objective,
    world_with_plan_and_dates,
};
use serde_json::Value;

/// The session of the second item fills its window before the item is done.
fn fill_window_in_second_session(turn: &AgentTurn<'_>) -> Step {
    let step = match (turn.iteration, turn.assistant_message_count) {
        (2, 0) => Step::bash_call("sed -i '45,80s/$/ changed/' src/dates.txt").with_input_tokens(600_000),
        (2, 1) => Step::bash_call("echo more").with_input_tokens(870_000),
        (2, _) => Step::from_text("I stop here.").with_input_tokens(872_000),
        _ => honest_agent(turn),
    };
    step.with_delay(LIFELIKE_DELAY)
}

#[test]
fn report_of_a_run_with_the_real_client_shows_what_happened() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let _model = ScriptedAgent::new(fill_window_in_second_session).start(&mut world);
    let finished = run_with_objective(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let html = crate::report::sample_run::report_html(&world);
    let state: Value = world.read_json(".claude/ralph-state.json");
    for part in ["Done.", "3 of 3 done", "checkpoint L2 at 87%", "ralph: checkpoint iter 2 (L2 at 87%)"] {
        assert!(html.contains(part), "{part} is missing in\n{html}");
    }
    let handoff = state["context_checkpoint"]["handoff_file"].as_str().unwrap();
    assert!(html.contains(handoff), "{handoff}");
    assert_eq!(html.matches("<path class=\"load").count(), 4, "a load line for each session");
    assert_eq!(html.matches("<svg class=\"mark end\"").count(), 5, "an end for each, and the legend");
    let second = html.split_once("Item two").expect("the second item").1;
    assert!(second.contains("2 sessions · 1 resumed"), "{second}");
    for tool in ["Bash", "the model's own text"] {
        assert!(html.contains(tool), "{tool}");
    }
}
