//! What a session of `run --workers` writes into its copy of the plan: it blocks no item, none of its notes is lost,
//! and none of its ticks counts.

use crate::workers::{
    RUN_TIMEOUT, TWO_ITEM_PLAN, assert_only_attempts_left, do_item_step, item_number,
    kill_run_at_git_command, read_merged_file, resume_run, run_with_workers, sent_back_reasons,
    start_with_workers, target_branch,
};
use plimsoll_testkit::scripted_agent::AgentTurn;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use plimsoll_tests::{
    ScriptedAgent, events_named, read_journal, run_cases_in_parallel, world_with_plan_and_dates,
};
use std::time::Duration;

/// The plan that the run shows while git tracks the user's.
const SHOWN_PLAN_PATH: &str = ".claude/plimsoll/plan.md";
/// The tracked plan after both items: ticks by the merger alone, each note once, and the new item as a note.
const EXPECTED_PLAN: &str = "# Plan\n\n- [x] Item 1\n  > port 8011\n  > new item: New of 1\n  > from 2 to 1\n- [x] Item 2\n  > from 1 to 2\n  > port 8022\n  > new item: New of 2";

/// Returns a command that ticks every item in a copy of the plan, writes notes below the session's own item and below
/// the other one, and adds an item.
fn edit_plan_command(item: &str, plan_path: &str) -> String {
    let own_number = item_number(item);
    let other_number = if own_number == "1" { "2" } else { "1" };
    format!(
        "sed -i 's/^- \\[ \\] Item/- [x] Item/; /Item {own_number}/a\\  > port 80{own_number}{own_number}' {plan_path} && \
         sed -i '/Item {other_number}/a\\  > from {own_number} to {other_number}' {plan_path} && echo '- [ ] New of {own_number}' >> {plan_path}"
    )
}

/// How a session treats its copy of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlanEdit {
    /// Commits it with `git add -A` together with its work.
    Committed,
    /// Edits it after its last commit, with text that looks like a secret, so that nobody commits it.
    Uncommitted,
    /// Deletes the file and commits that.
    Removed,
}

/// Both items write the same line, so the second to finish is sent back.
fn conflicting_item_step(turn: &AgentTurn<'_>, edit: PlanEdit, plan_path: &str) -> Step {
    let Some(item) = turn.item_text.clone() else {
        return Step::from_text(format!("All done.\n\n{}", turn.promise_line));
    };
    let was_refused = turn.request_contains("## Earlier work on this item was sent back");
    let work = match was_refused {
        true => format!("echo '{item}' >> src/dates.txt"),
        false => format!("sed -i '1s/.*/{item}/' src/dates.txt"),
    };
    let command = match edit {
        PlanEdit::Committed => format!("{work} && {}", edit_plan_command(&item, plan_path)),
        PlanEdit::Removed => format!("{work} && git rm -qf {plan_path}"),
        PlanEdit::Uncommitted => format!("{work} && git add -A && git commit -qm Work"),
    };
    let is_slow = turn.assistant_message_count == 0 && !was_refused && item_number(&item) == "1";
    let delay = Duration::from_secs(if is_slow { 3 } else { 0 });
    match (edit, turn.assistant_message_count) {
        (PlanEdit::Uncommitted, 0) => {
            let secret = "sed -i '/port/a\\  > the key is AKIA2OGYBAH6STMMNXNN'";
            let tick = format!("sed -i 's/^- \\[ \\] {item}$/- [x] {item}/' plimsoll-item.md");
            Step::bash_call(format!(
                "{command} && {} && {secret} {plan_path} && {tick}",
                edit_plan_command(&item, plan_path)
            ))
            .with_input_tokens(30_000)
            .with_delay(delay)
        }
        _ => do_item_step(turn, &command).with_delay(delay),
    }
}

