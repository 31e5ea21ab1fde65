//! What was foretold beside what came.

use crate::forecast_accuracy::simulated_sessions::{Kind, fills, items, steps};
use plimsoll_domain::Settings;
use plimsoll_domain::forecast::{MAX_FORECAST_TURNS, UsageSample};
use plimsoll_domain::level::Thresholds;
use plimsoll_domain::size::ItemCost;
use plimsoll_policy::thresholds::{CompactionConfig, compute_auto_compact, compute_thresholds};
use plimsoll_policy::{forecast, pack, step};

/// Sessions of each kind.
pub(crate) const SESSIONS: u64 = 200;
/// Runs, and items of each.
pub(crate) const RUNS: u64 = 200;
pub(crate) const ITEMS: usize = 24;

/// From so many responses, up to but not including so many.
pub(crate) const SAMPLES: [(usize, usize); 4] = [(3, 6), (6, 12), (12, 24), (24, usize::MAX)];

pub(crate) fn line(window: u64) -> Thresholds {
    let settings = Settings::default();
    let auto_compact = compute_auto_compact(window, Some("claude-sonnet-4-6"), &CompactionConfig::default());
    compute_thresholds(window, auto_compact, &settings.levels, &settings.margins, 0)
}

/// How near the forecasts came.
#[derive(Debug, Default)]
pub(crate) struct Nearness {
    /// How many forecasts.
    pub(crate) number: usize,
    errors: Vec<f64>,
    within: usize,
}

impl Nearness {
    fn note(&mut self, foretold: plimsoll_domain::forecast::ForecastRange, actual: u64) {
        let actual = actual.min(MAX_FORECAST_TURNS);
        self.number += 1;
        self.within += usize::from((foretold.earliest..=foretold.latest).contains(&actual));
        if actual < MAX_FORECAST_TURNS && foretold.median < MAX_FORECAST_TURNS {
            self.errors.push(foretold.median.abs_diff(actual) as f64 / actual as f64);
        }
    }

    /// The middle relative error, percent, of those that told a number.
    pub(crate) fn error(&self) -> u64 {
        let mut errors = self.errors.clone();
        errors.sort_by(f64::total_cmp);
        (errors.get(errors.len() / 2).copied().unwrap_or_default() * 100.0).round() as u64
    }

    /// The share that came within the range, percent.
    pub(crate) fn coverage(&self) -> u64 {
        (self.within * 100 / self.number.max(1)) as u64
    }
}

/// Forecasts of the turns to L2, after each response of each session, by the number of turns known.
pub(crate) fn nearness(kind: Kind, window: u64) -> [Nearness; SAMPLES.len()] {
    let thresholds = line(window);
    let mut found: [Nearness; SAMPLES.len()] = std::array::from_fn(|_| Nearness::default());
    for seed in 1..=SESSIONS {
        let fills = fills(kind, seed, window);
        let end = fills.iter().position(|fill| *fill >= thresholds.l2).expect("it fills");
        let known: Vec<UsageSample> =
            fills[..end].iter().map(|used| UsageSample { used_tokens: *used, unix_seconds: None }).collect();
        // Every fifth: neighbours say nearly the same; of a long session fewer.
        for now in (0..end).step_by((end / 40).max(5)) {
            let seen = &known[..=now];
            let samples = forecast::gains_since_last_reset(seen).len();
            let Some(class) = SAMPLES.iter().position(|(from, to)| (*from..*to).contains(&samples)) else {
                continue;
            };
            if let Some(outlook) =
                forecast::forecast_thresholds(seen, fills[now], &thresholds).and_then(|told| told.l2)
            {
                found[class].note(outlook.turns, (end - now) as u64);
            }
        }
    }
    found
}

/// How packed sessions ended.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    pub(crate) sessions: usize,
    pub(crate) between_items: usize,
    pub(crate) within_item: usize,
}

/// Runs in which each session goes on with the next item: always while it is below L2, or only if the item will probably
/// fit.
pub(crate) fn packed(window: u64, looks_ahead: bool) -> Packed {
    let thresholds = line(window);
    let mut packed = Packed::default();
    for seed in 1..=RUNS {
        let mut growth: Vec<ItemCost> = Vec::new();
        let mut fill = BASE;
        packed.sessions += 1;
        for tokens in items(seed, ITEMS) {
            let estimate = pack::estimate_item("item", None, &growth, window);
            if fill > BASE && looks_ahead && !pack::fits_below_l2(&estimate, fill, thresholds.l2) {
                packed.between_items += 1;
                packed.sessions += 1;
                fill = BASE;
            }
            let mut left = tokens;
            while fill + left >= thresholds.l2 {
                left -= (thresholds.l2 - fill).min(left);
                packed.within_item += 1;
                packed.sessions += 1;
                fill = BASE;
            }
            fill += left;
            growth.push(ItemCost { size: None, tokens });
        }
    }
    packed
}

/// How the sessions of long items ended.
#[derive(Debug, Default)]
pub(crate) struct Stepped {
    pub(crate) sessions: usize,
    pub(crate) at_a_commit: usize,
    pub(crate) within_step: usize,
}

/// Steps of a long item.
pub(crate) const STEPS: usize = 200;

/// Whether a session ends at a commit after which the next step will probably not fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ahead {
    /// No: at L2.
    Never,
    /// From L1 on, as Plimsoll does.
    InL1,
    /// Wherever it is.
    Always,
}

impl Ahead {
    pub(crate) const ALL: [(Ahead, &str); 3] = [
        (Ahead::Never, "at L2"),
        (
            Ahead::InL1,
            "at a commit from L1 on after which the next step will probably not fit (this is done)",
        ),
        (Ahead::Always, "at any such commit"),
    ];

    fn looks(self, fill: u64, l1: u64) -> bool {
        self == Ahead::Always || self == Ahead::InL1 && fill >= l1
    }
}

/// Long items, worked on in steps that each end with a commit.
pub(crate) fn stepped(window: u64, spread: f64, ahead: Ahead) -> Stepped {
    let thresholds = line(window);
    let mut stepped = Stepped::default();
    for seed in 1..=RUNS {
        let (mut fill, mut commits) = (BASE, Vec::new());
        stepped.sessions += 1;
        for tokens in steps(spread, seed, STEPS) {
            let mut left = tokens;
            while fill + left >= thresholds.l2 {
                left -= (thresholds.l2 - fill).min(left);
                (fill, commits) = (BASE, Vec::new());
                stepped.within_step += 1;
                stepped.sessions += 1;
            }
            fill += left;
            commits.push(fill);
            if ahead.looks(fill, thresholds.l1)
                && step::predict_next_step_too_large(&commits, thresholds.l2).is_some()
            {
                (fill, commits) = (BASE, Vec::new());
                stepped.at_a_commit += 1;
                stepped.sessions += 1;
            }
        }
    }
    stepped
}

/// What stands in a window before any work.
const BASE: u64 = 25_000;
