//! A promise that was meant and does not count: it is refused with the reason, and a run of which only the promise is
//! missing never ends by the circuit breaker.

use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::story::{Turn, tick};
use plimsoll_testkit::world::World;
use plimsoll_tests::{ScriptedAgent, events, first_request_of, honest, journal, markers, resume, run, world};
use serde_json::json;

/// One item; `honest` does it in its first session and promises.
const ONE: &str = "# Plan\n\n- [ ] Item three\n";
/// The prompt names the command, and only its output says what is wrong.
const CHECK: &str = "test -f widget.txt || { echo 'the widget is missing'; exit 3; }\n";
/// Every cause of the breaker that a session without progress could meet opens it at once.
const JUMPY: &str = r#"{"breaker": {"no_progress": 1, "refused": 1, "empty_reply": 1, "same_error": 1}}"#;

fn work() -> Step {
    Step::bash(format!("echo 'Item three' >> work.txt && {}", tick("Item three"))).usage(30_000)
}

fn bold(turn: &Turn<'_>) -> Step {
    Step::text(format!("All done.\n\n**{}**", turn.promise))
}

/// Does the item, and gives the promise as told in each session.
fn sloppy(words: impl Fn(&Turn<'_>) -> Step + Send + 'static) -> (World, ScriptedModel) {
    let mut world = world(ONE);
    world.write(".claude/plimsoll.json", JUMPY);
    let model = ScriptedAgent::new(move |turn| match (turn.iteration, turn.step) {
        (1, 0) => work(),
        _ => words(turn),
    })
    .start(&mut world);
    (world, model)
}

fn refusal_in(model: &ScriptedModel, iteration: u32) -> String {
    let prompt = first_request_of(model, iteration);
    prompt.split("## Completion was refused").nth(1).expect("the refusal is in the prompt").to_owned()
}

#[test]
fn a_near_miss_is_refused_and_the_next_prompt_says_what_the_line_must_be() {
    let (world, model) = sloppy(|turn| match turn.iteration {
        1 => bold(turn),
        _ => Step::text(format!("Sorry.\n\n{}", turn.promise)),
    });
    let finished = run(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let verdicts = markers(&journal(&world));
    let beginning = "RALPH_CONTINUE|refused|the promise line did not count (it was \"**<promise>COMPLETE ";
    assert!(verdicts[0].starts_with(beginning), "{verdicts:?}");
    assert_eq!(verdicts[1], "RALPH_STOP|completed|1 item", "{verdicts:?}");
    let nonce = world.json(".claude/ralph-state.json")["nonce"].as_str().expect("a nonce").to_owned();
    let refusal = refusal_in(&model, 2);
    let must = format!(
        "the last line of the last message must be exactly `<promise>COMPLETE {nonce}</promise>`, as plain text"
    );
    assert!(refusal.contains("it was \"**<promise>") && refusal.contains(&must), "{refusal}");
}

#[test]
fn a_near_miss_while_items_are_open_or_a_check_fails_lists_those_reasons_too() {
    let mut world = world("# Plan\n\n- [ ] Item three\n- [ ] Item four\n");
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        (1, 0) => work(),
        (1, _) => bold(turn),
        (2, 0) => Step::bash(tick("Item four")),
        (2, _) => bold(turn),
        (_, 0) if turn.saw("the widget is missing") => Step::bash("touch widget.txt"),
        _ => Step::text(turn.promise.clone()),
    })
    .start(&mut world);
    world.write("check.sh", CHECK);
    let finished = run(&world, &["--verify", "sh check.sh", "--max-iterations", "4"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let second = refusal_in(&model, 2);
    assert!(
        second.contains("it was \"**<promise>")
            && second.contains("1 item is open in fix_plan.md: \"Item four\""),
        "{second}"
    );
    let third = refusal_in(&model, 3);
    assert!(third.contains("it was \"**<promise>") && third.contains("the widget is missing"), "{third}");
    assert_eq!(markers(&journal(&world))[2], "RALPH_STOP|completed|2 items, 1 verify command passed");
}

#[test]
fn a_promise_of_the_users_own_prompt_is_named_from_the_first_session_on() {
    const OWN: &str =
        "# Dates\n\nDo the plan. When everything is done, output <promise>COMPLETE</promise>.\n";
    let mut world = world(ONE);
    world.write("PROMPT.md", OWN);
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        (1, 0) => work(),
        (1, _) => Step::text("All done.\n\n<promise>COMPLETE</promise>"),
        _ => Step::text(turn.promise.clone()),
    })
    .start(&mut world);
    let ours = ["run", "--", "--model", "opus", "--allowedTools", "Bash"];
    let finished = world.plimsoll(&ours).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let named = "The task text names `<promise>COMPLETE</promise>`, which does not count here: the line above counts, whatever another text says.";
    let first = first_request_of(&model, 1);
    assert!(first.contains(named), "{first}");
    let refusal = refusal_in(&model, 2);
    let part =
        "the task text names `<promise>COMPLETE</promise>`, but this line counts, whatever another text says";
    assert!(refusal.contains(part), "{refusal}");
    assert_eq!(markers(&journal(&world))[1], "RALPH_STOP|completed|1 item");
    assert!(world.read("PROMPT.md").ends_with(OWN), "the user's own text stays as it is");
}

