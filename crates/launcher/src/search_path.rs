//! The PATH by which other programs are found.
//!
//! We start programs in folders that a session can write. By a relative or an empty entry of the PATH a program there would be
//! taken for the user's and run outside of the session's sandbox: the one that we start, and every one that it starts by its
//! name (`env node` in the first line of a script, git's ssh and filters). So neither we nor they search such entries.

use plimsoll_store::environment;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

/// Searched if nothing is left of the PATH: an empty one means the current folder.
const SYSTEM_FOLDERS: &str = "/usr/bin:/bin";

/// Creates a command that is found, and finds other programs, by the absolute entries of the PATH alone.
pub(crate) fn new_command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    if let Some(path) = environment::search_path().filter(|path| has_relative_entry(path)) {
        command.env("PATH", without_entries(&path, |_| false));
    }
    command
}

/// Lets a command find programs by the absolute entries of our PATH that are not inside of some folders.
pub(crate) fn search_outside(command: &mut Command, is_inside: impl Fn(&Path) -> bool) {
    if let Some(path) = environment::search_path() {
        command.env("PATH", without_entries(&path, is_inside));
    }
}

/// Lets a command find programs as our caller's shell would, by relative entries of the PATH, too: for what is told to run the
/// project's own programs.
pub(crate) fn search_as_callers_shell(command: &mut Command) {
    if let Some(path) = environment::search_path() {
        command.env("PATH", path);
    }
}

fn has_relative_entry(path: &OsStr) -> bool {
    path.as_bytes().split(|byte| *byte == b':').any(|entry| !entry.starts_with(b"/"))
}

/// Returns a PATH without its relative and empty entries, and without those that are left out.
fn without_entries(path: &OsStr, is_left_out: impl Fn(&Path) -> bool) -> OsString {
    let entries = path.as_bytes().split(|byte| *byte == b':');
    let kept = entries
        .filter(|entry| entry.starts_with(b"/") && !is_left_out(Path::new(OsStr::from_bytes(entry))))
        .collect::<Vec<&[u8]>>()
        .join(&b':');
    if kept.is_empty() { SYSTEM_FOLDERS.into() } else { OsStr::from_bytes(&kept).to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_relative_or_empty_entry_of_the_path_is_searched() {
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
            assert_eq!(without_entries(path, |_| false), expected, "{path:?}");
            assert_eq!(without_entries(path, in_project), outside, "{path:?}");
            assert_eq!(
                has_relative_entry(path),
                path != expected && !path.eq("/project/bin:/usr/bin"),
                "{path:?}"
            );
        }
    }

    #[test]
    fn a_path_that_is_no_text_is_cleaned_like_any_other() {
        let path = OsStr::from_bytes(b".:/opt/\xff/bin:/usr/bin");
        assert_eq!(without_entries(path, |_| false), OsStr::from_bytes(b"/opt/\xff/bin:/usr/bin"));
    }
}
