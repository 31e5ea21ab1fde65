//! Polls the standard streams.

use super::ReadStep;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::tcgetwinsize;
use std::io::{self, Stdin};
use std::time::Duration;

pub(super) fn stdout_terminal_columns() -> Option<usize> {
    tcgetwinsize(rustix::stdio::stdout()).ok().map(|size| usize::from(size.ws_col))
}

pub(super) fn stderr_terminal_columns() -> Option<usize> {
    tcgetwinsize(rustix::stdio::stderr()).ok().map(|size| usize::from(size.ws_col))
}

pub(super) fn enable_ansi_sequences() -> bool {
    true
}

pub(super) fn wait_and_check_stdout_closed(timeout: Duration) -> bool {
    let stdout = rustix::stdio::stdout();
    // `poll` always reports HUP and ERR, so no write is needed to detect that the reader has closed the pipe.
    let mut poll_fds = [PollFd::new(&stdout, PollFlags::empty())];
    let poll_result = poll(&mut poll_fds, Some(&to_timespec(timeout)));
    poll_result.is_ok() && poll_fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

fn to_timespec(timeout: Duration) -> Timespec {
    Timespec { tv_sec: timeout.as_secs().cast_signed(), tv_nsec: i64::from(timeout.subsec_nanos()) }
}

pub(super) fn wait_for_first_input(timeout: Duration) -> Option<Vec<u8>> {
    is_input_ready(&io::stdin(), timeout).then(Vec::new)
}

fn is_input_ready(stdin: &Stdin, timeout: Duration) -> bool {
    let mut poll_fds = [PollFd::new(stdin, PollFlags::IN)];
    poll(&mut poll_fds, Some(&to_timespec(timeout))).is_ok_and(|ready_count| ready_count > 0)
}

pub(super) fn wait_for_terminal_input_and_return_remaining_time(timeout: Duration) -> io::Result<Duration> {
    let stdin = io::stdin();
    let mut poll_fds = [PollFd::new(&stdin, PollFlags::IN)];
    let timeout = Timespec::try_from(timeout).ok();
    // A signal may interrupt the call; the caller checks for signals.
    let _ = poll(&mut poll_fds, timeout.as_ref());
    if poll_fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(Duration::ZERO)
}

pub(super) struct StandardInput(Stdin);

impl StandardInput {
    pub(super) fn new() -> StandardInput {
        StandardInput(io::stdin())
    }

    pub(super) fn wait_and_append_next_bytes(&mut self, bytes: &mut Vec<u8>, timeout: Duration) -> ReadStep {
        if !is_input_ready(&self.0, timeout) {
            return ReadStep::NothingYet;
        }
        let mut buffer = [0; 64 * 1024];
        // Bypasses the buffer of `std`, because `poll` does not see bytes in it.
        match rustix::io::read(&self.0, &mut buffer) {
            Ok(0) => ReadStep::End,
            Ok(byte_count) => {
                bytes.extend_from_slice(&buffer[..byte_count]);
                ReadStep::BytesRead
            }
            Err(Errno::INTR | Errno::AGAIN) => ReadStep::NothingYet,
            Err(_) => ReadStep::End,
        }
    }
}
