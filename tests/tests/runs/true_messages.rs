//! Screens, logs and commands print what is true: each case here was once reported wrongly.

use plimsoll_testkit::scripted_agent::tick_item_command;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::{RunningProgram, World};
use plimsoll_tests::{
    ScriptedAgent, THREE_ITEM_PLAN, events_named, honest_agent, read_journal, resume_run, run_with_objective,
    world_with_hooks, world_with_plan_and_dates,
};
use serde_json::json;
use std::time::Duration;

const STATE_PATH: &str = ".claude/ralph-state.json";
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// Starts `plimsoll run`, so that a test can look at it while it works.
fn start_run(world: &World, options: &[&str]) -> RunningProgram {
    let client_arguments = ["--", "--model", "opus", "--allowedTools", "Bash"];
    world.plimsoll(&[&["run", "--objective", "Do the plan."], options, &client_arguments].concat()).spawn()
}

/// Returns a world whose first session begins with this step.
fn world_with_first_step(first_step: impl Fn() -> Step + Send + 'static) -> (World, ScriptedModel) {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let model = ScriptedAgent::new(move |turn| match (turn.iteration, turn.assistant_message_count) {
        (1, 0) => first_step(),
        _ => honest_agent(turn),
    })
    .start(&mut world);
    (world, model)
}

fn wait_for_file(world: &World, file: &str) {
    world.wait_until(|| world.exists(file), file);
}

/// Waits until the first session runs its tool and the run has printed that.
fn wait_for_tool(world: &World, run: &RunningProgram) {
    wait_for_file(world, "begun");
    world.wait_until(|| run.stdout_so_far().contains("   Bash "), "the tool's line");
}

fn status_screen(world: &World) -> String {
    world.plimsoll(&["status"]).env("COLUMNS", "160").run().expect_success().stdout
}

fn stable_log(world: &World) -> String {
    world.replace_varying_parts_with_placeholders(&world.plimsoll(&["log"]).run().stdout)
}

fn report_page(world: &World) -> String {
    world.plimsoll(&["report", "-o", "-"]).run().stdout
}

/// Returns the text after this title on the status screen.
fn status_line_text<'a>(screen: &'a str, title: &str) -> &'a str {
    screen
        .lines()
        .find_map(|line| line.strip_prefix(title))
        .unwrap_or_else(|| panic!("{title} in {screen}"))
        .trim()
}

fn first_session_ending(world: &World) -> String {
    world.read_json(STATE_PATH)["context_history"][0]["ending"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn an_ended_turn_with_an_open_item_is_not_reported_as_completed() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let _model = ScriptedAgent::new(|turn| match turn.iteration {
        2 => Step::from_text("I have looked around."),
        _ => honest_agent(turn),
    })
    .start(&mut world);
    let finished = run_with_objective(&world, &["--max-iterations", "3"]);
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stdout), @r#"
    run "Dates" ([ID]), at most 3 sessions, 3 open items in fix_plan.md
    ── session 1: Item one
       client [VERSION], claude-opus-5-5
       Bash echo 'Item one' >> work.txt && sed -i.bak 's/^- \[ \] Item one$/- [x] Item one/…
       session 1 ended its turn; "Item one" is ticked
       RALPH_CONTINUE|next|2 open items   ($0.01)
    ── session 2: Item two
       client [VERSION], claude-opus-5-5
       session 2 ended its turn; "Item two" is still open
       RALPH_CONTINUE|next|2 open items   ($0.02)
    ── session 3: Item two
       client [VERSION], claude-opus-5-5
       Bash echo 'Item two' >> work.txt && sed -i.bak 's/^- \[ \] Item two$/- [x] Item two/…
       session 3 ended its turn; "Item two" is ticked
       RALPH_STOP|max_iterations|3 iterations done   ($0.03)
    "#);
}

