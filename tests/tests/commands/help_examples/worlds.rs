//! The worlds in which the examples run.

use plimsoll_testkit::linear::{KEY, LinearServer};
use plimsoll_testkit::postgres::{Postgres, Setup};
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::story::{Turn, tick};
use plimsoll_testkit::world::World;
use plimsoll_tests::dates;
use serde_json::{Value, json};

/// Which examples share a world. Every command has one, so no example is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    FirstSteps,
    Run,
    Loop,
    Database,
    Common,
}

impl Stage {
    /// Returns the stage of a command by the words behind `plimsoll`.
    pub(crate) fn of(command: &str) -> Stage {
        match command.split(' ').next().unwrap_or_default() {
            "" => Stage::FirstSteps,
            "run" => Stage::Run,
            "start" | "gate" => Stage::Loop,
            "fleet" | "doctor" => Stage::Database,
            _ => Stage::Common,
        }
    }
}

/// The session that `turns show 4f2a91bc:17` names.
pub(crate) const RECORDED: &str = "4f2a91bc-7d41-4824-a1be-f318ff23689b";
/// The run that `report --run 4f2a` names.
pub(crate) const EARLIER_RUN: &str = "4f2ac0de-2b1d-4c7a-9d5e-0123456789ab";
/// Looks like a token and opens nothing; in two parts, so that no scanner finds it here.
pub(crate) fn secret() -> String {
    format!("{}{}", "ghp_", "aB3dE5fG7hK9".repeat(3))
}

/// A plan of so many open items.
pub(crate) fn plan_of(items: usize) -> String {
    let items = (1..=items).map(|number| format!("- [ ] Item {number}\n"));
    format!("# Plan\n\n{}", items.collect::<String>())
}

/// Programs of the user's that examples name. What they do is not what is tested.
pub(crate) fn add_users_programs(world: &mut World) {
    for program in ["npm", "cargo"] {
        world.write_program(programs(world).join(program), "#!/bin/sh\nexit 0\n");
    }
    let opens = "#!/bin/sh\necho \"$1\" >> ~/opened\n";
    world.write_program(programs(world).join("xdg-open"), opens);
    let path = world.env().into_iter().find(|(name, _)| name == "PATH").expect("a PATH").1;
    world.set_env("PATH", format!("{}:{path}", programs(world).display()));
}

/// The folder of programs that comes first on the PATH.
pub(crate) fn programs(world: &World) -> std::path::PathBuf {
    world.home().join("programs")
}

/// Does one item a session, in whatever list its prompt names; idles where the user's home has a file `idle`.
fn work(turn: &Turn<'_>, is_idle: bool) -> Step {
    let Some(item) = turn.item.clone() else { return Step::text(format!("All done.\n\n{}", turn.promise)) };
    let lists = ["plimsoll-item.md", "pages.md"];
    let list = lists.into_iter().find(|list| turn.saw(list)).unwrap_or("fix_plan.md");
    let finish = tick(&item).replace("fix_plan.md", list);
    // Workers would merge their changes of one file in vain.
    let number = item.split(' ').next_back().unwrap_or_default();
    let count = format!("echo \"open items: $(grep -c '^- \\[ \\]' {list})\"");
    match turn.step {
        _ if is_idle => Step::text("Let me think about it once more."),
        0 => Step::bash(format!("date +%s%N > {number}.txt && {finish}; {count}")).usage(30_000),
        _ if turn.saw("open items: 0") => Step::text(format!("All done.\n\n{}", turn.promise)).usage(31_000),
        _ => Step::text(format!("{item} is done.")).usage(31_000),
    }
}

/// A project with a plan of one item, and an agent that does them.
pub(crate) fn planned() -> (World, ScriptedModel) {
    let mut world = plimsoll_tests::world(&plan_of(1));
    let idle = world.home().join("idle");
    let model = plimsoll_tests::ScriptedAgent::new(move |turn| work(turn, idle.exists())).start(&mut world);
    add_users_programs(&mut world);
    // A run until 07:00 needs a moment until then.
    let is_close =
        chrono::Utc::now().format("%H").to_string().parse::<u32>().is_ok_and(|hour| (5..8).contains(&hour));
    world.set_env("TZ", if is_close { "UTC-9" } else { "UTC" });
    (world, model)
}

