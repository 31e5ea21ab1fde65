//! Draws the pictures of the guide from the real output of the programs, in a run with the real client on a terminal:
//! `scripts/pictures.sh`. Each picture is light or dark, following the color scheme of the reader's browser.

use plimsoll_testkit::client::find_claude_from_env_or_install_pinned;
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use plimsoll_testkit::{find_or_build_bin_dir, workspace_root};
use plimsoll_tests::ScriptedAgent;
use plimsoll_tests::browser::open_in_browser;
use plimsoll_tests::dates::{date_agent, dates_project};
use serde_json::json;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

const FONT: &str = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
const CELL_WIDTH: f64 = 8.4;
const LINE_HEIGHT: f64 = 20.0;
const COLUMNS: u16 = 110;
const ROWS: u16 = 70;

const PLAN: &str = "# Plan\n\n- [ ] Convert the dates in the first half (simple)\n\
                    - [ ] Convert the dates in the second half (medium)\n\
                    - [ ] Say in the README that dates are ISO 8601 (trivial, after: 1, 2)\n";
const OBJECTIVE: &str = "All dates in src/ are ISO 8601, as fix_plan.md says.";

fn main() {
    let docs = workspace_root().join("docs");
    let pictures = docs.join("pictures");
    std::fs::create_dir_all(&pictures).expect("docs/ is writable");
    let write_picture =
        |file: &Path, lines: &[String]| std::fs::write(file, render_svg(lines)).expect("docs/ is writable");
    write_picture(&docs.join("statusline.svg"), &sample_status_lines());
    let mut world = dates_project();
    for (name, value) in [("TERM", "xterm-256color"), ("COLUMNS", "110")] {
        world.set_env(name, value);
    }
    let _model = ScriptedAgent::new(|turn| date_agent(turn).with_delay(Duration::from_millis(150)))
        .with_real_client()
        .start(&mut world);
    world.plimsoll(&["init", "--user"]).run().expect_success();
    world.write("fix_plan.md", PLAN);
    for name in ["doctor", "plan"] {
        write_picture(&pictures.join(format!("{name}.svg")), &terminal_lines_of_command(&world, &[name]));
    }
    write_picture(&docs.join("run.svg"), &terminal_lines_of_command(&world, &RUN_ARGUMENTS));
    for name in ["status", "log", "handoffs"] {
        write_picture(&pictures.join(format!("{name}.svg")), &terminal_lines_of_command(&world, &[name]));
    }
    write_picture(&pictures.join("turns.svg"), &terminal_lines_of_command(&world, &["turns", "list"]));
    world.plimsoll(&["memory", "set", "R1", "Convert src/dates.txt in two halves, then the README."]).run();
    world.plimsoll(&["memory", "set", "R2", "Say in the README that dates are ISO 8601."]).run();
    write_picture(&pictures.join("memory.svg"), &terminal_lines_of_command(&world, &["memory", "show"]));
    screenshot_report(&world, &pictures);
    write_picture(&pictures.join("usage.svg"), &screen_of_two_weeks_of_usage());
    write_picture(&pictures.join("workers.svg"), &screen_with_two_workers());
    write_picture(&pictures.join("band.svg"), &screen_with_module(720_000, "continue fresh"));
    write_picture(&pictures.join("dialog.svg"), &screen_with_module(FULL, "Plimsoll's handoff"));
}

/// Writes transcripts of two weeks, in which the days differ, and returns the overview of their usage.
fn screen_of_two_weeks_of_usage() -> Vec<String> {
    let mut world = World::without_plimsoll_files();
    for (name, value) in [("TERM", "xterm-256color"), ("COLUMNS", "110")] {
        world.set_env(name, value);
    }
    let now = chrono::Utc::now();
    for (project, model, share) in [
        ("shop", "claude-opus-5-5", 5),
        ("shop/.claude/worktrees/calm-owl", "claude-sonnet-5", 3),
        ("notes", "claude-haiku-4-5", 2),
    ] {
        let mut lines = String::new();
        for response in 0..200_u64 {
            // Every 100 minutes, with more work in the middle of each week.
            let time = now - chrono::Duration::minutes(100 * response.cast_signed() + 3);
            let tokens = share * (40_000 + 30_000 * (response % 100).min(100 - response % 100));
            let line = json!({
                "type": "assistant", "timestamp": time.to_rfc3339(), "cwd": format!("/home/ann/{project}"),
                "message": {"id": format!("{project}-{response}"), "model": model, "usage":
                    {"input_tokens": 900, "output_tokens": tokens / 60, "cache_read_input_tokens": tokens}},
            });
            let _ = writeln!(lines, "{line}");
        }
        let name = project.replace(['/', '.'], "-");
        world.write(world.home().join(format!(".claude/projects/{name}/{name}.jsonl")), &lines);
    }
    terminal_lines_of_command(&world, &["usage"])
}

