//! `password=…`, `api_key: "…"`, `--token …`, `<password>…</password>`: known by the name before them. A name alone
//! proves little in code, so the value must look like a secret too.
//!
//! Read by hand and not by a pattern: these names are on many lines of ordinary code, and most are done with here
//! after a byte or two.

use crate::Found;
use crate::looks::{is_drawn_by_lot, is_label, is_placeholder};
use std::ops::Range;

/// How the names end, in small letters.
pub(crate) const NAMES: [&str; 34] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "_pass",
    "-pass",
    "apikey",
    "api_key",
    "api-key",
    "accesskey",
    "access_key",
    "access-key",
    "secretkey",
    "secret_key",
    "secret-key",
    "privatekey",
    "private_key",
    "private-key",
    "signingkey",
    "signing_key",
    "signing-key",
    "encryptionkey",
    "encryption_key",
    "encryption-key",
    "authkey",
    "auth_key",
    "auth-key",
    "accountkey",
    "account_key",
    "account-key",
    "secret",
    "token",
    "credential",
    "credentials",
];
/// The first of them name a password, which may be any word.
const PASSWORDS: usize = 6;
/// A value is no longer, in bytes.
const LONGEST: usize = 1024;
/// A name is no longer before its last word.
const LONGEST_NAME: usize = 128;

/// What is behind these names and looks like a secret.
pub(crate) fn find(text: &str, hits: &mut dyn Iterator<Item = Range<usize>>, found: &mut Vec<Found>) {
    let mut from = 0;
    let mut hits: Vec<Range<usize>> = hits.filter(|hit| is_followed(&text.as_bytes()[hit.end..])).collect();
    hits.sort_unstable_by_key(|hit| (hit.end, hit.start));
    for hit in hits {
        if hit.start < from {
            continue;
        }
        let Some(read) = Reading::at(text, &hit) else {
            // Where no value ends, none begins at the next name: nothing is read a second time.
            let rest = &text.as_bytes()[hit.end..];
            let is_endless = rest.len() > LONGEST
                && !rest[..LONGEST].iter().any(|byte| b" \t\n\"'`,;&)}]<>|\\".contains(byte));
            from = if is_endless { hit.end + LONGEST } else { from };
            continue;
        };
        from = read.value.end.max(from);
        if read.is_secret(text) {
            found.push(Found { kind: read.kind(), range: read.value });
        }
    }
}

/// The kind of a key's value in JSON, if it is a secret.
pub(crate) fn keyed(key: &str, value: &str) -> Option<&'static str> {
    let lower = key.to_ascii_lowercase();
    if !lower.bytes().all(is_of_name) {
        return None;
    }
    let place = NAMES.iter().position(|name| lower.ends_with(name))?;
    is_quoted_secret(place < PASSWORDS, value).then_some(kind(place < PASSWORDS))
}

fn kind(is_pass: bool) -> &'static str {
    if is_pass { "password" } else { "assignment" }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

