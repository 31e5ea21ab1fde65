//! Reads standard input that is piped to a command. Never reads a terminal, except if the user requests standard input with `-`.

pub use plimsoll_system::standard_streams::{ReadStep, wait_for_terminal_input_and_return_remaining_time};
use plimsoll_system::standard_streams::{StandardInput, wait_for_first_input};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How long to wait for the first byte, because the program that writes to the pipe starts at the same time.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_millis(300);
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
    if std::io::stdin().is_terminal() {
        return None;
    }
    let mut bytes = wait_for_first_input(FIRST_BYTE_TIMEOUT)?;
    let max_further_bytes = MAX_DOCUMENT_BYTES.saturating_sub(bytes.len()) as u64;
    bytes.append(&mut plimsoll_store::disk::read_stdin_up_to(max_further_bytes).ok()?);
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
    input: StandardInput,
    bytes: Vec<u8>,
}

impl StandardInputReader {
    /// Creates a reader. Returns `None` if standard input is a terminal.
    pub fn open_unless_terminal() -> Option<StandardInputReader> {
        let is_terminal = std::io::stdin().is_terminal();
        (!is_terminal).then(|| StandardInputReader { input: StandardInput::new(), bytes: Vec::new() })
    }

    /// Waits for more bytes for at most `timeout`, and appends them. Keeps only the last bytes if there are too many.
    pub fn wait_and_append_next_bytes(&mut self, timeout: Duration) -> ReadStep {
        let step = self.input.wait_and_append_next_bytes(&mut self.bytes, timeout);
        // The important part of the output is at its end.
        let excess_bytes = self.bytes.len().saturating_sub(MAX_DOCUMENT_BYTES);
        self.bytes.drain(..excess_bytes);
        step
    }

    pub fn has_bytes(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Returns the bytes that were read, or `None` if there is only white space.
    pub fn into_bytes_unless_blank(self) -> Option<Vec<u8>> {
        none_if_blank(self.bytes)
    }
}
