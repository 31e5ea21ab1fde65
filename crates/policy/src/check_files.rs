//! Recognizes files that check the work: test files with conventional names, and files that the verify commands
//! name or read.

/// Programs, and the configuration files that tell them what to run.
const FILES_READ_BY_PROGRAMS: [(&[&str], &[&str]); 5] = [
    (&["make", "gmake"], &["Makefile", "makefile", "GNUmakefile"]),
    (&["npm", "pnpm", "yarn", "bun"], &["package.json"]),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["pytest", "tox"], &["pytest.ini", "tox.ini", "conftest.py"]),
    (&["cargo-nextest", "nextest"], &[".config/nextest.toml"]),
];

const TEST_FOLDERS: [&str; 5] = ["test", "tests", "__tests__", "spec", "specs"];

/// Returns true for a test file, and for a file that a verify command names or that its program reads as
/// configuration.
pub fn is_check_file(path: &str, verify_commands: &[String]) -> bool {
    is_test_file(path)
        || verify_commands.iter().any(|command| command_names_file_or_program_reading_it(command, path))
}

fn is_test_file(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    let inner_extension = name.split('.').rev().nth(1).unwrap_or_default();
    let has_test_extension = name.matches('.').count() > 1 && ["test", "spec"].contains(&inner_extension);
    let has_extension = name.contains('.');
    let suffixes = ["_test", "_tests", "_spec", "Test", "Tests"];
    let is_test_name = stem.starts_with("test_") || suffixes.iter().any(|suffix| stem.ends_with(suffix));
    folders.split('/').any(|folder| TEST_FOLDERS.contains(&folder))
        || has_extension && (is_test_name || has_test_extension || name == "conftest.py")
}

fn command_names_file_or_program_reading_it(command: &str, path: &str) -> bool {
    let is_separator = |c: char| c.is_whitespace() || "'\"`;&|()<>=$".contains(c);
    let words: Vec<&str> = command.split(is_separator).filter(|word| !word.is_empty()).collect();
    let is_same_path = |word: &&str| word.strip_prefix("./").unwrap_or(word) == path;
    let is_read_by_program = |(programs, files): &(&[&str], &[&str])| {
        files.contains(&path) && words.iter().any(|word| programs.contains(word))
    };
    words.iter().any(is_same_path) || FILES_READ_BY_PROGRAMS.iter().any(is_read_by_program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tests_and_files_named_or_read_by_commands_are_check_files() {
        let commands = ["sh ./check.sh --all", "make test && npm run 'lint'", "python3 -m pytest src"]
            .map(str::to_owned)
            .to_vec();
        for (path, expected) in [
            ("check.sh", true),
            ("Makefile", true),
            ("package.json", true),
            ("pytest.ini", true),
            ("tests/parse.rs", true),
            ("crates/a/tests/data/golden.txt", true),
            ("src/__tests__/a.ts", true),
            ("src/a.test.ts", true),
            ("src/a.spec.js", true),
            ("pkg/a_test.go", true),
            ("src/test_dates.py", true),
            ("src/DatesTest.java", true),
            ("app/models/user_spec.rb", true),
            ("conftest.py", true),
            // Files that a command merely reads, or that lie below a named folder.
            ("src/parse.rs", false),
            ("src/latest.rs", false),
            ("docs/testing.md", false),
            ("contest.py", false),
            ("sub/check.sh", false),
            ("justfile", false),
            ("attest", false),
        ] {
            assert_eq!(is_check_file(path, &commands), expected, "{path}");
        }
        assert!(!is_check_file("Makefile", &["cargo test".to_owned()]));
    }
}
