//! What starts a program, lifts a bound or completes a run is what the user said, never what stands in a file of the
//! project: an agent or a clone may have written that. It may end a run sooner.

use plimsoll_testkit::client::claude;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::{Launch, World};
use plimsoll_tests::{ScriptedAgent, events, journal, resume, run, side_by_side, world};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

const STATE: &str = ".claude/ralph-state.json";
const COPY: &str = ".git/plimsoll/ralph-state.json";
const PLAN: &str = "# Plan\n\n- [ ] Item one\n- [ ] Item two\n";

/// A command by which an agent changes the state, and its copy, as it likes: a script that it wrote before.
fn forge(world: &World, filter: &str) -> String {
    let change =
        |file: &str| format!("jq '{filter}' {file} > $TMPDIR/forged && cat $TMPDIR/forged > {file}\n");
    let script = world.home().join("forge.sh");
    std::fs::write(&script, change(STATE) + &change(COPY)).expect("a script");
    format!("sh {}", script.display())
}

/// Sessions that forge and then talk.
fn forging(filter: &'static str) -> (World, ScriptedModel) {
    let mut world = world(PLAN);
    let forge = forge(&world, filter);
    let model = ScriptedAgent::new(move |turn| match turn.step {
        0 => Step::bash(&forge),
        _ => Step::text("Done for now."),
    })
    .at_real_pace()
    .start(&mut world);
    (world, model)
}

fn evil(world: &World) -> bool {
    world.home().join("evil").exists()
}

#[test]
fn a_forged_state_completes_nothing_and_starts_nothing() {
    let filters = [
        r#".status = "completed""#,
        ".known_items = [] | .verify = [] | .todo_items = [] | .completed_items = []",
        r#".verify = ["touch ~/evil"] | .notify = ["sh", "-c", "touch ~/evil"]"#,
        r#".client = "/bin/false" | .client_arguments = ["--evil"]"#,
        r#".nonce = "" | .completion_promise = "" | .strict_promise = false"#,
        r#".iteration = 0 | .max_iterations = 50 | .limits = {} | .cost_usd = 0 | .tokens = 0"#,
        r#".revision = 1000000 | .run_id = "another" | .session_id = "another""#,
    ];
    side_by_side(&filters, |filter| {
        let (world, _model) = forging(filter);
        let ended = run(&world, &["--max-iterations", "2", "--verify", "test -e never"]);
        assert_eq!(ended.code, Some(3), "{filter}: {ended:?}");
        assert!(ended.stdout.contains("── iteration 2"), "{filter}: {ended:?}");
        assert!(!evil(&world), "{filter}");
        let state = world.json(STATE);
        assert_eq!(state["status"], "max_iterations", "{filter}");
        assert_eq!(
            (&state["verify"], &state["iteration"]),
            (&json!(["test -e never"]), &json!(2)),
            "{filter}"
        );
        assert_eq!(state["known_items"], json!(["Item one", "Item two"]), "{filter}");
        // What was forged does not come back with the next command either.
        let again = resume(&world, &["--max-iterations", "3"]);
        assert_eq!((again.code, evil(&world)), (Some(3), false), "{filter}: {again:?}");
    });
}

#[test]
fn a_state_that_the_agent_cancels_or_bounds_ends_the_run_sooner() {
    for (filter, code) in
        [(".max_iterations = 1", 3), (r#".status = "cancelled""#, 9), (".limits.max_tokens = 1", 3)]
    {
        let (world, _model) = forging(filter);
        let ended = run(&world, &["--max-iterations", "4"]);
        assert_eq!(ended.code, Some(code), "{filter}: {ended:?}");
        assert!(!ended.stdout.contains("── iteration 2"), "{filter}: {ended:?}");
    }
}

#[test]
fn a_pid_that_the_agent_wrote_is_not_ended() {
    let mut world = world(PLAN);
    // A group of its own, as a client has.
    let mut stranger = Command::new("sleep").arg("120").process_group(0).spawn().expect("sleep");
    let pid = stranger.id();
    let started = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let started = started
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().nth(19))
        .expect("its start")
        .to_owned();
    let filter = format!(".iteration_record.pid = {pid} | .iteration_record.process_started = {started}");
    let forge = forge(&world, &filter);
    let _model = ScriptedAgent::new(move |turn| match turn.step {
        0 => Step::bash(format!("{forge}; touch forged; sleep 60")),
        _ => Step::text("Done."),
    })
    .start(&mut world);
    let mut running = world
        .plimsoll(&["run", "--objective", "Do the plan.", "--", "--model", "opus", "--allowedTools", "Bash"])
        .spawn();
    world.wait_until(|| world.exists("forged"), "the forgery");
    running.kill();
    world.plimsoll(&["stop"]).run();
    let lives = stranger.try_wait().expect("asked").is_none();
    stranger.kill().expect("ended");
    stranger.wait().expect("gone");
    world.end_leftovers();
    assert!(lives, "`plimsoll stop` ended a process that is nobody's client");
}

/// A run that has had its one session, and its state.
fn stopped() -> (World, ScriptedModel, Value) {
    let mut world = world(PLAN);
    let model = ScriptedAgent::new(|_| Step::text("Not yet.")).at_real_pace().start(&mut world);
    assert_eq!(run(&world, &["--max-iterations", "1", "--verify", "true"]).code, Some(3));
    let state = world.json(STATE);
    (world, model, state)
}

#[test]
fn what_a_clone_brings_is_not_resumed_and_its_programs_are_not_started() {
    let (_theirs, _model, mut state) = stopped();
    let mut world = world(PLAN);
    let _model = ScriptedAgent::new(|_| Step::text("Not yet.")).at_real_pace().start(&mut world);
    let script = world.home().join("evil.sh");
    std::fs::write(&script, "#!/bin/sh\ntouch ~/evil\n").expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).expect("may be run");
    let script = script.display().to_string();
    state["client"] = json!(script);
    state["notify"] = json!([script]);
    state["verify"] = json!([script]);
    state["status"] = json!("paused");
    for file in [STATE, COPY] {
        world.write(file, &state.to_string());
        for arguments in
            [&["run", "--resume", "--max-iterations", "5"][..], &["run", "--resume"], &["gate"], &["stop"]]
        {
            let refused = world.plimsoll(arguments).run();
            assert!(!evil(&world), "{file} {arguments:?}: {refused:?}");
            if arguments[0] == "run" {
                assert_eq!(refused.code, Some(1), "{file}: {refused:?}");
                assert!(refused.stderr.contains("there is no run"), "{file}: {refused:?}");
            }
        }
        std::fs::remove_file(world.path(file)).expect("it was there");
    }
}

