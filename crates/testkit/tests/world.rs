//! Worlds and the programs in them, without the client.
#![expect(clippy::disallowed_methods, reason = "a test of the test bench looks at real files and processes")]
use plimsoll_testkit::scripted_model::ScriptedModel;
use plimsoll_testkit::world::{Launch, World};
use std::path::Path;
use std::time::{Duration, Instant};

fn shell_command(world: &World, line: &str) -> Launch {
    world.command("sh", &["-c", line])
}

#[test]
fn a_world_is_a_repository_with_one_commit_and_its_own_home() {
    let world = World::new().without_plimsoll_programs();
    assert_eq!(world.git(&["rev-list", "--count", "main"]), "1");
    assert_eq!(world.git(&["status", "--short"]), "");
    let finished =
        shell_command(&world, "echo $HOME; pwd; echo ${CARGO_MANIFEST_DIR-none}").run().expect_success();
    let expected = format!("{}\n{}\nnone\n", world.home().display(), world.project().display());
    assert_eq!(finished.stdout, expected);
    assert!(!World::without_git().exists(".git"));
}

#[test]
fn create_project_adds_a_trusted_project_beside_the_first() {
    let world = World::new().without_plimsoll_programs();
    let other = world.create_project("other");
    assert!(other.join(".git").is_dir() && other != world.project());
    let trusted = &world.read_json(world.home().join(".claude.json"))["projects"];
    assert_eq!(trusted.as_object().map(serde_json::Map::len), Some(2));
}

#[test]
fn a_program_gets_stdin_and_returns_exit_code_and_both_outputs() {
    let world = World::new().without_plimsoll_programs();
    let finished = shell_command(&world, "cat; echo wrong >&2; exit 3").stdin("in").run();
    assert_eq!((finished.code, finished.signal), (Some(3), None));
    assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("in", "wrong\n"));
    let large = "x".repeat(1 << 20);
    assert_eq!(shell_command(&world, "cat").stdin(large.clone()).run().stdout, large);
    assert_eq!(shell_command(&world, "echo unread").stdin(large).run().code, Some(0));
}

#[test]
fn the_signal_that_ends_a_program_is_reported() {
    let world = World::new().without_plimsoll_programs();
    let mut running = shell_command(&world, "echo ready; exec sleep 30").spawn();
    world.wait_until(|| running.stdout_so_far() == "ready\n", "it is ready");
    running.kill();
    assert_eq!(running.wait_or_kill_and_panic(Duration::from_secs(5)).signal, Some(9));
}

#[test]
#[should_panic(expected = "stdout: before")]
fn a_program_is_killed_with_its_group_after_its_timeout() {
    let world = World::new().without_plimsoll_programs();
    shell_command(&world, "echo before; sleep 30 & sleep 30").timeout(Duration::from_millis(300)).run();
}

#[test]
fn dropping_a_world_kills_processes_even_in_their_own_session() {
    let world = World::new().without_plimsoll_programs();
    let line = "setsid sh -c 'echo $$ > pid; exec sleep 30' >/dev/null 2>&1 </dev/null & sleep 0.2";
    shell_command(&world, line).run().expect_success();
    let process = Path::new("/proc").join(world.read("pid").trim());
    assert!(command_line(&process).contains("sleep"));
    drop(world);
    let start = Instant::now();
    // A dead process may stay a zombie until its new parent reaps it; its command line is empty then.
    while !command_line(&process).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(20), "it lives on");
    }
}

fn command_line(process: &Path) -> String {
    std::fs::read_to_string(process.join("cmdline")).unwrap_or_default()
}

#[test]
fn the_client_is_on_the_path_only_after_use_model() {
    let mut world = World::without_git().without_plimsoll_programs();
    let search_path = |world: &World| {
        world.env_with_programs_on_path().into_iter().find(|(name, _)| name == "PATH").map(|(_, value)| value)
    };
    let before = search_path(&world);
    world.put_client_on_path_with_model_and_settings(&ScriptedModel::start_with_steps_repeating_last(
        Vec::new(),
    ));
    assert_ne!(before, search_path(&world));
}

#[test]
fn stable_text_replaces_only_what_differs_between_worlds() {
    let world = World::new().without_plimsoll_programs();
    let text = format!(
        "{project}/src/a.rs in {home}\nrun 0193a0b2-7c1e-7000-8000-0123456789ab at 2026-11-28T10:32:04Z, 10:32 on 2026-11-28\n\
         until Tue 00:10, Tue  1 Dec 00:10:03, Sat 21 Nov 03:10 or The 00:10\n\
         .claude/handoffs/2026-11-28-0947.md, commit 6cb1f3211cdd after 6a17a40\n1 min 2.5 s, 30 min, 87%, $0.66, 1234567 tokens\n\
         facade, 3 items, process 4711\n── Saturday, 28 November 2026: client 2.1.329 at http://127.0.0.1:39629, recorded: 41 KB\n\
         projects/project-2977fd8cbaaeabeb/journal.jsonl\n[qilotqgnnqmi begins: words]\n[qilotqgnnqmi ends]",
        project = world.project().display(),
        home = world.home().display(),
    );
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&text), @r"
    [PROJECT]/src/a.rs in [HOME]
    run [ID] at [DATE-TIME], [TIME] on [DATE]
    until [TIME], [TIME], [TIME] or The [TIME]
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
fn stable_text_replaces_all_digit_ids_that_the_world_has() {
    let world = World::new().without_plimsoll_programs();
    world.write(".claude/ralph-state.json", "{\"nonce\": \"12345678\"}");
    let mut commits = (0..).map(|number: u32| {
        world.git(&["commit", "--allow-empty", "-qm", &number.to_string()]);
        world.git(&["rev-parse", "--short=7", "HEAD"])
    });
    let commit = commits.find(|commit| commit.bytes().all(|letter| letter.is_ascii_digit()));
    // An earlier run: only its folder has its id.
    let earlier_run = world.home().join(".local/state/plimsoll/runs/87654321-1111-4111-8111-111111111111");
    std::fs::create_dir_all(earlier_run).unwrap();
    let text = format!("{} 12345678 87654321 7654321", commit.expect("one of about 27"));
    assert_eq!(world.replace_varying_parts_with_placeholders(&text), "[COMMIT] [COMMIT] [COMMIT] 7654321");
}
