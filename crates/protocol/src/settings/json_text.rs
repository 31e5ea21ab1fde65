//! Edits a JSON text in place: everything that is not ours keeps its bytes, order and spacing.
//!
//! Limit: every edit parses the text again. Settings are small, and this is simpler than a tree with spans.

use crate::lenient;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::ops::Range;

/// The reason why a settings text cannot be edited, and its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct InvalidSettings {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    pub reason: String,
}

impl InvalidSettings {
    /// Creates the error for a byte of the text.
    pub(super) fn at_byte(text: &str, byte_offset: usize, reason: String) -> InvalidSettings {
        let text_before = text.get(..byte_offset).unwrap_or(text);
        let line_start = text_before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = 1 + text_before.bytes().filter(|byte| *byte == b'\n').count();
        InvalidSettings { line, column: 1 + text_before[line_start..].chars().count(), reason }
    }

    fn from_parse_error_with_hint(text: &str, error: &serde_json::Error) -> InvalidSettings {
        let message = error.to_string();
        let reason = message.rsplit_once(" at line ").map_or(message.as_str(), |(cause, _)| cause);
        let line_start: usize =
            text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        // The parser counts bytes and reports the last one that it read.
        let byte_offset = (line_start + error.column().saturating_sub(1)).min(text.len());
        let byte_offset = (0..=byte_offset).rev().find(|byte| text.is_char_boundary(*byte)).unwrap_or(0);
        // The client (1.0.128 and 2.1.329) loads no settings file or server list with a comment or trailing comma, so our
        // entries in it would never run.
        let hint = match text[byte_offset..].chars().next() {
            Some('/') => " (a comment? Claude Code does not load a file that has one)",
            Some('}' | ']') => " (a trailing comma? Claude Code does not load a file that has one)",
            _ => "",
        };
        InvalidSettings::at_byte(text, byte_offset, format!("{reason}{hint}"))
    }
}

/// One member of an object.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) value_range: Range<usize>,
}

/// Returns the range of the root value. Fails if the text is not exactly one JSON value.
pub(super) fn root_range(text: &str) -> Result<Range<usize>, InvalidSettings> {
    let raw: &RawValue = serde_json::from_str(text)
        .map_err(|error| InvalidSettings::from_parse_error_with_hint(text, &error))?;
    Ok(range_of_raw_value(text, raw))
}

/// Returns the members of an object, or `None` for any other value. A duplicate key is an error: the client would
/// ignore one of the two, and it is unclear which one the user meant.
pub(super) fn object_members_rejecting_duplicates(
    text: &str,
    object_range: &Range<usize>,
) -> Result<Option<Vec<Member>>, InvalidSettings> {
    struct PairsVisitor;
    impl<'de> Visitor<'de> for PairsVisitor {
        type Value = Vec<(String, &'de RawValue)>;
        fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut pairs = Vec::new();
            while let Some(pair) = map.next_entry()? {
                pairs.push(pair);
            }
            Ok(pairs)
        }
    }
    if !text[object_range.clone()].starts_with('{') {
        return Ok(None);
    }
    let pairs = serde_json::Deserializer::from_str(&text[object_range.clone()])
        .deserialize_map(PairsVisitor)
        .map_err(|error| InvalidSettings::at_byte(text, object_range.start, error.to_string()))?;
    let mut members: Vec<Member> = Vec::with_capacity(pairs.len());
    for (key, raw) in pairs {
        let range = range_of_raw_value(text, raw);
        if members.iter().any(|member| member.key == key) {
            return Err(InvalidSettings::at_byte(
                text,
                range.start,
                format!("the key {key:?} is here a second time"),
            ));
        }
        members.push(Member { key, value_range: range });
    }
    Ok(Some(members))
}

