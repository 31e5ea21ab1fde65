//! Secrets that are recognized by the name before them: `password=…`, `api_key: "…"`, `--token …`,
//! `<password>…</password>`. In code, a name alone proves little, so the value must look like a secret too.
//!
//! Parsed by hand and not by a regular expression: these names occur on many lines of ordinary code, and most
//! can be rejected after a byte or two.

use crate::SecretMatch;
use crate::value_checks::{is_label_or_path, is_placeholder, looks_random};
use std::ops::Range;

/// Endings of names whose value is probably a secret, in lower case.
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
/// How many of the first endings are names of passwords, which may be any word.
const PASSWORD_NAME_COUNT: usize = 6;
/// The maximum length of a value in bytes.
const MAX_VALUE_BYTES: usize = 1024;
/// The maximum length of the part of a name before its ending.
const MAX_NAME_PREFIX_BYTES: usize = 128;

/// Appends to `matches` the values that are assigned to these names and look like secrets.
pub(crate) fn find_assigned_secrets(
    text: &str,
    name_ranges: &mut dyn Iterator<Item = Range<usize>>,
    matches: &mut Vec<SecretMatch>,
) {
    let mut next_start = 0;
    let mut name_ranges: Vec<Range<usize>> =
        name_ranges.filter(|name| may_start_with_operator_or_value(&text.as_bytes()[name.end..])).collect();
    name_ranges.sort_unstable_by_key(|name| (name.end, name.start));
    for name in name_ranges {
        if name.start < next_start {
            continue;
        }
        let Some(assignment) = Assignment::parse_at(text, &name) else {
            // If nothing within the limit ends a value, the names in this range have no valid value either, so the
            // range is skipped.
            let text_after_name = &text.as_bytes()[name.end..];
            let exceeds_value_limit = text_after_name.len() > MAX_VALUE_BYTES
                && !text_after_name[..MAX_VALUE_BYTES]
                    .iter()
                    .any(|byte| b" \t\n\"'`,;&)}]<>|\\".contains(byte));
            next_start = if exceeds_value_limit { name.end + MAX_VALUE_BYTES } else { next_start };
            continue;
        };
        next_start = assignment.value.end.max(next_start);
        if assignment.is_secret(text) {
            matches.push(SecretMatch { kind: assignment.kind_label(), range: assignment.value });
        }
    }
}

/// Returns the kind of secret if the value of this JSON key looks like one.
pub(crate) fn secret_kind_of_key_value(key: &str, value: &str) -> Option<&'static str> {
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

