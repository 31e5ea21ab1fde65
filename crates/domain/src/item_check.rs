//! The check that an item names for itself: `(verify: CMD)` at its end, alone or behind other properties as in
//! `(simple, after: 2, verify: CMD)`. A command whose parentheses do not balance is written as a code span,
//! `` (verify: `CMD`) ``. The plan is in the project, where anybody may have written it: reading a command here starts nothing.

use serde::{Deserialize, Serialize};

/// A check that the user has allowed to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemCheck {
    /// The item that it belongs to, in the words that the plan had then.
    pub item: String,
    /// The command.
    pub command: String,
}

const MARK: &str = "verify:";

/// The command that an item names; none if it names none, or if what is there cannot be read as one.
pub fn command(item: &str) -> Option<String> {
    let (_, rest) = split(item)?;
    parse(rest).map(str::to_owned)
}

/// True for an item that is meant to name a check, in a way that is not understood.
pub fn is_misspelt(item: &str) -> bool {
    split(item).is_some_and(|(_, rest)| parse(rest).is_none())
}

/// The item without its check: a command may hold words that would state a size elsewhere.
pub fn words(item: &str) -> &str {
    split(item).map_or(item, |(words, _)| words)
}

/// The item before its check, and what follows the mark. The mark begins a bracket, or follows a comma in an open one; the
/// bracket follows a blank.
fn split(item: &str) -> Option<(&str, &str)> {
    if !item.contains(':') {
        return None;
    }
    // Bytes of the same places: only ASCII letters change.
    let lower = item.to_ascii_lowercase();
    let is_property = |place: usize| {
        let before = item[..place].trim_end();
        let Some(opens) = before.rfind('(') else { return false };
        let is_open = !before[opens..].contains(')');
        let is_bracket = item[..opens].is_empty() || item[..opens].ends_with(' ');
        is_open && is_bracket && before.ends_with(['(', ','])
    };
    let (place, _) = lower.match_indices(MARK).find(|(place, _)| is_property(*place))?;
    Some((&item[..place], &item[place + MARK.len()..]))
}

/// The command in what follows the mark up to the bracket's end, which is the item's.
fn parse(rest: &str) -> Option<&str> {
    let inside = rest.trim_end_matches(['.', ' ']).strip_suffix(')')?.trim();
    let quotes = inside.len() - inside.trim_start_matches('`').len();
    let command = match quotes {
        0 => Some(inside).filter(|inside| is_balanced(inside))?,
        _ => in_code_span(inside, quotes)?,
    };
    (!command.is_empty()).then_some(command)
}

/// As Markdown has it: so many backticks end the span that began with so many.
fn in_code_span(text: &str, quotes: usize) -> Option<&str> {
    let (quote, rest) = text.split_at(quotes);
    let inner = rest.strip_suffix(quote)?;
    let is_end = |run: &str| run.len() == quotes;
    let runs = inner.split(|letter| letter != '`');
    (!inner.ends_with('`') && !runs.into_iter().any(is_end)).then(|| inner.trim())
}

fn is_balanced(text: &str) -> bool {
    let mut depth = 0_usize;
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' if depth == 0 => return false,
            ')' => depth -= 1,
            _ => {}
        }
    }
    depth == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_names_a_command_at_its_end() {
        for (item, expected) in [
            ("Parse dates (verify: cargo test dates)", "cargo test dates"),
            ("Parse dates (simple, after: 2, verify: cargo test dates)", "cargo test dates"),
            ("Parse dates (medium, Verify:make test).", "make test"),
            ("(verify: true) ", "true"),
            // Commas, parentheses that balance, and backticks inside.
            ("Count (verify: test $(ls | wc -l) -eq 3, or so)", "test $(ls | wc -l) -eq 3, or so"),
            ("Count (verify: test \"`date`\" != x)", "test \"`date`\" != x"),
            // A code span holds anything else.
            ("Smile (verify: `echo ':)' && test 1`)", "echo ':)' && test 1"),
            ("Smile (verify: `` echo `date` ) ``)", "echo `date` )"),
            ("Twice (verify: by hand (verify: x))", "by hand (verify: x)"),
        ] {
            assert_eq!(command(item).as_deref(), Some(expected), "{item}");
            assert!(!is_misspelt(item), "{item}");
        }
    }

    #[test]
    fn what_is_no_property_is_no_check_and_what_is_not_understood_is_told() {
        for (item, misspelt) in [
            ("Parse dates", false),
            ("verify: the dates", false),
            ("See README(verify: x)", false),
            ("Parse (and then verify: x)", false),
            ("Parse (medium) and verify: x)", false),
            ("Parse dates (verify: )", true),
            ("Parse dates (verify: ``)", true),
            ("Parse dates (verify: cargo test", true),
            ("Parse dates (verify: cargo test) (medium)", true),
            ("Parse dates (verify: cargo test), then (more)", true),
            ("Smile (verify: echo ':)')", true),
            ("Smile (verify: `a` and `b`)", true),
            ("Smile (verify: `a)", true),
            ("Smile (verify: ``a```)", true),
        ] {
            assert_eq!((command(item), is_misspelt(item)), (None, misspelt), "{item}");
        }
    }

    #[test]
    fn the_words_of_an_item_are_what_stands_before_its_check() {
        assert_eq!(words("Run it (simple, verify: test (medium))"), "Run it (simple, ");
        assert_eq!(words("Run it (medium)"), "Run it (medium)");
    }
}
