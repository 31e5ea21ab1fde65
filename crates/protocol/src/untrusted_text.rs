//! Sanitizes untrusted text before it reaches a terminal or the model: replaces characters that control, hide or reorder
//! text, and tags that have a meaning for the client. All code that shows or sends untrusted text uses this module, so
//! there is only one list of each.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns true for control characters and for characters that are not visible: Unicode's default-ignorable
/// characters, direction marks, line separators, and the tag characters, which spell invisible ASCII.
pub fn is_hidden_or_control_character(character: char) -> bool {
    character.is_control()
        || matches!(u32::from(character),
            0xad | 0x34f | 0x61c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f | 0x200b..=0x200f
            | 0x2028..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfffb
            | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff)
}

/// Replaces each hidden character with its escape, such as `\u{1b}`. Line ends and tabs stay, as do the joiners and
/// variation selectors that a script or an emoji needs.
pub fn escape_hidden_characters(text: &str) -> Cow<'_, str> {
    rewrite_hidden_characters(text, |character, output| {
        // Writing to a `String` cannot fail.
        let _ = write!(output, "\\u{{{:x}}}", u32::from(character));
    })
}

/// Replaces each hidden character with one U+FFFD, for texts of bounded length. Keeps the same characters as
/// [`escape_hidden_characters`].
pub fn replace_hidden_characters(text: &str) -> Cow<'_, str> {
    rewrite_hidden_characters(text, |_, output| output.push('\u{fffd}'))
}

fn rewrite_hidden_characters(text: &str, write_replacement: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    if text.as_bytes().iter().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut output = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut previous = None;
    while let Some(character) = characters.next() {
        let next = characters.peek().copied();
        let starts_crlf = character == '\r' && next == Some('\n');
        let is_kept = matches!(character, '\n' | '\t')
            || !is_hidden_or_control_character(character)
            || is_needed_joiner_or_selector(previous, character, next);
        if is_kept {
            output.push(character);
        } else if !starts_crlf {
            write_replacement(character, &mut output);
        }
        previous = is_kept.then_some(character);
    }
    Cow::Owned(output)
}

/// Returns true for a joiner between two letters of a joining script or between two emoji, and for a variation selector
/// after a symbol or in a keycap emoji.
fn is_needed_joiner_or_selector(previous: Option<char>, character: char, next: Option<char>) -> bool {
    let is_symbol = |character: char| matches!(u32::from(character), 0xa9 | 0xae | 0x2010..=0x2027 | 0x2030..=0x205e | 0x2100..=0x2bff | 0x3030..=0x303d | 0x3297..=0x3299 | 0x1f000..=0x1faff);
    let can_be_joined = |character: char| {
        !is_hidden_or_control_character(character)
            && matches!(u32::from(character), 0x600..=0x1fff | 0x2190..=0x2bff | 0x1f000..=0x1faff)
    };
    match (previous, character, next) {
        (Some(before), '\u{200c}' | '\u{200d}', Some(after)) => {
            (can_be_joined(before) || before == '\u{fe0f}') && can_be_joined(after)
        }
        (Some('0'..='9' | '#' | '*'), '\u{fe0f}', Some('\u{20e3}')) => true,
        (Some(before), '\u{fe0e}' | '\u{fe0f}', _) => is_symbol(before),
        _ => false,
    }
}

/// Prefixes of the names of tags that have a meaning for the client or its model. None of them is a usual name in code, so
/// that text such as `Vec<Parameter>` stays readable.
const CLIENT_TAG_PREFIXES: [&str; 15] = [
    "system",
    "command-",
    "local-command",
    "task-",
    "user-prompt",
    "user-memory",
    "tool_use",
    "tool_result",
    "pasted_content",
    "antml",
    "persisted-output",
    "bash-",
    "ide_",
    "function_",
    "new-diagnostics",
];

/// Replaces `<` with `‹` wherever it would start a tag of the client.
pub fn neutralize_client_tags(text: &str) -> Cow<'_, str> {
    neutralize_tags(text, &CLIENT_TAG_PREFIXES)
}

