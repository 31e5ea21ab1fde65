//! What the user has: another client, commands, links, worktrees, no git.

use super::harness::{FOREIGN, SETTINGS, Stage, events_of};
use plimsoll_protocol::settings::{self, HookSupport};
use plimsoll_testkit::world::World;
use serde_json::json;

#[test]
fn wrong_usage_is_told_from_failure() {
    let stage = Stage::new();
    for contradiction in [
        &["--user", "--local"][..],
        &["--local", "--project"],
        &["--user", "--project"],
        &["--entries"],
        &["--local", "--entries"],
        &["--project", "--memory"],
        &["--project", "--entries", "--wrap"],
    ] {
        let finished = stage.plimsoll(&[&["init"], contradiction].concat());
        assert_eq!(finished.code, Some(2), "{contradiction:?}: {finished:?}");
    }
    stage.world.write(".claude", "a file where a folder should be");
    insta::assert_snapshot!(stage.error_of(&["init", "--local"]), @"
    plimsoll: cannot write [PROJECT]/.claude/settings.local.json: Not a directory (os error 20)
    hint: check the path, its permissions and the free space
    ");
}

#[test]
fn the_template_fits_the_client_on_the_path() {
    let choice = |version: Option<&str>, template: HookSupport| {
        let stage = Stage::new();
        if let Some(version) = version {
            stage.client(version);
        }
        let line = stage.printed_lines("Template", &["init", "--local"]);
        assert_eq!(stage.world.read(SETTINGS), stage.settings(template));
        line
    };
    insta::assert_snapshot!(choice(None, HookSupport::Modern), @"Template: modern (`claude` is not on the PATH; with a client before 2.1.207 run `plimsoll init` again)");
    insta::assert_snapshot!(choice(Some("2.1.329 (Claude Code)"), HookSupport::Modern), @"Template: modern (the client is 2.1.329)");
    insta::assert_snapshot!(choice(Some("2.1.101 (Claude Code)"), HookSupport::Classic), @"Template: classic (the client is 2.1.101; from 2.1.207 on run `plimsoll init` again)");
    insta::assert_snapshot!(choice(Some("1.0.128 (Claude Code)"), HookSupport::Classic), @"Template: classic (the client is 1.0.128; from 2.1.207 on run `plimsoll init` again)");
    insta::assert_snapshot!(choice(Some(""), HookSupport::Classic), @"Template: classic ([HOME]/clients/claude does not report its version, and every version knows these events)");
}

#[test]
fn a_newer_client_gets_the_other_template_in_the_same_file() {
    let stage = Stage::new();
    stage.world.write(SETTINGS, FOREIGN);
    stage.client("1.0.128 (Claude Code)");
    stage.done(&["init", "--local"]);
    stage.client("2.1.329 (Claude Code)");
    stage.done(&["init", "--local"]);
    assert_eq!(events_of(&stage.world.read(SETTINGS)), events_of(settings::MODERN_TEMPLATE));
    stage.done(&["uninstall", "--local"]);
    assert_eq!(stage.world.read(SETTINGS), FOREIGN);
}

#[test]
fn what_belongs_to_the_user_stays_and_is_named() {
    let stage = Stage::new();
    let own = "Run my own loop with $ARGUMENTS\n";
    stage.world.write(".claude/commands/ralph.md", own);
    stage.world.write(
        SETTINGS,
        r#"{"statusLine": {"type": "command", "command": "starship"}, "disableAllHooks": true}"#,
    );
    let before = stage.files();
    insta::assert_snapshot!(stage.printed(&["init", "--local"]), @r#"
    .claude/settings.local.json: hooks for SessionStart, SessionEnd, PostToolBatch, Stop, StopFailure, SubagentStop, PreCompact, PostCompact
    Template: modern (`claude` is not on the PATH; with a client before 2.1.207 run `plimsoll init` again)
    Backup of the file as it was: .claude/settings.local.json.plimsoll-backup
    Kept: your status line `starship`. Ours is not shown; the hooks measure without it, or through it: `plimsoll init --wrap`.
    Careful: this file says "disableAllHooks": true, so no hook will run.
    Kept: .claude/commands/ralph.md is your own; /ralph is not installed.
    .claude/commands/handoff.md: /handoff
    .git/info/exclude: run files are ignored by git
    Sessions that are already open keep their old hooks.
    Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
    "#);
    assert_eq!(stage.world.read(".claude/commands/ralph.md"), own);
    assert_eq!(stage.world.json(SETTINGS)["statusLine"]["command"], "starship");
    stage.done(&["uninstall", "--local"]);
    assert_eq!(stage.files(), before);
}

#[test]
fn another_status_line_is_measured_through_where_that_is_asked_for() {
    let stage = Stage::new();
    stage.shell(
        "cp \"$REAL\" \"$BIN\"/plimsoll-statusline".replace("$REAL", &real("plimsoll-statusline")).as_str(),
    );
    let theirs = "echo \"theirs: $(grep -c session_id)\"";
    let before = json!({"statusLine": {"type": "command", "command": theirs}}).to_string();
    stage.world.write(SETTINGS, &before);
    insta::assert_snapshot!(stage.printed_lines("Kept", &["init", "--local"]), @r#"Kept: your status line `echo "theirs: $(grep -c session_id)"`. Ours is not shown; the hooks measure without it, or through it: `plimsoll init --wrap`."#);
    stage.done(&["init", "--local", "--wrap"]);
    let command = stage.world.json(SETTINGS)["statusLine"]["command"].as_str().unwrap().to_owned();
    let payload = json!({
        "session_id": "s-1", "workspace": {"project_dir": stage.world.project()},
        "context_window": {"context_window_size": 200_000, "total_input_tokens": 50_000, "used_percentage": 25}
    });
    let shown =
        stage.world.command("sh", &["-c", &command]).stdin(payload.to_string()).run().expect_success().stdout;
    assert_eq!(shown.trim(), "theirs: 1");
    assert_eq!(stage.world.json(".claude/plimsoll/sessions/s-1.status.json")["used"], 50_000);
    stage.done(&["init", "--local"]);
    assert_eq!(stage.world.json(SETTINGS)["statusLine"]["command"], command.as_str(), "it stays so");
    stage.done(&["uninstall", "--local"]);
    assert_eq!(stage.world.read(SETTINGS), before);
}

fn real(program: &str) -> String {
    plimsoll_testkit::bin_dir().join(program).display().to_string()
}

#[test]
fn a_command_file_of_ours_is_renewed_and_a_changed_one_survives_uninstall() {
    let stage = Stage::new();
    stage.done(&["init", "--local"]);
    let ours = stage.world.read(".claude/commands/handoff.md");
    stage.world.write(".claude/commands/handoff.md", &format!("{ours}\nold words\n"));
    stage.done(&["init", "--local"]);
    assert_eq!(stage.world.read(".claude/commands/handoff.md"), ours);
    stage.world.write(".claude/commands/handoff.md", &format!("{ours}\nmy words\n"));
    insta::assert_snapshot!(stage.printed(&["uninstall", "--local"]), @"
    .claude/settings.local.json: removed 8 hooks and our status line
    .claude/settings.local.json: removed; it contained nothing else
    .claude/commands/ralph.md: removed
    Kept: .claude/commands/handoff.md, because it was changed
    .git/info/exclude: our lines are removed
    ");
    assert!(stage.world.read(".claude/commands/handoff.md").ends_with("my words\n"));
}

#[test]
fn two_scopes_of_one_project_share_commands_and_exclude_lines() {
    let stage = Stage::new();
    stage.done(&["init", "--project", "--entries"]);
    stage.done(&["init", "--local"]);
    insta::assert_snapshot!(stage.printed(&["uninstall", "--local"]), @"
    .claude/settings.local.json: removed 8 hooks and our status line
    .claude/settings.local.json: removed; it contained nothing else
    .claude/settings.json also has our hooks: `plimsoll uninstall --project` removes them
    Kept: the slash commands and git's exclude lines, for our hooks in .claude/settings.json
    ");
    assert!(stage.world.exists(".claude/commands/ralph.md"));
    assert!(stage.world.read(".git/info/exclude").contains(".claude/plimsoll/"));
    stage.done(&["uninstall", "--project"]);
    assert!(!stage.world.exists(".claude"));
}

#[test]
fn a_linked_settings_file_is_written_through() {
    let stage = Stage::new();
    stage.shell("mkdir -p .claude dotfiles; echo '{}' > dotfiles/claude.json; ln -s ../dotfiles/claude.json .claude/settings.local.json");
    stage.done(&["init", "--local"]);
    assert!(stage.world.read("dotfiles/claude.json").contains("plimsoll-stop-gate"));
    stage.done(&["uninstall", "--local"]);
    assert_eq!(stage.world.read("dotfiles/claude.json"), "{}\n");
    assert_eq!(stage.shell("readlink .claude/settings.local.json"), "../dotfiles/claude.json\n");
}

#[test]
fn git_overlooks_our_run_files_in_worktrees_and_below_the_root_too() {
    let stage = Stage::new();
    stage.shell("git worktree add -q ../tree && mkdir -p ../tree/deep");
    for folder in ["", "../tree", "../tree/deep"] {
        let project = stage.world.path(folder);
        stage
            .world
            .command(stage.bin.join("plimsoll"), &["init", "--local"])
            .cwd(&project)
            .run()
            .expect_success();
        for file in ["ralph-state.json", "handoffs/one.md", "plimsoll/journal.jsonl"] {
            stage.world.write(project.join(".claude").join(file), "x");
        }
    }
    for folder in [".", "../tree", "../tree/deep"] {
        let status = stage.shell(&format!("cd {folder} && git status --short -uall"));
        assert!(
            status.contains(".claude/settings.local.json") && !status.contains("ralph-state"),
            "{status}"
        );
        assert!(!status.contains("handoffs") && !status.contains("plimsoll/journal"), "{status}");
    }
}

#[test]
fn a_project_without_git_is_fine() {
    let world = World::without_git();
    let finished = world.plimsoll(&["init", "--local"]).run().expect_success();
    insta::assert_snapshot!(world.stable_text(&finished.stdout), @"
    .claude/settings.local.json: hooks for SessionStart, SessionEnd, PostToolBatch, Stop, StopFailure, SubagentStop, PreCompact, PostCompact, and the status line
    Template: modern (`claude` is not on the PATH; with a client before 2.1.207 run `plimsoll init` again)
    .claude/commands/ralph.md: /ralph
    .claude/commands/handoff.md: /handoff
    Not a git repository: there is no exclude file to write.
    Sessions that are already open keep their old hooks.
    Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
    ");
}
