//! Runs and sessions that have nothing to do with each other, side by side.

use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::story::{Turn, story, tick};
use plimsoll_testkit::world::{Running, World};
use plimsoll_tests::{ITEMS, LIFELIKE, ScriptedAgent, events, honest, journal, markers, run, world};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Waits, but not for ever: who does not come is missed by the assertions.
fn meet(limit: Duration, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() && start.elapsed() < limit {
        sleep(Duration::from_millis(20));
    }
}

fn spawn_run(world: &World, project: &Path, model: &ScriptedModel) -> Running {
    let ours = ["run", "--objective", "Do the plan.", "--max-iterations", "5"];
    let client = ["--", "--model", "opus", "--allowedTools", "Bash", "Edit", "Write", "Read"];
    let all: Vec<&str> = ours.iter().chain(&client).copied().collect();
    world.plimsoll(&all).cwd(project).env("ANTHROPIC_BASE_URL", model.url()).spawn()
}

/// An honest agent that does not begin before the other run's first session has.
fn sociable(present: &Arc<AtomicUsize>) -> ScriptedModel {
    let present = Arc::clone(present);
    let mut first = true;
    story(move |turn| {
        if std::mem::take(&mut first) {
            present.fetch_add(1, Ordering::SeqCst);
            meet(Duration::from_secs(30), || present.load(Ordering::SeqCst) == 2);
        }
        honest(turn).delay(LIFELIKE)
    })
}

fn texts(model: &ScriptedModel) -> Vec<String> {
    model.main_requests().iter().map(Request::text).collect()
}

#[test]
fn two_projects_run_at_the_same_time_with_one_home() {
    let mut world = world(ITEMS);
    let other = world.project_at("other");
    world.write(other.join("fix_plan.md"), "# Plan\n\n- [ ] Other one\n- [ ] Item three\n");
    for arguments in [["add", "-A"].as_slice(), &["commit", "-qm", "Plan"]] {
        world.command("git", arguments).cwd(&other).run().expect_success();
    }
    let present = Arc::new(AtomicUsize::new(0));
    let (here, there) = (sociable(&present), sociable(&present));
    world.use_model(&here);
    // The first session of each.
    world.use_real_client_in(&[1, 2]);
    let runs = [spawn_run(&world, &world.project(), &here), spawn_run(&world, &other, &there)];
    for running in runs {
        running.wait(Duration::from_secs(120)).expect_success();
    }
    assert_eq!(present.load(Ordering::SeqCst), 2, "they did run at the same time");

    let states = [world.json(".claude/ralph-state.json"), world.json(other.join(".claude/ralph-state.json"))];
    let nonces = [0, 1].map(|index: usize| states[index]["nonce"].as_str().expect("nonce").to_owned());
    assert_ne!(states[0]["run_id"], states[1]["run_id"]);
    for (state, iterations) in states.iter().zip([3, 2]) {
        assert_eq!(state["status"], "completed");
        assert_eq!(state["iteration"], iterations);
        assert_eq!(state["context_history"].as_array().expect("history").len(), iterations);
    }
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n");
    assert_eq!(world.read(other.join("work.txt")), "Other one\nItem three\n");
    for (model, own, foreign, item) in [(&here, 0, 1, "Other one"), (&there, 1, 0, "Item two")] {
        let texts = texts(model);
        assert!(texts.iter().all(|text| text.contains(&nonces[own])), "each has its own promise");
        assert!(!texts.iter().any(|text| text.contains(&nonces[foreign]) || text.contains(item)));
    }
    let run_id = &states[0]["run_id"];
    assert!(journal(&world).iter().all(|entry| entry["run_id"].is_null() || entry["run_id"] == *run_id));
}

/// Everything in the project that tells where the run stands.
fn run_files(world: &World) -> Vec<String> {
    [".claude/ralph-state.json", "PROMPT.md", "fix_plan.md", ".claude/plimsoll/progress.txt"]
        .map(|file| world.read(file))
        .into()
}

