//! A JSON text edited in place: what is not ours keeps its bytes, its order and its spacing.
//!
//! Limit: an edit reads the text again. Settings are small, and a value per edit is simpler than a tree with spans.

use crate::lenient;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::ops::Range;

/// A place in a settings text that stops us, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {why}")]
pub struct Unreadable {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What is wrong there.
    pub why: String,
}

impl Unreadable {
    /// What is wrong at a byte of the text.
    pub(super) fn at(text: &str, byte: usize, why: String) -> Unreadable {
        let before = text.get(..byte).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
        Unreadable { line, column: 1 + before[line_start..].chars().count(), why }
    }

    fn from_parser(text: &str, error: &serde_json::Error) -> Unreadable {
        let whole = error.to_string();
        let why = whole.rsplit_once(" at line ").map_or(whole.as_str(), |(why, _)| why);
        let line_start: usize =
            text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        // The parser counts bytes and names the last one it read.
        let byte = (line_start + error.column().saturating_sub(1)).min(text.len());
        let byte = (0..=byte).rev().find(|byte| text.is_char_boundary(*byte)).unwrap_or(0);
        // The client (1.0.128 and 2.1.329) loads nothing of settings or a server list that have either: what we write
        // beside them would never run.
        let hint = match text[byte..].chars().next() {
            Some('/') => " (a comment? Claude Code does not load a file that has one)",
            Some('}' | ']') => " (a trailing comma? Claude Code does not load a file that has one)",
            _ => "",
        };
        Unreadable::at(text, byte, format!("{why}{hint}"))
    }
}

/// One key of an object.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) value: Range<usize>,
}

/// The range of the one value that the text holds.
pub(super) fn whole(text: &str) -> Result<Range<usize>, Unreadable> {
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| Unreadable::from_parser(text, &error))?;
    Ok(range_in(text, raw))
}

/// The members of an object, or nothing if it is something else. A duplicate key is refused: one of
/// the two would be lost on the client, and it is unclear which one was meant.
pub(super) fn members(text: &str, object: &Range<usize>) -> Result<Option<Vec<Member>>, Unreadable> {
    struct Pairs;
    impl<'de> Visitor<'de> for Pairs {
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
        .deserialize_map(Pairs)
        .map_err(|error| Unreadable::at(text, object.start, error.to_string()))?;
    let mut members: Vec<Member> = Vec::with_capacity(pairs.len());
    for (key, raw) in pairs {
        let value = range_in(text, raw);
        if members.iter().any(|member| member.key == key) {
            return Err(Unreadable::at(text, value.start, format!("the key {key:?} is here a second time")));
        }
        members.push(Member { key, value });
    }
    Ok(Some(members))
}

/// The elements of a list, or nothing if it is something else.
pub(super) fn elements(text: &str, list: &Range<usize>) -> Option<Vec<Range<usize>>> {
    let raw: Vec<&RawValue> = serde_json::from_str(&text[list.clone()]).ok()?;
    Some(raw.into_iter().map(|element| range_in(text, element)).collect())
}

/// Returns the place of the value at a path of keys below the root. `None` if the text does not parse or has no such value.
pub(super) fn find_value(text: &str, path: &[&str]) -> Option<Range<usize>> {
    path.iter().try_fold(whole(text).ok()?, |object, key| {
        let member = members(text, &object).ok()??.into_iter().find(|member| member.key == *key)?;
        Some(member.value)
    })
}

/// The text of a JSON string.
pub(super) fn string(text: &str, value: &Range<usize>) -> Option<String> {
    lenient::text_of(serde_json::from_str(&text[value.clone()]).ok()?)
}

/// The value that is there; `null` where it cannot be held (a lone surrogate).
pub(super) fn value(text: &str, at: &Range<usize>) -> Value {
    serde_json::from_str(&text[at.clone()]).unwrap_or_default()
}

/// The text with another value in that place.
pub(super) fn replace(text: &str, at: &Range<usize>, value: &Value) -> String {
    let one_line = !text[at.clone()].contains('\n') && text[at.clone()].len() > 2;
    let new = if one_line { value.to_string() } else { pretty(text, value, line_indent(text, at.start)) };
    splice(text, at.clone(), &new)
}

/// The text with a new last child in an object (with its key) or a list.
pub(super) fn append(text: &str, container: &Range<usize>, key: Option<&str>, value: &Value) -> String {
    let name = key.map(|key| Value::from(key).to_string());
    let child =
        |colon: &str, body: String| name.iter().fold(body, |body, name| format!("{name}{colon}{body}"));
    let end = container.end - 1;
    let inside = &text[container.start + 1..end];
    let Some((last_end, space)) = last_child(text, container) else {
        if is_one_line(text) {
            return splice(text, container.start + 1..end, &child(":", value.to_string()));
        }
        let outer = line_indent(text, container.start);
        let inner = format!("{outer}{}", indent_unit(text));
        let newline = newline(text);
        let body = child(": ", pretty(text, value, &inner));
        return splice(text, container.start + 1..end, &format!("{newline}{inner}{body}{newline}{outer}"));
    };
    debug_assert!(!inside.trim().is_empty());
    let addition = match space.rsplit_once('\n') {
        Some((_, indent)) => {
            format!(",{}{indent}{}", newline(text), child(": ", pretty(text, value, indent)))
        }
        None if is_one_line(text) => format!(",{space}{}", child(":", value.to_string())),
        // A container on one line of a longer file: what we add to it can still be read.
        None => format!(", {}", child(": ", pretty(text, value, line_indent(text, last_end)))),
    };
    splice(text, last_end..last_end, &addition)
}

/// The text without the child at that index; the exact reverse of `append` for the last one.
pub(super) fn remove(
    text: &str,
    container: &Range<usize>,
    children: &[Range<usize>],
    index: usize,
) -> String {
    let cut = match (index.checked_sub(1), children.get(index), children.get(index + 1)) {
        (Some(previous), Some(child), _) => children[previous].end..child.end,
        // The first of several: up to the start of the next key, which is found from the value backwards.
        (None, Some(child), Some(_)) => {
            let start = container.start + 1 + leading_space(&text[container.start + 1..]);
            let comma = child.end + leading_space(&text[child.end..]) + 1;
            start..comma + leading_space(&text[comma..])
        }
        (None, Some(_), None) => container.start + 1..container.end - 1,
        (_, None, _) => return text.to_owned(),
    };
    splice(text, cut, "")
}

fn range_in(text: &str, raw: &RawValue) -> Range<usize> {
    let start = raw.get().as_ptr() as usize - text.as_ptr() as usize;
    start..start + raw.get().len()
}

/// Returns the text with `new` in that place.
pub(super) fn splice(text: &str, at: Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..at.start], &text[at.end..])
}

