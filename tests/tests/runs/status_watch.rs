//! `plimsoll status --watch` on a real terminal.

use plimsoll_testkit::bin_dir;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use serde_json::json;

const STATE: &str = ".claude/ralph-state.json";

fn world() -> World {
    let world = plimsoll_tests::world(plimsoll_tests::ITEMS);
    world.plimsoll(&["start", "--objective", "Do the plan.", "--name", "Dates"]).run().expect_success();
    world
}

/// A shell that shows what the program leaves behind: its exit code, and whether the terminal is as it was.
fn watched(world: &World, command: &str) -> Terminal {
    let line = format!(
        "before=$(stty -g); {command}; echo \"exit $?\"; test \"$before\" = \"$(stty -g)\" && echo as-before"
    );
    let path = format!("{}:/usr/bin:/bin", bin_dir().display());
    Terminal::start(world, "/usr/bin/env", &[&format!("PATH={path}"), "/bin/sh", "-c", &line], 80, 24)
}

#[test]
fn it_follows_the_run_to_its_end_and_stays_until_the_person_leaves() {
    let world = world();
    let mut terminal = watched(&world, "plimsoll status --watch");
    let screen = terminal.wait_for("Dates · session 1/50 · running");
    assert!(screen.contains("Item one") && screen.contains("run \"Dates\" started: 3 items"), "{screen}");
    let mut state = world.json(STATE);
    state["status"] = json!("completed");
    state["revision"] = json!(state["revision"].as_u64().unwrap_or_default() + 1);
    state["last_verdict"] = json!({"verdict": "stop", "status": "completed", "reason": "3 items"});
    world.put_run(&state);
    terminal.wait_for("Dates · session 1/50 · completed");
    terminal.type_text("?");
    terminal.wait_for("quit; the run continues");
    terminal.type_text("q");
    let screen = terminal.wait_for("as-before");
    assert!(screen.contains("exit 0") && !screen.contains("session 1/50"), "{screen}");
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let world = world();
    for (signal, code) in [("TERM", 143), ("HUP", 129)] {
        let command = format!("timeout --foreground --preserve-status -s {signal} 2 plimsoll status --watch");
        let terminal = watched(&world, &command);
        terminal.wait_for("session 1/50");
        let screen = terminal.wait_for("as-before");
        assert!(screen.contains(&format!("exit {code}")) && !screen.contains("session 1/50"), "{screen}");
    }
}

#[test]
fn it_ends_with_its_terminal() {
    let world = world();
    let path = format!("PATH={}:/usr/bin:/bin", bin_dir().display());
    let line = "echo $$ > pid; exec plimsoll status --watch";
    // A terminal in the terminal, which is gone when `script` is.
    let terminal =
        Terminal::start(&world, "/usr/bin/env", &[&path, "script", "-qec", line, "/dev/null"], 80, 24);
    terminal.wait_for("session 1/50");
    let pid = std::fs::read_to_string(world.path("pid")).unwrap();
    terminal.close();
    let process = format!("/proc/{}/stat", pid.trim());
    // Gone, or dead and not fetched yet.
    let is_over = || std::fs::read_to_string(&process).map_or(true, |stat| stat.contains(") Z "));
    world.wait_until(is_over, "the end of a program whose terminal is gone");
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    let finished = world().plimsoll(&["status", "--watch"]).run();
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""));
    insta::assert_snapshot!(finished.stderr, @"plimsoll: --watch needs a terminal: use `plimsoll status --json`, or `plimsoll log --follow`");
}
