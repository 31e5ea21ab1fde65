//! The status line's place in a settings text.

use super::command::{first_word, is_ours, quoted};
use super::entries::{remove_member, root_members};
use super::text::{self, Unreadable};
use super::{start, wanted};
use serde_json::Value;
use std::ops::Range;

/// The text with our status line, unless it has another one, whose command is then named; or which is measured through,
/// where that is asked for or was so before.
pub(super) fn put(
    body: &str,
    command_for: &dyn Fn(&str) -> String,
    wrap: bool,
) -> Result<(String, Option<String>), Unreadable> {
    let line = wanted::status_line(command_for);
    let root = root_members(body)?;
    let Some(member) = root.into_iter().find(|member| member.key == "statusLine") else {
        return Ok((text::append(body, &text::whole(body)?, Some("statusLine"), &line), None));
    };
    let ours = line.get("command").and_then(Value::as_str).unwrap_or_default();
    let command = command_at(body, &member.value).map(|(command, at)| (theirs(&command), command, at));
    match command {
        Some((Theirs::Alone(theirs), now, at)) if wrap => {
            Ok((with_command(body, &at, &now, format!("{ours}{WRAP}{}", quoted(&theirs))), None))
        }
        Some((Theirs::Wrapped(words), now, at)) => {
            Ok((with_command(body, &at, &now, format!("{ours}{WRAP}{words}")), None))
        }
        Some((Theirs::None, ..)) => {
            let same = text::value(body, &member.value) == line;
            Ok((if same { body.to_owned() } else { text::replace(body, &member.value, &line) }, None))
        }
        Some((Theirs::Alone(theirs), ..)) => Ok((body.to_owned(), Some(theirs))),
        None => Ok((body.to_owned(), Some(body[member.value].to_owned()))),
    }
}

/// The text without our status line, if it has one; with the one that it was measured through.
pub(super) fn take_out(body: &str) -> Result<Option<String>, Unreadable> {
    let root = root_members(body)?;
    let Some(index) = root.iter().position(|member| member.key == "statusLine") else { return Ok(None) };
    let Some((command, at)) = command_at(body, &root[index].value) else { return Ok(None) };
    match theirs(&command) {
        Theirs::Alone(_) => Ok(None),
        Theirs::Wrapped(words) => Ok(Some(with_command(body, &at, &command, unwrapped(&words)))),
        Theirs::None => remove_member(body, &text::whole(body)?, index).map(Some),
    }
}

/// What of a status line's command is not ours.
enum Theirs {
    /// Nothing.
    None,
    /// All of it.
    Alone(String),
    /// What is behind our `--wrap`, as a shell reads it.
    Wrapped(String),
}

const WRAP: &str = " --wrap ";

fn theirs(command: &str) -> Theirs {
    if !is_ours(command, false) {
        return Theirs::Alone(command.to_owned());
    }
    match command.split_once(WRAP).map(|(_, words)| words.trim()) {
        Some(words) if !words.is_empty() => Theirs::Wrapped(words.to_owned()),
        _ => Theirs::None,
    }
}

/// One word is a command line; several are a program and its arguments.
fn unwrapped(words: &str) -> String {
    let word = first_word(words);
    if quoted(&word) == words || format!("\"{word}\"") == words { word } else { words.to_owned() }
}

fn with_command(body: &str, at: &Range<usize>, now: &str, then: String) -> String {
    if now == then { body.to_owned() } else { text::replace(body, at, &Value::String(then)) }
}

/// The command of a settings text's status line.
pub(super) fn line_command(existing: &str) -> Option<String> {
    let (_, body) = start(existing);
    let root = root_members(&body).ok()?;
    Some(command_at(&body, &root.iter().find(|member| member.key == "statusLine")?.value)?.0)
}

/// The command of a status line, and its place.
fn command_at(body: &str, line: &Range<usize>) -> Option<(String, Range<usize>)> {
    let fields = text::members(body, line).ok()??;
    let at = fields.into_iter().find(|field| field.key == "command")?.value;
    Some((text::string(body, &at)?, at))
}
