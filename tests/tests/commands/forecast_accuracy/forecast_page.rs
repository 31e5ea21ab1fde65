//! The figures as `docs/forecast.md` shows them, and whether it still shows them.

use crate::forecast_accuracy::accuracy_figures::{
    Ahead, ITEMS, RUNS, SAMPLES, SESSIONS, STEPS, nearness, packed, stepped,
};
use crate::forecast_accuracy::simulated_sessions::{Kind, UNEVEN};
use plimsoll_testkit::workspace_root;
use std::fmt::Write as _;

const WINDOWS: [(u64, &str); 2] = [(200_000, "200k"), (1_000_000, "1M")];

/// With `PLIMSOLL_UPDATE_GOLDEN` the page is written anew.
pub(crate) fn assert_shown() {
    let path = workspace_root().join("docs/forecast.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let (head, rest) = page.split_once(BEGIN).expect("where the figures begin");
    let (_, tail) = rest.split_once(END).expect("where they end");
    let made = format!("{head}{BEGIN}{}{END}{tail}", tables());
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, made).expect("docs/ is writable");
    } else {
        assert_eq!(page, made, "PLIMSOLL_UPDATE_GOLDEN=1 writes it anew");
    }
}

const BEGIN: &str = "<!-- figures -->\n";
const END: &str = "<!-- end of figures -->\n";

fn tables() -> String {
    let mut text = format!(
        "\n{SESSIONS} simulated sessions of each kind and window, with a forecast after every fifth turn: turns to L2.\n\n\
         | window | growth | turns known | forecasts | median relative error | within the range |\n\
         | --- | --- | --- | ---: | ---: | ---: |\n"
    );
    for (window, name) in WINDOWS {
        for kind in Kind::ALL {
            for (samples, found) in SAMPLES.into_iter().zip(nearness(kind, window)) {
                if found.number == 0 {
                    continue;
                }
                let until = match samples.1 {
                    usize::MAX => format!("{} or more", samples.0),
                    end => format!("{} to {}", samples.0, end - 1),
                };
                let (number, error, within) = (found.number, found.error(), found.coverage());
                let words = kind.words();
                let _ = writeln!(text, "| {name} | {words} | {until} | {number} | {error} % | {within} % |");
            }
        }
    }
    let _ = write!(
        text,
        "\n{RUNS} simulated runs of {ITEMS} items each (median 90k tokens, some several times that), packed into \
         sessions:\n\n\
         | window | continues with the next item | sessions | checkpoints between items | within an item |\n\
         | --- | --- | ---: | ---: | ---: |\n"
    );
    for (window, name) in WINDOWS {
        for (looks_ahead, words) in [(false, "always, until L2"), (true, "if it will probably fit")] {
            let packed = packed(window, looks_ahead);
            let [between, within] = shares(packed.between_items, packed.within_item);
            let _ = writeln!(text, "| {name} | {words} | {} | {between} | {within} |", packed.sessions);
        }
    }
    let _ = write!(
        text,
        "\n{RUNS} simulated items of {STEPS} steps each (median 25k tokens), each step ending with a commit, over as many sessions as needed:\n\n\
         | window | steps | the checkpoint comes | sessions | at a commit | within a step |\n\
         | --- | --- | --- | ---: | ---: | ---: |\n"
    );
    for (window, name) in WINDOWS {
        for (spread, how) in UNEVEN {
            for (ahead, words) in Ahead::ALL {
                let stepped = stepped(window, spread, ahead);
                let [at, within] = shares(stepped.at_a_commit, stepped.within_step);
                let _ =
                    writeln!(text, "| {name} | {how} | {words} | {} | {at} | {within} |", stepped.sessions);
            }
        }
    }
    text + "\n"
}

/// Two parts of a whole, in percent and in number.
fn shares(one: usize, other: usize) -> [String; 2] {
    let all = (one + other).max(1);
    [one, other].map(|part| format!("{} % ({part})", (part * 100 + all / 2) / all))
}
