//! Shared parts of the tests with the client: a project with a plan, a run in it, and readers of what the run wrote.

pub mod browser;
pub mod collector;
pub mod dates;
pub mod hostile;
pub mod large_world;
#[cfg(unix)]
mod scripted_agent;

use plimsoll_domain::state::RunOptions;
use plimsoll_domain::state::{IterationPhase, IterationRecord};
use plimsoll_domain::{RunId, RunState, SessionId};
use plimsoll_store::{Project, state_file};
pub use plimsoll_testkit::quota::{usage_limit_error, with_five_hour_quota_headers};
use plimsoll_testkit::scripted_agent::{AgentTurn, tick_item_command};
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::{FinishedProgram, World};
#[cfg(unix)]
pub use scripted_agent::ScriptedAgent;
use serde_json::Value;
use std::time::Duration;

/// The delay of the scripted model. A real model takes longer than the client's transcript writer lags behind (106 ms, 2.1.329).
pub const LIFELIKE_DELAY: Duration = Duration::from_millis(150);

/// A plan with three open items.
pub const THREE_ITEM_PLAN: &str = "# Plan\n\n- [ ] Item one\n- [ ] Item two\n- [ ] Item three\n";

/// Returns the marker in a hook's message for the user, wherever its line is; empty if there is none.
pub fn marker_in_user_message(reply: &Value) -> String {
    let message = reply["systemMessage"].as_str().unwrap_or_default();
    let marker = message.lines().rfind(|line| line.parse::<plimsoll_domain::Marker>().is_ok());
    marker.unwrap_or_default().to_owned()
}

/// Creates a project with this to-do list and a file to work on.
pub fn world_with_plan_and_dates(plan: &str) -> World {
    let world = World::new();
    world.write("fix_plan.md", plan);
    world.write("src/dates.txt", &(1..=200).map(|n| format!("line {n}\n")).collect::<String>());
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Plan"]);
    world
}

/// Creates a project with Plimsoll's hooks for ordinary sessions with this model.
pub fn world_with_hooks(model: &ScriptedModel) -> World {
    let mut world = World::new();
    world.put_client_on_path_with_model_and_settings(model);
    world.plimsoll(&["init", "--local"]).run().expect_success();
    world
}

/// Creates a run with this session as its first iteration, without starting `plimsoll run`.
pub fn create_run(world: &World, run_id: &str, session_id: &str) {
    let state = RunState {
        run_id: RunId::from(run_id),
        session_id: Some(SessionId::from(session_id)),
        iteration: 1,
        iteration_record: IterationRecord {
            iteration: 1,
            phase: IterationPhase::Spawned,
            ..IterationRecord::default()
        },
        options: RunOptions {
            task_name: "Dates".to_owned(),
            max_iterations: 5,
            todo_file: Some("fix_plan.md".to_owned()),
            ..RunOptions::default()
        },
        ..RunState::default()
    };
    let project = Project::with_local_files(&world.project()).with_runs_folder(&world.runs_folder());
    state_file::create_ledger_and_write_initial_state(&project, &state).expect("a state");
}

/// Runs the cases of a test in parallel, because they mostly wait. Resumes the first panic.
pub fn run_cases_in_parallel<T: Sync>(cases: &[T], run_case: impl Fn(&T) + Sync) {
    let panics: Vec<_> = std::thread::scope(|scope| {
        let run_case = &run_case;
        let handles: Vec<_> = cases.iter().map(|case| scope.spawn(move || run_case(case))).collect();
        handles.into_iter().filter_map(|case| case.join().err()).collect()
    });
    if let Some(first) = panics.into_iter().next() {
        std::panic::resume_unwind(first);
    }
}

/// Runs the shell loop of scripts/ralph-loop.sh to its end.
pub fn run_ralph_loop(world: &World, options: &[&str]) -> FinishedProgram {
    let script = workspace_root().join("scripts/ralph-loop.sh");
    let mut arguments = vec![script.to_str().expect("a plain path")];
    arguments.extend(options);
    arguments.extend(["--", "--model", "opus", "--allowedTools", "Bash"]);
    world.command("bash", &arguments).run()
}

/// Creates a project whose client believes that it is logged in with a subscription.
pub fn world_with_subscription(plan: &str) -> World {
    let mut world = world_with_plan_and_dates(plan);
    world.set_env("ANTHROPIC_API_KEY", "");
    world.set_env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-scripted-model-only-000000");
    world
}