/// The same with a database and a remote, for a fleet.
pub(crate) fn with_database() -> (World, Postgres, ScriptedModel) {
    let (mut world, model) = planned();
    let server = Postgres::start(Setup::default());
    world.set_env(plimsoll_fleet::URL_VARIABLE, server.socket());
    world.write("PROMPT.md", "Do what fix_plan.md says.\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Task"]);
    world.git(&["init", "-q", "--bare", "../there.git"]);
    world.git(&["remote", "add", "origin", "../there.git"]);
    world.git(&["push", "-q", "origin", "main"]);
    (world, server, model)
}

/// Works as in the guide, except that the first session promises too early.
fn early_promise(turn: &Turn<'_>) -> Step {
    match (turn.iteration, turn.step) {
        (1, 0) => Step::text(format!("All done.\n\n{}", turn.promise)).usage(30_000),
        // Where the window fills, the client's writer needs the time that a real model takes.
        (3, _) => dates::agent(turn).delay(plimsoll_tests::LIFELIKE),
        _ => dates::agent(turn),
    }
}

/// A project that has been worked in: a run that ended, a later one with a refused promise and a checkpoint, and a session
/// whose turns are recorded.
pub(crate) fn worked_in() -> (World, (ScriptedModel, LinearServer)) {
    let mut world = dates::project();
    let model = plimsoll_tests::ScriptedAgent::new(early_promise).start(&mut world);
    add_users_programs(&mut world);
    earlier_run(&world);
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
    world.set_env("LINEAR_API_KEY", KEY);
    world.set_env("LINEAR_API_URL", linear.url());
    (world, (model, linear))
}

/// A run that ended before, with the id that the help names.
fn earlier_run(world: &World) {
    world.write("fix_plan.md", "- [x] Look at the dates\n");
    world.plimsoll(&["start", "--objective", "Look at the dates."]).run().expect_success();
    let mut state = world.json(".claude/ralph-state.json");
    let id = state["run_id"].as_str().expect("an id").to_owned();
    for file in [".claude/plimsoll/journal.jsonl", ".claude/ralph-state.json"] {
        let text = world.read(file).replace(&id, EARLIER_RUN);
        world.write(file, &text);
    }
    std::fs::remove_dir_all(world.runs().join(&id)).expect("the run's folder");
    state["run_id"] = json!(EARLIER_RUN);
    world.put_run(&state);
    world.plimsoll(&["run", "--resume", "--", "--allowedTools", "Bash"]).run().expect_success();
}

/// The transcript of the recorded session.
pub(crate) fn recorded_transcript(world: &World) -> std::path::PathBuf {
    world.home().join(format!(".claude/projects/recorded/{RECORDED}.jsonl"))
}

/// Twenty turns of a session of the last hour, with failures and a secret.
fn record_session(world: &World) {
    let turn = |number: u64| {
        let at = (chrono::Utc::now() - chrono::Duration::seconds(3_600 - 60 * number as i64))
            .to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        let command = match number {
            18 => format!("curl -H 'Authorization: token {}' http://127.0.0.1:9", secret()),
            _ => format!("make part-{number}"),
        };
        let (tool, input) = match number {
            16 => ("Read", json!({"file_path": world.path("src/report.rs")})),
            _ => ("Bash", json!({"command": command})),
        };
        let (failed, result) = if number == 18 { (true, "connection refused") } else { (false, "ok") };
        let common = json!({"sessionId": RECORDED, "isSidechain": false, "timestamp": at, "version": "2.1.329", "cwd": world.project()});
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
    let transcript = recorded_transcript(world);
    world.write(&transcript, &(1..=20).map(turn).collect::<String>());
    world.plimsoll(&["turns", "sync", &transcript.display().to_string()]).run().expect_success();
}