/// Returns a world with a tracked plan at this path.
fn world_with_tracked_plan(plan_path: &str) -> World {
    let world = world_with_plan_and_dates(if plan_path == "fix_plan.md" { TWO_ITEM_PLAN } else { "" });
    if plan_path != "fix_plan.md" {
        world.write(plan_path, TWO_ITEM_PLAN);
        world.git(&["add", "-A"]);
        world.git(&["commit", "-qm", "Plan"]);
    }
    world
}

/// Asserts that no commit changes more in the plan than the merger does: ticks, and notes below items.
fn assert_only_ticks_change(world: &World, plan_path: &str) {
    let range = format!("main..{}", target_branch(world));
    let changes = world.git(&["log", "--format=", "-p", "-U0", &range, "--", plan_path]);
    let is_header = |line: &&str| line.starts_with("+++ ") || line.starts_with("--- ");
    let changed = changes.lines().filter(|line| line.starts_with(['+', '-']) && !is_header(line));
    let other_changes: Vec<&str> = changed
        .filter(|line| !["-- [ ] ", "+- [x] ", "+  > "].iter().any(|start| line.starts_with(start)))
        .collect();
    assert!(other_changes.is_empty() && !changes.is_empty(), "{changes}");
}

fn assert_both_sides_are_merged(world: &World) {
    let dates = read_merged_file(world, "src/dates.txt");
    for item in ["Item 1", "Item 2"] {
        assert_eq!(dates.lines().filter(|line| *line == item).count(), 1, "{item} in {dates}");
    }
}

#[test]
fn edits_of_the_tracked_plan_block_no_item_and_keep_their_notes() {
    let cases = [
        (PlanEdit::Committed, "fix_plan.md"),
        (PlanEdit::Removed, "fix_plan.md"),
        (PlanEdit::Uncommitted, "docs/my plan.md"),
    ];
    run_cases_in_parallel(&cases, |(edit, plan)| {
        let (edit, plan) = (*edit, *plan);
        let mut world = world_with_tracked_plan(plan);
        let quoted = format!("'{plan}'");
        let _model =
            ScriptedAgent::new(move |turn| conflicting_item_step(turn, edit, &quoted)).start(&mut world);
        // Users also write the path like this.
        let named = format!("./{plan}");
        let finished =
            run_with_workers(&world, &["2", "--todo", if plan == "fix_plan.md" { plan } else { &named }]);
        assert_eq!(finished.code, Some(0), "{edit:?} {plan}: {finished:?}");
        let reasons = sent_back_reasons(&world);
        assert!(
            reasons.len() == 1 && reasons[0].starts_with("merge conflict in src/dates.txt (its commits: "),
            "{edit:?} {plan}: {reasons:?} {finished:?}"
        );
        assert_both_sides_are_merged(&world);
        let text = read_merged_file(&world, plan);
        match edit {
            PlanEdit::Removed => assert_eq!(text, "# Plan\n\n- [x] Item 1\n- [x] Item 2"),
            PlanEdit::Committed => assert_same_notes(&text, EXPECTED_PLAN),
            PlanEdit::Uncommitted => {
                assert!(!text.contains("AKIA2OGYBAH6STMMNXNN"), "{text}");
                assert_same_notes(&without_lines(&text, "the key is"), EXPECTED_PLAN);
            }
        }
        assert_only_ticks_change(&world, plan);
        assert_one_attempt_is_left(&world);
        assert_eq!(world.git(&["status", "--porcelain"]), "", "{edit:?} {plan}");
    });
}

/// Asserts that only the attempt that was sent back is left: it is kept because the attempt that replaced it may have
/// lost a line.
fn assert_one_attempt_is_left(world: &World) {
    let entries = read_journal(world);
    let sent_back = events_named(&entries, "sent_back")[0]["item"].as_str().expect("an item").to_owned();
    assert_only_attempts_left(world, &[&format!("{}/1", item_number(&sent_back))]);
}

