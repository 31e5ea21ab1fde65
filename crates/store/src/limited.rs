//! Writing where files may not grow beyond a limit (`ulimit -f`). The system ends a program that writes beyond it by SIGXFSZ, and
//! no safe call that the hooks can link ignores that signal. So the limit is asked for once, and a write beyond it fails as the
//! system would let it fail without the signal: `EFBIG`, an error like a full disk. Children that we start have the signal as it was.
#![expect(clippy::disallowed_types, reason = "part of the door to the disk")]

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;

/// Writes all bytes at the end of a file, or none where they would exceed the limit.
pub(crate) fn write_all(mut file: &File, bytes: &[u8]) -> std::io::Result<()> {
    check(file, bytes)?;
    file.write_all(bytes)
}

/// A file that is written at its end, within the limit.
#[derive(Debug)]
pub(crate) struct LimitedFile(pub(crate) File);

impl Write for LimitedFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        check(&self.0, bytes)?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

fn check(file: &File, bytes: &[u8]) -> std::io::Result<()> {
    // Hardly any user has a limit, and then the file is not looked at.
    let Some(limit) = file_size_limit() else { return Ok(()) };
    let end = file.metadata()?.len().saturating_add(bytes.len() as u64);
    if end > limit { Err(Errno::FBIG.into()) } else { Ok(()) }
}

/// How large this process may make a file, in bytes; `None` if there is no limit.
fn file_size_limit() -> Option<u64> {
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();
    *LIMIT.get_or_init(|| getrlimit(Resource::Fsize).current)
}
