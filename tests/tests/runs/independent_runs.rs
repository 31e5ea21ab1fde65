//! Independent runs and sessions side by side.

use plimsoll_testkit::scripted_agent::{AgentTurn, start_model_with_turn_script, tick_item_command};
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::world::{RunningProgram, World};
use plimsoll_tests::{
    LIFELIKE_DELAY, ScriptedAgent, THREE_ITEM_PLAN, events_named, honest_agent, read_journal,
    run_with_objective, verdict_markers, world_with_plan_and_dates,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Waits until the condition is true, at most for the given time; the assertions of the test notice what is missing.
fn wait_at_most(timeout: Duration, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() && start.elapsed() < timeout {
        sleep(Duration::from_millis(20));
    }
}

fn spawn_run(world: &World, project: &Path, model: &ScriptedModel) -> RunningProgram {
    let run_arguments = ["run", "--objective", "Do the plan.", "--max-iterations", "5"];
    let client_arguments = ["--", "--model", "opus", "--allowedTools", "Bash", "Edit", "Write", "Read"];
    let command_line: Vec<&str> = run_arguments.iter().chain(&client_arguments).copied().collect();
    world.plimsoll(&command_line).cwd(project).env("ANTHROPIC_BASE_URL", model.url()).spawn()
}

/// An honest agent that waits in its first session until the other run's first session has begun.
fn start_agent_waiting_for_other_run(started_count: &Arc<AtomicUsize>) -> ScriptedModel {
    let started_count = Arc::clone(started_count);
    let mut is_first = true;
    start_model_with_turn_script(move |turn| {
        if std::mem::take(&mut is_first) {
            started_count.fetch_add(1, Ordering::SeqCst);
            wait_at_most(Duration::from_secs(30), || started_count.load(Ordering::SeqCst) == 2);
        }
        honest_agent(turn).with_delay(LIFELIKE_DELAY)
    })
}

fn request_texts(model: &ScriptedModel) -> Vec<String> {
    model.main_requests().iter().map(Request::full_text).collect()
}

#[test]
fn two_projects_run_at_the_same_time_with_one_home() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let other_project = world.create_project("other");
    world.write(other_project.join("fix_plan.md"), "# Plan\n\n- [ ] Other one\n- [ ] Item three\n");
    for arguments in [["add", "-A"].as_slice(), &["commit", "-qm", "Plan"]] {
        world.command("git", arguments).cwd(&other_project).run().expect_success();
    }
    let started_count = Arc::new(AtomicUsize::new(0));
    let (first_model, second_model) = (
        start_agent_waiting_for_other_run(&started_count),
        start_agent_waiting_for_other_run(&started_count),
    );
    world.put_client_on_path_with_model_and_settings(&first_model);
    // The first session of each run.
    world.use_real_client_in_sessions(&[1, 2]);
    let runs =
        [spawn_run(&world, &world.project(), &first_model), spawn_run(&world, &other_project, &second_model)];
    for running in runs {
        running.wait_or_kill_and_panic(Duration::from_secs(120)).expect_success();
    }
    assert_eq!(started_count.load(Ordering::SeqCst), 2, "they did run at the same time");

    let states = [
        world.read_json(".claude/ralph-state.json"),
        world.read_json(other_project.join(".claude/ralph-state.json")),
    ];
    let nonces = [0, 1].map(|index: usize| states[index]["nonce"].as_str().expect("nonce").to_owned());
    assert_ne!(states[0]["run_id"], states[1]["run_id"]);
    for (state, iterations) in states.iter().zip([3, 2]) {
        assert_eq!(state["status"], "completed");
        assert_eq!(state["iteration"], iterations);
        assert_eq!(state["context_history"].as_array().expect("history").len(), iterations);
    }
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n");
    assert_eq!(world.read(other_project.join("work.txt")), "Other one\nItem three\n");
    for (model, own_index, other_index, foreign_item) in
        [(&first_model, 0, 1, "Other one"), (&second_model, 1, 0, "Item two")]
    {
        let texts = request_texts(model);
        assert!(texts.iter().all(|text| text.contains(&nonces[own_index])), "each has its own promise");
        assert!(!texts.iter().any(|text| text.contains(&nonces[other_index]) || text.contains(foreign_item)));
    }
    let run_id = &states[0]["run_id"];
    assert!(read_journal(&world).iter().all(|entry| entry["run_id"].is_null() || entry["run_id"] == *run_id));
}

