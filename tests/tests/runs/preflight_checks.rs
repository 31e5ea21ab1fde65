//! An unguarded night must not begin, and a start that fails leaves nothing behind.

use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::{Finished, World};
use plimsoll_tests::{ITEMS, ScriptedAgent, events, honest, journal, run, world};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

const STATE: &str = ".claude/ralph-state.json";

// ---- the hooks do not run ----

#[test]
fn hooks_that_are_switched_off_end_the_run_at_once() {
    for (file, at_home) in [
        (".claude/settings.json", false),
        (".claude/settings.local.json", false),
        (".claude/settings.json", true),
    ] {
        let mut world = world(ITEMS);
        let path = if at_home { world.home().join(file) } else { world.path(file) };
        world.write(path, "{\"disableAllHooks\": true}\n");
        let model = ScriptedAgent::new(|turn| honest(turn).delay(Duration::from_secs(2))).start(&mut world);
        let finished = run(&world, &[]);
        unguarded(&world, &model, &finished);
        assert!(finished.elapsed < Duration::from_secs(40), "{finished:#?}");
        assert!(model.main_requests().len() <= 1, "{finished:#?}");
        assert!(!world.exists("work.txt"));
    }
}

/// A client that answers at once is over before anybody could look: it is noticed all the same.
#[test]
fn hooks_that_are_switched_off_are_noticed_after_a_quick_session_too() {
    let mut world = world(ITEMS);
    world.write(".claude/settings.json", "{\"disableAllHooks\": true}\n");
    let model = ScriptedAgent::new(|_| Step::text("I have nothing to do.")).start(&mut world);
    let finished = run(&world, &[]);
    unguarded(&world, &model, &finished);
    assert_eq!(model.main_requests().len(), 1, "and no second session is started");
}

#[test]
fn a_bare_client_ends_the_run_at_once() {
    let mut world = world(ITEMS);
    let model = ScriptedAgent::new(|turn| honest(turn).delay(Duration::from_secs(2)))
        .with_real_client()
        .start(&mut world);
    let all =
        ["run", "--objective", "Do the plan.", "--", "--model", "opus", "--bare", "--allowedTools", "Bash"];
    let finished = world.plimsoll(&all).run();
    unguarded(&world, &model, &finished);
    assert!(model.main_requests().len() <= 1);
}

fn unguarded(world: &World, model: &ScriptedModel, finished: &Finished) {
    let words = format!("{finished:#?}, {} requests", model.main_requests().len());
    assert_eq!(finished.code, Some(5), "{words}");
    insta::allow_duplicates! {
        insta::assert_snapshot!(finished.stdout.lines().last().unwrap_or_default(), @"   RALPH_STOP|fatal_error|our hooks did not run in this session (client 2.1.329), so nothing would guard it: check for `disableAllHooks` or `--bare`, for hook programs that cannot be started, or for a client too old for its settings   ($0.00)");
    }
    let state = world.json(STATE);
    assert_eq!(
        (state["status"].as_str(), state["iteration"].as_u64()),
        (Some("fatal_error"), Some(1)),
        "{words}"
    );
    assert_eq!(events(&journal(world), "unguarded").len(), 1, "{words}");
    let left = world.plimsoll(&["status"]).run().stdout;
    insta::allow_duplicates! {
        insta::assert_snapshot!(left.lines().nth(1).unwrap_or_default(), @"Status       a fatal error (fatal_error): our hooks did not run in this session (client 2.1.329), so");
    }
}

/// What switched the hooks off is mended: the same run goes on.
#[test]
fn a_run_that_was_stopped_unguarded_goes_on_once_it_is_mended() {
    let mut world = world(ITEMS);
    world.write(".claude/settings.json", "{\"disableAllHooks\": true}\n");
    let _model = ScriptedAgent::new(|turn| match turn.iteration {
        1 => Step::text("I have nothing to do."),
        _ => honest(turn),
    })
    .start(&mut world);
    assert_eq!(run(&world, &[]).code, Some(5));
    world.write(".claude/settings.json", "{}\n");
    let finished = resume(&world);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n");
}

fn resume(world: &World) -> Finished {
    let all = ["run", "--resume", "--", "--model", "opus", "--allowedTools", "Bash", "Edit", "Write", "Read"];
    world.plimsoll(&all).timeout(Duration::from_secs(120)).run()
}

// ---- a start that fails leaves nothing behind ----

