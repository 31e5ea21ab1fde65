//! A run that is stuck: a fault at the end of the first session is retried, and a second Ctrl-C or the deadline ends
//! the client whatever holds the run up.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::{RunningProgram, World};
use plimsoll_tests::{
    LIFELIKE_DELAY, ScriptedAgent, THREE_ITEM_PLAN, events_named, honest_agent, read_journal,
    world_with_plan_and_dates,
};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

const STATE_PATH: &str = ".claude/ralph-state.json";
const O_NONBLOCK: i32 = 0o4000;
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);
/// A command that does not end while a test waits for it.
const LONG_COMMAND: &str = "touch at-work; timeout 100 tail -f /dev/null";

fn client_pid(world: &World) -> Option<u64> {
    let text = std::fs::read_to_string(world.path(STATE_PATH)).ok()?;
    let state: serde_json::Value = serde_json::from_str(&text).ok()?;
    state["iteration_record"]["pid"].as_u64().filter(|pid| is_alive(*pid))
}

fn is_alive(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

fn start_run(world: &World, options: &[&str]) -> RunningProgram {
    let client = ["--", "--model", "opus", "--allowedTools", "Bash"];
    let arguments = [&["run", "--objective", "Do the plan."], options, &client].concat();
    world.plimsoll(&arguments).spawn()
}

#[test]
fn a_locked_state_file_at_the_end_of_a_session_is_retried() {
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item 1\n");
    let notify_log = world.path("told");
    let notify = world.write_program(
        world.home().join("notify.sh"),
        &format!("#!/bin/sh\ncat >> {}\n", notify_log.display()),
    );
    // Holds the lock of the state from the gate's verdict on the first session until the run has met it.
    let hold_lock_command = "setsid nohup timeout 60 sh -c 'until [ -e .git/held ]; do sleep 0.01; done
        flock .claude/ralph-state.json.lock sh -c \"until [ -e .git/go ]; do sleep 0.02; done\"' > /dev/null 2>&1 &";
    let _model = ScriptedAgent::new(move |turn| {
        match (turn.iteration, turn.assistant_message_count) {
            (1, 1) => Step::bash_call(hold_lock_command),
            (1, 2) => Step::from_text("Done for now."),
            _ => honest_agent(turn),
        }
        .with_delay(LIFELIKE_DELAY)
    })
    .start(&mut world);
    let notify = notify.display().to_string();
    let running = start_run(&world, &["--notify", &notify]);
    let journal_text =
        || std::fs::read_to_string(world.path(".claude/plimsoll/journal.jsonl")).unwrap_or_default();
    let is_judged = || journal_text().contains("provisional_verdict");
    world.wait_until(is_judged, "the gate's judgement");
    world.write(".git/held", "");
    world.wait_until(|| running.stdout_so_far().contains("trying again in 3 s"), "the fault");
    world.write(".git/go", "");
    let finished = running.wait_or_kill_and_panic(2 * WAIT_TIMEOUT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(world.read_json(STATE_PATH)["status"], "completed");
    assert_eq!(events_named(&read_journal(&world), "fault").len(), 1);
    let notifications = world.read("told");
    assert!(
        notifications.contains(r#""event":"ended""#) && !notifications.contains(r#""event":"paused""#),
        "{notifications}"
    );
}

/// Replaces the state file by something that the run cannot read.
fn replace_state_file(world: &World, replacement: &str) {
    let state = world.path(STATE_PATH);
    std::fs::remove_file(&state).unwrap();
    let command = match replacement {
        "a pipe" => world.command("mkfifo", &[&state.display().to_string()]),
        "a folder" => world.command("mkdir", &[&state.display().to_string()]),
        _ => world.command("ln", &["-s", "/etc/hostname", &state.display().to_string()]),
    };
    command.run().expect_success();
}

#[test]
fn the_second_ctrl_c_ends_the_client_of_a_run_that_cannot_read_its_state() {
    for replacement in ["a pipe", "a folder", "a link that leads out"] {
        let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
        let _model = ScriptedAgent::new(|_| Step::bash_call(LONG_COMMAND)).start(&mut world);
        let mut running = start_run(&world, &[]);
        world.wait_until(|| world.exists("at-work"), "a client at work");
        let client = client_pid(&world).unwrap();
        replace_state_file(&world, replacement);
        std::thread::sleep(Duration::from_secs(2));
        assert!(is_alive(client), "{replacement}: a session at work is no reason to leave");
        running.interrupt();
        std::thread::sleep(Duration::from_millis(500));
        assert!(is_alive(client), "{replacement}: after one the session may finish");
        running.interrupt();
        let finished = running.wait_or_kill_and_panic(WAIT_TIMEOUT);
        assert_eq!(finished.code, Some(130), "{replacement}: {finished:?}");
        assert!(!is_alive(client), "{replacement}: the client works on; {finished:?}");
    }
}

/// Replaces the folder with our files, as an agent may do.
fn replace_claude_folder(world: &World, replacement: &str) {
    let folder = world.path(".claude");
    let moved = world.home().join("moved");
    std::fs::rename(&folder, &moved).unwrap();
    let name = folder.display().to_string();
    match replacement {
        "a file" => std::fs::write(&folder, "mine").unwrap(),
        "a pipe" => drop(world.command("mkfifo", &[&name]).run().expect_success()),
        "a link that leads out" => std::os::unix::fs::symlink(&moved, &folder).unwrap(),
        "nothing" => {}
        how => panic!("{how}"),
    }
}

const FOLDER_REPLACEMENTS: [&str; 4] = ["a file", "a pipe", "a link that leads out", "nothing"];

/// Runs the check for each replacement of the folder, all at the same time.
fn run_for_each_folder_replacement(check: impl Fn(&str) + Sync) {
    std::thread::scope(|scope| {
        for replacement in FOLDER_REPLACEMENTS {
            scope.spawn(|| check(replacement));
        }
    });
}

#[test]
fn the_deadline_ends_a_run_whose_folder_was_replaced() {
    run_for_each_folder_replacement(|replacement| {
        let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
        let _model = ScriptedAgent::new(|_| Step::bash_call(LONG_COMMAND)).start(&mut world);
        let running = start_run(&world, &["--deadline", "15s"]);
        world.wait_until(|| world.exists("at-work"), "a client at work");
        let client = client_pid(&world).unwrap();
        replace_claude_folder(&world, replacement);
        let finished = running.wait_or_kill_and_panic(2 * WAIT_TIMEOUT);
        assert_eq!(finished.code, Some(3), "{replacement}: {finished:?}");
        assert!(!is_alive(client), "{replacement}: the client works on; {finished:?}");
        assert!(finished.stdout.contains("RALPH_STOP|deadline|"), "{replacement}: {finished:?}");
    });
}

#[test]
fn signals_end_a_run_whose_folder_was_replaced() {
    run_for_each_folder_replacement(|replacement| {
        for is_terminated in [true, false] {
            let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
            let _model = ScriptedAgent::new(|_| Step::bash_call(LONG_COMMAND)).start(&mut world);
            let mut running = start_run(&world, &[]);
            world.wait_until(|| world.exists("at-work"), "a client at work");
            let client = client_pid(&world).unwrap();
            replace_claude_folder(&world, replacement);
            std::thread::sleep(Duration::from_secs(1));
            if is_terminated {
                running.terminate();
            } else {
                running.interrupt();
                std::thread::sleep(Duration::from_millis(200));
                running.interrupt();
            }
            let finished = running.wait_or_kill_and_panic(WAIT_TIMEOUT);
            assert_eq!(finished.code, Some(130), "{replacement}: {finished:?}");
            assert!(!is_alive(client), "{replacement}: the client works on; {finished:?}");
        }
    });
}

/// Fills the pipe, so that the next writer waits.
fn fill_pipe(pipe: &Path) -> std::fs::File {
    let open = std::fs::OpenOptions::new().read(true).write(true).custom_flags(O_NONBLOCK).open(pipe);
    let mut pipe = open.unwrap();
    for size in [4096, 1] {
        while pipe.write_all(&vec![b'.'; size]).is_ok() {}
    }
    pipe
}

#[test]
fn the_second_ctrl_c_ends_the_client_of_a_run_whose_output_nobody_reads() {
    for json_option in ["", "--json"] {
        let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
        let pipe = world.home().join("pipe");
        world.command("mkfifo", &[&pipe.display().to_string()]).run().expect_success();
        let _reader = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        let _model = ScriptedAgent::new(|_| Step::bash_call(LONG_COMMAND)).start(&mut world);
        let script = format!(
            "exec plimsoll run --objective 'Do the plan.' {json_option} -- --model opus --allowedTools Bash > {}",
            pipe.display()
        );
        let mut running = world.command("sh", &["-c", &script]).spawn();
        world.wait_until(|| world.exists("at-work"), "a client at work");
        let client = client_pid(&world).unwrap();
        let _full = fill_pipe(&pipe);
        running.interrupt();
        // Now the run reports that it will stop after this session, and waits for a reader.
        std::thread::sleep(Duration::from_secs(2));
        assert!(is_alive(client), "{json_option}: after one the session may finish");
        running.interrupt();
        world.wait_until(|| !is_alive(client), "the end of the client");
        running.kill();
    }
}

#[test]
fn processes_left_by_a_session_are_reported_and_not_killed() {
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item one\n");
    let _model = ScriptedAgent::new(|turn| match turn.assistant_message_count {
        // A copy: macOS does not show the environment of its own programs.
        1 => Step::bash_call(
            "cp \"$(command -v tail)\" ~/tail; setsid nohup timeout 61 ~/tail -f /dev/null > /dev/null 2>&1 & echo $! > job",
        ),
        _ => honest_agent(turn),
    })
    .start(&mut world);
    let finished = start_run(&world, &[]).wait_or_kill_and_panic(2 * WAIT_TIMEOUT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let journal = read_journal(&world);
    let left = events_named(&journal, "left_behind");
    let processes = left.first().map(|entry| entry["processes"].to_string()).unwrap_or_default();
    assert!(processes.contains("tail -f /dev/null"), "{journal:?}");
    let pid = processes.trim_start_matches(['[', '"']).split(' ').next().and_then(|pid| pid.parse().ok());
    assert!(pid.is_some_and(is_alive), "it may be a job whose result is wanted: {processes}");
    let log = world.plimsoll(&["log"]).run().expect_success().stdout;
    assert!(log.contains("the session left processes running"), "{log}");
    world.kill_leftovers();
}

#[test]
fn a_file_size_limit_is_an_error_and_not_a_fatal_signal() {
    let world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let script = "ulimit -f 1; exec plimsoll start --objective 'Do the plan.'";
    let finished = world.command("sh", &["-c", script]).run();
    assert_eq!((finished.code, finished.signal), (Some(1), None), "{finished:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stderr), @"error: cannot write [HOME]/.local/state/plimsoll/runs/[ID]/ledger.json: File too large (os error 27)");
}

#[test]
fn a_folder_that_is_not_utf8_is_refused_before_anything_is_written() {
    use std::os::unix::ffi::OsStringExt;
    let world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let folder = world.home().join(std::ffi::OsString::from_vec(b"no\xff".to_vec()));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("fix_plan.md"), "- [ ] Item one\n").unwrap();
    let client = plimsoll_testkit::client::find_claude_from_env_or_install_pinned().display().to_string();
    let objective = ["--objective", "Do the plan."];
    for arguments in
        [[&["run", "--client", &client], &objective[..]].concat(), [&["start"], &objective[..]].concat()]
    {
        let finished = world.plimsoll(&arguments).cwd(&folder).run();
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(finished.stderr.contains("is not valid UTF-8"), "{finished:?}");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "{arguments:?}");
    }
}

#[test]
fn a_relative_home_is_ignored() {
    let world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let finished = world.plimsoll(&["start", "--objective", "Do the plan."]).env("HOME", "home").run();
    assert_eq!(finished.code, Some(1), "{finished:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stderr), @"error: there is no folder for session records of [PROJECT]: neither HOME nor XDG_STATE_HOME is set to an absolute path");
    assert!(!world.exists("home"), "nothing was made in the project");
}

/// Returns once a run that was started by `launcher` has completed although its terminal was closed in between.
fn assert_run_survives_hangup(launcher: &[&str]) {
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item one\n");
    let model =
        ScriptedAgent::new(|turn| honest_agent(turn).with_delay(Duration::from_secs(1))).start(&mut world);
    let run =
        ["plimsoll", "run", "--objective", "Do the plan.", "--", "--model", "opus", "--allowedTools", "Bash"];
    let command = [launcher, &run].concat();
    let mut running = world.command(command[0], &command[1..]).spawn();
    world.wait_until(|| !model.main_requests().is_empty(), "the first request");
    running.hang_up();
    let finished = running.wait_or_kill_and_panic(WAIT_TIMEOUT);
    assert_eq!(finished.code, Some(0), "{launcher:?}: {finished:?}");
}

#[test]
fn a_run_under_nohup_survives_the_end_of_its_terminal() {
    assert_run_survives_hangup(&["nohup"]);
    // Without /proc the ignored signals are unknown, as on macOS.
    let hide_proc = "mount -t tmpfs none /proc && exec nohup \"$@\"";
    assert_run_survives_hangup(&[
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        hide_proc,
        "sh",
    ]);
}
