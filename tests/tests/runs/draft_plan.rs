//! `plimsoll plan --draft`: the client proposes items in a read-only session. Its answer is untrusted text.

use crate::read_only_sessions::OutsideFiles;
use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::{FinishedProgram, World};
use plimsoll_tests::ScriptedAgent;
use serde_json::json;
use std::time::Duration;

const CLIENT_TIMEOUT: Duration = Duration::from_secs(20);

fn run_draft(world: &World, spec: &str, extra_arguments: &[&str]) -> FinishedProgram {
    let command_line = [&["plan", "--draft", spec][..], extra_arguments].concat();
    world.plimsoll(&command_line).run()
}

/// A world with a specification, whose client is this script. Each start of the client adds a line to `~/starts`.
fn world_with_client_script(script: &str) -> World {
    let world = World::new();
    world.write("SPEC.md", "# Dates\n\nAll dates are ISO 8601.\n");
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && {{ echo '2.1.329 (Claude Code)'; exit; }}\necho \"$*\" >> ~/starts\ncat > ~/prompt\n{script}\n"
    );
    world.write_program(world.home().join("bin/claude"), &text);
    world
}

fn client_path(world: &World) -> String {
    world.home().join("bin/claude").display().to_string()
}

/// A script of a client that ends with this result.
fn script_printing_result(result: &serde_json::Value) -> String {
    format!("cat <<'END'\n{result}\nEND")
}

fn script_printing_success(text: &str) -> String {
    script_printing_result(
        &json!({ "type": "result", "subtype": "success", "is_error": false, "terminal_reason": "completed",
                       "result": text, "total_cost_usd": 0.25 }),
    )
}