fn without_lines(text: &str, word: &str) -> String {
    text.lines().filter(|line| !line.contains(word)).collect::<Vec<_>>().join("\n")
}

/// Asserts that the same lines stand below each item. The order of the notes depends on which session ends first.
fn assert_same_notes(text: &str, expected: &str) {
    let sorted = |text: &str| {
        let parts = text.split("\n- ").map(|part| {
            let (first, notes) = part.split_once('\n').unwrap_or((part, ""));
            let mut notes: Vec<&str> = notes.lines().collect();
            notes.sort_unstable();
            format!("{first}\n{}", notes.join("\n"))
        });
        parts.collect::<Vec<_>>().join("\n- ")
    };
    assert_eq!(sorted(text), sorted(expected), "{text}");
}

#[test]
fn a_kill_while_plan_edits_are_removed_from_the_work_loses_no_note() {
    let kill_points = [
        ("*' checkout --quiet --ignore-skip-worktree-bits '*", PlanEdit::Uncommitted, true),
        ("*' hash-object -t commit '*", PlanEdit::Committed, true),
    ];
    run_cases_in_parallel(&kill_points, |(pattern, edit, is_after)| {
        let edit = *edit;
        let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
        let _model = ScriptedAgent::new(move |turn| conflicting_item_step(turn, edit, "fix_plan.md"))
            .start(&mut world);
        kill_run_at_git_command(&mut world, pattern, 1, *is_after);
        let running = start_with_workers(&world, &["2"]);
        world.write(world.home().join("run.pid"), &running.pid().to_string());
        let killed = running.wait_or_kill_and_panic(RUN_TIMEOUT);
        assert_eq!(killed.code, None, "{pattern}: {killed:?}");
        let finished = resume_run(&world);
        assert_eq!(finished.code, Some(0), "{pattern}: {finished:?}");
        assert_both_sides_are_merged(&world);
        assert_same_notes(
            &without_lines(&read_merged_file(&world, "fix_plan.md"), "the key is"),
            EXPECTED_PLAN,
        );
        assert_only_ticks_change(&world, "fix_plan.md");
        assert_one_attempt_is_left(&world);
    });
}

#[test]
fn notes_of_parked_and_set_aside_items_are_shown_once() {
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item 1\n- [ ] Item 2\n- [ ] Item 3\n");
    let _model = ScriptedAgent::new(|turn| {
        let item = turn.item_text.clone().unwrap_or_default();
        let write_file_command = format!("mkdir -p done && echo '{item}' > done/{}.txt", item_number(&item));
        match (item_number(&item).as_str(), turn.assistant_message_count) {
            // Asks a question, with a note in the tracked plan and one below another item.
            ("1", 0) if !turn.request_contains("Answer: Use port 8042") => {
                Step::bash_call(edit_plan_command(&item, "fix_plan.md")).with_input_tokens(30_000)
            }
            ("1", 1) if !turn.request_contains("Answer: Use port 8042") => {
                let question = turn.promise_line.replace("COMPLETE", "BLOCKED").replace("</", " which port?</");
                Step::from_text(format!("I cannot go on.\n\n{question}"))
            }
            // Its repository is another one by the end of each attempt, so it is set aside.
            ("3", 0) => Step::bash_call(
                "echo '  > item three was tried' >> fix_plan.md && sed -i 's/\\[ \\]/[x]/' plimsoll-item.md && \
                 rm .git && git init -q . && git add -A && git commit -qm Other"
                    .to_owned(),
            )
            .with_input_tokens(30_000),
            _ => do_item_step(turn, &write_file_command),
        }
    }).start(&mut world);
    let finished = run_with_workers(&world, &["3"]);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    let shown = world.read(SHOWN_PLAN_PATH);
    assert!(
        shown.contains("- [ ] Item 1\n  > port 8011\n  > new item: New of 1\n  ? which port?"),
        "{shown}"
    );
    assert!(shown.contains("- [ ] Item 3\n  > item three was tried"), "{shown}");
    // Notes that no merged item brings are added at the end of the run.
    let notes_subject = "Note what sessions found";
    let subjects = world.git(&["log", "--format=%s", &target_branch(&world)]);
    let text = read_merged_file(&world, "fix_plan.md");
    assert!(
        text.contains("  > port 8011\n") && text.contains("  > item three was tried"),
        "{text} {subjects}"
    );
    let is_item_two = |subject: &str| subject.contains("Item 2");
    assert!(
        subjects.lines().next().is_some_and(|last| last == notes_subject || is_item_two(last)),
        "{subjects}"
    );
    world.plimsoll(&["status", "--answer", "1", "Use port 8042"]).run().expect_success();
    let resumed = resume_run(&world);
    assert_eq!(resumed.code, Some(4), "{resumed:?}");
    let text = read_merged_file(&world, "fix_plan.md");
    for line in ["  > port 8011", "  > new item: New of 1", "  > from 1 to 2", "  > item three was tried"] {
        assert_eq!(text.lines().filter(|known| *known == line).count(), 1, "{line} in {text}");
    }
    assert!(text.contains("- [x] Item 1\n") && text.contains("- [ ] Item 3\n"), "{text}");
}

