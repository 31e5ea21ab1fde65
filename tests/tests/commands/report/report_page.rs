//! The content of the report.

use crate::report::sample_run::{
    CALENDAR_ITEM, JournalBuilder, TranscriptBuilder, report_html, sample_state, session_id,
    world_with_sample_run, write_state_and_journal,
};
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::World;
use plimsoll_tests::assert_in_order;
use serde_json::json;

/// Returns the text of a page without its tags.
fn visible_text(html: &str) -> String {
    let body = html.split_once("<body>").expect("a body").1;
    let texts = body.split('<').filter_map(|piece| piece.split_once('>').map(|(_, text)| text));
    texts.map(str::trim).filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

#[test]
fn page_of_the_sample_run_matches_the_golden_file() {
    let world = world_with_sample_run();
    // One tag on each line makes a diff readable.
    let html = report_html(&world).replace(env!("CARGO_PKG_VERSION"), "VERSION").replace("><", ">\n<");
    let golden = workspace_root().join("tests/tests/commands/report/golden.html");
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, &html).unwrap();
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    assert!(
        html == expected,
        "the page is not that of {}: PLIMSOLL_UPDATE_GOLDEN=1 makes it anew, read the diff",
        golden.display()
    );
}

#[test]
fn page_shows_status_cost_items_and_problems_in_order() {
    let text = visible_text(&report_html(&world_with_sample_run()));
    assert_in_order(
        &text,
        &["ISO dates", "Tue 6 Jan 21:04 – Wed 7 Jan 04:31", "Stuck.", "no more progress: HEAD and all files"],
    );
    assert_in_order(
        &text,
        &[
            "4 of 6 done",
            "1 open · 1 set aside",
            "$11.25",
            "of $20.00",
            "30.5M",
            "7 h 27 min",
            "5 h 33 min in sessions · 1 h 40 min paused",
            "What to do now",
            "plimsoll run --resume --reset-breaker",
            "Set aside after no progress: 1 item (“Replace the calendar library”)",
            "The load line",
        ],
    );
    assert_in_order(
        &text,
        &[
            "checkpoint (1)",
            "compaction by Claude Code (1)",
            "a session’s end (7)",
            "a session that broke off (1)",
            "promise refused (1)",
            "circuit breaker (1)",
            "paused (1)",
            "usage limit: resets at 02:00",
            "Of 3 sessions only the peak is known",
        ],
    );
    assert_in_order(
        &text,
        &[
            "Items",
            CALENDAR_ITEM,
            "set aside",
            "3 sessions",
            "Write the changelog",
            "no session has started it",
        ],
    );
    assert_in_order(
        &text,
        &["Convert the table of holidays", "2 sessions · 1 resumed · 11.5M tokens · $4.00"],
    );
    // One session did two items, so its figures are divided.
    assert_in_order(&text, &["Say in the README", "about 4.5M tokens · about $1.50"]);
    assert_in_order(
        &text,
        &[
            "What filled the window",
            "Read",
            "which are not included: about 31k tokens stayed with 3 subagents.",
            "The largest single results",
            "the zone table",
        ],
    );
    assert_in_order(
        &text,
        &[
            "What went wrong",
            "Promise refused",
            "cargo test --workspace failed: 3 tests failed: calendar::leap",
            "Session broke off",
            "was killed by signal 9",
            "Set aside",
            "Circuit breaker",
            "HEAD and all files",
        ],
    );
    assert_in_order(
        &text,
        &["Handoffs", "2026-01-06-2309.md", "L2 at 65%", "Summary:", "lines 1-80 of the table"],
    );
}

#[test]
fn page_is_well_formed_and_loads_nothing_external() {
    let html = report_html(&world_with_sample_run());
    assert!(html.starts_with("<!DOCTYPE html>\n<html lang=\"en\">") && html.ends_with("</html>\n"));
    assert!(
        html.contains("default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'")
    );
    for foreign in ["<script", "http://", "https://", "src=", "@import", "url("] {
        assert_eq!(html.matches(foreign).count(), 0, "{foreign}");
    }
    assert_tags_are_balanced(&html);
}

/// Asserts that every tag is closed in the right order.
fn assert_tags_are_balanced(html: &str) {
    const VOID: [&str; 3] = ["meta", "br", "!DOCTYPE"];
    let mut open: Vec<&str> = Vec::new();
    for piece in html.split('<').skip(1) {
        let tag = piece.split('>').next().unwrap();
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        match tag {
            _ if VOID.contains(&name) || tag.ends_with('/') => {}
            _ if tag.starts_with('/') => assert_eq!(open.pop(), Some(name), "{piece}"),
            _ => open.push(name),
        }
    }
    assert_eq!(open, Vec::<&str>::new());
}

/// Text that an agent can write into an item, a command, an error message or a file name.
const HOSTILE: [&str; 5] = [
    "</title></style></svg></bdi><script>document.title='owned'</script>",
    "\"><img src=x onerror=\"document.title='owned'\">",
    "x' onmouseover='alert(1)",
    "\u{7}\u{1b}]0;owned\u{7}\u{202e}txt.exe\u{2066}",
    "<a href=\"javascript:alert(1)\">&lt;b&gt;",
];

