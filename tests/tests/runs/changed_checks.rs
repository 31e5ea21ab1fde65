//! A session that changes what checks its work: the end of the run names it, and what is protected takes the tick back.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::story::{Turn, tick};
use plimsoll_testkit::world::World;
use plimsoll_tests::{events, first_request_of, journal, run, start, world};
use serde_json::json;

const ONE: &str = "# Plan\n\n- [ ] Item one\n";
/// Fails until the work is done.
const CHECK: &str = "test -f widget.txt || { echo 'the widget is missing'; exit 3; }\n";

fn world_with_check() -> World {
    let world = world(ONE);
    world.write("check.sh", CHECK);
    world.git(&["add", "check.sh"]);
    world.git(&["commit", "-qm", "Add a check"]);
    world
}

/// Overwrites the check, ticks, and promises.
fn weakens(turn: &Turn<'_>) -> Step {
    match turn.step {
        0 => Step::bash(format!("echo 'exit 0' > check.sh && {}", tick("Item one"))),
        _ => Step::text(format!("All done.\n\n{}", turn.promise)),
    }
}

#[test]
fn the_end_and_the_status_name_checks_that_the_run_changed() {
    let mut world = world_with_check();
    let _model = start(&mut world, weakens);
    let finished = run(&world, &["--verify", "sh check.sh"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let words = "1 file that checks the work changed in this run: check.sh (+1 -1)";
    assert!(finished.stderr.contains(words), "{finished:?}");
    let status = world.plimsoll(&["status"]).run().expect_success().stdout;
    assert!(status.contains(words), "{status}");
    let line = finished.stderr.lines().find_map(|line| line.split_once("to see it: "));
    let (_, command) = line.expect("a command that shows the change");
    let shown = world.command("sh", &["-c", command]).run().expect_success().stdout;
    assert!(shown.contains("+exit 0"), "{shown}");
}

#[test]
fn a_run_that_changed_no_check_says_nothing_of_it() {
    let mut world = world_with_check();
    let _model = start(&mut world, |turn| match turn.step {
        0 => Step::bash(format!(
            "touch widget.txt && mkdir -p tests && echo new > tests/new.sh && {}",
            tick("Item one")
        )),
        _ => Step::text(format!("All done.\n\n{}", turn.promise)),
    });
    let finished = run(&world, &["--verify", "sh check.sh"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(!finished.stderr.contains("changed in this run"), "a new test is no weaker one: {finished:?}");
}

/// The first session changes the check; the second puts it back and does the work.
fn learns(turn: &Turn<'_>) -> Step {
    let begin = "git checkout -q HEAD~1 -- check.sh 2>/dev/null; git checkout -q $(git log --format=%H -n1 --grep='Add a check') -- check.sh";
    match (turn.iteration, turn.step) {
        (1, _) => weakens(turn),
        (2, 0) => Step::bash(format!(
            "{begin}; touch widget.txt; git add -A; git commit -qm 'Do it'; {}",
            tick("Item one")
        )),
        _ => Step::text(format!("All done.\n\n{}", turn.promise)),
    }
}

#[test]
fn a_tick_of_a_session_that_changed_a_protected_file_is_taken_back() {
    for is_in_settings in [false, true] {
        let mut world = world_with_check();
        let model = start(&mut world, learns);
        let protect: &[&str] = if is_in_settings {
            world.write_user_settings(&json!({"protect": ["check.sh"]}));
            &[]
        } else {
            &["--protect", "./check.sh"]
        };
        let finished =
            run(&world, &[&["--verify", "sh check.sh", "--max-iterations", "3"], protect].concat());
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let journal = journal(&world);
        let taken = events(&journal, "ticks_taken_back");
        assert_eq!((taken.len(), &taken[0]["protected"]), (1, &json!(["check.sh"])), "{taken:?}");
        assert!(finished.stdout.contains("the run changed what is protected: check.sh"), "{finished:?}");
        let first = first_request_of(&model, 1);
        assert!(first.contains("Do not change `") && first.contains("check.sh`: the run takes"), "{first}");
        let second = first_request_of(&model, 2);
        assert!(second.contains("Put them back as they were (`git checkout "), "{second}");
        assert_eq!(world.read("check.sh"), CHECK);
        assert!(!finished.stderr.contains("changed in this run"), "{finished:?}");
    }
}

/// What a project's own file says of it is ignored, and a folder protects all that is in it.
#[test]
fn a_projects_file_protects_nothing_and_a_folder_protects_its_files() {
    let mut world = world_with_check();
    world.write(".claude/plimsoll.json", r#"{"protect": ["check.sh"]}"#);
    let _model = start(&mut world, |turn| match turn.step {
        0 => Step::bash(format!("echo 'exit 0' > check.sh; touch src/new.txt; {}", tick("Item one"))),
        _ => Step::text(format!("All done.\n\n{}", turn.promise)),
    });
    let finished = run(&world, &["--protect", "src", "--max-iterations", "1"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let journal = journal(&world);
    assert_eq!(events(&journal, "ticks_taken_back")[0]["protected"], json!(["src/new.txt"]));
}

#[test]
fn workers_obey_protected_files_and_the_end_names_changed_checks() {
    let mut world = world_with_check();
    let _model = start(&mut world, |turn| match (turn.step, turn.saw("## Ticks were taken back")) {
        (0, false) => crate::workers::does(turn, "echo 'exit 0' > check.sh; echo '# more' >> tests.sh"),
        (0, true) => crate::workers::does(turn, "git checkout -q main -- check.sh"),
        _ => Step::text("Done."),
    });
    let finished = crate::workers::run(&world, &["2", "--protect", "check.sh"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let target = crate::workers::target(&world);
    assert_eq!(world.git(&["show", &format!("{target}:check.sh")]), CHECK.trim_end());
}
