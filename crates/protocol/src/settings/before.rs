//! The text from before the installation, where it is known.

use super::start;
use super::text;
use std::ops::Range;

/// A settings file or server list as it was before the installation. It is read as text, because a value would lose its spelling, and
/// one number that Rust cannot hold would make the whole file unknown.
pub(super) struct TextBefore(Option<String>);

impl TextBefore {
    pub(super) fn new(before: Option<&str>) -> TextBefore {
        TextBefore(before.map(|before| start(before).1))
    }

    /// Returns true if the text had a value at that path of keys.
    pub(super) fn has(&self, path: &[&str]) -> bool {
        self.spelling(path).is_some()
    }

    /// Gives a container that is empty again the white space that it had before.
    pub(super) fn restore_empty_container(&self, body: String, path: &[&str]) -> String {
        let Some((place, spelling)) = text::find_value(&body, path).zip(self.spelling(path)) else {
            return body;
        };
        let brackets = empty_container(&body[place.clone()]);
        if brackets.is_some() && brackets == empty_container(spelling) {
            text::splice(&body, place, spelling)
        } else {
            body
        }
    }

    fn spelling(&self, path: &[&str]) -> Option<&str> {
        let body = self.0.as_deref()?;
        let place: Range<usize> = text::find_value(body, path)?;
        Some(&body[place])
    }
}

/// Returns the two brackets of a container that holds nothing but white space.
fn empty_container(spelling: &str) -> Option<(char, char)> {
    let brackets = (spelling.chars().next()?, spelling.chars().next_back()?);
    let inside = spelling.get(1..spelling.len().checked_sub(1)?)?;
    (matches!(brackets, ('{', '}') | ('[', ']')) && inside.trim().is_empty()).then_some(brackets)
}
