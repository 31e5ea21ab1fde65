//! The project of a command never lies above the repository's root: a run state further up is named, but not used.

use plimsoll_domain::RunId;
use plimsoll_domain::state::{Lifecycle, RunOptions};
use plimsoll_testkit::world::World;
use plimsoll_tests::{THREE_ITEM_PLAN, world_with_plan_and_dates};

const STATE: &str = ".claude/ralph-state.json";

/// Returns a world with a paused run of the project, and with a clone of something else in one of its folders.
fn world_with_inner_repository() -> World {
    let world = world_with_plan_and_dates(THREE_ITEM_PLAN);
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
    let project =
        plimsoll_store::Project::with_local_files(&world.project()).with_runs_folder(&world.runs_folder());
    plimsoll_store::state_file::create_ledger_and_write_initial_state(&project, &state).unwrap();
    world.command("git", &["init", "-q", "vendor/lib"]).run().expect_success();
    world.write("vendor/lib/src/lib.rs", "");
    world
}

#[test]
fn a_run_state_above_the_repository_is_named_but_not_used() {
    let world = world_with_inner_repository();
    let expected_message = format!("{} is not used: it is above the repository", world.path(STATE).display());
    for (arguments, code) in [(&["run", "--resume"][..], 1), (&["stop"], 1), (&["status"], 0)] {
        for folder in ["vendor/lib", "vendor/lib/src"] {
            let finished = world.plimsoll(arguments).cwd(world.path(folder)).run();
            assert_eq!(finished.code, Some(code), "{arguments:?} in {folder}: {finished:?}");
            assert!(finished.stderr.contains(&expected_message), "{arguments:?} in {folder}: {finished:?}");
        }
    }
    assert_eq!(world.read_json(STATE)["status"], "paused", "nothing has stopped it");
}

#[test]
fn a_run_state_in_the_repository_is_found_from_its_subfolders() {
    let world = world_with_inner_repository();
    let finished = world.plimsoll(&["stop"]).cwd(world.path("src")).run();
    assert_eq!(finished.stderr, "", "{finished:?}");
    assert_eq!(world.read_json(STATE)["status"], "cancelled", "{finished:?}");
}

/// Only root can change the owner of a folder; the cases that need no root are in the table of
/// `plimsoll_store::layout`.
#[test]
fn a_run_state_of_another_owner_is_used_only_if_git_lists_it_as_safe() {
    let world = world_with_inner_repository();
    if world.command("chown", &["65534", ".claude", STATE]).run().code != Some(0) {
        return;
    }
    let expected_message = "belongs to another user";
    for arguments in [&["run", "--resume"][..], &["stop"], &["start", "--objective", "x"]] {
        let finished = world.plimsoll(arguments).run();
        assert!(
            finished.code == Some(1) && finished.stderr.contains(expected_message),
            "{arguments:?}: {finished:?}"
        );
    }
    let finished = world.plimsoll(&["gate"]).run();
    assert!(finished.code == Some(70) && finished.stderr.contains(expected_message), "{finished:?}");
    assert_eq!(world.read_json(STATE)["status"], "paused");
    let project = world.project().display().to_string();
    world.command("git", &["config", "--global", "safe.directory", &project]).run().expect_success();
    let finished = world.plimsoll(&["stop"]).run();
    assert!(!finished.stderr.contains(expected_message), "{finished:?}");
}
