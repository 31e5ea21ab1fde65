//! Small truths about text.

use plimsoll_protocol::foreign_words::{is_hidden, visible};
use std::borrow::Cow;

/// The longest beginning of at most `limit` characters, with `…` where something was left out.
pub fn clip(text: &str, limit: usize) -> String {
    if first(text, limit).len() == text.len() {
        return text.to_owned();
    }
    format!("{}…", first(text, limit.saturating_sub(1)))
}

/// The first so many characters, or all where there are fewer. No more of the text is looked at: it may be long.
pub fn first(text: &str, count: usize) -> &str {
    match text.as_bytes().get(..count) {
        None => text,
        // Mostly each byte is a character.
        Some(beginning) if beginning.is_ascii() => &text[..count],
        Some(_) => text.char_indices().nth(count).map_or(text, |(end, _)| &text[..end]),
    }
}

/// The longest end of at most `limit` characters, with `…` where something was left out.
pub fn clip_start(text: &str, limit: usize) -> String {
    let length = text.chars().count();
    if length <= limit {
        return text.to_owned();
    }
    std::iter::once('…').chain(text.chars().skip(length - limit.saturating_sub(1))).collect()
}

/// The beginning and the end of a text, together at most `limit` characters, with `…` between them.
pub fn clip_middle(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    format!("{}\n{}", clip(text, limit / 2), clip_start(text, limit.saturating_sub(limit / 2 + 1)))
}

/// One line of words: runs of white space become one space, and hidden characters are shown
/// ([`plimsoll_protocol::foreign_words`]), so that no line steers a terminal or looks like another one.
pub fn one_line(text: &str) -> String {
    // Mostly it is one already.
    if is_plain_line(text.trim_ascii()) {
        return text.trim_ascii().to_owned();
    }
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match visible(&line) {
        Cow::Borrowed(_) => line,
        Cow::Owned(shown) => shown,
    }
}

/// One line of at most `limit` characters that can stand between backticks.
pub fn one_line_of_code(text: &str, limit: usize) -> String {
    clip(&one_line(text).replace('`', "'"), limit)
}

/// True for visible ASCII with single spaces between words: one line already.
pub(crate) fn is_plain_line(text: &str) -> bool {
    let bytes = text.as_bytes();
    // Neither loop has a way out before its end, so that the processor takes many bytes at once.
    let is_visible = bytes.iter().fold(true, |so_far, byte| so_far & matches!(byte, b' '..=b'~'));
    let pairs = bytes.iter().zip(bytes.iter().skip(1));
    let has_gap = pairs.fold(false, |so_far, (one, next)| so_far | ((*one == b' ') & (*next == b' ')));
    is_visible && !has_gap && !bytes.starts_with(b" ") && !bytes.ends_with(b" ")
}

/// Words that a terminal shows and that steer nothing: only this type goes to one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafeText(String);

impl SafeText {
    /// A finished page: its ends of lines and tabs stay.
    pub fn page(text: &str) -> SafeText {
        SafeText(visible(text).into_owned())
    }

    /// One line.
    pub fn line(text: &str) -> SafeText {
        SafeText(visible(text).replace(['\n', '\t'], " "))
    }

    /// JSON with every hidden character escaped: the same value, in letters that steer nothing.
    pub fn json(text: &str) -> SafeText {
        SafeText(escaped(text, |letter| letter == '\n' || !is_hidden(letter)))
    }

    /// The same for JSON that was painted by who wrote it; a string in it holds no escape character of its own.
    pub fn painted_json(text: &str) -> SafeText {
        SafeText(escaped(text, |letter| matches!(letter, '\n' | '\u{1b}') || !is_hidden(letter)))
    }

    /// The words.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn escaped(json: &str, is_kept: impl Fn(char) -> bool) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if is_kept(letter) {
            text.push(letter);
        } else {
            let mut units = [0; 2];
            let units = letter.encode_utf16(&mut units).iter();
            text.extend(units.map(|unit| format!("\\u{unit:04x}")));
        }
    }
    text
}

/// Returns the bytes of a JSON document as text; an error if they are not UTF-8.
pub fn json_text(bytes: &[u8]) -> serde_json::Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| serde::de::Error::custom(format_args!("not UTF-8: {error}")))
}

