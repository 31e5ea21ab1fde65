//! `plimsoll plan --draft`: the client proposes items in a session that can only read; what it writes is foreign text.

use crate::read_only_sessions::Outside;
use plimsoll_testkit::bin_dir;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::{Finished, World};
use plimsoll_tests::ScriptedAgent;
use serde_json::json;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

fn draft(world: &World, spec: &str, more: &[&str]) -> Finished {
    let all = [&["plan", "--draft", spec][..], more].concat();
    world.plimsoll(&all).run()
}

/// A world with a specification, whose client is a script that says this; each start of it leaves a line in `~/starts`.
fn with_client(script: &str) -> World {
    let world = World::new();
    world.write("SPEC.md", "# Dates\n\nAll dates are ISO 8601.\n");
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && {{ echo '2.1.329 (Claude Code)'; exit; }}\necho \"$*\" >> ~/starts\ncat > ~/prompt\n{script}\n"
    );
    world.write_program(world.home().join("bin/claude"), &text);
    world
}

fn client(world: &World) -> String {
    world.home().join("bin/claude").display().to_string()
}

/// A client that ends with this result.
fn answering(result: &serde_json::Value) -> String {
    format!("cat <<'END'\n{result}\nEND")
}

fn success(text: &str) -> String {
    answering(
        &json!({ "type": "result", "subtype": "success", "is_error": false, "terminal_reason": "completed",
                       "result": text, "total_cost_usd": 0.25 }),
    )
}

