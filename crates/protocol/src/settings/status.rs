//! The status line's place in a settings text.

use super::command::{first_word_chars, is_ours, quoted};
use super::entries::{remove_member, root_members};
use super::text::{self, SpelledChar, Unreadable};
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
    let Some(command) = Command::read(body, &member.value) else {
        return Ok((body.to_owned(), Some(body[member.value].to_owned())));
    };
    match command.user_part() {
        UserPart::All if wrap => {
            Ok((command.replace_with_wrapper(body, ours, &quote_spelled(&command.chars)), None))
        }
        UserPart::All => Ok((body.to_owned(), Some(command.text))),
        UserPart::Wrapped(words) if command.text == format!("{ours}{WRAP}{}", to_text(words)) => {
            Ok((body.to_owned(), None))
        }
        UserPart::Wrapped(words) => Ok((command.replace_with_wrapper(body, ours, &to_spelling(words)), None)),
        UserPart::None => {
            let same = text::value(body, &member.value) == line;
            Ok((if same { body.to_owned() } else { text::replace(body, &member.value, &line) }, None))
        }
    }
}

/// The text without our status line, if it has one; with the one that it was measured through.
pub(super) fn take_out(body: &str) -> Result<Option<String>, Unreadable> {
    let root = root_members(body)?;
    let Some(index) = root.iter().position(|member| member.key == "statusLine") else { return Ok(None) };
    let Some(command) = Command::read(body, &root[index].value) else { return Ok(None) };
    match command.user_part() {
        UserPart::All => Ok(None),
        UserPart::Wrapped(words) => {
            let theirs = format!("\"{}\"", to_spelling(&unwrap_words(words)));
            Ok(Some(text::splice(body, command.place.clone(), &theirs)))
        }
        UserPart::None => remove_member(body, &text::whole(body)?, index).map(Some),
    }
}

/// The command of a status line. A user's command is wrapped and unwrapped as the file spells it (`/` may be `\/`), so that it
/// comes back byte for byte even if the text from before the installation is unknown.
struct Command<'t> {
    text: String,
    chars: Vec<SpelledChar<'t>>,
    place: Range<usize>,
}

/// What of a status line's command is not ours.
enum UserPart<'c, 't> {
    /// Nothing.
    None,
    /// All of it.
    All,
    /// What is behind our `--wrap`, as a shell reads it.
    Wrapped(&'c [SpelledChar<'t>]),
}

const WRAP: &str = " --wrap ";

impl<'t> Command<'t> {
    fn read(body: &'t str, line: &Range<usize>) -> Option<Command<'t>> {
        let fields = text::members(body, line).ok()??;
        let place = fields.into_iter().find(|field| field.key == "command")?.value;
        let chars = text::spelled_chars(body, &place)?;
        Some(Command { text: to_text(&chars), chars, place })
    }

    fn user_part(&self) -> UserPart<'_, 't> {
        if !is_ours(&self.text, false) {
            return UserPart::All;
        }
        let Some((ours, _)) = self.text.split_once(WRAP) else { return UserPart::None };
        match trim_spelled(&self.chars[ours.chars().count() + WRAP.chars().count()..]) {
            [] => UserPart::None,
            words => UserPart::Wrapped(words),
        }
    }

    /// Returns the text with our command in the place of this one. `words` are the user's, as they are spelled in JSON.
    fn replace_with_wrapper(&self, body: &str, ours: &str, words: &str) -> String {
        let ours = Value::from(format!("{ours}{WRAP}")).to_string();
        let open = ours.strip_suffix('"').unwrap_or(&ours);
        text::splice(body, self.place.clone(), &format!("{open}{words}\""))
    }
}

fn to_text(chars: &[SpelledChar<'_>]) -> String {
    chars.iter().map(|spelled| spelled.character).collect()
}

fn to_spelling(chars: &[SpelledChar<'_>]) -> String {
    chars.iter().map(|spelled| spelled.spelling).collect()
}

/// The JSON spelling of what [`quoted`] returns.
fn quote_spelled(word: &[SpelledChar<'_>]) -> String {
    let text = to_text(word);
    if quoted(&text) == text {
        return to_spelling(word);
    }
    let one = |spelled: &SpelledChar<'_>| match spelled.character {
        // A backslash is two in JSON.
        '\'' => format!(r"'\\{}'", spelled.spelling),
        _ => spelled.spelling.to_owned(),
    };
    format!("'{}'", word.iter().map(one).collect::<String>())
}

fn trim_spelled<'c, 't>(chars: &'c [SpelledChar<'t>]) -> &'c [SpelledChar<'t>] {
    let is_text = |spelled: &SpelledChar<'_>| !spelled.character.is_whitespace();
    let start = chars.iter().position(is_text).unwrap_or(chars.len());
    let end = chars.iter().rposition(is_text).map_or(start, |last| last + 1);
    &chars[start..end]
}

/// Returns the command behind our `--wrap`. One word is a command line; several are a program and its arguments.
fn unwrap_words<'t>(words: &[SpelledChar<'t>]) -> Vec<SpelledChar<'t>> {
    let word = first_word_chars(words.iter().copied());
    let (text, whole) = (to_text(&word), to_text(words));
    if quoted(&text) == whole || format!("\"{text}\"") == whole { word } else { words.to_vec() }
}

/// The command of a settings text's status line.
pub(super) fn line_command(existing: &str) -> Option<String> {
    let (_, body) = start(existing);
    Some(Command::read(&body, &text::find_value(&body, &["statusLine"])?)?.text)
}
