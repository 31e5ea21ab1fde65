//! The slash commands that come along. The model starts `plimsoll` by the path that they name, because the shell of a client that an
//! editor or the desktop starts has another PATH than the user's. Where everybody shares the files they name it by its name.

use super::program_home::settings_path;
use plimsoll_protocol::settings::quoted;

/// The files, as a project has them for everybody.
pub const COMMANDS: [(&str, &str); 2] = [
    ("ralph.md", include_str!("../../../../hooks-config/commands/ralph.md")),
    ("handoff.md", include_str!("../../../../hooks-config/commands/handoff.md")),
];

const PROGRAM: &str = "plimsoll";
/// The line of the head that lets the model start the program.
const PERMISSION: (&str, &str) = ("Bash(", ":*)");

/// Returns the shell word by which the slash commands of this user name the program.
pub(super) fn users_program() -> String {
    settings_path(PROGRAM).map_or_else(|| PROGRAM.to_owned(), |path| quoted(&path.display().to_string()))
}

/// Returns a file's text with this shell word instead of the program's name.
pub(super) fn with_program(text: &str, word: &str) -> String {
    let (head, body) = split_head(text);
    let (before, after) = PERMISSION;
    let permission = |word: &str| format!("{before}{word}{after}");
    let head = head.replace(&permission(PROGRAM), &permission(word));
    let mut body = body.to_owned();
    // In the text it is the first word of a span of code.
    for end in [' ', '`'] {
        body = body.replace(&format!("`{PROGRAM}{end}"), &format!("`{word}{end}"));
    }
    head + &body
}

/// True if a text is this file, whatever the path is that it names.
pub(super) fn is_unchanged(text: &str, file: &str) -> bool {
    let (before, after) = PERMISSION;
    let (head, _) = split_head(text);
    let word = head.split_once(before).and_then(|(_, rest)| rest.split_once(after));
    word.is_some_and(|(word, _)| with_program(file, word) == text)
}

/// The head between the two lines of dashes, and the body.
fn split_head(text: &str) -> (&str, &str) {
    const END: &str = "\n---\n";
    text.find(END).map_or(("", text), |end| text.split_at(end + END.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_names_the_program_by_the_given_word() {
        for (name, file) in COMMANDS {
            for word in ["/opt/bin/plimsoll", r"'/home/it'\''s mine/plimsoll'"] {
                let text = with_program(file, word);
                assert!(
                    !text.contains("`plimsoll ") || text.contains("written by `plimsoll init`"),
                    "{text}"
                );
                assert!(!split_head(&text).1.contains("`plimsoll"), "{name}: {text}");
                assert!(text.contains(&format!("allowed-tools: Bash({word}:*)")), "{text}");
                assert!(is_unchanged(&text, file) && is_unchanged(file, file), "{text}");
                assert!(!is_unchanged(&format!("{text}more\n"), file));
                assert!(!is_unchanged(&text.replacen(word, "/other", 1), file), "one place has another path");
            }
            assert_eq!(with_program(file, PROGRAM), file);
        }
    }
}
