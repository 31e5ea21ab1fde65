//! What our screens, logs and commands say is so: each case was once said wrongly.

use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::story::tick;
use plimsoll_testkit::world::{Running, World};
use plimsoll_tests::{ITEMS, ScriptedAgent, events, honest, installed, journal, resume, run, world};
use serde_json::json;
use std::time::Duration;

const STATE: &str = ".claude/ralph-state.json";
const SOON: Duration = Duration::from_secs(30);

/// `plimsoll run` that a test looks at while it works.
fn begin(world: &World, ours: &[&str]) -> Running {
    let client = ["--", "--model", "opus", "--allowedTools", "Bash"];
    world.plimsoll(&[&["run", "--objective", "Do the plan."], ours, &client].concat()).spawn()
}

/// A run whose first session sits in a tool.
fn run_with(steps: impl Fn() -> Step + Send + 'static) -> (World, ScriptedModel) {
    let mut world = world(ITEMS);
    let model = ScriptedAgent::new(move |turn| match (turn.iteration, turn.step) {
        (1, 0) => steps(),
        _ => honest(turn),
    })
    .start(&mut world);
    (world, model)
}

fn wait_for(world: &World, file: &str) {
    world.wait_until(|| world.exists(file), file);
}

fn status(world: &World) -> String {
    world.plimsoll(&["status"]).env("COLUMNS", "160").run().expect_success().stdout
}

/// The words of one line of the status screen.
fn line<'a>(screen: &'a str, title: &str) -> &'a str {
    screen
        .lines()
        .find_map(|line| line.strip_prefix(title))
        .unwrap_or_else(|| panic!("{title} in {screen}"))
        .trim()
}

