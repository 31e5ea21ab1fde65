//! Which model works on an item. The plan is in the project, so an agent may have written it, and a model costs the user's
//! money: only models that the user has named count.

use plimsoll_domain::item_model::stated;
use plimsoll_domain::settings::Models;
use plimsoll_domain::size::Size;

/// The option of the client that chooses the model.
pub const OPTION: &str = "--model";

/// The model for an item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Choice<'a> {
    /// The model; none for the one that the client takes by itself.
    pub model: Option<&'a str>,
    /// A model that the item asks for, and that the user has not named.
    pub ignored: Option<&'a str>,
}

/// Chooses: what the item asks for if the user has named it, else what the user's settings say of its size, else what the
/// user passes to the client (`given`).
pub fn choose<'a>(item: &'a str, models: &'a Models, given: Option<&'a str>) -> Choice<'a> {
    let asked = stated(item);
    let is_asked = |name: &&str| asked.is_some_and(|asked| asked.eq_ignore_ascii_case(name));
    let named = models.named().chain(given).find(is_asked);
    let of_size = || Size::stated(item).and_then(|size| models.of(size));
    Choice { model: named.or_else(of_size).or(given), ignored: asked.filter(|_| named.is_none()) }
}

/// What to tell the user of a model that does not count.
pub fn ignored_words(model: &str) -> String {
    format!(
        "`(model: {model})` in the plan is ignored: only models that your own settings name count (`models.allowed` in ~/.config/plimsoll/settings.json)"
    )
}

/// The arguments without an option that takes one value, and its value: the client uses only the last one.
pub fn without_option(arguments: &[String], option: &str) -> (Vec<String>, Option<String>) {
    let mut rest = Vec::new();
    let mut value = None;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix(option) {
            Some("") => value = arguments.next().cloned(),
            Some(joined) if joined.starts_with('=') => value = Some(joined[1..].to_owned()),
            _ => rest.push(argument.clone()),
        }
    }
    (rest, value)
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
    fn the_item_chooses_among_what_the_user_has_named_then_its_size_then_the_users_argument() {
        let models = models();
        for (item, given, model, ignored) in [
            ("a", None, None, None),
            ("a", Some("opus[1m]"), Some("opus[1m]"), None),
            ("a (trivial)", None, Some("haiku"), None),
            ("a (trivial)", Some("opus"), Some("haiku"), None),
            ("a (simple)", Some("opus"), Some("opus"), None),
            ("a (very complex)", None, None, None),
            ("a (trivial, model: sonnet)", Some("opus"), Some("sonnet"), None),
            // Named for a size, or as the client's argument, is named.
            ("a (model: opus)", None, Some("opus"), None),
            ("a (simple, model: Best)", Some("best"), Some("best"), None),
            // What nobody has named costs nothing.
            ("a (model: dear)", None, None, Some("dear")),
            ("a (trivial, model: dear)", Some("sonnet"), Some("haiku"), Some("dear")),
            ("a (model: opus-2)", Some("opus"), Some("opus"), Some("opus-2")),
        ] {
            assert_eq!(choose(item, &models, given), Choice { model, ignored }, "{item} {given:?}");
        }
        let without = Models::default();
        let ignored = choose("a (trivial, model: opus)", &without, None);
        assert_eq!(ignored, Choice { model: None, ignored: Some("opus") }, "nothing is named");
    }

    #[test]
    fn an_option_is_taken_out_of_the_arguments_and_the_last_one_counts() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
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
            let found = without_option(&words(arguments), option);
            assert_eq!(found, (words(rest), value.map(str::to_owned)), "{arguments}");
        }
    }
}
