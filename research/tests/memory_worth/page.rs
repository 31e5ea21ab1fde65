//! The figures as `docs/memory-worth.md` shows them, and whether it still shows them.

use crate::Measured;
use crate::figures::Figures;
use crate::play::Way;
use crate::task::{FACTS, PHASES};
use plimsoll_testkit::workspace_root;
use std::fs::{self, File};

const END: &str = "<!-- /measured -->";

/// What may differ from computer to computer: paths and dates stand in every request.
const TOLERANCE: f64 = 0.05;
/// The same for small amounts, in thousands of tokens.
const LEAST_TOKENS: f64 = 0.5;
/// The same for what is counted: after a compaction the client shows the last files again, and which ones these are
/// is not the same in every run.
const LEAST_COUNT: f64 = 2.0;

/// A table of the page, with what is said below it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    /// A large task in the large window.
    Large,
    /// The same in the small window.
    SmallWindow,
    /// A small task in the large window.
    Small,
}

impl Table {
    fn title(self) -> &'static str {
        match self {
            Table::Large => "**Large task, window of a million tokens: nothing compacts**\n",
            Table::SmallWindow => "**Large task, window of 100,000 tokens**\n",
            Table::Small => "**Small task, window of a million tokens**\n",
        }
    }
}

/// Compares a table of the page with what was measured, or renews it where `PLIMSOLL_UPDATE_GOLDEN` is set.
pub(crate) fn check(table: Table, measured: &Measured) {
    let path = workspace_root().join("docs/memory-worth.md");
    // Each table is renewed by a test of its own.
    let lock = File::open(&path).and_then(|page| page.lock().map(|()| page)).expect("the page");
    let page = fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once(table.title()).expect("the table's title");
    let end = rest.find("\n**").map(|place| place + 1).or(rest.find(END)).expect("the end of the table");
    let (old, after) = rest.split_at(end);
    let new = figures(table, measured);
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        let page = format!("{before}{}{new}{after}", table.title());
        fs::write(&path, page).expect("the page is writable");
        return;
    }
    drop(lock);
    let advice = "is it wanted? then PLIMSOLL_UPDATE_GOLDEN=1, and see that the words of the page still hold";
    assert_eq!(old.lines().count(), new.lines().count(), "{advice}: now it is\n{new}");
    for (old, new) in old.lines().zip(new.lines()) {
        assert!(is_alike(old, new), "the page says\n{old}\nand measured was\n{new}\n{advice}");
    }
}

/// Word for word the same, numbers within the tolerance; of tokens they are followed by a `k`.
fn is_alike(old: &str, new: &str) -> bool {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (old, new) = (words(old), words(new));
    let same = |place: usize| match (old[place].parse::<f64>(), new[place].parse::<f64>()) {
        (Ok(before), Ok(now)) => {
            let is_tokens = new.get(place + 1).is_some_and(|word| word == "k");
            let least = if is_tokens { LEAST_TOKENS } else { LEAST_COUNT };
            (before - now).abs() <= least.max(TOLERANCE * now.abs())
        }
        _ => old[place] == new[place],
    };
    old.len() == new.len() && (0..new.len()).all(same)
}

/// What stands below a title: the rows, and the price of a frame.
fn figures(table: Table, measured: &Measured) -> String {
    let mut lines = vec![
        String::new(),
        "| the agent | requests | input | price | written | peak of the session | peak of any conversation | \
         compactions | facts at hand when needed | facts in sight at the end |"
            .to_owned(),
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |".to_owned(),
    ];
    lines.extend(measured.iter().map(|(way, figures)| row(*way, figures)));
    lines.push(String::new());
    match table {
        Table::Large => lines.extend([of_a_frame(measured, -1.0, "fewer", "less"), String::new()]),
        Table::SmallWindow => {}
        Table::Small => {
            let first = measured[&Way::Frames].first_of_frame.expect("a frame");
            let first = format!(
                "A frame's first request is {} tokens before any work is done.",
                thousands(first as f64)
            );
            lines.push(format!("{first} {}", of_a_frame(measured, 1.0, "more", "more")));
        }
    }
    lines.join("\n") + "\n"
}

fn row(way: Way, figures: &Figures) -> String {
    let agent = match way {
        Way::Plain => "no memory",
        Way::Rereads => "no memory; reads again what it lost",
        Way::NotesFile => "no memory; a notes file",
        Way::Memory => "memory, no frames",
        Way::Frames => "memory, a frame for each phase",
    };
    let Figures {
        requests, sent, priced, written, peak_of_main, peak, compactions, at_hand, visible, ..
    } = figures;
    let numbers =
        [*sent, *priced, *written, *peak_of_main, *peak].map(|tokens| thousands(tokens as f64)).join(" | ");
    format!(
        "| {agent} | {requests} | {numbers} | {compactions} | {} of {} | {visible} of {} |",
        at_hand.0,
        at_hand.1,
        FACTS.len()
    )
}

fn thousands(tokens: f64) -> String {
    format!("{:.1} k", tokens / 1000.0)
}

/// What each frame added or spared, beside the same phase in one session with a memory.
fn of_a_frame(measured: &Measured, sign: f64, tokens: &str, price: &str) -> String {
    let more = |what: fn(&Figures) -> usize| {
        let [with, without] = [Way::Frames, Way::Memory].map(|way| what(&measured[&way]) as f64);
        thousands(sign * (with - without) / PHASES as f64)
    };
    let [sent, priced] = [more(|figures| figures.sent), more(|figures| figures.priced)];
    format!(
        "Compared with the same phase in one session with a memory, each frame used {sent} {tokens} input tokens (price {priced} {price})."
    )
}

#[test]
fn a_page_that_says_something_else_is_found_out() {
    let row = "| no memory | 61 | 4452.6 k | 24 of 24 |";
    assert!(is_alike(row, "| no memory | 61 | 4460.1 k | 23 of 24 |"));
    for other in [
        "| no memory | 61 | 5452.6 k | 24 of 24 |",
        "| memory | 61 | 4452.6 k | 24 of 24 |",
        "| no memory | 61 | 4452.6 k | 5 of 24 |",
        "| no memory | 61 | 4452.6 k |",
    ] {
        assert!(!is_alike(row, other), "{other}");
    }
}
