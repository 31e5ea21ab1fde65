//! A tick holds only if what passed before it still passes, and if the item's own check does.

use crate::park_items::{staged, stand_in};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::story::{Turn, tick};
use plimsoll_testkit::world::World;
use plimsoll_tests::{
    ITEMS, ScriptedAgent, events, first_request_of, honest, journal, markers, resume, run, world,
};
use serde_json::{Value, json};
use std::time::Duration;

const STATE: &str = ".claude/ralph-state.json";
const CHECK: &str = "test ! -e broken || { echo 'the widget is broken'; echo '# see line 7' >&2; exit 3; }\n";

fn does(turn: &Turn<'_>, more: &str) -> Step {
    let item = turn.item.clone().unwrap_or_default();
    Step::bash(format!("echo '{item}' >> work.txt && {more}{}", tick(&item))).usage(30_000)
}

/// Breaks with its second item what had passed, repairs it when it is told, and promises when all is ticked.
fn breaks_something(turn: &Turn<'_>) -> Step {
    match (turn.iteration, turn.step) {
        (2, 0) => does(turn, "touch broken && "),
        (_, 0) if turn.saw("the widget is broken") => {
            let item = turn.item.clone().unwrap_or_default();
            Step::bash(format!("git rm -q broken && {}", tick(&item)))
        }
        _ => honest(turn),
    }
}