#[test]
fn a_session_ended_by_plimsoll_stop_is_not_reported_as_a_crash() {
    let (world, _model) = world_with_first_step(|| Step::bash_call("touch begun; sleep 50"));
    let run = start_run(&world, &[]);
    wait_for_tool(&world, &run);
    world.plimsoll(&["stop"]).run().expect_success();
    let finished = run.wait_or_kill_and_panic(WAIT_TIMEOUT);
    // A client that is signaled may end before it has reported its cost, which is then estimated.
    let without_estimate_mark = |text: String| text.replace("about $", "$");
    assert_eq!(finished.code, Some(9), "{finished:?}");
    insta::assert_snapshot!(without_estimate_mark(world.replace_varying_parts_with_placeholders(&finished.stdout)), @r#"
    run "Do the plan." ([ID]), at most 50 sessions, 3 open items in fix_plan.md
    ── session 1: Item one
       client [VERSION], claude-opus-5-5
       Bash touch begun; sleep 50
       session 1 was ended by `plimsoll stop`; "Item one" is still open
       RALPH_STOP|cancelled|   (<$0.01)
    "#);
    assert_eq!(first_session_ending(&world), "cancelled");
    insta::assert_snapshot!(without_estimate_mark(stable_log(&world)), @r#"
    ── [DAY]
    [TIME]   -  run "Do the plan." started: 3 items, at most 50 sessions
    [TIME]   1  session began (fresh)
    [TIME]   1  run canceled with `plimsoll stop`
    [TIME]   1  client ended by Plimsoll: the run was canceled
    [TIME]   1  session ended
    [TIME]   1  run canceled (<$0.01 so far)
    "#);
    insta::assert_snapshot!(without_estimate_mark(world.replace_varying_parts_with_placeholders(&status_screen(&world))), @"
    Do the plan. ([ID])
    Status       canceled with `plimsoll stop`
    Items        0 of 3 done, 3 open
      [ ] Item one
      [ ] Item two
      [ ] Item three
    Sessions     1 of at most 50
    Peaks        ?
    Cost         <$0.01, 60 tokens
    Time         started [TIME], ended [TIME], took [DURATION]
    Next         start a new run with: plimsoll run
    More         plimsoll report, plimsoll log, or .claude/plimsoll/journal.jsonl; recorded: [SIZE]
    ");
    assert!(!report_page(&world).contains("crash"), "{}", report_page(&world));
}

#[test]
fn messages_distinguish_an_end_by_ctrl_c_from_an_idle_timeout() {
    let (world, _model) =
        world_with_first_step(|| Step::bash_call("echo half > half.txt; touch begun; sleep 50"));
    let mut run = start_run(&world, &[]);
    wait_for_tool(&world, &run);
    run.interrupt();
    // Two signals at once may arrive as one.
    world.wait_until(|| run.stdout_so_far().contains("stopping after "), "the first Ctrl-C");
    run.interrupt();
    let finished = run.wait_or_kill_and_panic(WAIT_TIMEOUT);
    assert_eq!(finished.code, Some(130), "{finished:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stdout), @r#"
    run "Do the plan." ([ID]), at most 50 sessions, 3 open items in fix_plan.md
    ── session 1: Item one
       client [VERSION], claude-opus-5-5
       Bash echo half > half.txt; touch begun; sleep 50
       stopping after the current session (Ctrl-C again ends it now); --resume continues
       ending the session now
       session 1 was ended by you (Ctrl-C, or a signal); "Item one" is still open
       RALPH_PAUSE|-|interrupted   (<$0.01)
    "#);
    assert_eq!(first_session_ending(&world), "interrupted");
    insta::assert_snapshot!(stable_log(&world), @r#"
    ── [DAY]
    [TIME]   -  run "Do the plan." started: 3 items, at most 50 sessions
    [TIME]   1  session began (fresh)
    [TIME]   1  session ended
    [TIME]   1  checkpoint after a session that was cut short: .claude/handoffs/[DATE-TIME].md (item "Item one")
    [TIME]   1  uncommitted work committed as [COMMIT]… (2 files): ralph: checkpoint iter 1 (unfinished)
    [TIME]   1  paused: interrupted (<$0.01 so far)
    "#);
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&status_screen(&world)), @r#"
    Do the plan. ([ID])
    Status       paused: interrupted
    Current item "Item one", session 1
    Context      0% (10 of 1M tokens); checkpoint at 85%
    Items        0 of 3 done, 3 open
      [ ] Item one
      [ ] Item two
      [ ] Item three
    Sessions     1 of at most 50, 1 pause
    Peaks        ?
    Checkpoints  the last: .claude/handoffs/[DATE-TIME].md (cut short, session 1)
    Cost         <$0.01, 60 tokens
    Time         started [TIME], [DURATION] ago
    Next         plimsoll run --resume
    More         plimsoll report, plimsoll log, or .claude/plimsoll/journal.jsonl; recorded: [SIZE]
    "#);
    let report = report_page(&world);
    assert!(!report.contains("crash") && !report.contains("broke off"), "{report}");

    let (world, _model) =
        world_with_first_step(|| Step::from_text("never").with_hang(Duration::from_secs(50)));
    let run = start_run(&world, &["--idle-timeout", "2s", "--max-iterations", "1"]);
    let finished = run.wait_or_kill_and_panic(WAIT_TIMEOUT);
    // The silence is a setting, so the snapshot must not replace it as a duration.
    let stdout = finished.stdout.replace("no output for 2 s", "no output for two seconds");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&stdout), @r#"
    run "Do the plan." ([ID]), at most 1 session, 3 open items in fix_plan.md
    ── session 1: Item one
       client [VERSION], claude-opus-5-5
       session 1 was ended by Plimsoll: no output for two seconds; "Item one" is still open
       RALPH_STOP|max_iterations|1 iteration done   (cost unknown)
    "#);
}

#[test]
fn status_includes_the_running_session_with_an_estimated_cost() {
    let (world, _model) =
        world_with_first_step(|| Step::bash_call("touch begun; sleep 50").with_input_tokens(410_000));
    let mut run = start_run(&world, &[]);
    wait_for_file(&world, "begun");
    // The client writes its transcript a little later than it starts the tool.
    world.wait_until(
        || status_line_text(&status_screen(&world), "Cost").contains("410k"),
        "the session's tokens",
    );
    let screen = status_screen(&world);
    assert_eq!(status_line_text(&screen, "Cost"), "about $0.08, 410k tokens", "{screen}");
    run.kill();
    world.kill_leftovers();
}

#[test]
fn status_and_progress_show_since_when_the_api_is_unreachable() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let _model = ScriptedAgent::new(honest_agent).with_real_client().start(&mut world);
    // Nothing listens on this port.
    world.set_env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9");
    world.set_env("CLAUDE_CODE_MAX_RETRIES", "10");
    let mut run = start_run(&world, &[]);
    let has_retried = |run: &RunningProgram| run.stdout_so_far().contains("the API cannot be reached since ");
    world.wait_until(|| has_retried(&run), "a retry");
    let is_shown =
        || status_line_text(&status_screen(&world), "Status").contains("the API cannot be reached since ");
    world.wait_until(is_shown, "since when, in the status");
    let screen = status_screen(&world);
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&screen), @r#"
    Do the plan. ([ID])
    Status       running: a `plimsoll run` is active; the API cannot be reached since [TIME]; Claude Code retries by itself
    Current item "Item one", session 1
    Context      ? (nothing has been answered yet, or the transcript cannot be read)
    Items        0 of 3 done, 3 open
      [ ] Item one
      [ ] Item two
      [ ] Item three
    Sessions     1 of at most 50, 1 running
    Cost         unknown, 0 tokens
    Time         started [TIME], [DURATION] ago
    Left         no estimate yet
    Next         nothing, or check your network: the session continues once the API answers
    More         plimsoll report, plimsoll log, or .claude/plimsoll/journal.jsonl; recorded: [SIZE]
    "#);
    run.kill();
    world.kill_leftovers();
}

#[test]
fn an_api_that_answers_again_is_no_longer_called_unreachable() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    world.set_env("CLAUDE_CODE_MAX_RETRIES", "10");
    let mut refused = false;
    let _model = ScriptedAgent::new(move |turn| match turn.assistant_message_count {
        0 if !std::mem::replace(&mut refused, true) => Step::api_error(529, "Overloaded"),
        0 => Step::bash_call("touch begun; sleep 50"),
        _ => honest_agent(turn),
    })
    .start(&mut world);
    let mut run = start_run(&world, &[]);
    wait_for_file(&world, "begun");
    let output = run.stdout_so_far();
    assert!(output.contains("the API has answered with 529 since "), "{output}");
    world.wait_until(|| !status_screen(&world).contains("the API"), "it has answered");
    world.wait_until(
        || run.stdout_so_far().contains("   the API answers again after "),
        "the end of the outage",
    );
    let output = run.stdout_so_far();
    assert_eq!(output.matches("the API has answered").count(), 1, "{output}");
    run.kill();
    world.kill_leftovers();
}

