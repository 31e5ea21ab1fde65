//! Remarks about parts of a plan that its author may not intend: optional items, which a run works on like all
//! others, and checkboxes that are not items.

use crate::checkbox::{ParsedBox, PlanLine, UnclearLine, classify_plan_line};
use crate::markdown_lines::{LineKind, MarkdownLine};
use crate::text::{to_safe_single_line, truncate_end};
use crate::todo::{PlanLineRole, PlanLinesWithRoles};

/// Keywords of headings below which work is optional or for later.
const OPTIONAL_HEADING_KEYWORDS: [&str; 22] = [
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
/// The maximum length of a quoted heading or line, in characters.
const MAX_SHOWN_CHARS: usize = 60;

/// Remarks about a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanRemarks {
    /// Headings such as "Optional", each with the numbers of the open items below it.
    pub optional_sections: Vec<(String, Vec<usize>)>,
    /// The numbers of the open items with the mark `[ ]*`.
    pub starred_items: Vec<usize>,
    /// Lines that look like items but are not.
    pub unclear_lines: Vec<UnclearLine>,
    /// The lines that have a checkbox in indented code, counted from 1. These are not items either.
    pub checkbox_lines_in_code: Vec<usize>,
}

/// Finds the optional items of a plan, and the lines that look like items but are not.
pub fn find_optional_items_and_unclear_lines(markdown: &str) -> PlanRemarks {
    let mut remarks = PlanRemarks::default();
    let mut item_number = 0;
    // The level and the text of the current heading for optional work.
    let mut optional_heading: Option<(usize, String)> = None;
    let mut paragraph = "";
    let mut lines = PlanLinesWithRoles::new(markdown);
    for (line, role) in lines.by_ref() {
        if let Some((level, heading_text)) = parse_heading_or_bold_line(&line, paragraph) {
            let ends_optional_section =
                optional_heading.as_ref().is_none_or(|(optional_level, _)| level <= *optional_level);
            if ends_optional_section {
                optional_heading = contains_optional_keyword(heading_text)
                    .then(|| (level, truncate_end(&to_safe_single_line(heading_text), MAX_SHOWN_CHARS)));
            }
        }
        paragraph = match line.kind {
            LineKind::ParagraphStart if line.list_marker_start.is_none() => {
                line.text[line.text_start..].trim()
            }
            _ => "",
        };
        if line.kind == LineKind::IndentedCode && has_item_checkbox(&line) {
            remarks.checkbox_lines_in_code.push(line.line_index + 1);
        }
        let PlanLineRole::Item(item) = role else { continue };
        item_number += 1;
        if item.is_ticked {
            continue;
        }
        if matches!(classify_plan_line(&line), PlanLine::Checkbox(ParsedBox { is_starred: true, .. })) {
            remarks.starred_items.push(item_number);
        }
        if let Some((_, heading_text)) = &optional_heading {
            match remarks
                .optional_sections
                .last_mut()
                .filter(|(section_heading, _)| section_heading == heading_text)
            {
                Some((_, items)) => items.push(item_number),
                None => remarks.optional_sections.push((heading_text.clone(), vec![item_number])),
            }
        }
    }
    remarks.unclear_lines = lines.into_unclear_lines();
    remarks
}

impl PlanRemarks {
    /// Renders the remarks as sentences without a final period. The caller puts the name of the plan and a colon
    /// before each.
    pub fn render_sentences(&self) -> Vec<String> {
        let advice = "which a run does like all others: remove or tick what it should leave";
        let render_items = |items: &[usize]| {
            let label = if items.len() == 1 { "item" } else { "items" };
            format!("{label} {}", render_number_ranges(items))
        };
        let optional_sentences = self.optional_sections.iter().map(|(heading, items_below)| {
            format!("the heading \"{heading}\" has below it {}, {advice}", render_items(items_below))
        });
        let starred_sentence = (!self.starred_items.is_empty())
            .then(|| format!("`[ ]*` marks {} as optional, {advice}", render_items(&self.starred_items)));
        let unclear_sentences = self.unclear_lines.iter().map(|line| {
            format!(
                "line {} looks like an item but is not, so no run begins: `{}` (`plimsoll plan --fix`)",
                line.line_number,
                truncate_end(&to_safe_single_line(&line.text), MAX_SHOWN_CHARS)
            )
        });
        let code_sentence = (!self.checkbox_lines_in_code.is_empty()).then(|| {
            let label = if self.checkbox_lines_in_code.len() == 1 { "line" } else { "lines" };
            format!(
                "boxes are code and no items, because of their indentation: {label} {}",
                render_number_ranges(&self.checkbox_lines_in_code)
            )
        });
        unclear_sentences.chain(optional_sentences).chain(starred_sentence).chain(code_sentence).collect()
    }
}

