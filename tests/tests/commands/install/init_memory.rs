//! `plimsoll init --memory` installs everything and changes nothing of the user's; `uninstall` removes all of it.

use super::harness::{BACKUP, InstallFixture, SETTINGS, USER_SETTINGS, hook_events_of};
use plimsoll_protocol::settings::{self, HookSupport, agent, servers};
use serde_json::{Value, json};

const MCP_FILE: &str = ".mcp.json";
const MCP_FILE_BACKUP: &str = ".claude/mcp.json.plimsoll-backup";
const AGENT_FILE: &str = ".claude/agents/frame.md";
const INIT_WITH_MEMORY: &[&str] = &["init", "--local", "--memory"];
const DEPTH_VARIABLE: &str = "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH";
const OTHER_SERVERS: &str =
    "{\n\t\"mcpServers\": {\n\t\t\"other\": {\"command\": \"x\", \"args\": []}\n\t},\n\t\"z\": 1.50\n}";

fn expected_server_entry(fixture: &InstallFixture) -> Value {
    let text = servers::add_or_update_our_server("", &|program| fixture.program_path_text(program))
        .expect("a list")
        .text;
    let config: Value = serde_json::from_str(&text).expect("JSON");
    config["mcpServers"]["plimsoll"].clone()
}

#[test]
fn uninstall_after_init_with_memory_restores_every_file() {
    const FOREIGN_HOOK: &str = "Kept: 1 hook of other programs\n";
    for (text, mcp_text) in
        [(USER_SETTINGS, OTHER_SERVERS), ("{\"env\": {}}\n", "{ \"mcpServers\": { } }\n"), ("", "")]
    {
        let fixture = InstallFixture::new();
        fixture.world.write(SETTINGS, text);
        fixture.world.write(MCP_FILE, mcp_text);
        let before = fixture.file_checksums();
        let init = fixture.stable_stdout_of_success(INIT_WITH_MEMORY);
        assert_eq!(init.contains(FOREIGN_HOOK), text == USER_SETTINGS, "{init}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(init.replace(FOREIGN_HOOK, ""), @r#"
            .claude/settings.local.json: hooks for SessionStart, SessionEnd, PostToolBatch, Stop, StopFailure, SubagentStop, PreCompact, PostCompact, PreModelSwitch, UserPromptSubmit, PreToolUse, PostToolUse, SubagentStart, and the status line
            Template: modern (`claude` is not on the PATH; with Claude Code before 2.1.207 run `plimsoll init` again)
            Backup of the file as it was: .claude/settings.local.json.plimsoll-backup
            .claude/commands/ralph.md: /ralph
            .claude/commands/handoff.md: /handoff
            .claude/settings.local.json: the working memory's hooks, and CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH for nested frames
            .mcp.json: the server plimsoll; Claude Code asks once in a terminal: choose "Use this MCP server" (Enter alone declines)
            .claude/agents/frame.md: the agent for frames
            Headless sessions need permission for the tools: --allowedTools mcp__plimsoll
            .git/info/exclude: run files are ignored by git
            Sessions that are already open keep their old hooks.
            Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
            "#);
        }
        assert_eq!(
            (fixture.world.read(BACKUP), fixture.world.read(MCP_FILE_BACKUP)),
            (text.into(), mcp_text.into())
        );
        assert_eq!(
            fixture.world.read_json(MCP_FILE)["mcpServers"]["plimsoll"],
            expected_server_entry(&fixture)
        );
        assert_eq!(
            expected_server_entry(&fixture)["command"],
            "plimsoll-mcp",
            "the client then starts one server beside the plugin"
        );
        assert_eq!(fixture.world.read_json(SETTINGS)["env"][DEPTH_VARIABLE], "5");
        assert_eq!(fixture.world.read(AGENT_FILE), agent::FRAME_AGENT_FILE);
        let mut expected = hook_events_of(settings::MODERN_TEMPLATE);
        expected.extend(hook_events_of(settings::MEMORY_TEMPLATE));
        assert_eq!(hook_events_of(&fixture.world.read(SETTINGS)), expected);
        let installed = fixture.file_checksums();
        for arguments in [INIT_WITH_MEMORY, &["init", "--local"]] {
            fixture.stdout_of_success(arguments);
            assert_eq!(fixture.file_checksums(), installed, "{arguments:?} changes nothing");
        }
        insta::allow_duplicates! {
            insta::assert_snapshot!(fixture.stable_stdout_of_success(&["uninstall", "--local"]), @"
            .claude/settings.local.json: removed 17 hooks and our status line
            .claude/settings.local.json: removed the frame depth from env
            .claude/settings.local.json: byte for byte as before; the backup is removed
            .mcp.json: removed the server plimsoll
            .mcp.json: byte for byte as before; the backup is removed
            .claude/commands/ralph.md: removed
            .claude/commands/handoff.md: removed
            .claude/agents/frame.md: removed
            .git/info/exclude: our lines are removed
            ");
        }
        assert_eq!(fixture.file_checksums(), before);
        insta::allow_duplicates! {
            insta::assert_snapshot!(fixture.stable_stdout_of_success(&["uninstall", "--local"]), @".claude/settings.local.json: contains nothing of ours");
        }
        assert_eq!(fixture.file_checksums(), before);
    }
}

#[test]
fn uninstall_removes_files_created_for_the_memory_in_every_scope() {
    for scope in ["--local", "--user"] {
        let fixture = InstallFixture::new();
        let before = fixture.file_checksums();
        let init = fixture.stable_stdout_of_success(&["init", "--memory", scope]);
        let is_user_scope = scope == "--user";
        let folder =
            if is_user_scope { fixture.world.home().join(".claude") } else { fixture.world.path(".claude") };
        assert!(fixture.world.exists(folder.join("agents/frame.md")));
        assert_eq!(
            fixture.world.exists(MCP_FILE),
            !is_user_scope,
            "the client rewrites the user's own list itself"
        );
        let uninstall = fixture.stable_stdout_of_success(&["uninstall", scope]);
        if is_user_scope {
            insta::assert_snapshot!(init, @"
            [HOME]/.claude/settings.json: hooks for SessionStart, SessionEnd, PostToolBatch, Stop, StopFailure, SubagentStop, PreCompact, PostCompact, PreModelSwitch, UserPromptSubmit, PreToolUse, PostToolUse, SubagentStart, and the status line
            Template: modern (`claude` is not on the PATH; with Claude Code before 2.1.207 run `plimsoll init` again)
            [HOME]/.claude/commands/ralph.md: /ralph
            [HOME]/.claude/commands/handoff.md: /handoff
            [HOME]/.claude/settings.json: the working memory's hooks, and CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH for nested frames
            Run this, because Claude Code keeps the list of your servers: claude mcp add --scope user plimsoll -- [HOME]/bin/plimsoll-mcp
            [HOME]/.claude/agents/frame.md: the agent for frames
            Headless sessions need permission for the tools: --allowedTools mcp__plimsoll
            Session records and handoffs are in ~/.local/state/plimsoll/projects; only a project with a .claude/plimsoll.json or a run keeps its own.
            Sessions that are already open keep their old hooks.
            Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
            ");
            insta::assert_snapshot!(uninstall, @"
            [HOME]/.claude/settings.json: removed 17 hooks and our status line
            [HOME]/.claude/settings.json: removed the frame depth from env
            [HOME]/.claude/settings.json: removed; it contained nothing else
            [HOME]/.claude/commands/ralph.md: removed
            [HOME]/.claude/commands/handoff.md: removed
            [HOME]/.claude/agents/frame.md: removed
            If you added the server: claude mcp remove --scope user plimsoll
            ");
        }
        assert_eq!(fixture.file_checksums(), before);
        assert!(!fixture.world.exists(".claude"));
    }
}

#[test]
fn init_without_the_memory_option_writes_no_memory_files() {
    let fixture = InstallFixture::new();
    fixture.stdout_of_success(&["init", "--local"]);
    assert_eq!(fixture.world.read(SETTINGS), fixture.expected_settings(HookSupport::Modern));
    assert!(!fixture.world.exists(MCP_FILE) && !fixture.world.exists(AGENT_FILE));
    fixture.stdout_of_success(INIT_WITH_MEMORY);
    assert!(fixture.world.exists(MCP_FILE) && fixture.world.exists(AGENT_FILE), "it may come later");
    fixture.stdout_of_success(&["uninstall", "--local"]);
    assert!(!fixture.world.exists(MCP_FILE) && !fixture.world.exists(".claude"));
}

#[test]
fn plain_init_updates_stale_memory_files_and_recreates_none() {
    let fixture = InstallFixture::new();
    fixture.stdout_of_success(INIT_WITH_MEMORY);
    let installed = fixture.file_checksums();
    for (file, from, to) in [
        (SETTINGS, "plimsoll-memory", "/old/plimsoll-memory"),
        (MCP_FILE, "\"PATH\": \"", "\"PATH\": \"/old"),
        (AGENT_FILE, "You work", "You worked"),
    ] {
        fixture.world.write(file, &fixture.world.read(file).replace(from, to));
    }
    fixture.stdout_of_success(&["init", "--local"]);
    assert_eq!(fixture.file_checksums(), installed);
    fixture.run_shell_line("rm .mcp.json .claude/agents/frame.md");
    let files_after_deletion = fixture.file_checksums();
    fixture.stdout_of_success(&["init", "--local"]);
    assert_eq!(fixture.file_checksums(), files_after_deletion);
}

#[test]
fn init_keeps_and_names_the_users_own_agent_server_and_depth() {
    let fixture = InstallFixture::new();
    let own_agent = "---\nname: frame\ndescription: mine\n---\nMine.\n";
    let own_mcp_text =
        "{\"mcpServers\": {\"plimsoll\": {\"command\": \"python\", \"args\": [\"mine.py\"]}}}\n";
    fixture.world.write(AGENT_FILE, own_agent);
    fixture.world.write(MCP_FILE, own_mcp_text);
    fixture.world.write(SETTINGS, &json!({"env": {DEPTH_VARIABLE: "2"}}).to_string());
    let before = fixture.file_checksums();
    insta::assert_snapshot!(fixture.stable_stdout_of_success(INIT_WITH_MEMORY), @r#"
    .claude/settings.local.json: hooks for SessionStart, SessionEnd, PostToolBatch, Stop, StopFailure, SubagentStop, PreCompact, PostCompact, PreModelSwitch, UserPromptSubmit, PreToolUse, PostToolUse, SubagentStart, and the status line
    Template: modern (`claude` is not on the PATH; with Claude Code before 2.1.207 run `plimsoll init` again)
    Backup of the file as it was: .claude/settings.local.json.plimsoll-backup
    .claude/commands/ralph.md: /ralph
    .claude/commands/handoff.md: /handoff
    .claude/settings.local.json: the working memory's hooks. Kept: your CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH = "2"; frames nest as deep as that, and no deeper than five.
    Warning: .mcp.json has another server named plimsoll, which stays. Rename it, then run `plimsoll init --memory` again to get the memory tools.
    Kept: .claude/agents/frame.md is your own; frames run in it as it is.
    Headless sessions need permission for the tools: --allowedTools mcp__plimsoll
    .git/info/exclude: run files are ignored by git
    Sessions that are already open keep their old hooks.
    Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
    "#);
    assert_eq!(
        (fixture.world.read(AGENT_FILE), fixture.world.read(MCP_FILE)),
        (own_agent.into(), own_mcp_text.into())
    );
    assert_eq!(fixture.world.read_json(SETTINGS)["env"], json!({DEPTH_VARIABLE: "2"}));
    fixture.stdout_of_success(&["uninstall", "--local"]);
    assert_eq!(fixture.file_checksums(), before);
}

#[test]
fn init_keeps_the_users_own_entry_for_our_server() {
    let fixture = InstallFixture::new();
    let own_config =
        json!({"mcpServers": {"plimsoll": {"command": "plimsoll-mcp", "args": ["--workspace"]}}});
    fixture.world.write(MCP_FILE, &own_config.to_string());
    insta::assert_snapshot!(fixture.stdout_lines_starting_with("Kept", INIT_WITH_MEMORY), @"Kept: your own entry for the server plimsoll in .mcp.json, which starts our program");
    fixture.stdout_of_success(&["uninstall", "--local"]);
    assert_eq!(fixture.world.read(MCP_FILE), own_config.to_string());
}

#[test]
fn uninstall_removes_only_our_server_from_a_changed_mcp_file() {
    let fixture = InstallFixture::new();
    fixture.world.write(MCP_FILE, OTHER_SERVERS);
    fixture.stdout_of_success(INIT_WITH_MEMORY);
    let with_new_key = |text: &str| text.replace("\"z\"", "\"new\": true,\n\t\"z\"");
    fixture.world.write(MCP_FILE, &with_new_key(&fixture.world.read(MCP_FILE)));
    insta::assert_snapshot!(fixture.stable_stdout_of_success(&["uninstall", "--local"]), @"
    .claude/settings.local.json: removed 17 hooks and our status line
    .claude/settings.local.json: removed the frame depth from env
    .claude/settings.local.json: removed; it contained nothing else
    .mcp.json: removed the server plimsoll
    Kept: .claude/mcp.json.plimsoll-backup, because .mcp.json was changed since; delete it when you like
    .claude/commands/ralph.md: removed
    .claude/commands/handoff.md: removed
    .claude/agents/frame.md: removed
    .git/info/exclude: our lines are removed
    ");
    assert_eq!(fixture.world.read(MCP_FILE), with_new_key(OTHER_SERVERS));
}

#[test]
fn invalid_mcp_file_is_reported_with_its_position_and_nothing_is_written() {
    let error_for = |mcp_text: &str| {
        let fixture = InstallFixture::new();
        fixture.world.write(MCP_FILE, mcp_text);
        let before = fixture.file_checksums();
        let error = fixture.error_of_failing_command(INIT_WITH_MEMORY);
        assert_eq!(fixture.file_checksums(), before);
        fixture.stdout_of_success(&["init", "--local"]);
        assert_eq!(fixture.world.read(MCP_FILE), mcp_text, "without --memory, `init` ignores this file");
        error
    };
    insta::assert_snapshot!(error_for("{\n  // mine\n  \"mcpServers\": {}\n}\n"), @"
    error: [PROJECT]/.mcp.json: line 2, column 3: key must be a string (a comment? Claude Code does not load a file that has one)
    hint: nothing was changed; fix the file and try again
    ");
    insta::assert_snapshot!(error_for("{\"mcpServers\": [\"plimsoll-mcp\"]}"), @"
    error: [PROJECT]/.mcp.json: line 1, column 16: `mcpServers` is not an object
    hint: nothing was changed; fix the file and try again
    ");
}

#[test]
fn init_memory_refuses_a_classic_client_and_init_removes_its_memory_hooks() {
    let error_and_renewal = |version: &str| {
        let fixture = InstallFixture::new();
        fixture.install_fake_client(version);
        let before = fixture.file_checksums();
        let error = fixture.error_of_failing_command(INIT_WITH_MEMORY);
        assert_eq!(fixture.file_checksums(), before);
        fixture.install_fake_client("2.1.329 (Claude Code)");
        fixture.stdout_of_success(INIT_WITH_MEMORY);
        fixture.install_fake_client(version);
        // A single event that the client does not know would switch off every hook of the file.
        let renewal = fixture.stable_stdout_of_success(&["init", "--local"]);
        assert_eq!(hook_events_of(&fixture.world.read(SETTINGS)), hook_events_of(settings::CLASSIC_TEMPLATE));
        format!("{error}\n{renewal}")
    };
    insta::assert_snapshot!(error_and_renewal("2.1.206 (Claude Code)"), @"
    error: the working memory needs a client from 2.1.207 on, and this one is 2.1.206
    hint: nothing was changed; update Claude Code, or run `plimsoll init` without --memory

    .claude/settings.local.json: hooks for SessionStart, SessionEnd, PostToolUse, Stop, PreCompact, and the status line
    Template: classic (Claude Code is 2.1.206; from 2.1.207 on run `plimsoll init` again)
    Warning: the working memory's hooks were removed; this client does not know their events. With a newer one: `plimsoll init --memory`.
    Sessions that are already open keep their old hooks.
    Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
    ");
    insta::assert_snapshot!(error_and_renewal(""), @"
    error: the working memory needs a client from 2.1.207 on, and [HOME]/clients/claude does not report its version
    hint: nothing was changed; update Claude Code, or run `plimsoll init` without --memory

    .claude/settings.local.json: hooks for SessionStart, SessionEnd, PostToolUse, Stop, PreCompact, and the status line
    Template: classic ([HOME]/clients/claude does not report its version, and every version knows these events)
    Warning: the working memory's hooks were removed; this client does not know their events. With a newer one: `plimsoll init --memory`.
    Sessions that are already open keep their old hooks.
    Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
    ");
}

#[test]
fn dry_run_shows_every_memory_file_and_writes_none() {
    let fixture = InstallFixture::new();
    fixture.world.write(MCP_FILE, OTHER_SERVERS);
    let before = fixture.file_checksums();
    let stdout = fixture.stdout_of_success(&["init", "--local", "--memory", "--dry-run", "--diff"]);
    let server = format!("\"PATH\": \"{}:", fixture.bin.display());
    for part in ["\"part-5\"", &server, "+name: frame", DEPTH_VARIABLE, "Dry run: nothing was written"] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    assert_eq!(fixture.file_checksums(), before);
    fixture.stdout_of_success(INIT_WITH_MEMORY);
    let installed = fixture.file_checksums();
    let stdout = fixture.stdout_of_success(&["uninstall", "--local", "--dry-run", "--diff"]);
    assert!(stdout.contains("-name: frame") && stdout.contains(&server), "{stdout}");
    assert_eq!(fixture.file_checksums(), installed);
}

#[test]
fn uninstalling_one_scope_keeps_server_and_agent_for_the_other() {
    let fixture = InstallFixture::new();
    fixture.stdout_of_success(INIT_WITH_MEMORY);
    fixture.stdout_of_success(&["init", "--project", "--entries"]);
    insta::assert_snapshot!(fixture.stable_stdout_of_success(&["uninstall", "--project"]), @"
    .claude/settings.json: removed 9 hooks
    .claude/settings.json: removed; it contained nothing else
    .claude/plimsoll.json: removed
    .gitignore: our lines are removed
    .claude/settings.local.json also has our hooks: `plimsoll uninstall --local` removes them
    Kept: the slash commands and git's exclude lines, for our hooks in .claude/settings.local.json
    Kept: server and agent of the working memory, for our hooks in .claude/settings.local.json
    ");
    assert!(fixture.world.exists(MCP_FILE) && fixture.world.exists(AGENT_FILE));
    fixture.stdout_of_success(&["uninstall", "--local"]);
    assert!(!fixture.world.exists(MCP_FILE) && !fixture.world.exists(".claude"));
}

#[test]
fn git_sees_the_memory_files_but_no_backup() {
    let fixture = InstallFixture::new();
    fixture.world.write(MCP_FILE, OTHER_SERVERS);
    fixture.stdout_of_success(INIT_WITH_MEMORY);
    insta::assert_snapshot!(fixture.run_shell_line("git status --short -uall"), @"
    ?? .claude/agents/frame.md
    ?? .claude/settings.local.json
    ?? .mcp.json
    ");
}

#[test]
fn uninstall_leaves_an_empty_project_folder_in_place() {
    let fixture = InstallFixture::new();
    let empty_project = fixture.world.home().join("empty");
    fixture.run_shell_line("mkdir \"$HOME/empty\"");
    for arguments in [INIT_WITH_MEMORY, &["uninstall", "--local"]] {
        fixture
            .world
            .command(fixture.bin.join("plimsoll"), arguments)
            .cwd(&empty_project)
            .run()
            .expect_success();
    }
    assert!(empty_project.is_dir() && plimsoll_store::disk::list_names(&empty_project).is_empty());
}
