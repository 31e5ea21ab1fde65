//! The status line in a settings text.

use super::command::{first_shell_word, runs_our_program, shell_quote};
use super::hook_entries::{remove_object_member, root_members};
use super::json_text::{self, InvalidSettings};
use super::{split_byte_order_mark, template};
use serde_json::Value;
use std::ops::Range;

/// Sets our status line. If there is another one, leaves it and returns its command, unless it is to be wrapped or
/// already is: then our command replaces it and measures through it.
pub(super) fn put_status_line(
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
    let Some(command) = StatusLineCommand::from_settings(settings_json, &member.value) else {
        return Ok((settings_json.to_owned(), Some(settings_json[member.value].to_owned())));
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
            let raw_command = keep_raw_or_escape(command.raw_wrapped_command().to_owned(), wrapped_command);
            Ok((command.replace_with_wrapper(settings_json, our_command, &raw_command), None))
        }
        UserCommandPart::Nothing => {
            let is_unchanged = json_text::value_at(settings_json, &member.value) == our_status_line;
            Ok((
                if is_unchanged {
                    settings_json.to_owned()
                } else {
                    json_text::replace_value(settings_json, &member.value, &our_status_line)
                },
                None,
            ))
        }
    }
}

/// Removes our status line, or unwraps the user's command in it. Returns `None` if it is not ours.
pub(super) fn remove_status_line(settings_json: &str) -> Result<Option<String>, InvalidSettings> {
    let root = root_members(settings_json)?;
    let Some(index) = root.iter().position(|member| member.key == "statusLine") else { return Ok(None) };
    let Some(command) = StatusLineCommand::from_settings(settings_json, &root[index].value) else {
        return Ok(None);
    };
    match command.user_command_part() {
        UserCommandPart::WholeCommand => Ok(None),
        UserCommandPart::Wrapped(wrapped_command) => {
            let user_command = unwrap_raw_command(wrapped_command, command.raw_wrapped_command());
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

/// The user's part of a status line's command.
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
        let fields = json_text::object_members(settings_json, status_line_range).ok()??;
        let range = fields.into_iter().find(|field| field.key == "command")?.value;
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

/// Returns a text as JSON, without the quotation marks.
fn escape_as_json(text: &str) -> String {
    let literal = Value::from(text).to_string();
    literal[1..literal.len() - 1].to_owned()
}

/// Returns the raw text of the file if it decodes to this text; otherwise the text as JSON.
fn keep_raw_or_escape(raw_text: String, text: &str) -> String {
    let literal = format!("\"{raw_text}\"");
    let is_raw_text_of_text =
        json_text::string_at(&literal, &(0..literal.len())).is_some_and(|spelled| spelled == text);
    if is_raw_text_of_text { raw_text } else { escape_as_json(text) }
}

/// An apostrophe in JSON, and the same apostrophe inside a shell's single quotes. JSON writes a backslash as two.
const APOSTROPHE_ESCAPES: [(&str, &str); 2] = [("'", r"'\\''"), (r"\u0027", r"'\\\u0027'")];

/// Returns the raw JSON form of what [`shell_quote`] returns for a text.
fn shell_quote_raw_text(text: &str, raw_text: &str) -> String {
    let quoted_text = shell_quote(text);
    let quote = |words: String, (plain, quoted_form): (&str, &str)| words.replace(plain, quoted_form);
    let in_quotes = || format!("'{}'", APOSTROPHE_ESCAPES.into_iter().fold(raw_text.to_owned(), quote));
    keep_raw_or_escape(if quoted_text == text { raw_text.to_owned() } else { in_quotes() }, &quoted_text)
}

/// Returns the raw JSON form of the command after our `--wrap`. One word is a command line; several are a program and
/// its arguments.
fn unwrap_raw_command(wrapped_command: &str, raw_text: &str) -> String {
    let first_word_text = first_shell_word(wrapped_command);
    let is_one_word = shell_quote(&first_word_text) == wrapped_command
        || format!("\"{first_word_text}\"") == wrapped_command;
    if !is_one_word {
        return keep_raw_or_escape(raw_text.to_owned(), wrapped_command);
    }
    let strip_quotes = |quote: char| raw_text.strip_prefix(quote)?.strip_suffix(quote);
    let unescape_apostrophe = |words: String, (plain, inside): (&str, &str)| words.replace(inside, plain);
    let unquoted = strip_quotes('\'')
        .map(|inside| APOSTROPHE_ESCAPES.into_iter().fold(inside.to_owned(), unescape_apostrophe));
    let unquoted = unquoted.or_else(|| Some(raw_text.strip_prefix("\\\"")?.strip_suffix("\\\"")?.to_owned()));
    keep_raw_or_escape(unquoted.unwrap_or_else(|| raw_text.to_owned()), &first_word_text)
}

/// Returns the command of a settings text's status line.
pub(super) fn status_line_command(settings_text: &str) -> Option<String> {
    let (_, settings_json) = split_byte_order_mark(settings_text);
    Some(
        StatusLineCommand::from_settings(
            &settings_json,
            &json_text::find_value_range(&settings_json, &["statusLine"])?,
        )?
        .text,
    )
}
