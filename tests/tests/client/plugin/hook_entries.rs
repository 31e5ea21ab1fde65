//! The entries of `hooks.json`, started as the client does it: without a shell.

use super::harness::plugin_folder;
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// An entry of `hooks.json`.
#[derive(Debug)]
struct HookEntry {
    event: String,
    program: String,
    arguments: Vec<String>,
}

impl HookEntry {
    fn parse(event: &str, entry: &Value) -> HookEntry {
        let command = entry["command"].as_str().expect("a command");
        let program = command.strip_prefix("${CLAUDE_PLUGIN_ROOT}/hooks/").expect(command);
        let arguments = entry["args"].as_array().expect("arguments");
        let arguments = arguments.iter().map(|value| value.as_str().expect("text").to_owned()).collect();
        HookEntry { event: event.to_owned(), program: program.to_owned(), arguments }
    }

    /// Returns the program and its arguments, separated by spaces.
    fn command_line(&self) -> String {
        format!("{} {}", self.program, self.arguments.join(" "))
    }

    /// Runs the script of the plugin in this folder.
    fn run(&self, world: &World, plugin: &Path, home: &Path) -> FinishedProgram {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let launch = world.command(plugin.join("hooks").join(&self.program), &arguments);
        launch.env("PATH", "/usr/bin:/bin").env("HOME", home.display().to_string()).run()
    }
}

fn read_hook_entries() -> Vec<HookEntry> {
    let text = std::fs::read_to_string(plugin_folder().join("hooks/hooks.json")).expect("the plugin's hooks");
    let hooks: Value = serde_json::from_str(&text).expect("JSON");
    let mut entries = Vec::new();
    for (event, groups) in hooks["hooks"].as_object().expect("events") {
        let groups = groups.as_array().expect("groups").iter();
        entries.extend(groups.map(|group| HookEntry::parse(event, &group["hooks"][0])));
    }
    assert!(entries.len() >= 16, "{entries:?}");
    entries
}

/// A program that prints its name and its arguments.
const PRINTING_PROGRAM: &str = "#!/bin/sh\necho \"${0##*/} $*\"\n";

/// Copies the plugin into a folder whose name a shell would split, and returns it.
fn copy_plugin_to_folder_that_a_shell_would_split(world: &World) -> PathBuf {
    let copy = world.home().join("it's a \"$HOME\"/plug in");
    let source = plugin_folder().display().to_string();
    let copy_command =
        ["-c", "mkdir -p \"$1\" && cp -R \"$0\"/. \"$1\"", &source, &copy.display().to_string()];
    world.command("/bin/sh", &copy_command).run().expect_success();
    copy
}

#[test]
fn each_entry_finds_its_program_in_the_install_folders_of_any_home() {
    let world = World::without_git().without_plimsoll_programs();
    let plugin = copy_plugin_to_folder_that_a_shell_would_split(&world);
    for place in [".local/bin", ".cargo/bin"] {
        let home = world.home().join(format!("it's a \"$HOME\"/{place}-user"));
        for entry in read_hook_entries() {
            world.write_program(home.join(place).join(&entry.program), PRINTING_PROGRAM);
            let finished = entry.run(&world, &plugin, &home).expect_success();
            assert_eq!(finished.stdout.trim(), entry.command_line());
            assert_eq!(entry.arguments.last().map(String::as_str), Some("--plugin"), "{entry:?}");
        }
    }
}

#[test]
fn each_entry_starts_the_plugins_own_program_if_none_is_installed() {
    let world = World::without_git().without_plimsoll_programs();
    let plugin = copy_plugin_to_folder_that_a_shell_would_split(&world);
    let machine = world.command("uname", &["-sm"]).run().expect_success().stdout;
    let programs = plugin.join("programs").join(machine.trim());
    for entry in read_hook_entries() {
        world.write_program(programs.join(&entry.program), PRINTING_PROGRAM);
        let finished = entry.run(&world, &plugin, &world.home()).expect_success();
        assert_eq!(finished.stdout.trim(), entry.command_line());
    }
    // An installed program takes precedence.
    world.write_program(world.home().join(".local/bin/plimsoll-frame"), "#!/bin/sh\necho installed\n");
    let entry = read_hook_entries().into_iter().find(|entry| entry.program == "plimsoll-frame").expect("it");
    assert_eq!(entry.run(&world, &plugin, &world.home()).expect_success().stdout, "installed\n");
}

