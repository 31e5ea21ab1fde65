//! The key `compaction` in the user's own settings of Plimsoll: adds it and removes it, and keeps every other byte.

use plimsoll_domain::settings::CompactionChoice;
use serde_json::{Map, Value};

const KEY: &str = "compaction";

/// Whether a settings text has the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyStatus {
    Missing,
    Present,
    /// The text is no JSON object, so it cannot be changed safely.
    Invalid,
}

pub(super) fn key_status(text: &str) -> KeyStatus {
    match parse_object(text) {
        None => KeyStatus::Invalid,
        Some(keys) if keys.contains_key(KEY) => KeyStatus::Present,
        Some(_) => KeyStatus::Missing,
    }
}

/// Adds the key at the end of a text in which [`key_status`] is [`KeyStatus::Missing`].
pub(super) fn with_compaction_key_added(text: &str, choice: CompactionChoice) -> String {
    let member = format!("\"{KEY}\": \"{}\"", choice.as_str());
    if text.trim().is_empty() {
        return format!("{{\n  {member}\n}}\n");
    }
    let end = text.rfind('}').unwrap_or(text.len());
    let (before, after) = text.split_at(end);
    let content = before.trim_end();
    let trailing_space = &before[content.len()..];
    let is_first = content.ends_with('{');
    // A file on one line stays on one line.
    let separator = match text.trim_end().contains('\n') || is_first {
        true => format!("\n{}", indentation_of_first_key(content)),
        false => " ".to_owned(),
    };
    let comma = if is_first { "" } else { "," };
    let trailing_space = if is_first && trailing_space.is_empty() { "\n" } else { trailing_space };
    format!("{content}{comma}{separator}{member}{trailing_space}{after}")
}

/// Returns the space before the first key, or two spaces if there is none on a line of its own.
fn indentation_of_first_key(content: &str) -> &str {
    let (_, after_brace) = content.split_once('{').unwrap_or_default();
    let Some((_, line)) = after_brace.split_once('\n') else { return "  " };
    let indentation = &line[..line.len() - line.trim_start().len()];
    if indentation.is_empty() || indentation.contains('\n') { "  " } else { indentation }
}

/// Returns true if a text is an original with nothing but the key added, whatever its value.
pub(super) fn differs_only_in_compaction(original: &str, text: &str) -> bool {
    CompactionChoice::ALL.into_iter().any(|choice| with_compaction_key_added(original, choice) == text)
}

/// Removes the key and its comma, and keeps the other bytes. If the position of the key is not certain, the whole text
/// is formatted anew. Returns `None` if the key is missing or the text is not valid.
pub(super) fn without_compaction_key(text: &str) -> Option<String> {
    let mut keys = parse_object(text)?;
    keys.shift_remove(KEY)?;
    let quoted_key = format!("\"{KEY}\"");
    let mut candidates = text.match_indices(&quoted_key).flat_map(|(start, name)| {
        let value_end = simple_value_end(text, start + name.len());
        value_end.map(|end| texts_without_member(text, start, end)).unwrap_or_default()
    });
    let same_keys = |candidate: &String| parse_object(candidate).as_ref() == Some(&keys);
    let formatted_anew = || serde_json::to_string_pretty(&keys).unwrap_or_default() + "\n";
    Some(candidates.find(same_keys).unwrap_or_else(formatted_anew))
}

/// Returns the end of the string value that follows a key; `None` if something else follows.
fn simple_value_end(text: &str, key_end: usize) -> Option<usize> {
    let value = text[key_end..].trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    Some(text.len() - value.len() + value.find('"')? + 1)
}

/// Returns the text without a member: with the comma before it, with the comma after it, or without any.
fn texts_without_member(text: &str, start: usize, end: usize) -> Vec<String> {
    let (before, after) = (&text[..start], &text[end..]);
    let before_comma = before.trim_end().strip_suffix(',').map(|before| format!("{before}{after}"));
    let after_comma =
        after.trim_start().strip_prefix(',').map(|after| format!("{before}{}", after.trim_start()));
    let alone = format!("{}{}", before.trim_end(), after.trim_start());
    before_comma.into_iter().chain(after_comma).chain([alone]).collect()
}

fn parse_object(text: &str) -> Option<Map<String, Value>> {
    match text.trim() {
        "" => Some(Map::new()),
        text => serde_json::from_str(text).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_added_at_the_end_and_every_other_byte_stays() {
        for (text, expected) in [
            ("", "{\n  \"compaction\": \"ask\"\n}\n"),
            ("\n", "{\n  \"compaction\": \"ask\"\n}\n"),
            ("{}", "{\n  \"compaction\": \"ask\"\n}"),
            ("{\n}\n", "{\n  \"compaction\": \"ask\"\n}\n"),
            ("{\"a\": {}}\n", "{\"a\": {}, \"compaction\": \"ask\"}\n"),
            (
                "{\n    \"a\": 1.50,\n    \"b\": []\n}",
                "{\n    \"a\": 1.50,\n    \"b\": [],\n    \"compaction\": \"ask\"\n}",
            ),
            (
                "{\n\t\"a\": {\n\t\t\"b\": 1\n\t}\n}\n",
                "{\n\t\"a\": {\n\t\t\"b\": 1\n\t},\n\t\"compaction\": \"ask\"\n}\n",
            ),
            ("{\"a\": 1,\n \"b\": 2}", "{\"a\": 1,\n \"b\": 2,\n \"compaction\": \"ask\"}"),
        ] {
            assert_eq!(key_status(text), KeyStatus::Missing, "{text}");
            let with_key = with_compaction_key_added(text, CompactionChoice::Ask);
            assert_eq!(with_key, expected);
            assert_eq!(key_status(&with_key), KeyStatus::Present, "{with_key}");
            let other_value = with_compaction_key_added(text, CompactionChoice::Handoff);
            assert!(differs_only_in_compaction(text, &other_value), "{other_value}");
            assert!(!differs_only_in_compaction(text, &other_value.replacen('{', "{ ", 1)));
        }
    }

    #[test]
    fn invalid_texts_are_not_changed() {
        for text in ["[]", "{", "// mine\n{}", "null", "{\"a\": 1,}"] {
            assert_eq!(key_status(text), KeyStatus::Invalid, "{text}");
            assert_eq!(without_compaction_key(text), None, "{text}");
        }
    }

    #[test]
    fn the_key_is_removed_wherever_it_is() {
        for (text, expected) in [
            ("{\n  \"compaction\": \"ask\"\n}\n", Some("{}\n")),
            ("{\n  \"a\": 1,\n  \"compaction\": \"ask\"\n}\n", Some("{\n  \"a\": 1\n}\n")),
            ("{\"compaction\" : \"client\", \"a\": 1.50}", Some("{\"a\": 1.50}")),
            (
                "{\"x\": {\"compaction\": \"ask\"}, \"compaction\": \"ask\", \"b\": 2}",
                Some("{\"x\": {\"compaction\": \"ask\"}, \"b\": 2}"),
            ),
            ("{\"a\": \"compaction\", \"compaction\": \"ask\"}", Some("{\"a\": \"compaction\"}")),
            // A value of another type is not ours to find by its text.
            ("{\"compaction\": 1, \"b\": 2}", Some("{\n  \"b\": 2\n}\n")),
            ("{\"a\": 1}", None),
            ("", None),
        ] {
            assert_eq!(without_compaction_key(text).as_deref(), expected, "{text}");
        }
    }
}
