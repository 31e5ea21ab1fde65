//! Decides whether a session may continue with the next item: only if the item fits below L2.

use plimsoll_domain::size::{ItemCost, ItemSize};

/// Percentile of the samples that is used as the estimate.
const ESTIMATE_PERCENTILE: usize = 75;

/// The estimated size of an item, and the source of the estimate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    pub tokens: u64,
    pub source: EstimateSource,
}

/// The source of an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EstimateSource {
    /// This many measured items, of the same size class if the item's class is known.
    MeasuredItems(usize),
    /// The size that the item states.
    StatedSize(ItemSize),
    /// The number of lines in the files that the item names.
    FileLines(u64),
    /// There is no information about the size; the item counts as medium.
    Unknown,
}

impl EstimateSource {
    /// Describes the source for the user.
    pub fn describe(self) -> String {
        match self {
            EstimateSource::MeasuredItems(item_count) => {
                format!("from {}", plimsoll_domain::text::count_with_noun(item_count, "item"))
            }
            EstimateSource::StatedSize(size) => {
                format!("a stated size: up to {}% of the window", size.expected_max_window_percent())
            }
            EstimateSource::FileLines(lines) => format!("the files it names: {lines} lines"),
            EstimateSource::Unknown => "no item has been measured yet: counted as medium".to_owned(),
        }
    }
}

/// Estimates how many tokens an item takes. The size class is the stated size, otherwise it is derived from the number of
/// lines of the files that the item names, otherwise it is medium. The estimate by class is scaled by the median
/// estimation error of this project. It counts as one sample beside the measured items of the same class, so that a
/// single small item does not make all estimates small.
pub fn estimate_item_tokens_by_percentile(
    item: &str,
    file_lines: Option<u64>,
    measured_items: &[ItemCost],
    window_tokens: u64,
) -> Estimate {
    let stated_size = ItemSize::parse_from_item(item);
    let size_class = stated_size.or(file_lines.map(ItemSize::from_line_count));
    let is_same_class = |measured: &&ItemCost| size_class.is_none() || measured.size == size_class;
    let mut samples: Vec<u64> =
        measured_items.iter().filter(is_same_class).map(|measured| measured.tokens).collect();
    let source = match (samples.len(), stated_size, file_lines) {
        (0, Some(size), _) => EstimateSource::StatedSize(size),
        (0, None, Some(lines)) => EstimateSource::FileLines(lines),
        (0, None, None) => EstimateSource::Unknown,
        (sample_count, ..) => EstimateSource::MeasuredItems(sample_count),
    };
    samples.push(estimate_from_class_and_median_error(size_class, measured_items, window_tokens));
    Estimate { tokens: percentile_of_samples(samples), source }
}

/// Estimates an item by its size class, times the median ratio of measured to expected tokens. One ratio of exactly 1 is
/// included.
fn estimate_from_class_and_median_error(
    size_class: Option<ItemSize>,
    measured_items: &[ItemCost],
    window_tokens: u64,
) -> u64 {
    let tokens_of_class = |class: Option<ItemSize>| {
        window_tokens.saturating_mul(class.unwrap_or(ItemSize::Medium).expected_max_window_percent()) / 100
    };
    let error_ratio =
        |measured: &ItemCost| measured.tokens as f64 / tokens_of_class(measured.size).max(1) as f64;
    let mut error_ratios: Vec<f64> = measured_items.iter().map(error_ratio).chain([1.0]).collect();
    error_ratios.sort_by(f64::total_cmp);
    (tokens_of_class(size_class) as f64 * error_ratios[error_ratios.len() / 2]).min(window_tokens as f64)
        as u64
}

fn percentile_of_samples(mut samples: Vec<u64>) -> u64 {
    samples.sort_unstable();
    let index = (samples.len() * ESTIMATE_PERCENTILE).div_ceil(100).saturating_sub(1);
    samples.get(index).copied().unwrap_or_default()
}

/// Returns true if the item fits between the tokens in use and L2.
pub fn fits_below_l2(estimate: &Estimate, used_tokens: u64, l2_tokens: u64) -> bool {
    used_tokens.saturating_add(estimate.tokens) < l2_tokens
}

/// Number of trivial items that share a session without `--pack`. Each takes at most a tenth of a window, so five leave a
/// session below L1, and a wrong size does little harm.
pub const MAX_TRIVIAL_ITEMS_PER_SESSION: u32 = 5;

/// Returns true if a session without `--pack` may continue with the next item: its ticked items and the next one are all
/// trivial, and a fresh session would cost more than such an item. `continuation_count` is the number of times it has
/// continued so far.
pub fn may_share_session_if_all_trivial(
    ticked_items: &[String],
    next_item: &str,
    continuation_count: u32,
) -> bool {
    let are_all_trivial = !ticked_items.is_empty() && ticked_items.iter().all(|item| is_stated_trivial(item));
    are_all_trivial
        && is_stated_trivial(next_item)
        && continuation_count.saturating_add(1) < MAX_TRIVIAL_ITEMS_PER_SESSION
}

/// Returns true if the item states that it is trivial.
pub fn is_stated_trivial(item: &str) -> bool {
    ItemSize::parse_from_item(item) == Some(ItemSize::Trivial)
}

