//! A project's `.mcp.json`: our server is put in and taken out, and every other one stays as it is.

use super::Target;
use crate::seeds::texts;
use plimsoll_protocol::settings::{decode_utf8, servers};

pub(super) const TARGET: Target = Target { name: "server_file", body, seeds, inputs: 10_000 };

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "",
        "{}",
        "\u{feff}{\n    \"mcpServers\": {}\n}\n",
        r#"{"mcpServers":{"a":{"command":"b"},"plimsoll":{"command":"/x/plimsoll-mcp","args":[],"alwaysLoad":true}}}"#,
        r#"{"mcpServers": {"plimsoll": {"command": "plimsoll-mcp", "args": ["--workspace"]}}, "x": [1]}"#,
        "{\r\n\t\"mcpServers\": {\r\n\t\t\"plimsoll\": {\"command\": \"other\"}\r\n\t}\r\n}",
    ])
}

fn body(bytes: &[u8]) {
    let Ok(text) = decode_utf8(bytes) else { return };
    let spell = |program: &str| format!("/o pt/{program}");
    let Ok(joined) = servers::install(text, &spell) else { return };
    assert_eq!(servers::install(&joined.text, &spell), Ok(joined.clone()), "a second time changes nothing");
    if joined.entry != servers::McpEntry::Ours {
        assert_eq!(joined.text.trim_start_matches('\u{feff}'), text.trim_start_matches('\u{feff}'));
        return;
    }
    if servers::find_server_entry(text).is_ok_and(|entry| entry == Some(servers::McpEntry::Ours)) {
        return;
    }
    assert!(servers::is_unchanged_since_install(text, &joined.text), "the file from before may be put back");
    let parted = servers::uninstall(&joined.text, Some(text)).expect("what we wrote");
    assert!(parted.removed);
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        assert!(parted.is_empty);
        return;
    }
    assert_eq!(parted.text, text, "byte for byte");
}
