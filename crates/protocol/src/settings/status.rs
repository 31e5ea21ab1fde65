//! The status line's place in a settings text.

use super::command::is_ours;
use super::entries::{remove_member, root_members};
use super::text::{self, Unreadable};
use super::{start, wanted};
use std::ops::Range;

/// The text with our status line, unless it has another one, whose command is then named.
pub(super) fn put(
    body: &str,
    command_for: &dyn Fn(&str) -> String,
) -> Result<(String, Option<String>), Unreadable> {
    let line = wanted::status_line(command_for);
    let root = root_members(body)?;
    let Some(member) = root.into_iter().find(|member| member.key == "statusLine") else {
        return Ok((text::append(body, &text::whole(body)?, Some("statusLine"), &line), None));
    };
    let command = command_of(body, &member.value);
    if !command.as_deref().is_some_and(|command| is_ours(command, false)) {
        return Ok((body.to_owned(), Some(command.unwrap_or_else(|| body[member.value].to_owned()))));
    }
    let same = text::value(body, &member.value) == line;
    Ok((if same { body.to_owned() } else { text::replace(body, &member.value, &line) }, None))
}

/// The text without our status line, if it has one.
pub(super) fn take_out(body: &str) -> Result<Option<String>, Unreadable> {
    let ours = root_members(body)?.iter().position(|member| {
        member.key == "statusLine"
            && command_of(body, &member.value).is_some_and(|command| is_ours(&command, false))
    });
    ours.map(|index| remove_member(body, &text::whole(body)?, index)).transpose()
}

/// The command of a settings text's status line.
pub(super) fn line_command(existing: &str) -> Option<String> {
    let (_, body) = start(existing);
    let root = root_members(&body).ok()?;
    command_of(&body, &root.iter().find(|member| member.key == "statusLine")?.value)
}

fn command_of(body: &str, at: &Range<usize>) -> Option<String> {
    let fields = text::members(body, at).ok()??;
    text::string(body, &fields.iter().find(|field| field.key == "command")?.value)
}
