//! The working memory's entries, its server and its agent are installed, updated and removed.

use plimsoll_protocol::settings::servers::{self, McpEntryAuthor};
use plimsoll_protocol::settings::{
    self, HookSupport, MemoryVariable, agent, install_or_update_our_entries, is_unchanged_since_install,
    remove_our_entries_and_empty_containers,
};
use serde_json::{Value, json};

const DEPTH_VARIABLE: &str = "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH";

fn bare(program: &str) -> String {
    program.to_owned()
}

fn spaced(program: &str) -> String {
    format!("/home/a b/it's/{program}")
}

fn with_memory(text: &str) -> String {
    with_memory_spelled(text, &bare)
}

fn with_memory_spelled(text: &str, spell: &dyn Fn(&str) -> String) -> String {
    install_or_update_our_entries(text, HookSupport::Modern.with_memory(), spell)
        .map(|merged| merged.text)
        .unwrap_or_default()
}

fn value(text: &str) -> Value {
    serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap_or_default()
}

/// Returns (matcher, program, arguments) of each entry for an event.
fn entries_of_event(text: &str, event: &str) -> Vec<(String, String, Value)> {
    let groups = value(text)["hooks"][event].as_array().cloned().unwrap_or_default();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |group: Value| {
        (word(&group["matcher"]), word(&group["hooks"][0]["command"]), group["hooks"][0]["args"].clone())
    };
    groups.into_iter().map(one).collect()
}

const TEXTS: &[&str] = &[
    "{}\n",
    "\u{feff}{}\n",
    "{\n\t\"a\": 1.50,\n\n\t\"b\": \"\\u00e9\"\n}\n",
    "{\r\n  \"a\": 1\r\n}\r\n",
    r#"{"model":"opus","env":{"A":"1"}}"#,
    "{\n  \"env\": {\n    \"A\": \"1\"\n  },\n  \"z\": null\n}",
    r#"{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"chunks-1"}]}]}}"#,
    "{\n  \"statusLine\": {\"type\": \"command\", \"command\": \"starship\"}\n}\n",
];

#[test]
fn each_argument_of_one_program_has_its_own_entry() {
    let text = with_memory("{}");
    let mut expected = vec![(String::new(), "plimsoll-session-start".to_owned(), json!(["memory"]))];
    let arguments = ["part-2", "part-3", "part-4", "part-5"];
    expected.extend(arguments.map(|one| (String::new(), "plimsoll-memory".to_owned(), json!([one]))));
    assert_eq!(entries_of_event(&text, "SessionStart"), expected);
    assert_eq!(
        entries_of_event(&text, "PostToolUse"),
        [("Agent".to_owned(), "plimsoll-frame".to_owned(), json!([]))]
    );
    assert_eq!(entries_of_event(&text, "SubagentStart")[0].0, "^(plimsoll:)?frame$");
    assert!(entries_of_event(&text, "PreToolUse")[0].0.contains("push_frame"));
}

#[test]
fn one_program_handles_each_batch_and_each_stop() {
    let text = with_memory("{}");
    for (event, program) in [
        ("PostToolBatch", "plimsoll-post-tool"),
        ("Stop", "plimsoll-stop-gate"),
        ("SubagentStop", "plimsoll-stop-gate"),
    ] {
        assert_eq!(
            entries_of_event(&text, event),
            [(String::new(), program.to_owned(), json!(["memory"]))],
            "{event}"
        );
    }
    assert_eq!(entries_of_event(&text, "StopFailure")[0].2, json!([]), "the memory has no half of it");
}

#[test]
fn removing_the_memory_restores_the_file_byte_for_byte() {
    for text in TEXTS {
        for spell in [bare, spaced] {
            let once =
                install_or_update_our_entries(text, HookSupport::Modern.with_memory(), &spell).unwrap();
            assert!(
                once.has_memory
                    && once.memory_variable == Some(MemoryVariable::Set(DEPTH_VARIABLE.to_owned()))
            );
            let once = once.text;
            assert_eq!(value(&once)["env"][DEPTH_VARIABLE], "5");
            assert_eq!(
                install_or_update_our_entries(&once, HookSupport::Modern.with_memory(), &spell).unwrap().text,
                once
            );
            assert_eq!(
                install_or_update_our_entries(&once, HookSupport::Modern, &spell).unwrap().text,
                once,
                "it stays unasked"
            );
            let out = remove_our_entries_and_empty_containers(&once, None).unwrap();
            assert_eq!((out.text.as_str(), out.variable_removed), (*text, true), "{once}");
            assert!(is_unchanged_since_install(text, &once), "{once}");
            let later = install_or_update_our_entries(text, HookSupport::Modern, &spell).unwrap().text;
            assert_eq!(with_memory_spelled(&later, &spell), once, "first without, then with");
        }
    }
}

#[test]
fn a_manually_removed_entry_is_added_again_without_moving_others() {
    let whole = with_memory("{}\n");
    let mut cut = value(&whole);
    cut["hooks"]["SessionStart"].as_array_mut().unwrap().remove(2);
    let mended = with_memory(&cut.to_string());
    let mut arguments: Vec<Value> =
        entries_of_event(&mended, "SessionStart").into_iter().map(|one| one.2).collect();
    assert_eq!(arguments.pop(), Some(json!(["part-3"])));
    assert_eq!(arguments[2], json!(["part-4"]));
    assert_eq!(arguments.len(), 4);
}

