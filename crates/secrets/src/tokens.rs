//! Tokens that are recognized by their prefix (`rules/tokens.tsv`). The part after the prefix must look random, because
//! a placeholder, a slug or a class name may have the same prefix.

use crate::value_checks::has_digits_and_letters;

/// The maximum length of a token after its prefix.
const MAX_TOKEN_BYTES: usize = 1024;

/// The format of one kind of token.
pub(crate) struct TokenRule {
    pub(crate) kind: &'static str,
    pub(crate) prefix: &'static str,
    /// The minimum number of bytes after the prefix, including separators.
    min_length: usize,
    /// The minimum length of a part between separators that has both digits and letters. A token needs one such part.
    min_part_length: usize,
    /// The bytes that may separate parts.
    separators: &'static [u8],
}

impl TokenRule {
    /// Parses a line of the table. Returns `None` for a comment or an incomplete line.
    pub(crate) fn parse(line: &'static str) -> Option<TokenRule> {
        let mut fields = line.split('\t');
        let (kind, prefix) = (fields.next().filter(|kind| !kind.starts_with('#'))?, fields.next()?);
        let (min_length, min_part_length) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(TokenRule {
            kind,
            prefix,
            min_length,
            min_part_length,
            separators: fields.next().unwrap_or_default().as_bytes(),
        })
    }

    /// Returns the end of the token that starts at `start`, or `None` if there is no valid token.
    pub(crate) fn end_of_valid_token_at(&self, text: &[u8], start: usize) -> Option<usize> {
        let token_body = text[start..].strip_prefix(self.prefix.as_bytes())?;
        if ends_within_word(&text[..start])
            || self.prefix.starts_with("sk") && ends_with_slug_separator(&text[..start])
        {
            return None;
        }
        let token_body = &token_body[..token_body.len().min(MAX_TOKEN_BYTES)];
        let is_separator = |byte: &u8| self.separators.contains(byte);
        let length =
            token_body.iter().take_while(|byte| byte.is_ascii_alphanumeric() || is_separator(byte)).count();
        let mut parts = token_body[..length].split(is_separator);
        let is_token = length >= self.min_length
            && parts.any(|part| part.len() >= self.min_part_length && has_digits_and_letters(part));
        is_token.then_some(start + self.prefix.len() + length)
    }
}

/// Returns true if the bytes end within a word. An escape such as `\n` in quoted text ends a word.
fn ends_within_word(preceding: &[u8]) -> bool {
    let is_escape = matches!(preceding, [.., b'\\', b'n' | b'r' | b't']);
    preceding.last().is_some_and(u8::is_ascii_alphanumeric) && !is_escape
}

/// Returns true after `-` or `_`, as in `task-sk-…`, where `sk` is part of a slug.
fn ends_with_slug_separator(preceding: &[u8]) -> bool {
    matches!(preceding.last(), Some(b'-' | b'_'))
}
