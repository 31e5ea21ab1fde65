//! The only access to standard output and standard error. All printed text is a [`SafeText`], so untrusted text cannot control the
//! terminal. `clippy.toml` forbids printing anywhere else.
//!
//! Output for other programs (HTML, an export, the output of `query`) is unchanged in a pipe, and escaped on a terminal.

mod painted;

use crate::columns::{wrap_line, wrap_text};
use indicatif::ProgressBar;
pub use painted::PaintedLine;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::text::{SafeText, capitalize};
use plimsoll_domain::{Marker, Timestamp};
use plimsoll_store::{clock, environment};
pub use plimsoll_system::standard_streams::wait_and_check_stdout_closed;
use plimsoll_system::standard_streams::{
    enable_ansi_sequences, stderr_terminal_columns, stdout_terminal_columns,
};
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Stderr, Stdout, StdoutLock, Write};
use std::process::ExitCode;

/// The width if the terminal's width is unknown. Also the maximum, because longer lines are hard to read.
const DEFAULT_WIDTH: usize = 100;
/// The minimum width; text cannot be laid out in fewer columns.
const MIN_WIDTH: usize = 40;

/// Prints text and a newline on standard output, wrapped at spaces on a terminal. Ignores errors, because a closed pipe is not
/// an error.
pub fn print_text(text: impl Display) {
    let safe_text = SafeText::from_multiline_text(&format!("{text}\n"));
    let _ = match terminal_columns() {
        Some(columns) => write_and_flush(stdout(), &wrap_text(safe_text.as_str(), columns)),
        None => print_safe_text(&safe_text),
    };
}

/// Returns true if standard output is a terminal that understands ANSI sequences, and `NO_COLOR` is not set.
pub fn has_colors() -> bool {
    is_terminal() && environment::variable("NO_COLOR").is_none() && enable_ansi_sequences()
}

/// Returns true if standard error is a terminal that understands ANSI sequences, and `NO_COLOR` is not set.
pub fn has_error_colors() -> bool {
    is_error_terminal() && environment::variable("NO_COLOR").is_none() && enable_ansi_sequences()
}

/// Prints a help text, which consists of texts of the program and may contain colors.
pub fn print_help(text: &str, is_for_stderr: bool) {
    let _ = if is_for_stderr { write_and_flush(stderr(), text) } else { write_and_flush(stdout(), text) };
}

/// Returns the width of the terminal on standard output, or `None` if it is not a terminal.
pub fn terminal_columns() -> Option<usize> {
    is_terminal().then(stdout_terminal_columns).flatten().filter(|columns| *columns > 0)
}

/// Returns `COLUMNS` if it is set, otherwise the terminal's width but at most the default, otherwise the default. At least
/// the minimum width.
pub fn line_width_from_columns_or_terminal() -> usize {
    let configured_columns = environment::numeric_variable("COLUMNS").filter(|columns| *columns >= 1.0);
    let width = configured_columns.map_or_else(
        || terminal_columns().unwrap_or(DEFAULT_WIDTH).min(DEFAULT_WIDTH),
        |columns| columns as usize,
    );
    width.max(MIN_WIDTH)
}

/// Returns a marker's words for people on a terminal, and the marker for programs in a pipe or a file.
pub fn description_on_terminal_else_marker(marker: &Marker) -> String {
    if is_terminal() { capitalize(&describe_marker(marker)) } else { marker.to_string() }
}

/// Describes a marker in words, with a lower-case start and local times.
pub fn describe_marker(marker: &Marker) -> String {
    marker.describe(|time: &Timestamp| {
        clock::parse_timestamp(time).map_or_else(|| time.to_string(), clock::format_local_time_with_seconds)
    })
}

/// Prints a question without a newline, so that the answer follows on the same line.
pub fn print_question(question: impl Display) {
    let _ = print_safe_text(&SafeText::from_single_line(&question.to_string()));
}

/// Prints JSON, with JSON escapes for all characters that could control a terminal.
pub fn print_json(document: impl Display) {
    let _ = print_safe_text(&SafeText::from_json(&format!("{document}\n")));
}

