//! What a settings file's command runs: which program, and how a shell must be given it.

use super::PROGRAMS;

/// The last word of a guarded command, by which the program knows that its entry is one for everybody.
pub const GUARDED: &str = "--guarded";

/// Where programs are that a client without the user's shell (an editor, a desktop) does not look: the plugin's entries look there,
/// too, and yield to these.
const PLACES: &str = r#"PATH="${PATH:+$PATH:}$HOME/.local/bin:$HOME/.cargo/bin""#;

/// A command for a project's settings, which everybody reads: where the program is not installed, nothing happens. The
/// client hands it to a shell.
pub(super) fn guarded(program: &str, arguments: &[String]) -> String {
    let words: Vec<&str> = arguments.iter().map(String::as_str).chain([GUARDED]).collect();
    format!("{PLACES}; command -v {program} >/dev/null || exit 0; exec {program} {}", words.join(" "))
}

/// The program and its arguments, if this is exactly a command as [`guarded`] writes it.
pub(super) fn of_guarded(command: &str) -> Option<(&str, Vec<String>)> {
    let program = command.strip_prefix(PLACES)?.strip_prefix("; command -v ")?.split(' ').next()?;
    let arguments = command.rsplit_once("; exec ")?.1.split(' ').skip(1);
    let mut arguments: Vec<String> = arguments.map(str::to_owned).collect();
    arguments.pop();
    let is_plain = |word: &String| quoted(word) == *word;
    let is_ours = PROGRAMS.contains(&program) && arguments.iter().all(is_plain);
    (is_ours && guarded(program, &arguments) == command).then_some((program, arguments))
}

/// A command is ours if it runs one of our programs, in any folder; not if it merely mentions one.
pub(super) fn is_ours(command: &str, exec_form: bool) -> bool {
    PROGRAMS.contains(&program_of(command, exec_form).as_str())
}

/// True for a command that runs one of our programs, with or without a shell.
pub fn starts_ours(command: &str) -> bool {
    is_ours(command, true) || is_ours(command, false)
}

pub(super) fn program_of(command: &str, exec_form: bool) -> String {
    if let Some((program, _)) = of_guarded(command) {
        return program.to_owned();
    }
    let path = if exec_form { first_word_or_whole(command) } else { first_word(command) };
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// What a command starts. In exec form the whole text is a path, spaces and all; where the user left arguments in it, its
/// first word.
pub(super) fn first_word_or_whole(command: &str) -> String {
    if let Some((program, _)) = of_guarded(command) {
        return program.to_owned();
    }
    let whole = command.trim();
    if whole.starts_with('\'') || whole.starts_with('"') || !whole.starts_with('/') {
        return first_word(whole);
    }
    let last = whole.rsplit('/').next().unwrap_or_default();
    if PROGRAMS.contains(&last) { whole.to_owned() } else { first_word(whole) }
}

/// The first word as a shell reads it, quotes and backslashes resolved.
pub(super) fn first_word(command: &str) -> String {
    let mut word = String::new();
    let mut quote = None;
    let mut characters = command.trim_start().chars();
    while let Some(next) = characters.next() {
        match (quote, next) {
            (None, mark @ ('\'' | '"')) => quote = Some(mark),
            (Some(open), character) if open == character => quote = None,
            (None | Some('"'), '\\') => word.extend(characters.next()),
            (None, character) if character.is_whitespace() => break,
            _ => word.push(next),
        }
    }
    word
}

/// A word as a shell must be given it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_we_write_counts_as_guarded() {
        for arguments in [vec![], vec!["memory".to_owned()], vec!["part-2".to_owned()]] {
            let command = guarded("plimsoll-memory", &arguments);
            assert_eq!(of_guarded(&command), Some(("plimsoll-memory", arguments)));
            assert!(is_ours(&command, false));
            assert_eq!(first_word_or_whole(&command), "plimsoll-memory");
        }
        let ours = guarded("plimsoll-stop-gate", &[]);
        for other in [
            ours.replace("plimsoll-stop-gate", "plimsoll-stop"),
            ours.replace("exec plimsoll-stop-gate", "exec plimsoll-post-tool"),
            ours.replace(" --guarded", ""),
            ours.replace(" --guarded", " $(id) --guarded"),
            ours.replace(" --guarded", "; id --guarded"),
            ours.replace("exit 0", "exit 1"),
            format!("{ours} more"),
            format!("id; {ours}"),
        ] {
            assert_eq!(of_guarded(&other), None, "{other}");
        }
    }
}
