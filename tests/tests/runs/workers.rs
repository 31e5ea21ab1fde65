//! `run --workers`: several workers share a plan, each item in a worktree of its own, and nothing is lost or merged twice.

use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::story::Turn;
use plimsoll_testkit::world::{Finished, World};
use plimsoll_tests::{events, journal, start, world};
use std::path::PathBuf;
use std::time::Duration;

const STATE: &str = ".claude/ralph-state.json";
const CLIENT: [&str; 7] = ["--", "--model", "opus", "--allowedTools", "Bash", "Edit", "Write"];
/// So long a whole run may take on a busy computer.
const LIMIT: Duration = Duration::from_secs(120);

/// Ticks the item in the plan of its own run, and commits everything.
fn tick(item: &str) -> String {
    format!(
        "sed -i 's/^- \\[ \\] {item}$/- [x] {item}/' plimsoll-item.md && git add -A && git commit -qm 'Finish {item}'"
    )
}

/// The number of an item: the first in its words.
fn number(item: &str) -> String {
    item.chars().skip_while(|letter| !letter.is_ascii_digit()).take_while(char::is_ascii_digit).collect()
}

/// Writes a file for its item, and is done.
fn honest(turn: &Turn<'_>) -> Step {
    let Some(item) = turn.item.clone() else { return Step::text(format!("All done.\n\n{}", turn.promise)) };
    does(turn, &format!("mkdir -p done && echo '{item}' > done/{}.txt", number(&item)))
}

/// Does its item by this command line.
fn does(turn: &Turn<'_>, line: &str) -> Step {
    let item = turn.item.clone().unwrap_or_default();
    match turn.step {
        0 => Step::bash(format!("{line} && {}", tick(&item))).usage(30_000),
        _ => Step::text(format!("{item} is done.\n\n{}", turn.promise)).usage(31_000),
    }
}

fn run(world: &World, arguments: &[&str]) -> Finished {
    let ours = ["run", "--objective", "Do the plan.", "--name", "Dates", "--workers"];
    let all: Vec<&str> = ours.iter().chain(arguments).chain(&CLIENT).copied().collect();
    world.plimsoll(&all).timeout(LIMIT).run()
}

/// The branch on which everything comes together.
fn target(world: &World) -> String {
    world.json(STATE)["branch"].as_str().expect("a branch").to_owned()
}

/// What a file on that branch holds.
fn merged(world: &World, file: &str) -> String {
    world.git(&["show", &format!("{}:{file}", target(world))])
}

fn trees(world: &World) -> PathBuf {
    world.home().join(".local/state/plimsoll/trees")
}

