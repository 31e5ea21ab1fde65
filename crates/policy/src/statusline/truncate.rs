//! Truncates text to a number of terminal columns.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns the text, or its longest prefix followed by `…` that fits into `columns`.
pub(super) fn truncate_to_columns(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut columns_left = columns;
    let fits_remaining_columns = |character: &char| {
        let char_width = character.width().unwrap_or(0);
        let fits = char_width <= columns_left;
        columns_left = columns_left.saturating_sub(char_width);
        fits
    };
    let mut prefix: String = text.chars().take_while(fits_remaining_columns).collect();
    // Combined characters may be wider than the sum of their widths.
    loop {
        let truncated = format!("{prefix}…");
        if truncated.width() <= columns || prefix.pop().is_none() {
            return truncated;
        }
    }
}
