//! `run --workers`: several workers share a plan, each item has its own worktree, and nothing is lost or merged twice.

use crate::park_items::write_stand_in_client;
use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::scripted_agent::AgentTurn;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::{FinishedProgram, RunningProgram, World};
use plimsoll_tests::{
    ScriptedAgent, events_named, read_journal, run_cases_in_parallel, usage_limit_error,
    world_with_plan_and_dates, world_with_subscription,
};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

const STATE_PATH: &str = ".claude/ralph-state.json";
const CLIENT_ARGUMENTS: [&str; 7] = ["--", "--model", "opus", "--allowedTools", "Bash", "Edit", "Write"];
pub(crate) const TWO_ITEM_PLAN: &str = "# Plan\n\n- [ ] Item 1\n- [ ] Item 2\n";
/// Timeout of a whole run on a busy computer.
pub(crate) const RUN_TIMEOUT: Duration = Duration::from_secs(120);
/// Timeout of a run with random kills and the real client, beside another one.
const RANDOM_KILLS_TIMEOUT: Duration = Duration::from_secs(900);

/// Ticks item 1 and commits nothing; the index that git needs for a commit is locked.
const TICK_AND_LOCK_INDEX: &str =
    "sed -i 's/\\[ \\]/[x]/' plimsoll-item.md && touch \"$(git rev-parse --git-dir)/index.lock\"";

/// Returns a command that ticks the item in the plan of its own run and commits everything.
pub(crate) fn tick_and_commit_command(item: &str) -> String {
    format!(
        "sed -i 's/^- \\[ \\] {item}$/- [x] {item}/' plimsoll-item.md && git add -A && git commit -qm 'Finish {item}'"
    )
}

/// Returns the first number in an item's text.
pub(crate) fn item_number(item: &str) -> String {
    item.chars().skip_while(|letter| !letter.is_ascii_digit()).take_while(char::is_ascii_digit).collect()
}

/// Writes a file for its item, and is done.
pub(crate) fn write_item_file_step(turn: &AgentTurn<'_>) -> Step {
    let Some(item) = turn.item_text.clone() else {
        return Step::from_text(format!("All done.\n\n{}", turn.promise_line));
    };
    do_item_step(turn, &format!("mkdir -p done && echo '{item}' > done/{}.txt", item_number(&item)))
}

/// Does its item with this command line.
pub(crate) fn do_item_step(turn: &AgentTurn<'_>, command: &str) -> Step {
    let item = turn.item_text.clone().unwrap_or_default();
    match turn.assistant_message_count {
        0 => Step::bash_call(format!("{command} && {}", tick_and_commit_command(&item)))
            .with_input_tokens(30_000),
        _ => Step::from_text(format!("{item} is done.\n\n{}", turn.promise_line)).with_input_tokens(31_000),
    }
}

pub(crate) fn run_with_workers(world: &World, arguments: &[&str]) -> FinishedProgram {
    let run_arguments = ["run", "--objective", "Do the plan.", "--name", "Dates", "--workers"];
    let command_line: Vec<&str> =
        run_arguments.iter().chain(arguments).chain(&CLIENT_ARGUMENTS).copied().collect();
    world.plimsoll(&command_line).timeout(RUN_TIMEOUT).run()
}

/// Returns the branch that all work is merged into.
pub(crate) fn target_branch(world: &World) -> String {
    world.read_json(STATE_PATH)["branch"].as_str().expect("a branch").to_owned()
}

/// Returns the contents of a file on that branch.
pub(crate) fn read_merged_file(world: &World, file: &str) -> String {
    world.git(&["show", &format!("{}:{file}", target_branch(world))])
}

/// Returns the HTML report.
fn report_page(world: &World) -> String {
    world.plimsoll(&["report", "-o", "-"]).run().expect_success().stdout
}

fn worktree_folder(world: &World) -> PathBuf {
    world.home().join(".local/state/plimsoll/trees")
}

/// Asserts that no worktree is left, and of the items' branches only these attempts.
pub(crate) fn assert_only_attempts_left(world: &World, attempts: &[&str]) {
    let worktrees = world.git(&["worktree", "list"]);
    assert_eq!(worktrees.lines().count(), 1, "{worktrees}");
    let branches = world.git(&["for-each-ref", "--format=%(refname:lstrip=4)", "refs/heads/plimsoll-items"]);
    assert_eq!(branches.lines().collect::<Vec<_>>(), attempts);
    let leftovers: Vec<_> =
        std::fs::read_dir(worktree_folder(world)).into_iter().flatten().flatten().collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
}

/// Asserts that each item was merged once: its file has one commit and it is ticked.
fn assert_merged_once(world: &World, model: &ScriptedModel, items: &[&str]) {
    let branch = target_branch(world);
    for number in items {
        let commits = world.git(&["log", "--format=%s", &branch, "--", &format!("done/{number}.txt")]);
        assert_eq!(commits.lines().count(), 1, "item {number}: {commits}");
    }
    assert!(read_merged_file(world, "fix_plan.md").matches("- [x]").count() >= items.len());
    assert!(!model.main_requests().is_empty());
    world.plimsoll(&["turns", "verify"]).run().expect_success();
}

/// The plan of a parallel run is in the project all the time, and anybody may write into it.
#[test]
fn an_unclear_line_written_into_the_plan_blocks_a_parallel_run() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let plan = world.path("fix_plan.md").display().to_string();
    let _model = ScriptedAgent::new(move |turn| {
        let number = item_number(&turn.item_text.clone().unwrap_or_default());
        do_item_step(
            turn,
            &format!("mkdir -p done && echo a > done/{number}.txt && echo '- [-] late' >> '{plan}'"),
        )
    })
    .start(&mut world);
    let finished = run_with_workers(&world, &["2"]);
    assert_eq!(finished.code, Some(7), "{finished:?}");
    let last = finished.stdout.lines().last().unwrap_or_default();
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(last), @r#"   RALPH_STOP|blocked|fix_plan.md has lines that look like items but are not: line 5 "- [-] late", line 6 "- [-] late"; rewrite them with `plimsoll plan --fix`, then resume   ($0.03)"#);
}

