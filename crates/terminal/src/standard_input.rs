//! Standard input for shell glue: a document if somebody pipes one, and nothing if nobody does. A loop's own
//! terminal, or a pipe on which nothing comes, is never waited for, except where the user asks for it with `-`.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{IsTerminal, Stdin};
use std::time::{Duration, Instant};

/// A pipe's writer starts together with us: it is given this long.
const TIMEOUT: Timespec = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };
const LONGEST: usize = 64 * 1024 * 1024;

/// A session that says nothing for longer is not coming back; whoever waits is told how long.
const LONGEST_WAIT: Duration = Duration::from_secs(2 * 60 * 60);
/// After this the wait is told: somebody may have left standard input open and wonder.
const QUIET: Duration = Duration::from_secs(10);

/// All that comes on standard input until its end, for a loop that pipes a session's output to us; none if nothing
/// comes. A terminal is never waited for.
pub fn to_the_end() -> Option<Vec<u8>> {
    let mut pieces = Pieces::open()?;
    let (started, mut is_reported) = (Instant::now(), false);
    while started.elapsed() < LONGEST_WAIT {
        match pieces.read_on(Duration::from_millis(300)) {
            Piece::End => break,
            Piece::Nothing if started.elapsed() > QUIET && !is_reported => {
                is_reported = true;
                crate::console::say_error(
                    &"waiting for the session's output on standard input, at most 2 h; to judge without it: plimsoll gate < /dev/null",
                );
            }
            Piece::Some | Piece::Nothing => {}
        }
    }
    pieces.document()
}

/// The document on standard input; none if there is none.
pub fn document() -> Option<Vec<u8>> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return None;
    }
    let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
    let waiting = poll(&mut ready, Some(&TIMEOUT)).unwrap_or(0);
    if waiting == 0 {
        return None;
    }
    let bytes = plimsoll_store::disk::read_stdin(LONGEST as u64).ok()?;
    if_any(bytes)
}

/// Why standard input gives no text.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The system.
    #[error("cannot read standard input: {0}")]
    Unreadable(std::io::Error),
    /// It is something else.
    #[error("standard input is not UTF-8 text")]
    NotUtf8,
}

/// The text itself, or all of standard input for `-`.
pub fn text_of(text: &str) -> Result<String, InputError> {
    const MOST: u64 = 1024 * 1024;
    if text != "-" {
        return Ok(text.to_owned());
    }
    let bytes = plimsoll_store::disk::read_stdin(MOST).map_err(InputError::Unreadable)?;
    let text = String::from_utf8(bytes).map_err(|_| InputError::NotUtf8)?;
    Ok(text.trim_end_matches('\n').to_owned())
}

fn if_any(bytes: Vec<u8>) -> Option<Vec<u8>> {
    (!bytes.iter().all(u8::is_ascii_whitespace)).then_some(bytes)
}

/// Standard input, read piece by piece by somebody who decides each time whether to continue.
pub struct Pieces {
    stdin: Stdin,
    bytes: Vec<u8>,
}

/// What the last look at standard input brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// Some bytes.
    Some,
    /// Nothing yet.
    Nothing,
    /// The end.
    End,
}

impl Pieces {
    /// None on a terminal.
    pub fn open() -> Option<Pieces> {
        let stdin = std::io::stdin();
        (!stdin.is_terminal()).then(|| Pieces { stdin, bytes: Vec::new() })
    }

    /// Waits for the next bytes, but not longer than this.
    pub fn read_on(&mut self, longest: Duration) -> Piece {
        let longest =
            Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: i64::from(longest.subsec_nanos()) };
        let mut ready = [PollFd::new(&self.stdin, PollFlags::IN)];
        if !poll(&mut ready, Some(&longest)).is_ok_and(|ready| ready > 0) {
            return Piece::Nothing;
        }
        let mut piece = [0; 64 * 1024];
        // Not through `std`'s buffer: `poll` does not see what it holds back.
        match rustix::io::read(&self.stdin, &mut piece) {
            Ok(0) => Piece::End,
            Ok(read) => {
                self.bytes.extend_from_slice(&piece[..read]);
                // What matters comes last.
                let too_many = self.bytes.len().saturating_sub(LONGEST);
                self.bytes.drain(..too_many);
                Piece::Some
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Piece::Nothing,
            Err(_) => Piece::End,
        }
    }

    /// Returns true if anything was read.
    pub fn has_any(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// What was read; none if that is nothing but white space.
    pub fn document(self) -> Option<Vec<u8>> {
        if_any(self.bytes)
    }
}
