//! How many sessions a parallel run needs: no more if a session forgets the promise, and only a few more if all items
//! write to one file.

use crate::workers::{do_item_step, item_number, read_merged_file, run_with_workers, sent_back_reasons};
use plimsoll_testkit::scripted_agent::AgentTurn;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::World;
use plimsoll_tests::{
    ScriptedAgent, events_named, first_request_of_iteration, read_journal, run_cases_in_parallel,
    world_with_plan_and_dates,
};
use std::time::Duration;

/// Returns a plan with this number of items.
fn plan_with_items(item_count: usize) -> String {
    let lines: String = (1..=item_count).map(|number| format!("- [ ] Item {number}\n")).collect();
    format!("# Plan\n\n{lines}")
}

/// Returns the number of sessions that the model served: each sends two requests.
fn session_count(model: &ScriptedModel) -> usize {
    model.main_requests().len() / 2
}

/// Ticks its item, commits, and ends its turn as step 4 of the prompt says.
fn tick_without_promise_step(turn: &AgentTurn<'_>) -> Step {
    let item = turn.item_text.clone().unwrap_or_default();
    match turn.assistant_message_count {
        0 => do_item_step(turn, &format!("mkdir -p done && echo '{item}' > done/{}.txt", item_number(&item))),
        _ => Step::from_text("The item is done and committed."),
    }
}

#[test]
fn a_ticked_item_is_merged_after_one_session_without_a_promise() {
    run_cases_in_parallel(&[&["3"][..], &["3", "--verify", "test -d src"]], |arguments| {
        let mut world = world_with_plan_and_dates(&plan_with_items(4));
        let model = ScriptedAgent::new(tick_without_promise_step).start(&mut world);
        let finished = run_with_workers(&world, arguments);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_eq!(session_count(&model), 4, "{finished:?}");
        assert!(sent_back_reasons(&world).is_empty(), "{finished:?}");
        let plan = read_merged_file(&world, "fix_plan.md");
        assert_eq!(plan.matches("- [x]").count(), 4, "{plan}");
        // The commit of the work also has the tick, so reverting it reverts both.
        let subjects =
            world.git(&["log", "--format=%s", &format!("main..{}", crate::workers::target_branch(&world))]);
        let mut subjects: Vec<&str> = subjects.lines().collect();
        subjects.sort_unstable();
        assert_eq!(subjects, ["Finish Item 1", "Finish Item 2", "Finish Item 3", "Finish Item 4"]);
        assert!(!first_request_of_iteration(&model, 1).contains("<promise>COMPLETE"));
    });
}

/// A busy machine answers late, and hooks wait only five seconds for git.
#[test]
fn an_answer_of_git_that_comes_late_is_not_taken_for_a_missing_branch() {
    let mut world = world_with_plan_and_dates(&plan_with_items(2));
    let model = ScriptedAgent::new(tick_without_promise_step).start(&mut world);
    let env = world.env_with_programs_on_path();
    let (_, search_path) = env.iter().find(|(name, _)| name == "PATH").expect("a search path");
    // The merge worktree is checked out just before the first item is claimed.
    let script = format!(
        "#!/bin/sh
export PATH='{search_path}'
case \"$*\" in
*checkout*--detach*) (cd '{home}' && : > ready) ;;
*rev-parse*refs/heads/plimsoll/*) (cd '{home}' && test -e ready && mkdir delayed 2> /dev/null) && sleep 6 ;;
esac
exec git \"$@\"
",
        home = world.home().display()
    );
    let program = world.write_program(world.home().join("programs/git"), &script);
    world.set_env("PATH", format!("{}:{search_path}", program.parent().expect("its folder").display()));
    let finished = run_with_workers(&world, &["2"]);
    assert!(world.home().join("delayed").exists(), "git was asked for the branch");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(!finished.stdout.contains("no longer exists"), "{finished:?}");
    assert_eq!(session_count(&model), 2, "{finished:?}");
}

#[test]
fn with_strict_promise_a_worker_must_give_the_promise() {
    let mut world = world_with_plan_and_dates(&plan_with_items(2));
    let model = ScriptedAgent::new(|turn| match turn.iteration {
        1 => tick_without_promise_step(turn),
        _ => Step::from_text(turn.promise_line.clone()),
    })
    .start(&mut world);
    let finished = run_with_workers(&world, &["2", "--verify", "true", "--strict-promise"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let prompt = first_request_of_iteration(&model, 1);
    assert!(prompt.contains("\n<promise>COMPLETE "), "{prompt}");
    assert_eq!(model.main_requests().len(), 2 * 2 + 2, "each item has a second session: {finished:?}");
}

/// Adds a line for the item to the end of one file, as to a changelog.
fn append_to_changelog_step(turn: &AgentTurn<'_>) -> Step {
    let item = turn.item_text.clone().unwrap_or_default();
    // Slow enough that all sessions that start together work at the same time.
    let response_delay = Duration::from_millis(if turn.assistant_message_count == 0 { 1_500 } else { 0 });
    match turn.assistant_message_count {
        0 => do_item_step(turn, &format!("echo '- {item}' >> CHANGELOG.md")),
        _ => Step::from_text("The item is done and committed."),
    }
    .with_delay(response_delay)
}

#[test]
fn twelve_items_that_append_to_one_file_need_few_extra_sessions() {
    let mut world: World = world_with_plan_and_dates(&plan_with_items(12));
    world.write("CHANGELOG.md", "# Changelog\n");
    world.git(&["add", "CHANGELOG.md"]);
    world.git(&["commit", "-qm", "Begin a changelog"]);
    let model = ScriptedAgent::new(append_to_changelog_step).start(&mut world);
    let finished = run_with_workers(&world, &["4"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let changelog = read_merged_file(&world, "CHANGELOG.md");
    for number in 1..=12 {
        let line = format!("- Item {number}");
        assert_eq!(changelog.lines().filter(|known| *known == line).count(), 1, "{line}: {changelog}");
    }
    let sessions = session_count(&model);
    assert!((12..=18).contains(&sessions), "{sessions} sessions: {finished:?}");
    let journal = read_journal(&world);
    let sent_back = events_named(&journal, "sent_back");
    assert!(!sent_back.is_empty(), "without a conflict this test sees nothing: {finished:?}");
    assert!(sent_back.iter().all(|event| event["is_set_aside"] != true), "{sent_back:?}");
}