/// Runs `plimsoll run` with an objective, in a project made by [`world_with_plan_and_dates`].
pub fn run_with_objective(world: &World, arguments: &[&str]) -> FinishedProgram {
    let run_arguments = ["run", "--objective", "Do the plan.", "--name", "Dates"];
    let client_arguments = ["--", "--model", "opus", "--allowedTools", "Bash", "Edit", "Write", "Read"];
    let command_line: Vec<&str> =
        run_arguments.iter().chain(arguments).chain(&client_arguments).copied().collect();
    world.plimsoll(&command_line).run()
}

/// Runs `plimsoll run --resume`, in a project made by [`world_with_plan_and_dates`].
pub fn resume_run(world: &World, arguments: &[&str]) -> FinishedProgram {
    let command_line: Vec<&str> = ["run", "--resume"].iter().chain(arguments).copied().collect();
    world.plimsoll(&command_line).run()
}

/// Reads the journal. Panics if a line is not valid JSON.
pub fn read_journal(world: &World) -> Vec<Value> {
    world
        .read(".claude/plimsoll/journal.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

/// Returns the journal's entries of one event.
pub fn events_named<'a>(journal: &'a [Value], event_name: &str) -> Vec<&'a Value> {
    journal.iter().filter(|entry| entry["event"] == event_name).collect()
}

/// Plays an honest agent: it completes one item per session and writes the promise when none is left.
pub fn honest_agent(turn: &AgentTurn<'_>) -> Step {
    let Some(item) = turn.item_text.clone() else {
        return Step::from_text(format!("All done.\n\n{}", turn.promise_line));
    };
    match turn.assistant_message_count {
        0 => Step::bash_call(format!("echo '{item}' >> work.txt && {}", tick_item_command(&item)))
            .with_input_tokens(30_000),
        _ if item == "Item three" => {
            Step::from_text(format!("All done.\n\n{}", turn.promise_line)).with_input_tokens(31_000)
        }
        _ => Step::from_text(format!("{item} is done.")).with_input_tokens(31_000),
    }
}

/// Returns the text of the last request of a session, which is found by the iteration that its prompt names.
pub fn last_request_of_iteration(model: &ScriptedModel, iteration: u32) -> String {
    let iteration_text = format!("You are session {iteration} of");
    let requests = model.main_requests();
    let mut matching =
        requests.iter().rev().filter(|request| request.first_message_text().contains(&iteration_text));
    matching.next().map(Request::full_text).expect("a request of that iteration")
}

/// Returns the text of the first request of a session, which is found by the iteration that its prompt names.
pub fn first_request_of_iteration(model: &ScriptedModel, iteration: u32) -> String {
    let iteration_text = format!("You are session {iteration} of");
    let requests = model.main_requests();
    requests
        .iter()
        .map(Request::full_text)
        .find(|text| text.contains(&iteration_text))
        .expect("a request of that iteration")
}

/// Asserts that each line of Plimsoll's block occurs once in what a session is sent before its first response.
pub fn assert_each_block_line_sent_once(request: &Request) {
    let request_text = request.full_text();
    let sent = request_text.strip_prefix(&request.system_text()).unwrap_or(&request_text);
    let (_, block) = sent.split_once("<!-- plimsoll:begin").unwrap_or_else(|| panic!("no block in\n{sent}"));
    let (block, _) = block.split_once("<!-- plimsoll:end").unwrap_or_else(|| panic!("no end in\n{sent}"));
    let lines = block.lines().skip(1).filter(|line| line.starts_with('#') || line.len() > 20);
    assert!(lines.clone().count() > 10, "{block}");
    for line in lines {
        assert_eq!(
            sent.lines().filter(|other_line| *other_line == line).count(),
            1,
            "{line}\nstands once in\n{sent}"
        );
    }
}

/// Returns the markers of the final verdicts, in order.
pub fn verdict_markers(journal: &[Value]) -> Vec<String> {
    events_named(journal, "verdict")
        .iter()
        .map(|entry| entry["marker"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Parses the reply of a hook as the client does.
pub fn parse_hook_reply(finished: &FinishedProgram) -> Value {
    serde_json::from_str(&finished.stdout).expect(&finished.stdout)
}

/// Asserts that the parts occur in the text in this order.
pub fn assert_in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some(position) = rest.find(part) else {
            panic!("{part} is missing, or out of order, in\n{text}")
        };
        rest = &rest[position + part.len()..];
    }
}

/// Returns the lines of a text that contain these words.
pub fn lines_containing(text: &str, needle: &str) -> String {
    text.lines().filter(|line| line.contains(needle)).map(|line| format!("{line}\n")).collect()
}

/// Returns the name of a test of the same program for `--exact`: its module path without the name of the program.
pub fn exact_test_name(module_path: &str, test: &str) -> String {
    let (_, module) = module_path.split_once("::").expect("a module of this program");
    format!("{module}::{test}")
}