/// Runs two workers on a terminal, and returns the screen once both have shown how full their windows are.
fn screen_with_two_workers() -> Vec<String> {
    let mut world = dates_project();
    world.set_env("TERM", "xterm-256color");
    let _model = ScriptedAgent::new(|turn| date_agent(turn).with_delay(Duration::from_millis(700)))
        .with_real_client()
        .start(&mut world);
    world.plimsoll(&["init", "--user"]).run().expect_success();
    world.write("fix_plan.md", PLAN);
    world.git(&["add", "fix_plan.md"]);
    world.git(&["commit", "-qm", "Plan the dates"]);
    let arguments = [&["run", "--workers", "2"], &RUN_ARGUMENTS[1..]].concat();
    let program = find_or_build_bin_dir().join("plimsoll");
    let terminal = Terminal::start_program_in_project(&world, program, &arguments, COLUMNS, ROWS);
    terminal.wait_until(|| terminal.screen_text().matches("% ").count() > 1, "usage of two workers");
    let mut lines = terminal.colored_lines();
    terminal.close();
    remove_trailing_blank_lines(&mut lines);
    let command_line = "$ plimsoll run --workers 2 --objective … --verify … --max-cost 20 -- …".to_owned();
    std::iter::once(command_line).chain(lines_without_machine_paths(&world, lines)).collect()
}

/// The usage at which the client compacts before the next prompt.
const FULL: u64 = 970_000;

/// Runs the real client with the module at this usage, and returns its screen once it shows the awaited text.
fn screen_with_module(used_tokens: u64, awaited_text: &str) -> Vec<String> {
    // The client does not compact a conversation without a tool call.
    let model = ScriptedModel::start(move |request: &Request| match request.assistant_message_count() {
        0 => Step::bash_call("grep -c T src/dates.txt").with_input_tokens(20_000),
        1 => Step::from_text("The first half is converted.").with_input_tokens(used_tokens),
        _ => Step::from_text("The second half is converted, too.").with_input_tokens(used_tokens),
    });
    let mut world = World::new();
    world.put_client_on_path_with_model_and_settings(&model);
    world.write("src/dates.txt", "2026-01-07T09:00:00Z\n");
    world.plimsoll(&["init", "--user", "--module"]).run().expect_success();
    world.write_plimsoll_user_settings(&json!({"compaction": "ask"}));
    world.set_env("TERM", "xterm-256color");
    world.set_env("COLORTERM", "truecolor");
    let arguments = ["--model", "opus", "--permission-mode", "default", "--allowedTools", "Bash"];
    let mut terminal = Terminal::start_claude(&world, &arguments, COLUMNS, 27);
    terminal.wait_for_text("❯");
    terminal.submit_prompt("Convert the dates in the first half.");
    terminal.wait_for_text("The first half is converted.");
    if used_tokens == FULL {
        terminal.submit_prompt("Now the second half.");
    }
    terminal.wait_for_text(awaited_text);
    std::thread::sleep(Duration::from_secs(1));
    let lines = lines_without_machine_paths(&world, terminal.colored_lines());
    // The banner of the client is the same in every session.
    let mut lines: Vec<String> = lines.skip_while(|line| !text_without_escapes(line).contains("❯")).collect();
    remove_trailing_blank_lines(&mut lines);
    lines
}

fn remove_trailing_blank_lines(lines: &mut Vec<String>) {
    while lines.last().is_some_and(|line| text_without_escapes(line).trim().is_empty()) {
        lines.pop();
    }
}

