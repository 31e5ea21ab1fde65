//! The environment of this process: variables, the working directory, and programs on the `PATH`.
#![expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]

pub use plimsoll_system::files::is_executable;
use plimsoll_system::paths::append_to_path;
pub use plimsoll_system::user_environment::temporary_folder;
use plimsoll_system::user_environment::{
    CONFIG_FOLDER, DATA_FOLDER, HOME_VARIABLE, STATE_FOLDER, UserFolder, current_folder,
    is_same_variable_name, program_file_names,
};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Returns a variable that is set, not empty, and UTF-8.
pub fn variable(name: &str) -> Option<String> {
    let (_, value) =
        variables().iter().find(|(variable_name, _)| is_same_variable_name(variable_name, name))?;
    value.to_str().filter(|value| !value.is_empty()).map(str::to_owned)
}

/// Returns the folder that a variable of the XDG Base Directory Specification names. A relative path is ignored, as the
/// specification says: it would lead into the project.
pub fn xdg_folder(name: &str) -> Option<PathBuf> {
    variable(name).map(PathBuf::from).filter(|folder| folder.is_absolute())
}

/// Returns every variable. Bytes that are not UTF-8 are replaced.
pub fn all_variables() -> impl Iterator<Item = (String, String)> {
    let to_text = |part: &OsString| part.to_string_lossy().into_owned();
    variables().iter().map(move |(name, value)| (to_text(name), to_text(value)))
}

/// Returns the environment, which is read once: libc scans all of it for each name, and a hook reads 17.
fn variables() -> &'static [(OsString, OsString)] {
    static VARIABLES: OnceLock<Vec<(OsString, OsString)>> = OnceLock::new();
    VARIABLES.get_or_init(|| std::env::vars_os().collect())
}

/// Returns true if a variable is set to anything but `0`, `false`, `no` or `off`.
pub fn is_variable_on(name: &str) -> bool {
    variable(name).is_some_and(|value| !matches!(value.to_lowercase().as_str(), "0" | "false" | "no" | "off"))
}

/// Returns the number in a variable; `None` if it is not set or not a number.
pub fn numeric_variable(name: &str) -> Option<f64> {
    variable(name)?.trim().parse().ok()
}

/// Returns the user's home folder. A relative one is ignored, because it would depend on the working
/// directory.
pub fn home_folder() -> Option<&'static Path> {
    static HOME: OnceLock<Option<PathBuf>> = OnceLock::new();
    let read_home = || variable(HOME_VARIABLE).map(PathBuf::from).filter(|home| home.is_absolute());
    HOME.get_or_init(read_home).as_deref()
}

/// Replaces the home folder at the start of a path by `~`.
pub fn abbreviate_home(path: &str) -> String {
    let home = home_folder().and_then(Path::to_str).filter(|home| home.len() > 1);
    match home.and_then(|home| path.strip_prefix(home)) {
        Some(path_in_home)
            if path_in_home.is_empty() || path_in_home.starts_with(std::path::is_separator) =>
        {
            format!("~{path_in_home}")
        }
        _ => path.to_owned(),
    }
}

/// Returns the folder for settings of programs (`XDG_CONFIG_HOME`); `None` without a home.
pub fn config_home() -> Option<PathBuf> {
    user_folder(CONFIG_FOLDER)
}

/// Returns the folder for state of programs (`XDG_STATE_HOME`); `None` without a home.
pub fn state_home() -> Option<PathBuf> {
    user_folder(STATE_FOLDER)
}

/// Returns the folder for data of programs that can be recreated (`XDG_DATA_HOME`); `None` without a home.
pub fn data_home() -> Option<PathBuf> {
    user_folder(DATA_FOLDER)
}

fn user_folder(folder: UserFolder) -> Option<PathBuf> {
    xdg_folder(folder.xdg_variable)
        .or_else(|| xdg_folder(folder.system_variable?))
        .or_else(|| Some(append_to_path(home_folder()?, &[folder.path_below_home])))
}

/// Returns the working directory, or `.` if it cannot be determined.
pub fn current_dir() -> PathBuf {
    current_folder().unwrap_or_else(|_| PathBuf::from("."))
}

/// Finds a program on the `PATH`. Relative entries are ignored: they depend on the working directory, and
/// agents can write to the project. A name with a separator is used as a path.
pub fn find_program(name: &str) -> Option<PathBuf> {
    if name.contains(std::path::is_separator) {
        return Some(PathBuf::from(name)).filter(|path| is_executable(path));
    }
    find_all_programs(name).into_iter().find(|path| path.is_absolute())
}

/// Returns the `PATH`, which need not be UTF-8.
pub fn path_variable() -> Option<OsString> {
    std::env::var_os("PATH")
}

/// Returns every program of this name on the `PATH`, in the order of its entries.
pub fn find_all_programs(name: &str) -> Vec<PathBuf> {
    let path = path_variable().unwrap_or_default();
    let file_names = program_file_names(name, variable("PATHEXT").as_deref());
    std::env::split_paths(&path)
        .flat_map(|folder| file_names.iter().map(move |file_name| folder.join(file_name)).collect::<Vec<_>>())
        .filter(|path| is_executable(path))
        .collect()
}

/// Returns the folder of this program, with all links resolved; the other programs are there, too. On macOS
/// `current_exe` returns the link through which the program was started.
pub fn executable_folder() -> Option<PathBuf> {
    crate::disk::canonicalize_or_keep(&std::env::current_exe().ok()?).parent().map(Path::to_owned)
}

/// Returns the folder by whose absolute path this program was started; `None` if it was started by its name
/// or by a relative path.
pub fn invocation_folder() -> Option<PathBuf> {
    let invoked_path = PathBuf::from(std::env::args_os().next()?);
    invoked_path.parent().filter(|folder| folder.is_absolute()).map(Path::to_owned)
}

/// Returns the absolute folders of the `PATH`, in their order.
pub fn absolute_search_folders() -> Vec<PathBuf> {
    let path = path_variable().unwrap_or_default();
    std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect()
}

/// Returns the user's folder of the client: `CLAUDE_CONFIG_DIR`, or `~/.claude`.
pub fn client_config_folder() -> Option<PathBuf> {
    variable("CLAUDE_CONFIG_DIR")
        .map(PathBuf::from)
        .or_else(|| home_folder().map(|home| home.join(".claude")))
}
