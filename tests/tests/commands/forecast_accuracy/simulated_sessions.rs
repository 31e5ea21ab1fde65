//! Simulated sessions: what each turn adds, drawn from a seed. Real tool results are small mostly and huge now and
//! then, and work goes in phases: reading, changing, testing.

use plimsoll_testkit::Dice;

/// How a session's window grows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// One piece after another of nearly the same size.
    Even,
    /// The same, ten times as much: whole files and logs.
    Fast,
    /// Small steps that read little.
    Slow,
    /// Phases of reading, changing and testing.
    Phases,
    /// The same, with a large file or log in one of thirty responses.
    Giants,
}

impl Kind {
    pub(crate) const ALL: [Kind; 5] = [Kind::Even, Kind::Fast, Kind::Slow, Kind::Phases, Kind::Giants];

    pub(crate) fn words(self) -> &'static str {
        match self {
            Kind::Even => "even: each turn adds 2.4k to 5.4k",
            Kind::Fast => "even: each turn adds 16k to 37k",
            Kind::Slow => "small: each turn adds 0.2k to 1.2k",
            Kind::Phases => "phases of reading (6k), changing (0.9k) and testing (2.5k)",
            Kind::Giants => "the same phases, and 20k to 60k at once in one turn of thirty",
        }
    }
}

/// The fill after each response, until the window is full.
pub(crate) fn fills(kind: Kind, seed: u64, window: u64) -> Vec<u64> {
    let dice = Dice::new(seed);
    let mut fills = vec![18_000 + dice.number("begin", 12_000)];
    let (mut phase, mut left) = (0, 0);
    while *fills.last().expect("one") < window {
        let place = fills.len();
        if left == 0 {
            phase = dice.number(&format!("phase {place}"), 3);
            left = 3 + dice.number(&format!("length {place}"), 10);
        }
        left -= 1;
        let (median, spread) = match (kind, phase) {
            (Kind::Even, _) => (3_600.0, 0.2),
            (Kind::Fast, _) => (24_000.0, 0.2),
            (Kind::Slow, _) => (500.0, 0.4),
            (_, 0) => (6_000.0, 0.9),
            (_, 1) => (900.0, 0.6),
            _ => (2_500.0, 0.9),
        };
        let giant = matches!(kind, Kind::Giants) && dice.number(&format!("giant {place}"), 30) == 0;
        let added = if giant {
            20_000 + dice.number(&format!("size {place}"), 40_000)
        } else {
            (median * (spread * normal(dice, &format!("normal {place}"))).exp()) as u64
        };
        fills.push(fills.last().expect("one") + added);
    }
    fills
}

/// What the items of a list take, in tokens: most are small, some large.
pub(crate) fn items(seed: u64, number: usize) -> Vec<u64> {
    let dice = Dice::new(seed);
    (0..number)
        .map(|place| (90_000.0 * (0.7 * normal(dice, &format!("item {place}"))).exp()) as u64)
        .collect()
}

/// How uneven the steps of an item are, from one commit to the next: what the logarithm is spread by.
pub(crate) const UNEVEN: [(f64, &str); 3] = [(0.2, "even"), (0.6, "uneven"), (1.0, "very uneven")];

/// What the steps of a long item take, from one commit to the next, in tokens.
pub(crate) fn steps(spread: f64, seed: u64, number: usize) -> Vec<u64> {
    let dice = Dice::new(seed);
    (0..number)
        .map(|place| (25_000.0 * (spread * normal(dice, &format!("step {place}"))).exp()) as u64)
        .collect()
}

/// A normal deviate: twelve even throws have variance one.
fn normal(dice: Dice, name: &str) -> f64 {
    let throws = (0..12).map(|throw| dice.number(&format!("{name} {throw}"), 1_000_000) as f64 / 1e6);
    throws.sum::<f64>() - 6.0
}