#[test]
fn a_completed_run_is_not_resumed() {
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item three\n");
    let _model = ScriptedAgent::new(honest_agent).start(&mut world);
    run_with_objective(&world, &[]).expect_success();
    let refused = resume_run(&world, &[]);
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&refused.stderr), @r#"the run "Dates" has ended (completed) and cannot be resumed"#);
    assert!(events_named(&read_journal(&world), "resumed").is_empty(), "{:#?}", read_journal(&world));
    insta::assert_snapshot!(stable_log(&world), @r#"
    ── [DAY]
    [TIME]   -  run "Dates" started: 1 item, at most 50 sessions
    [TIME]   1  session began (fresh)
    [TIME]   1  session ended, peak 3%
    [TIME]   1  ticked "Item three"; run completed: 1 item ($0.01 so far)
    "#);
}

#[test]
fn a_pending_ctrl_c_is_shown_until_the_run_has_stopped() {
    let (world, _model) = world_with_first_step(|| {
        Step::bash_call("touch begun; while [ ! -e go ]; do sleep 0.1; done").with_input_tokens(31_000)
    });
    let mut run = start_run(&world, &[]);
    wait_for_tool(&world, &run);
    run.interrupt();
    let is_shown =
        || status_line_text(&status_screen(&world), "Status").contains("stops after this session (Ctrl-C)");
    world.wait_until(is_shown, "the pending stop");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&status_screen(&world)), @r#"
    Do the plan. ([ID])
    Status       running: a `plimsoll run` is active, and stops after this session (Ctrl-C)
    Current item "Item one", session 1
    Context      3% (31k of 1M tokens); checkpoint at 85%
    Items        0 of 3 done, 3 open
      [ ] Item one
      [ ] Item two
      [ ] Item three
    Sessions     1 of at most 50, 1 running
    Cost         <$0.01, 31k tokens
    Time         started [TIME], [DURATION] ago
    Next         nothing: it stops after this session; Ctrl-C again ends the session now; to continue later: plimsoll run --resume
    More         plimsoll report, plimsoll log, or .claude/plimsoll/journal.jsonl; recorded: [SIZE]
    "#);
    world.write("go", "");
    let finished = run.wait_or_kill_and_panic(WAIT_TIMEOUT);
    assert_eq!(finished.code, Some(130), "{finished:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stdout), @r#"
    run "Do the plan." ([ID]), at most 50 sessions, 3 open items in fix_plan.md
    ── session 1: Item one
       client [VERSION], claude-opus-5-5
       Bash touch begun; while [ ! -e go ]; do sleep 0.1; done
       stopping after the current session (Ctrl-C again ends it now); --resume continues
       session 1 ended its turn; "Item one" is still open
       RALPH_CONTINUE|checkpoint|.claude/handoffs/[DATE-TIME].md   ($0.01)
       stopped after this session, as requested with Ctrl-C
    "#);
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&status_screen(&world)), @r#"
    Do the plan. ([ID])
    Status       paused: interrupted by you
    Current item "Item one", session 1
    Context      3% (31k of 1M tokens); checkpoint at 85%
    Items        0 of 3 done, 3 open
      [ ] Item one
      [ ] Item two
      [ ] Item three
    Sessions     1 of at most 50
    Peaks        3%
    Checkpoints  the last: .claude/handoffs/[DATE-TIME].md (unfinished at 3%, session 1)
    Cost         $0.01, 62k tokens
    Time         started [TIME], [DURATION] ago
    Next         plimsoll run --resume
    More         plimsoll report, plimsoll log, or .claude/plimsoll/journal.jsonl; recorded: [SIZE]
    "#);
    let mut run = world.plimsoll(&["run", "--resume"]).spawn();
    world.wait_until(|| world.read_json(STATE_PATH)["iteration"] == 2, "it goes on");
    assert!(!status_screen(&world).contains("stops after"), "{}", status_screen(&world));
    run.kill();
    world.kill_leftovers();
}

