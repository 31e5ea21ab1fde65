//! `plimsoll statusline edit` on a real terminal.

use plimsoll_testkit::bin_dir;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use serde_json::json;

/// Returns the status line that the screen shows, up to the limits, whose times depend on the clock.
fn preview(screen: &str) -> &str {
    let line = screen.lines().nth(1).unwrap_or_default().trim_start_matches('│');
    line.split("5h ").next().unwrap_or_default()
}

#[test]
fn what_is_chosen_on_the_screen_is_written_and_everything_else_in_the_file_stays() {
    let world = World::new();
    world.write(
        ".claude/plimsoll.json",
        r#"{"levels": {"l1": 60}, "statusline": {"theme": "plain"}, "grace_batches": 3}"#,
    );
    let mut terminal = Terminal::start(&world, bin_dir().join("plimsoll"), &["statusline", "edit"], 110, 30);
    let screen = terminal.wait_for("space show/hide");
    assert_eq!(
        preview(&screen),
        "Opus 5.5 | project | @ main ?1 | [########..:...:.|] 43% - 537k left | ",
        "{screen}"
    );
    // The cursor stands on the model: it goes, and the theme becomes the next one.
    terminal.type_text(" t");
    let screen = terminal.wait_for("colour, dark");
    assert_eq!(
        preview(&screen),
        "project │ ⎇ main ?1 │ ▕██████░┆░░┆┃▏ 43% 430k/1M · 537k left │ ",
        "{screen}"
    );
    terminal.type_text("s");
    terminal.wait_for("written");
    terminal.type_text("q");
    assert!(terminal.wait_exit().success());
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
    assert_eq!(world.json(".claude/plimsoll.json"), expected);
}

#[test]
fn it_refuses_what_it_could_not_give_back() {
    let world = World::new();
    let without = world.plimsoll(&["statusline", "edit"]).run();
    assert_eq!(without.code, Some(2));
    insta::assert_snapshot!(without.stderr, @r#"plimsoll: `statusline edit` needs a terminal: edit "statusline" in the settings by hand, and look with `plimsoll statusline explain`"#);
    world.write(".claude/plimsoll.json", "{ broken");
    let broken = world.plimsoll(&["statusline", "edit"]).run();
    assert_eq!(broken.code, Some(1));
    insta::assert_snapshot!(world.stable_text(&broken.stderr), @"
    plimsoll: settings [PROJECT]/.claude/plimsoll.json: key must be a string at line 1 column 3
    hint: correct the file; until then all of it is ignored
    ");
    assert_eq!(world.read(".claude/plimsoll.json"), "{ broken");
}
