//! The user's folders and programs on Unix.

#![expect(clippy::disallowed_methods, reason = "`store` reads the environment by this module")]

use super::UserFolder;
use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;

pub(super) const HOME_VARIABLE: &str = "HOME";
pub(super) const CONFIG_FOLDER: UserFolder =
    UserFolder { xdg_variable: "XDG_CONFIG_HOME", system_variable: None, path_below_home: "/.config" };
pub(super) const STATE_FOLDER: UserFolder =
    UserFolder { xdg_variable: "XDG_STATE_HOME", system_variable: None, path_below_home: "/.local/state" };
pub(super) const DATA_FOLDER: UserFolder =
    UserFolder { xdg_variable: "XDG_DATA_HOME", system_variable: None, path_below_home: "/.local/share" };

pub(super) fn is_same_variable_name(left: &OsStr, right: &str) -> bool {
    left == right
}

pub(super) fn current_folder() -> io::Result<PathBuf> {
    std::env::current_dir()
}

pub(super) fn temporary_folder() -> PathBuf {
    // An empty variable would mean the working folder, in which a session can write.
    Some(std::env::temp_dir()).filter(|folder| folder.is_absolute()).unwrap_or_else(|| PathBuf::from("/tmp"))
}

pub(super) fn program_file_names(name: &str, _path_ext: Option<&str>) -> Vec<String> {
    vec![name.to_owned()]
}
