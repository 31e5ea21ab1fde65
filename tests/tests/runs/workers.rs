//! `run --workers`: several workers share a plan, each item in a worktree of its own, and nothing is lost or merged twice.

use crate::park_items::stand_in;
use plimsoll_testkit::bin_dir;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::story::Turn;
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::{Finished, Running, World};
use plimsoll_tests::{ScriptedAgent, events, journal, side_by_side, subscribed, usage_limit, world};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

const STATE: &str = ".claude/ralph-state.json";
const CLIENT: [&str; 7] = ["--", "--model", "opus", "--allowedTools", "Bash", "Edit", "Write"];
pub(crate) const TWO: &str = "# Plan\n\n- [ ] Item 1\n- [ ] Item 2\n";
/// So long a whole run may take on a busy computer.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);
/// And one night of the real client, beside another.
const NIGHT: Duration = Duration::from_secs(900);

/// Ticks item 1 and commits nothing; what a git would need for that is locked.
const LEAVE_LOCKED: &str =
    "sed -i 's/\\[ \\]/[x]/' plimsoll-item.md && touch \"$(git rev-parse --git-dir)/index.lock\"";

/// Ticks the item in the plan of its own run, and commits everything.
pub(crate) fn tick(item: &str) -> String {
    format!(
        "sed -i 's/^- \\[ \\] {item}$/- [x] {item}/' plimsoll-item.md && git add -A && git commit -qm 'Finish {item}'"
    )
}

/// The number of an item: the first in its words.
pub(crate) fn number(item: &str) -> String {
    item.chars().skip_while(|letter| !letter.is_ascii_digit()).take_while(char::is_ascii_digit).collect()
}

/// Writes a file for its item, and is done.
pub(crate) fn honest(turn: &Turn<'_>) -> Step {
    let Some(item) = turn.item.clone() else { return Step::text(format!("All done.\n\n{}", turn.promise)) };
    does(turn, &format!("mkdir -p done && echo '{item}' > done/{}.txt", number(&item)))
}

/// Does its item by this command line.
pub(crate) fn does(turn: &Turn<'_>, line: &str) -> Step {
    let item = turn.item.clone().unwrap_or_default();
    match turn.step {
        0 => Step::bash(format!("{line} && {}", tick(&item))).usage(30_000),
        _ => Step::text(format!("{item} is done.\n\n{}", turn.promise)).usage(31_000),
    }
}

pub(crate) fn run(world: &World, arguments: &[&str]) -> Finished {
    let ours = ["run", "--objective", "Do the plan.", "--name", "Dates", "--workers"];
    let all: Vec<&str> = ours.iter().chain(arguments).chain(&CLIENT).copied().collect();
    world.plimsoll(&all).timeout(LIMIT).run()
}

/// The branch on which everything comes together.
pub(crate) fn target(world: &World) -> String {
    world.json(STATE)["branch"].as_str().expect("a branch").to_owned()
}

/// What a file on that branch holds.
pub(crate) fn merged(world: &World, file: &str) -> String {
    world.git(&["show", &format!("{}:{file}", target(world))])
}

/// The page for the morning.
fn report(world: &World) -> String {
    world.plimsoll(&["report", "-o", "-"]).run().expect_success().stdout
}

fn trees(world: &World) -> PathBuf {
    world.home().join(".local/state/plimsoll/trees")
}