#[test]
fn a_draft_comes_from_a_session_that_can_only_read_and_is_checked_like_every_plan() {
    let mut world = World::new();
    let spec = "# Dates\n\nAll dates in README.md are ISO 8601.\n";
    world.write("SPEC.md", spec);
    let seen = world.home().join("seen");
    let hook =
        json!({ "type": "command", "command": format!("echo \"[$PLIMSOLL_RUN_ID]\" > {}", seen.display()) });
    let settings = json!({ "hooks": { "SessionStart": [{ "hooks": [hook] }] } });
    world.write(world.home().join(".claude/settings.json"), &settings.to_string());
    let readme = world.path("README.md").display().to_string();
    let model = ScriptedAgent::new(move |turn| match turn.step {
        0 => Step::text("I try.")
            .tool("Write", json!({ "file_path": "/tmp/plimsoll-draft.txt", "content": "x" }))
            .tool("Bash", json!({ "command": "touch made-by-bash.txt" })),
        1 => Step::text("I read.").tool("Read", json!({ "file_path": readme })),
        _ => Step::text(
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
    let mut tools = requests[0].tools();
    tools.sort_unstable();
    // Stands for tools that the client would load later, and is none itself (2.1.329).
    tools.retain(|tool| *tool != "DeferredToolPlaceholder");
    assert_eq!(tools, ["Glob", "Grep", "Read"]);
    assert!(requests[0].text().contains(spec), "{}", requests[0].text());
    let results: Vec<String> = requests[2].tool_results().into_iter().map(|(_, text)| text).collect();
    assert!(results[0].contains("No such tool") && results[1].contains("No such tool"), "{results:?}");
    assert!(results[2].contains("A project."), "{results:?}");
    assert!(!world.exists("made-by-bash.txt") && !std::path::Path::new("/tmp/plimsoll-draft.txt").exists());
    assert_eq!(std::fs::read_to_string(seen).expect("the user's hook ran"), "[]\n", "it belongs to no run");
    assert!(!world.exists(".claude/ralph-state.json"));
    let plan = "- [ ] Convert README.md — done when: `! grep 2026 README.md` (trivial)\n\
                - [ ] Check it (simple, after: 1, verify touch owned)\n- [ ] Wait [medium]\n";
    assert_eq!(world.read("fix_plan.md"), plan);
    assert!(
        finished.stdout.contains(plan) && finished.stdout.contains("\n1  Convert README.md"),
        "{finished:?}"
    );
    assert!(finished.stdout.contains("item 3 says `[medium]`, which is not understood"), "{finished:?}");
    assert!(finished.stdout.contains("fix_plan.md: 3 items added"), "{finished:?}");
    for words in
        ["the draft cost $", "1 line of the answer left out", "`verify:` or `model:` taken out of 1 item"]
    {
        assert!(finished.stderr.contains(words), "{words}: {finished:?}");
    }
    assert_eq!(world.plimsoll(&["plan"]).run().code, Some(0));
}

#[test]
fn whatever_the_settings_permit_a_draft_reads_nothing_outside_the_project() {
    let mut world = World::new();
    let outside = Outside::new(&world);
    world.write("SPEC.md", &format!("# Dates\n\n{}\n", outside.mentions()));
    // The user logs in by their own settings, which the session knows, without what they permit.
    let settings = outside.permissive_settings().to_string();
    let users = world.home().join(".claude/settings.json");
    for file in [&users, &world.path(".claude/settings.json"), &world.path(".claude/settings.local.json")] {
        world.write(file, &settings);
    }
    let reads = outside.clone();
    let model = ScriptedAgent::new(move |turn| match turn.step {
        0 => reads.attempts(Step::text("I try.")),
        _ => Step::text("- [ ] One\n"),
    })
    .with_real_client()
    .start(&mut world);
    let finished = world
        .plimsoll(&["plan", "--draft", "SPEC.md", "--yes", "--", "--model", "opus"])
        .env_remove("ANTHROPIC_API_KEY")
        .run()
        .expect_success();
    assert_eq!(world.read("fix_plan.md"), "- [ ] One\n", "{finished:?}");
    outside.assert_unread(&model.main_requests());
}

#[test]
fn what_cannot_become_a_plan_is_refused_before_anything_is_paid() {
    let world = with_client("exit 3");
    world.write("empty.md", " \n");
    world.write("huge.md", &"x".repeat(300_000));
    std::fs::write(world.path("binary.md"), b"\x7fELF\0\xff").expect("the project is writable");
    let client = client(&world);
    let named = ["--yes", "--client", client.as_str()];
    for (spec, more, words) in [
        ("none.md", &[][..], "there is no specification none.md"),
        ("empty.md", &[], "the specification is empty"),
        ("-", &[], "the specification is empty"),
        ("huge.md", &[], "larger than 256 KiB"),
        ("binary.md", &[], "not UTF-8 text"),
        ("SPEC.md", &["--", "--tools", "Bash"], "`--tools` cannot be passed on"),
        ("SPEC.md", &["--", "--mcp-config=x"], "`--mcp-config` cannot be passed on"),
        ("SPEC.md", &["--", "--resume", "x"], "`--resume` cannot be passed on"),
        ("SPEC.md", &["--", "--permission-mode", "bypassPermissions"], "can only read inside the project"),
        ("SPEC.md", &["--", "--dangerously-skip-permissions"], "`--dangerously-skip-permissions` cannot"),
        ("SPEC.md", &["--", "--model", "opus", "--add-dir", "/"], "`--add-dir` cannot"),
        ("SPEC.md", &["--", "--settings", "{}"], "`--settings` cannot"),
        ("SPEC.md", &["--", "words"], "`words` cannot"),
    ] {
        let finished = draft(&world, spec, &[&named[..], more].concat());
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(finished.stderr.contains(words), "{words}: {finished:?}");
    }
    let asks = draft(&world, "SPEC.md", &["--client", &client]);
    assert!(asks.code == Some(1) && asks.stderr.contains("there is no terminal"), "{asks:?}");
    world.write_program(world.home().join("bin/older"), "#!/bin/sh\necho '2.1.247 (Claude Code)'\n");
    let older = world.home().join("bin/older").display().to_string();
    let older = draft(&world, "SPEC.md", &["--yes", "--client", &older]);
    assert!(
        older.code == Some(1) && older.stderr.contains("needs Claude Code 2.1.248 or newer"),
        "{older:?}"
    );
    let other = draft(&world, "SPEC.md", &["--yes", "--client", "/bin/echo"]);
    assert!(other.code == Some(1) && other.stderr.contains("is it Claude Code?"), "{other:?}");
    world.write("fix_plan.md", "- [ ] One\n```\nopen\n");
    let usage = world.plimsoll(&["plan", "--yes"]).run();
    assert_eq!(usage.code, Some(2), "{usage:?}");
    assert!(!world.home().join("starts").exists(), "no session was started");
}

#[test]
fn a_client_that_fails_or_answers_otherwise_leaves_the_plan_as_it_is_and_says_why() {
    let limit = json!({ "type": "result", "subtype": "success", "is_error": true, "api_error_status": 429,
                        "result": "You've hit your session limit · resets 6:10am (UTC)" });
    let rows = [
        (answering(&limit), "a usage limit: You've hit your session limit"),
        (
            "echo 'a warning' >&2; echo \"error: unknown option '--tools'\" >&2; exit 1".to_owned(),
            "error: unknown option '--tools'",
        ),
        (success("I would rather talk\u{1b}[2J about it."), "the answer has no item"),
        (success("- [x] Done\n"), "the answer has no item"),
        (success(" "), "its answer is empty"),
        ("echo '{\"type\":'".to_owned(), "ended with exit code 0, without a result"),
    ];
    let plan = "- [ ] One\n";
    for (script, words) in rows {
        let world = with_client(&script);
        world.write("fix_plan.md", plan);
        let finished = draft(&world, "SPEC.md", &["--yes", "--client", &client(&world)]);
        assert_eq!((finished.code, world.read("fix_plan.md").as_str()), (Some(1), plan), "{finished:?}");
        assert!(
            finished.stderr.contains(words) && finished.stderr.contains("nothing was written"),
            "{words}: {finished:?}"
        );
        assert!(!finished.stderr.contains('\u{1b}'), "{finished:?}");
    }
    let fenced = with_client(&success("- [ ] Two\n"));
    fenced.write("fix_plan.md", "- [ ] One\n```\nopen\n");
    let finished = draft(&fenced, "SPEC.md", &["--yes", "--client", &client(&fenced)]);
    assert!(finished.stderr.contains("ends inside a code fence"), "{finished:?}");
}

#[test]
fn a_signal_ends_the_client_and_nothing_is_written() {
    let world = with_client("echo $$ > ~/pid\nexec sleep 60");
    let client = client(&world);
    let mut running = world.plimsoll(&["plan", "--draft", "SPEC.md", "--yes", "--client", &client]).spawn();
    let pid = world.home().join("pid");
    world.wait_until(
        || std::fs::read_to_string(&pid).is_ok_and(|pid| pid.ends_with('\n')),
        "the client works",
    );
    running.interrupt();
    let finished = running.wait(SOON);
    assert!(
        finished.code == Some(1) && finished.stderr.contains("interrupted: the client was ended"),
        "{finished:?}"
    );
    let pid = std::fs::read_to_string(pid).expect("its pid");
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists(), "it is gone");
    assert!(!world.exists("fix_plan.md"));
}

#[test]
fn on_a_terminal_the_user_is_asked_and_new_items_go_below_the_old_ones() {
    let before = "# Plan\n\n- [x] Zero\n- [ ] One";
    let answer = "- [ ] Two (simple)\n- [ ] Three (simple, after: 1)\n- [ ] One\n";
    for (typed, is_written) in [("n", false), ("y", true)] {
        let world = with_client(&success(answer));
        world.write("fix_plan.md", before);
        let client = client(&world);
        let arguments = ["plan", "--draft", "SPEC.md", "--client", &client];
        let mut terminal = Terminal::start(&world, bin_dir().join("plimsoll"), &arguments, 120, 50);
        let question = "fix_plan.md has 1 open item. Append 2 items below? [y/N]";
        let screen = terminal.wait_for(question);
        for words in
            ["the draft cost $0.25", "- [ ] Three (simple, after: 3)", "1 item left out: there already"]
        {
            assert!(screen.contains(words), "{words}: {screen}");
        }
        terminal.type_text(typed);
        terminal.press_enter();
        assert_eq!(terminal.wait_exit().exit_code(), u32::from(!is_written), "{typed}");
        let after = format!("{before}\n- [ ] Two (simple)\n- [ ] Three (simple, after: 3)\n");
        assert_eq!(world.read("fix_plan.md"), if is_written { after.as_str() } else { before });
        let prompt = std::fs::read_to_string(world.home().join("prompt")).expect("a prompt");
        assert!(prompt.contains("`fix_plan.md` has 2 items already"), "{prompt}");
    }
}
