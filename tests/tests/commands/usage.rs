//! `plimsoll usage` and `plimsoll sessions`, on generated transcripts.

mod compared;
mod cost;

use crate::json_outputs::{assert_matches_type, load_json_page};
use chrono::{Duration, Utc};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use serde_json::{Value, json};
use std::fmt::Write;

const OPUS: &str = "claude-opus-4-5-20251101";

/// The lines of a transcript that is being written.
#[derive(Default)]
struct Lines(String);

impl Lines {
    /// Adds a response with this many input tokens, of which a million costs $5, and then changes its fields.
    fn response(mut self, id: &str, time: &str, input_tokens: u64, change: impl FnOnce(&mut Value)) -> Lines {
        let mut line = json!({
            "parentUuid": null, "isSidechain": false,
            "message": {"id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": OPUS,
                "content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn",
                "usage": {"input_tokens": input_tokens, "output_tokens": 0}},
            "requestId": format!("req_{id}"), "type": "assistant", "uuid": format!("u-{id}-{}", self.0.len()),
            "timestamp": time, "cwd": "/home/u/shop", "sessionId": "s", "version": "2.1.332", "gitBranch": "main",
        });
        change(&mut line);
        let _ = writeln!(self.0, "{line}");
        self
    }

    fn request(mut self, text: &str) -> Lines {
        let _ = writeln!(self.0, "{}", json!({"type": "user", "message": {"role": "user", "content": text}}));
        self
    }

    fn raw(mut self, line: &str) -> Lines {
        self.0 += line;
        self
    }
}

fn unchanged(_: &mut Value) {}

/// Creates a world whose clock is in this time zone.
fn world_in_time_zone(time_zone: &str) -> World {
    let mut world = World::without_plimsoll_files();
    world.set_env("TZ", time_zone);
    world
}

fn write_transcript(world: &World, path: &str, lines: &Lines) {
    world.write(world.home().join(".claude/projects").join(path), &lines.0);
}

fn usage_json(world: &World, arguments: &[&str]) -> Value {
    let arguments = [&["usage"], arguments, &["--json"]].concat();
    let document = world.plimsoll(&arguments).run().expect_success().stdout_json();
    assert_matches_type(&load_json_page(), "usage", &document, &arguments.join(" "));
    document
}

fn time_ago(duration: Duration) -> String {
    (Utc::now() - duration).to_rfc3339()
}

#[test]
fn days_are_those_of_the_users_time_zone_also_when_the_clock_changes() {
    let world = world_in_time_zone("Europe/Berlin");
    // 25 October 2026 has 25 hours: midnight is at 22:00 UTC before it, and at 23:00 UTC after it.
    let times = ["10-24T21:59:59Z", "10-24T22:00:00Z", "10-25T22:59:59Z", "10-25T23:00:00Z"];
    let lines = times.iter().enumerate().fold(Lines::default(), |lines, (index, time)| {
        lines.response(&index.to_string(), &format!("2026-{time}"), 10_u64.pow(index as u32), unchanged)
    });
    write_transcript(&world, "-home-u-shop/s.jsonl", &lines);
    let tokens_by_day = |arguments: &[&str]| -> Vec<(String, u64)> {
        let document = usage_json(&world, arguments);
        let days = document["daily"].as_array().unwrap().iter();
        days.map(|day| (day["date"].as_str().unwrap().to_owned(), day["input_tokens"].as_u64().unwrap()))
            .collect()
    };
    let day = |day: &str, tokens| (format!("2026-10-{day}"), tokens);
    assert_eq!(tokens_by_day(&["daily"]), [day("24", 1), day("25", 110), day("26", 1_000)]);
    assert_eq!(tokens_by_day(&["daily", "--since", "2026-10-25", "--until", "20261025"]), [day("25", 110)]);
    let utc = usage_json(&world_in_time_zone("UTC"), &["daily"]);
    assert_eq!(utc["daily"], json!([]), "another home has no transcripts");
    let bad_day = world.plimsoll(&["usage", "--since", "someday"]).run();
    assert_eq!(bad_day.code, Some(2));
    assert!(bad_day.stderr.contains("a day such as 2026-01-07"), "{}", bad_day.stderr);
    for day in ["99999999999d", "-262143-01-01", "2026-02-30"] {
        assert_eq!(world.plimsoll(&["usage", &format!("--since={day}")]).run().code, Some(2), "{day}");
    }
    let reversed = world.plimsoll(&["usage", "--since", "yesterday", "--until", "2026-01-31"]).run();
    assert!(
        reversed.code == Some(2) && reversed.stderr.contains("is after --until 2026-01-31"),
        "{reversed:?}"
    );
    let nothing = world.plimsoll(&["usage", "models", "--since", "today"]).run().expect_success();
    assert!(nothing.stderr.contains("no usage in this time. The last was on 2026-10-26."), "{nothing:?}");
    // The overview ends today, and has no row for each of many days.
    let overview =
        world.plimsoll(&["usage", "--since", "2026-01-01", "--until", "9999-12-31"]).run().expect_success();
    assert!(overview.stdout.lines().count() < 100, "{}", overview.stdout);
    assert_eq!(world.plimsoll(&["turns", "list", "--since", "99999999999d"]).run().code, Some(2));
}

