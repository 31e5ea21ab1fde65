//! Which files may be committed as far as secrets go: those that we may read and in which nothing looks like one.

use crate::time_limit::TimeLimit;
use plimsoll_secrets::Search;
use plimsoll_store::disk;
use std::io::Read;
use std::path::Path;

/// How much of a file is read at once.
const PIECE: usize = 64 * 1024;

/// True if nothing looks like a secret from a file's first byte to its last, whatever its size: it is read piece by
/// piece. A file that cannot be read, or for which no time is left, is not known to be harmless.
pub(super) fn may_be_shown(path: &Path, limit: TimeLimit) -> bool {
    let Ok(mut file) = disk::open_itself(path) else { return false };
    let mut piece = [0; PIECE];
    let mut search = Search::default();
    while !limit.is_over() {
        match file.read(&mut piece) {
            Ok(0) => return search.end().is_none(),
            Ok(length) if search.read(&piece[..length]).is_none() => {}
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests;
