//! Edits a JSON text in place: everything that is not ours keeps its bytes, order and spacing.
//!
//! Limit: every edit parses the text again. Settings are small, and this is simpler than a tree with spans.

use crate::lenient;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::ops::Range;

/// A position in a settings text that prevents an edit, and the reason.
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
    pub(super) fn at_byte(text: &str, byte: usize, reason: String) -> InvalidSettings {
        let before = text.get(..byte).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
        InvalidSettings { line, column: 1 + before[line_start..].chars().count(), reason }
    }

    fn from_parse_error(text: &str, error: &serde_json::Error) -> InvalidSettings {
        let message = error.to_string();
        let reason = message.rsplit_once(" at line ").map_or(message.as_str(), |(why, _)| why);
        let line_start: usize =
            text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        // The parser counts bytes and reports the last one that it read.
        let byte = (line_start + error.column().saturating_sub(1)).min(text.len());
        let byte = (0..=byte).rev().find(|byte| text.is_char_boundary(*byte)).unwrap_or(0);
        // The client (1.0.128 and 2.1.329) loads no settings file or server list that contains either, so what we add
        // next to them would never run.
        let hint = match text[byte..].chars().next() {
            Some('/') => " (a comment? Claude Code does not load a file that has one)",
            Some('}' | ']') => " (a trailing comma? Claude Code does not load a file that has one)",
            _ => "",
        };
        InvalidSettings::at_byte(text, byte, format!("{reason}{hint}"))
    }
}

/// One member of an object.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) value: Range<usize>,
}

/// Returns the range of the text's one value.
pub(super) fn root_range(text: &str) -> Result<Range<usize>, InvalidSettings> {
    let raw: &RawValue =
        serde_json::from_str(text).map_err(|error| InvalidSettings::from_parse_error(text, &error))?;
    Ok(range_of_raw_value(text, raw))
}

/// Returns the members of an object, or `None` for any other value. A duplicate key is an error: the client would
/// ignore one of the two, and it is unclear which one the user meant.
pub(super) fn object_members(
    text: &str,
    object: &Range<usize>,
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
    if !text[object.clone()].starts_with('{') {
        return Ok(None);
    }
    let pairs = serde_json::Deserializer::from_str(&text[object.clone()])
        .deserialize_map(PairsVisitor)
        .map_err(|error| InvalidSettings::at_byte(text, object.start, error.to_string()))?;
    let mut members: Vec<Member> = Vec::with_capacity(pairs.len());
    for (key, raw) in pairs {
        let value = range_of_raw_value(text, raw);
        if members.iter().any(|member| member.key == key) {
            return Err(InvalidSettings::at_byte(
                text,
                value.start,
                format!("the key {key:?} is here a second time"),
            ));
        }
        members.push(Member { key, value });
    }
    Ok(Some(members))
}

/// Returns the ranges of a list's elements, or `None` for any other value.
pub(super) fn list_elements(text: &str, list: &Range<usize>) -> Option<Vec<Range<usize>>> {
    let raw: Vec<&RawValue> = serde_json::from_str(&text[list.clone()]).ok()?;
    Some(raw.into_iter().map(|element| range_of_raw_value(text, element)).collect())
}

/// Returns the range of the value at a path of keys below the root. `None` if the text does not parse or has no such
/// value.
pub(super) fn find_value_range(text: &str, key_path: &[&str]) -> Option<Range<usize>> {
    key_path.iter().try_fold(root_range(text).ok()?, |object, key| {
        let member = object_members(text, &object).ok()??.into_iter().find(|member| member.key == *key)?;
        Some(member.value)
    })
}

/// Returns the text of a JSON string.
pub(super) fn string_at(text: &str, range: &Range<usize>) -> Option<String> {
    lenient::decode_string(serde_json::from_str(&text[range.clone()]).ok()?)
}

/// Returns the value in a range; `null` if it cannot be represented (a lone surrogate).
pub(super) fn value_at(text: &str, range: &Range<usize>) -> Value {
    serde_json::from_str(&text[range.clone()]).unwrap_or_default()
}

/// Replaces the value in a range, formatted like its surroundings.
pub(super) fn replace_value(text: &str, range: &Range<usize>, value: &Value) -> String {
    let is_one_line_value = !text[range.clone()].contains('\n') && text[range.clone()].len() > 2;
    let replacement = if is_one_line_value {
        value.to_string()
    } else {
        to_pretty_json(text, value, line_indent(text, range.start))
    };
    replace_range(text, range.clone(), &replacement)
}

