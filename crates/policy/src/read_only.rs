//! Which arguments for the client a session that can only read takes over from the user.
//!
//! This is a list of what is harmless, not of what is dangerous: a later version of the client may have an argument that lifts
//! permissions and that nobody has heard of here. Checked against `claude --help` of 2.1.329.

use plimsoll_protocol::settings::parse_version;

/// The first version of the client with `--restricted`, which confines its file tools and the `@path` mentions of a prompt to
/// the working directory (`claude --help` of 2.1.247 does not have it). Permission rules cannot do that: a user's
/// `"allow": ["Read"]` permits every file, and a denial cannot name "everything outside this folder".
pub const FIRST_CONFINED: (u32, u32, u32) = (2, 1, 248);

/// Options without a value.
const FLAGS: [&str; 7] = [
    "--verbose",
    "--bare",
    "--safe-mode",
    "--no-chrome",
    "--no-session-persistence",
    "--disable-slash-commands",
    "--exclude-dynamic-system-prompt-sections",
];
/// Options with one value.
const WITH_VALUE: [&str; 14] = [
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
/// Options whose values, any number of them, end at the next option.
const LISTS: [&str; 5] = ["--betas", "--disallowedTools", "--disallowed-tools", "--debug", "-d"];

/// The user's arguments for the client, split by whether they can lift what confines a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SplitArguments {
    /// What the session takes over.
    pub harmless: Vec<String>,
    /// The names of all other options, and words that belong to no option.
    pub refused: Vec<String>,
}

/// Splits arguments into harmless ones and those that a session which can only read must not get.
pub fn split_arguments(arguments: &[String]) -> SplitArguments {
    let mut split = SplitArguments::default();
    let mut is_kept = true;
    // How many words of the option at hand may still follow.
    let mut values_left = 0;
    for argument in arguments {
        // The value of an option with one value may begin with a dash.
        let is_option = argument.starts_with('-') && values_left != 1;
        if is_option {
            let name = argument.split('=').next().unwrap_or_default();
            let has_value = argument.contains('=');
            (is_kept, values_left) = match () {
                () if FLAGS.contains(&name) => (true, 0),
                () if WITH_VALUE.contains(&name) => (true, usize::from(!has_value)),
                () if LISTS.contains(&name) => (true, if has_value { 0 } else { usize::MAX }),
                // How many words belong to it is not known: none of them is taken over.
                () => (false, usize::MAX),
            };
            match is_kept {
                true => split.harmless.push(argument.clone()),
                false => split.refused.push(name.to_owned()),
            }
        } else if values_left == 0 {
            split.refused.push(argument.clone());
        } else {
            values_left -= 1;
            if is_kept {
                split.harmless.push(argument.clone());
            }
        }
    }
    split
}

/// Returns true if a client of this version, as it prints it, can confine a session to a folder.
pub fn can_confine(version_text: &str) -> bool {
    parse_version(version_text).is_some_and(|version| version >= FIRST_CONFINED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn only_arguments_that_are_known_to_be_harmless_are_taken_over() {
        for (given, harmless, refused) in [
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
            let expected = SplitArguments { harmless: words(harmless), refused: words(refused) };
            assert_eq!(split_arguments(&words(given)), expected, "{given}");
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
            assert_eq!(can_confine(version_text), expected, "{version_text}");
        }
    }
}