/// Returns the ranges of a list's elements, or `None` for any other value.
pub(super) fn list_elements(text: &str, list_range: &Range<usize>) -> Option<Vec<Range<usize>>> {
    let raw_elements: Vec<&RawValue> = serde_json::from_str(&text[list_range.clone()]).ok()?;
    Some(raw_elements.into_iter().map(|element| range_of_raw_value(text, element)).collect())
}

/// Returns the range of the value at a path of keys below the root. `None` if the text does not parse or has no such
/// value.
pub(super) fn find_value_range(text: &str, key_path: &[&str]) -> Option<Range<usize>> {
    key_path.iter().try_fold(root_range(text).ok()?, |object_range, key| {
        let member = object_members_rejecting_duplicates(text, &object_range)
            .ok()??
            .into_iter()
            .find(|member| member.key == *key)?;
        Some(member.value_range)
    })
}

/// Returns the text of a JSON string.
pub(super) fn string_at(text: &str, range: &Range<usize>) -> Option<String> {
    lenient::decode_string_lossy(serde_json::from_str(&text[range.clone()]).ok()?)
}

/// Returns the value in a range; `null` if it cannot be represented (a lone surrogate).
pub(super) fn value_at_or_null(text: &str, range: &Range<usize>) -> Value {
    serde_json::from_str(&text[range.clone()]).unwrap_or_default()
}

/// Replaces the value in a range, formatted like its surroundings.
pub(super) fn replace_value(text: &str, range: &Range<usize>, value: &Value) -> String {
    let is_one_line_value = !text[range.clone()].contains('\n') && text[range.clone()].len() > 2;
    let replacement = if is_one_line_value {
        value.to_string()
    } else {
        to_pretty_json_in_style_of(text, value, line_indent(text, range.start))
    };
    replace_range(text, range.clone(), &replacement)
}

/// Adds a last child to an object (with a key) or a list, formatted like its surroundings.
pub(super) fn append_child(
    text: &str,
    container_range: &Range<usize>,
    key: Option<&str>,
    value: &Value,
) -> String {
    let quoted_key = key.map(|key| Value::from(key).to_string());
    let prepend_key =
        |colon: &str, body: String| quoted_key.iter().fold(body, |body, name| format!("{name}{colon}{body}"));
    let content_end = container_range.end - 1;
    let content = &text[container_range.start + 1..content_end];
    let Some((last_child_end, whitespace_before_last_child)) =
        last_child_end_and_leading_whitespace(text, container_range)
    else {
        if has_content_on_one_line(text) {
            return replace_range(
                text,
                container_range.start + 1..content_end,
                &prepend_key(":", value.to_string()),
            );
        }
        let outer_indent = line_indent(text, container_range.start);
        let inner_indent = format!("{outer_indent}{}", indent_unit_or_two_spaces(text));
        let newline = newline_style(text);
        let body = prepend_key(": ", to_pretty_json_in_style_of(text, value, &inner_indent));
        return replace_range(
            text,
            container_range.start + 1..content_end,
            &format!("{newline}{inner_indent}{body}{newline}{outer_indent}"),
        );
    };
    debug_assert!(!content.trim().is_empty());
    let addition = match whitespace_before_last_child.rsplit_once('\n') {
        Some((_, indent)) => {
            format!(
                ",{}{indent}{}",
                newline_style(text),
                prepend_key(": ", to_pretty_json_in_style_of(text, value, indent))
            )
        }
        None if has_content_on_one_line(text) => {
            format!(",{whitespace_before_last_child}{}", prepend_key(":", value.to_string()))
        }
        // A container on one line of a longer file: the addition is formatted so that it stays readable.
        None => format!(
            ", {}",
            prepend_key(": ", to_pretty_json_in_style_of(text, value, line_indent(text, last_child_end)))
        ),
    };
    replace_range(text, last_child_end..last_child_end, &addition)
}

