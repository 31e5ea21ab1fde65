//! The figures as `docs/memory-worth.md` shows them, and whether it still shows them.

use crate::worth::figures::Figures;
use crate::worth::play::{Way, Window};
use crate::worth::task::{FACTS, PHASES, Size};
use crate::worth::{Case, Measured};
use testkit::workspace_root;

const START: &str = "<!-- measured -->\n";
const END: &str = "<!-- /measured -->";

/// What may differ from computer to computer: paths and dates stand in every request.
const TOLERANCE: f64 = 0.05;
/// The same for small amounts, in thousands of tokens.
const LEAST_TOKENS: f64 = 0.5;
/// The same for what is counted: after a compaction the client shows the last files again, and which ones these are
/// is not the same in every run.
const LEAST_COUNT: f64 = 2.0;

/// Compares the page with what was measured, or renews it where `PLIMSOLL_UPDATE_GOLDEN` is set.
pub(crate) fn check(measured: &Measured) {
    let path = workspace_root().join("docs/memory-worth.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once(START).expect("the start of the figures");
    let (old, after) = rest.split_once(END).expect("the end of the figures");
    let new = figures(measured);
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, format!("{before}{START}{new}{END}{after}")).expect("the page is writable");
        return;
    }
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

/// The tables, and the price of a frame.
fn figures(measured: &Measured) -> String {
    let mut lines = Vec::new();
    for (title, size, window) in [
        ("Large task, window of a million tokens: nothing compacts", Size::Large, Window::Large),
        ("Large task, window of 100,000 tokens", Size::Large, Window::Small),
        ("Small task, window of a million tokens", Size::Small, Window::Large),
    ] {
        lines.push(format!("**{title}**\n"));
        lines.push(
            "| the agent | requests | sent | price | written | peak of the session | peak of any conversation | \
             compactions | facts at hand when needed | facts in sight at the end |"
                .to_owned(),
        );
        lines.push("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |".to_owned());
        let of_table = measured.iter().filter(|(case, _)| (case.0, case.1) == (size, window));
        lines.extend(of_table.map(|(case, figures)| row(case.2, figures)));
        lines.push(String::new());
    }
    lines.push(of_frames(measured));
    lines.join("\n") + "\n"
}

fn row(way: Way, figures: &Figures) -> String {
    let agent = match way {
        Way::Plain => "no memory",
        Way::Rereads => "no memory; reads again what it lost",
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
fn of_frames(measured: &Measured) -> String {
    let of = |size, way| measured[&(size, Window::Large, way) as &Case];
    let more = |size, what: fn(&Figures) -> usize| {
        let (with, without) = (of(size, Way::Frames), of(size, Way::Memory));
        (what(&with) as f64 - what(&without) as f64) / PHASES as f64
    };
    let first = of(Size::Small, Way::Frames).first_of_frame.expect("a frame");
    format!(
        "A frame's first request is {} tokens before any work is done. Beside the same phase in one session with a \
         memory, each frame of the small task sent {} tokens more (price {} more), and each frame of the large task \
         {} fewer (price {} less).",
        thousands(first as f64),
        thousands(more(Size::Small, |figures| figures.sent)),
        thousands(more(Size::Small, |figures| figures.priced)),
        thousands(-more(Size::Large, |figures| figures.sent)),
        thousands(-more(Size::Large, |figures| figures.priced)),
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
