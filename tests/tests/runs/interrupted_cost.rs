//! Sessions that end without a report of their cost count in `--max-cost` and `--max-cost-per-day`.

use plimsoll_testkit::scripted_model::{RequestKind, Step};
use plimsoll_testkit::world::{Finished, World};
use plimsoll_tests::{
    ITEMS, LIFELIKE, ScriptedAgent, events, honest, journal, lines_with, markers, resume, run, world,
};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

const STATE: &str = ".claude/ralph-state.json";
/// Kills the client. Before that its transcript is written.
const KILL: &str = "sleep 0.5; kill -9 $PPID";

/// A session that changes a file and is killed: two responses of $0.04 each, by opus-5-5.
fn killed(turn: &plimsoll_testkit::story::Turn<'_>) -> Step {
    let step = match turn.step {
        0 => Step::bash(format!("echo {} >> log.txt", turn.iteration)),
        _ => Step::bash(KILL),
    };
    step.usage_parts(10_000, 0, 0).output_tokens(0).delay(LIFELIKE)
}

fn cost(world: &World) -> f64 {
    world.json(STATE)["cost_usd"].as_f64().expect("a cost")
}

fn assert_cost(world: &World, expected: f64) {
    assert!((cost(world) - expected).abs() < 1e-9, "{} instead of {expected}", cost(world));
}

fn printed(world: &World, arguments: &[&str]) -> String {
    world.plimsoll(arguments).run().expect_success().stdout
}

/// Runs with a budget of the client's own, so that it does not end the session that passes the bound.
fn run_beyond_budget(world: &World, arguments: &[&str]) -> Finished {
    let client = ["--", "--model", "opus", "--allowedTools", "Bash", "--max-budget-usd", "5"];
    let line = [&["run", "--objective", "Do the plan."], arguments, &client].concat();
    world.plimsoll(&line).run()
}

