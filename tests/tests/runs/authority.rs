//! Only the user's own words start a program, lift a limit or complete a run, never a file of the project: an agent
//! or a clone may have written that. Such a file may only end a run sooner.

use plimsoll_testkit::client::find_claude_from_env_or_install_pinned;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::{Launch, World};
use plimsoll_tests::{
    ScriptedAgent, events_named, read_journal, resume_run, run_cases_in_parallel, run_with_objective,
    world_with_plan_and_dates,
};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

const STATE_FILE: &str = ".claude/ralph-state.json";
const STATE_COPY: &str = ".git/plimsoll/ralph-state.json";
const TWO_ITEM_PLAN: &str = "# Plan\n\n- [ ] Item one\n- [ ] Item two\n";

/// Writes a script with which an agent changes the state and its copy by this jq filter. Returns the command that
/// runs it.
fn write_forge_script(world: &World, filter: &str) -> String {
    let edit_line =
        |file: &str| format!("jq '{filter}' {file} > $TMPDIR/forged && cat $TMPDIR/forged > {file}\n");
    let script = world.home().join("forge.sh");
    std::fs::write(&script, edit_line(STATE_FILE) + &edit_line(STATE_COPY)).expect("a script");
    format!("sh {}", script.display())
}

/// A world whose sessions forge the state and then only talk.
fn world_with_forging_agent(filter: &'static str) -> (World, ScriptedModel) {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let forge_command = write_forge_script(&world, filter);
    let model = ScriptedAgent::new(move |turn| match turn.assistant_message_count {
        0 => Step::bash_call(&forge_command),
        _ => Step::from_text("Done for now."),
    })
    .with_lifelike_delay()
    .start(&mut world);
    (world, model)
}

fn was_evil_program_run(world: &World) -> bool {
    world.home().join("evil").exists()
}

#[test]
fn a_forged_state_neither_completes_the_run_nor_starts_programs() {
    let filters = [
        r#".status = "completed""#,
        ".known_items = [] | .verify = [] | .todo_items = [] | .completed_items = []",
        r#".verify = ["touch ~/evil"] | .notify = ["sh", "-c", "touch ~/evil"]"#,
        r#".client = "/bin/false" | .client_arguments = ["--evil"]"#,
        r#".nonce = "" | .completion_promise = "" | .strict_promise = false"#,
        r#".iteration = 0 | .max_iterations = 50 | .limits = {} | .cost_usd = 0 | .tokens = 0"#,
        r#".revision = 1000000 | .run_id = "another" | .session_id = "another""#,
    ];
    run_cases_in_parallel(&filters, |filter| {
        let (world, _model) = world_with_forging_agent(filter);
        let finished = run_with_objective(&world, &["--max-iterations", "2", "--verify", "test -e never"]);
        assert_eq!(finished.code, Some(3), "{filter}: {finished:?}");
        assert!(finished.stdout.contains("── session 2"), "{filter}: {finished:?}");
        assert!(!was_evil_program_run(&world), "{filter}");
        let state = world.read_json(STATE_FILE);
        assert_eq!(state["status"], "max_iterations", "{filter}");
        assert_eq!(
            (&state["verify"], &state["iteration"]),
            (&json!(["test -e never"]), &json!(2)),
            "{filter}"
        );
        assert_eq!(state["known_items"], json!(["Item one", "Item two"]), "{filter}");
        // The next command does not take up what was forged either.
        let resumed = resume_run(&world, &["--max-iterations", "3"]);
        assert_eq!((resumed.code, was_evil_program_run(&world)), (Some(3), false), "{filter}: {resumed:?}");
    });
}