/// Most names are followed by neither a sign nor a value: the rest is not looked at.
fn is_followed(rest: &[u8]) -> bool {
    let rest = rest.strip_prefix(b"\\").unwrap_or(rest);
    match rest.first() {
        Some(b'=' | b':' | b' ' | b'>' | b'\t') => true,
        Some(b'"' | b'\'') => matches!(rest[1..].trim_ascii_start().first(), Some(b':' | b'=')),
        _ => false,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// In quotes behind a sign.
    Quoted,
    /// Without quotes behind a sign.
    Bare,
    /// Behind an option and a space.
    Optional,
    /// In an element of XML.
    Element,
}

/// A name with its value.
struct Reading {
    form: Form,
    is_pass: bool,
    /// The name without the dashes of an option.
    name: Range<usize>,
    /// With `--`, `?` or `&` before it.
    is_marked: bool,
    is_equals: bool,
    value: Range<usize>,
}

impl Reading {
    fn at(text: &str, hit: &Range<usize>) -> Option<Reading> {
        let bytes = text.as_bytes();
        let is_pass = {
            let word = text[hit.clone()].to_ascii_lowercase();
            NAMES.iter().position(|name| *name == word).is_some_and(|place| place < PASSWORDS)
        };
        let behind =
            bytes[..hit.start].iter().rev().take(LONGEST_NAME).take_while(|byte| is_of_name(**byte)).count();
        let mut start = hit.start - behind;
        let is_option = bytes[start..hit.end].starts_with(b"--");
        if is_option {
            start += 2;
        }
        let is_marked = is_option || start > 0 && matches!(bytes[start - 1], b'?' | b'&');
        let reading = |form, is_equals, value| Reading {
            form,
            is_pass,
            name: start..hit.end,
            is_marked,
            is_equals,
            value,
        };
        if bytes[hit.end..].starts_with(b">") && start > 0 && bytes[start - 1] == b'<' {
            return element(text, hit.end + 1).map(|value| reading(Form::Element, false, value));
        }
        let is_alone = start < 3 || bytes[start - 3].is_ascii_whitespace();
        if is_option && is_alone && bytes[hit.end..].starts_with(b" ") {
            return option(text, hit.end + 1).map(|value| reading(Form::Optional, false, value));
        }
        let (sign, is_equals) = sign(bytes, hit.end)?;
        let (form, value) = value(text, sign)?;
        Some(reading(form, is_equals, value))
    }

    fn kind(&self) -> &'static str {
        kind(self.is_pass)
    }

    fn is_secret(&self, text: &str) -> bool {
        let value = &text[self.value.clone()];
        match self.form {
            Form::Quoted | Form::Element => is_quoted_secret(self.is_pass, value),
            Form::Optional => is_option_secret(self.is_pass, value),
            Form::Bare => self.is_bare_secret(text, value),
        }
    }

    /// Without quotes it may as well be code: a variable, a call, a type.
    fn is_bare_secret(&self, text: &str, value: &str) -> bool {
        let after = &text[self.value.end..];
        let value = value.trim_end_matches(['.', ':', '!', '?']);
        // A call, an index, a generic, a path.
        let is_code = value.starts_with('=')
            || after.starts_with('<')
            || value.contains(['(', '[', '{'])
            || value.contains("::")
            || value.contains("->");
        if is_code || is_placeholder(value) || is_attribute(value) {
            return false;
        }
        if !self.is_pass {
            return is_drawn_by_lot(value);
        }
        let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
        let is_word = value.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        let is_shell = self.is_of_shell(text, value);
        value.len() >= 5
            && (!is_number || self.is_equals && value.len() >= 6)
            && (is_shell || has_digit || !is_word)
            && !is_label(value)
            && (is_shell || !is_variable(value))
    }

    /// `NAME=word`, `--name=word`, or a line of a settings file and nothing else on it.
    fn is_of_shell(&self, text: &str, value: &str) -> bool {
        let name = &text[self.name.clone()];
        let (before, after) = (&text[..self.name.start], &text[self.value.end..]);
        let is_tight =
            self.name.end + 1 == self.value.start && value.len() == self.value.len() && !self.is_marked;
        let is_line = is_tight
            && (before.is_empty() || before.ends_with('\n'))
            && (after.is_empty() || after.starts_with(['\n', '\r']));
        self.is_equals && (self.is_marked || !name.bytes().any(|byte| byte.is_ascii_lowercase()) || is_line)
    }
}

/// The sign between name and value, and where it ends: `\"` or a quote may close the name before it.
fn sign(bytes: &[u8], mut place: usize) -> Option<(usize, bool)> {
    let at = |place: usize| bytes.get(place).copied();
    place += usize::from(at(place) == Some(b'\\'));
    place += usize::from(matches!(at(place), Some(b'"' | b'\'')));
    place = skip_blanks(bytes, place);
    let (length, is_equals) = match (at(place)?, at(place + 1)) {
        (b'=', Some(b'>')) | (b':', Some(b'=')) => (2, false),
        (b'=', _) => (1, true),
        (b':', _) => (1, false),
        _ => return None,
    };
    Some((skip_blanks(bytes, place + length), is_equals))
}

