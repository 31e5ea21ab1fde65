//! The names of the hook programs, which are links to one executable file. A release archive and the installer contain
//! these links, but `cargo install` installs only the file. On Windows they are copies of the file.

use plimsoll_protocol::settings::PROGRAM_NAMES;
use plimsoll_store::{StoreError, disk};
use plimsoll_system::files::CAN_CREATE_LINKS;
use plimsoll_system::paths::{program_file_name, program_name, program_path};
use std::path::Path;

/// The program to whose file the names of all hook programs link.
pub(super) const HOOK_PROGRAM: &str = "plimsoll-hook";

/// Creates the missing links of the hook programs in a folder that has the hook program's file. The links are
/// relative, so they stay valid when the next `cargo install` replaces the file. Where not every user can create links,
/// creates or updates copies.
pub(super) fn create_missing_links_or_update_copies(folder: &Path) -> Result<(), StoreError> {
    let program = program_path(folder, HOOK_PROGRAM);
    if !disk::exists(&program) {
        return Ok(());
    }
    let mut paths = PROGRAM_NAMES.iter().map(|name| program_path(folder, name));
    if !CAN_CREATE_LINKS {
        return paths.try_for_each(|path| disk::copy_program_if_changed(&program, &path));
    }
    let link_target = program_file_name(HOOK_PROGRAM);
    paths
        .filter(|path| !disk::exists(path))
        .try_for_each(|path| disk::create_link_if_missing(&link_target, &path))
}

/// Returns true if the path's file name is that of a hook program.
pub(super) fn is_hook_program_name(path: &Path) -> bool {
    PROGRAM_NAMES.contains(&&*program_name(path))
}