#[test]
fn with_context_finds_the_session_from_the_agents_shell() {
    let show_command = "plimsoll with-context -- sh -c 'echo \"$CLAUDE_CONTEXT_PERCENT $CLAUDE_CONTEXT_TOKENS_USED $CLAUDE_CONTEXT_TOKENS_MAX\" > shown.txt'";
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::bash_call("echo one").with_input_tokens(430_000),
        Step::bash_call(show_command).with_input_tokens(440_000),
        Step::from_text("Done.").with_input_tokens(441_000),
    ]);
    let world = world_with_hooks(&model);
    world.claude(&["-p", "Count.", "--model", "opus", "--allowedTools", "Bash"]).run().expect_success();
    assert_eq!(world.read("shown.txt"), "44 440000 1000000\n");
}

/// Returns the output of `plimsoll turns` with SESSION in place of the first digits of the session's id.
fn stable_turns(world: &World, output: &str) -> String {
    let session = output.trim_start_matches("Turn ").split(':').next().expect("a session");
    world.replace_varying_parts_with_placeholders(&output.replace(&format!("{session}:"), "SESSION:"))
}

#[test]
fn a_turn_has_the_same_number_in_turns_list_and_turns_show() {
    let steps =
        vec![Step::bash_call("echo first"), Step::bash_call("echo second"), Step::from_text("Third.")];
    let model = ScriptedModel::start_with_steps_repeating_last(steps);
    let world = world_with_hooks(&model);
    world.claude(&["-p", "Count.", "--model", "opus", "--allowedTools", "Bash"]).run().expect_success();
    let list = world.plimsoll(&["turns", "list"]).run().expect_success().stdout;
    insta::assert_snapshot!(stable_turns(&world, &list), @"
    SESSION:1    [TIME]     10  ok           Bash(echo first)
    SESSION:2    [TIME]     10  ok           Bash(echo second)
    SESSION:3    [TIME]     10  ok           Third.
    ");
    let shown = world.plimsoll(&["turns", "show", "2"]).run().expect_success().stdout;
    // Lists name a record that is no turn by its number.
    let session = list.split(':').next().unwrap_or_default();
    let by_record = |name: &str| world.plimsoll(&["turns", "show", name]).run().expect_success().stdout;
    assert_eq!(by_record(&format!("{session}#12")), shown);
    assert_eq!(by_record("record:12"), shown);
    insta::assert_snapshot!(stable_turns(&world, &shown), @"
    Turn SESSION:2   [TIME]   (record 12)
    Session  [ID], stream main
    Model    claude-opus-5-5, stopped for tool_use, reasoning none
    Tokens   10 input (0 from the cache), 50 output

    → Bash(echo second)   [ok, [DURATION]]
      | second
    ");
}

#[test]
fn the_last_turn_of_a_killed_session_is_listed_at_once() {
    let steps = vec![
        Step::bash_call("echo before"),
        Step::bash_call("touch begun; sleep 50").with_text("A long one."),
    ];
    let model = ScriptedModel::start_with_steps_repeating_last(steps);
    let world = world_with_hooks(&model);
    let mut client = world.claude(&["-p", "Work.", "--model", "opus", "--allowedTools", "Bash"]).spawn();
    wait_for_file(&world, "begun");
    let is_in_transcript = || {
        world
            .transcript_paths()
            .iter()
            .any(|path| std::fs::read_to_string(path).unwrap().contains("A long one."))
    };
    world.wait_until(is_in_transcript, "the call in the transcript");
    let list = || world.plimsoll(&["turns", "list"]).run().stdout;
    assert!(!list().contains("abandoned"), "it works: {}", list());
    client.kill();
    client.wait_or_kill_and_panic(WAIT_TIMEOUT);
    world.kill_leftovers();
    insta::assert_snapshot!(stable_turns(&world, &list()), @"
    SESSION:1    [TIME]     10  ok           Bash(echo before)
    SESSION:2    [TIME]     10  abandoned    Bash(touch begun; sleep 50) — A long one.
    ");
}

#[test]
fn plan_reports_that_nothing_fits_if_a_session_starts_above_l2() {
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item one (medium)\n- [ ] Item two\n");
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::from_text("Hello.").with_input_tokens(900_000),
    ]);
    world.put_client_on_path_with_model_and_settings(&model);
    world.plimsoll(&["init", "--local"]).run().expect_success();
    world.claude(&["-p", "Hello.", "--model", "opus"]).run().expect_success();
    let plan = world.plimsoll(&["plan", "--markdown"]).run().expect_success().stdout;
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&plan), @"
    ## Plan

    2 items open in fix_plan.md, 0 done. A session has room for about 0 tokens before L2 (window 1M).

    No item fits into a session: a new one already holds about 900k tokens with its first answer, and the checkpoint (L2) comes at 845k.

    Check what is loaded at the start (`/context` in Claude Code shows it): CLAUDE.md files, MCP servers, a resumed conversation; or choose a model with a larger window.
    ");
    let json = world.plimsoll(&["plan", "--json"]).run().expect_success().stdout_json();
    assert_eq!((&json["one_by_one"], &json["items"][0]["sessions"]), (&json!(null), &json!(null)), "{json}");
}

