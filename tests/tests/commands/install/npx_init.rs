//! `npx plimsoll init` copies all programs out of npm's folder and links them into `~/.local/bin`. Hooks and slash commands name
//! them by a permanent path.

use plimsoll_protocol::settings::{self, HookSupport};
use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The programs in the npm package. It has one file for all hook programs.
const PACKAGED_PROGRAMS: [&str; 6] =
    ["plimsoll", "plimsoll-fleet", "plimsoll-linear", "plimsoll-mcp", "plimsoll-otel", "plimsoll-hook"];
const LINKED_COMMANDS: [&str; 5] =
    ["plimsoll", "plimsoll-fleet", "plimsoll-linear", "plimsoll-mcp", "plimsoll-otel"];
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A world in which npx has unpacked our programs, and none of them is on the PATH.
fn world_with_npx_package() -> World {
    let mut world = World::without_plimsoll_files();
    world.set_env("PATH", SYSTEM_PATH);
    let folder = npx_folder(&world);
    fs::create_dir_all(&folder).unwrap();
    for name in PACKAGED_PROGRAMS {
        // Every hook program is the same file.
        let source =
            find_or_build_bin_dir().join(if name == "plimsoll-hook" { "plimsoll-stop-gate" } else { name });
        fs::hard_link(&source, folder.join(name))
            .or_else(|_| fs::copy(&source, folder.join(name)).map(drop))
            .unwrap();
    }
    world
}

fn npx_folder(world: &World) -> PathBuf {
    world.home().join(".npm/_npx/0f1e2d/node_modules/@plimsoll/linux-x64/bin")
}

fn run_from_npx(world: &World, arguments: &[&str]) -> FinishedProgram {
    world.command(npx_folder(world).join("plimsoll"), arguments).run()
}

/// Returns the text with the parts that differ between worlds or versions replaced.
fn stable_text(world: &World, text: &str) -> String {
    world.replace_varying_parts_with_placeholders(&text.replace(env!("CARGO_PKG_VERSION"), "[VERSION]"))
}

fn stable_bin_dir(world: &World) -> PathBuf {
    world.home().join(".local/share/plimsoll/bin")
}

fn link_path(world: &World, name: &str) -> PathBuf {
    world.home().join(".local/bin").join(name)
}

fn user_settings_path(world: &World) -> PathBuf {
    world.home().join(".claude/settings.json")
}

/// Returns the text that `init` writes into an empty settings file.
fn expected_settings(world: &World) -> String {
    let folder = stable_bin_dir(world);
    settings::install_or_update_our_entries("", HookSupport::Modern, &|program| {
        folder.join(program).display().to_string()
    })
    .expect("settings")
    .text
}

