//! Draws the README's pictures from what the programs really print: `cargo run -p plimsoll-tests --example picture`.

use plimsoll_testkit::client::claude;
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::World;
use serde_json::json;
use std::fmt::Write;
use std::time::Duration;

const FONT: &str = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
const CELL: f64 = 8.4;
const LINE: f64 = 20.0;

fn main() {
    let docs = workspace_root().join("docs");
    std::fs::write(docs.join("statusline.svg"), svg(&status_lines())).expect("docs/ is writable");
    std::fs::write(docs.join("run.svg"), svg(&a_run())).expect("docs/ is writable");
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

fn a_run() -> Vec<String> {
    let world = World::new();
    let claude = claude();
    let finished = world
        .plimsoll(&["demo", "--client", &claude.to_string_lossy()])
        .timeout(Duration::from_secs(120))
        .run()
        .expect_success();
    let shown = finished.stdout.lines().take_while(|line| !line.starts_with("── the handoff"));
    let checks = finished.stdout.lines().skip_while(|line| !line.starts_with("── checks"));
    let lines = shown.chain(checks).skip_while(|line| !line.starts_with("run "));
    std::iter::once("$ scripts/demo.sh".to_owned()).chain(lines.map(str::to_owned)).collect()
}

fn svg(lines: &[String]) -> String {
    let width = lines
        .iter()
        .map(|line| spans(line).iter().map(|(_, text)| text.chars().count()).sum::<usize>())
        .max()
        .unwrap_or(0);
    let (width, height) = (width as f64 * CELL + 32.0, lines.len() as f64 * LINE + 28.0);
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\">\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#14181d\"/>\n<g font-family=\"{FONT}\" font-size=\"14\" fill=\"#d5dbe1\" style=\"white-space: pre\">\n"
    );
    for (row, line) in lines.iter().enumerate() {
        let y = 28.0 + row as f64 * LINE;
        let mut column = 0;
        for (colour, text) in spans(line) {
            // Not every browser keeps the spaces at the ends of a text: they are steps to the right.
            let words = text.trim();
            let before = text.chars().take_while(|letter| *letter == ' ').count();
            let (x, length) = (16.0 + (column + before) as f64 * CELL, words.chars().count());
            let _ = writeln!(
                picture,
                "<text x=\"{x:.1}\" y=\"{y:.0}\" textLength=\"{:.1}\" fill=\"{colour}\">{}</text>",
                length as f64 * CELL,
                escape(words)
            );
            column += text.chars().count();
        }
    }
    picture + "</g>\n</svg>\n"
}

/// A line cut at its colours.
fn spans(line: &str) -> Vec<(&'static str, String)> {
    let mut spans = Vec::new();
    for (number, part) in line.split("\u{1b}[").enumerate() {
        let (code, text) =
            if number == 0 { ("0", part) } else { part.split_once('m').unwrap_or(("0", part)) };
        if !text.is_empty() {
            spans.push((colour(code), text.to_owned()));
        }
    }
    spans
}

fn colour(code: &str) -> &'static str {
    match code {
        "2" => "#7d8790",
        "32" => "#5fd38d",
        "33" => "#f2c14e",
        "35" => "#d58bf0",
        "1;31" => "#ff6b6b",
        _ => "#d5dbe1",
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