/// The agent that the first example of the help assumes: it edits, tests, ticks and commits.
fn example_agent_step(turn: &plimsoll_testkit::scripted_agent::AgentTurn<'_>) -> Step {
    let Some(item) = turn.item_text.clone() else {
        return Step::from_text(format!("All done.\n\n{}", turn.promise_line));
    };
    match turn.assistant_message_count {
        0 => Step::default().with_tool_call("Read", json!({"file_path": "src/dates.txt"})),
        1 => Step::default().with_tool_call("Write", json!({"file_path": "new.txt", "content": "new\n"})),
        2 => Step::bash_call("test -e new.txt"),
        3 => Step::bash_call(tick_item_command(&item)),
        _ => Step::from_text(format!("All done.\n\n{}", turn.promise_line)),
    }
}

#[test]
fn the_first_example_of_the_help_works_as_printed() {
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item one\n");
    let _model = ScriptedAgent::new(example_agent_step).with_real_client().start(&mut world);
    let help = world.plimsoll(&["--help"]).env("COLUMNS", "80").run().expect_success().stdout;
    let steps = help.split("First steps:").nth(1).expect("first steps");
    let example =
        steps.lines().map(str::trim).find(|line| line.starts_with("plimsoll run -")).expect("a run");
    world.plimsoll(&["init", "--local"]).run().expect_success();
    let finished = world.command("sh", &["-c", example]).run();
    assert_eq!(finished.code, Some(0), "{example}: {finished:?}");
    assert!(!finished.stdout.contains("refused"), "{}", finished.stdout);
    assert_eq!(world.git(&["log", "-1", "--format=%s"]), "Finish Item one");
}

