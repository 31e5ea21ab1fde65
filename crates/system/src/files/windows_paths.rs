//! Rules for paths on Windows that do not need Windows, so that they are tested everywhere.

use std::ffi::OsStr;
use std::io;
use std::path::Prefix;

/// Returns an error for a name that Windows does not use as the name of a file in its folder: a device such as `NUL` or
/// `COM1.txt`, a stream of another file (`a.md:stream`), a wildcard, or a name of which it would remove the end.
pub(super) fn check_file_name(name: &OsStr) -> io::Result<()> {
    let refuse = |reason: &str| {
        let name = name.to_string_lossy();
        Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{name}` {reason}")))
    };
    let text = name.to_string_lossy();
    if text.contains(['<', '>', ':', '"', '/', '\\', '|', '?', '*']) || text.contains(char::is_control) {
        refuse("contains a character that is not allowed in the name of a file")
    } else if text.ends_with(['.', ' ']) {
        refuse("ends with a dot or a space, which Windows would remove")
    } else if is_device_name(&text) {
        refuse("is the name of a device")
    } else {
        Ok(())
    }
}

/// Returns true for the name of a device, also with an extension: `NUL`, `com1.txt`, `COM¹`.
fn is_device_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end_matches(' ').to_ascii_uppercase();
    if matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$") {
        return true;
    }
    let number = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT"));
    number.is_some_and(|number| {
        matches!(number, "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³")
    })
}

/// Returns true if two names are the same on a volume that ignores case, as those of Windows do. NTFS compares the upper
/// case of single characters, so `ß` and `SS` are different names.
pub(super) fn is_same_name(left: &OsStr, right: &OsStr) -> bool {
    let (left, right) = (left.to_string_lossy(), right.to_string_lossy());
    left == right || left.chars().map(to_upper_case).eq(right.chars().map(to_upper_case))
}

fn to_upper_case(character: char) -> char {
    let mut upper_case = character.to_uppercase();
    match (upper_case.next(), upper_case.next()) {
        (Some(upper_case), None) => upper_case,
        _ => character,
    }
}

/// Returns true if two paths begin at the same place, although one of them is verbatim: `C:` and `\\?\C:`, or
/// `\\server\share` and `\\?\UNC\server\share`.
pub(super) fn is_same_prefix(left: Prefix<'_>, right: Prefix<'_>) -> bool {
    match (left, right) {
        (
            Prefix::Disk(left) | Prefix::VerbatimDisk(left),
            Prefix::Disk(right) | Prefix::VerbatimDisk(right),
        ) => left.eq_ignore_ascii_case(&right),
        (
            Prefix::UNC(left_server, left_share) | Prefix::VerbatimUNC(left_server, left_share),
            Prefix::UNC(right_server, right_share) | Prefix::VerbatimUNC(right_server, right_share),
        ) => is_same_name(left_server, right_server) && is_same_name(left_share, right_share),
        (Prefix::DeviceNS(left), Prefix::DeviceNS(right))
        | (Prefix::Verbatim(left), Prefix::Verbatim(right)) => is_same_name(left, right),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_windows_does_not_keep_are_refused() {
        for name in
            ["a.md", "ralph-state.json", ".gitignore", "console", "com10", "COMMON", "nul-1", "ä ö.txt"]
        {
            assert!(check_file_name(OsStr::new(name)).is_ok(), "{name}");
        }
        for name in [
            "nul",
            "NUL",
            "con.json",
            "Aux.tar.gz",
            "com1",
            "LPT9.txt",
            "COM¹",
            "conin$",
            "nul .txt",
            "a:b",
            "C:",
            "a.md::$DATA",
            "a?",
            "*",
            "a\\b",
            "a/b",
            "a.",
            "a ",
            "..",
            "tab\t",
        ] {
            let error = check_file_name(OsStr::new(name)).unwrap_err().to_string();
            assert!(error.contains(name), "{name}: {error}");
        }
    }

    #[test]
    fn names_are_compared_ignoring_case() {
        for (left, right, expected) in [
            ("Project", "PROJECT", true),
            ("straße", "STRASSE", false),
            ("straße", "STRAßE", true),
            ("é", "É", true),
            ("project", "project-2", false),
        ] {
            assert_eq!(is_same_name(OsStr::new(left), OsStr::new(right)), expected, "{left} {right}");
        }
    }

    #[test]
    fn a_verbatim_path_begins_at_the_same_place() {
        let name = OsStr::new;
        let share = Prefix::UNC(name("Server"), name("share"));
        for (left, right, expected) in [
            (Prefix::Disk(b'C'), Prefix::VerbatimDisk(b'c'), true),
            (Prefix::Disk(b'C'), Prefix::Disk(b'D'), false),
            (share, Prefix::VerbatimUNC(name("server"), name("SHARE")), true),
            (share, Prefix::UNC(name("server"), name("other")), false),
            (share, Prefix::Verbatim(name("Server")), false),
            (Prefix::DeviceNS(name("pipe")), Prefix::DeviceNS(name("PIPE")), true),
        ] {
            assert_eq!(is_same_prefix(left, right), expected, "{left:?} {right:?}");
            assert_eq!(is_same_prefix(right, left), expected, "{right:?} {left:?}");
        }
    }
}
