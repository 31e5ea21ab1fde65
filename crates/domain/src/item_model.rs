//! The model that an item asks for: `- [ ] Parse the dates (simple, model: haiku)`. Whether it gets it, the user's settings say.

use crate::item_property::values;

const MARK: &str = "model:";
/// Longer than every model's id, with a provider's prefix and a suffix.
const LONGEST: usize = 100;

/// The model that an item states in a bracket.
pub fn stated(item: &str) -> Option<&str> {
    values(item, MARK).find(|name| is_name(name))
}

/// True for what the client takes as a model's name, and never for an option.
pub fn is_name(name: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-._:/@[]".contains(letter);
    !name.is_empty() && name.len() <= LONGEST && !name.starts_with('-') && name.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_stated_in_a_bracket_and_nowhere_else() {
        for (item, expected) in [
            ("Parse (model: haiku)", Some("haiku")),
            ("Parse (simple, model:opus, after: 2)", Some("opus")),
            ("Parse (Model: claude-opus-5-5[1m])", Some("claude-opus-5-5[1m]")),
            ("Parse (fast) the rest (model: us.anthropic.x-v1:0)", Some("us.anthropic.x-v1:0")),
            ("Größe (model: haiku)", Some("haiku")),
            ("Parse model: haiku", None),
            ("Name the car, model: T (fast)", None),
            ("Parse (f) x, model: haiku)", None),
            ("Parse (model: )", None),
            ("Parse (model: --fast)", None),
            ("Parse (model: a b)", None),
            ("Parse (model: haiku", None),
            ("Parse (submodel: haiku)", None),
        ] {
            assert_eq!(stated(item), expected, "{item}");
        }
        assert_eq!(stated(&format!("x (model: {})", "a".repeat(LONGEST + 1))), None);
    }
}
