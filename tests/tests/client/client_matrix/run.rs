//! A run with a checkpoint, a resume, an emergency and an end, and how it handles errors of the API.

use super::harness::{MODEL, TIMEOUT, world_with_client};
use super::probes::Findings;
use plimsoll_testkit::scripted_agent::{AgentTurn, start_model_with_turn_script};
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::{FinishedProgram, World};
use plimsoll_tests::{
    LIFELIKE_DELAY, events_named, first_request_of_iteration, honest_agent, last_request_of_iteration,
    read_journal,
};

const STATE: &str = ".claude/ralph-state.json";

pub(crate) fn probe_run(version: &str, findings: &mut Findings) {
    probe_complete_run(version, findings);
    for (name, step, code, words) in [
        ("run.a wrong key ends it", Step::api_error(401, "invalid x-api-key"), 5, "authentication failed"),
        ("run.an overloaded API pauses it", Step::api_error(529, "Overloaded"), 6, "RALPH_PAUSE|"),
    ] {
        let model = start_model_with_turn_script(move |_| step.clone());
        let world = world_with_client(version, &model);
        let finished = run_plan(&world, &["--no-wait"]);
        findings.record_bool(name, finished.code == Some(code) && finished.stdout.contains(words));
    }
}

/// Checks a client that would not run the hooks: no run begins, and `run`, `init` and `doctor` name the reason.
pub(crate) fn probe_refusal(version: &str, findings: &mut Findings) {
    let model = start_model_with_turn_script(honest_agent);
    let world = world_with_client(version, &model);
    let finished = run_plan(&world, &[]);
    let (major, minor, patch) = plimsoll_protocol::settings::FIRST_CLASSIC_VERSION;
    let minimum_version = format!("{major}.{minor}.{patch}");
    let names_both_versions = |text: &str| text.contains(version) && text.contains(&minimum_version);
    assert!(finished.code == Some(1) && names_both_versions(&finished.stderr), "{finished:?}");
    assert!(!world.exists(STATE) && model.requests().is_empty(), "nothing was begun");
    findings.record_word("run.begins", "refused");
    let init = world.plimsoll(&["init", "--local"]).run().expect_success();
    assert!(init.stdout.contains("Warning: ") && names_both_versions(&init.stdout), "{init:?}");
    findings.record_word("init.modern template", "warns");
    let doctor = world.plimsoll(&["doctor"]).run();
    assert!(doctor.code == Some(1) && names_both_versions(&doctor.stdout), "{doctor:?}");
    findings.record_word("doctor.nothing to say of the client", "client.too_old");
}

fn run_plan(world: &World, options: &[&str]) -> FinishedProgram {
    let client = ["--", "--model", MODEL, "--allowedTools", "Bash"];
    let arguments = [&["run", "--objective", "Do the plan.", "--name", "Dates"], options, &client].concat();
    world.plimsoll(&arguments).timeout(TIMEOUT).run()
}

/// Plays a run in which the first session reaches L2, the second is ended at L3, and the third finishes.
fn scripted_turn(turn: &AgentTurn<'_>) -> Step {
    let edit = "sed -i '45,80s/$/ changed/' src/dates.txt";
    let step = match (turn.iteration, turn.assistant_message_count) {
        (1, 0) => Step::bash_call(edit).with_input_tokens(20_000),
        (1, 1) => Step::bash_call("echo near").with_input_tokens(105_000),
        (1, 2..6) if !turn.request_contains("CCS_CHECKPOINT_TRIGGERED|L2|") => {
            Step::bash_call("echo full").with_input_tokens(130_000)
        }
        (1, _) => Step::from_text(
            "Summary: lines 45-80 are converted\nProgress on the item: 70%\nNext step: line 81",
        )
        .with_input_tokens(131_000),
        (2, 0) => Step::bash_call("echo begin").with_input_tokens(20_000),
        (2, 1) => Step::bash_call("echo near").with_input_tokens(105_000),
        (2, 2..6) => Step::bash_call("echo overfull").with_input_tokens(160_000),
        (2, _) => Step::from_text("Nobody ends me.").with_input_tokens(161_000),
        _ => honest_agent(turn),
    };
    step.with_delay(LIFELIKE_DELAY)
}

fn probe_complete_run(version: &str, findings: &mut Findings) {
    let model = start_model_with_turn_script(scripted_turn);
    let world = world_with_client(version, &model);
    let finished = run_plan(&world, &[]);
    let (state, journal) = (world.read_json(STATE), read_journal(&world));
    findings.record_bool("run.begins", !events_named(&journal, "session_start").is_empty());
    findings
        .record_bool("run.L2 checkpoint", last_request_contains(&model, 1, "CCS_CHECKPOINT_TRIGGERED|L2|"));
    let second_session_request = first_request_of_iteration(&model, 2);
    let parts = ["Item three", "70%", "| src/dates.txt | 45-80 | ", "Do not start over"];
    findings.record_bool(
        "run.resumes at the item",
        parts.iter().all(|part| second_session_request.contains(part)),
    );
    // One of the requests after L3 is still sent if the client's transcript writer is late.
    let vain_turn_count = last_request_of_iteration(&model, 2).matches("echo overfull").count();
    let has_l3_checkpoint = events_named(&journal, "checkpoint").iter().any(|entry| entry["level"] == "L3");
    findings.record_bool("run.L3 ends the session", has_l3_checkpoint && vain_turn_count < 3);
    findings.record_bool("run.completed", finished.code == Some(0) && state["status"] == "completed");
    findings.record_bool("run.cost known", state["cost_usd"].as_f64() > Some(0.0));
    assert_eq!(state["iteration"], 3, "{finished:?}");
}

/// Returns true if the last request of a session contains this text.
fn last_request_contains(model: &ScriptedModel, iteration: u32, words: &str) -> bool {
    last_request_of_iteration(model, iteration).contains(words)
}
