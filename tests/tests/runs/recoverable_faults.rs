//! What a night meets beside the work itself: a client that is being updated, a lock that is held, a repository
//! made anew, a list that is emptied, endings that leave the user's own changes alone.

use crate::resume::harness::section;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::story::Turn;
use plimsoll_testkit::world::World;
use plimsoll_tests::{
    ITEMS, LIFELIKE, ScriptedAgent, events, first_request_of, honest, journal, last_request_of, markers, run,
    side_by_side, world,
};
use serde_json::json;

const STATE: &str = ".claude/ralph-state.json";
const COMMIT: &str = "date +%N >> work.txt && git add -A && git commit -qm Work";

fn script(world: &World, name: &str, text: &str) -> String {
    let path = world.home().join(name);
    world.write(&path, text);
    let path = path.display().to_string();
    world.command("chmod", &["+x", &path]).run().expect_success();
    path
}

/// The honest agent, which has done something else first.
fn honest_after_one(turn: &Turn<'_>) -> Step {
    let (item, promise) = (turn.item.clone(), turn.promise.clone());
    honest(&Turn { request: turn.request, step: turn.step - 1, item, iteration: turn.iteration, promise })
}

/// It comes back only when it has been missed.
const UPDATE: &str = r#"#!/bin/sh
mv ~/client.sh ~/old.sh
until grep -q '"event":"fault"' .claude/plimsoll/journal.jsonl; do sleep 0.1; done
mv ~/old.sh ~/client.sh
"#;