/// Prints all lines in one write, with colors if they are enabled, and wrapped at spaces on a terminal. Further lines are
/// indented by `indent_columns`. Fails if the pipe is closed.
pub fn print_painted_lines(lines: &[PaintedLine], indent_columns: usize) -> io::Result<()> {
    let render = if has_colors() { PaintedLine::to_text_with_ansi_colors } else { PaintedLine::to_plain };
    let columns = terminal_columns().unwrap_or(usize::MAX);
    let wrapped_lines = lines.iter().flat_map(|line| line.wrap(columns, indent_columns));
    let text: String = wrapped_lines.map(|line| render(&line) + "\n").collect();
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

/// Prints a line above a live progress bar, wrapped at spaces, with colors if they are enabled. Further lines are indented by
/// `indent_columns`.
#[expect(clippy::disallowed_methods, reason = "only this module prints")]
pub fn print_painted_above_bar(bar: &ProgressBar, line: &PaintedLine, indent_columns: usize) {
    let render = if has_colors() { PaintedLine::to_text_with_ansi_colors } else { PaintedLine::to_plain };
    // The bar pads its lines, so a line that fills the terminal would run into the next one.
    let max_columns = terminal_columns().map_or(usize::MAX, |columns| columns.saturating_sub(1));
    for wrapped_line in line.wrap(max_columns, indent_columns) {
        bar.println(render(&wrapped_line));
    }
}

/// Sets the text of a live progress bar.
#[expect(clippy::disallowed_methods, reason = "only this module prints")]
pub fn set_bar_message(bar: &ProgressBar, text: &str) {
    bar.set_message(SafeText::from_single_line(text).as_str().to_owned());
}

/// Sets the text of a live progress bar to several lines.
#[expect(clippy::disallowed_methods, reason = "only this module prints")]
pub fn set_bar_lines(bar: &ProgressBar, lines: &[String]) {
    let to_safe_line = |line: &String| SafeText::from_single_line(line).as_str().to_owned();
    bar.set_message(lines.iter().map(to_safe_line).collect::<Vec<_>>().join("\n"));
}

/// Sets the text after the elapsed time of a live progress bar.
pub fn set_bar_prefix(bar: &ProgressBar, text: &str) {
    bar.set_prefix(SafeText::from_single_line(text).as_str().to_owned());
}

/// Prints text and a newline on standard error, wrapped at spaces on a terminal.
pub fn print_to_stderr(text: impl Display) {
    let safe_text = SafeText::from_multiline_text(&format!("{text}\n"));
    let _ = match stderr_columns() {
        Some(columns) => write_and_flush(stderr(), &wrap_text(safe_text.as_str(), columns)),
        None => write_and_flush(stderr(), safe_text.as_str()),
    };
}

/// Returns the width of the terminal on standard error, or `None` if it is not a terminal.
fn stderr_columns() -> Option<usize> {
    is_error_terminal().then(stderr_terminal_columns).flatten().filter(|columns| *columns > 0)
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
    print_with_label(MessageLabel::Error, error);
}

/// Prints a warning on standard error.
pub fn print_warning(warning: &impl Display) {
    print_with_label(MessageLabel::Warning, warning);
}

/// Prints a hint on standard error.
pub fn print_hint(hint: &impl Display) {
    print_with_label(MessageLabel::Hint, hint);
}

/// Prints a message on standard error that is neither an error nor advice.
pub fn print_notice(notice: &impl Display) {
    print_to_stderr(notice);
}

/// The label of a message on standard error, with the same texts and colors as in clap's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageLabel {
    Error,
    Warning,
    Hint,
}

impl MessageLabel {
    fn text(self) -> &'static str {
        match self {
            MessageLabel::Error => "error:",
            MessageLabel::Warning => "warning:",
            MessageLabel::Hint => "hint:",
        }
    }

    fn with_color(self) -> String {
        let color_code = match self {
            MessageLabel::Error => "31",
            MessageLabel::Warning => "33",
            MessageLabel::Hint => "36",
        };
        format!("\x1b[1m\x1b[{color_code}m{}\x1b[0m", self.text())
    }
}

fn print_with_label(label: MessageLabel, message: &impl Display) {
    let text = render_with_label(label, &message.to_string(), has_error_colors(), stderr_columns());
    let _ = write_and_flush(stderr(), &text);
}

/// Renders a message with its label, wrapped at spaces. A further line that starts with `hint:` is a hint about the message.
fn render_with_label(
    label: MessageLabel,
    message: &str,
    has_colors: bool,
    max_columns: Option<usize>,
) -> String {
    const HANGING_INDENT: usize = 2;
    let mut text = String::new();
    for (index, line) in SafeText::from_multiline_text(message).as_str().lines().enumerate() {
        let (line, label) = match index {
            0 => (format!("{} {line}", label.text()), Some(label)),
            _ => (line.to_owned(), line.starts_with(MessageLabel::Hint.text()).then_some(MessageLabel::Hint)),
        };
        let wrapped = wrap_line(&line, max_columns.unwrap_or(usize::MAX), HANGING_INDENT).join("\n");
        match label
            .filter(|_| has_colors)
            .and_then(|label| Some((label, wrapped.strip_prefix(label.text())?)))
        {
            Some((label, rest)) => text += &format!("{}{rest}\n", label.with_color()),
            None => text += &format!("{wrapped}\n"),
        }
    }
    text
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_and_its_hint_have_labels_like_claps() {
        let message = "no fleet `a\u{1b}[2J`\nhint: plimsoll fleet status";
        assert_eq!(
            render_with_label(MessageLabel::Error, message, false, None),
            "error: no fleet `a\\u{1b}[2J`\nhint: plimsoll fleet status\n"
        );
        assert_eq!(
            render_with_label(MessageLabel::Warning, "one\nhint: two", true, None),
            "\x1b[1m\x1b[33mwarning:\x1b[0m one\n\x1b[1m\x1b[36mhint:\x1b[0m two\n"
        );
        assert_eq!(
            render_with_label(MessageLabel::Warning, "one two three\nhint: four five six", true, Some(14)),
            "\x1b[1m\x1b[33mwarning:\x1b[0m one\n  two three\n\x1b[1m\x1b[36mhint:\x1b[0m four\n  five six\n"
        );
        let clap_error = clap::Command::new("x").try_get_matches_from(["x", "--y"]).unwrap_err();
        let label = MessageLabel::Error.with_color();
        assert!(clap_error.render().ansi().to_string().starts_with(&format!("{label} ")));
    }
}
