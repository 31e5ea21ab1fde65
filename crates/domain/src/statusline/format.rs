//! How a segment is written: text, `{field}`, and `[groups]` that vanish where a field in them is empty.

use serde::{Deserialize, Serialize};

/// A writing that makes sense.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Format(String);

/// A piece of a format, parsed once: the status line is written a thousand times for each change of its format.
enum Part<'a> {
    Text(&'a str),
    Field(&'a str),
    /// What is between the brackets.
    Group(&'a str),
}

impl Format {
    /// As the user wrote it.
    pub fn source(&self) -> &str {
        &self.0
    }
}

/// Whether a writing names one of these fields.
pub fn names(source: &str, fields: &[&str]) -> bool {
    let mut is_named = false;
    for_each_field(source, &mut |name| is_named |= fields.contains(&name));
    is_named
}

/// The fields that a writing names.
pub(super) fn fields(source: &str) -> Vec<&str> {
    let mut fields = Vec::new();
    for_each_field(source, &mut |name| fields.push(name));
    fields
}

fn for_each_field<'a>(source: &'a str, visit: &mut dyn FnMut(&'a str)) {
    let mut rest = source;
    while let Some(part) = next(&mut rest) {
        match part {
            Part::Text(_) => {}
            Part::Field(name) => visit(name),
            Part::Group(inner) => for_each_field(inner, visit),
        }
    }
}

/// Written out, with those of its groups. None if nothing but text is left of it.
pub fn write<'a>(
    source: &str,
    groups: &dyn Fn(&str) -> bool,
    field: &dyn Fn(&str) -> Option<&'a str>,
) -> Option<String> {
    let mut written = String::with_capacity(96);
    let mut said = false;
    let mut rest = source;
    while let Some(part) = next(&mut rest) {
        match part {
            Part::Text(text) => written.push_str(text),
            Part::Field(name) => {
                let value = field(name).unwrap_or_default();
                said |= !value.is_empty();
                written.push_str(value);
            }
            Part::Group(inner) if groups(inner) => {
                let before = written.len();
                match write_group(inner, &mut written, field) {
                    Some(has_field) => said |= has_field,
                    None => written.truncate(before),
                }
            }
            Part::Group(_) => {}
        }
    }
    let trimmed = written.trim();
    if !said {
        None
    } else if trimmed.len() == written.len() {
        Some(written)
    } else {
        Some(trimmed.to_owned())
    }
}

/// None if a field in it is empty; else whether there is one.
fn write_group<'a>(
    source: &str,
    written: &mut String,
    field: &dyn Fn(&str) -> Option<&'a str>,
) -> Option<bool> {
    let mut has_field = false;
    let mut rest = source;
    while let Some(part) = next(&mut rest) {
        match part {
            Part::Text(text) | Part::Group(text) => written.push_str(text),
            Part::Field(name) => {
                has_field = true;
                written.push_str(field(name).filter(|value| !value.is_empty())?);
            }
        }
    }
    Some(has_field)
}

/// The next piece of a writing that makes sense. Looked for byte by byte: what has a meaning is ASCII, and no byte of another
/// character is.
fn next<'a>(rest: &mut &'a str) -> Option<Part<'a>> {
    let source = *rest;
    let (part, after) = match source.as_bytes().first()? {
        b'\\' => {
            let letter = source[1..].chars().next().map_or(0, char::len_utf8);
            (Part::Text(&source[1..1 + letter]), 1 + letter)
        }
        b'{' => {
            let end = first(source, |byte| byte == b'}');
            (Part::Field(&source[1..end]), end + 1)
        }
        b'[' => {
            let end = end_of_group(source);
            (Part::Group(&source[1..end]), end + 1)
        }
        _ => {
            let end = first(source, |byte| MEANT[usize::from(byte)]);
            (Part::Text(&source[..end]), end)
        }
    };
    *rest = source.get(after..).unwrap_or_default();
    Some(part)
}

/// The bytes that are not written as they are.
const MEANT: [bool; 256] = {
    let mut meant = [false; 256];
    (meant[b'\\' as usize], meant[b'{' as usize], meant[b'[' as usize]) = (true, true, true);
    meant
};

/// Where the first such byte is, or the end.
fn first(source: &str, is_it: impl FnMut(u8) -> bool) -> usize {
    source.bytes().position(is_it).unwrap_or(source.len())
}

fn end_of_group(source: &str) -> usize {
    let mut is_escaped = false;
    first(source, |byte| {
        let ends = byte == b']' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

/// A format that cannot be written out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the format {text:?} makes no sense: {fault}")]
pub struct FormatError {
    text: String,
    fault: &'static str,
}

impl TryFrom<String> for Format {
    type Error = FormatError;

    fn try_from(text: String) -> Result<Format, FormatError> {
        match fault(&text) {
            Some(fault) => Err(FormatError { text, fault }),
            None => Ok(Format(text)),
        }
    }
}

fn fault(source: &str) -> Option<&'static str> {
    if source.contains(char::is_control) {
        return Some("it has a control character; a segment's `colour` paints it");
    }
    let mut is_in_group = false;
    let mut letters = source.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.next().is_none() => return Some("nothing follows the last `\\`"),
            '{' => match letters.find(|letter| "{}[]".contains(*letter)) {
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

impl From<Format> for String {
    fn from(format: Format) -> String {
        format.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: &str, groups: bool) -> Option<String> {
        let field = |name: &str| match name {
            "a" => Some("1"),
            "b" => Some("2"),
            _ => None,
        };
        let format = Format::try_from(format.to_owned()).unwrap();
        write(format.source(), &|_| groups, &field)
    }

    #[test]
    fn a_group_vanishes_with_an_empty_field_and_a_line_with_all_of_them() {
        for (format, whole, short) in [
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
            assert_eq!(written(format, true).as_deref(), whole, "{format}");
            assert_eq!(written(format, false).as_deref(), short, "{format}");
        }
        assert_eq!(fields(r"\{x\} {a}[ {b} \[{c}\]]"), ["a", "b", "c"]);
        assert!(names("{a}[ {b}]", &["c", "b"]) && !names("{a}[ {b}]", &["c"]));
    }

    #[test]
    fn what_is_no_format_says_why() {
        for (format, words) in [
            ("{a", "`{` is never closed"),
            ("[a", "`[` is never closed"),
            ("a]", "`]` without"),
            ("a}", "`}` without"),
            ("[a[b]]", "a group inside a group"),
            ("a\\", "last `\\`"),
            ("\u{1b}[31m{a}", "control character"),
        ] {
            let error = Format::try_from(format.to_owned()).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains(&format!("{format:?}")), "{error}");
        }
    }
}
