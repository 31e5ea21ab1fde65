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
    program_name_at_path(&path).to_owned()
}

/// Returns the name of the program at a path of this or of another system. On Windows `\` separates names too, and the names
/// of programs end with `.exe`.
pub fn program_name_at_path(path: &str) -> &str {
    let is_separator = |c: char| c == '/' || c == '\\' && is_windows_path(path);
    let file_name = path.rsplit(is_separator).next().unwrap_or_default();
    match file_name.rsplit_once('.') {
        Some((name, extension)) if extension.eq_ignore_ascii_case("exe") => name,
        _ => file_name,
    }
}

/// Returns true for an absolute path of Windows: with the letter of a drive, or of a share (`\\server\share`).
pub fn is_windows_path(path: &str) -> bool {
    path.starts_with(r"\\")
        || matches!(path.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic())
}

/// Returns the path of a program for an entry that no shell reads. A path of Windows has backslashes: with slashes it would
/// be a relative path to a client for Linux that reads the same file, and name a program in the project.
pub(super) fn exec_form_path(path: &str) -> String {
    if is_windows_path(path) { path.replace('/', r"\") } else { path.to_owned() }
}

/// Returns the executable of a command. In exec form the whole text is a path, which may contain spaces; if the user left
/// arguments in it, only the first word is the executable.
pub(super) fn command_executable_with_spaces_if_ours(command: &str) -> String {
    if let Some((program, _)) = parse_exec_if_installed_command(command) {
        return program.to_owned();
    }
    let trimmed = command.trim();
    let is_absolute_path = trimmed.starts_with('/') || is_windows_path(trimmed);
    if is_absolute_path && PROGRAM_NAMES.contains(&program_name_at_path(trimmed)) {
        trimmed.to_owned()
    } else {
        first_shell_word(trimmed)
    }
}

/// Returns the first word as a shell reads it, with quotes and backslashes resolved. In a path of Windows the backslashes
/// stay, as in PowerShell and `cmd`: a POSIX shell would find no program without them.
pub(super) fn first_shell_word(command: &str) -> String {
    let mut word = String::new();
    let mut quote = None;
    // PowerShell starts a quoted path only after `&`.
    let command = command.trim_start().trim_start_matches("& ").trim_start();
    if is_windows_path(command) {
        return command.split(char::is_whitespace).next().unwrap_or_default().to_owned();
    }
    let mut characters = command.chars().peekable();
    while let Some(current) = characters.next() {
        match (quote, current) {
            (None, quote_mark @ ('\'' | '"')) => quote = Some(quote_mark),
            (Some(opening_quote), character) if opening_quote == character => quote = None,
            (None, '\\') => word.extend(characters.next()),
            (Some('"'), '\\') => {
                let escaped = characters.next_if(|next| ESCAPED_IN_DOUBLE_QUOTES.contains(next));
                word.push(escaped.unwrap_or('\\'));
            }
            (None, character) if character.is_whitespace() => break,
            _ => word.push(current),
        }
    }
    word
}

/// The characters before which a POSIX shell removes a backslash inside double quotes.
const ESCAPED_IN_DOUBLE_QUOTES: [char; 4] = ['$', '`', '"', '\\'];

/// Returns true for a character that has no meaning of its own in a path in Git Bash, PowerShell and `cmd`.
pub fn is_plain_in_windows_shells(character: char) -> bool {
    character.is_alphanumeric() || "/._-+:~".contains(character)
}

/// Returns true for the path of a program on Windows that has to be quoted.
pub fn needs_quotes_in_windows_shells(path: &str) -> bool {
    is_windows_path(path) && !path.replace('\\', "/").chars().all(is_plain_in_windows_shells)
}

/// Quotes the path of a program for the client's shell if necessary. On Windows that is Git Bash, or PowerShell if there is no
/// Git Bash; older clients used `cmd`. All of them read slashes. Their quotes have nothing in common: to PowerShell a quoted
/// path is only a text.
pub fn quote_program_path(path: &str) -> String {
    if !is_windows_path(path) {
        return shell_quote_if_needed(path);
    }
    let path = path.replace('\\', "/");
    if path.chars().all(is_plain_in_windows_shells) {
        path
    } else if path.contains(['$', '`']) {
        shell_quote_if_needed(&path)
    } else {
        // `cmd` reads these quotes, too.
        format!("\"{path}\"")
    }
}

/// Quotes a word for a POSIX shell if necessary.
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
    fn programs_are_recognized_by_their_paths_of_every_system() {
        for (command, exec_form_name, shell_form_name) in [
            ("plimsoll-memory", "plimsoll-memory", "plimsoll-memory"),
            ("plimsoll-memory.EXE part-2", "plimsoll-memory", "plimsoll-memory"),
            ("/opt/bin/plimsoll-memory", "plimsoll-memory", "plimsoll-memory"),
            ("/opt/my bin/plimsoll-memory", "plimsoll-memory", "my"),
            (r"/opt/my\ bin/plimsoll-memory x", "plimsoll-memory", "plimsoll-memory"),
            ("C:/Tools/plimsoll-memory.exe", "plimsoll-memory", "plimsoll-memory"),
            (r"C:\Tools\plimsoll-memory.exe", "plimsoll-memory", "plimsoll-memory"),
            (r"c:\Tools\plimsoll-memory", "plimsoll-memory", "plimsoll-memory"),
            (r"C:\Tools\plimsoll-memory.exe part-2", "plimsoll-memory", "plimsoll-memory"),
            ("C:/My Tools/plimsoll-memory.exe", "plimsoll-memory", "My"),
            (r#""C:\My Tools\plimsoll-memory.exe" part-2"#, "plimsoll-memory", "plimsoll-memory"),
            ("'C:/My Tools/plimsoll-memory.exe' part-2", "plimsoll-memory", "plimsoll-memory"),
            (r#""/opt/a \"b\"/plimsoll-memory""#, "plimsoll-memory", "plimsoll-memory"),
            (r"/opt/a\plimsoll-memory", r"aplimsoll-memory", "aplimsoll-memory"),
            (r"relative\plimsoll-memory.exe", "relativeplimsoll-memory", "relativeplimsoll-memory"),
            (r"\\server\my share\plimsoll-memory.exe", "plimsoll-memory", "my"),
            (r#"& "C:/My Tools/plimsoll-memory.exe" part-2"#, "plimsoll-memory", "plimsoll-memory"),
            ("C:/Tools/plimsoll-memory.bat", "plimsoll-memory.bat", "plimsoll-memory.bat"),
            ("C:/Tools/plimsoll-memory.exe.bat", "plimsoll-memory.exe.bat", "plimsoll-memory.exe.bat"),
            (r"C:\Tools\other.exe plimsoll-memory", "other", "other"),
        ] {
            assert_eq!(program_name(command, true), exec_form_name, "exec form: {command}");
            assert_eq!(program_name(command, false), shell_form_name, "shell form: {command}");
        }
    }

    #[test]
    fn a_quoted_program_path_is_read_back_by_a_shell() {
        for (path, quoted) in [
            ("/opt/bin/plimsoll", "/opt/bin/plimsoll"),
            ("/opt/my bin/plimsoll", "'/opt/my bin/plimsoll'"),
            ("C:/Users/jo/plimsoll.exe", "C:/Users/jo/plimsoll.exe"),
            ("C:/Users/Jörg/plimsoll.exe", "C:/Users/Jörg/plimsoll.exe"),
            ("C:/Users/JANEDO~1/plimsoll.exe", "C:/Users/JANEDO~1/plimsoll.exe"),
            ("C:/Users/Jane Doe/plimsoll.exe", "\"C:/Users/Jane Doe/plimsoll.exe\""),
            ("C:/Users/O'Hara (x)/plimsoll.exe", "\"C:/Users/O'Hara (x)/plimsoll.exe\""),
            ("C:/a$b/plimsoll.exe", "'C:/a$b/plimsoll.exe'"),
        ] {
            assert_eq!(quote_program_path(path), quoted);
            assert_eq!(first_shell_word(quoted), path);
            // An entry without a shell has the same path, which is found in the file at the next installation.
            let exec_form = exec_form_path(path);
            assert_eq!(exec_form.contains('/'), path.starts_with('/'), "{exec_form}");
            assert_eq!(quote_program_path(&exec_form), quoted);
        }
    }

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
