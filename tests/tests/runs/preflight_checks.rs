//! A run must not start without working hooks, and a start that fails leaves nothing behind.

use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::{FinishedProgram, World};
use plimsoll_tests::{
    ScriptedAgent, THREE_ITEM_PLAN, events_named, honest_agent, read_journal, run_with_objective,
    world_with_plan_and_dates,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

const STATE_PATH: &str = ".claude/ralph-state.json";

// ---- the hooks do not run ----

#[test]
fn disabled_hooks_end_the_run_immediately() {
    for (file, at_home) in [
        (".claude/settings.json", false),
        (".claude/settings.local.json", false),
        (".claude/settings.json", true),
    ] {
        let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
        let path = if at_home { world.home().join(file) } else { world.path(file) };
        world.write(path, "{\"disableAllHooks\": true}\n");
        let model = ScriptedAgent::new(|turn| honest_agent(turn).with_delay(Duration::from_secs(2)))
            .start(&mut world);
        let finished = run_with_objective(&world, &[]);
        assert_run_ended_unguarded(&world, &model, &finished);
        assert!(finished.elapsed < Duration::from_secs(40), "{finished:#?}");
        assert!(model.main_requests().len() <= 1, "{finished:#?}");
        assert!(!world.exists("work.txt"));
    }
}

/// A client that answers at once ends before the run can check its hooks; the missing hooks are detected all the same.
#[test]
fn disabled_hooks_are_detected_even_after_a_very_short_session() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    world.write(".claude/settings.json", "{\"disableAllHooks\": true}\n");
    let model = ScriptedAgent::new(|_| Step::from_text("I have nothing to do.")).start(&mut world);
    let finished = run_with_objective(&world, &[]);
    assert_run_ended_unguarded(&world, &model, &finished);
    assert_eq!(model.main_requests().len(), 1, "and no second session is started");
}

#[test]
fn a_client_with_the_bare_option_ends_the_run_immediately() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let model = ScriptedAgent::new(|turn| honest_agent(turn).with_delay(Duration::from_secs(2)))
        .with_real_client()
        .start(&mut world);
    let arguments =
        ["run", "--objective", "Do the plan.", "--", "--model", "opus", "--bare", "--allowedTools", "Bash"];
    let finished = world.plimsoll(&arguments).run();
    assert_run_ended_unguarded(&world, &model, &finished);
    assert!(model.main_requests().len() <= 1);
}

fn assert_run_ended_unguarded(world: &World, model: &ScriptedModel, finished: &FinishedProgram) {
    let details = format!("{finished:#?}, {} requests", model.main_requests().len());
    assert_eq!(finished.code, Some(5), "{details}");
    insta::allow_duplicates! {
        // The cost of a session that was ended is known only if the client has written its transcript.
        let last_line = finished.stdout.lines().last().unwrap_or_default();
        let (marker, _cost) = last_line.rsplit_once("   (").unwrap_or_default();
        insta::assert_snapshot!(marker, @"   RALPH_STOP|fatal_error|our hooks did not run in this session (client 2.1.332), so nothing would guard it: check for `disableAllHooks` or `--bare`, for hook programs that cannot be started, or for a client too old for its settings");
    }
    let state = world.read_json(STATE_PATH);
    assert_eq!(
        (state["status"].as_str(), state["iteration"].as_u64()),
        (Some("fatal_error"), Some(1)),
        "{details}"
    );
    assert_eq!(events_named(&read_journal(world), "unguarded").len(), 1, "{details}");
    let status_output = world.plimsoll(&["status"]).run().stdout;
    insta::allow_duplicates! {
        insta::assert_snapshot!(status_output.lines().nth(1).unwrap_or_default(), @"Status       a fatal error (fatal_error): our hooks did not run in this session (client 2.1.332), so");
    }
}

/// Once the hooks are enabled again, the same run continues.
#[test]
fn a_run_stopped_for_disabled_hooks_resumes_once_they_are_enabled() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    world.write(".claude/settings.json", "{\"disableAllHooks\": true}\n");
    let _model = ScriptedAgent::new(|turn| match turn.iteration {
        1 => Step::from_text("I have nothing to do."),
        _ => honest_agent(turn),
    })
    .start(&mut world);
    assert_eq!(run_with_objective(&world, &[]).code, Some(5));
    world.write(".claude/settings.json", "{}\n");
    let finished = resume_and_wait(&world);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n");
}

fn resume_and_wait(world: &World) -> FinishedProgram {
    let arguments =
        ["run", "--resume", "--", "--model", "opus", "--allowedTools", "Bash", "Edit", "Write", "Read"];
    world.plimsoll(&arguments).timeout(Duration::from_secs(120)).run()
}

// ---- a start that fails leaves nothing behind ----

