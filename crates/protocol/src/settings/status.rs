//! The status line in a settings text.

use super::command::{first_shell_word, runs_our_program, shell_quote_if_needed};
use super::hook_entries::{remove_object_member, root_members};
use super::json_text::{self, InvalidSettings};
use super::{split_bom_and_default_to_empty_object, template};
use serde_json::Value;
use std::ops::Range;

/// Sets our status line and returns the new settings text. Leaves a status line of the user's unchanged and returns its
/// command too, unless `wrap_user_command` is true or our command already wraps it: then our command runs the user's.
pub(super) fn set_status_line_or_return_user_command(
    settings_json: &str,
    command_for: &dyn Fn(&str) -> String,
    wrap_user_command: bool,
) -> Result<(String, Option<String>), InvalidSettings> {
    let our_status_line = template::status_line_value(command_for);
    let root = root_members(settings_json)?;
    let Some(member) = root.into_iter().find(|member| member.key == "statusLine") else {
        return Ok((
            json_text::append_child(
                settings_json,
                &json_text::root_range(settings_json)?,
                Some("statusLine"),
                &our_status_line,
            ),
            None,
        ));
    };
    let our_command = our_status_line.get("command").and_then(Value::as_str).unwrap_or_default();
    let Some(command) = StatusLineCommand::from_settings(settings_json, &member.value_range) else {
        return Ok((settings_json.to_owned(), Some(settings_json[member.value_range].to_owned())));
    };
    match command.user_command_part() {
        UserCommandPart::WholeCommand if wrap_user_command => {
            let quoted_command = shell_quote_raw_text(&command.text, command.raw_text);
            Ok((command.replace_with_wrapper(settings_json, our_command, &quoted_command), None))
        }
        UserCommandPart::WholeCommand => Ok((settings_json.to_owned(), Some(command.text))),
        UserCommandPart::Wrapped(wrapped_command)
            if command.text == format!("{our_command}{WRAP_OPTION}{wrapped_command}") =>
        {
            Ok((settings_json.to_owned(), None))
        }
        UserCommandPart::Wrapped(wrapped_command) => {
            let raw_command =
                keep_raw_text_if_equal_or_escape(command.raw_wrapped_command().to_owned(), wrapped_command);
            Ok((command.replace_with_wrapper(settings_json, our_command, &raw_command), None))
        }
        UserCommandPart::Nothing => {
            let is_unchanged =
                json_text::value_at_or_null(settings_json, &member.value_range) == our_status_line;
            Ok((
                if is_unchanged {
                    settings_json.to_owned()
                } else {
                    json_text::replace_value(settings_json, &member.value_range, &our_status_line)
                },
                None,
            ))
        }
    }
}

/// Removes our status line, or restores the user's command if ours wraps it. Returns `None` if there is no status line
/// of ours.
pub(super) fn remove_or_unwrap_status_line(settings_json: &str) -> Result<Option<String>, InvalidSettings> {
    let root = root_members(settings_json)?;
    let Some(index) = root.iter().position(|member| member.key == "statusLine") else { return Ok(None) };
    let Some(command) = StatusLineCommand::from_settings(settings_json, &root[index].value_range) else {
        return Ok(None);
    };
    match command.user_command_part() {
        UserCommandPart::WholeCommand => Ok(None),
        UserCommandPart::Wrapped(wrapped_command) => {
            let user_command =
                unquote_wrapped_command_as_raw_json(wrapped_command, command.raw_wrapped_command());
            Ok(Some(json_text::replace_range(
                settings_json,
                command.range.clone(),
                &format!("\"{user_command}\""),
            )))
        }
        UserCommandPart::Nothing => {
            remove_object_member(settings_json, &json_text::root_range(settings_json)?, index).map(Some)
        }
    }
}

/// The command of a status line. A user's command is wrapped and unwrapped as written in the file (`/` may be `\/`),
/// so that it is restored byte for byte even if the text from before the installation is unknown.
struct StatusLineCommand<'t> {
    text: String,
    /// The JSON string without its quotation marks.
    raw_text: &'t str,
    range: Range<usize>,
}

/// The part of a status line's command that the user wrote.
enum UserCommandPart<'c> {
    /// Nothing: the command is ours.
    Nothing,
    /// The whole command.
    WholeCommand,
    /// The text after our `--wrap`, as a shell reads it.
    Wrapped(&'c str),
}

const WRAP_OPTION: &str = " --wrap ";

