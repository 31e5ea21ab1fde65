//! Client arguments and settings that allow a session to run tools without asking.

use plimsoll_protocol::client_settings::PermissionSettings;

/// Flags that allow tools; each takes any number of values.
const ALLOW_FLAGS: [&str; 2] = ["--allowedTools", "--allowed-tools"];
/// Flags that forbid tools. A tool named by one of them cannot be allowed.
const DISALLOW_FLAGS: [&str; 2] = ["--disallowedTools", "--disallowed-tools"];

/// Returns the user's arguments with the refused tools added to those that they already allow. Returns `None` if
/// that would change nothing (the arguments already allow or forbid each of the tools by name, so something else
/// refuses them), or if a control character would make the command unsafe to copy.
pub fn add_unlisted_refused_tools_to_allowed(
    arguments: &[String],
    refused_tools: &[String],
) -> Option<Vec<String>> {
    let has_no_control_char = |text: &&String| !text.chars().any(char::is_control);
    if !refused_tools.iter().chain(arguments).all(|text| has_no_control_char(&text)) {
        return None;
    }
    let is_already_listed = |tool: &&String| {
        is_tool_listed_by_flags(arguments, &ALLOW_FLAGS, tool)
            || is_tool_listed_by_flags(arguments, &DISALLOW_FLAGS, tool)
    };
    let new_tools: Vec<String> =
        refused_tools.iter().filter(|tool| !is_already_listed(tool)).cloned().collect();
    if new_tools.is_empty() {
        return None;
    }
    let mut new_arguments = arguments.to_vec();
    match arguments.iter().rposition(|argument| flag_value(argument, &ALLOW_FLAGS).is_some()) {
        Some(index) if ALLOW_FLAGS.contains(&arguments[index].as_str()) => {
            let value_count =
                arguments[index + 1..].iter().take_while(|value| !value.starts_with('-')).count();
            let insert_index = index + 1 + value_count;
            new_arguments.splice(insert_index..insert_index, new_tools);
        }
        // `--allowedTools=Bash,Read` takes one value.
        Some(index) => new_arguments[index] = format!("{},{}", new_arguments[index], new_tools.join(",")),
        None => new_arguments.extend(std::iter::once(ALLOW_FLAGS[0].to_owned()).chain(new_tools)),
    }
    Some(new_arguments)
}

/// Permission modes in which the client runs commands without asking.
const MODES_WITHOUT_PROMPTS: [&str; 2] = ["bypassPermissions", "auto"];

/// Returns true if the user's arguments let a session run some shell commands without asking the user.
pub fn arguments_allow_some_bash_without_prompt(arguments: &[String]) -> bool {
    let lists_bash = |value: &str| value.split([',', ' ']).any(allows_some_bash_commands);
    let mut current_flag = "";
    arguments.iter().any(|argument| {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with('-') => (name, value),
            _ if argument.starts_with('-') => (argument.as_str(), ""),
            _ => (current_flag, argument.as_str()),
        };
        current_flag = name;
        match name {
            "--dangerously-skip-permissions" => true,
            "--permission-mode" => MODES_WITHOUT_PROMPTS.contains(&value),
            name => ALLOW_FLAGS.contains(&name) && lists_bash(value),
        }
    })
}

/// Returns true if the client's settings let a session run some shell commands without asking the user.
/// `settings_files` are in order of precedence, highest first.
pub fn settings_allow_some_bash_without_prompt(settings_files: &[PermissionSettings]) -> bool {
    let mode = settings_files.iter().find_map(|settings| settings.permissions.default_mode.as_deref());
    let is_sandboxed = settings_files.iter().find_map(|settings| settings.sandbox.enabled) == Some(true);
    let prompts_in_sandbox =
        settings_files.iter().find_map(|settings| settings.sandbox.auto_allow_bash_if_sandboxed)
            == Some(false);
    settings_files
        .iter()
        .flat_map(|settings| &settings.permissions.allow)
        .any(|rule| allows_some_bash_commands(rule))
        || mode.is_some_and(|mode| MODES_WITHOUT_PROMPTS.contains(&mode))
        || is_sandboxed && !prompts_in_sandbox
}

/// Returns true for any rule that allows some shell commands, such as `Bash` or `Bash(git:*)`.
fn allows_some_bash_commands(rule: &str) -> bool {
    rule == "*" || rule == "Bash" || rule.starts_with("Bash(")
}

/// Returns the value of the argument if it is one of these flags: the text after `=`, or an empty text if the
/// value follows as a separate argument. Returns `None` for any other argument.
fn flag_value<'a>(argument: &'a str, flags: &[&str]) -> Option<&'a str> {
    let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
    flags.contains(&name).then_some(value)
}

