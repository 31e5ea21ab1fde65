//! A project's `.mcp.json`: Plimsoll's server is added and removed, and every other server stays as it is.

use super::Target;
use crate::seeds::text_seeds;
use plimsoll_protocol::settings::{decode_utf8, servers};

pub(super) const TARGET: Target =
    Target { name: "server_file", check_input, seeds, mutated_input_count: 10_000 };

fn seeds() -> Vec<Vec<u8>> {
    text_seeds(&[
        "",
        "{}",
        "\u{feff}{\n    \"mcpServers\": {}\n}\n",
        r#"{"mcpServers":{"a":{"command":"b"},"plimsoll":{"command":"/x/plimsoll-mcp","args":[],"alwaysLoad":true}}}"#,
        r#"{"mcpServers": {"plimsoll": {"command": "plimsoll-mcp", "args": ["--workspace"]}}, "x": [1]}"#,
        "{\r\n\t\"mcpServers\": {\r\n\t\t\"plimsoll\": {\"command\": \"other\"}\r\n\t}\r\n}",
    ])
}

fn check_input(bytes: &[u8]) {
    let Ok(text) = decode_utf8(bytes) else { return };
    let program_path = |program: &str| format!("/o pt/{program}");
    let Ok(installed) = servers::add_or_update_our_server(text, &program_path) else { return };
    assert_eq!(
        servers::add_or_update_our_server(&installed.text, &program_path),
        Ok(installed.clone()),
        "a second time changes nothing"
    );
    if installed.entry_author != servers::McpEntryAuthor::Ours {
        assert_eq!(installed.text.trim_start_matches('\u{feff}'), text.trim_start_matches('\u{feff}'));
        return;
    }
    if servers::find_server_entry_author(text).is_ok_and(|entry| entry == Some(servers::McpEntryAuthor::Ours))
    {
        return;
    }
    assert!(
        servers::is_unchanged_since_install(text, &installed.text),
        "the file from before may be put back"
    );
    let uninstalled =
        servers::remove_our_server_and_empty_containers(&installed.text, Some(text)).expect("what we wrote");
    assert!(uninstalled.removed);
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        assert!(uninstalled.is_empty);
        return;
    }
    assert_eq!(uninstalled.text, text, "byte for byte");
}