#[test]
fn an_ordinary_session_in_the_same_project_is_advised_and_never_touches_the_run() {
    let mut world = world(ITEMS);
    world.plimsoll(&["init", "--local"]).run().expect_success();
    let (working, go_on) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let model = ScriptedAgent::new({
        let (working, go_on) = (Arc::clone(&working), Arc::clone(&go_on));
        move |turn| {
            if (turn.iteration, turn.step) == (2, 0) {
                working.store(true, Ordering::SeqCst);
                meet(Duration::from_secs(60), || go_on.load(Ordering::SeqCst));
            }
            honest(turn).delay(LIFELIKE)
        }
    })
    .with_real_client_in(&[2, 3])
    .start(&mut world);
    let running = spawn_run(&world, &world.project(), &model);
    world.wait_until(|| working.load(Ordering::SeqCst), "the run's second session works");

    let before = run_files(&world);
    let nonce = world.json(".claude/ralph-state.json")["nonce"].as_str().expect("nonce").to_owned();
    let look = |used| Step::bash("echo looking").usage(used).delay(LIFELIKE);
    let words = format!("Ordinary work is done.\n\n<promise>COMPLETE {nonce}</promise>");
    let mut steps: Vec<Step> = [600_000, 720_000, 870_000, 970_000, 970_100, 970_200].map(look).into();
    steps.push(Step::text(words).usage(970_300).delay(LIFELIKE));
    let ordinary = ScriptedModel::steps(steps);
    let finished = world
        .claude(&["-p", "ORDINARY: look around", "--model", "opus", "--allowedTools", "Bash"])
        .env("ANTHROPIC_BASE_URL", ordinary.url())
        // The client itself would compact at 96.7 %.
        .env("DISABLE_AUTO_COMPACT", "1")
        .run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("Ordinary work is done."), "it was not ended: {finished:?}");
    assert_eq!(run_files(&world), before, "the run of the other session is untouched");
    go_on.store(true, Ordering::SeqCst);

    let asked = texts(&ordinary);
    assert_eq!(asked.len(), 7);
    let last = &asked[6];
    for marker in ["CCS_WARNING|L1|72|", "CCS_WARNING|L2|87|", "CCS_WARNING|L3|97|"] {
        assert_eq!(last.matches(marker).count(), 1, "{marker}");
    }
    assert_eq!(last.matches("No action is required").count(), 3, "advice, not orders");
    for order in ["CCS_CHECKPOINT", "RALPH_", "End your turn", "Do not start over"] {
        assert!(!last.contains(order), "{order}");
    }

    let finished = running.wait(Duration::from_secs(90));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let state = world.json(".claude/ralph-state.json");
    assert_eq!((state["status"].as_str(), state["iteration"].as_u64()), (Some("completed"), Some(3)));
    assert_eq!(state["context_history"].as_array().expect("history").len(), 3);
    for entry in state["context_history"].as_array().expect("history") {
        assert_eq!(
            (entry["peak_percent"].as_u64(), entry["checkpoint"].as_bool()),
            (Some(3), Some(false)),
            "{entry}"
        );
    }
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n");
    assert_eq!(markers(&journal(&world)).len(), 3);
    assert!(
        texts(&model).iter().all(|text| !text.contains("CCS_WARNING")),
        "the run's sessions hear nothing of it"
    );
}

const NESTED: &str = "NESTED: help a little";

/// Starts a session of its own from the Bash tool, and keeps the run's state of before and after it.
fn nested_command(number: usize) -> Step {
    let state = ".claude/ralph-state.json";
    Step::bash(format!(
        "test -n \"$PLIMSOLL_RUN_ID\" && cp {state} before-{number}.json && cp .claude/plimsoll/progress.txt before-{number}.txt; \
         claude -p '{NESTED} ({number})' --model opus --allowedTools Bash < /dev/null > nested-{number}.out 2>&1; \
         echo \"exit $?\" >> nested-{number}.out; cp {state} after-{number}.json; cp .claude/plimsoll/progress.txt after-{number}.txt"
    ))
    .usage(30_000)
}

fn is_nested(turn: &Turn<'_>) -> bool {
    turn.iteration == 0 && turn.saw(NESTED)
}

#[test]
fn a_nested_session_that_inherits_the_runs_id_does_not_act_on_its_state() {
    let mut world = world(ITEMS);
    world.plimsoll(&["init", "--local"]).run().expect_success();
    let model = ScriptedAgent::new({
        let mut promise = String::new();
        move |turn| {
            if !turn.promise.is_empty() {
                promise.clone_from(&turn.promise);
            }
            let step = if is_nested(turn) {
                match turn.step {
                    0 => Step::bash("echo \"nested with ${PLIMSOLL_RUN_ID:-nothing}\"").usage(600_000),
                    1 => Step::bash("echo nested").usage(960_000),
                    _ if turn.saw(&format!("{NESTED} (0)")) => {
                        Step::text(format!("Nested work is done.\n\n{promise}"))
                    }
                    _ => Step::text("Nested work is done."),
                }
            } else {
                match (turn.iteration, turn.step) {
                    (2, 0 | 1) => nested_command(turn.step),
                    (2, 2) => Step::bash(format!("echo 'Item two' >> work.txt && {}", tick("Item two")))
                        .usage(30_000),
                    _ => honest(turn),
                }
            };
            step.delay(LIFELIKE)
        }
    })
    .with_real_client_in(&[2, 3, 4])
    .start(&mut world);
    let finished = run(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let run_id = world.json(".claude/ralph-state.json")["run_id"].as_str().expect("run id").to_owned();
    for number in [0, 1] {
        let said = world.read(format!("nested-{number}.out"));
        assert!(
            said.contains("Nested work is done.") && said.ends_with("exit 0\n"),
            "it was not ended: {said}"
        );
        for kind in ["json", "txt"] {
            let [before, after] =
                ["before", "after"].map(|when| world.read(format!("{when}-{number}.{kind}")));
            assert_eq!(before, after, "session {number} changed the run's files");
        }
    }
    let nested: Vec<String> =
        texts(&model).into_iter().filter(|text| !text.contains("You are session ")).collect();
    assert_eq!(nested.len(), 6);
    assert!(nested[1].contains(&format!("nested with {run_id}")), "it did inherit the run's id");
    assert!(nested[2].contains("CCS_WARNING|L3|96|"), "advice is all it hears");
    assert!(!nested.iter().any(|text| text.contains("CCS_CHECKPOINT")), "no order");

    let journal = journal(&world);
    let state = world.json(".claude/ralph-state.json");
    assert_eq!((state["status"].as_str(), state["iteration"].as_u64()), (Some("completed"), Some(3)));
    assert_eq!(events(&journal, "verdict").len(), 3, "{:?}", markers(&journal));
    assert_eq!(events(&journal, "provisional_verdict").len(), 3, "the nested Stop is nobody's claim");
    assert_eq!(events(&journal, "iteration_closed").len(), 3);
    assert_eq!(state["context_history"].as_array().expect("history").len(), 3);
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n");
}
