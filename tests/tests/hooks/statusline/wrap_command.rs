//! `plimsoll-statusline --wrap COMMAND`: measure and publish, and show another status line.

use super::payload;
use plimsoll_testkit::world::World;
use serde_json::{Value, json};

fn wrapped(world: &World, command: &[&str]) -> plimsoll_testkit::world::Finished {
    let arguments: Vec<&str> = ["--wrap"].iter().chain(command).copied().collect();
    let program = plimsoll_testkit::bin_dir().join("plimsoll-statusline");
    world
        .command(program, &arguments)
        .stdin(payload(world).to_string())
        .env("NO_COLOR", "1")
        .env("TZ", "UTC")
        .run()
}

#[test]
fn another_status_line_is_shown_as_it_is_and_the_reading_is_published() {
    let world = World::new();
    let finished = wrapped(&world, &["printf 'theirs: '; grep -o '\"five_hour\"'; echo oops >&2; exit 0"]);
    assert_eq!((finished.code, finished.stdout.trim()), (Some(0), "theirs: \"five_hour\""), "{finished:?}");
    assert_eq!(finished.stderr.trim(), "oops");
    let id = payload(&world)["session_id"].as_str().unwrap().to_owned();
    let record = world.json(format!(".claude/plimsoll/sessions/{id}.status.json"));
    assert_eq!((&record["used"], &record["window"]), (&json!(30_010), &json!(200_000)));
    // A program with arguments reaches them as they stand, and its exit code comes back.
    let finished = wrapped(&world, &["sh", "-c", "cat >/dev/null; echo \"$1\"; exit 7", "sh", "$HOME *"]);
    assert_eq!((finished.code, finished.stdout.trim()), (Some(7), "$HOME *"));
    let whole = wrapped(&world, &["cat"]);
    assert_eq!(serde_json::from_str::<Value>(&whole.stdout).unwrap(), payload(&world));
}

#[test]
fn a_line_that_cannot_be_started_is_replaced_by_ours() {
    let world = World::new();
    let line_and_error = |command: &[&str]| {
        let finished = wrapped(&world, command).expect_success();
        world.stable_text(&format!("{}\n{}", finished.stdout.trim_end(), finished.stderr))
    };
    insta::assert_snapshot!(line_and_error(&["/no/such/line", "--fast"]), @r#"
    Haiku 4.5 │ project │ ⎇ main │ ▕███░░░░░░░░░░░┆░░┆░┃▏ 15% 30k/200k · 170k left │ 5h 42% ↻Tue [TIME] │ 7d 7% ↻Tue [TIME] │ spend 91% ↻Tue [TIME] │ $1.50
    plimsoll-statusline: cannot start the status line ["/no/such/line", "--fast"]: No such file or directory (os error 2)
    "#);
    insta::assert_snapshot!(line_and_error(&[]), @"
    Haiku 4.5 │ project │ ⎇ main │ ▕███░░░░░░░░░░░┆░░┆░┃▏ 15% 30k/200k · 170k left │ 5h 42% ↻Tue [TIME] │ 7d 7% ↻Tue [TIME] │ spend 91% ↻Tue [TIME] │ $1.50
    plimsoll-statusline: cannot start the status line []: no program is named
    ");
}