#[test]
fn a_state_that_the_agent_cancels_or_limits_ends_the_run_sooner() {
    for (filter, code) in
        [(".max_iterations = 1", 3), (r#".status = "cancelled""#, 9), (".limits.max_tokens = 1", 3)]
    {
        let (world, _model) = world_with_forging_agent(filter);
        let finished = run_with_objective(&world, &["--max-iterations", "4"]);
        assert_eq!(finished.code, Some(code), "{filter}: {finished:?}");
        assert!(!finished.stdout.contains("── session 2"), "{filter}: {finished:?}");
    }
}

#[test]
fn stop_does_not_end_a_process_whose_pid_the_agent_forged() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    // A process group of its own, like a client's.
    let mut unrelated_process = Command::new("sleep").arg("120").process_group(0).spawn().expect("sleep");
    let pid = unrelated_process.id();
    let process_stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let process_started = process_stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().nth(19))
        .expect("its start")
        .to_owned();
    let filter =
        format!(".iteration_record.pid = {pid} | .iteration_record.process_started = {process_started}");
    let forge_command = write_forge_script(&world, &filter);
    let _model = ScriptedAgent::new(move |turn| match turn.assistant_message_count {
        0 => Step::bash_call(format!("{forge_command}; touch forged; sleep 60")),
        _ => Step::from_text("Done."),
    })
    .start(&mut world);
    let mut running = world
        .plimsoll(&["run", "--objective", "Do the plan.", "--", "--model", "opus", "--allowedTools", "Bash"])
        .spawn();
    world.wait_until(|| world.exists("forged"), "the forgery");
    running.kill();
    world.plimsoll(&["stop"]).run();
    let is_alive = unrelated_process.try_wait().expect("asked").is_none();
    unrelated_process.kill().expect("ended");
    unrelated_process.wait().expect("gone");
    world.kill_leftovers();
    assert!(is_alive, "`plimsoll stop` ended a process that is nobody's client");
}

/// A run that stopped after its only session, and its state.
fn run_stopped_after_one_session() -> (World, ScriptedModel, Value) {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let model = ScriptedAgent::new(|_| Step::from_text("Not yet.")).with_lifelike_delay().start(&mut world);
    assert_eq!(run_with_objective(&world, &["--max-iterations", "1", "--verify", "true"]).code, Some(3));
    let state = world.read_json(STATE_FILE);
    (world, model, state)
}

#[test]
fn a_run_state_from_a_clone_is_not_resumed_and_starts_no_program() {
    let (_source_world, _model, mut state) = run_stopped_after_one_session();
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let _model = ScriptedAgent::new(|_| Step::from_text("Not yet.")).with_lifelike_delay().start(&mut world);
    let script = world.home().join("evil.sh");
    std::fs::write(&script, "#!/bin/sh\ntouch ~/evil\n").expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).expect("may be run");
    let script = script.display().to_string();
    state["client"] = json!(script);
    state["notify"] = json!([script]);
    state["verify"] = json!([script]);
    state["status"] = json!("paused");
    for file in [STATE_FILE, STATE_COPY] {
        world.write(file, &state.to_string());
        for arguments in
            [&["run", "--resume", "--max-iterations", "5"][..], &["run", "--resume"], &["gate"], &["stop"]]
        {
            let refused = world.plimsoll(arguments).run();
            assert!(!was_evil_program_run(&world), "{file} {arguments:?}: {refused:?}");
            if arguments[0] == "run" {
                assert_eq!(refused.code, Some(1), "{file}: {refused:?}");
                assert!(refused.stderr.contains("there is no run"), "{file}: {refused:?}");
            }
        }
        std::fs::remove_file(world.path(file)).expect("it was there");
    }
}

