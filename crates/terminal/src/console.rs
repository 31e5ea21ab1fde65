//! The only access to standard output and standard error. Everything printed is a [`SafeText`], so text from elsewhere cannot control
//! the terminal. `clippy.toml` forbids printing anywhere else.
//!
//! Bytes for other programs (HTML, an export, the output of `query`) are unchanged in a pipe, and escaped on a terminal.

mod painted;

use indicatif::ProgressBar;
pub use painted::PaintedLine;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::text::SafeText;
use plimsoll_store::environment;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Stderr, Stdout, StdoutLock, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Prints text and a newline on standard output. Ignores errors: a reader that is gone is not an error.
pub fn print_text(text: impl Display) {
    let _ = print_safe_text(&SafeText::from_multiline_text(&format!("{text}\n")));
}

/// Returns true if standard output is a terminal and `NO_COLOR` is not set.
pub fn has_colors() -> bool {
    is_terminal() && environment::variable("NO_COLOR").is_none()
}

/// Returns the width of the terminal on standard output, or `None` if it is not a terminal.
pub fn terminal_columns() -> Option<usize> {
    let size = is_terminal().then(|| rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok());
    size.flatten().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Prints a question without a newline, so that the answer follows on the same line.
pub fn print_question(question: impl Display) {
    let _ = print_safe_text(&SafeText::from_single_line(&question.to_string()));
}

/// Prints JSON with every character escaped that could control a terminal. The value stays the same.
pub fn print_json(document: impl Display) {
    let _ = print_safe_text(&SafeText::from_json(&format!("{document}\n")));
}

/// Prints lines at once, with colors if the terminal has them. Fails if the reader is gone.
pub fn print_painted_lines(lines: &[PaintedLine]) -> io::Result<()> {
    let render = if has_colors() { PaintedLine::to_terminal } else { PaintedLine::to_plain };
    let text: String = lines.iter().map(|line| render(line) + "\n").collect();
    write_and_flush(stdout(), &text)
}

/// Prints text for other programs, such as a page, exports for `eval`, or a path. Escaped only on a terminal.
pub fn print_data(text: &str) {
    let _ = if is_terminal() {
        print_safe_text(&SafeText::from_multiline_text(text))
    } else {
        write_and_flush(stdout(), text)
    };
}

/// Prints JSON for other programs. Escaped only on a terminal.
pub fn print_json_data(text: &str) {
    let _ = if is_terminal() {
        print_safe_text(&SafeText::from_json(text))
    } else {
        write_and_flush(stdout(), text)
    };
}

/// Prints text above a live progress bar.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn print_text_above_bar(bar: &ProgressBar, text: &str) {
    bar.println(SafeText::from_multiline_text(text).as_str());
}

/// Prints a colored line above a live progress bar.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn print_painted_above_bar(bar: &ProgressBar, line: &PaintedLine) {
    bar.println(line.to_terminal());
}

/// Sets the text of a live progress bar.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn set_bar_message(bar: &ProgressBar, text: &str) {
    bar.set_message(SafeText::from_single_line(text).as_str().to_owned());
}

/// Sets the text of a live progress bar to several lines, each cut to the terminal's width.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn set_bar_lines(bar: &ProgressBar, lines: &[String]) {
    let max_columns = terminal_columns().unwrap_or(80).saturating_sub(1);
    let clip_line = |line: &String| {
        plimsoll_domain::text::truncate_end(SafeText::from_single_line(line).as_str(), max_columns)
    };
    bar.set_message(lines.iter().map(clip_line).collect::<Vec<_>>().join("\n"));
}

/// Prints text and a newline on standard error.
pub fn print_to_stderr(text: impl Display) {
    let _ = write_and_flush(stderr(), SafeText::from_multiline_text(&format!("{text}\n")).as_str());
}

/// Prints on standard error that there is nothing to show, and returns success. Standard output stays empty.
pub fn print_nothing_to_show(text: impl Display) -> ExitCode {
    print_to_stderr(text);
    ExitCode::SUCCESS
}

pub fn is_terminal() -> bool {
    stdout().is_terminal()
}

pub fn is_error_terminal() -> bool {
    stderr().is_terminal()
}

/// Waits until the reader of standard output is gone or the time is over. Returns true if the reader is gone.
pub fn wait_and_check_stdout_closed(timeout: Duration) -> bool {
    let stdout = rustix::stdio::stdout();
    // `poll` always reports HUP and ERR, so no write is needed to see that the reader is gone.
    let mut poll_fds = [PollFd::new(&stdout, PollFlags::empty())];
    let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
    let poll_result = poll(&mut poll_fds, Some(&timeout));
    poll_result.is_ok() && poll_fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// A buffered writer for output that other programs read.
pub struct OutputWriter {
    out: BufWriter<StdoutLock<'static>>,
    is_terminal: bool,
}

impl OutputWriter {
    /// Locks standard output for writing.
    pub fn for_standard_output() -> OutputWriter {
        OutputWriter { is_terminal: is_terminal(), out: BufWriter::new(stdout().lock()) }
    }

    /// Writes JSON that may contain color sequences. Its strings contain no raw escape characters.
    pub fn write_json(&mut self, json: &[u8]) -> io::Result<()> {
        self.write_line(json, SafeText::from_colored_json)
    }

    /// Writes a text's bytes.
    pub fn write_raw(&mut self, text: &[u8]) -> io::Result<()> {
        self.write_line(text, SafeText::from_multiline_text)
    }

    fn write_line(&mut self, bytes: &[u8], to_safe_text: fn(&str) -> SafeText) -> io::Result<()> {
        if !self.is_terminal {
            self.out.write_all(bytes)?;
            return self.out.write_all(b"\n");
        }
        self.out.write_all(to_safe_text(&String::from_utf8_lossy(bytes)).as_str().as_bytes())?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }

    /// Flushes the buffer.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Discards the buffer after a write error. Dropping it would try to write once more.
    pub fn discard_buffer(self) {
        let _ = self.out.into_parts();
    }
}

fn print_safe_text(text: &SafeText) -> io::Result<()> {
    write_and_flush(stdout(), text.as_str())
}

fn write_and_flush(mut out: impl Write, text: &str) -> io::Result<()> {
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

/// Prints an error and returns exit code 1.
pub fn fail(error: impl Display) -> ExitCode {
    fail_with(error, ExitStatus::Failure)
}

/// Prints an error and returns this exit code.
pub fn fail_with(error: impl Display, status: impl Into<ExitCode>) -> ExitCode {
    print_error(&error);
    status.into()
}

/// Prints an error with a hint, if there is one, and returns exit code 1.
pub fn fail_with_hint(error: impl Display, hint: Option<&str>) -> ExitCode {
    match hint {
        Some(hint) => fail(format!("{error}\nhint: {hint}")),
        None => fail(error),
    }
}

/// Prints an error of the store with its hint, and returns exit code 1.
pub fn fail_with_store_error(error: &plimsoll_store::StoreError) -> ExitCode {
    fail(format!("{error}\nhint: {}", error.hint()))
}

/// Prints an error on standard error.
pub fn print_error(error: &impl Display) {
    print_to_stderr(format!("plimsoll: {error}"));
}

/// Reads the answer to a yes-or-no question. Returns true only for `y` and `yes`.
pub fn read_confirmation() -> bool {
    read_answer_line().is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes"))
}

/// Reads a line from standard input and trims it. Returns `None` at the end of the input.
pub fn read_answer_line() -> Option<String> {
    let mut line = String::new();
    let byte_count = io::stdin().read_line(&mut line).unwrap_or(0);
    (byte_count > 0).then(|| line.trim().to_owned())
}
