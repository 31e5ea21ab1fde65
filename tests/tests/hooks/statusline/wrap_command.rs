//! `plimsoll-statusline --wrap COMMAND` measures and publishes the usage, and shows another status line.

use super::full_payload;
use plimsoll_testkit::world::World;
use serde_json::{Value, json};

fn run_wrapped(world: &World, command: &[&str]) -> plimsoll_testkit::world::FinishedProgram {
    let arguments: Vec<&str> = ["--wrap"].iter().chain(command).copied().collect();
    let program = plimsoll_testkit::find_or_build_bin_dir().join("plimsoll-statusline");
    world
        .command(program, &arguments)
        .stdin(full_payload(world).to_string())
        .env("NO_COLOR", "1")
        .env("TZ", "UTC")
        .run()
}

#[test]
fn a_wrapped_status_line_is_shown_unchanged_and_its_usage_recorded() {
    let world = World::new();
    let finished =
        run_wrapped(&world, &["printf 'theirs: '; grep -o '\"five_hour\"'; echo oops >&2; exit 0"]);
    assert_eq!((finished.code, finished.stdout.trim()), (Some(0), "theirs: \"five_hour\""), "{finished:?}");
    assert_eq!(finished.stderr.trim(), "oops");
    let id = full_payload(&world)["session_id"].as_str().unwrap().to_owned();
    let record = world.read_json(format!(".claude/plimsoll/sessions/{id}.status.json"));
    assert_eq!((&record["used"], &record["window"]), (&json!(30_010), &json!(200_000)));
    // The arguments of a program are passed on unchanged, and its exit code is returned.
    let finished = run_wrapped(&world, &["sh", "-c", "cat >/dev/null; echo \"$1\"; exit 7", "sh", "$HOME *"]);
    assert_eq!((finished.code, finished.stdout.trim()), (Some(7), "$HOME *"));
    let echoed_payload = run_wrapped(&world, &["cat"]);
    assert_eq!(serde_json::from_str::<Value>(&echoed_payload.stdout).unwrap(), full_payload(&world));
}

#[test]
fn our_line_replaces_a_wrapped_line_that_cannot_be_started() {
    let world = World::new();
    let line_and_error = |command: &[&str]| {
        let finished = run_wrapped(&world, command).expect_success();
        world.replace_varying_parts_with_placeholders(&format!(
            "{}\n{}",
            finished.stdout.trim_end(),
            finished.stderr
        ))
    };
    insta::assert_snapshot!(line_and_error(&["/no/such/line", "--fast"]), @r#"
    Haiku 4.5 │ project │ ⎇ main │ ▕███░░░░░░░░░░░┆░░┆░┃▏ 15% 30k/200k · 170k left │ 5h 42% ↻[TIME] │ 7d 7% ↻[TIME] │ spend 91% ↻[TIME] │ $1.50
    plimsoll-statusline: cannot start the status line ["/no/such/line", "--fast"]: No such file or directory (os error 2)
    "#);
    insta::assert_snapshot!(line_and_error(&[]), @"
    Haiku 4.5 │ project │ ⎇ main │ ▕███░░░░░░░░░░░┆░░┆░┃▏ 15% 30k/200k · 170k left │ 5h 42% ↻[TIME] │ 7d 7% ↻[TIME] │ spend 91% ↻[TIME] │ $1.50
    plimsoll-statusline: cannot start the status line []: no program is named
    ");
}
