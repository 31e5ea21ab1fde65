//! Writes files without exceeding the file size limit (`ulimit -f`). The system kills a process that exceeds
//! it with SIGXFSZ, and no safe call that the hooks can link ignores that signal. Therefore the limit is read
//! once, and a write beyond it fails with `EFBIG`, an error like a full disk, as the system would return it
//! without the signal. The signal handling of child processes is unchanged.
#![expect(clippy::disallowed_types, reason = "part of the door to the disk")]

use plimsoll_system::files::{file_size_limit, file_too_large_error};
use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;

/// Writes all bytes at the end of a file, or none if they would exceed the limit.
pub(crate) fn write_all(mut file: &File, bytes: &[u8]) -> std::io::Result<()> {
    check_file_size_limit(file, bytes)?;
    file.write_all(bytes)
}

/// A file that is written at its end and never beyond the file size limit.
#[derive(Debug)]
pub(crate) struct SizeLimitedFile(pub(crate) File);

impl Write for SizeLimitedFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        check_file_size_limit(&self.0, bytes)?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

fn check_file_size_limit(file: &File, bytes: &[u8]) -> std::io::Result<()> {
    // Most users have no limit, and then the file's size is not needed.
    let Some(limit) = cached_file_size_limit() else { return Ok(()) };
    let end = file.metadata()?.len().saturating_add(bytes.len() as u64);
    if end > limit { Err(file_too_large_error()) } else { Ok(()) }
}

/// Returns the file size limit of this process in bytes; `None` if there is no limit.
fn cached_file_size_limit() -> Option<u64> {
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();
    *LIMIT.get_or_init(file_size_limit)
}