/// Returns a world and the report of its run. All foreign text of the run is hostile and contains a secret.
pub fn page_of_hostile_run() -> (World, String) {
    let mut world = World::without_git();
    world.set_env("TZ", "UTC");
    let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let hostile_text = format!("{} token={secret}", HOSTILE.join(" "));
    let big = "x".repeat(9_000);
    TranscriptBuilder::new(1, "21:04", &hostile_text)
        .with_tool_turn(
            "21:10",
            40_000,
            &hostile_text,
            &format!("curl -H 'Authorization: Bearer {secret}'"),
            &big,
        )
        .record_as_ended_session(&world);
    let mut journal = JournalBuilder::default();
    journal.add_session(1, 1, &hostile_text, ("21:04", "21:40"), 45);
    let path_outside = "../../../etc/passwd";
    for handoff in [path_outside, "javascript:alert(1)", &hostile_text] {
        let facts = json!({"cause": &hostile_text, "level": &hostile_text, "percent": 45, "handoff": handoff, "item": &hostile_text});
        journal.add_event("21:30", "checkpoint", 1, Some(&session_id(1)), &facts);
    }
    let verify = json!([{"command": &hostile_text, "passed": false, "words": &hostile_text}]);
    journal.add_verdict(
        1,
        1,
        "21:41",
        &format!("RALPH_CONTINUE|refused|{hostile_text}"),
        &json!({"verify": verify,
        "ending": {"ending": "crashed", "detail": &hostile_text}}),
    );
    journal.add_event(
        "21:42",
        "breaker_opened",
        1,
        None,
        &json!({"cause": &hostile_text, "evidence": &hostile_text}),
    );
    journal.add_event("21:42", &hostile_text, 1, None, &json!({"x": &hostile_text}));
    let mut state = sample_state();
    for name in ["task_name", "objective"] {
        state[name] = json!(&hostile_text);
    }
    state["last_verdict"]["reason"] = json!(&hostile_text);
    state["breaker"]["opened"]["evidence"] = json!(&hostile_text);
    state["todo_items"] = json!([&hostile_text]);
    write_state_and_journal(&world, &state, &journal.lines);
    let html = report_html(&world);
    (world, html.replace(&secret, "THE SECRET"))
}

#[test]
fn hostile_text_is_escaped_and_secrets_are_redacted() {
    let (_world, html) = page_of_hostile_run();
    assert!(!html.contains("THE SECRET"), "{html}");
    assert!(html.contains("[redacted:"), "{html}");
    assert_tags_are_balanced(&html);
    for tag in html.split('<').skip(1).map(|piece| piece.split('>').next().unwrap()) {
        assert!(!tag.starts_with("script") && !tag.starts_with("img") && !tag.starts_with("a "), "{tag}");
    }
    assert!(!html.contains(['\u{7}', '\u{1b}', '\u{202e}', '\u{2066}']));
    assert!(html.contains(r"\u{202e}"));
}

#[test]
fn missing_figures_are_shown_as_not_recorded() {
    let mut world = World::without_git();
    world.set_env("TZ", "UTC");
    let mut bare_state = sample_state();
    bare_state["ended_at"] = json!(null);
    (bare_state["cost_usd"], bare_state["tokens"]) = (json!(0.0), json!(0));
    write_state_and_journal(&world, &bare_state, "");
    let text = visible_text(&report_html(&world));
    assert_in_order(
        &text,
        &[
            "not recorded",
            "Cost not recorded of $20.00",
            "Tokens not recorded",
            "in sessions",
            "No session has been recorded",
            "which session did it was not recorded",
        ],
    );
    assert_in_order(&text, &["there is no turn log", "The journal has no entries of this run"]);
    // A session of which only the start and the end were recorded.
    let mut journal = JournalBuilder::default();
    journal.add_event("21:04", "planned", 1, None, &json!({}));
    journal.add_event("21:04", "spawned", 1, Some("s1"), &json!({}));
    journal.add_event("21:30", "verdict", 1, Some("s1"), &json!({"marker": "RALPH_CONTINUE|next|"}));
    write_state_and_journal(&world, &bare_state, &journal.lines);
    let text = visible_text(&report_html(&world));
    assert_in_order(
        &text,
        &["Of 1 session no figure was recorded", "Sessions", "26 min ? ? ? not recorded not recorded"],
    );
}

#[test]
fn page_of_an_unfinished_run_shows_the_time_of_the_report() {
    let world = world_with_sample_run();
    let mut running = sample_state();
    for (name, value) in
        [("status", json!("running")), ("ended_at", json!(null)), ("last_verdict", json!(null))]
    {
        running[name] = value;
    }
    world.write_run_state_record_and_ledger(&running);
    let text = visible_text(&report_html(&world));
    assert_in_order(
        &text,
        &[
            "as of ",
            "not over yet",
            "Interrupted.",
            "no plimsoll run is active (a shell loop",
            "No plimsoll run is active any more",
            "plimsoll run --resume",
        ],
    );
    running["status"] = json!("completed");
    running["todo_items"] = json!([]);
    world.write_run_state_record_and_ledger(&running);
    assert_in_order(&visible_text(&report_html(&world)), &["Done.", "Nothing is left to do"]);
}
