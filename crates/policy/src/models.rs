//! Chooses the model for an item. An agent may have written the plan, and models cost the user's money, so only models
//! that the user has named are used.

use plimsoll_domain::item_model::parse_item_model;
use plimsoll_domain::settings::Models;
use plimsoll_domain::size::ItemSize;

/// The option of the client that chooses the model.
pub const MODEL_OPTION: &str = "--model";

/// The model chosen for an item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelChoice<'a> {
    /// The model; `None` for the client's own default.
    pub model: Option<&'a str>,
    /// A model that the item asks for but that the user has not named.
    pub ignored_model: Option<&'a str>,
}

/// Chooses the model that the item asks for if the user has named it; otherwise the one that the settings configure for
/// the item's size; otherwise the one that the user passes to the client.
pub fn choose_model_by_item_then_size_then_argument<'a>(
    item: &'a str,
    models: &'a Models,
    argument_model: Option<&'a str>,
) -> ModelChoice<'a> {
    let stated_model = parse_item_model(item);
    let is_stated_model =
        |name: &&str| stated_model.is_some_and(|stated_name| stated_name.eq_ignore_ascii_case(name));
    let allowed_model = models.all_configured_models().chain(argument_model).find(is_stated_model);
    let model_for_size =
        || ItemSize::parse_from_item(item).and_then(|size| models.configured_model_for_size(size));
    ModelChoice {
        model: allowed_model.or_else(model_for_size).or(argument_model),
        ignored_model: stated_model.filter(|_| allowed_model.is_none()),
    }
}

/// Renders the warning about a model in the plan that the user has not named.
pub fn render_ignored_model_warning(model: &str) -> String {
    format!(
        "`(model: {model})` in the plan is ignored: only models that your own settings name count (`models.allowed` in ~/.config/plimsoll/settings.json)"
    )
}

/// Removes an option that takes one value from the arguments. Returns the other arguments and the option's last
/// value, which is the only one that the client uses.
pub fn split_off_option(arguments: &[String], option: &str) -> (Vec<String>, Option<String>) {
    let mut remaining = Vec::new();
    let mut value = None;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix(option) {
            Some("") => value = arguments.next().cloned(),
            Some(suffix) if suffix.starts_with('=') => value = Some(suffix[1..].to_owned()),
            _ => remaining.push(argument.clone()),
        }
    }
    (remaining, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models() -> Models {
        Models {
            trivial: Some("haiku".to_owned()),
            complex: Some("opus".to_owned()),
            allowed: vec!["sonnet".to_owned()],
            ..Models::default()
        }
    }

    #[test]
    fn the_item_then_its_size_then_the_users_argument_choose_the_model() {
        let models = models();
        for (item, argument_model, model, ignored_model) in [
            ("a", None, None, None),
            ("a", Some("opus[1m]"), Some("opus[1m]"), None),
            ("a (trivial)", None, Some("haiku"), None),
            ("a (trivial)", Some("opus"), Some("haiku"), None),
            ("a (simple)", Some("opus"), Some("opus"), None),
            ("a (very complex)", None, None, None),
            ("a (trivial, model: sonnet)", Some("opus"), Some("sonnet"), None),
            // A model that is named for a size, or in the client's arguments, counts as named.
            ("a (model: opus)", None, Some("opus"), None),
            ("a (simple, model: Best)", Some("best"), Some("best"), None),
            // A model that nobody has named is ignored, so it costs nothing.
            ("a (model: dear)", None, None, Some("dear")),
            ("a (trivial, model: dear)", Some("sonnet"), Some("haiku"), Some("dear")),
            ("a (model: opus-2)", Some("opus"), Some("opus"), Some("opus-2")),
        ] {
            assert_eq!(
                choose_model_by_item_then_size_then_argument(item, &models, argument_model),
                ModelChoice { model, ignored_model },
                "{item} {argument_model:?}"
            );
        }
        let no_models = Models::default();
        let choice =
            choose_model_by_item_then_size_then_argument("a (trivial, model: opus)", &no_models, None);
        assert_eq!(choice, ModelChoice { model: None, ignored_model: Some("opus") }, "nothing is named");
    }

    #[test]
    fn an_option_is_removed_from_the_arguments_and_its_last_value_counts() {
        let to_arguments = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (option, arguments, rest, value) in [
            ("--settings", "--model opus", "--model opus", None),
            ("--settings", "--settings a.json --model opus", "--model opus", Some("a.json")),
            ("--settings", "--model opus --settings={} --settings b", "--model opus", Some("b")),
            ("--settings", "--settingsx y", "--settingsx y", None),
            (
                "--model",
                "--fallback-model sonnet --model=opus -x",
                "--fallback-model sonnet -x",
                Some("opus"),
            ),
        ] {
            let split = split_off_option(&to_arguments(arguments), option);
            assert_eq!(split, (to_arguments(rest), value.map(str::to_owned)), "{arguments}");
        }
    }
}
