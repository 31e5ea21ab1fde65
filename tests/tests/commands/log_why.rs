//! `plimsoll log --why`: after a real run it tells from the journal why it acted.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::story::Turn;
use plimsoll_testkit::world::World;
use plimsoll_tests::{LIFELIKE, ScriptedAgent, honest, run, world};
use serde_json::Value;

/// The first session fills its window; the second does the item.
fn full_at_first(turn: &Turn<'_>) -> Step {
    let step = match (turn.iteration, turn.step) {
        (1, 0) => Step::bash("sed -i '45,80s/$/ changed/' src/dates.txt").usage(600_000),
        (1, 1) => Step::bash("echo more").usage(870_000),
        (1, _) => Step::text("I stop here.").usage(872_000),
        _ => honest(turn),
    };
    step.delay(LIFELIKE)
}

fn explained(world: &World, what: &[&str]) -> String {
    let arguments: Vec<&str> = ["log", "--why"].iter().chain(what).copied().collect();
    world.plimsoll(&arguments).run().expect_success().stdout
}

fn assert_told(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
}

#[test]
fn after_a_run_the_level_and_the_verdict_are_explained_with_their_figures() {
    let mut world = world("- [ ] Item three\n");
    let _model = ScriptedAgent::new(full_at_first).start(&mut world);
    let finished = run(&world, &["--verify", "true"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");

    let level = explained(&world, &["level"]);
    assert_told(
        &level,
        &[
            "session 1 of the run",
            "checkpoint L2 at 87%: .claude/handoffs/",
            "870k input",
            "L2 begins at 845k (85%)",
            "the client compacts at 967k (97%)",
            "Source of the figure: transcript of ",
            "Files in progress: src/dates.txt",
        ],
    );
    assert_eq!(explained(&world, &["L2"]), level);
    let verdict = explained(&world, &["verdict"]);
    assert_told(
        &verdict,
        &[
            "The gate ended the run as completed",
            "the model ended its turn",
            "Items: 1 done, 0 open",
            "Verify `true` passed.",
        ],
    );
    assert_eq!(explained(&world, &["completed"]), verdict);
    assert_eq!(explained(&world, &[]), verdict, "it is also the last that was done");
    assert_told(
        &explained(&world, &["checkpoint"]),
        &["a fresh session that resumes from .claude/handoffs/"],
    );

    let entries: Value = serde_json::from_str(&explained(&world, &["verdict", "--json"])).unwrap();
    assert_eq!(
        entries[0]["marker"].as_str().map(|marker| marker.starts_with("RALPH_STOP|completed")),
        Some(true)
    );
    let nothing = world.plimsoll(&["log", "--why", "circuit_breaker"]).run();
    assert_eq!(nothing.code, Some(1), "{nothing:?}");
    assert!(
        nothing.stderr.contains("the journal has no circuit_breaker") && nothing.stderr.contains("verdict")
    );
}

#[test]
fn an_empty_journal_has_nothing_to_explain() {
    let world = World::new();
    let finished = world.plimsoll(&["log", "--why", "level"]).run();
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), ""), "{finished:?}");
    assert!(finished.stderr.contains("journal.jsonl is empty"), "{finished:?}");
}
