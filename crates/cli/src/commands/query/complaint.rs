//! What is wrong with a filter that jaq cannot compile, and where.

use jaq_core::{compile, load};
use load::{lex, parse};

/// What kept the filter from being read.
pub(super) fn of_loading(filter: &str, errors: load::Errors<&str, ()>) -> String {
    let of_file = |(_, error)| match error {
        load::Error::Io(errors) => {
            errors.into_iter().map(|(part, words)| complaint(filter, &words, part)).collect()
        }
        load::Error::Lex(errors) => errors.iter().map(|error| of_letters(filter, error)).collect(),
        load::Error::Parse(errors) => {
            errors.iter().map(|error| of_grammar(filter, error)).collect::<Vec<_>>()
        }
    };
    errors.into_iter().flat_map(of_file).collect::<Vec<_>>().join("\n")
}

/// What the filter names but does not define.
pub(super) fn of_names(filter: &str, errors: &compile::Errors<&str, ()>) -> String {
    let errors = errors.iter().flat_map(|(_, errors)| errors);
    let words = errors.map(|(name, undefined)| {
        let words = match undefined {
            compile::Undefined::Filter(arguments) => format!("{name}/{arguments} is not defined"),
            other => format!("the {} {name} is not defined", other.as_str()),
        };
        complaint(filter, &words, name)
    });
    words.collect::<Vec<_>>().join("\n")
}

fn of_letters(filter: &str, (expected, found): &lex::Error<&str>) -> String {
    let wanted = expected.as_str();
    match expected {
        lex::Expect::Delim(opened) => complaint(filter, &format!("the {wanted} for this is missing"), opened),
        _ => {
            let first = found.chars().next().map_or(0, char::len_utf8);
            complaint(filter, &format!("a {wanted} is expected here"), &found[..first])
        }
    }
}

fn of_grammar(filter: &str, (expected, found): &parse::Error<&str>) -> String {
    let words = match expected {
        parse::Expect::Just(word) => format!("`{word}` is expected here"),
        parse::Expect::Nothing => "the filter should end here".to_owned(),
        expected => format!("a {} is expected here", expected.as_str()),
    };
    complaint(filter, &words, found)
}

/// What is wrong, and the line of the filter with this part of it marked; an empty part is marked at its position.
fn complaint(filter: &str, words: &str, part: &str) -> String {
    let before = filter.get(..load::span(filter, part).start).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = filter[line_start..].lines().next().unwrap_or_default();
    let as_space = |letter| if letter == '\t' { '\t' } else { ' ' };
    let indent: String = before[line_start..].chars().map(as_space).collect();
    let marks = "^".repeat(part.lines().next().unwrap_or_default().chars().count().max(1));
    let number = (before.matches('\n').count() + 1).to_string();
    let margin = " ".repeat(number.len());
    format!("{words}\n  {number} | {line}\n  {margin} | {indent}{marks}")
}