/// Asserts that a failed start created nothing and started no session, so that a good start is possible at once.
/// Returns its error.
fn clean_failure_error(world: &World, finished: &FinishedProgram) -> String {
    assert_eq!(finished.code, Some(1), "{finished:#?}");
    for path in
        [STATE_PATH, "PROMPT.md", ".claude/plimsoll/journal.jsonl", "progress.txt", ".claude/handoffs"]
    {
        assert!(!world.exists(path), "{path} was left behind; {finished:#?}");
    }
    assert_eq!(world.git(&["status", "--porcelain"]), "", "{finished:#?}");
    world.replace_varying_parts_with_placeholders(&finished.stderr)
}

/// Writes a program into the home of this world.
fn write_home_program(world: &World, name: &str, text: &str) -> PathBuf {
    world.write_program(world.home().join(name), text)
}

fn run_with_client(world: &World, client: &Path) -> FinishedProgram {
    run_with_objective(world, &["--client", &client.display().to_string()])
}

#[test]
fn missing_hook_programs_are_named_before_anything_starts() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let model = ScriptedAgent::new(honest_agent).start(&mut world);
    let program_folder = world.home().join("alone");
    std::fs::create_dir_all(&program_folder).expect("a folder");
    std::fs::copy(
        plimsoll_testkit::find_or_build_bin_dir().join("plimsoll"),
        program_folder.join("plimsoll"),
    )
    .expect("a copy");
    let path =
        world.env_with_programs_on_path().into_iter().find(|(name, _)| name == "PATH").expect("a PATH").1;
    let hooks = plimsoll_testkit::find_or_build_bin_dir();
    let other_folders: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|folder| *folder != hooks).collect();
    let path = std::env::join_paths(other_folders).expect("a PATH").to_string_lossy().into_owned();
    let arguments = ["run", "--objective", "Do the plan.", "--", "--model", "opus"];
    let finished = world.command(program_folder.join("plimsoll"), &arguments).env("PATH", &path).run();
    insta::assert_snapshot!(clean_failure_error(&world, &finished), @"error: these programs are neither next to plimsoll nor on the PATH: plimsoll-post-tool, plimsoll-pre-compact, plimsoll-session-end, plimsoll-session-start, plimsoll-statusline, plimsoll-stop-gate. Install all programs of Plimsoll together, in one of the ways of docs/start.md");
    assert!(model.requests().is_empty(), "nothing is started");
    // One of the hook programs is there, and the others are not.
    std::fs::copy(hooks.join("plimsoll-session-start"), program_folder.join("plimsoll-session-start"))
        .expect("a copy");
    let finished = world.command(program_folder.join("plimsoll"), &arguments).env("PATH", &path).run();
    insta::assert_snapshot!(clean_failure_error(&world, &finished), @"error: these programs are neither next to plimsoll nor on the PATH: plimsoll-post-tool, plimsoll-pre-compact, plimsoll-session-end, plimsoll-statusline, plimsoll-stop-gate. Install all programs of Plimsoll together, in one of the ways of docs/start.md");
    assert!(model.requests().is_empty());
}

#[test]
fn a_relative_path_entry_starts_no_program_of_the_project() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let planted_script = "#!/bin/sh\ntouch ~/started\necho '2.1.329 (Claude Code)'\n";
    for name in ["claude", "git"] {
        world.write_program(world.project().join(name), planted_script);
    }
    for entry in [".", ""] {
        let path = format!("{entry}:{}:/usr/bin:/bin", plimsoll_testkit::find_or_build_bin_dir().display());
        world.set_env("PATH", path);
        let finished = run_with_objective(&world, &[]);
        assert_ne!(finished.code, Some(0), "{finished:#?}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stderr), @"error: `claude` was not found: install Claude Code (`npm install -g @anthropic-ai/claude-code`) or name it with --client PATH");
        }
        for arguments in [&["doctor"][..], &["start", "--objective", "Do the plan."], &["checkpoint"]] {
            world.plimsoll(arguments).run();
        }
        assert!(!world.home().join("started").exists(), "the project's program was started: {finished:#?}");
    }
}

