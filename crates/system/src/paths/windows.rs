//! A path is UTF-16 that may be malformed. The standard library keeps it as an extension of UTF-8, so text in UTF-8 is
//! converted without a copy.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf, Prefix};
use winsafe::{HFINDFILE, WIN32_FIND_DATA};

/// The usual folder of Windows. Neither git nor the client is found in it.
pub(super) const SYSTEM_SEARCH_PATH: &str = r"C:\Windows\System32;C:\Windows";

pub(super) fn os_str_from_bytes(bytes: &[u8]) -> Cow<'_, OsStr> {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => Cow::Borrowed(OsStr::new(text)),
        Cow::Owned(text) => Cow::Owned(text.into()),
    }
}

pub(super) fn bytes_with_slashes(path: &Path) -> Cow<'_, [u8]> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if !bytes.contains(&b'\\') {
        return Cow::Borrowed(bytes);
    }
    Cow::Owned(bytes.iter().map(|byte| if *byte == b'\\' { b'/' } else { *byte }).collect())
}

pub(super) fn program_file_name(name: &str) -> Cow<'_, str> {
    Cow::Owned(format!("{name}.exe"))
}

/// A program may also be started by its name without the ending.
pub(super) fn program_name(path: &Path) -> Cow<'_, str> {
    let has_ending = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("exe"));
    let name = if has_ending { path.file_stem() } else { path.file_name() };
    name.unwrap_or_default().to_string_lossy()
}

/// The program's own name stays, because it decides what the program does.
pub(super) fn program_path_for_shells(path: &Path, is_plain: fn(char) -> bool) -> String {
    let path = dunce::simplified(path);
    let mut folder = PathBuf::new();
    let mut text = String::new();
    for component in path.components() {
        folder.push(component);
        match component {
            Component::RootDir => {}
            Component::Prefix(prefix) => match prefix.kind() {
                // Only backslashes separate names in a verbatim path.
                Prefix::VerbatimUNC(server, share) => {
                    text += &format!(r"\\{}\{}", server.to_string_lossy(), share.to_string_lossy());
                }
                _ => text += &prefix.as_os_str().to_string_lossy(),
            },
            Component::CurDir | Component::ParentDir | Component::Normal(_) => {
                let name = component.as_os_str().to_string_lossy();
                let needs_short_name = folder != path && !name.chars().all(is_plain);
                let short_file_name = needs_short_name.then(|| short_file_name(&folder)).flatten();
                text.extend(["/", short_file_name.as_deref().unwrap_or(&name)]);
            }
        }
    }
    text
}

/// Returns the short name of a file or folder, such as `PROGRA~1`. It follows the rules of MS-DOS.
fn short_file_name(path: &Path) -> Option<String> {
    let mut found_file = WIN32_FIND_DATA::default();
    let (_search, is_found) = HFINDFILE::FindFirstFile(path.to_str()?, &mut found_file).ok()?;
    Some(found_file.cAlternateFileName()).filter(|name| is_found && !name.is_empty())
}

/// Git's installer adds `cmd\git.exe` to the `PATH`, but not `bin\sh.exe` unless the user chooses so.
pub(super) fn shell_path(
    git_path: impl Fn() -> &'static Path,
    find_program: impl Fn(&str) -> Option<PathBuf>,
) -> Cow<'static, Path> {
    /// Starting this path fails with an error that names no such file.
    const MISSING_SHELL: &str = r"C:\Program Files\Git\bin\sh.exe";
    let shell_of_git = git_installation_folder(git_path())
        .and_then(|folder| find_program(folder.join(r"bin\sh.exe").to_str()?));
    let shell = shell_of_git.or_else(|| find_program("sh"));
    shell.map_or(Cow::Borrowed(Path::new(MISSING_SHELL)), Cow::Owned)
}

/// Returns the folder of an installation of git from the path of its program: `cmd\git.exe`, `bin\git.exe` or
/// `mingw64\bin\git.exe`. Returns `None` for another path, and for the root of a drive, where every user may create
/// folders.
fn git_installation_folder(git_path: &Path) -> Option<&Path> {
    let lower_case_name = |folder: &Path| Some(folder.file_name()?.to_str()?.to_ascii_lowercase());
    let program_folder = git_path.parent()?;
    let parent = program_folder.parent()?;
    let installation_folder = match lower_case_name(program_folder)?.as_str() {
        "bin" if lower_case_name(parent).is_some_and(|name| name.starts_with("mingw")) => parent.parent()?,
        "cmd" | "bin" => parent,
        _ => return None,
    };
    installation_folder.parent().is_some().then_some(installation_folder)
}

