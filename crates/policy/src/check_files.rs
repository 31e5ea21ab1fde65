//! Which files check the work: tests by the usual names, and what the verify commands name.

/// What a program reads to know what to run.
const READ_BY: [(&[&str], &[&str]); 5] = [
    (&["make", "gmake"], &["Makefile", "makefile", "GNUmakefile"]),
    (&["npm", "pnpm", "yarn", "bun"], &["package.json"]),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["pytest", "tox"], &["pytest.ini", "tox.ini", "conftest.py"]),
    (&["cargo-nextest", "nextest"], &[".config/nextest.toml"]),
];

/// Folders that hold tests.
const TEST_FOLDERS: [&str; 5] = ["test", "tests", "__tests__", "spec", "specs"];

/// Returns true for a test, and for a file that one of the commands names or reads to know what to run.
pub fn is_check_file(path: &str, commands: &[String]) -> bool {
    is_test(path) || commands.iter().any(|command| is_named_by(command, path))
}

fn is_test(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    let inner = name.split('.').rev().nth(1).unwrap_or_default();
    let is_between_dots = name.matches('.').count() > 1 && ["test", "spec"].contains(&inner);
    let is_code = name.contains('.');
    let ends = ["_test", "_tests", "_spec", "Test", "Tests"];
    let is_test_name = stem.starts_with("test_") || ends.iter().any(|end| stem.ends_with(end));
    folders.split('/').any(|folder| TEST_FOLDERS.contains(&folder))
        || is_code && (is_test_name || is_between_dots || name == "conftest.py")
}

fn is_named_by(command: &str, path: &str) -> bool {
    let is_separator = |letter: char| letter.is_whitespace() || "'\"`;&|()<>=$".contains(letter);
    let words: Vec<&str> = command.split(is_separator).filter(|word| !word.is_empty()).collect();
    let is_path = |word: &&str| word.strip_prefix("./").unwrap_or(word) == path;
    let is_read = |(programs, files): &(&[&str], &[&str])| {
        files.contains(&path) && words.iter().any(|word| programs.contains(word))
    };
    words.iter().any(is_path) || READ_BY.iter().any(is_read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_what_the_commands_name_are_check_files_and_nothing_else_is() {
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
            // Not what a command only looks at or below.
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
