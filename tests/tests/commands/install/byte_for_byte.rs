//! Install, reinstall and uninstall, compared byte for byte.

use super::harness::{BACKUP, InstallFixture, SETTINGS, USER_SETTINGS, hook_events_of};
use plimsoll_protocol::settings::{self, HookSupport};

#[test]
fn uninstall_after_init_restores_every_file() {
    const FOREIGN_HOOK: &str = "Kept: 1 hook of other programs\n";
    for text in [USER_SETTINGS, "{}", "", "{\"hooks\": {}}\n", "{\n\t\"model\": \"opus\"\n}\n"] {
        let fixture = InstallFixture::new();
        fixture.world.write(SETTINGS, text);
        let before = fixture.file_checksums();
        let init = fixture.stable_stdout_of_success(&["init", "--local"]);
        assert_eq!(init.contains(FOREIGN_HOOK), text == USER_SETTINGS, "{init}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(init.replace(FOREIGN_HOOK, ""), @"
            .claude/settings.local.json: hooks for SessionStart, SessionEnd, PostToolBatch, Stop, StopFailure, SubagentStop, PreCompact, PostCompact, PreModelSwitch, and the status line
            Template: modern (`claude` is not on the PATH; with Claude Code before 2.1.207 run `plimsoll init` again)
            Backup of the file as it was: .claude/settings.local.json.plimsoll-backup
            .claude/commands/ralph.md: /ralph
            .claude/commands/handoff.md: /handoff
            .git/info/exclude: run files are ignored by git
            Sessions that are already open keep their old hooks.
            Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
            ");
        }
        assert_eq!(fixture.world.read(BACKUP), text);
        assert_eq!(hook_events_of(&fixture.world.read(SETTINGS)), hook_events_of(settings::MODERN_TEMPLATE));
        let installed = fixture.file_checksums();
        let init = fixture.stable_stdout_of_success(&["init", "--local"]);
        assert_eq!(init.contains(FOREIGN_HOOK), text == USER_SETTINGS, "{init}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(init.replace(FOREIGN_HOOK, ""), @"
            .claude/settings.local.json: our hooks are already there and up to date
            Template: modern (`claude` is not on the PATH; with Claude Code before 2.1.207 run `plimsoll init` again)
            Sessions that are already open keep their old hooks.
            Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
            ");
        }
        assert_eq!(fixture.file_checksums(), installed, "a second init changes nothing");
        insta::allow_duplicates! {
            insta::assert_snapshot!(fixture.stable_stdout_of_success(&["uninstall", "--local"]), @"
            .claude/settings.local.json: removed 9 hooks and our status line
            .claude/settings.local.json: byte for byte as before; the backup is removed
            .claude/commands/ralph.md: removed
            .claude/commands/handoff.md: removed
            .git/info/exclude: our lines are removed
            ");
        }
        assert_eq!(fixture.file_checksums(), before);
        insta::allow_duplicates! {
            insta::assert_snapshot!(fixture.stable_stdout_of_success(&["uninstall", "--local"]), @".claude/settings.local.json: contains nothing of ours");
        }
        assert_eq!(fixture.file_checksums(), before, "a second uninstall changes nothing");
    }
}

#[test]
fn uninstall_removes_the_files_that_init_created() {
    for scope in [&[][..], &["--local"], &["--user"]] {
        let fixture = InstallFixture::new();
        let before = fixture.file_checksums();
        fixture.stdout_of_success(&[&["init"], scope].concat());
        let file = match scope {
            ["--local"] => fixture.world.path(SETTINGS),
            // Without a terminal nobody can be asked, so the user's own settings are used.
            _ => fixture.world.home().join(".claude/settings.json"),
        };
        assert_eq!(fixture.world.read(&file), fixture.expected_settings(HookSupport::Modern));
        assert!(fixture.world.exists(file.with_file_name("commands/ralph.md")));
        fixture.stdout_of_success(&[&["uninstall"], scope].concat());
        assert_eq!(fixture.file_checksums(), before);
        assert!(!fixture.world.exists(".claude"));
    }
}

#[test]
fn a_settings_file_keeps_its_permissions_under_a_strict_umask() {
    let fixture = InstallFixture::new();
    fixture.world.write(SETTINGS, USER_SETTINGS);
    for mode in ["664", "600", "640"] {
        fixture.run_shell_line(&format!("chmod {mode} {SETTINGS}"));
        let output = fixture.run_shell_line("umask 077; \"$BIN/plimsoll\" init --local");
        assert!(output.contains(".claude/settings.local.json: hooks for SessionStart"), "{output}");
        assert_eq!(fixture.run_shell_line(&format!("stat -c %a {SETTINGS}")), format!("{mode}\n"));
        fixture.run_shell_line("umask 077; \"$BIN/plimsoll\" uninstall --local");
        assert_eq!(fixture.run_shell_line(&format!("stat -c %a {SETTINGS}")), format!("{mode}\n"));
    }
}

#[test]
fn a_changed_settings_file_loses_only_our_entries() {
    let fixture = InstallFixture::new();
    fixture.world.write(SETTINGS, USER_SETTINGS);
    fixture.stdout_of_success(&["init", "--local"]);
    let with_user_change = |text: &str| text.replace("\"zeta\"", "\"new\": true,\n    \"zeta\"");
    fixture.world.write(SETTINGS, &with_user_change(&fixture.world.read(SETTINGS)));
    insta::assert_snapshot!(fixture.stable_stdout_of_success(&["uninstall", "--local"]), @"
    .claude/settings.local.json: removed 9 hooks and our status line
    Kept: .claude/settings.local.json.plimsoll-backup, because .claude/settings.local.json was changed since; delete it when you like
    .claude/commands/ralph.md: removed
    .claude/commands/handoff.md: removed
    .git/info/exclude: our lines are removed
    ");
    assert_eq!(fixture.world.read(SETTINGS), with_user_change(USER_SETTINGS));
}

#[test]
fn the_backup_is_the_last_version_without_our_entries() {
    let fixture = InstallFixture::new();
    fixture.world.write(SETTINGS, USER_SETTINGS);
    fixture.stdout_of_success(&["init", "--local"]);
    fixture.world.write(
        SETTINGS,
        &fixture.world.read(SETTINGS).replace("plimsoll-stop-gate", "/old/plimsoll-stop-gate"),
    );
    fixture.stdout_of_success(&["init", "--local"]);
    assert_eq!(fixture.world.read(BACKUP), USER_SETTINGS);
    fixture.stdout_of_success(&["uninstall", "--local"]);
    assert_eq!(fixture.world.read(SETTINGS), USER_SETTINGS);
}

#[test]
fn a_dry_run_says_what_would_change_and_writes_nothing() {
    let fixture = InstallFixture::new();
    fixture.world.write(SETTINGS, USER_SETTINGS);
    let before = fixture.file_checksums();
    insta::assert_snapshot!(fixture.stable_stdout_of_success(&["init", "--local", "--dry-run"]), @"
    Dry run: nothing was written.

    .claude/settings.local.json: hooks for SessionStart, SessionEnd, PostToolBatch, Stop, StopFailure, SubagentStop, PreCompact, PostCompact, PreModelSwitch, and the status line
    Template: modern (`claude` is not on the PATH; with Claude Code before 2.1.207 run `plimsoll init` again)
    Backup of the file as it was: .claude/settings.local.json.plimsoll-backup
    Kept: 1 hook of other programs
    .claude/commands/ralph.md: /ralph
    .claude/commands/handoff.md: /handoff
    .git/info/exclude: run files are ignored by git
    Sessions that are already open keep their old hooks.
    Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.

    Files (--diff shows the changes):
      [PROJECT]/.claude/settings.local.json.plimsoll-backup: new
      [PROJECT]/.claude/settings.local.json: +114 −3 lines
      [PROJECT]/.claude/commands/ralph.md: new
      [PROJECT]/.claude/commands/handoff.md: new
      [PROJECT]/.git/info/exclude: +11 −0 lines
    ");
    let output = fixture.stdout_of_success(&["init", "--local", "--dry-run", "--diff"]);
    let hook = format!("\"command\": \"{}\"", fixture.program_path_text("plimsoll-stop-gate"));
    for part in ["\n+++ ", &hook, "\n+# plimsoll\n", "ralph.md", "nothing was written"] {
        assert!(output.contains(part), "{part}\n{output}");
    }
    assert_eq!(fixture.file_checksums(), before);
    fixture.stdout_of_success(&["init", "--local"]);
    let installed = fixture.file_checksums();
    let output = fixture.stdout_of_success(&["uninstall", "--local", "--dry-run", "--diff"]);
    assert!(output.contains("plimsoll-stop-gate") && output.contains("nothing was written"), "{output}");
    assert_eq!(fixture.file_checksums(), installed);
}

#[test]
fn unreadable_settings_are_refused_and_left_unchanged() {
    let error_for = |text: &str| {
        let fixture = InstallFixture::new();
        fixture.world.write(SETTINGS, text);
        let before = fixture.file_checksums();
        let error = fixture.error_of_failing_command(&["init", "--local"]);
        assert_eq!(fixture.file_checksums(), before);
        error
    };
    insta::assert_snapshot!(error_for("{\n  // mine\n  \"a\": 1\n}\n"), @"
    error: [PROJECT]/.claude/settings.local.json: line 2, column 3: key must be a string (a comment? Claude Code does not load a file that has one)
    hint: nothing was changed; fix the file and try again
    ");
    insta::assert_snapshot!(error_for("{\n  \"a\": 1,\n}\n"), @"
    error: [PROJECT]/.claude/settings.local.json: line 3, column 1: key must be a string (a trailing comma? Claude Code does not load a file that has one)
    hint: nothing was changed; fix the file and try again
    ");
    insta::assert_snapshot!(error_for("{\"hooks\": []}"), @"
    error: [PROJECT]/.claude/settings.local.json: line 1, column 11: `hooks` is not an object
    hint: nothing was changed; fix the file and try again
    ");
}
