//! The files of a generated project, kept in memory so that the generator knows every line number.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The number of unchanged lines around a change in the client's `structuredPatch`.
const CONTEXT_LINES: usize = 3;

#[derive(Clone, Debug, Default)]
pub struct ProjectFiles {
    files: BTreeMap<String, Vec<String>>,
}

/// A change of consecutive lines of a file.
#[derive(Clone, Debug)]
pub struct LineChange {
    pub old_string: String,
    pub new_string: String,
    pub original: String,
    pub content: String,
    /// The change in the form of the client's `structuredPatch`.
    pub hunk: Value,
    pub removed_count: usize,
    pub new_count: usize,
    /// The lines that the change wrote, from 1. For a pure deletion, the line after it.
    pub first_line: usize,
    pub last_line: usize,
}

impl ProjectFiles {
    pub fn insert(&mut self, path: &str, lines: Vec<String>) {
        self.files.insert(path.to_owned(), lines);
    }

    pub fn lines(&self, path: &str) -> &[String] {
        self.files.get(path).map_or(&[], Vec::as_slice)
    }

    pub fn paths(&self) -> impl Iterator<Item = &String> {
        self.files.keys()
    }

    pub fn rename(&mut self, old_path: &str, new_path: &str) {
        if let Some(lines) = self.files.remove(old_path) {
            self.files.insert(new_path.to_owned(), lines);
        }
    }

    pub fn content(&self, path: &str) -> String {
        lines_to_text(self.lines(path))
    }

    pub fn all_contents(&self) -> Vec<(String, String)> {
        self.files.iter().map(|(path, lines)| (path.clone(), lines_to_text(lines))).collect()
    }

    /// Replaces `removed_count` lines from the index `start` by new lines.
    pub fn replace_lines(
        &mut self,
        path: &str,
        start: usize,
        removed_count: usize,
        new_lines: &[String],
    ) -> LineChange {
        let old_lines = self.lines(path).to_vec();
        let end = start + removed_count;
        let mut changed_lines = old_lines[..start].to_vec();
        changed_lines.extend_from_slice(new_lines);
        changed_lines.extend_from_slice(&old_lines[end..]);
        // An insertion replaces the line before it by this line and the new ones, as the model does it.
        let anchor_start = if removed_count == 0 { start.saturating_sub(1) } else { start };
        let anchor_end = end.max((anchor_start + 1).min(old_lines.len()));
        let (original, content) = (lines_to_text(&old_lines), lines_to_text(&changed_lines));
        let new_anchor_end = anchor_end + new_lines.len() - removed_count;
        let change = LineChange {
            old_string: old_lines[anchor_start..anchor_end].join("\n"),
            new_string: changed_lines[anchor_start..new_anchor_end].join("\n"),
            hunk: structured_patch_hunk(&old_lines, start, removed_count, new_lines),
            original,
            content,
            removed_count,
            new_count: new_lines.len(),
            first_line: start + 1,
            last_line: start + new_lines.len().max(1),
        };
        self.files.insert(path.to_owned(), changed_lines);
        change
    }
}

fn structured_patch_hunk(
    old_lines: &[String],
    start: usize,
    removed_count: usize,
    new_lines: &[String],
) -> Value {
    let end = start + removed_count;
    let (context_start, context_end) =
        (start.saturating_sub(CONTEXT_LINES), (end + CONTEXT_LINES).min(old_lines.len()));
    let with_sign = |sign: char, lines: &[String]| -> Vec<String> {
        lines.iter().map(|line| format!("{sign}{line}")).collect()
    };
    let lines = [
        with_sign(' ', &old_lines[context_start..start]),
        with_sign('-', &old_lines[start..end]),
        with_sign('+', new_lines),
        with_sign(' ', &old_lines[end..context_end]),
    ]
    .concat();
    let old_count = context_end - context_start;
    json!({
        "oldStart": context_start + 1, "oldLines": old_count, "newStart": context_start + 1,
        "newLines": old_count + new_lines.len() - removed_count, "lines": lines,
    })
}

fn lines_to_text(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered_file() -> ProjectFiles {
        let mut files = ProjectFiles::default();
        files.insert("a.rs", (1..=9).map(|number| format!("line {number}")).collect());
        files
    }

    fn text_lines(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_replacement_has_the_line_numbers_of_the_new_lines() {
        let mut files = numbered_file();
        let change = files.replace_lines("a.rs", 4, 2, &text_lines(&["x", "y", "z"]));
        assert_eq!((change.first_line, change.last_line), (5, 7));
        assert_eq!((change.old_string.as_str(), change.new_string.as_str()), ("line 5\nline 6", "x\ny\nz"));
        assert_eq!(change.original.replacen(&change.old_string, &change.new_string, 1), change.content);
        let expected = json!({
            "oldStart": 2, "oldLines": 8, "newStart": 2, "newLines": 9,
            "lines": [" line 2", " line 3", " line 4", "-line 5", "-line 6", "+x", "+y", "+z", " line 7", " line 8", " line 9"],
        });
        assert_eq!(change.hunk, expected);
        assert_eq!(files.lines("a.rs").len(), 10);
    }

    #[test]
    fn insertions_and_deletions_can_be_applied_as_replacements_of_text() {
        let mut files = numbered_file();
        for (start, removed_count, new_lines) in [(0, 0, vec!["a"]), (5, 0, vec!["b", "c"]), (3, 2, vec![])] {
            let change = files.replace_lines("a.rs", start, removed_count, &text_lines(&new_lines));
            assert_eq!(change.original.matches(&change.old_string).count(), 1, "{change:?}");
            // A deletion of whole lines leaves an empty line if only the text between the line ends is replaced.
            let replaced = change.original.replacen(&change.old_string, &change.new_string, 1);
            assert_eq!(replaced.replace("\n\n", "\n"), change.content);
        }
    }
}
