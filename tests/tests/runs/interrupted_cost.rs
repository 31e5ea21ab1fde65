//! Sessions that end without reporting their cost count in `--max-cost` and `--max-cost-per-day`.

use plimsoll_testkit::scripted_model::{RequestKind, Step};
use plimsoll_testkit::world::{FinishedProgram, World};
use plimsoll_tests::{
    LIFELIKE_DELAY, ScriptedAgent, THREE_ITEM_PLAN, events_named, honest_agent, lines_containing,
    read_journal, resume_run, run_with_objective, verdict_markers, world_with_plan_and_dates,
};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

const STATE_FILE: &str = ".claude/ralph-state.json";
/// Kills the client, after its transcript has been written.
const KILL_CLIENT_COMMAND: &str = "sleep 0.5; kill -9 $PPID";

/// A step of a session that changes a file and is killed: two responses of $0.04 each, by opus-5-5.
fn killed_session_step(turn: &plimsoll_testkit::scripted_agent::AgentTurn<'_>) -> Step {
    let step = match turn.assistant_message_count {
        0 => Step::bash_call(format!("echo {} >> log.txt", turn.iteration)),
        _ => Step::bash_call(KILL_CLIENT_COMMAND),
    };
    step.with_input_token_breakdown(10_000, 0, 0).with_output_tokens(0).with_delay(LIFELIKE_DELAY)
}

fn run_cost(world: &World) -> f64 {
    world.read_json(STATE_FILE)["cost_usd"].as_f64().expect("a cost")
}

fn assert_cost(world: &World, expected: f64) {
    assert!((run_cost(world) - expected).abs() < 1e-9, "{} instead of {expected}", run_cost(world));
}

fn command_output(world: &World, arguments: &[&str]) -> String {
    world.plimsoll(arguments).run().expect_success().stdout
}

/// Runs with a separate budget of the client, so that the client does not end the session that exceeds the run's
/// limit.
fn run_with_higher_client_budget(world: &World, arguments: &[&str]) -> FinishedProgram {
    let client_arguments = ["--", "--model", "opus", "--allowedTools", "Bash", "--max-budget-usd", "5"];
    let command_line = [&["run", "--objective", "Do the plan."], arguments, &client_arguments].concat();
    world.plimsoll(&command_line).run()
}

#[test]
fn four_interrupted_sessions_reach_max_cost_and_the_turn_log_agrees() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let _model = ScriptedAgent::new(killed_session_step).start(&mut world);
    let finished = run_with_higher_client_budget(&world, &["--max-cost", "0.30"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert_eq!(world.read_json(STATE_FILE)["iteration"], 4);
    assert_cost(&world, 0.32);
    let markers = verdict_markers(&read_journal(&world));
    assert_eq!(markers.last().map(String::as_str), Some("RALPH_STOP|budget|about $0.32 of $0.30 spent"));
    let status = command_output(&world, &["status"]);
    insta::assert_snapshot!(lines_containing(&status, "$0."), @"
    Status       out of money or tokens (budget): about $0.32 of $0.30 spent
    Cost         about $0.32 of $0.30, 80k tokens
    ");
    let log = command_output(&world, &["log"]);
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&lines_containing(&log, "$0.")), @"
    [TIME]   1  the session ended as crashed (ended by signal 9, without a result); continuing from .claude/handoffs/[DATE-TIME].md (about $0.08 so far)
    [TIME]   2  the session ended as crashed (ended by signal 9, without a result); continuing from .claude/handoffs/[DATE-TIME].md [the same error 2 times] (about $0.16 so far)
    [TIME]   3  the session ended as crashed (ended by signal 9, without a result); continuing from .claude/handoffs/[DATE-TIME].md [the same error 3 times] (about $0.24 so far)
    [TIME]   4  the session ended as crashed (ended by signal 9, without a result); run out of budget: about $0.32 of $0.30 spent [the same error 4 times] (about $0.32 so far)
    ");
    let stats = command_output(&world, &["turns", "stats"]);
    insta::assert_snapshot!(lines_containing(&stats, "$0."), @"Cost       about $0.32, estimated at list prices");
    let stats: Value =
        serde_json::from_str(&command_output(&world, &["turns", "stats", "--json"])).expect("JSON");
    assert!((stats["cost_usd"].as_f64().expect("a cost") - run_cost(&world)).abs() < 1e-9, "{stats}");
    assert_eq!(stats["cost_basis"], "estimated");
}

#[test]
fn interrupted_sessions_count_in_the_daily_limit_of_all_runs() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let _model = ScriptedAgent::new(killed_session_step).start(&mut world);
    let paused = run_with_higher_client_budget(&world, &["--no-wait", "--max-cost-per-day", "0.15"]);
    assert_eq!(paused.code, Some(6), "{paused:?}");
    assert_eq!(world.read_json(STATE_FILE)["iteration"], 2);
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&lines_containing(&paused.stdout, "$0.")), @"
    RALPH_CONTINUE|checkpoint|.claude/handoffs/[DATE-TIME].md   (about $0.08)
    RALPH_PAUSE|[DATE-TIME]|about $0.16 of $0.15 a day spent by all runs together   (about $0.16)
    ");
    let status = command_output(&world, &["status"]);
    let cost_line = status.lines().find(|line| line.starts_with("Cost"));
    assert_eq!(cost_line, Some("Cost         about $0.16 (all runs about $0.16 of $0.15 a day), 40k tokens"));
    // Another run counts these costs too.
    command_output(&world, &["stop"]);
    let other_run = run_with_objective(&world, &["--no-wait", "--max-cost-per-day", "0.16"]);
    assert_eq!(other_run.code, Some(6), "{other_run:?}");
    assert_eq!(world.read_json(STATE_FILE)["iteration"], 0);
}

