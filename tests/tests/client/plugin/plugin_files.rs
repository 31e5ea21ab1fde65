//! The plugin's files are generated from those that `plimsoll init` writes. `PLIMSOLL_UPDATE_GOLDEN=1` writes them again.

use super::harness::plugin_folder;
use plimsoll_protocol::settings::{self, HookSupport, agent, servers};
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::World;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

/// Starts a program of the plugin; each entry has a copy under the program's name.
const HOOK_SCRIPT: &str = include_str!("../../../../hooks-config/plugin-hook.sh");

/// Turns an entry of `init` into one that starts the plugin's script of that name, without a shell. On Windows the client finds the
/// `.exe` beside the script.
fn plugin_entry(entry: &Value) -> Value {
    let program = entry["command"].as_str().expect("a program");
    let mut arguments = entry["args"].as_array().cloned().unwrap_or_default();
    arguments.push(json!("--plugin"));
    json!({
        "type": "command",
        "command": format!("${{CLAUDE_PLUGIN_ROOT}}/hooks/{program}"),
        "args": arguments,
        "timeout": entry["timeout"],
    })
}

/// Returns the hook programs that the plugin starts: all but the status line, which a plugin cannot contain.
fn hook_programs_except_status_line() -> Vec<String> {
    let programs_text = std::fs::read_to_string(workspace_root().join("crates/hooks/programs.txt")).unwrap();
    programs_text.lines().filter(|name| *name != "plimsoll-statusline").map(str::to_owned).collect()
}

/// The events of the plugin. A client drops all hooks of a plugin if it does not know one of their events (up to 2.1.117), and an old
/// one also those of a settings file. `plimsoll init` knows the client's version, but the plugin's file is the same for every version,
/// so a new event would silently switch the plugin's hooks off for more clients than today: it belongs only into the settings.
const PLUGIN_EVENTS: [&str; 12] = [
    "SessionStart",
    "SessionEnd",
    "PostToolBatch",
    "Stop",
    "StopFailure",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "SubagentStart",
];

fn plugin_hooks_json() -> String {
    let mut hooks = settings::hooks_settings(HookSupport::Modern.with_memory(), &str::to_owned);
    let events = hooks["hooks"].as_object_mut().expect("events");
    events.retain(|event, _| PLUGIN_EVENTS.contains(&event.as_str()));
    for groups in events.values_mut() {
        for group in groups.as_array_mut().expect("groups") {
            group["hooks"] = json!([plugin_entry(&group["hooks"][0])]);
        }
    }
    // Clients before 2.1.286 ignore this key and run the hooks.
    hooks["modules"] = json!(["./plimsoll.ts"]);
    to_pretty_json(&hooks)
}

/// Returns the server's file with the command as `init` writes it: the client then starts only one server if the project
/// also has one. If HOME is unset, the client keeps `${HOME}`, which would be a folder in the project.
fn plugin_server_json() -> String {
    let mut config = servers::mcp_config(&str::to_owned);
    let home = "${HOME:-/nonexistent}";
    let path = format!("${{PATH:-/usr/bin:/bin}}:{home}/.local/bin:{home}/.cargo/bin");
    config["mcpServers"][servers::SERVER_NAME]["env"] = json!({ "PATH": path });
    to_pretty_json(&config)
}

fn to_pretty_json(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON") + "\n"
}

/// Removes the line by which `init` recognizes its file, and replaces names by the plugin's.
fn with_plugin_names(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("# plimsoll: written by"));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    text.replace("`/ralph`", "`/plimsoll:ralph`")
        .replace("subagent_type \"frame\"", "subagent_type \"plimsoll:frame\"")
}

#[test]
fn plugin_files_are_generated_from_what_init_writes() {
    let mut files = vec![
        ("hooks/hooks.json".to_owned(), plugin_hooks_json()),
        (".mcp.json".to_owned(), plugin_server_json()),
        ("agents/frame.md".to_owned(), with_plugin_names(agent::FRAME_AGENT_FILE)),
    ];
    for (name, text) in plimsoll_flows::install::SLASH_COMMAND_FILES {
        files.push((format!("commands/{name}"), with_plugin_names(text)));
    }
    files.extend(
        hook_programs_except_status_line()
            .iter()
            .map(|name| (format!("hooks/{name}"), HOOK_SCRIPT.to_owned())),
    );
    for (name, text) in files {
        let path = plugin_folder().join(&name);
        if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &text).expect("the plugin's folder");
            let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("its mode");
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(committed, text, "{name}: is it wanted? then PLIMSOLL_UPDATE_GOLDEN=1");
        let mode = std::fs::metadata(&path).expect("the file").permissions().mode();
        assert_eq!(mode & 0o100 != 0, text.starts_with("#!"), "{name}: only scripts are executable");
    }
}

