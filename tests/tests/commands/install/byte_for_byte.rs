//! In, again and out: every byte of every file.

use super::harness::{BACKUP, FOREIGN, SETTINGS, Stage, events_of};
use plimsoll_protocol::settings::{self, HookSupport};

#[test]
fn in_and_out_again_leaves_every_file_as_it_was() {
    const FOREIGN_HOOK: &str = "Kept: 1 hook of other programs\n";
    for text in [FOREIGN, "{}", "", "{\"hooks\": {}}\n", "{\n\t\"model\": \"opus\"\n}\n"] {
        let stage = Stage::new();
        stage.world.write(SETTINGS, text);
        let before = stage.files();
        let init = stage.printed(&["init", "--local"]);
        assert_eq!(init.contains(FOREIGN_HOOK), text == FOREIGN, "{init}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(init.replace(FOREIGN_HOOK, ""), @"
            .claude/settings.local.json: hooks for SessionStart, SessionEnd, PostToolBatch, Stop, StopFailure, SubagentStop, PreCompact, PostCompact, and the status line
            Template: modern (`claude` is not on the PATH; with a client before 2.1.207 run `plimsoll init` again)
            Backup of the file as it was: .claude/settings.local.json.plimsoll-backup
            .claude/commands/ralph.md: /ralph
            .claude/commands/handoff.md: /handoff
            .git/info/exclude: run files are ignored by git
            Sessions that are already open keep their old hooks.
            Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
            ");
        }
        assert_eq!(stage.world.read(BACKUP), text);
        assert_eq!(events_of(&stage.world.read(SETTINGS)), events_of(settings::MODERN_TEMPLATE));
        let installed = stage.files();
        let init = stage.printed(&["init", "--local"]);
        assert_eq!(init.contains(FOREIGN_HOOK), text == FOREIGN, "{init}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(init.replace(FOREIGN_HOOK, ""), @"
            .claude/settings.local.json: our hooks are already there and up to date
            Template: modern (`claude` is not on the PATH; with a client before 2.1.207 run `plimsoll init` again)
            Sessions that are already open keep their old hooks.
            Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
            ");
        }
        assert_eq!(stage.files(), installed, "a second init changes nothing");
        insta::allow_duplicates! {
            insta::assert_snapshot!(stage.printed(&["uninstall", "--local"]), @"
            .claude/settings.local.json: removed 8 hooks and our status line
            .claude/settings.local.json: byte for byte as before; the backup is removed
            .claude/commands/ralph.md: removed
            .claude/commands/handoff.md: removed
            .git/info/exclude: our lines are removed
            ");
        }
        assert_eq!(stage.files(), before);
        insta::allow_duplicates! {
            insta::assert_snapshot!(stage.printed(&["uninstall", "--local"]), @".claude/settings.local.json: contains nothing of ours");
        }
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
    insta::assert_snapshot!(stage.printed(&["uninstall", "--local"]), @"
    .claude/settings.local.json: removed 8 hooks and our status line
    Kept: .claude/settings.local.json.plimsoll-backup, because .claude/settings.local.json was changed since; delete it when you like
    .claude/commands/ralph.md: removed
    .claude/commands/handoff.md: removed
    .git/info/exclude: our lines are removed
    ");
    assert_eq!(stage.world.read(SETTINGS), changed(FOREIGN));
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
    insta::assert_snapshot!(stage.printed(&["init", "--local", "--dry-run"]), @"
    Dry run: nothing was written.

    .claude/settings.local.json: hooks for SessionStart, SessionEnd, PostToolBatch, Stop, StopFailure, SubagentStop, PreCompact, PostCompact, and the status line
    Template: modern (`claude` is not on the PATH; with a client before 2.1.207 run `plimsoll init` again)
    Backup of the file as it was: .claude/settings.local.json.plimsoll-backup
    Kept: 1 hook of other programs
    .claude/commands/ralph.md: /ralph
    .claude/commands/handoff.md: /handoff
    .git/info/exclude: run files are ignored by git
    Sessions that are already open keep their old hooks.
    Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.

    Files (--diff shows the changes):
      [PROJECT]/.claude/settings.local.json.plimsoll-backup: new
      [PROJECT]/.claude/settings.local.json: +102 −3 lines
      [PROJECT]/.claude/commands/ralph.md: new
      [PROJECT]/.claude/commands/handoff.md: new
      [PROJECT]/.git/info/exclude: +11 −0 lines
    ");
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
    let error_for = |text: &str| {
        let stage = Stage::new();
        stage.world.write(SETTINGS, text);
        let before = stage.files();
        let error = stage.error_of(&["init", "--local"]);
        assert_eq!(stage.files(), before);
        error
    };
    insta::assert_snapshot!(error_for("{\n  // mine\n  \"a\": 1\n}\n"), @"
    plimsoll: [PROJECT]/.claude/settings.local.json: line 2, column 3: key must be a string (a comment? Claude Code does not load a file that has one)
    hint: nothing was changed; fix the file and try again
    ");
    insta::assert_snapshot!(error_for("{\n  \"a\": 1,\n}\n"), @"
    plimsoll: [PROJECT]/.claude/settings.local.json: line 3, column 1: key must be a string (a trailing comma? Claude Code does not load a file that has one)
    hint: nothing was changed; fix the file and try again
    ");
    insta::assert_snapshot!(error_for("{\"hooks\": []}"), @"
    plimsoll: [PROJECT]/.claude/settings.local.json: line 1, column 11: `hooks` is not an object
    hint: nothing was changed; fix the file and try again
    ");
}
