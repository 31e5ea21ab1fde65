//! Helpers for text: truncating, escaping for a terminal, parsing JSON, and formatting numbers.

use plimsoll_protocol::untrusted_text::{escape_hidden_characters, is_hidden_or_control_character};
use std::borrow::Cow;

/// Truncates a text to at most `max_chars` characters. A truncated text ends with `…`.
pub fn truncate_end(text: &str, max_chars: usize) -> String {
    if first_chars(text, max_chars).len() == text.len() {
        return text.to_owned();
    }
    format!("{}…", first_chars(text, max_chars.saturating_sub(1)))
}

/// Returns the first `char_count` characters, or the whole text if it is shorter. The remaining text, which may be long, is
/// not read.
pub fn first_chars(text: &str, char_count: usize) -> &str {
    match text.as_bytes().get(..char_count) {
        None => text,
        // Fast path: in most texts each byte is a character.
        Some(prefix) if prefix.is_ascii() => &text[..char_count],
        Some(_) => text.char_indices().nth(char_count).map_or(text, |(end, _)| &text[..end]),
    }
}

/// Truncates a text at its start to at most `max_chars` characters. A truncated text begins with `…`.
pub fn truncate_start(text: &str, max_chars: usize) -> String {
    let length = text.chars().count();
    if length <= max_chars {
        return text.to_owned();
    }
    std::iter::once('…').chain(text.chars().skip(length - max_chars.saturating_sub(1))).collect()
}

/// Truncates a text in the middle to at most `max_chars` characters. The gap is marked with `…` on both sides of a line end.
pub fn truncate_middle(text: &str, max_chars: usize) -> String {
    if text.chars().count() <= max_chars {
        return text.to_owned();
    }
    format!(
        "{}\n{}",
        truncate_end(text, max_chars / 2),
        truncate_start(text, max_chars.saturating_sub(max_chars / 2 + 1))
    )
}

/// Converts a text to a single line. Runs of white space become one space, and hidden characters are made visible
/// ([`plimsoll_protocol::untrusted_text`]), so that the line can neither control a terminal nor imitate another line.
pub fn to_safe_single_line(text: &str) -> String {
    // Fast path: most texts are one line already.
    if is_normalized_ascii_line(text.trim_ascii()) {
        return text.trim_ascii().to_owned();
    }
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match escape_hidden_characters(&line) {
        Cow::Borrowed(_) => line,
        Cow::Owned(escaped_line) => escaped_line,
    }
}

/// Converts the first character to upper case.
pub fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Converts a text to a single line of at most `max_chars` characters without backticks, so that it can be put between backticks.
pub fn to_line_for_backticks(text: &str, max_chars: usize) -> String {
    truncate_end(&to_safe_single_line(text).replace('`', "'"), max_chars)
}

/// Returns true for visible ASCII with single spaces between words, which [`to_safe_single_line`] would not change.
pub(crate) fn is_normalized_ascii_line(text: &str) -> bool {
    let bytes = text.as_bytes();
    // Neither loop returns early, so that the compiler can process many bytes at once.
    let is_all_printable = bytes.iter().fold(true, |acc, byte| acc & matches!(byte, b' '..=b'~'));
    let pairs = bytes.iter().zip(bytes.iter().skip(1));
    let has_double_space =
        pairs.fold(false, |acc, (first, second)| acc | ((*first == b' ') & (*second == b' ')));
    is_all_printable && !has_double_space && !bytes.starts_with(b" ") && !bytes.ends_with(b" ")
}

/// Text that is safe to print on a terminal, because it has no control sequences. Only this type is printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafeText(String);

impl SafeText {
    /// Makes the hidden characters of a text visible, and keeps line ends and tabs.
    pub fn from_multiline_text(text: &str) -> SafeText {
        SafeText(escape_hidden_characters(text).into_owned())
    }

    /// Makes the hidden characters of a text visible, and replaces line ends and tabs by spaces.
    pub fn from_single_line(text: &str) -> SafeText {
        SafeText(escape_hidden_characters(text).replace(['\n', '\t'], " "))
    }

