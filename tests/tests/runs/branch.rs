//! `--branch`: a run works on its own branch, returns to it, and names the command that merges it. No other branch
//! gets a commit.

use crate::prompt_section::stable_opening;
use plimsoll_testkit::scripted_agent::{AgentTurn, tick_item_command};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use plimsoll_tests::{
    LIFELIKE_DELAY, ScriptedAgent, events_named, first_request_of_iteration, lines_containing, read_journal,
    resume_run, run_with_objective, world_with_plan_and_dates,
};

const STATE_FILE: &str = ".claude/ralph-state.json";
const TWO_ITEM_PLAN: &str = "# Plan\n\n- [ ] Item one\n- [ ] Item two\n";

/// An agent that commits its items. Its second session reaches L2 before it has committed anything.
fn checkpoint_agent(turn: &AgentTurn<'_>, second_session_command: &'static str) -> Step {
    let commit_command = |item: &str| format!("echo '{item}' >> work.txt; {}", tick_item_command(item));
    let step = match (turn.iteration, turn.assistant_message_count) {
        (1, 0) => Step::bash_call(commit_command("Item one")).with_input_tokens(30_000),
        (1, _) => Step::from_text("Item one is done.").with_input_tokens(31_000),
        (2, 0) => Step::bash_call(second_session_command).with_input_tokens(720_000),
        (2, 1 | 2) => Step::bash_call("echo on").with_input_tokens(870_000),
        (2, _) => {
            Step::from_text("I stop here.\n\nSummary: half\nNext step: the rest").with_input_tokens(872_000)
        }
        (_, 0) => Step::bash_call(commit_command("Item two")).with_input_tokens(30_000),
        _ => Step::from_text(format!("All done.\n\n{}", turn.promise_line)).with_input_tokens(31_000),
    };
    step.with_delay(LIFELIKE_DELAY)
}

fn current_branch(world: &World) -> String {
    world.git(&["branch", "--show-current"])
}

fn commit_subjects(world: &World, branch: &str) -> String {
    world.git(&["log", "--format=%s", branch])
}

