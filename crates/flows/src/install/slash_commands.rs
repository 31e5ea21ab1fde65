//! The slash commands that are installed. They name `plimsoll` by its path, because the shell of a client
//! that an editor or the desktop starts has another PATH than the user's. Files that a team shares use the
//! bare name.

use super::program_home::program_path_for_settings;
use plimsoll_protocol::settings::shell_quote;

/// The files as a team shares them.
pub const COMMANDS: [(&str, &str); 2] = [
    ("ralph.md", include_str!("../../../../hooks-config/commands/ralph.md")),
    ("handoff.md", include_str!("../../../../hooks-config/commands/handoff.md")),
];

const PROGRAM: &str = "plimsoll";
/// The text around the program in the front matter's permission.
const PERMISSION_DELIMITERS: (&str, &str) = ("Bash(", ":*)");

/// Returns the shell word by which the slash commands of this user name the program.
pub(super) fn shell_word_for_program() -> String {
    program_path_for_settings(PROGRAM)
        .map_or_else(|| PROGRAM.to_owned(), |path| shell_quote(&path.display().to_string()))
}

/// Returns a file's text with this shell word instead of the program's name.
pub(super) fn replace_program_name(text: &str, program_word: &str) -> String {
    let (front_matter, body) = split_front_matter(text);
    let (before, after) = PERMISSION_DELIMITERS;
    let permission = |program: &str| format!("{before}{program}{after}");
    let front_matter = front_matter.replace(&permission(PROGRAM), &permission(program_word));
    let mut body = body.to_owned();
    // In the body, the program is the first word of a code span.
    for end in [' ', '`'] {
        body = body.replace(&format!("`{PROGRAM}{end}"), &format!("`{program_word}{end}"));
    }
    front_matter + &body
}

/// Returns true if the text is this file with any program path.
pub(super) fn is_unchanged_command(text: &str, original: &str) -> bool {
    let (before, after) = PERMISSION_DELIMITERS;
    let (front_matter, _) = split_front_matter(text);
    let word = front_matter.split_once(before).and_then(|(_, rest)| rest.split_once(after));
    word.is_some_and(|(word, _)| replace_program_name(original, word) == text)
}

/// Splits a file into the front matter between the two lines of dashes, and the body.
fn split_front_matter(text: &str) -> (&str, &str) {
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
                let text = replace_program_name(file, word);
                assert!(
                    !text.contains("`plimsoll ") || text.contains("written by `plimsoll init`"),
                    "{text}"
                );
                assert!(!split_front_matter(&text).1.contains("`plimsoll"), "{name}: {text}");
                assert!(text.contains(&format!("allowed-tools: Bash({word}:*)")), "{text}");
                assert!(is_unchanged_command(&text, file) && is_unchanged_command(file, file), "{text}");
                assert!(!is_unchanged_command(&format!("{text}more\n"), file));
                assert!(
                    !is_unchanged_command(&text.replacen(word, "/other", 1), file),
                    "one place has another path"
                );
            }
            assert_eq!(replace_program_name(file, PROGRAM), file);
        }
    }
}
