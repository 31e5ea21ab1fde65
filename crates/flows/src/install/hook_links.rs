//! The names of the hook programs. They are one file; whoever unpacks an archive or runs the installer has all its names,
//! but `cargo install` brings the file alone.

use plimsoll_protocol::settings::PROGRAMS;
use plimsoll_store::{StoreError, disk};
use std::ffi::OsStr;
use std::path::Path;

/// The file that all hook programs are.
pub(super) const FILE: &str = "plimsoll-hook";

/// Makes the names that are missing in a folder of our programs. A link by the file's name alone follows the next
/// `cargo install`, which replaces the file.
pub(super) fn link_hook_programs(folder: &Path) -> Result<(), StoreError> {
    if !disk::exists(&folder.join(FILE)) {
        return Ok(());
    }
    let paths = PROGRAMS.iter().map(|name| folder.join(name));
    paths.filter(|path| !disk::exists(path)).try_for_each(|path| disk::link(FILE, &path))
}

/// True for a name that a link gets.
pub(super) fn is_name(path: &Path) -> bool {
    let is_hook = |name: &str| PROGRAMS.contains(&name);
    path.file_name().and_then(OsStr::to_str).is_some_and(is_hook)
}
