//! The plugin's files are made from those that `plimsoll init` writes. `PLIMSOLL_UPDATE_GOLDEN=1` makes them anew.

use super::harness::folder;
use plimsoll_protocol::settings::{self, HookSupport, agent, servers};
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::World;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Where a client that was not started in a terminal has no PATH to.
const FOLDERS: &str = "$HOME/.local/bin:$HOME/.cargo/bin";
/// The one entry that tells of missing programs.
const TELLS: &str = "plimsoll-session-start";

/// One of `init`'s entries for a shell: the client tells a person of each program that it cannot start. An empty PATH
/// must not become the project's folder.
fn entry(entry: &Value) -> Value {
    let program = entry["command"].as_str().expect("a program");
    let words = entry["args"].as_array().map(Vec::as_slice).unwrap_or_default();
    let words: String = words.iter().filter_map(Value::as_str).map(|word| format!("{word} ")).collect();
    let otherwise = match program {
        TELLS => "exec cat \"${CLAUDE_PLUGIN_ROOT}/hooks/missing.json\"",
        _ => "exit 0",
    };
    let command = format!(
        "PATH=\"${{PATH:+$PATH:}}{FOLDERS}\"; command -v {program} >/dev/null || {otherwise}; exec {program} {words}--plugin"
    );
    json!({"type": "command", "command": command, "timeout": entry["timeout"]})
}

fn hooks() -> String {
    let mut hooks = settings::hooks_settings(HookSupport::Modern.with_memory(), &str::to_owned);
    for groups in hooks["hooks"].as_object_mut().expect("events").values_mut() {
        for group in groups.as_array_mut().expect("groups") {
            group["hooks"] = json!([entry(&group["hooks"][0])]);
        }
    }
    pretty(&hooks)
}

/// The command as `init` writes it: the client then starts one server where a project has ours, too.
fn server() -> String {
    let mut config = servers::mcp_config(&str::to_owned);
    let path = format!("${{PATH:-/usr/bin:/bin}}:{FOLDERS}").replace("$HOME", "${HOME}");
    config["mcpServers"][servers::SERVER_NAME]["env"] = json!({ "PATH": path });
    pretty(&config)
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON") + "\n"
}

/// A file of ours without the line by which `init` knows it, with the plugin's names.
fn under_its_name(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("# plimsoll: written by"));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    text.replace("`/ralph`", "`/plimsoll:ralph`")
        .replace("subagent_type \"frame\"", "subagent_type \"plimsoll:frame\"")
}

#[test]
fn the_plugin_has_what_init_writes() {
    let mut files = vec![
        ("hooks/hooks.json".to_owned(), hooks()),
        (".mcp.json".to_owned(), server()),
        ("agents/frame.md".to_owned(), under_its_name(agent::FRAME_AGENT_FILE)),
    ];
    for (name, text) in plimsoll_flows::install::COMMANDS {
        files.push((format!("commands/{name}"), under_its_name(text)));
    }
    for (name, text) in files {
        let path = folder().join(&name);
        if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &text).expect("the plugin's folder");
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(found, text, "{name}: is it wanted? then PLIMSOLL_UPDATE_GOLDEN=1");
    }
}

#[test]
fn every_hook_program_but_the_status_line_is_in_the_plugin() {
    let hooks = hooks();
    let named = |program: &&&str| hooks.contains(&format!("; exec {program} "));
    let named: BTreeSet<&str> = settings::PROGRAM_NAMES.iter().filter(named).copied().collect();
    let built = std::fs::read_to_string(workspace_root().join("crates/hooks/programs.txt")).unwrap();
    let built: BTreeSet<&str> = built.lines().collect();
    // A plugin cannot bring one.
    let missing: Vec<_> = built.difference(&named).collect();
    assert_eq!(missing, [&"plimsoll-statusline"]);
}

#[test]
fn the_manifest_has_the_version_of_the_programs() {
    let text = std::fs::read_to_string(folder().join(".claude-plugin/plugin.json")).expect("the manifest");
    let manifest: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(manifest["name"], "plimsoll");
}

#[test]
fn the_client_finds_no_fault_in_plugin_and_marketplace() {
    let world = World::without_git().without_plimsoll();
    for path in [folder(), workspace_root()] {
        let path = path.display().to_string();
        let finished =
            world.claude(&["plugin", "validate", "--strict", "--json", &path]).run().expect_success();
        let report = finished.json();
        assert_eq!((&report["success"], &report["contents"]), (&json!(true), &json!([])), "{report}");
        for found in ["errors", "warnings", "notes"] {
            assert_eq!(report["manifest"][found], json!([]), "{report}");
        }
    }
}

/// Claude Code has some of the rules by which its plugin directory refuses or warns: README, license, icon, links, files.
#[test]
fn the_plugin_directory_would_take_the_plugin() {
    let world = World::without_git().without_plimsoll();
    let path = folder().display().to_string();
    let validate = ["plugin", "validate", "--strict", "--json", "--profile", "directory", &path];
    let report = world.claude(&validate).run().expect_success().json();
    assert_eq!(report["directory"]["findings"], json!([]), "{report}");
    assert_eq!(report["directory"]["incomplete"], false, "{report}");
    // Only plimsoll-linear has an address of its own; those of a database or a collector are the user's.
    assert_eq!(report["hosts"]["declared"]["plugin"], true, "{report}");
    assert_eq!(report["hosts"]["named"][0]["host"], "api.linear.app", "{report}");
}

/// The directory takes a square PNG of 512 to 2048 pixels below 2 MB. Claude Code itself checks only that it is a picture.
#[test]
fn the_icon_has_the_size_that_the_plugin_directory_takes() {
    let icon = std::fs::read(folder().join(".claude-plugin/icon.png")).expect("the icon");
    assert!(icon.starts_with(b"\x89PNG\r\n\x1a\n") && icon.len() < 2_000_000);
    let side = |at: usize| u32::from_be_bytes(icon[at..at + 4].try_into().expect("four bytes"));
    let (width, height) = (side(16), side(20));
    assert!(width == height && (512..=2048).contains(&width), "{width} x {height}");
}
