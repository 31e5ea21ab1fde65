//! A long night: many sessions, a large journal; the page stays small and is made at once.

use crate::report::sample_run::{RUN, page, put, state};
use plimsoll_testkit::world::World;
use serde_json::json;
use std::fmt::Write;
use std::time::{Duration, Instant};

const SESSIONS: u64 = 500;
const LINES: u64 = 100;

#[test]
fn five_hundred_sessions_and_fifty_thousand_lines_make_a_small_page() {
    let mut world = World::without_git();
    world.set_env("TZ", "UTC");
    let item = |number: u64| {
        format!("Item {number}: {}", "convert one more file of the long list ".repeat(2).trim())
    };
    let mut journal = String::new();
    for number in 1..=SESSIONS {
        let at = |second: u64| {
            format!("2026-01-06T{:02}:{:02}:{:02}.000Z", (number + 30) / 60 % 24, (number + 30) % 60, second)
        };
        let mut line = |second: u64, event: &str, facts: &str| {
            writeln!(journal, "{{\"at\":\"{}\",\"event\":\"{event}\",\"run_id\":\"{RUN}\",\"iteration\":{number},\"session_id\":\"s{number}\"{facts}}}", at(second)).unwrap();
        };
        line(0, "planned", &format!(",\"item\":\"{}\"", item(number)));
        line(1, "spawned", "");
        for second in 2..LINES - 4 {
            line(2 + second / 2, "packed", ",\"item\":\"x\",\"estimate_tokens\":1,\"room_tokens\":2");
        }
        line(
            52,
            "checkpoint",
            &format!(",\"level\":\"L2\",\"percent\":87,\"handoff\":\".claude/handoffs/{number}.md\""),
        );
        line(53, "session_end", ",\"peak_percent\":87");
        let why = json!(format!("RALPH_CONTINUE|refused|{} is open", item(number)));
        line(
            54,
            "verdict",
            &format!(
                ",\"marker\":{why},\"ending\":{{\"ending\":\"completed\"}},\"ticked\":[{}],\"cost_usd\":{number},\"tokens\":{}",
                json!(item(number)),
                number * 1_000_000
            ),
        );
    }
    assert!(journal.lines().count() as u64 >= SESSIONS * (LINES - 2));
    let mut long = state();
    let items: Vec<String> = (1..=SESSIONS).map(item).collect();
    (long["completed_items"], long["ever_done"], long["known_items"]) =
        (json!(items), json!(items), json!([]));
    put(&world, &long, &journal);
    let started = Instant::now();
    let html = page(&world);
    let took = started.elapsed();
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
    assert!(html.contains("500 of 502 done"), "all are counted");
    // 0.4 s where nothing else is at work (two cores, released program); a shared machine takes ten times as long, and what
    // looks at each line once for each session, minutes.
    assert!(took < Duration::from_secs(20), "{took:?}");
    println!("{} bytes in {took:?}", html.len());
}