const RUN_ARGUMENTS: [&str; 14] = [
    "run",
    "--objective",
    OBJECTIVE,
    "--verify",
    "! grep -q 01/07/2026 src/dates.txt",
    "--max-cost",
    "20",
    "--",
    "--model",
    "opus",
    "--permission-mode",
    "acceptEdits",
    "--allowedTools",
    "Bash",
];

/// Runs a command on a terminal and returns the final screen with its colors, below a prompt line with the command.
fn terminal_lines_of_command(world: &World, arguments: &[&str]) -> Vec<String> {
    let mut terminal = Terminal::start_program_in_project(
        world,
        find_or_build_bin_dir().join("plimsoll"),
        arguments,
        COLUMNS,
        ROWS,
    );
    terminal.wait_for_exit_and_all_bytes();
    let mut lines = terminal.colored_lines();
    remove_trailing_blank_lines(&mut lines);
    let quoted_words = arguments
        .iter()
        .map(|word| if word.contains(' ') { format!("'{word}'") } else { (*word).to_owned() });
    let quoted_words: Vec<String> = quoted_words.collect();
    let command_line = format!("$ plimsoll {}", quoted_words.join(" "));
    let is_long = command_line.chars().count() > usize::from(COLUMNS);
    let command_line = if is_long {
        "$ plimsoll run --objective … --verify … --max-cost 20 -- …".to_owned()
    } else {
        command_line
    };
    std::iter::once(command_line).chain(lines_without_machine_paths(world, lines)).collect()
}

/// Leaves out the paths of the machine that draws the pictures.
fn lines_without_machine_paths(world: &World, lines: Vec<String>) -> impl Iterator<Item = String> + use<> {
    let programs = find_or_build_bin_dir().display().to_string();
    let client = find_claude_from_env_or_install_pinned();
    let client_folder = client.parent().expect("a folder").display().to_string();
    let (project, home) = (world.project().display().to_string(), world.home().display().to_string());
    lines.into_iter().map(move |line| {
        let line = line.replace(&programs, "~/.local/bin").replace(&client_folder, "~/.local/bin");
        line.replace(&project, "~/dates").replace(&home, "~")
    })
}

/// Takes screenshots of the report in a browser, in the light and in the dark color scheme.
fn screenshot_report(world: &World, pictures: &Path) {
    world.plimsoll(&["report", "-o", "report.html"]).run().expect_success();
    for (name, option) in [
        ("report", "--blink-settings=preferredColorScheme=1"),
        ("report-dark", "--blink-settings=preferredColorScheme=0"),
    ] {
        let screenshot_option = format!("--screenshot={}", pictures.join(format!("{name}.png")).display());
        open_in_browser(
            world,
            &["--window-size=900,1100", option, &screenshot_option],
            &world.path("report.html"),
            "",
        );
    }
}

/// Renders the status line before the first response and at four usages of a window of one million tokens.
fn sample_status_lines() -> Vec<String> {
    let world = World::new();
    [None, Some(430_000), Some(720_000), Some(870_000), Some(955_000)]
        .map(|used| status_line_at_usage(&world, used))
        .to_vec()
}

fn status_line_at_usage(world: &World, used_tokens: Option<u64>) -> String {
    let usage = used_tokens.map(
        |used| json!({"input_tokens": 1_000, "cache_read_input_tokens": used - 1_000, "output_tokens": 50}),
    );
    let payload = json!({
        "session_id": format!("picture-{}", used_tokens.unwrap_or(0)),
        "model": {"id": "claude-opus-5-5", "display_name": "Opus 5.5"},
        "workspace": {"current_dir": world.project(), "project_dir": world.project()},
        "cost": {"total_cost_usd": used_tokens.unwrap_or(0) as f64 / 400_000.0},
        "context_window": {
            "context_window_size": 1_000_000,
            "total_input_tokens": used_tokens.unwrap_or(0),
            "current_usage": usage,
            "used_percentage": used_tokens.map(|used| (used + 5_000) / 10_000),
        },
    });
    world.hook("plimsoll-statusline", &payload).run().stdout.trim_end().to_owned()
}