fn leading_space(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t', '\r', '\n']).len()
}

/// Where the last child of a container ends, and the white space before it (before its key).
fn last_child<'t>(text: &'t str, container: &Range<usize>) -> Option<(usize, &'t str)> {
    let children = children(text, container);
    let last = children.last()?;
    let before = match children.len() {
        1 => container.start + 1,
        count => {
            let previous = children[count - 2].end;
            previous + leading_space(&text[previous..]) + 1
        }
    };
    Some((last.end, &text[before..before + leading_space(&text[before..])]))
}

fn children(text: &str, container: &Range<usize>) -> Vec<Range<usize>> {
    match members(text, container) {
        Ok(Some(members)) => members.into_iter().map(|member| member.value).collect(),
        _ => elements(text, container).unwrap_or_default(),
    }
}

/// Whether the file was written without any line break, and is not merely empty.
fn is_one_line(text: &str) -> bool {
    let text = text.trim();
    !text.contains('\n') && text.len() > 2
}

/// The white space at the start of the line that contains a byte.
fn line_indent(text: &str, byte: usize) -> &str {
    let line = &text[text[..byte].rfind('\n').map_or(0, |newline| newline + 1)..];
    let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
    &line[..blank]
}

/// One step of indentation: what is before the first key of the file; two spaces if nothing does.
fn indent_unit(text: &str) -> &str {
    let inside = text.find('{').map_or("", |brace| &text[brace + 1..]);
    let space = &inside[..leading_space(inside)];
    match space.rsplit_once('\n') {
        Some((_, indent)) if !indent.is_empty() && !inside.trim_start().starts_with('}') => indent,
        _ => "  ",
    }
}

fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// A value over several lines, as the rest of the file is written.
fn pretty(text: &str, value: &Value, indent: &str) -> String {
    let mut bytes = Vec::new();
    let unit = indent_unit(text).as_bytes();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(unit);
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    // Writing a value into memory cannot fail.
    let _ = serde::Serialize::serialize(value, &mut serializer);
    String::from_utf8_lossy(&bytes).replace('\n', &format!("{}{indent}", newline(text)))
}
