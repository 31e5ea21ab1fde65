//! May a session continue with the next item? Only while the load line leaves room for it.

use plimsoll_domain::size::{ItemCost, Size};

/// This percentage of the items so far took no more than the estimate.
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
    /// What this many items took (of the same stated size, if the item states one).
    Items(usize),
    /// The size that the item states.
    Stated(Size),
    /// The number of lines in the files that the item names.
    Files(u64),
    /// Nothing is known: taken as a medium one.
    Nothing,
}

impl Source {
    /// As shown to the user.
    pub fn words(self) -> String {
        match self {
            Source::Items(number) => format!("from {}", plimsoll_domain::text::counted(number, "item")),
            Source::Stated(size) => format!("a stated size: up to {}% of the window", size.percent()),
            Source::Files(lines) => format!("the files it names: {lines} lines"),
            Source::Nothing => "no item has been measured yet: counted as medium".to_owned(),
        }
    }
}

/// Estimates what an item takes. First by its class: what it states, else the lines of the files that it names, else a
/// medium one; corrected by how far items of this project were off theirs. Then by items of the same class, among which
/// that first guess counts as one: a single small item does not make all others small.
pub fn estimate(item: &str, lines: Option<u64>, growth: &[ItemCost], window: u64) -> Estimate {
    let stated = Size::stated(item);
    let class = stated.or(lines.map(Size::of_lines));
    let is_alike = |known: &&ItemCost| class.is_none() || known.size == class;
    let mut samples: Vec<u64> = growth.iter().filter(is_alike).map(|known| known.tokens).collect();
    let source = match (samples.len(), stated, lines) {
        (0, Some(size), _) => Source::Stated(size),
        (0, None, Some(lines)) => Source::Files(lines),
        (0, None, None) => Source::Nothing,
        (number, ..) => Source::Items(number),
    };
    samples.push(first_guess(class, growth, window));
    Estimate { tokens: quantile(samples), source }
}

/// What the class says, times how far items were off theirs: the middle of that, with one that was as it should be.
fn first_guess(class: Option<Size>, growth: &[ItemCost], window: u64) -> u64 {
    let share = |class: Option<Size>| window.saturating_mul(class.unwrap_or(Size::Medium).percent()) / 100;
    let off = |known: &ItemCost| known.tokens as f64 / share(known.size).max(1) as f64;
    let mut off: Vec<f64> = growth.iter().map(off).chain([1.0]).collect();
    off.sort_by(f64::total_cmp);
    (share(class) as f64 * off[off.len() / 2]).min(window as f64) as u64
}

fn quantile(mut samples: Vec<u64>) -> u64 {
    samples.sort_unstable();
    let place = (samples.len() * QUANTILE).div_ceil(100).saturating_sub(1);
    samples.get(place).copied().unwrap_or_default()
}

/// True when the item fits between the current fill and L2.
pub fn fits(estimate: &Estimate, fill: u64, l2: u64) -> bool {
    fill.saturating_add(estimate.tokens) < l2
}

/// So many trivial items share a session without `--pack`. Each takes at most a tenth of a window: five leave a session below L1
/// even if each is as large as a trivial one may be, and a wrong one spoils little.
pub const SHARED: u32 = 5;

/// May a session without `--pack` continue with this item? It may after trivial ones if this one is trivial, too: a fresh
/// session costs more than such an item. `continuations` says how often it has continued.
pub fn may_share(ticked: &[String], next: &str, continuations: u32) -> bool {
    let are_trivial = !ticked.is_empty() && ticked.iter().all(|item| is_trivial(item));
    are_trivial && is_trivial(next) && continuations.saturating_add(1) < SHARED
}

/// True if the item states that it is trivial.
pub fn is_trivial(item: &str) -> bool {
    Size::stated(item) == Some(Size::Trivial)
}

/// True when an item fits no window at all, even a fresh one: it should be split.
pub fn is_too_large(item: &str) -> bool {
    Size::stated(item) == Some(Size::VeryComplex)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u64 = 1_000_000;

    fn grew(size: Option<Size>, tokens: &[u64]) -> Vec<ItemCost> {
        tokens.iter().map(|tokens| ItemCost { size, tokens: *tokens }).collect()
    }

    #[test]
    fn the_class_speaks_first_and_then_what_items_took() {
        let simple = |tokens: &[u64]| grew(Some(Size::Simple), tokens);
        for (item, lines, growth, tokens, source) in [
            ("x (simple)", None, vec![], 200_000, Source::Stated(Size::Simple)),
            ("x (trivial)", Some(900), vec![], 100_000, Source::Stated(Size::Trivial)),
            ("x", Some(700), vec![], 600_000, Source::Files(700)),
            ("x", None, vec![], 400_000, Source::Nothing),
            // One small item does not make all others small; a large one is believed at once.
            ("x", None, grew(None, &[3_000]), 400_000, Source::Items(1)),
            ("x", None, grew(None, &[700_000]), 700_000, Source::Items(1)),
            ("x", None, grew(None, &[3_000, 5_000]), 5_000, Source::Items(2)),
            ("x", None, grew(None, &[100_000, 120_000, 140_000, 900_000]), 140_000, Source::Items(4)),
            // Those of the same class, and the other classes by how far items were off theirs.
            ("x (simple)", None, grew(None, &[400_000]), 200_000, Source::Stated(Size::Simple)),
            ("x (simple)", None, simple(&[70_000, 80_000, 90_000]), 90_000, Source::Items(3)),
            ("x (complex)", None, simple(&[100_000, 100_000]), 300_000, Source::Stated(Size::Complex)),
            ("x", Some(100), simple(&[100_000, 100_000]), 100_000, Source::Items(2)),
        ] {
            let found = estimate(item, lines, &growth, WINDOW);
            assert_eq!(found, Estimate { tokens, source }, "{item} {lines:?} {growth:?}");
        }
    }

    #[test]
    fn the_classes_keep_their_order_whatever_one_of_them_took() {
        let items = ["x (trivial)", "x (simple)", "x (medium)", "x (complex)", "x (very complex)"];
        for tokens in [1_000, 90_000, 300_000, 900_000] {
            for number in 1..6 {
                for class in [None, Some(Size::Trivial), Some(Size::Complex)] {
                    let growth = grew(class, &vec![tokens; number]);
                    let found = items.map(|item| estimate(item, None, &growth, WINDOW).tokens);
                    let of_class =
                        class.map(|class| items.iter().position(|item| Size::stated(item) == Some(class)));
                    // Its own class is known better than the guess for its neighbours.
                    let others: Vec<u64> = (0..items.len())
                        .filter(|place| of_class != Some(Some(*place)))
                        .map(|place| found[place])
                        .collect();
                    assert!(others.is_sorted(), "{growth:?}: {found:?}");
                    assert!(found.iter().all(|tokens| *tokens <= WINDOW), "{found:?}");
                }
            }
        }
    }

    #[test]
    fn only_stated_trivial_items_share_a_session_and_only_a_handful() {
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
                may_share(&ticked, next, continuations),
                expected,
                "{ticked:?} {next} {continuations}"
            );
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
