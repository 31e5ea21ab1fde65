//! The diff of a file change, in the format of the client's `structuredPatch`.

use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

/// Returns the hunks with three lines of context around each change.
pub(super) fn structured_patch_hunks(old_text: &str, new_text: &str) -> Value {
    let diff = TextDiff::from_lines(old_text, new_text);
    let hunks = diff.grouped_ops(3).into_iter().map(|operations| {
        let mut lines = Vec::new();
        for operation in &operations {
            for change in diff.iter_changes(operation) {
                let sign = match change.tag() {
                    ChangeTag::Equal => ' ',
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                };
                lines.push(format!("{sign}{}", change.value().trim_end_matches('\n')));
            }
        }
        let (first, last) = (&operations[0], &operations[operations.len() - 1]);
        let (old_range, new_range) = (
            first.old_range().start..last.old_range().end,
            first.new_range().start..last.new_range().end,
        );
        json!({
            "oldStart": old_range.start + 1, "oldLines": old_range.len(), "newStart": new_range.start + 1, "newLines": new_range.len(),
            "lines": lines,
        })
    });
    hunks.collect()
}
