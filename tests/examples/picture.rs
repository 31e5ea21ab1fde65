//! Draws the pictures of the guide from what the programs really print, in a real run with the real client on a terminal:
//! `scripts/pictures.sh`. Each picture is light or dark as the reader's browser is.

use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use plimsoll_testkit::{bin_dir, workspace_root};
use plimsoll_tests::ScriptedAgent;
use plimsoll_tests::browser::browser;
use plimsoll_tests::dates::{agent, project};
use serde_json::json;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

const FONT: &str = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
const CELL: f64 = 8.4;
const LINE: f64 = 20.0;
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
    let draw = |file: &Path, lines: &[String]| std::fs::write(file, svg(lines)).expect("docs/ is writable");
    draw(&docs.join("statusline.svg"), &status_lines());
    let mut world = project();
    for (name, value) in [("TERM", "xterm-256color"), ("COLUMNS", "110")] {
        world.set_env(name, value);
    }
    let _model = ScriptedAgent::new(|turn| agent(turn).delay(Duration::from_millis(150)))
        .with_real_client()
        .start(&mut world);
    world.plimsoll(&["init", "--user"]).run().expect_success();
    world.write("fix_plan.md", PLAN);
    draw(&pictures.join("plan.svg"), &shown(&world, &["plan"]));
    draw(&docs.join("run.svg"), &shown(&world, &RUN));
    for name in ["status", "log", "handoffs"] {
        draw(&pictures.join(format!("{name}.svg")), &shown(&world, &[name]));
    }
    draw(&pictures.join("turns.svg"), &shown(&world, &["turns", "list"]));
    world.plimsoll(&["memory", "set", "R1", "Convert src/dates.txt in two halves, then the README."]).run();
    world.plimsoll(&["memory", "set", "R2", "Say in the README that dates are ISO 8601."]).run();
    draw(&pictures.join("memory.svg"), &shown(&world, &["memory", "show"]));
    report(&world, &pictures);
}

