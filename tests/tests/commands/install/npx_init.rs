//! `npx plimsoll init`: all programs are copied out of npm's folder, a terminal finds them, and hooks and slash commands name them by a
//! path that stays.

use plimsoll_protocol::settings::{self, HookSupport};
use plimsoll_testkit::bin_dir;
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::world::{Finished, World};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// What npm's package has: the names of the hooks are no files of it.
const PACKAGED: [&str; 6] =
    ["plimsoll", "plimsoll-fleet", "plimsoll-linear", "plimsoll-mcp", "plimsoll-otel", "plimsoll-hook"];
const COMMANDS: [&str; 5] =
    ["plimsoll", "plimsoll-fleet", "plimsoll-linear", "plimsoll-mcp", "plimsoll-otel"];
const SYSTEM: &str = "/usr/local/bin:/usr/bin:/bin";

/// A world in which npx has unpacked our programs, and nothing of ours is on the PATH.
fn with_npx() -> World {
    let mut world = World::untouched();
    world.set_env("PATH", SYSTEM);
    let folder = npx_folder(&world);
    fs::create_dir_all(&folder).unwrap();
    for name in PACKAGED {
        // One file for all hooks, as in the package.
        let from = bin_dir().join(if name == "plimsoll-hook" { "plimsoll-stop-gate" } else { name });
        fs::hard_link(&from, folder.join(name))
            .or_else(|_| fs::copy(&from, folder.join(name)).map(drop))
            .unwrap();
    }
    world
}

fn npx_folder(world: &World) -> PathBuf {
    world.home().join(".npm/_npx/0f1e2d/node_modules/@plimsoll/linux-x64/bin")
}

fn npx(world: &World, arguments: &[&str]) -> Finished {
    world.command(npx_folder(world).join("plimsoll"), arguments).run()
}

/// Returns a text without what differs from one world or one version to the next.
fn stable_text(world: &World, text: &str) -> String {
    world.stable_text(&text.replace(env!("CARGO_PKG_VERSION"), "[VERSION]"))
}

fn stable(world: &World) -> PathBuf {
    world.home().join(".local/share/plimsoll/bin")
}

fn link(world: &World, name: &str) -> PathBuf {
    world.home().join(".local/bin").join(name)
}

fn user_settings(world: &World) -> PathBuf {
    world.home().join(".claude/settings.json")
}

/// What `init` writes into an empty settings file.
fn expected_settings(world: &World) -> String {
    let stable = stable(world);
    settings::install("", HookSupport::Modern, &|program| stable.join(program).display().to_string())
        .expect("settings")
        .text
}

