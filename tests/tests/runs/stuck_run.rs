//! A run that is held up: a fault at the end of the first session is waited out, and whatever holds the run up, a second
//! Ctrl-C and the deadline end its client.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::{Running, World};
use plimsoll_tests::{ITEMS, LIFELIKE, ScriptedAgent, events, honest, journal, world};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

const STATE: &str = ".claude/ralph-state.json";
const O_NONBLOCK: i32 = 0o4000;
const SOON: Duration = Duration::from_secs(30);
/// A tool that a person would wait for in vain.
const LONG: &str = "touch at-work; timeout 100 tail -f /dev/null";

fn client_pid(world: &World) -> Option<u64> {
    let text = std::fs::read_to_string(world.path(STATE)).ok()?;
    let state: serde_json::Value = serde_json::from_str(&text).ok()?;
    state["iteration_record"]["pid"].as_u64().filter(|pid| is_alive(*pid))
}

fn is_alive(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

fn begin(world: &World, more: &[&str]) -> Running {
    let client = ["--", "--model", "opus", "--allowedTools", "Bash"];
    let all = [&["run", "--objective", "Do the plan."], more, &client].concat();
    world.plimsoll(&all).spawn()
}

#[test]
fn a_fault_at_the_end_of_the_first_session_is_waited_out() {
    let mut world = world("# Plan\n\n- [ ] Item 1\n");
    let asked = world.path("told");
    let notify = world
        .write_program(world.home().join("notify.sh"), &format!("#!/bin/sh\ncat >> {}\n", asked.display()));
    // From what the gate of the first session said on, until the run has seen it.
    let hold = "setsid nohup timeout 60 sh -c 'until [ -e .git/held ]; do sleep 0.01; done
        flock .claude/ralph-state.json.lock sh -c \"until [ -e .git/go ]; do sleep 0.02; done\"' > /dev/null 2>&1 &";
    let _model = ScriptedAgent::new(move |turn| {
        match (turn.iteration, turn.step) {
            (1, 1) => Step::bash(hold),
            (1, 2) => Step::text("Done for now."),
            _ => honest(turn),
        }
        .delay(LIFELIKE)
    })
    .start(&mut world);
    let notify = notify.display().to_string();
    let running = begin(&world, &["--notify", &notify]);
    let journal_now =
        || std::fs::read_to_string(world.path(".claude/plimsoll/journal.jsonl")).unwrap_or_default();
    let is_judged = || journal_now().contains("provisional_verdict");
    world.wait_until(is_judged, "the gate's judgement");
    world.write(".git/held", "");
    world.wait_until(|| running.stdout_so_far().contains("trying again in 3 s"), "the fault");
    world.write(".git/go", "");
    let finished = running.wait(2 * SOON);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(world.json(STATE)["status"], "completed");
    assert_eq!(events(&journal(&world), "fault").len(), 1);
    let told = world.read("told");
    assert!(told.contains(r#""event":"ended""#) && !told.contains(r#""event":"paused""#), "{told}");
}

/// What keeps the run from its state.
fn spoil(world: &World, how: &str) {
    let state = world.path(STATE);
    std::fs::remove_file(&state).unwrap();
    let made = match how {
        "a pipe" => world.command("mkfifo", &[&state.display().to_string()]),
        "a folder" => world.command("mkdir", &[&state.display().to_string()]),
        _ => world.command("ln", &["-s", "/etc/hostname", &state.display().to_string()]),
    };
    made.run().expect_success();
}

#[test]
fn the_second_ctrl_c_ends_the_client_of_a_run_that_cannot_read_its_state() {
    for how in ["a pipe", "a folder", "a link that leads out"] {
        let mut world = world(ITEMS);
        let _model = ScriptedAgent::new(|_| Step::bash(LONG)).start(&mut world);
        let mut running = begin(&world, &[]);
        world.wait_until(|| world.exists("at-work"), "a client at work");
        let client = client_pid(&world).unwrap();
        spoil(&world, how);
        std::thread::sleep(Duration::from_secs(2));
        assert!(is_alive(client), "{how}: a session at work is no reason to leave");
        running.interrupt();
        std::thread::sleep(Duration::from_millis(500));
        assert!(is_alive(client), "{how}: after one the session may finish");
        running.interrupt();
        let finished = running.wait(SOON);
        assert_eq!(finished.code, Some(130), "{how}: {finished:?}");
        assert!(!is_alive(client), "{how}: the client works on; {finished:?}");
    }
}

/// What an agent may do to the folder with our files.
fn spoil_folder(world: &World, how: &str) {
    let folder = world.path(".claude");
    let moved = world.home().join("moved");
    std::fs::rename(&folder, &moved).unwrap();
    let name = folder.display().to_string();
    match how {
        "a file" => std::fs::write(&folder, "mine").unwrap(),
        "a pipe" => drop(world.command("mkfifo", &[&name]).run().expect_success()),
        "a link that leads out" => std::os::unix::fs::symlink(&moved, &folder).unwrap(),
        "nothing" => {}
        how => panic!("{how}"),
    }
}

const SPOILED: [&str; 4] = ["a file", "a pipe", "a link that leads out", "nothing"];

/// Runs a check for everything that may become of the folder, at the same time.
fn in_each_spoiled_folder(check: impl Fn(&str) + Sync) {
    std::thread::scope(|scope| {
        for how in SPOILED {
            scope.spawn(|| check(how));
        }
    });
}

#[test]
fn the_deadline_ends_a_run_whatever_becomes_of_its_folder() {
    in_each_spoiled_folder(|how| {
        let mut world = world(ITEMS);
        let _model = ScriptedAgent::new(|_| Step::bash(LONG)).start(&mut world);
        let running = begin(&world, &["--deadline", "15s"]);
        world.wait_until(|| world.exists("at-work"), "a client at work");
        let client = client_pid(&world).unwrap();
        spoil_folder(&world, how);
        let finished = running.wait(2 * SOON);
        assert_eq!(finished.code, Some(3), "{how}: {finished:?}");
        assert!(!is_alive(client), "{how}: the client works on; {finished:?}");
        assert!(finished.stdout.contains("RALPH_STOP|deadline|"), "{how}: {finished:?}");
    });
}

#[test]
fn signals_end_a_run_whatever_becomes_of_its_folder() {
    in_each_spoiled_folder(|how| {
        for is_terminated in [true, false] {
            let mut world = world(ITEMS);
            let _model = ScriptedAgent::new(|_| Step::bash(LONG)).start(&mut world);
            let mut running = begin(&world, &[]);
            world.wait_until(|| world.exists("at-work"), "a client at work");
            let client = client_pid(&world).unwrap();
            spoil_folder(&world, how);
            std::thread::sleep(Duration::from_secs(1));
            if is_terminated {
                running.terminate();
            } else {
                running.interrupt();
                std::thread::sleep(Duration::from_millis(200));
                running.interrupt();
            }
            let finished = running.wait(SOON);
            assert_eq!(finished.code, Some(130), "{how}: {finished:?}");
            assert!(!is_alive(client), "{how}: the client works on; {finished:?}");
        }
    });
}

/// Takes all the room that a pipe has, so that whoever writes next waits.
fn fill(pipe: &Path) -> std::fs::File {
    let open = std::fs::OpenOptions::new().read(true).write(true).custom_flags(O_NONBLOCK).open(pipe);
    let mut pipe = open.unwrap();
    for size in [4096, 1] {
        while pipe.write_all(&vec![b'.'; size]).is_ok() {}
    }
    pipe
}

#[test]
fn the_second_ctrl_c_ends_the_client_of_a_run_whose_output_nobody_reads() {
    for json in ["", "--json"] {
        let mut world = world(ITEMS);
        let pipe = world.home().join("pipe");
        world.command("mkfifo", &[&pipe.display().to_string()]).run().expect_success();
        let _reader = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        let _model = ScriptedAgent::new(|_| Step::bash(LONG)).start(&mut world);
        let script = format!(
            "exec plimsoll run --objective 'Do the plan.' {json} -- --model opus --allowedTools Bash > {}",
            pipe.display()
        );
        let mut running = world.command("sh", &["-c", &script]).spawn();
        world.wait_until(|| world.exists("at-work"), "a client at work");
        let client = client_pid(&world).unwrap();
        let _full = fill(&pipe);
        running.interrupt();
        // Now the run tells that it will stop after this session, and waits for a reader.
        std::thread::sleep(Duration::from_secs(2));
        assert!(is_alive(client), "{json}: after one the session may finish");
        running.interrupt();
        world.wait_until(|| !is_alive(client), "the end of the client");
        running.kill();
    }
}

#[test]
fn what_a_session_leaves_at_work_is_named_and_not_ended() {
    let mut world = world("# Plan\n\n- [ ] Item one\n");
    let _model = ScriptedAgent::new(|turn| match turn.step {
        1 => Step::bash("setsid nohup timeout 61 tail -f /dev/null > /dev/null 2>&1 & echo $! > job"),
        _ => honest(turn),
    })
    .start(&mut world);
    let finished = begin(&world, &[]).wait(2 * SOON);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let journal = journal(&world);
    let left = events(&journal, "left_behind");
    let named = left.first().map(|entry| entry["processes"].to_string()).unwrap_or_default();
    assert!(named.contains("tail -f /dev/null"), "{journal:?}");
    let pid = named.trim_start_matches(['[', '"']).split(' ').next().and_then(|pid| pid.parse().ok());
    assert!(pid.is_some_and(is_alive), "it may be a job whose result is wanted: {named}");
    let log = world.plimsoll(&["log"]).run().expect_success().stdout;
    assert!(log.contains("the session left processes running"), "{log}");
    world.end_leftovers();
}

#[test]
fn a_file_that_may_not_grow_is_an_error_and_no_end_by_a_signal() {
    let world = world(ITEMS);
    let script = "ulimit -f 1; exec plimsoll start --objective 'Do the plan.'";
    let finished = world.command("sh", &["-c", script]).run();
    assert_eq!((finished.code, finished.signal), (Some(1), None), "{finished:?}");
    insta::assert_snapshot!(world.stable_text(&finished.stderr), @"plimsoll: cannot write [HOME]/.local/state/plimsoll/runs/[ID]/ledger.json: File too large (os error 27)");
}

#[test]
fn a_folder_that_the_client_cannot_be_told_is_refused_before_anything_is_written() {
    use std::os::unix::ffi::OsStringExt;
    let world = world(ITEMS);
    let folder = world.home().join(std::ffi::OsString::from_vec(b"no\xff".to_vec()));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("fix_plan.md"), "- [ ] Item one\n").unwrap();
    let client = plimsoll_testkit::client::claude().display().to_string();
    let task = ["--objective", "Do the plan."];
    for arguments in [[&["run", "--client", &client], &task[..]].concat(), [&["start"], &task[..]].concat()] {
        let finished = world.plimsoll(&arguments).cwd(&folder).run();
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(finished.stderr.contains("is not valid UTF-8"), "{finished:?}");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "{arguments:?}");
    }
}

#[test]
fn a_relative_home_is_none() {
    let world = world(ITEMS);
    let finished = world.plimsoll(&["start", "--objective", "Do the plan."]).env("HOME", "home").run();
    assert_eq!(finished.code, Some(1), "{finished:?}");
    insta::assert_snapshot!(world.stable_text(&finished.stderr), @"plimsoll: there is no folder for session records of [PROJECT]: neither HOME nor XDG_STATE_HOME is set to an absolute path");
    assert!(!world.exists("home"), "nothing was made in the project");
}
