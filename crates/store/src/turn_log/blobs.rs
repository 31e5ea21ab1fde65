//! Large pieces beside a log, named by the SHA-256 of their bytes.

use crate::{Durability, StoreError, disk};
use plimsoll_domain::digest::sha256;
use std::path::{Path, PathBuf};

/// A file under the piece's name; none for what is no SHA-256.
pub(super) fn path(folder: &Path, hash: &str) -> Option<PathBuf> {
    let is_digest = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| folder.join(hash))
}

pub(super) fn get(folder: &Path, hash: &str) -> Option<Vec<u8>> {
    disk::read(&path(folder, hash)?).ok()?
}

/// Puts pieces in place before they are named anywhere; answers whether there were any to put. Those that are there and
/// sound are left alone.
pub(super) fn put<'b>(
    folder: &Path,
    pieces: impl IntoIterator<Item = (&'b String, &'b String)>,
    durability: Durability,
) -> Result<bool, StoreError> {
    let mut missing: Vec<(PathBuf, &[u8])> = Vec::new();
    for (hash, text) in pieces {
        let Some(path) = path(folder, hash).filter(|path| missing.iter().all(|(other, _)| other != path))
        else {
            continue;
        };
        let known = disk::size(&path) == Some(text.len() as u64);
        if !(known && is_sound(folder, hash)) {
            missing.push((path, text.as_bytes()));
        }
    }
    match (missing.as_slice(), durability) {
        ([], _) => {}
        (pieces, Durability::Lazy) => {
            pieces.iter().try_for_each(|(path, bytes)| disk::replace(path, bytes, Durability::Lazy))?;
        }
        ([(path, bytes)], Durability::Durable) => disk::replace(path, bytes, Durability::Durable)?,
        (many, Durability::Durable) => disk::replace_all(many)?,
    }
    Ok(!missing.is_empty())
}

/// True if a piece is there and is what its name says.
pub(super) fn is_sound(folder: &Path, hash: &str) -> bool {
    get(folder, hash).is_some_and(|known| sha256(&[&known]) == *hash)
}
