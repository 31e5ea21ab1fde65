//! How a segment is written: text, `{field}`, and `[groups]` that vanish where a field in them is empty.

use serde::{Deserialize, Serialize};

/// A parsed writing, and its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Format {
    source: String,
    parts: Vec<Part>,
}

/// A piece of it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// As it stands.
    Text(String),
    /// A field by its name.
    Field(String),
    /// All of it, or nothing where a field in it is empty.
    Group(Vec<Part>),
}

impl Format {
    /// One that writes nothing.
    pub(super) fn nothing() -> Format {
        Format { source: String::new(), parts: Vec::new() }
    }

    /// The value as it is.
    pub fn value() -> Format {
        Format { source: "{value}".to_owned(), parts: vec![Part::Field("value".to_owned())] }
    }

    /// The fields that it names.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.parts
            .iter()
            .flat_map(|part| match part {
                Part::Group(parts) => parts.as_slice(),
                part => std::slice::from_ref(part),
            })
            .filter_map(|part| match part {
                Part::Field(name) => Some(name.as_str()),
                _ => None,
            })
    }

    /// Whether it names a field.
    pub fn names(&self, field: &str) -> bool {
        self.fields().any(|name| name == field)
    }

    /// Written out, with or without its groups. None where nothing but text is left of it.
    pub fn write<'a>(&self, groups: bool, field: &dyn Fn(&str) -> Option<&'a str>) -> Option<String> {
        let mut written = String::new();
        let mut said = false;
        for part in &self.parts {
            match part {
                Part::Text(text) => written.push_str(text),
                Part::Field(name) => {
                    let value = field(name).filter(|value| !value.is_empty());
                    said |= value.is_some();
                    written.push_str(value.unwrap_or_default());
                }
                Part::Group(parts) if groups => {
                    if let Some(text) = write_group(parts, field) {
                        said |= parts.iter().any(|part| matches!(part, Part::Field(_)));
                        written.push_str(&text);
                    }
                }
                Part::Group(_) => {}
            }
        }
        said.then(|| written.trim().to_owned())
    }
}

fn write_group<'a>(parts: &[Part], field: &dyn Fn(&str) -> Option<&'a str>) -> Option<String> {
    let mut written = String::new();
    for part in parts {
        match part {
            Part::Text(text) => written.push_str(text),
            Part::Field(name) => written.push_str(field(name).filter(|value| !value.is_empty())?),
            Part::Group(_) => {}
        }
    }
    Some(written)
}

impl TryFrom<String> for Format {
    type Error = String;

    fn try_from(source: String) -> Result<Format, String> {
        let wrong = |what: &str| format!("the format {source:?} makes no sense: {what}");
        let (mut parts, mut group): (Vec<Part>, Option<Vec<Part>>) = (Vec::new(), None);
        let mut letters = source.chars();
        while let Some(letter) = letters.next() {
            let is_in_group = group.is_some();
            let into = group.as_mut().unwrap_or(&mut parts);
            match letter {
                '\\' => add(into, letters.next().ok_or_else(|| wrong("nothing follows the last `\\`"))?),
                '{' => {
                    let mut name = String::new();
                    loop {
                        match letters.next() {
                            Some('}') => break,
                            Some(letter) => name.push(letter),
                            None => return Err(wrong("a `{` is never closed")),
                        }
                    }
                    into.push(Part::Field(name));
                }
                '[' if is_in_group => return Err(wrong("a group in a group")),
                '[' => group = Some(Vec::new()),
                ']' => match group.take() {
                    Some(group) => parts.push(Part::Group(group)),
                    None => return Err(wrong("a `]` without its `[`; write `\\]` for the letter")),
                },
                '}' => return Err(wrong("a `}` without its `{`; write `\\}` for the letter")),
                letter => add(into, letter),
            }
        }
        if group.is_some() {
            return Err(wrong("a `[` is never closed"));
        }
        Ok(Format { source, parts })
    }
}

fn add(parts: &mut Vec<Part>, letter: char) {
    match parts.last_mut() {
        Some(Part::Text(text)) => text.push(letter),
        _ => parts.push(Part::Text(letter.to_string())),
    }
}

impl From<Format> for String {
    fn from(format: Format) -> String {
        format.source
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
        Format::try_from(format.to_owned()).unwrap().write(groups, &field)
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
            ("{a}[ only text]", Some("1 only text"), Some("1")),
        ] {
            assert_eq!(written(format, true).as_deref(), whole, "{format}");
            assert_eq!(written(format, false).as_deref(), short, "{format}");
        }
    }

    #[test]
    fn what_is_no_format_says_why() {
        for (format, words) in [
            ("{a", "`{` is never closed"),
            ("[a", "`[` is never closed"),
            ("a]", "`]` without"),
            ("a}", "`}` without"),
            ("[a[b]]", "a group in a group"),
            ("a\\", "last `\\`"),
        ] {
            let error = Format::try_from(format.to_owned()).unwrap_err();
            assert!(error.contains(words) && error.contains(&format!("{format:?}")), "{error}");
        }
    }
}