#[test]
fn an_item_that_breaks_what_passed_is_open_again_until_it_passes() {
    let mut world = world(ITEMS);
    world.write("check.sh", CHECK);
    let model = ScriptedAgent::new(breaks_something).start(&mut world);
    let finished = run(&world, &["--verify", "true", "--verify", "sh check.sh", "--max-iterations", "6"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n", "nothing is done twice");
    assert_eq!(world.read("fix_plan.md"), ITEMS.replace("[ ]", "[x]"));

    let journal = journal(&world);
    let words = "the tick of \"Item two\" was taken back: `sh check.sh` fails";
    assert_eq!(
        markers(&journal),
        [
            "RALPH_CONTINUE|next|2 open items".to_owned(),
            format!("RALPH_CONTINUE|next|{words}; 2 open items"),
            "RALPH_CONTINUE|next|1 open item".to_owned(),
            "RALPH_STOP|completed|3 items, 2 verify commands passed".to_owned(),
        ]
    );
    // The commands ran once before the first session, and after each session that ticked an item.
    let before = events(&journal, "verified");
    assert_eq!(before.len(), 1, "{before:?}");
    assert_eq!((&before[0]["verify"][1]["passed"], &before[0]["iteration"]), (&json!(true), &json!(0)));
    let verdicts = events(&journal, "verdict");
    assert!(verdicts.iter().all(|verdict| verdict["verify"].as_array().is_some_and(|all| all.len() == 2)));
    assert_eq!((&verdicts[1]["ticked"], &verdicts[1]["done"]), (&json!([]), &json!(1)));
    assert!(verdicts[1]["error"].as_str().is_some_and(|error| error.starts_with("sh check.sh\n")));
    let taken = events(&journal, "ticks_taken_back");
    assert_eq!(taken.len(), 1, "{taken:?}");
    assert_eq!((&taken[0]["items"], &taken[0]["failed"]), (&json!(["Item two"]), &json!(["sh check.sh"])));

    // The next session reads it first, with what the command printed, and works on the same item.
    let third = first_request_of(&model, 3);
    let (before, after) = third.split_once("## Ticks were taken back").expect("the section");
    assert!(!before.contains("## Your item") && after.contains("## Your item"), "{third}");
    assert!(after.contains("The session of iteration 2 ticked these items"), "{third}");
    assert!(after.contains("> the widget is broken\n> # see line 7\n"), "{third}");
    assert!(after.contains("> Item two\n"), "{third}");
    assert!(!first_request_of(&model, 4).contains("Ticks were taken back"), "said until it is repaired");
    assert!(first_request_of(&model, 1).contains("a tick that breaks one is taken back"));

    // The user, too.
    assert!(finished.stdout.contains("checking what passes before the first session"), "{finished:?}");
    assert!(finished.stdout.contains("verified: `true` passed, `sh check.sh` failed"), "{finished:?}");
    assert!(finished.stdout.contains(&format!("   {words}\n")), "{finished:?}");
    assert!(world.read(".claude/plimsoll/progress.txt").contains(&format!("Iteration 2: {words}.")));
    let log = world.plimsoll(&["log"]).run().expect_success().stdout;
    assert!(log.contains(words) && log.contains("`sh check.sh` passes"), "{log}");
    let report = world.plimsoll(&["report", "--output", "-"]).run().expect_success().stdout;
    assert!(report.contains("Tick taken back"), "{report}");
    let state = world.json(STATE);
    assert_eq!(
        (&state["verify_passed"], &state["taken_back"]),
        (&json!(["true", "sh check.sh"]), &json!(null))
    );
}

#[test]
fn with_the_real_client_too() {
    let mut world = world("# Plan\n\n- [ ] Item two (verify: sh check.sh)\n");
    world.write("check.sh", CHECK);
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        (1, 0) => does(turn, "touch broken && "),
        (2, 0) if turn.saw("the widget is broken") => {
            Step::bash(format!("git rm -q broken && {}", tick("Item two (verify: sh check.sh)")))
        }
        _ => Step::text(format!("All done.\n\n{}", turn.promise)),
    })
    .with_real_client()
    .at_real_pace()
    .start(&mut world);
    let finished = run(&world, &["--plan-verify", "--max-iterations", "3"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stderr.contains("`sh check.sh` for \"Item two (verify: sh check.sh)\""), "{finished:?}");
    assert!(first_request_of(&model, 1).contains("3. Prove it with `sh check.sh`."));
    let markers = markers(&journal(&world));
    assert_eq!(markers.len(), 2, "{markers:?}");
    assert!(markers[0].starts_with("RALPH_CONTINUE|refused|1 item is open"), "{markers:?}");
    assert_eq!(markers[1], "RALPH_STOP|completed|1 item, 1 verify command passed");
}

const FINISHES: &str = "begin; answers 30000; tick \"$item\"; says 'The item is done.'\n";
const PROMISES: &str = "begin; answers 30000; tick \"$item\"; says \"All done.\\\\n\\\\n$promise\"\n";

/// A session that ticks its item after these words of a shell.
fn after(words: &str) -> String {
    FINISHES.replace("tick", &format!("{words}; tick"))
}

/// What fails from the beginning refuses no tick, until it has passed once.
#[test]
fn a_suite_that_fails_until_the_items_make_it_pass_holds_up_nothing_and_guards_what_it_became() {
    let world = world(ITEMS);
    world.write("suite.sh", "test -e one && test -e two\n");
    let (one, two, loses) = (after("touch one"), after("touch two"), after("rm one"));
    let repairs = PROMISES.replace("tick", "touch one; tick");
    let finished = staged(
        &world,
        &[&one, &two, &loses, &repairs],
        &["--verify", "sh suite.sh", "--max-iterations", "6"],
    );
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("verified: `sh suite.sh` failed"), "{finished:?}");
    assert_eq!(
        markers(&journal(&world)),
        [
            "RALPH_CONTINUE|next|2 open items",
            "RALPH_CONTINUE|next|1 open item",
            "RALPH_CONTINUE|next|the tick of \"Item three\" was taken back: `sh suite.sh` fails; 1 open item",
            "RALPH_STOP|completed|3 items, 1 verify command passed",
        ]
    );
}

