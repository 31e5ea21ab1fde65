//! The project of a command is the repository's root at most: a state further up is named, and not used.

use plimsoll_domain::RunId;
use plimsoll_domain::state::{Lifecycle, RunOptions};
use plimsoll_testkit::world::World;
use plimsoll_tests::{ITEMS, world};

const STATE: &str = ".claude/ralph-state.json";

/// A paused run of the project, and a clone of something else in a folder of it.
fn with_a_repository_inside() -> World {
    let world = world(ITEMS);
    let state = plimsoll_domain::RunState {
        run_id: RunId::from("20260107-090000-dates"),
        iteration: 1,
        options: RunOptions {
            task_name: "Dates".to_owned(),
            max_iterations: 5,
            todo_file: Some("fix_plan.md".to_owned()),
            ..RunOptions::default()
        },
        lifecycle: Lifecycle::with_status(plimsoll_domain::RunStatus::Paused),
        ..plimsoll_domain::RunState::default()
    };
    let project = plimsoll_store::Project::with_local_files(&world.project()).with_runs_folder(&world.runs());
    plimsoll_store::state_file::create_state(&project, &state).unwrap();
    world.command("git", &["init", "-q", "vendor/lib"]).run().expect_success();
    world.write("vendor/lib/src/lib.rs", "");
    world
}

#[test]
fn a_state_above_the_repository_is_named_and_not_used() {
    let world = with_a_repository_inside();
    let words = format!("{} is not used: it is above the repository", world.path(STATE).display());
    for (arguments, code) in [(&["run", "--resume"][..], 1), (&["stop"], 1), (&["status"], 0)] {
        for folder in ["vendor/lib", "vendor/lib/src"] {
            let finished = world.plimsoll(arguments).cwd(world.path(folder)).run();
            assert_eq!(finished.code, Some(code), "{arguments:?} in {folder}: {finished:?}");
            assert!(finished.stderr.contains(&words), "{arguments:?} in {folder}: {finished:?}");
        }
    }
    assert_eq!(world.json(STATE)["status"], "paused", "nothing has stopped it");
}

#[test]
fn a_state_in_the_repository_is_found_from_every_folder_of_it() {
    let world = with_a_repository_inside();
    let finished = world.plimsoll(&["stop"]).cwd(world.path("src")).run();
    assert_eq!(finished.stderr, "", "{finished:?}");
    assert_eq!(world.json(STATE)["status"], "cancelled", "{finished:?}");
}

/// Only root can give a folder away; what everybody can see is in the table of `plimsoll_store::layout`.
#[test]
fn a_state_of_another_owner_is_named_and_not_used_unless_git_is_told_that_it_is_safe() {
    let world = with_a_repository_inside();
    if world.command("chown", &["65534", ".claude", STATE]).run().code != Some(0) {
        return;
    }
    let words = "belongs to another user";
    for arguments in [&["run", "--resume"][..], &["stop"], &["start", "--objective", "x"]] {
        let finished = world.plimsoll(arguments).run();
        assert!(finished.code == Some(1) && finished.stderr.contains(words), "{arguments:?}: {finished:?}");
    }
    let finished = world.plimsoll(&["gate"]).run();
    assert!(finished.code == Some(70) && finished.stderr.contains(words), "{finished:?}");
    assert_eq!(world.json(STATE)["status"], "paused");
    let project = world.project().display().to_string();
    world.command("git", &["config", "--global", "safe.directory", &project]).run().expect_success();
    let finished = world.plimsoll(&["stop"]).run();
    assert!(!finished.stderr.contains(words), "{finished:?}");
}
