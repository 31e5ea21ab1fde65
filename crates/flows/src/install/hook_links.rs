//! Links for the names of the hook programs, which all lead to one executable file. A release archive and the
//! installer contain these links, but `cargo install` installs only the file.

use plimsoll_protocol::settings::PROGRAM_NAMES;
use plimsoll_store::{StoreError, disk};
use std::ffi::OsStr;
use std::path::Path;

/// The executable file to which the names of all hook programs link.
pub(super) const HOOK_PROGRAM_FILE: &str = "plimsoll-hook";

/// Creates the missing links of the hook programs in a folder that has the hook program's file. The links are
/// relative, so they stay valid when the next `cargo install` replaces the file.
pub(super) fn create_missing_hook_links(folder: &Path) -> Result<(), StoreError> {
    if !disk::exists(&folder.join(HOOK_PROGRAM_FILE)) {
        return Ok(());
    }
    let paths = PROGRAM_NAMES.iter().map(|name| folder.join(name));
    paths
        .filter(|path| !disk::exists(path))
        .try_for_each(|path| disk::create_link_if_missing(HOOK_PROGRAM_FILE, &path))
}

/// Returns true if the path's file name is that of a hook program.
pub(super) fn is_hook_program_name(path: &Path) -> bool {
    let is_hook = |name: &str| PROGRAM_NAMES.contains(&name);
    path.file_name().and_then(OsStr::to_str).is_some_and(is_hook)
}
