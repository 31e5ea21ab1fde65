//! The worlds in which the examples run.

use plimsoll_testkit::linear::{API_KEY, LinearServer};
use plimsoll_testkit::postgres::{Postgres, ServerSetup};
use plimsoll_testkit::scripted_agent::{AgentTurn, tick_item_command};
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::World;
use plimsoll_tests::dates;
use serde_json::{Value, json};

/// A group of examples that share a world. Every command belongs to one, so no example is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExampleGroup {
    FirstSteps,
    Run,
    Loop,
    Database,
    Common,
}

impl ExampleGroup {
    /// Returns the group of a command, given by the words after `plimsoll`.
    pub(crate) fn for_command(command: &str) -> ExampleGroup {
        match command.split(' ').next().unwrap_or_default() {
            "" => ExampleGroup::FirstSteps,
            "run" => ExampleGroup::Run,
            "start" | "gate" => ExampleGroup::Loop,
            "fleet" | "doctor" => ExampleGroup::Database,
            _ => ExampleGroup::Common,
        }
    }
}

/// The session that `turns show 4f2a91bc:17` names.
pub(crate) const RECORDED_SESSION: &str = "4f2a91bc-7d41-4824-a1be-f318ff23689b";
/// The run that `report --run 4f2a` names.
pub(crate) const EARLIER_RUN: &str = "4f2ac0de-2b1d-4c7a-9d5e-0123456789ab";
/// Returns a text that looks like a token and opens nothing. It is in two parts, so that no scanner finds it here.
pub(crate) fn fake_token() -> String {
    format!("{}{}", "ghp_", "aB3dE5fG7hK9".repeat(3))
}

/// Returns a plan with this many open items.
pub(crate) fn plan_with_items(items: usize) -> String {
    let items = (1..=items).map(|number| format!("- [ ] Item {number}\n"));
    format!("# Plan\n\n{}", items.collect::<String>())
}

/// Creates the user's programs that examples name. Their effect is not tested.
pub(crate) fn add_user_programs(world: &mut World) {
    for program in ["npm", "cargo"] {
        world.write_program(programs_folder(world).join(program), "#!/bin/sh\nexit 0\n");
    }
    let opener = "#!/bin/sh\necho \"$1\" >> ~/opened\n";
    world.write_program(programs_folder(world).join("xdg-open"), opener);
    let path =
        world.env_with_programs_on_path().into_iter().find(|(name, _)| name == "PATH").expect("a PATH").1;
    world.set_env("PATH", format!("{}:{path}", programs_folder(world).display()));
}

/// Returns the folder of programs that comes first on the PATH.
pub(crate) fn programs_folder(world: &World) -> std::path::PathBuf {
    world.home().join("programs")
}

/// Plays an agent that does one item per session, in the plan that its prompt names. An idle agent makes no progress.
fn play_agent(turn: &AgentTurn<'_>, is_idle: bool) -> Step {
    let Some(item) = turn.item_text.clone() else {
        return Step::from_text(format!("All done.\n\n{}", turn.promise_line));
    };
    let lists = ["plimsoll-item.md", "pages.md"];
    let plan_file = lists.into_iter().find(|list| turn.request_contains(list)).unwrap_or("fix_plan.md");
    let finish = tick_item_command(&item).replace("fix_plan.md", plan_file);
    // Each item has a file of its own, because workers could not merge their changes of one file.
    let number = item.split(' ').next_back().unwrap_or_default();
    let count = format!("echo \"open items: $(grep -c '^- \\[ \\]' {plan_file})\"");
    match turn.assistant_message_count {
        _ if is_idle => Step::from_text("Let me think about it once more."),
        0 => Step::bash_call(format!("date +%s%N > {number}.txt && {finish}; {count}"))
            .with_input_tokens(30_000),
        _ if turn.request_contains("open items: 0") => {
            Step::from_text(format!("All done.\n\n{}", turn.promise_line)).with_input_tokens(31_000)
        }
        _ => Step::from_text(format!("{item} is done.")).with_input_tokens(31_000),
    }
}

/// Creates a project with a plan of one item, and an agent that does it.
pub(crate) fn world_with_plan() -> (World, ScriptedModel) {
    let mut world = plimsoll_tests::world_with_plan_and_dates(&plan_with_items(1));
    let idle = world.home().join("idle");
    let model =
        plimsoll_tests::ScriptedAgent::new(move |turn| play_agent(turn, idle.exists())).start(&mut world);
    add_user_programs(&mut world);
    // A run with a deadline of 07:00 needs time until then.
    let is_near_deadline =
        chrono::Utc::now().format("%H").to_string().parse::<u32>().is_ok_and(|hour| (5..8).contains(&hour));
    world.set_env("TZ", if is_near_deadline { "UTC-9" } else { "UTC" });
    (world, model)
}

/// Creates a project with a plan, an agent, a database and a remote, for a fleet.
pub(crate) fn world_with_database() -> (World, Postgres, ScriptedModel) {
    let (mut world, model) = world_with_plan();
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    world.set_env(plimsoll_fleet::URL_VARIABLE, server.socket_connection_string());
    world.write("PROMPT.md", "Do what fix_plan.md says.\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Task"]);
    world.git(&["init", "-q", "--bare", "../there.git"]);
    world.git(&["remote", "add", "origin", "../there.git"]);
    world.git(&["push", "-q", "origin", "main"]);
    (world, server, model)
}

