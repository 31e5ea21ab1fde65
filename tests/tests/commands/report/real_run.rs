//! The page of a run that was one: the real client, its hooks, a checkpoint, commits.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::story::Turn;
use plimsoll_tests::{ITEMS, LIFELIKE, ScriptedAgent, honest, run, world};
use serde_json::Value;

/// The second item does not get done before the window is nearly full.
fn tell(turn: &Turn<'_>) -> Step {
    let step = match (turn.iteration, turn.step) {
        (2, 0) => Step::bash("sed -i '45,80s/$/ changed/' src/dates.txt").usage(600_000),
        (2, 1) => Step::bash("echo more").usage(870_000),
        (2, _) => Step::text("I stop here.").usage(872_000),
        _ => honest(turn),
    };
    step.delay(LIFELIKE)
}

#[test]
fn a_night_with_the_real_client_is_reported_as_it_was() {
    let mut world = world(ITEMS);
    let _model = ScriptedAgent::new(tell).start(&mut world);
    let finished = run(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let html = crate::report::sample_run::page(&world);
    let state: Value = world.json(".claude/ralph-state.json");
    for part in ["Done.", "3 of 3 done", "checkpoint L2 at 87 %", "ralph: checkpoint iter 2 (L2 at 87%)"] {
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
