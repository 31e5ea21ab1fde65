//! The report of a run with many sessions and a large journal stays small and is written quickly.

use crate::report::sample_run::{RUN_ID, report_html, sample_state, write_state_and_journal};
use plimsoll_testkit::world::World;
use serde_json::json;
use std::fmt::Write;
use std::time::{Duration, Instant};

const SESSIONS: u64 = 500;
const LINES_PER_SESSION: u64 = 100;

#[test]
fn report_of_500_sessions_and_50000_journal_lines_is_small_and_fast() {
    let mut world = World::without_git();
    world.set_env("TZ", "UTC");
    let item = |number: u64| {
        format!("Item {number}: {}", "convert one more file of the long list ".repeat(2).trim())
    };
    let mut journal = String::new();
    for number in 1..=SESSIONS {
        let timestamp_at = |second: u64| {
            format!("2026-01-06T{:02}:{:02}:{:02}.000Z", (number + 30) / 60 % 24, (number + 30) % 60, second)
        };
        let mut add_line = |second: u64, event: &str, facts: &str| {
            writeln!(journal, "{{\"at\":\"{}\",\"event\":\"{event}\",\"run_id\":\"{RUN_ID}\",\"iteration\":{number},\"session_id\":\"s{number}\"{facts}}}", timestamp_at(second)).unwrap();
        };
        add_line(0, "planned", &format!(",\"item\":\"{}\"", item(number)));
        add_line(1, "spawned", "");
        for second in 2..LINES_PER_SESSION - 4 {
            add_line(2 + second / 2, "packed", ",\"item\":\"x\",\"estimate_tokens\":1,\"room_tokens\":2");
        }
        add_line(
            52,
            "checkpoint",
            &format!(",\"level\":\"L2\",\"percent\":87,\"handoff\":\".claude/handoffs/{number}.md\""),
        );
        add_line(53, "session_end", ",\"peak_percent\":87");
        let marker = json!(format!("RALPH_CONTINUE|refused|{} is open", item(number)));
        add_line(
            54,
            "verdict",
            &format!(
                ",\"marker\":{marker},\"ending\":{{\"ending\":\"completed\"}},\"ticked\":[{}],\"cost_usd\":{number},\"tokens\":{}",
                json!(item(number)),
                number * 1_000_000
            ),
        );
    }
    assert!(journal.lines().count() as u64 >= SESSIONS * (LINES_PER_SESSION - 2));
    let mut state_with_500_items = sample_state();
    let items: Vec<String> = (1..=SESSIONS).map(item).collect();
    (
        state_with_500_items["completed_items"],
        state_with_500_items["ever_done"],
        state_with_500_items["known_items"],
    ) = (json!(items), json!(items), json!([]));
    write_state_and_journal(&world, &state_with_500_items, &journal);
    let started = Instant::now();
    let html = report_html(&world);
    let elapsed = started.elapsed();
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
    assert!(html.contains("500 of 502 done"), "all are counted");
    // It takes 0.4 s on an idle machine (two cores, release build) and ten times as long on a shared one. Code that reads each line
    // once per session would take minutes.
    assert!(elapsed < Duration::from_secs(20), "{elapsed:?}");
    println!("{} bytes in {elapsed:?}", html.len());
}
