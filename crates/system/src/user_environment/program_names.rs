//! The names of programs on Windows; apart, so that they are tested everywhere.

/// The endings of the files that a process can be started from. `PATHEXT` also lists scripts that need another program.
const PROGRAM_ENDINGS: [&str; 4] = [".com", ".exe", ".bat", ".cmd"];

pub(super) fn program_file_names(name: &str, path_ext: Option<&str>) -> Vec<String> {
    if is_program_name(name) {
        return vec![name.to_owned()];
    }
    let is_program_ending =
        |ending: &&str| PROGRAM_ENDINGS.iter().any(|known_ending| known_ending.eq_ignore_ascii_case(ending));
    let mut endings: Vec<&str> = path_ext.unwrap_or_default().split(';').filter(is_program_ending).collect();
    if endings.is_empty() {
        endings = PROGRAM_ENDINGS.to_vec();
    }
    endings.into_iter().map(|ending| format!("{name}{}", ending.to_ascii_lowercase())).collect()
}

pub(super) fn is_program_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PROGRAM_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_the_endings_of_the_variable() {
        for (name, path_ext, expected) in [
            ("git", None, vec!["git.com", "git.exe", "git.bat", "git.cmd"]),
            ("git", Some(""), vec!["git.com", "git.exe", "git.bat", "git.cmd"]),
            ("git", Some(".EXE;.CMD"), vec!["git.exe", "git.cmd"]),
            (
                "claude",
                Some(".COM;.EXE;.BAT;.CMD;.VBS;.JS;.PY"),
                vec!["claude.com", "claude.exe", "claude.bat", "claude.cmd"],
            ),
            ("Git.EXE", Some(".cmd"), vec!["Git.EXE"]),
            ("node.v20", Some(".EXE"), vec!["node.v20.exe"]),
        ] {
            assert_eq!(program_file_names(name, path_ext), expected, "{name} {path_ext:?}");
        }
    }
}
