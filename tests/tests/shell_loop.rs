//! The loop as a shell script: the same hooks, judged by `plimsoll gate`, with the real client.

use plimsoll_tests::{
    ITEMS, LIFELIKE, events, first_request_of, honest, journal, markers, start, subscribed, usage_limit,
    world,
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use testkit::scripted_model::Step;
use testkit::workspace_root;
use testkit::world::{Finished, World};

fn ralph_loop(world: &World, options: &[&str]) -> Finished {
    let script = workspace_root().join("scripts/ralph-loop.sh");
    let mut arguments = vec![script.to_str().expect("a plain path")];
    arguments.extend(options);
    arguments.extend(["--", "--model", "opus", "--allowedTools", "Bash"]);
    world.command("bash", &arguments).timeout(Duration::from_secs(120)).run()
}

#[test]
fn a_shell_loop_checkpoints_resumes_and_ends_with_the_promise() {
    let mut world = world(ITEMS);
    let model = start(&mut world, |turn| {
        let edit = |lines: &str| Step::bash(format!("sed -i '{lines}s/$/ changed/' src/dates.txt"));
        let step = match (turn.iteration, turn.step) {
            (2, 0) => edit("45,80").usage(550_000),
            (2, 1) => edit("81,120").usage(870_000),
            (2, _) => Step::text("Summary: lines 45-120\nProgress on the item: 70%").usage(872_000),
            _ => honest(turn),
        };
        step.delay(LIFELIKE)
    });
    world.plimsoll(&["init"]).run().expect_success();
    let finished = ralph_loop(&world, &["--objective", "Do the plan."]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("RALPH_CONTINUE|checkpoint|.claude/handoffs/"), "{}", finished.stdout);
    assert!(finished.stdout.contains("RALPH_STOP|completed|3 items"), "{}", finished.stdout);

    let state = world.json(".claude/ralph-state.json");
    assert_eq!((state["status"].as_str(), state["iteration"].as_u64()), (Some("completed"), Some(4)));
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n", "nothing is done twice");
    let resumed = first_request_of(&model, 3);
    for part in ["Item two", "70%", "| src/dates.txt | 45-120 | modified", "Do not start over"] {
        assert!(resumed.contains(part), "{part} in\n{resumed}");
    }
    assert_eq!(markers(&journal(&world)).len(), 4);
}

#[test]
fn a_loop_without_hooks_stops_and_says_why() {
    let mut world = world(ITEMS);
    let model = start(&mut world, honest);
    let finished = ralph_loop(&world, &["--objective", "Do the plan."]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("RALPH_STOP|fatal_error|our hooks did not run"), "{}", finished.stdout);
    assert_eq!(first_request_of(&model, 1).matches("Current State").count(), 1);
    assert!(events(&journal(&world), "session_start").is_empty());
}

#[test]
fn a_usage_limit_pauses_a_loop_until_its_reset_and_says_why() {
    let mut world = subscribed(ITEMS);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();
    // The client prints the minutes alone.
    let resets_at = (now / 60 + 120) * 60;
    let _model = start(&mut world, move |_| usage_limit(resets_at));
    world.plimsoll(&["init"]).run().expect_success();
    let script = r#"eval "$(plimsoll start --objective 'Do the plan.')"
        claude -p --model opus < PROMPT.md || true
        plimsoll gate < /dev/null"#;
    let finished = world.command("bash", &["-c", script]).timeout(Duration::from_secs(60)).run();
    assert_eq!(finished.code, Some(75), "{finished:?}");
    let pause = finished.stdout.lines().find(|line| line.starts_with("RALPH_PAUSE|")).expect("a pause");
    let parts: Vec<&str> = pause.splitn(3, '|').collect();
    assert_eq!(world.json(".claude/ralph-state.json")["paused_until"], parts[1], "{pause}");
    let until = store::clock::parse(parts[1]).expect(pause);
    assert_eq!(until.timestamp().unsigned_abs(), resets_at, "{pause}");
    assert!(parts[2].starts_with("usage limit: ") && parts[2].contains("resets"), "{pause}");
}

#[test]
fn gate_and_monitor_say_nothing_and_exit_0_where_there_is_no_run() {
    let world = World::new();
    for verb in ["gate", "monitor"] {
        let finished = world.plimsoll(&[verb]).run();
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), ""), "{verb}: {finished:?}");
    }
}

#[test]
fn start_prints_lines_for_eval_and_refuses_a_second_run() {
    let world = world(ITEMS);
    let started = world
        .plimsoll(&["start", "--objective", "It's a \"task\" with $HOME and `x`"])
        .run()
        .expect_success();
    assert!(started.stdout.lines().all(|line| line.starts_with("export ")), "{}", started.stdout);
    assert!(world.read("PROMPT.md").ends_with("It's a \"task\" with $HOME and `x`"));
    let again = world.plimsoll(&["start", "--objective", "another"]).run();
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("plimsoll stop"), "{}", again.stderr);
}
