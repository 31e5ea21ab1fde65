//! Worlds and the programs in them, without the client.
#![expect(clippy::disallowed_methods, reason = "a test of the test bench looks at real files and processes")]
use plimsoll_testkit::scripted_model::ScriptedModel;
use plimsoll_testkit::world::{Launch, World};
use std::path::Path;
use std::time::{Duration, Instant};

fn shell(world: &World, line: &str) -> Launch {
    world.command("sh", &["-c", line])
}

#[test]
fn a_world_is_a_repository_with_one_commit_and_its_own_home() {
    let world = World::new().without_plimsoll();
    assert_eq!(world.git(&["rev-list", "--count", "main"]), "1");
    assert_eq!(world.git(&["status", "--short"]), "");
    let finished = shell(&world, "echo $HOME; pwd; echo ${CARGO_MANIFEST_DIR-none}").run().expect_success();
    let expected = format!("{}\n{}\nnone\n", world.home().display(), world.project().display());
    assert_eq!(finished.stdout, expected);
    assert!(!World::without_git().exists(".git"));
}

#[test]
fn a_second_project_lies_beside_the_first() {
    let world = World::new().without_plimsoll();
    let other = world.project_at("other");
    assert!(other.join(".git").is_dir() && other != world.project());
    let trusted = &world.json(world.home().join(".claude.json"))["projects"];
    assert_eq!(trusted.as_object().map(serde_json::Map::len), Some(2));
}

#[test]
fn stdin_exit_code_and_both_outputs_pass_through() {
    let world = World::new().without_plimsoll();
    let finished = shell(&world, "cat; echo wrong >&2; exit 3").stdin("in").run();
    assert_eq!((finished.code, finished.signal), (Some(3), None));
    assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("in", "wrong\n"));
    let large = "x".repeat(1 << 20);
    assert_eq!(shell(&world, "cat").stdin(large.clone()).run().stdout, large);
    assert_eq!(shell(&world, "echo unread").stdin(large).run().code, Some(0));
}

#[test]
fn signals_end_a_program_and_are_told() {
    let world = World::new().without_plimsoll();
    let mut running = shell(&world, "echo ready; exec sleep 30").spawn();
    world.wait_until(|| running.stdout_so_far() == "ready\n", "it is ready");
    running.kill();
    assert_eq!(running.wait(Duration::from_secs(5)).signal, Some(9));
}

#[test]
#[should_panic(expected = "stdout: before")]
fn a_program_that_takes_too_long_is_ended_with_its_group() {
    let world = World::new().without_plimsoll();
    shell(&world, "echo before; sleep 30 & sleep 30").timeout(Duration::from_millis(300)).run();
}

#[test]
fn nothing_outlives_its_world_not_even_a_process_with_its_own_session() {
    let world = World::new().without_plimsoll();
    let line = "setsid sh -c 'echo $$ > pid; exec sleep 30' >/dev/null 2>&1 </dev/null & sleep 0.2";
    shell(&world, line).run().expect_success();
    let process = Path::new("/proc").join(world.read("pid").trim());
    assert!(command_line(&process).contains("sleep"));
    drop(world);
    let start = Instant::now();
    // A dead process may stay as a zombie until its new parent collects it: then its command line is empty.
    while !command_line(&process).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(20), "it lives on");
    }
}

fn command_line(process: &Path) -> String {
    std::fs::read_to_string(process.join("cmdline")).unwrap_or_default()
}

#[test]
fn a_program_test_has_no_client_on_its_path_until_it_uses_a_model() {
    let mut world = World::without_git().without_plimsoll();
    let path =
        |world: &World| world.env().into_iter().find(|(name, _)| name == "PATH").map(|(_, value)| value);
    let before = path(&world);
    world.use_model(&ScriptedModel::steps(Vec::new()));
    assert_ne!(before, path(&world));
}

#[test]
fn stable_text_replaces_what_differs_between_two_worlds_and_nothing_else() {
    let world = World::new().without_plimsoll();
    let text = format!(
        "{project}/src/a.rs in {home}\nrun 0193a0b2-7c1e-7000-8000-0123456789ab at 2026-11-28T10:32:04Z, 10:32 on 2026-11-28\n\
         .claude/handoffs/2026-11-28-0947.md, commit 6cb1f3211cdd after 6a17a40\n1 min 2.5 s, 30 min, 87%, $0.66, 1234567 tokens\n\
         facade, 3 items, process 4711\n── Saturday, 28 November 2026: client 2.1.329 at http://127.0.0.1:39629, recorded: 41 KB\n\
         projects/project-2977fd8cbaaeabeb/journal.jsonl\n[qilotqgnnqmi begins: words]\n[qilotqgnnqmi ends]",
        project = world.project().display(),
        home = world.home().display(),
    );
    insta::assert_snapshot!(world.stable_text(&text), @r"
    [PROJECT]/src/a.rs in [HOME]
    run [ID] at [DATE-TIME], [TIME] on [DATE]
    .claude/handoffs/[DATE-TIME].md, commit [COMMIT] after [COMMIT]
    [DURATION], 30 min, 87%, $0.66, 1234567 tokens
    facade, 3 items, process [PID]
    ── [DAY]: client [VERSION] at http://127.0.0.1:[PORT], recorded: [SIZE]
    projects/project-[HASH]/journal.jsonl
    [FENCE begins: words]
    [FENCE ends]
    ");
}

#[test]
fn stable_text_replaces_ids_of_digits_alone_if_the_world_has_them() {
    let world = World::new().without_plimsoll();
    world.write(".claude/ralph-state.json", "{\"nonce\": \"12345678\"}");
    let mut commits = (0..).map(|number: u32| {
        world.git(&["commit", "--allow-empty", "-qm", &number.to_string()]);
        world.git(&["rev-parse", "--short=7", "HEAD"])
    });
    let commit = commits.find(|commit| commit.bytes().all(|letter| letter.is_ascii_digit()));
    let text = format!("{} 12345678 7654321", commit.expect("one of about 27"));
    assert_eq!(world.stable_text(&text), "[COMMIT] [COMMIT] 7654321");
}
