//! May a session go on with the next item? Only while the load line leaves room for it.

use session::size::{Growth, Size};

/// Of what items took so far, so many percent took no more than the estimate.
const QUANTILE: usize = 75;

/// What an item will probably take, and how we know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    /// Tokens.
    pub tokens: u64,
    /// Where the figure comes from.
    pub source: Source,
}

/// Where an estimate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// What so many items of this run took (of the same stated size, where the item states one).
    Items(usize),
    /// The size that the item states.
    Stated(Size),
    /// The files that the item names have so many lines.
    Files(u64),
    /// Nothing is known: taken as a medium one.
    Nothing,
}

impl Source {
    /// As a person reads it.
    pub fn words(self) -> String {
        match self {
            Source::Items(number) => format!("from {}", session::text::counted(number, "item")),
            Source::Stated(size) => format!("a stated size: up to {}% of the window", size.percent()),
            Source::Files(lines) => format!("the files it names: {lines} lines"),
            Source::Nothing => "no item is known yet: taken as a medium one".to_owned(),
        }
    }
}

/// Estimates what an item takes: from items of this run, first from its stated size.
pub fn estimate(item: &str, growth: &[Growth], window: u64) -> Estimate {
    let stated = Size::stated(item);
    let samples: Vec<u64> = match stated {
        Some(size) => {
            growth.iter().filter(|known| known.size == Some(size)).map(|known| known.tokens).collect()
        }
        None => growth.iter().map(|known| known.tokens).collect(),
    };
    let share = |size: Size| window.saturating_mul(size.percent()) / 100;
    match (quantile(samples.clone()), stated) {
        (Some(tokens), _) => Estimate { tokens, source: Source::Items(samples.len()) },
        (None, Some(size)) => Estimate { tokens: share(size), source: Source::Stated(size) },
        (None, None) => Estimate { tokens: share(Size::Medium), source: Source::Nothing },
    }
}

/// The same, where the files that the item names may speak: better than nothing, worse than all else.
pub fn estimate_with_files(item: &str, lines: Option<u64>, growth: &[Growth], window: u64) -> Estimate {
    let estimate = estimate(item, growth, window);
    match lines {
        Some(lines) if estimate.source == Source::Nothing => {
            let percent = Size::of_lines(lines).percent();
            Estimate { tokens: window.saturating_mul(percent) / 100, source: Source::Files(lines) }
        }
        _ => estimate,
    }
}

fn quantile(mut samples: Vec<u64>) -> Option<u64> {
    samples.sort_unstable();
    let place = (samples.len() * QUANTILE).div_ceil(100).checked_sub(1)?;
    samples.get(place).copied()
}

/// True when the item fits between the present fill and L2.
pub fn fits(estimate: &Estimate, fill: u64, l2: u64) -> bool {
    fill.saturating_add(estimate.tokens) < l2
}

/// True when an item fits no window at all, even a fresh one: it should be split.
pub fn is_too_large(item: &str) -> bool {
    Size::stated(item) == Some(Size::VeryComplex)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grew(tokens: u64) -> Growth {
        Growth { size: Size::stated(""), tokens }
    }

    #[test]
    fn the_stated_size_speaks_first_and_then_what_items_took() {
        let sized = |tokens| Growth { size: Some(Size::Simple), tokens };
        for (item, growth, tokens, source) in [
            ("x (simple)", vec![], 200_000, Source::Stated(Size::Simple)),
            ("x (trivial)", vec![], 100_000, Source::Stated(Size::Trivial)),
            ("x", vec![], 400_000, Source::Nothing),
            ("x", vec![grew(50_000)], 50_000, Source::Items(1)),
            ("x", vec![grew(10), grew(20), grew(30), grew(1_000)], 30, Source::Items(4)),
            ("x (simple)", vec![grew(10)], 200_000, Source::Stated(Size::Simple)),
            ("x (simple)", vec![grew(10), sized(70)], 70, Source::Items(1)),
        ] {
            assert_eq!(estimate(item, &growth, 1_000_000), Estimate { tokens, source }, "{item} {growth:?}");
        }
    }

    #[test]
    fn it_fits_below_l2_and_not_at_it() {
        let of = |tokens| Estimate { tokens, source: Source::Nothing };
        assert!(fits(&of(99), 750, 850));
        assert!(!fits(&of(100), 750, 850));
        assert!(!fits(&of(u64::MAX), 1, 850));
    }
}
