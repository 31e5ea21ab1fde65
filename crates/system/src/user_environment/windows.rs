//! The user's folders and programs on Windows.

#![expect(clippy::disallowed_methods, reason = "`store` reads the environment by this module")]

use super::UserFolder;
pub(super) use super::program_names::program_file_names;
use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;

/// The client finds the home folder by this variable, too. `HOME` is only there in some shells.
pub(super) const HOME_VARIABLE: &str = "USERPROFILE";
/// Roaming: settings follow the user to other computers of a domain.
pub(super) const CONFIG_FOLDER: UserFolder = UserFolder {
    xdg_variable: "XDG_CONFIG_HOME",
    system_variable: Some("APPDATA"),
    path_below_home: "/AppData/Roaming",
};
pub(super) const STATE_FOLDER: UserFolder = UserFolder {
    xdg_variable: "XDG_STATE_HOME",
    system_variable: Some("LOCALAPPDATA"),
    path_below_home: "/AppData/Local",
};
pub(super) const DATA_FOLDER: UserFolder = UserFolder {
    xdg_variable: "XDG_DATA_HOME",
    system_variable: Some("LOCALAPPDATA"),
    path_below_home: "/AppData/Local",
};

pub(super) fn is_same_variable_name(left: &OsStr, right: &str) -> bool {
    left.eq_ignore_ascii_case(right)
}

/// Windows keeps the path as it was given, in any case and through any link.
pub(super) fn current_folder() -> io::Result<PathBuf> {
    crate::files::canonicalize(&std::env::current_dir()?)
}

pub(super) fn temporary_folder() -> PathBuf {
    std::env::temp_dir()
}
