//! `/ralph context` and `/ralph checkpoint` in the real client: the output that a person sees. Also what a session is
//! told that is to start a run, because a run starts only in a terminal.

use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use serde_json::Value;
use std::time::Duration;

/// Creates a project with our hooks and commands, and a run whose first session is the next one that starts here.
fn world_with_started_run() -> World {
    let mut world = plimsoll_tests::world_with_plan_and_dates(
        "# Plan\n\n- [ ] Implement OAuth callback (medium)\n- [ ] Log out\n",
    );
    world.plimsoll(&["init", "--local"]).run().expect_success();
    let started = world.plimsoll(&["start", "--objective", "Do the plan.", "--name", "Auth"]).run();
    let run_id = world.read_json(".claude/ralph-state.json")["run_id"].as_str().expect("a run").to_owned();
    assert!(started.expect_success().stdout.contains(&run_id));
    world.set_env("PLIMSOLL_RUN_ID", run_id);
    world
}

/// Returns the command line as the command's text names it.
fn plimsoll_command_line(arguments: &str) -> String {
    format!("{} {arguments}", plimsoll_testkit::find_or_build_bin_dir().join("plimsoll").display())
}

/// A model that does what the command's text asks for: it runs the named command and answers with the output from the
/// heading on. It runs another command first, so that the client has already written down a usage figure.
fn obedient_model(arguments: &'static str) -> ScriptedModel {
    let calls = [
        Step::bash_call(plimsoll_command_line("--version")),
        Step::bash_call(plimsoll_command_line(arguments)),
    ];
    let answer = move |request: &Request| {
        let results = request.all_tool_results();
        match calls.get(results.len()) {
            Some(call) => call.clone().with_input_tokens(668_000).with_delay(plimsoll_tests::LIFELIKE_DELAY),
            None => {
                let printed = &results[1].1;
                Step::from_text(&printed[printed.find("##").unwrap_or_default()..]).with_input_tokens(669_000)
            }
        }
    };
    ScriptedModel::start(answer)
}

/// Runs a prompt. No permission is given but the command's own.
fn run_claude_prompt(world: &World, prompt: &str) -> Value {
    let args =
        ["-p", prompt, "--model", "opus", "--permission-mode", "default", "--output-format", "stream-json"];
    world.claude(&[&args[..], &["--verbose"]].concat()).run().expect_success().last_result()
}

/// Returns our command's text to the model; the client puts its own text before and after it.
fn command_text_in(request: &str) -> &str {
    let start = request.find("The user called `/ralph`").expect("the command's text");
    request[start..].split("\n\n# Environment").next().unwrap_or_default()
}

#[test]
fn ralph_context_prints_the_runs_table_in_a_headless_session() {
    let mut world = world_with_started_run();
    let model = obedient_model("status --markdown");
    world.put_client_on_path_with_model_and_settings(&model);
    let result = run_claude_prompt(&world, "/ralph context");
    let request_text = model.main_requests()[0].text_since_last_assistant_message();
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(command_text_in(&request_text)), @"
    The user called `/ralph` with: context

    `/ralph` runs the `[BIN]/plimsoll` command. The first word above is the action; the rest is plain text, never a command. Run only that action with the Bash tool, show its output, and stop. If a command fails, show its message and change nothing. Put the user's text in single quotes for the shell.

    - `status`: `[BIN]/plimsoll status`. Summarize it in a few lines.
    - `checkpoint [summary]`: `[BIN]/plimsoll checkpoint --summary 'the summary'`. Without a summary, write one yourself: one or two factual sentences on what is done and what is next. Answer only with its output from the line that begins with `##`, word for word.
    - `context`: `[BIN]/plimsoll status --markdown`. Answer only with its output, word for word, as Markdown: no code block, no line added, omitted or rephrased.
    - `stop`: `[BIN]/plimsoll stop`. This cancels the run; use it only if the user asks for it here.

    Without an action, or with another word: run nothing, list these four, and show the command that starts a run from a terminal in this project's folder: `[BIN]/plimsoll run --objective 'the objective' -- --permission-mode acceptEdits --allowedTools Bash`. If a plan or PROMPT.md has the task, it needs no `--objective`. Do not work on the objective or run the command yourself.
    ");
    let output = result["result"].as_str().unwrap_or_default();
    // The number of answers that the client has written down by then varies.
    let is_stable_row = |row: &&str| !row.starts_with("| Cost ") && !row.starts_with("| Forecast ");
    let table: Vec<&str> = output.lines().filter(is_stable_row).collect();
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&table.join("\n")), @r#"
    ## Ralph Context Status

    | Metric              | Value |
    |---------------------|-------|
    | Current Context     | 67% (668k of 1M tokens) |
    | Level               | L0 (Normal) |
    | Estimated Remaining | ~177k tokens to the checkpoint, ~299k to the auto-compact threshold (97%: Claude Code compacts) |
    | Current Item        | "Implement OAuth callback (medium)" |
    | Item Complexity     | Medium (est. 40% of the window) |
    | Run Session         | 1 of 50 ("Auth") |
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
fn ralph_checkpoint_reports_its_iteration_and_the_next_step() {
    let mut world = world_with_started_run();
    let model = obedient_model("checkpoint --summary 'The form is done.'");
    world.put_client_on_path_with_model_and_settings(&model);
    let result = run_claude_prompt(&world, "/ralph checkpoint");
    let output = result["result"].as_str().unwrap_or_default();
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(output), @r#"
    ## Ralph Checkpoint Created

    **Session**: 1 of 50
    **Context**: 67%
    **Handoff**: .claude/handoffs/[DATE-TIME].md

    The next session of "Auth" (2 open items) resumes from this point. This one continues: a checkpoint on demand ends nothing.
    "#);
    let results = model.main_requests().last().expect("a request").all_tool_results();
    assert!(results[1].1.starts_with("CCS_CHECKPOINT_TRIGGERED|L0|67|.claude/handoffs/"), "{results:?}");
}

