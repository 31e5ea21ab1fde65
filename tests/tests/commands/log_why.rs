//! `plimsoll log --why` explains from the journal of a real run why Plimsoll acted.

use plimsoll_testkit::scripted_agent::AgentTurn;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use plimsoll_tests::{
    LIFELIKE_DELAY, ScriptedAgent, honest_agent, run_with_objective, world_with_plan_and_dates,
};
use serde_json::Value;

/// The first session fills its window; the second does the item.
fn fill_window_in_first_session(turn: &AgentTurn<'_>) -> Step {
    let step = match (turn.iteration, turn.assistant_message_count) {
        (1, 0) => Step::bash_call("sed -i '45,80s/$/ changed/' src/dates.txt").with_input_tokens(600_000),
        (1, 1) => Step::bash_call("echo more").with_input_tokens(870_000),
        (1, _) => Step::from_text("I stop here.").with_input_tokens(872_000),
        _ => honest_agent(turn),
    };
    step.with_delay(LIFELIKE_DELAY)
}

fn explain(world: &World, filters: &[&str]) -> String {
    let arguments: Vec<&str> = ["log", "--why"].iter().chain(filters).copied().collect();
    world.plimsoll(&arguments).run().expect_success().stdout
}

#[test]
fn log_why_explains_the_level_and_the_verdict_with_their_figures() {
    let mut world = world_with_plan_and_dates("- [ ] Item three\n");
    let _model = ScriptedAgent::new(fill_window_in_first_session).start(&mut world);
    let finished = run_with_objective(&world, &["--verify", "true"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");

    let level = explain(&world, &["level"]);
    // Whether the hook waited depends on how fast the client writes.
    let lines: Vec<&str> = level.lines().filter(|line| !line.starts_with("  The hook waited ")).collect();
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&lines.join("\n")), @r#"
    [TIME], session 1 of the run
    checkpoint L2 at 87%: .claude/handoffs/[DATE-TIME].md (item "Item three")
      The next request would have held about 870k of 1M tokens (87%): 870k input, 50 output, 1 estimated for tool results not sent yet.
      Claude Code showed 87%: it counts input tokens only.
      Source of the figure: transcript of [DATE-TIME].
      The window of claude-opus-5-5: 1M tokens (table of models).
      L2 begins at 845k (85%). All thresholds: L1 at 695k (70%), L2 at 845k (85%), L3 at 945k (95%); Claude Code compacts at 967k (97%).
      The handoff .claude/handoffs/[DATE-TIME].md was written, for the item "Item three".
      Files in progress: src/dates.txt.
    "#);
    assert_eq!(explain(&world, &["L2"]), level);
    let verdict = explain(&world, &["verdict"]);
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&verdict), @r#"
    [TIME], session 2 of the run
    ticked "Item three"; run completed: 1 item, 1 verify command passed ($0.49 so far)
      The gate ended the run as completed, because: 1 item, 1 verify command passed.
      The session: the model ended its turn.
      Items: 1 done, 0 open; ticked in this session: Item three.
      Verify `true` passed.
      Progress: an item was ticked, HEAD moved, files changed.
      So far: $0.49, 2.4M tokens.
    "#);
    assert_eq!(explain(&world, &["completed"]), verdict);
    assert_eq!(explain(&world, &[]), verdict, "it is also the last that was done");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&explain(&world, &["checkpoint"])), @"
    [TIME], session 1 of the run
    continuing from .claude/handoffs/[DATE-TIME].md ($0.47 so far)
      The run continues with a fresh session that resumes from .claude/handoffs/[DATE-TIME].md.
      The session: the model ended its turn.
      Items: 0 done, 1 open; nothing was ticked in this session.
      Progress: files changed.
      So far: $0.47, 2.3M tokens.
    ");

    let entries: Value = serde_json::from_str(&explain(&world, &["verdict", "--json"])).unwrap();
    assert_eq!(
        entries[0]["marker"].as_str().map(|marker| marker.starts_with("RALPH_STOP|completed")),
        Some(true)
    );
    let without_entry = world.plimsoll(&["log", "--why", "circuit_breaker"]).run();
    assert_eq!(without_entry.code, Some(1), "{without_entry:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&without_entry.stderr), @"
    error: the journal has no circuit_breaker
    hint: it has checkpoint, iteration_closed, level, planned, run_started, session_end, session_start, spawned, verdict, verified, wip_commit
    ");
}

#[test]
fn log_why_reports_an_empty_journal() {
    let world = World::new();
    let finished = world.plimsoll(&["log", "--why", "level"]).run();
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), ""), "{finished:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stderr), @"The journal [PROJECT]/.claude/plimsoll/journal.jsonl is empty: it begins with a run, or with the first warning or end of a session with our hooks (`plimsoll init`).");
}
