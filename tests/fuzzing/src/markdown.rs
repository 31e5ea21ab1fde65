//! The checkboxes of a plan as we find them, beside those that pulldown-cmark finds, which follows CommonMark and GitHub.

use plimsoll_domain::checkbox::{Checkbox, parse_checkboxes};
use pulldown_cmark::{Event, Options, Parser};

/// A checkbox: its line, from 0, and whether it is ticked.
pub type LineBox = (usize, bool);

/// Checkboxes as we find them: those that GitHub shows, too. Not compared are the marks that we alone take (`[~]`, `[/]` and
/// `[ ]*`), and boxes without words, which are no items.
pub fn our_boxes(text: &str) -> Vec<LineBox> {
    let is_ours_alone = |found: &Checkbox<'_>| matches!(found.mark_text, "~" | "/") || found.is_starred;
    let boxes = parse_checkboxes(text)
        .into_iter()
        .filter(|found| !is_ours_alone(found) && !found.text.trim().is_empty());
    boxes.map(|found| (found.line_index, found.is_done)).collect()
}

/// Checkboxes as pulldown-cmark finds them, but for those without words.
pub fn their_boxes(text: &str) -> Vec<LineBox> {
    let events = Parser::new_ext(text, Options::ENABLE_TASKLISTS).into_offset_iter();
    let mut boxes = Vec::new();
    let (mut line, mut passed) = (0, 0);
    for (event, range) in events {
        let Event::TaskListMarker(done) = event else { continue };
        line += text[passed..range.end].matches('\n').count();
        passed = range.end;
        let words = text[range.end..].lines().next().unwrap_or_default();
        if !words.trim().is_empty() {
            boxes.push((line, done));
        }
    }
    boxes
}

/// The text as both readers take it. A line ends with `\n` for us, and also with a `\r` alone for Markdown; an invisible byte
/// order mark is no text for us.
pub fn comparable(text: &str) -> String {
    text.replace("\r\n", "\n").replace(['\r', '\u{feff}'], "")
}

/// Panics if the readers find other checkboxes, unless the text has one of the known differences.
pub fn assert_same_boxes(text: &str) {
    if known_difference(text).is_none() {
        assert_eq!(our_boxes(text), their_boxes(text), "{text:?}");
    }
}

/// Why the readers need not agree on a text: pulldown-cmark departs from the specification there, and we do not; or we mean to.
pub fn known_difference(text: &str) -> Option<&'static str> {
    if text.replace("<!--", "").contains('<') {
        return Some("HTML that is no comment is text for us");
    }
    if parse_checkboxes(text).iter().any(|found| found.text.trim().is_empty()) {
        return Some("a box without words begins a paragraph");
    }
    if text.contains(" \t[") || text.contains("\t\t[") {
        return Some("behind a list marker, five columns of blanks and tabs begin code");
    }
    if text.contains(['\u{b}', '\u{c}']) {
        return Some("vertical tabs and form feeds are no blanks in a tag");
    }
    let ends_in_tab = |line: &str| {
        let fence = line.trim_end_matches([' ', '\t']);
        line.trim_end_matches(' ') != fence && fence.ends_with(['`', '~'])
    };
    if text.lines().any(ends_in_tab) {
        return Some("a tab behind the fence that ends code");
    }
    let metadata =
        text.strip_prefix("---\n").and_then(|rest| Some(&rest[..rest.find("\n---").or(rest.find("\n..."))?]));
    if metadata.is_some_and(|metadata| ["```", "~~~", "<!--"].iter().any(|block| metadata.contains(block))) {
        return Some("in the metadata that a file begins with, nothing begins code or a comment");
    }
    None
}
