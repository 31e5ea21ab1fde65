//! What a client's version means, in words: the one that is too old, and the one that runs no hooks of ours.

use plimsoll_protocol::settings::{FIRST_CLASSIC, FIRST_PLUGIN, parse_version};

/// Why we do not work with a client, from the output of `claude --version`; none if we do, or if it does not report it.
pub fn too_old(version_text: &str) -> Option<String> {
    let version = parse_version(version_text).filter(|version| *version < FIRST_CLASSIC)?;
    Some(format!(
        "Claude Code {} is older than {}, the first version that knows the events of our hooks; it would silently drop them all",
        dotted(version),
        dotted(FIRST_CLASSIC)
    ))
}

/// Options of Claude Code (2.1.329, and a few of earlier versions), without those that ask it for something else than a session.
const OPTIONS: [&str; 46] = [
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

/// True if a word of a command line is an option of Claude Code, with or without a value.
pub fn is_option(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    OPTIONS.contains(&name)
}

/// What is to be done about it.
pub const UPDATE: &str = "update Claude Code, then run `plimsoll init` again";

/// What the server tells the model of a client that runs neither the memory's hooks nor those of our plugin, by the name
/// and the version with which that client introduces itself.
pub fn runs_no_hooks(name: &str, version: &str) -> Option<String> {
    let version =
        parse_version(version).filter(|version| name == "claude-code" && *version < FIRST_PLUGIN)?;
    Some(format!(
        "This client ({}) is older than {}: the working memory's hooks and those of Plimsoll's plugin do not run in it. \
        Nothing is shown to you automatically: call memory_show at the start and after a compaction. Tell the user once that \
        the plugin does not measure how full the context is: update Claude Code, or use `plimsoll init`.",
        dotted(version),
        dotted(FIRST_PLUGIN)
    ))
}

/// A version as people write it.
pub fn dotted((major, minor, patch): (u32, u32, u32)) -> String {
    format!("{major}.{minor}.{patch}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_the_client_is_known_with_and_without_its_value() {
        for (word, expected) in [
            ("--model", true),
            ("--model=opus", true),
            ("--allowedTools", true),
            ("--models", false),
            ("opus", false),
            ("-m", false),
            ("", false),
        ] {
            assert_eq!(is_option(word), expected, "{word}");
        }
    }

    #[test]
    fn a_version_is_too_old_runs_no_hooks_or_is_well() {
        for (version_text, is_too_old, is_without) in [
            ("0.2.9 (Claude Code)", true, true),
            ("1.0.84 (Claude Code)", true, true),
            ("1.0.85 (Claude Code)", false, true),
            ("2.1.117", false, true),
            ("2.1.118", false, false),
            ("3.0.0 (Claude Code)", false, false),
            ("who knows", false, false),
            ("", false, false),
        ] {
            assert_eq!(too_old(version_text).is_some(), is_too_old, "{version_text}");
            assert_eq!(runs_no_hooks("claude-code", version_text).is_some(), is_without, "{version_text}");
            assert_eq!(runs_no_hooks("another", version_text), None, "{version_text}");
        }
        let words = too_old("1.0.60 (Claude Code)").expect("words");
        assert!(words.contains("1.0.60") && words.contains("1.0.85"), "{words}");
    }
}
