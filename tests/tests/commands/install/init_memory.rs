//! `plimsoll init --memory`: everything in, nothing of the user's touched, everything out.

use super::harness::{BACKUP, FOREIGN, SETTINGS, Stage, events_of};
use plimsoll_protocol::settings::{self, HookSupport, agent, servers};
use serde_json::{Value, json};

const SERVERS: &str = ".mcp.json";
const SERVERS_BACKUP: &str = ".claude/mcp.json.plimsoll-backup";
const AGENT: &str = ".claude/agents/frame.md";
const INIT: &[&str] = &["init", "--local", "--memory"];
const DEPTH: &str = "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH";
const OTHERS: &str =
    "{\n\t\"mcpServers\": {\n\t\t\"other\": {\"command\": \"x\", \"args\": []}\n\t},\n\t\"z\": 1.50\n}";

fn server(stage: &Stage) -> Value {
    let list = servers::install("", &|program| stage.named(program)).expect("a list").text;
    let list: Value = serde_json::from_str(&list).expect("JSON");
    list["mcpServers"]["plimsoll"].clone()
}

#[test]
fn the_memory_comes_and_goes_and_leaves_every_file_as_it_was() {
    const FOREIGN_HOOK: &str = "Kept: 1 hook of other programs\n";
    for (text, list) in [(FOREIGN, OTHERS), ("{\"env\": {}}\n", "{ \"mcpServers\": { } }\n"), ("", "")] {
        let stage = Stage::new();
        stage.world.write(SETTINGS, text);
        stage.world.write(SERVERS, list);
        let before = stage.files();
        let init = stage.printed(INIT);
        assert_eq!(init.contains(FOREIGN_HOOK), text == FOREIGN, "{init}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(init.replace(FOREIGN_HOOK, ""), @r#"
            .claude/settings.local.json: hooks for SessionStart, SessionEnd, PostToolBatch, Stop, StopFailure, SubagentStop, PreCompact, PostCompact, UserPromptSubmit, PreToolUse, PostToolUse, SubagentStart, and the status line
            Template: modern (`claude` is not on the PATH; with a client before 2.1.207 run `plimsoll init` again)
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
        assert_eq!((stage.world.read(BACKUP), stage.world.read(SERVERS_BACKUP)), (text.into(), list.into()));
        assert_eq!(stage.world.json(SERVERS)["mcpServers"]["plimsoll"], server(&stage));
        assert_eq!(
            server(&stage)["command"],
            "plimsoll-mcp",
            "the client then starts one server beside the plugin"
        );
        assert_eq!(stage.world.json(SETTINGS)["env"][DEPTH], "5");
        assert_eq!(stage.world.read(AGENT), agent::FRAME_AGENT_FILE);
        let mut expected = events_of(settings::MODERN_TEMPLATE);
        expected.extend(events_of(settings::MEMORY_TEMPLATE));
        assert_eq!(events_of(&stage.world.read(SETTINGS)), expected);
        let installed = stage.files();
        for again in [INIT, &["init", "--local"]] {
            stage.done(again);
            assert_eq!(stage.files(), installed, "{again:?} changes nothing");
        }
        insta::allow_duplicates! {
            insta::assert_snapshot!(stage.printed(&["uninstall", "--local"]), @"
            .claude/settings.local.json: removed 16 hooks and our status line
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
        assert_eq!(stage.files(), before);
        insta::allow_duplicates! {
            insta::assert_snapshot!(stage.printed(&["uninstall", "--local"]), @".claude/settings.local.json: contains nothing of ours");
        }
        assert_eq!(stage.files(), before);
    }
}

#[test]
fn files_that_the_memory_made_are_gone_after_uninstall_in_every_scope() {
    for scope in ["--local", "--user"] {
        let stage = Stage::new();
        let before = stage.files();
        let init = stage.printed(&["init", "--memory", scope]);
        let user = scope == "--user";
        let folder = if user { stage.world.home().join(".claude") } else { stage.world.path(".claude") };
        assert!(stage.world.exists(folder.join("agents/frame.md")));
        assert_eq!(stage.world.exists(SERVERS), !user, "the client rewrites the user's own list itself");
        let uninstall = stage.printed(&["uninstall", scope]);
        if user {
            insta::assert_snapshot!(init, @"
            [HOME]/.claude/settings.json: hooks for SessionStart, SessionEnd, PostToolBatch, Stop, StopFailure, SubagentStop, PreCompact, PostCompact, UserPromptSubmit, PreToolUse, PostToolUse, SubagentStart, and the status line
            Template: modern (`claude` is not on the PATH; with a client before 2.1.207 run `plimsoll init` again)
            [HOME]/.claude/commands/ralph.md: /ralph
            [HOME]/.claude/commands/handoff.md: /handoff
            [HOME]/.claude/settings.json: the working memory's hooks, and CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH for nested frames
            For you to run, because the client keeps the list of your own servers: claude mcp add --scope user plimsoll -- [HOME]/bin/plimsoll-mcp
            [HOME]/.claude/agents/frame.md: the agent for frames
            Headless sessions need permission for the tools: --allowedTools mcp__plimsoll
            Session records and handoffs are in ~/.local/state/plimsoll/projects; only a project with a .claude/plimsoll.json or a run keeps its own.
            Sessions that are already open keep their old hooks.
            Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
            ");
            insta::assert_snapshot!(uninstall, @"
            [HOME]/.claude/settings.json: removed 16 hooks and our status line
            [HOME]/.claude/settings.json: removed the frame depth from env
            [HOME]/.claude/settings.json: removed; it contained nothing else
            [HOME]/.claude/commands/ralph.md: removed
            [HOME]/.claude/commands/handoff.md: removed
            [HOME]/.claude/agents/frame.md: removed
            If you added the server: claude mcp remove --scope user plimsoll
            ");
        }
        assert_eq!(stage.files(), before);
        assert!(!stage.world.exists(".claude"));
    }
}

#[test]
fn without_the_word_no_memory_comes() {
    let stage = Stage::new();
    stage.done(&["init", "--local"]);
    assert_eq!(stage.world.read(SETTINGS), stage.settings(HookSupport::Modern));
    assert!(!stage.world.exists(SERVERS) && !stage.world.exists(AGENT));
    stage.done(INIT);
    assert!(stage.world.exists(SERVERS) && stage.world.exists(AGENT), "it may come later");
    stage.done(&["uninstall", "--local"]);
    assert!(!stage.world.exists(SERVERS) && !stage.world.exists(".claude"));
}

#[test]
fn a_plain_init_renews_what_is_stale_and_brings_nothing_back() {
    let stage = Stage::new();
    stage.done(INIT);
    let whole = stage.files();
    for (file, from, to) in [
        (SETTINGS, "plimsoll-memory", "/old/plimsoll-memory"),
        (SERVERS, "\"PATH\": \"", "\"PATH\": \"/old"),
        (AGENT, "You work", "You worked"),
    ] {
        stage.world.write(file, &stage.world.read(file).replace(from, to));
    }
    stage.done(&["init", "--local"]);
    assert_eq!(stage.files(), whole);
    stage.shell("rm .mcp.json .claude/agents/frame.md");
    let fewer = stage.files();
    stage.done(&["init", "--local"]);
    assert_eq!(stage.files(), fewer);
}

#[test]
fn what_is_the_users_own_stays_and_is_named() {
    let stage = Stage::new();
    let own_agent = "---\nname: frame\ndescription: mine\n---\nMine.\n";
    let own_list = "{\"mcpServers\": {\"plimsoll\": {\"command\": \"python\", \"args\": [\"mine.py\"]}}}\n";
    stage.world.write(AGENT, own_agent);
    stage.world.write(SERVERS, own_list);
    stage.world.write(SETTINGS, &json!({"env": {DEPTH: "2"}}).to_string());
    let before = stage.files();
    insta::assert_snapshot!(stage.printed(INIT), @r#"
    .claude/settings.local.json: hooks for SessionStart, SessionEnd, PostToolBatch, Stop, StopFailure, SubagentStop, PreCompact, PostCompact, UserPromptSubmit, PreToolUse, PostToolUse, SubagentStart, and the status line
    Template: modern (`claude` is not on the PATH; with a client before 2.1.207 run `plimsoll init` again)
    Backup of the file as it was: .claude/settings.local.json.plimsoll-backup
    .claude/commands/ralph.md: /ralph
    .claude/commands/handoff.md: /handoff
    .claude/settings.local.json: the working memory's hooks. Kept: your CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH = "2"; frames nest as deep as that, and no deeper than five.
    Careful: .mcp.json has another server named plimsoll, which stays. Our tools are not there until it has another name and you run `plimsoll init --memory` again.
    Kept: .claude/agents/frame.md is your own; frames run in it as it is.
    Headless sessions need permission for the tools: --allowedTools mcp__plimsoll
    .git/info/exclude: run files are ignored by git
    Sessions that are already open keep their old hooks.
    Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
    "#);
    assert_eq!((stage.world.read(AGENT), stage.world.read(SERVERS)), (own_agent.into(), own_list.into()));
    assert_eq!(stage.world.json(SETTINGS)["env"], json!({DEPTH: "2"}));
    stage.done(&["uninstall", "--local"]);
    assert_eq!(stage.files(), before);
}

#[test]
fn the_users_own_way_to_start_our_server_stays() {
    let stage = Stage::new();
    let own = json!({"mcpServers": {"plimsoll": {"command": "plimsoll-mcp", "args": ["--workspace"]}}});
    stage.world.write(SERVERS, &own.to_string());
    insta::assert_snapshot!(stage.printed_lines("Kept", INIT), @"Kept: your own entry for the server plimsoll in .mcp.json, which starts our program");
    stage.done(&["uninstall", "--local"]);
    assert_eq!(stage.world.read(SERVERS), own.to_string());
}

#[test]
fn a_list_of_servers_changed_since_loses_our_server_alone() {
    let stage = Stage::new();
    stage.world.write(SERVERS, OTHERS);
    stage.done(INIT);
    let changed = |text: &str| text.replace("\"z\"", "\"new\": true,\n\t\"z\"");
    stage.world.write(SERVERS, &changed(&stage.world.read(SERVERS)));
    insta::assert_snapshot!(stage.printed(&["uninstall", "--local"]), @"
    .claude/settings.local.json: removed 16 hooks and our status line
    .claude/settings.local.json: removed the frame depth from env
    .claude/settings.local.json: removed; it contained nothing else
    .mcp.json: removed the server plimsoll
    Kept: .claude/mcp.json.plimsoll-backup, because .mcp.json was changed since; delete it when you like
    .claude/commands/ralph.md: removed
    .claude/commands/handoff.md: removed
    .claude/agents/frame.md: removed
    .git/info/exclude: our lines are removed
    ");
    assert_eq!(stage.world.read(SERVERS), changed(OTHERS));
}

#[test]
fn a_broken_list_of_servers_is_refused_with_its_place_and_nothing_is_written() {
    let error_for = |list: &str| {
        let stage = Stage::new();
        stage.world.write(SERVERS, list);
        let before = stage.files();
        let error = stage.error_of(INIT);
        assert_eq!(stage.files(), before);
        stage.done(&["init", "--local"]);
        assert_eq!(stage.world.read(SERVERS), list, "without --memory, `init` ignores this file");
        error
    };
    insta::assert_snapshot!(error_for("{\n  // mine\n  \"mcpServers\": {}\n}\n"), @"
    plimsoll: [PROJECT]/.mcp.json: line 2, column 3: key must be a string (a comment? Claude Code does not load a file that has one)
    hint: nothing was changed; fix the file and try again
    ");
    insta::assert_snapshot!(error_for("{\"mcpServers\": [\"plimsoll-mcp\"]}"), @"
    plimsoll: [PROJECT]/.mcp.json: line 1, column 16: `mcpServers` is not an object
    hint: nothing was changed; fix the file and try again
    ");
}

#[test]
fn a_classic_client_is_refused_and_an_installed_memory_is_told_to_go() {
    let error_and_renewal = |version: &str| {
        let stage = Stage::new();
        stage.client(version);
        let before = stage.files();
        let error = stage.error_of(INIT);
        assert_eq!(stage.files(), before);
        stage.client("2.1.329 (Claude Code)");
        stage.done(INIT);
        stage.client(version);
        // One unknown event would switch off every hook of the file.
        let renewal = stage.printed(&["init", "--local"]);
        assert_eq!(events_of(&stage.world.read(SETTINGS)), events_of(settings::CLASSIC_TEMPLATE));
        format!("{error}\n{renewal}")
    };
    insta::assert_snapshot!(error_and_renewal("2.1.206 (Claude Code)"), @"
    plimsoll: the working memory needs a client from 2.1.207 on, and this one is 2.1.206
    hint: nothing was changed; update Claude Code, or run `plimsoll init` without --memory

    .claude/settings.local.json: hooks for SessionStart, SessionEnd, PostToolUse, Stop, PreCompact, and the status line
    Template: classic (the client is 2.1.206; from 2.1.207 on run `plimsoll init` again)
    Careful: the working memory's hooks were removed; this client does not know their events. With a newer one: `plimsoll init --memory`.
    Sessions that are already open keep their old hooks.
    Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
    ");
    insta::assert_snapshot!(error_and_renewal(""), @"
    plimsoll: the working memory needs a client from 2.1.207 on, and [HOME]/clients/claude does not report its version
    hint: nothing was changed; update Claude Code, or run `plimsoll init` without --memory

    .claude/settings.local.json: hooks for SessionStart, SessionEnd, PostToolUse, Stop, PreCompact, and the status line
    Template: classic ([HOME]/clients/claude does not report its version, and every version knows these events)
    Careful: the working memory's hooks were removed; this client does not know their events. With a newer one: `plimsoll init --memory`.
    Sessions that are already open keep their old hooks.
    Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.
    ");
}

#[test]
fn a_dry_run_shows_every_file_of_the_memory_and_writes_none() {
    let stage = Stage::new();
    stage.world.write(SERVERS, OTHERS);
    let before = stage.files();
    let said = stage.done(&["init", "--local", "--memory", "--dry-run", "--diff"]);
    let server = format!("\"PATH\": \"{}:", stage.bin.display());
    for part in ["\"part-5\"", &server, "+name: frame", DEPTH, "Dry run: nothing was written"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(stage.files(), before);
    stage.done(INIT);
    let installed = stage.files();
    let said = stage.done(&["uninstall", "--local", "--dry-run", "--diff"]);
    assert!(said.contains("-name: frame") && said.contains(&server), "{said}");
    assert_eq!(stage.files(), installed);
}

#[test]
fn two_scopes_of_one_project_share_server_and_agent() {
    let stage = Stage::new();
    stage.done(INIT);
    stage.done(&["init", "--project", "--entries"]);
    insta::assert_snapshot!(stage.printed(&["uninstall", "--project"]), @"
    .claude/settings.json: removed 8 hooks
    .claude/settings.json: removed; it contained nothing else
    .claude/plimsoll.json: removed
    .gitignore: our lines are removed
    .claude/settings.local.json also has our hooks: `plimsoll uninstall --local` removes them
    Kept: the slash commands and git's exclude lines, for our hooks in .claude/settings.local.json
    Kept: server and agent of the working memory, for our hooks in .claude/settings.local.json
    ");
    assert!(stage.world.exists(SERVERS) && stage.world.exists(AGENT));
    stage.done(&["uninstall", "--local"]);
    assert!(!stage.world.exists(SERVERS) && !stage.world.exists(".claude"));
}

#[test]
fn git_sees_the_teams_files_and_no_backup() {
    let stage = Stage::new();
    stage.world.write(SERVERS, OTHERS);
    stage.done(INIT);
    insta::assert_snapshot!(stage.shell("git status --short -uall"), @"
    ?? .claude/agents/frame.md
    ?? .claude/settings.local.json
    ?? .mcp.json
    ");
}

#[test]
fn a_project_with_nothing_else_in_it_keeps_its_folder() {
    let stage = Stage::new();
    let empty = stage.world.home().join("empty");
    stage.shell("mkdir \"$HOME/empty\"");
    for arguments in [INIT, &["uninstall", "--local"]] {
        stage.world.command(stage.bin.join("plimsoll"), arguments).cwd(&empty).run().expect_success();
    }
    assert!(empty.is_dir() && plimsoll_store::disk::list_names(&empty).is_empty());
}
