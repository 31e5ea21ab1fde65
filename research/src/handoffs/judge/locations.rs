//! Line numbers in a line of text or in a row of a table.

use regex::Regex;
use std::sync::LazyLock;

/// A longer range points nowhere.
const MAX_RANGE_LINES: usize = 60;
/// How far a range may begin before or end behind the lines that it points to.
const TOLERANCE_LINES: usize = 2;

/// The forms in which line numbers are written: `:45`, `:45-50`, `line 45`, `lines 45 to 50`, `L45`, `@@ -1 +45,6 @@`,
/// and a table's cell with numbers only.
static LOCATION_PATTERNS: LazyLock<[Regex; 4]> = LazyLock::new(|| {
    [
        r":(\d{1,6})(?:\s?(?:-|–|to)\s?(\d{1,6}))?(?:\D|$)",
        r"(?i)\blines?\s((?:\d{1,6}(?:\s?(?:-|–|to)\s?\d{1,6})?(?:,\s?)?)+)",
        r"\bL(\d{1,6})(?:-L?(\d{1,6}))?\b",
        r"\|\s*((?:\d{1,6}(?:\s?[-–]\s?\d{1,6})?(?:,\s*)?)+)\s*(?:\||$)",
    ]
    .map(|pattern| Regex::new(pattern).expect("the pattern is valid"))
});
static RANGE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(\d{1,6})(?:\s?(?:-|–|to)\s?L?(\d{1,6}))?").expect("the pattern is valid"));

/// Consecutive lines of a file, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineRange {
    pub(super) first: usize,
    pub(super) last: usize,
}

impl LineRange {
    /// Returns true if somebody who opens the file at these lines sees the lines from `first` to `last`.
    pub(super) fn points_to(&self, first: usize, last: usize) -> bool {
        self.last < self.first + MAX_RANGE_LINES
            && self.first <= last + TOLERANCE_LINES
            && first <= self.last + TOLERANCE_LINES
    }
}

/// Returns the line numbers in a text that does not contain the path itself.
pub(super) fn line_ranges(text: &str) -> Vec<LineRange> {
    let mut ranges = Vec::new();
    for pattern in LOCATION_PATTERNS.iter() {
        for captures in pattern.captures_iter(text) {
            let matched = captures.get(0).map_or("", |matched| matched.as_str());
            ranges.extend(RANGE.captures_iter(matched).filter_map(|range| {
                let first: usize = range.get(1)?.as_str().parse().ok()?;
                let last = range.get(2).and_then(|last| last.as_str().parse().ok()).unwrap_or(first);
                Some(LineRange { first, last })
            }));
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_numbers_are_read_in_the_usual_forms() {
        for (text, expected) in [
            (":45", vec![(45, 45)]),
            (":45-50: changed", vec![(45, 50)]),
            ("| 45-120, 300 | modified |", vec![(45, 120), (300, 300)]),
            ("(lines 7, 9 to 12)", vec![(7, 7), (9, 12)]),
            (" line 7 and 3 tests", vec![(7, 7)]),
            (" L12-L15", vec![(12, 15)]),
            ("3 insertions, 12 deletions", vec![]),
            ("Session 2 of 9", vec![]),
        ] {
            let ranges: Vec<(usize, usize)> =
                line_ranges(text).iter().map(|range| (range.first, range.last)).collect();
            assert_eq!(ranges, expected, "{text}");
        }
    }

    #[test]
    fn a_wide_or_distant_range_points_to_nothing() {
        let range = |first, last| LineRange { first, last };
        assert!(range(45, 50).points_to(48, 60) && range(45, 45).points_to(46, 47));
        assert!(!range(45, 50).points_to(60, 62) && !range(1, 400).points_to(48, 60));
    }
}
