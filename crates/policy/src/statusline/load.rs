//! The load line and what the last responses say of its growth.

use super::LoadView;
use crate::forecast::{FEWEST, gains, middle, until};
use plimsoll_domain::forecast::{FARTHEST, Fill, Outlook};
use plimsoll_domain::level::Thresholds;

/// The load line: fill, the thresholds of L1 and L2 (`┆`), and of the auto-compact threshold (`┃`).
pub fn bar(load: &LoadView, cells: u64) -> String {
    let filled = load.percent.map_or(0, |percent| (percent.min(100) * cells).div_ceil(100));
    let at = |cell: u64, tokens: fn(&Thresholds) -> u64| {
        load.thresholds.is_some_and(|thresholds| {
            // By the percent that is shown, as the fill is.
            (thresholds.percent(tokens(&thresholds)).min(100) * cells / 100).min(cells.saturating_sub(1))
                == cell
        })
    };
    let letter = |cell| match cell {
        _ if at(cell, |thresholds| thresholds.auto_compact.tokens) => '┃',
        cell if cell < filled => '█',
        _ if at(cell, |thresholds| thresholds.l1) || at(cell, |thresholds| thresholds.l2) => '┆',
        _ => '░',
    };
    format!("▕{}▏", (0..cells).map(letter).collect::<String>())
}

/// The percent, or `?`: unknown is not 0.
pub(super) fn percent(load: &LoadView) -> String {
    load.percent.map_or("?".to_owned(), |percent| format!("{percent}%"))
}

/// What each response added, oldest first; none if the window was emptied in between.
pub fn growths(fills: &[Fill]) -> Vec<u64> {
    gains(fills).iter().map(|gain| gain.tokens).collect()
}

/// The middle one, once there are enough to have one.
pub fn median(growths: &[u64]) -> Option<u64> {
    if growths.len() >= FEWEST { middle(growths.to_vec()) } else { None }
}

/// When a threshold will be reached, from here.
pub(super) fn outlook(load: &LoadView, threshold: fn(&Thresholds) -> u64) -> Option<Outlook> {
    let tokens = threshold(&load.thresholds?).checked_sub(load.used?).filter(|tokens| *tokens > 0)?;
    until(&gains(&load.fills), tokens)
}

/// `~13`, or `>200`.
pub(super) fn turns(outlook: &Outlook) -> String {
    let likely = outlook.turns.likely;
    if likely < FARTHEST { format!("~{likely}") } else { format!(">{FARTHEST}") }
}

/// Tokens to the auto-compact threshold.
pub(super) fn left(load: &LoadView) -> Option<u64> {
    Some(load.thresholds?.auto_compact.tokens.saturating_sub(load.used?))
}

/// A column for each of the last growths, as high as it is beside the largest.
pub(super) fn spark(growths: &[u64]) -> String {
    const COLUMNS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let growths = &growths[growths.len().saturating_sub(COLUMNS.len())..];
    let largest = u128::from(growths.iter().copied().max().unwrap_or(0).max(1));
    growths.iter().map(|growth| COLUMNS[(u128::from(*growth) * 7 / largest) as usize]).collect()
}
