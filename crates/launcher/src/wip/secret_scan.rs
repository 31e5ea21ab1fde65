//! Searches files for secrets before they are committed.

use crate::time_limit::TimeLimit;
use plimsoll_secrets::SecretSearch;
use plimsoll_store::disk;
use std::io::Read;
use std::path::Path;

/// The number of bytes that are read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// Returns true if nothing in a file of any size looks like a secret. The file is read in chunks. Returns
/// false if the file cannot be read or the time limit passes: then it is not known to be harmless.
pub(super) fn has_no_secret(path: &Path, limit: TimeLimit) -> bool {
    let Ok(mut file) = disk::open_without_following_link(path) else { return false };
    let mut chunk = [0; CHUNK_BYTES];
    let mut search = SecretSearch::default();
    while !limit.has_passed() {
        match file.read(&mut chunk) {
            Ok(0) => return search.finish().is_none(),
            Ok(length) if search.push(&chunk[..length]).is_none() => {}
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests;
