//! Paths as bytes, as git prints them, and the entries of a search path.

#[cfg_attr(unix, path = "paths/unix.rs")]
#[cfg_attr(windows, path = "paths/windows.rs")]
mod platform;

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Converts bytes that git or another program has printed. On Windows they are UTF-8, and any others are replaced so that
/// they name no file.
pub fn os_str_from_bytes(bytes: &[u8]) -> Cow<'_, OsStr> {
    platform::os_str_from_bytes(bytes)
}

/// Returns the bytes of a relative path as git prints it, with `/` between its parts.
pub fn bytes_with_slashes(path: &Path) -> Cow<'_, [u8]> {
    platform::bytes_with_slashes(path)
}

/// Appends text, in which `/` separates names, to a path. Allocates once: joining part by part would allocate each time, and
/// every hook builds about a dozen paths.
pub fn append_to_path(base: &Path, parts: &[&str]) -> PathBuf {
    platform::append_to_path(base, parts)
}

/// Returns the name of the file of one of our programs, on Windows with `.exe`.
pub fn program_file_name(name: &str) -> Cow<'_, str> {
    platform::program_file_name(name)
}

/// Returns the path of one of our programs in a folder.
pub fn program_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(&*program_file_name(name))
}

/// Returns the name of the program in a file, which is the file's name, on Windows without `.exe`.
pub fn program_name(path: &Path) -> Cow<'_, str> {
    platform::program_name(path)
}

/// Returns a program's path as text for a command that a shell reads. On Windows it has `/` between its names, which every
/// shell there understands, and the short names of folders whose names have a character that is not `is_plain`, because
/// the shells have no quotes in common. A folder may have no short name, or one with such a character (`R&D`).
pub fn program_path_for_shells(path: &Path, is_plain: fn(char) -> bool) -> String {
    platform::program_path_for_shells(path, is_plain)
}

/// Returns the absolute path of the POSIX shell, because the `PATH` may have relative entries. On Windows the shell comes
/// with git, and the client needs it as well. `find_program` finds a program by its name or its path.
pub fn shell_path(
    git_path: impl Fn() -> &'static Path,
    find_program: impl Fn(&str) -> Option<PathBuf>,
) -> Cow<'static, Path> {
    platform::shell_path(git_path, find_program)
}

/// The value of `PATH` with which only the system's own programs are found.
pub const SYSTEM_SEARCH_PATH: &str = platform::SYSTEM_SEARCH_PATH;

/// Splits the value of a variable such as `PATH` into its entries, which may be empty or relative.
pub fn split_search_path(search_path: &OsStr) -> impl Iterator<Item = Cow<'_, Path>> {
    platform::split_search_path(search_path)
}

/// Joins entries of a search path to the value of a variable such as `PATH`.
pub fn join_search_path<'a>(entries: impl Iterator<Item = Cow<'a, Path>>) -> OsString {
    platform::join_search_path(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_path_is_split_and_joined_without_loss() {
        let separator = if cfg!(windows) { ";" } else { ":" };
        for entries in [vec!["a"], vec!["a b", "", "c"], vec!["", "a"], vec!["a", ""]] {
            let search_path = OsString::from(entries.join(separator));
            let split: Vec<Cow<'_, Path>> = split_search_path(&search_path).collect();
            assert_eq!(split, entries.iter().map(Path::new).collect::<Vec<_>>());
            assert_eq!(join_search_path(split.into_iter()), search_path);
        }
    }

    #[test]
    fn a_program_has_its_name_in_every_folder() {
        for name in ["plimsoll", "plimsoll-mcp", "a.b"] {
            assert_eq!(program_name(&program_path(Path::new("folder"), name)), name);
            assert_eq!(program_name(Path::new(name)), name);
        }
        let expected = if cfg!(windows) { "plimsoll" } else { "plimsoll.EXE" };
        assert_eq!(program_name(Path::new("folder/plimsoll.EXE")), expected);
        assert_eq!(program_name(Path::new("")), "");
    }

    #[test]
    fn text_is_appended_to_a_path() {
        let base = std::env::temp_dir();
        for (parts, expected) in
            [(&["/a/b", ".json"][..], base.join("a").join("b.json")), (&[], base.clone())]
        {
            assert_eq!(append_to_path(&base, parts), expected);
        }
    }

    #[test]
    fn paths_that_git_prints_name_files_and_are_printed_again() {
        for path in ["a", "a/b c", "größe/☃"] {
            let converted = os_str_from_bytes(path.as_bytes());
            assert_eq!(*converted, *path);
            assert_eq!(*bytes_with_slashes(&Path::new("").join(&converted)), *path.as_bytes());
            let nested: PathBuf = Path::new(&converted).components().collect();
            assert_eq!(*bytes_with_slashes(&nested), *path.as_bytes());
        }
    }
}