#[test]
fn a_cost_reported_by_the_client_replaces_the_estimate() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let _model = ScriptedAgent::new(|turn| match turn.iteration {
        1 => killed_session_step(turn),
        _ => honest_agent(turn)
            .with_input_token_breakdown(10_000, 0, 0)
            .with_output_tokens(0)
            .with_delay(LIFELIKE_DELAY),
    })
    .start(&mut world);
    let finished = run_with_objective(&world, &["--max-iterations", "2"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let history = world.read_json(STATE_FILE)["context_history"].clone();
    let costs: Vec<f64> = (0..2).filter_map(|index| history[index]["cost_usd"].as_f64()).collect();
    assert!(costs.len() == 2 && costs.iter().all(|usd| (usd - 0.08).abs() < 1e-9), "{costs:?}");
    let entries = read_journal(&world);
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&lines_containing(&finished.stdout, "$0.")), @r"
    RALPH_CONTINUE|checkpoint|.claude/handoffs/[DATE-TIME].md   (about $0.08)
    RALPH_STOP|max_iterations|2 iterations done   (about $0.16)
    ");
    assert_eq!(events_named(&entries, "verdict")[0]["cost_basis"], "estimated");
}

#[test]
fn a_session_that_used_no_tokens_costs_nothing() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let _model = ScriptedAgent::new(|turn| match turn.iteration {
        1 => Step::bash_call(KILL_CLIENT_COMMAND)
            .with_input_token_breakdown(0, 0, 0)
            .with_output_tokens(0)
            .with_delay(LIFELIKE_DELAY),
        _ => honest_agent(turn).with_delay(LIFELIKE_DELAY),
    })
    .start(&mut world);
    run_with_objective(&world, &["--max-iterations", "1", "--max-cost", "5"]);
    assert_cost(&world, 0.0);
    assert_eq!(world.read_json(STATE_FILE)["cost_is_reckoned"], false);
}

#[test]
fn a_run_killed_with_its_client_counts_its_session_on_resume_or_stop() {
    for (name, is_resumed) in [("resumed", true), ("stopped", false)] {
        let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
        let _model = ScriptedAgent::new(|turn| match (turn.iteration, turn.assistant_message_count) {
            (1, 0) => Step::bash_call("echo 1 >> log.txt")
                .with_input_token_breakdown(10_000, 0, 0)
                .with_output_tokens(0),
            (1, _) => Step::bash_call("touch working; sleep 30")
                .with_input_token_breakdown(10_000, 0, 0)
                .with_output_tokens(0),
            _ => honest_agent(turn)
                .with_input_token_breakdown(0, 0, 0)
                .with_output_tokens(0)
                .with_delay(LIFELIKE_DELAY),
        })
        .start(&mut world);
        let run_arguments =
            ["run", "--objective", "Do the plan.", "--", "--model", "opus", "--allowedTools", "Bash"];
        let mut running = world.plimsoll(&run_arguments).spawn();
        world.wait_until(|| world.exists("working"), "the second response");
        std::thread::sleep(Duration::from_millis(300));
        let pid = world.read_json(STATE_FILE)["iteration_record"]["pid"].as_u64().expect("a client");
        running.kill();
        let kill_result = world.command("kill", &["-9", &pid.to_string()]).run();
        assert_eq!(kill_result.code, Some(0), "{kill_result:?}");
        if is_resumed {
            resume_run(&world, &["--max-iterations", "2"]);
        } else {
            command_output(&world, &["stop"]);
        }
        assert_cost(&world, 0.08);
        assert_eq!(world.read_json(STATE_FILE)["cost_is_reckoned"], true, "{name}");
        let ledger_path = world
            .runs_folder()
            .join(world.read_json(STATE_FILE)["run_id"].as_str().expect("a run"))
            .join("ledger.json");
        let ledger: Value =
            serde_json::from_str(&std::fs::read_to_string(ledger_path).expect("a ledger")).expect("JSON");
        assert!(
            (ledger["cost_of_day"]["usd"].as_f64().unwrap_or(0.0) - 0.08).abs() < 1e-9,
            "{name}: {ledger}"
        );
    }
}

