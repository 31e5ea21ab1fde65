//! What the process was started with.
#![expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A variable that is set, not empty, and UTF-8.
pub fn variable(name: &str) -> Option<String> {
    let (_, value) = variables().iter().find(|(known, _)| known == name)?;
    value.to_str().filter(|value| !value.is_empty()).map(str::to_owned)
}

/// Every variable. Bytes that are not UTF-8 are replaced.
pub fn all() -> impl Iterator<Item = (String, String)> {
    let text = |part: &OsString| part.to_string_lossy().into_owned();
    variables().iter().map(move |(name, value)| (text(name), text(value)))
}

/// The environment, read once: libc walks through all of it for each name, and a hook asks for 17.
fn variables() -> &'static [(OsString, OsString)] {
    static VARIABLES: OnceLock<Vec<(OsString, OsString)>> = OnceLock::new();
    VARIABLES.get_or_init(|| std::env::vars_os().collect())
}

/// A variable that is set to something other than an off word.
pub fn flag(name: &str) -> bool {
    variable(name).is_some_and(|value| !matches!(value.to_lowercase().as_str(), "0" | "false" | "no" | "off"))
}

/// A variable that holds a number.
pub fn number(name: &str) -> Option<f64> {
    variable(name)?.trim().parse().ok()
}

/// The user's home. A relative one would be another in each folder.
pub fn home() -> Option<&'static Path> {
    static HOME: OnceLock<Option<PathBuf>> = OnceLock::new();
    let look = || variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    HOME.get_or_init(look).as_deref()
}

/// Where programs keep what is theirs and not the user's.
pub fn state_home() -> Option<PathBuf> {
    variable("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute())
        .or_else(|| Some(home()?.join(".local/state")))
}

/// Where programs keep what belongs to them and can be made anew.
pub fn data_home() -> Option<PathBuf> {
    variable("XDG_DATA_HOME")
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute())
        .or_else(|| Some(home()?.join(".local/share")))
}

/// The working directory.
pub fn current_dir() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
}

/// A program on the PATH, by an absolute entry of it: a relative one is another folder in each working directory, also that of
/// a project, where agents write.
pub fn find_program(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| is_executable(path));
    }
    find_programs(name).into_iter().find(|path| path.is_absolute())
}

/// The PATH as it is set, also where it is no text.
pub fn search_path() -> Option<OsString> {
    std::env::var_os("PATH")
}

/// Every program of this name on the PATH, in its order.
pub fn find_programs(name: &str) -> Vec<PathBuf> {
    let path = search_path().unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).filter(|path| is_executable(path)).collect()
}

/// True when a file may be executed.
pub fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// The folder this program is in, behind all links: the other programs lie there. macOS names the link by which it was started.
pub fn own_directory() -> Option<PathBuf> {
    crate::disk::canonical(&std::env::current_exe().ok()?).parent().map(Path::to_owned)
}

/// The folder by whose absolute path this program was started; `None` if it was started by its name or by a relative path.
pub fn invoked_directory() -> Option<PathBuf> {
    let invoked = PathBuf::from(std::env::args_os().next()?);
    invoked.parent().filter(|folder| folder.is_absolute()).map(Path::to_owned)
}

/// The folders of the PATH, in its order, without the relative ones.
pub fn search_folders() -> Vec<PathBuf> {
    let path = search_path().unwrap_or_default();
    std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect()
}

/// The client's own folder of the user.
pub fn client_folder() -> Option<PathBuf> {
    variable("CLAUDE_CONFIG_DIR").map(PathBuf::from).or_else(|| home().map(|home| home.join(".claude")))
}
