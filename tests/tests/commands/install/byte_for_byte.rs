//! In, again and out: every byte of every file.

use super::harness::{BACKUP, FOREIGN, SETTINGS, Stage, events_of};
use plimsoll_protocol::settings::{self, HookSupport};

#[test]
fn in_and_out_again_leaves_every_file_as_it_was() {
    for text in [FOREIGN, "{}", "", "{\"hooks\": {}}\n", "{\n\t\"model\": \"opus\"\n}\n"] {
        let stage = Stage::new();
        stage.world.write(SETTINGS, text);
        let before = stage.files();
        let said = stage.done(&["init", "--local"]);
        assert!(said.contains(".claude/settings.local.json: hooks for SessionStart"), "{said}");
        assert_eq!(stage.world.read(BACKUP), text);
        assert_eq!(events_of(&stage.world.read(SETTINGS)), events_of(settings::MODERN));
        let installed = stage.files();
        let again = stage.done(&["init", "--local"]);
        assert!(again.contains("already there"), "{again}");
        assert_eq!(stage.files(), installed, "a second init changes nothing");
        let said = stage.done(&["uninstall", "--local"]);
        assert!(said.contains("byte for byte as before"), "{said}");
        assert_eq!(stage.files(), before);
        let again = stage.done(&["uninstall", "--local"]);
        assert!(again.contains("nothing of ours"), "{again}");
        assert_eq!(stage.files(), before, "a second uninstall changes nothing");
    }
}

#[test]
fn files_that_init_made_are_gone_after_uninstall() {
    for scope in [&[][..], &["--local"], &["--user"]] {
        let stage = Stage::new();
        let before = stage.files();
        stage.done(&[&["init"], scope].concat());
        let file = match scope {
            ["--local"] => stage.world.path(SETTINGS),
            // Without a terminal nobody can be asked: the user's own.
            _ => stage.world.home().join(".claude/settings.json"),
        };
        assert_eq!(stage.world.read(&file), stage.settings(HookSupport::Modern));
        assert!(stage.world.exists(file.with_file_name("commands/ralph.md")));
        stage.done(&[&["uninstall"], scope].concat());
        assert_eq!(stage.files(), before);
        assert!(!stage.world.exists(".claude"));
    }
}

#[test]
fn a_settings_file_keeps_its_permissions_under_a_strict_umask() {
    let stage = Stage::new();
    stage.world.write(SETTINGS, FOREIGN);
    for mode in ["664", "600", "640"] {
        stage.shell(&format!("chmod {mode} {SETTINGS}"));
        let said = stage.shell("umask 077; \"$BIN/plimsoll\" init --local");
        assert!(said.contains(".claude/settings.local.json: hooks for SessionStart"), "{said}");
        assert_eq!(stage.shell(&format!("stat -c %a {SETTINGS}")), format!("{mode}\n"));
        stage.shell("umask 077; \"$BIN/plimsoll\" uninstall --local");
        assert_eq!(stage.shell(&format!("stat -c %a {SETTINGS}")), format!("{mode}\n"));
    }
}

#[test]
fn a_settings_file_changed_since_loses_our_entries_alone() {
    let stage = Stage::new();
    stage.world.write(SETTINGS, FOREIGN);
    stage.done(&["init", "--local"]);
    let changed = |text: &str| text.replace("\"zeta\"", "\"new\": true,\n    \"zeta\"");
    stage.world.write(SETTINGS, &changed(&stage.world.read(SETTINGS)));
    let said = stage.done(&["uninstall", "--local"]);
    assert_eq!(stage.world.read(SETTINGS), changed(FOREIGN));
    assert!(said.contains("Kept: .claude/settings.local.json.plimsoll-backup"), "{said}");
}

#[test]
fn the_backup_is_the_last_text_without_us_and_no_later_one() {
    let stage = Stage::new();
    stage.world.write(SETTINGS, FOREIGN);
    stage.done(&["init", "--local"]);
    stage.world.write(
        SETTINGS,
        &stage.world.read(SETTINGS).replace("plimsoll-stop-gate", "/old/plimsoll-stop-gate"),
    );
    stage.done(&["init", "--local"]);
    assert_eq!(stage.world.read(BACKUP), FOREIGN);
    stage.done(&["uninstall", "--local"]);
    assert_eq!(stage.world.read(SETTINGS), FOREIGN);
}

#[test]
fn a_dry_run_says_what_would_change_and_writes_nothing() {
    let stage = Stage::new();
    stage.world.write(SETTINGS, FOREIGN);
    let before = stage.files();
    let said = stage.done(&["init", "--local", "--dry-run"]);
    let files =
        said.split_once("Files (--diff shows the changes):\n").map(|(_, files)| files).unwrap_or_default();
    for part in ["settings.local.json: +", "ralph.md: new\n", ".git/info/exclude: "] {
        assert!(files.contains(part), "{part}\n{said}");
    }
    assert!(said.starts_with("Dry run: nothing was written.\n") && said.lines().count() <= 24, "{said}");
    let said = stage.done(&["init", "--local", "--dry-run", "--diff"]);
    let hook = format!("\"command\": \"{}\"", stage.named("plimsoll-stop-gate"));
    for part in ["\n+++ ", &hook, "\n+# plimsoll\n", "ralph.md", "nothing was written"] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert_eq!(stage.files(), before);
    stage.done(&["init", "--local"]);
    let installed = stage.files();
    let said = stage.done(&["uninstall", "--local", "--dry-run", "--diff"]);
    assert!(said.contains("plimsoll-stop-gate") && said.contains("nothing was written"), "{said}");
    assert_eq!(stage.files(), installed);
}

#[test]
fn what_cannot_be_read_is_refused_and_left() {
    for (text, place) in [
        ("{\n  // mine\n  \"a\": 1\n}\n", "line 2, column 3"),
        ("{\n  \"a\": 1,\n}\n", "line 3, column 1"),
        ("{\"hooks\": []}", "`hooks` is not an object"),
    ] {
        let stage = Stage::new();
        stage.world.write(SETTINGS, text);
        let before = stage.files();
        let finished = stage.plimsoll(&["init", "--local"]);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""));
        assert!(finished.stderr.contains(place) && finished.stderr.contains(SETTINGS), "{}", finished.stderr);
        assert_eq!(stage.files(), before);
    }
}
