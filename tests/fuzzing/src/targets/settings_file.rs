//! The client's settings file: our entries are put in and taken out, and everything else stays as it is.

use super::Target;
use crate::draw::dice;
use crate::seeds::texts;
use crate::spoil::tight;
use plimsoll_protocol::settings::{self, EntryOptions, HookSupport, InvalidSettings};
use serde_json::Value;

pub(super) const TARGET: Target = Target { name: "settings_file", body, seeds, inputs: 1_500 };

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
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

fn body(bytes: &[u8]) {
    let Ok(text) = settings::decode_utf8(bytes) else { return };
    let choice = dice(bytes);
    let parts: EntryOptions = match choice % 3 {
        0 => HookSupport::Modern.into(),
        1 => HookSupport::Classic.into(),
        _ => HookSupport::Modern.with_memory(),
    };
    let parts = EntryOptions { wrap_status_line: choice / 3 % 2 == 1, ..parts };
    let folder = ["/opt/bin/", "/o pt/b'in/", ""][choice / 6 % 3];
    let spell = |program: &str| format!("{folder}{program}");
    let said = settings::summarize_settings(text).map_err(|fault| place(text, &fault));
    let Ok(merged) = settings::install(text, parts, &spell).map_err(|fault| place(text, &fault)) else {
        return;
    };
    assert!(said.is_ok());
    let again = settings::install(&merged.text, parts, &spell).expect("what we wrote");
    assert_eq!(again.text, merged.text, "a second time changes nothing");
    let cleared = settings::uninstall(&merged.text, None).expect("what we wrote");
    assert_eq!(settings::has_no_plimsoll_entries(&cleared.text), Ok(true));
    if settings::has_no_plimsoll_entries(text) != Ok(true) {
        return;
    }
    assert_eq!(settings::find_differences(&merged.text, parts), Ok(Vec::new()), "all of ours is there");
    assert!(settings::is_unchanged_since_install(text, &merged.text), "the file from before may be put back");
    let cleared = settings::uninstall(&merged.text, Some(text)).expect("what we wrote");
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        assert!(cleared.is_empty);
        return;
    }
    assert_eq!(cleared.text, text, "byte for byte");
    // If the text from before is unknown, containers that were empty go. Nothing else is lost.
    let cleared = settings::uninstall(&merged.text, None).expect("what we wrote").text;
    let read = |text: &str| serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}')).ok();
    if read(text).is_some_and(|value| read(&cleared) == Some(value)) {
        assert_eq!(tight(&cleared), tight(text), "byte for byte, without the text from before");
    }
}

/// A fault is named with a place that is in the file.
fn place(text: &str, fault: &InvalidSettings) {
    assert!(fault.line >= 1 && fault.line <= text.split('\n').count().max(1) && fault.column >= 1, "{fault}");
}
