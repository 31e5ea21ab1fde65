//! Secrets that are recognized by the name before them: `password=…`, `api_key: "…"`, `--token …`,
//! `<password>…</password>`. In code, a name alone proves little, so the value must look like a secret too.
//!
//! Parsed by hand and not by a regular expression: these names occur on many lines of ordinary code, and most
//! can be rejected after a byte or two.

use crate::SecretMatch;
use crate::value_checks::{is_label_or_path, is_placeholder, looks_random};
use std::ops::Range;

/// Endings of names that announce a secret, in lower case.
pub(crate) const SECRET_NAME_ENDINGS: [&str; 34] = [
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
/// How many of the first entries name a password, which may be any word.
const PASSWORD_NAME_COUNT: usize = 6;
/// The maximum length of a value in bytes.
const MAX_VALUE_BYTES: usize = 1024;
/// The maximum length of the part of a name before its ending.
const MAX_NAME_PREFIX_BYTES: usize = 128;

/// Finds the values behind these names that look like secrets.
pub(crate) fn find_assigned_secrets(
    text: &str,
    name_ranges: &mut dyn Iterator<Item = Range<usize>>,
    matches: &mut Vec<SecretMatch>,
) {
    let mut next_start = 0;
    let mut name_ranges: Vec<Range<usize>> =
        name_ranges.filter(|name| may_have_value(&text.as_bytes()[name.end..])).collect();
    name_ranges.sort_unstable_by_key(|name| (name.end, name.start));
    for name in name_ranges {
        if name.start < next_start {
            continue;
        }
        let Some(assignment) = Assignment::parse_at(text, &name) else {
            // If no value ends within the limit, none begins at the next names either, so the range is
            // skipped.
            let rest = &text.as_bytes()[name.end..];
            let is_endless = rest.len() > MAX_VALUE_BYTES
                && !rest[..MAX_VALUE_BYTES].iter().any(|byte| b" \t\n\"'`,;&)}]<>|\\".contains(byte));
            next_start = if is_endless { name.end + MAX_VALUE_BYTES } else { next_start };
            continue;
        };
        next_start = assignment.value.end.max(next_start);
        if assignment.is_secret(text) {
            matches.push(SecretMatch { kind: assignment.kind_label(), range: assignment.value });
        }
    }
}

/// Returns the kind of secret that a key and its value in JSON form, if any.
pub(crate) fn kind_of_key_value(key: &str, value: &str) -> Option<&'static str> {
    let lower = key.to_ascii_lowercase();
    if !lower.bytes().all(is_name_byte) {
        return None;
    }
    let position = SECRET_NAME_ENDINGS.iter().position(|name| lower.ends_with(name))?;
    is_quoted_secret(position < PASSWORD_NAME_COUNT, value)
        .then_some(kind_label(position < PASSWORD_NAME_COUNT))
}

fn kind_label(is_password: bool) -> &'static str {
    if is_password { "password" } else { "assignment" }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