#[test]
fn all_programs_are_copied_and_linked_and_named_by_absolute_paths() {
    let world = with_npx();
    let dry = npx(&world, &["init", "--dry-run"]).expect_success().stdout;
    insta::assert_snapshot!(stable_text(&world, &dry), @r#"
    Dry run: nothing was written.

    [HOME]/.local/share/plimsoll/versions/[VERSION]/bin: the programs, copied here because npm or Claude Code may delete its own copy
    [HOME]/.claude/settings.json: hooks for SessionStart, SessionEnd, PostToolBatch, Stop, StopFailure, SubagentStop, PreCompact, PostCompact, and the status line
    Template: modern (`claude` is not on the PATH; with a client before 2.1.207 run `plimsoll init` again)
    [HOME]/.claude/commands/ralph.md: /ralph
    [HOME]/.claude/commands/handoff.md: /handoff
    [HOME]/.local/bin: links to the copied programs plimsoll, plimsoll-fleet, plimsoll-linear, plimsoll-mcp, plimsoll-otel
    [HOME]/.local/bin is not on your PATH. Add this line and open a new shell:
      export PATH=[HOME]/.local/bin:"$PATH"    # ~/.bashrc
    Session records and handoffs are in ~/.local/state/plimsoll/projects; only a project with a .claude/plimsoll.json or a run keeps its own.
    Sessions that are already open keep their old hooks.
    Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.

    Files (--diff shows the changes):
      [HOME]/.claude/settings.json: new
      [HOME]/.claude/commands/ralph.md: new
      [HOME]/.claude/commands/handoff.md: new
      [HOME]/.local/bin/plimsoll: link to [HOME]/.local/share/plimsoll/bin/plimsoll
      [HOME]/.local/bin/plimsoll-fleet: link to [HOME]/.local/share/plimsoll/bin/plimsoll-fleet
      [HOME]/.local/bin/plimsoll-linear: link to [HOME]/.local/share/plimsoll/bin/plimsoll-linear
      [HOME]/.local/bin/plimsoll-mcp: link to [HOME]/.local/share/plimsoll/bin/plimsoll-mcp
      [HOME]/.local/bin/plimsoll-otel: link to [HOME]/.local/share/plimsoll/bin/plimsoll-otel
    "#);
    assert!(
        !world.home().join(".local/bin").exists() && !stable(&world).exists(),
        "a dry run writes nothing"
    );

    let said = npx(&world, &["init"]).expect_success().stdout;
    assert!(dry.contains(&said), "{said}\n{dry}");
    fs::remove_dir_all(world.home().join(".npm")).unwrap();

    for name in COMMANDS {
        let told = world.command(link(&world, name), &["--version"]).run().expect_success().stdout;
        assert_eq!(told.trim(), format!("{name} {}", env!("CARGO_PKG_VERSION")));
    }
    assert_eq!(world.read(user_settings(&world)), expected_settings(&world));
    let named = stable(&world).join("plimsoll").display().to_string();
    for name in ["ralph.md", "handoff.md"] {
        let text = world.read(world.home().join(".claude/commands").join(name));
        assert!(text.contains(&format!("allowed-tools: Bash({named}:*)")), "{text}");
        assert!(text.contains(&format!("`{named} checkpoint")), "{text}");
    }
    let doctor = world.command(link(&world, "plimsoll"), &["doctor", "--json"]).run().json();
    let codes: Vec<&str> =
        doctor["findings"].as_array().unwrap().iter().filter_map(|one| one["code"].as_str()).collect();
    let bad = |code: &&&str| code.starts_with("programs.") || code.starts_with("settings.");
    assert_eq!(codes.iter().find(bad), Some(&"programs.not_on_path"), "{codes:?}");
    let finding = doctor["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["code"] == "programs.not_on_path")
        .unwrap();
    assert_eq!(finding["todo"], format!("add {} to the PATH", world.home().join(".local/bin").display()));

    // A second time, from the copy, and with the links on the PATH.
    let path = format!("{}:{SYSTEM}", world.home().join(".local/bin").display());
    let again = world.command("plimsoll", &["init"]).env("PATH", path).run().expect_success().stdout;
    insta::assert_snapshot!(world.stable_text(&again), @"
    [HOME]/.claude/settings.json: our hooks are already there and up to date
    Template: modern (`claude` is not on the PATH; with a client before 2.1.207 run `plimsoll init` again)
    Session records and handoffs are in ~/.local/state/plimsoll/projects; only a project with a .claude/plimsoll.json or a run keeps its own.
    Sessions that are already open keep their old hooks.
    Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
    ");
    assert_eq!(world.read(user_settings(&world)), expected_settings(&world));

    let said = world.command(link(&world, "plimsoll"), &["uninstall"]).run().expect_success().stdout;
    insta::assert_snapshot!(world.stable_text(&said), @"
    [HOME]/.claude/settings.json: removed 8 hooks and our status line
    [HOME]/.claude/settings.json: removed; it contained nothing else
    [HOME]/.claude/commands/ralph.md: removed
    [HOME]/.claude/commands/handoff.md: removed
    [HOME]/.local/bin/plimsoll: removed
    [HOME]/.local/bin/plimsoll-fleet: removed
    [HOME]/.local/bin/plimsoll-linear: removed
    [HOME]/.local/bin/plimsoll-mcp: removed
    [HOME]/.local/bin/plimsoll-otel: removed
    ");
    assert!(!user_settings(&world).exists() && !world.home().join(".claude/commands").exists(), "{said}");
    assert!(fs::read_dir(world.home().join(".local/bin")).unwrap().next().is_none());
}

#[test]
fn what_is_not_ours_in_the_folder_of_programs_stays() {
    let world = with_npx();
    let elsewhere = world.write_program(world.home().join("opt/plimsoll-mcp"), "#!/bin/sh\necho other\n");
    fs::create_dir_all(world.home().join(".local/bin")).unwrap();
    world.write(link(&world, "plimsoll"), "a file of the user's\n");
    symlink(&elsewhere, link(&world, "plimsoll-mcp")).unwrap();
    symlink("/nowhere/plimsoll-otel", link(&world, "plimsoll-otel")).unwrap();
    // One of ours that leads elsewhere.
    symlink(stable(&world).join("plimsoll-old"), link(&world, "plimsoll-fleet")).unwrap();
    let said = npx(&world, &["init"]).expect_success().stdout;
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("/.local/bin")).collect();
    insta::assert_snapshot!(world.stable_text(&lines.join("\n")), @r#"
    [HOME]/.local/bin: links to the copied programs plimsoll-fleet, plimsoll-linear
    Kept: [HOME]/.local/bin/plimsoll is not ours. The copied program is [HOME]/.local/share/plimsoll/bin/plimsoll
    Kept: [HOME]/.local/bin/plimsoll-mcp is not ours. The copied program is [HOME]/.local/share/plimsoll/bin/plimsoll-mcp
    Kept: [HOME]/.local/bin/plimsoll-otel is not ours. The copied program is [HOME]/.local/share/plimsoll/bin/plimsoll-otel
    [HOME]/.local/bin is not on your PATH. Add this line and open a new shell:
      export PATH=[HOME]/.local/bin:"$PATH"    # ~/.bashrc
    "#);
    for _ in 0..2 {
        assert_eq!(world.read(link(&world, "plimsoll")), "a file of the user's\n");
        assert_eq!(fs::read_link(link(&world, "plimsoll-mcp")).unwrap(), elsewhere);
        assert_eq!(
            fs::read_link(link(&world, "plimsoll-otel")).unwrap(),
            Path::new("/nowhere/plimsoll-otel")
        );
        world.command(stable(&world).join("plimsoll"), &["uninstall", "--user"]).run().expect_success();
    }
    assert!(!link(&world, "plimsoll-fleet").is_symlink() && !link(&world, "plimsoll-linear").is_symlink());
}

#[test]
fn uninstalling_for_one_project_leaves_the_links() {
    let world = with_npx();
    npx(&world, &["init", "--local"]).expect_success();
    let excluded = world.read(".git/info/exclude");
    assert!(
        excluded.contains(".claude/commands/ralph.md\n"),
        "a path of this machine is not for git: {excluded}"
    );
    npx(&world, &["uninstall", "--local"]).expect_success();
    assert!(link(&world, "plimsoll").is_symlink() && !world.exists(".claude"));
}

#[test]
fn a_program_on_the_path_that_stays_needs_no_links() {
    let world = with_npx();
    let folder = world.home().join("npm-global/bin");
    world.write_program(folder.join("plimsoll"), "#!/bin/sh\n");
    let path = format!("{}:{SYSTEM}", folder.display());
    let init = world.command(npx_folder(&world).join("plimsoll"), &["init"]).env("PATH", path);
    let said = init.run().expect_success().stdout;
    assert!(!said.contains("links to") && !world.home().join(".local/bin").exists(), "{said}");

    // npx puts its own folder on the PATH, which goes with its cache.
    let passing = world.home().join(".npm/_npx/0f1e2d/node_modules/.bin");
    fs::create_dir_all(&passing).unwrap();
    symlink(npx_folder(&world).join("plimsoll"), passing.join("plimsoll")).unwrap();
    let path = format!("{}:{SYSTEM}", passing.display());
    let init = world.command(npx_folder(&world).join("plimsoll"), &["init"]).env("PATH", path);
    assert!(init.run().expect_success().stdout.contains("links to"));
}

#[test]
fn an_upgrade_changes_the_version_behind_the_same_paths() {
    let world = with_npx();
    npx(&world, &["init"]).expect_success();
    let settings = world.read(user_settings(&world));
    // As the programs of the version before have left it.
    let versions = world.home().join(".local/share/plimsoll/versions");
    let old = versions.join("0.0.1/bin");
    fs::create_dir_all(&old).unwrap();
    fs::remove_file(stable(&world)).unwrap();
    symlink(&old, stable(&world)).unwrap();
    let dry = npx(&world, &["init", "--dry-run"]).expect_success().stdout;
    assert_eq!(dry.lines().last(), Some("No file would change."), "{dry}");
    npx(&world, &["init"]).expect_success();
    assert_eq!(world.read(user_settings(&world)), settings);
    let current = versions.join(env!("CARGO_PKG_VERSION")).join("bin");
    assert_eq!(fs::canonicalize(stable(&world)).unwrap(), current);
    world.command(stable(&world).join("plimsoll-stop-gate"), &["version"]).run().expect_success();
}

/// Runs the command that the slash command names, if it names one, then answers.
fn obedient(arguments: &'static str) -> ScriptedModel {
    ScriptedModel::start(move |request: &Request| {
        let text = request.last_text();
        let mut spans = text.split('`');
        let command = spans.find(|span| span.ends_with(arguments) && span.contains("plimsoll"));
        match (request.tool_results().first(), command) {
            (None, Some(command)) => Step::bash(command),
            (None, None) => Step::text(format!("no command in: {text}")),
            (Some((_, printed)), _) => Step::text(printed.as_str()),
        }
    })
}

#[test]
fn slash_commands_start_the_program_where_the_path_lacks_it() {
    for home in ["home", "it's a \"$HOME\", 100%"] {
        let mut world = with_npx();
        let home = world.home().with_file_name(home);
        fs::create_dir_all(&home).unwrap();
        world.set_env("XDG_DATA_HOME", home.display().to_string());
        npx(&world, &["init"]).expect_success();
        for (prompt, arguments, expected) in [
            ("/ralph status", " status", "there is no run"),
            ("/handoff continue", " handoffs --continue", "no session of yours left a handoff"),
        ] {
            let model = obedient(arguments);
            world.use_model(&model);
            // No permission is given but the command's own.
            let words =
                ["-p", prompt, "--model", "opus", "--permission-mode", "default", "--output-format", "json"];
            let session = world.claude(&words).run().expect_success();
            let result: Value = session.json();
            let shown = result["result"].as_str().unwrap_or_default();
            assert!(shown.to_lowercase().contains(expected), "{home:?}, {prompt}: {result}");
            assert_eq!(result["permission_denials"], Value::Array(Vec::new()), "{result}");
        }
    }
}