#[test]
fn without_the_programs_only_session_start_prints_a_message() {
    let world = World::without_git().without_plimsoll_programs();
    // A folder of programs for other machines changes nothing.
    let plugin = copy_plugin_to_folder_that_a_shell_would_split(&world);
    world.write_program(plugin.join("programs/Plan9 mips/plimsoll-memory"), PRINTING_PROGRAM);
    for plugin in [plugin_folder(), plugin] {
        let mut messages = Vec::new();
        for entry in read_hook_entries() {
            let finished = entry.run(&world, &plugin, &world.home()).expect_success();
            assert_eq!(finished.stderr, "", "{entry:?}");
            if !finished.stdout.is_empty() {
                let reply = finished.stdout_json();
                assert_eq!(reply["hookSpecificOutput"]["hookEventName"], entry.event.as_str());
                let words = reply["systemMessage"].as_str().expect("words").to_owned();
                messages.push((entry.command_line(), words));
            }
        }
        let [(command_line, words)] = messages.as_slice() else { panic!("{messages:?}") };
        assert_eq!(command_line, "plimsoll-session-start memory --plugin");
        for place in ["PATH", "~/.local/bin", "~/.cargo/bin"] {
            assert!(words.contains(place), "{words}");
        }
    }
}

/// A client before 2.1.139 ignores `args`. The programs would then act beside those of the settings.
#[test]
fn without_the_arguments_of_its_entry_a_script_starts_nothing_and_one_names_the_version() {
    let world = World::without_git().without_plimsoll_programs();
    for entry in read_hook_entries() {
        world.write_program(world.home().join(".local/bin").join(&entry.program), PRINTING_PROGRAM);
        let without_arguments = HookEntry { arguments: Vec::new(), ..entry };
        let finished = without_arguments.run(&world, &plugin_folder(), &world.home()).expect_success();
        assert_eq!(finished.stderr, "", "{without_arguments:?}");
        if without_arguments.program == "plimsoll-session-start" {
            let words = finished.stdout_json()["systemMessage"].to_string();
            assert!(words.contains("needs Claude Code 2.1.139"), "{words}");
        } else {
            assert_eq!(finished.stdout, "", "{without_arguments:?}");
        }
    }
}

#[test]
fn programs_in_the_project_are_never_started() {
    let world = World::without_git().without_plimsoll_programs();
    let program = "plimsoll-session-start";
    for folder in ["", "bin", ".local/bin", ".cargo/bin", "hooks"] {
        world.write_program(Path::new(folder).join(program), "#!/bin/sh\necho taken\n");
    }
    let script = plugin_folder().join("hooks").join(program);
    for (path, home) in [
        ("", "/nowhere"),
        (":/usr/bin:/bin", "/nowhere"),
        (".:bin:/usr/bin:/bin", "."),
        ("/usr/bin:/bin:", ""),
    ] {
        let launch = world.command(&script, &["memory", "--plugin"]).env("PATH", path).env("HOME", home);
        let finished = launch.run().expect_success();
        let words = finished.stdout_json()["systemMessage"].to_string();
        assert!(words.contains("not installed") && finished.stderr.is_empty(), "PATH={path}: {finished:?}");
    }
}

/// Bash finds a file that cannot be started, and a script in a folder of the PATH finds itself.
#[test]
fn files_that_are_no_programs_and_the_script_itself_are_passed_over() {
    let world = World::without_git().without_plimsoll_programs();
    let (first, second) = (world.home().join("first"), world.home().join("second"));
    let script = plugin_folder().join("hooks/plimsoll-frame");
    world.write(first.join("plimsoll-frame"), PRINTING_PROGRAM);
    std::fs::create_dir_all(&second).expect("a folder");
    std::os::unix::fs::symlink(&script, second.join("plimsoll-frame")).expect("a link");
    world.write_program(world.home().join(".cargo/bin/plimsoll-frame"), PRINTING_PROGRAM);
    let path = format!("{}:{}:{}", first.display(), second.display(), script.with_file_name("").display());
    let finished = world.command(script, &["--plugin"]).env("PATH", path).run().expect_success();
    assert_eq!(finished.stdout, "plimsoll-frame --plugin\n");
}