#[test]
fn notes_reach_an_untracked_plan_and_no_commit_contains_it() {
    // The plan is copied into each worktree, or created there by the session.
    run_cases_in_parallel(&[true, false], |is_copied| {
        let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
        world.git(&["rm", "-q", "--cached", "fix_plan.md"]);
        if *is_copied {
            world.write(".worktreeinclude", "fix_plan.md\n");
            world.write(".gitignore", "fix_plan.md\n");
            world.git(&["add", ".worktreeinclude", ".gitignore"]);
        }
        world.git(&["commit", "-qm", "The plan is mine"]);
        let _model = ScriptedAgent::new(|turn| {
            let item = turn.item_text.clone().unwrap_or_default();
            let create_plan_command =
                "test -e fix_plan.md || printf -- '- [ ] Item 1\\n- [ ] Item 2\\n' > fix_plan.md";
            let write_file_command =
                format!("mkdir -p done && echo '{item}' > done/{}.txt", item_number(&item));
            do_item_step(
                turn,
                &format!(
                    "({create_plan_command}) && {write_file_command} && {}",
                    edit_plan_command(&item, "fix_plan.md")
                ),
            )
        })
        .start(&mut world);
        let finished = run_with_workers(&world, &["2"]);
        assert_eq!(finished.code, Some(0), "{is_copied}: {finished:?}");
        assert_same_notes(world.read("fix_plan.md").trim_end(), EXPECTED_PLAN);
        let files = world.git(&["ls-tree", "-r", "--name-only", &target_branch(&world)]);
        assert!(files.contains("done/2.txt") && !files.contains("fix_plan.md"), "{files}");
        world.git(&["merge", "-q", &target_branch(&world)]);
        assert_only_attempts_left(&world, &[]);
    });
}

/// An earlier run left the plan that it showed; the next run shows its own.
#[test]
fn a_new_run_does_not_show_the_plan_of_an_earlier_one() {
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item 1\n");
    let _model = ScriptedAgent::new(|turn| {
        let item = turn.item_text.clone().unwrap_or_default();
        do_item_step(turn, &format!("mkdir -p done && echo '{item}' > done/{}.txt", item_number(&item)))
    })
    .start(&mut world);
    let first = run_with_workers(&world, &["2"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    world.write("fix_plan.md", "# Next\n\n- [ ] Item 2\n- [ ] Item 3\n");
    world.git(&["commit", "-qam", "Next plan"]);
    let second = run_with_workers(&world, &["2"]);
    assert_eq!(second.code, Some(0), "{second:?}");
    assert_eq!(world.read(SHOWN_PLAN_PATH), "# Next\n\n- [x] Item 2\n- [x] Item 3\n");
}