/// The worktrees are in the user's state folder: git knows them by their real paths, and we by HOME.
#[test]
fn workers_find_their_worktrees_if_home_is_a_link() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let home = world.home().with_file_name("linked home");
    std::os::unix::fs::symlink(world.home(), &home).expect("a link");
    world.set_env("HOME", home.display().to_string());
    let model = ScriptedAgent::new(write_item_file_step).start(&mut world);
    let finished = run_with_workers(&world, &["2"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_merged_once(&world, &model, &["1", "2"]);
    assert_only_attempts_left(&world, &[]);
}

#[test]
fn three_workers_finish_a_plan_and_merge_it_into_one_branch() {
    let mut world =
        world_with_plan_and_dates("# Plan\n\n- [ ] Item 1\n- [ ] Item 2 (after: 1)\n- [ ] Item 3\n");
    let model = ScriptedAgent::new(write_item_file_step).start(&mut world);
    let head_before = world.git(&["rev-parse", "HEAD"]);
    let order_check = "test ! -e done/2.txt || test -e done/1.txt";
    // Fails the first time that something is merged, and never again.
    let flaky_check = "case $PWD in */merge) echo x >> ~/runs; test $(wc -l < ~/runs) -ne 2;; esac";
    let finished = run_with_workers(&world, &["3", "--verify", order_check, "--verify", flaky_check]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        finished.stdout.contains("failed and then passed on the same commit (\"Item 1\")"),
        "{finished:?}"
    );
    assert_merged_once(&world, &model, &["1", "2", "3"]);
    assert_only_attempts_left(&world, &[]);
    assert!(!finished.stdout.contains("stays at"), "{finished:?}");
    // The report has a lane for each worker, with the usage line of each session, even if its worktree is gone.
    let page = report_page(&world);
    for text in ["worker 1</text>", "merged: “Item 1”", "“Item 2 (after: 1)”", "is done", "in 3 sessions;"]
    {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert_eq!(page.matches("<path class=\"load ").count(), 3, "{page}");
    assert!(!page.contains("No session has been recorded") && !page.contains("$?"), "{page}");
    assert_eq!(
        (world.git(&["rev-parse", "HEAD"]), world.git(&["status", "--porcelain"])),
        (head_before, String::new())
    );
    let branch = target_branch(&world);
    assert!(branch.starts_with("plimsoll/fix_plan-"), "{branch}");
    let command = format!("git switch main && git merge {branch}");
    assert!(finished.stderr.contains(&command), "{finished:?}");
    let journal = read_journal(&world);
    assert_eq!(events_named(&journal, "worker_began").len(), 3, "{journal:?}");
    assert_eq!(world.read_json(STATE_PATH)["status"], "completed");
    assert_eq!(world.read_json(STATE_PATH)["completed_items"].as_array().map(Vec::len), Some(3));
    world.command("sh", &["-c", &command]).run().expect_success();
    assert_eq!(world.read("fix_plan.md").matches("- [x]").count(), 3);
}

/// An agent whose work cannot simply be merged: items 1 and 2 write the same line, 3 and 4 pass alone and fail
/// together, 5 asks a question, and 6 has nothing to do.
fn conflicting_item_step(turn: &AgentTurn<'_>) -> Step {
    let Some(item) = turn.item_text.clone() else {
        return Step::from_text(format!("All done.\n\n{}", turn.promise_line));
    };
    let was_refused = turn.request_contains("## Earlier work on this item was sent back");
    let write_file_command = format!("mkdir -p done && echo '{item}' > done/{}.txt", item_number(&item));
    let command = match item_number(&item).as_str() {
        "1" | "2" if was_refused => format!(
            "grep -q '## Output' .claude/plimsoll/worker/refused.md && echo '{item}' >> src/dates.txt && {write_file_command}"
        ),
        "1" | "2" => format!("sed -i '1s/.*/{item}/' src/dates.txt && {write_file_command}"),
        // The second attempt repairs it: the first one is in this worktree, on top of what was merged.
        "3" | "4" if was_refused => "test -e done/3.txt && test -e done/4.txt && touch both.txt".to_owned(),
        "5" if !turn.request_contains("Answer: Use port 8042") => {
            let question = turn.promise_line.replace("COMPLETE", "BLOCKED").replace("</", " which port?</");
            return Step::from_text(format!("I cannot go on.\n\n{question}"));
        }
        "6" => "sed -i 's/$/\\n  > nothing to do/' plimsoll-item.md".to_owned(),
        _ => write_file_command,
    };
    // Workers start two seconds apart: these items are still in progress when the next worker starts.
    let is_slow = turn.assistant_message_count == 0
        && !was_refused
        && ["1", "3"].contains(&item_number(&item).as_str());
    do_item_step(turn, &command).with_delay(Duration::from_secs(if is_slow { 3 } else { 0 }))
}

pub(crate) fn sent_back_reasons(world: &World) -> Vec<String> {
    let journal = read_journal(world);
    let sent_back = events_named(&journal, "sent_back");
    sent_back.iter().filter_map(|event| event["reason"].as_str()).map(str::to_owned).collect()
}

#[test]
fn a_conflict_is_sent_back_with_both_sides_and_no_line_is_lost() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let model = ScriptedAgent::new(conflicting_item_step).start(&mut world);
    let finished = run_with_workers(&world, &["2"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let reasons = sent_back_reasons(&world);
    assert!(reasons.len() == 1 && reasons[0].contains("conflict in src/dates.txt"), "{reasons:?}");
    let report = world.plimsoll(&["report", "--output", "-"]).run().expect_success().stdout;
    assert!(report.contains("Not merged") && report.contains("conflict in src/dates.txt"), "{report}");
    // Including those of the attempt that was sent back, which was another run in the same worktree.
    assert_eq!(report.matches("<path class=\"load ").count(), 3, "{report}");
    assert_merged_once(&world, &model, &["1", "2"]);
    // The conflicting item was done anew; its first attempt is kept for the user to look at.
    assert_only_attempts_left(&world, &["1/1"]);
    let dates = read_merged_file(&world, "src/dates.txt");
    for item in ["Item 1", "Item 2"] {
        assert_eq!(dates.lines().filter(|line| *line == item).count(), 1, "{item} in {dates}");
    }
}

#[test]
fn failing_merges_are_sent_back_and_items_without_changes_are_merged() {
    let items = "# Plan\n\n- [ ] Item 3\n- [ ] Item 4\n- [ ] Item 5\n- [ ] Item 6 (after: 3)\n";
    let mut world = world_with_plan_and_dates(items);
    let model = ScriptedAgent::new(conflicting_item_step).start(&mut world);
    let verify = "test ! -e done/3.txt || test ! -e done/4.txt || test -e both.txt";
    let notify_log = world.home().join("told.jsonl");
    let script = format!("#!/bin/sh\ncat >> {0}\necho >> {0}\n", notify_log.display());
    let notify = world.write_program(world.home().join("notify.sh"), &script).display().to_string();
    let finished = run_with_workers(&world, &["3", "--verify", verify, "--notify", &notify]);
    assert_eq!(finished.code, Some(7), "{finished:?}");
    let notifications = world.read(notify_log);
    for (event, count) in [("question", 1), ("ended", 1), ("paused", 0)] {
        assert_eq!(
            notifications.matches(&format!("\"event\":\"{event}\"")).count(),
            count,
            "{event}: {notifications}"
        );
    }
    assert!(finished.stderr.contains("plimsoll status --answer 1 'your answer'"), "{finished:?}");
    let reasons = sent_back_reasons(&world);
    let failure_text = "on the merged branch, `test";
    assert!(reasons.len() == 1 && reasons[0].contains(failure_text), "{reasons:?}");
    let status = world.plimsoll(&["status"]).run().expect_success().stdout;
    assert!(status.contains("2 of 4 done") && status.contains("which port?"), "{status}");
    let log = world.plimsoll(&["log"]).run().expect_success().stdout;
    assert!(log.contains("merged item 2 \"Item 4\""), "{log}");

    world.plimsoll(&["status", "--answer", "1", "Use port 8042"]).run().expect_success();
    let resumed = resume_run(&world);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_merged_once(&world, &model, &["3", "4", "5"]);
    let plan = read_merged_file(&world, "fix_plan.md");
    assert_eq!(plan.matches("- [x]").count(), 4);
    assert!(
        plan.contains("- [x] Item 6 (after: 3)\n  > nothing to do") && !plan.contains("not merged"),
        "{plan}"
    );
    assert_only_attempts_left(&world, &[]);
    world.git(&["merge", "-q", &target_branch(&world)]);
    world.command("sh", &["-c", verify]).run().expect_success();
}

#[test]
fn an_item_without_a_review_verdict_is_not_merged_and_asks_the_user() {
    let world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let session_script = "begin; answers 30000; number=$(echo \"$item\" | tr -dc 0-9)
        mkdir -p done; echo \"$item\" > \"done/$number.txt\"
        sed -i 's/\\[ \\]/[x]/' plimsoll-item.md; git add -A; git commit -qm \"Finish $item\"; says \"$promise\"\n";
    // The workers review at the same time, so each script checks which item it is about.
    let review = "if grep -q '^> 1. Item 1$' \"$HOME/reviewed/$number/prompt\"; then reviews 'I like it.'; fi
        reviews 'VERDICT: pass'\n";
    for number in 1..=4 {
        world.write(world.home().join(format!("reviews/{number}")), review);
    }
    let client = write_stand_in_client(&world, &[session_script, session_script]);
    let run_arguments =
        ["run", "--objective", "Do the plan.", "--name", "Dates", "--workers", "2", "--review", "item"];
    let finished =
        world.plimsoll(&[&run_arguments[..], &["--client", &client]].concat()).timeout(RUN_TIMEOUT).run();
    assert_eq!(finished.code, Some(7), "{finished:?}");
    let target_branch = target_branch(&world);
    let merged_files = world.git(&["ls-tree", "-r", "--name-only", &target_branch]);
    assert!(merged_files.contains("done/2.txt") && !merged_files.contains("done/1.txt"), "{merged_files}");
    // Wide enough for the folder of the worktrees.
    let status = world.plimsoll(&["status"]).env("COLUMNS", "240").run().expect_success().stdout;
    let status = status.replace(&target_branch, "[TARGET]");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&status), @r#"
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

/// Git ignores changes to a file that is marked assume-unchanged: the worktree shows other contents than the commit
/// that is merged.
#[test]
fn a_review_reads_the_commit_and_not_the_worktree() {
    let world = world_with_plan_and_dates("# Plan\n\n- [ ] Item 1\n");
    let session_script = "begin; answers 30000; echo COMMITTED > code.txt
        sed -i 's/\\[ \\]/[x]/' plimsoll-item.md; git add -A; git commit -qm \"Finish $item\"
        git update-index --assume-unchanged code.txt; echo SHOWN > code.txt; says \"$promise\"\n";
    world.write(world.home().join("reviews/1"), "cp code.txt \"$HOME/seen.txt\"; reviews 'VERDICT: pass'\n");
    let client = write_stand_in_client(&world, &[session_script]);
    let run_arguments = ["run", "--objective", "Do the plan.", "--workers", "2", "--review", "item"];
    let finished =
        world.plimsoll(&[&run_arguments[..], &["--client", &client]].concat()).timeout(RUN_TIMEOUT).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(read_merged_file(&world, "code.txt"), "COMMITTED");
    assert_eq!(world.read(world.home().join("seen.txt")), "COMMITTED\n");
    let prompt = world.read(world.home().join("reviewed/1/prompt"));
    assert!(prompt.contains("+COMMITTED") && !prompt.contains("SHOWN"), "{prompt}");
}

#[test]
fn work_that_breaks_a_merged_items_check_is_sent_back() {
    let mut world =
        world_with_plan_and_dates("# Plan\n\n- [ ] Item 1 (verify: test -e one)\n- [ ] Item 2 (after: 1)\n");
    let model = ScriptedAgent::new(|turn| {
        let item = turn.item_text.clone().unwrap_or_default();
        let number = item_number(&item);
        let write_file_command = format!("mkdir -p done && echo '{item}' > done/{number}.txt");
        let was_refused = turn.request_contains("## Earlier work on this item was sent back");
        do_item_step(
            turn,
            &match (number.as_str(), was_refused) {
                ("1", _) => format!("{write_file_command} && touch one"),
                (_, false) => format!("{write_file_command} && git rm -q one"),
                (_, true) => "touch one".to_owned(),
            },
        )
    })
    .start(&mut world);
    let finished = run_with_workers(&world, &["2", "--plan-verify"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let reasons = sent_back_reasons(&world);
    assert!(reasons.len() == 1 && reasons[0].contains("`test -e one` exited with 1"), "{reasons:?}");
    assert_merged_once(&world, &model, &["1", "2"]);
    assert_eq!(read_merged_file(&world, "one"), "");
    assert_only_attempts_left(&world, &[]);
}

// ---- kills ----

/// Puts a git before the real one on the PATH that kills the run (`run.pid`) at the n-th command that matches
/// `pattern`, a shell pattern for all arguments with a blank at the end. With `is_after` it kills after the command
/// instead of before it.
pub(crate) fn kill_run_at_git_command(world: &mut World, pattern: &str, count: usize, is_after: bool) {
    let git_path = world.command("sh", &["-c", "command -v git"]).run().expect_success().stdout;
    let (real_git, home) = (git_path.trim().to_owned(), world.home().display().to_string());
    let run_or_fail = if is_after { format!("{real_git} \"$@\"; code=$?") } else { "code=1".to_owned() };
    let script = format!(
        "#!/bin/sh\ncase \"$* \" in {pattern}) ;; *) exec {real_git} \"$@\" ;; esac\n\
         echo x >> {home}/moments\ntest $(wc -l < {home}/moments) -eq {count} || exec {real_git} \"$@\"\n\
         {run_or_fail}\nkill -9 $(cat {home}/run.pid)\nexit $code\n"
    );
    world.write_program(world.home().join("killing/git"), &script);
    let path =
        world.env_with_programs_on_path().into_iter().find(|(name, _)| name == "PATH").expect("a PATH").1;
    world.set_env("PATH", format!("{home}/killing:{path}"));
}

/// Kills the run at the n-th merge, when its branch is about to move ("prepared") or has moved ("committed"). The
/// branch's creation does not count: it has no commit before.
fn kill_run_at_merge(world: &mut World, moment: &str, count: usize) {
    let pattern =
        "*' update-ref --no-deref -m plimsoll: landed refs/heads/plimsoll/'*[0-9a-f]' '[0-9a-f]*[0-9a-f]' '";
    kill_run_at_git_command(world, pattern, count, moment == "committed");
}

#[test]
fn a_run_killed_during_a_merge_merges_the_item_once() {
    run_cases_in_parallel(&["prepared", "committed"], |moment| {
        let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item 1\n- [ ] Item 2\n");
        let model = ScriptedAgent::new(write_item_file_step).start(&mut world);
        kill_run_at_merge(&mut world, moment, 1);
        let command_line: Vec<&str> = ["run", "--objective", "Do the plan.", "--workers", "2"]
            .into_iter()
            .chain(CLIENT_ARGUMENTS)
            .collect();
        let running = world.plimsoll(&command_line).timeout(RUN_TIMEOUT).spawn();
        world.write(world.home().join("run.pid"), &running.pid().to_string());
        let killed = running.wait_or_kill_and_panic(RUN_TIMEOUT);
        assert_eq!(killed.code, None, "{moment}: {killed:?}");
        let finished = world.plimsoll(&["run", "--resume"]).timeout(RUN_TIMEOUT).run();
        assert_eq!(finished.code, Some(0), "{moment}: {finished:?}");
        assert_merged_once(&world, &model, &["1", "2"]);
        assert_only_attempts_left(&world, &[]);
    });
}

#[test]
fn a_run_killed_while_it_prepares_a_worktree_or_commits_can_be_resumed() {
    // Each item's run leaves its file uncommitted.
    let kill_points = [
        ("*' clone --quiet --bare '*", false),
        ("*' clone --quiet --bare '*", true),
        ("*' checkout --quiet --force --detach '*", true),
        ("*' fetch --quiet --no-tags '*", true),
        ("*' worktree add '*", true),
        ("*' commit --quiet --allow-empty --only '*", true),
    ];
    run_cases_in_parallel(&kill_points, |(pattern, is_after)| {
        let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
        let model = ScriptedAgent::new(|turn| {
            let item = turn.item_text.clone().unwrap_or_default();
            let number = item_number(&item);
            let command = format!(
                "mkdir -p done && echo '{item}' > done/{number}.txt && sed -i 's/\\[ \\]/[x]/' plimsoll-item.md"
            );
            match turn.assistant_message_count {
                0 => Step::bash_call(command).with_input_tokens(30_000),
                _ => Step::from_text(format!("Done.\n\n{}", turn.promise_line)).with_input_tokens(31_000),
            }
        }).start(&mut world);
        kill_run_at_git_command(&mut world, pattern, 1, *is_after);
        let running = start_with_workers(&world, &["2"]);
        world.write(world.home().join("run.pid"), &running.pid().to_string());
        let killed = running.wait_or_kill_and_panic(RUN_TIMEOUT);
        assert_eq!(killed.code, None, "{pattern}: {killed:?}");
        let finished = resume_run(&world);
        assert_eq!(finished.code, Some(0), "{pattern}: {finished:?}");
        assert_merged_once(&world, &model, &["1", "2"]);
        assert_only_attempts_left(&world, &[]);
    });
}

#[test]
fn a_worker_whose_item_run_is_killed_continues_the_item() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let model = ScriptedAgent::new(|turn| match turn.assistant_message_count {
        0 => write_item_file_step(turn),
        // Its item is ticked when its run is killed.
        _ => write_item_file_step(turn).with_delay(Duration::from_secs(3)),
    })
    .start(&mut world);
    let running = start_with_workers(&world, &["2"]);
    world.wait_until(|| model.main_requests().len() >= 2, "the first has ticked its item");
    let record = worker_record(&world);
    let pid = record["works"][0]["pid"].as_u64().expect("a process").to_string();
    world.command("kill", &["-9", &pid]).run().expect_success();
    let finished = running.wait_or_kill_and_panic(RUN_TIMEOUT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let back = sent_back_reasons(&world);
    assert!(back.len() == 1 && back[0].contains("was ended by signal 9"), "{back:?}");
    assert_merged_once(&world, &model, &["1", "2"]);
    assert_only_attempts_left(&world, &[]);
    assert_eq!(model.main_requests().len(), 4, "its client was followed, and nothing was repeated");
}

/// Returns the run's record of its workers.
fn worker_record(world: &World) -> Value {
    let runs = std::fs::read_dir(world.runs_folder()).expect("runs").flatten();
    world.read_json(
        runs.map(|run| run.path().join("workers.json")).find(|path| path.exists()).expect("a record"),
    )
}

#[test]
fn stop_ends_the_workers_that_a_killed_run_left_running() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let model = ScriptedAgent::new(|turn| write_item_file_step(turn).with_delay(Duration::from_secs(60)))
        .start(&mut world);
    let mut running = start_with_workers(&world, &["2"]);
    world.wait_until(|| model.main_requests().len() >= 2, "both work");
    let status = world.plimsoll(&["status"]).run().expect_success().stdout;
    assert!(status.contains("Workers      worker 1: 1 \"Item 1\": session 1"), "{status}");
    running.kill();
    let run_folders = std::fs::read_dir(world.runs_folder()).expect("runs").flatten();
    let record_path =
        run_folders.map(|run| run.path().join("workers.json")).find(|path| path.exists()).expect("a record");
    let record = world.read_json(record_path);
    let pids: Vec<u64> =
        record["works"].as_array().expect("works").iter().filter_map(|work| work["pid"].as_u64()).collect();
    assert_eq!(pids.len(), 2, "{record}");
    world.plimsoll(&["stop", "--yes"]).run().expect_success();
    let is_gone = |pid: &u64| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    world.wait_until(|| pids.iter().all(is_gone), "the workers end");
    let refused = resume_run(&world);
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&refused.stderr), @r#"the run "Dates" has ended (cancelled) and cannot be resumed"#);
}

#[test]
fn a_subfolder_project_completes_only_if_its_verify_command_passes() {
    let mut world = world_with_plan_and_dates("");
    let subfolder = world.path("pkg");
    world.write("pkg/fix_plan.md", TWO_ITEM_PLAN);
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Plan"]);
    let _model = ScriptedAgent::new(write_item_file_step).start(&mut world);
    let run_arguments = ["run", "--objective", "Do the plan.", "--workers", "2", "--verify"];
    let run_with_verify = |verify: &str| {
        let command_line: Vec<&str> =
            run_arguments.into_iter().chain([verify]).chain(CLIENT_ARGUMENTS).collect();
        world.plimsoll(&command_line).cwd(&subfolder).timeout(RUN_TIMEOUT).run()
    };
    let finished = run_with_verify("test -e done/1.txt && test -e done/2.txt && test -e fix_plan.md");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let state = world.read_json("pkg/.claude/ralph-state.json");
    let branch = state["branch"].as_str().expect("a branch");
    assert_eq!(world.git(&["show", &format!("{branch}:pkg/fix_plan.md")]).matches("- [x]").count(), 2);
    let finished = run_with_verify("test -e done/3.txt");
    assert_eq!(finished.code, Some(7), "{finished:?}");
    let reason = "every item is merged, but `test -e done/3.txt` does not pass on the branch";
    assert!(finished.stdout.contains(reason), "{finished:?}");
}

#[test]
fn the_terminal_shows_a_line_per_worker_and_one_for_the_run() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let _model = ScriptedAgent::new(|turn| write_item_file_step(turn).with_delay(Duration::from_secs(2)))
        .start(&mut world);
    let arguments = ["run", "--objective", "Do the plan.", "--workers", "2", "--", "--allowedTools", "Bash"];
    let terminal = Terminal::start_program_in_project(
        &world,
        find_or_build_bin_dir().join("plimsoll"),
        &arguments,
        100,
        30,
    );
    let screen = terminal.wait_for_text("item 2 \"Item 2\"  session 1");
    assert!(screen.contains("worker 1 ▕") && screen.contains("item 1 \"Item 1\"  "), "{screen}");
    assert!(screen.contains("0/2 items merged"), "{screen}");
    terminal.wait_for_text("Completed: 2 items merged");
}

#[test]
fn a_resumed_run_continues_with_the_workers_of_the_killed_one() {
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item 1\n- [ ] Item 2\n");
    let model = ScriptedAgent::new(|turn| match turn.assistant_message_count {
        0 => write_item_file_step(turn).with_delay(Duration::from_secs(3)),
        _ => write_item_file_step(turn),
    })
    .start(&mut world);
    let command_line: Vec<&str> = ["run", "--objective", "Do the plan.", "--workers", "2"]
        .into_iter()
        .chain(CLIENT_ARGUMENTS)
        .collect();
    let mut running = world.plimsoll(&command_line).timeout(RUN_TIMEOUT).spawn();
    world.wait_until(|| model.main_requests().len() >= 2, "both work");
    running.kill();
    let resumed = world.plimsoll(&["run", "--resume"]).timeout(RUN_TIMEOUT).run();
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_merged_once(&world, &model, &["1", "2"]);
    assert_only_attempts_left(&world, &[]);
    assert_eq!(model.main_requests().len(), 4, "no session was repeated");
}

/// A worker's process holds its item: however long it is frozen, nobody else takes the item, not even a run that took
/// over.
#[test]
fn a_frozen_worker_that_continues_later_merges_its_item_once() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let model = ScriptedAgent::new(|turn| match turn.assistant_message_count {
        0 => write_item_file_step(turn).with_delay(Duration::from_secs(3)),
        _ => write_item_file_step(turn),
    })
    .start(&mut world);
    let mut running = start_with_workers(&world, &["2"]);
    world.wait_until(|| model.main_requests().len() >= 2, "both work");
    let pid = worker_record(&world)["works"][0]["pid"].as_u64().expect("a process").to_string();
    let signal = |name: &str| {
        let sent = world.command("kill", &[name, &pid]).run();
        assert_eq!(sent.code, Some(0), "{name}: {sent:?} {:#?}", read_journal(&world));
    };
    running.kill();
    // Only after its death: the system sends a hangup to a stopped process whose parent dies.
    world.wait_until(|| !running.is_running(), "the first process is dead");
    let resumed = world.plimsoll(&["run", "--resume"]).spawn();
    signal("-STOP");
    world.wait_until(|| events_named(&read_journal(&world), "landed").len() == 1, "the other item lands");
    assert!(read_merged_file(&world, "done/2.txt").contains("Item 2"));
    signal("-CONT");
    let finished = resumed.wait_or_kill_and_panic(RUN_TIMEOUT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_merged_once(&world, &model, &["1", "2"]);
    assert_only_attempts_left(&world, &[]);
    assert_eq!(model.main_requests().len(), 4, "no session was repeated");
}

// ---- user commands ----

pub(crate) fn start_with_workers(world: &World, arguments: &[&str]) -> RunningProgram {
    let run_arguments = ["run", "--objective", "Do the plan.", "--name", "Dates", "--workers"];
    let command_line: Vec<&str> =
        run_arguments.iter().chain(arguments).chain(&CLIENT_ARGUMENTS).copied().collect();
    world.plimsoll(&command_line).timeout(RUN_TIMEOUT).spawn()
}

pub(crate) fn resume_run(world: &World) -> FinishedProgram {
    world.plimsoll(&["run", "--resume"]).timeout(RUN_TIMEOUT).run()
}

#[test]
fn one_ctrl_c_lets_sessions_finish_and_two_end_them() {
    run_cases_in_parallel(&[1, 2], |interrupt_count: &usize| {
        let interrupt_count = *interrupt_count;
        let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
        let model = ScriptedAgent::new(move |turn| {
            let is_slow = turn.assistant_message_count == 0
                && item_number(turn.item_text.as_deref().unwrap_or_default()) == "1";
            write_item_file_step(turn).with_delay(Duration::from_secs(if is_slow { 3 } else { 0 }))
        })
        .start(&mut world);
        // The second item waits for the first, so that only one session runs at a time.
        world.write("fix_plan.md", &TWO_ITEM_PLAN.replace("Item 2", "Item 2 (after: 1)"));
        world.git(&["commit", "-qam", "Order"]);
        let mut running = start_with_workers(&world, &["2"]);
        world.wait_until(|| !model.main_requests().is_empty(), "the first works");
        for _ in 0..interrupt_count {
            running.interrupt();
            std::thread::sleep(Duration::from_millis(300));
        }
        let stopped = running.wait_or_kill_and_panic(RUN_TIMEOUT);
        assert_eq!(stopped.code, Some(130), "{interrupt_count}: {stopped:?}");
        let merged_count = read_merged_file(&world, "fix_plan.md").matches("- [x]").count();
        assert_eq!(merged_count, usize::from(interrupt_count == 1), "{interrupt_count}: {stopped:?}");
        if interrupt_count == 2 {
            world.plimsoll(&["stop", "--yes"]).run().expect_success();
            let refused = resume_run(&world);
            assert!(refused.stderr.contains("has ended (cancelled)"), "{refused:?}");
            return;
        }
        let finished = resume_run(&world);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_merged_once(&world, &model, &["1", "2"]);
        assert_only_attempts_left(&world, &[]);
    });
}

#[test]
fn a_parallel_run_that_cannot_work_is_refused_with_the_reason() {
    let refusal_message = |world: &World, arguments: &[&str]| {
        let finished = run_with_workers(world, arguments);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(!world.exists(STATE_PATH), "{finished:?}");
        world.replace_varying_parts_with_placeholders(&finished.stderr)
    };
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let _model = ScriptedAgent::new(write_item_file_step).start(&mut world);
    let options = [
        ("--pack", "--pack"),
        ("--memory", "--memory"),
        ("--branch=night", "--branch"),
        ("--commit=off", "--commit off"),
    ];
    for (option, name) in options {
        let expected = format!("error: {name} cannot be used with --workers yet: leave one of them out\n");
        assert_eq!(refusal_message(&world, &["2", option]), expected);
    }
    world.write("src/dates.txt", "changed\n");
    insta::assert_snapshot!(refusal_message(&world, &["2"]), @"error: there are uncommitted changes, which workers would not see: commit or stash them, then run this again");
    world.git(&["checkout", "-q", "."]);
    world.git(&["checkout", "-q", "--detach"]);
    insta::assert_snapshot!(refusal_message(&world, &["2"]), @"error: HEAD is detached, so there is no branch to merge the work into: check one out first (git switch BRANCH)");
    world.git(&["checkout", "-q", "main"]);
    world.write(".gitmodules", "");
    world.git(&["add", ".gitmodules"]);
    insta::assert_snapshot!(refusal_message(&world, &["2"]), @"error: this repository has submodules, which worktrees do not have: run it without --workers");
    world.git(&["rm", "-qf", ".gitmodules"]);
    world.write("plimsoll-item.md", "mine\n");
    world.git(&["add", "plimsoll-item.md"]);
    insta::assert_snapshot!(refusal_message(&world, &["2"]), @"error: git tracks a file plimsoll-item.md, which workers need for their plan: rename it and commit");
    world.git(&["rm", "-qf", "plimsoll-item.md"]);
    std::fs::write(world.path(".git/shallow"), world.git(&["rev-parse", "HEAD"]) + "\n").expect("a file");
    insta::assert_snapshot!(refusal_message(&world, &["2"]), @"error: this is a shallow clone, in which branches cannot be merged: git fetch --unshallow");
    std::fs::remove_file(world.path(".git/shallow")).expect("it was there");
    std::fs::remove_file(world.path("fix_plan.md")).expect("it was there");
    world.git(&["commit", "-qam", "No plan"]);
    insta::assert_snapshot!(refusal_message(&world, &["2"]), @"error: workers need a plan, whose items they share: write fix_plan.md, or name one with --todo");
    let plain_world = World::without_git();
    insta::assert_snapshot!(refusal_message(&plain_world, &["2", "--client", "/bin/true"]), @"error: workers need a git repository, but [PROJECT] is not in one: git init, then commit");
}

#[test]
fn a_usage_limit_pauses_all_workers_and_a_second_run_is_refused() {
    let mut world = world_with_subscription(TWO_ITEM_PLAN);
    // Git does not track the plan.
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
            return usage_limit_error(now.as_secs() + 4);
        }
        let item = turn.item_text.clone().unwrap_or_default();
        do_item_step(
            turn,
            &format!(
                "test -s .env && test $PLIMSOLL_WORKER -ge 1 && test -e $(git rev-parse --git-dir)/ready && mkdir -p done && echo '{item}' > done/{}.txt",
                item_number(&item)
            ),
        )
    }).with_real_client_in(&[1, 2]).start(&mut world);
    let running = start_with_workers(
        &world,
        &["2", "--setup", "touch $(git rev-parse --git-dir)/ready", "--deliver", "merge"],
    );
    world.wait_until(|| !model.main_requests().is_empty(), "the first works");
    let refused = run_with_workers(&world, &["2"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let (reason, _) = refused.stderr.split_once(", session ").expect("the session");
    insta::assert_snapshot!(
        world.replace_varying_parts_with_placeholders(reason),
        @r#"error: another `plimsoll run` is active in this project: the run "Dates" ([ID])"#
    );
    world.wait_until(|| world.read_json(STATE_PATH)["status"] == "paused", "all pause");
    let activity = crate::status_figures::read_consistent_activity(&world);
    assert_eq!(
        (&activity["state"], &activity["until"].is_string()),
        (&"waiting".into(), &true),
        "{activity}"
    );
    let summary = activity["summary"].as_str().unwrap_or_default();
    assert!(summary.starts_with("waiting until ") && summary.contains("usage limit"), "{activity}");
    let finished = running.wait_or_kill_and_panic(RUN_TIMEOUT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("paused until"), "{finished:?}");
    assert!(events_named(&read_journal(&world), "sent_back").is_empty());
    assert_eq!(world.read("fix_plan.md").matches("- [x]").count(), 2);
    assert!(world.exists("done/1.txt") && world.exists("done/2.txt"), "{finished:?}");
    assert!(finished.stdout.contains("the merged work is on `main`"), "{finished:?}");
    assert_only_attempts_left(&world, &[]);
}

#[test]
fn a_hostile_session_ticks_no_other_item_and_runs_no_git_hook() {
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item 1\n- [ ] Item 2 (after: 1)\n");
    let trap = world.home().join("trap");
    let hook_command = format!(
        "printf '#!/bin/sh\\ntouch {}\\n' > h/.git/hooks/post-checkout; chmod +x h/.git/hooks/*; for h in pre-commit post-index-change reference-transaction; do cp h/.git/hooks/post-checkout h/.git/hooks/$h; done",
        trap.display()
    );
    let model = ScriptedAgent::new(move |turn| {
        let item = turn.item_text.clone().unwrap_or_default();
        match (item_number(&item).as_str(), turn.request_contains("of another repository")) {
            // It ticks everything in the shared plan, and commits its own plan.
            ("1", _) => do_item_step(
                turn,
                "sed -i 's/\\[ \\]/[x]/' fix_plan.md; git add -f plimsoll-item.md; mkdir -p done; echo 1 > done/1.txt",
            ),
            // Its worktree leads into another repository.
            ("2", false) => match turn.assistant_message_count {
                0 => Step::bash_call(format!(
                    "{} && git init -q h && {hook_command}; git -C h commit -q --allow-empty -m x; rm .git && mv h/.git .git",
                    tick_and_commit_command(&item)
                )),
                _ => Step::from_text(format!("Done.\n\n{}", turn.promise_line)),
            },
            _ => write_item_file_step(turn),
        }
    }).start(&mut world);
    let finished = run_with_workers(&world, &["2"]);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    assert!(!trap.exists(), "{finished:?}");
    assert!(finished.stdout.contains("belongs to another repository"), "{finished:?}");
    let plan = read_merged_file(&world, "fix_plan.md");
    assert_eq!(plan, "# Plan\n\n- [x] Item 1\n- [ ] Item 2 (after: 1)");
    let files = world.git(&["ls-tree", "-r", "--name-only", &target_branch(&world)]);
    assert!(files.contains("done/1.txt") && !files.contains("plimsoll-item.md"), "{files}");
    assert!(!model.main_requests().is_empty());
}

#[test]
fn the_daily_cost_limit_pauses_all_workers_until_it_is_raised() {
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item 1\n- [ ] Item 2\n- [ ] Item 3\n");
    let model =
        ScriptedAgent::new(write_item_file_step).with_real_client().with_lifelike_delay().start(&mut world);
    // A session costs a cent and a half, so nothing is left after two of them.
    let paused = run_with_workers(&world, &["2", "--no-wait", "--max-cost-per-day", "0.03"]);
    assert_eq!(paused.code, Some(6), "{paused:?}");
    assert!(paused.stdout.contains("of $0.03 a day spent by all runs together"), "{paused:?}");
    let state = world.read_json(STATE_PATH);
    assert_eq!(state["status"], "paused", "{paused:?}");
    assert!(state["paused_until"].is_string(), "{state}");
    let requests = model.main_requests().len();
    let still_paused = world.plimsoll(&["run", "--resume", "--no-wait"]).timeout(RUN_TIMEOUT).run();
    assert_eq!((still_paused.code, model.main_requests().len()), (Some(6), requests), "{still_paused:?}");
    let resumed = world
        .plimsoll(&["run", "--resume", "--no-wait", "--max-cost-per-day", "9"])
        .timeout(RUN_TIMEOUT)
        .run();
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(events_named(&read_journal(&world), "sent_back").is_empty(), "it costs no try: {resumed:?}");
    assert_merged_once(&world, &model, &["1", "2", "3"]);
    assert_only_attempts_left(&world, &[]);
}

/// Each session spends its worker's whole share and ends without finishing its item: then both wait, but not for each
/// other.
#[test]
fn a_run_ends_when_its_workers_have_spent_the_budget() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let model = ScriptedAgent::new(|turn| match turn.assistant_message_count {
        0 => Step::bash_call("echo part >> part.txt").with_input_tokens(30_000),
        _ => Step::from_text("There is more to do.").with_input_tokens(31_000),
    })
    .with_real_client()
    .with_lifelike_delay()
    .start(&mut world);
    let finished = run_with_workers(&world, &["2", "--no-wait", "--max-cost", "0.04"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.stdout.contains("has used its share of the budget"), "{finished:?}");
    assert_eq!(world.read_json(STATE_PATH)["status"], "budget", "{finished:?}");
    assert!(!model.main_requests().is_empty());
}

#[test]
fn killed_worker_sessions_count_toward_the_budget() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let _model = ScriptedAgent::new(|turn| {
        let step = match turn.assistant_message_count {
            0 => Step::bash_call("echo part >> part.txt"),
            _ => Step::bash_call("sleep 0.5; kill -9 $PPID"),
        };
        step.with_input_token_breakdown(10_000, 0, 0).with_output_tokens(0)
    })
    .with_lifelike_delay()
    .start(&mut world);
    // A session costs eight cents; each worker may spend half of the budget.
    let run_arguments =
        ["run", "--objective", "Do the plan.", "--workers", "2", "--no-wait", "--max-cost", "0.30"];
    // With a budget of its own the client does not end the session that exceeds ours.
    let client_arguments = ["--", "--model", "opus", "--allowedTools", "Bash", "--max-budget-usd", "5"];
    let finished =
        world.plimsoll(&[&run_arguments[..], &client_arguments[..]].concat()).timeout(RUN_TIMEOUT).run();
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let state = world.read_json(STATE_PATH);
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
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let model =
        ScriptedAgent::new(write_item_file_step).with_real_client().with_lifelike_delay().start(&mut world);
    let finished = run_with_workers(&world, &["2", "--verify", "true", "--max-cost", "9"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_merged_once(&world, &model, &["1", "2"]);
    assert_only_attempts_left(&world, &[]);
}

// ---- random kills ----

/// Pseudorandom numbers, the same for the same seed.
struct SeededRandom(u64);

impl SeededRandom {
    fn next_below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Returns the processes of this world with their command lines: only they have its HOME.
fn world_processes(world: &World) -> Vec<(u32, String)> {
    let home = format!("HOME={}", world.home().display());
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_of_world = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
    };
    let with_command = |pid: u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        (pid, String::from_utf8_lossy(&line).replace('\0', " "))
    };
    pids.filter(is_of_world).map(with_command).filter(|(_, command)| !command.is_empty()).collect()
}

fn kill_process(world: &World, pid: u32) {
    // It may have ended already.
    world.command("kill", &["-9", &pid.to_string()]).run();
}

/// Does conflicting items and items that fail together, without doing anything twice; asks first if the item says so.
fn repeatable_item_step(turn: &AgentTurn<'_>) -> Step {
    let Some(item) = turn.item_text.clone() else {
        return Step::from_text(format!("All done.\n\n{}", turn.promise_line));
    };
    let number = item_number(&item);
    if item.starts_with("Ask") && !turn.request_contains("Answer: Use port 8042") {
        let question = turn.promise_line.replace("COMPLETE", "BLOCKED").replace("</", " which port?</");
        return Step::from_text(format!("I cannot go on.\n\n{question}"));
    }
    let write_file_command = format!("mkdir -p done && echo '{item}' > done/{number}.txt");
    let command = match number.as_str() {
        "1" | "2" => {
            format!("grep -qx '{item}' src/dates.txt || echo '{item}' >> src/dates.txt; {write_file_command}")
        }
        "3" | "4" => {
            format!("{write_file_command}; test ! -e done/3.txt || test ! -e done/4.txt || touch both.txt")
        }
        _ => write_file_command,
    };
    do_item_step(turn, &format!("{command}; git add -A; git commit -qm 'Finish {item}' || true"))
        .with_delay(Duration::from_millis(300))
}

/// A plan, the number of its workers, and how often something is killed.
struct KillScenario {
    seed: u64,
    plan: String,
    item_count: usize,
    workers: &'static str,
    kill_count: usize,
}

impl KillScenario {
    /// Eight items: two that conflict, two that fail together, and one that waits for another.
    fn eight_items(seed: u64) -> KillScenario {
        let dependency = |n| if n == 7 { " (after: 5)" } else { "" };
        let plan = (1..=8).map(|n| format!("- [ ] Item {n}{}\n", dependency(n))).collect();
        KillScenario { seed, plan, item_count: 8, workers: "3", kill_count: 6 }
    }

    /// Twenty-four items: also one that asks a question, with others that wait for it.
    fn twenty_four_items(seed: u64) -> KillScenario {
        let item_text = |n| match n {
            6 => "Ask, then item 6".to_owned(),
            7 => "Item 7 (after: 5)".to_owned(),
            12 => "Item 12 (after: 6, 8)".to_owned(),
            20 => "Item 20 (after: 12)".to_owned(),
            n => format!("Item {n}"),
        };
        let plan = (1..=24).map(|n| format!("- [ ] {}\n", item_text(n))).collect();
        KillScenario { plan, item_count: 24, workers: "4", kill_count: 4, ..KillScenario::eight_items(seed) }
    }
}

/// Kills processes at random moments, resumes the run if it is gone, answers its question, and lets the rest finish.
fn run_with_random_kills(scenario: &KillScenario) {
    let started_at = std::time::Instant::now();
    let mut world = world_with_plan_and_dates(&format!("# Plan\n\n{}", scenario.plan));
    let model = ScriptedAgent::new(repeatable_item_step).start(&mut world);
    let mut random = SeededRandom(scenario.seed);
    let verify = "test ! -e done/3.txt || test ! -e done/4.txt || test -e both.txt";
    let mut running = start_with_workers(&world, &[scenario.workers, "--verify", verify]);
    world.wait_until(|| world.exists(STATE_PATH), "a run is there");
    let mut event_log = Vec::new();
    for _ in 0..scenario.kill_count {
        std::thread::sleep(Duration::from_millis(300 + random.next_below(2_500)));
        // Hooks are spared: a hook that does not run is a fault of the installation and ends the run.
        let is_worker_process = |(pid, command): &(u32, String)| {
            *pid != running.pid() && (command.contains("plimsoll run ") || command.contains("claude "))
        };
        let worker_processes: Vec<(u32, String)> =
            world_processes(&world).into_iter().filter(is_worker_process).collect();
        match random.next_below(3) {
            0 => running.kill(),
            1 => {
                running.kill();
                worker_processes.iter().for_each(|(pid, _)| kill_process(&world, *pid));
            }
            _ => {
                let count = worker_processes.len().max(1) as u64;
                let victim = worker_processes.get(random.next_below(count) as usize);
                event_log.extend(victim.map(|(_, command)| command.clone()));
                victim.iter().for_each(|(pid, _)| kill_process(&world, *pid));
            }
        }
        if !running.is_running() {
            running =
                world.plimsoll(&["run", "--resume", "--reset-breaker"]).timeout(RANDOM_KILLS_TIMEOUT).spawn();
        }
    }
    let mut finished = running.wait_or_kill_and_panic(RANDOM_KILLS_TIMEOUT);
    while finished.code != Some(0) && event_log.len() < scenario.kill_count + 3 {
        event_log.push(format!("{finished:?}"));
        if finished.code == Some(7) {
            world.plimsoll(&["status", "--answer", "1", "Use port 8042"]).run().expect_success();
        }
        finished =
            world.plimsoll(&["run", "--resume", "--reset-breaker"]).timeout(RANDOM_KILLS_TIMEOUT).run();
    }
    let details = format!("seed {}: {finished:#?} {event_log:#?}", scenario.seed);
    assert!(finished.code == Some(0), "{details}");
    assert_all_merged(&world, scenario, &details);
    assert!(!model.main_requests().is_empty());
    let iteration_count = world.read_json(STATE_PATH)["iteration"].as_u64().unwrap_or_default();
    // A row for the table of scripts/worker-nights.sh.
    println!(
        "| {} | {} | {:.0} | {} | {iteration_count} |",
        scenario.seed,
        scenario.item_count,
        started_at.elapsed().as_secs_f64(),
        scenario.kill_count
    );
}

/// Asserts that each item was merged once, no line is lost, the branch never ended in a failing commit, and nothing is
/// left behind.
fn assert_all_merged(world: &World, scenario: &KillScenario, details: &str) {
    let branch = target_branch(world);
    for number in 1..=scenario.item_count {
        let commits = world.git(&["log", "--format=%s", &branch, "--", &format!("done/{number}.txt")]);
        assert_eq!(commits.lines().count(), 1, "item {number}: {commits} {details}");
    }
    let dates = read_merged_file(world, "src/dates.txt");
    for item in ["Item 1", "Item 2"] {
        assert_eq!(dates.lines().filter(|line| *line == item).count(), 1, "{item}: {details}");
    }
    assert_eq!(
        read_merged_file(world, "fix_plan.md").matches("- [x]").count(),
        scenario.item_count,
        "{details}"
    );
    assert_eq!(world.git(&["worktree", "list"]).lines().count(), 1, "{details}");
    assert!(!details.contains("stays at"), "{details}");
    let leftovers: Vec<_> =
        std::fs::read_dir(worktree_folder(world)).into_iter().flatten().flatten().collect();
    assert!(leftovers.is_empty(), "{leftovers:?} {details}");
    world.plimsoll(&["turns", "verify"]).run().expect_success();
    // The reflog has the tips of the branch; commits between two of them were never its tip.
    for commit in world.git(&["log", "-g", "--format=%H", &branch]).lines() {
        let has = |file: &str| {
            let finished = world.command("git", &["cat-file", "-e", &format!("{commit}:{file}")]).run();
            finished.code == Some(0)
        };
        let is_failing = has("done/3.txt") && has("done/4.txt") && !has("both.txt");
        assert!(!is_failing, "{commit}: {details}");
    }
    let remaining_processes = world_processes(world);
    assert!(remaining_processes.is_empty(), "{remaining_processes:?} {details}");
}

#[test]
fn whatever_is_killed_each_item_is_merged_exactly_once() {
    // To play more of them: PLIMSOLL_SEEDS=100..140.
    let seeds = std::env::var("PLIMSOLL_SEEDS").unwrap_or_else(|_| "1..3".to_owned());
    let (first, last) = seeds.split_once("..").expect("FIRST..LAST");
    let seeds: Vec<u64> = (first.parse().expect("a number")..last.parse().expect("a number")).collect();
    for pair in seeds.chunks(2) {
        run_cases_in_parallel(pair, |seed| run_with_random_kills(&KillScenario::eight_items(*seed)));
    }
}

#[test]
fn of_twenty_four_items_each_is_merged_once_despite_random_kills() {
    run_with_random_kills(&KillScenario::twenty_four_items(24));
}

/// When a model promises that its work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PromiseTiming {
    /// At the end of each session.
    AtOnce,
    /// Only when a session has nothing else left to do.
    WhenAskedAgain,
    Never,
}

