//! Texts in a number of columns.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text, or its longest beginning with `…` behind it, in so many columns.
pub(super) fn truncate(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut room = columns;
    let fits = |letter: &char| {
        let wide = letter.width().unwrap_or(0);
        let fits = wide <= room;
        room = room.saturating_sub(wide);
        fits
    };
    let mut kept: String = text.chars().take_while(fits).collect();
    // Letters that belong together may be wider than each by itself.
    loop {
        let cut = format!("{kept}…");
        if cut.width() <= columns || kept.pop().is_none() {
            return cut;
        }
    }
}
