//! Where a run begins: from a subfolder it belongs to the project above, and never to a folder that only happens to be there.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::{Finished, World};
use plimsoll_tests::{ITEMS, ScriptedAgent, honest, world};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn start_in(world: &World, folder: &Path) -> Finished {
    // With `PROMPT.md` that is the task.
    let has_task = folder.ancestors().any(|folder| folder.join("PROMPT.md").exists());
    let task: &[&str] = if has_task { &[] } else { &["--objective", "Do the plan."] };
    world.plimsoll(&[&["start"], task].concat()).cwd(folder).run()
}

/// The folder whose state the start has made.
fn begun_in(folders: &[&Path]) -> Vec<PathBuf> {
    let has_state = |folder: &&&Path| folder.join(".claude/ralph-state.json").exists();
    folders.iter().filter(has_state).map(|folder| folder.to_path_buf()).collect()
}

/// What is there before, where one stands, and where the run is to begin; all below the project's folder.
const CASES: [(&[&str], &str, &str, &str); 7] = [
    (&["fix_plan.md", "src/"], "src", "", ": the nearest folder upwards with the plan"),
    (&["src/deep/"], "src/deep", "", ": the root of the repository"),
    // A package of a monorepo with a plan of its own stays one.
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
fn a_run_begins_in_the_nearest_folder_with_files_of_ours_or_a_plan_and_says_so_first() {
    for (there, here, expected, why) in CASES {
        let world = World::untouched();
        for path in there {
            let text = if path.ends_with(".json") { "{}" } else { ITEMS };
            match path.strip_suffix('/') {
                Some(folder) => std::fs::create_dir_all(world.path(folder)).expect("a folder"),
                None => world.write(path, text),
            }
        }
        let (here, expected) = (world.path(here), world.path(expected));
        let started = start_in(&world, &here).expect_success();
        let all = [
            world.project(),
            world.path("src"),
            world.path("packages/a"),
            world.path("packages/a/src"),
            here.clone(),
        ];
        let all: std::collections::BTreeSet<&Path> = all.iter().map(PathBuf::as_path).collect();
        let found = begun_in(&all.into_iter().collect::<Vec<_>>());
        let clean = |path: &Path| path.components().collect::<PathBuf>();
        assert_eq!(found.iter().map(|path| clean(path)).collect::<Vec<_>>(), [clean(&expected)], "{there:?}");
        let first = started.stderr.lines().next().unwrap_or_default();
        if why.is_empty() {
            assert_eq!(
                first,
                "plimsoll: run \"Do the plan.\" is ready: PROMPT.md is written, iteration 1 of 50"
            );
        } else {
            let project = expected.canonicalize().expect("a project");
            assert_eq!(first, format!("plimsoll: the project is {}{why}", clean(&project).display()));
        }
        // The other commands find it from there.
        let status = world.plimsoll(&["status"]).cwd(&here).run().expect_success();
        assert!(status.stdout.contains("Sessions     1 of at most 50"), "{status:?}");
    }
}

#[test]
fn a_plan_that_is_shown_from_a_subfolder_is_named_with_its_project() {
    let world = World::untouched();
    world.write("fix_plan.md", ITEMS);
    world.write("src/dates.txt", "01/07/2026\n");
    let from = |folder: &str| world.plimsoll(&["plan"]).cwd(world.path(folder)).run().expect_success();
    insta::assert_snapshot!(world.stable_text(&from("src").stderr), @"plimsoll: the project is [PROJECT]: the nearest folder upwards with the plan");
    assert_eq!(from("").stderr, "");
    world.plimsoll(&["start", "--objective", "Do the plan."]).run().expect_success();
    insta::assert_snapshot!(world.stable_text(&from("src").stderr), @"plimsoll: the project is [PROJECT]: the nearest folder upwards with files of Plimsoll");
}

#[test]
fn neither_the_home_nor_a_folder_outside_of_the_repository_is_taken_by_accident() {
    let world = World::untouched();
    let home = world.home();
    // A plan in the home, in a folder that everybody may write into, and above the repository.
    let above = world.project().parent().expect("a folder").join("fix_plan.md");
    for plan in [home.join("fix_plan.md"), home.join("open/fix_plan.md"), above] {
        world.write(&plan, ITEMS);
    }
    let git = |folder: &Path| world.command("git", &["init", "-q"]).cwd(folder).run().expect_success();
    git(&home);
    for folder in ["notes", "open/notes"] {
        std::fs::create_dir_all(home.join(folder)).expect("a folder");
    }
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(home.join("open"), everybody).expect("its owner may");
    for here in [home.join("notes"), home.join("open/notes"), world.project()] {
        start_in(&world, &here).expect_success();
        assert!(here.join(".claude/ralph-state.json").exists(), "{}", here.display());
    }
    assert!(!home.join(".claude/ralph-state.json").exists() && !home.join("open/.claude").exists());
}

/// So long a whole run may take on a busy computer.
const LIMIT: Duration = Duration::from_secs(60);
const CLIENT: [&str; 3] = ["--", "--model", "opus"];
const BASH: [&str; 2] = ["--allowedTools", "Bash"];

fn run(world: &World, arguments: &[&str], client: &[&str]) -> Finished {
    world.plimsoll(&[&["run"], arguments, &CLIENT, client].concat()).timeout(LIMIT).run()
}

#[test]
fn a_plan_alone_is_a_task_and_so_are_the_words_of_the_command_line() {
    for (words, objective) in [(None, "Do what fix_plan.md says."), (Some("Do the plan."), "Do the plan.")] {
        let mut world = world(ITEMS);
        let model = ScriptedAgent::new(honest).start(&mut world);
        let finished = run(&world, &words.into_iter().collect::<Vec<_>>(), &BASH);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_eq!(world.json(".claude/ralph-state.json")["objective"], objective);
        assert!(model.main_requests()[0].body.to_string().contains(objective), "the session is told");
        assert!(!finished.stderr.contains("warning"), "{finished:?}");
    }
    let mut world = world(ITEMS);
    let _model = ScriptedAgent::new(honest).start(&mut world);
    let twice = run(&world, &["Do it.", "--objective", "Do it."], &BASH);
    assert_eq!(twice.code, Some(2), "{twice:?}");
    insta::assert_snapshot!(twice.stderr, @"
    error: the argument '[OBJECTIVE]' cannot be used with '--objective <TEXT>'

    Usage: plimsoll run <OBJECTIVE> -- <CLIENT ARGS>...

    For more information, try '--help'.
    ");
    let file = run(&world, &["fix_plan.md"], &BASH);
    assert_eq!(file.code, Some(1), "{file:?}");
    insta::assert_snapshot!(file.stderr, @"plimsoll: `fix_plan.md` is a file: give it with --todo if it is the plan, or with --objective-file if it is the task");
}

#[test]
fn a_run_that_nothing_allows_bash_warns_before_its_first_session_and_goes_on() {
    let mut world = world(ITEMS);
    let model = ScriptedAgent::new(|_| Step::text("I may run nothing.")).start(&mut world);
    let finished = run(&world, &["--name", "two words", "--max-iterations", "1"], &[]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert_eq!(model.main_requests().len(), 1);
    insta::assert_snapshot!(world.stable_text(&finished.stderr), @"
    plimsoll: warning: neither the arguments nor the settings of Claude Code seem to allow Bash, and nobody will be there to ask, so sessions may be refused builds, tests and commits; to allow it: plimsoll run --name 'two words' --max-iterations 1 -- --model opus --allowedTools Bash
    plimsoll: to continue: plimsoll run --resume --max-iterations N, with a larger N
    plimsoll: to see what happened: plimsoll report --open, or plimsoll log
    ");
}

#[test]
fn plans_of_other_tools_are_named_before_anything_is_paid() {
    let mut world = world(ITEMS);
    let model = ScriptedAgent::new(honest).start(&mut world);
    std::fs::rename(world.path("fix_plan.md"), world.path("IMPLEMENTATION_PLAN.md")).expect("a plan");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "another plan"]);
    let errors = [&[][..], &["--workers", "2", "--objective", "Do it."]].map(|without| {
        let refused = run(&world, without, &BASH);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        refused.stderr
    });
    insta::assert_snapshot!(errors.join("\n"), @"
    plimsoll: there is no task: write a plan (fix_plan.md) or PROMPT.md, or give --objective TEXT or --objective-file FILE
    plimsoll: IMPLEMENTATION_PLAN.md has 3 open items, and no run uses it by itself; to work through it: plimsoll run --todo IMPLEMENTATION_PLAN.md

    plimsoll: workers need a plan, whose items they share: write fix_plan.md, or name one with --todo
    plimsoll: IMPLEMENTATION_PLAN.md has 3 open items, and no run uses it by itself; to work through it: plimsoll run --todo IMPLEMENTATION_PLAN.md
    ");
    assert!(model.requests().is_empty(), "nothing was paid");
    let told = world.plimsoll(&["start", "--objective", "Do it."]).run().expect_success();
    insta::assert_snapshot!(told.stderr, @r#"
    plimsoll: IMPLEMENTATION_PLAN.md has 3 open items, and no run uses it by itself; to work through it: plimsoll run --todo IMPLEMENTATION_PLAN.md
    plimsoll: run "Do it." is ready: PROMPT.md is written, iteration 1 of 50
    "#);
    world.plimsoll(&["stop", "--yes"]).run().expect_success();
    let used = world.plimsoll(&["start", "--todo", "IMPLEMENTATION_PLAN.md"]).run().expect_success();
    insta::assert_snapshot!(used.stderr, @r#"plimsoll: run "Do it." is ready: PROMPT.md is written, iteration 1 of 50"#);
}
