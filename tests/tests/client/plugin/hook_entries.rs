//! The lines of `hooks.json`, each given to a shell as the client gives it.

use super::harness::folder;
use plimsoll_testkit::world::{Finished, World};
use serde_json::Value;
use std::path::Path;

/// The event, the program and the line of each entry.
fn entries() -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string(folder().join("hooks/hooks.json")).expect("the plugin's hooks");
    let hooks: Value = serde_json::from_str(&text).expect("JSON");
    let mut all = Vec::new();
    for (event, groups) in hooks["hooks"].as_object().expect("events") {
        for entry in groups.as_array().expect("groups").iter().map(|group| &group["hooks"][0]) {
            let line = entry["command"].as_str().expect("a command");
            let started = line.split_once("; exec ").expect(line).1;
            all.push((event.clone(), started.to_owned(), line.to_owned()));
        }
    }
    assert!(all.len() >= 16, "{all:?}");
    all
}

fn line(world: &World, home: &Path, line: &str) -> Finished {
    let short = world.command("/bin/sh", &["-c", line]).env("PATH", "/usr/bin:/bin");
    short
        .env("HOME", home.display().to_string())
        .env("CLAUDE_PLUGIN_ROOT", folder().display().to_string())
        .run()
}

#[test]
fn each_finds_its_program_where_the_installers_put_it_whatever_the_home_is_called() {
    let world = World::without_git().without_plimsoll();
    for place in [".local/bin", ".cargo/bin"] {
        let home = world.home().join(format!("it's a \"$HOME\"/{place}-user"));
        for (_, started, text) in entries() {
            let program = home.join(place).join(started.split(' ').next().unwrap_or_default());
            world.write(&program, "#!/bin/sh\necho \"${0##*/} $*\"\n");
            world.command("chmod", &["755", &program.display().to_string()]).run().expect_success();
            let finished = line(&world, &home, &text).expect_success();
            assert_eq!(finished.stdout.trim(), started, "{text}");
            assert!(started.ends_with(" --plugin"), "{started}");
        }
    }
}

#[test]
fn without_the_programs_one_speaks_and_all_others_are_silent() {
    let world = World::without_git().without_plimsoll();
    let mut said = Vec::new();
    for (event, started, text) in entries() {
        let finished = line(&world, &world.home(), &text).expect_success();
        assert_eq!(finished.stderr, "", "{text}");
        if !finished.stdout.is_empty() {
            let reply = finished.json();
            assert_eq!(reply["hookSpecificOutput"]["hookEventName"], event.as_str());
            said.push((started, reply["systemMessage"].as_str().expect("words").to_owned()));
        }
    }
    let [(started, words)] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!(started, "plimsoll-session-start memory --plugin");
    for place in ["PATH", "~/.local/bin", "~/.cargo/bin"] {
        assert!(words.contains(place), "{words}");
    }
}

#[test]
fn a_project_without_a_path_is_no_place_for_programs() {
    let world = World::without_git().without_plimsoll();
    world.write("plimsoll-post-tool", "#!/bin/sh\necho taken\n");
    world.command("chmod", &["755", "plimsoll-post-tool"]).run().expect_success();
    let (_, _, text) =
        entries().into_iter().find(|(_, started, _)| started.contains("post-tool")).expect("it");
    let finished = world.command("/bin/sh", &["-c", &text]).env("PATH", "").run().expect_success();
    assert_eq!(finished.stdout, "");
}