/// Returns the error of a start that created nothing and started no session, so that a good start is possible at once.
fn error_that_left_nothing(world: &World, finished: &Finished) -> String {
    assert_eq!(finished.code, Some(1), "{finished:#?}");
    for path in [STATE, "PROMPT.md", ".claude/plimsoll/journal.jsonl", "progress.txt", ".claude/handoffs"] {
        assert!(!world.exists(path), "{path} was left behind; {finished:#?}");
    }
    assert_eq!(world.git(&["status", "--porcelain"]), "", "{finished:#?}");
    world.stable_text(&finished.stderr)
}

/// A program in a world of its own.
fn program(world: &World, name: &str, text: &str) -> PathBuf {
    world.write_program(world.home().join(name), text)
}

fn with_client(world: &World, client: &Path) -> Finished {
    run(world, &["--client", &client.display().to_string()])
}

#[test]
fn missing_hook_programs_are_named_before_anything_starts() {
    let mut world = world(ITEMS);
    let model = ScriptedAgent::new(honest).start(&mut world);
    let alone = world.home().join("alone");
    std::fs::create_dir_all(&alone).expect("a folder");
    std::fs::copy(plimsoll_testkit::bin_dir().join("plimsoll"), alone.join("plimsoll")).expect("a copy");
    let path = world.env().into_iter().find(|(name, _)| name == "PATH").expect("a PATH").1;
    let hooks = plimsoll_testkit::bin_dir();
    let without: Vec<PathBuf> = std::env::split_paths(&path).filter(|folder| *folder != hooks).collect();
    let path = std::env::join_paths(without).expect("a PATH").to_string_lossy().into_owned();
    let all = ["run", "--objective", "Do the plan.", "--", "--model", "opus"];
    let finished = world.command(alone.join("plimsoll"), &all).env("PATH", &path).run();
    insta::assert_snapshot!(error_that_left_nothing(&world, &finished), @"plimsoll: the hook program plimsoll-post-tool is neither next to plimsoll nor on the PATH: install all programs of Plimsoll together, in one of the ways of docs/start.md");
    assert!(model.requests().is_empty(), "nothing is started");
    // One of them, and not the others.
    std::fs::copy(hooks.join("plimsoll-session-start"), alone.join("plimsoll-session-start"))
        .expect("a copy");
    let finished = world.command(alone.join("plimsoll"), &all).env("PATH", &path).run();
    insta::assert_snapshot!(error_that_left_nothing(&world, &finished), @"plimsoll: the hook program plimsoll-post-tool is neither next to plimsoll nor on the PATH: install all programs of Plimsoll together, in one of the ways of docs/start.md");
    assert!(model.requests().is_empty());
}

#[test]
fn a_relative_entry_of_the_path_starts_nothing_that_lies_in_the_project() {
    let mut world = world(ITEMS);
    let planted = "#!/bin/sh\ntouch ~/started\necho '2.1.329 (Claude Code)'\n";
    for name in ["claude", "git"] {
        world.write_program(world.project().join(name), planted);
    }
    for entry in [".", ""] {
        let path = format!("{entry}:{}:/usr/bin:/bin", plimsoll_testkit::bin_dir().display());
        world.set_env("PATH", path);
        let finished = run(&world, &[]);
        assert_ne!(finished.code, Some(0), "{finished:#?}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(world.stable_text(&finished.stderr), @"plimsoll: there is no client `claude`: install Claude Code (`npm install -g @anthropic-ai/claude-code`) or name it with --client PATH");
        }
        for arguments in [&["doctor"][..], &["start", "--objective", "Do the plan."], &["checkpoint"]] {
            world.plimsoll(arguments).run();
        }
        assert!(!world.home().join("started").exists(), "the project's program was started: {finished:#?}");
    }
}

