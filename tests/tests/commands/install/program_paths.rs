//! How settings name programs that a package manager keeps: by the path that its next version keeps, and by no path that a clone can
//! have brought.

use super::harness::{SETTINGS, Stage};
use plimsoll_protocol::settings::{self, HookSupport};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Lets a folder have a link to each program of the stage.
fn link_all(stage: &Stage, folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for entry in fs::read_dir(&stage.bin).unwrap().flatten() {
        symlink(entry.path(), folder.join(entry.file_name())).unwrap();
    }
}

/// Runs `init --local` with this PATH, and says in which folder the settings name the hooks.
fn named_in(stage: &Stage, program: &Path, path: &[PathBuf]) -> PathBuf {
    let path: Vec<String> = path.iter().map(|folder| folder.display().to_string()).collect();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", path.join(":"));
    stage.world.command(program, &["init", "--local"]).env("PATH", path).run().expect_success();
    let hooks = settings::find_our_hooks(&stage.world.read(SETTINGS)).unwrap();
    let mut folders: Vec<PathBuf> =
        hooks.iter().map(|hook| Path::new(&hook.command).parent().unwrap().to_owned()).collect();
    folders.dedup();
    let [folder] = folders.try_into().expect("one folder");
    let line = stage.world.json(SETTINGS)["statusLine"]["command"].as_str().unwrap().to_owned();
    assert_eq!(Path::new(&line), folder.join("plimsoll-statusline"));
    folder
}

#[test]
fn settings_name_the_links_that_a_package_manager_keeps() {
    let stage = Stage::with_folder("Cellar/plimsoll/0.1.0/bin", false);
    let brew = stage.world.home().join("brew/bin");
    link_all(&stage, &brew);
    // A link to the command alone is no installation.
    let handmade = stage.world.home().join("handmade");
    fs::create_dir_all(&handmade).unwrap();
    symlink(stage.bin.join("plimsoll"), handmade.join("plimsoll")).unwrap();
    assert_eq!(named_in(&stage, &brew.join("plimsoll"), &[handmade.clone(), brew.clone()]), brew);
    assert_eq!(named_in(&stage, &brew.join("plimsoll"), &[]), brew, "as it was started");
    assert_eq!(
        named_in(&stage, &stage.bin.join("plimsoll"), &[handmade]),
        stage.bin,
        "no better one is known"
    );
    // In the home folder, which is no project: the user's own folders lie in it.
    let home = stage.world.home();
    let path = format!("{}:/usr/bin:/bin", brew.display());
    stage.world.command(brew.join("plimsoll"), &["init"]).cwd(&home).env("PATH", path).run().expect_success();
    let text = stage.world.read(home.join(".claude/settings.json"));
    assert!(text.contains(&brew.join("plimsoll-stop-gate").display().to_string()), "{text}");
}

#[test]
fn settings_name_no_folder_of_the_project_and_no_relative_one() {
    let stage = Stage::with_folder("real", false);
    let inside = stage.world.path("tools");
    link_all(&stage, &inside);
    let program = stage.bin.join("plimsoll");
    assert_eq!(named_in(&stage, &program, &[inside, "tools".into()]), stage.bin);
}

#[test]
fn entries_by_bare_name_are_ours_and_get_a_path() {
    let stage = Stage::new();
    let bare = settings::install("", HookSupport::Modern, &str::to_owned).unwrap().text;
    stage.world.write(SETTINGS, &bare);
    let doctor = stage.plimsoll(&["doctor", "--json"]).json();
    let has_finding =
        doctor["findings"].as_array().unwrap().iter().any(|one| one["code"] == "settings.bare_name");
    assert!(has_finding, "{doctor}");
    stage.done(&["init", "--local"]);
    assert_eq!(stage.world.read(SETTINGS), stage.settings(HookSupport::Modern));
    stage.done(&["uninstall", "--local"]);
    stage.world.write(SETTINGS, &bare);
    insta::assert_snapshot!(stage.printed(&["uninstall", "--local"]), @"
    .claude/settings.local.json: removed 8 hooks and our status line
    .claude/settings.local.json: removed; it contained nothing else
    ");
}

#[test]
fn the_teams_slash_commands_keep_the_bare_name() {
    let stage = Stage::new();
    stage.done(&["init", "--local"]);
    let own = stage.world.read(".claude/commands/ralph.md");
    assert!(own.contains(&format!("`{} status`", stage.named("plimsoll"))), "{own}");
    assert!(stage.world.read(".git/info/exclude").contains(".claude/commands/ralph.md\n"));
    stage.done(&["init", "--project", "--entries"]);
    for arguments in [&["init", "--local"][..], &["init", "--project", "--entries"]] {
        stage.done(arguments);
        for (name, text) in plimsoll_flows::install::COMMANDS {
            assert_eq!(stage.world.read(format!(".claude/commands/{name}")), text, "{arguments:?}");
        }
        let excluded = stage.world.read(".git/info/exclude");
        assert!(!excluded.contains("commands") && excluded.contains(".claude/handoffs/"), "{excluded}");
    }
}
