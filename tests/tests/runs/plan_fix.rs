//! A run does not begin with a to-do list that has no item, and `plimsoll plan --fix` puts boxes before the lines
//! that were meant.

use plimsoll_testkit::bin_dir;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::story::Turn;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::{Finished, World};
use plimsoll_tests::{ScriptedAgent, honest, journal, markers};
use std::time::Duration;

fn run(world: &World, options: &[&str]) -> Finished {
    let ours = ["run", "--objective", "Do the plan."];
    let client = ["--", "--model", "opus", "--allowedTools", "Bash"];
    let all: Vec<&str> = ours.iter().chain(options).chain(&client).copied().collect();
    world.plimsoll(&all).timeout(Duration::from_secs(120)).run()
}

#[test]
fn a_list_without_items_ends_every_way_of_starting_before_anything_is_paid() {
    let mut errors = Vec::new();
    for list in ["# Plan\n\n1. Item one\n2. Item two\n", "* Item one\r\n", "Make the dates ISO.\n", " \n"] {
        let mut world = World::new();
        world.write("fix_plan.md", list);
        let model = ScriptedAgent::new(honest).start(&mut world);
        let script = workspace_root().join("scripts/ralph-loop.sh");
        let script = script.to_str().expect("a plain path");
        for finished in [
            run(&world, &[]),
            world.plimsoll(&["start", "--objective", "Do the plan."]).run(),
            world.command("bash", &[script, "--objective", "Do the plan."]).run(),
        ] {
            assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{finished:?}");
            errors.push(world.stable_text(&finished.stderr));
        }
        assert_eq!(model.main_requests().len(), 0, "nothing is paid");
        assert!(!world.exists(".claude/ralph-state.json") && !world.exists("PROMPT.md"), "nothing is left");
        assert_eq!(world.read("fix_plan.md"), list);
    }
    // Every way of starting prints the same error.
    errors.dedup();
    insta::assert_snapshot!(errors.join("\n"), @"
    plimsoll: the plan fix_plan.md has no item; these lines look like items without a checkbox (`- [ ] …`):
      fix_plan.md:3: 1. Item one
      fix_plan.md:4: 2. Item two
    to add the checkboxes: plimsoll plan --fix
    for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md

    plimsoll: the plan fix_plan.md has no item; these lines look like items without a checkbox (`- [ ] …`):
      fix_plan.md:1: * Item one
    to add the checkboxes: plimsoll plan --fix
    for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md

    plimsoll: the plan fix_plan.md has no item: write `- [ ] …` lines, one for each item; for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md

    plimsoll: the plan fix_plan.md is empty: write `- [ ] …` lines, one for each item; for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md
    ");
}

#[test]
fn lines_that_only_look_like_items_end_every_way_of_starting_before_anything_is_paid() {
    let mut errors = Vec::new();
    for plan in [
        "- [ ] item 1\n- [~] item 2 half done\n- [-] item 3\n",
        "- [ ] a\n- [] b\n- [ x ] c\n",
        "- [ ] a\n```sh\nmake\n- [ ] b\n",
    ] {
        let mut world = World::new();
        world.git(&["init", "-q"]);
        world.write("fix_plan.md", plan);
        world.git(&["add", "-A"]);
        world.git(&["commit", "-qm", "Plan"]);
        let model = ScriptedAgent::new(honest).start(&mut world);
        for finished in [
            run(&world, &[]),
            run(&world, &["--workers", "2"]),
            world.plimsoll(&["start", "--objective", "Do the plan."]).run(),
        ] {
            assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{finished:?}");
            errors.push(world.stable_text(&finished.stderr));
        }
        assert_eq!(model.main_requests().len(), 0, "nothing is paid");
        assert!(!world.exists(".claude/ralph-state.json") && !world.exists("PROMPT.md"), "nothing is left");
    }
    // Every way of starting prints the same error.
    errors.dedup();
    insta::assert_snapshot!(errors.join("\n"), @r"
    plimsoll: the plan fix_plan.md has a line that looks like an item and is none, so nobody would do it:
      fix_plan.md:3: - [-] item 3
    to rewrite: plimsoll plan --fix
    to keep a line as text: write `\[` for `[`

    plimsoll: the plan fix_plan.md has lines that look like items and are none, so nobody would do it:
      fix_plan.md:2: - [] b
      fix_plan.md:3: - [ x ] c
    to rewrite: plimsoll plan --fix
    to keep a line as text: write `\[` for `[`

    plimsoll: the plan fix_plan.md has a line that looks like an item and is none, so nobody would do it:
      fix_plan.md:4: - [ ] b
    to rewrite: plimsoll plan --fix
    to keep a line as text: write `\[` for `[`
    ");
}

/// Ticks its item, whatever stands before its box.
fn ticks(turn: &Turn<'_>) -> Step {
    let Some(item) = turn.item.clone() else { return Step::text(format!("All done.\n\n{}", turn.promise)) };
    match turn.step {
        0 => Step::bash(format!(
            "sed -i 's/\\[ \\] {item}$/[x] {item}/' fix_plan.md && echo '{item}' >> work.txt"
        )),
        _ => Step::text(format!("{item} is done.")),
    }
}

#[test]
fn a_run_does_each_box_that_github_shows_and_no_other() {
    for (plan, done) in [
        ("- [ ] item 1\n1. [ ] item 2\n2. [ ] item 3\n", &["item 1", "item 2", "item 3"][..]),
        ("- [x] first\n```npm test``` must pass\n- [ ] REAL WORK\n", &["REAL WORK"]),
        ("- [ ] real\n<!--\n- [ ] commented out\n-->\n", &["real"]),
        ("<tasks>\n- [ ] a\n</tasks>\n", &["a"]),
        ("Notes\n\n    - [ ] code\n\n> 1) [ ] quoted\n", &["quoted"]),
    ] {
        let mut world = World::new();
        world.write("fix_plan.md", plan);
        let _model = ScriptedAgent::new(ticks).start(&mut world);
        let finished = run(&world, &["--max-iterations", "6"]);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let work: String = done.iter().map(|item| format!("{item}\n")).collect();
        assert_eq!(world.read("work.txt"), work, "{plan}");
        let ticked = done.iter().fold(plan.to_owned(), |plan, item| {
            plan.replace(&format!("[ ] {item}\n"), &format!("[x] {item}\n"))
        });
        assert_eq!(world.read("fix_plan.md"), ticked);
    }
}

#[test]
fn a_run_into_whose_plan_an_unclear_mark_comes_ends_blocked_and_goes_on_once_it_is_rewritten() {
    let mut world = World::new();
    world.write("fix_plan.md", "- [ ] Item one\n- [ ] Item two\n");
    let model = ScriptedAgent::new(|turn| match (turn.item.as_deref(), turn.step) {
        (Some("Item two"), 0) => Step::bash("sed -i 's/- \\[ \\] Item two/- [-] Item two/' fix_plan.md"),
        (Some("Item two"), _) => Step::text(format!("All done.\n\n{}", turn.promise)),
        _ => ticks(turn),
    })
    .start(&mut world);
    let finished = run(&world, &["--max-iterations", "6"]);
    assert_eq!(finished.code, Some(7), "{finished:?}");
    let end = "RALPH_STOP|blocked|fix_plan.md has a line that looks like an item and is none: line 2 \"- [-] Item two\"; rewrite it with `plimsoll plan --fix`, then resume";
    assert_eq!(markers(&journal(&world)).last().map(String::as_str), Some(end));

    // Nothing is paid before the user has rewritten the line, nor before the question of its mark is answered.
    let paid = model.main_requests().len();
    let resume = ["run", "--resume", "--", "--model", "opus", "--allowedTools", "Bash"];
    let again = world.plimsoll(&resume).timeout(Duration::from_secs(120)).run();
    assert_eq!(again.code, Some(7), "{again:?}");
    let fixed = world.plimsoll(&["plan", "--fix", "--yes"]).run().expect_success();
    insta::assert_snapshot!(fixed.stdout, @"
    --- fix_plan.md
    +++ fix_plan.md
    @@ -1,2 +1,3 @@
     - [x] Item one
    -- [-] Item two
    +- [ ] Item two
    +  ? The mark was [-]: is this still to be done? Answer here, or tick the item, or remove it.
    fix_plan.md: 2 items
    1 item has a mark that can mean canceled or begun: a run passes over such an item until you answer the question below it, tick it or remove it
    ");
    let question =
        "  ? The mark was [-]: is this still to be done? Answer here, or tick the item, or remove it.\n";
    assert_eq!(world.read("fix_plan.md"), format!("- [x] Item one\n- [ ] Item two\n{question}"));
    let asked = world.plimsoll(&resume).timeout(Duration::from_secs(120)).run();
    assert_eq!(asked.code, Some(7), "{asked:?}");
    assert_eq!(model.main_requests().len(), paid);

    world.write("fix_plan.md", "- [x] Item one\n- [x] Item two\n");
    let finished = world.plimsoll(&resume).timeout(Duration::from_secs(120)).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
}

#[test]
fn the_fix_names_what_only_a_person_can_rewrite_and_does_nothing_beside_a_run() {
    let world = World::new();
    let table = "- [] one\n\n| | task |\n|---|---|\n| [ ] | two |\n";
    world.write("fix_plan.md", table);
    let fixed = world.plimsoll(&["plan", "--fix", "--yes"]).run();
    assert_eq!(fixed.code, Some(1), "{fixed:?}");
    assert_eq!(world.read("fix_plan.md"), table.replace("[]", "[ ]"));
    let [first, left] = [0, 1].map(|_| world.plimsoll(&["plan", "--fix", "--yes"]).run());
    assert_eq!((first.code, left.code), (Some(1), Some(1)), "{left:?}");
    assert_eq!(first.stderr, left.stderr);
    insta::assert_snapshot!(left.stderr, @"
    plimsoll: 1 line of fix_plan.md cannot be rewritten, because they are in a table, in a code fence or comment that nothing closes, or above their words:
      fix_plan.md:5: | [ ] | two |
    write them as `- [ ] …` lines, or close the fence
    ");
    let held = std::fs::File::open(world.path(".")).expect("the project's folder");
    held.lock().expect("what a run holds");
    world.write("fix_plan.md", table);
    let beside = world.plimsoll(&["plan", "--fix", "--yes"]).run();
    assert_eq!(beside.code, Some(1), "{beside:?}");
    insta::assert_snapshot!(beside.stderr, @"plimsoll: nothing was written, because a run is at work on fix_plan.md: end it first (Ctrl-C, then plimsoll run --resume)");
    assert_eq!(world.read("fix_plan.md"), table);
}

#[test]
fn a_plan_names_its_optional_items_and_its_unclear_lines() {
    let world = World::new();
    let plan: String = (1..=50).map(|number| format!("- [ ] Item {number} (complex)\n")).collect();
    world.write("fix_plan.md", &format!("{plan}- [ ]* Starred\n- [-] Unclear\n## Optional\n{plan}"));
    let shown = world.plimsoll(&["plan", "--markdown"]).run().expect_success().stdout;
    let (_, below) = shown.rsplit_once("|\n").expect("a table of all items");
    insta::assert_snapshot!(below, @r#"

    One item a session: 101 sessions. With `--pack`, in your order: 101 sessions (1 to 101 one by one).

    - In fix_plan.md, line 52 looks like an item and is none, so no run begins: `- [-] Unclear` (`plimsoll plan --fix`).
    - In fix_plan.md, the heading "Optional" has below it items 52–101, which a run does like all others: remove or tick what it should leave.
    - In fix_plan.md, `[ ]*` marks item 51 as optional, which a run does like all others: remove or tick what it should leave.
    "#);
}

#[test]
fn without_a_list_a_run_begins_as_before() {
    let mut world = World::new();
    let _model = ScriptedAgent::new(honest).start(&mut world);
    let finished = run(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(world.json(".claude/ralph-state.json")["todo_file"].is_null());
}

/// No error: the objective may be another one than the list's. The user is told.
#[test]
fn a_list_of_ticked_items_is_told_at_the_start() {
    let mut world = World::new();
    world.write("fix_plan.md", "- [x] Item one\n- [x] Item two\n");
    let _model = ScriptedAgent::new(honest).start(&mut world);
    let finished = run(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    insta::assert_snapshot!(world.stable_text(&finished.stderr), @"
    plimsoll: all 2 items of fix_plan.md are ticked, so no session has an item to work on: add `- [ ] …` lines; for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md
    plimsoll: to see what happened: plimsoll report --open, or plimsoll log
    ");
    world.write("fix_plan.md", "- [x] Item one\n- [ ] Item two\n");
    let started = world.plimsoll(&["start", "--objective", "Do the rest."]).run().expect_success();
    insta::assert_snapshot!(world.stable_text(&started.stderr), @r#"plimsoll: run "Do the rest." is ready: PROMPT.md is written, iteration 1 of 50"#);
}

#[test]
fn a_list_by_name_is_named_in_the_command_which_works_when_copied() {
    let mut world = World::new();
    world.write("my plan.md", "1. Item one\n2. Item three\n");
    let model = ScriptedAgent::new(honest).start(&mut world);
    let refused = run(&world, &["--todo", "my plan.md"]);
    assert_eq!((refused.code, model.main_requests().len()), (Some(1), 0), "{refused:?}");
    let command = refused.stderr.lines().find_map(|line| line.strip_prefix("to add the checkboxes: "));
    let command = format!("{} --yes", command.expect(&refused.stderr));
    world.command("sh", &["-c", &command]).run().expect_success();
    assert_eq!(world.read("my plan.md"), "- [ ] Item one\n- [ ] Item three\n");
    let started = world.plimsoll(&["start", "--objective", "Do it.", "--todo", "my plan.md"]).run();
    started.expect_success();
    assert_eq!(world.json(".claude/ralph-state.json")["known_items"].as_array().map(Vec::len), Some(2));
}

#[test]
fn what_the_error_of_the_default_list_names_works_when_copied() {
    let mut world = World::new();
    world.write("fix_plan.md", "# Plan\n\n1. Item one\n2. Item three\n");
    let _model = ScriptedAgent::new(honest).start(&mut world);
    let refused = run(&world, &[]);
    let command = refused.stderr.lines().find_map(|line| line.strip_prefix("to add the checkboxes: "));
    let command = format!("{} --yes", command.expect(&refused.stderr));
    world.command("sh", &["-c", &command]).run().expect_success();
    let finished = run(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(markers(&journal(&world)).last().map(String::as_str), Some("RALPH_STOP|completed|2 items"));
}

#[test]
fn the_fix_shows_what_it_would_change_and_changes_nothing_unasked() {
    let world = World::new();
    let list = "# Plan\r\n\r\n1. Item one\r\n   - how\r\n2. Item two\r\n```\r\n- an example\r\n```\r\n";
    world.write("fix_plan.md", list);
    let shown = world.plimsoll(&["plan", "--fix"]).run();
    assert_eq!(shown.code, Some(1), "{shown:?}");
    insta::assert_snapshot!(shown.stdout, @"
    --- fix_plan.md
    +++ fix_plan.md
    @@ -1,8 +1,8 @@
     # Plan
     
    -1. Item one
    +- [ ] Item one
        - how
    -2. Item two
    +- [ ] Item two
     ```
     - an example
     ```
    ");
    insta::assert_snapshot!(shown.stderr, @"plimsoll: nothing was written, because there is no terminal to ask for confirmation: plimsoll plan --fix --yes");
    assert_eq!(world.read("fix_plan.md"), list);

    let fixed = world.plimsoll(&["plan", "--fix", "--yes"]).run().expect_success();
    assert!(fixed.stdout.starts_with(&shown.stdout), "the diff comes first: {fixed:?}");
    let boxed = list.replace("1. ", "- [ ] ").replace("2. ", "- [ ] ");
    assert_eq!(world.read("fix_plan.md"), boxed);

    let again = world.plimsoll(&["plan", "--fix"]).run().expect_success();
    assert_eq!(again.stdout, "fix_plan.md has 2 items with checkboxes: nothing to fix\n");
    assert_eq!(world.read("fix_plan.md"), boxed);
}

#[test]
fn on_a_terminal_the_fix_asks() {
    for (answer, is_fixed) in [("n", false), ("", false), ("y", true)] {
        let world = World::new();
        world.write("fix_plan.md", "* Item one\n");
        let mut terminal = Terminal::start(&world, bin_dir().join("plimsoll"), &["plan", "--fix"], 100, 30);
        let screen = terminal.wait_for("Write this to fix_plan.md? [y/N]");
        insta::allow_duplicates! {
            insta::assert_snapshot!(screen, @"
            --- fix_plan.md
            +++ fix_plan.md
            @@ -1 +1 @@
            -* Item one
            +- [ ] Item one
            Write this to fix_plan.md? [y/N]
            ");
        }
        terminal.type_text(answer);
        terminal.press_enter();
        assert_eq!(terminal.wait_exit().exit_code(), u32::from(!is_fixed), "{answer:?}");
        assert_eq!(world.read("fix_plan.md") == "- [ ] Item one\n", is_fixed, "{answer:?}");
    }
}

#[test]
fn the_fix_says_what_it_cannot_do() {
    let world = World::new();
    let missing = world.plimsoll(&["plan", "--fix", "--yes"]).run();
    assert_eq!(missing.code, Some(1), "{missing:?}");
    insta::assert_snapshot!(missing.stderr, @"plimsoll: there is no plan: fix_plan.md (`- [ ] …` lines, one item each)");
    world.write("fix_plan.md", "Make the dates ISO.\n");
    let prose = world.plimsoll(&["plan", "--fix", "--yes"]).run();
    assert_eq!(prose.code, Some(1), "{prose:?}");
    insta::assert_snapshot!(prose.stderr, @"plimsoll: the plan fix_plan.md has no item: write `- [ ] …` lines, one for each item; for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md");
    std::fs::write(world.path("fix_plan.md"), b"* caf\xe9\n").expect("the project is writable");
    let latin = world.plimsoll(&["plan", "--fix", "--yes"]).run();
    assert_eq!(latin.code, Some(1), "{latin:?}");
    insta::assert_snapshot!(world.stable_text(&latin.stderr), @"plimsoll: fix_plan.md is not UTF-8: save it as UTF-8, then run this again");
    assert_eq!(std::fs::read(world.path("fix_plan.md")).expect("it is there"), b"* caf\xe9\n");
}

/// The file of a state may have been written by anybody: it does not choose what `--fix --yes` changes.
#[test]
fn a_state_does_not_choose_which_file_is_fixed() {
    let world = World::new();
    let other = world.home().join("notes.md");
    world.write(&other, "* mine\n");
    let state = serde_json::json!({ "run_id": "r1", "nonce": "n1", "status": "running", "todo_file": other });
    world.write(".claude/ralph-state.json", &state.to_string());
    let fixed = world.plimsoll(&["plan", "--fix", "--yes"]).run();
    assert_eq!(fixed.code, Some(1), "{fixed:?}");
    assert_eq!(world.read(&other), "* mine\n");
}

#[test]
fn a_plan_of_a_list_without_items_names_the_lines_too() {
    let world = World::new();
    world.write("fix_plan.md", "1. Item one\n");
    let shown = world.plimsoll(&["plan", "--markdown"]).run();
    assert_eq!(shown.code, Some(1), "{shown:?}");
    insta::assert_snapshot!(shown.stderr, @"
    plimsoll: the plan fix_plan.md has no item; these lines look like items without a checkbox (`- [ ] …`):
      fix_plan.md:1: 1. Item one
    to add the checkboxes: plimsoll plan --fix
    for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md
    ");
}