#[test]
fn with_a_verify_command_a_near_miss_completes_the_run_without_the_promise() {
    let (world, model) = sloppy(bold);
    let finished = run(&world, &["--verify", "test -f work.txt", "--max-iterations", "5"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let end = "RALPH_STOP|completed|1 item, 1 verify command passed, without the promise";
    let journal = journal(&world);
    let verdicts = markers(&journal);
    assert_eq!(verdicts, [end]);
    assert_eq!(events(&journal, "verdict")[0]["verify"][0]["passed"], true);
    assert!(finished.stdout.contains(end), "{}", finished.stdout);
    assert_eq!(world.json(".claude/ralph-state.json")["status"], "completed");
    assert_eq!(model.main_requests().len(), 2, "one session");
}

#[test]
fn a_session_that_says_nothing_of_a_promise_completes_the_run_if_the_commands_pass() {
    let (world, model) = sloppy(|_| Step::text("There is nothing left to do."));
    let finished = run(&world, &["--verify", "test -f work.txt", "--max-iterations", "5"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(
        markers(&journal(&world)),
        ["RALPH_STOP|completed|1 item, 1 verify command passed, without the promise"]
    );
    assert_eq!(model.main_requests().len(), 2);
}

#[test]
fn a_verify_command_that_fails_refuses_a_session_without_the_promise() {
    let (world, model) = sloppy(|turn| match turn.step {
        0 if turn.saw("the widget is missing") => Step::bash("touch widget.txt && echo mended"),
        _ => Step::text("There is nothing left to do."),
    });
    world.write(".claude/plimsoll.json", "{}");
    world.write("check.sh", CHECK);
    let finished = run(&world, &["--verify", "sh check.sh", "--max-iterations", "6"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let verdicts = markers(&journal(&world));
    assert!(
        verdicts[0].starts_with("RALPH_CONTINUE|refused|every item is ticked, and the promise line was left out; verify command `sh check.sh` exited with 3"),
        "{verdicts:?}"
    );
    assert_eq!(verdicts.len(), 2, "{verdicts:?}");
    assert!(verdicts[1].ends_with("1 item, 1 verify command passed, without the promise"), "{verdicts:?}");
    assert!(refusal_in(&model, 2).contains("the widget is missing"));
}

#[test]
fn without_a_verify_command_the_run_ends_blocked_and_tells_it() {
    let (world, model) = sloppy(bold);
    world.write("notify.sh", "#!/bin/sh\ncat > told.json\n");
    world.command("/bin/chmod", &["+x", "notify.sh"]).run().expect_success();
    let finished = run(&world, &["--notify", "./notify.sh", "--max-iterations", "5"]);
    assert_eq!(finished.code, Some(7), "{finished:?}");
    let verdicts = markers(&journal(&world));
    assert_eq!(verdicts.len(), 2, "{verdicts:?}");
    for part in [
        "RALPH_STOP|blocked|every item of fix_plan.md is ticked, but the promise line was not given as asked, 2 times",
        "(it was \"**<promise>COMPLETE ",
        "plimsoll run --resume",
        "--verify CMD",
    ] {
        assert!(verdicts[1].contains(part), "{part} in {verdicts:?}");
    }
    let told = world.json("told.json");
    assert_eq!((&told["event"], &told["status"]), (&json!("ended"), &json!("blocked")), "{told}");
    assert_eq!(model.main_requests().len(), 3);

    // As the reason says: a command decides.
    let again = resume(&world, &["--verify", "test -f work.txt"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.stdout.contains("1 verify command passed, without the promise"), "{}", again.stdout);
}

#[test]
fn with_strict_promise_only_the_exact_line_completes_the_run() {
    let (world, _model) = sloppy(|turn| match turn.iteration {
        4.. => Step::text(turn.promise.clone()),
        _ => bold(turn),
    });
    let finished = run(&world, &["--verify", "true", "--strict-promise", "--max-iterations", "9"]);
    assert_eq!(finished.code, Some(7), "{finished:?}");
    let verdicts = markers(&journal(&world));
    assert_eq!(verdicts.len(), 2, "{verdicts:?}");
    assert!(verdicts[1].contains("--strict-promise asks for the line"), "{verdicts:?}");
    assert_eq!(world.json(".claude/ralph-state.json")["strict_promise"], true);
    // It is kept, and may be changed.
    let strict = resume(&world, &[]);
    assert_eq!(strict.code, Some(7), "{strict:?}");
    let exact = resume(&world, &[]);
    assert_eq!(exact.code, Some(0), "{exact:?}");
    let end = exact.stdout.lines().find(|line| line.contains("RALPH_STOP|")).expect("an end");
    assert!(end.contains("|completed|1 item, 1 verify command passed") && !end.contains("without"), "{end}");
}

#[test]
fn strict_promise_can_be_taken_back_at_a_resume() {
    let (world, _model) = sloppy(bold);
    let finished = run(&world, &["--verify", "true", "--strict-promise"]);
    assert_eq!(finished.code, Some(7), "{finished:?}");
    let relaxed = resume(&world, &["--strict-promise=false"]);
    assert_eq!(relaxed.code, Some(0), "{relaxed:?}");
    assert!(relaxed.stdout.contains(", without the promise"), "{}", relaxed.stdout);
}

#[test]
fn without_a_to_do_list_the_same_rule_holds_for_near_misses() {
    let mut world = World::new();
    let _model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        (1, 0) => Step::bash("echo one > one.txt"),
        (1, _) => Step::text("One step is done."),
        _ => Step::text(format!("`{}`", turn.promise)),
    })
    .start(&mut world);
    let ours = ["--verify", "test -f one.txt", "--max-iterations", "5"];
    let finished = run(&world, &ours);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let verdicts = markers(&journal(&world));
    assert_eq!(verdicts[0], "RALPH_CONTINUE|next|no promise yet");
    assert_eq!(verdicts[1], "RALPH_STOP|completed|1 verify command passed, without the promise");
}

#[test]
fn a_message_that_talks_about_the_promise_is_no_near_miss() {
    let mut world = world("# Plan\n\n- [ ] Item one\n- [ ] Item three\n");
    let _model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        (1, 0) => Step::bash(tick("Item one")),
        (1, _) => Step::text(format!(
            "The prompt asks for this line at the end of the run:\n\n> {}\n\nItem three is open, so I stop here.",
            turn.promise
        )),
        _ => honest(turn),
    }).start(&mut world);
    let finished = run(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(
        markers(&journal(&world)),
        ["RALPH_CONTINUE|next|1 open item", "RALPH_STOP|completed|2 items"]
    );
}