#[test]
fn a_draft_comes_from_a_read_only_session_and_is_checked_like_any_plan() {
    let mut world = World::new();
    let spec = "# Dates\n\nAll dates in README.md are ISO 8601.\n";
    world.write("SPEC.md", spec);
    let hook_output_path = world.home().join("seen");
    let hook = json!({ "type": "command", "command": format!("echo \"[$PLIMSOLL_RUN_ID]\" > {}", hook_output_path.display()) });
    let settings = json!({ "hooks": { "SessionStart": [{ "hooks": [hook] }] } });
    world.write(world.home().join(".claude/settings.json"), &settings.to_string());
    let readme_path = world.path("README.md").display().to_string();
    let model = ScriptedAgent::new(move |turn| match turn.assistant_message_count {
        0 => Step::from_text("I try.")
            .with_tool_call("Write", json!({ "file_path": "/tmp/plimsoll-draft.txt", "content": "x" }))
            .with_tool_call("Bash", json!({ "command": "touch made-by-bash.txt" })),
        1 => Step::from_text("I read.").with_tool_call("Read", json!({ "file_path": readme_path })),
        _ => Step::from_text(
            "Here is the plan:\n\n- [ ] Convert README.md — done when: `! grep 2026 README.md` (trivial)\n\
             - [ ] Check it (simple, after: 1, verify: touch owned)\n- [ ] Wait [medium]\n",
        ),
    })
    .with_real_client()
    .start(&mut world);
    let finished = world
        .plimsoll(&["plan", "--draft", "SPEC.md", "--yes", "--", "--model", "opus"])
        .env("PLIMSOLL_RUN_ID", "some-run")
        .run()
        .expect_success();
    let requests = model.main_requests();
    let mut tools = requests[0].tool_names();
    tools.sort_unstable();
    // It stands for tools that the client would load later, and is not a tool itself (2.1.329).
    tools.retain(|tool| *tool != "DeferredToolPlaceholder");
    assert_eq!(tools, ["Glob", "Grep", "Read"]);
    assert!(requests[0].full_text().contains(spec), "{}", requests[0].full_text());
    let results: Vec<String> = requests[2].all_tool_results().into_iter().map(|(_, text)| text).collect();
    assert!(results[0].contains("No such tool") && results[1].contains("No such tool"), "{results:?}");
    assert!(results[2].contains("A project."), "{results:?}");
    assert!(!world.exists("made-by-bash.txt") && !std::path::Path::new("/tmp/plimsoll-draft.txt").exists());
    assert_eq!(
        std::fs::read_to_string(hook_output_path).expect("the user's hook ran"),
        "[]\n",
        "it belongs to no run"
    );
    assert!(!world.exists(".claude/ralph-state.json"));
    let expected_plan = "- [ ] Convert README.md — done when: `! grep 2026 README.md` (trivial)\n\
                - [ ] Check it (simple, after: 1, verify touch owned)\n- [ ] Wait [medium]\n";
    assert_eq!(world.read("fix_plan.md"), expected_plan);
    insta::assert_snapshot!(finished.stdout, @"
    - [ ] Convert README.md — done when: `! grep 2026 README.md` (trivial)
    - [ ] Check it (simple, after: 1, verify touch owned)
    - [ ] Wait [medium]

    Plan

    3 items open in fix_plan.md, 0 done. A session has room for about 820k tokens before L2 (window 1M, assumed: no session has been recorded here yet).

    #  Item                                                          Size     Share of a window  Sessions  By
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    1  Convert README.md — done when: `! grep 2026 README.md` (tri…  trivial  10%                1         its stated size
    2  Check it (simple, after: 1, verify touch owned)               simple   20%                1         its stated size
    3  Wait [medium]                                                 -        40%                1         no item has been measured yet: counted as medium

    One item a session: 3 sessions. With `--pack`, in your order: 1 session (1–3).

    - In fix_plan.md, item 3 says `[medium]`, which is not understood: write a size as `(medium)`, what it waits for as `(after: 2)`, both as `(medium, after: 2)`.
    fix_plan.md: 3 items added
    ");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stderr), @"
    asking Claude Code, which can only read; at most 15 minutes, Ctrl-C ends it
    the draft cost <$0.01
    1 line of the answer left out: no items
    `verify:` or `model:` removed from 1 item: only you may set them
    ");
    assert_eq!(world.plimsoll(&["plan"]).run().code, Some(0));
}

#[test]
fn a_draft_reads_nothing_outside_the_project_whatever_settings_permit() {
    let mut world = World::new();
    let outside = OutsideFiles::new(&world);
    world.write("SPEC.md", &format!("# Dates\n\n{}\n", outside.prompt_mentions()));
    // The user logs in through the user settings, which the session reads without their permissions.
    let settings = outside.permissive_settings().to_string();
    let user_settings = world.home().join(".claude/settings.json");
    for file in
        [&user_settings, &world.path(".claude/settings.json"), &world.path(".claude/settings.local.json")]
    {
        world.write(file, &settings);
    }
    let reads = outside.clone();
    let model = ScriptedAgent::new(move |turn| match turn.assistant_message_count {
        0 => reads.add_read_attempts(Step::from_text("I try.")),
        _ => Step::from_text("- [ ] One\n"),
    })
    .with_real_client()
    .start(&mut world);
    let finished = world
        .plimsoll(&["plan", "--draft", "SPEC.md", "--yes", "--", "--model", "opus"])
        .env_remove("ANTHROPIC_API_KEY")
        .run()
        .expect_success();
    assert_eq!(world.read("fix_plan.md"), "- [ ] One\n", "{finished:?}");
    outside.assert_outside_unread(&model.main_requests());
}

#[test]
fn invalid_input_for_a_draft_is_refused_before_any_session_starts() {
    let world = world_with_client_script("exit 3");
    world.write("empty.md", " \n");
    world.write("huge.md", &"x".repeat(300_000));
    std::fs::write(world.path("binary.md"), b"\x7fELF\0\xff").expect("the project is writable");
    let client = client_path(&world);
    let client_arguments = ["--yes", "--client", client.as_str()];
    let refusal_of = |spec: &str, extra_arguments: &[&str]| {
        let finished = run_draft(&world, spec, extra_arguments);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        world.replace_varying_parts_with_placeholders(&finished.stderr)
    };
    let spec_errors =
        ["none.md", "empty.md", "-", "huge.md", "binary.md"].map(|spec| refusal_of(spec, &client_arguments));
    insta::assert_snapshot!(spec_errors.concat(), @"
    error: the specification none.md is missing: name a file, or - for standard input
    error: the specification is empty: describe what is to be built
    error: the specification is empty: describe what is to be built
    error: the specification is larger than 256 KiB: give the part that this plan is about
    error: the specification is not UTF-8 text
    ");
    let arguments = [
        &["--tools", "Bash"][..],
        &["--mcp-config=x"],
        &["--resume", "x"],
        &["--permission-mode", "bypassPermissions"],
        &["--dangerously-skip-permissions"],
        &["--model", "opus", "--add-dir", "/"],
        &["--settings", "{}"],
        &["words"],
    ];
    let option_errors = arguments.map(|passed_arguments| {
        refusal_of("SPEC.md", &[&client_arguments[..], &["--"], passed_arguments].concat())
    });
    insta::assert_snapshot!(option_errors.concat(), @"
    error: `--tools` cannot be passed on: the session of plan --draft can only read inside the project, and ends with one answer; leave it out after `--`; nothing was written
    error: `--mcp-config` cannot be passed on: the session of plan --draft can only read inside the project, and ends with one answer; leave it out after `--`; nothing was written
    error: `--resume` cannot be passed on: the session of plan --draft can only read inside the project, and ends with one answer; leave it out after `--`; nothing was written
    error: `--permission-mode` cannot be passed on: the session of plan --draft can only read inside the project, and ends with one answer; leave it out after `--`; nothing was written
    error: `--dangerously-skip-permissions` cannot be passed on: the session of plan --draft can only read inside the project, and ends with one answer; leave it out after `--`; nothing was written
    error: `--add-dir` cannot be passed on: the session of plan --draft can only read inside the project, and ends with one answer; leave it out after `--`; nothing was written
    error: `--settings` cannot be passed on: the session of plan --draft can only read inside the project, and ends with one answer; leave it out after `--`; nothing was written
    error: `words` cannot be passed on: the session of plan --draft can only read inside the project, and ends with one answer; leave it out after `--`; nothing was written
    ");
    world.write_program(world.home().join("bin/older"), "#!/bin/sh\necho '2.1.247 (Claude Code)'\n");
    let older_client = world.home().join("bin/older").display().to_string();
    world.write_program(world.home().join("bin/other"), "#!/bin/sh\necho GNU something else\n");
    let other_program = world.home().join("bin/other").display().to_string();
    let client_errors = [
        refusal_of("SPEC.md", &["--client", &client]),
        refusal_of("SPEC.md", &["--yes", "--client", &older_client]),
        refusal_of("SPEC.md", &["--yes", "--client", &other_program]),
    ];
    insta::assert_snapshot!(client_errors.concat(), @r#"
    error: cannot ask for confirmation without a terminal: add --yes to write the plan without asking
    error: plan --draft needs Claude Code 2.1.248 or newer, whose `--restricted` keeps a session inside the project, and [HOME]/bin/older says 2.1.247 (Claude Code): update Claude Code; nothing was written
    error: [HOME]/bin/other answers `--version` with "GNU something else": is it Claude Code?; nothing was written
    "#);
    world.write("fix_plan.md", "- [ ] One\n```\nopen\n");
    let usage_error = world.plimsoll(&["plan", "--yes"]).run();
    assert_eq!(usage_error.code, Some(2), "{usage_error:?}");
    assert!(!world.home().join("starts").exists(), "no session was started");
}

#[test]
fn a_failed_or_unusable_answer_leaves_the_plan_unchanged_with_a_reason() {
    let limit_result = json!({ "type": "result", "subtype": "success", "is_error": true, "api_error_status": 429,
                        "result": "You've hit your session limit · resets 6:10am (UTC)" });
    let scripts = [
        script_printing_result(&limit_result),
        "echo 'a warning' >&2; echo \"error: unknown option '--tools'\" >&2; exit 1".to_owned(),
        script_printing_success("I would rather talk\u{1b}[2J about it."),
        script_printing_success("- [x] Done\n"),
        script_printing_success(" "),
        "echo '{\"type\":'".to_owned(),
    ];
    let refusal_of = |script: String, plan: &str| {
        let world = world_with_client_script(&script);
        world.write("fix_plan.md", plan);
        let finished = run_draft(&world, "SPEC.md", &["--yes", "--client", &client_path(&world)]);
        assert_eq!((finished.code, world.read("fix_plan.md").as_str()), (Some(1), plan), "{finished:?}");
        assert!(!finished.stderr.contains('\u{1b}'), "{finished:?}");
        world.replace_varying_parts_with_placeholders(&finished.stderr)
    };
    let errors = scripts.map(|script| refusal_of(script, "- [ ] One\n"));
    insta::assert_snapshot!(errors.join("\n"), @r#"
    asking Claude Code, which can only read; at most 15 minutes, Ctrl-C ends it
    error: Claude Code gave no answer: a usage limit: You've hit your session limit · resets 6:10am (UTC); nothing was written

    asking Claude Code, which can only read; at most 15 minutes, Ctrl-C ends it
    error: Claude Code gave no answer: ended with exit code 1, without a result: error: unknown option '--tools'; nothing was written

    asking Claude Code, which can only read; at most 15 minutes, Ctrl-C ends it
    the draft cost $0.25
    error: the answer has no item (a line `- [ ] …`); nothing was written; it begins: I would rather talk\u{1b}[2J about it.

    asking Claude Code, which can only read; at most 15 minutes, Ctrl-C ends it
    the draft cost $0.25
    error: the answer has no item (a line `- [ ] …`); nothing was written; it begins: - [x] Done

    asking Claude Code, which can only read; at most 15 minutes, Ctrl-C ends it
    error: Claude Code gave no answer: its answer is empty ($0.25); nothing was written

    asking Claude Code, which can only read; at most 15 minutes, Ctrl-C ends it
    error: Claude Code gave no answer: ended with exit code 0, without a result; nothing was written
    "#);
    let fence_error = refusal_of(script_printing_success("- [ ] Two\n"), "- [ ] One\n```\nopen\n");
    insta::assert_snapshot!(fence_error, @"
    asking Claude Code, which can only read; at most 15 minutes, Ctrl-C ends it
    the draft cost $0.25
    error: fix_plan.md ends inside a code fence, where no line is an item: close it, then run this again
    ");
}

#[test]
fn a_signal_ends_the_client_and_nothing_is_written() {
    let world = world_with_client_script("echo $$ > ~/pid\nexec sleep 60");
    let client = client_path(&world);
    let mut running = world.plimsoll(&["plan", "--draft", "SPEC.md", "--yes", "--client", &client]).spawn();
    let pid_file = world.home().join("pid");
    world.wait_until(
        || std::fs::read_to_string(&pid_file).is_ok_and(|pid| pid.ends_with('\n')),
        "the client works",
    );
    running.interrupt();
    let finished = running.wait_or_kill_and_panic(CLIENT_TIMEOUT);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stderr), @"
    asking Claude Code, which can only read; at most 15 minutes, Ctrl-C ends it
    error: interrupted: Claude Code was ended; nothing was written
    ");
    let pid = std::fs::read_to_string(pid_file).expect("its pid");
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists(), "it is gone");
    assert!(!world.exists("fix_plan.md"));
}

#[test]
fn on_a_terminal_the_user_is_asked_before_new_items_are_appended() {
    let old_plan = "# Plan\n\n- [x] Zero\n- [ ] One";
    let draft_items = "- [ ] Two (simple)\n- [ ] Three (simple, after: 1)\n- [ ] One\n";
    for (typed_key, is_written) in [("n", false), ("y", true)] {
        let world = world_with_client_script(&script_printing_success(draft_items));
        world.write("fix_plan.md", old_plan);
        let client = client_path(&world);
        let arguments = ["plan", "--draft", "SPEC.md", "--client", &client];
        let mut terminal = Terminal::start_program_in_project(
            &world,
            find_or_build_bin_dir().join("plimsoll"),
            &arguments,
            120,
            50,
        );
        let question = "fix_plan.md has 1 open item. Append 2 items below? [y/N]";
        let screen = terminal.wait_for_text(question);
        insta::allow_duplicates! {
            insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&screen), @"
            asking Claude Code, which can only read; at most 15 minutes, Ctrl-C ends it
            the draft cost $0.25
            - [ ] Two (simple)
            - [ ] Three (simple, after: 3)

            1 item left out: already in the plan
            Plan

            3 items open in fix_plan.md, 1 done. A session has room for about 820k tokens before L2 (window 1M, assumed: no session
            has been recorded here yet).

            #  Item                      Size    Share of a window  Sessions  By
            ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────
            2  One                       -       40%                1         no item has been measured yet: counted as medium
            3  Two (simple)              simple  20%                1         its stated size
            4  Three (simple, after: 3)  simple  20%                1         its stated size

            One item a session: 3 sessions. With --pack, in your order: 1 session (2–4).
            fix_plan.md has 1 open item. Append 2 items below? [y/N]
            ");
        }
        terminal.type_text(typed_key);
        terminal.press_enter();
        assert_eq!(terminal.wait_for_exit().exit_code(), u32::from(!is_written), "{typed_key}");
        let new_plan = format!("{old_plan}\n- [ ] Two (simple)\n- [ ] Three (simple, after: 3)\n");
        assert_eq!(world.read("fix_plan.md"), if is_written { new_plan.as_str() } else { old_plan });
        let prompt = std::fs::read_to_string(world.home().join("prompt")).expect("a prompt");
        insta::allow_duplicates! {
            insta::assert_snapshot!(prompt, @"
            <!-- plimsoll:begin (generated; rewritten before each session; your own text stands below the end mark) -->
            # Draft a plan

            A specification follows below the end mark. Read what you need of the project, with its rules in CLAUDE.md; you can only read. Then answer only with a plan that implements the specification. Write one line for each item, in working order:

            - [ ] WHAT TO DO — done when: CHECK (SIZE, after: N)

            - One agent does each item in its own session. It sees the item, the project and short notes of earlier sessions, but not this specification. Name the files and everything it must know.
            - CHECK shows that the item is done: a command that passes, or behavior that anybody can observe.
            - SIZE is trivial (below 50 changed lines), simple (50 to 150), medium (150 to 300) or complex (more). Split an item that needs more than half a context window.
            - N is the position in your list of an item that must be done before. For several write `after: 2, 3`; for none `(SIZE)`.
            - At most 40 items, each on one line of at most 400 characters. No headings, no sub-items, no explanations.
            - `fix_plan.md` has 2 items already. Read it, and add only what it lacks.
            <!-- plimsoll:end -->

            # Dates

            All dates are ISO 8601.
            ");
        }
    }
}