/// Returns what the client wrote about its sessions: transcripts, and its output in the run's folder.
fn client_files(world: &World) -> Vec<PathBuf> {
    let run_folder = world
        .path(".claude/plimsoll/runs")
        .join(world.read_json(STATE_FILE)["run_id"].as_str().expect("a run"));
    let outputs = std::fs::read_dir(run_folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let outputs = outputs.filter(|path| path.extension().is_some_and(|kind| kind == "jsonl"));
    world.transcript_paths().into_iter().chain(outputs).collect()
}

#[test]
fn without_transcript_and_output_the_turn_log_supplies_the_cost() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let _model = ScriptedAgent::new(|turn| match (turn.iteration, turn.assistant_message_count) {
        (1, 0 | 1) => Step::bash_call("sleep 0.3; echo 1 >> log.txt")
            .with_input_token_breakdown(10_000, 0, 0)
            .with_output_tokens(0),
        (1, _) => Step::bash_call("touch working; sleep 30")
            .with_input_token_breakdown(10_000, 0, 0)
            .with_output_tokens(0),
        _ => honest_agent(turn)
            .with_input_token_breakdown(0, 0, 0)
            .with_output_tokens(0)
            .with_delay(LIFELIKE_DELAY),
    })
    .start(&mut world);
    let run_arguments =
        ["run", "--objective", "Do the plan.", "--", "--model", "opus", "--allowedTools", "Bash"];
    let mut running = world.plimsoll(&run_arguments).spawn();
    world.wait_until(|| world.exists("working"), "the third response");
    std::thread::sleep(Duration::from_millis(300));
    let pid = world.read_json(STATE_FILE)["iteration_record"]["pid"].as_u64().expect("a client");
    running.kill();
    world.command("kill", &["-9", &pid.to_string()]).run().expect_success();
    let removed_files = client_files(&world);
    assert!(removed_files.len() >= 2, "{removed_files:?}");
    removed_files.iter().for_each(|path| std::fs::remove_file(path).expect("a file"));
    resume_run(&world, &["--max-iterations", "2"]);
    let logged_cost = run_cost(&world);
    // The hooks have recorded the first response, and the second one if its results were written in time.
    assert!(logged_cost > 0.0399 && logged_cost < 0.0801, "{logged_cost}");
    assert_eq!(world.read_json(STATE_FILE)["cost_is_reckoned"], true);
}

/// Uses the real client and a model without a known price. After SIGTERM the client's own cost is in the transcript;
/// after SIGKILL it is not, and the session has used a subagent with a known price.
#[test]
fn a_model_of_unknown_price_counts_at_the_highest_price_unless_reported() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let _model = ScriptedAgent::new(|turn| {
        let step = match (turn.request.kind, turn.iteration, turn.assistant_message_count) {
            (RequestKind::Subagent, ..) => Step::from_text("The file has 80 lines."),
            (_, 1, _) => Step::bash_call("kill -TERM $PPID; sleep 20"),
            (_, _, 0) => Step::from_text("I delegate.").with_tool_call(
                "Agent",
                json!({"description": "count", "prompt": "Count the lines.", "subagent_type": "general-purpose",
                    "model": "haiku", "run_in_background": false}),
            ),
            _ => Step::bash_call(KILL_CLIENT_COMMAND),
        };
        step.with_input_token_breakdown(10_000, 0, 0).with_output_tokens(0).with_delay(LIFELIKE_DELAY)
    }).with_real_client().start(&mut world);
    let finished = world
        .plimsoll(&["run", "--objective", "Do the plan.", "--max-cost", "0.30", "--", "--model", "zork"])
        .arg("--allowedTools")
        .arg("Bash,Agent")
        .run();
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let history = world.read_json(STATE_FILE)["context_history"].clone();
    // The client counts an unknown model at $4 a million, Plimsoll at $15; Haiku 5.5 costs ten cents.
    for (index, expected) in [(0, 0.04), (1, 0.15 + 0.001 + 0.15)] {
        let usd = history[index]["cost_usd"].as_f64().expect("a cost");
        assert!((usd - expected).abs() < 1e-9, "session {}: {usd} instead of {expected}", index + 1);
    }
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&lines_containing(&finished.stdout, "$0.")), @"
    RALPH_CONTINUE|next|Claude Code ended with exit code 143, without a result; 3 open items   ($0.04)
    RALPH_STOP|budget|at most $0.34 of $0.30 spent   (at most $0.34)
    ");
    let status = command_output(&world, &["status"]);
    insta::assert_snapshot!(lines_containing(&status, "$0."), @"
    Status       out of money or tokens (budget): at most $0.34 of $0.30 spent
    Cost         at most $0.34 of $0.30, 40k tokens
    ");
    let log = command_output(&world, &["log"]);
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&lines_containing(&log, "$0.")), @"
    [TIME]   1  continuing: Claude Code ended with exit code 143, without a result; 3 open items ($0.04 so far)
    [TIME]   2  the session ended as crashed (ended by signal 9, without a result); run out of budget: at most $0.34 of $0.30 spent [2 sessions without progress] (at most $0.34 so far)
    ");
    let stats = command_output(&world, &["turns", "stats"]);
    insta::assert_snapshot!(lines_containing(&stats, "$0."), @"Cost       at most $0.34, partly estimated, a model without a known price at the highest one; Claude Code's part, whose tokens are the ones counted here");
    command_output(&world, &["report", "--output", "report.html"]);
    assert!(world.read("report.html").contains("at most $0.34"), "the report");
}
