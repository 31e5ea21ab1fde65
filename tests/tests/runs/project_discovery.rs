//! Which folder is the project of a run: from a subfolder it is the project above, and never an unrelated folder.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::{FinishedProgram, World};
use plimsoll_tests::{ScriptedAgent, THREE_ITEM_PLAN, honest_agent, world_with_plan_and_dates};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn start_run_in(world: &World, folder: &Path) -> FinishedProgram {
    // If there is a `PROMPT.md`, it is the task.
    let has_task = folder.ancestors().any(|folder| folder.join("PROMPT.md").exists());
    let task: &[&str] = if has_task { &[] } else { &["--objective", "Do the plan."] };
    world.plimsoll(&[&["start"], task].concat()).cwd(folder).run()
}

/// Returns the folders in which the start has written a state.
fn folders_with_state(folders: &[&Path]) -> Vec<PathBuf> {
    let has_state = |folder: &&&Path| folder.join(".claude/ralph-state.json").exists();
    folders.iter().filter(has_state).map(|folder| folder.to_path_buf()).collect()
}

/// Existing files, the current folder, the expected project folder, and the reason that is printed. All paths are below
/// the project's folder.
const DISCOVERY_CASES: [(&[&str], &str, &str, &str); 7] = [
    (&["fix_plan.md", "src/"], "src", "", ": the nearest folder upwards with the plan"),
    (&["src/deep/"], "src/deep", "", ": the root of the repository"),
    // A package of a monorepo with a plan of its own is its own project.
    (&["fix_plan.md", "packages/a/fix_plan.md"], "packages/a", "packages/a", ""),
    (
        &["fix_plan.md", "packages/a/fix_plan.md", "packages/a/src/"],
        "packages/a/src",
        "packages/a",
        ": the nearest folder upwards with the plan",
    ),
    (
        &["packages/a/.claude/plimsoll.json", "packages/a/src/"],
        "packages/a/src",
        "packages/a",
        ": the nearest folder upwards with files of Plimsoll",
    ),
    (
        &["packages/a/PROMPT.md", "packages/a/src/"],
        "packages/a/src",
        "packages/a",
        ": the nearest folder upwards with PROMPT.md",
    ),
    (&["fix_plan.md"], "", "", ""),
];

#[test]
fn a_run_starts_in_the_nearest_folder_above_with_a_plan_or_our_files() {
    for (existing_paths, start_folder, expected, reason) in DISCOVERY_CASES {
        let world = World::without_plimsoll_files();
        for path in existing_paths {
            let text = if path.ends_with(".json") { "{}" } else { THREE_ITEM_PLAN };
            match path.strip_suffix('/') {
                Some(folder) => std::fs::create_dir_all(world.path(folder)).expect("a folder"),
                None => world.write(path, text),
            }
        }
        let (start_folder, expected) = (world.path(start_folder), world.path(expected));
        let started = start_run_in(&world, &start_folder).expect_success();
        let candidates = [
            world.project(),
            world.path("src"),
            world.path("packages/a"),
            world.path("packages/a/src"),
            start_folder.clone(),
        ];
        let candidates: std::collections::BTreeSet<&Path> = candidates.iter().map(PathBuf::as_path).collect();
        let state_folders = folders_with_state(&candidates.into_iter().collect::<Vec<_>>());
        let normalized = |path: &Path| path.components().collect::<PathBuf>();
        assert_eq!(
            state_folders.iter().map(|path| normalized(path)).collect::<Vec<_>>(),
            [normalized(&expected)],
            "{existing_paths:?}"
        );
        let first = started.stderr.lines().next().unwrap_or_default();
        if reason.is_empty() {
            assert_eq!(first, "run \"Do the plan.\" is ready: PROMPT.md is written, session 1 of at most 50");
        } else {
            let project = expected.canonicalize().expect("a project");
            assert_eq!(first, format!("the project is {}{reason}", normalized(&project).display()));
        }
        // The other commands find the run from there.
        let status = world.plimsoll(&["status"]).cwd(&start_folder).run().expect_success();
        assert!(status.stdout.contains("Sessions     1 of at most 50"), "{status:?}");
    }
}

#[test]
fn plan_shown_from_a_subfolder_names_its_project_folder() {
    let world = World::without_plimsoll_files();
    world.write("fix_plan.md", THREE_ITEM_PLAN);
    world.write("src/dates.txt", "01/07/2026\n");
    let plan_from = |folder: &str| world.plimsoll(&["plan"]).cwd(world.path(folder)).run().expect_success();
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&plan_from("src").stderr), @"the project is [PROJECT]: the nearest folder upwards with the plan");
    assert_eq!(plan_from("").stderr, "");
    world.plimsoll(&["start", "--objective", "Do the plan."]).run().expect_success();
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&plan_from("src").stderr), @"the project is [PROJECT]: the nearest folder upwards with files of Plimsoll");
}

#[test]
fn the_home_and_folders_outside_the_repository_are_not_the_project() {
    let world = World::without_plimsoll_files();
    let home = world.home();
    // A plan in the home, in a folder that everybody may write to, and above the repository.
    let above = world.project().parent().expect("a folder").join("fix_plan.md");
    for plan in [home.join("fix_plan.md"), home.join("open/fix_plan.md"), above] {
        world.write(&plan, THREE_ITEM_PLAN);
    }
    let init_git = |folder: &Path| world.command("git", &["init", "-q"]).cwd(folder).run().expect_success();
    init_git(&home);
    for folder in ["notes", "open/notes"] {
        std::fs::create_dir_all(home.join(folder)).expect("a folder");
    }
    let world_writable = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(home.join("open"), world_writable).expect("its owner may");
    for start_folder in [home.join("notes"), home.join("open/notes"), world.project()] {
        start_run_in(&world, &start_folder).expect_success();
        assert!(start_folder.join(".claude/ralph-state.json").exists(), "{}", start_folder.display());
    }
    assert!(!home.join(".claude/ralph-state.json").exists() && !home.join("open/.claude").exists());
}

