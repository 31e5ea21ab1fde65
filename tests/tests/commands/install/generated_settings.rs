//! Property tests: `init` and `uninstall` on generated settings files and MCP server lists.

use plimsoll_protocol::settings::{self, EntryOptions, HookSupport, servers};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("\\PC{0,8}", inner), 0..4)
                .prop_map(|pairs| Value::Object(Map::from_iter(pairs))),
        ]
    })
}

fn indent_with_tabs(line: &str) -> String {
    let text = line.trim_start();
    format!("{}{text}\n", "\t".repeat((line.len() - text.len()) / 2))
}

/// Formats the JSON on one line, indented by two spaces, with a byte order mark and CRLF line ends, or indented by tabs.
fn format_in_layout(value: &Value, layout: usize) -> String {
    let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
    match layout {
        0 => value.to_string(),
        1 => pretty + "\n",
        2 => format!("\u{feff}{pretty}").replace('\n', "\r\n"),
        _ => pretty.lines().map(indent_with_tabs).collect(),
    }
}

fn any_hook_group() -> impl Strategy<Value = Value> {
    let entry = ("[a-z/ ]{0,12}", any_json())
        .prop_map(|(command, extra)| json!({"type": "command", "command": command, "extra": extra}));
    let group = (prop::option::of("[A-Z][a-z|]{0,8}"), prop::collection::vec(entry, 0..3));
    prop_oneof![
        group.prop_map(|(matcher, hooks)| match matcher {
            Some(matcher) => json!({"matcher": matcher, "hooks": hooks}),
            None => json!({"hooks": hooks}),
        }),
        any_json(),
    ]
}

fn any_parts() -> impl Strategy<Value = EntryOptions> {
    let parts = [HookSupport::Modern.into(), HookSupport::Classic.into(), HookSupport::Modern.with_memory()];
    prop::sample::select(parts.to_vec())
}

/// The text of a settings file with foreign hooks, in any order among other keys and in any layout.
fn any_settings() -> impl Strategy<Value = String> {
    let event =
        prop_oneof![Just("Stop"), Just("SessionStart"), Just("PostToolUse"), Just("PreToolUse"), Just("Odd")];
    let hooks = prop::collection::btree_map(event, prop::collection::vec(any_hook_group(), 0..3), 0..4);
    let other_keys = prop::collection::vec(("[a-zA-Z]{1,8}", any_json()), 0..4);
    let name = prop_oneof![Just("CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH".to_owned()), "[A-Z]{1,4}"];
    let env = prop::option::of(prop::collection::btree_map(name, "[0-9]", 0..3));
    (other_keys, env, prop::option::of(hooks), any::<prop::sample::Index>(), 0..4_usize).prop_map(
        |(other_keys, env, hooks, hooks_position, layout)| {
            let mut pairs: Vec<(String, Value)> = other_keys;
            pairs.extend(env.map(|env| ("env".to_owned(), json!(env))));
            if let Some(hooks) = hooks {
                pairs.insert(hooks_position.index(pairs.len() + 1), ("hooks".to_owned(), json!(hooks)));
            }
            let value = Value::Object(Map::from_iter(pairs));
            format_in_layout(&value, layout)
        },
    )
}

/// The text of a project's MCP server list, in any layout. It never has our own entry.
fn any_servers() -> impl Strategy<Value = String> {
    let server = prop_oneof![
        any_json(),
        "[a-z/ ]{0,12}".prop_map(|command| json!({"command": command, "args": ["x"]})),
    ];
    let name = prop_oneof![Just("plimsoll".to_owned()), "[a-z]{1,6}"];
    let servers = prop::collection::btree_map(name, server, 0..4);
    let other_keys = prop::collection::vec(("[a-zA-Z]{1,8}", any_json()), 0..3);
    (other_keys, prop::option::of(servers), 0..4_usize).prop_map(|(mut pairs, servers, layout)| {
        pairs.extend(servers.map(|servers| ("mcpServers".to_owned(), json!(servers))));
        format_in_layout(&Value::Object(Map::from_iter(pairs)), layout)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn uninstall_restores_any_settings_byte_for_byte(text in any_settings(), parts in any_parts(), then in any_parts()) {
        let spell = |program: &str| format!("/a b/{program}");
        let once = settings::install_or_update_our_entries(&text, parts, &spell).unwrap().text;
        prop_assert_eq!(&settings::install_or_update_our_entries(&once, parts, &spell).unwrap().text, &once);
        prop_assert!(settings::is_unchanged_since_install(&text, &once));
        let out = settings::remove_our_entries_and_empty_containers(&once, Some(&text)).unwrap().text;
        prop_assert_eq!(&out, &text);
        prop_assert_eq!(&settings::remove_our_entries_and_empty_containers(&text, None).unwrap().text, &text);
        let other = settings::install_or_update_our_entries(&once, then, &spell).unwrap().text;
        prop_assert_eq!(&settings::install_or_update_our_entries(&other, then, &spell).unwrap().text, &other);
        // Changing the template removes a list that becomes empty, even if the user had left it empty. It keeps the
        // memory's variable, because it may be the user's.
        let leaves_a_trace = text.contains("[]") || parts.include_memory && then.hook_support == HookSupport::Classic;
        if !leaves_a_trace {
            prop_assert_eq!(&settings::remove_our_entries_and_empty_containers(&other, Some(&text)).unwrap().text, &text);
        }
    }

    #[test]
    fn uninstall_restores_any_mcp_server_list_byte_for_byte(text in any_servers()) {
        let spell = |program: &str| format!("/a b/{program}");
        let joined = servers::add_or_update_our_server(&text, &spell).unwrap();
        prop_assert_eq!(&servers::add_or_update_our_server(&joined.text, &spell).unwrap().text, &joined.text);
        if joined.entry_author == servers::McpEntryAuthor::Ours {
            prop_assert!(servers::is_unchanged_since_install(&text, &joined.text));
        } else {
            prop_assert_eq!(&joined.text, &text);
        }
        prop_assert_eq!(&servers::remove_our_server_and_empty_containers(&joined.text, Some(&text)).unwrap().text, &text);
    }
}