/// Returns true if a value may follow. Most names are followed by neither a sign nor a value and need no
/// further parsing.
fn may_have_value(rest: &[u8]) -> bool {
    let rest = rest.strip_prefix(b"\\").unwrap_or(rest);
    match rest.first() {
        Some(b'=' | b':' | b' ' | b'>' | b'\t') => true,
        Some(b'"' | b'\'') => matches!(rest[1..].trim_ascii_start().first(), Some(b':' | b'=')),
        _ => false,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueForm {
    /// In quotes, after a sign.
    Quoted,
    /// Without quotes, after a sign.
    Bare,
    /// After a command-line option and a space.
    OptionArgument,
    /// In an XML element.
    XmlElement,
}

/// A name with its value.
struct Assignment {
    form: ValueForm,
    is_password: bool,
    /// The range of the name, without the dashes of an option.
    name: Range<usize>,
    /// True if `--`, `?` or `&` precedes the name.
    has_option_or_query_prefix: bool,
    has_equals_sign: bool,
    value: Range<usize>,
}

impl Assignment {
    fn parse_at(text: &str, name_ending: &Range<usize>) -> Option<Assignment> {
        let bytes = text.as_bytes();
        let is_password = {
            let word = text[name_ending.clone()].to_ascii_lowercase();
            SECRET_NAME_ENDINGS
                .iter()
                .position(|name| *name == word)
                .is_some_and(|position| position < PASSWORD_NAME_COUNT)
        };
        let prefix_length = bytes[..name_ending.start]
            .iter()
            .rev()
            .take(MAX_NAME_PREFIX_BYTES)
            .take_while(|byte| is_name_byte(**byte))
            .count();
        let mut name_start = name_ending.start - prefix_length;
        let is_option = bytes[name_start..name_ending.end].starts_with(b"--");
        if is_option {
            name_start += 2;
        }
        let has_option_or_query_prefix =
            is_option || name_start > 0 && matches!(bytes[name_start - 1], b'?' | b'&');
        let new_assignment = |form, has_equals_sign, value| Assignment {
            form,
            is_password,
            name: name_start..name_ending.end,
            has_option_or_query_prefix,
            has_equals_sign,
            value,
        };
        if bytes[name_ending.end..].starts_with(b">") && name_start > 0 && bytes[name_start - 1] == b'<' {
            return parse_element_text(text, name_ending.end + 1)
                .map(|value| new_assignment(ValueForm::XmlElement, false, value));
        }
        let is_separate_word = name_start < 3 || bytes[name_start - 3].is_ascii_whitespace();
        if is_option && is_separate_word && bytes[name_ending.end..].starts_with(b" ") {
            return parse_option_argument(text, name_ending.end + 1)
                .map(|value| new_assignment(ValueForm::OptionArgument, false, value));
        }
        let (value_start, has_equals_sign) = parse_sign(bytes, name_ending.end)?;
        let (form, value) = parse_value(text, value_start)?;
        Some(new_assignment(form, has_equals_sign, value))
    }

    fn kind_label(&self) -> &'static str {
        kind_label(self.is_password)
    }

    fn is_secret(&self, text: &str) -> bool {
        let value = &text[self.value.clone()];
        match self.form {
            ValueForm::Quoted | ValueForm::XmlElement => is_quoted_secret(self.is_password, value),
            ValueForm::OptionArgument => is_option_argument_secret(self.is_password, value),
            ValueForm::Bare => self.is_bare_secret(text, value),
        }
    }

    /// Checks a value without quotes, which may as well be code: a variable, a call, a type.
    fn is_bare_secret(&self, text: &str, value: &str) -> bool {
        let after = &text[self.value.end..];
        let value = value.trim_end_matches(['.', ':', '!', '?']);
        // A comparison, a call, an index, a generic type, a path.
        let is_code = value.starts_with('=')
            || after.starts_with('<')
            || value.contains(['(', '[', '{'])
            || value.contains("::")
            || value.contains("->");
        if is_code || is_placeholder(value) || is_attribute_access(value) {
            return false;
        }
        if !self.is_password {
            return looks_random(value);
        }
        let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
        let is_word = value.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        let is_shell_or_settings = self.is_shell_or_settings_assignment(text, value);
        value.len() >= 5
            && (!is_number || self.has_equals_sign && value.len() >= 6)
            && (is_shell_or_settings || has_digit || !is_word)
            && !is_label_or_path(value)
            && (is_shell_or_settings || !is_numbered_password_name(value))
    }

    /// Returns true for `NAME=word`, `--name=word`, or a complete line `name=word` of a settings file.
    fn is_shell_or_settings_assignment(&self, text: &str, value: &str) -> bool {
        let name = &text[self.name.clone()];
        let (before, after) = (&text[..self.name.start], &text[self.value.end..]);
        let is_tight = self.name.end + 1 == self.value.start
            && value.len() == self.value.len()
            && !self.has_option_or_query_prefix;
        let is_line = is_tight
            && (before.is_empty() || before.ends_with('\n'))
            && (after.is_empty() || after.starts_with(['\n', '\r']));
        self.has_equals_sign
            && (self.has_option_or_query_prefix
                || !name.bytes().any(|byte| byte.is_ascii_lowercase())
                || is_line)
    }
}

/// Parses the sign between name and value, after a closing quote or `\"` of the name. Returns where the value
/// begins and whether the sign is `=`.
fn parse_sign(bytes: &[u8], mut position: usize) -> Option<(usize, bool)> {
    let byte_at = |index: usize| bytes.get(index).copied();
    position += usize::from(byte_at(position) == Some(b'\\'));
    position += usize::from(matches!(byte_at(position), Some(b'"' | b'\'')));
    position = skip_blanks(bytes, position);
    let (length, has_equals_sign) = match (byte_at(position)?, byte_at(position + 1)) {
        (b'=', Some(b'>')) | (b':', Some(b'=')) => (2, false),
        (b'=', _) => (1, true),
        (b':', _) => (1, false),
        _ => return None,
    };
    Some((skip_blanks(bytes, position + length), has_equals_sign))
}

fn skip_blanks(bytes: &[u8], start: usize) -> usize {
    start + bytes[start.min(bytes.len())..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// Parses the value after a sign: in quotes, in escaped quotes, or bare.
fn parse_value(text: &str, start: usize) -> Option<(ValueForm, Range<usize>)> {
    let rest = text_within_limit(text, start);
    for quote in ['"', '\''] {
        if let Some(inner) = rest.strip_prefix(quote) {
            return quoted_length(inner, quote)
                .map(|length| (ValueForm::Quoted, start + 1..start + 1 + length));
        }
    }
    if let Some(inner) = rest.strip_prefix("\\\"") {
        let length = inner.find(['"', '\\', '\n']).filter(|end| inner[*end..].starts_with("\\\""))?;
        return (length >= 4).then_some((ValueForm::Quoted, start + 2..start + 2 + length));
    }
    let ends_value = |letter: char| {
        letter.is_whitespace()
            || matches!(letter, '"' | '\'' | '`' | ',' | ';' | '&' | ')' | '}' | ']' | '<' | '>' | '|' | '\\')
    };
    let length = rest.find(ends_value).unwrap_or(rest.len());
    (4..=MAX_VALUE_BYTES).contains(&length).then_some((ValueForm::Bare, start..start + length))
}

/// Returns the text from `start` that a value can cover. Bounded, so that endless input is not read again at
/// each name.
fn text_within_limit(text: &str, start: usize) -> &str {
    let limit = (start + MAX_VALUE_BYTES + 4).min(text.len());
    let end = (limit..text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
    &text[start..end]
}

/// Returns the length of the text in quotes. It has no line break, and a backslash escapes the next letter.
fn quoted_length(inner: &str, quote: char) -> Option<usize> {
    let (mut letter_count, mut is_escaped) = (0, false);
    for (position, letter) in inner.char_indices() {
        if letter == '\n' || position > MAX_VALUE_BYTES {
            return None;
        }
        if letter == quote && !is_escaped {
            return (letter_count >= 4).then_some(position);
        }
        is_escaped = letter == '\\' && !is_escaped;
        letter_count += usize::from(!is_escaped);
    }
    None
}

/// Parses the text of `<password>text</`.
fn parse_element_text(text: &str, start: usize) -> Option<Range<usize>> {
    let rest = text_within_limit(text, start);
    let length = rest.find(|letter: char| letter.is_whitespace() || matches!(letter, '<' | '>'))?;
    ((5..=MAX_VALUE_BYTES).contains(&length) && rest[length..].starts_with("</"))
        .then_some(start..start + length)
}

/// Parses the value of `--password value`.
fn parse_option_argument(text: &str, start: usize) -> Option<Range<usize>> {
    let quote_length = usize::from(text[start..].starts_with(['"', '\'']));
    let rest = text_within_limit(text, start + quote_length);
    let ends_value = |letter: char| {
        letter.is_whitespace() || matches!(letter, '"' | '\'' | '`' | '<' | '>' | '|' | ';' | '&')
    };
    let length = rest.find(ends_value).unwrap_or(rest.len());
    (5..=MAX_VALUE_BYTES).contains(&length).then_some(start + quote_length..start + quote_length + length)
}

/// Checks a value in quotes. A password may be any word; any other secret must look random. Values with white
/// space are sentences.
fn is_quoted_secret(is_password: bool, value: &str) -> bool {
    if value.chars().any(char::is_whitespace) || is_placeholder(value) {
        return false;
    }
    if is_password { value.chars().count() >= 5 && !is_label_or_path(value) } else { looks_random(value) }
}

/// Checks a value after an option. In prose any word may follow, so a plain word is not a secret.
fn is_option_argument_secret(is_password: bool, value: &str) -> bool {
    let is_word =
        value.chars().all(|letter| letter.is_alphabetic() || matches!(letter, '.' | ',' | '-' | '_'));
    !value.starts_with('-') && !is_word && is_quoted_secret(is_password, value)
}

/// Returns true for an attribute access such as `config.password` or `self.token`.
fn is_attribute_access(value: &str) -> bool {
    let is_name = |part: &str| {
        part.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'?')
    };
    let has_no_digit = |part: &str| !part.bytes().any(|byte| byte.is_ascii_digit());
    value.contains('.') && value.split('.').all(|part| is_name(part) && has_no_digit(part))
}

/// Returns true for a variable name such as `password1` or `pass_2`.
fn is_numbered_password_name(value: &str) -> bool {
    let stem = value.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '_');
    let lower = stem.to_ascii_lowercase();
    ["password", "passwd", "pass", "pwd", "passphrase", "hash"].iter().any(|name| lower.ends_with(name))
}