/// Returns the level and the text of a heading. An underline makes the paragraph above it a heading. A line in bold
/// counts as a heading of the lowest level.
fn parse_heading_or_bold_line<'a>(
    line: &MarkdownLine<'a>,
    preceding_paragraph: &'a str,
) -> Option<(usize, &'a str)> {
    let text = line.text[line.text_start..].trim();
    match line.kind {
        LineKind::Heading => {
            let heading_text = text.trim_start_matches('#');
            Some((text.len() - heading_text.len(), heading_text.trim_end_matches('#').trim()))
        }
        LineKind::Rule if !preceding_paragraph.is_empty() => {
            Some((if text.starts_with('=') { 1 } else { 2 }, preceding_paragraph))
        }
        LineKind::ParagraphStart if line.list_marker_start.is_none() => {
            let is_bold = text.starts_with("**") && text.trim_end_matches(':').ends_with("**");
            is_bold.then_some((7, text)).filter(|_| text.len() > 4)
        }
        _ => None,
    }
}

fn contains_optional_keyword(heading: &str) -> bool {
    let lowercase_heading = heading.to_lowercase();
    let is_whole_word_at = |index: usize, word: &str| {
        let (before, after) = (&lowercase_heading[..index], &lowercase_heading[index + word.len()..]);
        let after_plural = after.strip_prefix('s').unwrap_or(after);
        !before.ends_with(char::is_alphanumeric) && !after_plural.starts_with(char::is_alphanumeric)
    };
    OPTIONAL_HEADING_KEYWORDS
        .iter()
        .any(|word| lowercase_heading.match_indices(word).any(|(start, _)| is_whole_word_at(start, word)))
}

fn has_item_checkbox(line: &MarkdownLine<'_>) -> bool {
    let text = line.text[line.text_start..].trim_start();
    let after_bullet = text.strip_prefix(['-', '*', '+']).unwrap_or_default().trim_start();
    ["[ ] ", "[x] ", "[X] "].iter().any(|mark| after_bullet.starts_with(mark))
}

/// Renders ascending numbers, with three or more consecutive ones as a range: `1, 3–5, 8, 9`.
pub fn render_number_ranges(numbers: &[usize]) -> String {
    const MIN_RANGE_LENGTH: usize = 3;
    let mut parts: Vec<String> = Vec::new();
    let groups = numbers.chunk_by(|previous, next| *previous + 1 == *next);
    for group in groups {
        match group {
            [first, .., last] if group.len() >= MIN_RANGE_LENGTH => parts.push(format!("{first}–{last}")),
            _ => parts.extend(group.iter().map(usize::to_string)),
        }
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_below_an_optional_heading_are_listed_up_to_the_next_heading() {
        let plan = "# Plan\n- [ ] one\n## Optional tasks\n- [ ] two\n- [x] three\n### Details\n- [ ] four\n## Now\n- [ ] five\n\n\
                    Nice-to-have\n------------\n- [ ] six\n\n# Next\n\n**Later:**\n- [ ] seven\n\n**Soon**\n- [ ] eight\n# Optionally typed\n- [ ] nine\n";
        let remarks = find_optional_items_and_unclear_lines(plan);
        let expected = [("Optional tasks", vec![2, 4]), ("Nice-to-have", vec![6]), ("**Later:**", vec![7])];
        assert_eq!(remarks.optional_sections, expected.map(|(heading, items)| (heading.to_owned(), items)));
        assert_eq!(
            remarks.render_sentences()[0],
            "the heading \"Optional tasks\" has below it items 2, 4, which a run does like all others: remove or tick what it should leave"
        );
    }

    #[test]
    fn optional_marks_unclear_lines_and_code_are_listed() {
        let plan = "- [ ]* one\n- [ ] two\n- [x]* three\n- [-] four\n\n\n# Code\n\n    - [ ] five\n";
        let remarks = find_optional_items_and_unclear_lines(plan);
        assert_eq!((&remarks.starred_items[..], &remarks.checkbox_lines_in_code[..]), (&[1][..], &[9][..]));
        assert_eq!(
            remarks.render_sentences(),
            [
                "line 4 looks like an item but is not, so no run begins: `- [-] four` (`plimsoll plan --fix`)",
                "`[ ]*` marks item 1 as optional, which a run does like all others: remove or tick what it should leave",
                "boxes are code and no items, because of their indentation: line 9",
            ]
        );
        assert_eq!(find_optional_items_and_unclear_lines("# Plan\n- [ ] one\n").render_sentences(), [""; 0]);
    }

    #[test]
    fn three_or_more_consecutive_numbers_are_a_range() {
        for (numbers, expected) in [
            (&[][..], ""),
            (&[1, 2], "1, 2"),
            (&[1, 2, 3], "1–3"),
            (&[1, 3, 4, 5, 6, 9, 10], "1, 3–6, 9, 10"),
        ] {
            assert_eq!(render_number_ranges(numbers), expected);
        }
    }
}