#[test]
fn a_program_that_is_not_claude_code_is_rejected_as_client() {
    let world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let errors = [
        ("silent", "#!/bin/sh\nexit 0\n"),
        ("failing", "#!/bin/sh\necho oops >&2\nexit 3\n"),
        ("other", "#!/bin/sh\necho GNU something else\n"),
        ("broken", "not a program at all"),
    ]
    .map(|(name, text)| {
        let client = write_home_program(&world, name, text);
        clean_failure_error(&world, &run_with_client(&world, &client))
    });
    insta::assert_snapshot!(errors.concat(), @r#"
    error: [HOME]/silent does not answer `--version`: is it Claude Code?
    error: [HOME]/failing does not answer `--version`: is it Claude Code?
    error: [HOME]/other answers `--version` with "GNU something else": is it Claude Code?
    error: [HOME]/broken does not answer `--version`: is it Claude Code?
    "#);
}

/// The program ignores every option and never ends. The version query does not wait for it long.
#[test]
fn a_client_that_does_not_answer_the_version_query_is_rejected() {
    let world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let client = write_home_program(&world, "sleeper", "#!/bin/sh\nexec sleep 300\n");
    let finished = run_with_client(&world, &client);
    insta::assert_snapshot!(clean_failure_error(&world, &finished), @"error: [HOME]/sleeper does not answer `--version`: is it Claude Code?");
    assert!(finished.elapsed < Duration::from_secs(30), "{finished:#?}");
}

#[test]
fn a_missing_client_program_is_named() {
    let world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let errors = [PathBuf::from("/nonexistent"), world.path("README.md")];
    let errors = errors.map(|client| clean_failure_error(&world, &run_with_client(&world, &client)));
    insta::assert_snapshot!(errors.concat(), @"
    error: `/nonexistent` was not found: install Claude Code (`npm install -g @anthropic-ai/claude-code`) or name it with --client PATH
    error: `[PROJECT]/README.md` was not found: install Claude Code (`npm install -g @anthropic-ai/claude-code`) or name it with --client PATH
    ");
}

#[test]
fn client_arguments_that_conflict_with_the_run_are_rejected() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let model = ScriptedAgent::new(honest_agent).start(&mut world);
    let errors = [
        &["--output-format", "json"][..],
        &["--output-format=json"],
        &["--session-id", "d8e9da22-d41b-4824-a1be-f318ff23689b"],
        &["--resume", "x"],
        &["-r", "x"],
        &["--continue"],
        &["-c"],
        &["-p"],
    ]
    .map(|arguments| {
        let command_line = [&["run", "--objective", "Do it.", "--"], arguments].concat();
        clean_failure_error(&world, &world.plimsoll(&command_line).run())
    });
    insta::assert_snapshot!(errors.concat(), @"
    error: `--output-format` is set by plimsoll run itself: leave it out after `--`
    error: `--output-format=json` is set by plimsoll run itself: leave it out after `--`
    error: `--session-id` is set by plimsoll run itself: leave it out after `--`
    error: `--resume` is set by plimsoll run itself: leave it out after `--`
    error: `-r` is set by plimsoll run itself: leave it out after `--`
    error: `--continue` is set by plimsoll run itself: leave it out after `--`
    error: `-c` is set by plimsoll run itself: leave it out after `--`
    error: `-p` is set by plimsoll run itself: leave it out after `--`
    ");
    assert!(model.requests().is_empty());
}

#[test]
fn a_run_with_two_tasks_or_no_task_is_rejected() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let model = ScriptedAgent::new(honest_agent).start(&mut world);
    world.git(&["rm", "-q", "fix_plan.md"]);
    world.git(&["commit", "-qm", "No plan"]);
    let without_task = world.plimsoll(&["run"]).run();
    insta::assert_snapshot!(clean_failure_error(&world, &without_task), @"error: there is no task: write a plan (fix_plan.md) or PROMPT.md, or give --objective TEXT or --objective-file FILE");
    world.write("PROMPT.md", "My own task.\n");
    let with_two_tasks = run_with_objective(&world, &[]);
    assert_eq!(with_two_tasks.code, Some(1), "{with_two_tasks:#?}");
    insta::assert_snapshot!(with_two_tasks.stderr, @"error: there is a PROMPT.md and an objective: give one of them (without --objective, PROMPT.md is the task)");
    assert_eq!(world.read("PROMPT.md"), "My own task.\n");
    assert!(!world.exists(STATE_PATH));
    let with_missing_plan = run_with_objective(&world, &["--todo", "missing.md"]);
    assert_eq!(with_missing_plan.code, Some(1), "{with_missing_plan:#?}");
    insta::assert_snapshot!(with_missing_plan.stderr, @"error: the plan missing.md is missing: write it, or leave out --todo");
    assert!(!world.exists(STATE_PATH));
    assert!(model.requests().is_empty());
}

/// The tests may run as root, for whom file modes have no effect; a file in the place of a folder stops every user.
#[test]
fn a_project_that_is_not_writable_stops_the_start() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let model = ScriptedAgent::new(honest_agent).start(&mut world);
    std::fs::remove_dir_all(world.path(".claude")).expect("the folder of ours");
    world.write(".claude", "a file\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "In the way"]);
    let finished = run_with_objective(&world, &[]);
    assert_eq!(finished.code, Some(1), "{finished:#?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stderr), @"error: cannot open [PROJECT]/.claude/ralph-state.json.lock: Not a directory (os error 20)");
    assert!(!world.exists("PROMPT.md"), "{finished:#?}");
    assert!(model.requests().is_empty());
}

#[test]
fn settings_that_do_not_parse_stop_the_start() {
    let world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    world.write(".claude/plimsoll.json", "{\"grace_batches\": ");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Settings"]);
    let finished = run_with_objective(&world, &[]);
    insta::assert_snapshot!(clean_failure_error(&world, &finished), @"error: settings [PROJECT]/.claude/plimsoll.json: EOF while parsing a value at line 1 column 18; correct the file; the whole file is ignored until it parses");
}

// ---- one run at a time ----

#[test]
fn a_second_run_is_refused_and_the_first_one_is_named() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.assistant_message_count) {
        (1, 0) => honest_agent(turn).with_delay(Duration::from_secs(4)),
        _ => honest_agent(turn),
    })
    .start(&mut world);
    let arguments = [
        "run",
        "--objective",
        "Do the plan.",
        "--name",
        "Dates",
        "--",
        "--model",
        "opus",
        "--allowedTools",
        "Bash",
    ];
    let first = world.plimsoll(&arguments).spawn();
    world.wait_until(|| !model.main_requests().is_empty(), "the first request");
    let run_id = world.read_json(STATE_PATH)["run_id"].as_str().expect("an id").to_owned();
    let second = run_with_objective(&world, &[]);
    assert_eq!(second.code, Some(1), "{second:#?}");
    let without_id = |text: &str| text.replace(&run_id, "[RUN]");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&without_id(&second.stderr)), @r#"error: another `plimsoll run` is active in this project: the run "Dates" ([RUN]), session 1"#);
    let started = world.plimsoll(&["start", "--objective", "Another."]).run();
    assert_eq!(started.code, Some(1), "{started:#?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&without_id(&started.stderr)), @r#"error: the run "Dates" ([RUN]) is running at session 1: continue with `plimsoll run --resume`, or cancel it with `plimsoll stop`"#);
    let first = first.wait_or_kill_and_panic(Duration::from_secs(120));
    assert_eq!(first.code, Some(0), "{first:#?}");
    assert_eq!(world.read_json(STATE_PATH)["run_id"], Value::String(run_id), "the first one is unharmed");
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n");
}