#[test]
fn a_client_that_is_gone_for_a_moment_does_not_end_the_night() {
    let mut world = world(ITEMS);
    let client = script(&world, "client.sh", "#!/bin/sh\nexec claude \"$@\"\n");
    script(&world, "update.sh", UPDATE);
    let _model = ScriptedAgent::new(|turn| {
        match (turn.iteration, turn.step) {
            (1, 0) => Step::bash("setsid nohup ~/update.sh > /dev/null 2>&1 &"),
            (1, _) => honest_after_one(turn),
            _ => honest(turn),
        }
        .delay(LIFELIKE)
    })
    .start(&mut world);
    let finished = run(&world, &["--client", &client]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    // The wait is a setting, which the comparison must see.
    let stdout = finished.stdout.replace("again in 3 s", "again in three seconds");
    let fault = stdout.lines().find(|line| line.contains("trying again")).unwrap_or_default();
    insta::assert_snapshot!(world.stable_text(fault), @"   cannot start [HOME]/client.sh: No such file or directory (os error 2); trying again in three seconds");
    let journal = journal(&world);
    assert!(!events(&journal, "fault").is_empty(), "the journal tells of it");
    assert_eq!(world.json(STATE)["iteration"], 3, "nothing was counted twice");
}

#[test]
fn a_fault_at_the_first_step_is_told_at_once_and_leaves_the_run_paused_with_the_reason() {
    let mut world = world(ITEMS);
    let _model = ScriptedAgent::new(honest).start(&mut world);
    let text = "#!/bin/sh\n[ \"$1\" = --version ] && { rm ~/client.sh; exec claude --version; }\nexit 9\n";
    let client = script(&world, "client.sh", text);
    let finished = run(&world, &["--client", &client]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let state = world.json(STATE);
    assert_eq!(state["status"], "paused");
    assert!(state["last_verdict"]["reason"].as_str().is_some_and(|reason| reason.contains("client.sh")));
    // Wide enough for the path.
    let status = world.plimsoll(&["status"]).env("COLUMNS", "240").run();
    insta::assert_snapshot!(world.stable_text(&status.stdout), @r#"
    Dates ([ID])
    Status       paused: cannot start [HOME]/client.sh: No such file or directory (os error 2)
    Current item "Item one", session 1
    Context      ? (nothing has been answered yet, or the transcript cannot be read)
    Items        0 of 3 done, 3 open
      [ ] Item one
      [ ] Item two
      [ ] Item three
    Sessions     1 of at most 50
    Cost         $0.00, 0 tokens
    Time         started [TIME], [DURATION] ago
    Next         fix the cause, then: plimsoll run --resume
    More         plimsoll report, plimsoll log, or .claude/plimsoll/journal.jsonl; recorded: [SIZE]
    "#);
    let resumed = world.plimsoll(&["run", "--resume", "--client", "claude"]).run();
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
}

#[test]
fn a_repository_made_anew_does_not_let_a_second_run_begin() {
    let mut world = world(ITEMS);
    let again = "rm -rf .git && git init -q -b main && git config user.email a@b && git config user.name n && git add -A && git commit -qm Anew; env -u CLAUDECODE plimsoll run --resume; plimsoll status";
    script(&world, "again.sh", &format!("#!/bin/sh\n{again}\n"));
    let model = ScriptedAgent::new(|turn| {
        match (turn.iteration, turn.step) {
            (1, 0) => Step::bash("sh ~/again.sh"),
            (1, _) => honest_after_one(turn),
            _ => honest(turn),
        }
        .delay(LIFELIKE)
    })
    .start(&mut world);
    let finished = run(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let seen = last_request_of(&model, 1);
    let seen = &seen[seen.len().saturating_sub(3_000)..];
    assert!(seen.contains("another `plimsoll run` is active"), "{seen}");
    assert!(!seen.contains("its `plimsoll run` has ended"), "{seen}");
    assert_eq!(events(&journal(&world), "spawned").len(), 3);
}

/// What a prompt says of the session's item, without the steps to take.
fn item_of_prompt(prompt: &str) -> &str {
    section(prompt, "## Your item").split("\n\n1. ").next().unwrap_or_default()
}

#[test]
fn an_emptied_list_comes_back_and_one_that_lost_an_item_is_told_of_it() {
    let mut world = world(ITEMS);
    let model = ScriptedAgent::new(|turn| {
        match (turn.iteration, turn.step) {
            (1, 0) => Step::bash("echo 'Nothing left to do.' > fix_plan.md"),
            (1, _) => Step::text("All gone."),
            (2, 0) => Step::bash(format!("{COMMIT}; sed -i '/Item two/d' fix_plan.md")),
            (2, _) => Step::text("Tidied up."),
            (3, 0) => Step::bash("echo '- [ ] Item two' >> fix_plan.md"),
            (3, _) => Step::text("Put back."),
            _ => honest(turn),
        }
        .delay(LIFELIKE)
    })
    .start(&mut world);
    let finished = run(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let second = first_request_of(&model, 2);
    insta::assert_snapshot!(item_of_prompt(&second), @"
    ## Your item

    > Item one

    It is the first open item of `fix_plan.md` (3 of 3 items open).
    ");
    assert!(world.read("fix_plan.md").contains("Nothing left to do."), "what was written there is not lost");
    let third = first_request_of(&model, 3);
    insta::assert_snapshot!(item_of_prompt(&third), @"
    ## Your item

    > Item one

    It is the first open item of `fix_plan.md` (2 of 2 items open).

    These items were in `fix_plan.md` and are gone, unticked. First put each back as a `- [ ]` line, or as `- [x]` if it is done:

    - Item two
    ");
    assert_eq!(world.json(STATE)["completed_items"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_session_that_never_began_leaves_the_persons_changes_uncommitted() {
    let mut world = world(ITEMS);
    world.write("notes.txt", "mine\n");
    world.write("src/dates.txt", "mine too\n");
    let before = world.git(&["status", "--porcelain", "--", "notes.txt", "src"]);
    let _model = ScriptedAgent::new(honest).with_real_client().start(&mut world);
    let arguments = ["run", "--objective", "Do the plan.", "--", "--model", "opus", "--no-such-option"];
    let finished = world.plimsoll(&arguments).run();
    assert_eq!(finished.code, Some(5), "{finished:?}");
    assert_eq!(world.git(&["status", "--porcelain", "--", "notes.txt", "src"]), before);
    assert!(events(&journal(&world), "wip_commit").is_empty());
    assert!(!world.exists(".claude/handoffs"), "there is nothing to hand over");
}

#[test]
fn without_a_list_a_commit_is_the_item_and_a_limit_of_the_client_is_no_error() {
    let cases: [(&str, &[&str], &[&str]); 3] = [
        ("sessions cut by --max-turns", &["--max-turns", "1"], &[COMMIT, "true"]),
        ("an error that stays", &[], &[COMMIT, "ls no-such-file"]),
        ("a tool that is denied", &[], &[COMMIT, "DENIED"]),
    ];
    side_by_side(&cases, |&(what, arguments, commands)| {
        let mut world = World::new();
        world.git(&["init", "-q", "-b", "main"]);
        world.write("a.txt", "a\n");
        world.git(&["add", "-A"]);
        world.git(&["commit", "-qm", "First"]);
        let _model = ScriptedAgent::new(move |turn| {
            commands
                .get(turn.step)
                .map_or_else(|| Step::text("On I go."), |one| Step::bash(*one))
                .delay(LIFELIKE)
        })
        .start(&mut world);
        let all = [&["--allowedTools", "Bash", "--model", "opus"], arguments].concat();
        let mut line = vec!["run", "--objective", "Improve it.", "--max-iterations", "6", "--"];
        line.extend(all);
        let finished = world.plimsoll(&line).run();
        assert_eq!(finished.code, Some(3), "{what}: {finished:?}");
        assert_eq!(world.json(STATE)["no_change_count"], 0, "{what}");
    });
}

#[test]
fn different_commands_that_only_fail_are_no_same_error() {
    const COMMANDS: [&str; 6] = [
        "test -f missing",
        "grep -c nothing src/dates.txt",
        "git diff --exit-code HEAD~1 > /dev/null",
        "false",
        "cmp -s src/dates.txt fix_plan.md",
        "exit 2",
    ];
    let mut world = world("- [ ] Item one\n");
    let _model = ScriptedAgent::new(|turn| {
        match turn.step {
            0 => Step::bash(COMMIT),
            1 => Step::bash(COMMANDS[turn.iteration as usize - 1]),
            _ => Step::text("Not yet."),
        }
        .delay(LIFELIKE)
    })
    .start(&mut world);
    let finished = run(&world, &["--max-iterations", "6"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
}

#[test]
fn a_killed_session_costs_what_its_tokens_cost_elsewhere() {
    let mut world = world(ITEMS);
    let _model = ScriptedAgent::new(|turn| {
        match (turn.iteration, turn.step) {
            (2, 0) => Step::bash("echo on").usage(500_000),
            (2, 1) => Step::bash("kill -9 $PPID").usage(500_000),
            _ => honest(turn).usage(100_000),
        }
        .delay(LIFELIKE)
    })
    .start(&mut world);
    let finished = run(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let journal = journal(&world);
    let verdicts = events(&journal, "verdict");
    assert!(markers(&journal)[1].contains("the client ended by signal 9"), "{:?}", markers(&journal));
    let cost = |index: usize| verdicts[index]["cost_usd"].as_f64().unwrap_or_default();
    assert!(cost(1) > cost(0) * 1.5, "{} after {}", cost(1), cost(0));
    assert_eq!(world.json(STATE)["cost_is_reckoned"], json!(true));
    insta::assert_snapshot!(world.stable_text(&world.plimsoll(&["status"]).run().stdout), @"
    Dates ([ID])
    Status       completed: 3 items
    Items        3 of 3 done
      [x] Item one
      [x] Item two
      [x] Item three
    Sessions     4 of at most 50
    Peaks        10% 50% 10% 10%
    Cost         about $0.33, 1.6M tokens
    Time         started [TIME], ended [TIME], took [DURATION]
    Next         nothing: the run is done; see git log and plimsoll report
    More         plimsoll report, plimsoll log, or .claude/plimsoll/journal.jsonl; recorded: [SIZE]
    ");
}
