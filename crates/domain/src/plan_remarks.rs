//! What the author of a plan may not have meant: optional items, which a run does like all others, and boxes that are no items.

use crate::checkbox::{BoxAt, PlanLine, UnclearLine, plan_line};
use crate::markdown_lines::{LineKind, MarkdownLine};
use crate::text::{clip, one_line};
use crate::todo::{PlanEntry, PlanLines};

/// Headings below which the work is not to be done now.
const OPTIONAL_HEADINGS: [&str; 22] = [
    "optional",
    "nice to have",
    "nice-to-have",
    "stretch",
    "bonus",
    "later",
    "future",
    "backlog",
    "someday",
    "maybe",
    "icebox",
    "parking lot",
    "out of scope",
    "not in scope",
    "non-goal",
    "deferred",
    "postponed",
    "won't do",
    "not now",
    "follow-up",
    "follow up",
    "could have",
];
/// How much of a heading or of a line is shown.
const SHOWN: usize = 60;

/// What is said of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanRemarks {
    /// Headings such as "Optional", with the open items below each, by their numbers.
    pub optional: Vec<(String, Vec<usize>)>,
    /// Open items with the mark `[ ]*`, by their numbers.
    pub starred: Vec<usize>,
    /// Lines that look like items and are none.
    pub unclear: Vec<UnclearLine>,
    /// Lines with a box in indented code, from 1: these are no items either.
    pub code: Vec<usize>,
}

/// Looks for what the author of a plan may not have meant.
pub fn plan_remarks(markdown: &str) -> PlanRemarks {
    let mut remarks = PlanRemarks::default();
    let mut number = 0;
    // The heading below which the work is optional, and its level.
    let mut heading: Option<(usize, String)> = None;
    let mut paragraph = "";
    let mut lines = PlanLines::new(markdown);
    for (line, entry) in lines.by_ref() {
        if let Some((level, words)) = heading_of(&line, paragraph) {
            let is_over = heading.as_ref().is_none_or(|(known, _)| level <= *known);
            if is_over {
                heading = is_optional(words).then(|| (level, clip(&one_line(words), SHOWN)));
            }
        }
        paragraph = match line.kind {
            LineKind::ParagraphStart if line.marker.is_none() => line.text[line.content..].trim(),
            _ => "",
        };
        if line.kind == LineKind::IndentedCode && has_box(&line) {
            remarks.code.push(line.number + 1);
        }
        let PlanEntry::Item(item) = entry else { continue };
        number += 1;
        if item.done {
            continue;
        }
        if matches!(plan_line(&line), PlanLine::Checkbox(BoxAt { is_starred: true, .. })) {
            remarks.starred.push(number);
        }
        if let Some((_, words)) = &heading {
            match remarks.optional.last_mut().filter(|(known, _)| known == words) {
                Some((_, items)) => items.push(number),
                None => remarks.optional.push((words.clone(), vec![number])),
            }
        }
    }
    remarks.unclear = lines.into_unclear();
    remarks
}

impl PlanRemarks {
    /// Sentences without their full stop, each of which goes on from the name of the plan.
    pub fn words(&self) -> Vec<String> {
        let advice = "which a run does like all others: remove or tick what it should leave";
        let items = |items: &[usize]| {
            let noun = if items.len() == 1 { "item" } else { "items" };
            format!("{noun} {}", ranges(items))
        };
        let optional = self.optional.iter().map(|(heading, below)| {
            format!("the heading \"{heading}\" has below it {}, {advice}", items(below))
        });
        let starred = (!self.starred.is_empty())
            .then(|| format!("`[ ]*` marks {} as optional, {advice}", items(&self.starred)));
        let unclear = self.unclear.iter().map(|line| {
            format!(
                "line {} looks like an item and is none, so no run begins: `{}` (`plimsoll plan --fix`)",
                line.line,
                clip(&one_line(&line.text), SHOWN)
            )
        });
        let code = (!self.code.is_empty()).then(|| {
            let noun = if self.code.len() == 1 { "line" } else { "lines" };
            format!(
                "boxes are code and no items, because of their indentation: {noun} {}",
                ranges(&self.code)
            )
        });
        unclear.chain(optional).chain(starred).chain(code).collect()
    }
}