/// Time, sessions and cost of a run of twelve independent items.
struct RunMeasurements {
    elapsed: Duration,
    sessions: usize,
    cost_usd: f64,
    /// How often merged work was verified.
    verify_count: usize,
}

/// Runs twelve items with a model that takes this long for each response, and a verify command that takes this long on
/// merged work.
fn run_twelve_items(
    worker_count: &str,
    response_delay: Duration,
    verify_duration: Duration,
    promise_timing: PromiseTiming,
) -> RunMeasurements {
    let plan: String = (1..=12).map(|n| format!("- [ ] Item {n}\n")).collect();
    let mut world = world_with_plan_and_dates(&format!("# Plan\n\n{plan}"));
    // A single worker works in the user's own tree, on the plan itself.
    let plan_file = if worker_count == "1" { "fix_plan.md" } else { "plimsoll-item.md" };
    let model = ScriptedAgent::new(move |turn| {
        let item = turn.item_text.clone().unwrap_or_default();
        let is_asked_again = turn.request_contains("are ticked. Check all of the work");
        let is_promised = match promise_timing {
            PromiseTiming::AtOnce => true,
            PromiseTiming::WhenAskedAgain => is_asked_again,
            PromiseTiming::Never => false,
        };
        let step = match turn.assistant_message_count {
            0 if !is_asked_again => {
                let tick = tick_and_commit_command(&item).replace("plimsoll-item.md", plan_file);
                Step::bash_call(format!(
                    "mkdir -p done && echo '{item}' > done/{}.txt && {tick}",
                    item_number(&item)
                ))
            }
            _ if is_promised => Step::from_text(format!("The item is done.\n\n{}", turn.promise_line)),
            _ => Step::from_text("The item is done."),
        };
        step.with_input_tokens(30_000).with_delay(response_delay)
    })
    .with_real_client()
    .start(&mut world);
    let seconds = verify_duration.as_secs();
    let verify_command = format!("case $PWD in */merge) echo x >> ~/verified; sleep {seconds};; esac");
    let finished = run_with_workers(&world, &[worker_count, "--verify", &verify_command]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let sessions =
        model.main_requests().iter().filter(|request| request.assistant_message_count() == 0).count();
    assert!((12..=14).contains(&sessions), "{sessions} sessions: {finished:?}");
    let verified = std::fs::read_to_string(world.home().join("verified")).unwrap_or_default();
    RunMeasurements {
        elapsed: finished.elapsed,
        sessions,
        cost_usd: world.read_json(STATE_PATH)["cost_usd"].as_f64().unwrap_or_default(),
        verify_count: verified.lines().count(),
    }
}

/// Not part of the usual tests: scripts/worker-nights.sh runs it, with nothing beside it.
#[test]
fn four_workers_against_one_are_faster_on_twelve_items() {
    let mut base_cost = None;
    for (answer, promises) in [
        (300, PromiseTiming::AtOnce),
        (3_000, PromiseTiming::AtOnce),
        (3_000, PromiseTiming::WhenAskedAgain),
        (3_000, PromiseTiming::Never),
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
        let cost = *base_cost.get_or_insert(four.cost_usd);
        assert!(four.cost_usd <= 1.05 * cost, "${} and ${cost}", four.cost_usd);
    }
    // The first run of the command is before the first session: it records what passes.
    let response_delay = Duration::from_millis(300);
    let verified =
        run_twelve_items("4", response_delay, Duration::from_secs(5), PromiseTiming::AtOnce).verify_count;
    let merge_verifications = verified - 1;
    println!("12 items merged by {merge_verifications} runs of a verify command of 5 s");
    assert!(merge_verifications <= 6, "{merge_verifications}");
}

/// A client that is ended takes its git along, which leaves the index locked.
#[test]
fn an_index_lock_left_by_a_killed_git_costs_no_attempt() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let model = ScriptedAgent::new(|turn| {
        match (turn.item_text.as_deref().map(item_number).as_deref(), turn.assistant_message_count) {
            (Some("1"), 0) => {
                Step::bash_call(format!("mkdir -p done && echo 1 > done/1.txt && {TICK_AND_LOCK_INDEX}"))
                    .with_input_tokens(30_000)
            }
            _ => write_item_file_step(turn),
        }
    })
    .start(&mut world);
    let finished = run_with_workers(&world, &["2"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(events_named(&read_journal(&world), "sent_back").is_empty(), "{finished:?}");
    assert_merged_once(&world, &model, &["1", "2"]);
    assert_only_attempts_left(&world, &[]);
}

/// The second attempt at an item is killed before it has a state of its own. The worktree still has the state of the
/// first attempt, which was done.
#[test]
fn the_result_of_an_earlier_attempt_does_not_count_for_the_next_one() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let model = ScriptedAgent::new(repeatable_item_step).start(&mut world);
    let running = start_with_workers(&world, &["2"]);
    world.wait_until(|| world.exists(".claude/plimsoll/journal.jsonl"), "a journal");
    // Both add a line at the same place, so one of them is sent back.
    world.wait_until(|| events_named(&read_journal(&world), "sent_back").len() == 1, "a conflict");
    let kill_second_attempt = || {
        let item_processes = world_processes(&world)
            .into_iter()
            .filter(|(_, command)| command.contains("--todo plimsoll-item"));
        item_processes.for_each(|(pid, _)| kill_process(&world, pid));
        events_named(&read_journal(&world), "worker_ended").len() >= 3
    };
    world.wait_until(kill_second_attempt, "the second attempt was killed as it began");
    let finished = running.wait_or_kill_and_panic(RUN_TIMEOUT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let dates = read_merged_file(&world, "src/dates.txt");
    for item in ["Item 1", "Item 2"] {
        assert_eq!(dates.lines().filter(|line| *line == item).count(), 1, "{item}: {dates} {finished:?}");
    }
    assert!(!model.main_requests().is_empty());
}

#[test]
fn commits_by_the_user_during_a_run_are_kept_on_both_branches() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let model = ScriptedAgent::new(|turn| {
        write_item_file_step(turn).with_delay(Duration::from_secs(if turn.assistant_message_count == 0 {
            2
        } else {
            0
        }))
    })
    .start(&mut world);
    let running = start_with_workers(&world, &["2", "--deliver", "merge"]);
    world.wait_until(|| !model.main_requests().is_empty(), "the first works");
    world.write("README.md", "Changed by the user.\n");
    world.git(&["commit", "-qam", "On main"]);
    let branch = target_branch(&world);
    let tree = format!("{branch}^{{tree}}");
    let commit = world.git(&["commit-tree", "-p", &branch, "-m", "On the run's branch", &tree]);
    world.git(&["update-ref", &format!("refs/heads/{branch}"), &commit]);
    let finished = running.wait_or_kill_and_panic(RUN_TIMEOUT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        finished.stdout.contains("nothing was delivered: `main` has moved since the run began"),
        "{finished:?}"
    );
    assert_eq!(world.git(&["log", "--format=%s", "-1", "main"]), "On main");
    let subjects = world.git(&["log", "--format=%s", &branch]);
    assert!(subjects.contains("On the run's branch") && subjects.contains("Finish Item 2"), "{subjects}");
    assert_merged_once(&world, &model, &["1", "2"]);
    assert_only_attempts_left(&world, &[]);
}