#[test]
fn init_from_npx_copies_links_and_names_programs_by_absolute_path() {
    let world = world_with_npx_package();
    let dry_run_output = run_from_npx(&world, &["init", "--dry-run"]).expect_success().stdout;
    insta::assert_snapshot!(stable_text(&world, &dry_run_output), @r#"
    Dry run: nothing was written.

    [HOME]/.local/share/plimsoll/versions/[VERSION]/bin: the programs, copied here because npm or Claude Code may delete its own copy
    [HOME]/.claude/settings.json: hooks for SessionStart, SessionEnd, PostToolBatch, Stop, StopFailure, SubagentStop, PreCompact, PostCompact, PreModelSwitch, and the status line
    Template: modern (`claude` is not on the PATH; with Claude Code before 2.1.207 run `plimsoll init` again)
    [HOME]/.claude/commands/ralph.md: /ralph
    [HOME]/.claude/commands/handoff.md: /handoff
    [HOME]/.local/bin: links to the copied programs plimsoll, plimsoll-fleet, plimsoll-linear, plimsoll-mcp, plimsoll-otel
    [HOME]/.local/bin is not on your PATH. Add this line and open a new shell:
      export PATH=[HOME]/.local/bin:"$PATH"    # ~/.bashrc
    Session records and handoffs are in ~/.local/state/plimsoll/projects; only a project with a .claude/plimsoll.json or a run keeps its own.
    Sessions that are already open keep their old hooks.
    Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.

    Files (--diff shows the changes):
      [HOME]/.local/share/plimsoll/versions/[VERSION]/bin: the programs are copied
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
        !world.home().join(".local/bin").exists() && !stable_bin_dir(&world).exists(),
        "a dry run writes nothing"
    );

    let init_output = run_from_npx(&world, &["init"]).expect_success().stdout;
    assert!(dry_run_output.contains(&init_output), "{init_output}\n{dry_run_output}");
    fs::remove_dir_all(world.home().join(".npm")).unwrap();

    for name in LINKED_COMMANDS {
        let version = world.command(link_path(&world, name), &["--version"]).run().expect_success().stdout;
        assert_eq!(version.trim(), format!("{name} {}", env!("CARGO_PKG_VERSION")));
    }
    assert_eq!(world.read(user_settings_path(&world)), expected_settings(&world));
    let program_path = stable_bin_dir(&world).join("plimsoll").display().to_string();
    for name in ["ralph.md", "handoff.md"] {
        let text = world.read(world.home().join(".claude/commands").join(name));
        assert!(text.contains(&format!("allowed-tools: Bash({program_path}:*)")), "{text}");
        assert!(text.contains(&format!("`{program_path} checkpoint")), "{text}");
    }
    let doctor = world.command(link_path(&world, "plimsoll"), &["doctor", "--json"]).run().stdout_json();
    let codes: Vec<&str> =
        doctor["findings"].as_array().unwrap().iter().filter_map(|one| one["code"].as_str()).collect();
    let is_program_or_settings_code =
        |code: &&&str| code.starts_with("programs.") || code.starts_with("settings.");
    assert_eq!(codes.iter().find(is_program_or_settings_code), Some(&"programs.not_on_path"), "{codes:?}");
    let finding = doctor["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["code"] == "programs.not_on_path")
        .unwrap();
    assert_eq!(finding["todo"], format!("add {} to the PATH", world.home().join(".local/bin").display()));

    // Run `init` again, from the copy and with the links on the PATH.
    let path = format!("{}:{SYSTEM_PATH}", world.home().join(".local/bin").display());
    let second_output = world.command("plimsoll", &["init"]).env("PATH", path).run().expect_success().stdout;
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&second_output), @"
    [HOME]/.claude/settings.json: our hooks are already there and up to date
    Template: modern (`claude` is not on the PATH; with Claude Code before 2.1.207 run `plimsoll init` again)
    Session records and handoffs are in ~/.local/state/plimsoll/projects; only a project with a .claude/plimsoll.json or a run keeps its own.
    Sessions that are already open keep their old hooks.
    Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
    ");
    assert_eq!(world.read(user_settings_path(&world)), expected_settings(&world));

    let uninstall_output =
        world.command(link_path(&world, "plimsoll"), &["uninstall"]).run().expect_success().stdout;
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&uninstall_output), @"
    [HOME]/.claude/settings.json: removed 9 hooks and our status line
    [HOME]/.claude/settings.json: removed; it contained nothing else
    [HOME]/.claude/commands/ralph.md: removed
    [HOME]/.claude/commands/handoff.md: removed
    [HOME]/.local/bin/plimsoll: removed
    [HOME]/.local/bin/plimsoll-fleet: removed
    [HOME]/.local/bin/plimsoll-linear: removed
    [HOME]/.local/bin/plimsoll-mcp: removed
    [HOME]/.local/bin/plimsoll-otel: removed
    ");
    assert!(
        !user_settings_path(&world).exists() && !world.home().join(".claude/commands").exists(),
        "{uninstall_output}"
    );
    assert!(fs::read_dir(world.home().join(".local/bin")).unwrap().next().is_none());
}

#[test]
fn init_and_uninstall_keep_foreign_files_in_the_local_bin_folder() {
    let world = world_with_npx_package();
    let other_program = world.write_program(world.home().join("opt/plimsoll-mcp"), "#!/bin/sh\necho other\n");
    fs::create_dir_all(world.home().join(".local/bin")).unwrap();
    world.write(link_path(&world, "plimsoll"), "a file of the user's\n");
    symlink(&other_program, link_path(&world, "plimsoll-mcp")).unwrap();
    symlink("/nowhere/plimsoll-otel", link_path(&world, "plimsoll-otel")).unwrap();
    // A link of ours that has another target.
    symlink(stable_bin_dir(&world).join("plimsoll-old"), link_path(&world, "plimsoll-fleet")).unwrap();
    let stdout = run_from_npx(&world, &["init"]).expect_success().stdout;
    let lines: Vec<&str> = stdout.lines().filter(|line| line.contains("/.local/bin")).collect();
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&lines.join("\n")), @r#"
    [HOME]/.local/bin: links to the copied programs plimsoll-fleet, plimsoll-linear
    Kept: [HOME]/.local/bin/plimsoll is not ours. The copied program is [HOME]/.local/share/plimsoll/bin/plimsoll
    Kept: [HOME]/.local/bin/plimsoll-mcp is not ours. The copied program is [HOME]/.local/share/plimsoll/bin/plimsoll-mcp
    Kept: [HOME]/.local/bin/plimsoll-otel is not ours. The copied program is [HOME]/.local/share/plimsoll/bin/plimsoll-otel
    [HOME]/.local/bin is not on your PATH. Add this line and open a new shell:
      export PATH=[HOME]/.local/bin:"$PATH"    # ~/.bashrc
    "#);
    for _ in 0..2 {
        assert_eq!(world.read(link_path(&world, "plimsoll")), "a file of the user's\n");
        assert_eq!(fs::read_link(link_path(&world, "plimsoll-mcp")).unwrap(), other_program);
        assert_eq!(
            fs::read_link(link_path(&world, "plimsoll-otel")).unwrap(),
            Path::new("/nowhere/plimsoll-otel")
        );
        world
            .command(stable_bin_dir(&world).join("plimsoll"), &["uninstall", "--user"])
            .run()
            .expect_success();
    }
    assert!(
        !link_path(&world, "plimsoll-fleet").is_symlink()
            && !link_path(&world, "plimsoll-linear").is_symlink()
    );
}

