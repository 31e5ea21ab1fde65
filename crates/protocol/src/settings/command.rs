//! What a settings file's command runs: which program, and how a shell must be given it.

use super::PROGRAMS;

/// A command is ours if it runs one of our programs, in any folder; not if it merely mentions one.
pub(super) fn is_ours(command: &str, exec_form: bool) -> bool {
    PROGRAMS.contains(&program_of(command, exec_form).as_str())
}

/// True for a command that runs one of our programs, with or without a shell.
pub fn starts_ours(command: &str) -> bool {
    is_ours(command, true) || is_ours(command, false)
}

pub(super) fn program_of(command: &str, exec_form: bool) -> String {
    let path = if exec_form { first_word_or_whole(command) } else { first_word(command) };
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// In exec form the whole text is a path, spaces and all; where the user left arguments in it, its first word.
pub(super) fn first_word_or_whole(command: &str) -> String {
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
    let mut letters = command.trim_start().chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None | Some('"'), '\\') => word.extend(letters.next()),
            (None, _) if letter.is_whitespace() => break,
            _ => word.push(letter),
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
