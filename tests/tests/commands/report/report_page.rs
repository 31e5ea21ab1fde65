//! What the page says.

use crate::report::sample_run::{CALENDAR, Journal, Transcript, page, put, session, stage, state};
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::World;
use plimsoll_tests::assert_in_order;
use serde_json::json;

/// The words of a page, tags left out.
fn words(html: &str) -> String {
    let body = html.split_once("<body>").expect("a body").1;
    let texts = body.split('<').filter_map(|piece| piece.split_once('>').map(|(_, text)| text));
    texts.map(str::trim).filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_night_is_told_byte_for_byte_as_it_was_agreed() {
    let world = stage();
    // A tag a line, so that a difference can be read.
    let html = page(&world).replace(env!("CARGO_PKG_VERSION"), "VERSION").replace("><", ">\n<");
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
fn the_first_screen_answers_what_is_asked_in_the_morning() {
    let words = words(&page(&stage()));
    assert_in_order(
        &words,
        &["ISO dates", "Tue 6 Jan 21:04 – Wed 7 Jan 04:31", "Stuck.", "no more progress: HEAD and all files"],
    );
    assert_in_order(
        &words,
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
        &words,
        &[
            "checkpoint (1)",
            "compaction by the client (1)",
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
        &words,
        &["Items", CALENDAR, "set aside", "3 sessions", "Write the changelog", "no session has begun it"],
    );
    assert_in_order(
        &words,
        &["Convert the table of holidays", "2 sessions · 1 resumed · 11.5M tokens · $4.00"],
    );
    // One session did two items.
    assert_in_order(&words, &["Say in the README", "about 4.5M tokens · about $1.50"]);
    assert_in_order(
        &words,
        &[
            "What filled the window",
            "Read",
            "which are not included: about 31k tokens stayed with 3 subagents.",
            "The largest single results",
            "the zone table",
        ],
    );
    assert_in_order(
        &words,
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
        &words,
        &["Handoffs", "2026-01-06-2309.md", "L2 at 65 %", "Summary:", "lines 1-80 of the table"],
    );
}

#[test]
fn a_page_is_whole_and_lets_nothing_in() {
    let html = page(&stage());
    assert!(html.starts_with("<!DOCTYPE html>\n<html lang=\"en\">") && html.ends_with("</html>\n"));
    assert!(
        html.contains("default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'")
    );
    for foreign in ["<script", "http://", "https://", "src=", "@import", "url("] {
        assert_eq!(html.matches(foreign).count(), 0, "{foreign}");
    }
    balanced(&html);
}

/// Each tag that is opened is closed, in its order.
fn balanced(html: &str) {
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

/// What an agent can write into an item, a command, an error, a file's name.
const HOSTILE: [&str; 5] = [
    "</title></style></svg></bdi><script>document.title='owned'</script>",
    "\"><img src=x onerror=\"document.title='owned'\">",
    "x' onmouseover='alert(1)",
    "\u{7}\u{1b}]0;owned\u{7}\u{202e}txt.exe\u{2066}",
    "<a href=\"javascript:alert(1)\">&lt;b&gt;",
];

/// A night whose every foreign word is hostile, and knows a secret.
pub fn hostile() -> (World, String) {
    let mut world = World::without_git();
    world.set_env("TZ", "UTC");
    let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let all = format!("{} token={secret}", HOSTILE.join(" "));
    let big = "x".repeat(9_000);
    Transcript::begin(1, "21:04", &all)
        .turn("21:10", 40_000, &all, &format!("curl -H 'Authorization: Bearer {secret}'"), &big)
        .record(&world);
    let mut journal = Journal::default();
    journal.sits(1, 1, &all, ("21:04", "21:40"), 45);
    let outside = "../../../etc/passwd";
    for handoff in [outside, "javascript:alert(1)", &all] {
        let facts = json!({"cause": &all, "level": &all, "percent": 45, "handoff": handoff, "item": &all});
        journal.line("21:30", "checkpoint", 1, Some(&session(1)), &facts);
    }
    let verify = json!([{"command": &all, "passed": false, "words": &all}]);
    journal.verdict(
        1,
        1,
        "21:41",
        &format!("RALPH_CONTINUE|refused|{all}"),
        &json!({"verify": verify,
        "ending": {"ending": "crashed", "detail": &all}}),
    );
    journal.line("21:42", "breaker_opened", 1, None, &json!({"cause": &all, "evidence": &all}));
    journal.line("21:42", &all, 1, None, &json!({"x": &all}));
    let mut state = state();
    for name in ["task_name", "objective"] {
        state[name] = json!(&all);
    }
    state["last_verdict"]["reason"] = json!(&all);
    state["breaker"]["opened"]["evidence"] = json!(&all);
    state["todo_items"] = json!([&all]);
    put(&world, &state, &journal.lines);
    let html = page(&world);
    (world, html.replace(&secret, "THE SECRET"))
}

#[test]
fn hostile_words_are_only_words_and_secrets_are_none() {
    let (_world, html) = hostile();
    assert!(!html.contains("THE SECRET"), "{html}");
    assert!(html.contains("[redacted:"), "{html}");
    balanced(&html);
    for tag in html.split('<').skip(1).map(|piece| piece.split('>').next().unwrap()) {
        assert!(!tag.starts_with("script") && !tag.starts_with("img") && !tag.starts_with("a "), "{tag}");
    }
    assert!(!html.contains(['\u{7}', '\u{1b}', '\u{202e}', '\u{2066}']));
    assert!(html.contains(r"\u{202e}"));
}

#[test]
fn what_was_not_recorded_is_not_made_up() {
    let mut world = World::without_git();
    world.set_env("TZ", "UTC");
    let mut bare = state();
    bare["ended_at"] = json!(null);
    (bare["cost_usd"], bare["tokens"]) = (json!(0.0), json!(0));
    put(&world, &bare, "");
    let told = words(&page(&world));
    assert_in_order(
        &told,
        &[
            "not recorded",
            "Cost not recorded of $20.00",
            "Tokens not recorded",
            "in sessions",
            "No session has been recorded",
            "which session did it was not recorded",
        ],
    );
    assert_in_order(&told, &["there is no turn log", "The journal has no entries of this run"]);
    // A session of which nothing but its end is known.
    let mut journal = Journal::default();
    journal.line("21:04", "planned", 1, None, &json!({}));
    journal.line("21:04", "spawned", 1, Some("s1"), &json!({}));
    journal.line("21:30", "verdict", 1, Some("s1"), &json!({"marker": "RALPH_CONTINUE|next|"}));
    put(&world, &bare, &journal.lines);
    let told = words(&page(&world));
    assert_in_order(
        &told,
        &["Of 1 session no figure was recorded", "Sessions", "26 min ? ? ? not recorded not recorded"],
    );
}

#[test]
fn a_run_that_goes_on_says_as_of_when() {
    let world = stage();
    let mut running = state();
    for (name, value) in
        [("status", json!("running")), ("ended_at", json!(null)), ("last_verdict", json!(null))]
    {
        running[name] = value;
    }
    world.put_run(&running);
    let told = words(&page(&world));
    assert_in_order(
        &told,
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
    world.put_run(&running);
    assert_in_order(&words(&page(&world)), &["Done.", "Nothing is left to do"]);
}