#[test]
fn uninstall_local_keeps_the_program_links() {
    let world = world_with_npx_package();
    run_from_npx(&world, &["init", "--local"]).expect_success();
    let excluded = world.read(".git/info/exclude");
    assert!(
        excluded.contains(".claude/commands/ralph.md\n"),
        "a path of this machine is not for git: {excluded}"
    );
    run_from_npx(&world, &["uninstall", "--local"]).expect_success();
    assert!(link_path(&world, "plimsoll").is_symlink() && !world.exists(".claude"));
}

#[test]
fn init_creates_no_links_if_a_permanent_program_is_on_the_path() {
    let world = world_with_npx_package();
    let folder = world.home().join("npm-global/bin");
    world.write_program(folder.join("plimsoll"), "#!/bin/sh\n");
    let path = format!("{}:{SYSTEM_PATH}", folder.display());
    let init = world.command(npx_folder(&world).join("plimsoll"), &["init"]).env("PATH", path);
    let stdout = init.run().expect_success().stdout;
    assert!(!stdout.contains("links to") && !world.home().join(".local/bin").exists(), "{stdout}");

    // npx puts its own folder on the PATH, but that folder disappears with npx's cache.
    let npx_bin_folder = world.home().join(".npm/_npx/0f1e2d/node_modules/.bin");
    fs::create_dir_all(&npx_bin_folder).unwrap();
    symlink(npx_folder(&world).join("plimsoll"), npx_bin_folder.join("plimsoll")).unwrap();
    let path = format!("{}:{SYSTEM_PATH}", npx_bin_folder.display());
    let init = world.command(npx_folder(&world).join("plimsoll"), &["init"]).env("PATH", path);
    assert!(init.run().expect_success().stdout.contains("links to"));
}

#[test]
fn upgrade_switches_the_version_behind_unchanged_paths() {
    let world = world_with_npx_package();
    run_from_npx(&world, &["init"]).expect_success();
    let settings = world.read(user_settings_path(&world));
    // The state that an older version leaves.
    let versions = world.home().join(".local/share/plimsoll/versions");
    let old_bin_folder = versions.join("0.0.1/bin");
    fs::create_dir_all(&old_bin_folder).unwrap();
    fs::remove_file(stable_bin_dir(&world)).unwrap();
    symlink(&old_bin_folder, stable_bin_dir(&world)).unwrap();
    let current_bin_folder = versions.join(env!("CARGO_PKG_VERSION")).join("bin");
    let dry_run_output = run_from_npx(&world, &["init", "--dry-run"]).expect_success().stdout;
    assert!(
        dry_run_output.contains(&format!("{}: the programs are copied", current_bin_folder.display()))
            && !dry_run_output.contains("No file would change"),
        "{dry_run_output}"
    );
    run_from_npx(&world, &["init"]).expect_success();
    assert_eq!(world.read(user_settings_path(&world)), settings);
    assert_eq!(fs::canonicalize(stable_bin_dir(&world)).unwrap(), current_bin_folder);
    world.command(stable_bin_dir(&world).join("plimsoll-stop-gate"), &["version"]).run().expect_success();
}

/// A model that runs the command named in the slash command's text and then replies with its output.
fn model_that_runs_the_named_command(arguments: &'static str) -> ScriptedModel {
    ScriptedModel::start(move |request: &Request| {
        let text = request.text_since_last_assistant_message();
        let mut spans = text.split('`');
        let command = spans.find(|span| span.ends_with(arguments) && span.contains("plimsoll"));
        match (request.all_tool_results().first(), command) {
            (None, Some(command)) => Step::bash_call(command),
            (None, None) => Step::from_text(format!("no command in: {text}")),
            (Some((_, printed)), _) => Step::from_text(printed.as_str()),
        }
    })
}

#[test]
fn slash_commands_start_the_program_when_it_is_not_on_the_path() {
    for home in ["home", "it's a \"$HOME\", 100%"] {
        let mut world = world_with_npx_package();
        let home = world.home().with_file_name(home);
        fs::create_dir_all(&home).unwrap();
        world.set_env("XDG_DATA_HOME", home.display().to_string());
        run_from_npx(&world, &["init"]).expect_success();
        for (prompt, arguments, expected) in [
            ("/ralph status", " status", "there is no run"),
            ("/handoff continue", " handoffs --continue", "no session of yours left a handoff"),
        ] {
            let model = model_that_runs_the_named_command(arguments);
            world.put_client_on_path_with_model_and_settings(&model);
            // The only permission is the slash command's own.
            let client_arguments =
                ["-p", prompt, "--model", "opus", "--permission-mode", "default", "--output-format", "json"];
            let session = world.claude(&client_arguments).run().expect_success();
            let result: Value = session.stdout_json();
            let result_text = result["result"].as_str().unwrap_or_default();
            assert!(result_text.to_lowercase().contains(expected), "{home:?}, {prompt}: {result}");
            assert_eq!(result["permission_denials"], Value::Array(Vec::new()), "{result}");
        }
    }
}
