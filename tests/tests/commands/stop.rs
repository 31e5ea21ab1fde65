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
    for answer in ["", "n", "\u{4}"] {
        let (screen, code) = typed(&world, &["stop"], Some(answer));
        assert!(code == 1 && screen.contains("nothing was cancelled"), "{answer:?}: {code} {screen}");
        for words in ["Cancel the run \"Dates\" for good", "cannot be resumed", "Ctrl-C"] {
            assert!(screen.contains(words), "{words}: {screen}");
        }
        assert_ne!(world.json(STATE)["status"], "cancelled", "{answer:?}");
    }
    assert_eq!(typed(&world, &["stop"], Some("y")).1, 0);
    assert_eq!(world.json(STATE)["status"], "cancelled");
    let (screen, code) = typed(&world, &["stop"], None);
    assert!(code == 0 && !screen.contains("[y/N]"), "there is nothing left to ask: {screen}");
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
