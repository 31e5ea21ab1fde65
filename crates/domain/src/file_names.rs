//! Compares file names like a volume that ignores case, as most volumes of macOS do. There, two names in the same
//! folder can be spellings of one file.

/// Returns true if two names differ at most in case, or in characters that such a volume ignores. This is exact,
/// except for names that differ only in their Unicode normalization, which count as different.
pub fn is_same_name_ignoring_case(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right)
        || (!left.is_ascii() || !right.is_ascii()) && folded_name(left) == folded_name(right)
}

/// Returns true if two names could be spellings of one file. Different names with other letters than ASCII count as
/// such, because they may be two normalizations of one name. Only for refusals: it is true for most pairs of such
/// names.
pub fn may_be_same_name(left: &str, right: &str) -> bool {
    // No letter outside ASCII is equivalent to ASCII letters after folding, so a mixed pair is compared exactly.
    is_same_name_ignoring_case(left, right) || !folded_name(left).is_ascii() && !folded_name(right).is_ascii()
}

/// Returns true if a relative path could be a spelling of `folder`, or be below such a spelling.
pub fn may_be_same_or_below(path: &str, folder: &str) -> bool {
    has_prefix_of_names(path, folder, may_be_same_name)
}

/// Returns true if a relative path is `folder` or below it, ignoring case as [`is_same_name_ignoring_case`] does.
pub fn is_same_or_below_ignoring_case(path: &str, folder: &str) -> bool {
    has_prefix_of_names(path, folder, is_same_name_ignoring_case)
}

fn has_prefix_of_names(path: &str, folder: &str, is_same_name: fn(&str, &str) -> bool) -> bool {
    let mut path_names = path.split('/');
    folder.split('/').all(|name| path_names.next().is_some_and(|path_name| is_same_name(path_name, name)))
}

/// Returns a form of a name that is equal for all spellings that differ in case.
fn folded_name(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    let visible_name: String = name.chars().filter_map(visible_equivalent_of_char).collect();
    // Some letters have only one of the two mappings: U+212A (the Kelvin sign) becomes `k` in lowercase, U+017F (the
    // long s) becomes `S` in uppercase, and U+1E9E becomes `SS` only after both.
    visible_name.to_lowercase().to_uppercase().to_lowercase()
}

/// Returns `None` for characters that HFS+ ignores in names; git lists the same ones (`next_hfs_char` in `utf8.c`).
/// Returns the ASCII character for the two that are equivalent to one and have no case.
fn visible_equivalent_of_char(character: char) -> Option<char> {
    match character {
        '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}' => None,
        '\u{37e}' => Some(';'),
        '\u{1fef}' => Some('`'),
        _ => Some(character),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two names, whether they are the same ignoring case, and whether they may be the same.
    const COMPARISONS: &[(&str, &str, bool, bool)] = &[
        ("PROMPT.md", "PROMPT.md", true, true),
        ("PROMPT.md", "prompt.MD", true, true),
        (".git", ".GIT", true, true),
        (".git", ".g\u{200c}it", true, true),
        (".git", "\u{feff}.GiT", true, true),
        ("skills", "\u{17f}\u{212a}ILL\u{17f}", true, true),
        ("Makefile", "ma\u{212a}efile", true, true),
        ("Straße", "STRASSE", true, true),
        ("STRA\u{1e9e}E", "strasse", true, true),
        ("Größe", "GRÖSSE", true, true),
        ("plan\u{37e}", "PLAN;", true, true),
        // Two normalizations of one name, which cannot be told from two names here.
        ("Größe", "Gro\u{308}ße", false, true),
        ("größe", "länge", false, true),
        ("plan.md", "plán.md", false, false),
        ("plan.md", "plans.md", false, false),
        ("plan.md", "", false, false),
        ("a", "b", false, false),
        ("tests", "tests ", false, false),
    ];

    #[test]
    fn names_are_compared_like_a_volume_that_ignores_case() {
        for (left, right, is_same, may_be_same) in COMPARISONS {
            for (left, right) in [(left, right), (right, left)] {
                assert_eq!(is_same_name_ignoring_case(left, right), *is_same, "{left:?} {right:?}");
                assert_eq!(may_be_same_name(left, right), *may_be_same, "{left:?} {right:?}");
            }
        }
    }

    #[test]
    fn paths_are_compared_name_by_name() {
        for (path, folder, expected) in [
            ("Tests/a", "tests", true),
            ("tests", "TESTS", true),
            ("tests", "tests/a", false),
            ("tests-old/a", "tests", false),
            ("Docs/Plan.md/x", "docs/plan.md", true),
            ("x/docs", "docs", false),
        ] {
            assert_eq!(may_be_same_or_below(path, folder), expected, "{path} {folder}");
            assert_eq!(is_same_or_below_ignoring_case(path, folder), expected, "{path} {folder}");
        }
    }
}
