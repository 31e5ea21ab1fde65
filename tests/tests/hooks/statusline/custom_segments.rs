//! Segments of the user's own, and what a status line may not do.

use super::{line, own_line, payload};
use plimsoll_testkit::world::World;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn a_value_is_taken_from_the_payload_or_from_a_program_in_time() {
    let world = World::new();
    let look = json!({
        "lines": [["style", "count", "late", "fails", "gone", "absent", "model"]],
        "segments": {
            "style": {"pointer": "/output_style/name", "format": "style {value}"},
            "count": {"command": ["grep", "-c", "session_id"], "timeout_ms": 5000, "format": "{value} line"},
            "late": {"command": ["sleep", "30"], "timeout_ms": 50},
            "fails": {"command": ["sh", "-c", "echo no; exit 3"], "timeout_ms": 5000},
            "gone": {"command": ["/no/such/program"]},
            "absent": {"pointer": "/not/there"}
        }
    });
    let shown = own_line(&world, &look).run().expect_success().stdout;
    assert_eq!(
        shown.trim(),
        "style default │ 1 line │ Haiku 4.5",
        "the program has the payload on its input"
    );
    let explained = world.plimsoll(&["statusline", "explain", "--json"]).stdin(payload(&world).to_string());
    let explained = explained.env("NO_COLOR", "1").run().expect_success().json();
    let why = |name: &str| -> String {
        let segments = explained["segments"].as_array().unwrap();
        let segment = segments.iter().find(|segment| segment["name"] == name).unwrap();
        assert_eq!(segment["shown"], Value::Null, "{name}");
        segment["hidden"].as_str().unwrap().to_owned()
    };
    assert_eq!(why("late"), "it took longer than 50 ms");
    assert_eq!(why("fails"), "it exited with 3");
    assert_eq!(why("gone"), "No such file or directory (os error 2)");
    assert_eq!(why("absent"), "the client reports nothing at /not/there");
    assert_eq!(explained["line"], shown.trim());
}

#[test]
fn programs_are_asked_all_at_once() {
    let world = World::new();
    // Each waits until the other has begun.
    let meets = |own: &str, other: &str| {
        let script = format!("touch {own}; until [ -e {other} ]; do sleep 0.01; done; echo {own}");
        json!({"command": ["sh", "-c", script], "timeout_ms": 5000})
    };
    let look = json!({"lines": [["a", "b"]], "segments": {"a": meets("a", "b"), "b": meets("b", "a")}});
    assert_eq!(own_line(&world, &look).run().expect_success().stdout.trim(), "a │ b");
}

#[test]
fn settings_that_make_no_sense_are_named_in_the_line_and_everything_else_is_shown() {
    let world = World::new();
    let shown = line(&world, &json!({"lines": [["modell"]]})).run().expect_success().stdout;
    insta::assert_snapshot!(shown, @r#"Haiku 4.5 │ project │ ⎇ main ?1 │ ▕███░░░░░░░░░░░┆░░┆░┃▏ 15% 30k/200k · 170k left │ 5h 42% ↻Tue 07:06 │ 7d 7% ↻Tue 07:06 │ spend 91% ↻Tue 07:06 │ $1.50 │ ⚠ .claude/plimsoll.json: statusline.lines names "modell", whi…"#);
}

/// All files below a folder.
fn files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            match path.is_dir() && !path.is_symlink() {
                true => folders.push(path),
                false => drop(found.insert(path.to_string_lossy().into_owned())),
            }
        }
    }
    found
}

