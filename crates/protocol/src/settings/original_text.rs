//! The text of a settings file from before the installation, if known.

use super::json_text;
use super::split_bom_and_default_to_empty_object;
use std::ops::Range;

/// A settings file or server list from before the installation. It stays text, because parsing would lose its
/// formatting, and one number that Rust cannot represent would make the whole file unreadable.
pub(super) struct OriginalText(Option<String>);

impl OriginalText {
    pub(super) fn new(original: Option<&str>) -> OriginalText {
        OriginalText(original.map(|text| split_bom_and_default_to_empty_object(text).1))
    }

    /// Returns true if the text had a value at this key path.
    pub(super) fn has_value_at(&self, key_path: &[&str]) -> bool {
        self.value_text_at(key_path).is_some()
    }

    /// If a container is empty now and was empty in the original, restores its original white space.
    pub(super) fn restore_empty_container_whitespace(
        &self,
        settings_json: String,
        key_path: &[&str],
    ) -> String {
        let Some((range, original_value)) =
            json_text::find_value_range(&settings_json, key_path).zip(self.value_text_at(key_path))
        else {
            return settings_json;
        };
        let brackets = empty_container_brackets(&settings_json[range.clone()]);
        if brackets.is_some() && brackets == empty_container_brackets(original_value) {
            json_text::replace_range(&settings_json, range, original_value)
        } else {
            settings_json
        }
    }

    fn value_text_at(&self, key_path: &[&str]) -> Option<&str> {
        let original_json = self.0.as_deref()?;
        let range: Range<usize> = json_text::find_value_range(original_json, key_path)?;
        Some(&original_json[range])
    }
}

/// Returns the two brackets of a container that is empty except for white space.
fn empty_container_brackets(value_text: &str) -> Option<(char, char)> {
    let brackets = (value_text.chars().next()?, value_text.chars().next_back()?);
    let inner_text = value_text.get(1..value_text.len().checked_sub(1)?)?;
    (matches!(brackets, ('{', '}') | ('[', ']')) && inner_text.trim().is_empty()).then_some(brackets)
}
