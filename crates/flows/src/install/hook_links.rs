//! The names of the hook programs. They are one file; whoever unpacks an archive or runs the installer has all its names,
//! but `cargo install` brings the file alone.

use plimsoll_protocol::settings::PROGRAMS;
use plimsoll_store::{StoreError, disk, environment};
use std::ffi::OsStr;
use std::path::Path;

/// The file that all hook programs are.
const FILE: &str = "plimsoll-hook";

/// Makes the names that are missing beside this program. A link by the file's name alone follows the next
/// `cargo install`, which replaces the file.
///
/// # Errors
/// If the folder takes no link.
pub fn link_hook_programs() -> Result<(), StoreError> {
    let Some(folder) = environment::own_directory() else { return Ok(()) };
    if !disk::exists(&folder.join(FILE)) {
        return Ok(());
    }
    let paths = PROGRAMS.iter().map(|name| folder.join(name));
    paths.filter(|path| !disk::exists(path)).try_for_each(|path| disk::link(FILE, &path))
}

/// True for a name that [`link_hook_programs`] will make.
pub(super) fn will_be_made(path: &Path) -> bool {
    let is_hook = |name: &str| PROGRAMS.contains(&name);
    path.file_name().and_then(OsStr::to_str).is_some_and(is_hook) && disk::exists(&path.with_file_name(FILE))
}