/// JSON as a value; null if it is none. JavaScript may cut a text in the middle of an emoji and write half of it,
/// which Rust refuses: such a half is replaced.
pub fn json_value(json: &str) -> serde_json::Value {
    let again = |_| serde_json::from_str(&without_halves(json));
    serde_json::from_str(json).or_else(again).unwrap_or_default()
}

/// Each half of a surrogate pair that is alone becomes U+FFFD.
fn without_halves(json: &str) -> String {
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let is_high = |unit: u16| (0xd800..0xdc00).contains(&unit);
    let is_low = |unit: u16| (0xdc00..0xe000).contains(&unit);
    let mut text = String::with_capacity(json.len());
    let mut rest = 0;
    while let Some(found) = json[rest..].find('\\') {
        let at = rest + found;
        text.push_str(&json[rest..at]);
        let length = match (unit(at), unit(at + 6)) {
            (Some(high), Some(low)) if is_high(high) && is_low(low) => 12,
            (Some(one), _) if is_high(one) || is_low(one) => {
                text.push_str("\\ufffd");
                rest = at + 6;
                continue;
            }
            (Some(_), _) => 6,
            // What follows a backslash belongs to it, also another one.
            (None, _) => 1 + json[at + 1..].chars().next().map_or(0, char::len_utf8),
        };
        text.push_str(&json[at..at + length]);
        rest = at + length;
    }
    text + &json[rest..]
}

/// `1 item`, `2 items`.
pub fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("{number} {noun}") } else { format!("{number} {noun}s") }
}

/// Tokens as shown to the user: `950`, `66k`, `1.2M`.
pub fn tokens(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..999_500 => format!("{}k", (number + 500) / 1_000),
        _ if number % 1_000_000 < 50_000 => format!("{}M", number / 1_000_000),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// Bytes as shown to the user: `12 KB`, `3.4 MB`, `1.2 GB`.
pub fn bytes(number: u64) -> String {
    match number {
        1_000_000_000.. => format!("{:.1} GB", number as f64 / 1e9),
        1_000_000.. => format!("{:.1} MB", number as f64 / 1e6),
        _ => format!("{} KB", number / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cleaned_for_the_terminal_is_clean() {
        assert_eq!(one_line("a\n\t b\r\u{7}\u{202e}\u{1b}[31mc"), r"a b \u{7}\u{202e}\u{1b}[31mc");
        for (text, line) in
            [("a b", "a b"), (" a b\n", "a b"), ("a  b", "a b"), (" ", ""), ("", ""), ("\u{b}é ", "é")]
        {
            assert_eq!(one_line(text), line, "{text:?}");
        }
        let ends = ["", "a", "a b ~!", " ", " a", "a ", "a  b", "a\tb", "a\u{7f}", "a\u{80}b", "\u{b}"];
        for filler in ["", "x", "x ", "Many words, more than what is looked at at once, and then "] {
            for line in ends.map(|end| format!("{filler}{end}")) {
                let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
                let is_plain = words == line && line.bytes().all(|byte| (b' '..=b'~').contains(&byte));
                assert_eq!(is_plain_line(&line), is_plain, "{line:?}");
            }
        }
        assert_eq!(SafeText::page("a\u{1b}[2J\n\tb").as_str(), "a\\u{1b}[2J\n\tb");
        assert_eq!(SafeText::line("a\nb").as_str(), "a b");
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = serde_json::json!({"a\u{9b}": ["\u{7f}\u{202e}\u{e0041}\u{200d}é認", 1]});
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let safe = SafeText::json(&text);
            assert!(!safe.as_str().chars().any(|letter| letter != '\n' && is_hidden(letter)), "{safe:?}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(safe.as_str()).unwrap(), value);
        }
        assert_eq!(SafeText::painted_json("\u{1b}[1m\"\u{9b}\"").as_str(), "\u{1b}[1m\"\\u009b\"");
    }

    #[test]
    fn half_an_emoji_costs_only_itself() {
        for (json, text) in [
            (r#""\ud83d\ude00""#, "\u{1F600}"),
            (r#""a\ud83d""#, "a\u{fffd}"),
            (r#""\ude00b\n""#, "\u{fffd}b\n"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1F600}"),
            (r#""\\ud83d\udc""#, ""),
            (r#""\\ud83d \ud83dé\\""#, "\\ud83d \u{fffd}é\\"),
        ] {
            assert_eq!(json_value(json).as_str().unwrap_or_default(), text, "{json}");
        }
    }
}
