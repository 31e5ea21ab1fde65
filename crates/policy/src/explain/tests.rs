use super::*;
use serde_json::{Value, from_value, json};

fn parse_entry(document: &Value) -> JournalEntry {
    let entry: JournalEntry = from_value(document.clone()).unwrap();
    assert!(!matches!(entry.event, JournalEvent::Unknown(_)), "{entry:?}");
    entry
}

fn explanation(document: &Value, related_entries: &[Value]) -> String {
    let related_entries: Vec<JournalEntry> = related_entries.iter().map(parse_entry).collect();
    explain_entry(&parse_entry(document), &related_entries).join("\n")
}

#[track_caller]
fn assert_explanation(entry: &Value, related_entries: &[Value], parts: &[&str]) {
    let explanation = explanation(entry, related_entries);
    for part in parts {
        assert!(explanation.contains(part), "{part}\n{explanation}");
    }
}

#[test]
fn a_threshold_is_explained_by_its_figures_and_their_source() {
    let checkpoint = json!({
        "event": "checkpoint", "cause": "level", "level": "L2", "percent": 87, "handoff": ".claude/handoffs/a.md",
        "item": "Item two", "files": ["src/dates.txt"], "waited_ms": 12,
        "reading": {
            "used": 870_000, "output": 500, "added": 1_000, "source": "transcript", "behind": true,
            "model": "claude-opus-5-5", "at": "2026-01-07T11:45:00Z",
            "window": { "tokens": 1_000_000, "source": "table" },
        },
        "marks": {
            "window": 1_000_000, "l1": 700_000, "l2": 850_000, "l3": 947_000, "clamped": true,
            "ceiling": { "tokens": 967_000, "action": "compacts" },
        },
    });
    assert_explanation(
        &checkpoint,
        &[],
        &[
            "872k of 1M tokens (87%): 870k input, 500 output, 1k estimated",
            "Claude Code showed 87%",
            "Source of the figure: transcript of 2026-01-07T11:45:00Z; the current answer",
            "The window of claude-opus-5-5: 1M tokens (table of models).",
            "L2 begins at 850k (85%). All thresholds: L1 at 700k (70%), L2 at 850k (85%), L3 at 947k (95%)",
            "Claude Code compacts at 967k (97%); thresholds were lowered",
            "waited 12 ms",
            "The handoff .claude/handoffs/a.md was written, for the item \"Item two\"",
            "Files in progress: src/dates.txt.",
        ],
    );
    assert_eq!(
        explanation(&json!({ "event": "warning" }), &[]),
        "",
        "what nobody wrote down is not invented"
    );
}

#[test]
fn a_verdict_is_explained_by_its_evidence() {
    let verdict = json!({
        "event": "verdict", "marker": "RALPH_STOP|circuit_breaker|no_progress: nothing changed",
        "ending": { "ending": "failed", "detail": "exit 1." }, "open": 2, "done": 1, "ticked": [],
        "verify": [
            { "command": "cargo test", "passed": false, "words": "1 failed" },
            { "command": "true", "passed": true, "words": "" },
        ],
        "progress": [], "no_change_count": 3, "error": "exit 1", "same_errors": 2, "cost_usd": 1.5, "tokens": 1_200_000,
    });
    let opened = json!({ "event": "breaker_opened", "cause": "no_progress", "count": 3, "evidence": "nothing changed" });
    assert_explanation(
        &verdict,
        &[opened],
        &[
            "The gate ended the run as circuit_breaker, because: no_progress: nothing changed.",
            "The session: it ended with an error (exit 1).",
            "Items: 1 done, 2 open; nothing was ticked in this session.",
            "Verify `cargo test` did not pass: 1 failed.",
            "Verify `true` passed.",
            "No progress, 3 sessions in a row.",
            "Its error, the same 2 times: exit 1.",
            "The circuit breaker opened: no_progress, 3 in a row: nothing changed.",
            "So far: $1.50, 1.2M tokens.",
        ],
    );
    for (marker, words) in [
        ("RALPH_STOP|completed|3 items", "The gate ended the run as completed, because: 3 items."),
        (
            "RALPH_PAUSE|2026-01-07T12:00:00Z|limit",
            "The gate paused the run until 2026-01-07T12:00:00Z, because: limit.",
        ),
        ("RALPH_PAUSE|-|thrash", "The gate paused the run, because: thrash."),
        ("RALPH_CONTINUE|refused|1 open item", "The gate refused the promise, because: 1 open item;"),
        ("RALPH_CONTINUE|checkpoint|.claude/handoffs/a.md", "resumes from .claude/handoffs/a.md."),
        (
            "RALPH_CONTINUE|next|2 open items",
            "The run continues with a fresh session, because: 2 open items.",
        ),
    ] {
        assert_explanation(&json!({ "event": "verdict", "marker": marker }), &[], &[words]);
    }
    let provisional = json!({ "event": "provisional_verdict", "marker": "RALPH_CONTINUE|next|2 open items" });
    assert_explanation(&provisional, &[], &["before the verify commands have run"]);
}

#[test]
fn other_entries_list_only_their_own_facts() {
    let packed =
        json!({ "event": "not_packed", "item": "x", "estimate_tokens": 40_000, "room_tokens": 3_000 });
    assert_explanation(&packed, &[], &["takes about 40k tokens, and 3k are free below L2: it does not fit"]);
    let fault =
        json!({ "event": "fault", "at": "now", "run_id": "r", "error": "disk full", "then": "again" });
    assert_eq!(explanation(&fault, &[]), "error: disk full\nthen: again");
}
