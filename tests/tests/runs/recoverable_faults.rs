//! Faults that a run meets beside the work itself: a client that is being updated, a lock that is held, a repository
//! that is recreated, a plan that is emptied, and endings that must leave the user's own changes alone.

use crate::resume::harness::section;
use plimsoll_testkit::scripted_agent::AgentTurn;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use plimsoll_tests::{
    LIFELIKE_DELAY, ScriptedAgent, THREE_ITEM_PLAN, events_named, first_request_of_iteration, honest_agent,
    last_request_of_iteration, read_journal, run_cases_in_parallel, run_with_objective, verdict_markers,
    world_with_plan_and_dates,
};
use serde_json::json;

const STATE_PATH: &str = ".claude/ralph-state.json";
const COMMIT_COMMAND: &str = "date +%N >> work.txt && git add -A && git commit -qm Work";

fn write_executable(world: &World, name: &str, text: &str) -> String {
    let path = world.home().join(name);
    world.write(&path, text);
    let path = path.display().to_string();
    world.command("chmod", &["+x", &path]).run().expect_success();
    path
}

/// Plays the honest agent after a first step of another kind.
fn honest_after_one(turn: &AgentTurn<'_>) -> Step {
    let (item, promise) = (turn.item_text.clone(), turn.promise_line.clone());
    honest_agent(&AgentTurn {
        request: turn.request,
        assistant_message_count: turn.assistant_message_count - 1,
        item_text: item,
        iteration: turn.iteration,
        promise_line: promise,
    })
}

/// Restores the client only after the run has noticed that it is missing.
const UPDATE_SCRIPT: &str = r#"#!/bin/sh
mv ~/client.sh ~/old.sh
until grep -q '"event":"fault"' .claude/plimsoll/journal.jsonl; do sleep 0.1; done
mv ~/old.sh ~/client.sh
"#;

#[test]
fn a_client_that_is_missing_for_a_moment_does_not_end_the_run() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let client = write_executable(&world, "client.sh", "#!/bin/sh\nexec claude \"$@\"\n");
    write_executable(&world, "update.sh", UPDATE_SCRIPT);
    let _model = ScriptedAgent::new(|turn| {
        match (turn.iteration, turn.assistant_message_count) {
            (1, 0) => Step::bash_call("setsid nohup ~/update.sh > /dev/null 2>&1 &"),
            (1, _) => honest_after_one(turn),
            _ => honest_agent(turn),
        }
        .with_delay(LIFELIKE_DELAY)
    })
    .start(&mut world);
    let finished = run_with_objective(&world, &["--client", &client]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    // The wait is a setting, which the snapshot must show.
    let stdout = finished.stdout.replace("again in 3 s", "again in three seconds");
    let fault = stdout.lines().find(|line| line.contains("trying again")).unwrap_or_default();
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(fault), @"   cannot start [HOME]/client.sh: No such file or directory (os error 2); trying again in three seconds");
    let journal = read_journal(&world);
    assert!(!events_named(&journal, "fault").is_empty(), "the journal tells of it");
    assert_eq!(world.read_json(STATE_PATH)["iteration"], 3, "nothing was counted twice");
}

#[test]
fn a_client_missing_at_the_first_session_pauses_the_run_with_the_reason() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let _model = ScriptedAgent::new(honest_agent).start(&mut world);
    let text = "#!/bin/sh\n[ \"$1\" = --version ] && { rm ~/client.sh; exec claude --version; }\nexit 9\n";
    let client = write_executable(&world, "client.sh", text);
    let finished = run_with_objective(&world, &["--client", &client]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let state = world.read_json(STATE_PATH);
    assert_eq!(state["status"], "paused");
    assert!(state["last_verdict"]["reason"].as_str().is_some_and(|reason| reason.contains("client.sh")));
    // Wide enough for the path.
    let status = world.plimsoll(&["status"]).env("COLUMNS", "240").run();
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&status.stdout), @r#"
    Dates ([ID])
    Status       paused: cannot start [HOME]/client.sh: No such file or directory (os error 2)
    Current item "Item one", session 1
    Context      ? (nothing has been answered yet, or the transcript cannot be read)
    Items        0 of 3 done, 3 open
      [ ] Item one
      [ ] Item two
      [ ] Item three
    Sessions     1 of at most 50
    Cost         unknown, 0 tokens
    Time         started [TIME], [DURATION] ago
    Next         fix the cause, then: plimsoll run --resume
    More         plimsoll report, plimsoll log, or .claude/plimsoll/journal.jsonl; recorded: [SIZE]
    "#);
    let resumed = world.plimsoll(&["run", "--resume", "--client", "claude"]).run();
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
}