#[test]
fn the_selected_days_do_not_move_the_five_hour_windows() {
    let world = world_in_time_zone("UTC");
    let lines = ["10-24T22:30:00Z", "10-25T01:00:00Z", "10-25T09:10:00Z"]
        .iter()
        .fold(Lines::default(), |lines, time| lines.response(time, &format!("2026-{time}"), 1, unchanged));
    write_transcript(&world, "-home-u-shop/s.jsonl", &lines);
    let blocks = |arguments: &[&str]| -> Vec<(String, u64)> {
        let document = usage_json(&world, &[&["blocks"], arguments].concat());
        let block = |block: &Value| {
            (block["started_at"].as_str().unwrap().to_owned(), block["responses"].as_u64().unwrap())
        };
        document["blocks"].as_array().unwrap().iter().map(block).collect()
    };
    let all = blocks(&[]);
    assert_eq!(all.iter().map(|(_, responses)| *responses).collect::<Vec<_>>(), [2, 1]);
    assert!(all[0].0.starts_with("2026-10-24T22:00:00"), "{all:?}");
    assert_eq!(blocks(&["--since", "2026-10-25"]), all);
    assert_eq!(blocks(&["--until", "2026-10-24"]), all[..1]);
}

#[test]
fn transcripts_are_found_in_the_folders_of_the_client() {
    let mut world = world_in_time_zone("UTC");
    let one = |id: &str| Lines::default().response(id, "2026-10-01T00:00:00Z", 7, unchanged);
    write_transcript(&world, "-p/a.jsonl", &one("a"));
    world.write(world.home().join(".config/claude/projects/-p/b.jsonl"), &one("b").0);
    world.write(world.home().join("other/projects/-p/c.jsonl"), &one("c").0);
    assert_eq!(usage_json(&world, &["daily"])["totals"]["responses"], 2);
    let other_folder = world.home().join("other").display().to_string();
    world.set_env("CLAUDE_CONFIG_DIR", other_folder);
    assert_eq!(usage_json(&world, &["daily"])["totals"]["responses"], 1);
    let list =
        format!("{}, {}", world.home().join("other").display(), world.home().join(".claude").display());
    world.set_env("CLAUDE_CONFIG_DIR", list);
    assert_eq!(usage_json(&world, &[])["totals"]["responses"], 0, "the last 14 days");
    assert_eq!(usage_json(&world, &["daily"])["totals"]["responses"], 2);
    world.set_env("CLAUDE_CONFIG_DIR", "/nowhere");
    let nothing = world.plimsoll(&["usage"]).run().expect_success();
    assert!(nothing.stderr.contains("There is no usage yet in /nowhere/projects."), "{nothing:?}");
    assert_eq!(usage_json(&world, &["models"])["models"], json!([]));
}

#[test]
fn what_cannot_be_counted_is_named_and_the_rest_counts() {
    let world = world_in_time_zone("UTC");
    let time = "2026-10-01T00:00:00Z";
    let long_line = Lines::default().raw(&"x".repeat(17 << 20)).raw("\n").response("1", time, 1, unchanged);
    write_transcript(&world, "-p/long.jsonl", &long_line);
    let torn = Lines::default()
        .response("2", time, 10, unchanged)
        .raw(r#"{"type":"assistant","message":{"usage":{"#);
    write_transcript(&world, "-p/torn.jsonl", &torn);
    let malformed = torn.raw("\n").response("3", time, 100, unchanged);
    write_transcript(&world, "-p/malformed.jsonl", &malformed);
    let future = Lines::default().response("4", &time_ago(Duration::days(-400)), 1_000, unchanged);
    write_transcript(&world, "-p/future.jsonl", &future);
    let path = world.home().join(".claude/projects/-p/bytes.jsonl");
    let mut bytes = Lines::default().response("5", time, 10_000, unchanged).0.into_bytes();
    let text_position = bytes.windows(4).position(|window| window == b"done").unwrap();
    bytes[text_position] = 0xff;
    std::fs::write(path, bytes).unwrap();
    std::os::unix::fs::symlink("/", world.home().join(".claude/projects/link")).unwrap();

    let document = usage_json(&world, &["projects"]);
    assert_eq!(document["totals"]["input_tokens"], 10_111);
    assert_eq!(document["projects"][0]["project"], "/home/u/shop");
    let skipped: Vec<String> = document["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| {
            format!(
                "{} {}",
                part["file"].as_str().unwrap().rsplit('/').next().unwrap(),
                part["reason"].as_str().unwrap()
            )
        })
        .collect();
    let expected = [
        "link links are not followed",
        "long.jsonl 1 line longer than 16 MB",
        "future.jsonl 1 response dated in the future",
        "malformed.jsonl 1 line that cannot be parsed",
    ];
    assert_eq!(skipped, expected);
    let finished = world.plimsoll(&["usage", "daily"]).run().expect_success();
    assert!(
        finished
            .stderr
            .contains("warning: not counted in ~/.claude/projects/-p/long.jsonl: 1 line longer than 16 MB"),
        "{}",
        finished.stderr
    );
    assert_eq!(finished.stderr.matches("warning:").count(), 4);
}