/// Adds a last child to an object (with a key) or a list, formatted like its surroundings.
pub(super) fn append_child(text: &str, container: &Range<usize>, key: Option<&str>, value: &Value) -> String {
    let quoted_key = key.map(|key| Value::from(key).to_string());
    let with_key =
        |colon: &str, body: String| quoted_key.iter().fold(body, |body, name| format!("{name}{colon}{body}"));
    let end = container.end - 1;
    let content = &text[container.start + 1..end];
    let Some((last_end, space_before_last)) = last_child_end_and_space(text, container) else {
        if is_one_line(text) {
            return replace_range(text, container.start + 1..end, &with_key(":", value.to_string()));
        }
        let outer_indent = line_indent(text, container.start);
        let inner_indent = format!("{outer_indent}{}", indent_unit(text));
        let newline = newline_style(text);
        let body = with_key(": ", to_pretty_json(text, value, &inner_indent));
        return replace_range(
            text,
            container.start + 1..end,
            &format!("{newline}{inner_indent}{body}{newline}{outer_indent}"),
        );
    };
    debug_assert!(!content.trim().is_empty());
    let addition = match space_before_last.rsplit_once('\n') {
        Some((_, indent)) => {
            format!(",{}{indent}{}", newline_style(text), with_key(": ", to_pretty_json(text, value, indent)))
        }
        None if is_one_line(text) => format!(",{space_before_last}{}", with_key(":", value.to_string())),
        // A container on one line of a longer file: the addition is formatted so that it stays readable.
        None => format!(", {}", with_key(": ", to_pretty_json(text, value, line_indent(text, last_end)))),
    };
    replace_range(text, last_end..last_end, &addition)
}

/// Removes the child at that index. For the last child this exactly reverses [`append_child`].
pub(super) fn remove_child(
    text: &str,
    container: &Range<usize>,
    children: &[Range<usize>],
    index: usize,
) -> String {
    let removed_range = match (index.checked_sub(1), children.get(index), children.get(index + 1)) {
        (Some(previous), Some(child), _) => children[previous].end..child.end,
        // The first of several children: up to the start of the next key, which is located after the comma.
        (None, Some(child), Some(_)) => {
            let start = container.start + 1 + leading_space_length(&text[container.start + 1..]);
            let after_comma = child.end + leading_space_length(&text[child.end..]) + 1;
            start..after_comma + leading_space_length(&text[after_comma..])
        }
        (None, Some(_), None) => container.start + 1..container.end - 1,
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

fn leading_space_length(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t', '\r', '\n']).len()
}

/// Returns the end of a container's last child, and the white space before that child (before its key).
fn last_child_end_and_space<'t>(text: &'t str, container: &Range<usize>) -> Option<(usize, &'t str)> {
    let children = child_ranges(text, container);
    let last = children.last()?;
    let space_start = match children.len() {
        1 => container.start + 1,
        count => {
            let previous = children[count - 2].end;
            previous + leading_space_length(&text[previous..]) + 1
        }
    };
    Some((last.end, &text[space_start..space_start + leading_space_length(&text[space_start..])]))
}

fn child_ranges(text: &str, container: &Range<usize>) -> Vec<Range<usize>> {
    match object_members(text, container) {
        Ok(Some(members)) => members.into_iter().map(|member| member.value).collect(),
        _ => list_elements(text, container).unwrap_or_default(),
    }
}

/// Returns true if the file has no line break and is not merely empty.
fn is_one_line(text: &str) -> bool {
    let text = text.trim();
    !text.contains('\n') && text.len() > 2
}

/// Returns the indentation of the line that contains a byte.
fn line_indent(text: &str, byte: usize) -> &str {
    let line = &text[text[..byte].rfind('\n').map_or(0, |newline| newline + 1)..];
    let indent_length = line.len() - line.trim_start_matches([' ', '\t']).len();
    &line[..indent_length]
}

/// Returns one step of indentation: that of the file's first key, or two spaces if there is none.
fn indent_unit(text: &str) -> &str {
    let content = text.find('{').map_or("", |brace| &text[brace + 1..]);
    let space = &content[..leading_space_length(content)];
    match space.rsplit_once('\n') {
        Some((_, indent)) if !indent.is_empty() && !content.trim_start().starts_with('}') => indent,
        _ => "  ",
    }
}

fn newline_style(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Formats a value over several lines, in the style of the file.
fn to_pretty_json(text: &str, value: &Value, indent: &str) -> String {
    let mut bytes = Vec::new();
    let unit = indent_unit(text).as_bytes();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(unit);
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    // Writing to memory cannot fail.
    let _ = serde::Serialize::serialize(value, &mut serializer);
    String::from_utf8_lossy(&bytes).replace('\n', &format!("{}{indent}", newline_style(text)))
}