/// Returns true if an item is stated to be too large even for an empty window, and should be split.
pub fn is_stated_too_large(item: &str) -> bool {
    ItemSize::parse_from_item(item) == Some(ItemSize::VeryComplex)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u64 = 1_000_000;

    fn measured_items(size: Option<ItemSize>, tokens: &[u64]) -> Vec<ItemCost> {
        tokens.iter().map(|tokens| ItemCost { size, tokens: *tokens }).collect()
    }

    #[test]
    fn the_size_class_counts_first_and_then_measured_items() {
        let simple_items = |tokens: &[u64]| measured_items(Some(ItemSize::Simple), tokens);
        for (item, file_lines, growth, tokens, source) in [
            ("x (simple)", None, vec![], 200_000, EstimateSource::StatedSize(ItemSize::Simple)),
            ("x (trivial)", Some(900), vec![], 100_000, EstimateSource::StatedSize(ItemSize::Trivial)),
            ("x", Some(700), vec![], 600_000, EstimateSource::FileLines(700)),
            ("x", None, vec![], 400_000, EstimateSource::Unknown),
            // One small item does not make all others small; a large one counts at once.
            ("x", None, measured_items(None, &[3_000]), 400_000, EstimateSource::MeasuredItems(1)),
            ("x", None, measured_items(None, &[700_000]), 700_000, EstimateSource::MeasuredItems(1)),
            ("x", None, measured_items(None, &[3_000, 5_000]), 5_000, EstimateSource::MeasuredItems(2)),
            (
                "x",
                None,
                measured_items(None, &[100_000, 120_000, 140_000, 900_000]),
                140_000,
                EstimateSource::MeasuredItems(4),
            ),
            // Items of the same class are samples; items of other classes only correct the estimate by class.
            (
                "x (simple)",
                None,
                measured_items(None, &[400_000]),
                200_000,
                EstimateSource::StatedSize(ItemSize::Simple),
            ),
            (
                "x (simple)",
                None,
                simple_items(&[70_000, 80_000, 90_000]),
                90_000,
                EstimateSource::MeasuredItems(3),
            ),
            (
                "x (complex)",
                None,
                simple_items(&[100_000, 100_000]),
                300_000,
                EstimateSource::StatedSize(ItemSize::Complex),
            ),
            ("x", Some(100), simple_items(&[100_000, 100_000]), 100_000, EstimateSource::MeasuredItems(2)),
        ] {
            let actual = estimate_item_tokens_by_percentile(item, file_lines, &growth, WINDOW);
            assert_eq!(actual, Estimate { tokens, source }, "{item} {file_lines:?} {growth:?}");
        }
    }

    #[test]
    fn larger_classes_never_get_smaller_estimates() {
        let items = ["x (trivial)", "x (simple)", "x (medium)", "x (complex)", "x (very complex)"];
        for tokens in [1_000, 90_000, 300_000, 900_000] {
            for item_count in 1..6 {
                for class in [None, Some(ItemSize::Trivial), Some(ItemSize::Complex)] {
                    let growth = measured_items(class, &vec![tokens; item_count]);
                    let estimates = items
                        .map(|item| estimate_item_tokens_by_percentile(item, None, &growth, WINDOW).tokens);
                    let item_of_class = class.map(|class| {
                        items.iter().position(|item| ItemSize::parse_from_item(item) == Some(class))
                    });
                    // The measured class is known better than its neighbors.
                    let other_estimates: Vec<u64> = (0..items.len())
                        .filter(|index| item_of_class != Some(Some(*index)))
                        .map(|place| estimates[place])
                        .collect();
                    assert!(other_estimates.is_sorted(), "{growth:?}: {estimates:?}");
                    assert!(estimates.iter().all(|tokens| *tokens <= WINDOW), "{estimates:?}");
                }
            }
        }
    }

    #[test]
    fn at_most_five_stated_trivial_items_share_a_session() {
        let (small, large) = ("x (trivial)", "x (simple)");
        for (ticked, next, continuations, expected) in [
            (&[small][..], small, 0, true),
            (&[small, "y (trivial, after: 1)"], "z (Trivial)", 3, true),
            (&[small], small, 4, false),
            (&[small], small, u32::MAX, false),
            (&[small], "x", 0, false),
            (&[small], large, 0, false),
            (&[large], small, 0, false),
            (&[small, large], small, 0, false),
            (&["x"], small, 0, false),
            (&[], small, 0, false),
        ] {
            let ticked: Vec<String> = ticked.iter().map(|item| (*item).to_owned()).collect();
            assert_eq!(
                may_share_session_if_all_trivial(&ticked, next, continuations),
                expected,
                "{ticked:?} {next} {continuations}"
            );
        }
    }

    #[test]
    fn an_item_fits_below_l2_and_not_at_it() {
        let estimate_of = |tokens| Estimate { tokens, source: EstimateSource::Unknown };
        assert!(fits_below_l2(&estimate_of(99), 750, 850));
        assert!(!fits_below_l2(&estimate_of(100), 750, 850));
        assert!(!fits_below_l2(&estimate_of(u64::MAX), 1, 850));
    }
}