#[test]
fn a_program_that_is_no_client_is_refused() {
    let world = world(ITEMS);
    let errors = [
        ("silent", "#!/bin/sh\nexit 0\n"),
        ("failing", "#!/bin/sh\necho oops >&2\nexit 3\n"),
        ("other", "#!/bin/sh\necho GNU something else\n"),
        ("broken", "not a program at all"),
    ]
    .map(|(name, text)| {
        let client = program(&world, name, text);
        error_that_left_nothing(&world, &with_client(&world, &client))
    });
    insta::assert_snapshot!(errors.concat(), @r#"
    plimsoll: [HOME]/silent does not answer `--version`: is it Claude Code?
    plimsoll: [HOME]/failing does not answer `--version`: is it Claude Code?
    plimsoll: [HOME]/other answers `--version` with "GNU something else": is it Claude Code?
    plimsoll: [HOME]/broken does not answer `--version`: is it Claude Code?
    "#);
}

/// It ignores every option and waits for ever: asked for its version, it is not waited for long.
#[test]
fn a_program_that_never_answers_is_given_up() {
    let world = world(ITEMS);
    let client = program(&world, "sleeper", "#!/bin/sh\nexec sleep 300\n");
    let finished = with_client(&world, &client);
    insta::assert_snapshot!(error_that_left_nothing(&world, &finished), @"plimsoll: [HOME]/sleeper does not answer `--version`: is it Claude Code?");
    assert!(finished.elapsed < Duration::from_secs(30), "{finished:#?}");
}

#[test]
fn a_client_that_is_not_there_is_named() {
    let world = world(ITEMS);
    let errors = [PathBuf::from("/nonexistent"), world.path("README.md")];
    let errors = errors.map(|client| error_that_left_nothing(&world, &with_client(&world, &client)));
    insta::assert_snapshot!(errors.concat(), @"
    plimsoll: there is no client `/nonexistent`: install Claude Code (`npm install -g @anthropic-ai/claude-code`) or name it with --client PATH
    plimsoll: there is no client `[PROJECT]/README.md`: install Claude Code (`npm install -g @anthropic-ai/claude-code`) or name it with --client PATH
    ");
}

#[test]
fn arguments_that_take_the_session_out_of_our_hands_are_refused() {
    let mut world = world(ITEMS);
    let model = ScriptedAgent::new(honest).start(&mut world);
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
        let all = [&["run", "--objective", "Do it.", "--"], arguments].concat();
        error_that_left_nothing(&world, &world.plimsoll(&all).run())
    });
    insta::assert_snapshot!(errors.concat(), @"
    plimsoll: `--output-format` is set by plimsoll run itself: leave it out after `--`
    plimsoll: `--output-format=json` is set by plimsoll run itself: leave it out after `--`
    plimsoll: `--session-id` is set by plimsoll run itself: leave it out after `--`
    plimsoll: `--resume` is set by plimsoll run itself: leave it out after `--`
    plimsoll: `-r` is set by plimsoll run itself: leave it out after `--`
    plimsoll: `--continue` is set by plimsoll run itself: leave it out after `--`
    plimsoll: `-c` is set by plimsoll run itself: leave it out after `--`
    plimsoll: `-p` is set by plimsoll run itself: leave it out after `--`
    ");
    assert!(model.requests().is_empty());
}

#[test]
fn two_tasks_and_no_task_are_refused() {
    let mut world = world(ITEMS);
    let model = ScriptedAgent::new(honest).start(&mut world);
    world.git(&["rm", "-q", "fix_plan.md"]);
    world.git(&["commit", "-qm", "No plan"]);
    let without = world.plimsoll(&["run"]).run();
    insta::assert_snapshot!(error_that_left_nothing(&world, &without), @"plimsoll: there is no task: write a plan (fix_plan.md) or PROMPT.md, or give --objective TEXT or --objective-file FILE");
    world.write("PROMPT.md", "My own task.\n");
    let both = run(&world, &[]);
    assert_eq!(both.code, Some(1), "{both:#?}");
    insta::assert_snapshot!(both.stderr, @"plimsoll: there is a PROMPT.md and an objective: give one of them (without --objective, PROMPT.md is the task)");
    assert_eq!(world.read("PROMPT.md"), "My own task.\n");
    assert!(!world.exists(STATE));
    let todo = run(&world, &["--todo", "missing.md"]);
    assert_eq!(todo.code, Some(1), "{todo:#?}");
    insta::assert_snapshot!(todo.stderr, @"plimsoll: the plan missing.md is missing: write it, or leave out --todo");
    assert!(!world.exists(STATE));
    assert!(model.requests().is_empty());
}

/// The tests may run as root, whom no mode stops: a file where a folder must be stops everybody.
#[test]
fn a_project_that_cannot_be_written_is_named() {
    let mut world = world(ITEMS);
    let model = ScriptedAgent::new(honest).start(&mut world);
    std::fs::remove_dir_all(world.path(".claude")).expect("the folder of ours");
    world.write(".claude", "a file\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "In the way"]);
    let finished = run(&world, &[]);
    assert_eq!(finished.code, Some(1), "{finished:#?}");
    insta::assert_snapshot!(world.stable_text(&finished.stderr), @"plimsoll: cannot open [PROJECT]/.claude/ralph-state.json.lock: Not a directory (os error 20)");
    assert!(!world.exists("PROMPT.md"), "{finished:#?}");
    assert!(model.requests().is_empty());
}

#[test]
fn settings_that_do_not_parse_stop_the_start() {
    let world = world(ITEMS);
    world.write(".claude/plimsoll.json", "{\"grace_batches\": ");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Settings"]);
    let finished = run(&world, &[]);
    insta::assert_snapshot!(error_that_left_nothing(&world, &finished), @"plimsoll: settings [PROJECT]/.claude/plimsoll.json: EOF while parsing a value at line 1 column 18; correct the file; until then all of it is ignored");
}

// ---- one run at a time ----

#[test]
fn a_second_run_is_refused_and_the_first_one_is_named() {
    let mut world = world(ITEMS);
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        (1, 0) => honest(turn).delay(Duration::from_secs(4)),
        _ => honest(turn),
    })
    .start(&mut world);
    let all = [
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
    let first = world.plimsoll(&all).spawn();
    world.wait_until(|| !model.main_requests().is_empty(), "the first request");
    let run_id = world.json(STATE)["run_id"].as_str().expect("an id").to_owned();
    let second = run(&world, &[]);
    assert_eq!(second.code, Some(1), "{second:#?}");
    let without_id = |text: &str| text.replace(&run_id, "[RUN]");
    insta::assert_snapshot!(world.stable_text(&without_id(&second.stderr)), @r#"plimsoll: another `plimsoll run` is active in this project: the run "Dates" ([RUN]), iteration 1"#);
    let started = world.plimsoll(&["start", "--objective", "Another."]).run();
    assert_eq!(started.code, Some(1), "{started:#?}");
    insta::assert_snapshot!(world.stable_text(&without_id(&started.stderr)), @r#"plimsoll: the run "Dates" ([RUN]) is running at iteration 1: continue with `plimsoll run --resume`, or cancel it with `plimsoll stop`"#);
    let first = first.wait(Duration::from_secs(120));
    assert_eq!(first.code, Some(0), "{first:#?}");
    assert_eq!(world.json(STATE)["run_id"], Value::String(run_id), "the first one is unharmed");
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n");
}

/// A run that was left open is named too, and how to go on.
#[test]
fn a_run_that_is_open_is_in_the_way_of_a_new_one() {
    let mut world = world(ITEMS);
    let _model = ScriptedAgent::new(honest).start(&mut world);
    world.plimsoll(&["start", "--objective", "Do the plan.", "--name", "Open"]).run().expect_success();
    let refused = world.plimsoll(&["run", "--objective", "Another."]).run();
    assert_eq!(refused.code, Some(1), "{refused:#?}");
    insta::assert_snapshot!(world.stable_text(&refused.stderr), @r#"plimsoll: the run "Open" ([ID]) is running at iteration 1: continue with `plimsoll run --resume`, or cancel it with `plimsoll stop`"#);
}

// ---- another version of the client ----

#[test]
fn a_client_of_the_classic_era_works_in_the_loop() {
    let mut world = world(ITEMS);
    let model = ScriptedAgent::new(honest).start(&mut world);
    let client = plimsoll_testkit::client::claude_version("2.0.77");
    let finished = with_client(&world, &client);
    assert_eq!(finished.code, Some(0), "{finished:#?}, {} requests", model.main_requests().len());
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n");
    assert_eq!(world.json(STATE)["iteration"], 3);
    assert_eq!(events(&journal(&world), "session_start").len(), 3, "its hooks were on duty");
}

/// An option that the client does not know ends it before its session begins: one try tells as much as fifty.
#[test]
fn a_client_that_never_begins_ends_the_run_with_its_own_words() {
    let mut world = world(ITEMS);
    let model = ScriptedAgent::new(honest).with_real_client_in(&[1]).start(&mut world);
    let finished = world.plimsoll(&["run", "--objective", "Do it.", "--", "--no-such-option"]).run();
    assert_eq!(finished.code, Some(5), "{finished:#?}");
    insta::assert_snapshot!(world.stable_text(&finished.stdout), @r#"
    run "Do it." ([ID]), at most 50 sessions, 3 open items in fix_plan.md
    ── iteration 1: Item one
       iteration 1 failed: the client ended with exit code 1 before its session began, and said: error: unknown option '--no-such-option'; "Item one" is still open
       RALPH_STOP|fatal_error|the client ended with exit code 1 before its session began, and said: error: unknown option '--no-such-option'   ($0.00)
    "#);
    assert_eq!(world.json(STATE)["iteration"], 1);
    assert!(model.requests().is_empty());
    let resumed = resume(&world);
    assert_eq!(resumed.code, Some(0), "{resumed:#?}");
}
