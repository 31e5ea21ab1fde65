//! Reads standard input that is piped to a command. Never reads a terminal, except if the user requests standard input with `-`.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{IsTerminal, Stdin};
use std::time::{Duration, Instant};

/// How long to wait for the first byte, because the program that writes to the pipe starts at the same time.
const FIRST_BYTE_TIMEOUT: Timespec = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };
const MAX_DOCUMENT_BYTES: usize = 64 * 1024 * 1024;

/// How long to wait for the end of the input. The notice shows this limit to the user.
const MAX_WAIT: Duration = Duration::from_secs(2 * 60 * 60);
/// A notice is printed after this time, because standard input may have been left open by mistake.
const NOTICE_DELAY: Duration = Duration::from_secs(10);

/// Reads standard input to its end or for at most 2 hours, for a loop that pipes a session's output to this program. Returns `None`
/// for a terminal or blank input.
pub fn read_nonblank_piped_input_up_to_max_wait() -> Option<Vec<u8>> {
    let mut reader = StandardInputReader::open_unless_terminal()?;
    let (start_time, mut has_shown_notice) = (Instant::now(), false);
    while start_time.elapsed() < MAX_WAIT {
        match reader.wait_and_append_next_bytes(Duration::from_millis(300)) {
            ReadStep::End => break,
            ReadStep::NothingYet if start_time.elapsed() > NOTICE_DELAY && !has_shown_notice => {
                has_shown_notice = true;
                crate::console::print_notice(
                    &"waiting for the session's output on standard input, at most 2 h; to judge without it: plimsoll gate < /dev/null",
                );
            }
            ReadStep::BytesRead | ReadStep::NothingYet => {}
        }
    }
    reader.into_bytes_unless_blank()
}

/// Reads a document from standard input. Returns `None` for a terminal, for blank input, or if no data arrives in time.
pub fn read_nonblank_piped_input_if_data_arrives() -> Option<Vec<u8>> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return None;
    }
    let mut poll_fds = [PollFd::new(&stdin, PollFlags::IN)];
    let ready_count = poll(&mut poll_fds, Some(&FIRST_BYTE_TIMEOUT)).unwrap_or(0);
    if ready_count == 0 {
        return None;
    }
    let bytes = plimsoll_store::disk::read_stdin_up_to(MAX_DOCUMENT_BYTES as u64).ok()?;
    none_if_blank(bytes)
}

/// An error while reading a text.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    #[error("cannot read standard input: {0}")]
    Unreadable(std::io::Error),
    #[error("standard input is not UTF-8 text")]
    NotUtf8,
}

/// Returns the text itself, or all of standard input if the text is `-`.
pub fn text_or_stdin_if_dash(text: &str) -> Result<String, InputError> {
    const MAX_TEXT_BYTES: u64 = 1024 * 1024;
    if text != "-" {
        return Ok(text.to_owned());
    }
    let bytes = plimsoll_store::disk::read_stdin_up_to(MAX_TEXT_BYTES).map_err(InputError::Unreadable)?;
    let text = String::from_utf8(bytes).map_err(|_| InputError::NotUtf8)?;
    Ok(text.trim_end_matches('\n').to_owned())
}

fn none_if_blank(bytes: Vec<u8>) -> Option<Vec<u8>> {
    (!bytes.iter().all(u8::is_ascii_whitespace)).then_some(bytes)
}

/// Reads standard input in steps, so that the caller can stop at any time.
pub struct StandardInputReader {
    stdin: Stdin,
    bytes: Vec<u8>,
}

/// The result of one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadStep {
    /// Bytes were read.
    BytesRead,
    /// No bytes arrived before the timeout.
    NothingYet,
    /// The end of the input, or an error.
    End,
}

impl StandardInputReader {
    /// Creates a reader. Returns `None` if standard input is a terminal.
    pub fn open_unless_terminal() -> Option<StandardInputReader> {
        let stdin = std::io::stdin();
        (!stdin.is_terminal()).then(|| StandardInputReader { stdin, bytes: Vec::new() })
    }

    /// Waits for more bytes for at most `timeout`, and appends them. Keeps only the last bytes if there are too many.
    pub fn wait_and_append_next_bytes(&mut self, timeout: Duration) -> ReadStep {
        let timeout =
            Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        let mut poll_fds = [PollFd::new(&self.stdin, PollFlags::IN)];
        if !poll(&mut poll_fds, Some(&timeout)).is_ok_and(|ready_count| ready_count > 0) {
            return ReadStep::NothingYet;
        }
        let mut buffer = [0; 64 * 1024];
        // Bypasses the buffer of `std`, because `poll` does not see bytes in it.
        match rustix::io::read(&self.stdin, &mut buffer) {
            Ok(0) => ReadStep::End,
            Ok(byte_count) => {
                self.bytes.extend_from_slice(&buffer[..byte_count]);
                // The important part of the output is at its end.
                let excess_bytes = self.bytes.len().saturating_sub(MAX_DOCUMENT_BYTES);
                self.bytes.drain(..excess_bytes);
                ReadStep::BytesRead
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => ReadStep::NothingYet,
            Err(_) => ReadStep::End,
        }
    }

    pub fn has_bytes(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Returns the bytes that were read, or `None` if there is only white space.
    pub fn into_bytes_unless_blank(self) -> Option<Vec<u8>> {
        none_if_blank(self.bytes)
    }
}
