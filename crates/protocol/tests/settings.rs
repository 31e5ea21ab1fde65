//! Our entries are added to a settings file and removed from it; everything else stays byte for byte.

use plimsoll_protocol::settings::{
    self, EntryOptions, HookSupport, find_our_hooks, install_or_update_our_entries,
    is_unchanged_since_install, remove_our_entries_and_empty_containers,
};
use serde_json::{Value, json};

fn bare(program: &str) -> String {
    program.to_owned()
}

fn absolute(program: &str) -> String {
    format!("/opt/plimsoll/bin/{program}")
}

fn spaced(program: &str) -> String {
    format!("/home/a b/it's/{program}")
}

fn windows_path(program: &str) -> String {
    format!("C:/Users/JANEDO~1/plimsoll/{program}.exe")
}

fn windows_path_with_space(program: &str) -> String {
    format!("C:/Users/Jane Doe/{program}.exe")
}

fn installed(text: &str) -> String {
    install_or_update_our_entries(text, HookSupport::Modern, &bare)
        .map(|merged| merged.text)
        .unwrap_or_default()
}

/// Each of these texts is restored byte for byte.
const TEXTS: &[&str] = &[
    "{}",
    "{}\n",
    "\u{feff}{}\n",
    "{\n  \"model\": \"opus\"\n}\n",
    "{\n    \"model\": \"opus\",\n    \"permissions\": {\"allow\": [\"Bash(ls)\", \"Read\"]}\n}",
    "{\n\t\"a\": 1.50,\n\n\t\"b\": \"\\u00e9\"\n}\n",
    "{\r\n  \"a\": 1\r\n}\r\n",
    r#"{"model":"opus","env":{"A":"1"}}"#,
    r#"{ "model": "opus" }"#,
    "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": [\n          { \"type\": \"command\", \"command\": \"say done\" }\n        ]\n      }\n    ]\n  },\n  \"z\": null\n}\n",
    r#"{"hooks":{"PostToolUse":[{"matcher":"Edit|Write","hooks":[{"type":"command","command":"prettier"}]}]}}"#,
    "{\n  \"statusLine\": {\"type\": \"command\", \"command\": \"starship prompt\"},\n  \"hooks\": {\n    \"Weird\": \"kept\"\n  }\n}\n",
];

#[test]
fn uninstalling_restores_the_file_byte_for_byte() {
    for text in TEXTS {
        for era in [HookSupport::Modern, HookSupport::Classic] {
            for spell in [bare, absolute, spaced, windows_path, windows_path_with_space] {
                let merged = install_or_update_our_entries(text, era, &spell).unwrap().text;
                assert_eq!(
                    remove_our_entries_and_empty_containers(&merged, None).unwrap().text,
                    *text,
                    "{merged}"
                );
                assert!(is_unchanged_since_install(text, &merged), "{merged}");
            }
        }
    }
}

#[test]
fn entries_in_a_container_on_one_line_stay_readable() {
    let text = "{\n  \"hooks\": {\"Stop\": []},\n  \"a\": [1, 2]\n}\n";
    let merged = installed(text);
    assert!(merged.lines().all(|line| line.len() < 80), "{merged}");
    assert_eq!(remove_our_entries_and_empty_containers(&merged, Some(text)).unwrap().text, text);
}

#[test]
fn a_leftover_entry_of_ours_never_counts_as_the_users_own() {
    let left = r#"{"statusLine":{"type":"command","command":"/old/plimsoll-statusline"}}"#;
    assert!(!settings::has_no_plimsoll_entries(left).unwrap() && !settings::has_our_hooks(left).unwrap());
    assert!(!is_unchanged_since_install(left, &installed(left)));
    assert!(TEXTS.iter().all(|text| settings::has_no_plimsoll_entries(text).unwrap()));
}

#[test]
fn installing_or_uninstalling_twice_changes_nothing() {
    for text in TEXTS {
        let once = installed(text);
        assert_eq!(installed(&once), once);
        let out = remove_our_entries_and_empty_containers(text, None).unwrap();
        assert_eq!((out.text.as_str(), out.removed_hooks.len(), out.status_line_removed), (*text, 0, false));
    }
}

#[test]
fn a_missing_or_blank_file_becomes_the_template() {
    for text in ["", "  \n"] {
        let merged = installed(text);
        assert_eq!(merged, settings::MODERN_TEMPLATE);
        assert!(remove_our_entries_and_empty_containers(&merged, None).unwrap().is_empty);
    }
    assert_eq!(
        install_or_update_our_entries("", HookSupport::Classic, &bare).unwrap().text,
        settings::CLASSIC_TEMPLATE
    );
}

#[test]
fn hook_support_follows_the_clients_version() {
    for (version, era) in [
        ("2.1.329 (Claude Code)", HookSupport::Modern),
        ("2.1.207 (Claude Code)\n", HookSupport::Modern),
        ("3.0.0", HookSupport::Modern),
        ("v2.2.0-beta.1", HookSupport::Modern),
        ("2.1.206 (Claude Code)", HookSupport::Classic),
        ("2.0.77 (Claude Code)", HookSupport::Classic),
        ("1.0.128 (Claude Code)", HookSupport::Classic),
        ("claude: not found", HookSupport::Classic),
        ("", HookSupport::Classic),
    ] {
        assert_eq!(HookSupport::from_client_version_or_classic(version), era, "{version}");
    }
}

#[test]
fn the_classic_template_has_only_events_of_every_client() {
    let known =
        ["SessionStart", "SessionEnd", "PreToolUse", "PostToolUse", "Stop", "SubagentStop", "PreCompact"];
    let merged = install_or_update_our_entries("", HookSupport::Classic, &bare).unwrap();
    assert!(merged.events.iter().all(|event| known.contains(&event.as_str())), "{:?}", merged.events);
}

#[test]
fn every_template_entry_is_one_of_our_commands_with_a_timeout() {
    for era in [HookSupport::Modern, HookSupport::Classic] {
        let template: Value = serde_json::from_str(era.template_text()).unwrap();
        for (event, groups) in template["hooks"].as_object().unwrap() {
            for group in groups.as_array().unwrap() {
                let entries = group["hooks"].as_array().unwrap();
                assert_eq!(entries.len(), 1, "{event}");
                assert!(
                    settings::PROGRAM_NAMES.contains(&entries[0]["command"].as_str().unwrap()),
                    "{event}"
                );
                assert!(entries[0]["args"].is_array() && entries[0]["timeout"].is_u64(), "{event}");
            }
        }
        assert_eq!(settings::hooks_settings(era, &bare)["hooks"], template["hooks"]);
    }
}

#[test]
fn an_upgrade_replaces_our_entries_in_place() {
    let text = "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": \"/old/plimsoll-stop-gate\"\n          },\n          {\n            \"type\": \"command\",\n            \"command\": \"other\"\n          }\n        ]\n      }\n    ]\n  },\n  \"after\": 1\n}\n";
    let merged: Value = serde_json::from_str(
        &install_or_update_our_entries(text, HookSupport::Modern, &absolute).unwrap().text,
    )
    .unwrap();
    let entries = &merged["hooks"]["Stop"][0]["hooks"];
    assert_eq!(entries[0]["command"], "/opt/plimsoll/bin/plimsoll-stop-gate");
    assert_eq!(entries[0]["args"], json!([]));
    assert_eq!(entries[1], json!({"type": "command", "command": "other"}));
    assert_eq!(merged["hooks"]["Stop"].as_array().unwrap().len(), 1);
    assert_eq!(merged.as_object().unwrap().keys().collect::<Vec<_>>(), ["hooks", "after", "statusLine"]);
}

#[test]
fn a_new_path_changes_nothing_but_the_path() {
    let (old, new) = (
        installed(TEXTS[3]),
        install_or_update_our_entries(&installed(TEXTS[3]), HookSupport::Modern, &absolute).unwrap().text,
    );
    assert_eq!(new, old.replace("\"plimsoll-", "\"/opt/plimsoll/bin/plimsoll-"));
}

#[test]
fn another_template_replaces_the_entries_of_the_first() {
    let classic = install_or_update_our_entries("{}", HookSupport::Classic, &bare).unwrap().text;
    let events = |text: &str| {
        find_our_hooks(text)
            .unwrap()
            .into_iter()
            .map(|hook| hook.event)
            .collect::<std::collections::BTreeSet<_>>()
    };
    assert!(events(&classic).contains("PostToolUse"));
    let modern = install_or_update_our_entries(&classic, HookSupport::Modern, &bare).unwrap().text;
    assert_eq!(events(&modern), events(settings::MODERN_TEMPLATE));
    let back = install_or_update_our_entries(&modern, HookSupport::Classic, &bare).unwrap().text;
    assert_eq!(events(&back), events(settings::CLASSIC_TEMPLATE));
}

#[test]
fn only_a_command_that_runs_our_program_is_ours() {
    for (entry, ours) in [
        (r#"{"type":"command","command":"plimsoll-stop-gate"}"#, true),
        (r#"{"type":"command","command":"/a/b/plimsoll-stop-gate","args":[]}"#, true),
        (r#"{"type":"command","command":"/a b/plimsoll-stop-gate","args":[]}"#, true),
        (r#"{"type":"command","command":"'/a b/plimsoll-stop-gate'"}"#, true),
        (r#"{"type":"command","command":"\"$HOME\"/bin/plimsoll-stop-gate --x"}"#, true),
        (r#"{"type":"command","command":"/a/plimsoll-memory now","args":[]}"#, true),
        (r#"{"type":"command","command":"C:/a/plimsoll-stop-gate.exe","args":[]}"#, true),
        (r#"{"type":"command","command":"C:\\a b\\plimsoll-stop-gate.exe","args":[]}"#, true),
        (r#"{"type":"command","command":"\"C:\\a b\\plimsoll-stop-gate.exe\" --x"}"#, true),
        (r#"{"type":"command","command":"C:\\a\\plimsoll-stop-gate.cmd","args":[]}"#, false),
        (r#"{"type":"command","command":"echo /a/plimsoll-stop-gate"}"#, false),
        (r#"{"type":"command","command":"/bin/echo plimsoll-stop-gate"}"#, false),
        (r#"{"type":"command","command":"my-plimsoll-stop-gate"}"#, false),
        (r#"{"type":"command","command":"plimsoll-stop-gate.sh"}"#, false),
        (r#"{"type":"prompt","prompt":"plimsoll-stop-gate"}"#, false),
    ] {
        let text = format!(r#"{{"hooks":{{"Stop":[{{"hooks":[{entry}]}}]}}}}"#);
        assert_eq!(settings::has_our_hooks(&text).unwrap(), ours, "{entry}");
    }
}

#[test]
fn a_path_is_quoted_only_where_a_shell_reads_it() {
    let modern: Value =
        serde_json::from_str(&install_or_update_our_entries("", HookSupport::Modern, &spaced).unwrap().text)
            .unwrap();
    let stop = &modern["hooks"]["Stop"][0]["hooks"][0];
    assert_eq!((&stop["command"], &stop["args"]), (&json!("/home/a b/it's/plimsoll-stop-gate"), &json!([])));
    assert_eq!(modern["statusLine"]["command"], r"'/home/a b/it'\''s/plimsoll-statusline'");
    let classic: Value =
        serde_json::from_str(&install_or_update_our_entries("", HookSupport::Classic, &spaced).unwrap().text)
            .unwrap();
    let stop = &classic["hooks"]["Stop"][0]["hooks"][0];
    assert_eq!(
        (&stop["command"], stop.get("args")),
        (&json!(r"'/home/a b/it'\''s/plimsoll-stop-gate'"), None)
    );
}

#[test]
fn a_windows_path_has_backslashes_without_a_shell_and_slashes_with_one() {
    for (spell, hook, status_line) in [
        (
            windows_path as fn(&str) -> String,
            r"C:\Users\JANEDO~1\plimsoll\plimsoll-stop-gate.exe",
            "C:/Users/JANEDO~1/plimsoll/plimsoll-statusline.exe",
        ),
        (
            windows_path_with_space,
            r"C:\Users\Jane Doe\plimsoll-stop-gate.exe",
            r#""C:/Users/Jane Doe/plimsoll-statusline.exe""#,
        ),
    ] {
        let text = install_or_update_our_entries("", HookSupport::Modern, &spell).unwrap().text;
        let settings: Value = serde_json::from_str(&text).unwrap();
        let stop = &settings["hooks"]["Stop"][0]["hooks"][0];
        assert_eq!((&stop["command"], &stop["args"]), (&json!(hook), &json!([])));
        assert_eq!(settings["statusLine"]["command"], status_line);
        assert_eq!(install_or_update_our_entries(&text, HookSupport::Modern, &spell).unwrap().text, text);
        // Programs that were installed elsewhere before are found in the file.
        let moved = install_or_update_our_entries(&text, HookSupport::Modern, &absolute).unwrap().text;
        assert_eq!(moved, install_or_update_our_entries("", HookSupport::Modern, &absolute).unwrap().text);
    }
}

#[test]
fn programs_on_a_share_are_found_again_and_removed() {
    let on_share = |program: &str| format!(r"\\server\my share/{program}.exe");
    for hook_support in [HookSupport::Modern, HookSupport::Classic] {
        let once = install_or_update_our_entries("{}\n", hook_support, &on_share).unwrap().text;
        assert_eq!(install_or_update_our_entries(&once, hook_support, &on_share).unwrap().text, once);
        let removed = remove_our_entries_and_empty_containers(&once, None).unwrap();
        assert!(removed.text == "{}\n" && removed.status_line_removed, "{once}");
    }
}

#[test]
fn a_foreign_status_line_is_kept_and_reported() {
    let merged = install_or_update_our_entries(TEXTS[11], HookSupport::Modern, &bare).unwrap();
    assert_eq!(merged.foreign_status_line.as_deref(), Some("starship prompt"));
    assert!(merged.text.contains("starship prompt") && !merged.text.contains("plimsoll-statusline"));
}

#[test]
fn a_wrapped_status_line_still_runs_and_is_restored() {
    let wrapping = EntryOptions { wrap_status_line: true, ..HookSupport::Modern.into() };
    for theirs in ["starship prompt", "line", "/opt/a line --x 'y z'", "it's \"odd\" $(date) \\ $HOME"] {
        let before =
            json!({"a": 1, "statusLine": {"type": "command", "command": theirs, "padding": 2}, "z": 2});
        let before = serde_json::to_string_pretty(&before).unwrap();
        let merged = install_or_update_our_entries(&before, wrapping, &absolute).unwrap();
        assert_eq!(merged.foreign_status_line, None);
        let line: Value = serde_json::from_str(&merged.text).unwrap();
        assert_eq!(line["statusLine"]["padding"], 2);
        // A shell reads our program, the option, and their complete line as one word.
        let command = line["statusLine"]["command"].as_str().unwrap();
        let words = shlex::split(command).unwrap();
        assert_eq!(words[1..], ["--wrap", theirs], "{command}");
        assert!(words[0].ends_with("/plimsoll-statusline"));
        // A later `init` recognizes the wrapped line and updates the path of our program.
        let moved = install_or_update_our_entries(&merged.text, HookSupport::Modern, &bare).unwrap();
        let moved: Value = serde_json::from_str(&moved.text).unwrap();
        let moved = moved["statusLine"]["command"].as_str().unwrap();
        assert_eq!(shlex::split(moved).unwrap(), ["plimsoll-statusline", "--wrap", theirs]);
        assert!(is_unchanged_since_install(&before, &merged.text));
        let cleared = remove_our_entries_and_empty_containers(&merged.text, None).unwrap();
        assert!(cleared.status_line_removed);
        assert_eq!(cleared.text, before);
    }
    // Several words are a program and its arguments.
    let by_hand =
        r#"{"statusLine": {"type": "command", "command": "plimsoll-statusline --wrap npx ccstatusline"}}"#;
    assert!(
        install_or_update_our_entries(by_hand, HookSupport::Modern, &bare)
            .unwrap()
            .text
            .contains("--wrap npx ccstatusline\"")
    );
    let cleared = remove_our_entries_and_empty_containers(by_hand, None).unwrap().text;
    assert_eq!(cleared, r#"{"statusLine": {"type": "command", "command": "npx ccstatusline"}}"#);
}

/// JSON strings whose form is lost if their value is parsed and written again.
const SPELLED_COMMANDS: &[&str] = &[
    r#""\/opt\/line""#,
    r#""\/opt\/a line --x 'y\/z'""#,
    r#""\u0041\u00e9 é \ud83d\ude00 😀""#,
    r#""it\u0027s 'odd' \u0022quoted\u0022 \\ \u005c $HOME \b\u0008\t\u0009""#,
    r#""a lone \ud83d and \ude00 \ude00\ud83d \ud83d\u0041""#,
    r#""""#,
    r#"" ""#,
    r#""  starship\u0020prompt\n""#,
    r#""'one word'""#,
    r#""\u0000""#,
];

#[test]
fn a_wrapped_status_line_is_restored_byte_for_byte() {
    let wrapping = EntryOptions { wrap_status_line: true, ..HookSupport::Modern.with_memory() };
    for command in SPELLED_COMMANDS {
        let before = format!(
            "{{\n  \"a\": 1.0e2, \"statusLine\": {{ \"padding\":0.0, \"command\" : {command} }},\n  \"b\": {{ \"c\": 1, \"c\": 2 }}\n}}"
        );
        let merged = install_or_update_our_entries(&before, wrapping, &spaced).unwrap().text;
        assert!(merged.contains(r"\\''s/plimsoll-statusline' --wrap "), "{merged}");
        let moved = install_or_update_our_entries(&merged, HookSupport::Modern, &absolute).unwrap().text;
        assert!(moved.contains("/opt/plimsoll/bin/plimsoll-statusline --wrap "), "{moved}");
        for installed in [&merged, &moved] {
            for known in [None, Some(before.as_str())] {
                assert_eq!(
                    remove_our_entries_and_empty_containers(installed, known).unwrap().text,
                    before,
                    "{installed}"
                );
            }
            // The user changes the file, so the earlier text cannot simply be restored.
            let edited = installed.replace("1.0e2", "2.0e2");
            let cleared = remove_our_entries_and_empty_containers(&edited, Some(&before)).unwrap().text;
            assert_eq!(cleared, before.replace("1.0e2", "2.0e2"), "{edited}");
        }
        assert!(is_unchanged_since_install(&before, &merged));
    }
}

#[test]
fn a_wrapped_status_line_runs_the_original_command() {
    let wrapping = EntryOptions { wrap_status_line: true, ..HookSupport::Modern.into() };
    for command in SPELLED_COMMANDS {
        let before = format!(r#"{{"statusLine":{{"command":{command}}}}}"#);
        let merged = install_or_update_our_entries(&before, wrapping, &absolute).unwrap().text;
        let (Ok(theirs), Ok(merged)) =
            (serde_json::from_str::<String>(command), serde_json::from_str::<Value>(&merged))
        else {
            assert!(command.contains("lone"), "{merged}");
            continue;
        };
        let words = shlex::split(merged["statusLine"]["command"].as_str().unwrap()).unwrap();
        assert_eq!(words[1..], ["--wrap", theirs.as_str()], "{command}");
    }
}

#[test]
fn empty_containers_keep_white_space_if_the_original_is_known() {
    for text in [
        "{ }",
        "{\n\n}\n",
        r#"{"hooks": { }}"#,
        r#"{"hooks": {"Stop": [  ], "PostToolBatch":[]}, "env": {}}"#,
        "{\n  \"env\": {\n  },\n  \"hooks\": {\n    \"Stop\": [\n    ]\n  }\n}\n",
    ] {
        for parts in [HookSupport::Modern.into(), HookSupport::Modern.with_memory()] {
            let merged = install_or_update_our_entries(text, parts, &bare).unwrap().text;
            assert_eq!(remove_our_entries_and_empty_containers(&merged, Some(text)).unwrap().text, text);
        }
    }
}

#[test]
fn an_original_with_a_value_that_rust_rejects_is_restored() {
    for odd in ["1e400", r#""\ud800""#] {
        let text = format!("{{\"a\": {odd}, \"hooks\": {{\"Stop\": []}}, \"env\": {{}}}}");
        let merged =
            install_or_update_our_entries(&text, HookSupport::Modern.with_memory(), &bare).unwrap().text;
        assert_eq!(remove_our_entries_and_empty_containers(&merged, Some(&text)).unwrap().text, text);
    }
}

#[test]
fn foreign_hooks_and_disabled_hooks_are_reported() {
    let merged = install_or_update_our_entries(TEXTS[9], HookSupport::Modern, &bare).unwrap();
    assert_eq!(
        (merged.foreign_hook_count, merged.hooks_disabled, merged.foreign_status_line),
        (1, false, None)
    );
    assert!(
        install_or_update_our_entries("{\"disableAllHooks\": true}", HookSupport::Modern, &bare)
            .unwrap()
            .hooks_disabled
    );
}

#[test]
fn empty_containers_stay_if_the_original_is_known() {
    for text in [
        "{\n  \"hooks\": {}\n}\n",
        "{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n",
        r#"{"hooks":{"Stop":[]}}"#,
    ] {
        let merged = installed(text);
        assert_eq!(remove_our_entries_and_empty_containers(&merged, Some(text)).unwrap().text, text);
        assert!(remove_our_entries_and_empty_containers(&merged, None).unwrap().is_empty);
    }
}

#[test]
fn a_group_with_other_keys_keeps_them_without_our_entry() {
    let text = r#"{"hooks":{"Stop":[{"matcher":"","note":"mine","hooks":[{"type":"command","command":"plimsoll-stop-gate"}]}]}}"#;
    let out = remove_our_entries_and_empty_containers(text, None).unwrap();
    assert_eq!(out.text, r#"{"hooks":{"Stop":[{"matcher":"","note":"mine","hooks":[]}]}}"#);
}

#[test]
fn a_changed_file_is_not_unchanged_since_the_installation() {
    let merged = installed(TEXTS[3]);
    assert!(!is_unchanged_since_install(TEXTS[3], &merged.replace("opus", "haiku")));
    assert!(!is_unchanged_since_install(TEXTS[4], &merged));
    assert!(
        !is_unchanged_since_install(&merged, &merged),
        "a backup that holds our entries is not the user's file"
    );
}

#[test]
fn an_invalid_file_is_rejected_with_its_position() {
    for (text, line, column, why) in [
        ("{\n  \"a\": 1,\n}\n", 3, 1, "(a trailing comma? Claude Code does not load"),
        ("{\n  // mine\n  \"a\": 1\n}", 2, 3, "(a comment? Claude Code does not load"),
        ("{\n  \"ä\": 1 /* x */\n}", 2, 10, "comment"),
        ("{\"a\": 1", 1, 7, "EOF"),
        ("{} {}", 1, 4, "trailing characters"),
        ("[]", 1, 1, "not a JSON object"),
        ("{\"hooks\": []}", 1, 11, "`hooks` is not an object"),
        ("{\n  \"hooks\": {\"Stop\": {}}\n}", 2, 21, "`hooks.Stop` is not a list"),
        ("{\"hooks\": {},\n \"hooks\": {}}", 2, 11, "\"hooks\" is here a second time"),
        ("{\"hooks\": {\"Stop\": [], \"Stop\": []}}", 1, 32, "\"Stop\" is here a second time"),
    ] {
        let refusal = install_or_update_our_entries(text, HookSupport::Modern, &bare).unwrap_err();
        assert!(refusal.reason.contains(why), "{text}: {refusal}");
        assert_eq!((refusal.line, refusal.column), (line, column), "{text}: {refusal}");
    }
}

#[test]
fn an_error_has_its_line_in_the_file_not_in_the_edited_text() {
    let spell = |program: &str| program.to_owned();
    let text =
        "{\n  \"hooks\": {\n    \"SessionStart\": [],\n    \"Stop\": \"mine\"\n  },\n  \"env\": [1]\n}\n";
    let fault = install_or_update_our_entries(text, HookSupport::Modern, &spell).unwrap_err();
    assert_eq!(fault.to_string(), "line 4, column 13: `hooks.Stop` is not a list");
    let text = text.replace("\"mine\"", "[]");
    let fault = install_or_update_our_entries(&text, HookSupport::Modern.with_memory(), &spell).unwrap_err();
    assert_eq!(fault.to_string(), "line 6, column 10: `env` is not an object");
    assert!(
        install_or_update_our_entries(&text, HookSupport::Modern, &spell).is_ok(),
        "without the memory `env` is the user's own"
    );
    let installed =
        install_or_update_our_entries("{}", HookSupport::Modern.with_memory(), &spell).unwrap().text;
    let twice = installed.replacen("\"env\": {", "\"env\": {\n    \"A\": \"1\",\n    \"A\": \"2\",", 1);
    let line = 1 + twice.lines().position(|line| line.contains("\"2\"")).unwrap();
    let fault = remove_our_entries_and_empty_containers(&twice, None).unwrap_err();
    assert!(fault.reason.contains("a second time"), "{fault}");
    assert_eq!(fault.line, line, "{fault} in {twice}");
}
