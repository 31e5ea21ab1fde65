//! Simulated sessions: the tokens that each turn adds, drawn from a seed. As in real sessions, most tool results are
//! small and a few are huge, and work goes in phases of reading, changing and testing.

use plimsoll_testkit::SeededRng;

/// How a session's window grows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GrowthKind {
    /// Pieces of nearly the same size.
    Even,
    /// Much larger pieces of nearly the same size, such as whole files and logs.
    Fast,
    /// Small steps that read little.
    Slow,
    /// Phases of reading, changing and testing.
    Phases,
    /// Phases of reading, changing and testing, with a large file or log in one of thirty responses.
    PhasesWithGiants,
}

impl GrowthKind {
    pub(crate) const ALL: [GrowthKind; 5] = [
        GrowthKind::Even,
        GrowthKind::Fast,
        GrowthKind::Slow,
        GrowthKind::Phases,
        GrowthKind::PhasesWithGiants,
    ];

    pub(crate) fn description(self) -> &'static str {
        match self {
            GrowthKind::Even => "2.4k to 5.4k",
            GrowthKind::Fast => "16k to 37k",
            GrowthKind::Slow => "0.2k to 1.2k",
            GrowthKind::Phases => "6k, 0.9k, 2.5k in phases",
            GrowthKind::PhasesWithGiants => "the same, sometimes 60k",
        }
    }
}

/// Returns the used tokens after each response, until the window is full.
pub(crate) fn simulate_used_tokens(kind: GrowthKind, seed: u64, window: u64) -> Vec<u64> {
    let dice = SeededRng::new(seed);
    let mut used_tokens = vec![18_000 + dice.random_number_for_name("begin", 12_000)];
    let (mut phase, mut remaining_turns) = (0, 0);
    while *used_tokens.last().expect("one") < window {
        let turn_index = used_tokens.len();
        if remaining_turns == 0 {
            phase = dice.random_number_for_name(&format!("phase {turn_index}"), 3);
            remaining_turns = 3 + dice.random_number_for_name(&format!("length {turn_index}"), 10);
        }
        remaining_turns -= 1;
        let (median, spread) = match (kind, phase) {
            (GrowthKind::Even, _) => (3_600.0, 0.2),
            (GrowthKind::Fast, _) => (24_000.0, 0.2),
            (GrowthKind::Slow, _) => (500.0, 0.4),
            (_, 0) => (6_000.0, 0.9),
            (_, 1) => (900.0, 0.6),
            _ => (2_500.0, 0.9),
        };
        let is_giant = matches!(kind, GrowthKind::PhasesWithGiants)
            && dice.random_number_for_name(&format!("giant {turn_index}"), 30) == 0;
        let added = if is_giant {
            20_000 + dice.random_number_for_name(&format!("size {turn_index}"), 40_000)
        } else {
            (median * (spread * normal_deviate(dice, &format!("normal {turn_index}"))).exp()) as u64
        };
        used_tokens.push(used_tokens.last().expect("one") + added);
    }
    used_tokens
}

/// Returns the tokens of each item of a plan: most items are small, some are large.
pub(crate) fn simulate_item_tokens(seed: u64, count: usize) -> Vec<u64> {
    let dice = SeededRng::new(seed);
    (0..count)
        .map(|place| (90_000.0 * (0.7 * normal_deviate(dice, &format!("item {place}"))).exp()) as u64)
        .collect()
}

/// How uneven the steps of an item are from one commit to the next: the standard deviation of the logarithm of a step's
/// tokens, with its name.
pub(crate) const STEP_SPREADS: [(f64, &str); 3] = [(0.2, "even"), (0.6, "uneven"), (1.0, "very uneven")];

/// Returns the tokens of each step of a long item, from one commit to the next.
pub(crate) fn simulate_step_tokens(spread: f64, seed: u64, count: usize) -> Vec<u64> {
    let dice = SeededRng::new(seed);
    (0..count)
        .map(|place| (25_000.0 * (spread * normal_deviate(dice, &format!("step {place}"))).exp()) as u64)
        .collect()
}

/// Returns an approximately normal deviate: the sum of twelve uniform numbers has variance one.
fn normal_deviate(dice: SeededRng, name: &str) -> f64 {
    let throws =
        (0..12).map(|throw| dice.random_number_for_name(&format!("{name} {throw}"), 1_000_000) as f64 / 1e6);
    throws.sum::<f64>() - 6.0
}