/// Returns the rest of the last line that contains this text.
fn text_after_last(text: &str, marker: &str) -> String {
    let line = text.lines().rev().find_map(|line| line.split_once(marker));
    line.unwrap_or_else(|| panic!("{marker} in {text}")).1.to_owned()
}

#[test]
fn after_a_refused_tool_the_full_resume_command_is_printed() {
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item one\n");
    let _model = ScriptedAgent::new(example_agent_step).with_real_client_in(&[1, 2, 3]).start(&mut world);
    let prompt = "Say 'it'.";
    let arguments = ["run", "--objective", "Do the plan.", "--", "--model", "opus", "--allowedTools", "Read"];
    let extra = ["--append-system-prompt", prompt];
    let finished = world.plimsoll(&[&arguments[..], &extra].concat()).run();
    assert_eq!(finished.code, Some(4), "{finished:?}");
    let command = text_after_last(&finished.stderr, "to continue: ");
    insta::assert_snapshot!(command, @r#"plimsoll run --resume --reset-breaker -- --model opus --allowedTools Read Write Bash --append-system-prompt "Say 'it'.""#);
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&status_screen(&world)), @r#"
    Do the plan. ([ID])
    Status       stuck (circuit_breaker): permission_denied: in 2 sessions in a row Claude Code refused the tool Write: allow it after `--`, for example with
                 --allowedTools Write
    Items        0 of 1 done, 1 open
      [ ] Item one
    Sessions     2 of at most 50
    Peaks        ? ?
    Cost         $0.01, 600 tokens
    Time         started [TIME], ended [TIME], took [DURATION]
    Problems     2 sessions without progress, 2 sessions with the same error (This Bash command contains multiple operations. T…), 2 promises refused, 2 sessions w…
    Next         plimsoll run --resume --reset-breaker -- --model opus --allowedTools Read Write Bash --append-system-prompt "Say 'it'."
    More         plimsoll report, plimsoll log, or .claude/plimsoll/journal.jsonl; recorded: [SIZE]
    "#);
    let resumed = world.command("sh", &["-c", &command]).run();
    assert_eq!(resumed.code, Some(0), "{command}: {resumed:?}");
    assert_eq!(world.git(&["log", "-1", "--format=%s"]), "Finish Item one");
    let kept_arguments = &world.read_json(STATE_PATH)["client_arguments"];
    assert!(kept_arguments.as_array().is_some_and(|kept| kept.contains(&json!(prompt))), "{kept_arguments}");
}

