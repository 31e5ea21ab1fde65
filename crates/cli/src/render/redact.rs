//! Foreign words on their way into the report: without secrets, on one line, not too long, with nothing in them that
//! hides. What the page shows of others is of this type, so that nothing can be forgotten. A sentence of ours beside them
//! is of it, too, and is known as ours: in it backticks mean code.

use crate::render::visible::visible;
use plimsoll_domain::text::clip;

/// The longest words of a piece of text that was cut: they may be the first half of a secret.
const HALF: usize = 12;

/// Foreign words that may be shown to anybody, once they are escaped.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RedactedText {
    text: String,
    are_ours: bool,
}

impl RedactedText {
    /// One line of at most so many characters. A secret is looked for in the whole, before anything is cut.
    pub(crate) fn line(text: &str, most: usize) -> RedactedText {
        let cleaned = plimsoll_secrets::without(without_a_half(text));
        let line = visible(&cleaned).split_whitespace().collect::<Vec<_>>().join(" ");
        RedactedText { text: clip(&line, most), are_ours: false }
    }

    /// A sentence of our own, in which backticks mean code.
    pub(crate) fn ours(text: &str, most: usize) -> RedactedText {
        RedactedText { are_ours: true, ..RedactedText::line(text, most) }
    }

    /// Several lines, at most so many characters.
    pub(crate) fn lines(text: &str, most: usize) -> RedactedText {
        let text = clip(visible(&plimsoll_secrets::without(without_a_half(text))).trim_end(), most);
        RedactedText { text, are_ours: false }
    }

    /// The words, not escaped.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// True for a sentence of ours, in which nothing is foreign.
    pub(crate) fn are_ours(&self) -> bool {
        self.are_ours
    }

    /// True if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

/// Who cut the text before us may have cut a secret in two, which is then no longer known as one: the word at the cut
/// is left out where it is a long one.
fn without_a_half(text: &str) -> &str {
    let Some(beginning) = text.strip_suffix('…') else { return text };
    let last = beginning.rsplit(char::is_whitespace).next().unwrap_or_default();
    if last.chars().count() > HALF { &text[..beginning.len() - last.len()] } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_before_anything_is_cut() {
        let key = "ghp_".to_owned() + &"aB3dE5fG7h".repeat(4)[..36];
        let said = RedactedText::line(&format!("push with {key} please"), 20);
        assert!(said.text().starts_with("push with [redacted"), "{said:?}");
        let cut = format!("failed: {}…", &key[..20]);
        assert_eq!(RedactedText::line(&cut, 100).text(), "failed:");
        assert_eq!(RedactedText::line("it went on and on…", 100).text(), "it went on and on…");
    }

    #[test]
    fn nothing_hides_or_breaks_the_line() {
        assert_eq!(RedactedText::line("a\u{1b}[2J\n\tb\u{202e}c", 100).text(), r"a\u{1b}[2J b\u{202e}c");
        assert_eq!(RedactedText::lines("a\nb\n\n", 100).text(), "a\nb");
        assert_eq!(RedactedText::line(&"x".repeat(50), 10).text().chars().count(), 10);
    }
}
