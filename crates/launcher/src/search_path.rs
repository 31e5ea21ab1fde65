//! The PATH of the commands that we start.
//!
//! We start programs in folders that a session can write to. If the PATH has a relative or empty entry, a
//! program in such a folder could run instead of the user's program, outside the session's sandbox. This
//! applies to the program that we start and to every program that it starts by name (`env node` in the first
//! line of a script, git's ssh and filters). Therefore neither we nor our children search such entries.

use plimsoll_store::environment;
use plimsoll_system::paths::{SYSTEM_SEARCH_PATH, join_search_path, split_search_path};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

/// Creates a command whose PATH contains only absolute entries, for itself and for the programs that it starts.
pub(crate) fn command_with_only_absolute_path_entries(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    if let Some(path) = environment::path_variable().filter(|path| has_relative_entry(path)) {
        command.env("PATH", absolute_path_entries_or_system_path(&path, |_| false));
    }
    command
}

/// Limits the PATH of a command to the absolute entries for which `is_inside` returns false.
pub(crate) fn restrict_path_to_entries_outside(command: &mut Command, is_inside: impl Fn(&Path) -> bool) {
    if let Some(path) = environment::path_variable() {
        command.env("PATH", absolute_path_entries_or_system_path(&path, is_inside));
    }
}

/// Sets the PATH of a command to that of our caller's shell, including relative entries. For commands that run
/// the project's programs.
pub(crate) fn use_callers_path_unchanged(command: &mut Command) {
    if let Some(path) = environment::path_variable() {
        command.env("PATH", path);
    }
}

fn has_relative_entry(path: &OsStr) -> bool {
    split_search_path(path).any(|entry| !entry.is_absolute())
}

/// Returns the PATH without relative and empty entries and without those for which `is_excluded` returns true.
/// Returns [`SYSTEM_SEARCH_PATH`] if no entry remains, because an empty PATH means the current folder.
fn absolute_path_entries_or_system_path(path: &OsStr, is_excluded: impl Fn(&Path) -> bool) -> OsString {
    let kept_entries = split_search_path(path).filter(|entry| entry.is_absolute() && !is_excluded(entry));
    let kept_path = join_search_path(kept_entries);
    if kept_path.is_empty() { SYSTEM_SEARCH_PATH.into() } else { kept_path }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_system::paths::os_str_from_bytes;

    #[test]
    fn relative_and_empty_path_entries_are_not_searched() {
        let in_project = |folder: &Path| folder.starts_with("/project");
        for (path, expected, outside) in [
            ("/usr/bin:/bin", "/usr/bin:/bin", "/usr/bin:/bin"),
            ("node_modules/.bin:/usr/bin:.", "/usr/bin", "/usr/bin"),
            (":/usr/bin::/opt/bin:", "/usr/bin:/opt/bin", "/usr/bin:/opt/bin"),
            ("/project/bin:/usr/bin", "/project/bin:/usr/bin", "/usr/bin"),
            ("", "/usr/bin:/bin", "/usr/bin:/bin"),
            (".:..", "/usr/bin:/bin", "/usr/bin:/bin"),
            ("/project/bin:.", "/project/bin", "/usr/bin:/bin"),
        ] {
            let path = OsStr::new(path);
            assert_eq!(absolute_path_entries_or_system_path(path, |_| false), expected, "{path:?}");
            assert_eq!(absolute_path_entries_or_system_path(path, in_project), outside, "{path:?}");
            assert_eq!(
                has_relative_entry(path),
                path != expected && !path.eq("/project/bin:/usr/bin"),
                "{path:?}"
            );
        }
    }

    #[test]
    fn a_path_that_is_not_utf8_is_filtered_too() {
        let path = os_str_from_bytes(b".:/opt/\xff/bin:/usr/bin");
        assert_eq!(
            absolute_path_entries_or_system_path(&path, |_| false),
            os_str_from_bytes(b"/opt/\xff/bin:/usr/bin")
        );
    }
}