    /// Escapes every hidden character of a JSON text except line ends. The JSON value stays the same.
    pub fn from_json(text: &str) -> SafeText {
        SafeText(escape_json_characters(text, |character| {
            character == '\n' || !is_hidden_or_control_character(character)
        }))
    }

    /// Escapes every hidden character of a colored JSON text except line ends and the escape character. Strings in JSON cannot
    /// contain a raw escape character, so only the coloring does.
    pub fn from_colored_json(text: &str) -> SafeText {
        SafeText(escape_json_characters(text, |character| {
            matches!(character, '\n' | '\u{1b}') || !is_hidden_or_control_character(character)
        }))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn escape_json_characters(json: &str, should_keep: impl Fn(char) -> bool) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if should_keep(character) {
            text.push(character);
        } else {
            let mut buffer = [0; 2];
            let units = character.encode_utf16(&mut buffer).iter();
            text.extend(units.map(|unit| format!("\\u{unit:04x}")));
        }
    }
    text
}

/// Returns the bytes of a JSON document as text. Fails if they are not UTF-8.
pub fn json_bytes_to_str(bytes: &[u8]) -> serde_json::Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| serde::de::Error::custom(format_args!("not UTF-8: {error}")))
}

/// Parses JSON; returns null if it is invalid. JavaScript may cut a text in the middle of an emoji and write a lone surrogate,
/// which serde_json refuses; such a surrogate is replaced by U+FFFD.
pub fn parse_json_or_null(json: &str) -> serde_json::Value {
    let parse_with_repaired_surrogates = |_| serde_json::from_str(&replace_lone_surrogates(json));
    serde_json::from_str(json).or_else(parse_with_repaired_surrogates).unwrap_or_default()
}

