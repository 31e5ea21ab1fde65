//! Every fault ends in what the client does by itself.

use super::harness::{
    model_that_fills_the_window, run_session, summary_count, use_programs_of, world_with_module,
};
use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::world::World;
use plimsoll_tests::run_cases_in_parallel;
use serde_json::json;

/// Runs a session whose window fills, and returns how many summaries the client made.
fn summaries_of_session(prepare: impl FnOnce(&mut World), arguments: &[&str]) -> usize {
    let model = model_that_fills_the_window();
    let mut world = world_with_module(&model, &json!({"compaction": "handoff"}));
    prepare(&mut world);
    let finished = run_session(&world, "Count to three.", arguments).expect_success();
    let expected = if summary_count(&model) == 0 { "after the handoff" } else { "after the summary" };
    assert_eq!(finished.stdout_json()["result"], expected, "{finished:?}");
    summary_count(&model)
}

/// Installs the module with programs of the test instead of ours.
fn install_with_program(world: &World, script: &str) {
    world.write_program("fake/plimsoll", script);
    use_programs_of(world, &world.path("fake").display().to_string());
}

#[test]
fn a_program_that_is_absent_old_wrong_or_slow_leaves_the_compaction_to_the_client() {
    let real = find_or_build_bin_dir().join("plimsoll").display().to_string();
    let wrong_checkpoint =
        format!("#!/bin/sh\n[ \"$1\" = context ] && exec {real} \"$@\"\necho '{{\"schema_version\":1'\n");
    let slow_checkpoint = format!("#!/bin/sh\n[ \"$1\" = context ] && exec {real} \"$@\"\nexec sleep 60\n");
    let cases = [
        ("absent", None),
        ("older", Some("#!/bin/sh\necho \"error: unrecognized subcommand '$1'\" >&2\nexit 2\n".to_owned())),
        ("invalid JSON", Some("#!/bin/sh\necho 'not JSON'\n".to_owned())),
        (
            "another version",
            Some(
                "#!/bin/sh\necho '{\"schema_version\":99,\"answers\":true,\"compaction\":\"handoff\"}'\n"
                    .to_owned(),
            ),
        ),
        ("a list", Some("#!/bin/sh\necho '[]'\n".to_owned())),
        ("a checkpoint that is cut off", Some(wrong_checkpoint)),
        ("a checkpoint that hangs", Some(slow_checkpoint)),
        ("a program that hangs", Some("#!/bin/sh\nexec sleep 60\n".to_owned())),
    ];
    run_cases_in_parallel(&cases, |(name, script)| {
        let prepare = |world: &mut World| match script {
            Some(script) => install_with_program(world, script),
            None => use_programs_of(world, "/nonexistent/programs"),
        };
        assert_eq!(summaries_of_session(prepare, &[]), 1, "{name}");
    });
}

#[test]
fn the_module_leaves_to_the_client_what_it_was_not_asked_for() {
    type Preparation = fn(&mut World);
    let cases: [(&str, Preparation, &[&str], usize); 5] = [
        ("the user's own choice", |_| {}, &[], 0),
        ("the default", |world| world.write_plimsoll_user_settings(&json!({})), &[], 1),
        // Nobody can answer in print mode.
        ("a question", |world| world.write_plimsoll_user_settings(&json!({"compaction": "ask"})), &[], 1),
        ("a run", |world| world.set_env("PLIMSOLL_RUN_ID", "20260107-090000-dates"), &[], 1),
        ("no hooks", |world| drop(world.plimsoll(&["uninstall"]).run().expect_success()), &[], 1),
    ];
    run_cases_in_parallel(&cases, |(name, prepare, arguments, expected)| {
        assert_eq!(summaries_of_session(prepare, arguments), *expected, "{name}");
    });
}
