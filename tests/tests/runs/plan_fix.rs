//! A run does not start with a plan that has no item, and `plimsoll plan --fix` puts checkboxes before the lines that
//! were meant as items.

use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::scripted_agent::AgentTurn;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::{FinishedProgram, World};
use plimsoll_tests::{ScriptedAgent, honest_agent, read_journal, verdict_markers};
use std::time::Duration;

fn run_plan(world: &World, options: &[&str]) -> FinishedProgram {
    let base_arguments = ["run", "--objective", "Do the plan."];
    let client = ["--", "--model", "opus", "--allowedTools", "Bash"];
    let arguments: Vec<&str> = base_arguments.iter().chain(options).chain(&client).copied().collect();
    world.plimsoll(&arguments).timeout(Duration::from_secs(120)).run()
}

#[test]
fn a_plan_without_items_is_rejected_before_any_session_starts() {
    let mut errors = Vec::new();
    for list in ["# Plan\n\n1. Item one\n2. Item two\n", "* Item one\r\n", "Make the dates ISO.\n", " \n"] {
        let mut world = World::new();
        world.write("fix_plan.md", list);
        let model = ScriptedAgent::new(honest_agent).start(&mut world);
        let script = workspace_root().join("scripts/ralph-loop.sh");
        let script = script.to_str().expect("a plain path");
        for finished in [
            run_plan(&world, &[]),
            world.plimsoll(&["start", "--objective", "Do the plan."]).run(),
            world.command("bash", &[script, "--objective", "Do the plan."]).run(),
        ] {
            assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{finished:?}");
            errors.push(world.replace_varying_parts_with_placeholders(&finished.stderr));
        }
        assert_eq!(model.main_requests().len(), 0, "nothing is paid");
        assert!(!world.exists(".claude/ralph-state.json") && !world.exists("PROMPT.md"), "nothing is left");
        assert_eq!(world.read("fix_plan.md"), list);
    }
    // Every way of starting prints the same error.
    errors.dedup();
    insta::assert_snapshot!(errors.join("\n"), @"
    error: the plan fix_plan.md has no item; these lines look like items without a checkbox (`- [ ] …`):
      fix_plan.md:3: 1. Item one
      fix_plan.md:4: 2. Item two
    to add the checkboxes: plimsoll plan --fix
    for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md

    error: the plan fix_plan.md has no item; these lines look like items without a checkbox (`- [ ] …`):
      fix_plan.md:1: * Item one
    to add the checkboxes: plimsoll plan --fix
    for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md

    error: the plan fix_plan.md has no item: write `- [ ] …` lines, one for each item; for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md

    error: the plan fix_plan.md is empty: write `- [ ] …` lines, one for each item; for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md
    ");
}

#[test]
fn lines_that_only_look_like_items_are_rejected_before_any_session() {
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
        let model = ScriptedAgent::new(honest_agent).start(&mut world);
        for finished in [
            run_plan(&world, &[]),
            run_plan(&world, &["--workers", "2"]),
            world.plimsoll(&["start", "--objective", "Do the plan."]).run(),
        ] {
            assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{finished:?}");
            errors.push(world.replace_varying_parts_with_placeholders(&finished.stderr));
        }
        assert_eq!(model.main_requests().len(), 0, "nothing is paid");
        assert!(!world.exists(".claude/ralph-state.json") && !world.exists("PROMPT.md"), "nothing is left");
    }
    // Every way of starting prints the same error.
    errors.dedup();
    insta::assert_snapshot!(errors.join("\n"), @r"
    error: the plan fix_plan.md has a line that looks like an item but is not, so no session would work on it:
      fix_plan.md:3: - [-] item 3
    to rewrite: plimsoll plan --fix
    to keep a line as text: write `\[` for `[`

    error: the plan fix_plan.md has lines that look like items but are not, so no session would work on them:
      fix_plan.md:2: - [] b
      fix_plan.md:3: - [ x ] c
    to rewrite: plimsoll plan --fix
    to keep a line as text: write `\[` for `[`

    error: the plan fix_plan.md has a line that looks like an item but is not, so no session would work on it:
      fix_plan.md:4: - [ ] b
    to rewrite: plimsoll plan --fix
    to keep a line as text: write `\[` for `[`
    ");
}

/// Ticks its item, whatever stands before the checkbox.
fn ticking_agent(turn: &AgentTurn<'_>) -> Step {
    let Some(item) = turn.item_text.clone() else {
        return Step::from_text(format!("All done.\n\n{}", turn.promise_line));
    };
    match turn.assistant_message_count {
        0 => Step::bash_call(format!(
            "sed -i 's/\\[ \\] {item}$/[x] {item}/' fix_plan.md && echo '{item}' >> work.txt"
        )),
        _ => Step::from_text(format!("{item} is done.")),
    }
}

#[test]
fn a_run_does_every_checkbox_that_github_renders_and_no_other() {
    for (plan, done) in [
        ("- [ ] item 1\n1. [ ] item 2\n2. [ ] item 3\n", &["item 1", "item 2", "item 3"][..]),
        ("- [x] first\n```npm test``` must pass\n- [ ] REAL WORK\n", &["REAL WORK"]),
        ("- [ ] real\n<!--\n- [ ] commented out\n-->\n", &["real"]),
        ("<tasks>\n- [ ] a\n</tasks>\n", &["a"]),
        ("Notes\n\n    - [ ] code\n\n> 1) [ ] quoted\n", &["quoted"]),
    ] {
        let mut world = World::new();
        world.write("fix_plan.md", plan);
        let _model = ScriptedAgent::new(ticking_agent).start(&mut world);
        let finished = run_plan(&world, &["--max-iterations", "6"]);
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
fn an_unclear_mark_in_the_plan_blocks_the_run_until_it_is_rewritten() {
    let mut world = World::new();
    world.write("fix_plan.md", "- [ ] Item one\n- [ ] Item two\n");
    let model = ScriptedAgent::new(|turn| match (turn.item_text.as_deref(), turn.assistant_message_count) {
        (Some("Item two"), 0) => Step::bash_call("sed -i 's/- \\[ \\] Item two/- [-] Item two/' fix_plan.md"),
        (Some("Item two"), _) => Step::from_text(format!("All done.\n\n{}", turn.promise_line)),
        _ => ticking_agent(turn),
    })
    .start(&mut world);
    let finished = run_plan(&world, &["--max-iterations", "6"]);
    assert_eq!(finished.code, Some(7), "{finished:?}");
    let expected_marker = "RALPH_STOP|blocked|fix_plan.md has a line that looks like an item but is not: line 2 \"- [-] Item two\"; rewrite it with `plimsoll plan --fix`, then resume";
    assert_eq!(verdict_markers(&read_journal(&world)).last().map(String::as_str), Some(expected_marker));

    // No session is paid for before the user has rewritten the line, nor before the question about its mark is
    // answered.
    let paid_requests = model.main_requests().len();
    let resume_arguments = ["run", "--resume", "--", "--model", "opus", "--allowedTools", "Bash"];
    let resumed = world.plimsoll(&resume_arguments).timeout(Duration::from_secs(120)).run();
    assert_eq!(resumed.code, Some(7), "{resumed:?}");
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
    let resumed_with_question = world.plimsoll(&resume_arguments).timeout(Duration::from_secs(120)).run();
    assert_eq!(resumed_with_question.code, Some(7), "{resumed_with_question:?}");
    assert_eq!(model.main_requests().len(), paid_requests);

    world.write("fix_plan.md", "- [x] Item one\n- [x] Item two\n");
    let finished = world.plimsoll(&resume_arguments).timeout(Duration::from_secs(120)).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
}

#[test]
fn fix_names_lines_for_manual_rewriting_and_refuses_during_a_run() {
    let world = World::new();
    let table = "- [] one\n\n| | task |\n|---|---|\n| [ ] | two |\n";
    world.write("fix_plan.md", table);
    let fixed = world.plimsoll(&["plan", "--fix", "--yes"]).run();
    assert_eq!(fixed.code, Some(1), "{fixed:?}");
    assert_eq!(world.read("fix_plan.md"), table.replace("[]", "[ ]"));
    let [second_fix, third_fix] = [0, 1].map(|_| world.plimsoll(&["plan", "--fix", "--yes"]).run());
    assert_eq!((second_fix.code, third_fix.code), (Some(1), Some(1)), "{third_fix:?}");
    assert_eq!(second_fix.stderr, third_fix.stderr);
    insta::assert_snapshot!(third_fix.stderr, @"
    error: 1 line of fix_plan.md cannot be rewritten, because of a table, an unclosed code fence or comment, or a checkbox without text:
      fix_plan.md:5: | [ ] | two |
    write them as `- [ ] …` lines, or close the fence
    ");
    let project_lock = std::fs::File::open(world.path(".")).expect("the project's folder");
    project_lock.lock().expect("what a run holds");
    world.write("fix_plan.md", table);
    let fix_during_run = world.plimsoll(&["plan", "--fix", "--yes"]).run();
    assert_eq!(fix_during_run.code, Some(1), "{fix_during_run:?}");
    insta::assert_snapshot!(fix_during_run.stderr, @"error: nothing was written, because a run is at work on fix_plan.md: end it first (Ctrl-C, then plimsoll run --resume)");
    assert_eq!(world.read("fix_plan.md"), table);
}

#[test]
fn plan_lists_optional_items_and_unclear_lines() {
    let world = World::new();
    let plan: String = (1..=50).map(|number| format!("- [ ] Item {number} (complex)\n")).collect();
    world.write("fix_plan.md", &format!("{plan}- [ ]* Starred\n- [-] Unclear\n## Optional\n{plan}"));
    let shown = world.plimsoll(&["plan", "--markdown"]).run().expect_success().stdout;
    let (_, text_below_table) = shown.rsplit_once("|\n").expect("a table of all items");
    insta::assert_snapshot!(text_below_table, @r#"

    One item a session: 101 sessions. With `--pack`, in your order: 101 sessions (1 to 101 one by one).

    - In fix_plan.md, line 52 looks like an item but is not, so no run begins: `- [-] Unclear` (`plimsoll plan --fix`).
    - In fix_plan.md, the heading "Optional" has below it items 52–101, which a run does like all others: remove or tick what it should leave.
    - In fix_plan.md, `[ ]*` marks item 51 as optional, which a run does like all others: remove or tick what it should leave.
    "#);
}

#[test]
fn a_run_starts_without_a_plan_file() {
    let mut world = World::new();
    let _model = ScriptedAgent::new(honest_agent).start(&mut world);
    let finished = run_plan(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(world.read_json(".claude/ralph-state.json")["todo_file"].is_null());
}

/// This is not an error, because the objective may be unrelated to the plan. The user is told.
#[test]
fn a_fully_ticked_plan_is_reported_at_the_start() {
    let mut world = World::new();
    world.write("fix_plan.md", "- [x] Item one\n- [x] Item two\n");
    let _model = ScriptedAgent::new(honest_agent).start(&mut world);
    let finished = run_plan(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stderr), @"
    warning: all 2 items of fix_plan.md are ticked, so no session has an item to work on: add `- [ ] …` lines; for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md
    hint: to see what happened: plimsoll report --open, or plimsoll log
    ");
    world.write("fix_plan.md", "- [x] Item one\n- [ ] Item two\n");
    let started = world.plimsoll(&["start", "--objective", "Do the rest."]).run().expect_success();
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&started.stderr), @r#"run "Do the rest." is ready: PROMPT.md is written, session 1 of at most 50"#);
}

#[test]
fn the_suggested_fix_command_names_the_todo_file_and_works() {
    let mut world = World::new();
    world.write("my plan.md", "1. Item one\n2. Item three\n");
    let model = ScriptedAgent::new(honest_agent).start(&mut world);
    let refused = run_plan(&world, &["--todo", "my plan.md"]);
    assert_eq!((refused.code, model.main_requests().len()), (Some(1), 0), "{refused:?}");
    let command = refused.stderr.lines().find_map(|line| line.strip_prefix("to add the checkboxes: "));
    let command = format!("{} --yes", command.expect(&refused.stderr));
    world.command("sh", &["-c", &command]).run().expect_success();
    assert_eq!(world.read("my plan.md"), "- [ ] Item one\n- [ ] Item three\n");
    let started = world.plimsoll(&["start", "--objective", "Do it.", "--todo", "my plan.md"]).run();
    started.expect_success();
    assert_eq!(world.read_json(".claude/ralph-state.json")["known_items"].as_array().map(Vec::len), Some(2));
}

#[test]
fn the_suggested_fix_command_works_for_the_default_plan() {
    let mut world = World::new();
    world.write("fix_plan.md", "# Plan\n\n1. Item one\n2. Item three\n");
    let _model = ScriptedAgent::new(honest_agent).start(&mut world);
    let refused = run_plan(&world, &[]);
    let command = refused.stderr.lines().find_map(|line| line.strip_prefix("to add the checkboxes: "));
    let command = format!("{} --yes", command.expect(&refused.stderr));
    world.command("sh", &["-c", &command]).run().expect_success();
    let finished = run_plan(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(
        verdict_markers(&read_journal(&world)).last().map(String::as_str),
        Some("RALPH_STOP|completed|2 items")
    );
}

#[test]
fn fix_shows_its_changes_and_writes_nothing_without_confirmation() {
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
    insta::assert_snapshot!(shown.stderr, @"error: nothing was written, because there is no terminal to ask for confirmation: plimsoll plan --fix --yes");
    assert_eq!(world.read("fix_plan.md"), list);

    let fixed = world.plimsoll(&["plan", "--fix", "--yes"]).run().expect_success();
    assert!(fixed.stdout.starts_with(&shown.stdout), "the diff comes first: {fixed:?}");
    let fixed_plan = list.replace("1. ", "- [ ] ").replace("2. ", "- [ ] ");
    assert_eq!(world.read("fix_plan.md"), fixed_plan);

    let second_fix = world.plimsoll(&["plan", "--fix"]).run().expect_success();
    assert_eq!(second_fix.stdout, "fix_plan.md has 2 items with checkboxes: nothing to fix\n");
    assert_eq!(world.read("fix_plan.md"), fixed_plan);
}

#[test]
fn fix_asks_for_confirmation_on_a_terminal() {
    for (answer, is_fixed) in [("n", false), ("", false), ("y", true)] {
        let world = World::new();
        world.write("fix_plan.md", "* Item one\n");
        let mut terminal = Terminal::start_program_in_project(
            &world,
            find_or_build_bin_dir().join("plimsoll"),
            &["plan", "--fix"],
            100,
            30,
        );
        let screen = terminal.wait_for_text("Write this to fix_plan.md? [y/N]");
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
        assert_eq!(terminal.wait_for_exit().exit_code(), u32::from(!is_fixed), "{answer:?}");
        assert_eq!(world.read("fix_plan.md") == "- [ ] Item one\n", is_fixed, "{answer:?}");
    }
}

#[test]
fn fix_reports_a_missing_plan_a_plan_without_items_and_invalid_utf8() {
    let world = World::new();
    let missing = world.plimsoll(&["plan", "--fix", "--yes"]).run();
    assert_eq!(missing.code, Some(1), "{missing:?}");
    insta::assert_snapshot!(missing.stderr, @"error: there is no plan: fix_plan.md (`- [ ] …` lines, one item each)");
    world.write("fix_plan.md", "Make the dates ISO.\n");
    let prose = world.plimsoll(&["plan", "--fix", "--yes"]).run();
    assert_eq!(prose.code, Some(1), "{prose:?}");
    insta::assert_snapshot!(prose.stderr, @"error: the plan fix_plan.md has no item: write `- [ ] …` lines, one for each item; for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md");
    std::fs::write(world.path("fix_plan.md"), b"* caf\xe9\n").expect("the project is writable");
    let latin = world.plimsoll(&["plan", "--fix", "--yes"]).run();
    assert_eq!(latin.code, Some(1), "{latin:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&latin.stderr), @"error: fix_plan.md is not UTF-8: save it as UTF-8, then run this again");
    assert_eq!(std::fs::read(world.path("fix_plan.md")).expect("it is there"), b"* caf\xe9\n");
}

/// Any process may have written the state file, so it does not choose what `--fix --yes` changes.
#[test]
fn the_state_file_does_not_choose_which_file_is_fixed() {
    let world = World::new();
    let other_file = world.home().join("notes.md");
    world.write(&other_file, "* mine\n");
    let state =
        serde_json::json!({ "run_id": "r1", "nonce": "n1", "status": "running", "todo_file": other_file });
    world.write(".claude/ralph-state.json", &state.to_string());
    let fixed = world.plimsoll(&["plan", "--fix", "--yes"]).run();
    assert_eq!(fixed.code, Some(1), "{fixed:?}");
    assert_eq!(world.read(&other_file), "* mine\n");
}

#[test]
fn plan_rejects_a_plan_without_items_and_names_the_lines() {
    let world = World::new();
    world.write("fix_plan.md", "1. Item one\n");
    let shown = world.plimsoll(&["plan", "--markdown"]).run();
    assert_eq!(shown.code, Some(1), "{shown:?}");
    insta::assert_snapshot!(shown.stderr, @"
    error: the plan fix_plan.md has no item; these lines look like items without a checkbox (`- [ ] …`):
      fix_plan.md:1: 1. Item one
    to add the checkboxes: plimsoll plan --fix
    for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md
    ");
}
