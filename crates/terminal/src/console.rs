//! The one door to standard output and standard error. What goes through it is a [`SafeText`]: whatever a command has
//! made of foreign words, nothing in it steers the terminal. Printing anywhere else is forbidden by `clippy.toml`.
//!
//! Bytes for other programs (HTML, an export, `query`'s answers) stay as they are in a pipe, and are cleaned where the
//! reader is a terminal.

mod painted;

use indicatif::ProgressBar;
pub use painted::Painted;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::text::SafeText;
use plimsoll_store::environment;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Stderr, Stdout, StdoutLock, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Prints a page of words; a reader that has gone away is a normal end.
pub fn say(text: impl Display) {
    let _ = print(&SafeText::page(&format!("{text}\n")));
}

/// True on a terminal, unless the user wants none.
pub fn has_colours() -> bool {
    is_terminal() && environment::variable("NO_COLOR").is_none()
}

/// How wide the terminal is that we print to.
pub fn columns() -> Option<usize> {
    let size = is_terminal().then(|| rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok());
    size.flatten().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Asks in one line; the answer follows it.
pub fn ask(question: impl Display) {
    let _ = print(&SafeText::line(&question.to_string()));
}

/// Prints JSON, every letter of it escaped that would steer a terminal: the same value for the one that reads it.
pub fn json(document: impl Display) {
    let _ = print(&SafeText::json(&format!("{document}\n")));
}

/// Prints lines at once, with their colours on a terminal that may have them; fails when nobody reads any more.
pub fn paint(lines: &[Painted]) -> io::Result<()> {
    let shown = if has_colours() { Painted::to_terminal } else { Painted::to_plain };
    let text: String = lines.iter().map(|line| shown(line) + "\n").collect();
    write(stdout(), &text)
}

/// Prints what other programs read: a page, exports for `eval`, a path.
pub fn data(text: &str) {
    let _ = if is_terminal() { print(&SafeText::page(text)) } else { write(stdout(), text) };
}

/// Prints a document in JSON that other programs read to the byte.
pub fn json_data(text: &str) {
    let _ = if is_terminal() { print(&SafeText::json(text)) } else { write(stdout(), text) };
}

/// Prints a page of words above a live bar.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn say_above(bar: &ProgressBar, text: &str) {
    bar.println(SafeText::page(text).as_str());
}

/// Prints a line in its colours above a live bar.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn paint_above(bar: &ProgressBar, line: &Painted) {
    bar.println(line.to_terminal());
}

/// Sets the words of a live bar.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn set_message(bar: &ProgressBar, words: &str) {
    bar.set_message(SafeText::line(words).as_str().to_owned());
}

/// The same with several lines, none longer than the terminal is wide.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn set_lines(bar: &ProgressBar, lines: &[String]) {
    let most = columns().unwrap_or(80).saturating_sub(1);
    let line = |line: &String| plimsoll_domain::text::clip(SafeText::line(line).as_str(), most);
    bar.set_message(lines.iter().map(line).collect::<Vec<_>>().join("\n"));
}

/// Prints a page of words on standard error.
pub fn note(text: impl Display) {
    let _ = write(stderr(), SafeText::page(&format!("{text}\n")).as_str());
}

/// Says in one line on standard error that there is nothing to show, which is no failure; standard output stays empty.
pub fn nothing_to_show(words: impl Display) -> ExitCode {
    note(words);
    ExitCode::SUCCESS
}

/// True if standard output is a terminal.
pub fn is_terminal() -> bool {
    stdout().is_terminal()
}

/// True if standard error is a terminal.
pub fn is_error_terminal() -> bool {
    stderr().is_terminal()
}

/// Waits this long; true as soon as our standard output has no reader.
pub fn is_closed_after(nap: Duration) -> bool {
    let stdout = rustix::stdio::stdout();
    // HUP and ERR are reported without being asked for: no write is needed to see that the reader is gone.
    let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
    let nap = Timespec { tv_sec: nap.as_secs() as i64, tv_nsec: i64::from(nap.subsec_nanos()) };
    let answer = poll(&mut watched, Some(&nap));
    answer.is_ok() && watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// Many answers for other programs, written together.
pub struct Answers {
    out: BufWriter<StdoutLock<'static>>,
    is_watched: bool,
}

impl Answers {
    /// Nothing has been written yet.
    pub fn to_standard_output() -> Answers {
        Answers { is_watched: is_terminal(), out: BufWriter::new(stdout().lock()) }
    }

    /// Writes JSON that may be painted: a string in it has no escape character of its own.
    pub fn json(&mut self, json: &[u8]) -> io::Result<()> {
        self.line(json, SafeText::painted_json)
    }

    /// Writes the bytes of a text.
    pub fn raw(&mut self, text: &[u8]) -> io::Result<()> {
        self.line(text, SafeText::page)
    }

    fn line(&mut self, bytes: &[u8], safe: fn(&str) -> SafeText) -> io::Result<()> {
        if !self.is_watched {
            self.out.write_all(bytes)?;
            return self.out.write_all(b"\n");
        }
        self.out.write_all(safe(&String::from_utf8_lossy(bytes)).as_str().as_bytes())?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }

    /// Writes what is left.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Leaves out what is left, where an error has said that nobody reads it: it would be tried once more otherwise.
    pub fn give_up(self) {
        let _ = self.out.into_parts();
    }
}

fn print(text: &SafeText) -> io::Result<()> {
    write(stdout(), text.as_str())
}

fn write(mut out: impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

#[expect(clippy::disallowed_methods, reason = "this is the door")]
fn stdout() -> Stdout {
    io::stdout()
}

#[expect(clippy::disallowed_methods, reason = "this is the door")]
fn stderr() -> Stderr {
    io::stderr()
}

/// Says what went wrong: exit code 1.
pub fn fail(error: impl Display) -> ExitCode {
    fail_with(error, ExitStatus::Failure)
}

/// Says what went wrong, and ends with a code of its own.
pub fn fail_with(error: impl Display, status: impl Into<ExitCode>) -> ExitCode {
    say_error(&error);
    status.into()
}

/// Says what went wrong, and what the user can do about it if something is known.
pub fn fail_with_hint(error: impl Display, hint: Option<&str>) -> ExitCode {
    match hint {
        Some(hint) => fail(format!("{error}\nhint: {hint}")),
        None => fail(error),
    }
}

/// Says what the disk refused, and what to do about it.
pub fn refused(error: &plimsoll_store::StoreError) -> ExitCode {
    fail(format!("{error}\nhint: {}", error.hint()))
}

/// Says what went wrong, on standard error.
pub fn say_error(error: &impl Display) {
    note(format!("plimsoll: {error}"));
}

/// The user's answer to a yes-or-no question: only `y` and `yes` agree.
pub fn agrees() -> bool {
    answer().is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes"))
}

/// The line that the user answers, without the spaces around it; none at the end of the input.
pub fn answer() -> Option<String> {
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer).unwrap_or(0);
    (read > 0).then(|| answer.trim().to_owned())
}