#[test]
fn unexpected_entries_are_removed_and_a_new_path_updates_all() {
    let mut old = value(&with_memory("{}"));
    let extra = json!({"hooks": [{"type": "command", "command": "plimsoll-memory", "args": ["part-6"]}]});
    old["hooks"]["SessionStart"].as_array_mut().unwrap().push(extra);
    old["hooks"]["PreToolUse"][0]["matcher"] = json!("Task");
    assert_eq!(value(&with_memory(&old.to_string())), value(&with_memory("{}")));
    let moved = with_memory_spelled(&with_memory(TEXTS[2]), &spaced);
    assert_eq!(moved, with_memory_spelled(TEXTS[2], &spaced));
}

#[test]
fn a_users_own_depth_is_kept_and_reported() {
    let text = "{\n  \"env\": {\"CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH\": \"2\"}\n}\n";
    let merged = install_or_update_our_entries(text, HookSupport::Modern.with_memory(), &bare).unwrap();
    assert_eq!(
        merged.memory_variable,
        Some(MemoryVariable::UserValue(DEPTH_VARIABLE.to_owned(), "\"2\"".to_owned()))
    );
    let out = remove_our_entries_and_empty_containers(&merged.text, None).unwrap();
    assert_eq!((out.text.as_str(), out.variable_removed), (text, false));
    let same = text.replace("\"2\"", "\"5\"");
    let out = remove_our_entries_and_empty_containers(&with_memory(&same), Some(&same)).unwrap();
    assert_eq!(out.text, same, "the text from before had it");
    let refusal =
        install_or_update_our_entries("{\"env\": []}", HookSupport::Modern.with_memory(), &bare).unwrap_err();
    assert!(refusal.reason.contains("`env` is not an object"), "{refusal}");
}

#[test]
fn memory_entries_are_removed_for_a_classic_client() {
    assert_eq!(
        install_or_update_our_entries("", HookSupport::Classic.with_memory(), &bare).unwrap().text,
        settings::CLASSIC_TEMPLATE
    );
    let merged = install_or_update_our_entries(&with_memory("{}"), HookSupport::Classic, &bare).unwrap();
    let programs = settings::find_our_hooks(&merged.text).unwrap();
    assert!(!merged.has_memory && programs.iter().all(|hook| !hook.is_for_memory()), "{programs:?}");
}

#[test]
fn every_memory_entry_is_one_of_our_commands_with_a_timeout() {
    for (event, groups) in value(settings::MEMORY_TEMPLATE)["hooks"].as_object().unwrap() {
        for group in groups.as_array().unwrap() {
            let entry = &group["hooks"][0];
            assert!(settings::PROGRAM_NAMES.contains(&entry["command"].as_str().unwrap()), "{event}");
            assert!(entry["args"].is_array() && entry["timeout"].is_u64(), "{event}");
        }
    }
    let passed = settings::hooks_settings(HookSupport::Modern.with_memory(), &bare);
    assert_eq!(passed["hooks"], value(&with_memory("{}"))["hooks"]);
    assert!(
        settings::hook_and_status_line_programs(HookSupport::Modern.with_memory())
            .contains(&"plimsoll-frame".to_owned())
    );
}

#[test]
fn removing_the_server_restores_the_list_byte_for_byte() {
    for text in [
        "{}\n",
        r#"{"mcpServers":{"other":{"command":"x"}}}"#,
        "{\n    \"mcpServers\": {\n        \"other\": { \"type\": \"http\", \"url\": \"u\" }\n    },\n    \"z\": 1\n}",
        "\u{feff}{\r\n\t\"z\": 1.50\r\n}\r\n",
    ] {
        let once = servers::add_or_update_our_server(text, &spaced).unwrap();
        let server = &value(&once.text)["mcpServers"]["plimsoll"];
        let folder = spaced("").trim_end_matches('/').to_owned();
        let path = format!(
            "{folder}:${{PATH:-/usr/bin:/bin}}:${{HOME:-/nonexistent}}/.local/bin:${{HOME:-/nonexistent}}/.cargo/bin"
        );
        let expected =
            json!({"command": "plimsoll-mcp", "args": [], "env": {"PATH": path}, "alwaysLoad": true});
        assert_eq!((server, &once.entry_author), (&expected, &McpEntryAuthor::Ours));
        assert_eq!(servers::add_or_update_our_server(&once.text, &spaced).unwrap().text, once.text);
        assert_eq!(servers::remove_our_server_and_empty_containers(&once.text, None).unwrap().text, text);
        assert!(servers::is_unchanged_since_install(text, &once.text));
        let moved = servers::add_or_update_our_server(&once.text, &bare).unwrap().text;
        assert_eq!(moved, servers::add_or_update_our_server(text, &bare).unwrap().text);
    }
    let empty = "{ \"mcpServers\": { } }";
    let once = servers::add_or_update_our_server(empty, &bare).unwrap().text;
    assert!(servers::is_unchanged_since_install(empty, &once));
    assert_eq!(servers::remove_our_server_and_empty_containers(&once, Some(empty)).unwrap().text, empty);
    for text in ["{ }\n", "{\"a\": 1e400, \"mcpServers\": {\n}}", r#"{"a": "\udc00", "mcpServers": {}}"#] {
        let once = servers::add_or_update_our_server(text, &bare).unwrap().text;
        assert_eq!(servers::remove_our_server_and_empty_containers(&once, Some(text)).unwrap().text, text);
    }
    assert!(servers::remove_our_server_and_empty_containers(&once, None).unwrap().is_empty);
    assert_eq!(
        value(&servers::add_or_update_our_server("", &bare).unwrap().text),
        servers::mcp_config(&bare)
    );
}

