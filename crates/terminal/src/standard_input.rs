//! Standard input for shell scripts: a document if one is piped, otherwise nothing. Never waits for a terminal or for a pipe without
//! data, except if the user asks for standard input with `-`.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{IsTerminal, Stdin};
use std::time::{Duration, Instant};

/// The program that writes to the pipe starts at the same time, so it gets this long.
const FIRST_BYTE_TIMEOUT: Timespec = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };
const MAX_DOCUMENT_BYTES: usize = 64 * 1024 * 1024;

/// A session without output for longer is assumed to be gone. The notice tells the user this limit.
const MAX_WAIT: Duration = Duration::from_secs(2 * 60 * 60);
/// Notice after this wait, because somebody may have left standard input open by mistake.
const NOTICE_DELAY: Duration = Duration::from_secs(10);

/// Reads standard input to its end, for a loop that pipes a session's output to us. Returns `None` for a terminal or blank input.
pub fn read_piped_input_to_end() -> Option<Vec<u8>> {
    let mut reader = StandardInputReader::open_unless_terminal()?;
    let (started, mut is_reported) = (Instant::now(), false);
    while started.elapsed() < MAX_WAIT {
        match reader.read_available(Duration::from_millis(300)) {
            ReadStep::End => break,
            ReadStep::NothingYet if started.elapsed() > NOTICE_DELAY && !is_reported => {
                is_reported = true;
                crate::console::print_error(
                    &"waiting for the session's output on standard input, at most 2 h; to judge without it: plimsoll gate < /dev/null",
                );
            }
            ReadStep::BytesRead | ReadStep::NothingYet => {}
        }
    }
    reader.into_document()
}

/// Reads a document from standard input. Returns `None` for a terminal, for blank input, or if no data comes in time.
pub fn read_document_if_piped() -> Option<Vec<u8>> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return None;
    }
    let mut poll_fds = [PollFd::new(&stdin, PollFlags::IN)];
    let ready_count = poll(&mut poll_fds, Some(&FIRST_BYTE_TIMEOUT)).unwrap_or(0);
    if ready_count == 0 {
        return None;
    }
    let bytes = plimsoll_store::disk::read_stdin(MAX_DOCUMENT_BYTES as u64).ok()?;
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
pub fn text_or_standard_input(text: &str) -> Result<String, InputError> {
    const MAX_TEXT_BYTES: u64 = 1024 * 1024;
    if text != "-" {
        return Ok(text.to_owned());
    }
    let bytes = plimsoll_store::disk::read_stdin(MAX_TEXT_BYTES).map_err(InputError::Unreadable)?;
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

/// The result of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadStep {
    /// Bytes were read.
    BytesRead,
    /// No bytes came in time.
    NothingYet,
    /// The end of the input, or an error.
    End,
}

impl StandardInputReader {
    /// Returns `None` if standard input is a terminal.
    pub fn open_unless_terminal() -> Option<StandardInputReader> {
        let stdin = std::io::stdin();
        (!stdin.is_terminal()).then(|| StandardInputReader { stdin, bytes: Vec::new() })
    }

    /// Waits for more bytes, at most this long, and reads them. Keeps only the last bytes if there are too many.
    pub fn read_available(&mut self, timeout: Duration) -> ReadStep {
        let timeout =
            Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        let mut poll_fds = [PollFd::new(&self.stdin, PollFlags::IN)];
        if !poll(&mut poll_fds, Some(&timeout)).is_ok_and(|ready| ready > 0) {
            return ReadStep::NothingYet;
        }
        let mut buffer = [0; 64 * 1024];
        // Not through `std`'s buffer: `poll` does not see bytes that are already there.
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

    /// Returns what was read, or `None` if it is only white space.
    pub fn into_document(self) -> Option<Vec<u8>> {
        none_if_blank(self.bytes)
    }
}
