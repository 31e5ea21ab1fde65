//! `plimsoll run` on a terminal: what one looks for in the morning stands out, and `NO_COLOR` holds.

use plimsoll_testkit::bin_dir;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_tests::{ITEMS, ScriptedAgent, honest, world};

const MARKS: [&str; 4] = [
    "\u{1b}[1m── iteration 1: Item one\u{1b}[0m",
    "\u{1b}[2m   Bash echo 'Item one'",
    "\u{1b}[32m   verified: `true` passed",
    "\u{1b}[32m   RALPH_STOP|completed",
];

#[test]
fn a_run_is_in_colours_on_a_terminal_unless_the_user_wants_none() {
    for has_colours in [true, false] {
        let mut world = world(ITEMS);
        world.set_env("TERM", "xterm-256color");
        if !has_colours {
            world.set_env("NO_COLOR", "1");
        }
        let _model = ScriptedAgent::new(honest).start(&mut world);
        let arguments =
            ["run", "--objective", "Do the plan.", "--verify", "true", "--", "--allowedTools", "Bash"];
        let mut terminal = Terminal::start(&world, bin_dir().join("plimsoll"), &arguments, 160, 40);
        let received = String::from_utf8_lossy(&terminal.all_received()).into_owned();
        for mark in MARKS {
            assert_eq!(received.contains(mark), has_colours, "{mark:?}: {received}");
            let words = mark.trim_start_matches(|letter| letter != 'm').trim_start_matches('m');
            assert!(received.contains(words.trim_end_matches("\u{1b}[0m")), "{words:?}: {received}");
        }
    }
}
