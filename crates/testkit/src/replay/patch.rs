//! The patch that the client shows of a file's change.

use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

/// The hunks with three lines around each change.
pub(super) fn between(old: &str, new: &str) -> Value {
    let diff = TextDiff::from_lines(old, new);
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
        let (old, new) = (
            first.old_range().start..last.old_range().end,
            first.new_range().start..last.new_range().end,
        );
        json!({
            "oldStart": old.start + 1, "oldLines": old.len(), "newStart": new.start + 1, "newLines": new.len(),
            "lines": lines,
        })
    });
    hunks.collect()
}