/// The colors of each text class in the light and in the dark color scheme.
const STYLE: &str = "\
text{fill:#24292f}.g{fill:#fff;stroke:#d0d7de}.f{fill:#6e7781}.b{font-weight:700}.r{fill:#cf222e}.n{fill:#1a7f37}.y{fill:#9a6700}.m{fill:#8250df}.c{fill:#0969da}\
@media (prefers-color-scheme:dark){text{fill:#d5dbe1}.g{fill:#14181d;stroke:#14181d}.f{fill:#7d8790}.r{fill:#ff6b6b}.n{fill:#5fd38d}.y{fill:#f2c14e}.m{fill:#d58bf0}.c{fill:#6cb6ff}}";

fn render_svg(lines: &[String]) -> String {
    let width =
        lines.iter().map(|line| text_without_escapes(line).trim_end().chars().count()).max().unwrap_or(0);
    let (width, height) = (width as f64 * CELL_WIDTH + 32.0, lines.len() as f64 * LINE_HEIGHT + 28.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\">\n<style>{STYLE}</style>\n<rect class=\"g\" width=\"100%\" height=\"100%\" rx=\"8\"/>\n<g font-family=\"{FONT}\" font-size=\"14\" style=\"white-space: pre\">\n"
    );
    for (row, line) in lines.iter().enumerate() {
        let y = 28.0 + row as f64 * LINE_HEIGHT;
        let mut column = 0;
        for (class, text) in parse_color_spans(line) {
            let class = if class.is_empty() { class } else { format!(" class=\"{class}\"") };
            for (column_offset, piece) in split_at_wide_gaps(&text) {
                let (x, length) =
                    (16.0 + (column + column_offset) as f64 * CELL_WIDTH, piece.chars().count());
                let _ = writeln!(
                    svg,
                    "<text x=\"{x:.1}\" y=\"{y:.0}\" textLength=\"{:.1}\"{class}>{}</text>",
                    length as f64 * CELL_WIDTH,
                    escape_xml(piece)
                );
            }
            column += text.chars().count();
        }
    }
    svg + "</g>\n</svg>\n"
}

/// Splits a text at its gaps of two or more spaces and returns each piece with its column: browsers collapse repeated spaces.
fn split_at_wide_gaps(text: &str) -> Vec<(usize, &str)> {
    let mut pieces = Vec::new();
    let mut column = 0;
    for piece in text.split("  ") {
        let trimmed = piece.trim();
        if !trimmed.is_empty() {
            pieces.push((column + piece.chars().take_while(|letter| *letter == ' ').count(), trimmed));
        }
        column += piece.chars().count() + 2;
    }
    pieces
}

/// Splits a line at its escape sequences and returns the classes and the text of each piece.
fn parse_color_spans(line: &str) -> Vec<(String, String)> {
    let mut spans = Vec::new();
    let mut classes = String::new();
    for (number, part) in line.split("\u{1b}[").enumerate() {
        let end = part.find(|letter: char| !(letter.is_ascii_digit() || letter == ';'));
        let (code, text) = match end {
            Some(end) if number > 0 => (&part[..end], &part[end + 1..]),
            _ => ("", part),
        };
        match end.filter(|_| number > 0).map(|end| &part[end..=end]) {
            Some("m") => classes = apply_color_codes(&classes, code),
            // The cursor moves to the right.
            Some("C") => spans.push((String::new(), " ".repeat(code.parse().unwrap_or(1)))),
            _ => {}
        }
        if !text.is_empty() {
            spans.push((classes.clone(), text.to_owned()));
        }
    }
    spans
}

fn text_without_escapes(line: &str) -> String {
    parse_color_spans(line).into_iter().map(|(_, text)| text).collect()
}

fn apply_color_codes(current_classes: &str, color_codes: &str) -> String {
    let mut classes: Vec<&str> = current_classes.split(' ').filter(|class| !class.is_empty()).collect();
    for color_code in color_codes.split(';') {
        match color_code {
            "" | "0" => classes.clear(),
            "1" => classes.push("b"),
            "2" => classes.push("f"),
            "22" => classes.retain(|class| !matches!(*class, "b" | "f")),
            "31" => classes.push("r"),
            "32" => classes.push("n"),
            "33" => classes.push("y"),
            "35" => classes.push("m"),
            "34" | "36" => classes.push("c"),
            "39" => classes.retain(|class| matches!(*class, "b" | "f")),
            _ => {}
        }
    }
    classes.join(" ")
}

fn escape_xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
