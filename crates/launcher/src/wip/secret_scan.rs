//! Searches files for secrets before they are committed.

use crate::time_limit::TimeLimit;
use plimsoll_secrets::SecretSearch;
use plimsoll_store::disk;
use std::io::Read;
use std::path::Path;

/// The number of bytes per read.
const CHUNK_BYTES: usize = 64 * 1024;

/// Returns true if the file was read completely and nothing in it looks like a secret. Returns false if it cannot
/// be read or the time limit passes. The file is read in chunks, so it may have any size.
pub(super) fn can_be_read_and_has_no_secret(path: &Path, limit: TimeLimit) -> bool {
    let Ok(mut file) = disk::open_without_following_link(path) else { return false };
    let mut chunk = [0; CHUNK_BYTES];
    let mut search = SecretSearch::default();
    while !limit.has_passed() {
        match file.read(&mut chunk) {
            Ok(0) => return search.search_remaining_bytes().is_none(),
            Ok(length) if search.push_and_search_full_windows(&chunk[..length]).is_none() => {}
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests;