/// An open run is named too, with the command that continues it.
#[test]
fn an_open_run_prevents_a_new_one_and_is_named() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let _model = ScriptedAgent::new(honest_agent).start(&mut world);
    world.plimsoll(&["start", "--objective", "Do the plan.", "--name", "Open"]).run().expect_success();
    let refused = world.plimsoll(&["run", "--objective", "Another."]).run();
    assert_eq!(refused.code, Some(1), "{refused:#?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&refused.stderr), @r#"error: the run "Open" ([ID]) is running at session 1: continue with `plimsoll run --resume`, or cancel it with `plimsoll stop`"#);
}

// ---- another version of the client ----

#[test]
fn an_old_client_version_completes_a_run() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let model = ScriptedAgent::new(honest_agent).start(&mut world);
    let client = plimsoll_testkit::client::install_claude_version_once("2.0.77");
    let finished = run_with_client(&world, &client);
    assert_eq!(finished.code, Some(0), "{finished:#?}, {} requests", model.main_requests().len());
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n");
    assert_eq!(world.read_json(STATE_PATH)["iteration"], 3);
    assert_eq!(events_named(&read_journal(&world), "session_start").len(), 3, "its hooks were on duty");
}

/// The client exits on an unknown option before its session starts. Retrying cannot help, so one attempt is enough.
#[test]
fn a_client_that_rejects_its_options_ends_the_run_with_its_message() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let model = ScriptedAgent::new(honest_agent).with_real_client_in(&[1]).start(&mut world);
    let finished = world.plimsoll(&["run", "--objective", "Do it.", "--", "--no-such-option"]).run();
    assert_eq!(finished.code, Some(5), "{finished:#?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stdout), @r#"
    run "Do it." ([ID]), at most 50 sessions, 3 open items in fix_plan.md
    ── session 1: Item one
       session 1 failed: Claude Code ended with exit code 1 before its session began, and said: error: unknown option '--no-such-option'; "Item one" is still open
       RALPH_STOP|fatal_error|Claude Code ended with exit code 1 before its session began, and said: error: unknown option '--no-such-option'   (cost unknown)
    "#);
    assert_eq!(world.read_json(STATE_PATH)["iteration"], 1);
    assert!(model.requests().is_empty());
    let resumed = resume_and_wait(&world);
    assert_eq!(resumed.code, Some(0), "{resumed:#?}");
}
