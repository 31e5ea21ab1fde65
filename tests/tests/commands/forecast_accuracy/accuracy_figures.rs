//! Accuracy figures: forecasts compared with what then happened.

use crate::forecast_accuracy::simulated_sessions::{
    GrowthKind, simulate_item_tokens, simulate_step_tokens, simulate_used_tokens,
};
use plimsoll_domain::Settings;
use plimsoll_domain::forecast::{MAX_FORECAST_TURNS, UsageSample};
use plimsoll_domain::level::Thresholds;
use plimsoll_domain::size::ItemCost;
use plimsoll_policy::thresholds::{
    CompactionConfig, compute_auto_compact_threshold_and_action, compute_thresholds,
};
use plimsoll_policy::{forecast, pack, step};

/// The number of sessions of each kind.
pub(crate) const SESSION_COUNT: u64 = 200;
/// The number of runs, and of items in each.
pub(crate) const RUN_COUNT: u64 = 200;
pub(crate) const ITEMS_PER_RUN: usize = 24;

/// Ranges of the number of known responses: from the first number up to but not including the second.
pub(crate) const SAMPLE_RANGES: [(usize, usize); 4] = [(3, 6), (6, 12), (12, 24), (24, usize::MAX)];

pub(crate) fn default_thresholds(window: u64) -> Thresholds {
    let settings = Settings::default();
    let auto_compact = compute_auto_compact_threshold_and_action(
        window,
        Some("claude-sonnet-4-6"),
        &CompactionConfig::default(),
    );
    compute_thresholds(window, auto_compact, &settings.levels, &settings.margins, 0)
}

/// The accuracy of a group of forecasts.
#[derive(Debug, Default)]
pub(crate) struct ForecastAccuracy {
    pub(crate) forecast_count: usize,
    relative_errors: Vec<f64>,
    within_range_count: usize,
}

impl ForecastAccuracy {
    fn record_forecast(&mut self, range: plimsoll_domain::forecast::ForecastRange, actual: u64) {
        let actual = actual.min(MAX_FORECAST_TURNS);
        self.forecast_count += 1;
        self.within_range_count += usize::from((range.earliest..=range.latest).contains(&actual));
        if actual < MAX_FORECAST_TURNS && range.median < MAX_FORECAST_TURNS {
            self.relative_errors.push(range.median.abs_diff(actual) as f64 / actual as f64);
        }
    }

    /// Returns the median relative error in percent, over the forecasts that gave a number.
    pub(crate) fn median_error_percent(&self) -> u64 {
        let mut errors = self.relative_errors.clone();
        errors.sort_by(f64::total_cmp);
        (errors.get(errors.len() / 2).copied().unwrap_or_default() * 100.0).round() as u64
    }

    /// Returns the share of actual values within the forecast range, in percent.
    pub(crate) fn coverage_percent(&self) -> u64 {
        (self.within_range_count * 100 / self.forecast_count.max(1)) as u64
    }
}

/// Makes forecasts of the turns to L2 after responses of each session, and groups their accuracy by the number of known
/// turns.
pub(crate) fn measure_accuracy(kind: GrowthKind, window: u64) -> [ForecastAccuracy; SAMPLE_RANGES.len()] {
    let thresholds = default_thresholds(window);
    let mut accuracies: [ForecastAccuracy; SAMPLE_RANGES.len()] =
        std::array::from_fn(|_| ForecastAccuracy::default());
    for seed in 1..=SESSION_COUNT {
        let fills = simulate_used_tokens(kind, seed, window);
        let end = fills.iter().position(|fill| *fill >= thresholds.l2).expect("it fills");
        let usage_samples: Vec<UsageSample> =
            fills[..end].iter().map(|used| UsageSample { used_tokens: *used, unix_seconds: None }).collect();
        // Every fifth response is enough, because neighboring forecasts are nearly equal; a long session needs fewer.
        for index in (0..end).step_by((end / 40).max(5)) {
            let past_samples = &usage_samples[..=index];
            let sample_count = forecast::gains_since_last_reset(past_samples).len();
            let Some(range_index) =
                SAMPLE_RANGES.iter().position(|(from, to)| (*from..*to).contains(&sample_count))
            else {
                continue;
            };
            if let Some(outlook) = forecast::forecast_thresholds(past_samples, fills[index], &thresholds)
                .and_then(|told| told.l2)
            {
                accuracies[range_index].record_forecast(outlook.turns, (end - index) as u64);
            }
        }
    }
    accuracies
}

