//! Segments of the user's own, and what a status line must not do.

use super::{full_payload, launch_with_project_settings, launch_with_user_settings};
use plimsoll_testkit::world::World;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn a_segment_shows_a_payload_value_or_the_output_of_a_fast_program() {
    let world = World::new();
    let settings = json!({
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
    let shown = launch_with_user_settings(&world, &settings).run().expect_success().stdout;
    assert_eq!(
        shown.trim(),
        "style default │ 1 line │ Haiku 4.5",
        "the program has the payload on its input"
    );
    let explained =
        world.plimsoll(&["statusline", "explain", "--json"]).stdin(full_payload(&world).to_string());
    let explained = explained.env("NO_COLOR", "1").run().expect_success().stdout_json();
    let hidden_reason = |name: &str| -> String {
        let segments = explained["segments"].as_array().unwrap();
        let segment = segments.iter().find(|segment| segment["name"] == name).unwrap();
        assert_eq!(segment["shown"], Value::Null, "{name}");
        segment["hidden"].as_str().unwrap().to_owned()
    };
    assert_eq!(hidden_reason("late"), "it took longer than 50 ms");
    assert_eq!(hidden_reason("fails"), "it exited with 3");
    assert_eq!(hidden_reason("gone"), "No such file or directory (os error 2)");
    assert_eq!(hidden_reason("absent"), "Claude Code reports nothing at /not/there");
    assert_eq!(explained["line"], shown.trim());
}

#[test]
fn the_programs_of_segments_run_at_the_same_time() {
    let world = World::new();
    // Each program waits until the other has started.
    let command_that_waits_for = |own_file: &str, other_file: &str| {
        let script =
            format!("touch {own_file}; until [ -e {other_file} ]; do sleep 0.01; done; echo {own_file}");
        json!({"command": ["sh", "-c", script], "timeout_ms": 5000})
    };
    let settings = json!({"lines": [["a", "b"]], "segments": {"a": command_that_waits_for("a", "b"), "b": command_that_waits_for("b", "a")}});
    assert_eq!(launch_with_user_settings(&world, &settings).run().expect_success().stdout.trim(), "a │ b");
}

#[test]
fn the_line_names_invalid_settings_and_shows_everything_else() {
    let world = World::new();
    let shown =
        launch_with_project_settings(&world, &json!({"lines": [["modell"]]})).run().expect_success().stdout;
    insta::assert_snapshot!(shown, @r#"Haiku 4.5 │ project │ ⎇ main ?1 │ ▕███░░░░░░░░░░░┆░░┆░┃▏ 15% 30k/200k · 170k left │ 5h 42% ↻Tue 07:06 │ 7d 7% ↻Tue 07:06 │ spend 91% ↻Tue 07:06 │ $1.50 │ ⚠ .claude/plimsoll.json: statusline.lines names "modell", whi…"#);
}

/// Returns all files below a folder.
fn files_below(folder: &Path) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            match path.is_dir() && !path.is_symlink() {
                true => folders.push(path),
                false => drop(files.insert(path.to_string_lossy().into_owned())),
            }
        }
    }
    files
}

#[test]
fn the_status_line_writes_only_its_reading_and_only_if_it_changed() {
    let world = World::new();
    let settings = json!({"lines": [["model", "git", "load", "run", "memory", "health"]], "segments": {"git": {"format": "{branch}"}}});
    world.write(".claude/plimsoll.json", &json!({"statusline": settings}).to_string());
    world.write(".claude/plimsoll/sessions/another.json", "{}");
    let all_files = || [files_below(&world.project()), files_below(&world.home())].union_of_sets();
    let before = all_files();
    let run_status_line = |payload: &Value| {
        world.hook("plimsoll-statusline", payload).env("NO_COLOR", "1").run().expect_success();
    };
    run_status_line(&full_payload(&world));
    let after = all_files();
    let id = full_payload(&world)["session_id"].as_str().unwrap().to_owned();
    let reading = world.path(format!(".claude/plimsoll/sessions/{id}.status.json"));
    let new_files: Vec<&String> = after.difference(&before).collect();
    // The folder gets its `.gitignore` before its first file.
    let expected = [".gitignore", "windows.json"].map(|name| world.path(format!(".claude/plimsoll/{name}")));
    let expected = [&expected[..], std::slice::from_ref(&reading)].concat();
    assert!(new_files.iter().all(|new| expected.iter().any(|one| Path::new(new) == one)), "{new_files:?}");
    assert!(before.is_subset(&after));
    // The same figures again: another cost and another clock time are no new figures.
    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&path.metadata().unwrap());
    let first = inode(&reading);
    let mut later = full_payload(&world);
    later["cost"]["total_cost_usd"] = json!(9.0);
    run_status_line(&later);
    assert_eq!(inode(&reading), first, "nothing was written");
    later["context_window"]["current_usage"] = json!({"input_tokens": 40_000});
    run_status_line(&later);
    assert_ne!(inode(&reading), first, "a new figure is published");
    let record: Value = serde_json::from_str(&std::fs::read_to_string(&reading).unwrap()).unwrap();
    assert_eq!(record["fills"], json!([30_010, 40_000]));
}