/// Writes two sessions of the last hours, one of them with a subagent, and one of the week before.
fn write_recent_sessions(world: &World) {
    let hour_ago = time_ago(Duration::minutes(61));
    let main = Lines::default()
        .request("Fix the date parser")
        .response("1", &hour_ago, 1_000_000, |line| line["message"]["usage"]["output_tokens"] = json!(40_000))
        .response("2", &time_ago(Duration::minutes(1)), 2_000_000, unchanged)
        .raw("{\"type\":\"system\",\"subtype\":\"compact_boundary\",\"isSidechain\":false}\n");
    write_transcript(world, "-home-u-shop/main.jsonl", &main);
    let subagent = Lines::default().response("3", &hour_ago, 500_000, |line| {
        line["isSidechain"] = json!(true);
        line["message"]["model"] = json!("claude-haiku-4-5-20251001");
    });
    write_transcript(world, "-home-u-shop/main/subagents/agent-a1.jsonl", &subagent);
    let earlier = Lines::default().request("Write\u{1b}[2J the docs\nfor | the parser").response(
        "4",
        &time_ago(Duration::days(9)),
        100_000,
        |line| {
            line["cwd"] = json!("/home/u/it's here/.claude/worktrees/owl");
            line["gitBranch"] = json!("docs");
            line["message"]["model"] = json!("zork");
        },
    );
    write_transcript(world, "-home-u-it/earlier.jsonl", &earlier);
}

#[test]
fn the_overview_fits_every_terminal_and_agrees_with_its_json() {
    let world = world_in_time_zone("UTC");
    write_recent_sessions(&world);
    let document = usage_json(&world, &[]);
    let usd = |pointer: &str| document.pointer(pointer).and_then(Value::as_f64).unwrap();
    assert!((usd("/active_block/cost_usd") - (15.0 + 1.0 + 0.5)).abs() < 1e-9, "{document:#}");
    assert!((usd("/active_block/per_hour/cost_usd") - 16.5).abs() < 0.1, "{document:#}");
    assert!(usd("/active_block/projected/cost_usd") > 16.5);
    assert!((usd("/totals/cost_usd") - (16.5 + 1.5)).abs() < 1e-9, "an unknown model has the highest price");
    assert_eq!(document["totals"]["cost_basis"], "at_most");
    assert_eq!(document["totals"]["subagents"]["total_tokens"], 500_000);
    for columns in [40, 60, 80, 160] {
        let mut terminal = Terminal::start_program_in_project(
            &world,
            plimsoll_testkit::find_or_build_bin_dir().join("plimsoll"),
            &["usage"],
            columns,
            60,
        );
        let output = String::from_utf8_lossy(&terminal.wait_for_exit_and_all_bytes()).into_owned();
        let lines: Vec<&str> = output.lines().map(str::trim_end).collect();
        assert!(lines.iter().all(|line| line.chars().count() <= columns.into()), "{columns}:\n{output}");
        let bars = lines.iter().filter(|line| line.contains('■')).count();
        assert_eq!(bars, 7, "two days, two projects and three models, whatever they cost:\n{output}");
        for text in [
            "Today",
            "This week",
            "Five hours from",
            "Last 14 days",
            "Projects",
            "Models",
            "~$16.50",
            "≤$1.50",
            "zork",
            "Subagents used 500k",
        ] {
            assert!(output.contains(text), "{columns} {text}:\n{output}");
        }
    }
}

