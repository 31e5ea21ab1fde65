//! The format of a segment: text, `{field}`, and `[groups]` that are omitted if a field in them is empty.

use serde::{Deserialize, Serialize};

/// A valid format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SegmentFormat(String);

/// One part of a format.
enum FormatPart<'a> {
    Text(&'a str),
    Field(&'a str),
    /// The text between the brackets.
    Group(&'a str),
}

impl SegmentFormat {
    /// Returns the format as the user wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns true if a format contains one of these fields.
pub fn contains_any_field(source: &str, fields: &[&str]) -> bool {
    let mut is_contained = false;
    for_each_field_name(source, &mut |name| is_contained |= fields.contains(&name));
    is_contained
}

/// Returns the names of the fields in a format, in their order.
pub(super) fn field_names(source: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for_each_field_name(source, &mut |name| names.push(name));
    names
}

fn for_each_field_name<'a>(source: &'a str, visit: &mut dyn FnMut(&'a str)) {
    let mut remaining = source;
    while let Some(part) = parse_next_part(&mut remaining) {
        match part {
            FormatPart::Text(_) => {}
            FormatPart::Field(name) => visit(name),
            FormatPart::Group(group_source) => for_each_field_name(group_source, visit),
        }
    }
}

/// Renders a format with the values of its fields and with the groups that `should_show_group` accepts. Trims the result.
/// Returns `None` if no field in it has a value.
pub fn render_unless_all_fields_empty<'a>(
    source: &str,
    should_show_group: &dyn Fn(&str) -> bool,
    field_value: &dyn Fn(&str) -> Option<&'a str>,
) -> Option<String> {
    let mut output = String::with_capacity(96);
    let mut has_value = false;
    let mut remaining = source;
    while let Some(part) = parse_next_part(&mut remaining) {
        match part {
            FormatPart::Text(text) => output.push_str(text),
            FormatPart::Field(name) => {
                let value = field_value(name).unwrap_or_default();
                has_value |= !value.is_empty();
                output.push_str(value);
            }
            FormatPart::Group(group_source) if should_show_group(group_source) => {
                let length_before = output.len();
                match append_group_or_none_at_empty_field(group_source, &mut output, field_value) {
                    Some(has_field) => has_value |= has_field,
                    None => output.truncate(length_before),
                }
            }
            FormatPart::Group(_) => {}
        }
    }
    let trimmed = output.trim();
    if !has_value {
        None
    } else if trimmed.len() == output.len() {
        Some(output)
    } else {
        Some(trimmed.to_owned())
    }
}

/// Appends a group to the output, and returns whether the group has a field. Returns `None` if a field in the group is empty; then
/// part of the group may have been appended.
fn append_group_or_none_at_empty_field<'a>(
    source: &str,
    output: &mut String,
    field_value: &dyn Fn(&str) -> Option<&'a str>,
) -> Option<bool> {
    let mut has_field = false;
    let mut remaining = source;
    while let Some(part) = parse_next_part(&mut remaining) {
        match part {
            FormatPart::Text(text) | FormatPart::Group(text) => output.push_str(text),
            FormatPart::Field(name) => {
                has_field = true;
                output.push_str(field_value(name).filter(|value| !value.is_empty())?);
            }
        }
    }
    Some(has_field)
}

/// Parses the next part of a valid format and removes it from `remaining`. The search compares bytes, because the special
/// characters are ASCII and no byte of another character is.
fn parse_next_part<'a>(remaining: &mut &'a str) -> Option<FormatPart<'a>> {
    let source = *remaining;
    let (part, next_part_start) = match source.as_bytes().first()? {
        b'\\' => {
            let character_length = source[1..].chars().next().map_or(0, char::len_utf8);
            (FormatPart::Text(&source[1..1 + character_length]), 1 + character_length)
        }
        b'{' => {
            let end = index_of_first_byte_or_len(source, |byte| byte == b'}');
            (FormatPart::Field(&source[1..end]), end + 1)
        }
        b'[' => {
            let end = index_of_group_end_or_len(source);
            (FormatPart::Group(&source[1..end]), end + 1)
        }
        _ => {
            let end = index_of_first_byte_or_len(source, |byte| IS_SPECIAL_BYTE[usize::from(byte)]);
            (FormatPart::Text(&source[..end]), end)
        }
    };
    *remaining = source.get(next_part_start..).unwrap_or_default();
    Some(part)
}