/// Removes the child at an index. For the last child this exactly reverses [`append_child`].
pub(super) fn remove_child(
    text: &str,
    container_range: &Range<usize>,
    children: &[Range<usize>],
    index: usize,
) -> String {
    let removed_range = match (index.checked_sub(1), children.get(index), children.get(index + 1)) {
        (Some(previous), Some(child), _) => children[previous].end..child.end,
        // The first of several children: up to the start of the next key, which is located after the comma.
        (None, Some(child), Some(_)) => {
            let start =
                container_range.start + 1 + leading_whitespace_length(&text[container_range.start + 1..]);
            let after_comma = child.end + leading_whitespace_length(&text[child.end..]) + 1;
            start..after_comma + leading_whitespace_length(&text[after_comma..])
        }
        (None, Some(_), None) => container_range.start + 1..container_range.end - 1,
        (_, None, _) => return text.to_owned(),
    };
    replace_range(text, removed_range, "")
}

fn range_of_raw_value(text: &str, raw: &RawValue) -> Range<usize> {
    let start = raw.get().as_ptr() as usize - text.as_ptr() as usize;
    start..start + raw.get().len()
}

/// Replaces a range of the text.
pub(super) fn replace_range(text: &str, range: Range<usize>, replacement: &str) -> String {
    format!("{}{replacement}{}", &text[..range.start], &text[range.end..])
}

fn leading_whitespace_length(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t', '\r', '\n']).len()
}

/// Returns the end of a container's last child, and the white space before that child (before its key). Returns `None` if
/// the container is empty.
fn last_child_end_and_leading_whitespace<'t>(
    text: &'t str,
    container_range: &Range<usize>,
) -> Option<(usize, &'t str)> {
    let children = child_ranges(text, container_range);
    let last_child = children.last()?;
    let whitespace_start = match children.len() {
        1 => container_range.start + 1,
        count => {
            let previous_child_end = children[count - 2].end;
            previous_child_end + leading_whitespace_length(&text[previous_child_end..]) + 1
        }
    };
    Some((
        last_child.end,
        &text[whitespace_start..whitespace_start + leading_whitespace_length(&text[whitespace_start..])],
    ))
}

fn child_ranges(text: &str, container_range: &Range<usize>) -> Vec<Range<usize>> {
    match object_members_rejecting_duplicates(text, container_range) {
        Ok(Some(members)) => members.into_iter().map(|member| member.value_range).collect(),
        _ => list_elements(text, container_range).unwrap_or_default(),
    }
}

/// Returns true if the file has no line break and is more than an empty container.
fn has_content_on_one_line(text: &str) -> bool {
    let text = text.trim();
    !text.contains('\n') && text.len() > 2
}

/// Returns the indentation of the line that contains a byte.
fn line_indent(text: &str, byte_offset: usize) -> &str {
    let line = &text[text[..byte_offset].rfind('\n').map_or(0, |newline| newline + 1)..];
    let indent_length = line.len() - line.trim_start_matches([' ', '\t']).len();
    &line[..indent_length]
}

/// Returns one step of indentation: that of the file's first key, or two spaces if there is none.
fn indent_unit_or_two_spaces(text: &str) -> &str {
    let content = text.find('{').map_or("", |brace| &text[brace + 1..]);
    let leading_whitespace = &content[..leading_whitespace_length(content)];
    match leading_whitespace.rsplit_once('\n') {
        Some((_, indent)) if !indent.is_empty() && !content.trim_start().starts_with('}') => indent,
        _ => "  ",
    }
}

fn newline_style(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Formats a value over several lines, with the indentation and line breaks of the reference text.
fn to_pretty_json_in_style_of(reference_text: &str, value: &Value, indent: &str) -> String {
    let mut bytes = Vec::new();
    let unit = indent_unit_or_two_spaces(reference_text).as_bytes();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(unit);
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    // Writing to memory cannot fail.
    let _ = serde::Serialize::serialize(value, &mut serializer);
    String::from_utf8_lossy(&bytes).replace('\n', &format!("{}{indent}", newline_style(reference_text)))
}
