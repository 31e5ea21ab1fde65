//! `plimsoll statusline edit` on a real terminal.

use plimsoll_testkit::bin_dir;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use serde_json::json;

#[test]
fn what_is_chosen_on_the_screen_is_written_and_everything_else_in_the_file_stays() {
    let world = World::new();
    world.write(
        ".claude/plimsoll.json",
        r#"{"levels": {"l1": 60}, "statusline": {"theme": "plain"}, "grace_batches": 3}"#,
    );
    let mut terminal = Terminal::start(&world, bin_dir().join("plimsoll"), &["statusline", "edit"], 110, 30);
    let screen = terminal.wait_for("space show/hide");
    assert!(screen.contains("Opus 5.5 | project | @ main"), "the line is before one's eyes: {screen}");
    // The cursor stands on the model: it goes, and the theme becomes the next one.
    terminal.type_text(" t");
    let screen = terminal.wait_for("colour, dark");
    assert!(screen.contains("project │ ⎇ main"), "{screen}");
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
    assert!(without.stderr.contains("needs a terminal"), "{}", without.stderr);
    world.write(".claude/plimsoll.json", "{ broken");
    let broken = world.plimsoll(&["statusline", "edit"]).run();
    assert_eq!(broken.code, Some(1));
    assert!(broken.stderr.contains("plimsoll.json"), "{}", broken.stderr);
    assert_eq!(world.read(".claude/plimsoll.json"), "{ broken");
}
