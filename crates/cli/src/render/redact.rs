//! Untrusted text for the report: without secrets, limited in length, and without hidden characters. The page
//! accepts untrusted text only as this type, so that none is shown unredacted. Plimsoll's own sentences also
//! have this type, with a flag; in them, backticks mean code.

use crate::render::visible::show_hidden_characters;
use plimsoll_domain::text::truncate_end;

/// Maximum characters of the word before an ellipsis that is still shown; a longer word may be the first half
/// of a secret.
const MAX_PARTIAL_SECRET_CHARS: usize = 12;

/// Text that may be shown to anyone after it is escaped.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RedactedText {
    text: String,
    is_plimsoll_text: bool,
}

impl RedactedText {
    /// Returns the text on one line of at most `max_chars` characters. Secrets are removed from the full text
    /// before it is truncated.
    pub(crate) fn single_line(text: &str, max_chars: usize) -> RedactedText {
        let redacted_text = plimsoll_secrets::redact(without_long_word_before_ellipsis(text));
        let line = show_hidden_characters(&redacted_text).split_whitespace().collect::<Vec<_>>().join(" ");
        RedactedText { text: truncate_end(&line, max_chars), is_plimsoll_text: false }
    }

    /// Returns a sentence written by Plimsoll, in which backticks mean code.
    pub(crate) fn plimsoll_sentence(text: &str, max_chars: usize) -> RedactedText {
        RedactedText { is_plimsoll_text: true, ..RedactedText::single_line(text, max_chars) }
    }

    /// Returns the text with its line breaks, at most `max_chars` characters in total.
    pub(crate) fn multiple_lines(text: &str, max_chars: usize) -> RedactedText {
        let text = truncate_end(
            show_hidden_characters(&plimsoll_secrets::redact(without_long_word_before_ellipsis(text)))
                .trim_end(),
            max_chars,
        );
        RedactedText { text, is_plimsoll_text: false }
    }

    /// Returns the text, not escaped.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns true for a sentence written by Plimsoll, without untrusted text.
    pub(crate) fn is_plimsoll_text(&self) -> bool {
        self.is_plimsoll_text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

/// Removes a long last word before the `…` of a truncated text: it may be the first half of a secret, which
/// cannot be recognized.
fn without_long_word_before_ellipsis(text: &str) -> &str {
    let Some(prefix) = text.strip_suffix('…') else { return text };
    let last_word = prefix.rsplit(char::is_whitespace).next().unwrap_or_default();
    if last_word.chars().count() > MAX_PARTIAL_SECRET_CHARS {
        &text[..prefix.len() - last_word.len()]
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_removed_before_the_text_is_cut() {
        let key = "ghp_".to_owned() + &"aB3dE5fG7h".repeat(4)[..36];
        let redacted = RedactedText::single_line(&format!("push with {key} please"), 20);
        assert!(redacted.text().starts_with("push with [redacted"), "{redacted:?}");
        let cut = format!("failed: {}…", &key[..20]);
        assert_eq!(RedactedText::single_line(&cut, 100).text(), "failed:");
        assert_eq!(RedactedText::single_line("it went on and on…", 100).text(), "it went on and on…");
    }

    #[test]
    fn a_line_has_no_hidden_characters_or_line_breaks() {
        assert_eq!(
            RedactedText::single_line("a\u{1b}[2J\n\tb\u{202e}c", 100).text(),
            r"a\u{1b}[2J b\u{202e}c"
        );
        assert_eq!(RedactedText::multiple_lines("a\nb\n\n", 100).text(), "a\nb");
        assert_eq!(RedactedText::single_line(&"x".repeat(50), 10).text().chars().count(), 10);
    }
}
