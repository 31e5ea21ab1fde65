//! The figures as `docs/forecast.md` shows them, and a check that the page is up to date.

use crate::forecast_accuracy::accuracy_figures::{
    ITEMS_PER_RUN, LookAhead, RUN_COUNT, SAMPLE_RANGES, SESSION_COUNT, STEPS_PER_ITEM, measure_accuracy,
    simulate_long_items, simulate_packed_runs,
};
use crate::forecast_accuracy::simulated_sessions::{GrowthKind, STEP_SPREADS};
use plimsoll_testkit::workspace_root;
use std::fmt::Write as _;

const WINDOWS: [(u64, &str); 2] = [(200_000, "200k"), (1_000_000, "1M")];

/// Asserts that the page shows the current figures. With `PLIMSOLL_UPDATE_GOLDEN` the page is written anew instead.
pub(crate) fn assert_page_shows_figures() {
    let path = workspace_root().join("docs/forecast.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let (head, rest) = page.split_once(FIGURES_BEGIN).expect("where the figures begin");
    let (_, tail) = rest.split_once(FIGURES_END).expect("where they end");
    let updated = format!("{head}{FIGURES_BEGIN}{}{FIGURES_END}{tail}", render_tables());
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, updated).expect("docs/ is writable");
    } else {
        assert_eq!(page, updated, "PLIMSOLL_UPDATE_GOLDEN=1 writes it anew");
    }
}

const FIGURES_BEGIN: &str = "<!-- figures -->\n";
const FIGURES_END: &str = "<!-- end of figures -->\n";

fn render_tables() -> String {
    let mut text = format!(
        "\n{SESSION_COUNT} simulated sessions of each kind and window, with a forecast after every fifth turn: turns to L2.\n\n\
         | window | growth | turns known | forecasts | median relative error | within the range |\n\
         | --- | --- | --- | ---: | ---: | ---: |\n"
    );
    for (window, name) in WINDOWS {
        for kind in GrowthKind::ALL {
            for (sample_range, accuracy) in SAMPLE_RANGES.into_iter().zip(measure_accuracy(kind, window)) {
                if accuracy.forecast_count == 0 {
                    continue;
                }
                let known_turns = match sample_range.1 {
                    usize::MAX => format!("{} or more", sample_range.0),
                    end => format!("{} to {}", sample_range.0, end - 1),
                };
                let (number, error, coverage) =
                    (accuracy.forecast_count, accuracy.median_error_percent(), accuracy.coverage_percent());
                let growth = kind.description();
                let _ = writeln!(
                    text,
                    "| {name} | {growth} | {known_turns} | {number} | {error} % | {coverage} % |"
                );
            }
        }
    }
    let _ = write!(
        text,
        "\n{RUN_COUNT} simulated runs of {ITEMS_PER_RUN} items each (median 90k tokens, some several times that), packed into \
         sessions:\n\n\
         | window | continues with the next item | sessions | checkpoints between items | within an item |\n\
         | --- | --- | ---: | ---: | ---: |\n"
    );
    for (window, name) in WINDOWS {
        for (looks_ahead, words) in [(false, "always, until L2"), (true, "if it will probably fit")] {
            let packed = simulate_packed_runs(window, looks_ahead);
            let [between, within] = render_shares(packed.between_items, packed.within_item);
            let _ = writeln!(text, "| {name} | {words} | {} | {between} | {within} |", packed.sessions);
        }
    }
    let _ = write!(
        text,
        "\n{RUN_COUNT} simulated items of {STEPS_PER_ITEM} steps each (median 25k tokens), each step ending with a commit, over as many sessions as needed:\n\n\
         | window | steps | the checkpoint comes | sessions | at a commit | within a step |\n\
         | --- | --- | --- | ---: | ---: | ---: |\n"
    );
    for (window, name) in WINDOWS {
        for (spread, evenness) in STEP_SPREADS {
            for (look_ahead, words) in LookAhead::ALL {
                let stepped = simulate_long_items(window, spread, look_ahead);
                let [at_a_commit, within] = render_shares(stepped.at_a_commit, stepped.within_step);
                let _ = writeln!(
                    text,
                    "| {name} | {evenness} | {words} | {} | {at_a_commit} | {within} |",
                    stepped.sessions
                );
            }
        }
    }
    text + "\n"
}

/// Renders two parts of a whole, each in percent and as a number.
fn render_shares(first: usize, second: usize) -> [String; 2] {
    let total = (first + second).max(1);
    [first, second].map(|part| format!("{} % ({part})", (part * 100 + total / 2) / total))
}