/// Returns true if the text after a name may start with an operator or a value. Most names are followed by neither
/// and need no further parsing.
fn may_start_with_operator_or_value(text_after_name: &[u8]) -> bool {
    let text_after_name = text_after_name.strip_prefix(b"\\").unwrap_or(text_after_name);
    match text_after_name.first() {
        Some(b'=' | b':' | b' ' | b'>' | b'\t') => true,
        Some(b'"' | b'\'') => matches!(text_after_name[1..].trim_ascii_start().first(), Some(b':' | b'=')),
        _ => false,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueForm {
    /// In quotes, after an operator such as `=` or `:`.
    Quoted,
    /// Without quotes, after an operator.
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
            let ending = text[name_ending.clone()].to_ascii_lowercase();
            SECRET_NAME_ENDINGS
                .iter()
                .position(|name| *name == ending)
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
        let starts_after_whitespace = name_start < 3 || bytes[name_start - 3].is_ascii_whitespace();
        if is_option && starts_after_whitespace && bytes[name_ending.end..].starts_with(b" ") {
            return parse_option_argument(text, name_ending.end + 1)
                .map(|value| new_assignment(ValueForm::OptionArgument, false, value));
        }
        let (value_start, has_equals_sign) = skip_operator_and_detect_equals_sign(bytes, name_ending.end)?;
        let (form, value) = parse_quoted_or_bare_value(text, value_start)?;
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

    /// Returns true if a value without quotes looks like a secret. It may also be code: a variable, a call, a type.
    fn is_bare_secret(&self, text: &str, value: &str) -> bool {
        let text_after = &text[self.value.end..];
        let value = value.trim_end_matches(['.', ':', '!', '?']);
        // A comparison, a call, an index, a generic type, a path.
        let is_code = value.starts_with('=')
            || text_after.starts_with('<')
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
        let is_word = value.chars().all(|character| character.is_alphanumeric() || character == '_');
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        let is_shell_or_settings = self.is_shell_or_settings_assignment(text, value);
        value.len() >= 5
            && (!is_number || self.has_equals_sign && value.len() >= 6)
            && (is_shell_or_settings || has_digit || !is_word)
            && !is_label_or_path(value)
            && (is_shell_or_settings || !is_numbered_password_name(value))
    }

    /// Returns true for `NAME=value`, `--name=value`, `?name=value`, or a complete line `name=value` of a settings
    /// file.
    fn is_shell_or_settings_assignment(&self, text: &str, value: &str) -> bool {
        let name = &text[self.name.clone()];
        let (text_before, text_after) = (&text[..self.name.start], &text[self.value.end..]);
        let is_adjacent_without_prefix = self.name.end + 1 == self.value.start
            && value.len() == self.value.len()
            && !self.has_option_or_query_prefix;
        let is_complete_line = is_adjacent_without_prefix
            && (text_before.is_empty() || text_before.ends_with('\n'))
            && (text_after.is_empty() || text_after.starts_with(['\n', '\r']));
        self.has_equals_sign
            && (self.has_option_or_query_prefix
                || !name.bytes().any(|byte| byte.is_ascii_lowercase())
                || is_complete_line)
    }
}

/// Skips the operator between a name and its value, after a closing quote or `\"` of the name. Returns the start of
/// the value and whether the operator is `=`.
fn skip_operator_and_detect_equals_sign(bytes: &[u8], mut position: usize) -> Option<(usize, bool)> {
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

/// Parses the value after an operator: in quotes, in escaped quotes, or bare. It has at least four characters.
fn parse_quoted_or_bare_value(text: &str, start: usize) -> Option<(ValueForm, Range<usize>)> {
    let remaining_text = text_within_limit(text, start);
    for quote in ['"', '\''] {
        if let Some(inner) = remaining_text.strip_prefix(quote) {
            return quoted_length_if_closed_and_long_enough(inner, quote)
                .map(|length| (ValueForm::Quoted, start + 1..start + 1 + length));
        }
    }
    if let Some(inner) = remaining_text.strip_prefix("\\\"") {
        let length = inner.find(['"', '\\', '\n']).filter(|end| inner[*end..].starts_with("\\\""))?;
        return (length >= 4).then_some((ValueForm::Quoted, start + 2..start + 2 + length));
    }
    let ends_value = |character: char| {
        character.is_whitespace()
            || matches!(
                character,
                '"' | '\'' | '`' | ',' | ';' | '&' | ')' | '}' | ']' | '<' | '>' | '|' | '\\'
            )
    };
    let length = remaining_text.find(ends_value).unwrap_or(remaining_text.len());
    (4..=MAX_VALUE_BYTES).contains(&length).then_some((ValueForm::Bare, start..start + length))
}

/// Returns the text from `start`, limited to the maximum length of a value, so that long input is not read again at
/// each name.
fn text_within_limit(text: &str, start: usize) -> &str {
    let limit = (start + MAX_VALUE_BYTES + 4).min(text.len());
    let end = (limit..text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
    &text[start..end]
}

/// Returns the length in bytes of the text before the closing quote. A backslash escapes the next character. Returns
/// `None` if the text has a line break, fewer than four characters, or no closing quote within the limit.
fn quoted_length_if_closed_and_long_enough(inner: &str, quote: char) -> Option<usize> {
    let (mut char_count, mut is_escaped) = (0, false);
    for (position, character) in inner.char_indices() {
        if character == '\n' || position > MAX_VALUE_BYTES {
            return None;
        }
        if character == quote && !is_escaped {
            return (char_count >= 4).then_some(position);
        }
        is_escaped = character == '\\' && !is_escaped;
        char_count += usize::from(!is_escaped);
    }
    None
}

/// Parses the text of `<password>text</`.
fn parse_element_text(text: &str, start: usize) -> Option<Range<usize>> {
    let remaining_text = text_within_limit(text, start);
    let length =
        remaining_text.find(|character: char| character.is_whitespace() || matches!(character, '<' | '>'))?;
    ((5..=MAX_VALUE_BYTES).contains(&length) && remaining_text[length..].starts_with("</"))
        .then_some(start..start + length)
}

/// Parses the value of `--password value`.
fn parse_option_argument(text: &str, start: usize) -> Option<Range<usize>> {
    let quote_length = usize::from(text[start..].starts_with(['"', '\'']));
    let remaining_text = text_within_limit(text, start + quote_length);
    let ends_value = |character: char| {
        character.is_whitespace() || matches!(character, '"' | '\'' | '`' | '<' | '>' | '|' | ';' | '&')
    };
    let length = remaining_text.find(ends_value).unwrap_or(remaining_text.len());
    (5..=MAX_VALUE_BYTES).contains(&length).then_some(start + quote_length..start + quote_length + length)
}

/// Returns true if a value in quotes looks like a secret. A password may be any word; any other secret must look
/// random. A value with white space is a sentence and not a secret.
fn is_quoted_secret(is_password: bool, value: &str) -> bool {
    if value.chars().any(char::is_whitespace) || is_placeholder(value) {
        return false;
    }
    if is_password { value.chars().count() >= 5 && !is_label_or_path(value) } else { looks_random(value) }
}

/// Returns true if the argument of an option looks like a secret. In prose any word may follow the option, so a plain
/// word is not a secret.
fn is_option_argument_secret(is_password: bool, value: &str) -> bool {
    let is_word = value
        .chars()
        .all(|character| character.is_alphabetic() || matches!(character, '.' | ',' | '-' | '_'));
    !value.starts_with('-') && !is_word && is_quoted_secret(is_password, value)
}

/// Returns true for an attribute access such as `config.password` or `self.token`.
fn is_attribute_access(value: &str) -> bool {
    let is_name = |part: &str| {
        part.starts_with(|character: char| character.is_ascii_alphabetic() || character == '_')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'?')
    };
    let has_no_digit = |part: &str| !part.bytes().any(|byte| byte.is_ascii_digit());
    value.contains('.') && value.split('.').all(|part| is_name(part) && has_no_digit(part))
}

/// Returns true for a variable name such as `password1` or `pass_2`.
fn is_numbered_password_name(value: &str) -> bool {
    let stem = value.trim_end_matches(|character: char| character.is_ascii_digit() || character == '_');
    let lower = stem.to_ascii_lowercase();
    ["password", "passwd", "pass", "pwd", "passphrase", "hash"].iter().any(|name| lower.ends_with(name))
}
