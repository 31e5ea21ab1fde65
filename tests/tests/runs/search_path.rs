//! A session can write a program into any folder that a relative PATH entry names. None of these is run in place of the
//! user's program.

use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::linear::{API_KEY, LinearServer};
use plimsoll_testkit::world::World;
use plimsoll_tests::{
    ScriptedAgent, THREE_ITEM_PLAN, honest_agent, run_with_objective, world_with_plan_and_dates,
};
use serde_json::json;

/// Writes the user's programs into a folder outside the project and traps with the same names into the project, and
/// sets a PATH that finds the traps first.
fn install_path_traps(world: &mut World) {
    let user_folder = world.home().join("bin");
    let script = "#!/usr/bin/env shell\nhelper\n";
    for (name, text) in [
        ("tellme", "#!/usr/bin/env shell\necho \"told by $(helper)\" >> ~/told\n"),
        ("segment", script),
        ("line", script),
        ("keytool", script),
        ("helper", "#!/bin/sh\necho users\n"),
        ("shell", "#!/bin/sh\nexec /bin/sh \"$@\"\n"),
    ] {
        world.write_program(user_folder.join(name), text);
    }
    let original_path =
        world.env_with_programs_on_path().into_iter().find(|(name, _)| name == "PATH").expect("a PATH").1;
    for name in
        ["tellme", "segment", "line", "keytool", "helper", "shell", "sh", "claude", "git", "ssh", "node"]
    {
        for folder in ["", "node_modules/.bin/"] {
            let trap = "#!/bin/sh\necho \"$0 $*\" >> ~/trapped\necho trap\n";
            world.write_program(format!("{folder}{name}"), trap);
        }
    }
    world.set_env("PATH", format!("node_modules/.bin:.::{}:{original_path}", user_folder.display()));
}

fn assert_no_trap_ran(world: &World) {
    let trap_log = world.home().join("trapped");
    assert!(!trap_log.exists(), "{}", world.read(&trap_log));
}

#[test]
fn a_run_starts_no_program_from_a_relative_path_entry() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let _model = ScriptedAgent::new(honest_agent).start(&mut world);
    let original_path =
        world.env_with_programs_on_path().into_iter().find(|(name, _)| name == "PATH").expect("a PATH").1;
    let client_path =
        std::env::split_paths(&original_path).map(|folder| folder.join("claude")).find(|path| path.exists());
    // As npm installs it: a script whose interpreter is found through PATH.
    let script =
        format!("#!/usr/bin/env shell\nexec '{}' \"$@\"\n", client_path.expect("a client").display());
    install_path_traps(&mut world);
    world.write_program(world.home().join("bin/claude"), &script);
    let finished = run_with_objective(&world, &["--notify", "tellme", "--verify", "true"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(world.read(world.home().join("told")).starts_with("told by users\n"), "{finished:?}");
    assert_no_trap_ran(&world);
    // A verify command does run the project's programs, as the user's shell would.
    let verified = run_with_objective(&world, &["--verify", "helper", "--max-iterations", "1"]);
    assert!(world.read(world.home().join("trapped")).contains("helper"), "{verified:?}");
}

#[test]
fn status_lines_and_key_commands_start_no_program_of_the_project() {
    let server = LinearServer::new();
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    world.set_env("LINEAR_API_URL", server.url());
    install_path_traps(&mut world);
    world.set_env("LINEAR_API_KEY", "");
    world.write_program(world.home().join("bin/helper"), &format!("#!/bin/sh\necho {API_KEY}\n"));
    world.write_plimsoll_user_settings(&json!({
        "linear": { "issue": "ENG-123", "key_command": "keytool" },
        "statusline": {
            "lines": [["mine"]],
            "segments": { "mine": { "command": ["segment"], "timeout_ms": 5000 } },
        },
    }));
    let checked = world.plimsoll(&["linear", "check"]).run();
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let payload = json!({ "session_id": "s1", "cwd": world.project(), "workspace": { "project_dir": world.project() } });
    let program = find_or_build_bin_dir().join("plimsoll-statusline");
    for arguments in [&[][..], &["--wrap", "line"], &["--wrap", "line", "one"]] {
        let finished = world.command(&program, arguments).stdin(payload.to_string()).run();
        assert!(finished.code == Some(0) && finished.stdout.contains(API_KEY), "{arguments:?}: {finished:?}");
    }
    assert_no_trap_ran(&world);
}