#[test]
fn the_plugin_has_only_events_that_its_oldest_client_knows() {
    let committed = std::fs::read_to_string(plugin_folder().join("hooks/hooks.json")).expect("the hooks");
    let committed: Value = serde_json::from_str(&committed).expect("JSON");
    let events: BTreeSet<&str> =
        committed["hooks"].as_object().expect("events").keys().map(String::as_str).collect();
    assert_eq!(events, BTreeSet::from(PLUGIN_EVENTS));
}

#[test]
fn every_hook_program_but_the_status_line_is_in_the_plugin() {
    let hooks = plugin_hooks_json();
    for program in hook_programs_except_status_line() {
        assert!(hooks.contains(&format!("/hooks/{program}\"")), "{program}: {hooks}");
    }
    assert!(!hooks.contains("plimsoll-statusline"), "{hooks}");
}

#[test]
fn the_plugin_manifest_has_the_version_of_the_programs() {
    let text =
        std::fs::read_to_string(plugin_folder().join(".claude-plugin/plugin.json")).expect("the manifest");
    let manifest: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(manifest["name"], "plimsoll");
}

#[test]
fn claude_plugin_validate_accepts_plugin_and_marketplace() {
    let world = World::without_git().without_plimsoll_programs();
    for path in [plugin_folder(), workspace_root()] {
        let path = path.display().to_string();
        let finished = world.claude(&["plugin", "validate", "--json", &path]).run().expect_success();
        let report = finished.stdout_json();
        assert_eq!(report["success"], true, "{report}");
        let contents = report["contents"].as_array().map(Vec::as_slice).unwrap_or_default();
        for kind in ["errors", "warnings"] {
            assert_eq!(report["manifest"][kind], json!([]), "{report}");
            let findings = contents.iter().flat_map(|content| content[kind].as_array().into_iter().flatten());
            // Only newer clients have the site of the status line; this one ignores it.
            let others =
                findings.filter(|finding| !finding.to_string().contains("no component is named StatusLine"));
            assert_eq!(others.count(), 0, "{report}");
        }
    }
}

/// What the module hooks and calls is what a user permits by installing it, so it changes only on purpose.
#[test]
fn the_module_hooks_and_calls_exactly_what_the_golden_file_lists() {
    let world = World::without_git().without_plimsoll_programs();
    let plugin = plugin_folder().display().to_string();
    let report =
        world.claude(&["plugin", "validate", "--json", &plugin]).run().expect_success().stdout_json();
    let module_file =
        report["contents"].as_array().and_then(|contents| contents.first()).expect("the module");
    let listed =
        to_pretty_json(&json!({ "notes": module_file["notes"], "uses": module_file["modules"][0]["uses"] }));
    let path = workspace_root().join("tests/tests/client/plugin/module_permissions.json");
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &listed).expect("the golden file");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(committed, listed, "is it wanted? then PLIMSOLL_UPDATE_GOLDEN=1");
}

/// Claude Code implements some of the rules by which its plugin directory refuses or warns: README, license, icon, links, files.
#[test]
fn the_plugin_passes_the_checks_of_the_plugin_directory() {
    let world = World::without_git().without_plimsoll_programs();
    let path = plugin_folder().display().to_string();
    let validate = ["plugin", "validate", "--json", "--profile", "directory", &path];
    let report = world.claude(&validate).run().expect_success().stdout_json();
    assert_eq!(report["directory"]["findings"], json!([]), "{report}");
    // The client has none of the directory's rules for modules, so for a plugin with a module its checks are never complete.
    let notes = report["directory"]["notes"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert_eq!(report["directory"]["incomplete"], true, "{report}");
    assert!(notes.iter().any(|note| note.to_string().contains("names a hooks module")), "{report}");
    assert_eq!(
        (&report["directory"]["undecided"], &report["directory"]["failure"]),
        (&json!([]), &Value::Null)
    );
    // Only plimsoll-linear has a fixed address; those of a database or a collector are configured by the user.
    assert_eq!(report["hosts"]["declared"]["plugin"], true, "{report}");
    assert_eq!(report["hosts"]["named"][0]["host"], "api.linear.app", "{report}");
}

/// The directory accepts a square PNG of 512 to 2048 pixels below 2 MB. Claude Code itself checks only that it is an image.
#[test]
fn the_icon_is_a_square_png_of_a_size_that_the_directory_accepts() {
    let icon = std::fs::read(plugin_folder().join(".claude-plugin/icon.png")).expect("the icon");
    assert!(icon.starts_with(b"\x89PNG\r\n\x1a\n") && icon.len() < 2_000_000);
    let dimension =
        |offset: usize| u32::from_be_bytes(icon[offset..offset + 4].try_into().expect("four bytes"));
    let (width, height) = (dimension(16), dimension(20));
    assert!(width == height && (512..=2048).contains(&width), "{width} x {height}");
}