/// Replaces `<` with `‹` wherever it would start a tag whose name has one of these prefixes, in any case. Skips `/`, white
/// space and hidden characters between `<` and the name.
pub fn neutralize_tags<'a>(text: &'a str, tag_prefixes: &[&str]) -> Cow<'a, str> {
    let (mut output, mut copied_end) = (String::new(), 0);
    for (bracket_start, bracket) in text.match_indices('<') {
        let name_start = bracket_start + bracket.len();
        if starts_with_tag_prefix(&text[name_start..], tag_prefixes) {
            output.push_str(&text[copied_end..bracket_start]);
            output.push('‹');
            copied_end = name_start;
        }
    }
    if copied_end == 0 { Cow::Borrowed(text) } else { Cow::Owned(output + &text[copied_end..]) }
}

fn starts_with_tag_prefix(text_after_bracket: &str, tag_prefixes: &[&str]) -> bool {
    let is_skipped = |character: &char| {
        *character == '/' || character.is_whitespace() || is_hidden_or_control_character(*character)
    };
    let trimmed = text_after_bracket.trim_start_matches(|character| is_skipped(&character));
    let max_prefix_length = tag_prefixes.iter().map(|tag| tag.len()).max().unwrap_or(0);
    // A space ends the name; a hidden character does not.
    let name: String = trimmed
        .chars()
        .filter(|character| !is_hidden_or_control_character(*character))
        .take(max_prefix_length)
        .collect();
    tag_prefixes
        .iter()
        .any(|tag| name.get(..tag.len()).is_some_and(|name_start| name_start.eq_ignore_ascii_case(tag)))
}

/// Sanitizes text for the model: escapes hidden characters and neutralizes the client's tags.
pub fn sanitize_for_model(text: &str) -> String {
    escape_hidden_characters(&neutralize_client_tags(text)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_escaped() {
        let hostile =
            "a\u{1b}]0;x\u{7}b\u{9b}c\u{7f}d\u{202e}e\u{2066}f\u{ad}g\u{e0041}h\u{200b}i\u{feff}j\rk\u{0}";
        let expected = r"a\u{1b}]0;x\u{7}b\u{9b}c\u{7f}d\u{202e}e\u{2066}f\u{ad}g\u{e0041}h\u{200b}i\u{feff}j\u{d}k\u{0}";
        assert_eq!(escape_hidden_characters(hostile), expected);
        assert_eq!(escape_hidden_characters(&escape_hidden_characters(hostile)), expected, "once is enough");
        assert_eq!(escape_hidden_characters("a\tb\r\nc\n"), "a\tb\nc\n");
        assert_eq!(replace_hidden_characters("a\u{1b}b\u{e0041}"), "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn joiners_stay_only_where_a_script_or_an_emoji_needs_them() {
        for kept in [
            "👩\u{200d}🔬",
            "🏳\u{fe0f}\u{200d}🌈",
            "می\u{200c}خواهم",
            "✔\u{fe0f} 1\u{fe0f}\u{20e3}",
            "ünï 認証",
        ] {
            assert_eq!(escape_hidden_characters(kept), kept);
        }
        for shown in [
            "a\u{200d}b",
            "a\u{fe0f}",
            "\u{200d}",
            "漢\u{200d}字",
            "👩\u{200d}",
            "a\u{fe0f}\u{200d}👩",
            "👩\u{200d}\u{fe0f}",
            "✔\u{fe0f}\u{fe0f}",
        ] {
            assert_ne!(escape_hidden_characters(shown), shown, "{shown:?}");
            assert_eq!(
                escape_hidden_characters(&escape_hidden_characters(shown)),
                escape_hidden_characters(shown),
                "once is enough"
            );
        }
    }

    #[test]
    fn only_the_clients_tags_lose_their_angle_bracket() {
        for tag in [
            "<system-reminder>",
            "</SYSTEM-reminder>",
            "< / system-reminder>",
            "<\u{200b}system>",
            "<sys\u{e0041}tem-reminder>",
            "<command-name>",
            "<function_calls>",
            "</function_results>",
            "<tool_use_error>",
            "<task-notification>",
        ] {
            assert!(neutralize_client_tags(tag).starts_with('‹'), "{tag:?}");
            assert!(sanitize_for_model(tag).starts_with('‹'), "{tag:?}");
        }
        for harmless in
            ["a < b", "Vec<Parameter>", "<div>", "<promise>COMPLETE 7f</promise>", "<", "1 <\u{200b}"]
        {
            assert_eq!(neutralize_client_tags(harmless), harmless);
        }
    }
}