/// Replaces each lone surrogate escape (`\ud83d` without a matching second one) by U+FFFD.
fn replace_lone_surrogates(json: &str) -> String {
    let parse_unicode_escape_at = |index: usize| {
        let hex_digits = json.get(index..index + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(hex_digits, 16).ok()
    };
    let is_high_surrogate = |unit: u16| (0xd800..0xdc00).contains(&unit);
    let is_low_surrogate = |unit: u16| (0xdc00..0xe000).contains(&unit);
    let mut text = String::with_capacity(json.len());
    let mut copied_end = 0;
    while let Some(offset) = json[copied_end..].find('\\') {
        let backslash_index = copied_end + offset;
        text.push_str(&json[copied_end..backslash_index]);
        let length =
            match (parse_unicode_escape_at(backslash_index), parse_unicode_escape_at(backslash_index + 6)) {
                (Some(high), Some(low)) if is_high_surrogate(high) && is_low_surrogate(low) => 12,
                (Some(unit), _) if is_high_surrogate(unit) || is_low_surrogate(unit) => {
                    text.push_str("\\ufffd");
                    copied_end = backslash_index + 6;
                    continue;
                }
                (Some(_), _) => 6,
                // The character after a backslash belongs to the escape, even if it is another backslash.
                (None, _) => 1 + json[backslash_index + 1..].chars().next().map_or(0, char::len_utf8),
            };
        text.push_str(&json[backslash_index..backslash_index + length]);
        copied_end = backslash_index + length;
    }
    text + &json[copied_end..]
}

/// Returns a number with its noun in singular or plural: `1 item`, `2 items`.
pub fn count_with_noun(count: usize, noun: &str) -> String {
    if count == 1 { format!("{count} {noun}") } else { format!("{count} {noun}s") }
}

/// Formats a number of tokens for the user: `950`, `66k`, `1.2M`, `3.4B`.
pub fn format_tokens(token_count: u64) -> String {
    let in_tenths = |unit: u64, suffix: &str| {
        let tenths = token_count.saturating_add(unit / 20) / (unit / 10);
        let decimal = if tenths.is_multiple_of(10) { String::new() } else { format!(".{}", tenths % 10) };
        format!("{}{decimal}{suffix}", tenths / 10)
    };
    match token_count {
        0..1_000 => token_count.to_string(),
        1_000..999_500 => format!("{}k", (token_count + 500) / 1_000),
        999_500..999_950_000 => in_tenths(1_000_000, "M"),
        _ => in_tenths(1_000_000_000, "B"),
    }
}

/// Formats a number of bytes for the user, in decimal units: `12 KB`, `3.4 MB`, `1.2 GB`.
pub fn format_bytes(byte_count: u64) -> String {
    match byte_count {
        1_000_000_000.. => format!("{:.1} GB", byte_count as f64 / 1e9),
        1_000_000.. => format!("{:.1} MB", byte_count as f64 / 1e6),
        _ => format!("{} KB", byte_count / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_rounded_to_a_tenth_of_a_million() {
        for (token_count, expected) in [
            (999, "999"),
            (66_499, "66k"),
            (999_499, "999k"),
            (999_500, "1M"),
            (1_249_999, "1.2M"),
            (1_960_000, "2M"),
            (999_949_999, "999.9M"),
            (999_950_000, "1B"),
            (3_450_000_000, "3.5B"),
            (u64::MAX, "18446744073.7B"),
        ] {
            assert_eq!(format_tokens(token_count), expected);
        }
    }

    #[test]
    fn text_for_the_terminal_has_no_hidden_characters() {
        assert_eq!(to_safe_single_line("a\n\t b\r\u{7}\u{202e}\u{1b}[31mc"), r"a b \u{7}\u{202e}\u{1b}[31mc");
        for (text, line) in
            [("a b", "a b"), (" a b\n", "a b"), ("a  b", "a b"), (" ", ""), ("", ""), ("\u{b}é ", "é")]
        {
            assert_eq!(to_safe_single_line(text), line, "{text:?}");
        }
        let endings = ["", "a", "a b ~!", " ", " a", "a ", "a  b", "a\tb", "a\u{7f}", "a\u{80}b", "\u{b}"];
        for filler in ["", "x", "x ", "Many words, more than what is looked at at once, and then "] {
            for line in endings.map(|end| format!("{filler}{end}")) {
                let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
                let is_plain = words == line && line.bytes().all(|byte| (b' '..=b'~').contains(&byte));
                assert_eq!(is_normalized_ascii_line(&line), is_plain, "{line:?}");
            }
        }
        assert_eq!(SafeText::from_multiline_text("a\u{1b}[2J\n\tb").as_str(), "a\\u{1b}[2J\n\tb");
        assert_eq!(SafeText::from_single_line("a\nb").as_str(), "a b");
    }

    #[test]
    fn escaped_json_keeps_its_value() {
        let value = serde_json::json!({"a\u{9b}": ["\u{7f}\u{202e}\u{e0041}\u{200d}é認", 1]});
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let safe = SafeText::from_json(&text);
            assert!(
                !safe.as_str().chars().any(|letter| letter != '\n' && is_hidden_or_control_character(letter)),
                "{safe:?}"
            );
            assert_eq!(serde_json::from_str::<serde_json::Value>(safe.as_str()).unwrap(), value);
        }
        assert_eq!(SafeText::from_colored_json("\u{1b}[1m\"\u{9b}\"").as_str(), "\u{1b}[1m\"\\u009b\"");
    }

    #[test]
    fn a_lone_surrogate_is_replaced_and_the_rest_is_kept() {
        for (json, text) in [
            (r#""\ud83d\ude00""#, "\u{1F600}"),
            (r#""a\ud83d""#, "a\u{fffd}"),
            (r#""\ude00b\n""#, "\u{fffd}b\n"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1F600}"),
            (r#""\\ud83d\udc""#, ""),
            (r#""\\ud83d \ud83dé\\""#, "\\ud83d \u{fffd}é\\"),
        ] {
            assert_eq!(parse_json_or_null(json).as_str().unwrap_or_default(), text, "{json}");
        }
    }
}
