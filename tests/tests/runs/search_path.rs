//! A session can write a program into every folder that a relative entry of the PATH names. None of them is taken for the user's.

use plimsoll_testkit::bin_dir;
use plimsoll_testkit::linear::{KEY, LinearServer};
use plimsoll_testkit::world::World;
use plimsoll_tests::{ITEMS, ScriptedAgent, honest, run, world};
use serde_json::json;

/// Writes the user's programs into a folder outside of the project, and traps of the same names into the project; sets a PATH
/// that finds the traps first.
fn set_traps(world: &mut World) {
    let users = world.home().join("bin");
    let script = "#!/usr/bin/env shell\nhelper\n";
    for (name, text) in [
        ("tellme", "#!/usr/bin/env shell\necho \"told by $(helper)\" >> ~/told\n"),
        ("segment", script),
        ("line", script),
        ("keytool", script),
        ("helper", "#!/bin/sh\necho users\n"),
        ("shell", "#!/bin/sh\nexec /bin/sh \"$@\"\n"),
    ] {
        world.write_program(users.join(name), text);
    }
    let client = world.env().into_iter().find(|(name, _)| name == "PATH").expect("a PATH").1;
    for name in
        ["tellme", "segment", "line", "keytool", "helper", "shell", "sh", "claude", "git", "ssh", "node"]
    {
        for folder in ["", "node_modules/.bin/"] {
            let trap = "#!/bin/sh\necho \"$0 $*\" >> ~/trapped\necho trap\n";
            world.write_program(format!("{folder}{name}"), trap);
        }
    }
    world.set_env("PATH", format!("node_modules/.bin:.::{}:{client}", users.display()));
}

fn assert_untouched(world: &World) {
    let trapped = world.home().join("trapped");
    assert!(!trapped.exists(), "{}", world.read(&trapped));
}

#[test]
fn a_run_starts_no_program_that_a_relative_path_entry_names() {
    let mut world = world(ITEMS);
    let _model = ScriptedAgent::new(honest).start(&mut world);
    let real = world.env().into_iter().find(|(name, _)| name == "PATH").expect("a PATH").1;
    let real = std::env::split_paths(&real).map(|folder| folder.join("claude")).find(|path| path.exists());
    // As npm installs it: a script whose interpreter is found by the PATH.
    let script = format!("#!/usr/bin/env shell\nexec '{}' \"$@\"\n", real.expect("a client").display());
    set_traps(&mut world);
    world.write_program(world.home().join("bin/claude"), &script);
    let finished = run(&world, &["--notify", "tellme", "--verify", "true"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(world.read(world.home().join("told")).starts_with("told by users\n"), "{finished:?}");
    assert_untouched(&world);
    // A verify command runs the project's programs, as the user's shell does there.
    let verified = run(&world, &["--verify", "helper", "--max-iterations", "1"]);
    assert!(world.read(world.home().join("trapped")).contains("helper"), "{verified:?}");
}

#[test]
fn a_status_line_and_a_key_command_start_no_program_of_the_project() {
    let server = LinearServer::new();
    let mut world = world(ITEMS);
    world.set_env("LINEAR_API_URL", server.url());
    set_traps(&mut world);
    world.set_env("LINEAR_API_KEY", "");
    world.write_program(world.home().join("bin/helper"), &format!("#!/bin/sh\necho {KEY}\n"));
    world.write_user_settings(&json!({
        "linear": { "issue": "ENG-123", "key_command": "keytool" },
        "statusline": {
            "lines": [["mine"]],
            "segments": { "mine": { "command": ["segment"], "timeout_ms": 5000 } },
        },
    }));
    let checked = world.plimsoll(&["linear", "check"]).run();
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let payload = json!({ "session_id": "s1", "cwd": world.project(), "workspace": { "project_dir": world.project() } });
    let program = bin_dir().join("plimsoll-statusline");
    for arguments in [&[][..], &["--wrap", "line"], &["--wrap", "line", "one"]] {
        let shown = world.command(&program, arguments).stdin(payload.to_string()).run();
        assert!(shown.code == Some(0) && shown.stdout.contains(KEY), "{arguments:?}: {shown:?}");
    }
    assert_untouched(&world);
}
