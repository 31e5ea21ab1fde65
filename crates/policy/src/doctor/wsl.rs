//! Recognizes what belongs to Windows, for the Windows Subsystem for Linux (WSL). There both systems see each other's files and
//! start each other's programs, but a client starts its hooks in its own system.

/// Returns true if a program runs in Windows: by its extension, or because it is on a drive of Windows.
pub fn is_windows_program(path: &str) -> bool {
    let extensions = [".exe", ".cmd", ".bat", ".ps1"];
    extensions.into_iter().any(|extension| has_extension(path, extension)) || is_on_windows_drive(path)
}

/// Returns true for `C:\…`, `\\server\…`, and for WSL's name of a drive: `/mnt/c/…`.
fn is_on_windows_drive(path: &str) -> bool {
    let starts_with_drive = |path: &str, separators: &[char]| {
        let rest = path.strip_prefix(|drive: char| drive.is_ascii_alphabetic());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(separators))
    };
    path.starts_with(r"\\")
        || starts_with_drive(path, &[':'])
        || path.strip_prefix("/mnt/").is_some_and(|path| starts_with_drive(path, &['/']))
}

/// Returns true if the file name ends with `.exe`, in upper or lower case.
pub(super) fn is_exe_file(path: &str) -> bool {
    has_extension(path, ".exe")
}

fn has_extension(path: &str, extension: &str) -> bool {
    let start = path.len().saturating_sub(extension.len());
    path.get(start..).is_some_and(|end| end.eq_ignore_ascii_case(extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_windows_are_recognized() {
        for (path, expected) in [
            ("/mnt/c/Users/u/AppData/Roaming/npm/claude", true),
            ("/mnt/D/claude", true),
            ("/usr/local/bin/claude.exe", true),
            ("/home/u/claude.CMD", true),
            (r"C:\Users\u\claude", true),
            (r"\\wsl$\Debian\claude", true),
            ("/usr/local/bin/claude", false),
            ("/mnt/data/claude", false),
            ("/mnt/c", true),
            ("/home/u/exe", false),
            ("claude", false),
            ("", false),
        ] {
            assert_eq!(is_windows_program(path), expected, "{path}");
        }
    }
}
