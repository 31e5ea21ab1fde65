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
    let Some(command) = Command::read(body, &member.value) else {
        return Ok((body.to_owned(), Some(body[member.value].to_owned())));
    };
    match command.user_part() {
        UserPart::All if wrap => {
            let words = quote_spelled(&command.text, command.spelled);
            Ok((command.replace_with_wrapper(body, ours, &words), None))
        }
        UserPart::All => Ok((body.to_owned(), Some(command.text))),
        UserPart::Wrapped(words) if command.text == format!("{ours}{WRAP}{words}") => {
            Ok((body.to_owned(), None))
        }
        UserPart::Wrapped(words) => {
            let words = spelling(command.spelled_words().to_owned(), words);
            Ok((command.replace_with_wrapper(body, ours, &words), None))
        }
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
            let theirs = unwrap_words(words, command.spelled_words());
            Ok(Some(text::splice(body, command.place.clone(), &format!("\"{theirs}\""))))
        }
        UserPart::None => remove_member(body, &text::whole(body)?, index).map(Some),
    }
}

/// The command of a status line. A user's command is wrapped and unwrapped as the file spells it (`/` may be `\/`), so that it
/// comes back byte for byte even if the text from before the installation is unknown.
struct Command<'t> {
    text: String,
    /// Between the quotation marks of JSON.
    spelled: &'t str,
    place: Range<usize>,
}

/// What of a status line's command is not ours.
enum UserPart<'c> {
    /// Nothing.
    None,
    /// All of it.
    All,
    /// What is behind our `--wrap`, as a shell reads it.
    Wrapped(&'c str),
}

const WRAP: &str = " --wrap ";

impl<'t> Command<'t> {
    fn read(body: &'t str, line: &Range<usize>) -> Option<Command<'t>> {
        let fields = text::members(body, line).ok()??;
        let place = fields.into_iter().find(|field| field.key == "command")?.value;
        let spelled = body[place.clone()].strip_prefix('"')?.strip_suffix('"')?;
        Some(Command { text: text::string(body, &place)?, spelled, place })
    }

    fn user_part(&self) -> UserPart<'_> {
        if !is_ours(&self.text, false) {
            return UserPart::All;
        }
        match self.text.split_once(WRAP).map(|(_, words)| words.trim()) {
            None | Some("") => UserPart::None,
            Some(words) => UserPart::Wrapped(words),
        }
    }

    /// Returns what is spelled behind our `--wrap`.
    fn spelled_words(&self) -> &'t str {
        self.spelled.split_once(WRAP).map_or("", |(_, words)| words.trim())
    }

    /// Returns the text with our command in the place of this one. `words` are the user's, as they are spelled in JSON.
    fn replace_with_wrapper(&self, body: &str, ours: &str, words: &str) -> String {
        let ours = json_spelling(&format!("{ours}{WRAP}"));
        text::splice(body, self.place.clone(), &format!("\"{ours}{words}\""))
    }
}

/// Returns how JSON spells a text, without the quotation marks.
fn json_spelling(text: &str) -> String {
    let literal = Value::from(text).to_string();
    literal[1..literal.len() - 1].to_owned()
}

/// Returns the spelling in the file if it spells this text, else that of JSON.
fn spelling(in_file: String, text: &str) -> String {
    let literal = format!("\"{in_file}\"");
    let is_same = text::string(&literal, &(0..literal.len())).is_some_and(|spelled| spelled == text);
    if is_same { in_file } else { json_spelling(text) }
}

/// How JSON spells an apostrophe, and the same within the apostrophes of a shell. A backslash is two in JSON.
const APOSTROPHES: [(&str, &str); 2] = [("'", r"'\\''"), (r"\u0027", r"'\\\u0027'")];

/// Returns the spelling of what [`quoted`] returns for a text.
fn quote_spelled(text: &str, spelled: &str) -> String {
    let words = quoted(text);
    let quote = |words: String, (plain, inside): (&str, &str)| words.replace(plain, inside);
    let in_quotes = || format!("'{}'", APOSTROPHES.into_iter().fold(spelled.to_owned(), quote));
    spelling(if words == text { spelled.to_owned() } else { in_quotes() }, &words)
}

/// Returns the spelling of the command behind our `--wrap`. One word is a command line; several are a program and its arguments.
fn unwrap_words(words: &str, spelled: &str) -> String {
    let word = first_word(words);
    let is_one_word = quoted(&word) == words || format!("\"{word}\"") == words;
    if !is_one_word {
        return spelling(spelled.to_owned(), words);
    }
    let in_quotes = |quote: char| spelled.strip_prefix(quote)?.strip_suffix(quote);
    let unquote = |words: String, (plain, inside): (&str, &str)| words.replace(inside, plain);
    let inside = in_quotes('\'').map(|inside| APOSTROPHES.into_iter().fold(inside.to_owned(), unquote));
    let inside = inside.or_else(|| Some(spelled.strip_prefix("\\\"")?.strip_suffix("\\\"")?.to_owned()));
    spelling(inside.unwrap_or_else(|| spelled.to_owned()), &word)
}

/// The command of a settings text's status line.
pub(super) fn line_command(existing: &str) -> Option<String> {
    let (_, body) = start(existing);
    Some(Command::read(&body, &text::find_value(&body, &["statusLine"])?)?.text)
}