const RUN: [&str; 14] = [
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

/// What a command shows on a terminal, below what was typed.
fn shown(world: &World, arguments: &[&str]) -> Vec<String> {
    let mut terminal = Terminal::start(world, bin_dir().join("plimsoll"), arguments, COLUMNS, ROWS);
    terminal.all_received();
    let mut lines = terminal.painted();
    while lines.last().is_some_and(|line| text_of(line).trim().is_empty()) {
        lines.pop();
    }
    let typed = arguments
        .iter()
        .map(|word| if word.contains(' ') { format!("'{word}'") } else { (*word).to_owned() });
    let typed: Vec<String> = typed.collect();
    let typed = format!("$ plimsoll {}", typed.join(" "));
    let is_long = typed.chars().count() > usize::from(COLUMNS);
    let typed = if is_long {
        "$ plimsoll run --objective … --verify … --max-cost 20 -- …".to_owned()
    } else {
        typed
    };
    // No path of the machine that draws them.
    let folder = world.project().display().to_string();
    let home = world.home().display().to_string();
    let lines = lines.into_iter().map(|line| line.replace(&folder, "~/dates").replace(&home, "~"));
    std::iter::once(typed).chain(lines).collect()
}

/// The report as a browser shows it, by day and by night.
fn report(world: &World, pictures: &Path) {
    world.plimsoll(&["report", "-o", "report.html"]).run().expect_success();
    for (name, option) in [
        ("report", "--blink-settings=preferredColorScheme=1"),
        ("report-dark", "--blink-settings=preferredColorScheme=0"),
    ] {
        let to = format!("--screenshot={}", pictures.join(format!("{name}.png")).display());
        browser(world, &["--window-size=900,1100", option, &to], &world.path("report.html"), "");
    }
}

/// The status line before the first answer and at four fills of a million tokens.
fn status_lines() -> Vec<String> {
    let world = World::new();
    [None, Some(430_000), Some(720_000), Some(870_000), Some(955_000)]
        .map(|used| status_line(&world, used))
        .to_vec()
}

fn status_line(world: &World, used: Option<u64>) -> String {
    let usage = used.map(
        |used| json!({"input_tokens": 1_000, "cache_read_input_tokens": used - 1_000, "output_tokens": 50}),
    );
    let payload = json!({
        "session_id": format!("picture-{}", used.unwrap_or(0)),
        "model": {"id": "claude-opus-5-5", "display_name": "Opus 5.5"},
        "workspace": {"current_dir": world.project(), "project_dir": world.project()},
        "cost": {"total_cost_usd": used.unwrap_or(0) as f64 / 400_000.0},
        "context_window": {
            "context_window_size": 1_000_000,
            "total_input_tokens": used.unwrap_or(0),
            "current_usage": usage,
            "used_percentage": used.map(|used| (used + 5_000) / 10_000),
        },
    });
    world.hook("plimsoll-statusline", &payload).run().stdout.trim_end().to_owned()
}

/// The colours by day and by night, by the class of a text.
const STYLE: &str = "\
text{fill:#24292f}.g{fill:#fff;stroke:#d0d7de}.f{fill:#6e7781}.b{font-weight:700}.r{fill:#cf222e}.n{fill:#1a7f37}.y{fill:#9a6700}.m{fill:#8250df}.c{fill:#0969da}\
@media (prefers-color-scheme:dark){text{fill:#d5dbe1}.g{fill:#14181d;stroke:#14181d}.f{fill:#7d8790}.r{fill:#ff6b6b}.n{fill:#5fd38d}.y{fill:#f2c14e}.m{fill:#d58bf0}.c{fill:#6cb6ff}}";

fn svg(lines: &[String]) -> String {
    let width = lines.iter().map(|line| text_of(line).trim_end().chars().count()).max().unwrap_or(0);
    let (width, height) = (width as f64 * CELL + 32.0, lines.len() as f64 * LINE + 28.0);
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\">\n<style>{STYLE}</style>\n<rect class=\"g\" width=\"100%\" height=\"100%\" rx=\"8\"/>\n<g font-family=\"{FONT}\" font-size=\"14\" style=\"white-space: pre\">\n"
    );
    for (row, line) in lines.iter().enumerate() {
        let y = 28.0 + row as f64 * LINE;
        let mut column = 0;
        for (class, text) in spans(line) {
            let class = if class.is_empty() { class } else { format!(" class=\"{class}\"") };
            for (place, words) in words_of(&text) {
                let (x, length) = (16.0 + (column + place) as f64 * CELL, words.chars().count());
                let _ = writeln!(
                    picture,
                    "<text x=\"{x:.1}\" y=\"{y:.0}\" textLength=\"{:.1}\"{class}>{}</text>",
                    length as f64 * CELL,
                    escape(words)
                );
            }
            column += text.chars().count();
        }
    }
    picture + "</g>\n</svg>\n"
}

/// A text cut at its wider gaps, with the place of each piece: no browser keeps several spaces.
fn words_of(text: &str) -> Vec<(usize, &str)> {
    let mut pieces = Vec::new();
    let mut column = 0;
    for piece in text.split("  ") {
        let words = piece.trim();
        if !words.is_empty() {
            pieces.push((column + piece.chars().take_while(|letter| *letter == ' ').count(), words));
        }
        column += piece.chars().count() + 2;
    }
    pieces
}

/// A line cut at its colours: the classes of each piece, and its words.
fn spans(line: &str) -> Vec<(String, String)> {
    let mut spans = Vec::new();
    let mut classes = String::new();
    for (number, part) in line.split("\u{1b}[").enumerate() {
        let end = part.find(|letter: char| !(letter.is_ascii_digit() || letter == ';'));
        let (code, text) = match end {
            Some(end) if number > 0 => (&part[..end], &part[end + 1..]),
            _ => ("", part),
        };
        match end.filter(|_| number > 0).map(|end| &part[end..=end]) {
            Some("m") => classes = classes_of(&classes, code),
            // The cursor's steps to the right.
            Some("C") => spans.push((String::new(), " ".repeat(code.parse().unwrap_or(1)))),
            _ => {}
        }
        if !text.is_empty() {
            spans.push((classes.clone(), text.to_owned()));
        }
    }
    spans
}

fn text_of(line: &str) -> String {
    spans(line).into_iter().map(|(_, text)| text).collect()
}

fn classes_of(before: &str, code: &str) -> String {
    let mut classes: Vec<&str> = before.split(' ').filter(|class| !class.is_empty()).collect();
    for one in code.split(';') {
        match one {
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

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
