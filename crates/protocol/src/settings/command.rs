//! Commands in settings files: determining the program that one runs, and quoting for a shell.

use super::PROGRAM_NAMES;

/// The last argument of an [`exec_if_installed_command`]. It tells the program that its entry is in a shared project file.
pub const GUARDED_FLAG: &str = "--guarded";

/// Extends PATH with the usual folders of our programs, because a client that an editor or desktop started lacks the
/// user's shell setup. The plugin's entries also search these folders, but yield to an entry with such a command.
const PATH_ASSIGNMENT: &str = r#"PATH="${PATH:+$PATH:}$HOME/.local/bin:$HOME/.cargo/bin""#;

/// Returns a command for shared project settings, which does nothing where the program is not installed. The client
/// passes it to a shell.
pub(super) fn exec_if_installed_command(program: &str, arguments: &[String]) -> String {
    let arguments_and_flag: Vec<&str> = arguments.iter().map(String::as_str).chain([GUARDED_FLAG]).collect();
    format!(
        "{PATH_ASSIGNMENT}; command -v {program} >/dev/null || exit 0; exec {program} {}",
        arguments_and_flag.join(" ")
    )
}

/// Returns the program and its arguments if this is exactly a command that [`exec_if_installed_command`] writes.
pub(super) fn parse_exec_if_installed_command(command: &str) -> Option<(&str, Vec<String>)> {
    let program = command.strip_prefix(PATH_ASSIGNMENT)?.strip_prefix("; command -v ")?.split(' ').next()?;
    let arguments = command.rsplit_once("; exec ")?.1.split(' ').skip(1);
    let mut arguments: Vec<String> = arguments.map(str::to_owned).collect();
    arguments.pop();
    let needs_no_quotes = |argument: &String| shell_quote_if_needed(argument) == *argument;
    let is_ours = PROGRAM_NAMES.contains(&program) && arguments.iter().all(needs_no_quotes);
    (is_ours && exec_if_installed_command(program, &arguments) == command).then_some((program, arguments))
}

/// Returns true if the command runs one of our programs, in any folder. A command that only mentions one does not
/// count.
pub(super) fn runs_our_program(command: &str, is_exec_form: bool) -> bool {
    PROGRAM_NAMES.contains(&program_name(command, is_exec_form).as_str())
}

/// Returns true if the command runs one of our programs, in exec form or through a shell.
pub fn runs_our_program_in_exec_or_shell_form(command: &str) -> bool {
    runs_our_program(command, true) || runs_our_program(command, false)
}

pub(super) fn program_name(command: &str, is_exec_form: bool) -> String {
    if let Some((program, _)) = parse_exec_if_installed_command(command) {
        return program.to_owned();
    }
    let path = if is_exec_form {
        command_executable_with_spaces_if_ours(command)
    } else {
        first_shell_word(command)
    };
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// Returns the executable of a command. In exec form the whole text is a path, which may contain spaces; if the user left
/// arguments in it, only the first word is the executable.
pub(super) fn command_executable_with_spaces_if_ours(command: &str) -> String {
    if let Some((program, _)) = parse_exec_if_installed_command(command) {
        return program.to_owned();
    }
    let trimmed = command.trim();
    if trimmed.starts_with('\'') || trimmed.starts_with('"') || !trimmed.starts_with('/') {
        return first_shell_word(trimmed);
    }
    let file_name = trimmed.rsplit('/').next().unwrap_or_default();
    if PROGRAM_NAMES.contains(&file_name) { trimmed.to_owned() } else { first_shell_word(trimmed) }
}

/// Returns the first word as a shell reads it, with quotes and backslashes resolved.
pub(super) fn first_shell_word(command: &str) -> String {
    let mut word = String::new();
    let mut quote = None;
    let mut characters = command.trim_start().chars();
    while let Some(current) = characters.next() {
        match (quote, current) {
            (None, quote_mark @ ('\'' | '"')) => quote = Some(quote_mark),
            (Some(opening_quote), character) if opening_quote == character => quote = None,
            (None | Some('"'), '\\') => word.extend(characters.next()),
            (None, character) if character.is_whitespace() => break,
            _ => word.push(current),
        }
    }
    word
}

/// Quotes a word for a shell if necessary.
pub fn shell_quote_if_needed(argument: &str) -> String {
    let is_safe_character = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if !argument.is_empty() && argument.chars().all(is_safe_character) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_that_we_write_count_as_guarded() {
        for arguments in [vec![], vec!["memory".to_owned()], vec!["part-2".to_owned()]] {
            let command = exec_if_installed_command("plimsoll-memory", &arguments);
            assert_eq!(parse_exec_if_installed_command(&command), Some(("plimsoll-memory", arguments)));
            assert!(runs_our_program(&command, false));
            assert_eq!(command_executable_with_spaces_if_ours(&command), "plimsoll-memory");
        }
        let guarded_stop_gate = exec_if_installed_command("plimsoll-stop-gate", &[]);
        for changed_command in [
            guarded_stop_gate.replace("plimsoll-stop-gate", "plimsoll-stop"),
            guarded_stop_gate.replace("exec plimsoll-stop-gate", "exec plimsoll-post-tool"),
            guarded_stop_gate.replace(" --guarded", ""),
            guarded_stop_gate.replace(" --guarded", " $(id) --guarded"),
            guarded_stop_gate.replace(" --guarded", "; id --guarded"),
            guarded_stop_gate.replace("exit 0", "exit 1"),
            format!("{guarded_stop_gate} more"),
            format!("id; {guarded_stop_gate}"),
        ] {
            assert_eq!(parse_exec_if_installed_command(&changed_command), None, "{changed_command}");
        }
    }
}
