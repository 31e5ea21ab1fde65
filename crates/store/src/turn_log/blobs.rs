//! Large pieces beside a log, named by the SHA-256 of their bytes.

use super::packed;
use crate::{Durability, StoreError, disk};
use plimsoll_domain::digest::sha256;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Pieces that one writer has put there or found sound: many results are the same, and while it holds the lock each is looked
/// into once.
#[derive(Debug, Default)]
pub(super) struct KnownPieces(HashSet<String>);

impl KnownPieces {
    /// More than this are not remembered: what a long transcript takes of memory does not grow.
    const MOST: usize = 4096;

    fn note(&mut self, hash: &str) {
        if self.0.len() < KnownPieces::MOST {
            self.0.insert(hash.to_owned());
        }
    }
}

/// A file under the piece's name; none for what is no SHA-256.
pub(super) fn path(folder: &Path, hash: &str) -> Option<PathBuf> {
    let is_digest = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| folder.join(hash))
}

pub(super) fn get(folder: &Path, hash: &str) -> Option<Vec<u8>> {
    let path = path(folder, hash)?;
    disk::read(&path).ok().flatten().or_else(|| packed::piece(&path))
}

/// What the folder is known by: a piece that is put there or taken away changes it.
pub(super) fn folder_version(folder: &Path) -> Option<String> {
    disk::folder_version(folder)
}

/// Puts pieces in place before they are named anywhere; answers whether there were any to put. Those that are there and
/// sound are left alone. On the disk they are when their volume is.
pub(super) fn put<'b>(
    folder: &Path,
    pieces: impl IntoIterator<Item = (&'b String, &'b String)>,
    known: &mut KnownPieces,
) -> Result<bool, StoreError> {
    let mut has_put = false;
    for (hash, text) in pieces {
        if known.0.contains(hash) {
            continue;
        }
        let Some(path) = path(folder, hash) else { continue };
        if disk::create_in_place(&path, text.as_bytes())? {
            has_put = true;
        } else if disk::size(&path) != Some(text.len() as u64) || !is_sound(folder, hash) {
            disk::replace(&path, text.as_bytes(), Durability::Lazy)?;
            has_put = true;
        }
        known.note(hash);
    }
    Ok(has_put)
}

/// True if a piece is there and is what its name says.
pub(super) fn is_sound(folder: &Path, hash: &str) -> bool {
    get(folder, hash).is_some_and(|known| sha256(&[&known]) == *hash)
}
