//! What foreign words may not carry to a terminal or to the model: letters that steer, hide or turn the writing round,
//! and tags that mean something to the client. The one list of each; everything that shows or sends words asks it.

use std::borrow::Cow;
use std::fmt::Write;

/// True for a control character, and for one that is not seen: Unicode's default-ignorable characters, the marks of
/// direction, separators of lines, and the tag characters, which spell ASCII that only a machine reads.
pub fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(u32::from(letter),
            0xad | 0x34f | 0x61c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f | 0x200b..=0x200f
            | 0x2028..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfffb
            | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff)
}

/// The text with each hidden character shown as `\u{1b}`. Ends of lines and tabs stay, and joiners and selectors where
/// a script or an emoji needs them.
pub fn visible(text: &str) -> Cow<'_, str> {
    replaced(text, |letter, shown| {
        // Writing into a text cannot fail.
        let _ = write!(shown, "\\u{{{:x}}}", u32::from(letter));
    })
}

/// The same with a sign of one letter for each, where the length of a text is bounded.
pub fn blanked(text: &str) -> Cow<'_, str> {
    replaced(text, |_, shown| shown.push('\u{fffd}'))
}

fn replaced(text: &str, show: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    if text.as_bytes().iter().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    let mut before = None;
    while let Some(letter) = letters.next() {
        let after = letters.peek().copied();
        let is_line_end = letter == '\r' && after == Some('\n');
        let is_kept = matches!(letter, '\n' | '\t') || !is_hidden(letter) || is_needed(before, letter, after);
        if is_kept {
            shown.push(letter);
        } else if !is_line_end {
            show(letter, &mut shown);
        }
        before = is_kept.then_some(letter);
    }
    Cow::Owned(shown)
}

/// True for a joiner between two letters of a script that joins or two emoji, and for a selector behind a sign.
fn is_needed(before: Option<char>, letter: char, after: Option<char>) -> bool {
    let is_sign = |letter: char| matches!(u32::from(letter), 0xa9 | 0xae | 0x2010..=0x2027 | 0x2030..=0x205e | 0x2100..=0x2bff | 0x3030..=0x303d | 0x3297..=0x3299 | 0x1f000..=0x1faff);
    let is_joined = |letter: char| {
        !is_hidden(letter)
            && matches!(u32::from(letter), 0x600..=0x1fff | 0x2190..=0x2bff | 0x1f000..=0x1faff)
    };
    match (before, letter, after) {
        (Some(before), '\u{200c}' | '\u{200d}', Some(after)) => {
            (is_joined(before) || before == '\u{fe0f}') && is_joined(after)
        }
        (Some('0'..='9' | '#' | '*'), '\u{fe0f}', Some('\u{20e3}')) => true,
        (Some(before), '\u{fe0e}' | '\u{fe0f}', _) => is_sign(before),
        _ => false,
    }
}

/// Beginnings of the names of tags that mean something to the client or to its model. None is a word that is alone in
/// code: `Vec<Parameter>` is to stay readable.
const TAGS: [&str; 15] = [
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

/// The text with every `<` replaced by `‹` that would begin a tag of the client's.
pub fn without_tags(text: &str) -> Cow<'_, str> {
    without(text, &TAGS)
}

/// The same for tags whose names begin so. Invisible characters between `<` and the name are skipped.
pub fn without<'a>(text: &'a str, tags: &[&str]) -> Cow<'a, str> {
    let (mut safe, mut from) = (String::new(), 0);
    for (place, bracket) in text.match_indices('<') {
        let after = place + bracket.len();
        if begins_tag(&text[after..], tags) {
            safe.push_str(&text[from..place]);
            safe.push('‹');
            from = after;
        }
    }
    if from == 0 { Cow::Borrowed(text) } else { Cow::Owned(safe + &text[from..]) }
}

fn begins_tag(rest: &str, tags: &[&str]) -> bool {
    let skipped = |letter: &char| *letter == '/' || letter.is_whitespace() || is_hidden(*letter);
    let start = rest.trim_start_matches(|letter| skipped(&letter));
    let longest = tags.iter().map(|tag| tag.len()).max().unwrap_or(0);
    // A space ends a name; an invisible character does not.
    let name: String = start.chars().filter(|letter| !is_hidden(*letter)).take(longest).collect();
    tags.iter().any(|tag| name.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag)))
}

/// Words on the way to the model: nothing in them is hidden, and none begins a tag of the client's.
pub fn for_model(text: &str) -> String {
    visible(&without_tags(text)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_shown_by_its_number() {
        let hostile =
            "a\u{1b}]0;x\u{7}b\u{9b}c\u{7f}d\u{202e}e\u{2066}f\u{ad}g\u{e0041}h\u{200b}i\u{feff}j\rk\u{0}";
        let expected = r"a\u{1b}]0;x\u{7}b\u{9b}c\u{7f}d\u{202e}e\u{2066}f\u{ad}g\u{e0041}h\u{200b}i\u{feff}j\u{d}k\u{0}";
        assert_eq!(visible(hostile), expected);
        assert_eq!(visible(&visible(hostile)), expected, "once is enough");
        assert_eq!(visible("a\tb\r\nc\n"), "a\tb\nc\n");
        assert_eq!(blanked("a\u{1b}b\u{e0041}"), "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn joiners_stay_where_a_script_or_an_emoji_needs_them_and_nowhere_else() {
        for kept in [
            "👩\u{200d}🔬",
            "🏳\u{fe0f}\u{200d}🌈",
            "می\u{200c}خواهم",
            "✔\u{fe0f} 1\u{fe0f}\u{20e3}",
            "ünï 認証",
        ] {
            assert_eq!(visible(kept), kept);
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
            assert_ne!(visible(shown), shown, "{shown:?}");
            assert_eq!(visible(&visible(shown)), visible(shown), "once is enough");
        }
    }

    #[test]
    fn tags_of_the_client_are_broken_and_other_angle_brackets_are_not() {
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
            assert!(without_tags(tag).starts_with('‹'), "{tag:?}");
            assert!(for_model(tag).starts_with('‹'), "{tag:?}");
        }
        for harmless in
            ["a < b", "Vec<Parameter>", "<div>", "<promise>COMPLETE 7f</promise>", "<", "1 <\u{200b}"]
        {
            assert_eq!(without_tags(harmless), harmless);
        }
    }
}
