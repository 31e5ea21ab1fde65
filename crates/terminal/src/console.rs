//! The only access to standard output and standard error. All printed text is a [`SafeText`], so untrusted text cannot control the
//! terminal. `clippy.toml` forbids printing anywhere else.
//!
//! Output for other programs (HTML, an export, the output of `query`) is unchanged in a pipe, and escaped on a terminal.

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

/// Prints text and a newline on standard output. Ignores errors, because a closed pipe is not an error.
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

/// Prints JSON, with JSON escapes for all characters that could control a terminal.
pub fn print_json(document: impl Display) {
    let _ = print_safe_text(&SafeText::from_json(&format!("{document}\n")));
}

/// Prints all lines in one write, with colors if they are enabled. Fails if the pipe is closed.
pub fn print_painted_lines(lines: &[PaintedLine]) -> io::Result<()> {
    let render = if has_colors() { PaintedLine::to_text_with_ansi_colors } else { PaintedLine::to_plain };
    let text: String = lines.iter().map(|line| render(line) + "\n").collect();
    write_and_flush(stdout(), &text)
}

/// Prints text for other programs, such as an HTML page, `export` lines for `eval`, or a path. Escaped only on a terminal.
pub fn print_text_escaped_only_on_terminal(text: &str) {
    let _ = if is_terminal() {
        print_safe_text(&SafeText::from_multiline_text(text))
    } else {
        write_and_flush(stdout(), text)
    };
}

/// Prints JSON for other programs. Escaped only on a terminal.
pub fn print_json_escaped_only_on_terminal(text: &str) {
    let _ = if is_terminal() {
        print_safe_text(&SafeText::from_json(text))
    } else {
        write_and_flush(stdout(), text)
    };
}

/// Prints text above a live progress bar.
#[expect(clippy::disallowed_methods, reason = "only this module prints")]
pub fn print_text_above_bar(bar: &ProgressBar, text: &str) {
    bar.println(SafeText::from_multiline_text(text).as_str());
}

/// Prints a colored line above a live progress bar.
#[expect(clippy::disallowed_methods, reason = "only this module prints")]
pub fn print_painted_above_bar(bar: &ProgressBar, line: &PaintedLine) {
    bar.println(line.to_text_with_ansi_colors());
}

/// Sets the text of a live progress bar.
#[expect(clippy::disallowed_methods, reason = "only this module prints")]
pub fn set_bar_message(bar: &ProgressBar, text: &str) {
    bar.set_message(SafeText::from_single_line(text).as_str().to_owned());
}

/// Sets the text of a live progress bar to several lines, each clipped to the terminal's width.
#[expect(clippy::disallowed_methods, reason = "only this module prints")]
pub fn set_bar_lines_clipped_to_width(bar: &ProgressBar, lines: &[String]) {
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

/// Waits until the reader of standard output has closed it, or until the timeout. Returns true if it is closed.
pub fn wait_and_check_stdout_closed(timeout: Duration) -> bool {
    let stdout = rustix::stdio::stdout();
    // `poll` always reports HUP and ERR, so no write is needed to detect that the reader has closed the pipe.
    let mut poll_fds = [PollFd::new(&stdout, PollFlags::empty())];
    let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
    let poll_result = poll(&mut poll_fds, Some(&timeout));
    poll_result.is_ok() && poll_fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// A buffered writer to standard output, for output that other programs read.
pub struct OutputWriter {
    writer: BufWriter<StdoutLock<'static>>,
    is_terminal: bool,
}

impl OutputWriter {
    /// Locks standard output for writing.
    pub fn for_standard_output() -> OutputWriter {
        OutputWriter { is_terminal: is_terminal(), writer: BufWriter::new(stdout().lock()) }
    }

    /// Writes a line of JSON that may contain color sequences. Its strings contain no raw escape characters.
    pub fn write_json(&mut self, json: &[u8]) -> io::Result<()> {
        self.write_line_escaped_only_on_terminal(json, SafeText::from_colored_json)
    }

    /// Writes a line of text.
    pub fn write_raw(&mut self, text: &[u8]) -> io::Result<()> {
        self.write_line_escaped_only_on_terminal(text, SafeText::from_multiline_text)
    }

    fn write_line_escaped_only_on_terminal(
        &mut self,
        bytes: &[u8],
        to_safe_text: fn(&str) -> SafeText,
    ) -> io::Result<()> {
        if !self.is_terminal {
            self.writer.write_all(bytes)?;
            return self.writer.write_all(b"\n");
        }
        self.writer.write_all(to_safe_text(&String::from_utf8_lossy(bytes)).as_str().as_bytes())?;
        self.writer.write_all(b"\n")?;
        self.writer.flush()
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Discards the buffer after a write error. Dropping it would try to write once more.
    pub fn discard_buffer(self) {
        let _ = self.writer.into_parts();
    }
}

fn print_safe_text(text: &SafeText) -> io::Result<()> {
    write_and_flush(stdout(), text.as_str())
}

fn write_and_flush(mut writer: impl Write, text: &str) -> io::Result<()> {
    writer.write_all(text.as_bytes()).and_then(|()| writer.flush())
}

#[expect(clippy::disallowed_methods, reason = "only this module prints")]
fn stdout() -> Stdout {
    io::stdout()
}

#[expect(clippy::disallowed_methods, reason = "only this module prints")]
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

/// Prints an error and its hint, if any, and returns exit code 1.
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
