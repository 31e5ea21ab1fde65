//! Renders the figures for `docs/memory-worth.md` and checks that the page still shows them.

use crate::FiguresByWay;
use crate::figures::PlayFigures;
use crate::play::WorkMode;
use crate::task::PHASES;
use plimsoll_testkit::workspace_root;
use std::fs::{self, File};

const TABLE_END: &str = "<!-- /measured -->";

/// The allowed relative difference between computers: every request contains paths and dates.
const RELATIVE_TOLERANCE: f64 = 0.05;
/// The smallest allowed difference of token figures, in thousands of tokens.
const MIN_TOKEN_TOLERANCE: f64 = 1.0;
/// The smallest allowed difference of counts: after a compaction the client shows the last files again, and
/// which ones differs between runs.
const MIN_COUNT_TOLERANCE: f64 = 2.0;

/// A table of the page, with the sentences below it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    /// A large task in the large window.
    Large,
    /// A large task in the small window.
    LargeInSmallWindow,
    /// A small task in the large window.
    Small,
}

impl Table {
    fn title(self) -> &'static str {
        match self {
            Table::Large => "**Large task, window of 1M tokens**\n",
            Table::LargeInSmallWindow => "**Large task, window of 100k tokens**\n",
            Table::Small => "**Small task, window of 1M tokens**\n",
        }
    }
}

/// Compares a table of the page with the measured figures, or updates it if `PLIMSOLL_UPDATE_GOLDEN` is set.
pub(crate) fn check_or_update_table(table: Table, figures_by_way: &FiguresByWay) {
    let path = workspace_root().join("docs/memory-worth.md");
    // Each table is updated by a separate test, and the tests run in parallel.
    let lock = File::open(&path).and_then(|page| page.lock().map(|()| page)).expect("the page");
    let page = fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once(table.title()).expect("the table's title");
    let end =
        rest.find("\n**").map(|place| place + 1).or(rest.find(TABLE_END)).expect("the end of the table");
    let (old_table, after) = rest.split_at(end);
    let new_table = render_table(table, figures_by_way);
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        let page = format!("{before}{}{new_table}{after}", table.title());
        fs::write(&path, page).expect("the page is writable");
        return;
    }
    drop(lock);
    let hint = "is it wanted? then PLIMSOLL_UPDATE_GOLDEN=1, and see that the words of the page still hold";
    assert_eq!(old_table.lines().count(), new_table.lines().count(), "{hint}: now it is\n{new_table}");
    for (old, new) in old_table.lines().zip(new_table.lines()) {
        assert!(is_equal_within_tolerance(old, new), "the page says\n{old}\nand measured was\n{new}\n{hint}");
    }
}

/// Returns true if the words are equal and the numbers are within the tolerance. A token figure ends with `k`.
fn is_equal_within_tolerance(old: &str, new: &str) -> bool {
    let split_words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (old_words, new_words) = (split_words(old), split_words(new));
    let parse_tokens = |word: &str| word.strip_suffix('k')?.parse::<f64>().ok();
    let is_close = |before: f64, now: f64, min_tolerance: f64| {
        (before - now).abs() <= min_tolerance.max(RELATIVE_TOLERANCE * now.abs())
    };
    let is_word_alike = |(old, new): (&String, &String)| {
        if let (Some(before), Some(now)) = (parse_tokens(old), parse_tokens(new)) {
            return is_close(before, now, MIN_TOKEN_TOLERANCE);
        }
        match (old.parse(), new.parse()) {
            (Ok(before), Ok(now)) => is_close(before, now, MIN_COUNT_TOLERANCE),
            _ => old == new,
        }
    };
    old_words.len() == new_words.len() && old_words.iter().zip(&new_words).all(is_word_alike)
}

/// Renders the text below a title: the rows, and the cost of a frame.
fn render_table(table: Table, figures_by_way: &FiguresByWay) -> String {
    let needed_count = figures_by_way.values().next().map_or(0, |figures| figures.visible_when_needed.1);
    let mut lines = vec![
        String::new(),
        format!("| agent | input | price | peak | facts at hand (of {needed_count}) |"),
        "| --- | ---: | ---: | ---: | ---: |".to_owned(),
    ];
    lines.extend(figures_by_way.iter().map(|(way, figures)| render_row(*way, figures)));
    lines.push(String::new());
    match table {
        Table::Large => {
            lines.extend([render_frame_difference(figures_by_way, -1.0, "fewer", "less"), String::new()])
        }
        Table::LargeInSmallWindow => {}
        Table::Small => {
            let first_request = figures_by_way[&WorkMode::Frames].first_frame_request.expect("a frame");
            let sentence = format!(
                "A frame's first request has {} tokens before any work.",
                render_thousands(first_request as f64)
            );
            lines.extend([sentence, render_frame_difference(figures_by_way, 1.0, "more", "more")]);
        }
    }
    lines.join("\n") + "\n"
}

fn render_row(way: WorkMode, figures: &PlayFigures) -> String {
    let agent = match way {
        WorkMode::WithoutMemory => "no memory",
        WorkMode::RereadsFiles => "no memory, reads again",
        WorkMode::NotesFile => "notes file",
        WorkMode::Memory => "memory, no frames",
        WorkMode::Frames => "memory and frames",
    };
    let numbers = [figures.input_tokens, figures.weighted_input, figures.main_peak]
        .map(|tokens| render_thousands(tokens as f64))
        .join(" | ");
    format!("| {agent} | {numbers} | {} |", figures.visible_when_needed.0)
}

fn render_thousands(tokens: f64) -> String {
    format!("{:.0}k", tokens / 1000.0)
}

/// Renders what each frame added or saved, compared with the same phase in one session with a memory.
fn render_frame_difference(
    figures_by_way: &FiguresByWay,
    sign: f64,
    token_word: &str,
    price_word: &str,
) -> String {
    let difference_per_phase = |figure: fn(&PlayFigures) -> usize| {
        let [with_frames, without_frames] =
            [WorkMode::Frames, WorkMode::Memory].map(|way| figure(&figures_by_way[&way]) as f64);
        render_thousands(sign * (with_frames - without_frames) / PHASES as f64)
    };
    let [sent, priced] = [
        difference_per_phase(|figures| figures.input_tokens),
        difference_per_phase(|figures| figures.weighted_input),
    ];
    format!(
        "Each frame used {sent} {token_word} input tokens than the same phase without a frame (price: {priced} {price_word})."
    )
}

#[test]
fn rows_with_different_words_or_figures_are_not_equal() {
    let row = "| no memory | 61 | 4453k | 24 |";
    assert!(is_equal_within_tolerance(row, "| no memory | 61 | 4460k | 23 |"));
    for different_row in [
        "| no memory | 61 | 5453k | 24 |",
        "| memory | 61 | 4453k | 24 |",
        "| no memory | 61 | 4453k | 5 |",
        "| no memory | 61 | 4453k |",
    ] {
        assert!(!is_equal_within_tolerance(row, different_row), "{different_row}");
    }
}
