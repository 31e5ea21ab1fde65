//! The client's small files and words: plugins, compaction keys, versions, command lines, troubles of hooks.

use super::Target;
use crate::seeds::texts;
use plimsoll_protocol::client_settings::CompactionKeys;
use plimsoll_protocol::hook_trouble::HookTrouble;
use plimsoll_protocol::settings::{FIRST_MODERN, HookSupport, parse_version, plugins, quoted, starts_ours};

pub(super) const TARGET: Target = Target { name: "client_files", body, seeds, inputs: 20_000 };

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"version":2,"plugins":{"plimsoll@market":[{"installPath":"/a"},{"installPath":"/b"}]}}"#,
        r#"{"plugins":{"plimsoll@market":{"installPath":"/a"}}}"#,
        r#"{"name":"x","hooks":"./hooks.json"}"#,
        r#"{"hooks":{"Stop":[{"hooks":[{"type":"prompt","prompt":"go on"},{"command":"plimsoll-stop-gate"}]}]}}"#,
        r#"{"autoCompactEnabled":false,"autoCompactWindow":100000}"#,
        r#"{"attachment":{"type":"hook_cancelled","hookEvent":"Stop","command":"sleep 5","timedOut":true},"type":"attachment"}"#,
        r#"{"attachment":{"type":"hook_non_blocking_error","hookEvent":"Stop","stderr":"no"},"timestamp":"t"}"#,
        "2.1.329 (Claude Code)",
        "v2.0.77-beta",
        r#"'/a b/plimsoll-stop-gate' --plugin"#,
        r#""/a\" b/plimsoll-stop-gate""#,
    ])
}

fn body(bytes: &[u8]) {
    let _ = plugins::folders(bytes, "plimsoll@market");
    let _ = plugins::hooks_of_manifest(bytes);
    let _ = CompactionKeys::parse(bytes);
    let _ = HookTrouble::parse(bytes);
    let text = String::from_utf8_lossy(bytes);
    for hook in plugins::stop_hooks(&text) {
        assert!(!hook.is_empty() || text.contains("hooks"));
    }
    match parse_version(&text) {
        Some(version) => {
            assert_eq!(HookSupport::of_client(&text) == HookSupport::Modern, version >= FIRST_MODERN)
        }
        None => assert_eq!(HookSupport::of_client(&text), HookSupport::Classic),
    }
    let _ = starts_ours(&text);
    // A shell reads back what it was given.
    let path = format!("/{text}/plimsoll-stop-gate");
    assert!(starts_ours(&quoted(&path)), "{path:?}");
    assert!(starts_ours(&format!("{} --plugin", quoted(&path))), "{path:?}");
}
