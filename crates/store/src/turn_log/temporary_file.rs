//! Replaces a file of a log that is too large for memory: it is written under another name, then renamed.

use crate::size_limited_write::SizeLimitedFile;
use crate::{StoreError, disk, io_error};
use plimsoll_system::files::sync_all;
use std::io::BufWriter;
use std::path::Path;
use std::time::SystemTime;

/// Syncs a temporary file and renames it to its final path. With `modified_at` the file gets that
/// modification time. Because the sync comes first, a power cut leaves either the whole new file or the old
/// one.
pub(super) fn sync_and_rename_temporary_file(
    writer: BufWriter<SizeLimitedFile>,
    temporary_path: &Path,
    path: &Path,
    modified_at: Option<SystemTime>,
) -> Result<(), StoreError> {
    let SizeLimitedFile(file) =
        writer.into_inner().map_err(|error| io_error("write", temporary_path)(error.into_error()))?;
    if let Some(time) = modified_at {
        file.set_modified(time).map_err(io_error("write", temporary_path))?;
    }
    sync_all(&file).map_err(io_error("sync", temporary_path))?;
    disk::rename(temporary_path, path)?;
    disk::sync_folder(path.parent().unwrap_or(Path::new(".")));
    Ok(())
}
