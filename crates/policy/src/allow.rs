//! Which arguments allow a client's session the tools that the client has refused it.

use plimsoll_protocol::client_settings::PermissionKeys;

/// The flags that allow tools, each followed by any number of them.
const ALLOW: [&str; 2] = ["--allowedTools", "--allowed-tools"];
/// The flags that forbid tools: what they name cannot be allowed.
const FORBID: [&str; 2] = ["--disallowedTools", "--disallowed-tools"];

/// The user's arguments, with these tools allowed beside what they allow already. None if that would change nothing: the
/// arguments name each of the tools already, so something else refuses them. None, too, where a control character makes
/// the command no line to copy.
pub fn allowing(arguments: &[String], tools: &[String]) -> Option<Vec<String>> {
    let is_plain = |text: &&String| !text.chars().any(char::is_control);
    if !tools.iter().chain(arguments).all(|text| is_plain(&text)) {
        return None;
    }
    let is_named = |tool: &&String| names(arguments, &ALLOW, tool) || names(arguments, &FORBID, tool);
    let tools: Vec<String> = tools.iter().filter(|tool| !is_named(tool)).cloned().collect();
    if tools.is_empty() {
        return None;
    }
    let mut merged = arguments.to_vec();
    match arguments.iter().rposition(|argument| flag(argument, &ALLOW).is_some()) {
        Some(at) if ALLOW.contains(&arguments[at].as_str()) => {
            let values = arguments[at + 1..].iter().take_while(|value| !value.starts_with('-')).count();
            let end = at + 1 + values;
            merged.splice(end..end, tools);
        }
        // `--allowedTools=Bash,Read` takes one value.
        Some(at) => merged[at] = format!("{},{}", merged[at], tools.join(",")),
        None => merged.extend(std::iter::once(ALLOW[0].to_owned()).chain(tools)),
    }
    Some(merged)
}

/// Modes in which the client asks for no permission to run a command.
const UNASKED: [&str; 2] = ["bypassPermissions", "auto"];

/// True if the user's arguments let a session run commands without being asked.
pub fn arguments_allow_bash(arguments: &[String]) -> bool {
    let is_bash = |value: &str| value.split([',', ' ']).any(is_bash_rule);
    let mut option = "";
    arguments.iter().any(|argument| {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with('-') => (name, value),
            _ if argument.starts_with('-') => (argument.as_str(), ""),
            _ => (option, argument.as_str()),
        };
        option = name;
        match name {
            "--dangerously-skip-permissions" => true,
            "--permission-mode" => UNASKED.contains(&value),
            name => ALLOW.contains(&name) && is_bash(value),
        }
    })
}

/// True if the client's settings, the deciding file first, let a session run commands without being asked.
pub fn settings_allow_bash(files: &[PermissionKeys]) -> bool {
    let mode = files.iter().find_map(|keys| keys.permissions.default_mode.as_deref());
    let is_sandboxed = files.iter().find_map(|keys| keys.sandbox.enabled) == Some(true);
    let is_asked_in_sandbox =
        files.iter().find_map(|keys| keys.sandbox.auto_allow_bash_if_sandboxed) == Some(false);
    files.iter().flat_map(|keys| &keys.permissions.allow).any(|rule| is_bash_rule(rule))
        || mode.is_some_and(|mode| UNASKED.contains(&mode))
        || is_sandboxed && !is_asked_in_sandbox
}

/// True for `Bash` and `Bash(git:*)`.
fn is_bash_rule(rule: &str) -> bool {
    rule == "*" || rule == "Bash" || rule.starts_with("Bash(")
}

/// The value that is in the same word as one of these flags, empty if it follows it; none for another word.
fn flag<'a>(argument: &'a str, flags: &[&str]) -> Option<&'a str> {
    let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
    flags.contains(&name).then_some(value)
}

/// True if one of these flags names the whole tool.
fn names(arguments: &[String], flags: &[&str], tool: &str) -> bool {
    let mut is_behind = false;
    arguments.iter().any(|argument| {
        let value = match flag(argument, flags) {
            Some(value) => {
                is_behind = value.is_empty();
                value
            }
            None if argument.starts_with('-') => {
                is_behind = false;
                ""
            }
            None if is_behind => argument,
            None => "",
        };
        value.split([',', ' ']).any(|named| named == tool)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn bash_is_allowed_by_its_name_or_by_a_mode_that_asks_nobody() {
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
            assert_eq!(arguments_allow_bash(&words(arguments)), expected, "{arguments}");
        }
    }

    #[test]
    fn bash_is_allowed_by_a_rule_a_mode_or_the_sandbox_of_the_settings() {
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
            let keys: Vec<PermissionKeys> =
                files.iter().map(|text| PermissionKeys::parse(text.as_bytes())).collect();
            assert_eq!(settings_allow_bash(&keys), expected, "{files:?}");
        }
    }

    #[test]
    fn what_is_refused_is_allowed_beside_what_is_allowed_already() {
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
            assert_eq!(allowing(&words(arguments), &words(tools)), Some(words(expected)), "{arguments}");
        }
    }

    #[test]
    fn nothing_is_offered_that_would_not_help() {
        for (arguments, tools) in [
            ("--model opus", ""),
            ("--allowedTools Bash Read", "Bash"),
            ("--allowedTools=Bash,Read", "Read"),
            ("--disallowedTools Bash", "Bash"),
            ("--disallowed-tools=WebFetch,Bash", "Bash"),
        ] {
            assert_eq!(allowing(&words(arguments), &words(tools)), None, "{arguments}");
        }
        assert_eq!(allowing(&["--model".into(), "a\u{1b}[2J".into()], &words("Bash")), None);
        assert_eq!(allowing(&[], &["Ba\nsh".into()]), None);
    }
}
