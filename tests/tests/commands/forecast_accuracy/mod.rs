//! The forecast against what then came, over simulated sessions; `docs/forecast.md` shows what comes out, whatever it is.

mod accuracy_figures;
mod forecast_page;
mod simulated_sessions;

use accuracy_figures::{Ahead, SAMPLES, nearness, packed, stepped};
use simulated_sessions::Kind;

#[test]
fn four_of_five_endings_lie_within_the_span_however_little_is_known() {
    for kind in Kind::ALL {
        let known = nearness(kind, 1_000_000);
        for (samples, known) in SAMPLES.into_iter().zip(&known) {
            let (number, coverage) = (known.number, known.coverage());
            assert!(number == 0 || coverage >= 80, "{kind:?} {samples:?}: {coverage} of 100");
        }
        let [.., known] = known;
        assert!(known.number > 400, "{}", known.number);
        assert!(known.error() <= 40, "{kind:?}: {} %", known.error());
    }
}

#[test]
fn looking_ahead_puts_more_checkpoints_between_items() {
    let share = |looks_ahead| {
        let packed = packed(1_000_000, looks_ahead);
        packed.between_items * 100 / (packed.between_items + packed.within_item)
    };
    assert_eq!(share(false), 0, "who does not look ahead meets L2 in the middle");
    assert!(share(true) >= 60, "{} %", share(true));
}

#[test]
fn looking_ahead_puts_checkpoints_at_commits() {
    for (spread, least) in [(0.2, 80), (1.0, 35)] {
        let stepped = stepped(1_000_000, spread, Ahead::InL1);
        let share = stepped.at_a_commit * 100 / (stepped.at_a_commit + stepped.within_step);
        assert!(share >= least, "{spread}: {share} %");
    }
}

#[test]
fn the_page_shows_what_was_measured() {
    forecast_page::assert_shown();
}
