//! The names of programs on Windows; apart, so that they are tested everywhere.

/// The extensions of the files that a process can be started from. `PATHEXT` also lists scripts that need another program.
const PROGRAM_EXTENSIONS: [&str; 4] = [".com", ".exe", ".bat", ".cmd"];

pub(super) fn program_file_names(name: &str, path_ext: Option<&str>) -> Vec<String> {
    if has_program_extension(name) {
        return vec![name.to_owned()];
    }
    let is_program_extension = |extension: &&str| {
        PROGRAM_EXTENSIONS.iter().any(|known_extension| known_extension.eq_ignore_ascii_case(extension))
    };
    let mut extensions: Vec<&str> =
        path_ext.unwrap_or_default().split(';').filter(is_program_extension).collect();
    if extensions.is_empty() {
        extensions = PROGRAM_EXTENSIONS.to_vec();
    }
    extensions.into_iter().map(|extension| format!("{name}{}", extension.to_ascii_lowercase())).collect()
}

fn has_program_extension(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PROGRAM_EXTENSIONS.iter().any(|extension| name.ends_with(extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_the_extensions_of_the_variable() {
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