#[test]
fn nothing_is_written_but_the_published_reading_and_that_only_when_it_has_changed() {
    let world = World::new();
    let look = json!({"lines": [["model", "git", "load", "run", "memory", "health"]], "segments": {"git": {"format": "{branch}"}}});
    world.write(".claude/plimsoll.json", &json!({"statusline": look}).to_string());
    world.write(".claude/plimsoll/sessions/another.json", "{}");
    let all = || [files(&world.project()), files(&world.home())].concat_sets();
    let before = all();
    let show = |payload: &Value| {
        world.hook("plimsoll-statusline", payload).env("NO_COLOR", "1").run().expect_success();
    };
    show(&payload(&world));
    let after = all();
    let id = payload(&world)["session_id"].as_str().unwrap().to_owned();
    let reading = world.path(format!(".claude/plimsoll/sessions/{id}.status.json"));
    let new: Vec<&String> = after.difference(&before).collect();
    // The folder hides itself from git before its first file.
    let expected = [".gitignore", "windows.json"].map(|name| world.path(format!(".claude/plimsoll/{name}")));
    let expected = [&expected[..], std::slice::from_ref(&reading)].concat();
    assert!(new.iter().all(|new| expected.iter().any(|one| Path::new(new) == one)), "{new:?}");
    assert!(before.is_subset(&after));
    // The same figures again: another cost and another clock are none.
    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&path.metadata().unwrap());
    let first = inode(&reading);
    let mut later = payload(&world);
    later["cost"]["total_cost_usd"] = json!(9.0);
    show(&later);
    assert_eq!(inode(&reading), first, "nothing was written");
    later["context_window"]["current_usage"] = json!({"input_tokens": 40_000});
    show(&later);
    assert_ne!(inode(&reading), first, "a new figure is published");
    let record: Value = serde_json::from_str(&std::fs::read_to_string(&reading).unwrap()).unwrap();
    assert_eq!(record["fills"], json!([30_010, 40_000]));
}

trait Concat {
    fn concat_sets(self) -> BTreeSet<String>;
}

impl Concat for [BTreeSet<String>; 2] {
    fn concat_sets(self) -> BTreeSet<String> {
        self.into_iter().flatten().collect()
    }
}

#[test]
fn the_figures_are_this_sessions_and_no_others() {
    let world = World::new();
    let look = json!({"lines": [["load", "growth"]]});
    let of = |id: &str, used: Option<u64>| {
        let mut payload = payload(&world);
        payload["session_id"] = json!(id);
        if let Some(used) = used {
            payload["context_window"]["current_usage"] = json!({"input_tokens": used});
            payload["context_window"]["used_percentage"] = json!(used / 2_000);
        } else {
            payload["context_window"] = json!({"context_window_size": 200_000});
        }
        line(&world, &look).stdin(payload.to_string()).run().expect_success().stdout.trim().to_owned()
    };
    of("a", Some(20_000));
    insta::assert_snapshot!(of("a", Some(60_000)), @"▕██████░░░░░░░░┆░░┆░┃▏ 30% 60k/200k · 140k left │ █ +40k");
    insta::assert_snapshot!(of("b", None), @"▕░░░░░░░░░░░░░░┆░░┆░┃▏ ?");
    insta::assert_snapshot!(of("b", Some(10_000)), @"▕█░░░░░░░░░░░░░┆░░┆░┃▏ 5% 10k/200k · 190k left");
}

#[test]
fn a_limit_is_shown_until_it_is_reset() {
    let world = World::new();
    let mut payload = payload(&world);
    let show = |payload: &Value| {
        let look = json!({"lines": [["five_hour", "weekly", "spend"]]});
        line(&world, &look).stdin(payload.to_string()).run().expect_success().stdout
    };
    insta::assert_snapshot!(show(&payload), @"5h 42% ↻Tue 07:06 │ 7d 7% ↻Tue 07:06 │ spend 91% ↻Tue 07:06");
    for limit in ["five_hour", "spend_limit"] {
        payload["rate_limits"][limit]["resets_at"] = json!(1_700_000_000);
    }
    insta::assert_snapshot!(show(&payload), @"7d 7% ↻Tue 07:06");
}

/// The client believed in a window of 200,000 tokens, and a request held more: the percentage it reports is one of that window.
#[test]
fn a_percentage_is_shown_of_the_window_that_stands_beside_it() {
    let world = World::new();
    let mut payload = payload(&world);
    let mut show = |used: u64, told: u64| {
        payload["context_window"] = json!({
            "context_window_size": 200_000, "used_percentage": told, "current_usage": {"input_tokens": used}
        });
        let line = line(&world, &json!({"lines": [["load"]]})).stdin(payload.to_string()).run();
        line.expect_success().stdout
    };
    insta::assert_snapshot!(show(150_000, 75), @"▕███████████████░░┆░┃▏ 75% 150k/200k · 50k left");
    insta::assert_snapshot!(show(250_000, 100), @"▕█████░░░░░░░░░┆░░┆░┃▏ 25% 250k/1M · 750k left");
}
