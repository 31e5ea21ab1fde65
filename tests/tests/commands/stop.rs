//! `plimsoll stop` cancels for good: on a terminal it asks first.

use plimsoll_testkit::bin_dir;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use plimsoll_tests::put_run;

const STATE: &str = ".claude/ralph-state.json";

fn typed(world: &World, arguments: &[&str], answer: Option<&str>) -> (String, u32) {
    let mut terminal = Terminal::start(world, bin_dir().join("plimsoll"), arguments, 120, 20);
    if let Some(answer) = answer {
        terminal.wait_for("[y/N]");
        terminal.type_text(answer);
        terminal.press_enter();
    }
    let code = terminal.wait_exit().exit_code();
    (String::from_utf8_lossy(&terminal.all_received()).into_owned(), code)
}

#[test]
fn a_run_is_cancelled_for_good_only_after_yes() {
    let world = World::new();
    put_run(&world, "run-1", "s1");
    let refusal = |answer: &str| {
        let (screen, code) = typed(&world, &["stop"], Some(answer));
        assert_eq!(code, 1, "{answer:?}: {screen}");
        assert_ne!(world.json(STATE)["status"], "cancelled", "{answer:?}");
        screen.replace('\r', "")
    };
    insta::assert_snapshot!(refusal("n"), @r#"
    Cancel the run "Dates" for good? It cannot be resumed; Ctrl-C in its own terminal pauses it. [y/N] n
    plimsoll: nothing was cancelled
    "#);
    insta::assert_snapshot!(refusal(""), @r#"
    Cancel the run "Dates" for good? It cannot be resumed; Ctrl-C in its own terminal pauses it. [y/N] 
    plimsoll: nothing was cancelled
    "#);
    insta::assert_snapshot!(refusal("\u{4}"), @r#"Cancel the run "Dates" for good? It cannot be resumed; Ctrl-C in its own terminal pauses it. [y/N] plimsoll: nothing was cancelled"#);
    assert_eq!(typed(&world, &["stop"], Some("y")).1, 0);
    assert_eq!(world.json(STATE)["status"], "cancelled");
    let (screen, code) = typed(&world, &["stop"], None);
    assert_eq!(code, 0, "{screen}");
    insta::assert_snapshot!(world.stable_text(&screen.replace('\r', "")), @"RALPH_STOP|cancelled|");
}

#[test]
fn with_yes_and_without_a_terminal_nobody_is_asked() {
    for is_terminal in [false, true] {
        let world = World::new();
        put_run(&world, "run-1", "s1");
        if is_terminal {
            assert_eq!(typed(&world, &["stop", "--yes"], None).1, 0);
        } else {
            world.plimsoll(&["stop"]).stdin("").run().expect_success();
        }
        assert_eq!(world.json(STATE)["status"], "cancelled");
    }
}
