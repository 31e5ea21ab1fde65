//! Truncates text to a number of terminal columns.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns the text, or its longest beginning followed by `…` that fits into `columns`.
pub(super) fn truncate_to_columns(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut columns_left = columns;
    let take_columns = |character: &char| {
        let char_width = character.width().unwrap_or(0);
        let fits = char_width <= columns_left;
        columns_left = columns_left.saturating_sub(char_width);
        fits
    };
    let mut kept: String = text.chars().take_while(take_columns).collect();
    // Combined characters may be wider than the sum of their widths.
    loop {
        let truncated = format!("{kept}…");
        if truncated.width() <= columns || kept.pop().is_none() {
            return truncated;
        }
    }
}
