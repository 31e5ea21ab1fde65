//! `/ralph context` and `/ralph checkpoint` in the real client: what a person sees of them. Also what a session is told that is to
//! start a run: one starts only in a terminal.

use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use serde_json::Value;
use std::time::Duration;

/// A project with our hooks and commands and a run whose first session is the next that starts here.
fn world() -> World {
    let mut world =
        plimsoll_tests::world("# Plan\n\n- [ ] Implement OAuth callback (medium)\n- [ ] Log out\n");
    world.plimsoll(&["init", "--local"]).run().expect_success();
    let started = world.plimsoll(&["start", "--objective", "Do the plan.", "--name", "Auth"]).run();
    let run_id = world.json(".claude/ralph-state.json")["run_id"].as_str().expect("a run").to_owned();
    assert!(started.expect_success().stdout.contains(&run_id));
    world.set_env("PLIMSOLL_RUN_ID", run_id);
    world
}

/// The command as the text has it.
fn named(arguments: &str) -> String {
    format!("{} {arguments}", plimsoll_testkit::bin_dir().join("plimsoll").display())
}

/// A model that does what the command's text asks for: runs the named command and answers with what it printed,
/// from the heading on. It looks around first, so that the session has a figure which the client has written down.
fn obedient(arguments: &'static str) -> ScriptedModel {
    let calls = [Step::bash(named("--version")), Step::bash(named(arguments))];
    let answer = move |request: &Request| {
        let results = request.tool_results();
        match calls.get(results.len()) {
            Some(call) => call.clone().usage(668_000).delay(plimsoll_tests::LIFELIKE),
            None => {
                let printed = &results[1].1;
                Step::text(&printed[printed.find("##").unwrap_or_default()..]).usage(669_000)
            }
        }
    };
    ScriptedModel::start(answer)
}

/// No permission is given but the command's own.
fn ask(world: &World, prompt: &str) -> Value {
    let args =
        ["-p", prompt, "--model", "opus", "--permission-mode", "default", "--output-format", "stream-json"];
    world.claude(&[&args[..], &["--verbose"]].concat()).run().expect_success().result()
}

/// What our command says to the model: the client puts its own text before and after it.
fn text_of_command(request: &str) -> &str {
    let start = request.find("The user called `/ralph`").expect("the command's text");
    request[start..].split("\n\n# Environment").next().unwrap_or_default()
}