/// Returns everything in the project that records the state of the run.
fn run_file_texts(world: &World) -> Vec<String> {
    [".claude/ralph-state.json", "PROMPT.md", "fix_plan.md", ".claude/plimsoll/progress.txt"]
        .map(|file| world.read(file))
        .into()
}

#[test]
fn an_ordinary_session_beside_a_run_is_advised_and_never_touches_it() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    world.plimsoll(&["init", "--local"]).run().expect_success();
    let (is_working, may_continue) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let model = ScriptedAgent::new({
        let (is_working, may_continue) = (Arc::clone(&is_working), Arc::clone(&may_continue));
        move |turn| {
            if (turn.iteration, turn.assistant_message_count) == (2, 0) {
                is_working.store(true, Ordering::SeqCst);
                wait_at_most(Duration::from_secs(60), || may_continue.load(Ordering::SeqCst));
            }
            honest_agent(turn).with_delay(LIFELIKE_DELAY)
        }
    })
    .with_real_client_in(&[2, 3])
    .start(&mut world);
    let running = spawn_run(&world, &world.project(), &model);
    world.wait_until(|| is_working.load(Ordering::SeqCst), "the run's second session works");

    let files_before = run_file_texts(&world);
    let nonce = world.read_json(".claude/ralph-state.json")["nonce"].as_str().expect("nonce").to_owned();
    let look_step = |used_tokens| {
        Step::bash_call("echo looking").with_input_tokens(used_tokens).with_delay(LIFELIKE_DELAY)
    };
    let last_message = format!("Ordinary work is done.\n\n<promise>COMPLETE {nonce}</promise>");
    let mut steps: Vec<Step> = [600_000, 720_000, 870_000, 970_000, 970_100, 970_200].map(look_step).into();
    steps.push(Step::from_text(last_message).with_input_tokens(970_300).with_delay(LIFELIKE_DELAY));
    let ordinary_model = ScriptedModel::start_with_steps_repeating_last(steps);
    let finished = world
        .claude(&["-p", "ORDINARY: look around", "--model", "opus", "--allowedTools", "Bash"])
        .env("ANTHROPIC_BASE_URL", ordinary_model.url())
        // Without this the client itself would compact at 96.7%.
        .env("DISABLE_AUTO_COMPACT", "1")
        .run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("Ordinary work is done."), "it was not ended: {finished:?}");
    assert_eq!(run_file_texts(&world), files_before, "the run of the other session is untouched");
    may_continue.store(true, Ordering::SeqCst);

    let asked_texts = request_texts(&ordinary_model);
    assert_eq!(asked_texts.len(), 7);
    let last_request = &asked_texts[6];
    for marker in ["CCS_WARNING|L1|72|", "CCS_WARNING|L2|87|", "CCS_WARNING|L3|97|"] {
        assert_eq!(last_request.matches(marker).count(), 1, "{marker}");
    }
    assert_eq!(last_request.matches("No action is required").count(), 3, "advice, not orders");
    for order in ["CCS_CHECKPOINT", "RALPH_", "End your turn", "Do not start over"] {
        assert!(!last_request.contains(order), "{order}");
    }

    let finished = running.wait_or_kill_and_panic(Duration::from_secs(90));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let state = world.read_json(".claude/ralph-state.json");
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
    assert_eq!(verdict_markers(&read_journal(&world)).len(), 3);
    assert!(
        request_texts(&model).iter().all(|text| !text.contains("CCS_WARNING")),
        "the run's sessions hear nothing of it"
    );
}

const NESTED_PROMPT: &str = "NESTED: help a little";

