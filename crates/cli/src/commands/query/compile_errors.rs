//! Renders the errors of a filter that jaq cannot compile, with their position.

use jaq_core::{compile, load};
use load::{lex, parse};

/// Renders the errors of lexing, parsing and reading a filter.
pub(super) fn render_load_errors(filter: &str, errors: load::Errors<&str, ()>) -> String {
    let render_file_errors = |(_, error)| match error {
        load::Error::Io(errors) => errors
            .into_iter()
            .map(|(fragment, message)| render_error_at(filter, &message, fragment))
            .collect(),
        load::Error::Lex(errors) => errors.iter().map(|error| render_lex_error(filter, error)).collect(),
        load::Error::Parse(errors) => {
            errors.iter().map(|error| render_parse_error(filter, error)).collect::<Vec<_>>()
        }
    };
    errors.into_iter().flat_map(render_file_errors).collect::<Vec<_>>().join("\n")
}

/// Renders the errors about undefined names in a filter.
pub(super) fn render_undefined_names(filter: &str, errors: &compile::Errors<&str, ()>) -> String {
    let errors = errors.iter().flat_map(|(_, errors)| errors);
    let messages = errors.map(|(name, undefined)| {
        let message = match undefined {
            compile::Undefined::Filter(arguments) => format!("{name}/{arguments} is not defined"),
            kind => format!("the {} {name} is not defined", kind.as_str()),
        };
        render_error_at(filter, &message, name)
    });
    messages.collect::<Vec<_>>().join("\n")
}

fn render_lex_error(filter: &str, (expected, found_text): &lex::Error<&str>) -> String {
    let expected_text = expected.as_str();
    match expected {
        lex::Expect::Delim(opening_delimiter) => {
            render_error_at(filter, &format!("the {expected_text} for this is missing"), opening_delimiter)
        }
        _ => {
            let first_char_length = found_text.chars().next().map_or(0, char::len_utf8);
            render_error_at(
                filter,
                &format!("a {expected_text} is expected here"),
                &found_text[..first_char_length],
            )
        }
    }
}

fn render_parse_error(filter: &str, (expected, found_text): &parse::Error<&str>) -> String {
    let message = match expected {
        parse::Expect::Just(token) => format!("`{token}` is expected here"),
        parse::Expect::Nothing => "the filter should end here".to_owned(),
        expected => format!("a {} is expected here", expected.as_str()),
    };
    render_error_at(filter, &message, found_text)
}

/// Renders a message with the line of the filter, and underlines the fragment in it. An empty fragment gets one caret.
fn render_error_at(filter: &str, message: &str, fragment: &str) -> String {
    let text_before = filter.get(..load::span(filter, fragment).start).unwrap_or_default();
    let line_start = text_before.rfind('\n').map_or(0, |index| index + 1);
    let line = filter[line_start..].lines().next().unwrap_or_default();
    let to_space = |character| if character == '\t' { '\t' } else { ' ' };
    let indent: String = text_before[line_start..].chars().map(to_space).collect();
    let underline = "^".repeat(fragment.lines().next().unwrap_or_default().chars().count().max(1));
    let line_number = (text_before.matches('\n').count() + 1).to_string();
    let margin = " ".repeat(line_number.len());
    format!("{message}\n  {line_number} | {line}\n  {margin} | {indent}{underline}")
}
