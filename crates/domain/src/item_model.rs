//! The model that an item requests: `- [ ] Parse the dates (simple, model: haiku)`. The user's settings
//! decide whether it is used.

use crate::item_property::property_values;

const MODEL_PREFIX: &str = "model:";
/// The maximum length of a model name; longer than any current model id with a provider prefix and a suffix.
const MAX_MODEL_NAME_BYTES: usize = 100;

/// Returns the model that an item states in parentheses.
pub fn parse_item_model(item: &str) -> Option<&str> {
    property_values(item, MODEL_PREFIX).find(|name| is_valid_model_name(name))
}

/// Returns true for a valid model name for the client's command line. A name that looks like an option is
/// never valid.
pub fn is_valid_model_name(name: &str) -> bool {
    let is_name_character =
        |character: char| character.is_ascii_alphanumeric() || "-._:/@[]".contains(character);
    !name.is_empty()
        && name.len() <= MAX_MODEL_NAME_BYTES
        && !name.starts_with('-')
        && name.chars().all(is_name_character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_stated_only_in_parentheses() {
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
            assert_eq!(parse_item_model(item), expected, "{item}");
        }
        assert_eq!(parse_item_model(&format!("x (model: {})", "a".repeat(MAX_MODEL_NAME_BYTES + 1))), None);
    }
}
