//! Standard input for shell glue: a document if somebody pipes one, and nothing if nobody does. A loop's own
//! terminal, or a pipe on which nothing comes, is never waited for.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::IsTerminal;

/// A pipe's writer starts together with us: it is given this long.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };
const LONGEST: u64 = 64 * 1024 * 1024;

/// The document on standard input; none if there is none.
pub(crate) fn document() -> Option<Vec<u8>> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return None;
    }
    let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
    let waiting = poll(&mut ready, Some(&PATIENCE)).unwrap_or(0);
    if waiting == 0 {
        return None;
    }
    let bytes = store::disk::read_stdin(LONGEST).ok()?;
    (!bytes.iter().all(u8::is_ascii_whitespace)).then_some(bytes)
}