#[test]
fn an_agent_that_ticks_again_and_again_and_repairs_nothing_ends_the_run() {
    let world = world("# Plan\n\n- [ ] Item one\n- [ ] Item two\n");
    world.write("check.sh", CHECK);
    world.write_user_settings(&json!({"breaker": {"same_error": 3}}));
    let first = after("touch broken");
    let sessions = [&*first, FINISHES, FINISHES, FINISHES];
    let finished = staged(&world, &sessions, &["--verify", "sh check.sh", "--max-iterations", "9"]);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    let journal = journal(&world);
    let markers = markers(&journal);
    assert_eq!(markers.len(), 3, "{markers:?}");
    assert!(markers[2].starts_with("RALPH_STOP|circuit_breaker|same_error: "), "{markers:?}");
    assert_eq!(events(&journal, "set_aside")[0]["item"], "Item one");
    assert_eq!(world.read("fix_plan.md"), "# Plan\n\n- [ ] Item one\n- [ ] Item two\n");
    let status = world.plimsoll(&["status"]).run().expect_success().stdout;
    assert!(
        status.contains("Taken back   the tick of \"Item two\" was taken back: `sh check.sh` fa"),
        "{status}"
    );

    // Nothing was lost: the user repairs it, and the run goes on.
    std::fs::remove_file(world.path("broken")).expect("the file");
    world.write(world.home().join("sessions/5"), PROMISES);
    let resumed = resume(&world, &["--reset-breaker", "--no-wait"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
}

#[test]
fn several_ticks_of_one_session_are_taken_back_together_and_an_earlier_one_stays() {
    let world = world(ITEMS);
    world.write("check.sh", CHECK);
    let two = after("touch broken; tick 'Item three'");
    let finished = staged(&world, &[FINISHES, &two], &["--verify", "sh check.sh", "--max-iterations", "2"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert_eq!(world.read("fix_plan.md"), ITEMS.replace("[ ] Item one", "[x] Item one"));
    let taken = world.json(STATE)["taken_back"]["items"].clone();
    assert_eq!(taken, json!(["Item two", "Item three"]));
}

/// By the session once the tick was seen, or by the command itself.
#[test]
fn a_tick_must_hold_although_the_plan_is_removed_after_it() {
    let is_seen = "until grep -A1 '\"completed_items\": \\[$' .claude/ralph-state.json | grep -q one; do sleep 0.1; done";
    let removes = FINISHES.replace("says", &format!("touch broken; {is_seen}; rm fix_plan.md; says"));
    let plan = "# Plan\n\n- [ ] Item one\n- [ ] Item two\n";
    for (session, check) in [
        (removes.as_str(), CHECK.to_owned()),
        (&after("touch broken"), CHECK.replace("{ ", "{ rm -f fix_plan.md; ")),
    ] {
        let world = world(plan);
        world.write("check.sh", &check);
        let finished = staged(&world, &[session], &["--verify", "sh check.sh", "--max-iterations", "1"]);
        assert_eq!(finished.code, Some(3), "{finished:?}");
        let journal = journal(&world);
        let taken = events(&journal, "ticks_taken_back");
        assert_eq!(taken.len(), 1, "{check} {finished:?} {journal:#?}");
        assert_eq!(taken[0]["items"], json!(["Item one"]), "{journal:#?}");
        assert_eq!(events(&journal, "todo_mended").len(), 1, "{journal:#?}");
        assert_eq!(world.read("fix_plan.md"), plan);
        let state = world.json(STATE);
        assert_eq!((&state["completed_items"], &state["ever_done"]), (&json!([]), &json!([])), "{check}");
    }
}

#[test]
fn only_at_the_promise_nothing_runs_before_and_no_tick_is_taken_back() {
    let world = world("# Plan\n\n- [ ] Item one\n- [ ] Item two\n");
    world.write("check.sh", &format!("echo x >> ~/ran\n{CHECK}"));
    let first = after("touch broken");
    let finished = staged(
        &world,
        &[&first, PROMISES],
        &["--verify", "sh check.sh", "--verify-each", "promise", "--max-iterations", "2"],
    );
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert_eq!(world.read("fix_plan.md"), "# Plan\n\n- [x] Item one\n- [x] Item two\n");
    assert_eq!(world.read(world.home().join("ran")), "x\n", "for the promise alone");
    let journal = journal(&world);
    assert!(events(&journal, "verified").is_empty() && events(&journal, "ticks_taken_back").is_empty());
    assert_eq!(events(&journal, "verdict")[1]["verify"][0]["passed"], false);
}

const PLANTED: &str = "# Plan\n\n- [ ] Item one (verify: touch planted)\n- [ ] Item two\n";

#[test]
fn a_check_in_a_plan_starts_nothing_unless_the_user_says_so() {
    let world = world(PLANTED);
    let finished = staged(&world, &[FINISHES, PROMISES], &["--verify", "true"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stderr.contains("1 item names a check, which is not run: --plan-verify runs them"));
    assert_eq!(world.json(STATE)["plan_checks"], json!([]));
    assert!(!world.exists("planted"));
    let plan = world.plimsoll(&["plan", "--markdown"]).run();
    assert!(!world.exists("planted"), "{plan:?}");
}

/// Only what was in the plan as the run began runs; a state or a plan that an agent forges adds nothing.
#[test]
fn a_check_that_an_agent_writes_later_never_runs() {
    let world = world("# Plan\n\n- [ ] Item one (verify: test -e one)\n- [ ] Item two\n");
    let forges = "sed -i 's/Item two$/Item two (verify: touch ~\\/planted)/; s/test -e one/touch ~\\/changed/' fix_plan.md; \
                  sed -i 's/test -e one/touch ~\\/forged/g' .claude/ralph-state.json";
    let first =
        format!("begin; answers 30000; {forges}; sed -i 's/\\[ \\]/[x]/' fix_plan.md; says 'Done.'\n");
    let finished = staged(&world, &[&first], &["--plan-verify", "--max-iterations", "1"]);
    for name in ["planted", "changed", "forged"] {
        assert!(!world.home().join(name).exists(), "{name} {finished:?}");
    }
    let not_run = "the check `touch ~/planted` of \"Item two (verify: touch ~/planted)\" was not run";
    assert!(finished.stdout.contains(not_run), "{finished:?}");
    assert_ne!(finished.code, Some(0), "the item with its check is gone: {finished:?}");

    let refused = resume(&world, &["--plan-verify", "--max-iterations", "3"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("--plan-verify belongs to a new run"), "{refused:?}");
}

#[test]
fn an_items_own_check_takes_back_its_own_tick_alone() {
    let plan = "# Plan\n\n- [ ] Item one (simple, verify: test -e one)\n- [ ] Item two\n";
    let world = world(plan);
    let both = "begin; answers 30000; sed -i 's/\\[ \\]/[x]/' fix_plan.md; says 'Done.'\n";
    let repairs = "begin; answers 30000; touch one; sed -i 's/\\[ \\]/[x]/' fix_plan.md; says \"Done.\\\\n\\\\n$promise\"\n";
    let finished = staged(&world, &[both, repairs], &["--plan-verify", "--max-iterations", "4"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(!finished.stdout.contains("checking what passes"), "a check of an item fails until it is done");
    let taken = journal(&world);
    let taken = events(&taken, "ticks_taken_back");
    assert_eq!(taken[0]["items"], json!(["Item one (simple, verify: test -e one)"]), "{taken:?}");
    let shown = world.plimsoll(&["plan", "--json"]).run().expect_success().stdout;
    assert!(!shown.contains("test -e one"), "nothing is open: {shown}");
    // The files that a check names are not what the item changes.
    let estimate = |item: &str| {
        world.write("fix_plan.md", &format!("- [ ] {item}\n"));
        let shown = world.plimsoll(&["plan", "--json"]).run().expect_success().stdout;
        serde_json::from_str::<Value>(&shown).expect("JSON")["items"][0]["estimate_source"].clone()
    };
    assert_eq!(estimate("Look (verify: grep 7 src/dates.txt)"), estimate("Look"));
    assert_ne!(estimate("Look at src/dates.txt"), estimate("Look"));
    world.write("fix_plan.md", plan);
    let shown = world.plimsoll(&["plan", "--markdown"]).run().expect_success().stdout;
    assert!(shown.contains("only with `plimsoll run --plan-verify`:\n\n- Item 1: `test -e one`"), "{shown}");
    assert!(shown.contains("| 1 | Item one (simple, verify: test -e one) | simple |"), "{shown}");
}

#[test]
fn one_ctrl_c_ends_the_commands_before_the_first_session_and_a_loop_runs_them_too() {
    let world = world(ITEMS);
    let client = stand_in(&world, &[]);
    let mark = world.home().join("mark");
    let ours = ["run", "--objective", "Do the plan.", "--name", "Dates", "--client", &client, "--verify"];
    let slow = format!("touch {} && sleep 30", mark.display());
    let mut run = world.plimsoll(&[&ours[..], &[&slow]].concat()).spawn();
    world.wait_until(|| mark.exists(), "the command");
    run.interrupt();
    let finished = run.wait(Duration::from_secs(20));
    assert_eq!(finished.code, Some(130), "{finished:?}");
    assert!(finished.elapsed < Duration::from_secs(20), "{finished:?}");
    assert_eq!(
        (world.json(STATE)["iteration"].as_u64(), &world.json(STATE)["verify_passed"]),
        (Some(0), &json!([]))
    );
    world.plimsoll(&["stop"]).run().expect_success();

    let started = world.plimsoll(&["start", "--objective", "Do the plan.", "--verify", "true"]).run();
    assert_eq!(started.code, Some(0), "{started:?}");
    assert!(started.stderr.contains("verified: `true` passed"), "{started:?}");
    assert!(started.stdout.lines().all(|line| line.starts_with("export ")), "{started:?}");
    assert_eq!(world.json(STATE)["verify_passed"], json!(["true"]));
}

#[test]
fn a_run_that_did_not_check_its_ticks_learns_what_passes_when_it_is_resumed() {
    let world = world("# Plan\n\n- [ ] Item one\n- [ ] Item two\n");
    world.write("check.sh", CHECK);
    let killed = format!("{FINISHES}kill -9 $parent\n");
    let first = staged(&world, &[&killed], &["--verify", "sh check.sh", "--verify-each", "promise"]);
    assert_eq!(first.code, None, "{first:?}");
    wait_for_end(&world, 1);
    world.write(world.home().join("sessions/2"), &after("touch broken"));
    let resumed = resume(&world, &["--verify-each", "tick", "--max-iterations", "2", "--no-wait"]);
    assert_eq!(resumed.code, Some(3), "{resumed:?}");
    assert!(resumed.stdout.contains("verified: `sh check.sh` passed"), "{resumed:?}");
    assert_eq!(world.read("fix_plan.md"), "# Plan\n\n- [x] Item one\n- [ ] Item two\n");
}

fn wait_for_end(world: &World, number: u32) {
    let left = world.home().join(format!("begun/{number}/left"));
    world.wait_until(|| left.exists(), "the session to end");
}

/// The commands that run before the first session may take long.
#[test]
fn a_run_that_is_cancelled_or_late_while_its_commands_run_begins_no_session() {
    for (command, more, code, status) in [
        ("plimsoll stop; sleep 60", &[][..], 9, "cancelled"),
        ("sleep 60", &["--deadline", "2s"], 3, "deadline"),
    ] {
        let mut world = world("- [ ] Item one\n");
        let model = ScriptedAgent::new(|_| Step::text("No session should begin.")).start(&mut world);
        let finished = run(&world, &[&["--verify", command], more].concat());
        assert_eq!(finished.code, Some(code), "{command}: {finished:?}");
        assert!(model.requests().is_empty(), "{command}: {finished:?}");
        let state = world.json(STATE);
        assert_eq!((&state["status"], &state["iteration"]), (&json!(status), &json!(0)), "{command}");
        assert!(
            !world.exists("PROMPT.md") || !world.read("PROMPT.md").contains("plimsoll:begin"),
            "{command}"
        );
        assert!(events(&journal(&world), "planned").is_empty(), "{command}");
    }
}
