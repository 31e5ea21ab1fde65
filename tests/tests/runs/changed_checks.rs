//! A session changes the checks of its work: the end of the run and its status name the change.

use plimsoll_testkit::scripted_agent::{AgentTurn, tick_item_command};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use plimsoll_tests::{ScriptedAgent, lines_containing, run_with_objective, world_with_plan_and_dates};
use serde_json::json;

const ONE_ITEM_PLAN: &str = "# Plan\n\n- [ ] Item one\n";
/// Fails until the work is done.
const CHECK_SCRIPT: &str = "test -f widget.txt || { echo 'the widget is missing'; exit 3; }\n";

fn world_with_check() -> World {
    let world = world_with_plan_and_dates(ONE_ITEM_PLAN);
    world.write("check.sh", CHECK_SCRIPT);
    world.git(&["add", "check.sh"]);
    world.git(&["commit", "-qm", "Add a check"]);
    world
}

/// Overwrites the check, ticks the item and promises completion.
fn weaken_check_agent(turn: &AgentTurn<'_>) -> Step {
    match turn.assistant_message_count {
        0 => Step::bash_call(format!("echo 'exit 0' > check.sh && {}", tick_item_command("Item one"))),
        _ => Step::from_text(format!("All done.\n\n{}", turn.promise_line)),
    }
}

#[test]
fn run_end_status_and_report_name_the_checks_that_the_run_changed() {
    let mut world = world_with_check();
    let base = world.git(&["rev-parse", "HEAD"]);
    let mask_base_commit = |text: &str| text.replace(&base[..7], "[BASE]");
    let _model = ScriptedAgent::new(weaken_check_agent).start(&mut world);
    let finished = run_with_objective(&world, &["--verify", "sh check.sh"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    insta::assert_snapshot!(mask_base_commit(&finished.stderr), @"
    warning: 1 file that checks the work changed in this run: check.sh (+1 -1)
    hint: to see it: git diff [BASE] -- check.sh
    hint: to see what happened: plimsoll report --open, or plimsoll log
    ");
    let message = "1 file that checks the work changed in this run: check.sh (+1 -1)";
    let status = world.plimsoll(&["status"]).run().expect_success().stdout;
    insta::assert_snapshot!(lines_containing(&status, "check"), @"Checks       1 file that checks the work changed in this run: check.sh (+1 -1)");
    let status = world.plimsoll(&["status", "--json"]).run().stdout_json();
    let expected = json!([{"path": "check.sh", "added": 1, "removed": 1, "is_deleted": false}]);
    assert_eq!(status["changed_checks"], expected, "{status}");
    world.plimsoll(&["report", "-o", "report.html"]).run().expect_success();
    let report = world.read("report.html");
    assert!(report.contains(message) && report.contains("-- check.sh</code>"), "{report}");
    let command_line = finished.stderr.lines().find_map(|line| line.split_once("to see it: "));
    let (_, command) = command_line.expect("a command that shows the change");
    let diff = world.command("sh", &["-c", command]).run().expect_success().stdout;
    assert!(diff.contains("+exit 0"), "{diff}");
}

#[test]
fn a_run_that_changed_no_check_reports_no_changed_check() {
    let mut world = world_with_check();
    let _model = ScriptedAgent::new(|turn| match turn.assistant_message_count {
        0 => Step::bash_call(format!(
            "touch widget.txt && mkdir -p tests && echo new > tests/new.sh && {}",
            tick_item_command("Item one")
        )),
        _ => Step::from_text(format!("All done.\n\n{}", turn.promise_line)),
    })
    .start(&mut world);
    let finished = run_with_objective(&world, &["--verify", "sh check.sh"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(!finished.stderr.contains("changed in this run"), "a new test is no weaker one: {finished:?}");
    assert_eq!(world.plimsoll(&["status", "--json"]).run().stdout_json()["changed_checks"], json!([]));
    world.plimsoll(&["report", "-o", "report.html"]).run().expect_success();
    assert!(!world.read("report.html").contains("changed in this run"));
}

/// With `--commit off` nothing commits the changes that a session leaves.
#[test]
fn changes_to_checks_are_named_if_uncommitted_or_made_by_workers() {
    let mut world = world_with_check();
    let _model = ScriptedAgent::new(weaken_check_agent).start(&mut world);
    let finished = run_with_objective(&world, &["--verify", "sh check.sh", "--commit", "off"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    insta::assert_snapshot!(lines_containing(&finished.stderr, "changed in this run"), @"warning: 1 file that checks the work changed in this run: check.sh (+1 -1)");

    let mut world = world_with_check();
    let _model = ScriptedAgent::new(|turn| match turn.assistant_message_count {
        0 => crate::workers::do_item_step(turn, "git rm -q check.sh"),
        _ => Step::from_text("Done."),
    })
    .start(&mut world);
    let finished =
        crate::workers::run_with_workers(&world, &["2", "--verify", "! test -f check.sh || sh check.sh"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    insta::assert_snapshot!(lines_containing(&finished.stderr, "changed in this run"), @"warning: 1 file that checks the work changed in this run: check.sh (deleted, 1 line)");
    let status = world.plimsoll(&["status"]).run().expect_success().stdout;
    insta::assert_snapshot!(lines_containing(&status, "changed in this run"), @"Checks       1 file that checks the work changed in this run: check.sh (deleted, 1 line)");
}
