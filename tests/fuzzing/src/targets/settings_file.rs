//! The client's settings file: Plimsoll's entries are added and removed, and everything else stays as it is.

use super::Target;
use crate::draw::hash_of_bytes;
use crate::seeds::text_seeds;
use crate::spoil::without_space_in_empty_containers;
use plimsoll_protocol::settings::{self, EntryOptions, HookSupport, InvalidSettings};
use serde_json::Value;

pub(super) const TARGET: Target =
    Target { name: "settings_file", check_input, seeds, mutated_input_count: 1_500 };

fn seeds() -> Vec<Vec<u8>> {
    text_seeds(&[
        "",
        "{}",
        "{\n  \"model\": \"opus\"\n}\n",
        "\u{feff}{\r\n\t\"hooks\": {\r\n\t\t\"Stop\": []\r\n\t}\r\n}",
        r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"date"}]}]},"statusLine":{"type":"command","command":"mine --x"}}"#,
        r#"{"hooks": {"PostToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "a b"}, {"type":"command","command":"/x y/plimsoll-post-tool","args":[]}]}]}, "env": {"A": "1"}}"#,
        r#"{"statusLine": {"command": "/x/plimsoll-statusline --wrap 'mine --x'"}, "disableAllHooks": true, "enabledPlugins": {"a@b": true}}"#,
        "{\"env\": {\"CLAUDE_CODE_MAX_AGENT_DEPTH\": \"5\"}, \"hooks\": {}}",
        settings::MODERN_TEMPLATE,
        settings::CLASSIC_TEMPLATE,
        settings::MEMORY_TEMPLATE,
    ])
}

fn check_input(bytes: &[u8]) {
    let Ok(text) = settings::decode_utf8(bytes) else { return };
    let hash = hash_of_bytes(bytes);
    let parts: EntryOptions = match hash % 3 {
        0 => HookSupport::Modern.into(),
        1 => HookSupport::Classic.into(),
        _ => HookSupport::Modern.with_memory(),
    };
    let parts = EntryOptions { wrap_status_line: hash / 3 % 2 == 1, ..parts };
    let folder = ["/opt/bin/", "/o pt/b'in/", ""][hash / 6 % 3];
    let program_path = |program: &str| format!("{folder}{program}");
    let survey = settings::summarize_settings(text).map_err(|fault| assert_position_in_file(text, &fault));
    let Ok(installed) = settings::install_or_update_our_entries(text, parts, &program_path)
        .map_err(|fault| assert_position_in_file(text, &fault))
    else {
        return;
    };
    assert!(survey.is_ok());
    let installed_again = settings::install_or_update_our_entries(&installed.text, parts, &program_path)
        .expect("what we wrote");
    assert_eq!(installed_again.text, installed.text, "a second time changes nothing");
    let uninstalled =
        settings::remove_our_entries_and_empty_containers(&installed.text, None).expect("what we wrote");
    assert_eq!(settings::has_no_plimsoll_entries(&uninstalled.text), Ok(true));
    if settings::has_no_plimsoll_entries(text) != Ok(true) {
        return;
    }
    assert_eq!(
        settings::find_template_differences_if_installed(&installed.text, parts),
        Ok(Vec::new()),
        "all of ours is there"
    );
    assert!(
        settings::is_unchanged_since_install(text, &installed.text),
        "the file from before may be put back"
    );
    let uninstalled = settings::remove_our_entries_and_empty_containers(&installed.text, Some(text))
        .expect("what we wrote");
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        assert!(uninstalled.is_empty);
        return;
    }
    assert_eq!(uninstalled.text, text, "byte for byte");
    // Without the original text, empty containers are removed, but nothing else is lost.
    let uninstalled_text =
        settings::remove_our_entries_and_empty_containers(&installed.text, None).expect("what we wrote").text;
    let parse = |text: &str| serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}')).ok();
    if parse(text).is_some_and(|value| parse(&uninstalled_text) == Some(value)) {
        assert_eq!(
            without_space_in_empty_containers(&uninstalled_text),
            without_space_in_empty_containers(text),
            "byte for byte, without the text from before"
        );
    }
}

/// Asserts that the position of a parse error is inside the file.
fn assert_position_in_file(text: &str, error: &InvalidSettings) {
    assert!(error.line >= 1 && error.line <= text.split('\n').count().max(1) && error.column >= 1, "{error}");
}