/// Returns true if the values of one of these flags include exactly this tool, without a pattern.
fn is_tool_listed_by_flags(arguments: &[String], flags: &[&str], tool: &str) -> bool {
    let mut is_after_flag = false;
    arguments.iter().any(|argument| {
        let value = match flag_value(argument, flags) {
            Some(value) => {
                is_after_flag = value.is_empty();
                value
            }
            None if argument.starts_with('-') => {
                is_after_flag = false;
                ""
            }
            None if is_after_flag => argument,
            None => "",
        };
        value.split([',', ' ']).any(|listed| listed == tool)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn arguments_allow_bash_by_rule_or_by_permission_mode() {
        for (arguments, expected) in [
            ("", false),
            ("--model opus", false),
            ("--allowedTools Bash", true),
            ("--allowedTools Read Edit Bash(git:*) --model opus", true),
            ("--allowed-tools=Read,Bash", true),
            ("--allowedTools Read,Bash", true),
            ("--allowedTools Read Edit --model Bash", false),
            ("--disallowedTools Bash", false),
            ("--allowedTools BashOutput", false),
            ("--permission-mode acceptEdits", false),
            ("--permission-mode bypassPermissions", true),
            ("--permission-mode=auto", true),
            ("--dangerously-skip-permissions", true),
        ] {
            assert_eq!(
                arguments_allow_some_bash_without_prompt(&split_words(arguments)),
                expected,
                "{arguments}"
            );
        }
    }

    #[test]
    fn settings_allow_bash_by_rule_mode_or_sandbox() {
        for (files, expected) in [
            (&["{}"][..], false),
            (&[r#"{"permissions": {"allow": ["Read", "Bash(npm test:*)"]}}"#], true),
            (&[r#"{"permissions": {"allow": ["Read"], "deny": ["Bash"]}}"#], false),
            (&[r#"{"permissions": {"defaultMode": "bypassPermissions"}}"#], true),
            (
                &[
                    r#"{"permissions": {"defaultMode": "default"}}"#,
                    r#"{"permissions": {"defaultMode": "bypassPermissions"}}"#,
                ],
                false,
            ),
            (&[r#"{"sandbox": {"enabled": true}}"#], true),
            (&[r#"{"sandbox": {"enabled": true, "autoAllowBashIfSandboxed": false}}"#], false),
            (&[r#"{"sandbox": {"enabled": false}}"#, r#"{"sandbox": {"enabled": true}}"#], false),
            (&["{}", r#"{"permissions": {"allow": ["Bash"]}}"#], true),
            (&["not JSON", r#"{"permissions": 7}"#], false),
        ] {
            let keys: Vec<PermissionSettings> =
                files.iter().map(|text| PermissionSettings::parse(text.as_bytes())).collect();
            assert_eq!(settings_allow_some_bash_without_prompt(&keys), expected, "{files:?}");
        }
    }

    #[test]
    fn refused_tools_are_added_to_the_allowed_ones() {
        for (arguments, tools, expected) in [
            ("", "Bash", "--allowedTools Bash"),
            ("--model opus", "Bash Write", "--model opus --allowedTools Bash Write"),
            ("--allowedTools Read --model opus", "Bash", "--allowedTools Read Bash --model opus"),
            ("--allowed-tools Bash(git:*) Read", "Bash", "--allowed-tools Bash(git:*) Read Bash"),
            ("--allowedTools=Read,Edit --model opus", "Bash", "--allowedTools=Read,Edit,Bash --model opus"),
            ("--disallowedTools WebFetch", "Bash", "--disallowedTools WebFetch --allowedTools Bash"),
            ("--allowedTools Bash", "Bash Write", "--allowedTools Bash Write"),
            ("--append-system-prompt Bash", "Bash", "--append-system-prompt Bash --allowedTools Bash"),
        ] {
            assert_eq!(
                add_unlisted_refused_tools_to_allowed(&split_words(arguments), &split_words(tools)),
                Some(split_words(expected)),
                "{arguments}"
            );
        }
    }

    #[test]
    fn no_arguments_are_offered_that_would_not_help() {
        for (arguments, tools) in [
            ("--model opus", ""),
            ("--allowedTools Bash Read", "Bash"),
            ("--allowedTools=Bash,Read", "Read"),
            ("--disallowedTools Bash", "Bash"),
            ("--disallowed-tools=WebFetch,Bash", "Bash"),
        ] {
            assert_eq!(
                add_unlisted_refused_tools_to_allowed(&split_words(arguments), &split_words(tools)),
                None,
                "{arguments}"
            );
        }
        assert_eq!(
            add_unlisted_refused_tools_to_allowed(
                &["--model".into(), "a\u{1b}[2J".into()],
                &split_words("Bash")
            ),
            None
        );
        assert_eq!(add_unlisted_refused_tools_to_allowed(&[], &["Ba\nsh".into()]), None);
    }
}