trait UnionOfSets {
    fn union_of_sets(self) -> BTreeSet<String>;
}

impl UnionOfSets for [BTreeSet<String>; 2] {
    fn union_of_sets(self) -> BTreeSet<String> {
        self.into_iter().flatten().collect()
    }
}

#[test]
fn the_line_shows_only_the_figures_of_its_own_session() {
    let world = World::new();
    let settings = json!({"lines": [["load", "growth"]]});
    let line_of_session = |id: &str, used: Option<u64>| {
        let mut payload = full_payload(&world);
        payload["session_id"] = json!(id);
        if let Some(used) = used {
            payload["context_window"]["current_usage"] = json!({"input_tokens": used});
            payload["context_window"]["used_percentage"] = json!(used / 2_000);
        } else {
            payload["context_window"] = json!({"context_window_size": 200_000});
        }
        launch_with_project_settings(&world, &settings)
            .stdin(payload.to_string())
            .run()
            .expect_success()
            .stdout
            .trim()
            .to_owned()
    };
    line_of_session("a", Some(20_000));
    insta::assert_snapshot!(line_of_session("a", Some(60_000)), @"▕██████░░░░░░░░┆░░┆░┃▏ 30% 60k/200k · 140k left │ █ +40k");
    insta::assert_snapshot!(line_of_session("b", None), @"▕░░░░░░░░░░░░░░┆░░┆░┃▏ ?");
    insta::assert_snapshot!(line_of_session("b", Some(10_000)), @"▕█░░░░░░░░░░░░░┆░░┆░┃▏ 5% 10k/200k · 190k left");
}

#[test]
fn a_usage_limit_is_shown_until_it_resets() {
    let world = World::new();
    let mut payload = full_payload(&world);
    let limit_segments = |payload: &Value| {
        let settings = json!({"lines": [["five_hour", "weekly", "spend"]]});
        launch_with_project_settings(&world, &settings)
            .stdin(payload.to_string())
            .run()
            .expect_success()
            .stdout
    };
    insta::assert_snapshot!(limit_segments(&payload), @"5h 42% ↻Tue 07:06 │ 7d 7% ↻Tue 07:06 │ spend 91% ↻Tue 07:06");
    for limit in ["five_hour", "spend_limit"] {
        payload["rate_limits"][limit]["resets_at"] = json!(1_700_000_000);
    }
    insta::assert_snapshot!(limit_segments(&payload), @"7d 7% ↻Tue 07:06");
}

/// The client assumed a window of 200,000 tokens, but a request was larger. The percentage that it reports refers to
/// the assumed window.
#[test]
fn the_percentage_refers_to_the_window_shown_beside_it() {
    let world = World::new();
    let mut payload = full_payload(&world);
    let mut load_segment = |used: u64, reported_percent: u64| {
        payload["context_window"] = json!({
            "context_window_size": 200_000, "used_percentage": reported_percent, "current_usage": {"input_tokens": used}
        });
        let line = launch_with_project_settings(&world, &json!({"lines": [["load"]]}))
            .stdin(payload.to_string())
            .run();
        line.expect_success().stdout
    };
    insta::assert_snapshot!(load_segment(150_000, 75), @"▕███████████████░░┆░┃▏ 75% 150k/200k · 50k left");
    insta::assert_snapshot!(load_segment(250_000, 100), @"▕█████░░░░░░░░░┆░░┆░┃▏ 25% 250k/1M · 750k left");
}