/// For each byte, whether it starts something other than plain text.
const IS_SPECIAL_BYTE: [bool; 256] = {
    let mut is_special = [false; 256];
    (is_special[b'\\' as usize], is_special[b'{' as usize], is_special[b'[' as usize]) = (true, true, true);
    is_special
};

/// Returns the index of the first byte that matches, or the length of the text.
fn index_of_first_byte_or_len(source: &str, matches: impl FnMut(u8) -> bool) -> usize {
    source.bytes().position(matches).unwrap_or(source.len())
}

fn index_of_group_end_or_len(source: &str) -> usize {
    let mut is_escaped = false;
    index_of_first_byte_or_len(source, |byte| {
        let is_end = byte == b']' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })
}

/// The error for an invalid format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the format {text:?} is invalid: {reason}")]
pub struct SegmentFormatError {
    text: String,
    reason: &'static str,
}

impl TryFrom<String> for SegmentFormat {
    type Error = SegmentFormatError;

    fn try_from(text: String) -> Result<SegmentFormat, SegmentFormatError> {
        match find_format_error(&text) {
            Some(reason) => Err(SegmentFormatError { text, reason }),
            None => Ok(SegmentFormat(text)),
        }
    }
}

fn find_format_error(source: &str) -> Option<&'static str> {
    if source.contains(char::is_control) {
        return Some("it has a control character; a segment's `colour` paints it");
    }
    let mut is_in_group = false;
    let mut characters = source.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.next().is_none() => return Some("nothing follows the last `\\`"),
            '{' => match characters.find(|next_character| "{}[]".contains(*next_character)) {
                Some('}') => {}
                _ => return Some("a `{` is never closed"),
            },
            '[' if is_in_group => return Some("a group inside a group"),
            '[' => is_in_group = true,
            ']' if is_in_group => is_in_group = false,
            ']' => return Some("a `]` without its `[`; write `\\]` for the letter"),
            '}' => return Some("a `}` without its `{`; write `\\}` for the letter"),
            _ => {}
        }
    }
    is_in_group.then_some("a `[` is never closed")
}

impl From<SegmentFormat> for String {
    fn from(format: SegmentFormat) -> String {
        format.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render_with_groups(format: &str, shows_groups: bool) -> Option<String> {
        let field = |name: &str| match name {
            "a" => Some("1"),
            "b" => Some("2"),
            _ => None,
        };
        let format = SegmentFormat::try_from(format.to_owned()).unwrap();
        render_unless_all_fields_empty(format.as_str(), &|_| shows_groups, &field)
    }

    #[test]
    fn a_group_with_an_empty_field_and_a_text_without_values_are_omitted() {
        for (format, with_groups, without_groups) in [
            ("{a} {b}", Some("1 2"), Some("1 2")),
            ("x {a}[ y {b}][ z {none}]", Some("x 1 y 2"), Some("x 1")),
            ("x {none}", None, None),
            ("x[ {none}]", None, None),
            ("[x {a}]", Some("x 1"), None),
            (r"\[{a}\] \{\\", Some(r"[1] {\"), Some(r"[1] {\")),
            (r"\┆ ⎇ {a}[ ▕{b}▏\]]", Some("┆ ⎇ 1 ▕2▏]"), Some("┆ ⎇ 1")),
            (r"{a}[ \\{b}]", Some(r"1 \2"), Some("1")),
            ("{a}[ only text]", Some("1 only text"), Some("1")),
        ] {
            assert_eq!(render_with_groups(format, true).as_deref(), with_groups, "{format}");
            assert_eq!(render_with_groups(format, false).as_deref(), without_groups, "{format}");
        }
        assert_eq!(field_names(r"\{x\} {a}[ {b} \[{c}\]]"), ["a", "b", "c"]);
        assert!(contains_any_field("{a}[ {b}]", &["c", "b"]) && !contains_any_field("{a}[ {b}]", &["c"]));
    }

    #[test]
    fn an_invalid_format_is_refused_with_the_reason() {
        for (format, words) in [
            ("{a", "`{` is never closed"),
            ("[a", "`[` is never closed"),
            ("a]", "`]` without"),
            ("a}", "`}` without"),
            ("[a[b]]", "a group inside a group"),
            ("a\\", "last `\\`"),
            ("\u{1b}[31m{a}", "control character"),
        ] {
            let error = SegmentFormat::try_from(format.to_owned()).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains(&format!("{format:?}")), "{error}");
        }
    }
}
