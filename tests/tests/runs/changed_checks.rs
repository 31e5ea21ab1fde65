//! A session that changes what checks its work: the end of the run and the status name it.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::story::{Turn, tick};
use plimsoll_testkit::world::World;
use plimsoll_tests::{ScriptedAgent, lines_with, run, world};
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
    let base = world.git(&["rev-parse", "HEAD"]);
    let without_base = |text: &str| text.replace(&base[..7], "[BASE]");
    let _model = ScriptedAgent::new(weakens).start(&mut world);
    let finished = run(&world, &["--verify", "sh check.sh"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    insta::assert_snapshot!(without_base(&finished.stderr), @"
    plimsoll: 1 file that checks the work changed in this run: check.sh (+1 -1)
    plimsoll: to see it: git diff [BASE] -- check.sh
    plimsoll: to see what happened: plimsoll report --open, or plimsoll log
    ");
    let words = "1 file that checks the work changed in this run: check.sh (+1 -1)";
    let status = world.plimsoll(&["status"]).run().expect_success().stdout;
    insta::assert_snapshot!(lines_with(&status, "check"), @"Checks       1 file that checks the work changed in this run: check.sh (+1 -1)");
    let status = world.plimsoll(&["status", "--json"]).run().json();
    let changed = json!([{"path": "check.sh", "added": 1, "removed": 1, "is_deleted": false}]);
    assert_eq!(status["changed_checks"], changed, "{status}");
    world.plimsoll(&["report", "-o", "report.html"]).run().expect_success();
    let report = world.read("report.html");
    assert!(report.contains(words) && report.contains("-- check.sh</code>"), "{report}");
    let line = finished.stderr.lines().find_map(|line| line.split_once("to see it: "));
    let (_, command) = line.expect("a command that shows the change");
    let shown = world.command("sh", &["-c", command]).run().expect_success().stdout;
    assert!(shown.contains("+exit 0"), "{shown}");
}

#[test]
fn a_run_that_changed_no_check_says_nothing_of_it() {
    let mut world = world_with_check();
    let _model = ScriptedAgent::new(|turn| match turn.step {
        0 => Step::bash(format!(
            "touch widget.txt && mkdir -p tests && echo new > tests/new.sh && {}",
            tick("Item one")
        )),
        _ => Step::text(format!("All done.\n\n{}", turn.promise)),
    })
    .start(&mut world);
    let finished = run(&world, &["--verify", "sh check.sh"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(!finished.stderr.contains("changed in this run"), "a new test is no weaker one: {finished:?}");
    assert_eq!(world.plimsoll(&["status", "--json"]).run().json()["changed_checks"], json!([]));
    world.plimsoll(&["report", "-o", "report.html"]).run().expect_success();
    assert!(!world.read("report.html").contains("changed in this run"));
}

/// With `--commit off` nothing commits what a session leaves.
#[test]
fn a_change_that_is_not_committed_is_named_and_that_of_workers_too() {
    let mut world = world_with_check();
    let _model = ScriptedAgent::new(weakens).start(&mut world);
    let finished = run(&world, &["--verify", "sh check.sh", "--commit", "off"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    insta::assert_snapshot!(lines_with(&finished.stderr, "changed in this run"), @"plimsoll: 1 file that checks the work changed in this run: check.sh (+1 -1)");

    let mut world = world_with_check();
    let _model = ScriptedAgent::new(|turn| match turn.step {
        0 => crate::workers::does(turn, "git rm -q check.sh"),
        _ => Step::text("Done."),
    })
    .start(&mut world);
    let finished = crate::workers::run(&world, &["2", "--verify", "! test -f check.sh || sh check.sh"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    insta::assert_snapshot!(lines_with(&finished.stderr, "changed in this run"), @"plimsoll: 1 file that checks the work changed in this run: check.sh (deleted, 1 line)");
    let status = world.plimsoll(&["status"]).run().expect_success().stdout;
    insta::assert_snapshot!(lines_with(&status, "changed in this run"), @"Checks       1 file that checks the work changed in this run: check.sh (deleted, 1 line)");
}