#[test]
fn a_recreated_repository_does_not_allow_a_second_run() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let recreate_script = "rm -rf .git && git init -q -b main && git config user.email a@b && git config user.name n && git add -A && git commit -qm Anew; env -u CLAUDECODE plimsoll run --resume; plimsoll status";
    write_executable(&world, "again.sh", &format!("#!/bin/sh\n{recreate_script}\n"));
    let model = ScriptedAgent::new(|turn| {
        match (turn.iteration, turn.assistant_message_count) {
            (1, 0) => Step::bash_call("sh ~/again.sh"),
            (1, _) => honest_after_one(turn),
            _ => honest_agent(turn),
        }
        .with_delay(LIFELIKE_DELAY)
    })
    .start(&mut world);
    let finished = run_with_objective(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let last_request = last_request_of_iteration(&model, 1);
    let last_request = &last_request[last_request.len().saturating_sub(3_000)..];
    assert!(last_request.contains("another `plimsoll run` is active"), "{last_request}");
    assert!(!last_request.contains("its `plimsoll run` has ended"), "{last_request}");
    assert_eq!(events_named(&read_journal(&world), "spawned").len(), 3);
}

/// Returns what a prompt says about the session's item, without the steps to take.
fn item_section(prompt: &str) -> &str {
    section(prompt, "## Your item").split("\n\n1. ").next().unwrap_or_default()
}