/// Starts a nested session from the Bash tool, and keeps copies of the run's state from before and after it.
fn nested_command(number: usize) -> Step {
    let state = ".claude/ralph-state.json";
    Step::bash_call(format!(
        "test -n \"$PLIMSOLL_RUN_ID\" && cp {state} before-{number}.json && cp .claude/plimsoll/progress.txt before-{number}.txt; \
         claude -p '{NESTED_PROMPT} ({number})' --model opus --allowedTools Bash < /dev/null > nested-{number}.out 2>&1; \
         echo \"exit $?\" >> nested-{number}.out; cp {state} after-{number}.json; cp .claude/plimsoll/progress.txt after-{number}.txt"
    ))
    .with_input_tokens(30_000)
}

fn is_nested(turn: &AgentTurn<'_>) -> bool {
    turn.iteration == 0 && turn.request_contains(NESTED_PROMPT)
}

#[test]
fn a_nested_session_that_inherits_the_run_id_does_not_change_the_run() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    world.plimsoll(&["init", "--local"]).run().expect_success();
    let model = ScriptedAgent::new({
        let mut promise = String::new();
        move |turn| {
            if !turn.promise_line.is_empty() {
                promise.clone_from(&turn.promise_line);
            }
            let step = if is_nested(turn) {
                match turn.assistant_message_count {
                    0 => Step::bash_call("echo \"nested with ${PLIMSOLL_RUN_ID:-nothing}\"")
                        .with_input_tokens(600_000),
                    1 => Step::bash_call("echo nested").with_input_tokens(960_000),
                    _ if turn.request_contains(&format!("{NESTED_PROMPT} (0)")) => {
                        Step::from_text(format!("Nested work is done.\n\n{promise}"))
                    }
                    _ => Step::from_text("Nested work is done."),
                }
            } else {
                match (turn.iteration, turn.assistant_message_count) {
                    (2, 0 | 1) => nested_command(turn.assistant_message_count),
                    (2, 2) => Step::bash_call(format!(
                        "echo 'Item two' >> work.txt && {}",
                        tick_item_command("Item two")
                    ))
                    .with_input_tokens(30_000),
                    _ => honest_agent(turn),
                }
            };
            step.with_delay(LIFELIKE_DELAY)
        }
    })
    .with_real_client_in(&[2, 3, 4])
    .start(&mut world);
    let finished = run_with_objective(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let run_id = world.read_json(".claude/ralph-state.json")["run_id"].as_str().expect("run id").to_owned();
    for number in [0, 1] {
        let output = world.read(format!("nested-{number}.out"));
        assert!(
            output.contains("Nested work is done.") && output.ends_with("exit 0\n"),
            "it was not ended: {output}"
        );
        for kind in ["json", "txt"] {
            let [before, after] =
                ["before", "after"].map(|moment| world.read(format!("{moment}-{number}.{kind}")));
            assert_eq!(before, after, "session {number} changed the run's files");
        }
    }
    let nested_requests: Vec<String> =
        request_texts(&model).into_iter().filter(|text| !text.contains("You are session ")).collect();
    assert_eq!(nested_requests.len(), 6);
    assert!(nested_requests[1].contains(&format!("nested with {run_id}")), "it did inherit the run's id");
    assert!(nested_requests[2].contains("CCS_WARNING|L3|96|"), "advice is all it hears");
    assert!(!nested_requests.iter().any(|text| text.contains("CCS_CHECKPOINT")), "no order");

    let journal = read_journal(&world);
    let state = world.read_json(".claude/ralph-state.json");
    assert_eq!((state["status"].as_str(), state["iteration"].as_u64()), (Some("completed"), Some(3)));
    assert_eq!(events_named(&journal, "verdict").len(), 3, "{:?}", verdict_markers(&journal));
    assert_eq!(events_named(&journal, "provisional_verdict").len(), 3, "the nested Stop is nobody's claim");
    assert_eq!(events_named(&journal, "iteration_closed").len(), 3);
    assert_eq!(state["context_history"].as_array().expect("history").len(), 3);
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n");
}