/// The level and the words of a heading that a line is, or that it makes of the paragraph above it. A line in bold letters is one
/// below all others.
fn heading_of<'a>(line: &MarkdownLine<'a>, paragraph: &'a str) -> Option<(usize, &'a str)> {
    let text = line.text[line.content..].trim();
    match line.kind {
        LineKind::Heading => {
            let words = text.trim_start_matches('#');
            Some((text.len() - words.len(), words.trim_end_matches('#').trim()))
        }
        LineKind::Rule if !paragraph.is_empty() => {
            Some((if text.starts_with('=') { 1 } else { 2 }, paragraph))
        }
        LineKind::ParagraphStart if line.marker.is_none() => {
            let is_bold = text.starts_with("**") && text.trim_end_matches(':').ends_with("**");
            is_bold.then_some((7, text)).filter(|_| text.len() > 4)
        }
        _ => None,
    }
}

fn is_optional(heading: &str) -> bool {
    let lower = heading.to_lowercase();
    let is_word = |place: usize, word: &str| {
        let (before, behind) = (&lower[..place], &lower[place + word.len()..]);
        let behind = behind.strip_prefix('s').unwrap_or(behind);
        !before.ends_with(char::is_alphanumeric) && !behind.starts_with(char::is_alphanumeric)
    };
    OPTIONAL_HEADINGS.iter().any(|word| lower.match_indices(word).any(|(place, _)| is_word(place, word)))
}

fn has_box(line: &MarkdownLine<'_>) -> bool {
    let text = line.text[line.content..].trim_start();
    let rest = text.strip_prefix(['-', '*', '+']).unwrap_or_default().trim_start();
    ["[ ] ", "[x] ", "[X] "].iter().any(|mark| rest.starts_with(mark))
}

/// Numbers in rising order with three or more that follow each other as a range: `1, 3–5, 8, 9`.
pub fn ranges(numbers: &[usize]) -> String {
    const SHORTEST: usize = 3;
    let mut parts: Vec<String> = Vec::new();
    let runs = numbers.chunk_by(|one, next| *one + 1 == *next);
    for run in runs {
        match run {
            [first, .., last] if run.len() >= SHORTEST => parts.push(format!("{first}–{last}")),
            _ => parts.extend(run.iter().map(usize::to_string)),
        }
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_below_an_optional_heading_are_named_up_to_the_next_heading() {
        let plan = "# Plan\n- [ ] one\n## Optional tasks\n- [ ] two\n- [x] three\n### Details\n- [ ] four\n## Now\n- [ ] five\n\n\
                    Nice-to-have\n------------\n- [ ] six\n\n# Next\n\n**Later:**\n- [ ] seven\n\n**Soon**\n- [ ] eight\n# Optionally typed\n- [ ] nine\n";
        let remarks = plan_remarks(plan);
        let expected = [("Optional tasks", vec![2, 4]), ("Nice-to-have", vec![6]), ("**Later:**", vec![7])];
        assert_eq!(remarks.optional, expected.map(|(heading, items)| (heading.to_owned(), items)));
        assert_eq!(
            remarks.words()[0],
            "the heading \"Optional tasks\" has below it items 2, 4, which a run does like all others: remove or tick what it should leave"
        );
    }

    #[test]
    fn optional_marks_unclear_lines_and_code_are_named() {
        let plan = "- [ ]* one\n- [ ] two\n- [x]* three\n- [-] four\n\n\n# Code\n\n    - [ ] five\n";
        let remarks = plan_remarks(plan);
        assert_eq!((&remarks.starred[..], &remarks.code[..]), (&[1][..], &[9][..]));
        assert_eq!(
            remarks.words(),
            [
                "line 4 looks like an item and is none, so no run begins: `- [-] four` (`plimsoll plan --fix`)",
                "`[ ]*` marks item 1 as optional, which a run does like all others: remove or tick what it should leave",
                "boxes are code and no items, because of their indentation: line 9",
            ]
        );
        assert_eq!(plan_remarks("# Plan\n- [ ] one\n").words(), [""; 0]);
    }

    #[test]
    fn numbers_that_follow_each_other_are_a_range() {
        for (numbers, expected) in [
            (&[][..], ""),
            (&[1, 2], "1, 2"),
            (&[1, 2, 3], "1–3"),
            (&[1, 3, 4, 5, 6, 9, 10], "1, 3–6, 9, 10"),
        ] {
            assert_eq!(ranges(numbers), expected);
        }
    }
}
