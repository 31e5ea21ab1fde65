//! `plimsoll stop` cancels a run, which cannot be resumed afterwards. On a terminal it asks first.

use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use plimsoll_tests::create_run;

const STATE: &str = ".claude/ralph-state.json";

fn run_on_terminal(world: &World, arguments: &[&str], answer: Option<&str>) -> (String, u32) {
    let mut terminal = Terminal::start_program_in_project(
        world,
        find_or_build_bin_dir().join("plimsoll"),
        arguments,
        120,
        20,
    );
    if let Some(answer) = answer {
        terminal.wait_for_text("[y/N]");
        terminal.type_text(answer);
        terminal.press_enter();
    }
    let code = terminal.wait_for_exit().exit_code();
    (String::from_utf8_lossy(&terminal.wait_for_exit_and_all_bytes()).into_owned(), code)
}

#[test]
fn stop_on_a_terminal_cancels_the_run_only_after_yes() {
    let mut world = World::new();
    world.set_env("NO_COLOR", "1");
    create_run(&world, "run-1", "s1");
    let screen_after_answer = |answer: &str| {
        let (screen, code) = run_on_terminal(&world, &["stop"], Some(answer));
        assert_eq!(code, 1, "{answer:?}: {screen}");
        assert_ne!(world.read_json(STATE)["status"], "cancelled", "{answer:?}");
        screen.replace('\r', "")
    };
    insta::assert_snapshot!(screen_after_answer("n"), @r#"
    Cancel the run "Dates" for good? It cannot be resumed; Ctrl-C in its own terminal pauses it. [y/N] n
    error: nothing was canceled
    "#);
    insta::assert_snapshot!(screen_after_answer(""), @r#"
    Cancel the run "Dates" for good? It cannot be resumed; Ctrl-C in its own terminal pauses it. [y/N] 
    error: nothing was canceled
    "#);
    insta::assert_snapshot!(screen_after_answer("\u{4}"), @r#"Cancel the run "Dates" for good? It cannot be resumed; Ctrl-C in its own terminal pauses it. [y/N] error: nothing was canceled"#);
    assert_eq!(run_on_terminal(&world, &["stop"], Some("y")).1, 0);
    assert_eq!(world.read_json(STATE)["status"], "cancelled");
    let (screen, code) = run_on_terminal(&world, &["stop"], None);
    assert_eq!(code, 0, "{screen}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&screen.replace('\r', "")), @r#"Canceled the run "Dates"."#);
}

#[test]
fn stop_asks_nothing_with_yes_or_without_a_terminal() {
    for is_terminal in [false, true] {
        let world = World::new();
        create_run(&world, "run-1", "s1");
        if is_terminal {
            assert_eq!(run_on_terminal(&world, &["stop", "--yes"], None).1, 0);
        } else {
            world.plimsoll(&["stop"]).stdin("").run().expect_success();
        }
        assert_eq!(world.read_json(STATE)["status"], "cancelled");
    }
}
