//! `plimsoll status --watch` on a real terminal.

use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use plimsoll_tests::{ScriptedAgent, THREE_ITEM_PLAN, honest_agent, world_with_plan_and_dates};
use serde_json::json;
use std::time::Duration;

const STATE_PATH: &str = ".claude/ralph-state.json";

fn world_with_run() -> World {
    let world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    world.plimsoll(&["start", "--objective", "Do the plan.", "--name", "Dates"]).run().expect_success();
    world
}

/// Starts a shell in a terminal that runs this command and prints its exit code and whether the terminal settings are
/// as before.
fn run_in_terminal(world: &World, command: &str) -> Terminal {
    let shell_line = format!(
        "before=$(stty -g); {command}; echo \"exit $?\"; test \"$before\" = \"$(stty -g)\" && echo as-before"
    );
    let path = format!("{}:/usr/bin:/bin", find_or_build_bin_dir().display());
    Terminal::start_program_in_project(
        world,
        "/usr/bin/env",
        &[&format!("PATH={path}"), "/bin/sh", "-c", &shell_line],
        80,
        24,
    )
}

#[test]
fn watch_follows_the_run_to_its_end_and_stays_until_the_user_quits() {
    let world = world_with_run();
    let mut terminal = run_in_terminal(&world, "plimsoll status --watch");
    let screen = terminal.wait_for_text("Dates · session 1 · running");
    assert!(screen.contains("Item one") && screen.contains("run \"Dates\" started: 3 items"), "{screen}");
    let mut state = world.read_json(STATE_PATH);
    state["status"] = json!("completed");
    state["revision"] = json!(state["revision"].as_u64().unwrap_or_default() + 1);
    state["last_verdict"] = json!({"verdict": "stop", "status": "completed", "reason": "3 items"});
    world.write_run_state_record_and_ledger(&state);
    terminal.wait_for_text("Dates · session 1 · completed");
    terminal.type_text("?");
    terminal.wait_for_text("quit; the run continues");
    terminal.type_text("q");
    let screen = terminal.wait_for_text("as-before");
    assert!(screen.contains("exit 0") && !screen.contains("session 1 ·"), "{screen}");
}

/// A program in the project can change the path of the transcript in the session's record.
#[test]
fn watch_shows_the_last_text_of_the_session_and_of_no_other_file() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let _model = ScriptedAgent::new(|turn| match turn.assistant_message_count {
        0 => Step::bash_call("sleep 8").with_text("READING-THE-TABLE"),
        _ => honest_agent(turn),
    })
    .with_real_client()
    .start(&mut world);
    let run_arguments =
        ["run", "--objective", "Do the plan.", "--max-iterations", "1", "--", "--allowedTools", "Bash"];
    let running_run = world.plimsoll(&run_arguments).spawn();
    world.wait_until(
        || world.exists(STATE_PATH) && world.read_json(STATE_PATH)["session_id"].is_string(),
        "a session",
    );
    let session_id = world.read_json(STATE_PATH)["session_id"].as_str().expect("an id").to_owned();
    let record_path = format!(".claude/plimsoll/sessions/{session_id}.json");
    world.wait_until(|| world.exists(&record_path), "the record of the session");
    let entry = json!({"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "FORGED"}]}});
    world.write("forged.jsonl", &format!("{entry}\n"));
    let mut record = world.read_json(&record_path);
    record["transcript_path"] = json!(world.path("forged.jsonl"));
    world.write(&record_path, &record.to_string());
    let terminal = run_in_terminal(&world, "plimsoll status --watch");
    let screen = terminal.wait_for_text("READING-THE-TABLE");
    assert!(!screen.contains("FORGED"), "{screen}");
    terminal.close();
    running_run.wait_or_kill_and_panic(Duration::from_secs(60));
}

#[test]
fn a_signal_ends_watch_and_restores_the_terminal() {
    let world = world_with_run();
    for (signal, code) in [("TERM", 143), ("HUP", 129)] {
        let command = format!("timeout --foreground --preserve-status -s {signal} 2 plimsoll status --watch");
        let terminal = run_in_terminal(&world, &command);
        terminal.wait_for_text("session 1 ·");
        let screen = terminal.wait_for_text("as-before");
        assert!(screen.contains(&format!("exit {code}")) && !screen.contains("session 1 ·"), "{screen}");
    }
}

#[test]
fn watch_ends_when_its_terminal_closes() {
    let world = world_with_run();
    let path = format!("PATH={}:/usr/bin:/bin", find_or_build_bin_dir().display());
    let shell_line = "echo $$ > pid; exec plimsoll status --watch";
    // A terminal inside the terminal; it is gone when `script` is.
    let terminal = Terminal::start_program_in_project(
        &world,
        "/usr/bin/env",
        &[&path, "script", "-qec", shell_line, "/dev/null"],
        80,
        24,
    );
    terminal.wait_for_text("session 1 ·");
    let pid = std::fs::read_to_string(world.path("pid")).unwrap();
    terminal.close();
    let process = format!("/proc/{}/stat", pid.trim());
    // It is gone, or it is a zombie.
    let is_over = || std::fs::read_to_string(&process).map_or(true, |stat| stat.contains(") Z "));
    world.wait_until(is_over, "the end of a program whose terminal is gone");
}

#[test]
fn watch_without_a_terminal_names_the_alternatives() {
    let finished = world_with_run().plimsoll(&["status", "--watch"]).run();
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""));
    insta::assert_snapshot!(finished.stderr, @"error: --watch needs a terminal: use `plimsoll status --json`, or `plimsoll log --follow`");
}
