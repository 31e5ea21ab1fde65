//! Fingerprints that recognize a repeated error. Paths, numbers, times and ids are removed, so that a changed
//! line number does not hide the same error. Words are kept, so that different errors have different
//! fingerprints.

use plimsoll_domain::text::truncate_end;

/// The maximum number of lines that contribute to a fingerprint.
const MAX_ERROR_LINES: usize = 8;

/// Words that identify a line of output as an error message.
const ERROR_WORDS: [&str; 16] = [
    "error",
    "fail",
    "panic",
    "exception",
    "fatal",
    "denied",
    "cannot",
    "could not",
    "not found",
    "undefined",
    "unresolved",
    "mismatch",
    "assert",
    "expected",
    "no such",
    "unable",
];

/// Returns the fingerprint as 16 hexadecimal digits.
pub fn fingerprint_error(error: &str) -> String {
    let mut lines: Vec<String> = error_lines_or_last_three(error)
        .into_iter()
        .map(normalize_line)
        .filter(|line| !line.is_empty())
        .collect();
    // Parallel tools print the same lines in varying order.
    lines.sort();
    lines.dedup();
    format!("{:016x}", fnv1a_hash(lines.join("\n").as_bytes()))
}

/// Returns the first lines that contain an error word; if there are none, the last three lines.
fn error_lines_or_last_three(error: &str) -> Vec<&str> {
    let lines: Vec<&str> = error.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let has_error_word = |line: &&&str| {
        let line = line.to_lowercase();
        ERROR_WORDS.iter().any(|word| line.contains(word))
    };
    let matching: Vec<&str> = lines.iter().filter(has_error_word).take(MAX_ERROR_LINES).copied().collect();
    if matching.is_empty() { lines[lines.len().saturating_sub(3)..].to_vec() } else { matching }
}

/// Removes paths, numbers, times and ids from a line, which differ between repetitions of the same error.
pub fn normalize_line(line: &str) -> String {
    let words = line.split(|c: char| c.is_whitespace() || "()[]{}<>,;'\"`=".contains(c));
    let normalized: Vec<String> =
        words.filter(|word| !word.is_empty()).filter_map(normalize_word_unless_path_or_number).collect();
    truncate_end(&normalized.join(" "), 200)
}

/// Returns the word in lower case; `None` if it is a path, a time, an id or another number.
fn normalize_word_unless_path_or_number(word: &str) -> Option<String> {
    let word = word.trim_matches(|c: char| ".:!?*-#|".contains(c));
    if is_path_or_file_name(word) || is_hex_id(word) {
        return None;
    }
    let digit_count = word.chars().filter(char::is_ascii_digit).count();
    let letter_count = word.chars().filter(|c| c.is_alphabetic()).count();
    match (digit_count, letter_count) {
        (0, 0) => None,
        (0, _) => Some(word.to_lowercase()),
        // `E0308`, `TS2345`, `utf8`: a name that ends with a number identifies the error.
        _ if is_error_code(word) => Some(word.to_lowercase()),
        // `12.3s`, `0x7f3a`, `14:05:09`, `15-of-20`.
        _ => None,
    }
}

fn is_path_or_file_name(word: &str) -> bool {
    let has_file_extension = word.rsplit_once('.').is_some_and(|(stem, extension)| {
        let extension = extension.split(':').next().unwrap_or_default();
        !stem.is_empty()
            && (1..=4).contains(&extension.len())
            && extension.bytes().all(|byte| byte.is_ascii_lowercase())
    });
    word.contains('/') || word.contains('\\') || has_file_extension
}

/// Returns true for a hash, a UUID or an address: at least six hexadecimal characters, with a digit among them.
fn is_hex_id(word: &str) -> bool {
    let hex = word.strip_prefix("0x").unwrap_or(word);
    let is_hex = hex.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_hex && hex.len() >= 6 && hex.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns true for letters followed by at most five digits.
fn is_error_code(word: &str) -> bool {
    let name = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let digit_count = word.len() - name.len();
    !name.is_empty() && digit_count <= 5 && name.chars().all(|c| c.is_alphabetic() || c == '_')
}

/// FNV-1a, which is short and stable across versions. An attacker would gain nothing from a collision.
fn fnv1a_hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_error_is_recognized_despite_other_lines_times_and_paths() {
        for (first, again) in [
            (
                "error[E0308]: mismatched types\n  --> src/a.rs:12:5",
                "error[E0308]: mismatched types\n  --> src/a.rs:97:13",
            ),
            (
                "src/x.ts(4,7): error TS2345: Argument of type 'A'",
                "src/deep/y.ts(40,71): error TS2345: Argument of type 'A'",
            ),
            ("FAILED test_dates - AssertionError in 0.31s", "FAILED test_dates - AssertionError in 12.05s"),
            (
                "fatal: bad object 9fceb02d0ae598e95dc970b74767f19372d61af8",
                "fatal: bad object 1f2e3d4c5b6a79880796a5b4c3d2e1f001020304",
            ),
            (
                "[14:05:09] Error: request d8e9da22-d41b-4824-a1be-f318ff23689b failed",
                "[03:59:59] Error: request 0c9d1b2a-d41b-4824-a1be-000000000001 failed",
            ),
            (
                "panicked at src/lib.rs:10:4:\nindex out of bounds: the len is 3 but the index is 7",
                "panicked at src/lib.rs:99:1:\nindex out of bounds: the len is 8 but the index is 9",
            ),
            ("2 errors\nerror: a\nerror: b", "2 errors\nerror: b\nerror: a"),
        ] {
            assert_eq!(fingerprint_error(first), fingerprint_error(again), "{first}\n{again}");
        }
    }

    #[test]
    fn different_errors_have_different_fingerprints() {
        let errors = [
            "error[E0308]: mismatched types",
            "error[E0412]: cannot find type `Date`",
            "error: could not compile `dates`",
            "FAILED test_dates - AssertionError",
            "FAILED test_hours - AssertionError",
            "ended by signal 9, without a result",
            "exit code 1, without a result",
            "no output for long",
            "prompt_too_long",
            "rapid_refill_breaker",
            "npm ERR! code ENOENT",
            "npm ERR! code EACCES",
        ];
        for (index, error) in errors.iter().enumerate() {
            for other in &errors[index + 1..] {
                assert_ne!(fingerprint_error(error), fingerprint_error(other), "{error} | {other}");
            }
        }
    }

    #[test]
    fn a_build_with_two_kinds_of_errors_differs_from_one_with_one_kind() {
        let both = "error[E0308]: mismatched types\nerror[E0412]: cannot find type\nerror: could not compile";
        let one = "error[E0308]: mismatched types\nerror: could not compile";
        assert_ne!(fingerprint_error(both), fingerprint_error(one));
    }
}
