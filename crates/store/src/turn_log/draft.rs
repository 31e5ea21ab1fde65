//! A file of a log that is written anew as a whole, too large for memory: under another name, then in its place.

use crate::limited::LimitedFile;
use crate::{StoreError, disk, io};
use plimsoll_system::files::sync_all;
use std::io::BufWriter;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::SystemTime;

/// Gives a draft its name, with the time at which its content was written, where that was earlier. It is on the disk before: a
/// power cut finds the whole of it, or the file that it stands for.
pub(super) fn put_in_place(
    out: BufWriter<LimitedFile>,
    draft: &Path,
    path: &Path,
    written_at: Option<SystemTime>,
) -> Result<(), StoreError> {
    let LimitedFile(file) = out.into_inner().map_err(|error| io("write", draft)(error.into_error()))?;
    if let Some(moment) = written_at {
        file.set_modified(moment).map_err(io("write", draft))?;
    }
    sync_all(file.as_fd()).map_err(|error| io("sync", draft)(error.into()))?;
    disk::rename(draft, path)?;
    disk::sync_folder(path.parent().unwrap_or(Path::new(".")));
    Ok(())
}
