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
    for (text, list) in [(FOREIGN, OTHERS), ("{\"env\": {}}\n", "{ \"mcpServers\": { } }\n"), ("", "")] {
        let stage = Stage::new();
        stage.world.write(SETTINGS, text);
        stage.world.write(SERVERS, list);
        let before = stage.files();
        let said = stage.done(INIT);
        for part in [
            "settings.local.json: the working memory's hooks",
            ".mcp.json: the server",
            "frame.md: the agent",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!((stage.world.read(BACKUP), stage.world.read(SERVERS_BACKUP)), (text.into(), list.into()));
        assert_eq!(stage.world.json(SERVERS)["mcpServers"]["plimsoll"], server(&stage));
        assert_eq!(
            server(&stage)["command"],
            "plimsoll-mcp",
            "the client then starts one server beside the plugin"
        );
        assert_eq!(stage.world.json(SETTINGS)["env"][DEPTH], "5");
        assert_eq!(stage.world.read(AGENT), agent::FILE);
        let mut expected = events_of(settings::MODERN);
        expected.extend(events_of(settings::MEMORY));
        assert_eq!(events_of(&stage.world.read(SETTINGS)), expected);
        let installed = stage.files();
        for again in [INIT, &["init", "--local"]] {
            stage.done(again);
            assert_eq!(stage.files(), installed, "{again:?} changes nothing");
        }
        let said = stage.done(&["uninstall", "--local"]);
        assert_eq!(said.matches("byte for byte as before").count(), 2, "{said}");
        assert_eq!(stage.files(), before);
        assert!(stage.done(&["uninstall", "--local"]).contains("nothing of ours"));
        assert_eq!(stage.files(), before);
    }
}

#[test]
fn files_that_the_memory_made_are_gone_after_uninstall_in_every_scope() {
    for scope in ["--local", "--user"] {
        let stage = Stage::new();
        let before = stage.files();
        let said = stage.done(&["init", "--memory", scope]);
        let user = scope == "--user";
        let folder = if user { stage.world.home().join(".claude") } else { stage.world.path(".claude") };
        assert!(stage.world.exists(folder.join("agents/frame.md")));
        assert_eq!(stage.world.exists(SERVERS), !user, "the client rewrites the user's own list itself");
        let added = format!("claude mcp add --scope user plimsoll -- {}", stage.named("plimsoll-mcp"));
        assert_eq!(said.contains(&added), user, "{said}");
        let said = stage.done(&["uninstall", scope]);
        assert_eq!(said.contains("claude mcp remove --scope user plimsoll"), user, "{said}");
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
    let said = stage.done(INIT);
    let depth = format!("Kept: your {DEPTH} = \"2\"");
    for part in [&depth, "frame.md is your own", ".mcp.json has another server named plimsoll"] {
        assert!(said.contains(part), "{part}: {said}");
    }
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
    let said = stage.done(INIT);
    assert!(said.contains("Kept: your own entry for the server plimsoll"), "{said}");
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
    let said = stage.done(&["uninstall", "--local"]);
    assert_eq!(stage.world.read(SERVERS), changed(OTHERS));
    assert!(said.contains(&format!("Kept: {SERVERS_BACKUP}")), "{said}");
}

#[test]
fn a_broken_list_of_servers_is_refused_with_its_place_and_nothing_is_written() {
    for (list, place) in [
        ("{\n  // mine\n  \"mcpServers\": {}\n}\n", "line 2, column 3"),
        ("{\"mcpServers\": [\"plimsoll-mcp\"]}", "`mcpServers` is not an object"),
    ] {
        let stage = Stage::new();
        stage.world.write(SERVERS, list);
        let before = stage.files();
        let finished = stage.plimsoll(INIT);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""));
        for part in [SERVERS, place, "nothing was changed; fix the file and try again"] {
            assert!(finished.stderr.contains(part), "{part}: {}", finished.stderr);
        }
        assert_eq!(stage.files(), before);
        stage.done(&["init", "--local"]);
        assert_eq!(stage.world.read(SERVERS), list, "without the word it is none of our business");
    }
}

#[test]
fn a_classic_client_is_refused_and_an_installed_memory_is_told_to_go() {
    for (version, named) in
        [("2.1.206 (Claude Code)", "this one is 2.1.206"), ("", "does not report its version")]
    {
        let stage = Stage::new();
        stage.client(version);
        let before = stage.files();
        let finished = stage.plimsoll(INIT);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""));
        for part in ["the working memory needs a client from 2.1.207 on", named, "nothing was changed"] {
            assert!(finished.stderr.contains(part), "{part}: {}", finished.stderr);
        }
        assert_eq!(stage.files(), before);
        stage.client("2.1.329 (Claude Code)");
        stage.done(INIT);
        stage.client(version);
        // One unknown event would switch off every hook of the file.
        let said = stage.done(&["init", "--local"]);
        assert!(said.contains("the working memory's hooks were removed"), "{said}");
        assert_eq!(events_of(&stage.world.read(SETTINGS)), events_of(settings::CLASSIC));
    }
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
    let said = stage.done(&["uninstall", "--project"]);
    assert!(said.contains("Kept: server and agent of the working memory"), "{said}");
    assert!(stage.world.exists(SERVERS) && stage.world.exists(AGENT));
    stage.done(&["uninstall", "--local"]);
    assert!(!stage.world.exists(SERVERS) && !stage.world.exists(".claude"));
}

#[test]
fn git_sees_the_teams_files_and_no_backup() {
    let stage = Stage::new();
    stage.world.write(SERVERS, OTHERS);
    stage.done(INIT);
    let status = stage.shell("git status --short -uall");
    assert!(status.contains(SERVERS) && status.contains(AGENT) && !status.contains("backup"), "{status}");
}

#[test]
fn a_project_with_nothing_else_in_it_keeps_its_folder() {
    let stage = Stage::new();
    let empty = stage.world.home().join("empty");
    stage.shell("mkdir \"$HOME/empty\"");
    for arguments in [INIT, &["uninstall", "--local"]] {
        stage.world.command(stage.bin.join("plimsoll"), arguments).cwd(&empty).run().expect_success();
    }
    assert!(empty.is_dir() && plimsoll_store::disk::names(&empty).is_empty());
}
