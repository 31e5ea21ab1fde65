//! The verify command of a single item: `(verify: CMD)` at its end, alone or after other properties as in
//! `(simple, after: 2, verify: CMD)`. A command with unbalanced parentheses is written as a code span,
//! `` (verify: `CMD`) ``. Anybody may have written the plan, so this module only parses commands and never
//! runs them.

use serde::{Deserialize, Serialize};

/// A verify command that the user has allowed to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemCheck {
    /// The text that the item had when the command was allowed.
    #[serde(rename = "item")]
    pub item_text: String,
    pub command: String,
}

const VERIFY_PREFIX: &str = "verify:";

/// Returns the verify command of an item; `None` if it has none or if the command cannot be parsed.
pub fn parse_verify_command(item: &str) -> Option<String> {
    let (_, text_after_prefix) = split_at_verify_prefix(item)?;
    parse_command_before_final_parenthesis(text_after_prefix).map(str::to_owned)
}

/// Returns true if an item has a `verify:` property that cannot be parsed.
pub fn has_malformed_verify_command(item: &str) -> bool {
    split_at_verify_prefix(item).is_some_and(|(_, text_after_prefix)| {
        parse_command_before_final_parenthesis(text_after_prefix).is_none()
    })
}

/// Returns the item's text before its verify command. Callers search this part for other properties, because
/// a command may contain text that looks like one.
pub fn text_before_verify_command(item: &str) -> &str {
    split_at_verify_prefix(item).map_or(item, |(text_before, _)| text_before)
}

/// Splits an item into the text before its `verify:` property and the text after the prefix. The prefix must
/// be the first word in a pair of parentheses, or follow a comma inside them, and a space must precede the
/// parentheses.
fn split_at_verify_prefix(item: &str) -> Option<(&str, &str)> {
    if !item.contains(':') {
        return None;
    }
    // ASCII lowercasing keeps byte offsets, so the offsets are valid in `item`.
    let lowercase_item = item.to_ascii_lowercase();
    let is_property_start = |index: usize| {
        let text_before = item[..index].trim_end();
        let Some(parenthesis_start) = text_before.rfind('(') else { return false };
        let is_unclosed = !text_before[parenthesis_start..].contains(')');
        let is_at_start_or_after_space =
            item[..parenthesis_start].is_empty() || item[..parenthesis_start].ends_with(' ');
        is_unclosed && is_at_start_or_after_space && text_before.ends_with(['(', ','])
    };
    let (prefix_start, _) = lowercase_item
        .match_indices(VERIFY_PREFIX)
        .find(|(match_start, _)| is_property_start(*match_start))?;
    Some((&item[..prefix_start], &item[prefix_start + VERIFY_PREFIX.len()..]))
}

/// Parses the command in the text after the prefix, up to the closing parenthesis, which must end the item.
fn parse_command_before_final_parenthesis(text_after_prefix: &str) -> Option<&str> {
    let inside = text_after_prefix.trim_end_matches(['.', ' ']).strip_suffix(')')?.trim();
    let backtick_count = inside.len() - inside.trim_start_matches('`').len();
    let command = match backtick_count {
        0 => Some(inside).filter(|inside| has_balanced_parentheses(inside))?,
        _ => strip_code_span(inside, backtick_count)?,
    };
    (!command.is_empty()).then_some(command)
}

/// Strips the backticks of a code span. As in Markdown, a run of the same number of backticks ends it.
fn strip_code_span(text: &str, backtick_count: usize) -> Option<&str> {
    let (delimiter, text_after_delimiter) = text.split_at(backtick_count);
    let inner = text_after_delimiter.strip_suffix(delimiter)?;
    let is_closing_run = |run: &str| run.len() == backtick_count;
    let backtick_runs = inner.split(|character| character != '`');
    (!inner.ends_with('`') && !backtick_runs.into_iter().any(is_closing_run)).then(|| inner.trim())
}

fn has_balanced_parentheses(text: &str) -> bool {
    let mut depth = 0_usize;
    for character in text.chars() {
        match character {
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
            // Commas, balanced parentheses and backticks inside the command.
            ("Count (verify: test $(ls | wc -l) -eq 3, or so)", "test $(ls | wc -l) -eq 3, or so"),
            ("Count (verify: test \"`date`\" != x)", "test \"`date`\" != x"),
            // A code span may contain anything else.
            ("Smile (verify: `echo ':)' && test 1`)", "echo ':)' && test 1"),
            ("Smile (verify: `` echo `date` ) ``)", "echo `date` )"),
            ("Twice (verify: by hand (verify: x))", "by hand (verify: x)"),
        ] {
            assert_eq!(parse_verify_command(item).as_deref(), Some(expected), "{item}");
            assert!(!has_malformed_verify_command(item), "{item}");
        }
    }

    #[test]
    fn only_a_property_is_a_check_and_a_malformed_one_is_reported() {
        for (item, is_malformed) in [
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
            assert_eq!(
                (parse_verify_command(item), has_malformed_verify_command(item)),
                (None, is_malformed),
                "{item}"
            );
        }
    }

    #[test]
    fn the_text_before_the_check_excludes_the_command() {
        assert_eq!(text_before_verify_command("Run it (simple, verify: test (medium))"), "Run it (simple, ");
        assert_eq!(text_before_verify_command("Run it (medium)"), "Run it (medium)");
    }
}
