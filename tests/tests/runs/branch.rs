//! `--branch`: a run works on a branch of its own, comes back to it, and says how to merge it; no other branch gets a commit.

use crate::prompt_section::opening_of;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::story::{Turn, tick};
use plimsoll_testkit::world::World;
use plimsoll_tests::{
    LIFELIKE, ScriptedAgent, events, first_request_of, journal, lines_with, resume, run, world,
};

const STATE: &str = ".claude/ralph-state.json";
const TWO: &str = "# Plan\n\n- [ ] Item one\n- [ ] Item two\n";

/// An agent that commits its items, and stands at L2 in its second session before it has committed anything.
fn agent(turn: &Turn<'_>, work: &'static str) -> Step {
    let commit = |item: &str| format!("echo '{item}' >> work.txt; {}", tick(item));
    let step = match (turn.iteration, turn.step) {
        (1, 0) => Step::bash(commit("Item one")).usage(30_000),
        (1, _) => Step::text("Item one is done.").usage(31_000),
        (2, 0) => Step::bash(work).usage(720_000),
        (2, 1 | 2) => Step::bash("echo on").usage(870_000),
        (2, _) => Step::text("I stop here.\n\nSummary: half\nNext step: the rest").usage(872_000),
        (_, 0) => Step::bash(commit("Item two")).usage(30_000),
        _ => Step::text(format!("All done.\n\n{}", turn.promise)).usage(31_000),
    };
    step.delay(LIFELIKE)
}

fn current(world: &World) -> String {
    world.git(&["branch", "--show-current"])
}

fn subjects(world: &World, branch: &str) -> String {
    world.git(&["log", "--format=%s", branch])
}

