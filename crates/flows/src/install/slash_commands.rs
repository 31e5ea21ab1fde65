//! The slash commands that are installed. They name `plimsoll` by its path, because a client started by an
//! editor or the desktop has a different PATH than the user's shell. Files that a team shares use the bare
//! name.

use super::absolute_program_path_or_name;
use plimsoll_protocol::settings::quote_program_path;

/// The name and text of each file, with the program's bare name.
pub const SLASH_COMMAND_FILES: [(&str, &str); 2] = [
    ("ralph.md", include_str!("../../../../hooks-config/commands/ralph.md")),
    ("handoff.md", include_str!("../../../../hooks-config/commands/handoff.md")),
];

const PROGRAM: &str = "plimsoll";
/// The text before and after the program in the permission rule of the front matter.
const PERMISSION_DELIMITERS: (&str, &str) = ("Bash(", ":*)");

/// Returns the program's path, quoted for the shell, or its bare name if the path is unknown.
pub(super) fn shell_quoted_program_path_or_name() -> String {
    quote_program_path(&absolute_program_path_or_name(PROGRAM))
}

/// Replaces the program's name with this path in the permission rule and in the code spans of a file.
pub(super) fn replace_program_in_permission_and_code(text: &str, quoted_program: &str) -> String {
    let (front_matter, body) = split_front_matter(text);
    let (prefix, suffix) = PERMISSION_DELIMITERS;
    let permission = |program: &str| format!("{prefix}{program}{suffix}");
    let front_matter = front_matter.replace(&permission(PROGRAM), &permission(quoted_program));
    let mut body = body.to_owned();
    // In the body, the program's name is replaced only at the start of a code span.
    for delimiter in [' ', '`'] {
        body = body.replace(&format!("`{PROGRAM}{delimiter}"), &format!("`{quoted_program}{delimiter}"));
    }
    front_matter + &body
}

/// Returns true if the text differs from the original at most in the path of the program.
pub(super) fn is_unchanged_except_program_path(text: &str, original: &str) -> bool {
    let (prefix, suffix) = PERMISSION_DELIMITERS;
    let (front_matter, _) = split_front_matter(text);
    let program_and_tail = front_matter.split_once(prefix).and_then(|(_, tail)| tail.split_once(suffix));
    program_and_tail.is_some_and(|(quoted_program, _)| {
        replace_program_in_permission_and_code(original, quoted_program) == text
    })
}

/// Splits a file into the front matter, including its closing line of dashes, and the body.
fn split_front_matter(text: &str) -> (&str, &str) {
    const FRONT_MATTER_END: &str = "\n---\n";
    text.find(FRONT_MATTER_END).map_or(("", text), |end| text.split_at(end + FRONT_MATTER_END.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_names_the_program_by_the_given_word() {
        for (name, file) in SLASH_COMMAND_FILES {
            for word in ["/opt/bin/plimsoll", r"'/home/it'\''s mine/plimsoll'"] {
                let text = replace_program_in_permission_and_code(file, word);
                assert!(
                    !text.contains("`plimsoll ") || text.contains("written by `plimsoll init`"),
                    "{text}"
                );
                assert!(!split_front_matter(&text).1.contains("`plimsoll"), "{name}: {text}");
                assert!(text.contains(&format!("allowed-tools: Bash({word}:*)")), "{text}");
                assert!(
                    is_unchanged_except_program_path(&text, file)
                        && is_unchanged_except_program_path(file, file),
                    "{text}"
                );
                assert!(!is_unchanged_except_program_path(&format!("{text}more\n"), file));
                assert!(
                    !is_unchanged_except_program_path(&text.replacen(word, "/other", 1), file),
                    "one place has another path"
                );
            }
            assert_eq!(replace_program_in_permission_and_code(file, PROGRAM), file);
        }
    }
}
