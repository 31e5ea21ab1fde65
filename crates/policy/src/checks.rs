//! Commands that check the work: which ones are, and which lines of their output name what failed.

use plimsoll_domain::text::{clip, one_line};

/// How many lines of one failed check are kept at most.
const FAILURES: usize = 8;
/// How much of a line.
const LINE: usize = 160;

/// Words of a command line that make it a check.
const CHECKS: [&str; 16] = [
    "test", "tests", "pytest", "unittest", "check", "clippy", "lint", "eslint", "tsc", "mypy", "ruff", "vet",
    "vitest", "jest", "rspec", "ctest",
];

/// True for a command that checks the work: one of the run's verify commands, or one that a test runner or linter is
/// named in.
pub fn is_check(command: &str, verify: &[String]) -> bool {
    let is_verify = |known: &String| !known.trim().is_empty() && command.contains(known.trim());
    let words = command.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    // `test -f file` asks about a file; `git commit -m "Add a test"` checks nothing.
    let is_shell_test = command.trim_start().starts_with("test ") || command.trim_start().starts_with("[ ");
    let is_talk =
        ["git ", "echo ", "grep ", "rg ", "cat ", "ls ", "sed ", "find ", "mkdir ", "rm ", "touch "]
            .iter()
            .any(|program| command.trim_start().starts_with(program));
    verify.iter().any(is_verify)
        || (!is_shell_test && !is_talk && words.into_iter().any(|word| CHECKS.contains(&word)))
}

/// The lines that name what failed, in their order and each once; where none does, the last line that says anything.
pub fn failures(output: &str) -> Vec<String> {
    let mut named: Vec<String> = Vec::new();
    for line in output.lines().filter(|line| names_a_failure(line)) {
        let line = clip(&one_line(line), LINE);
        if named.len() < FAILURES && !named.contains(&line) {
            named.push(line);
        }
    }
    if named.is_empty() {
        let last = output.lines().rev().map(str::trim).find(|line| !line.is_empty() && !is_exit_code(line));
        named.extend(last.map(|line| clip(&one_line(line), LINE)));
    }
    named
}

/// What the client writes before the output of a command that failed.
fn is_exit_code(line: &str) -> bool {
    line.strip_prefix("Exit code ").is_some_and(|rest| rest.chars().all(|letter| letter.is_ascii_digit()))
}

fn names_a_failure(line: &str) -> bool {
    let line = line.trim();
    // A tally such as `3 passed, 0 failed` names nothing.
    let begins = ["FAIL", "FAILED", "ERROR", "error", "Error", "not ok", "✗", "✕", "×", "✘", "--- FAIL"];
    let is_tally = line.starts_with("FAILED (") || line.to_lowercase().contains("0 failed");
    let ends = ["... FAILED", "--- FAILED", " FAILED", "... FAIL"];
    !is_tally
        && (begins.iter().any(|start| starts_with_word(line, start))
            || ends.iter().any(|end| line.ends_with(end)))
}

fn starts_with_word(line: &str, word: &str) -> bool {
    line.strip_prefix(word)
        .is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_a_verify_command_or_names_a_runner() {
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
            assert_eq!(is_check(command, &verify), expected, "{command}");
        }
    }

    #[test]
    fn the_lines_that_name_what_failed_are_kept_in_their_order() {
        let python = "F.\n======\nFAIL: test_old (Dates)\n---\nTraceback\nAssertionError\nFAIL: test_empty (Dates)\nRan 2 tests\nFAILED (failures=2)";
        assert_eq!(failures(python), ["FAIL: test_old (Dates)", "FAIL: test_empty (Dates)"]);
        let cargo =
            "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed";
        assert_eq!(failures(cargo), ["test b ... FAILED"]);
        let rustc = "error[E0308]: mismatched types\n  --> src/a.rs:3";
        assert_eq!(failures(rustc), ["error[E0308]: mismatched types"]);
        assert_eq!(failures("Exit code 1\nsomething broke\n"), ["something broke"]);
        assert_eq!(failures("Exit code 1\n"), [""; 0]);
        let many: String = (0..50).map(|number| format!("FAIL: test_{number}\n")).collect();
        assert_eq!(failures(&many).len(), FAILURES);
    }
}
