//! `plimsoll init` with different clients, own slash commands, links and worktrees, and without git.

use super::harness::{InstallFixture, SETTINGS, USER_SETTINGS, hook_events_of};
use plimsoll_protocol::settings::{self, HookSupport};
use plimsoll_testkit::world::World;
use serde_json::json;

#[test]
fn usage_errors_exit_with_2_and_failures_with_1() {
    let fixture = InstallFixture::new();
    for options in [
        &["--user", "--local"][..],
        &["--local", "--project"],
        &["--user", "--project"],
        &["--entries"],
        &["--local", "--entries"],
        &["--project", "--memory"],
        &["--project", "--entries", "--wrap"],
    ] {
        let finished = fixture.run_plimsoll(&[&["init"], options].concat());
        assert_eq!(finished.code, Some(2), "{options:?}: {finished:?}");
    }
    fixture.world.write(".claude", "a file where a folder should be");
    insta::assert_snapshot!(fixture.error_of_failing_command(&["init", "--local"]), @"
    error: cannot write [PROJECT]/.claude/settings.local.json: Not a directory (os error 20)
    hint: check the path, its permissions and the free space
    ");
}

#[test]
fn template_matches_the_client_on_the_path() {
    let template_line = |version: Option<&str>, template: HookSupport| {
        let fixture = InstallFixture::new();
        if let Some(version) = version {
            fixture.install_fake_client(version);
        }
        let line = fixture.stdout_lines_starting_with("Template", &["init", "--local"]);
        assert_eq!(fixture.world.read(SETTINGS), fixture.expected_settings(template));
        line
    };
    insta::assert_snapshot!(template_line(None, HookSupport::Modern), @"Template: modern (`claude` is not on the PATH; with Claude Code before 2.1.207 run `plimsoll init` again)");
    insta::assert_snapshot!(template_line(Some("2.1.329 (Claude Code)"), HookSupport::Modern), @"Template: modern (Claude Code is 2.1.329)");
    insta::assert_snapshot!(template_line(Some("2.1.101 (Claude Code)"), HookSupport::Classic), @"Template: classic (Claude Code is 2.1.101; from 2.1.207 on run `plimsoll init` again)");
    insta::assert_snapshot!(template_line(Some("1.0.128 (Claude Code)"), HookSupport::Classic), @"Template: classic (Claude Code is 1.0.128; from 2.1.207 on run `plimsoll init` again)");
    insta::assert_snapshot!(template_line(Some(""), HookSupport::Classic), @"Template: classic ([HOME]/clients/claude does not report its version, and every version knows these events)");
}

#[test]
fn upgraded_client_gets_the_modern_template_in_the_same_file() {
    let fixture = InstallFixture::new();
    fixture.world.write(SETTINGS, USER_SETTINGS);
    fixture.install_fake_client("1.0.128 (Claude Code)");
    fixture.stdout_of_success(&["init", "--local"]);
    fixture.install_fake_client("2.1.329 (Claude Code)");
    fixture.stdout_of_success(&["init", "--local"]);
    assert_eq!(hook_events_of(&fixture.world.read(SETTINGS)), hook_events_of(settings::MODERN_TEMPLATE));
    fixture.stdout_of_success(&["uninstall", "--local"]);
    assert_eq!(fixture.world.read(SETTINGS), USER_SETTINGS);
}

#[test]
fn init_keeps_and_names_the_users_status_line_and_slash_command() {
    let fixture = InstallFixture::new();
    let own_command = "Run my own loop with $ARGUMENTS\n";
    fixture.world.write(".claude/commands/ralph.md", own_command);
    fixture.world.write(
        SETTINGS,
        r#"{"statusLine": {"type": "command", "command": "starship"}, "disableAllHooks": true}"#,
    );
    let before = fixture.file_checksums();
    insta::assert_snapshot!(fixture.stable_stdout_of_success(&["init", "--local"]), @r#"
    .claude/settings.local.json: hooks for SessionStart, SessionEnd, PostToolBatch, Stop, StopFailure, SubagentStop, PreCompact, PostCompact, PreModelSwitch
    Template: modern (`claude` is not on the PATH; with Claude Code before 2.1.207 run `plimsoll init` again)
    Backup of the file as it was: .claude/settings.local.json.plimsoll-backup
    Kept: your status line `starship`. To let Plimsoll read usage through it: `plimsoll init --wrap`.
    Warning: this file says "disableAllHooks": true, so no hook will run.
    Kept: .claude/commands/ralph.md is your own; /ralph is not installed.
    .claude/commands/handoff.md: /handoff
    .git/info/exclude: run files are ignored by git
    Sessions that are already open keep their old hooks.
    Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
    "#);
    assert_eq!(fixture.world.read(".claude/commands/ralph.md"), own_command);
    assert_eq!(fixture.world.read_json(SETTINGS)["statusLine"]["command"], "starship");
    fixture.stdout_of_success(&["uninstall", "--local"]);
    assert_eq!(fixture.file_checksums(), before);
}

#[test]
fn wrap_option_measures_through_the_users_status_line() {
    let fixture = InstallFixture::new();
    fixture.run_shell_line(
        "cp \"$REAL\" \"$BIN\"/plimsoll-statusline"
            .replace("$REAL", &built_program_path("plimsoll-statusline"))
            .as_str(),
    );
    let user_command = "echo \"theirs: $(grep -c session_id)\"";
    let before = json!({"statusLine": {"type": "command", "command": user_command}}).to_string();
    fixture.world.write(SETTINGS, &before);
    insta::assert_snapshot!(fixture.stdout_lines_starting_with("Kept", &["init", "--local"]), @r#"Kept: your status line `echo "theirs: $(grep -c session_id)"`. To let Plimsoll read usage through it: `plimsoll init --wrap`."#);
    fixture.stdout_of_success(&["init", "--local", "--wrap"]);
    let command = fixture.world.read_json(SETTINGS)["statusLine"]["command"].as_str().unwrap().to_owned();
    let payload = json!({
        "session_id": "s-1", "workspace": {"project_dir": fixture.world.project()},
        "context_window": {"context_window_size": 200_000, "total_input_tokens": 50_000, "used_percentage": 25}
    });
    let stdout = fixture
        .world
        .command("sh", &["-c", &command])
        .stdin(payload.to_string())
        .run()
        .expect_success()
        .stdout;
    assert_eq!(stdout.trim(), "theirs: 1");
    assert_eq!(fixture.world.read_json(".claude/plimsoll/sessions/s-1.status.json")["used"], 50_000);
    fixture.stdout_of_success(&["init", "--local"]);
    assert_eq!(fixture.world.read_json(SETTINGS)["statusLine"]["command"], command.as_str(), "it stays so");
    fixture.stdout_of_success(&["uninstall", "--local"]);
    assert_eq!(fixture.world.read(SETTINGS), before);
}

fn built_program_path(program: &str) -> String {
    plimsoll_testkit::find_or_build_bin_dir().join(program).display().to_string()
}

#[test]
fn init_updates_our_command_file_and_uninstall_keeps_a_changed_one() {
    let fixture = InstallFixture::new();
    fixture.stdout_of_success(&["init", "--local"]);
    let our_text = fixture.world.read(".claude/commands/handoff.md");
    fixture.world.write(".claude/commands/handoff.md", &format!("{our_text}\nold words\n"));
    fixture.stdout_of_success(&["init", "--local"]);
    assert_eq!(fixture.world.read(".claude/commands/handoff.md"), our_text);
    fixture.world.write(".claude/commands/handoff.md", &format!("{our_text}\nmy words\n"));
    insta::assert_snapshot!(fixture.stable_stdout_of_success(&["uninstall", "--local"]), @"
    .claude/settings.local.json: removed 9 hooks and our status line
    .claude/settings.local.json: removed; it contained nothing else
    .claude/commands/ralph.md: removed
    Kept: .claude/commands/handoff.md, because it was changed
    .git/info/exclude: our lines are removed
    ");
    assert!(fixture.world.read(".claude/commands/handoff.md").ends_with("my words\n"));
}

#[test]
fn uninstalling_one_scope_keeps_commands_and_excludes_for_the_other() {
    let fixture = InstallFixture::new();
    fixture.stdout_of_success(&["init", "--project", "--entries"]);
    fixture.stdout_of_success(&["init", "--local"]);
    insta::assert_snapshot!(fixture.stable_stdout_of_success(&["uninstall", "--local"]), @"
    .claude/settings.local.json: removed 9 hooks and our status line
    .claude/settings.local.json: removed; it contained nothing else
    .claude/settings.json also has our hooks: `plimsoll uninstall --project` removes them
    Kept: the slash commands and git's exclude lines, for our hooks in .claude/settings.json
    ");
    assert!(fixture.world.exists(".claude/commands/ralph.md"));
    assert!(fixture.world.read(".git/info/exclude").contains(".claude/plimsoll/"));
    fixture.stdout_of_success(&["uninstall", "--project"]);
    assert!(!fixture.world.exists(".claude"));
}

#[test]
fn init_writes_through_a_linked_settings_file() {
    let fixture = InstallFixture::new();
    fixture.run_shell_line("mkdir -p .claude dotfiles; echo '{}' > dotfiles/claude.json; ln -s ../dotfiles/claude.json .claude/settings.local.json");
    fixture.stdout_of_success(&["init", "--local"]);
    assert!(fixture.world.read("dotfiles/claude.json").contains("plimsoll-stop-gate"));
    fixture.stdout_of_success(&["uninstall", "--local"]);
    assert_eq!(fixture.world.read("dotfiles/claude.json"), "{}\n");
    assert_eq!(fixture.run_shell_line("readlink .claude/settings.local.json"), "../dotfiles/claude.json\n");
}

#[test]
fn git_ignores_run_files_in_worktrees_and_subfolders() {
    let fixture = InstallFixture::new();
    fixture.run_shell_line("git worktree add -q ../tree && mkdir -p ../tree/deep");
    for folder in ["", "../tree", "../tree/deep"] {
        let project = fixture.world.path(folder);
        fixture
            .world
            .command(fixture.bin.join("plimsoll"), &["init", "--local"])
            .cwd(&project)
            .run()
            .expect_success();
        for file in ["ralph-state.json", "handoffs/one.md", "plimsoll/journal.jsonl"] {
            fixture.world.write(project.join(".claude").join(file), "x");
        }
    }
    for folder in [".", "../tree", "../tree/deep"] {
        let status = fixture.run_shell_line(&format!("cd {folder} && git status --short -uall"));
        assert!(
            status.contains(".claude/settings.local.json") && !status.contains("ralph-state"),
            "{status}"
        );
        assert!(!status.contains("handoffs") && !status.contains("plimsoll/journal"), "{status}");
    }
}

#[test]
fn init_works_in_a_project_without_git() {
    let world = World::without_git();
    let finished = world.plimsoll(&["init", "--local"]).run().expect_success();
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stdout), @"
    .claude/settings.local.json: hooks for SessionStart, SessionEnd, PostToolBatch, Stop, StopFailure, SubagentStop, PreCompact, PostCompact, PreModelSwitch, and the status line
    Template: modern (`claude` is not on the PATH; with Claude Code before 2.1.207 run `plimsoll init` again)
    .claude/commands/ralph.md: /ralph
    .claude/commands/handoff.md: /handoff
    Not a git repository: there is no exclude file to write.
    Sessions that are already open keep their old hooks.
    Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
    ");
}