fn ending_of_the_first(world: &World) -> String {
    world.json(STATE)["context_history"][0]["ending"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_session_that_ended_its_turn_has_not_completed_an_item_that_is_open() {
    let mut world = world(ITEMS);
    let _model = ScriptedAgent::new(|turn| match turn.iteration {
        2 => Step::text("I have looked around."),
        _ => honest(turn),
    })
    .start(&mut world);
    let finished = run(&world, &["--max-iterations", "3"]);
    for words in [
        "iteration 1 ended its turn; \"Item one\" is ticked",
        "iteration 2 ended its turn; \"Item two\" is still open",
        "iteration 3 ended its turn; \"Item two\" is ticked",
    ] {
        assert!(finished.stdout.contains(words), "{words} in {}", finished.stdout);
    }
    assert!(!finished.stdout.contains("ended: completed"), "{}", finished.stdout);
}

#[test]
fn a_session_that_the_user_stopped_for_good_has_not_crashed() {
    let (world, _model) = run_with(|| Step::bash("touch begun; sleep 50"));
    let run = begin(&world, &[]);
    wait_for(&world, "begun");
    world.plimsoll(&["stop"]).run().expect_success();
    let finished = run.wait(SOON);
    assert_eq!(finished.code, Some(9), "{finished:?}");
    assert!(finished.stdout.contains("iteration 1 was ended by `plimsoll stop`"), "{}", finished.stdout);
    assert_eq!(ending_of_the_first(&world), "cancelled");
    for what in [&["log"][..], &["report", "-o", "-"], &["status"]] {
        let told = world.plimsoll(what).run().stdout;
        assert!(!told.contains("crash"), "{what:?}: {told}");
    }
}

#[test]
fn a_session_that_ctrl_c_ended_was_ended_by_the_user_and_one_that_was_silent_by_plimsoll() {
    let (world, _model) = run_with(|| Step::bash("echo half > half.txt; touch begun; sleep 50"));
    let mut run = begin(&world, &[]);
    wait_for(&world, "begun");
    run.interrupt();
    // Two signals at once may be one.
    world.wait_until(|| run.stdout_so_far().contains("stopping after "), "the first Ctrl-C");
    run.interrupt();
    let finished = run.wait(SOON);
    assert_eq!(finished.code, Some(130), "{finished:?}");
    assert!(finished.stdout.contains("iteration 1 was ended by you (Ctrl-C"), "{}", finished.stdout);
    assert_eq!(ending_of_the_first(&world), "interrupted");
    for what in [&["log"][..], &["report", "-o", "-"], &["status"]] {
        let told = world.plimsoll(what).run().stdout;
        assert!(!told.contains("crash") && !told.contains("broke off"), "{what:?}: {told}");
    }
    assert!(status(&world).contains("cut short"), "{}", status(&world));

    let (world, _model) = run_with(|| Step::text("never").hang(Duration::from_secs(50)));
    let run = begin(&world, &["--idle-timeout", "2s", "--max-iterations", "1"]);
    let finished = run.wait(SOON);
    let words = "iteration 1 was ended by Plimsoll: no output for 2 s";
    assert!(finished.stdout.contains(words), "{}", finished.stdout);
}

#[test]
fn status_counts_the_session_at_work_with_an_estimated_cost() {
    let (world, _model) = run_with(|| Step::bash("touch begun; sleep 50").usage(410_000));
    let mut run = begin(&world, &[]);
    wait_for(&world, "begun");
    // The client's writer lags a little behind the tool.
    world.wait_until(|| line(&status(&world), "Cost").contains("410k"), "the session's tokens");
    let screen = status(&world);
    assert_eq!(line(&screen, "Cost"), "about $0.08, 410k tokens", "{screen}");
    run.kill();
    world.end_leftovers();
}

#[test]
fn status_and_progress_say_since_when_the_api_cannot_be_reached() {
    let mut world = world(ITEMS);
    let _model = ScriptedAgent::new(honest).with_real_client().start(&mut world);
    // Nobody listens there.
    world.set_env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9");
    world.set_env("CLAUDE_CODE_MAX_RETRIES", "10");
    let mut run = begin(&world, &[]);
    let retries = |run: &Running| run.stdout_so_far().contains("the API cannot be reached since ");
    world.wait_until(|| retries(&run), "a retry");
    let is_said = || line(&status(&world), "Status").contains("the API cannot be reached since ");
    world.wait_until(is_said, "since when, in the status");
    let screen = status(&world);
    assert!(line(&screen, "Status").contains("the client retries by itself"), "{screen}");
    assert!(!screen.contains("it continues by itself"), "{screen}");
    run.kill();
    world.end_leftovers();
}

#[test]
fn an_api_that_answers_again_is_not_called_unreachable_any_more() {
    let mut world = world(ITEMS);
    world.set_env("CLAUDE_CODE_MAX_RETRIES", "10");
    let mut refused = false;
    let _model = ScriptedAgent::new(move |turn| match turn.step {
        0 if !std::mem::replace(&mut refused, true) => Step::error(529, "Overloaded"),
        0 => Step::bash("touch begun; sleep 50"),
        _ => honest(turn),
    })
    .start(&mut world);
    let mut run = begin(&world, &[]);
    wait_for(&world, "begun");
    let told = run.stdout_so_far();
    assert!(told.contains("the API has answered with 529 since "), "{told}");
    world.wait_until(|| !status(&world).contains("the API"), "it has answered");
    run.kill();
    world.end_leftovers();
}

#[test]
fn a_run_that_is_over_is_not_resumed() {
    let mut world = world("# Plan\n\n- [ ] Item three\n");
    let _model = ScriptedAgent::new(honest).start(&mut world);
    run(&world, &[]).expect_success();
    let again = resume(&world, &[]);
    assert!(again.stderr.contains("there is nothing to resume"), "{again:?}");
    assert!(events(&journal(&world), "resumed").is_empty(), "{:#?}", journal(&world));
    assert!(!world.plimsoll(&["log"]).run().stdout.contains("run resumed"));
}

#[test]
fn a_pending_ctrl_c_is_shown_until_the_run_has_stopped() {
    let (world, _model) = run_with(|| Step::bash("touch begun; while [ ! -e go ]; do sleep 0.1; done"));
    let mut run = begin(&world, &[]);
    wait_for(&world, "begun");
    run.interrupt();
    let is_said = || line(&status(&world), "Status").contains("stops after this session (Ctrl-C)");
    world.wait_until(is_said, "the pending stop");
    assert!(line(&status(&world), "Next").contains("stops after this session"), "{}", status(&world));
    world.write("go", "");
    let finished = run.wait(SOON);
    assert_eq!(finished.code, Some(130), "{finished:?}");
    assert!(
        finished.stdout.contains("stopped after this session, as requested with Ctrl-C"),
        "{}",
        finished.stdout
    );
    assert!(!status(&world).contains("Ctrl-C)"), "{}", status(&world));
    let mut run = world.plimsoll(&["run", "--resume"]).spawn();
    world.wait_until(|| world.json(STATE)["iteration"] == 2, "it goes on");
    assert!(!status(&world).contains("stops after"), "{}", status(&world));
    run.kill();
    world.end_leftovers();
}

#[test]
fn with_context_knows_the_session_in_the_agents_own_shell() {
    let show = "plimsoll with-context -- sh -c 'echo \"$CLAUDE_CONTEXT_PERCENT $CLAUDE_CONTEXT_TOKENS_USED $CLAUDE_CONTEXT_TOKENS_MAX\" > shown.txt'";
    let model = ScriptedModel::steps(vec![
        Step::bash("echo one").usage(430_000),
        Step::bash(show).usage(440_000),
        Step::text("Done.").usage(441_000),
    ]);
    let world = installed(&model);
    world.claude(&["-p", "Count.", "--model", "opus", "--allowedTools", "Bash"]).run().expect_success();
    assert_eq!(world.read("shown.txt"), "44 440000 1000000\n");
}

#[test]
fn a_turn_has_one_number_in_the_list_and_alone() {
    let steps = vec![Step::bash("echo first"), Step::bash("echo second"), Step::text("Third.")];
    let model = ScriptedModel::steps(steps);
    let world = installed(&model);
    world.claude(&["-p", "Count.", "--model", "opus", "--allowedTools", "Bash"]).run().expect_success();
    let list = world.plimsoll(&["turns", "list"]).run().expect_success().stdout;
    assert!(
        list.lines().nth(1).is_some_and(|row| row.contains(":2 ") && row.contains("echo second")),
        "{list}"
    );
    let shown = world.plimsoll(&["turns", "show", "2"]).run().expect_success().stdout;
    assert!(shown.starts_with("Turn ") && shown.contains(":2 ") && shown.contains("echo second"), "{shown}");
}

#[test]
fn the_last_turn_of_a_killed_session_is_seen_at_once() {
    let steps = vec![Step::bash("echo before"), Step::bash("touch begun; sleep 50").say("A long one.")];
    let model = ScriptedModel::steps(steps);
    let world = installed(&model);
    let mut client = world.claude(&["-p", "Work.", "--model", "opus", "--allowedTools", "Bash"]).spawn();
    wait_for(&world, "begun");
    let written = || {
        world.transcripts().iter().any(|path| std::fs::read_to_string(path).unwrap().contains("A long one."))
    };
    world.wait_until(written, "the call in the transcript");
    let list = || world.plimsoll(&["turns", "list"]).run().stdout;
    assert!(!list().contains("abandoned"), "it works: {}", list());
    client.kill();
    client.wait(SOON);
    world.end_leftovers();
    let list = list();
    let last = list.lines().last().unwrap_or_default();
    assert!(last.contains("abandoned") && last.contains("touch begun"), "{list}");
}

#[test]
fn plan_says_that_nothing_fits_where_a_session_begins_above_its_checkpoint() {
    let mut world = world("# Plan\n\n- [ ] Item one (medium)\n- [ ] Item two\n");
    let model = ScriptedModel::steps(vec![Step::text("Hello.").usage(900_000)]);
    world.use_model(&model);
    world.plimsoll(&["init", "--local"]).run().expect_success();
    world.claude(&["-p", "Hello.", "--model", "opus"]).run().expect_success();
    let plan = world.plimsoll(&["plan", "--markdown"]).run().expect_success().stdout;
    assert!(
        plan.contains("No item fits into a session: a new one already holds about 900k tokens"),
        "{plan}"
    );
    assert!(!plan.contains("sessions"), "no number: {plan}");
    let json = world.plimsoll(&["plan", "--json"]).run().expect_success().json();
    assert_eq!((&json["one_by_one"], &json["items"][0]["sessions"]), (&json!(null), &json!(null)), "{json}");
}

/// The agent that the first example of the help stands for: it edits, tests, ticks and commits.
fn worker(turn: &plimsoll_testkit::story::Turn<'_>) -> Step {
    let Some(item) = turn.item.clone() else { return Step::text(format!("All done.\n\n{}", turn.promise)) };
    match turn.step {
        0 => Step::default().tool("Read", json!({"file_path": "src/dates.txt"})),
        1 => Step::default().tool("Write", json!({"file_path": "new.txt", "content": "new\n"})),
        2 => Step::bash("test -e new.txt"),
        3 => Step::bash(tick(&item)),
        _ => Step::text(format!("All done.\n\n{}", turn.promise)),
    }
}

#[test]
fn the_first_example_of_the_help_works_as_it_is_printed() {
    let mut world = world("# Plan\n\n- [ ] Item one\n");
    let _model = ScriptedAgent::new(worker).with_real_client().start(&mut world);
    let help = world.plimsoll(&["--help"]).env("COLUMNS", "80").run().expect_success().stdout;
    let steps = help.split("First steps:").nth(1).expect("first steps");
    let example =
        steps.lines().map(str::trim).find(|line| line.starts_with("plimsoll run -")).expect("a run");
    world.plimsoll(&["init", "--local"]).run().expect_success();
    let finished = world.command("sh", &["-c", example]).run();
    assert_eq!(finished.code, Some(0), "{example}: {finished:?}");
    assert!(!finished.stdout.contains("refused"), "{}", finished.stdout);
    assert_eq!(world.git(&["log", "-1", "--format=%s"]), "Finish Item one");
}

/// What stands behind the last of these words, on its line.
fn behind(text: &str, words: &str) -> String {
    let line = text.lines().rev().find_map(|line| line.split_once(words));
    line.unwrap_or_else(|| panic!("{words} in {text}")).1.to_owned()
}

#[test]
fn a_refused_tool_ends_with_the_whole_command_that_goes_on() {
    let mut world = world("# Plan\n\n- [ ] Item one\n");
    let _model = ScriptedAgent::new(worker).with_real_client_in(&[1, 2, 3]).start(&mut world);
    let prompt = "Say 'it'.";
    let arguments = ["run", "--objective", "Do the plan.", "--", "--model", "opus", "--allowedTools", "Read"];
    let extra = ["--append-system-prompt", prompt];
    let finished = world.plimsoll(&[&arguments[..], &extra].concat()).run();
    assert_eq!(finished.code, Some(4), "{finished:?}");
    let command = behind(&finished.stderr, "to continue: ");
    for words in
        ["plimsoll run --resume --reset-breaker -- ", "--model opus", "--allowedTools Read ", "Bash", "Write"]
    {
        assert!(command.contains(words), "{words} in {command}");
    }
    assert!(
        line(&status(&world), "Next").contains("plimsoll run --resume --reset-breaker -- "),
        "{}",
        status(&world)
    );
    let again = world.command("sh", &["-c", &command]).run();
    assert_eq!(again.code, Some(0), "{command}: {again:?}");
    assert_eq!(world.git(&["log", "-1", "--format=%s"]), "Finish Item one");
    let kept = &world.json(STATE)["client_arguments"];
    assert!(kept.as_array().is_some_and(|kept| kept.contains(&json!(prompt))), "{kept}");
}

#[test]
fn a_run_that_stops_for_another_reason_says_apart_how_to_allow_what_was_refused() {
    let mut world = world("# Plan\n\n- [ ] Item one\n");
    let _model = ScriptedAgent::new(worker).with_real_client_in(&[1]).start(&mut world);
    let arguments = ["run", "--objective", "Do the plan.", "--max-iterations", "1", "--", "--model", "opus"];
    let finished = world.plimsoll(&arguments).run();
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let command = behind(&finished.stderr, "to continue and allow what the client refused (Write, Bash): ");
    let again = world.command("sh", &["-c", &command]).run();
    assert_eq!(again.code, Some(0), "{command}: {again:?}");
}