#[test]
fn each_list_has_its_rows_and_their_sum() {
    let world = world_in_time_zone("UTC");
    write_recent_sessions(&world);
    let text_of = |list: &str| world.plimsoll(&["usage", list]).run().expect_success().stdout;
    for (list, texts) in [
        ("daily", &["DAY", "haiku-4-5, opus-4-5", "zork", "Total"][..]),
        ("blocks", &["FIVE HOURS FROM", "active"]),
        ("models", &["MODEL", "opus-4-5   ~$16.00", "zork"]),
        ("projects", &["PROJECT", "/home/u/shop", "/home/u/it's here  "]),
    ] {
        let text = text_of(list);
        assert!(texts.iter().all(|expected| text.contains(expected)), "{list}:\n{text}");
        assert!(
            text.contains("\nTotal") && text.contains("≤$18.00") && text.contains("no known price for zork"),
            "{list}:\n{text}"
        );
        let rows = &usage_json(&world, &[list])[list];
        let sum: f64 = rows.as_array().unwrap().iter().map(|row| row["cost_usd"].as_f64().unwrap()).sum();
        assert!((sum - 18.0).abs() < 1e-9, "{list}: {rows:#}");
    }
    let runs = world.plimsoll(&["usage", "runs"]).run().expect_success();
    assert!(runs.stderr.contains("There are no runs"), "{runs:?}");
    for (word, tip) in [("cost", "`plimsoll usage` shows"), ("daily", "`plimsoll usage daily`")] {
        let unknown = world.plimsoll(&[word]).run();
        assert!(unknown.code == Some(2) && unknown.stderr.contains(tip), "{}", unknown.stderr);
    }
}

#[test]
fn runs_are_listed_with_the_costs_of_their_ledgers() {
    let world = world_in_time_zone("UTC");
    world.write_run_state_record_and_ledger(&json!({
        "run_id": "calm-owl", "iteration": 3, "started_at": "2026-10-02T10:00:00Z", "status": "completed",
        "cost_usd": 1.25, "cost_is_reckoned": true, "tokens": 70_000,
    }));
    let text = world.plimsoll(&["usage", "runs"]).run().expect_success().stdout;
    assert!(
        text.contains("calm-owl") && text.contains("2026-10-02 10:00") && text.contains("~$1.25"),
        "{text}"
    );
    let document = usage_json(&world, &["runs", "--since", "2026-10-02"]);
    assert_eq!(document["runs"][0]["sessions"], 3);
    assert_eq!(document["runs"][0]["cost_basis"], "estimated");
    assert_eq!(usage_json(&world, &["runs", "--until", "2026-10-01"])["runs"], json!([]));
}

#[test]
fn sessions_are_listed_with_the_command_that_resumes_them() {
    let world = world_in_time_zone("UTC");
    write_recent_sessions(&world);
    let sessions = |arguments: &[&str]| {
        let arguments = [&["sessions"], arguments].concat();
        world.plimsoll(&arguments).run().expect_success().stdout
    };
    let text = sessions(&[]);
    let (first, second) = text.split_once("\n\n").unwrap();
    for expected in [
        "Fix the date parser",
        "peak 2M (",
        "· main · /home/u/shop",
        "1 compaction",
        "~$16.50",
        "cd /home/u/shop && claude --resume main",
    ] {
        assert!(first.contains(expected), "{expected}:\n{text}");
    }
    assert!(
        second.contains("≤$1.50 · peak 100k (10%) · docs · /home/u/it's here") && !text.contains('\u{1b}'),
        "{text}"
    );
    assert!(
        second.contains(r#"cd "/home/u/it's here/.claude/worktrees/owl" && claude --resume earlier"#),
        "{text}"
    );
    for (search, expected) in
        [("DATE", "main"), ("/it's", "earlier"), ("Docs", "earlier"), ("parser", "main earlier")]
    {
        let listed = sessions(&["--search", search, "--json"]);
        let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
        let ids: Vec<&str> = listed.iter().map(|session| session["session_id"].as_str().unwrap()).collect();
        assert_eq!(ids.join(" "), expected, "{search}");
    }
    for path in ["-home/-x.jsonl", "-home/a$(id).jsonl", "-home/c.jsonl"] {
        let lines = Lines::default().response(path, &time_ago(Duration::seconds(9)), u64::MAX, |line| {
            line["cwd"] = json!(if path.contains("/c.") { "/home\n; id #" } else { "/home" });
        });
        write_transcript(&world, path, &lines);
    }
    assert_eq!(
        sessions(&[]).matches("claude --resume").count(),
        2,
        "no command of which a name could run something"
    );
    assert_eq!(sessions(&["-n", "4"]).matches("claude --resume").count(), 1);
    let nothing = world.plimsoll(&["sessions", "--search", "nowhere"]).run().expect_success();
    assert!(nothing.stderr.contains("No session matches."), "{nothing:?}");
}