/// Plays the agent of the guide, except that the first session claims completion too early.
fn play_agent_with_early_promise(turn: &AgentTurn<'_>) -> Step {
    match (turn.iteration, turn.assistant_message_count) {
        (1, 0) => Step::from_text(format!("All done.\n\n{}", turn.promise_line)).with_input_tokens(30_000),
        // While the window fills, the client's writer needs the time that a real model takes.
        (3, _) => dates::date_agent(turn).with_delay(plimsoll_tests::LIFELIKE_DELAY),
        _ => dates::date_agent(turn),
    }
}

/// Creates a project with history: a run that ended, a later one with a refused promise and a checkpoint, and a session
/// whose turns are recorded.
pub(crate) fn world_with_history() -> (World, (ScriptedModel, LinearServer)) {
    let mut world = dates::dates_project();
    let model = plimsoll_tests::ScriptedAgent::new(play_agent_with_early_promise).start(&mut world);
    add_user_programs(&mut world);
    make_earlier_run(&world);
    world.write(
        "fix_plan.md",
        "- [ ] Convert the dates in the first half\n- [ ] Convert the dates in the second half\n",
    );
    let arguments = [
        "run",
        "--objective",
        "Convert the dates.",
        "--verify",
        "test -e src/dates.txt",
        "--",
        "--allowedTools",
        "Bash",
    ];
    world.plimsoll(&arguments).run().expect_success();
    record_session(&world);
    let linear = LinearServer::new();
    world.set_env("LINEAR_API_KEY", API_KEY);
    world.set_env("LINEAR_API_URL", linear.url());
    (world, (model, linear))
}

/// Makes a run that ended earlier, with the id that the help names.
fn make_earlier_run(world: &World) {
    world.write("fix_plan.md", "- [x] Look at the dates\n");
    world.plimsoll(&["start", "--objective", "Look at the dates."]).run().expect_success();
    let mut state = world.read_json(".claude/ralph-state.json");
    let id = state["run_id"].as_str().expect("an id").to_owned();
    for file in [".claude/plimsoll/journal.jsonl", ".claude/ralph-state.json"] {
        let text = world.read(file).replace(&id, EARLIER_RUN);
        world.write(file, &text);
    }
    std::fs::remove_dir_all(world.runs_folder().join(&id)).expect("the run's folder");
    state["run_id"] = json!(EARLIER_RUN);
    world.write_run_state_record_and_ledger(&state);
    world.plimsoll(&["run", "--resume", "--", "--allowedTools", "Bash"]).run().expect_success();
}

/// Returns the path of the recorded session's transcript.
pub(crate) fn recorded_transcript_path(world: &World) -> std::path::PathBuf {
    world.home().join(format!(".claude/projects/recorded/{RECORDED_SESSION}.jsonl"))
}

/// Records twenty turns of a session of the last hour, with failures and a secret.
fn record_session(world: &World) {
    let turn = |number: u64| {
        let at = (chrono::Utc::now() - chrono::Duration::seconds(3_600 - 60 * number as i64))
            .to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        let command = match number {
            18 => format!("curl -H 'Authorization: token {}' http://127.0.0.1:9", fake_token()),
            _ => format!("make part-{number}"),
        };
        let (tool, input) = match number {
            16 => ("Read", json!({"file_path": world.path("src/report.rs")})),
            _ => ("Bash", json!({"command": command})),
        };
        let (failed, result) = if number == 18 { (true, "connection refused") } else { (false, "ok") };
        let common = json!({"sessionId": RECORDED_SESSION, "isSidechain": false, "timestamp": at, "version": "2.1.329", "cwd": world.project()});
        let usage =
            json!({"input_tokens": 10, "cache_read_input_tokens": 40_000 * number, "output_tokens": 50});
        let lines = [
            json!({"type": "assistant", "uuid": format!("a{number}"), "message": {"id": format!("msg_{number}"), "role": "assistant",
                "model": "claude-opus-5-5", "stop_reason": "tool_use", "usage": usage,
                "content": [{"type": "text", "text": format!("Part {number}.")},
                    {"type": "tool_use", "id": format!("toolu_{number}"), "name": tool, "input": input}]}}),
            json!({"type": "user", "uuid": format!("u{number}"), "message": {"role": "user",
                "content": [{"type": "tool_result", "tool_use_id": format!("toolu_{number}"), "is_error": failed, "content": result}]}}),
        ];
        lines
            .map(|mut line: Value| {
                line.as_object_mut()
                    .expect("an object")
                    .extend(common.as_object().expect("an object").clone());
                format!("{line}\n")
            })
            .concat()
    };
    let transcript = recorded_transcript_path(world);
    world.write(&transcript, &(1..=20).map(turn).collect::<String>());
    world.plimsoll(&["turns", "sync", &transcript.display().to_string()]).run().expect_success();
}
