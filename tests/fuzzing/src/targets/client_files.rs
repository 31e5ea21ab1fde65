//! Small files and texts of the client: plugins, compaction keys, versions, command lines, hook errors.

use super::Target;
use crate::seeds::text_seeds;
use plimsoll_protocol::client_settings::CompactionSettings;
use plimsoll_protocol::hook_failure::HookFailure;
use plimsoll_protocol::settings::{
    FIRST_MODERN_VERSION, HookSupport, parse_version, plugins, runs_our_program_in_exec_or_shell_form,
    shell_quote_if_needed,
};

pub(super) const TARGET: Target =
    Target { name: "client_files", check_input, seeds, mutated_input_count: 20_000 };

fn seeds() -> Vec<Vec<u8>> {
    text_seeds(&[
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

fn check_input(bytes: &[u8]) {
    let _ = plugins::install_paths(bytes, "plimsoll@market");
    let _ = plugins::parse_hooks_path_and_foreign_stop_commands(bytes);
    let _ = CompactionSettings::parse(bytes);
    let _ = HookFailure::from_error_or_timeout_line(bytes);
    let text = String::from_utf8_lossy(bytes);
    for hook in plugins::foreign_stop_commands(&text) {
        assert!(!hook.is_empty() || text.contains("hooks"));
    }
    match parse_version(&text) {
        Some(version) => {
            assert_eq!(
                HookSupport::from_client_version_or_classic(&text) == HookSupport::Modern,
                version >= FIRST_MODERN_VERSION
            )
        }
        None => assert_eq!(HookSupport::from_client_version_or_classic(&text), HookSupport::Classic),
    }
    let _ = runs_our_program_in_exec_or_shell_form(&text);
    // The shell must parse the quoted path back to the original.
    let path = format!("/{text}/plimsoll-stop-gate");
    assert!(runs_our_program_in_exec_or_shell_form(&shell_quote_if_needed(&path)), "{path:?}");
    assert!(
        runs_our_program_in_exec_or_shell_form(&format!("{} --plugin", shell_quote_if_needed(&path))),
        "{path:?}"
    );
}
