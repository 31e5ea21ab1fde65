//! The folders in which a system keeps a user's files, and the names of its variables and programs.

#[cfg_attr(unix, path = "user_environment/unix.rs")]
#[cfg_attr(windows, path = "user_environment/windows.rs")]
mod platform;

#[cfg(any(windows, test))]
mod program_names;

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;

/// The variable with the user's home folder.
pub const HOME_VARIABLE: &str = platform::HOME_VARIABLE;

/// The folder for the settings of programs.
pub const CONFIG_FOLDER: UserFolder = platform::CONFIG_FOLDER;

/// The folder for the state of programs.
pub const STATE_FOLDER: UserFolder = platform::STATE_FOLDER;

/// The folder for data of programs that can be recreated.
pub const DATA_FOLDER: UserFolder = platform::DATA_FOLDER;

/// A folder of the user.
#[derive(Debug, Clone, Copy)]
pub struct UserFolder {
    /// The variable of the XDG Base Directory Specification, which comes first on every system.
    pub xdg_variable: &'static str,
    /// The variable of the system.
    pub system_variable: Option<&'static str>,
    /// The path below the home folder if no variable is set.
    pub path_below_home: &'static str,
}

/// Returns true if two names are the same variable. Windows ignores their case.
pub fn is_same_variable_name(left: &OsStr, right: &str) -> bool {
    platform::is_same_variable_name(left, right)
}

/// Returns the working folder, without links in its path.
///
/// # Errors
/// The folder was removed, or its path cannot be read.
pub fn current_folder() -> io::Result<PathBuf> {
    platform::current_folder()
}

/// Returns the folder for temporary files: the one that the user's variables name, or the system's.
pub fn temporary_folder() -> PathBuf {
    platform::temporary_folder()
}

/// Returns the names of the files that can be the program `name`, in the order of preference. On Windows the variable
/// `PATHEXT` lists the extensions of programs.
pub fn program_file_names(name: &str, path_ext: Option<&str>) -> Vec<String> {
    platform::program_file_names(name, path_ext)
}