impl<'t> StatusLineCommand<'t> {
    fn from_settings(
        settings_json: &'t str,
        status_line_range: &Range<usize>,
    ) -> Option<StatusLineCommand<'t>> {
        let fields =
            json_text::object_members_rejecting_duplicates(settings_json, status_line_range).ok()??;
        let range = fields.into_iter().find(|field| field.key == "command")?.value_range;
        let raw_text = settings_json[range.clone()].strip_prefix('"')?.strip_suffix('"')?;
        Some(StatusLineCommand { text: json_text::string_at(settings_json, &range)?, raw_text, range })
    }

    fn user_command_part(&self) -> UserCommandPart<'_> {
        if !runs_our_program(&self.text, false) {
            return UserCommandPart::WholeCommand;
        }
        match self.text.split_once(WRAP_OPTION).map(|(_, wrapped_command)| wrapped_command.trim()) {
            None | Some("") => UserCommandPart::Nothing,
            Some(wrapped_command) => UserCommandPart::Wrapped(wrapped_command),
        }
    }

    /// Returns the raw JSON text after our `--wrap`.
    fn raw_wrapped_command(&self) -> &'t str {
        self.raw_text.split_once(WRAP_OPTION).map_or("", |(_, raw_command)| raw_command.trim())
    }

    /// Replaces this command with ours, which wraps the user's command in its raw JSON form.
    fn replace_with_wrapper(&self, settings_json: &str, our_command: &str, raw_user_command: &str) -> String {
        let raw_wrapper = escape_as_json(&format!("{our_command}{WRAP_OPTION}"));
        json_text::replace_range(
            settings_json,
            self.range.clone(),
            &format!("\"{raw_wrapper}{raw_user_command}\""),
        )
    }
}

/// Returns the text as a JSON string literal without the quotation marks.
fn escape_as_json(text: &str) -> String {
    let literal = Value::from(text).to_string();
    literal[1..literal.len() - 1].to_owned()
}

/// Returns the raw JSON text from the file if it decodes to `text`; otherwise `text` escaped as JSON.
fn keep_raw_text_if_equal_or_escape(raw_text: String, text: &str) -> String {
    let literal = format!("\"{raw_text}\"");
    let decodes_to_text =
        json_text::string_at(&literal, &(0..literal.len())).is_some_and(|decoded| decoded == text);
    if decodes_to_text { raw_text } else { escape_as_json(text) }
}

/// An apostrophe in JSON, and the same apostrophe inside a shell's single quotes. JSON writes a backslash as two.
const APOSTROPHE_ESCAPES: [(&str, &str); 2] = [("'", r"'\\''"), (r"\u0027", r"'\\\u0027'")];

/// Returns the text, quoted by [`shell_quote_if_needed`], in raw JSON form.
fn shell_quote_raw_text(text: &str, raw_text: &str) -> String {
    let quoted_text = shell_quote_if_needed(text);
    let escape_apostrophe = |escaped: String, (unescaped_form, escaped_form): (&str, &str)| {
        escaped.replace(unescaped_form, escaped_form)
    };
    let quote_raw_text =
        || format!("'{}'", APOSTROPHE_ESCAPES.into_iter().fold(raw_text.to_owned(), escape_apostrophe));
    keep_raw_text_if_equal_or_escape(
        if quoted_text == text { raw_text.to_owned() } else { quote_raw_text() },
        &quoted_text,
    )
}

/// Returns the command after our `--wrap` in raw JSON form. A single shell word is a whole command line, so its quotes are
/// removed; several words are a program and its arguments and stay as they are.
fn unquote_wrapped_command_as_raw_json(wrapped_command: &str, raw_wrapped_command: &str) -> String {
    let first_word_text = first_shell_word(wrapped_command);
    let is_one_word = shell_quote_if_needed(&first_word_text) == wrapped_command
        || format!("\"{first_word_text}\"") == wrapped_command;
    if !is_one_word {
        return keep_raw_text_if_equal_or_escape(raw_wrapped_command.to_owned(), wrapped_command);
    }
    let strip_quotes = |quote: char| raw_wrapped_command.strip_prefix(quote)?.strip_suffix(quote);
    let unescape_apostrophe = |unescaped: String, (unescaped_form, escaped_form): (&str, &str)| {
        unescaped.replace(escaped_form, unescaped_form)
    };
    let unquoted = strip_quotes('\'').map(|quoted_content| {
        APOSTROPHE_ESCAPES.into_iter().fold(quoted_content.to_owned(), unescape_apostrophe)
    });
    let unquoted =
        unquoted.or_else(|| Some(raw_wrapped_command.strip_prefix("\\\"")?.strip_suffix("\\\"")?.to_owned()));
    keep_raw_text_if_equal_or_escape(
        unquoted.unwrap_or_else(|| raw_wrapped_command.to_owned()),
        &first_word_text,
    )
}

/// Returns the status line command in a settings text.
pub(super) fn status_line_command(settings_text: &str) -> Option<String> {
    let (_, settings_json) = split_bom_and_default_to_empty_object(settings_text);
    Some(
        StatusLineCommand::from_settings(
            &settings_json,
            &json_text::find_value_range(&settings_json, &["statusLine"])?,
        )?
        .text,
    )
}