#[test]
fn an_emptied_plan_is_restored_and_a_lost_item_is_reported() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let model = ScriptedAgent::new(|turn| {
        match (turn.iteration, turn.assistant_message_count) {
            (1, 0) => Step::bash_call("echo 'Nothing left to do.' > fix_plan.md"),
            (1, _) => Step::from_text("All gone."),
            (2, 0) => Step::bash_call(format!("{COMMIT_COMMAND}; sed -i '/Item two/d' fix_plan.md")),
            (2, _) => Step::from_text("Tidied up."),
            (3, 0) => Step::bash_call("echo '- [ ] Item two' >> fix_plan.md"),
            (3, _) => Step::from_text("Put back."),
            _ => honest_agent(turn),
        }
        .with_delay(LIFELIKE_DELAY)
    })
    .start(&mut world);
    let finished = run_with_objective(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let second_prompt = first_request_of_iteration(&model, 2);
    insta::assert_snapshot!(item_section(&second_prompt), @"
    ## Your item

    > Item one

    It is the first open item of `fix_plan.md` (3 of 3 items open).
    ");
    assert!(world.read("fix_plan.md").contains("Nothing left to do."), "what was written there is not lost");
    let third_prompt = first_request_of_iteration(&model, 3);
    insta::assert_snapshot!(item_section(&third_prompt), @"
    ## Your item

    > Item one

    It is the first open item of `fix_plan.md` (2 of 2 items open).

    These items were removed from `fix_plan.md` without a tick. First add each again as `- [ ]`, or as `- [x]` if it is done:

    - Item two
    ");
    assert_eq!(world.read_json(STATE_PATH)["completed_items"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_session_that_never_started_leaves_the_users_changes_uncommitted() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    world.write("notes.txt", "mine\n");
    world.write("src/dates.txt", "mine too\n");
    let before = world.git(&["status", "--porcelain", "--", "notes.txt", "src"]);
    let _model = ScriptedAgent::new(honest_agent).with_real_client().start(&mut world);
    let arguments = ["run", "--objective", "Do the plan.", "--", "--model", "opus", "--no-such-option"];
    let finished = world.plimsoll(&arguments).run();
    assert_eq!(finished.code, Some(5), "{finished:?}");
    assert_eq!(world.git(&["status", "--porcelain", "--", "notes.txt", "src"]), before);
    assert!(events_named(&read_journal(&world), "wip_commit").is_empty());
    assert!(!world.exists(".claude/handoffs"), "there is nothing to hand over");
}

#[test]
fn without_a_plan_a_commit_counts_as_progress_despite_client_errors() {
    let cases: [(&str, &[&str], &[&str]); 3] = [
        ("sessions cut by --max-turns", &["--max-turns", "1"], &[COMMIT_COMMAND, "true"]),
        ("an error that stays", &[], &[COMMIT_COMMAND, "ls no-such-file"]),
        ("a tool that is denied", &[], &[COMMIT_COMMAND, "DENIED"]),
    ];
    run_cases_in_parallel(&cases, |&(case, arguments, commands)| {
        let mut world = World::new();
        world.git(&["init", "-q", "-b", "main"]);
        world.write("a.txt", "a\n");
        world.git(&["add", "-A"]);
        world.git(&["commit", "-qm", "First"]);
        let _model = ScriptedAgent::new(move |turn| {
            commands
                .get(turn.assistant_message_count)
                .map_or_else(|| Step::from_text("On I go."), |command| Step::bash_call(*command))
                .with_delay(LIFELIKE_DELAY)
        })
        .start(&mut world);
        let client_arguments = [&["--allowedTools", "Bash", "--model", "opus"], arguments].concat();
        let mut command_line = vec!["run", "--objective", "Improve it.", "--max-iterations", "6", "--"];
        command_line.extend(client_arguments);
        let finished = world.plimsoll(&command_line).run();
        assert_eq!(finished.code, Some(3), "{case}: {finished:?}");
        assert_eq!(world.read_json(STATE_PATH)["no_change_count"], 0, "{case}");
    });
}

#[test]
fn different_failing_commands_do_not_count_as_the_same_error() {
    const COMMANDS: [&str; 6] = [
        "test -f missing",
        "grep -c nothing src/dates.txt",
        "git diff --exit-code HEAD~1 > /dev/null",
        "false",
        "cmp -s src/dates.txt fix_plan.md",
        "exit 2",
    ];
    let mut world = world_with_plan_and_dates("- [ ] Item one\n");
    let _model = ScriptedAgent::new(|turn| {
        match turn.assistant_message_count {
            0 => Step::bash_call(COMMIT_COMMAND),
            1 => Step::bash_call(COMMANDS[turn.iteration as usize - 1]),
            _ => Step::from_text("Not yet."),
        }
        .with_delay(LIFELIKE_DELAY)
    })
    .start(&mut world);
    let finished = run_with_objective(&world, &["--max-iterations", "6"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
}

#[test]
fn a_killed_session_is_charged_for_its_tokens() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let _model = ScriptedAgent::new(|turn| {
        match (turn.iteration, turn.assistant_message_count) {
            (2, 0) => Step::bash_call("echo on").with_input_tokens(500_000),
            (2, 1) => Step::bash_call("kill -9 $PPID").with_input_tokens(500_000),
            _ => honest_agent(turn).with_input_tokens(100_000),
        }
        .with_delay(LIFELIKE_DELAY)
    })
    .start(&mut world);
    let finished = run_with_objective(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let journal = read_journal(&world);
    let verdicts = events_named(&journal, "verdict");
    assert!(
        verdict_markers(&journal)[1].contains("Claude Code ended by signal 9"),
        "{:?}",
        verdict_markers(&journal)
    );
    let cost = |index: usize| verdicts[index]["cost_usd"].as_f64().unwrap_or_default();
    assert!(cost(1) > cost(0) * 1.5, "{} after {}", cost(1), cost(0));
    assert_eq!(world.read_json(STATE_PATH)["cost_is_reckoned"], json!(true));
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&world.plimsoll(&["status"]).run().stdout), @"
    Dates ([ID])
    Status       completed: 3 items
    Items        3 of 3 done
      [x] Item one
      [x] Item two
      [x] Item three
    Sessions     4 of at most 50
    Peaks        10% 50% 10% 10%
    Cost         about $0.33, 1.6M tokens
    Time         started [TIME], ended [TIME], took [DURATION]
    Next         nothing: the run is done; see git log and plimsoll report
    More         plimsoll report, plimsoll log, or .claude/plimsoll/journal.jsonl; recorded: [SIZE]
    ");
}
