//! Compares the checkboxes that Plimsoll finds in a plan with those that pulldown-cmark finds, which follows CommonMark and GitHub.

use plimsoll_domain::checkbox::{Checkbox, parse_checkboxes};
use pulldown_cmark::{Event, Options, Parser};

/// A checkbox: its line number, counted from 0, and whether it is ticked.
pub type CheckboxLine = (usize, bool);

/// Returns the checkboxes that Plimsoll finds and that GitHub shows, too. Leaves out the marks that only Plimsoll accepts (`[~]`,
/// `[/]` and `[ ]*`), and boxes without text, which are no items.
pub fn boxes_found_by_plimsoll(text: &str) -> Vec<CheckboxLine> {
    let is_unsupported_by_github =
        |checkbox: &Checkbox<'_>| matches!(checkbox.mark_text, "~" | "/") || checkbox.is_starred;
    let boxes = parse_checkboxes(text)
        .into_iter()
        .filter(|checkbox| !is_unsupported_by_github(checkbox) && !checkbox.text.trim().is_empty());
    boxes.map(|checkbox| (checkbox.line_index, checkbox.is_done)).collect()
}

/// Returns the checkboxes that pulldown-cmark finds, except for those without text.
pub fn boxes_found_by_pulldown_cmark(text: &str) -> Vec<CheckboxLine> {
    let events = Parser::new_ext(text, Options::ENABLE_TASKLISTS).into_offset_iter();
    let mut boxes = Vec::new();
    let (mut line, mut scanned_to) = (0, 0);
    for (event, range) in events {
        let Event::TaskListMarker(done) = event else { continue };
        line += text[scanned_to..range.end].matches('\n').count();
        scanned_to = range.end;
        let label = text[range.end..].lines().next().unwrap_or_default();
        if !label.trim().is_empty() {
            boxes.push((line, done));
        }
    }
    boxes
}

/// Normalizes what the two parsers read differently: a lone `\r` ends a line only in Markdown, and Plimsoll ignores an
/// invisible byte order mark.
pub fn normalize_for_comparison(text: &str) -> String {
    text.replace("\r\n", "\n").replace(['\r', '\u{feff}'], "")
}

/// Panics if the two parsers find different checkboxes, unless the text has one of the known differences.
pub fn assert_same_boxes(text: &str) {
    if known_parser_difference(text).is_none() {
        assert_eq!(boxes_found_by_plimsoll(text), boxes_found_by_pulldown_cmark(text), "{text:?}");
    }
}

/// Returns why the two parsers may disagree on a text: pulldown-cmark departs from the specification there, or Plimsoll does so
/// intentionally.
pub fn known_parser_difference(text: &str) -> Option<&'static str> {
    if text.replace("<!--", "").contains('<') {
        return Some("HTML that is no comment is text for us");
    }
    if parse_checkboxes(text).iter().any(|checkbox| checkbox.text.trim().is_empty()) {
        return Some("a box without words begins a paragraph");
    }
    if text.contains(" \t[") || text.contains("\t\t[") {
        return Some("behind a list marker, five columns of blanks and tabs begin code");
    }
    if text.contains(['\u{b}', '\u{c}']) {
        return Some("vertical tabs and form feeds are no blanks in a tag");
    }
    let is_fence_with_trailing_tab = |line: &str| {
        let fence = line.trim_end_matches([' ', '\t']);
        line.trim_end_matches(' ') != fence && fence.ends_with(['`', '~'])
    };
    if text.lines().any(is_fence_with_trailing_tab) {
        return Some("a tab behind the fence that ends code");
    }
    let metadata =
        text.strip_prefix("---\n").and_then(|rest| Some(&rest[..rest.find("\n---").or(rest.find("\n..."))?]));
    if metadata.is_some_and(|metadata| ["```", "~~~", "<!--"].iter().any(|block| metadata.contains(block))) {
        return Some("in the metadata that a file begins with, nothing begins code or a comment");
    }
    None
}
