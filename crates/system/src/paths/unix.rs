//! A path is any bytes without a zero.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

pub(super) const SYSTEM_SEARCH_PATH: &str = "/usr/bin:/bin";

pub(super) fn os_str_from_bytes(bytes: &[u8]) -> Cow<'_, OsStr> {
    Cow::Borrowed(OsStr::from_bytes(bytes))
}

pub(super) fn bytes_with_slashes(path: &Path) -> Cow<'_, [u8]> {
    Cow::Borrowed(path.as_os_str().as_bytes())
}

pub(super) fn program_file_name(name: &str) -> Cow<'_, str> {
    Cow::Borrowed(name)
}

pub(super) fn program_name(path: &Path) -> Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

pub(super) fn program_path_for_shells(path: &Path, _is_plain: fn(char) -> bool) -> String {
    path.display().to_string()
}

pub(super) fn shell_path(
    _git_path: impl Fn() -> &'static Path,
    _find_program: impl Fn(&str) -> Option<PathBuf>,
) -> Cow<'static, Path> {
    Cow::Borrowed(Path::new("/bin/sh"))
}

pub(super) fn split_search_path(search_path: &OsStr) -> impl Iterator<Item = Cow<'_, Path>> {
    let entries = search_path.as_bytes().split(|byte| *byte == b':');
    entries.map(|entry| Cow::Borrowed(Path::new(OsStr::from_bytes(entry))))
}

pub(super) fn join_search_path<'a>(entries: impl Iterator<Item = Cow<'a, Path>>) -> OsString {
    let mut search_path = Vec::new();
    for (index, entry) in entries.enumerate() {
        if index > 0 {
            search_path.push(b':');
        }
        search_path.extend_from_slice(entry.as_os_str().as_bytes());
    }
    OsString::from_vec(search_path)
}

pub(super) fn append_to_path(base: &Path, parts: &[&str]) -> PathBuf {
    let length = parts.iter().map(|part| part.len()).sum::<usize>();
    let mut path = OsString::with_capacity(base.as_os_str().len() + length);
    path.push(base);
    parts.iter().for_each(|part| path.push(part));
    PathBuf::from(path)
}