/// Timeout for a whole run on a busy computer.
const RUN_TIMEOUT: Duration = Duration::from_secs(60);
const MODEL_ARGUMENTS: [&str; 3] = ["--", "--model", "opus"];
const ALLOW_BASH: [&str; 2] = ["--allowedTools", "Bash"];

fn run_with_client_arguments(
    world: &World,
    arguments: &[&str],
    client_arguments: &[&str],
) -> FinishedProgram {
    world
        .plimsoll(&[&["run"], arguments, &MODEL_ARGUMENTS, client_arguments].concat())
        .timeout(RUN_TIMEOUT)
        .run()
}

#[test]
fn a_plan_alone_or_text_on_the_command_line_is_a_task() {
    for (task, objective) in [(None, "Do what fix_plan.md says."), (Some("Do the plan."), "Do the plan.")] {
        let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
        let model = ScriptedAgent::new(honest_agent).start(&mut world);
        let finished = run_with_client_arguments(&world, &task.into_iter().collect::<Vec<_>>(), &ALLOW_BASH);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_eq!(world.read_json(".claude/ralph-state.json")["objective"], objective);
        assert!(model.main_requests()[0].body.to_string().contains(objective), "the session is told");
        assert!(!finished.stderr.contains("warning"), "{finished:?}");
    }
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let _model = ScriptedAgent::new(honest_agent).start(&mut world);
    let with_two_tasks = run_with_client_arguments(&world, &["Do it.", "--objective", "Do it."], &ALLOW_BASH);
    assert_eq!(with_two_tasks.code, Some(2), "{with_two_tasks:?}");
    insta::assert_snapshot!(with_two_tasks.stderr, @"
    error: the argument '[OBJECTIVE]' cannot be used with '--objective <TEXT>'

    Usage: plimsoll run <OBJECTIVE> -- <CLAUDE ARGS>...

    For more information, try '--help'.
    ");
    let with_file_as_task = run_with_client_arguments(&world, &["fix_plan.md"], &ALLOW_BASH);
    assert_eq!(with_file_as_task.code, Some(1), "{with_file_as_task:?}");
    insta::assert_snapshot!(with_file_as_task.stderr, @"error: `fix_plan.md` is a file: give it with --todo if it is the plan, or with --objective-file if it is the task");
}

#[test]
fn a_run_without_bash_permission_warns_before_its_first_session() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let model = ScriptedAgent::new(|_| Step::from_text("I may run nothing.")).start(&mut world);
    let finished = run_with_client_arguments(&world, &["--name", "two words", "--max-iterations", "1"], &[]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert_eq!(model.main_requests().len(), 1);
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stderr), @"
    warning: neither the arguments nor the settings of Claude Code seem to allow Bash, and nobody will be there to ask, so sessions may be refused builds, tests and commits; to allow it: plimsoll run --name 'two words' --max-iterations 1 -- --model opus --allowedTools Bash
    hint: to continue: plimsoll run --resume --max-iterations N, with a larger N
    hint: to see what happened: plimsoll report --open, or plimsoll log
    ");
}

#[test]
fn plans_of_other_tools_are_named_before_any_session_starts() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let model = ScriptedAgent::new(honest_agent).start(&mut world);
    std::fs::rename(world.path("fix_plan.md"), world.path("IMPLEMENTATION_PLAN.md")).expect("a plan");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "another plan"]);
    let errors = [&[][..], &["--workers", "2", "--objective", "Do it."]].map(|arguments| {
        let refused = run_with_client_arguments(&world, arguments, &ALLOW_BASH);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        refused.stderr
    });
    insta::assert_snapshot!(errors.join("\n"), @"
    error: there is no task: write a plan (fix_plan.md) or PROMPT.md, or give --objective TEXT or --objective-file FILE
    hint: IMPLEMENTATION_PLAN.md has 3 open items, but no run uses it by itself; to work through it: plimsoll run --todo IMPLEMENTATION_PLAN.md

    error: workers need a plan, whose items they share: write fix_plan.md, or name one with --todo
    hint: IMPLEMENTATION_PLAN.md has 3 open items, but no run uses it by itself; to work through it: plimsoll run --todo IMPLEMENTATION_PLAN.md
    ");
    assert!(model.requests().is_empty(), "nothing was paid");
    let started = world.plimsoll(&["start", "--objective", "Do it."]).run().expect_success();
    insta::assert_snapshot!(started.stderr, @r#"
    hint: IMPLEMENTATION_PLAN.md has 3 open items, but no run uses it by itself; to work through it: plimsoll run --todo IMPLEMENTATION_PLAN.md
    run "Do it." is ready: PROMPT.md is written, session 1 of at most 50
    "#);
    world.plimsoll(&["stop", "--yes"]).run().expect_success();
    let started_with_todo =
        world.plimsoll(&["start", "--todo", "IMPLEMENTATION_PLAN.md"]).run().expect_success();
    insta::assert_snapshot!(started_with_todo.stderr, @r#"run "Do it." is ready: PROMPT.md is written, session 1 of at most 50"#);
}
