//! The command lines of `hooks.json`, passed to a shell as the client does it.

use super::harness::plugin_folder;
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::Value;
use std::path::Path;

/// Returns the event, the started program and the shell line of each entry.
fn read_hook_entries() -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string(plugin_folder().join("hooks/hooks.json")).expect("the plugin's hooks");
    let hooks: Value = serde_json::from_str(&text).expect("JSON");
    let mut entries = Vec::new();
    for (event, groups) in hooks["hooks"].as_object().expect("events") {
        for entry in groups.as_array().expect("groups").iter().map(|group| &group["hooks"][0]) {
            let line = entry["command"].as_str().expect("a command");
            let program_and_arguments = line.split_once("; exec ").expect(line).1;
            entries.push((event.clone(), program_and_arguments.to_owned(), line.to_owned()));
        }
    }
    assert!(entries.len() >= 16, "{entries:?}");
    entries
}

fn run_entry(world: &World, home: &Path, shell_line: &str) -> FinishedProgram {
    let launch = world.command("/bin/sh", &["-c", shell_line]).env("PATH", "/usr/bin:/bin");
    launch
        .env("HOME", home.display().to_string())
        .env("CLAUDE_PLUGIN_ROOT", plugin_folder().display().to_string())
        .run()
}

#[test]
fn each_entry_finds_its_program_in_the_install_folders_of_any_home() {
    let world = World::without_git().without_plimsoll_programs();
    for place in [".local/bin", ".cargo/bin"] {
        let home = world.home().join(format!("it's a \"$HOME\"/{place}-user"));
        for (_, program_and_arguments, text) in read_hook_entries() {
            let program = home.join(place).join(program_and_arguments.split(' ').next().unwrap_or_default());
            world.write(&program, "#!/bin/sh\necho \"${0##*/} $*\"\n");
            world.command("chmod", &["755", &program.display().to_string()]).run().expect_success();
            let finished = run_entry(&world, &home, &text).expect_success();
            assert_eq!(finished.stdout.trim(), program_and_arguments, "{text}");
            assert!(program_and_arguments.ends_with(" --plugin"), "{program_and_arguments}");
        }
    }
}

#[test]
fn without_the_programs_only_session_start_prints_a_message() {
    let world = World::without_git().without_plimsoll_programs();
    let mut messages = Vec::new();
    for (event, program_and_arguments, text) in read_hook_entries() {
        let finished = run_entry(&world, &world.home(), &text).expect_success();
        assert_eq!(finished.stderr, "", "{text}");
        if !finished.stdout.is_empty() {
            let reply = finished.stdout_json();
            assert_eq!(reply["hookSpecificOutput"]["hookEventName"], event.as_str());
            messages
                .push((program_and_arguments, reply["systemMessage"].as_str().expect("words").to_owned()));
        }
    }
    let [(program_and_arguments, words)] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!(program_and_arguments, "plimsoll-session-start memory --plugin");
    for place in ["PATH", "~/.local/bin", "~/.cargo/bin"] {
        assert!(words.contains(place), "{words}");
    }
}

#[test]
fn with_an_empty_path_programs_in_the_project_are_not_run() {
    let world = World::without_git().without_plimsoll_programs();
    world.write("plimsoll-post-tool", "#!/bin/sh\necho taken\n");
    world.command("chmod", &["755", "plimsoll-post-tool"]).run().expect_success();
    let (_, _, text) =
        read_hook_entries().into_iter().find(|(_, started, _)| started.contains("post-tool")).expect("it");
    let finished = world.command("/bin/sh", &["-c", &text]).env("PATH", "").run().expect_success();
    assert_eq!(finished.stdout, "");
}
