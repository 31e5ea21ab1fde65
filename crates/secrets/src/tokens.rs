//! Tokens that are known by how they begin (`rules/tokens.tsv`). What follows must look drawn by lot: a placeholder, a
//! slug or the name of a class begins so too.

use crate::looks::has_both;

/// No token is longer.
const LONGEST: usize = 1024;

/// A kind of token.
pub(crate) struct Token {
    pub(crate) kind: &'static str,
    pub(crate) start: &'static str,
    /// How many letters and digits follow at least, including those between them.
    least: usize,
    /// The minimum length of one piece of them.
    piece: usize,
    /// What may be between the pieces.
    between: &'static [u8],
}

impl Token {
    /// A line of the table; none for a remark.
    pub(crate) fn parse(line: &'static str) -> Option<Token> {
        let mut fields = line.split('\t');
        let (kind, start) = (fields.next().filter(|kind| !kind.starts_with('#'))?, fields.next()?);
        let (least, piece) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Token { kind, start, least, piece, between: fields.next().unwrap_or_default().as_bytes() })
    }

    /// Where the token ends that begins here; none if it is no token.
    pub(crate) fn end(&self, text: &[u8], place: usize) -> Option<usize> {
        let rest = text[place..].strip_prefix(self.start.as_bytes())?;
        if continues(&text[..place]) || self.start.starts_with("sk") && is_inside_a_slug(&text[..place]) {
            return None;
        }
        let rest = &rest[..rest.len().min(LONGEST)];
        let is_between = |byte: &u8| self.between.contains(byte);
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || is_between(byte)).count();
        let mut pieces = rest[..length].split(is_between);
        let is_one = length >= self.least && pieces.any(|piece| piece.len() >= self.piece && has_both(piece));
        is_one.then_some(place + self.start.len() + length)
    }
}

/// Does a word continue behind this? A `\n` in quoted text ends one.
fn continues(before: &[u8]) -> bool {
    let is_escape = matches!(before, [.., b'\\', b'n' | b'r' | b't']);
    before.last().is_some_and(u8::is_ascii_alphanumeric) && !is_escape
}

/// `task-sk-…`: there the letters only look like a key by accident.
fn is_inside_a_slug(before: &[u8]) -> bool {
    matches!(before.last(), Some(b'-' | b'_'))
}