#[test]
fn a_headless_session_answers_with_the_table_of_its_run() {
    let mut world = world();
    let model = obedient("status --markdown");
    world.use_model(&model);
    let result = ask(&world, "/ralph context");
    let told = model.main_requests()[0].last_text();
    insta::assert_snapshot!(world.stable_text(text_of_command(&told)), @"
    The user called `/ralph` with: context

    `/ralph` runs the `[BIN]/plimsoll` command. The first word above says which action the user wants; the rest is plain text, never a command to run. Do that one thing with the Bash tool, show the user what it printed, and stop. If a command fails, show its message and change nothing. Quote the user's text for the shell, in single quotes.

    - `status`: `[BIN]/plimsoll status`. Summarise it in a few lines.
    - `checkpoint [summary]`: `[BIN]/plimsoll checkpoint --summary 'the summary'`. Without a summary write one yourself: one or two sentences on what is done and what comes next, facts only. Your whole answer is what it printed from the line that begins with `##` on, word for word.
    - `context`: `[BIN]/plimsoll status --markdown`. Your whole answer is what it printed, word for word, as Markdown: no code block, no line added, omitted or rephrased.
    - `stop`: `[BIN]/plimsoll stop`. This cancels the run; use it only because the user asked for it here.

    Without a word, or with any other: run nothing, list these four, and show the command that starts a run in a terminal, in this project's folder: `[BIN]/plimsoll run --objective 'the objective' -- --permission-mode acceptEdits --allowedTools Bash`. If a plan or PROMPT.md has the task, it needs no `--objective`. Do not start working on the objective, and do not run the command yourself.
    ");
    let shown = result["result"].as_str().unwrap_or_default();
    // How many answers the client has written down by then varies.
    let is_stable = |row: &&str| !row.starts_with("| Cost ") && !row.starts_with("| Forecast ");
    let table: Vec<&str> = shown.lines().filter(is_stable).collect();
    insta::assert_snapshot!(world.stable_text(&table.join("\n")), @r#"
    ## Ralph Context Status

    | Metric              | Value |
    |---------------------|-------|
    | Current Context     | 67% (668k of 1M tokens) |
    | Level               | L0 (Normal) |
    | Estimated Remaining | ~177k tokens to the checkpoint, ~299k to the auto-compact threshold (97%: the client compacts) |
    | Current Item        | "Implement OAuth callback (medium)" |
    | Item Complexity     | Medium (est. 40% of the window) |
    | Iteration           | 1 of 50 ("Auth") |
    | Run                 | running: no `plimsoll run` is active (a shell loop of your own is not detected) |
    | Items               | 0 of 2 done |
    | Next                | plimsoll run --resume |
    | Session             | [ID] |
    | Next Request        | about 668k tokens, with the answer and what has been added since |
    | Source              | transcript, [DURATION] old |
    | Window              | 1M tokens (table of models), claude-opus-5-5 |
    | Thresholds          | L1 70%, L2 85%, L3 95% |

    **Recommendation**: Continue with work that has begun. An item of this size will probably not fit before the checkpoint: if it has not begun, leave it to a fresh session.

    Checkpoint will trigger automatically at 85%.
    "#);
    let status = world.plimsoll(&["status"]).run().expect_success().stdout;
    assert!(status.contains("\nContext      67% (66") && status.contains("; checkpoint at 85%"), "{status}");
}

#[test]
fn a_checkpoint_is_told_with_its_iteration_and_what_follows() {
    let mut world = world();
    let model = obedient("checkpoint --summary 'The form is done.'");
    world.use_model(&model);
    let result = ask(&world, "/ralph checkpoint");
    let shown = result["result"].as_str().unwrap_or_default();
    insta::assert_snapshot!(world.stable_text(shown), @r#"
    ## Ralph Checkpoint Created

    **Iteration**: 1 of 50
    **Context**: 67%
    **Handoff**: .claude/handoffs/[DATE-TIME].md

    The next session of "Auth" (2 open items) resumes from this point. This one continues: a checkpoint on demand ends nothing.
    "#);
    let results = model.main_requests().last().expect("a request").tool_results();
    assert!(results[1].1.starts_with("CCS_CHECKPOINT_TRIGGERED|L0|67|.claude/handoffs/"), "{results:?}");
}

#[test]
fn on_a_screen_the_table_is_a_table() {
    let mut world = world();
    let model = obedient("status --markdown");
    world.use_model(&model);
    let args = ["--model", "opus", "--permission-mode", "default"];
    let mut terminal = Terminal::claude(&world, &args, 140, 80);
    terminal.wait_for("❯");
    terminal.type_text("/ralph context");
    terminal.wait_for("/ralph context");
    terminal.press_enter();
    let screen = terminal.wait_for("Checkpoint will trigger automatically at 85%.");
    for words in
        ["Ralph Context Status", "67% (668k of 1M tokens)", "L0 (Normal)", "Medium (est. 40% of the window)"]
    {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
    terminal.close();
}

/// A bare `/ralph`, and one with a word that it does not know, name the command that starts a run in a terminal.
#[test]
fn without_a_word_that_it_knows_the_session_names_the_command_that_starts_a_run() {
    for prompt in ["/ralph", "/ralph start Do the plan."] {
        let mut world = plimsoll_tests::world("# Plan\n\n- [ ] Item three\n");
        world.plimsoll(&["init", "--local"]).run().expect_success();
        let model = ScriptedModel::start(|_: &Request| Step::text("Done."));
        world.use_model(&model);
        ask(&world, prompt);
        let told = model.main_requests()[0].last_text();
        let (known, rest) = told.split_once("\nWithout a word, or with any other").expect(&told);
        assert!(
            rest.contains(&named("run --objective 'the objective' -- --permission-mode acceptEdits")),
            "{told}"
        );
        assert!(known.contains("- `status`") && !known.contains("- `start"), "{told}");
    }
}

/// `plimsoll start` prepares nothing in a session: it prints one command, and that works as it is printed.
#[test]
fn start_in_a_session_leads_to_the_one_command_that_works_in_a_terminal() {
    let mut world = plimsoll_tests::world("# Plan\n\n- [ ] Item three\n");
    world.plimsoll(&["init", "--local"]).run().expect_success();
    let start =
        world.plimsoll(&["start", "--objective", "Do the plan."]).env("CLAUDE_CODE_SESSION_ID", "s1").run();
    let shown = &start.stderr;
    assert_eq!(start.code, Some(1), "{start:?}");
    insta::assert_snapshot!(world.stable_text(shown), @"
    plimsoll: a run starts its own sessions, and this is inside a session: nothing was started. The user can start the run with this command in a terminal:
    cd [PROJECT] && plimsoll run --objective 'Do the plan.' -- --permission-mode acceptEdits --allowedTools Bash
    ");
    for file in [".claude/ralph-state.json", "PROMPT.md"] {
        assert!(!world.exists(file), "{file} is prepared for nobody");
    }
    let printed = shown.lines().find(|line| line.starts_with("cd ")).expect(shown);

    let _model =
        plimsoll_tests::ScriptedAgent::new(plimsoll_tests::honest).with_real_client().start(&mut world);
    let elsewhere = world.home();
    let run = world.command("sh", &["-c", printed]).cwd(elsewhere).timeout(Duration::from_secs(120)).run();
    assert_eq!(run.code, Some(0), "{printed}\n{run:?}");
    assert_eq!(world.json(".claude/ralph-state.json")["objective"], "Do the plan.");
    assert_eq!(world.json(".claude/ralph-state.json")["status"], "completed");
}

/// What would stand in the way of the run is said at once, not by the command that the user is given.
#[test]
fn start_in_a_session_says_what_is_in_the_way() {
    let world = plimsoll_tests::world("1. Item one\n");
    let inside = |arguments: &[&str]| world.plimsoll(arguments).env("CLAUDE_CODE_SESSION_ID", "s1").run();
    let refused = inside(&["start", "--objective", "Do it."]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    insta::assert_snapshot!(world.stable_text(&refused.stderr), @"
    plimsoll: the plan fix_plan.md has no item; these lines look like items without a checkbox (`- [ ] …`):
      fix_plan.md:1: 1. Item one
    to add the checkboxes: plimsoll plan --fix
    for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md
    ");
    std::fs::remove_file(world.path("fix_plan.md")).expect("the plan");
    let no_task = inside(&["start"]);
    assert_eq!(no_task.code, Some(1), "{no_task:?}");
    insta::assert_snapshot!(world.stable_text(&no_task.stderr), @"plimsoll: there is no task: write a plan (fix_plan.md) or PROMPT.md, or give --objective TEXT or --objective-file FILE");
}
