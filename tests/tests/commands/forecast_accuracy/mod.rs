//! Forecasts compared with what then happened in simulated sessions; `docs/forecast.md` shows the result, whatever it
//! is.

mod accuracy_figures;
mod forecast_page;
mod simulated_sessions;

use accuracy_figures::{
    LookAhead, SAMPLE_RANGES, measure_accuracy, simulate_long_items, simulate_packed_runs,
};
use simulated_sessions::GrowthKind;

#[test]
fn four_of_five_actual_values_are_within_the_forecast_range() {
    for kind in GrowthKind::ALL {
        let accuracies = measure_accuracy(kind, 1_000_000);
        for (sample_range, accuracy) in SAMPLE_RANGES.into_iter().zip(&accuracies) {
            let (number, coverage) = (accuracy.forecast_count, accuracy.coverage_percent());
            assert!(number == 0 || coverage >= 80, "{kind:?} {sample_range:?}: {coverage} of 100");
        }
        let [.., accuracy] = accuracies;
        assert!(accuracy.forecast_count > 400, "{}", accuracy.forecast_count);
        assert!(accuracy.median_error_percent() <= 40, "{kind:?}: {} %", accuracy.median_error_percent());
    }
}

#[test]
fn looking_ahead_puts_most_checkpoints_between_items() {
    let share = |looks_ahead| {
        let packed = simulate_packed_runs(1_000_000, looks_ahead);
        packed.between_items * 100 / (packed.between_items + packed.within_item)
    };
    assert_eq!(share(false), 0, "who does not look ahead meets L2 in the middle");
    assert!(share(true) >= 60, "{} %", share(true));
}

#[test]
fn looking_ahead_puts_checkpoints_at_commits() {
    for (spread, min_share) in [(0.2, 80), (1.0, 35)] {
        let stepped = simulate_long_items(1_000_000, spread, LookAhead::FromL1);
        let share = stepped.at_a_commit * 100 / (stepped.at_a_commit + stepped.within_step);
        assert!(share >= min_share, "{spread}: {share} %");
    }
}

#[test]
fn the_forecast_page_shows_the_measured_figures() {
    forecast_page::assert_page_shows_figures();
}
