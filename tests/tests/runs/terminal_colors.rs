//! `plimsoll run` on a terminal: important lines are colored, unless `NO_COLOR` is set.

use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_tests::{ScriptedAgent, THREE_ITEM_PLAN, honest_agent, world_with_plan_and_dates};

const COLORED_LINES: [&str; 4] = [
    "\u{1b}[1m── session 1: Item one\u{1b}[0m",
    "\u{1b}[2m   Bash echo 'Item one'",
    "\u{1b}[32m   verified: `true` passed",
    "\u{1b}[32m   Completed: 3 items, 1 verify command passed",
];

#[test]
fn a_run_is_colored_on_a_terminal_unless_no_color_is_set() {
    for has_colors in [true, false] {
        let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
        world.set_env("TERM", "xterm-256color");
        if !has_colors {
            world.set_env("NO_COLOR", "1");
        }
        let _model = ScriptedAgent::new(honest_agent).start(&mut world);
        let arguments =
            ["run", "--objective", "Do the plan.", "--verify", "true", "--", "--allowedTools", "Bash"];
        let mut terminal = Terminal::start_program_in_project(
            &world,
            find_or_build_bin_dir().join("plimsoll"),
            &arguments,
            160,
            40,
        );
        let received = String::from_utf8_lossy(&terminal.wait_for_exit_and_all_bytes()).into_owned();
        for colored_line in COLORED_LINES {
            assert_eq!(received.contains(colored_line), has_colors, "{colored_line:?}: {received}");
            let plain_text = colored_line.trim_start_matches(|letter| letter != 'm').trim_start_matches('m');
            assert!(
                received.contains(plain_text.trim_end_matches("\u{1b}[0m")),
                "{plain_text:?}: {received}"
            );
        }
    }
}