#[test]
fn ralph_context_renders_the_table_on_a_terminal() {
    let mut world = world_with_started_run();
    let model = obedient_model("status --markdown");
    world.put_client_on_path_with_model_and_settings(&model);
    let args = ["--model", "opus", "--permission-mode", "default"];
    let mut terminal = Terminal::start_claude(&world, &args, 140, 80);
    terminal.wait_for_text("❯");
    terminal.type_text("/ralph context");
    terminal.wait_for_text("/ralph context");
    terminal.press_enter();
    let screen = terminal.wait_for_text("Checkpoint will trigger automatically at 85%.");
    for words in
        ["Ralph Context Status", "67% (668k of 1M tokens)", "L0 (Normal)", "Medium (est. 40% of the window)"]
    {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
    terminal.close();
}

/// A bare `/ralph`, or one with an unknown word, names the command that starts a run in a terminal.
#[test]
fn ralph_without_a_known_word_names_the_command_that_starts_a_run() {
    for prompt in ["/ralph", "/ralph start Do the plan."] {
        let mut world = plimsoll_tests::world_with_plan_and_dates("# Plan\n\n- [ ] Item three\n");
        world.plimsoll(&["init", "--local"]).run().expect_success();
        let model = ScriptedModel::start(|_: &Request| Step::from_text("Done."));
        world.put_client_on_path_with_model_and_settings(&model);
        run_claude_prompt(&world, prompt);
        let request_text = model.main_requests()[0].text_since_last_assistant_message();
        let (known_words, rest) = request_text
            .split_once("\nWithout an action, or with another word: run nothing")
            .expect(&request_text);
        assert!(
            rest.contains(&plimsoll_command_line(
                "run --objective 'the objective' -- --permission-mode acceptEdits"
            )),
            "{request_text}"
        );
        assert!(known_words.contains("- `status`") && !known_words.contains("- `start"), "{request_text}");
    }
}

/// `plimsoll start` prepares nothing in a session: it prints one command, which works as it is printed.
#[test]
fn start_in_a_session_prints_a_command_that_works_in_a_terminal() {
    let mut world = plimsoll_tests::world_with_plan_and_dates("# Plan\n\n- [ ] Item three\n");
    world.plimsoll(&["init", "--local"]).run().expect_success();
    let start =
        world.plimsoll(&["start", "--objective", "Do the plan."]).env("CLAUDE_CODE_SESSION_ID", "s1").run();
    let error_output = &start.stderr;
    assert_eq!(start.code, Some(1), "{start:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(error_output), @"
    error: a run starts its own sessions, and this is inside a session: nothing was started. The user can start the run with this command in a terminal:
    cd [PROJECT] && plimsoll run --objective 'Do the plan.' -- --permission-mode acceptEdits --allowedTools Bash
    ");
    for file in [".claude/ralph-state.json", "PROMPT.md"] {
        assert!(!world.exists(file), "{file} is prepared for nobody");
    }
    let printed_command = error_output.lines().find(|line| line.starts_with("cd ")).expect(error_output);

    let _model =
        plimsoll_tests::ScriptedAgent::new(plimsoll_tests::honest_agent).with_real_client().start(&mut world);
    let other_folder = world.home();
    let finished = world
        .command("sh", &["-c", printed_command])
        .cwd(other_folder)
        .timeout(Duration::from_secs(120))
        .run();
    assert_eq!(finished.code, Some(0), "{printed_command}\n{finished:?}");
    assert_eq!(world.read_json(".claude/ralph-state.json")["objective"], "Do the plan.");
    assert_eq!(world.read_json(".claude/ralph-state.json")["status"], "completed");
}

/// A problem that would prevent the run is reported at once, not by the command that the user is given.
#[test]
fn start_in_a_session_reports_what_prevents_the_run() {
    let world = plimsoll_tests::world_with_plan_and_dates("1. Item one\n");
    let run_in_session =
        |arguments: &[&str]| world.plimsoll(arguments).env("CLAUDE_CODE_SESSION_ID", "s1").run();
    let refused = run_in_session(&["start", "--objective", "Do it."]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&refused.stderr), @"
    error: the plan fix_plan.md has no item; these lines look like items without a checkbox (`- [ ] …`):
      fix_plan.md:1: 1. Item one
    to add the checkboxes: plimsoll plan --fix
    for a run without a plan rename it: mv fix_plan.md notes-fix_plan.md
    ");
    std::fs::remove_file(world.path("fix_plan.md")).expect("the plan");
    let no_task = run_in_session(&["start"]);
    assert_eq!(no_task.code, Some(1), "{no_task:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&no_task.stderr), @"error: there is no task: write a plan (fix_plan.md) or PROMPT.md, or give --objective TEXT or --objective-file FILE");
}
