//! What a session of `run --workers` writes into its copy of the plan: it blocks nothing, no note of it is lost, and no tick of it
//! counts.

use crate::workers::{
    LIMIT, TWO, assert_tidy, begin, does, kill_at_git, merged, number, reasons, resume, run, target,
};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::story::Turn;
use plimsoll_testkit::world::World;
use plimsoll_tests::{ScriptedAgent, events, journal, side_by_side, world};
use std::time::Duration;

/// What the plan of the run shows while git tracks the user's.
const SHOWN: &str = ".claude/plimsoll/plan.md";
/// The tracked plan after both items: ticks of the merger alone, each note once, and the new box as a note.
const NOTED: &str = "# Plan\n\n- [x] Item 1\n  > port 8011\n  > new item: New of 1\n  > from 2 to 1\n- [x] Item 2\n  > from 1 to 2\n  > port 8022\n  > new item: New of 2";

/// Ticks every item of a copy of the plan, and writes notes below the session's own item and below the other one, and a new item.
fn scribble(item: &str, plan: &str) -> String {
    let own = number(item);
    let other = if own == "1" { "2" } else { "1" };
    format!(
        "sed -i 's/^- \\[ \\] Item/- [x] Item/; /Item {own}/a\\  > port 80{own}{own}' {plan} && \
         sed -i '/Item {other}/a\\  > from {own} to {other}' {plan} && echo '- [ ] New of {own}' >> {plan}"
    )
}

/// What a session does with its copy of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    /// `git add -A` with its work.
    Committed,
    /// After its last commit; with what looks like a secret, so that nobody commits it.
    Uncommitted,
    /// Takes the file away, and commits that.
    Removed,
}

/// Both items write the same line, so the second to finish is sent back.
fn conflicting(turn: &Turn<'_>, edit: Edit, plan: &str) -> Step {
    let Some(item) = turn.item.clone() else { return Step::text(format!("All done.\n\n{}", turn.promise)) };
    let was_refused = turn.saw("## Earlier work on this item was sent back");
    let work = match was_refused {
        true => format!("echo '{item}' >> src/dates.txt"),
        false => format!("sed -i '1s/.*/{item}/' src/dates.txt"),
    };
    let line = match edit {
        Edit::Committed => format!("{work} && {}", scribble(&item, plan)),
        Edit::Removed => format!("{work} && git rm -qf {plan}"),
        Edit::Uncommitted => format!("{work} && git add -A && git commit -qm Work"),
    };
    let is_slow = turn.step == 0 && !was_refused && number(&item) == "1";
    let delay = Duration::from_secs(if is_slow { 3 } else { 0 });
    match (edit, turn.step) {
        (Edit::Uncommitted, 0) => {
            let secret = "sed -i '/port/a\\  > the key is AKIA2OGYBAH6STMMNXNN'";
            let tick = format!("sed -i 's/^- \\[ \\] {item}$/- [x] {item}/' plimsoll-item.md");
            Step::bash(format!("{line} && {} && {secret} {plan} && {tick}", scribble(&item, plan)))
                .usage(30_000)
                .delay(delay)
        }
        _ => does(turn, &line).delay(delay),
    }
}

/// A world with a tracked plan at a path.
fn world_with_plan(plan: &str) -> World {
    let world = world(if plan == "fix_plan.md" { TWO } else { "" });
    if plan != "fix_plan.md" {
        world.write(plan, TWO);
        world.git(&["add", "-A"]);
        world.git(&["commit", "-qm", "Plan"]);
    }
    world
}

/// No commit changes more in the plan than its merger does: ticks, and notes below items.
fn assert_only_ticks_change(world: &World, plan: &str) {
    let range = format!("main..{}", target(world));
    let changes = world.git(&["log", "--format=", "-p", "-U0", &range, "--", plan]);
    let is_header = |line: &&str| line.starts_with("+++ ") || line.starts_with("--- ");
    let changed = changes.lines().filter(|line| line.starts_with(['+', '-']) && !is_header(line));
    let of_session: Vec<&str> = changed
        .filter(|line| !["-- [ ] ", "+- [x] ", "+  > "].iter().any(|start| line.starts_with(start)))
        .collect();
    assert!(of_session.is_empty() && !changes.is_empty(), "{changes}");
}

fn assert_both_sides_are_merged(world: &World) {
    let dates = merged(world, "src/dates.txt");
    for item in ["Item 1", "Item 2"] {
        assert_eq!(dates.lines().filter(|line| *line == item).count(), 1, "{item} in {dates}");
    }
}

