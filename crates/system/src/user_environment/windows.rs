//! The user's folders and programs on Windows.

use super::UserFolder;
pub(super) use super::program_names::{is_program_name, program_file_names};
use std::ffi::OsStr;
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

pub(super) fn temporary_folder() -> PathBuf {
    std::env::temp_dir()
}
