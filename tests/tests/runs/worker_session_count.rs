//! How many sessions a parallel run needs: none more where a session forgets the promise, and few more where all items write
//! one file.

use crate::workers::{does, merged, number, reasons, run};
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::story::Turn;
use plimsoll_testkit::world::World;
use plimsoll_tests::{ScriptedAgent, events, first_request_of, journal, side_by_side, world};
use std::time::Duration;

/// A plan with this number of items.
fn plan_of(items: usize) -> String {
    let lines: String = (1..=items).map(|number| format!("- [ ] Item {number}\n")).collect();
    format!("# Plan\n\n{lines}")
}

/// The number of sessions that a model saw: each asks it twice.
fn session_count(model: &ScriptedModel) -> usize {
    model.main_requests().len() / 2
}

/// Ticks its item, commits, and ends its turn as step 4 of its prompt says.
fn without_promise(turn: &Turn<'_>) -> Step {
    let item = turn.item.clone().unwrap_or_default();
    match turn.step {
        0 => does(turn, &format!("mkdir -p done && echo '{item}' > done/{}.txt", number(&item))),
        _ => Step::text("The item is done and committed."),
    }
}

#[test]
fn a_ticked_item_is_merged_after_one_session_with_or_without_verify_commands() {
    side_by_side(&[&["3"][..], &["3", "--verify", "test -d src"]], |arguments| {
        let mut world = world(&plan_of(4));
        let model = ScriptedAgent::new(without_promise).start(&mut world);
        let finished = run(&world, arguments);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_eq!(session_count(&model), 4, "{finished:?}");
        assert!(reasons(&world).is_empty(), "{finished:?}");
        let plan = merged(&world, "fix_plan.md");
        assert_eq!(plan.matches("- [x]").count(), 4, "{plan}");
        // The commit of the work has the tick, too, so reverting it reverts both.
        let subjects =
            world.git(&["log", "--format=%s", &format!("main..{}", crate::workers::target(&world))]);
        let mut subjects: Vec<&str> = subjects.lines().collect();
        subjects.sort_unstable();
        assert_eq!(subjects, ["Finish Item 1", "Finish Item 2", "Finish Item 3", "Finish Item 4"]);
        assert!(!first_request_of(&model, 1).contains("<promise>COMPLETE"));
    });
}

#[test]
fn with_strict_promise_a_worker_needs_the_line() {
    let mut world = world(&plan_of(2));
    let model = ScriptedAgent::new(|turn| match turn.iteration {
        1 => without_promise(turn),
        _ => Step::text(turn.promise.clone()),
    })
    .start(&mut world);
    let finished = run(&world, &["2", "--verify", "true", "--strict-promise"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let asked = first_request_of(&model, 1);
    assert!(asked.contains("\n<promise>COMPLETE "), "{asked}");
    assert_eq!(model.main_requests().len(), 2 * 2 + 2, "each item has a second session: {finished:?}");
}

/// Every item adds a line to the end of one file, as to a changelog.
fn appends(turn: &Turn<'_>) -> Step {
    let item = turn.item.clone().unwrap_or_default();
    // All that begin together are at work at once.
    let answer_time = Duration::from_millis(if turn.step == 0 { 1_500 } else { 0 });
    match turn.step {
        0 => does(turn, &format!("echo '- {item}' >> CHANGELOG.md")),
        _ => Step::text("The item is done and committed."),
    }
    .delay(answer_time)
}

#[test]
fn twelve_items_that_append_to_one_file_are_merged_with_few_more_sessions() {
    let mut world: World = world(&plan_of(12));
    world.write("CHANGELOG.md", "# Changelog\n");
    world.git(&["add", "CHANGELOG.md"]);
    world.git(&["commit", "-qm", "Begin a changelog"]);
    let model = ScriptedAgent::new(appends).start(&mut world);
    let finished = run(&world, &["4"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let changelog = merged(&world, "CHANGELOG.md");
    for number in 1..=12 {
        let line = format!("- Item {number}");
        assert_eq!(changelog.lines().filter(|known| *known == line).count(), 1, "{line}: {changelog}");
    }
    let sessions = session_count(&model);
    assert!((12..=18).contains(&sessions), "{sessions} sessions: {finished:?}");
    let journal = journal(&world);
    let sent_back = events(&journal, "sent_back");
    assert!(!sent_back.is_empty(), "without a conflict this test sees nothing: {finished:?}");
    assert!(sent_back.iter().all(|event| event["is_set_aside"] != true), "{sent_back:?}");
}
