//! Messages about a client that is too old to use or too old to run the plugin's hooks, and the client's
//! command-line options.

use plimsoll_protocol::settings::{FIRST_CLASSIC_VERSION, FIRST_PLUGIN_VERSION, parse_version};

/// Returns why this client is not supported, from the output of `claude --version`. Returns `None` if it is
/// supported or does not report its version.
pub fn unsupported_client_reason(version_text: &str) -> Option<String> {
    let version = parse_version(version_text).filter(|version| *version < FIRST_CLASSIC_VERSION)?;
    Some(format!(
        "Claude Code {} is older than {}, the first version that knows the events of our hooks; it would silently drop them all",
        format_version(version),
        format_version(FIRST_CLASSIC_VERSION)
    ))
}

/// Options of Claude Code that start a session (2.1.329, and a few of earlier versions); options with another
/// purpose are omitted.
const SESSION_OPTIONS: [&str; 46] = [
    "--add-dir",
    "--agent",
    "--agents",
    "--allow-dangerously-skip-permissions",
    "--allowed-tools",
    "--allowedTools",
    "--append-system-prompt",
    "--autocompact",
    "--bare",
    "--betas",
    "--brief",
    "--chrome",
    "--continue",
    "--dangerously-skip-permissions",
    "--debug",
    "--debug-file",
    "--disable-slash-commands",
    "--disallowed-tools",
    "--disallowedTools",
    "--effort",
    "--fallback-model",
    "--file",
    "--fork-session",
    "--forward-subagent-text",
    "--ide",
    "--include-partial-messages",
    "--input-format",
    "--json-schema",
    "--max-budget-usd",
    "--max-turns",
    "--mcp-config",
    "--model",
    "--output-format",
    "--permission-mode",
    "--permission-prompts",
    "--plugin-dir",
    "--print",
    "--restricted",
    "--session-id",
    "--setting-sources",
    "--settings",
    "--strict-mcp-config",
    "--system-prompt",
    "--tools",
    "--verbose",
    "--worktree",
];

/// Returns true if an argument is an option of Claude Code, with or without a value.
pub fn is_session_option(argument: &str) -> bool {
    let name = argument.split('=').next().unwrap_or_default();
    SESSION_OPTIONS.contains(&name)
}

/// Advice for a client that is too old.
pub const UPDATE_ADVICE: &str = "update Claude Code, then run `plimsoll init` again";

/// Returns the notice that the MCP server sends to the model of a client that runs neither the memory's hooks
/// nor those of the plugin. `client_name` and `version_text` come from the client's `initialize` request.
pub fn notice_if_claude_code_lacks_plugin_hooks(client_name: &str, version_text: &str) -> Option<String> {
    let version = parse_version(version_text)
        .filter(|version| client_name == "claude-code" && *version < FIRST_PLUGIN_VERSION)?;
    Some(format!(
        "This client ({}) is older than {}: the working memory's hooks and those of Plimsoll's plugin do not run in it. \
        Nothing is shown to you automatically: call memory_show at the start and after a compaction. Tell the user once that \
        the plugin does not measure how full the context is: update Claude Code, or use `plimsoll init`.",
        format_version(version),
        format_version(FIRST_PLUGIN_VERSION)
    ))
}

pub fn format_version((major, minor, patch): (u32, u32, u32)) -> String {
    format!("{major}.{minor}.{patch}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_option_is_recognized_with_and_without_a_value() {
        for (word, expected) in [
            ("--model", true),
            ("--model=opus", true),
            ("--allowedTools", true),
            ("--models", false),
            ("opus", false),
            ("-m", false),
            ("", false),
        ] {
            assert_eq!(is_session_option(word), expected, "{word}");
        }
    }

    #[test]
    fn a_version_is_too_old_lacks_plugin_hooks_or_is_supported() {
        for (version_text, is_too_old, is_without) in [
            ("0.2.9 (Claude Code)", true, true),
            ("1.0.84 (Claude Code)", true, true),
            ("1.0.85 (Claude Code)", false, true),
            ("2.1.138", false, true),
            ("2.1.139", false, false),
            ("3.0.0 (Claude Code)", false, false),
            ("who knows", false, false),
            ("", false, false),
        ] {
            assert_eq!(unsupported_client_reason(version_text).is_some(), is_too_old, "{version_text}");
            assert_eq!(
                notice_if_claude_code_lacks_plugin_hooks("claude-code", version_text).is_some(),
                is_without,
                "{version_text}"
            );
            assert_eq!(
                notice_if_claude_code_lacks_plugin_hooks("another", version_text),
                None,
                "{version_text}"
            );
        }
        let reason = unsupported_client_reason("1.0.60 (Claude Code)").expect("words");
        assert!(reason.contains("1.0.60") && reason.contains("1.0.85"), "{reason}");
    }
}