#[test]
fn a_run_works_on_its_own_branch_comes_back_to_it_and_one_command_merges_it() {
    let mut world = world(TWO);
    let before = subjects(&world, "main");
    world.write("README.md", "Changed by the user before the run.\n");
    let model = ScriptedAgent::new(|turn| agent(turn, "echo half >> src/dates.txt")).start(&mut world);
    let finished = run(&world, &["--branch", "night/1", "--max-iterations", "2"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert_eq!(current(&world), "night/1");
    assert_eq!(subjects(&world, "main"), before);
    let made = subjects(&world, "night/1");
    assert!(made.starts_with("ralph: checkpoint iter 2 (L2 at 87%)\nFinish Item one\n"), "{made}");
    insta::assert_snapshot!(opening_of(&world, &first_request_of(&model, 1)), @"
    You are session 1 of an unattended run. Nobody is watching, and nobody can answer. Later sessions know only git, `fix_plan.md` and what you write down. The run works on the branch `night/1`: commit to it, and switch to no other.
    The run started at [DATE-TIME]. Last action: none, this is the first session.
    ");
    assert_eq!(events(&journal(&world), "run_started")[0]["branch"], "night/1");
    let command = "git switch main && git merge night/1";
    insta::assert_snapshot!(lines_with(&finished.stderr, "branch"), @"plimsoll: the work is on the branch `night/1`; to merge it into `main`: git switch main && git merge night/1");
    insta::assert_snapshot!(lines_with(&world.plimsoll(&["status"]).run().stdout, "Branch"), @"Branch       night/1; to merge it: git switch main && git merge night/1");
    world.plimsoll(&["report", "-o", "report.html"]).run().expect_success();
    assert!(world.read("report.html").contains("git switch main &amp;&amp; git merge night/1"));

    // Another branch with uncommitted changes: nothing is touched.
    world.git(&["switch", "-q", "main"]);
    world.write("README.md", "Changed again.\n");
    let state = world.read(STATE);
    let refused = resume(&world, &["--max-iterations", "5"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    insta::assert_snapshot!(world.stable_text(&refused.stderr), @"plimsoll: this run works on the branch `night/1`, and `main` is checked out with uncommitted changes: commit or stash them, then: git switch night/1 && plimsoll run --resume");
    assert_eq!((current(&world).as_str(), world.read(STATE)), ("main", state));
    world.git(&["checkout", "-q", "README.md"]);
    let named = resume(&world, &["--branch", "other"]);
    insta::assert_snapshot!(world.stable_text(&named.stderr), @"plimsoll: --branch belongs to a new run: --resume keeps the task, the plan, its checks and the branch");

    let finished = resume(&world, &["--max-iterations", "5"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    insta::assert_snapshot!(lines_with(&finished.stderr, "branch"), @"
    plimsoll: switched to the branch `night/1`, on which this run works (`main` was checked out)
    plimsoll: the work is on the branch `night/1`; to merge it into `main`: git switch main && git merge night/1
    ");
    assert_eq!((current(&world).as_str(), subjects(&world, "main")), ("night/1", before));
    world.command("sh", &["-c", command]).run().expect_success();
    assert!(subjects(&world, "main").starts_with("Finish Item two\n"));
}

#[test]
fn work_in_progress_lands_on_no_other_branch_than_the_runs() {
    let mut world = world(TWO);
    let _model = ScriptedAgent::new(|turn| agent(turn, "git switch -qc feature; echo half >> src/dates.txt"))
        .start(&mut world);
    let finished = run(&world, &["--branch", "night", "--max-iterations", "2"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let journal = journal(&world);
    let line = events(&journal, "wip_commit").pop().expect("a line");
    assert_eq!(line["trouble"], "`feature` is checked out, and this run commits only to `night`");
    assert!(!world.git(&["log", "--all", "--format=%s"]).contains("ralph:"));
    assert!(world.git(&["status", "--porcelain"]).contains(" M src/dates.txt"), "and nothing is lost");
}

#[test]
fn where_no_branch_can_be_begun_nothing_is_and_each_reason_is_named() {
    let begin = |world: &World, name: &str| {
        let option = format!("--branch={name}");
        let finished = world.plimsoll(&["start", "--objective", "Do the plan.", &option]).run();
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(!world.exists(STATE) && !world.exists("PROMPT.md"), "{finished:?}");
        world.stable_text(&finished.stderr)
    };
    let world = world(TWO);
    let mut errors = ["-x", "a b", "@{-1}"].map(|name| begin(&world, name)).concat();
    world.git(&["worktree", "add", "-q", "../second", "-b", "taken"]);
    errors += &begin(&world, "taken");
    world.git(&["branch", "old"]);
    world.write("README.md", "Committed.\n");
    world.git(&["commit", "-qam", "Change"]);
    world.write("README.md", "Not committed.\n");
    errors += &begin(&world, "old");
    world.git(&["checkout", "-q", "README.md"]);
    world.git(&["switch", "-q", "--detach"]);
    errors += &begin(&world, "new");
    assert_eq!(world.git(&["branch", "--list", "new"]), "");
    let plain = World::without_git();
    plain.write("fix_plan.md", TWO);
    errors += &begin(&plain, "new");
    insta::assert_snapshot!(errors, @"
    plimsoll: `-x` cannot be the name of a branch (see `git check-ref-format --help`)
    plimsoll: `a b` cannot be the name of a branch (see `git check-ref-format --help`)
    plimsoll: `@{-1}` cannot be the name of a branch (see `git check-ref-format --help`)
    plimsoll: the branch `taken` is checked out in the worktree [WORLD]/second: start the run there, or choose another name
    plimsoll: cannot switch to the branch `old`: error: Your local changes to the following files would be overwritten by checkout: README.md Please commit your changes or stash them before you switch branches. Aborting
    commit or stash what is in the way (git status shows it), then run this again
    plimsoll: HEAD is detached, so there is no branch to merge the work into later: check one out first (git switch BRANCH)
    plimsoll: --branch needs a git repository, and this folder is in none: git init, then commit
    ");

    world.git(&["switch", "-q", "main"]);
    let started = world.plimsoll(&["start", "--objective", "Do the plan.", "--branch", "new"]);
    let started = started.run().expect_success();
    insta::assert_snapshot!(started.stderr, @r#"
    plimsoll: run "Do the plan." is ready: PROMPT.md is written, iteration 1 of 50
    plimsoll: this run works on the branch `new`
    "#);
    assert_eq!(current(&world), "new");
}