#[test]
fn a_run_returns_to_its_branch_and_names_the_command_that_merges_it() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let main_subjects = commit_subjects(&world, "main");
    world.write("README.md", "Changed by the user before the run.\n");
    let model =
        ScriptedAgent::new(|turn| checkpoint_agent(turn, "echo half >> src/dates.txt")).start(&mut world);
    let finished = run_with_objective(&world, &["--branch", "night/1", "--max-iterations", "2"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert_eq!(current_branch(&world), "night/1");
    assert_eq!(commit_subjects(&world, "main"), main_subjects);
    let branch_subjects = commit_subjects(&world, "night/1");
    assert!(
        branch_subjects.starts_with("ralph: checkpoint iter 2 (L2 at 87%)\nFinish Item one\n"),
        "{branch_subjects}"
    );
    insta::assert_snapshot!(stable_opening(&world, &first_request_of_iteration(&model, 1)), @"
    You are session 1 of an unattended run. Nobody is watching, and nobody can answer. Later sessions know only git, `fix_plan.md` and what you write down. Commit to the branch `night/1`, and never switch branches.
    The run started at [DATE-TIME].
    Last action: none, this is the first session.
    ");
    assert_eq!(events_named(&read_journal(&world), "run_started")[0]["branch"], "night/1");
    let merge_command = "git switch main && git merge night/1";
    insta::assert_snapshot!(lines_containing(&finished.stderr, "branch"), @"the work is on the branch `night/1`; to merge it into `main`: git switch main && git merge night/1");
    insta::assert_snapshot!(lines_containing(&world.plimsoll(&["status"]).run().stdout, "Branch"), @"Branch       night/1; to merge it: git switch main && git merge night/1");
    world.plimsoll(&["report", "-o", "report.html"]).run().expect_success();
    assert!(world.read("report.html").contains("git switch main &amp;&amp; git merge night/1"));

    // Another branch is checked out with uncommitted changes: resuming changes nothing.
    world.git(&["switch", "-q", "main"]);
    world.write("README.md", "Changed again.\n");
    let state = world.read(STATE_FILE);
    let refused = resume_run(&world, &["--max-iterations", "5"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&refused.stderr), @"error: this run works on the branch `night/1`, and `main` is checked out with uncommitted changes: commit or stash them, then: git switch night/1 && plimsoll run --resume");
    assert_eq!((current_branch(&world).as_str(), world.read(STATE_FILE)), ("main", state));
    world.git(&["checkout", "-q", "README.md"]);
    let refused_branch = resume_run(&world, &["--branch", "other"]);
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&refused_branch.stderr), @"error: --branch is only for a new run: --resume keeps the task, the plan, its checks and the branch");

    let finished = resume_run(&world, &["--max-iterations", "5"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    insta::assert_snapshot!(lines_containing(&finished.stderr, "branch"), @"
    switched to the branch `night/1`, on which this run works (`main` was checked out)
    the work is on the branch `night/1`; to merge it into `main`: git switch main && git merge night/1
    ");
    assert_eq!(
        (current_branch(&world).as_str(), commit_subjects(&world, "main")),
        ("night/1", main_subjects)
    );
    world.command("sh", &["-c", merge_command]).run().expect_success();
    assert!(commit_subjects(&world, "main").starts_with("Finish Item two\n"));
}

#[test]
fn work_in_progress_is_committed_only_to_the_branch_of_the_run() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let _model = ScriptedAgent::new(|turn| {
        checkpoint_agent(turn, "git switch -qc feature; echo half >> src/dates.txt")
    })
    .start(&mut world);
    let finished = run_with_objective(&world, &["--branch", "night", "--max-iterations", "2"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let journal = read_journal(&world);
    let entry = events_named(&journal, "wip_commit").pop().expect("a line");
    assert_eq!(entry["trouble"], "`feature` is checked out, and this run commits only to `night`");
    assert!(!world.git(&["log", "--all", "--format=%s"]).contains("ralph:"));
    assert!(world.git(&["status", "--porcelain"]).contains(" M src/dates.txt"), "and nothing is lost");
}

#[test]
fn a_run_does_not_start_on_an_unusable_branch_and_names_the_reason() {
    let assert_start_fails = |world: &World, name: &str| {
        let option = format!("--branch={name}");
        let finished = world.plimsoll(&["start", "--objective", "Do the plan.", &option]).run();
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(!world.exists(STATE_FILE) && !world.exists("PROMPT.md"), "{finished:?}");
        world.replace_varying_parts_with_placeholders(&finished.stderr)
    };
    let world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let mut errors = ["-x", "a b", "@{-1}"].map(|name| assert_start_fails(&world, name)).concat();
    world.git(&["worktree", "add", "-q", "../second", "-b", "taken"]);
    errors += &assert_start_fails(&world, "taken");
    world.git(&["branch", "old"]);
    world.write("README.md", "Committed.\n");
    world.git(&["commit", "-qam", "Change"]);
    world.write("README.md", "Not committed.\n");
    errors += &assert_start_fails(&world, "old");
    world.git(&["checkout", "-q", "README.md"]);
    world.git(&["switch", "-q", "--detach"]);
    errors += &assert_start_fails(&world, "new");
    assert_eq!(world.git(&["branch", "--list", "new"]), "");
    let world_without_git = World::without_git();
    world_without_git.write("fix_plan.md", TWO_ITEM_PLAN);
    errors += &assert_start_fails(&world_without_git, "new");
    insta::assert_snapshot!(errors, @"
    error: `-x` cannot be the name of a branch (see `git check-ref-format --help`)
    error: `a b` cannot be the name of a branch (see `git check-ref-format --help`)
    error: `@{-1}` cannot be the name of a branch (see `git check-ref-format --help`)
    error: the branch `taken` is checked out in the worktree [WORLD]/second: start the run there, or choose another name
    error: cannot switch to the branch `old`: error: Your local changes to the following files would be overwritten by checkout: README.md Please commit your changes or stash them before you switch branches. Aborting
    commit or stash what is in the way (git status shows it), then run this again
    error: HEAD is detached, so there is no branch to merge the work into later: check one out first (git switch BRANCH)
    error: --branch needs a git repository, but this folder is not in one: git init, then commit
    ");

    world.git(&["switch", "-q", "main"]);
    let start_command = world.plimsoll(&["start", "--objective", "Do the plan.", "--branch", "new"]);
    let finished = start_command.run().expect_success();
    insta::assert_snapshot!(finished.stderr, @r#"
    run "Do the plan." is ready: PROMPT.md is written, session 1 of at most 50
    this run works on the branch `new`
    "#);
    assert_eq!(current_branch(&world), "new");
}
