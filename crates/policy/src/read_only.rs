//! Selects which of the user's arguments for the client are also passed to a read-only session.
//!
//! This is a list of harmless options rather than of dangerous ones, because a later version of the client may add an
//! option that lifts permissions. Checked against `claude --help` of 2.1.329.

use plimsoll_protocol::settings::parse_version;

/// The first version of the client with `--restricted`, which confines its file tools and the `@path` mentions of a prompt to
/// the working directory (`claude --help` of 2.1.247 does not have it). Permission rules cannot do that: a user's
/// `"allow": ["Read"]` permits every file, and a denial cannot name "everything outside this folder".
pub const FIRST_RESTRICTED_VERSION: (u32, u32, u32) = (2, 1, 248);

/// Options without a value.
const HARMLESS_FLAGS: [&str; 7] = [
    "--verbose",
    "--bare",
    "--safe-mode",
    "--no-chrome",
    "--no-session-persistence",
    "--disable-slash-commands",
    "--exclude-dynamic-system-prompt-sections",
];
/// Options with one value.
const HARMLESS_VALUE_OPTIONS: [&str; 14] = [
    "--model",
    "--fallback-model",
    "--effort",
    "--autocompact",
    "--max-budget-usd",
    "--max-turns",
    "--append-system-prompt",
    "--append-system-prompt-file",
    "--system-prompt",
    "--system-prompt-file",
    "--system-prompt-snapshot",
    "--name",
    "-n",
    "--debug-file",
];
/// Options with any number of values, up to the next option.
const HARMLESS_LIST_OPTIONS: [&str; 5] =
    ["--betas", "--disallowedTools", "--disallowed-tools", "--debug", "-d"];

/// The user's arguments for the client, split by whether they can lift the restrictions of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SplitArguments {
    /// Arguments to pass to the session.
    pub harmless: Vec<String>,
    /// Names of all other options, and positional arguments.
    pub refused: Vec<String>,
}

/// Splits arguments into harmless ones and those that must not be passed to a read-only session.
pub fn split_harmless_arguments(arguments: &[String]) -> SplitArguments {
    let mut split_arguments = SplitArguments::default();
    let mut is_harmless = true;
    // Number of values of the current option that may still follow.
    let mut remaining_value_count = 0;
    for argument in arguments {
        // The value of an option with one value may begin with a dash.
        let is_option = argument.starts_with('-') && remaining_value_count != 1;
        if is_option {
            let name = argument.split('=').next().unwrap_or_default();
            let has_value = argument.contains('=');
            (is_harmless, remaining_value_count) = match () {
                () if HARMLESS_FLAGS.contains(&name) => (true, 0),
                () if HARMLESS_VALUE_OPTIONS.contains(&name) => (true, usize::from(!has_value)),
                () if HARMLESS_LIST_OPTIONS.contains(&name) => (true, if has_value { 0 } else { usize::MAX }),
                // The number of its values is unknown, so none of them is passed.
                () => (false, usize::MAX),
            };
            match is_harmless {
                true => split_arguments.harmless.push(argument.clone()),
                false => split_arguments.refused.push(name.to_owned()),
            }
        } else if remaining_value_count == 0 {
            split_arguments.refused.push(argument.clone());
        } else {
            remaining_value_count -= 1;
            if is_harmless {
                split_arguments.harmless.push(argument.clone());
            }
        }
    }
    split_arguments
}

/// Returns true if a client of this version can confine a session to a folder. The argument is the client's `--version`
/// output.
pub fn supports_restricted_mode(version_text: &str) -> bool {
    parse_version(version_text).is_some_and(|version| version >= FIRST_RESTRICTED_VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to_arguments(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn only_arguments_known_to_be_harmless_are_passed_on() {
        for (arguments, harmless, refused) in [
            ("", "", ""),
            ("--model opus --verbose", "--model opus --verbose", ""),
            ("--model=opus --max-turns 3", "--model=opus --max-turns 3", ""),
            (
                "--append-system-prompt --dangerously-skip-permissions",
                "--append-system-prompt --dangerously-skip-permissions",
                "",
            ),
            ("--dangerously-skip-permissions --model opus", "--model opus", "--dangerously-skip-permissions"),
            ("--allow-dangerously-skip-permissions", "", "--allow-dangerously-skip-permissions"),
            ("--permission-mode bypassPermissions --verbose", "--verbose", "--permission-mode"),
            ("--permission-mode=acceptEdits", "", "--permission-mode"),
            ("--permission-mode auto --betas a b", "--betas a b", "--permission-mode"),
            ("--add-dir / /etc --effort low", "--effort low", "--add-dir"),
            ("--allowedTools Read(//**) Grep --allowed-tools=Read", "", "--allowedTools --allowed-tools"),
            ("--settings {} --setting-sources user", "", "--settings --setting-sources"),
            (
                "--agents {} --agent x --plugin-dir p --plugin-url u",
                "",
                "--agents --agent --plugin-dir --plugin-url",
            ),
            ("--mcp-config a b --tools Bash --ide --chrome", "", "--mcp-config --tools --ide --chrome"),
            (
                "--permission-prompt-tool x --some-later-option y",
                "",
                "--permission-prompt-tool --some-later-option",
            ),
            (
                "--disallowedTools Read(//etc/**) Grep -d api",
                "--disallowedTools Read(//etc/**) Grep -d api",
                "",
            ),
            ("--verbose words", "--verbose", "words"),
            ("--model opus words", "--model opus", "words"),
        ] {
            let expected =
                SplitArguments { harmless: to_arguments(harmless), refused: to_arguments(refused) };
            assert_eq!(split_harmless_arguments(&to_arguments(arguments)), expected, "{arguments}");
        }
    }

    #[test]
    fn a_client_confines_from_the_first_version_with_restricted() {
        for (version_text, expected) in [
            ("2.1.247", false),
            ("2.1.248 (Claude Code)", true),
            ("3.0.0", true),
            ("1.0.128", false),
            ("", false),
        ] {
            assert_eq!(supports_restricted_mode(version_text), expected, "{version_text}");
        }
    }
}
