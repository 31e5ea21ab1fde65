//! The paths by which settings name the programs: a path that stays valid when a package manager upgrades them, and never one
//! that comes from a cloned repository.

use super::harness::{InstallFixture, SETTINGS};
use plimsoll_protocol::settings::{self, HookSupport};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Creates a link in `folder` to each of our programs.
fn link_all_programs(fixture: &InstallFixture, folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for entry in fs::read_dir(&fixture.bin).unwrap().flatten() {
        symlink(entry.path(), folder.join(entry.file_name())).unwrap();
    }
}

/// Runs `init --local` with this PATH and returns the folder of the hook programs that the settings name.
fn hook_folder_after_init(fixture: &InstallFixture, program: &Path, path: &[PathBuf]) -> PathBuf {
    let path: Vec<String> = path.iter().map(|folder| folder.display().to_string()).collect();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", path.join(":"));
    fixture.world.command(program, &["init", "--local"]).env("PATH", path).run().expect_success();
    let hooks = settings::find_our_hooks(&fixture.world.read(SETTINGS)).unwrap();
    let mut folders: Vec<PathBuf> =
        hooks.iter().map(|hook| Path::new(&hook.command).parent().unwrap().to_owned()).collect();
    folders.dedup();
    let [folder] = folders.try_into().expect("one folder");
    let status_line_command =
        fixture.world.read_json(SETTINGS)["statusLine"]["command"].as_str().unwrap().to_owned();
    assert_eq!(Path::new(&status_line_command), folder.join("plimsoll-statusline"));
    folder
}

#[test]
fn settings_use_the_stable_links_of_a_package_manager() {
    let fixture = InstallFixture::with_program_folder("Cellar/plimsoll/0.1.0/bin", false);
    let brew = fixture.world.home().join("brew/bin");
    link_all_programs(&fixture, &brew);
    // A folder that has only a link to `plimsoll` is not an installation.
    let handmade = fixture.world.home().join("handmade");
    fs::create_dir_all(&handmade).unwrap();
    symlink(fixture.bin.join("plimsoll"), handmade.join("plimsoll")).unwrap();
    assert_eq!(
        hook_folder_after_init(&fixture, &brew.join("plimsoll"), &[handmade.clone(), brew.clone()]),
        brew
    );
    assert_eq!(hook_folder_after_init(&fixture, &brew.join("plimsoll"), &[]), brew, "as it was started");
    assert_eq!(
        hook_folder_after_init(&fixture, &fixture.bin.join("plimsoll"), &[handmade]),
        fixture.bin,
        "no better one is known"
    );
    // The home folder is not a project, so links in folders below it may be used.
    let home = fixture.world.home();
    let path = format!("{}:/usr/bin:/bin", brew.display());
    fixture
        .world
        .command(brew.join("plimsoll"), &["init"])
        .cwd(&home)
        .env("PATH", path)
        .run()
        .expect_success();
    let text = fixture.world.read(home.join(".claude/settings.json"));
    assert!(text.contains(&brew.join("plimsoll-stop-gate").display().to_string()), "{text}");
}

#[test]
fn settings_use_no_project_folder_and_no_relative_path() {
    let fixture = InstallFixture::with_program_folder("real", false);
    let project_folder = fixture.world.path("tools");
    link_all_programs(&fixture, &project_folder);
    let program = fixture.bin.join("plimsoll");
    assert_eq!(hook_folder_after_init(&fixture, &program, &[project_folder, "tools".into()]), fixture.bin);
}

#[test]
fn hooks_with_bare_program_names_are_replaced_and_removed_as_ours() {
    let fixture = InstallFixture::new();
    let settings_with_bare_names =
        settings::install_or_update_our_entries("", HookSupport::Modern, &str::to_owned).unwrap().text;
    fixture.world.write(SETTINGS, &settings_with_bare_names);
    let doctor = fixture.run_plimsoll(&["doctor", "--json"]).stdout_json();
    let has_finding =
        doctor["findings"].as_array().unwrap().iter().any(|one| one["code"] == "settings.bare_name");
    assert!(has_finding, "{doctor}");
    fixture.stdout_of_success(&["init", "--local"]);
    assert_eq!(fixture.world.read(SETTINGS), fixture.expected_settings(HookSupport::Modern));
    fixture.stdout_of_success(&["uninstall", "--local"]);
    fixture.world.write(SETTINGS, &settings_with_bare_names);
    insta::assert_snapshot!(fixture.stable_stdout_of_success(&["uninstall", "--local"]), @"
    .claude/settings.local.json: removed 9 hooks and our status line
    .claude/settings.local.json: removed; it contained nothing else
    ");
}

#[test]
fn shared_slash_commands_use_the_bare_program_name() {
    let fixture = InstallFixture::new();
    fixture.stdout_of_success(&["init", "--local"]);
    let local_command_text = fixture.world.read(".claude/commands/ralph.md");
    assert!(
        local_command_text.contains(&format!("`{} status`", fixture.program_path_text("plimsoll"))),
        "{local_command_text}"
    );
    assert!(fixture.world.read(".git/info/exclude").contains(".claude/commands/ralph.md\n"));
    fixture.stdout_of_success(&["init", "--project", "--entries"]);
    for arguments in [&["init", "--local"][..], &["init", "--project", "--entries"]] {
        fixture.stdout_of_success(arguments);
        for (name, text) in plimsoll_flows::install::SLASH_COMMAND_FILES {
            assert_eq!(fixture.world.read(format!(".claude/commands/{name}")), text, "{arguments:?}");
        }
        let excluded = fixture.world.read(".git/info/exclude");
        assert!(!excluded.contains("commands") && excluded.contains(".claude/handoffs/"), "{excluded}");
    }
}