#[test]
fn a_run_whose_private_records_are_lost_cannot_be_resumed() {
    let (world, _model, state) = run_stopped_after_one_session();
    assert!(state["run_id"].is_string());
    // The folder of the records is lost, as in a container without its home folder.
    std::fs::rename(world.runs_folder(), world.home().join("lost")).expect("moved");
    let refused = resume_run(&world, &["--max-iterations", "5"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.stderr.contains("your state folder has no record of such a run in this folder"),
        "{refused:?}"
    );
    let set_aside_command =
        refused.stderr.split_once("to start a new run without it: ").expect("a command").1.trim();
    world.command("sh", &["-c", set_aside_command]).run().expect_success();
    world.plimsoll(&["start"]).run().expect_success();
    let new_state = world.read_json(STATE_FILE);
    assert_ne!(new_state["run_id"], state["run_id"]);
    assert_eq!((&new_state["iteration"], &new_state["verify"]), (&json!(1), &json!([])), "no command");
}

#[test]
fn the_run_record_names_its_project_and_only_its_user_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let (world, _model, state) = run_stopped_after_one_session();
    let folder = world.runs_folder().join(state["run_id"].as_str().expect("an id"));
    let record: Value =
        serde_json::from_slice(&std::fs::read(folder.join("record.json")).expect("there")).expect("JSON");
    assert_eq!(record["project"], json!(world.project().canonicalize().expect("there")));
    assert!(record["command"].as_array().expect("words").iter().any(|word| word == "--verify"), "{record}");
    for name in ["record.json", "ledger.json"] {
        let mode = std::fs::metadata(folder.join(name)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

/// A command that tries to start a second run in a project where the first one works: `RUN` in the script is
/// replaced.
fn second_run_command(world: &World, script: &str) -> Launch {
    let run_commands = "plimsoll run --resume; plimsoll run --objective 'Do the plan.' -- --model opus";
    world.command("sh", &["-c", &script.replace("RUN", run_commands)])
}

#[test]
fn a_project_has_one_active_run_through_any_home_link_or_mount() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let _model = ScriptedAgent::new(|_| Step::bash_call("touch at-work; timeout 100 tail -f /dev/null"))
        .with_lifelike_delay()
        .start(&mut world);
    let client = ["--model", "opus", "--allowedTools", "Bash"];
    let arguments = [&["run", "--objective", "Do the plan.", "--"], &client[..]].concat();
    let mut running = world.plimsoll(&arguments).spawn();
    world.wait_until(|| world.exists("at-work"), "a client at work");
    let other_home = world.home().join("other");
    std::fs::create_dir_all(other_home.join("seen")).unwrap();
    symlink(world.project(), other_home.join("link")).unwrap();
    let (home, project) = (other_home.display(), world.project());
    let mut scripts = vec![
        format!("HOME={home}; export HOME; RUN"),
        format!("XDG_STATE_HOME={home}/state; export XDG_STATE_HOME; RUN"),
        format!("cd {home}/link && HOME={home} && export HOME && RUN"),
    ];
    let mount_command = format!("mount --bind {} {home}/seen && cd {home}/seen", project.display());
    let may_mount = world.command("unshare", &["-rm", "sh", "-c", &mount_command]).run().code == Some(0);
    if may_mount {
        scripts.push(format!("exec unshare -rm sh -c \"{mount_command} && RUN\""));
    } else {
        eprintln!("no mount of its own can be made here: that way is not tried");
    }
    for script in scripts {
        let refused = second_run_command(&world, &script).run();
        assert_ne!(refused.code, Some(0), "{script}: {refused:?}");
        let message = "another `plimsoll run` is active in this project";
        assert_eq!(refused.stderr.matches(message).count(), 2, "{script}: {refused:?}");
    }
    assert_eq!(events_named(&read_journal(&world), "spawned").len(), 1, "one client");
    running.terminate();
    assert_eq!(running.wait_or_kill_and_panic(Duration::from_secs(30)).code, Some(130));
}

#[test]
fn a_run_does_not_start_if_its_sessions_could_write_its_records() {
    let message = "where a session's commands may write";
    let start_arguments = ["start", "--objective", "Do the plan."];
    let world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let assert_refused = |launch: Launch| {
        let refused = launch.run();
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains(message) && refused.stderr.contains("XDG_STATE_HOME"), "{refused:?}");
        assert!(!world.exists(STATE_FILE) && !world.exists("PROMPT.md"), "nothing is written: {refused:?}");
    };
    assert_refused(
        world.plimsoll(&start_arguments).env("XDG_STATE_HOME", world.path("state").display().to_string()),
    );
    let link = world.home().join("link");
    symlink(world.project(), &link).unwrap();
    assert_refused(
        world.plimsoll(&start_arguments).env("XDG_STATE_HOME", link.join("state").display().to_string()),
    );
    let client = find_claude_from_env_or_install_pinned().display().to_string();
    let run_arguments = [
        "run",
        "--client",
        &client,
        "--objective",
        "Do it.",
        "--",
        "--model",
        "opus",
        "--add-dir",
        "../home",
    ];
    assert_refused(world.plimsoll(&run_arguments));
    let settings = json!({"permissions": {"additionalDirectories": ["~/.local"]}});
    world.write(".claude/settings.json", &settings.to_string());
    assert_refused(world.plimsoll(&start_arguments));
    world.write(".claude/settings.json", "{}");
    world.plimsoll(&start_arguments).run().expect_success();
}
