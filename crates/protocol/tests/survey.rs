//! Settings files are summarized, and compared with the templates.

use plimsoll_protocol::settings::{
    EntryDifference, EntryDifferenceKind, HookSupport, MODERN_TEMPLATE,
    find_template_differences_if_installed, install_or_update_our_entries, plugins, summarize_settings,
};
use serde_json::{Value, json};

fn absolute(program: &str) -> String {
    format!("/opt/a b/{program}")
}

#[test]
fn the_summary_separates_our_hooks_from_foreign_stop_commands() {
    let user_settings = json!({
        "hooks": {
            "Stop": [
                { "hooks": [{ "type": "command", "command": "/x/ralph/stop-hook.sh" }] },
                { "hooks": [{ "type": "prompt", "prompt": "Is it done?" }, { "type": "command", "command": "a", "args": ["b"] }] },
            ],
            "PreToolUse": [{ "hooks": [{ "type": "command", "command": "lint" }] }],
        },
        "disableAllHooks": false,
        "enabledPlugins": { "a@m": true, "b@m": false, "c@m": {} },
        "disabledMcpjsonServers": ["plimsoll"],
        "env": { "A": 1, "B": "two" },
        "model": "opus",
    });
    let text = install_or_update_our_entries(&user_settings.to_string(), HookSupport::Modern, &absolute)
        .unwrap()
        .text;
    let summary = summarize_settings(&text).unwrap();
    assert_eq!(summary.foreign_stop_commands, ["/x/ralph/stop-hook.sh", "(prompt) Is it done?", "a b"]);
    let template: Value = serde_json::from_str(MODERN_TEMPLATE).unwrap();
    assert_eq!(summary.our_hooks.len(), template["hooks"].as_object().unwrap().len());
    let gate = summary.our_hooks.iter().find(|entry| entry.event == "StopFailure").unwrap();
    assert_eq!(
        (gate.program.as_str(), gate.executable().as_str()),
        ("plimsoll-stop-gate", "/opt/a b/plimsoll-stop-gate")
    );
    assert_eq!(summary.disable_all_hooks, Some(false));
    assert_eq!(
        summary.status_line.map(|line| (line.executable, line.is_ours)),
        Some(("/opt/a b/plimsoll-statusline".to_owned(), true))
    );
    let enabled_plugins: Vec<&str> =
        summary.plugins.iter().filter(|(_, on)| **on).map(|(plugin, _)| plugin.as_str()).collect();
    assert_eq!(enabled_plugins, ["a@m", "c@m"]);
    assert_eq!(summary.disabled_mcp_servers, ["plimsoll"]);
    assert_eq!((summary.env["A"].as_str(), summary.env["B"].as_str()), ("1", "two"));
    assert!(summary.hook_events.iter().any(|event| event == "PreToolUse"), "{:?}", summary.hook_events);
    assert_eq!(summarize_settings("").unwrap().hook_events, [""; 0]);
    assert!(summarize_settings("{ broken").unwrap_err().to_string().contains("line 1"));
}

#[test]
fn manual_changes_to_our_entries_are_found() {
    for parts in [HookSupport::Modern.into(), HookSupport::Classic.into(), HookSupport::Modern.with_memory()]
    {
        let text = install_or_update_our_entries("{}", parts, &absolute).unwrap().text;
        assert_eq!(find_template_differences_if_installed(&text, parts).unwrap(), [], "{text}");
    }
    assert_eq!(
        find_template_differences_if_installed("{}", HookSupport::Modern).unwrap(),
        [],
        "nothing of ours, nothing to compare"
    );
    let text = install_or_update_our_entries("{}", HookSupport::Modern, &absolute).unwrap().text;
    let stop = |text: String| (text, "Stop".to_owned(), "plimsoll-stop-gate".to_owned());
    let (edited, event, program) = stop(text.replacen("\"timeout\": 20", "\"timeout\": 1", 4));
    let found = find_template_differences_if_installed(&edited, HookSupport::Modern).unwrap();
    let differs =
        |kind, event: &str| EntryDifference { kind, event: event.to_owned(), program: program.clone() };
    assert!(found.contains(&differs(EntryDifferenceKind::Edited, &event)), "{found:?}");
    let (renamed, event, _) = stop(text.replace("\"Stop\"", "\"Stopp\""));
    let found = find_template_differences_if_installed(&renamed, HookSupport::Modern).unwrap();
    assert_eq!(
        found,
        [differs(EntryDifferenceKind::Missing, &event), differs(EntryDifferenceKind::Unexpected, "Stopp")]
    );
    let classic_differences = find_template_differences_if_installed(&text, HookSupport::Classic).unwrap();
    for wanted in
        [(EntryDifferenceKind::Missing, "PostToolUse"), (EntryDifferenceKind::Unexpected, "PostToolBatch")]
    {
        assert!(classic_differences.iter().any(|one| (one.kind, one.event.as_str()) == wanted), "{wanted:?}");
    }
}

#[test]
fn a_plugins_folder_and_its_stop_hooks_are_found_in_every_shape_of_the_list() {
    let second = json!({ "version": 2, "plugins": { "r@m": [{ "scope": "user", "installPath": "/p/r" }] } });
    let first = json!({ "version": 1, "plugins": { "r@m": { "installPath": "/p/r" } } });
    for list in [first, second] {
        assert_eq!(plugins::install_paths(list.to_string().as_bytes(), "r@m"), ["/p/r"]);
        assert_eq!(plugins::install_paths(list.to_string().as_bytes(), "s@m"), [""; 0]);
    }
    assert_eq!(plugins::install_paths(b"{", "r@m"), [""; 0]);
    let hooks = json!({ "Stop": [{ "hooks": [{ "type": "command", "command": "stop.sh" }] }] });
    assert_eq!(plugins::foreign_stop_commands(&json!({ "hooks": hooks }).to_string()), ["stop.sh"]);
    for manifest in [json!({ "hooks": hooks }), json!({ "hooks": { "hooks": hooks } })] {
        assert_eq!(
            plugins::parse_hooks_path_and_foreign_stop_commands(manifest.to_string().as_bytes()),
            (None, vec!["stop.sh".to_owned()])
        );
    }
    let elsewhere = json!({ "name": "r", "hooks": "./more/hooks.json" }).to_string();
    assert_eq!(
        plugins::parse_hooks_path_and_foreign_stop_commands(elsewhere.as_bytes()).0.as_deref(),
        Some("./more/hooks.json")
    );
}
