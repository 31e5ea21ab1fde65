//! On a terminal of any usual width, no line is longer than the terminal, which would break it inside a word.

use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use plimsoll_tests::{ScriptedAgent, honest_agent, run_cases_in_parallel, world_with_plan_and_dates};

const LONG_PLAN: &str = "\
# Plan

- [ ] Item one: convert the dates of every table in the archive to ISO 8601, and keep the old column until the next release
- [ ] Item two: 変換された日付を確認する, and describe in the changelog what somebody who reads the old format has to do
- [ ] Item three: remove the old parser
";
const WIDTHS: [u16; 4] = [60, 80, 120, 200];
const ROWS: u16 = 200;

/// Runs a command in a terminal of this width, and returns its lines. A line that the terminal has broken is one line.
fn lines_in_terminal(world: &World, args: &[&str], columns: u16) -> Vec<String> {
    let program = find_or_build_bin_dir().join("plimsoll");
    let mut terminal = Terminal::start_program_in_project(world, program, args, columns, ROWS);
    terminal.wait_for_exit_and_all_bytes();
    terminal.screen_text().lines().map(|line| line.trim_end().to_owned()).collect()
}

/// Runs `plimsoll run` in a terminal of this width, and returns its rows. A bar has filled each row with blanks, so the rows
/// do not show whether a line was broken. The run therefore leaves the last column free.
fn run_rows_in_terminal(world: &World, args: &[&str], columns: u16) -> Vec<String> {
    let program = find_or_build_bin_dir().join("plimsoll");
    let mut terminal = Terminal::start_program_in_project(world, program, args, columns, ROWS);
    terminal.wait_for_exit_and_all_bytes();
    let rows: Vec<String> = terminal.rows().iter().map(|row| row.trim_end().to_owned()).collect();
    // The lines that follow are printed without a bar.
    let last_row = rows
        .iter()
        .position(|row| row.contains("Out of sessions: 2 sessions done"))
        .expect("the last row of the run");
    for row in &rows[..last_row] {
        assert!(width(row) < columns.into(), "{columns}: {row:?}");
    }
    rows
}

/// Wide characters take two columns. Only the letters of the plan above are wide.
fn width(line: &str) -> usize {
    line.chars().map(|letter| if ('\u{3000}'..'\u{a000}').contains(&letter) { 2 } else { 1 }).sum()
}

fn assert_lines_fit(lines: &[String], columns: u16, command: &str) {
    for line in lines {
        // A command is not wrapped, because the user copies it.
        let has_command = line.contains(" -- ") || line.trim_start().starts_with("plimsoll ");
        assert!(
            has_command || width(line) <= columns.into(),
            "{command}, {} of {columns} columns: {line:?}",
            width(line)
        );
    }
    assert!(lines.iter().any(|line| !line.trim().is_empty()), "{command} prints something");
}

#[test]
fn no_line_is_longer_than_the_terminal() {
    run_cases_in_parallel(&WIDTHS, |columns| {
        let mut world = world_with_plan_and_dates(LONG_PLAN);
        world.set_env("TERM", "xterm-256color");
        let _model = ScriptedAgent::new(honest_agent).start(&mut world);
        let run_arguments = [
            "run",
            "--objective",
            "Do the plan.",
            "--max-iterations",
            "2",
            "--verify",
            "true",
            "--",
            "--allowedTools",
            "Bash",
        ];
        let run_lines = run_rows_in_terminal(&world, &run_arguments, *columns);
        assert!(run_lines.iter().any(|line| line.contains("── session 2")), "{run_lines:#?}");
        let commands: [&[&str]; 9] = [
            &["status"],
            &["log"],
            &["log", "--why"],
            &["plan"],
            &["doctor"],
            &["handoffs"],
            &["turns"],
            &["turns", "stats"],
            &["run", "--resume", "--max-iterations", "2"],
        ];
        for command in commands {
            assert_lines_fit(&lines_in_terminal(&world, command, *columns), *columns, &command.join(" "));
        }
    });
}
