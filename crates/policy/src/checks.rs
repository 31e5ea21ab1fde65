//! Recognizes commands that check the work, and lines of their output that report a failure.

use plimsoll_domain::text::{to_safe_single_line, truncate_end};

/// The maximum number of lines kept of one failed check.
const MAX_FAILURE_LINES: usize = 8;
/// The maximum number of characters kept of one line.
const MAX_LINE_CHARS: usize = 160;

/// Words that identify a command line as a check.
const CHECK_WORDS: [&str; 16] = [
    "test", "tests", "pytest", "unittest", "check", "clippy", "lint", "eslint", "tsc", "mypy", "ruff", "vet",
    "vitest", "jest", "rspec", "ctest",
];

/// Returns true for a command that checks the work: one that contains a verify command of the run, or that
/// names a test runner or linter and is not a shell test or a program such as `git`, `echo` or `grep`.
pub fn is_check_command(command: &str, verify_commands: &[String]) -> bool {
    let contains_verify_command = |verify_command: &String| {
        !verify_command.trim().is_empty() && command.contains(verify_command.trim())
    };
    let words = command.split(|c: char| !c.is_alphanumeric() && c != '_');
    // `test -f file` tests a file, and `git commit -m "Add a test"` checks nothing.
    let is_shell_test = command.trim_start().starts_with("test ") || command.trim_start().starts_with("[ ");
    let is_other_program =
        ["git ", "echo ", "grep ", "rg ", "cat ", "ls ", "sed ", "find ", "mkdir ", "rm ", "touch "]
            .iter()
            .any(|program| command.trim_start().starts_with(program));
    verify_commands.iter().any(contains_verify_command)
        || (!is_shell_test && !is_other_program && words.into_iter().any(|word| CHECK_WORDS.contains(&word)))
}

/// Returns the lines that report a failure, in order and without duplicates. If there are none, returns the last
/// non-empty line.
pub fn failure_lines_or_last_line(output: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in output.lines().filter(|line| is_failure_line(line)) {
        let line = truncate_end(&to_safe_single_line(line), MAX_LINE_CHARS);
        if lines.len() < MAX_FAILURE_LINES && !lines.contains(&line) {
            lines.push(line);
        }
    }
    if lines.is_empty() {
        let last_line =
            output.lines().rev().map(str::trim).find(|line| !line.is_empty() && !is_exit_code_line(line));
        lines.extend(last_line.map(|line| truncate_end(&to_safe_single_line(line), MAX_LINE_CHARS)));
    }
    lines
}

/// Returns true for the line that the client writes before the output of a failed command.
fn is_exit_code_line(line: &str) -> bool {
    line.strip_prefix("Exit code ").is_some_and(|exit_code| exit_code.chars().all(|c| c.is_ascii_digit()))
}

fn is_failure_line(line: &str) -> bool {
    let line = line.trim();
    // A summary such as `3 passed, 0 failed` does not name a failure.
    let prefixes = ["FAIL", "FAILED", "ERROR", "error", "Error", "not ok", "✗", "✕", "×", "✘", "--- FAIL"];
    let is_summary_line = line.starts_with("FAILED (") || line.to_lowercase().contains("0 failed");
    let suffixes = ["... FAILED", "--- FAILED", " FAILED", "... FAIL"];
    !is_summary_line
        && (prefixes.iter().any(|prefix| starts_with_whole_word(line, prefix))
            || suffixes.iter().any(|suffix| line.ends_with(suffix)))
}

fn starts_with_whole_word(line: &str, word: &str) -> bool {
    line.strip_prefix(word)
        .is_some_and(|remainder| !remainder.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_a_verify_command_or_names_a_test_runner() {
        let verify = vec!["make all".to_owned()];
        for (command, expected) in [
            ("cargo test -p parser", true),
            ("cd src && make all", true),
            ("python3 -m unittest discover -s tests", true),
            ("npm run lint", true),
            ("make", false),
            ("test -f done.txt", false),
            ("git commit -m 'Add a test'", false),
            ("cat tests/test_dates.py", false),
            ("sed -i 's/test/check/' a", false),
            ("./latest.sh", false),
        ] {
            assert_eq!(is_check_command(command, &verify), expected, "{command}");
        }
    }

    #[test]
    fn lines_that_name_a_failure_are_kept_in_order() {
        let python = "F.\n======\nFAIL: test_old (Dates)\n---\nTraceback\nAssertionError\nFAIL: test_empty (Dates)\nRan 2 tests\nFAILED (failures=2)";
        assert_eq!(
            failure_lines_or_last_line(python),
            ["FAIL: test_old (Dates)", "FAIL: test_empty (Dates)"]
        );
        let cargo =
            "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed";
        assert_eq!(failure_lines_or_last_line(cargo), ["test b ... FAILED"]);
        let rustc = "error[E0308]: mismatched types\n  --> src/a.rs:3";
        assert_eq!(failure_lines_or_last_line(rustc), ["error[E0308]: mismatched types"]);
        assert_eq!(failure_lines_or_last_line("Exit code 1\nsomething broke\n"), ["something broke"]);
        assert_eq!(failure_lines_or_last_line("Exit code 1\n"), [""; 0]);
        let many_failures: String = (0..50).map(|number| format!("FAIL: test_{number}\n")).collect();
        assert_eq!(failure_lines_or_last_line(&many_failures).len(), MAX_FAILURE_LINES);
    }
}