#[test]
fn a_server_entry_with_another_path_is_ours() {
    for server in [
        // PATH cannot contain such a folder.
        json!({"command": "/a:b/plimsoll-mcp", "args": [], "alwaysLoad": true}),
        json!({"command": "plimsoll-mcp", "args": [], "alwaysLoad": true}),
    ] {
        let text = json!({"mcpServers": {"plimsoll": server}}).to_string();
        assert_eq!(servers::find_server_entry_author(&text).unwrap(), Some(McpEntryAuthor::Ours), "{text}");
        let fresh = value(&servers::add_or_update_our_server("", &spaced).unwrap().text);
        assert_eq!(value(&servers::add_or_update_our_server(&text, &spaced).unwrap().text), fresh, "{text}");
    }
    let odd = |program: &str| format!("/a:b/{program}");
    let text = servers::add_or_update_our_server("", &odd).unwrap().text;
    assert_eq!(value(&text)["mcpServers"]["plimsoll"]["command"], "/a:b/plimsoll-mcp");
    let other = json!({"mcpServers": {"plimsoll": {"command": "plimsoll-mcp", "args": [], "env": {"PATH": "/mine"}, "alwaysLoad": true}}});
    assert!(matches!(
        servers::find_server_entry_author(&other.to_string()).unwrap(),
        Some(McpEntryAuthor::UserConfigured(_))
    ));
}

#[test]
fn a_server_on_windows_has_its_path_as_the_command() {
    for path in ["C:/Users/jo/plimsoll-mcp.exe", "C:/Users/Jane Doe/plimsoll-mcp.exe"] {
        let installed = servers::add_or_update_our_server("", &|_| path.to_owned()).unwrap();
        let command = path.replace('/', r"\");
        let expected = json!({"command": command, "args": [], "alwaysLoad": true});
        assert_eq!(value(&installed.text)["mcpServers"]["plimsoll"], expected);
        assert_eq!(installed.entry_author, McpEntryAuthor::Ours);
        let moved = servers::add_or_update_our_server(&installed.text, &spaced).unwrap().text;
        assert_eq!(moved, servers::add_or_update_our_server("", &spaced).unwrap().text);
        assert!(servers::remove_our_server_and_empty_containers(&installed.text, None).unwrap().is_empty);
    }
}

#[test]
fn another_server_with_our_name_stays() {
    for (server, ours) in [
        (r#"{"command":"python","args":["plimsoll.py"]}"#, false),
        (r#"{"type":"http","url":"https://example.invalid"}"#, false),
        (r#"{"command":"/a b/plimsoll-mcp","args":["--workspace"]}"#, true),
    ] {
        let text = format!(r#"{{"mcpServers":{{"plimsoll":{server}}}}}"#);
        let joined = servers::add_or_update_our_server(&text, &bare).unwrap();
        let own = server.to_owned();
        assert_eq!(
            joined.entry_author,
            if ours { McpEntryAuthor::UserConfigured(own) } else { McpEntryAuthor::Foreign(own) }
        );
        assert_eq!(joined.text, text);
        assert_eq!(servers::remove_our_server_and_empty_containers(&text, None).unwrap().text, text);
    }
}

#[test]
fn an_invalid_server_list_is_rejected_with_its_position() {
    for (text, place) in [
        ("{\n  \"mcpServers\": {},\n}\n", "line 3, column 1"),
        ("{\"mcpServers\": []}", "`mcpServers` is not an object"),
        ("[]", "not a JSON object"),
    ] {
        let refusal = servers::add_or_update_our_server(text, &bare).unwrap_err().to_string();
        assert!(refusal.contains(place), "{refusal}");
    }
}

#[test]
fn the_agent_in_the_flag_matches_the_agent_file() {
    let head = agent::FRAME_AGENT_FILE.split("\n---\n").next().unwrap();
    assert!(head.contains("\nname: frame\n") && head.contains("\nmodel: inherit"), "{head}");
    assert!(agent::description().contains("push_frame") && !agent::description().contains('"'));
    assert!(
        agent::system_prompt().starts_with("You work in one frame") && agent::system_prompt().len() < 1_228
    );
    assert_eq!(agent::agents_flag_value()["frame"]["prompt"], agent::system_prompt());
}