fn skip_blanks(bytes: &[u8], place: usize) -> usize {
    place + bytes[place.min(bytes.len())..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// The value behind a sign: in quotes, in escaped quotes, or bare.
fn value(text: &str, place: usize) -> Option<(Form, Range<usize>)> {
    let rest = near(text, place);
    for quote in ['"', '\''] {
        if let Some(inside) = rest.strip_prefix(quote) {
            return quoted(inside, quote).map(|length| (Form::Quoted, place + 1..place + 1 + length));
        }
    }
    if let Some(inside) = rest.strip_prefix("\\\"") {
        let length = inside.find(['"', '\\', '\n']).filter(|end| inside[*end..].starts_with("\\\""))?;
        return (length >= 4).then_some((Form::Quoted, place + 2..place + 2 + length));
    }
    let ends = |letter: char| {
        letter.is_whitespace()
            || matches!(letter, '"' | '\'' | '`' | ',' | ';' | '&' | ')' | '}' | ']' | '<' | '>' | '|' | '\\')
    };
    let length = rest.find(ends).unwrap_or(rest.len());
    (4..=LONGEST).contains(&length).then_some((Form::Bare, place..place + length))
}

/// No more of a text than a value can be: what is in progress for ever is not read again at each name.
fn near(text: &str, place: usize) -> &str {
    let farthest = (place + LONGEST + 4).min(text.len());
    let end = (farthest..text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
    &text[place..end]
}

/// How long the text in quotes is: no line break, and a backslash takes the next letter with it.
fn quoted(inside: &str, quote: char) -> Option<usize> {
    let (mut letters, mut is_escaped) = (0, false);
    for (place, letter) in inside.char_indices() {
        if letter == '\n' || place > LONGEST {
            return None;
        }
        if letter == quote && !is_escaped {
            return (letters >= 4).then_some(place);
        }
        is_escaped = letter == '\\' && !is_escaped;
        letters += usize::from(!is_escaped);
    }
    None
}

/// `<password>` word `</`.
fn element(text: &str, place: usize) -> Option<Range<usize>> {
    let rest = near(text, place);
    let length = rest.find(|letter: char| letter.is_whitespace() || matches!(letter, '<' | '>'))?;
    ((5..=LONGEST).contains(&length) && rest[length..].starts_with("</")).then_some(place..place + length)
}

/// `--password` word.
fn option(text: &str, place: usize) -> Option<Range<usize>> {
    let quotes = usize::from(text[place..].starts_with(['"', '\'']));
    let rest = near(text, place + quotes);
    let ends = |letter: char| {
        letter.is_whitespace() || matches!(letter, '"' | '\'' | '`' | '<' | '>' | '|' | ';' | '&')
    };
    let length = rest.find(ends).unwrap_or(rest.len());
    (5..=LONGEST).contains(&length).then_some(place + quotes..place + quotes + length)
}

/// A password may be any word; whatever else has a name must look drawn by lot. White space is in sentences.
fn is_quoted_secret(is_pass: bool, value: &str) -> bool {
    if value.chars().any(char::is_whitespace) || is_placeholder(value) {
        return false;
    }
    if is_pass { value.chars().count() >= 5 && !is_label(value) } else { is_drawn_by_lot(value) }
}

/// After an option comes its value, or, in prose, any word.
fn is_option_secret(is_pass: bool, value: &str) -> bool {
    let is_word =
        value.chars().all(|letter| letter.is_alphabetic() || matches!(letter, '.' | ',' | '-' | '_'));
    !value.starts_with('-') && !is_word && is_quoted_secret(is_pass, value)
}

/// `config.password`, `self.token`.
fn is_attribute(value: &str) -> bool {
    let is_name = |part: &str| {
        part.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'?')
    };
    let is_digitless = |part: &str| !part.bytes().any(|byte| byte.is_ascii_digit());
    value.contains('.') && value.split('.').all(|part| is_name(part) && is_digitless(part))
}

/// `password1`, `pass_2`: a name with a number.
fn is_variable(value: &str) -> bool {
    let stem = value.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '_');
    let lower = stem.to_ascii_lowercase();
    ["password", "passwd", "pass", "pwd", "passphrase", "hash"].iter().any(|name| lower.ends_with(name))
}
