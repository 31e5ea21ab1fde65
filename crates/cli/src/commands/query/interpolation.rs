//! `"\(10 / 2)"` is "5" with jq. jaq writes texts into which something is put with its own `tostring`, which no
//! definition can replace, except where a text has a format: so every such text is given one.

use jaq_core::load::lex::{Lexer, StrPart, Tok, Token};
use jaq_core::load::span;

/// The filter with `@text` before each text that has none and into which something is put.
pub(super) fn with_formats(filter: &str) -> String {
    let mut places = Vec::new();
    if let Ok(tokens) = Lexer::new(filter).lex() {
        look(filter, &tokens, &mut places);
    }
    places.sort_unstable();
    let mut formatted = filter.to_owned();
    for place in places.into_iter().rev() {
        formatted.insert_str(place, " @text ");
    }
    formatted
}

fn look(filter: &str, tokens: &[Token<&str>], places: &mut Vec<usize>) {
    let mut has_format = false;
    for Token(text, token) in tokens {
        match token {
            Tok::Str(parts) => {
                let inner = parts.iter().filter_map(|part| match part {
                    StrPart::Term(term) => Some(term),
                    _ => None,
                });
                let mut is_plain = true;
                for term in inner {
                    is_plain = false;
                    look(filter, std::slice::from_ref(term), places);
                }
                if !is_plain && !has_format {
                    places.push(span(filter, text).start);
                }
            }
            Tok::Block(inner) => look(filter, inner, places),
            _ => {}
        }
        has_format = matches!(token, Tok::Fmt);
    }
}