/// Nothing is left: no worktree, and of the items' branches only these attempts.
fn assert_tidy(world: &World, attempts: &[&str]) {
    let worktrees = world.git(&["worktree", "list"]);
    assert_eq!(worktrees.lines().count(), 1, "{worktrees}");
    let branches = world.git(&["for-each-ref", "--format=%(refname:lstrip=4)", "refs/heads/plimsoll-items"]);
    assert_eq!(branches.lines().collect::<Vec<_>>(), attempts);
    let left: Vec<_> = std::fs::read_dir(trees(world)).into_iter().flatten().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Each item has landed once: its tick, and its line.
fn assert_landed_once(world: &World, model: &ScriptedModel, items: usize) {
    let branch = target(world);
    for number in 1..=items {
        let commits = world.git(&["log", "--format=%s", &branch, "--", &format!("done/{number}.txt")]);
        assert_eq!(commits.lines().count(), 1, "item {number}: {commits}");
    }
    assert_eq!(merged(world, "fix_plan.md").matches("- [x]").count(), items);
    assert!(!model.main_requests().is_empty());
    world.plimsoll(&["turns", "verify"]).run().expect_success();
}

#[test]
fn three_workers_do_a_plan_and_everything_comes_together_on_one_branch() {
    let mut world = world("# Plan\n\n- [ ] Item 1\n- [ ] Item 2 (after: 1)\n- [ ] Item 3\n");
    let model = start(&mut world, honest);
    let before = world.git(&["rev-parse", "HEAD"]);
    let verify = "test ! -e done/2.txt || test -e done/1.txt";
    let finished = run(&world, &["3", "--verify", verify]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_landed_once(&world, &model, 3);
    assert_tidy(&world, &[]);
    assert_eq!(
        (world.git(&["rev-parse", "HEAD"]), world.git(&["status", "--porcelain"])),
        (before, String::new())
    );
    let branch = target(&world);
    assert!(branch.starts_with("plimsoll/fix_plan-"), "{branch}");
    let command = format!("git switch main && git merge {branch}");
    assert!(finished.stderr.contains(&command), "{finished:?}");
    let journal = journal(&world);
    assert_eq!(events(&journal, "worker_began").len(), 3, "{journal:?}");
    assert_eq!(world.json(STATE)["status"], "completed");
    assert_eq!(world.json(STATE)["completed_items"].as_array().map(Vec::len), Some(3));
    world.command("sh", &["-c", &command]).run().expect_success();
    assert_eq!(world.read("fix_plan.md").matches("- [x]").count(), 3);
}

/// Items whose work does not come together by itself: 1 and 2 write the same line, 3 and 4 pass alone and fail together,
/// 5 asks, and 6 is sent back by nobody.
const HARD: &str = "# Plan\n\n- [ ] Item 1\n- [ ] Item 2\n- [ ] Item 3\n- [ ] Item 4\n- [ ] Item 5\n- [ ] Item 6 (after: 5)\n";

fn hard(turn: &Turn<'_>) -> Step {
    let Some(item) = turn.item.clone() else { return Step::text(format!("All done.\n\n{}", turn.promise)) };
    let was_refused = turn.saw("An earlier session did this item, and it was not merged");
    let own = format!("mkdir -p done && echo '{item}' > done/{}.txt", number(&item));
    let line = match number(&item).as_str() {
        "1" | "2" if was_refused => format!(
            "grep -q '## What git said' .claude/plimsoll/worker/refused.md && echo '{item}' >> src/dates.txt && {own}"
        ),
        "1" | "2" => format!("sed -i '1s/.*/{item}/' src/dates.txt && {own}"),
        // Repaired in its second attempt: the first is in this worktree, on top of what was merged.
        "3" | "4" if was_refused => "test -e done/3.txt && test -e done/4.txt && touch both.txt".to_owned(),
        "5" if !turn.saw("Answer: Use port 8042") => {
            let words = turn.promise.replace("COMPLETE", "BLOCKED").replace("</", " which port?</");
            return Step::text(format!("I cannot go on.\n\n{words}"));
        }
        _ => own,
    };
    // Workers begin two seconds after each other: each of these is at work when the next begins.
    let is_slow = turn.step == 0 && !was_refused && ["1", "3"].contains(&number(&item).as_str());
    does(turn, &line).delay(Duration::from_secs(if is_slow { 3 } else { 0 }))
}

#[test]
fn conflicts_red_results_and_questions_come_back_and_nothing_is_lost() {
    let mut world = world(HARD);
    let model = start(&mut world, hard);
    let verify = "test ! -e done/3.txt || test ! -e done/4.txt || test -e both.txt";
    let finished = run(&world, &["4", "--verify", verify]);
    assert_eq!(finished.code, Some(7), "{finished:?}");
    assert!(finished.stderr.contains("plimsoll answer 1 'your answer'"), "{finished:?}");
    let back = journal(&world);
    let back: Vec<&str> =
        events(&back, "sent_back").iter().filter_map(|event| event["reason"].as_str()).collect();
    assert_eq!(back.len(), 2, "{back:?}");
    assert!(back.iter().any(|reason| reason.contains("conflict in src/dates.txt")), "{back:?}");
    assert!(
        back.iter().any(|reason| reason.contains("with what others have merged meanwhile, `test")),
        "{back:?}"
    );
    let status = world.plimsoll(&["status"]).run().expect_success().stdout;
    assert!(status.contains("4 of 6 done") && status.contains("which port?"), "{status}");

    world.plimsoll(&["answer", "1", "Use port 8042"]).run().expect_success();
    let resumed = world.plimsoll(&["run", "--resume"]).timeout(LIMIT).run();
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_landed_once(&world, &model, 6);
    // What conflicted was done anew: the first attempt is kept, for whoever wants to look.
    assert_tidy(&world, &["1/1"]);
    let dates = merged(&world, "src/dates.txt");
    for item in ["Item 1", "Item 2"] {
        assert_eq!(dates.lines().filter(|line| *line == item).count(), 1, "{item} in {dates}");
    }
    world.git(&["merge", "-q", &target(&world)]);
    world.command("sh", &["-c", verify]).run().expect_success();
}

// ---- kills ----

/// A hook of the repository that kills the run when its branch is about to move, or has moved; once.
fn kill_at(world: &World, moment: &str, count: usize) {
    let script = format!(
        "#!/bin/sh\nread -r old new name\ncase \"$1 $name\" in\n'{moment} refs/heads/plimsoll/'*) ;;\n*) exit 0 ;;\nesac\n\
         case $old in 0000*) exit 0 ;; esac\n\
         cd {home} && echo x >> moments && test $(wc -l < moments) -eq {count} || exit 0\nkill -9 $(cat run.pid)\nexit 0\n",
        home = world.home().display()
    );
    world.write_program(".git/hooks/reference-transaction", &script);
}

#[test]
fn a_run_that_is_killed_as_it_lands_something_lands_it_once() {
    for moment in ["prepared", "committed"] {
        let mut world = world("# Plan\n\n- [ ] Item 1\n- [ ] Item 2\n");
        let model = start(&mut world, honest);
        kill_at(&world, moment, 1);
        let all: Vec<&str> =
            ["run", "--objective", "Do the plan.", "--workers", "2"].into_iter().chain(CLIENT).collect();
        let running = world.plimsoll(&all).timeout(LIMIT).spawn();
        world.write(world.home().join("run.pid"), &running.pid().to_string());
        let killed = running.wait(LIMIT);
        assert_eq!(killed.code, None, "{moment}: {killed:?}");
        let finished = world.plimsoll(&["run", "--resume"]).timeout(LIMIT).run();
        assert_eq!(finished.code, Some(0), "{moment}: {finished:?}");
        assert_landed_once(&world, &model, 2);
        assert_tidy(&world, &[]);
    }
}

#[test]
fn a_run_that_is_killed_while_its_workers_work_goes_on_with_them() {
    let mut world = world("# Plan\n\n- [ ] Item 1\n- [ ] Item 2\n");
    let model = start(&mut world, |turn| match turn.step {
        0 => honest(turn).delay(Duration::from_secs(3)),
        _ => honest(turn),
    });
    let all: Vec<&str> =
        ["run", "--objective", "Do the plan.", "--workers", "2"].into_iter().chain(CLIENT).collect();
    let mut running = world.plimsoll(&all).timeout(LIMIT).spawn();
    world.wait_until(LIMIT, || model.main_requests().len() >= 2, "both work");
    running.kill();
    let second = world.plimsoll(&["run", "--resume"]).timeout(LIMIT).run();
    assert_eq!(second.code, Some(0), "{second:?}");
    assert_landed_once(&world, &model, 2);
    assert_tidy(&world, &[]);
    assert_eq!(model.main_requests().len(), 4, "no session was repeated");
}
