//! `--branch`: a run works on a branch of its own, comes back to it, and says how to merge it; no other branch gets a commit.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::story::{Turn, tick};
use plimsoll_testkit::world::World;
use plimsoll_tests::{LIFELIKE, ScriptedAgent, events, first_request_of, journal, resume, run, world};

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
    assert!(first_request_of(&model, 1).contains("The run works on the branch `night/1`: commit to it"));
    assert_eq!(events(&journal(&world), "run_started")[0]["branch"], "night/1");
    let merge = "the work is on the branch `night/1`; to merge it into `main`:";
    let command = "git switch main && git merge night/1";
    assert!(finished.stderr.contains(&format!("{merge} {command}\n")), "{finished:?}");
    let status = world.plimsoll(&["status"]).run();
    assert!(status.stdout.contains("Branch") && status.stdout.contains(command), "{status:?}");
    world.plimsoll(&["report", "-o", "report.html"]).run().expect_success();
    assert!(world.read("report.html").contains("git switch main &amp;&amp; git merge night/1"));

    // Another branch with uncommitted changes: nothing is touched.
    world.git(&["switch", "-q", "main"]);
    world.write("README.md", "Changed again.\n");
    let state = world.read(STATE);
    let refused = resume(&world, &["--max-iterations", "5"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.stderr.contains(
            "this run works on the branch `night/1`, and `main` is checked out with uncommitted changes"
        ) && refused.stderr.contains("git switch night/1 && plimsoll run --resume"),
        "{refused:?}"
    );
    assert_eq!((current(&world).as_str(), world.read(STATE)), ("main", state));
    world.git(&["checkout", "-q", "README.md"]);
    let named = resume(&world, &["--branch", "other"]);
    assert!(named.stderr.contains("--branch belongs to a new run"), "{named:?}");

    let finished = resume(&world, &["--max-iterations", "5"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let told = "switched to the branch `night/1`, on which this run works (`main` was checked out)";
    assert!(finished.stderr.contains(told), "{finished:?}");
    assert!(finished.stderr.contains(command), "{finished:?}");
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
        finished.stderr
    };
    let world = world(TWO);
    for name in ["-x", "a b", "@{-1}"] {
        let told = begin(&world, name);
        assert!(told.contains(&format!("`{name}` cannot be the name of a branch")), "{told}");
    }
    world.git(&["worktree", "add", "-q", "../second", "-b", "taken"]);
    let told = begin(&world, "taken");
    assert!(
        told.contains("the branch `taken` is checked out in the worktree") && told.contains("/second"),
        "{told}"
    );
    world.git(&["branch", "old"]);
    world.write("README.md", "Committed.\n");
    world.git(&["commit", "-qam", "Change"]);
    world.write("README.md", "Not committed.\n");
    let told = begin(&world, "old");
    assert!(told.contains("cannot switch to the branch `old`") && told.contains("README.md"), "{told}");
    assert!(told.contains("commit or stash what is in the way"), "{told}");
    world.git(&["checkout", "-q", "README.md"]);
    world.git(&["switch", "-q", "--detach"]);
    assert!(begin(&world, "new").contains("HEAD is detached"));
    assert_eq!(world.git(&["branch", "--list", "new"]), "");
    let plain = World::without_git();
    plain.write("fix_plan.md", TWO);
    assert!(begin(&plain, "new").contains("--branch needs a git repository"));

    world.git(&["switch", "-q", "main"]);
    let started = world.plimsoll(&["start", "--objective", "Do the plan.", "--branch", "new"]);
    let started = started.run().expect_success();
    assert!(started.stderr.contains("this run works on the branch `new`"), "{started:?}");
    assert_eq!(current(&world), "new");
}