/// How the sessions of packed runs ended.
#[derive(Debug, Default)]
pub(crate) struct PackedSessionEnds {
    pub(crate) sessions: usize,
    pub(crate) between_items: usize,
    pub(crate) within_item: usize,
}

/// Simulates runs in which each session continues with the next item, either always while it is below L2 or only if the
/// item will probably fit.
pub(crate) fn simulate_packed_runs(window: u64, looks_ahead: bool) -> PackedSessionEnds {
    let thresholds = default_thresholds(window);
    let mut packed = PackedSessionEnds::default();
    for seed in 1..=RUN_COUNT {
        let mut growth: Vec<ItemCost> = Vec::new();
        let mut used_tokens = BASE_TOKENS;
        packed.sessions += 1;
        for tokens in simulate_item_tokens(seed, ITEMS_PER_RUN) {
            let estimate = pack::estimate_item_tokens_by_percentile("item", None, &growth, window);
            if used_tokens > BASE_TOKENS
                && looks_ahead
                && !pack::fits_below_l2(&estimate, used_tokens, thresholds.l2)
            {
                packed.between_items += 1;
                packed.sessions += 1;
                used_tokens = BASE_TOKENS;
            }
            let mut remaining_tokens = tokens;
            while used_tokens + remaining_tokens >= thresholds.l2 {
                remaining_tokens -= (thresholds.l2 - used_tokens).min(remaining_tokens);
                packed.within_item += 1;
                packed.sessions += 1;
                used_tokens = BASE_TOKENS;
            }
            used_tokens += remaining_tokens;
            growth.push(ItemCost { size: None, tokens });
        }
    }
    packed
}

/// How the sessions of long items ended.
#[derive(Debug, Default)]
pub(crate) struct SteppedSessionEnds {
    pub(crate) sessions: usize,
    pub(crate) at_a_commit: usize,
    pub(crate) within_step: usize,
}

/// The number of steps of a long item.
pub(crate) const STEPS_PER_ITEM: usize = 200;

/// When a session ends at a commit because the next step will probably not fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum LookAhead {
    /// Never; the session ends at L2.
    Never,
    /// From L1 on, as Plimsoll does.
    FromL1,
    /// At any usage.
    Always,
}

impl LookAhead {
    pub(crate) const ALL: [(LookAhead, &str); 3] = [
        (LookAhead::Never, "only at L2"),
        (LookAhead::FromL1, "from L1 on (Plimsoll)"),
        (LookAhead::Always, "also below L1"),
    ];

    fn looks_ahead_at(self, used_tokens: u64, l1: u64) -> bool {
        self == LookAhead::Always || self == LookAhead::FromL1 && used_tokens >= l1
    }
}

/// Simulates long items, worked on in steps that each end with a commit.
pub(crate) fn simulate_long_items(window: u64, spread: f64, look_ahead: LookAhead) -> SteppedSessionEnds {
    let thresholds = default_thresholds(window);
    let mut stepped = SteppedSessionEnds::default();
    for seed in 1..=RUN_COUNT {
        let (mut used_tokens, mut commits) = (BASE_TOKENS, Vec::new());
        stepped.sessions += 1;
        for tokens in simulate_step_tokens(spread, seed, STEPS_PER_ITEM) {
            let mut remaining_tokens = tokens;
            while used_tokens + remaining_tokens >= thresholds.l2 {
                remaining_tokens -= (thresholds.l2 - used_tokens).min(remaining_tokens);
                (used_tokens, commits) = (BASE_TOKENS, Vec::new());
                stepped.within_step += 1;
                stepped.sessions += 1;
            }
            used_tokens += remaining_tokens;
            commits.push(used_tokens);
            if look_ahead.looks_ahead_at(used_tokens, thresholds.l1)
                && step::predict_step_reaching_l2_by_median(&commits, thresholds.l2).is_some()
            {
                (used_tokens, commits) = (BASE_TOKENS, Vec::new());
                stepped.at_a_commit += 1;
                stepped.sessions += 1;
            }
        }
    }
    stepped
}

/// The tokens in a window before any work.
const BASE_TOKENS: u64 = 25_000;
