//! The entries that `plimsoll init --project --entries` commits, with the real client: nobody without our programs sees
//! anything of them, and beside a user's own hooks each event still runs once.

use crate::plugin::harness::{attachments, count, past_the_first_level, turn_log};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_protocol::settings::{self, HookSupport};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use plimsoll_tests::{ScriptedAgent, events, honest, journal};
use std::time::Duration;

const WORD: &str = "Keep the public API as it is.";

/// A project with guarded entries; where it has the memory, as an installation of the team was brought up to date.
fn guarded(world: &World, memory: bool) {
    if memory {
        let parts = HookSupport::Modern.with_memory();
        let earlier = settings::install("", parts, &str::to_owned).expect("settings").text;
        world.write(".claude/settings.json", &earlier);
    }
    world.plimsoll(&["init", "--project", "--entries"]).run().expect_success();
}

/// How often the turn logs of the project have a session's start, a turn, and a session's end.
fn recorded(world: &World) -> [usize; 3] {
    let log = turn_log(world);
    [RecordKind::SessionStart, RecordKind::Turn, RecordKind::SessionEnd].map(|kind| count(&log, kind))
}

/// Plays a session where the project has hooks for everybody, with the memory or without, and the user these besides.
fn beside(memory: bool, users: &[&[&str]]) {
    let model = past_the_first_level();
    let mut world = World::new();
    world.use_model(&model);
    guarded(&world, memory);
    for arguments in users {
        world.plimsoll(arguments).run().expect_success();
    }
    world.plimsoll(&["memory", "set", "R4", WORD]).run().expect_success();
    let session = ["-p", "Work.", "--model", "opus", "--allowedTools", "Bash"];
    let finished = world.claude(&session).run().expect_success();
    assert!(finished.stdout.contains("done") && finished.stderr.is_empty(), "{finished:?}");
    let requests = model.main_requests();
    let told = requests.first().expect("a request").text().matches(WORD).count();
    let has_memory = memory || users.iter().any(|arguments| arguments.contains(&"--memory"));
    assert_eq!(told, usize::from(has_memory));
    let last = requests.last().expect("a request").text();
    assert_eq!(last.matches("CCS_WARNING|L1|72|").count(), 1, "{last}");
    assert_eq!(recorded(&world), [1, 4, 1]);
}

#[test]
fn alone_they_do_all_that_direct_ones_do() {
    beside(false, &[]);
}

#[test]
fn beside_the_users_own_each_event_runs_once() {
    beside(false, &[&["init", "--user"]]);
}

#[test]
fn beside_the_users_own_in_this_project_with_the_memory_each_event_runs_once() {
    beside(false, &[&["init", "--local", "--memory"]]);
}

#[test]
fn with_the_memory_beside_the_users_own_without_it_each_half_runs_once() {
    beside(true, &[&["init", "--user"]]);
}

#[test]
fn beside_two_installations_with_the_memory_each_event_runs_once() {
    beside(true, &[&["init", "--user", "--memory"], &["init", "--local", "--memory"]]);
}

#[test]
fn a_run_brings_its_own_hooks_and_those_for_everybody_give_way() {
    for memory in [false, true] {
        let mut world = plimsoll_tests::world("# Plan\n\n- [ ] Item three\n");
        let _model = ScriptedAgent::new(honest).with_real_client().at_real_pace().start(&mut world);
        guarded(&world, memory);
        let run = ["run", "--objective", "Do the plan.", "--name", "Dates", "--", "--model", "opus"];
        let run = [&run[..], &["--allowedTools", "Bash"]].concat();
        world.plimsoll(&run).timeout(Duration::from_secs(120)).run().expect_success();
        let journal = journal(&world);
        let counted = ["session_start", "session_end"].map(|name| events(&journal, name).len());
        assert_eq!(counted, [1, 1], "{memory}: {journal:#?}");
        let [starts, _, ends] = recorded(&world);
        assert_eq!([starts, ends], [1, 1], "{memory}");
    }
}

fn without_our_programs() -> World {
    let world = World::new();
    guarded(&world, true);
    world.without_plimsoll()
}

#[test]
fn a_colleague_without_the_programs_sees_nothing_of_them() {
    let model = past_the_first_level();
    let mut world = without_our_programs();
    world.use_model(&model);
    let session = ["-p", "Work.", "--model", "opus", "--allowedTools", "Bash"];
    let finished = world.claude(&session).run().expect_success();
    assert_eq!((finished.stdout.trim(), finished.stderr.as_str()), ("done", ""));
    assert_eq!(attachments(&world), [], "no hook has said anything, and none has failed");
    let ours = plimsoll_store::disk::list_names(&world.path(".claude/plimsoll"));
    assert_eq!(ours, [""; 0], "nothing of ours ran");
}

#[test]
fn a_colleague_without_the_programs_sees_nothing_of_them_on_a_terminal() {
    let model = past_the_first_level();
    let mut world = without_our_programs();
    // The user's own status line stays.
    world.write(
        world.home().join(".claude/settings.json"),
        "{\"statusLine\": {\"type\": \"command\", \"command\": \"echo MY-OWN-LINE\"}}",
    );
    world.use_model(&model);
    let arguments = ["--model", "opus", "--permission-mode", "default", "--allowedTools", "Bash"];
    let mut terminal = Terminal::claude(&world, &arguments, 120, 50);
    terminal.wait_for("MY-OWN-LINE");
    terminal.type_text("Work.");
    terminal.press_enter();
    let screen = terminal.wait_for("done");
    for word in ["plimsoll-s", "plimsoll-p", "failed", "not found", "error"] {
        assert!(!screen.to_lowercase().contains(word), "{word}:\n{screen}");
    }
    assert!(screen.contains("MY-OWN-LINE"), "{screen}");
}