#[test]
fn a_run_is_resumed_only_where_it_was_begun() {
    let (world, _model, state) = stopped();
    assert!(state["run_id"].is_string());
    // The folder of the records is lost, as in a container without its home.
    std::fs::rename(world.runs(), world.home().join("lost")).expect("moved");
    let refused = resume(&world, &["--max-iterations", "5"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("you started no such run in this folder"), "{refused:?}");
    let aside = refused.stderr.split_once("to begin a new run without it: ").expect("a command").1.trim();
    world.command("sh", &["-c", aside]).run().expect_success();
    world.plimsoll(&["start"]).run().expect_success();
    let new = world.json(STATE);
    assert_ne!(new["run_id"], state["run_id"]);
    assert_eq!((&new["iteration"], &new["verify"]), (&json!(1), &json!([])), "no command");
}

#[test]
fn the_record_says_whose_run_it_is_and_is_the_users_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (world, _model, state) = stopped();
    let folder = world.runs().join(state["run_id"].as_str().expect("an id"));
    let record: Value =
        serde_json::from_slice(&std::fs::read(folder.join("record.json")).expect("there")).expect("JSON");
    assert_eq!(record["project"], json!(world.project().canonicalize().expect("there")));
    assert!(record["command"].as_array().expect("words").iter().any(|word| word == "--verify"), "{record}");
    for name in ["record.json", "ledger.json"] {
        let mode = std::fs::metadata(folder.join(name)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

/// A command that begins a second run where the first one works, seen otherwise.
fn second(world: &World, script: &str) -> Launch {
    let run = "plimsoll run --resume; plimsoll run --objective 'Do the plan.' -- --model opus";
    world.command("sh", &["-c", &script.replace("RUN", run)])
}

#[test]
fn one_run_works_in_a_project_whatever_home_or_mount_it_is_seen_through() {
    let mut world = world(PLAN);
    let _model = ScriptedAgent::new(|_| Step::bash("touch at-work; timeout 100 tail -f /dev/null"))
        .at_real_pace()
        .start(&mut world);
    let client = ["--model", "opus", "--allowedTools", "Bash"];
    let arguments = [&["run", "--objective", "Do the plan.", "--"], &client[..]].concat();
    let mut running = world.plimsoll(&arguments).spawn();
    world.wait_until(|| world.exists("at-work"), "a client at work");
    let other = world.home().join("other");
    std::fs::create_dir_all(other.join("seen")).unwrap();
    symlink(world.project(), other.join("link")).unwrap();
    let (home, project) = (other.display(), world.project());
    let mut ways = vec![
        format!("HOME={home}; export HOME; RUN"),
        format!("XDG_STATE_HOME={home}/state; export XDG_STATE_HOME; RUN"),
        format!("cd {home}/link && HOME={home} && export HOME && RUN"),
    ];
    let mounted = format!("mount --bind {} {home}/seen && cd {home}/seen", project.display());
    let may_mount = world.command("unshare", &["-rm", "sh", "-c", &mounted]).run().code == Some(0);
    if may_mount {
        ways.push(format!("exec unshare -rm sh -c \"{mounted} && RUN\""));
    } else {
        eprintln!("no mount of its own can be made here: that way is not tried");
    }
    for way in ways {
        let refused = second(&world, &way).run();
        assert_ne!(refused.code, Some(0), "{way}: {refused:?}");
        let words = "another `plimsoll run` is active in this project";
        assert_eq!(refused.stderr.matches(words).count(), 2, "{way}: {refused:?}");
    }
    assert_eq!(events(&journal(&world), "spawned").len(), 1, "one client");
    running.terminate();
    assert_eq!(running.wait(Duration::from_secs(30)).code, Some(130));
}

#[test]
fn a_run_does_not_begin_where_its_sessions_may_write_its_records() {
    let words = "where a session's commands may write";
    let task = ["start", "--objective", "Do the plan."];
    let world = world(PLAN);
    let begun = |launch: Launch| {
        let refused = launch.run();
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains(words) && refused.stderr.contains("XDG_STATE_HOME"), "{refused:?}");
        assert!(!world.exists(STATE) && !world.exists("PROMPT.md"), "nothing is written: {refused:?}");
    };
    begun(world.plimsoll(&task).env("XDG_STATE_HOME", world.path("state").display().to_string()));
    let link = world.home().join("link");
    symlink(world.project(), &link).unwrap();
    begun(world.plimsoll(&task).env("XDG_STATE_HOME", link.join("state").display().to_string()));
    let client = claude().display().to_string();
    let added = [
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
    begun(world.plimsoll(&added));
    let settings = json!({"permissions": {"additionalDirectories": ["~/.local"]}});
    world.write(".claude/settings.json", &settings.to_string());
    begun(world.plimsoll(&task));
    world.write(".claude/settings.json", "{}");
    world.plimsoll(&task).run().expect_success();
}
