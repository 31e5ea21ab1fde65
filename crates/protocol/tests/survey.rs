//! What is read out of settings files to find what is wrong with them.

use plimsoll_protocol::settings::{
    Difference, DifferenceKind, HookSupport, MODERN, differences, install, plugins, survey,
};
use serde_json::{Value, json};

fn absolute(program: &str) -> String {
    format!("/opt/a b/{program}")
}

#[test]
fn ours_and_what_others_run_at_stop_are_told_apart() {
    let theirs = json!({
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
    let text = install(&theirs.to_string(), HookSupport::Modern, &absolute).unwrap().text;
    let found = survey(&text).unwrap();
    assert_eq!(found.foreign_stop, ["/x/ralph/stop-hook.sh", "(prompt) Is it done?", "a b"]);
    let template: Value = serde_json::from_str(MODERN).unwrap();
    assert_eq!(found.ours.len(), template["hooks"].as_object().unwrap().len());
    let gate = found.ours.iter().find(|entry| entry.event == "StopFailure").unwrap();
    assert_eq!(
        (gate.program.as_str(), gate.starts().as_str()),
        ("plimsoll-stop-gate", "/opt/a b/plimsoll-stop-gate")
    );
    assert_eq!(found.disable_all_hooks, Some(false));
    assert_eq!(
        found.status_line.map(|line| (line.starts, line.ours)),
        Some(("/opt/a b/plimsoll-statusline".to_owned(), true))
    );
    let on: Vec<&str> =
        found.plugins.iter().filter(|(_, on)| **on).map(|(plugin, _)| plugin.as_str()).collect();
    assert_eq!(on, ["a@m", "c@m"]);
    assert_eq!(found.refused_servers, ["plimsoll"]);
    assert_eq!((found.env["A"].as_str(), found.env["B"].as_str()), ("1", "two"));
    assert!(found.events.iter().any(|event| event == "PreToolUse"), "{:?}", found.events);
    assert_eq!(survey("").unwrap().events, [""; 0]);
    assert!(survey("{ broken").unwrap_err().to_string().contains("line 1"));
}

#[test]
fn what_a_hand_changed_in_our_entries_is_found() {
    for parts in [HookSupport::Modern.into(), HookSupport::Classic.into(), HookSupport::Modern.with_memory()]
    {
        let text = install("{}", parts, &absolute).unwrap().text;
        assert_eq!(differences(&text, parts).unwrap(), [], "{text}");
    }
    assert_eq!(differences("{}", HookSupport::Modern).unwrap(), [], "nothing of ours, nothing to compare");
    let text = install("{}", HookSupport::Modern, &absolute).unwrap().text;
    let stop = |text: String| (text, "Stop".to_owned(), "plimsoll-stop-gate".to_owned());
    let (edited, event, program) = stop(text.replacen("\"timeout\": 20", "\"timeout\": 1", 4));
    let found = differences(&edited, HookSupport::Modern).unwrap();
    let differs = |kind, event: &str| Difference { kind, event: event.to_owned(), program: program.clone() };
    assert!(found.contains(&differs(DifferenceKind::Edited, &event)), "{found:?}");
    let (renamed, event, _) = stop(text.replace("\"Stop\"", "\"Stopp\""));
    let found = differences(&renamed, HookSupport::Modern).unwrap();
    assert_eq!(found, [differs(DifferenceKind::Missing, &event), differs(DifferenceKind::Unasked, "Stopp")]);
    let of_another_era = differences(&text, HookSupport::Classic).unwrap();
    for wanted in [(DifferenceKind::Missing, "PostToolUse"), (DifferenceKind::Unasked, "PostToolBatch")] {
        assert!(of_another_era.iter().any(|one| (one.kind, one.event.as_str()) == wanted), "{wanted:?}");
    }
}

#[test]
fn a_plugins_folder_and_its_stop_hooks_are_found_in_every_shape_of_the_list() {
    let second = json!({ "version": 2, "plugins": { "r@m": [{ "scope": "user", "installPath": "/p/r" }] } });
    let first = json!({ "version": 1, "plugins": { "r@m": { "installPath": "/p/r" } } });
    for list in [first, second] {
        assert_eq!(plugins::folders(list.to_string().as_bytes(), "r@m"), ["/p/r"]);
        assert_eq!(plugins::folders(list.to_string().as_bytes(), "s@m"), [""; 0]);
    }
    assert_eq!(plugins::folders(b"{", "r@m"), [""; 0]);
    let hooks = json!({ "Stop": [{ "hooks": [{ "type": "command", "command": "stop.sh" }] }] });
    assert_eq!(plugins::stop_hooks(&json!({ "hooks": hooks }).to_string()), ["stop.sh"]);
    for manifest in [json!({ "hooks": hooks }), json!({ "hooks": { "hooks": hooks } })] {
        assert_eq!(
            plugins::hooks_of_manifest(manifest.to_string().as_bytes()),
            (None, vec!["stop.sh".to_owned()])
        );
    }
    let elsewhere = json!({ "name": "r", "hooks": "./more/hooks.json" }).to_string();
    assert_eq!(plugins::hooks_of_manifest(elsewhere.as_bytes()).0.as_deref(), Some("./more/hooks.json"));
}