#[test]
fn edits_of_the_tracked_plan_block_no_item_and_their_notes_are_kept() {
    let cases = [
        (Edit::Committed, "fix_plan.md"),
        (Edit::Removed, "fix_plan.md"),
        (Edit::Uncommitted, "docs/my plan.md"),
    ];
    side_by_side(&cases, |(edit, plan)| {
        let (edit, plan) = (*edit, *plan);
        let mut world = world_with_plan(plan);
        let quoted = format!("'{plan}'");
        let _model = ScriptedAgent::new(move |turn| conflicting(turn, edit, &quoted)).start(&mut world);
        // As people write it.
        let named = format!("./{plan}");
        let finished = run(&world, &["2", "--todo", if plan == "fix_plan.md" { plan } else { &named }]);
        assert_eq!(finished.code, Some(0), "{edit:?} {plan}: {finished:?}");
        let back = reasons(&world);
        assert!(
            back.len() == 1 && back[0].contains("(conflict in src/dates.txt)"),
            "{edit:?} {plan}: {back:?} {finished:?}"
        );
        assert_both_sides_are_merged(&world);
        let text = merged(&world, plan);
        match edit {
            Edit::Removed => assert_eq!(text, "# Plan\n\n- [x] Item 1\n- [x] Item 2"),
            Edit::Committed => assert_same_notes(&text, NOTED),
            Edit::Uncommitted => {
                assert!(!text.contains("AKIA2OGYBAH6STMMNXNN"), "{text}");
                assert_same_notes(&without_lines(&text, "the key is"), NOTED);
            }
        }
        assert_only_ticks_change(&world, plan);
        assert_one_attempt_is_left(&world);
        assert_eq!(world.git(&["status", "--porcelain"]), "", "{edit:?} {plan}");
    });
}

/// Of the attempts only that one is left which was sent back: what was done anew may have lost a line.
fn assert_one_attempt_is_left(world: &World) {
    let entries = journal(world);
    let sent_back = events(&entries, "sent_back")[0]["item"].as_str().expect("an item").to_owned();
    assert_tidy(world, &[&format!("{}/1", number(&sent_back))]);
}

fn without_lines(text: &str, word: &str) -> String {
    text.lines().filter(|line| !line.contains(word)).collect::<Vec<_>>().join("\n")
}

/// The same lines below each item; which session's note comes first depends on which ends first.
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
fn a_kill_while_the_plan_is_put_back_or_taken_out_of_commits_loses_no_note() {
    let moments = [
        ("*' checkout --quiet --ignore-skip-worktree-bits '*", Edit::Uncommitted, true),
        ("*' hash-object -t commit '*", Edit::Committed, true),
    ];
    side_by_side(&moments, |(pattern, edit, is_after)| {
        let edit = *edit;
        let mut world = world(TWO);
        let _model = ScriptedAgent::new(move |turn| conflicting(turn, edit, "fix_plan.md")).start(&mut world);
        kill_at_git(&mut world, pattern, 1, *is_after);
        let running = begin(&world, &["2"]);
        world.write(world.home().join("run.pid"), &running.pid().to_string());
        let killed = running.wait(LIMIT);
        assert_eq!(killed.code, None, "{pattern}: {killed:?}");
        let finished = resume(&world);
        assert_eq!(finished.code, Some(0), "{pattern}: {finished:?}");
        assert_both_sides_are_merged(&world);
        assert_same_notes(&without_lines(&merged(&world, "fix_plan.md"), "the key is"), NOTED);
        assert_only_ticks_change(&world, "fix_plan.md");
        assert_one_attempt_is_left(&world);
    });
}

