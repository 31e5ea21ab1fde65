//! Markdown: nothing in a session leaves its place.

use crate::export::{RECORDED, Transcript, export, record, record_fixture, record_subagent};
use plimsoll_testkit::world::World;
use serde_json::json;

#[test]
fn every_turn_has_a_heading() {
    let world = World::without_git();
    for name in RECORDED {
        record_fixture(&world, name);
        let text = export(&world, name, "markdown");
        let turns =
            export(&world, name, "jsonl").lines().filter(|line| line.contains(r#""kind":"turn""#)).count();
        let headings = text.lines().filter(|line| line.starts_with("## Turn ")).count();
        assert_eq!(headings, turns, "{name}");
    }
    let text = export(&world, "parallel", "markdown");
    assert!(text.contains("## Turn 1 · Bash, Bash, Bash, Read, Glob · failed: tool_error"), "{text}");
    assert!(text.contains("**prompt**\n\n> do it"), "{text}");
    let agent = record_subagent(&world);
    let text = export(&world, "subagent", "markdown");
    assert!(text.contains(&format!("### Subagent {agent} (general-purpose)")), "{text}");
    assert!(text.contains("#### Turn 1"), "{text}");
}

/// The lines that stand outside of fences.
fn outside(text: &str) -> Vec<&str> {
    let mut fence = 0;
    let mut lines = Vec::new();
    for line in text.lines() {
        let run = line.len() - line.trim_start_matches('`').len();
        match (fence, run) {
            (0, 3..) => fence = run,
            (0, _) => lines.push(line),
            (open, run) if run >= open && line.trim_matches('`').is_empty() => fence = 0,
            _ => {}
        }
    }
    assert_eq!(fence, 0, "a fence is open at the end");
    lines
}

#[test]
fn hostile_words_stay_where_they_are() {
    let world = World::without_git();
    let hostile = "```\n# Not a heading\n````\n<script>alert(1)</script>\n\u{1b}[31mred\u{202e}";
    let transcript = Transcript::default()
        .prompt(hostile)
        .turn(hostile, &[("Bash", json!({"command": hostile}), hostile), ("Odd` # <b>", json!({}), "`````")]);
    record(&world, "hostile", &transcript.lines, &[]);
    let text = export(&world, "hostile", "markdown");
    for line in outside(&text) {
        assert!(!line.starts_with("# Not") && !line.starts_with("<script"), "{line}");
        assert!(!line.contains("Odd` #") && !line.contains("<b>"), "{line}");
    }
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
    assert!(text.contains(r"\u{1b}[31mred\u{202e}"), "{text}");
}
