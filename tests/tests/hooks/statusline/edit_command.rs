//! `plimsoll statusline edit` on a real terminal.

use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use serde_json::json;
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the status line that the screen shows, up to the limits, whose times depend on the clock.
fn previewed_line(screen: &str) -> &str {
    let line = screen.lines().nth(1).unwrap_or_default().trim_start_matches('│');
    line.split("5h ").next().unwrap_or_default()
}

#[test]
fn edit_writes_the_chosen_line_and_keeps_the_rest_of_the_file() {
    let mut world = World::new();
    // Just after midnight, so that the example's limit resets on the same day: the name of another day would make the
    // line longer and the bar shorter.
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs();
    world.set_env("TZ", format!("UTC+{}", seconds / 3600 % 24));
    world.write(
        ".claude/plimsoll.json",
        r#"{"levels": {"l1": 60}, "statusline": {"theme": "plain"}, "grace_batches": 3}"#,
    );
    let mut terminal = Terminal::start_program_in_project(
        &world,
        find_or_build_bin_dir().join("plimsoll"),
        &["statusline", "edit"],
        110,
        30,
    );
    let screen = terminal.wait_for_text("space show/hide");
    assert_eq!(
        previewed_line(&screen),
        "Opus 5.5 | project | @ main ?1 | [########..:...:.|] 43% - 537k left | ",
        "{screen}"
    );
    // The cursor is on the model: space hides it, and `t` selects the next theme.
    terminal.type_text(" t");
    let screen = terminal.wait_for_text("colour, dark");
    assert_eq!(
        previewed_line(&screen),
        "project │ ⎇ main ?1 │ ▕██████░┆░░┆┃▏ 43% 430k/1M · 537k left │ ",
        "{screen}"
    );
    terminal.type_text("s");
    terminal.wait_for_text("written");
    terminal.type_text("q");
    assert!(terminal.wait_for_exit().success());
    let lines = json!([[
        "directory",
        "git",
        "load",
        "run",
        "memory",
        "five_hour",
        "weekly",
        "spend",
        "cost",
        "health"
    ]]);
    let expected = json!({"levels": {"l1": 60}, "statusline": {"lines": lines}, "grace_batches": 3});
    assert_eq!(world.read_json(".claude/plimsoll.json"), expected);
}

#[test]
fn edit_refuses_to_start_without_a_terminal_or_with_broken_settings() {
    let world = World::new();
    let without_terminal = world.plimsoll(&["statusline", "edit"]).run();
    assert_eq!(without_terminal.code, Some(2));
    insta::assert_snapshot!(without_terminal.stderr, @r#"error: `statusline edit` needs a terminal: edit "statusline" in the settings by hand, and look with `plimsoll statusline explain`"#);
    world.write(".claude/plimsoll.json", "{ broken");
    let with_broken_settings = world.plimsoll(&["statusline", "edit"]).run();
    assert_eq!(with_broken_settings.code, Some(1));
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&with_broken_settings.stderr), @"
    error: settings [PROJECT]/.claude/plimsoll.json: key must be a string at line 1 column 3
    hint: correct the file; the whole file is ignored until it parses
    ");
    assert_eq!(world.read(".claude/plimsoll.json"), "{ broken");
}