/// Nothing is left: no worktree, and of the items' branches only these attempts.
pub(crate) fn assert_tidy(world: &World, attempts: &[&str]) {
    let worktrees = world.git(&["worktree", "list"]);
    assert_eq!(worktrees.lines().count(), 1, "{worktrees}");
    let branches = world.git(&["for-each-ref", "--format=%(refname:lstrip=4)", "refs/heads/plimsoll-items"]);
    assert_eq!(branches.lines().collect::<Vec<_>>(), attempts);
    let left: Vec<_> = std::fs::read_dir(trees(world)).into_iter().flatten().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Each item has landed once: its tick, and its line.
fn assert_landed_once(world: &World, model: &ScriptedModel, items: &[&str]) {
    let branch = target(world);
    for number in items {
        let commits = world.git(&["log", "--format=%s", &branch, "--", &format!("done/{number}.txt")]);
        assert_eq!(commits.lines().count(), 1, "item {number}: {commits}");
    }
    assert!(merged(world, "fix_plan.md").matches("- [x]").count() >= items.len());
    assert!(!model.main_requests().is_empty());
    world.plimsoll(&["turns", "verify"]).run().expect_success();
}

/// The plan of a parallel run is in the project all the time, and anybody may write into it.
#[test]
fn a_parallel_run_into_whose_plan_an_unclear_line_comes_ends_blocked() {
    let mut world = world(TWO);
    let plan = world.path("fix_plan.md").display().to_string();
    let _model = ScriptedAgent::new(move |turn| {
        let number = number(&turn.item.clone().unwrap_or_default());
        does(turn, &format!("mkdir -p done && echo a > done/{number}.txt && echo '- [-] late' >> '{plan}'"))
    })
    .start(&mut world);
    let finished = run(&world, &["2"]);
    assert_eq!(finished.code, Some(7), "{finished:?}");
    let last = finished.stdout.lines().last().unwrap_or_default();
    insta::assert_snapshot!(world.stable_text(last), @r#"   RALPH_STOP|blocked|fix_plan.md has lines that look like items and are none: line 5 "- [-] late", line 6 "- [-] late"; rewrite them with `plimsoll plan --fix`, then resume   ($0.03)"#);
}

/// The worktrees are in the user's state: Git knows them by their places without a link, and we by HOME.
#[test]
fn workers_find_their_worktrees_in_a_home_that_is_named_by_a_link() {
    let mut world = world(TWO);
    let home = world.home().with_file_name("linked home");
    std::os::unix::fs::symlink(world.home(), &home).expect("a link");
    world.set_env("HOME", home.display().to_string());
    let model = ScriptedAgent::new(honest).start(&mut world);
    let finished = run(&world, &["2"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_landed_once(&world, &model, &["1", "2"]);
    assert_tidy(&world, &[]);
}

#[test]
fn three_workers_do_a_plan_and_everything_comes_together_on_one_branch() {
    let mut world = world("# Plan\n\n- [ ] Item 1\n- [ ] Item 2 (after: 1)\n- [ ] Item 3\n");
    let model = ScriptedAgent::new(honest).start(&mut world);
    let before = world.git(&["rev-parse", "HEAD"]);
    let order = "test ! -e done/2.txt || test -e done/1.txt";
    // Fails the first time that something is to be merged, and never again.
    let by_chance = "case $PWD in */merge) echo x >> ~/runs; test $(wc -l < ~/runs) -ne 2;; esac";
    let finished = run(&world, &["3", "--verify", order, "--verify", by_chance]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        finished.stdout.contains("failed and then passed on the same commit (\"Item 1\")"),
        "{finished:?}"
    );
    assert_landed_once(&world, &model, &["1", "2", "3"]);
    assert_tidy(&world, &[]);
    assert!(!finished.stdout.contains("stays at"), "{finished:?}");
    // In the morning: a lane for each worker, with the load line of each session, also where its worktree is gone.
    let page = report(&world);
    for words in ["worker 1</text>", "merged: “Item 1”", "“Item 2 (after: 1)”", "is done", "in 3 sessions;"]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert_eq!(page.matches("<path class=\"load ").count(), 3, "{page}");
    assert!(!page.contains("No session has been recorded") && !page.contains("$?"), "{page}");
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

/// An agent whose work does not come together by itself: 1 and 2 write the same line, 3 and 4 pass alone and fail together, 5 asks,
/// and 6 has nothing to do.
fn hard(turn: &Turn<'_>) -> Step {
    let Some(item) = turn.item.clone() else { return Step::text(format!("All done.\n\n{}", turn.promise)) };
    let was_refused = turn.saw("## Earlier work on this item was sent back");
    let own = format!("mkdir -p done && echo '{item}' > done/{}.txt", number(&item));
    let line = match number(&item).as_str() {
        "1" | "2" if was_refused => format!(
            "grep -q '## What was said' .claude/plimsoll/worker/refused.md && echo '{item}' >> src/dates.txt && {own}"
        ),
        "1" | "2" => format!("sed -i '1s/.*/{item}/' src/dates.txt && {own}"),
        // Repaired in its second attempt: the first is in this worktree, on top of what was merged.
        "3" | "4" if was_refused => "test -e done/3.txt && test -e done/4.txt && touch both.txt".to_owned(),
        "5" if !turn.saw("Answer: Use port 8042") => {
            let words = turn.promise.replace("COMPLETE", "BLOCKED").replace("</", " which port?</");
            return Step::text(format!("I cannot go on.\n\n{words}"));
        }
        "6" => "sed -i 's/$/\\n  > nothing to do/' plimsoll-item.md".to_owned(),
        _ => own,
    };
    // Workers begin two seconds after each other: each of these is at work when the next begins.
    let is_slow = turn.step == 0 && !was_refused && ["1", "3"].contains(&number(&item).as_str());
    does(turn, &line).delay(Duration::from_secs(if is_slow { 3 } else { 0 }))
}

pub(crate) fn reasons(world: &World) -> Vec<String> {
    let journal = journal(world);
    let back = events(&journal, "sent_back");
    back.iter().filter_map(|event| event["reason"].as_str()).map(str::to_owned).collect()
}

#[test]
fn a_conflict_comes_back_with_both_sides_and_no_line_is_lost() {
    let mut world = world(TWO);
    let model = ScriptedAgent::new(hard).start(&mut world);
    let finished = run(&world, &["2"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let back = reasons(&world);
    assert!(back.len() == 1 && back[0].contains("conflict in src/dates.txt"), "{back:?}");
    let report = world.plimsoll(&["report", "--output", "-"]).run().expect_success().stdout;
    assert!(report.contains("Not merged") && report.contains("conflict in src/dates.txt"), "{report}");
    // Also those of the attempt that was sent back, which was another run in the same worktree.
    assert_eq!(report.matches("<path class=\"load ").count(), 3, "{report}");
    assert_landed_once(&world, &model, &["1", "2"]);
    // What conflicted was done anew: the first attempt is kept, for whoever wants to look.
    assert_tidy(&world, &["1/1"]);
    let dates = merged(&world, "src/dates.txt");
    for item in ["Item 1", "Item 2"] {
        assert_eq!(dates.lines().filter(|line| *line == item).count(), 1, "{item} in {dates}");
    }
}

#[test]
fn red_results_and_questions_come_back_and_an_item_without_a_change_lands_too() {
    let items = "# Plan\n\n- [ ] Item 3\n- [ ] Item 4\n- [ ] Item 5\n- [ ] Item 6 (after: 3)\n";
    let mut world = world(items);
    let model = ScriptedAgent::new(hard).start(&mut world);
    let verify = "test ! -e done/3.txt || test ! -e done/4.txt || test -e both.txt";
    let told = world.home().join("told.jsonl");
    let script = format!("#!/bin/sh\ncat >> {0}\necho >> {0}\n", told.display());
    let notify = world.write_program(world.home().join("notify.sh"), &script).display().to_string();
    let finished = run(&world, &["3", "--verify", verify, "--notify", &notify]);
    assert_eq!(finished.code, Some(7), "{finished:?}");
    let told = world.read(told);
    for (event, count) in [("question", 1), ("ended", 1), ("paused", 0)] {
        assert_eq!(told.matches(&format!("\"event\":\"{event}\"")).count(), count, "{event}: {told}");
    }
    assert!(finished.stderr.contains("plimsoll status --answer 1 'your answer'"), "{finished:?}");
    let back = reasons(&world);
    let red = "with what others have merged meanwhile, `test";
    assert!(back.len() == 1 && back[0].contains(red), "{back:?}");
    let status = world.plimsoll(&["status"]).run().expect_success().stdout;
    assert!(status.contains("2 of 4 done") && status.contains("which port?"), "{status}");
    let log = world.plimsoll(&["log"]).run().expect_success().stdout;
    assert!(log.contains("merged: \"Item 4\""), "{log}");

    world.plimsoll(&["status", "--answer", "1", "Use port 8042"]).run().expect_success();
    let resumed = resume(&world);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_landed_once(&world, &model, &["3", "4", "5"]);
    let plan = merged(&world, "fix_plan.md");
    assert_eq!(plan.matches("- [x]").count(), 4);
    assert!(
        plan.contains("- [x] Item 6 (after: 3)\n  > nothing to do") && !plan.contains("not merged"),
        "{plan}"
    );
    assert_tidy(&world, &[]);
    world.git(&["merge", "-q", &target(&world)]);
    world.command("sh", &["-c", verify]).run().expect_success();
}

#[test]
fn an_item_whose_review_gives_no_verdict_is_not_merged_and_asks() {
    let world = world(TWO);
    let works = "begin; answers 30000; number=$(echo \"$item\" | tr -dc 0-9)
        mkdir -p done; echo \"$item\" > \"done/$number.txt\"
        sed -i 's/\\[ \\]/[x]/' plimsoll-item.md; git add -A; git commit -qm \"Finish $item\"; says \"$promise\"\n";
    // The workers review at the same time, so each script looks for the item that it is about.
    let review = "if grep -q '^> 1. Item 1$' \"$HOME/reviewed/$number/prompt\"; then reviews 'I like it.'; fi
        reviews 'VERDICT: pass'\n";
    for number in 1..=4 {
        world.write(world.home().join(format!("reviews/{number}")), review);
    }
    let client = stand_in(&world, &[works, works]);
    let ours =
        ["run", "--objective", "Do the plan.", "--name", "Dates", "--workers", "2", "--review", "item"];
    let finished = world.plimsoll(&[&ours[..], &["--client", &client]].concat()).timeout(LIMIT).run();
    assert_eq!(finished.code, Some(7), "{finished:?}");
    let target = target(&world);
    let merged = world.git(&["ls-tree", "-r", "--name-only", &target]);
    assert!(merged.contains("done/2.txt") && !merged.contains("done/1.txt"), "{merged}");
    // Wide enough for the folder of the worktrees.
    let status = world.plimsoll(&["status"]).env("COLUMNS", "240").run().expect_success().stdout;
    let status = status.replace(&target, "[TARGET]");
    insta::assert_snapshot!(world.stable_text(&status), @r#"
    Dates ([ID])
    Status       blocked: it needs your answer: Two reviews of this item gave no verdict (its answer has no line `VERDICT: pass` or `VERDICT: findings` with findings below it), so it is not done yet. Tick it yourself if it is, or answer what to
                 do. (item "Item 1")
    Items        1 of 2 done, 1 open, 1 item waits for your answer
      [x] Item 2
      [ ] Item 1 (waits for your answer)
    Question     1. "Item 1": Two reviews of this item gave no verdict (its answer has no line `VERDICT: pass` or `VERDICT: findings` with findings below it), so it is not done yet. Tick it yourself if it is, or answer what to do.
                 plimsoll status --answer 1 'your answer'
    Workers      worktrees: [HOME]/.local/state/plimsoll/trees/[ID]
    Sessions     2 of at most 50
    Cost         $0.05, 0 tokens
    Time         started [TIME], ended [TIME], took [DURATION]
    Branch       [TARGET]; to merge it: git switch main && git merge [TARGET]
    Next         answer and continue: plimsoll run --resume --answer 1 'your answer'
    More         plimsoll report, plimsoll log, or .claude/plimsoll/journal.jsonl; recorded: [SIZE]
    "#);
}

/// Git does not look at a file that is assumed to be unchanged: the worktree shows another content than the commit that lands.
#[test]
fn a_review_reads_the_commit_and_not_the_worktree() {
    let world = world("# Plan\n\n- [ ] Item 1\n");
    let works = "begin; answers 30000; echo COMMITTED > code.txt
        sed -i 's/\\[ \\]/[x]/' plimsoll-item.md; git add -A; git commit -qm \"Finish $item\"
        git update-index --assume-unchanged code.txt; echo SHOWN > code.txt; says \"$promise\"\n";
    world.write(world.home().join("reviews/1"), "cp code.txt \"$HOME/seen.txt\"; reviews 'VERDICT: pass'\n");
    let client = stand_in(&world, &[works]);
    let ours = ["run", "--objective", "Do the plan.", "--workers", "2", "--review", "item"];
    let finished = world.plimsoll(&[&ours[..], &["--client", &client]].concat()).timeout(LIMIT).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(merged(&world, "code.txt"), "COMMITTED");
    assert_eq!(world.read(world.home().join("seen.txt")), "COMMITTED\n");
    let prompt = world.read(world.home().join("reviewed/1/prompt"));
    assert!(prompt.contains("+COMMITTED") && !prompt.contains("SHOWN"), "{prompt}");
}

#[test]
fn what_breaks_the_check_of_an_item_that_is_merged_comes_back() {
    let mut world = world("# Plan\n\n- [ ] Item 1 (verify: test -e one)\n- [ ] Item 2 (after: 1)\n");
    let model = ScriptedAgent::new(|turn| {
        let item = turn.item.clone().unwrap_or_default();
        let number = number(&item);
        let own = format!("mkdir -p done && echo '{item}' > done/{number}.txt");
        let was_refused = turn.saw("## Earlier work on this item was sent back");
        does(
            turn,
            &match (number.as_str(), was_refused) {
                ("1", _) => format!("{own} && touch one"),
                (_, false) => format!("{own} && git rm -q one"),
                (_, true) => "touch one".to_owned(),
            },
        )
    })
    .start(&mut world);
    let finished = run(&world, &["2", "--plan-verify"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let back = reasons(&world);
    assert!(back.len() == 1 && back[0].contains("`test -e one` exited with 1"), "{back:?}");
    assert_landed_once(&world, &model, &["1", "2"]);
    assert_eq!(merged(&world, "one"), "");
    assert_tidy(&world, &[]);
}

// ---- kills ----

/// Puts a git before the real one on the PATH that kills the run (`run.pid`) at the given command of the given kind; `is_after` says
/// whether the command has been carried out by then. `pattern` is one of the shell's, for all arguments with a blank at the end.
pub(crate) fn kill_at_git(world: &mut World, pattern: &str, count: usize, is_after: bool) {
    let found = world.command("sh", &["-c", "command -v git"]).run().expect_success().stdout;
    let (real, home) = (found.trim().to_owned(), world.home().display().to_string());
    let run = if is_after { format!("{real} \"$@\"; code=$?") } else { "code=1".to_owned() };
    let script = format!(
        "#!/bin/sh\ncase \"$* \" in {pattern}) ;; *) exec {real} \"$@\" ;; esac\n\
         echo x >> {home}/moments\ntest $(wc -l < {home}/moments) -eq {count} || exec {real} \"$@\"\n\
         {run}\nkill -9 $(cat {home}/run.pid)\nexit $code\n"
    );
    world.write_program(world.home().join("killing/git"), &script);
    let path = world.env().into_iter().find(|(name, _)| name == "PATH").expect("a PATH").1;
    world.set_env("PATH", format!("{home}/killing:{path}"));
}

/// Kills the run when its branch is about to move, or has moved; once. The branch's creation does not count: it has no commit
/// before.
fn kill_at(world: &mut World, moment: &str, count: usize) {
    let moves =
        "*' update-ref --no-deref -m plimsoll: landed refs/heads/plimsoll/'*[0-9a-f]' '[0-9a-f]*[0-9a-f]' '";
    kill_at_git(world, moves, count, moment == "committed");
}

#[test]
fn a_run_that_is_killed_as_it_lands_something_lands_it_once() {
    side_by_side(&["prepared", "committed"], |moment| {
        let mut world = world("# Plan\n\n- [ ] Item 1\n- [ ] Item 2\n");
        let model = ScriptedAgent::new(honest).start(&mut world);
        kill_at(&mut world, moment, 1);
        let all: Vec<&str> =
            ["run", "--objective", "Do the plan.", "--workers", "2"].into_iter().chain(CLIENT).collect();
        let running = world.plimsoll(&all).timeout(LIMIT).spawn();
        world.write(world.home().join("run.pid"), &running.pid().to_string());
        let killed = running.wait(LIMIT);
        assert_eq!(killed.code, None, "{moment}: {killed:?}");
        let finished = world.plimsoll(&["run", "--resume"]).timeout(LIMIT).run();
        assert_eq!(finished.code, Some(0), "{moment}: {finished:?}");
        assert_landed_once(&world, &model, &["1", "2"]);
        assert_tidy(&world, &[]);
    });
}

#[test]
fn a_run_that_is_killed_as_it_copies_makes_a_worktree_or_commits_what_was_left_goes_on() {
    // Each run of an item leaves its file uncommitted.
    let moments = [
        ("*' clone --quiet --bare '*", false),
        ("*' clone --quiet --bare '*", true),
        ("*' checkout --quiet --force --detach '*", true),
        ("*' fetch --quiet --no-tags '*", true),
        ("*' worktree add '*", true),
        ("*' commit --quiet --allow-empty --only '*", true),
    ];
    side_by_side(&moments, |(pattern, is_after)| {
        let mut world = world(TWO);
        let model = ScriptedAgent::new(|turn| {
            let item = turn.item.clone().unwrap_or_default();
            let number = number(&item);
            let line = format!(
                "mkdir -p done && echo '{item}' > done/{number}.txt && sed -i 's/\\[ \\]/[x]/' plimsoll-item.md"
            );
            match turn.step {
                0 => Step::bash(line).usage(30_000),
                _ => Step::text(format!("Done.\n\n{}", turn.promise)).usage(31_000),
            }
        }).start(&mut world);
        kill_at_git(&mut world, pattern, 1, *is_after);
        let running = begin(&world, &["2"]);
        world.write(world.home().join("run.pid"), &running.pid().to_string());
        let killed = running.wait(LIMIT);
        assert_eq!(killed.code, None, "{pattern}: {killed:?}");
        let finished = resume(&world);
        assert_eq!(finished.code, Some(0), "{pattern}: {finished:?}");
        assert_landed_once(&world, &model, &["1", "2"]);
        assert_tidy(&world, &[]);
    });
}

#[test]
fn a_worker_whose_run_is_killed_goes_on_with_its_item() {
    let mut world = world(TWO);
    let model = ScriptedAgent::new(|turn| match turn.step {
        0 => honest(turn),
        // It has ticked its item when its run is killed.
        _ => honest(turn).delay(Duration::from_secs(3)),
    })
    .start(&mut world);
    let running = begin(&world, &["2"]);
    world.wait_until(|| model.main_requests().len() >= 2, "the first has ticked its item");
    let record = record(&world);
    let pid = record["works"][0]["pid"].as_u64().expect("a process").to_string();
    world.command("kill", &["-9", &pid]).run().expect_success();
    let finished = running.wait(LIMIT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let back = reasons(&world);
    assert!(back.len() == 1 && back[0].contains("was ended by signal 9"), "{back:?}");
    assert_landed_once(&world, &model, &["1", "2"]);
    assert_tidy(&world, &[]);
    assert_eq!(model.main_requests().len(), 4, "its client was followed, and nothing was repeated");
}

/// The record of the run.
fn record(world: &World) -> Value {
    let runs = std::fs::read_dir(world.runs()).expect("runs").flatten();
    world.json(runs.map(|run| run.path().join("workers.json")).find(|path| path.exists()).expect("a record"))
}

#[test]
fn what_a_killed_run_has_left_at_work_is_shown_and_ended_by_stop() {
    let mut world = world(TWO);
    let model = ScriptedAgent::new(|turn| honest(turn).delay(Duration::from_secs(60))).start(&mut world);
    let mut running = begin(&world, &["2"]);
    world.wait_until(|| model.main_requests().len() >= 2, "both work");
    let status = world.plimsoll(&["status"]).run().expect_success().stdout;
    assert!(status.contains("Workers      worker 1: 1 \"Item 1\": session 1"), "{status}");
    running.kill();
    let record = std::fs::read_dir(world.runs()).expect("runs").flatten();
    let record =
        record.map(|run| run.path().join("workers.json")).find(|path| path.exists()).expect("a record");
    let record = world.json(record);
    let pids: Vec<u64> =
        record["works"].as_array().expect("works").iter().filter_map(|work| work["pid"].as_u64()).collect();
    assert_eq!(pids.len(), 2, "{record}");
    world.plimsoll(&["stop", "--yes"]).run().expect_success();
    let is_gone = |pid: &u64| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    world.wait_until(|| pids.iter().all(is_gone), "the workers end");
    let over = resume(&world);
    insta::assert_snapshot!(world.stable_text(&over.stderr), @r#"plimsoll: the run "Dates" is over (cancelled): there is nothing to resume"#);
}

#[test]
fn a_project_below_the_repository_ends_when_what_failed_at_first_passes_and_says_so_if_not() {
    let mut world = world("");
    let below = world.path("pkg");
    world.write("pkg/fix_plan.md", TWO);
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Plan"]);
    let _model = ScriptedAgent::new(honest).start(&mut world);
    let ours = ["run", "--objective", "Do the plan.", "--workers", "2", "--verify"];
    let play = |verify: &str| {
        let all: Vec<&str> = ours.into_iter().chain([verify]).chain(CLIENT).collect();
        world.plimsoll(&all).cwd(&below).timeout(LIMIT).run()
    };
    let finished = play("test -e done/1.txt && test -e done/2.txt && test -e fix_plan.md");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let state = world.json("pkg/.claude/ralph-state.json");
    let branch = state["branch"].as_str().expect("a branch");
    assert_eq!(world.git(&["show", &format!("{branch}:pkg/fix_plan.md")]).matches("- [x]").count(), 2);
    let finished = play("test -e done/3.txt");
    assert_eq!(finished.code, Some(7), "{finished:?}");
    let words = "every item is merged, and `test -e done/3.txt` does not pass on the branch";
    assert!(finished.stdout.contains(words), "{finished:?}");
}

#[test]
fn a_terminal_has_a_line_for_each_worker_and_one_for_the_whole() {
    let mut world = world(TWO);
    let _model = ScriptedAgent::new(|turn| honest(turn).delay(Duration::from_secs(2))).start(&mut world);
    let arguments = ["run", "--objective", "Do the plan.", "--workers", "2", "--", "--allowedTools", "Bash"];
    let terminal = Terminal::start(&world, bin_dir().join("plimsoll"), &arguments, 100, 30);
    let screen = terminal.wait_for("worker 2  2 \"Item 2\"  session 1");
    assert!(screen.contains("worker 1  1 \"Item 1\"  "), "{screen}");
    assert!(screen.contains("0/2 items merged"), "{screen}");
    terminal.wait_for("RALPH_STOP|completed|2 items merged");
}

#[test]
fn a_run_that_is_killed_while_its_workers_work_goes_on_with_them() {
    let mut world = world("# Plan\n\n- [ ] Item 1\n- [ ] Item 2\n");
    let model = ScriptedAgent::new(|turn| match turn.step {
        0 => honest(turn).delay(Duration::from_secs(3)),
        _ => honest(turn),
    })
    .start(&mut world);
    let all: Vec<&str> =
        ["run", "--objective", "Do the plan.", "--workers", "2"].into_iter().chain(CLIENT).collect();
    let mut running = world.plimsoll(&all).timeout(LIMIT).spawn();
    world.wait_until(|| model.main_requests().len() >= 2, "both work");
    running.kill();
    let second = world.plimsoll(&["run", "--resume"]).timeout(LIMIT).run();
    assert_eq!(second.code, Some(0), "{second:?}");
    assert_landed_once(&world, &model, &["1", "2"]);
    assert_tidy(&world, &[]);
    assert_eq!(model.main_requests().len(), 4, "no session was repeated");
}

/// What holds its item is its process: however long that stands still, nobody else takes the item, also not a run that took over.
#[test]
fn a_worker_that_is_frozen_and_goes_on_later_lands_its_item_once() {
    let mut world = world(TWO);
    let model = ScriptedAgent::new(|turn| match turn.step {
        0 => honest(turn).delay(Duration::from_secs(3)),
        _ => honest(turn),
    })
    .start(&mut world);
    let mut running = begin(&world, &["2"]);
    world.wait_until(|| model.main_requests().len() >= 2, "both work");
    let pid = record(&world)["works"][0]["pid"].as_u64().expect("a process").to_string();
    let signal = |name: &str| {
        let sent = world.command("kill", &[name, &pid]).run();
        assert_eq!(sent.code, Some(0), "{name}: {sent:?} {:#?}", journal(&world));
    };
    running.kill();
    // Not before it is dead: what stands still as its parent dies is sent a hangup by the system.
    world.wait_until(|| !running.is_running(), "the first process is dead");
    let second = world.plimsoll(&["run", "--resume"]).spawn();
    signal("-STOP");
    world.wait_until(|| events(&journal(&world), "landed").len() == 1, "the other item lands");
    assert!(merged(&world, "done/2.txt").contains("Item 2"));
    signal("-CONT");
    let second = second.wait(LIMIT);
    assert_eq!(second.code, Some(0), "{second:?}");
    assert_landed_once(&world, &model, &["1", "2"]);
    assert_tidy(&world, &[]);
    assert_eq!(model.main_requests().len(), 4, "no session was repeated");
}

// ---- the user ----

pub(crate) fn begin(world: &World, arguments: &[&str]) -> Running {
    let ours = ["run", "--objective", "Do the plan.", "--name", "Dates", "--workers"];
    let all: Vec<&str> = ours.iter().chain(arguments).chain(&CLIENT).copied().collect();
    world.plimsoll(&all).timeout(LIMIT).spawn()
}

pub(crate) fn resume(world: &World) -> Finished {
    world.plimsoll(&["run", "--resume"]).timeout(LIMIT).run()
}

#[test]
fn one_ctrl_c_lets_sessions_finish_two_end_them_and_what_is_cancelled_stays_so() {
    side_by_side(&[1, 2], |times: &usize| {
        let times = *times;
        let mut world = world(TWO);
        let model = ScriptedAgent::new(move |turn| {
            let is_slow = turn.step == 0 && number(turn.item.as_deref().unwrap_or_default()) == "1";
            honest(turn).delay(Duration::from_secs(if is_slow { 3 } else { 0 }))
        })
        .start(&mut world);
        // One at a time would be no parallel run: the second item waits for the first.
        world.write("fix_plan.md", &TWO.replace("Item 2", "Item 2 (after: 1)"));
        world.git(&["commit", "-qam", "Order"]);
        let mut running = begin(&world, &["2"]);
        world.wait_until(|| !model.main_requests().is_empty(), "the first works");
        for _ in 0..times {
            running.interrupt();
            std::thread::sleep(Duration::from_millis(300));
        }
        let stopped = running.wait(LIMIT);
        assert_eq!(stopped.code, Some(130), "{times}: {stopped:?}");
        let landed = merged(&world, "fix_plan.md").matches("- [x]").count();
        assert_eq!(landed, usize::from(times == 1), "{times}: {stopped:?}");
        if times == 2 {
            world.plimsoll(&["stop", "--yes"]).run().expect_success();
            let over = resume(&world);
            assert!(over.stderr.contains("is over (cancelled)"), "{over:?}");
            return;
        }
        let finished = resume(&world);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_landed_once(&world, &model, &["1", "2"]);
        assert_tidy(&world, &[]);
    });
}

#[test]
fn where_workers_cannot_share_a_plan_nothing_begins_and_the_reason_is_named() {
    let refusal = |world: &World, arguments: &[&str]| {
        let finished = run(world, arguments);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(!world.exists(STATE), "{finished:?}");
        world.stable_text(&finished.stderr)
    };
    let mut world = world(TWO);
    let _model = ScriptedAgent::new(honest).start(&mut world);
    let options = [
        ("--pack", "--pack"),
        ("--memory", "--memory"),
        ("--branch=night", "--branch"),
        ("--commit=off", "--commit off"),
    ];
    for (option, name) in options {
        let expected = format!("plimsoll: {name} cannot be used with --workers yet: leave one of them out\n");
        assert_eq!(refusal(&world, &["2", option]), expected);
    }
    world.write("src/dates.txt", "changed\n");
    insta::assert_snapshot!(refusal(&world, &["2"]), @"plimsoll: there are uncommitted changes, which no worker would see: commit or stash them (git status shows them), then run this again");
    world.git(&["checkout", "-q", "."]);
    world.git(&["checkout", "-q", "--detach"]);
    insta::assert_snapshot!(refusal(&world, &["2"]), @"plimsoll: HEAD is detached, so there is no branch to merge the work into: check one out first (git switch BRANCH)");
    world.git(&["checkout", "-q", "main"]);
    world.write(".gitmodules", "");
    world.git(&["add", ".gitmodules"]);
    insta::assert_snapshot!(refusal(&world, &["2"]), @"plimsoll: this repository has submodules, which worktrees do not have: run it without --workers");
    world.git(&["rm", "-qf", ".gitmodules"]);
    world.write("plimsoll-item.md", "mine\n");
    world.git(&["add", "plimsoll-item.md"]);
    insta::assert_snapshot!(refusal(&world, &["2"]), @"plimsoll: git follows a file plimsoll-item.md, which is where the plan of a worker would be: rename it, and commit");
    world.git(&["rm", "-qf", "plimsoll-item.md"]);
    std::fs::write(world.path(".git/shallow"), world.git(&["rev-parse", "HEAD"]) + "\n").expect("a file");
    insta::assert_snapshot!(refusal(&world, &["2"]), @"plimsoll: this is a shallow clone, in which branches cannot be put together: git fetch --unshallow");
    std::fs::remove_file(world.path(".git/shallow")).expect("it was there");
    std::fs::remove_file(world.path("fix_plan.md")).expect("it was there");
    world.git(&["commit", "-qam", "No plan"]);
    insta::assert_snapshot!(refusal(&world, &["2"]), @"plimsoll: workers need a plan, whose items they share: write fix_plan.md, or name one with --todo");
    let plain = World::without_git();
    insta::assert_snapshot!(refusal(&plain, &["2", "--client", "/bin/true"]), @"plimsoll: workers need a git repository, and [PROJECT] is in none: git init, then commit");
}

#[test]
fn a_second_run_is_refused_a_limit_pauses_all_and_the_users_branch_gets_everything_at_the_end() {
    let mut world = subscribed(TWO);
    // The plan is no file of the repository's, and the project is a folder in it.
    world.git(&["rm", "-q", "--cached", "fix_plan.md"]);
    world.git(&["commit", "-qm", "The plan is mine"]);
    world.write(".worktreeinclude", ".env\n");
    world.write(".gitignore", ".env\n");
    world.git(&["add", ".worktreeinclude", ".gitignore"]);
    world.git(&["commit", "-qm", "Ignore"]);
    world.write(".env", "PORT=1\n");
    let mut is_limited = false;
    let model = ScriptedAgent::new(move |turn| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        if !std::mem::replace(&mut is_limited, true) {
            return usage_limit(now.as_secs() + 4);
        }
        let item = turn.item.clone().unwrap_or_default();
        does(
            turn,
            &format!(
                "test -s .env && test $PLIMSOLL_WORKER -ge 1 && test -e $(git rev-parse --git-dir)/ready && mkdir -p done && echo '{item}' > done/{}.txt",
                number(&item)
            ),
        )
    }).with_real_client_in(&[1, 2]).start(&mut world);
    let running =
        begin(&world, &["2", "--setup", "touch $(git rev-parse --git-dir)/ready", "--deliver", "merge"]);
    world.wait_until(|| !model.main_requests().is_empty(), "the first works");
    let second = run(&world, &["2"]);
    assert_eq!(second.code, Some(1), "{second:?}");
    let (reason, _) = second.stderr.split_once(", iteration ").expect("the iteration");
    insta::assert_snapshot!(
        world.stable_text(reason),
        @r#"plimsoll: another `plimsoll run` is active in this project: the run "Dates" ([ID])"#
    );
    world.wait_until(|| world.json(STATE)["status"] == "paused", "all pause");
    let waiting = crate::status_figures::activity(&world);
    assert_eq!((&waiting["state"], &waiting["until"].is_string()), (&"waiting".into(), &true), "{waiting}");
    let summary = waiting["summary"].as_str().unwrap_or_default();
    assert!(summary.starts_with("waiting until ") && summary.contains("usage limit"), "{waiting}");
    let finished = running.wait(LIMIT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("paused until"), "{finished:?}");
    assert!(events(&journal(&world), "sent_back").is_empty());
    assert_eq!(world.read("fix_plan.md").matches("- [x]").count(), 2);
    assert!(world.exists("done/1.txt") && world.exists("done/2.txt"), "{finished:?}");
    assert!(finished.stdout.contains("`main` has everything that was merged"), "{finished:?}");
    assert_tidy(&world, &[]);
}

#[test]
fn a_hostile_session_ticks_nothing_starts_nothing_and_lands_nothing_of_ours() {
    let mut world = world("# Plan\n\n- [ ] Item 1\n- [ ] Item 2 (after: 1)\n");
    let trap = world.home().join("trap");
    let hook = format!(
        "printf '#!/bin/sh\\ntouch {}\\n' > h/.git/hooks/post-checkout; chmod +x h/.git/hooks/*; for h in pre-commit post-index-change reference-transaction; do cp h/.git/hooks/post-checkout h/.git/hooks/$h; done",
        trap.display()
    );
    let model = ScriptedAgent::new(move |turn| {
        let item = turn.item.clone().unwrap_or_default();
        match (number(&item).as_str(), turn.saw("of another repository")) {
            // Everything is done, says the plan of the others; and its own is committed.
            ("1", _) => does(
                turn,
                "sed -i 's/\\[ \\]/[x]/' fix_plan.md; git add -f plimsoll-item.md; mkdir -p done; echo 1 > done/1.txt",
            ),
            // Its worktree leads into a repository of its own.
            ("2", false) => match turn.step {
                0 => Step::bash(format!(
                    "{} && git init -q h && {hook}; git -C h commit -q --allow-empty -m x; rm .git && mv h/.git .git",
                    tick(&item)
                )),
                _ => Step::text(format!("Done.\n\n{}", turn.promise)),
            },
            _ => honest(turn),
        }
    }).start(&mut world);
    let finished = run(&world, &["2"]);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    assert!(!trap.exists(), "{finished:?}");
    assert!(finished.stdout.contains("belongs to another repository"), "{finished:?}");
    let plan = merged(&world, "fix_plan.md");
    assert_eq!(plan, "# Plan\n\n- [x] Item 1\n- [ ] Item 2 (after: 1)");
    let files = world.git(&["ls-tree", "-r", "--name-only", &target(&world)]);
    assert!(files.contains("done/1.txt") && !files.contains("plimsoll-item.md"), "{files}");
    assert!(!model.main_requests().is_empty());
}

#[test]
fn what_a_day_may_cost_holds_all_workers_and_a_resume_that_allows_more_goes_on() {
    let mut world = world("# Plan\n\n- [ ] Item 1\n- [ ] Item 2\n- [ ] Item 3\n");
    let model = ScriptedAgent::new(honest).with_real_client().at_real_pace().start(&mut world);
    // A session costs a cent and a half: after two of them nothing is left.
    let held = run(&world, &["2", "--no-wait", "--max-cost-per-day", "0.03"]);
    assert_eq!(held.code, Some(6), "{held:?}");
    assert!(held.stdout.contains("of $0.03 a day spent by all runs together"), "{held:?}");
    let state = world.json(STATE);
    assert_eq!(state["status"], "paused", "{held:?}");
    assert!(state["paused_until"].is_string(), "{state}");
    let requests = model.main_requests().len();
    let same = world.plimsoll(&["run", "--resume", "--no-wait"]).timeout(LIMIT).run();
    assert_eq!((same.code, model.main_requests().len()), (Some(6), requests), "{same:?}");
    let more =
        world.plimsoll(&["run", "--resume", "--no-wait", "--max-cost-per-day", "9"]).timeout(LIMIT).run();
    assert_eq!(more.code, Some(0), "{more:?}");
    assert!(events(&journal(&world), "sent_back").is_empty(), "it costs no try: {more:?}");
    assert_landed_once(&world, &model, &["1", "2", "3"]);
    assert_tidy(&world, &[]);
}

/// Each session takes all that its worker may spend, and ends without its item: then both wait, and neither for the other.
#[test]
fn a_run_whose_workers_have_spent_everything_between_them_ends() {
    let mut world = world(TWO);
    let model = ScriptedAgent::new(|turn| match turn.step {
        0 => Step::bash("echo part >> part.txt").usage(30_000),
        _ => Step::text("There is more to do.").usage(31_000),
    })
    .with_real_client()
    .at_real_pace()
    .start(&mut world);
    let finished = run(&world, &["2", "--no-wait", "--max-cost", "0.04"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.stdout.contains("has used its share of the budget"), "{finished:?}");
    assert_eq!(world.json(STATE)["status"], "budget", "{finished:?}");
    assert!(!model.main_requests().is_empty());
}

#[test]
fn sessions_of_workers_that_are_killed_count_in_the_budget() {
    let mut world = world(TWO);
    let _model = ScriptedAgent::new(|turn| {
        let step = match turn.step {
            0 => Step::bash("echo part >> part.txt"),
            _ => Step::bash("sleep 0.5; kill -9 $PPID"),
        };
        step.usage_parts(10_000, 0, 0).output_tokens(0)
    })
    .at_real_pace()
    .start(&mut world);
    // Eight cents a session; each worker may spend half of the budget.
    let line = ["run", "--objective", "Do the plan.", "--workers", "2", "--no-wait", "--max-cost", "0.30"];
    // With a budget of its own the client does not end the session that passes ours.
    let client = ["--", "--model", "opus", "--allowedTools", "Bash", "--max-budget-usd", "5"];
    let finished = world.plimsoll(&[&line[..], &client[..]].concat()).timeout(LIMIT).run();
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let state = world.json(STATE);
    assert_eq!(
        (&state["status"], &state["cost_is_reckoned"]),
        (&json!("budget"), &json!(true)),
        "{finished:?}"
    );
    let cost = state["cost_usd"].as_f64().expect("a cost");
    assert!((0.2999..0.41).contains(&cost), "{cost}");
    assert!(finished.stdout.contains("about $0."), "{finished:?}");
    let status = world.plimsoll(&["status"]).run().stdout;
    assert!(status.contains(&format!("about ${cost:.2} of $0.30")), "{status}");
}

#[test]
fn workers_share_a_plan_with_the_real_client() {
    let mut world = world(TWO);
    let model = ScriptedAgent::new(honest).with_real_client().at_real_pace().start(&mut world);
    let finished = run(&world, &["2", "--verify", "true", "--max-cost", "9"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_landed_once(&world, &model, &["1", "2"]);
    assert_tidy(&world, &[]);
}

// ---- whatever is killed, and whenever ----

/// Numbers by chance, the same for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// The processes of this world, each with its command line: nobody else has its HOME.
fn processes(world: &World) -> Vec<(u32, String)> {
    let home = format!("HOME={}", world.home().display());
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let of_world = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
    };
    let command = |pid: u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        (pid, String::from_utf8_lossy(&line).replace('\0', " "))
    };
    pids.filter(of_world).map(command).filter(|(_, command)| !command.is_empty()).collect()
}

fn kill(world: &World, pid: u32) {
    // It may have ended meanwhile.
    world.command("kill", &["-9", &pid.to_string()]).run();
}

/// Does what conflicts and what is red together, and what it does twice it does once; asks before an item that says so.
fn careful(turn: &Turn<'_>) -> Step {
    let Some(item) = turn.item.clone() else { return Step::text(format!("All done.\n\n{}", turn.promise)) };
    let number = number(&item);
    if item.starts_with("Ask") && !turn.saw("Answer: Use port 8042") {
        let words = turn.promise.replace("COMPLETE", "BLOCKED").replace("</", " which port?</");
        return Step::text(format!("I cannot go on.\n\n{words}"));
    }
    let own = format!("mkdir -p done && echo '{item}' > done/{number}.txt");
    let line = match number.as_str() {
        "1" | "2" => format!("grep -qx '{item}' src/dates.txt || echo '{item}' >> src/dates.txt; {own}"),
        "3" | "4" => format!("{own}; test ! -e done/3.txt || test ! -e done/4.txt || touch both.txt"),
        _ => own,
    };
    does(turn, &format!("{line}; git add -A; git commit -qm 'Finish {item}' || true"))
        .delay(Duration::from_millis(300))
}

/// A plan, who works on it, and how often something is killed.
struct Night {
    seed: u64,
    plan: String,
    items: usize,
    workers: &'static str,
    kills: usize,
}

impl Night {
    /// Eight items: two that conflict, two that are red together, one that waits for another.
    fn short(seed: u64) -> Night {
        let after = |n| if n == 7 { " (after: 5)" } else { "" };
        let plan = (1..=8).map(|n| format!("- [ ] Item {n}{}\n", after(n))).collect();
        Night { seed, plan, items: 8, workers: "3", kills: 6 }
    }

    /// Twenty-four: also one that asks, with others behind it.
    fn long(seed: u64) -> Night {
        let words = |n| match n {
            6 => "Ask, then item 6".to_owned(),
            7 => "Item 7 (after: 5)".to_owned(),
            12 => "Item 12 (after: 6, 8)".to_owned(),
            20 => "Item 20 (after: 12)".to_owned(),
            n => format!("Item {n}"),
        };
        let plan = (1..=24).map(|n| format!("- [ ] {}\n", words(n))).collect();
        Night { plan, items: 24, workers: "4", kills: 4, ..Night::short(seed) }
    }
}

/// Kills some at random moments, resumes what is gone, answers what is asked, and lets the rest end.
fn killed_by_chance(night: &Night) {
    let begun = std::time::Instant::now();
    let mut world = world(&format!("# Plan\n\n{}", night.plan));
    let model = ScriptedAgent::new(careful).start(&mut world);
    let mut chance = Chance(night.seed);
    let verify = "test ! -e done/3.txt || test ! -e done/4.txt || test -e both.txt";
    let mut running = begin(&world, &[night.workers, "--verify", verify]);
    world.wait_until(|| world.exists(STATE), "a run is there");
    let mut told = Vec::new();
    for _ in 0..night.kills {
        std::thread::sleep(Duration::from_millis(300 + chance.below(2_500)));
        // A hook that does not run is a fault of the installation, and ends a run.
        let is_of_item = |(pid, command): &(u32, String)| {
            *pid != running.pid() && (command.contains("plimsoll run ") || command.contains("claude "))
        };
        let of_items: Vec<(u32, String)> = processes(&world).into_iter().filter(is_of_item).collect();
        match chance.below(3) {
            0 => running.kill(),
            1 => {
                running.kill();
                of_items.iter().for_each(|(pid, _)| kill(&world, *pid));
            }
            _ => {
                let count = of_items.len().max(1) as u64;
                let victim = of_items.get(chance.below(count) as usize);
                told.extend(victim.map(|(_, command)| command.clone()));
                victim.iter().for_each(|(pid, _)| kill(&world, *pid));
            }
        }
        if !running.is_running() {
            running = world.plimsoll(&["run", "--resume", "--reset-breaker"]).timeout(NIGHT).spawn();
        }
    }
    let mut finished = running.wait(NIGHT);
    while finished.code != Some(0) && told.len() < night.kills + 3 {
        told.push(format!("{finished:?}"));
        if finished.code == Some(7) {
            world.plimsoll(&["status", "--answer", "1", "Use port 8042"]).run().expect_success();
        }
        finished = world.plimsoll(&["run", "--resume", "--reset-breaker"]).timeout(NIGHT).run();
    }
    let words = format!("seed {}: {finished:#?} {told:#?}", night.seed);
    assert!(finished.code == Some(0), "{words}");
    assert_all_landed(&world, night, &words);
    assert!(!model.main_requests().is_empty());
    let spent = world.json(STATE)["iteration"].as_u64().unwrap_or_default();
    // For whoever plays many of them.
    println!(
        "| {} | {} | {:.0} | {} | {spent} |",
        night.seed,
        night.items,
        begun.elapsed().as_secs_f64(),
        night.kills
    );
}

/// Each item once, none of its lines lost, no red commit that was ever the branch's end, and nothing left behind.
fn assert_all_landed(world: &World, night: &Night, words: &str) {
    let branch = target(world);
    for number in 1..=night.items {
        let commits = world.git(&["log", "--format=%s", &branch, "--", &format!("done/{number}.txt")]);
        assert_eq!(commits.lines().count(), 1, "item {number}: {commits} {words}");
    }
    let dates = merged(world, "src/dates.txt");
    for item in ["Item 1", "Item 2"] {
        assert_eq!(dates.lines().filter(|line| *line == item).count(), 1, "{item}: {words}");
    }
    assert_eq!(merged(world, "fix_plan.md").matches("- [x]").count(), night.items, "{words}");
    assert_eq!(world.git(&["worktree", "list"]).lines().count(), 1, "{words}");
    assert!(!words.contains("stays at"), "{words}");
    let left: Vec<_> = std::fs::read_dir(trees(world)).into_iter().flatten().flatten().collect();
    assert!(left.is_empty(), "{left:?} {words}");
    world.plimsoll(&["turns", "verify"]).run().expect_success();
    // Where the branch has been: commits between two of these were never its end.
    for commit in world.git(&["log", "-g", "--format=%H", &branch]).lines() {
        let has = |file: &str| {
            let asked = world.command("git", &["cat-file", "-e", &format!("{commit}:{file}")]).run();
            asked.code == Some(0)
        };
        let is_red = has("done/3.txt") && has("done/4.txt") && !has("both.txt");
        assert!(!is_red, "{commit}: {words}");
    }
    let left = processes(world);
    assert!(left.is_empty(), "{left:?} {words}");
}

#[test]
fn whatever_is_killed_and_whenever_each_item_lands_once() {
    // More of them: PLIMSOLL_SEEDS=100..140.
    let seeds = std::env::var("PLIMSOLL_SEEDS").unwrap_or_else(|_| "1..3".to_owned());
    let (first, last) = seeds.split_once("..").expect("FIRST..LAST");
    let seeds: Vec<u64> = (first.parse().expect("a number")..last.parse().expect("a number")).collect();
    for pair in seeds.chunks(2) {
        side_by_side(pair, |seed| killed_by_chance(&Night::short(*seed)));
    }
}

#[test]
fn of_twenty_four_items_each_lands_once_whatever_conflicts_fails_asks_and_dies() {
    killed_by_chance(&Night::long(24));
}

/// When a model says that its work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Promises {
    /// At the end of each session.
    AtOnce,
    /// Only when a session has nothing else left to do.
    WhenAskedAgain,
    Never,
}

/// What a run of twelve items that nothing holds up took.
struct Taken {
    elapsed: Duration,
    sessions: usize,
    cost_usd: f64,
    /// How often the result was verified.
    verified: usize,
}

/// Runs twelve items with a model that takes so long for each answer, and a verify command that takes so long on what is
/// merged.
fn run_twelve_items(workers: &str, answer: Duration, verify: Duration, promises: Promises) -> Taken {
    let plan: String = (1..=12).map(|n| format!("- [ ] Item {n}\n")).collect();
    let mut world = world(&format!("# Plan\n\n{plan}"));
    // One worker works in the user's own tree, on the plan itself.
    let file = if workers == "1" { "fix_plan.md" } else { "plimsoll-item.md" };
    let model = ScriptedAgent::new(move |turn| {
        let item = turn.item.clone().unwrap_or_default();
        let is_asked_again = turn.saw("are ticked. Check all of the work");
        let is_promised = match promises {
            Promises::AtOnce => true,
            Promises::WhenAskedAgain => is_asked_again,
            Promises::Never => false,
        };
        let step = match turn.step {
            0 if !is_asked_again => {
                let tick = tick(&item).replace("plimsoll-item.md", file);
                Step::bash(format!("mkdir -p done && echo '{item}' > done/{}.txt && {tick}", number(&item)))
            }
            _ if is_promised => Step::text(format!("The item is done.\n\n{}", turn.promise)),
            _ => Step::text("The item is done."),
        };
        step.usage(30_000).delay(answer)
    })
    .with_real_client()
    .start(&mut world);
    let seconds = verify.as_secs();
    let verify = format!("case $PWD in */merge) echo x >> ~/verified; sleep {seconds};; esac");
    let finished = run(&world, &[workers, "--verify", &verify]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let sessions = model.main_requests().iter().filter(|request| request.answers() == 0).count();
    assert!((12..=14).contains(&sessions), "{sessions} sessions: {finished:?}");
    let verified = std::fs::read_to_string(world.home().join("verified")).unwrap_or_default();
    Taken {
        elapsed: finished.elapsed,
        sessions,
        cost_usd: world.json(STATE)["cost_usd"].as_f64().unwrap_or_default(),
        verified: verified.lines().count(),
    }
}

/// Not among the usual tests: scripts/worker-nights.sh plays it, with nothing beside it.
#[test]
fn four_workers_against_one_on_twelve_independent_items() {
    let mut cost_of_promising = None;
    for (answer, promises) in [
        (300, Promises::AtOnce),
        (3_000, Promises::AtOnce),
        (3_000, Promises::WhenAskedAgain),
        (3_000, Promises::Never),
    ] {
        let answer = Duration::from_millis(answer);
        let [one, four] =
            ["1", "4"].map(|workers| run_twelve_items(workers, answer, Duration::ZERO, promises));
        let ratio = one.elapsed.as_secs_f64() / four.elapsed.as_secs_f64();
        println!(
            "| {answer:?}, promises {promises:?} | {:.1} s, {} sessions, ${:.2} | {:.1} s, {} sessions, ${:.2} | {ratio:.2} |",
            one.elapsed.as_secs_f64(),
            one.sessions,
            one.cost_usd,
            four.elapsed.as_secs_f64(),
            four.sessions,
            four.cost_usd
        );
        assert!(ratio > 1.2, "{ratio}");
        let cost = *cost_of_promising.get_or_insert(four.cost_usd);
        assert!(four.cost_usd <= 1.05 * cost, "${} and ${cost}", four.cost_usd);
    }
    // The first run of the command is at the beginning: it says what passes.
    let answer = Duration::from_millis(300);
    let verified = run_twelve_items("4", answer, Duration::from_secs(5), Promises::AtOnce).verified;
    let of_results = verified - 1;
    println!("12 items merged by {of_results} runs of a verify command of 5 s");
    assert!(of_results <= 6, "{of_results}");
}

/// A client that is ended takes its git along, which leaves the index locked.
#[test]
fn the_lock_of_a_git_that_was_killed_costs_no_try() {
    let mut world = world(TWO);
    let model = ScriptedAgent::new(|turn| match (turn.item.as_deref().map(number).as_deref(), turn.step) {
        (Some("1"), 0) => {
            Step::bash(format!("mkdir -p done && echo 1 > done/1.txt && {LEAVE_LOCKED}")).usage(30_000)
        }
        _ => honest(turn),
    })
    .start(&mut world);
    let finished = run(&world, &["2"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(events(&journal(&world), "sent_back").is_empty(), "{finished:?}");
    assert_landed_once(&world, &model, &["1", "2"]);
    assert_tidy(&world, &[]);
}

/// The second attempt at an item dies before it has a state of its own: what lies in the worktree is that of the first, which
/// was done.
#[test]
fn the_end_of_an_earlier_attempt_says_nothing_of_the_next_one() {
    let mut world = world(TWO);
    let model = ScriptedAgent::new(careful).start(&mut world);
    let running = begin(&world, &["2"]);
    world.wait_until(|| world.exists(".claude/plimsoll/journal.jsonl"), "a journal");
    // Both add a line at the same place: one of them is sent back.
    world.wait_until(|| events(&journal(&world), "sent_back").len() == 1, "a conflict");
    let killed_as_it_began = || {
        let of_item =
            processes(&world).into_iter().filter(|(_, command)| command.contains("--todo plimsoll-item"));
        of_item.for_each(|(pid, _)| kill(&world, pid));
        events(&journal(&world), "worker_ended").len() >= 3
    };
    world.wait_until(killed_as_it_began, "the second attempt was killed as it began");
    let finished = running.wait(LIMIT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let dates = merged(&world, "src/dates.txt");
    for item in ["Item 1", "Item 2"] {
        assert_eq!(dates.lines().filter(|line| *line == item).count(), 1, "{item}: {dates} {finished:?}");
    }
    assert!(!model.main_requests().is_empty());
}

#[test]
fn what_the_user_commits_meanwhile_stays_where_it_is_and_under_what_is_merged() {
    let mut world = world(TWO);
    let model = ScriptedAgent::new(|turn| {
        honest(turn).delay(Duration::from_secs(if turn.step == 0 { 2 } else { 0 }))
    })
    .start(&mut world);
    let running = begin(&world, &["2", "--deliver", "merge"]);
    world.wait_until(|| !model.main_requests().is_empty(), "the first works");
    world.write("README.md", "Changed by the user.\n");
    world.git(&["commit", "-qam", "On main"]);
    let branch = target(&world);
    let tree = format!("{branch}^{{tree}}");
    let commit = world.git(&["commit-tree", "-p", &branch, "-m", "On the run's branch", &tree]);
    world.git(&["update-ref", &format!("refs/heads/{branch}"), &commit]);
    let finished = running.wait(LIMIT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        finished.stdout.contains("nothing was delivered: `main` has moved since the run began"),
        "{finished:?}"
    );
    assert_eq!(world.git(&["log", "--format=%s", "-1", "main"]), "On main");
    let subjects = world.git(&["log", "--format=%s", &branch]);
    assert!(subjects.contains("On the run's branch") && subjects.contains("Finish Item 2"), "{subjects}");
    assert_landed_once(&world, &model, &["1", "2"]);
    assert_tidy(&world, &[]);
}
