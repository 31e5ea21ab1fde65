//! Waits for the standard streams, and the width of the terminals behind them.

#[cfg_attr(unix, path = "standard_streams/unix.rs")]
#[cfg_attr(windows, path = "standard_streams/windows.rs")]
mod platform;

use std::io;
use std::time::Duration;

/// Returns the width of the terminal on standard output, or `None` if it is not a terminal. May be 0.
pub fn stdout_terminal_columns() -> Option<usize> {
    platform::stdout_terminal_columns()
}

/// Returns the width of the terminal on standard error, or `None` if it is not a terminal. May be 0.
pub fn stderr_terminal_columns() -> Option<usize> {
    platform::stderr_terminal_columns()
}

/// Returns true if terminals understand ANSI escape sequences. A console of Windows only does after this call, and an old
/// one never.
pub fn enable_ansi_sequences() -> bool {
    platform::enable_ansi_sequences()
}

/// Waits until the reader of standard output has closed it, or until the timeout. Returns true if it is closed. On Windows
/// only a write shows this, so it always waits and returns false.
pub fn wait_and_check_stdout_closed(timeout: Duration) -> bool {
    platform::wait_and_check_stdout_closed(timeout)
}

/// Waits for the first input or the end of standard input, at most until the timeout. Returns the bytes that had to be
/// read to find out, which may be none, or `None` after the timeout. Call it once, and only if standard input is not a
/// terminal.
pub fn wait_for_first_input(timeout: Duration) -> Option<Vec<u8>> {
    platform::wait_for_first_input(timeout)
}

/// Waits for input of the terminal on standard input, at most until the timeout. Returns the time that is left to wait: on
/// Windows all of it, because only the library that reads keys can wait for them.
///
/// # Errors
/// Standard input has been closed.
pub fn wait_for_terminal_input_and_return_remaining_time(timeout: Duration) -> io::Result<Duration> {
    platform::wait_for_terminal_input_and_return_remaining_time(timeout)
}

/// The result of reading the next input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadStep {
    /// Bytes were read.
    BytesRead,
    /// No bytes arrived before the timeout.
    NothingYet,
    /// The end of the input, or an error.
    End,
}

/// Reads standard input in steps, each with a timeout.
pub struct StandardInput(platform::StandardInput);

impl StandardInput {
    /// Creates a reader. Standard input must not be read in any other way from then on.
    #[expect(clippy::new_without_default, reason = "it takes over a stream of the process")]
    pub fn new() -> StandardInput {
        StandardInput(platform::StandardInput::new())
    }

    /// Waits for more bytes for at most `timeout`, and appends them.
    pub fn wait_and_append_next_bytes(&mut self, bytes: &mut Vec<u8>, timeout: Duration) -> ReadStep {
        self.0.wait_and_append_next_bytes(bytes, timeout)
    }
}
