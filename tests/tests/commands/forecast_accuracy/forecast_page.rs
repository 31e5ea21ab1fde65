//! The figures as `docs/forecast.md` shows them, and a check that the page is up to date.

use crate::forecast_accuracy::accuracy_figures::{
    ForecastAccuracy, ITEMS_PER_RUN, LookAhead, RUN_COUNT, SAMPLE_RANGES, SESSION_COUNT, STEPS_PER_ITEM,
    measure_accuracy, simulate_long_items, simulate_packed_runs,
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
    [render_accuracy_table(), render_packed_runs_table(), render_long_items_table(), String::new()].join("\n")
}

fn render_accuracy_table() -> String {
    let mut text = format!(
        "\n**Turns to L2**, in {SESSION_COUNT} simulated sessions of each kind. Four columns show the median error, grouped by the turns known to\n\
         the forecast. The last column shows the share of outcomes within the forecast's range, in the group with the lowest share.\n\n| window | each turn adds |"
    );
    for (first, end) in SAMPLE_RANGES {
        let _ = match end {
            usize::MAX => write!(text, " {first}+ |"),
            end => write!(text, " {first} to {} |", end - 1),
        };
    }
    text += &format!(" within range |\n| --- | --- |{} ---: |\n", " ---: |".repeat(SAMPLE_RANGES.len()));
    for (window, name) in WINDOWS {
        for kind in GrowthKind::ALL {
            let accuracies = measure_accuracy(kind, window);
            let errors = accuracies.each_ref().map(|accuracy| match accuracy.forecast_count {
                0 => "–".to_owned(),
                _ => format!("{}%", accuracy.median_error_percent()),
            });
            let measured = accuracies.iter().filter(|accuracy| accuracy.forecast_count > 0);
            let lowest_coverage = measured.map(ForecastAccuracy::coverage_percent).min().unwrap_or_default();
            let (growth, errors) = (kind.description(), errors.join(" | "));
            let _ = writeln!(text, "| {name} | {growth} | {errors} | {lowest_coverage}% |");
        }
    }
    text
}

fn render_packed_runs_table() -> String {
    let mut text = format!(
        "**Checkpoints with `--pack`**, in {RUN_COUNT} simulated runs of {ITEMS_PER_RUN} items (median 90k tokens). If a\n\
         session starts only items that will probably fit, the run needs more sessions, but fewer items are left half done.\n\n\
         | window | starts the next item | sessions | checkpoints between items |\n\
         | --- | --- | ---: | ---: |\n"
    );
    for (window, name) in WINDOWS {
        for (looks_ahead, words) in [(false, "always"), (true, "if it will probably fit")] {
            let packed = simulate_packed_runs(window, looks_ahead);
            let share = render_percent(packed.between_items, packed.within_item);
            let _ = writeln!(text, "| {name} | {words} | {} | {share} |", packed.sessions);
        }
    }
    text
}

fn render_long_items_table() -> String {
    let mut text = format!(
        "**Checkpoints within an item**, in {RUN_COUNT} simulated items of {STEPS_PER_ITEM} steps (median 25k tokens). Each step ends with a commit.\n\
         Each cell shows the number of sessions and the share of checkpoints at a commit.\n\
         In the last two columns, a session stops at a commit if its next step will probably not fit below L2.\n\n| window | steps |"
    );
    for (_, words) in LookAhead::ALL {
        let _ = write!(text, " {words} |");
    }
    text += &format!("\n| --- | --- |{}\n", " --- |".repeat(LookAhead::ALL.len()));
    for (window, name) in WINDOWS {
        for (spread, evenness) in STEP_SPREADS {
            let cells = LookAhead::ALL.map(|(look_ahead, _)| {
                let stepped = simulate_long_items(window, spread, look_ahead);
                format!("{}, {}", stepped.sessions, render_percent(stepped.at_a_commit, stepped.within_step))
            });
            let _ = writeln!(text, "| {name} | {evenness} | {} |", cells.join(" | "));
        }
    }
    text
}

/// Renders the share of the first of two parts of a whole.
fn render_percent(part: usize, rest: usize) -> String {
    let total = (part + rest).max(1);
    format!("{}%", (part * 100 + total / 2) / total)
}
