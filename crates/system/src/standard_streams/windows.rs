//! A pipe cannot be polled on Windows, so standard input is read by a thread where a timeout applies.

use super::ReadStep;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel, sync_channel};
use std::time::Duration;
use terminal_size::{Width, terminal_size_of};

const BUFFER_BYTES: usize = 64 * 1024;
/// How many chunks may wait to be received.
const MAX_WAITING_CHUNKS: usize = 4;

#[expect(clippy::disallowed_methods, reason = "nothing is printed: only the size of the terminal is queried")]
pub(super) fn stdout_terminal_columns() -> Option<usize> {
    terminal_size_of(io::stdout()).map(|(Width(columns), _)| usize::from(columns))
}

#[expect(clippy::disallowed_methods, reason = "nothing is printed: only the size of the terminal is queried")]
pub(super) fn stderr_terminal_columns() -> Option<usize> {
    terminal_size_of(io::stderr()).map(|(Width(columns), _)| usize::from(columns))
}

pub(super) fn enable_ansi_sequences() -> bool {
    // `None` means that no console is there: a terminal such as mintty is a pipe, and understands the sequences.
    anstyle_query::windows::enable_ansi_colors().unwrap_or(true)
}

pub(super) fn wait_and_check_stdout_closed(timeout: Duration) -> bool {
    std::thread::sleep(timeout);
    false
}

pub(super) fn wait_for_first_input(timeout: Duration) -> Option<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut buffer = vec![0; BUFFER_BYTES];
        let length = read_once(&mut buffer).unwrap_or(0);
        buffer.truncate(length);
        let _ = sender.send(buffer);
    });
    receiver.recv_timeout(timeout).ok()
}

fn read_once(buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match io::stdin().read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

pub(super) fn wait_for_terminal_input_and_return_remaining_time(timeout: Duration) -> io::Result<Duration> {
    Ok(timeout)
}

pub(super) struct StandardInput(Receiver<Vec<u8>>);

impl StandardInput {
    pub(super) fn new() -> StandardInput {
        let (sender, receiver) = sync_channel(MAX_WAITING_CHUNKS);
        std::thread::spawn(move || {
            let mut buffer = vec![0; BUFFER_BYTES];
            while let Ok(length @ 1..) = read_once(&mut buffer) {
                if sender.send(buffer[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        StandardInput(receiver)
    }

    pub(super) fn wait_and_append_next_bytes(&mut self, bytes: &mut Vec<u8>, timeout: Duration) -> ReadStep {
        match self.0.recv_timeout(timeout) {
            Ok(chunk) => {
                bytes.extend_from_slice(&chunk);
                ReadStep::BytesRead
            }
            Err(RecvTimeoutError::Timeout) => ReadStep::NothingYet,
            Err(RecvTimeoutError::Disconnected) => ReadStep::End,
        }
    }
}
