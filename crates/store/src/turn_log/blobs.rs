//! Large pieces beside a log, named by the SHA-256 of their bytes.

use crate::{StoreError, disk};
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

/// Puts a piece in place, on the disk before it is named anywhere. One that is there and sound is left alone.
pub(super) fn put(folder: &Path, hash: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let Some(path) = path(folder, hash) else { return Ok(()) };
    let known = disk::size(&path) == Some(bytes.len() as u64);
    if known && get(folder, hash).is_some_and(|known| sha256(&[&known]) == hash) {
        return Ok(());
    }
    disk::replace(&path, bytes, crate::Durability::Durable)
}