pub(super) fn split_search_path(search_path: &OsStr) -> impl Iterator<Item = Cow<'_, Path>> {
    std::env::split_paths(search_path).map(Cow::Owned)
}

/// Leaves out an entry that contains a quotation mark, because it cannot be quoted, and no file's name contains one.
pub(super) fn join_search_path<'a>(entries: impl Iterator<Item = Cow<'a, Path>>) -> OsString {
    let has_no_quotation_mark = |entry: &Cow<'_, Path>| !entry.as_os_str().as_encoded_bytes().contains(&b'"');
    std::env::join_paths(entries.filter(has_no_quotation_mark).map(Cow::into_owned)).unwrap_or_default()
}

/// A verbatim path (`\\?\C:\`) has only backslashes.
pub(super) fn append_to_path(base: &Path, parts: &[&str]) -> PathBuf {
    let mut path = base.as_os_str().to_owned();
    parts.iter().for_each(|part| path.push(part.replace('/', "\\")));
    PathBuf::from(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "`store` uses this crate")]
    fn a_path_for_shells_leads_to_the_same_program_without_quotes() {
        let folder = std::env::temp_dir().join(format!("plimsoll paths (test) {}", std::process::id()));
        std::fs::create_dir_all(folder.join("bin")).unwrap();
        let program = folder.join("bin").join("plimsoll-statusline.exe");
        std::fs::write(&program, "program").unwrap();
        let is_plain = |character: char| character.is_alphanumeric() || "/._-+:~".contains(character);
        let text = program_path_for_shells(&program, is_plain);
        assert_eq!(std::fs::read_to_string(&text).unwrap(), "program", "{text}");
        assert!(text.ends_with("/bin/plimsoll-statusline.exe") && !text.contains('\\'), "{text}");
        // Without short names on this volume the path stays as it is.
        assert_eq!(text.chars().all(is_plain), short_file_name(&folder).is_some(), "{text}");
        let verbatim = PathBuf::from(format!(r"\\?\{}", program.display()));
        assert_eq!(program_path_for_shells(&verbatim, is_plain), text);
        std::fs::remove_dir_all(&folder).unwrap();
        for (path, expected) in [
            (r"C:\Users\jo\plimsoll-mcp.exe", "C:/Users/jo/plimsoll-mcp.exe"),
            (r"\\server\share\plimsoll-mcp.exe", r"\\server\share/plimsoll-mcp.exe"),
            (r"\\?\UNC\server\share\plimsoll-mcp.exe", r"\\server\share/plimsoll-mcp.exe"),
        ] {
            assert_eq!(program_path_for_shells(Path::new(path), is_plain), expected);
        }
    }

    #[test]
    fn the_shell_of_git_comes_before_that_of_the_path() {
        for (git, files, expected) in [
            (r"C:\Git\cmd\git.exe", &[r"C:\Git\bin\sh.exe", "sh"][..], r"C:\Git\bin\sh.exe"),
            (r"C:\Git\mingw64\bin\git.exe", &[r"C:\Git\bin\sh.exe"], r"C:\Git\bin\sh.exe"),
            (r"C:\shims\git.exe", &["sh"], "sh"),
            (r"C:\shims\git.exe", &[], r"C:\Program Files\Git\bin\sh.exe"),
            // Any user could have created these.
            (r"C:\shims\git.exe", &[r"C:\bin\sh.exe", r"C:\shims\bin\sh.exe", "sh"], "sh"),
            (r"C:\bin\git.exe", &[r"C:\bin\sh.exe", "sh"], "sh"),
            (r"C:\ProgramData\x\bin\git.exe", &[r"C:\ProgramData\bin\sh.exe", "sh"], "sh"),
        ] {
            let find_program = |name: &str| files.contains(&name).then(|| name.into());
            assert_eq!(shell_path(|| Path::new(git), find_program), Path::new(expected), "{git} {files:?}");
        }
    }
}