#[test]
fn four_interrupted_sessions_reach_the_bound_and_the_turn_log_agrees() {
    let mut world = world(ITEMS);
    let _model = ScriptedAgent::new(killed).start(&mut world);
    let finished = run_beyond_budget(&world, &["--max-cost", "0.30"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert_eq!(world.json(STATE)["iteration"], 4);
    assert_cost(&world, 0.32);
    let markers = markers(&journal(&world));
    assert_eq!(markers.last().map(String::as_str), Some("RALPH_STOP|budget|about $0.32 of $0.30 spent"));
    let status = printed(&world, &["status"]);
    insta::assert_snapshot!(lines_with(&status, "$0."), @"
    Status       out of money or tokens (budget): about $0.32 of $0.30 spent
    Cost         about $0.32 of $0.30, 80k tokens
    ");
    let log = printed(&world, &["log"]);
    insta::assert_snapshot!(world.stable_text(&lines_with(&log, "$0.")), @"
    [TIME]   1  the session ended as crashed (ended by signal 9, without a result); continues from .claude/handoffs/[DATE-TIME].md (about $0.08 so far)
    [TIME]   2  the session ended as crashed (ended by signal 9, without a result); continues from .claude/handoffs/[DATE-TIME].md [the same error 2 times] (about $0.16 so far)
    [TIME]   3  the session ended as crashed (ended by signal 9, without a result); continues from .claude/handoffs/[DATE-TIME].md [the same error 3 times] (about $0.24 so far)
    [TIME]   4  the session ended as crashed (ended by signal 9, without a result); run over (budget): about $0.32 of $0.30 spent [the same error 4 times] (about $0.32 so far)
    ");
    let stats = printed(&world, &["turns", "stats"]);
    insta::assert_snapshot!(lines_with(&stats, "$0."), @"Cost       about $0.32, estimated at list prices");
    let stats: Value = serde_json::from_str(&printed(&world, &["turns", "stats", "--json"])).expect("JSON");
    assert!((stats["cost_usd"].as_f64().expect("a cost") - cost(&world)).abs() < 1e-9, "{stats}");
    assert_eq!(stats["cost_basis"], "estimated");
}

#[test]
fn interrupted_sessions_reach_the_bound_of_the_day_also_in_other_runs() {
    let mut world = world(ITEMS);
    let _model = ScriptedAgent::new(killed).start(&mut world);
    let held = run_beyond_budget(&world, &["--no-wait", "--max-cost-per-day", "0.15"]);
    assert_eq!(held.code, Some(6), "{held:?}");
    assert_eq!(world.json(STATE)["iteration"], 2);
    insta::assert_snapshot!(world.stable_text(&lines_with(&held.stdout, "$0.")), @"
    RALPH_CONTINUE|checkpoint|.claude/handoffs/[DATE-TIME].md   (about $0.08)
    RALPH_PAUSE|[DATE-TIME]|about $0.16 of $0.15 a day spent by all runs together   (about $0.16)
    ");
    let status = printed(&world, &["status"]);
    let cost = status.lines().find(|line| line.starts_with("Cost"));
    assert_eq!(cost, Some("Cost         about $0.16 (all runs about $0.16 of $0.15 a day), 40k tokens"));
    // Another run counts it, too.
    printed(&world, &["stop"]);
    let other = run(&world, &["--no-wait", "--max-cost-per-day", "0.16"]);
    assert_eq!(other.code, Some(6), "{other:?}");
    assert_eq!(world.json(STATE)["iteration"], 0);
}

#[test]
fn a_report_of_the_client_replaces_the_estimate() {
    let mut world = world(ITEMS);
    let _model = ScriptedAgent::new(|turn| match turn.iteration {
        1 => killed(turn),
        _ => honest(turn).usage_parts(10_000, 0, 0).output_tokens(0).delay(LIFELIKE),
    })
    .start(&mut world);
    let finished = run(&world, &["--max-iterations", "2"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let history = world.json(STATE)["context_history"].clone();
    let costs: Vec<f64> = (0..2).filter_map(|place| history[place]["cost_usd"].as_f64()).collect();
    assert!(costs.len() == 2 && costs.iter().all(|usd| (usd - 0.08).abs() < 1e-9), "{costs:?}");
    let verdicts = journal(&world);
    insta::assert_snapshot!(world.stable_text(&lines_with(&finished.stdout, "$0.")), @r"
    RALPH_CONTINUE|checkpoint|.claude/handoffs/[DATE-TIME].md   (about $0.08)
    RALPH_STOP|max_iterations|2 iterations done   (about $0.16)
    ");
    assert_eq!(events(&verdicts, "verdict")[0]["cost_basis"], "estimated");
}

#[test]
fn a_session_that_used_no_tokens_costs_nothing() {
    let mut world = world(ITEMS);
    let _model = ScriptedAgent::new(|turn| match turn.iteration {
        1 => Step::bash(KILL).usage_parts(0, 0, 0).output_tokens(0).delay(LIFELIKE),
        _ => honest(turn).delay(LIFELIKE),
    })
    .start(&mut world);
    run(&world, &["--max-iterations", "1", "--max-cost", "5"]);
    assert_cost(&world, 0.0);
    assert_eq!(world.json(STATE)["cost_is_reckoned"], false);
}

#[test]
fn a_run_that_was_killed_with_its_client_counts_its_session_when_it_is_resumed_or_stopped() {
    for (name, is_resumed) in [("resumed", true), ("stopped", false)] {
        let mut world = world(ITEMS);
        let _model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
            (1, 0) => Step::bash("echo 1 >> log.txt").usage_parts(10_000, 0, 0).output_tokens(0),
            (1, _) => Step::bash("touch working; sleep 30").usage_parts(10_000, 0, 0).output_tokens(0),
            _ => honest(turn).usage_parts(0, 0, 0).output_tokens(0).delay(LIFELIKE),
        })
        .start(&mut world);
        let objective =
            ["run", "--objective", "Do the plan.", "--", "--model", "opus", "--allowedTools", "Bash"];
        let mut running = world.plimsoll(&objective).spawn();
        world.wait_until(|| world.exists("working"), "the second response");
        std::thread::sleep(Duration::from_millis(300));
        let pid = world.json(STATE)["iteration_record"]["pid"].as_u64().expect("a client");
        running.kill();
        let killed = world.command("kill", &["-9", &pid.to_string()]).run();
        assert_eq!(killed.code, Some(0), "{killed:?}");
        if is_resumed {
            resume(&world, &["--max-iterations", "2"]);
        } else {
            printed(&world, &["stop"]);
        }
        assert_cost(&world, 0.08);
        assert_eq!(world.json(STATE)["cost_is_reckoned"], true, "{name}");
        let ledger =
            world.runs().join(world.json(STATE)["run_id"].as_str().expect("a run")).join("ledger.json");
        let ledger: Value =
            serde_json::from_str(&std::fs::read_to_string(ledger).expect("a ledger")).expect("JSON");
        assert!(
            (ledger["cost_of_day"]["usd"].as_f64().unwrap_or(0.0) - 0.08).abs() < 1e-9,
            "{name}: {ledger}"
        );
    }
}

/// What the client wrote of its sessions: transcripts, and its output in the run's folder.
fn what_the_client_wrote(world: &World) -> Vec<PathBuf> {
    let run = world.path(".claude/plimsoll/runs").join(world.json(STATE)["run_id"].as_str().expect("a run"));
    let outputs = std::fs::read_dir(run).into_iter().flatten().flatten().map(|entry| entry.path());
    let outputs = outputs.filter(|path| path.extension().is_some_and(|kind| kind == "jsonl"));
    world.transcripts().into_iter().chain(outputs).collect()
}

#[test]
fn without_transcript_and_output_the_turn_log_counts() {
    let mut world = world(ITEMS);
    let _model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        (1, 0 | 1) => Step::bash("sleep 0.3; echo 1 >> log.txt").usage_parts(10_000, 0, 0).output_tokens(0),
        (1, _) => Step::bash("touch working; sleep 30").usage_parts(10_000, 0, 0).output_tokens(0),
        _ => honest(turn).usage_parts(0, 0, 0).output_tokens(0).delay(LIFELIKE),
    })
    .start(&mut world);
    let objective = ["run", "--objective", "Do the plan.", "--", "--model", "opus", "--allowedTools", "Bash"];
    let mut running = world.plimsoll(&objective).spawn();
    world.wait_until(|| world.exists("working"), "the third response");
    std::thread::sleep(Duration::from_millis(300));
    let pid = world.json(STATE)["iteration_record"]["pid"].as_u64().expect("a client");
    running.kill();
    world.command("kill", &["-9", &pid.to_string()]).run().expect_success();
    let gone = what_the_client_wrote(&world);
    assert!(gone.len() >= 2, "{gone:?}");
    gone.iter().for_each(|path| std::fs::remove_file(path).expect("a file"));
    resume(&world, &["--max-iterations", "2"]);
    let logged = cost(&world);
    // The hooks have recorded the first response, and the second one if its results were written in time.
    assert!(logged > 0.0399 && logged < 0.0801, "{logged}");
    assert_eq!(world.json(STATE)["cost_is_reckoned"], true);
}

/// In the real client, with a model that has no known price. After SIGTERM the client's own account is in the transcript; after SIGKILL
/// there is none, and the session has used a subagent with a known price.
#[test]
fn a_model_without_a_known_price_counts_at_most_unless_the_client_has_reported_it() {
    let mut world = world(ITEMS);
    let _model = ScriptedAgent::new(|turn| {
        let step = match (turn.request.kind, turn.iteration, turn.step) {
            (RequestKind::Subagent, ..) => Step::text("The file has 80 lines."),
            (_, 1, _) => Step::bash("kill -TERM $PPID; sleep 20"),
            (_, _, 0) => Step::text("I delegate.").tool(
                "Agent",
                json!({"description": "count", "prompt": "Count the lines.", "subagent_type": "general-purpose",
                    "model": "haiku", "run_in_background": false}),
            ),
            _ => Step::bash(KILL),
        };
        step.usage_parts(10_000, 0, 0).output_tokens(0).delay(LIFELIKE)
    }).with_real_client().start(&mut world);
    let finished = world
        .plimsoll(&["run", "--objective", "Do the plan.", "--max-cost", "0.30", "--", "--model", "zork"])
        .arg("--allowedTools")
        .arg("Bash,Agent")
        .run();
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let history = world.json(STATE)["context_history"].clone();
    // The client counts an unknown model at $4 a million, Plimsoll at $15; Haiku 5.5 costs ten cents.
    for (place, expected) in [(0, 0.04), (1, 0.15 + 0.001 + 0.15)] {
        let usd = history[place]["cost_usd"].as_f64().expect("a cost");
        assert!((usd - expected).abs() < 1e-9, "session {}: {usd} instead of {expected}", place + 1);
    }
    insta::assert_snapshot!(world.stable_text(&lines_with(&finished.stdout, "$0.")), @"
    RALPH_CONTINUE|next|the client ended with exit code 143, without a result; 3 open items   ($0.04)
    RALPH_STOP|budget|at most $0.34 of $0.30 spent   (at most $0.34)
    ");
    let status = printed(&world, &["status"]);
    insta::assert_snapshot!(lines_with(&status, "$0."), @"
    Status       out of money or tokens (budget): at most $0.34 of $0.30 spent
    Cost         at most $0.34 of $0.30, 40k tokens
    ");
    let log = printed(&world, &["log"]);
    insta::assert_snapshot!(world.stable_text(&lines_with(&log, "$0.")), @"
    [TIME]   1  continues: the client ended with exit code 143, without a result; 3 open items ($0.04 so far)
    [TIME]   2  the session ended as crashed (ended by signal 9, without a result); run over (budget): at most $0.34 of $0.30 spent [2 sessions without progress] (at most $0.34 so far)
    ");
    let stats = printed(&world, &["turns", "stats"]);
    insta::assert_snapshot!(lines_with(&stats, "$0."), @"Cost       at most $0.34, partly estimated, a model without a known price at the highest one; Claude Code's part, whose tokens are the ones counted here");
    printed(&world, &["report", "--output", "report.html"]);
    assert!(world.read("report.html").contains("at most $0.34"), "the report");
}
