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

#[test]
fn after_a_run_the_level_and_the_verdict_are_explained_with_their_figures() {
    let mut world = world("- [ ] Item three\n");
    let _model = ScriptedAgent::new(full_at_first).start(&mut world);
    let finished = run(&world, &["--verify", "true"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");

    let level = explained(&world, &["level"]);
    // Whether the hook waited depends on how fast the client writes.
    let lines: Vec<&str> = level.lines().filter(|line| !line.starts_with("  The hook waited ")).collect();
    insta::assert_snapshot!(world.stable_text(&lines.join("\n")), @r#"
    [TIME], session 1 of the run
    checkpoint L2 at 87%: .claude/handoffs/[DATE-TIME].md (item "Item three")
      The next request would have held about 870k of 1M tokens (87%): 870k input, 50 output, 1 estimated for tool results not sent yet.
      The client showed 87%: it counts input tokens only.
      Source of the figure: transcript of [DATE-TIME].
      The window of claude-opus-5-5: 1M tokens (table of models).
      L2 begins at 845k (85%). All thresholds: L1 at 695k (70%), L2 at 845k (85%), L3 at 945k (95%); the client compacts at 967k (97%).
      The handoff .claude/handoffs/[DATE-TIME].md was written, for the item "Item three".
      Files in progress: src/dates.txt.
    "#);
    assert_eq!(explained(&world, &["L2"]), level);
    let verdict = explained(&world, &["verdict"]);
    insta::assert_snapshot!(world.stable_text(&verdict), @r#"
    [TIME], session 2 of the run
    ticked "Item three"; run completed: 1 item, 1 verify command passed ($0.49 so far)
      The gate ended the run as completed, because: 1 item, 1 verify command passed.
      The session: the model ended its turn.
      Items: 1 done, 0 open; ticked in this session: Item three.
      Verify `true` passed.
      Progress: an item was ticked, HEAD moved, files changed.
      So far: $0.49, 2.4M tokens.
    "#);
    assert_eq!(explained(&world, &["completed"]), verdict);
    assert_eq!(explained(&world, &[]), verdict, "it is also the last that was done");
    insta::assert_snapshot!(world.stable_text(&explained(&world, &["checkpoint"])), @"
    [TIME], session 1 of the run
    continues from .claude/handoffs/[DATE-TIME].md ($0.47 so far)
      The run continues with a fresh session that resumes from .claude/handoffs/[DATE-TIME].md.
      The session: the model ended its turn.
      Items: 0 done, 1 open; nothing was ticked in this session.
      Progress: files changed.
      So far: $0.47, 2.3M tokens.
    ");

    let entries: Value = serde_json::from_str(&explained(&world, &["verdict", "--json"])).unwrap();
    assert_eq!(
        entries[0]["marker"].as_str().map(|marker| marker.starts_with("RALPH_STOP|completed")),
        Some(true)
    );
    let nothing = world.plimsoll(&["log", "--why", "circuit_breaker"]).run();
    assert_eq!(nothing.code, Some(1), "{nothing:?}");
    insta::assert_snapshot!(world.stable_text(&nothing.stderr), @"
    plimsoll: the journal has no circuit_breaker
    hint: it has checkpoint, iteration_closed, level, planned, run_started, session_end, session_start, spawned, verdict, verified, wip_commit
    ");
}

#[test]
fn an_empty_journal_has_nothing_to_explain() {
    let world = World::new();
    let finished = world.plimsoll(&["log", "--why", "level"]).run();
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), ""), "{finished:?}");
    insta::assert_snapshot!(world.stable_text(&finished.stderr), @"The journal [PROJECT]/.claude/plimsoll/journal.jsonl is empty: it begins with a run, or with the first warning or end of a session with our hooks (`plimsoll init`).");
}