#[test]
fn notes_of_an_item_that_asks_or_is_set_aside_are_in_the_shown_plan_once() {
    let mut world = world("# Plan\n\n- [ ] Item 1\n- [ ] Item 2\n- [ ] Item 3\n");
    let _model = ScriptedAgent::new(|turn| {
        let item = turn.item.clone().unwrap_or_default();
        let own = format!("mkdir -p done && echo '{item}' > done/{}.txt", number(&item));
        match (number(&item).as_str(), turn.step) {
            // Asks, with a note in the tracked plan, and below another item.
            ("1", 0) if !turn.saw("Answer: Use port 8042") => {
                Step::bash(scribble(&item, "fix_plan.md")).usage(30_000)
            }
            ("1", 1) if !turn.saw("Answer: Use port 8042") => {
                let words = turn.promise.replace("COMPLETE", "BLOCKED").replace("</", " which port?</");
                Step::text(format!("I cannot go on.\n\n{words}"))
            }
            // Its repository is another one by the end of each attempt: it is set aside.
            ("3", 0) => Step::bash(
                "echo '  > item three was tried' >> fix_plan.md && sed -i 's/\\[ \\]/[x]/' plimsoll-item.md && \
                 rm .git && git init -q . && git add -A && git commit -qm Other"
                    .to_owned(),
            )
            .usage(30_000),
            _ => does(turn, &own),
        }
    }).start(&mut world);
    let finished = run(&world, &["3"]);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    let shown = world.read(SHOWN);
    assert!(
        shown.contains("- [ ] Item 1\n  > port 8011\n  > new item: New of 1\n  ? which port?"),
        "{shown}"
    );
    assert!(shown.contains("- [ ] Item 3\n  > item three was tried"), "{shown}");
    // What no merged item brought, the end brings.
    let noted = "Note what sessions found";
    let subjects = world.git(&["log", "--format=%s", &target(&world)]);
    let text = merged(&world, "fix_plan.md");
    assert!(
        text.contains("  > port 8011\n") && text.contains("  > item three was tried"),
        "{text} {subjects}"
    );
    let is_item_two = |subject: &str| subject.contains("Item 2");
    assert!(subjects.lines().next().is_some_and(|last| last == noted || is_item_two(last)), "{subjects}");
    world.plimsoll(&["status", "--answer", "1", "Use port 8042"]).run().expect_success();
    let resumed = resume(&world);
    assert_eq!(resumed.code, Some(4), "{resumed:?}");
    let text = merged(&world, "fix_plan.md");
    for line in ["  > port 8011", "  > new item: New of 1", "  > from 1 to 2", "  > item three was tried"] {
        assert_eq!(text.lines().filter(|known| *known == line).count(), 1, "{line} in {text}");
    }
    assert!(text.contains("- [x] Item 1\n") && text.contains("- [ ] Item 3\n"), "{text}");
}

#[test]
fn notes_reach_a_plan_that_git_does_not_track_and_no_commit_brings_one() {
    // Copied into each worktree, or made there by the session.
    side_by_side(&[true, false], |is_copied| {
        let mut world = world(TWO);
        world.git(&["rm", "-q", "--cached", "fix_plan.md"]);
        if *is_copied {
            world.write(".worktreeinclude", "fix_plan.md\n");
            world.write(".gitignore", "fix_plan.md\n");
            world.git(&["add", ".worktreeinclude", ".gitignore"]);
        }
        world.git(&["commit", "-qm", "The plan is mine"]);
        let _model = ScriptedAgent::new(|turn| {
            let item = turn.item.clone().unwrap_or_default();
            let make = "test -e fix_plan.md || printf -- '- [ ] Item 1\\n- [ ] Item 2\\n' > fix_plan.md";
            let own = format!("mkdir -p done && echo '{item}' > done/{}.txt", number(&item));
            does(turn, &format!("({make}) && {own} && {}", scribble(&item, "fix_plan.md")))
        })
        .start(&mut world);
        let finished = run(&world, &["2"]);
        assert_eq!(finished.code, Some(0), "{is_copied}: {finished:?}");
        assert_same_notes(world.read("fix_plan.md").trim_end(), NOTED);
        let files = world.git(&["ls-tree", "-r", "--name-only", &target(&world)]);
        assert!(files.contains("done/2.txt") && !files.contains("fix_plan.md"), "{files}");
        world.git(&["merge", "-q", &target(&world)]);
        assert_tidy(&world, &[]);
    });
}

/// A run before left a plan that it showed: the next one shows its own.
#[test]
fn a_new_run_does_not_show_the_plan_of_an_earlier_one() {
    let mut world = world("# Plan\n\n- [ ] Item 1\n");
    let _model = ScriptedAgent::new(|turn| {
        let item = turn.item.clone().unwrap_or_default();
        does(turn, &format!("mkdir -p done && echo '{item}' > done/{}.txt", number(&item)))
    })
    .start(&mut world);
    let first = run(&world, &["2"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    world.write("fix_plan.md", "# Next\n\n- [ ] Item 2\n- [ ] Item 3\n");
    world.git(&["commit", "-qam", "Next plan"]);
    let second = run(&world, &["2"]);
    assert_eq!(second.code, Some(0), "{second:?}");
    assert_eq!(world.read(SHOWN), "# Next\n\n- [x] Item 2\n- [x] Item 3\n");
}
