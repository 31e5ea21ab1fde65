//! Blobs: large contents stored beside a log, named by the SHA-256 of their bytes.

use super::compression;
use crate::{Durability, StoreError, disk};
use plimsoll_domain::digest::sha256_hex;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Hashes of blobs that one writer has written or found intact. Many results are equal, so while the writer
/// holds the lock each blob is checked only once.
#[derive(Debug, Default)]
pub(super) struct IntactBlobs(HashSet<String>);

impl IntactBlobs {
    /// Bounded, so that memory use does not grow with the transcript.
    const MAX_HASHES: usize = 4096;

    fn insert_if_below_limit(&mut self, hash: &str) {
        if self.0.len() < IntactBlobs::MAX_HASHES {
            self.0.insert(hash.to_owned());
        }
    }
}

/// Returns the path of a blob. Returns `None` if the hash is not a SHA-256 in hexadecimal.
pub(super) fn blob_path(folder: &Path, hash: &str) -> Option<PathBuf> {
    let is_digest = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| folder.join(hash))
}

pub(super) fn read_blob(folder: &Path, hash: &str) -> Option<Vec<u8>> {
    let path = blob_path(folder, hash)?;
    disk::read(&path).ok().flatten().or_else(|| compression::read_compressed_blob(&path))
}

/// Returns a stamp of the folder that changes whenever a blob is added or removed.
pub(super) fn blob_folder_stamp(folder: &Path) -> Option<String> {
    disk::folder_change_stamp(folder)
}

/// Writes the blobs that are missing or damaged, before any record names them. Returns whether any had to be
/// written. Blobs are durable once their volume is synced.
pub(super) fn write_missing_or_damaged_blobs<'b>(
    folder: &Path,
    blobs: impl IntoIterator<Item = (&'b String, &'b String)>,
    intact_blobs: &mut IntactBlobs,
) -> Result<bool, StoreError> {
    let mut has_written_any = false;
    for (hash, text) in blobs {
        if intact_blobs.0.contains(hash) {
            continue;
        }
        let Some(path) = blob_path(folder, hash) else { continue };
        if disk::create_new_in_place(&path, text.as_bytes())? {
            has_written_any = true;
        } else if disk::file_size(&path) != Some(text.len() as u64) || !is_blob_intact(folder, hash) {
            disk::replace(&path, text.as_bytes(), Durability::Lazy)?;
            has_written_any = true;
        }
        intact_blobs.insert_if_below_limit(hash);
    }
    Ok(has_written_any)
}

/// Returns true if the blob exists and its content matches its hash.
pub(super) fn is_blob_intact(folder: &Path, hash: &str) -> bool {
    read_blob(folder, hash).is_some_and(|bytes| sha256_hex(&[&bytes]) == *hash)
}
