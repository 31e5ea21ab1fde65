//! The entries that `plimsoll init --project --entries` commits, with the real client: they have no effect for people without the
//! programs, and beside a user's own hooks each event still runs once.

use crate::plugin::harness::{count_records, hook_attachments, model_that_passes_l1, turn_log_kinds};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_protocol::settings::{self, HookSupport};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use plimsoll_tests::{ScriptedAgent, events_named, honest_agent, read_journal};
use std::time::Duration;

const REMEMBERED_TEXT: &str = "Keep the public API as it is.";

/// Installs guarded entries in a project; with the memory, by upgrading an earlier installation of the team.
fn install_guarded_entries(world: &World, with_memory: bool) {
    if with_memory {
        let parts = HookSupport::Modern.with_memory();
        let earlier_settings =
            settings::install_or_update_our_entries("", parts, &str::to_owned).expect("settings").text;
        world.write(".claude/settings.json", &earlier_settings);
    }
    world.plimsoll(&["init", "--project", "--entries"]).run().expect_success();
}

/// Counts the session starts, turns and session ends in the turn logs of the project.
fn count_session_records(world: &World) -> [usize; 3] {
    let log = turn_log_kinds(world);
    [RecordKind::SessionStart, RecordKind::Turn, RecordKind::SessionEnd].map(|kind| count_records(&log, kind))
}

/// Plays a session in a project with guarded entries, with or without the memory, beside these installations of the user,
/// and asserts that each event runs once.
fn assert_each_event_runs_once(with_memory: bool, user_installations: &[&[&str]]) {
    let model = model_that_passes_l1();
    let mut world = World::new();
    world.put_client_on_path_with_model_and_settings(&model);
    install_guarded_entries(&world, with_memory);
    for arguments in user_installations {
        world.plimsoll(arguments).run().expect_success();
    }
    world.plimsoll(&["memory", "set", "R4", REMEMBERED_TEXT]).run().expect_success();
    let arguments = ["-p", "Work.", "--model", "opus", "--allowedTools", "Bash"];
    let finished = world.claude(&arguments).run().expect_success();
    assert!(finished.stdout.contains("done") && finished.stderr.is_empty(), "{finished:?}");
    let requests = model.main_requests();
    let mention_count = requests.first().expect("a request").full_text().matches(REMEMBERED_TEXT).count();
    let has_memory =
        with_memory || user_installations.iter().any(|arguments| arguments.contains(&"--memory"));
    assert_eq!(mention_count, usize::from(has_memory));
    let last = requests.last().expect("a request").full_text();
    assert_eq!(last.matches("CCS_WARNING|L1|72|").count(), 1, "{last}");
    assert_eq!(count_session_records(&world), [1, 4, 1]);
}

#[test]
fn guarded_entries_alone_do_what_direct_entries_do() {
    assert_each_event_runs_once(false, &[]);
}

#[test]
fn beside_user_hooks_each_event_runs_once() {
    assert_each_event_runs_once(false, &[&["init", "--user"]]);
}

#[test]
fn beside_local_hooks_with_memory_each_event_runs_once() {
    assert_each_event_runs_once(false, &[&["init", "--local", "--memory"]]);
}

#[test]
fn with_memory_beside_user_hooks_without_it_each_event_runs_once() {
    assert_each_event_runs_once(true, &[&["init", "--user"]]);
}

#[test]
fn beside_user_and_local_hooks_with_memory_each_event_runs_once() {
    assert_each_event_runs_once(true, &[&["init", "--user", "--memory"], &["init", "--local", "--memory"]]);
}

#[test]
fn in_a_run_guarded_entries_yield_to_the_hooks_of_the_run() {
    for with_memory in [false, true] {
        let mut world = plimsoll_tests::world_with_plan_and_dates("# Plan\n\n- [ ] Item three\n");
        let _model =
            ScriptedAgent::new(honest_agent).with_real_client().with_lifelike_delay().start(&mut world);
        install_guarded_entries(&world, with_memory);
        let run = ["run", "--objective", "Do the plan.", "--name", "Dates", "--", "--model", "opus"];
        let run = [&run[..], &["--allowedTools", "Bash"]].concat();
        world.plimsoll(&run).timeout(Duration::from_secs(120)).run().expect_success();
        let journal = read_journal(&world);
        let counted = ["session_start", "session_end"].map(|name| events_named(&journal, name).len());
        assert_eq!(counted, [1, 1], "{with_memory}: {journal:#?}");
        let [starts, _, ends] = count_session_records(&world);
        assert_eq!([starts, ends], [1, 1], "{with_memory}");
    }
}

fn world_without_programs() -> World {
    let world = World::new();
    install_guarded_entries(&world, true);
    world.without_plimsoll_programs()
}

#[test]
fn without_the_programs_a_headless_session_is_unaffected() {
    let model = model_that_passes_l1();
    let mut world = world_without_programs();
    world.put_client_on_path_with_model_and_settings(&model);
    let arguments = ["-p", "Work.", "--model", "opus", "--allowedTools", "Bash"];
    let finished = world.claude(&arguments).run().expect_success();
    assert_eq!((finished.stdout.trim(), finished.stderr.as_str()), ("done", ""));
    assert_eq!(hook_attachments(&world), [], "no hook has said anything, and none has failed");
    let plimsoll_files = plimsoll_store::disk::list_names(&world.path(".claude/plimsoll"));
    assert_eq!(plimsoll_files, [""; 0], "nothing of ours ran");
}

#[test]
fn without_the_programs_a_terminal_session_shows_nothing_of_plimsoll() {
    let model = model_that_passes_l1();
    let mut world = world_without_programs();
    // The user's own status line stays.
    world.write(
        world.home().join(".claude/settings.json"),
        "{\"statusLine\": {\"type\": \"command\", \"command\": \"echo MY-OWN-LINE\"}}",
    );
    world.put_client_on_path_with_model_and_settings(&model);
    let arguments = ["--model", "opus", "--permission-mode", "default", "--allowedTools", "Bash"];
    let mut terminal = Terminal::start_claude(&world, &arguments, 120, 50);
    terminal.wait_for_text("MY-OWN-LINE");
    terminal.submit_prompt("Work.");
    let screen = terminal.wait_for_text("done");
    for word in ["plimsoll-s", "plimsoll-p", "failed", "not found", "error"] {
        assert!(!screen.to_lowercase().contains(word), "{word}:\n{screen}");
    }
    assert!(screen.contains("MY-OWN-LINE"), "{screen}");
}