#[test]
fn after_another_stop_the_command_that_allows_refused_tools_is_printed() {
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item one\n");
    let _model = ScriptedAgent::new(example_agent_step).with_real_client_in(&[1]).start(&mut world);
    let arguments = ["run", "--objective", "Do the plan.", "--max-iterations", "1", "--", "--model", "opus"];
    let finished = world.plimsoll(&arguments).run();
    assert_eq!(finished.code, Some(3), "{finished:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stderr), @"
    warning: neither the arguments nor the settings of Claude Code seem to allow Bash, and nobody will be there to ask, so sessions may be refused builds, tests and commits; to allow it: plimsoll run --objective 'Do the plan.' --max-iterations 1 -- --model opus --allowedTools Bash
    hint: to continue: plimsoll run --resume --max-iterations N, with a larger N
    hint: to continue and allow what Claude Code refused (Write, Bash): plimsoll run --resume --max-iterations 11 -- --model opus --allowedTools Write Bash
    hint: to see what happened: plimsoll report --open, or plimsoll log
    ");
    let command =
        text_after_last(&finished.stderr, "to continue and allow what Claude Code refused (Write, Bash): ");
    let resumed = world.command("sh", &["-c", &command]).run();
    assert_eq!(resumed.code, Some(0), "{command}: {resumed:?}");
}
