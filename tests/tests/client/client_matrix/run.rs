//! A run: a checkpoint, a resume, an emergency, an end; and what becomes of errors of the API.

use super::harness::{MODEL, TIMEOUT, world};
use super::probes::Findings;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::story::{Turn, story};
use plimsoll_testkit::world::{Finished, World};
use plimsoll_tests::{LIFELIKE, events, first_request_of, honest, journal, last_request_of};

const STATE: &str = ".claude/ralph-state.json";

pub(crate) fn look(version: &str, findings: &mut Findings) {
    whole(version, findings);
    for (name, step, code, words) in [
        ("run.a wrong key ends it", Step::error(401, "invalid x-api-key"), 5, "authentication failed"),
        ("run.an overloaded API pauses it", Step::error(529, "Overloaded"), 6, "RALPH_PAUSE|"),
    ] {
        let model = story(move |_| step.clone());
        let world = world(version, &model);
        let finished = run(&world, &["--no-wait"]);
        findings.note(name, finished.code == Some(code) && finished.stdout.contains(words));
    }
}

/// A client whose hooks would not run: nothing begins, and everybody says why.
pub(crate) fn is_refused(version: &str, findings: &mut Findings) {
    let model = story(honest);
    let world = world(version, &model);
    let finished = run(&world, &[]);
    let (major, minor, patch) = plimsoll_protocol::settings::FIRST_CLASSIC_VERSION;
    let first = format!("{major}.{minor}.{patch}");
    let says = |text: &str| text.contains(version) && text.contains(&first);
    assert!(finished.code == Some(1) && says(&finished.stderr), "{finished:?}");
    assert!(!world.exists(STATE) && model.requests().is_empty(), "nothing was begun");
    findings.say("run.begins", "refused");
    let init = world.plimsoll(&["init", "--local"]).run().expect_success();
    assert!(init.stdout.contains("Careful: ") && says(&init.stdout), "{init:?}");
    findings.say("init.modern template", "warns");
    let doctor = world.plimsoll(&["doctor"]).run();
    assert!(doctor.code == Some(1) && says(&doctor.stdout), "{doctor:?}");
    findings.say("doctor.nothing to say of the client", "client.too_old");
}

fn run(world: &World, ours: &[&str]) -> Finished {
    let client = ["--", "--model", MODEL, "--allowedTools", "Bash"];
    let all = [&["run", "--objective", "Do the plan.", "--name", "Dates"], ours, &client].concat();
    world.plimsoll(&all).timeout(TIMEOUT).run()
}

/// The first session is asked to wrap up, the second is ended, the third finishes.
fn tell(turn: &Turn<'_>) -> Step {
    let edit = "sed -i '45,80s/$/ changed/' src/dates.txt";
    let step = match (turn.iteration, turn.step) {
        (1, 0) => Step::bash(edit).usage(20_000),
        (1, 1) => Step::bash("echo near").usage(105_000),
        (1, 2..6) if !turn.saw("CCS_CHECKPOINT_TRIGGERED|L2|") => Step::bash("echo full").usage(130_000),
        (1, _) => {
            Step::text("Summary: lines 45-80 are converted\nProgress on the item: 70%\nNext step: line 81")
                .usage(131_000)
        }
        (2, 0) => Step::bash("echo begin").usage(20_000),
        (2, 1) => Step::bash("echo near").usage(105_000),
        (2, 2..6) => Step::bash("echo overfull").usage(160_000),
        (2, _) => Step::text("Nobody ends me.").usage(161_000),
        _ => honest(turn),
    };
    step.delay(LIFELIKE)
}

fn whole(version: &str, findings: &mut Findings) {
    let model = story(tell);
    let world = world(version, &model);
    let finished = run(&world, &[]);
    let (state, journal) = (world.json(STATE), journal(&world));
    findings.note("run.begins", !events(&journal, "session_start").is_empty());
    findings.note("run.L2 checkpoint", says(&model, 1, "CCS_CHECKPOINT_TRIGGERED|L2|"));
    let resumed = first_request_of(&model, 2);
    let parts = ["Item three", "70%", "| src/dates.txt | 45-80 | ", "Do not start over"];
    findings.note("run.resumes at the item", parts.iter().all(|part| resumed.contains(part)));
    // Of those that would be sent in vain one goes out where the client's writer is late.
    let in_vain = last_request_of(&model, 2).matches("echo overfull").count();
    let ended = events(&journal, "checkpoint").iter().any(|entry| entry["level"] == "L3");
    findings.note("run.L3 ends the session", ended && in_vain < 3);
    findings.note("run.completed", finished.code == Some(0) && state["status"] == "completed");
    findings.note("run.cost known", state["cost_usd"].as_f64() > Some(0.0));
    assert_eq!(state["iteration"], 3, "{finished:?}");
}

/// Whether the last request of a session holds these words.
fn says(model: &ScriptedModel, iteration: u32, words: &str) -> bool {
    last_request_of(model, iteration).contains(words)
}
