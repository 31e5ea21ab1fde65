//! Limits pause and do not count; money, tokens, time and the user's share of a quota end or hold the run.

use crate::resume::harness::{section, stable_block};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use plimsoll_tests::{
    ITEMS, LIFELIKE, ScriptedAgent, events, honest, journal, markers, resume, run, subscribed, usage_limit,
    with_quota, world,
};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const STATE: &str = ".claude/ralph-state.json";

fn in_seconds(seconds: u64) -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs() + seconds
}

/// When a limit is lifted: seconds after somebody first asked, however late a slow machine asks.
#[derive(Clone, Default)]
struct Reset(Arc<OnceLock<u64>>);

impl Reset {
    fn at(&self) -> u64 {
        *self.0.get_or_init(|| in_seconds(10))
    }
}

fn status_and_iteration(world: &World) -> (String, u64) {
    let state = world.json(STATE);
    (state["status"].as_str().unwrap_or_default().to_owned(), state["iteration"].as_u64().unwrap_or(0))
}

#[test]
fn a_usage_limit_waits_for_its_reset_and_goes_on_by_itself_with_the_same_iteration() {
    let mut world = subscribed(ITEMS);
    let reset = Reset::default();
    let model = ScriptedAgent::new({
        let reset = reset.clone();
        move |turn| match turn.iteration {
            2 if in_seconds(0) < reset.at() => usage_limit(reset.at()),
            _ => honest(turn).delay(LIFELIKE),
        }
    })
    .with_real_client_in(&[2])
    .start(&mut world);
    let finished = run(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(status_and_iteration(&world), ("completed".to_owned(), 3));
    assert!(in_seconds(0) >= reset.at(), "not before the reset");
    let verdicts = markers(&journal(&world));
    let pauses: Vec<&String> = verdicts.iter().filter(|marker| marker.starts_with("RALPH_PAUSE|2")).collect();
    assert_eq!(pauses.len(), 1, "one pause, until the reset: {verdicts:?}");
    let (reason, _) = pauses[0].split_once(" · resets ").expect("when it resets");
    insta::assert_snapshot!(world.stable_text(reason), @"RALPH_PAUSE|[DATE-TIME]|usage limit: You've hit your 5-hour limit");
    assert!(finished.stdout.contains("paused until "), "{}", finished.stdout);
    let refused = model
        .main_requests()
        .iter()
        .filter(|request| request.text().contains("You are session 2 of"))
        .count();
    assert!(refused <= 5, "the limit was not run against: {refused} requests");
    let state = world.json(STATE);
    assert_eq!((&state["no_change_count"], &state["pauses"]), (&json!(0), &json!(1)));
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n");
}

#[test]
fn a_run_that_is_killed_while_it_waits_waits_on_when_it_is_resumed() {
    let mut world = subscribed(ITEMS);
    let reset = Reset::default();
    let asked = Arc::new(AtomicUsize::new(0));
    let _model = ScriptedAgent::new({
        let asked = Arc::clone(&asked);
        move |turn| {
            if in_seconds(0) < reset.at() {
                asked.fetch_add(1, Ordering::SeqCst);
                return usage_limit(reset.at());
            }
            honest(turn).delay(LIFELIKE)
        }
    })
    .with_real_client_in(&[1])
    .start(&mut world);
    let objective = ["run", "--objective", "Do the plan.", "--", "--model", "opus", "--allowedTools", "Bash"];
    let mut paused = world.plimsoll(&objective).spawn();
    world.wait_until(|| paused.stdout_so_far().contains("paused until"), "the pause");
    assert_eq!(status_and_iteration(&world), ("paused".to_owned(), 1));
    assert!(world.json(STATE)["paused_until"].is_string());
    paused.kill();
    let before = asked.load(Ordering::SeqCst);

    let held = resume(&world, &["--no-wait"]);
    assert_eq!(held.code, Some(6), "it does not sit through it, and asks nobody: {held:?}");
    let finished = resume(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(asked.load(Ordering::SeqCst), before, "nobody was asked before the reset");
    assert_eq!(status_and_iteration(&world), ("completed".to_owned(), 3));
}

#[test]
fn a_rate_limit_without_a_reset_is_tried_again_within_seconds_and_counts_for_nothing() {
    let mut world = world(ITEMS);
    let left = Arc::new(AtomicUsize::new(4));
    let _model = ScriptedAgent::new({
        let left = Arc::clone(&left);
        move |turn| {
            let refuse = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            if refuse.is_ok() {
                Step::error(429, "Number of requests has exceeded your rate limit")
            } else {
                honest(turn).delay(LIFELIKE)
            }
        }
    })
    .start(&mut world);
    let finished = run(&world, &["--max-iterations", "3"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(status_and_iteration(&world), ("completed".to_owned(), 3));
    let verdicts = markers(&journal(&world));
    assert!(verdicts[0].starts_with("RALPH_PAUSE|-|usage limit: "), "{verdicts:?}");
    assert!(finished.elapsed < Duration::from_secs(50), "{:?}", finished.elapsed);
}

#[test]
fn a_file_that_speaks_of_a_limit_or_an_error_is_none() {
    let mut world = world(ITEMS);
    world.write(
        "notes.txt",
        "You've hit your 5-hour limit · resets 3am\n\"is_error\": true\nError: usage limit reached|1795270982\nAPI Error: 529\n",
    );
    let _model = ScriptedAgent::new(|turn| {
        let item = turn.item.clone().unwrap_or_default();
        let step = match turn.step {
            0 => Step::bash("cat notes.txt"),
            1 => Step::bash(format!("echo '{item}' >> work.txt && {}", plimsoll_testkit::story::tick(&item))),
            _ if item == "Item three" => {
                Step::text(format!("5-hour limit reached, resets 3am. error\n\n{}", turn.promise))
            }
            _ => Step::text("You've hit your 5-hour limit · resets 3am. Error: usage limit reached"),
        };
        step.delay(LIFELIKE)
    })
    .start(&mut world);
    let finished = run(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let state = world.json(STATE);
    assert_eq!((&state["status"], &state["pauses"]), (&json!("completed"), &json!(0)));
    assert_eq!(state["error_hashes"], json!([]));
}

/// The cost of one session with the scripted model, as reported by Claude Code.
fn cost(world: &World) -> f64 {
    world.json(STATE)["cost_usd"].as_f64().unwrap_or(0.0)
}

#[test]
fn money_ends_the_run_and_more_of_it_opens_it_again() {
    let mut world = world(ITEMS);
    let _model =
        ScriptedAgent::new(|turn| honest(turn).delay(LIFELIKE)).with_real_client_in(&[1]).start(&mut world);
    let finished = run(&world, &["--max-cost", "0.001"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let state = world.json(STATE);
    assert_eq!((&state["status"], &state["iteration"]), (&json!("budget"), &json!(1)));
    assert!(cost(&world) >= 0.001);
    let last = finished.stdout.lines().last().unwrap_or_default();
    insta::assert_snapshot!(last, @"   RALPH_STOP|budget|$0.01 of $0.00 spent   ($0.01)");

    let same = resume(&world, &[]);
    assert_eq!(same.code, Some(3), "{same:?}");
    insta::assert_snapshot!(world.stable_text(&same.stderr), @r#"plimsoll: the run "Dates" is over (budget): plimsoll run --resume --max-cost USD (or --max-tokens N), with more"#);
    assert_eq!(world.json(STATE)["iteration"], 1);

    let more = resume(&world, &["--max-cost", "50"]);
    assert_eq!(more.code, Some(0), "{more:?}");
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n");
}

/// The ledger of the newest run, outside the project.
fn ledger(world: &World) -> std::path::PathBuf {
    let run_id = world.json(STATE)["run_id"].as_str().expect("a run").to_owned();
    world.home().join(".local/state/plimsoll/runs").join(run_id).join("ledger.json")
}

#[test]
fn what_a_day_may_cost_is_counted_over_all_runs_and_waits_for_the_next_day() {
    let mut world = world("- [ ] Item one\n");
    // The first run takes two; the third is the one that has little left.
    let model = ScriptedAgent::new(|turn| honest(turn).delay(LIFELIKE))
        .with_real_client_in(&[1, 3])
        .start(&mut world);
    run(&world, &["--max-cost-per-day", "50"]).expect_success();
    let (first, spent) = (ledger(&world), cost(&world));
    assert!(spent > 0.012, "{spent}");

    // Another run, of a plan of its own: what the first has spent counts before it has begun anything.
    world.write("fix_plan.md", ITEMS);
    let requests = model.main_requests().len();
    let a_day = format!("{:.4}", spent - 0.001);
    let held = run(&world, &["--no-wait", "--max-cost-per-day", &a_day]);
    assert_eq!(held.code, Some(6), "{held:?}");
    assert_eq!(model.main_requests().len(), requests, "no session has begun: {held:?}");
    let words = format!("of ${:.2} a day spent by all runs together", spent - 0.001);
    assert!(held.stdout.contains(&words), "{held:?}");
    let state = world.json(STATE);
    let until = state["paused_until"].as_str().expect("until when").to_owned();
    let hours = world.command("date", &["-d", &until, "+%H:%M:%S"]).run().stdout;
    assert_eq!((hours.trim(), &state["status"]), ("00:00:00", &json!("paused")), "{until}");

    // What was spent yesterday is of yesterday. (The figure of another run, as if the night had passed.)
    let text = std::fs::read_to_string(&first).expect("a ledger");
    let today = world.command("date", &["+%F"]).run().stdout;
    let yesterday = text.replace(&format!("\"day\":\"{}\"", today.trim()), "\"day\":\"2026-01-07\"");
    assert_ne!(text, yesterday, "the ledger says what was spent today");
    std::fs::write(&first, yesterday).expect("the ledger");
    // The limit that the run has now holds after its first session.
    let after_one = resume(&world, &["--no-wait", "--max-cost-per-day", "0.012"]);
    assert_eq!(after_one.code, Some(6), "{after_one:?}");
    assert_eq!(status_and_iteration(&world), ("paused".to_owned(), 1));
    assert!(world.plimsoll(&["status"]).run().stdout.contains("of $0.01 a day"), "status says so");

    // An agent cannot lift it: what the project's file says of the day counts for nothing.
    let mut state = world.json(STATE);
    state["cost_of_day"] = Value::Null;
    state["spent_today"] = Value::Null;
    state["limits"]["max_cost_per_day_usd"] = json!(99.0);
    world.write(STATE, &state.to_string());
    let held = resume(&world, &["--no-wait"]);
    assert_eq!(held.code, Some(6), "{held:?}");
    assert_eq!(status_and_iteration(&world), ("paused".to_owned(), 1));

    let more = resume(&world, &["--max-cost-per-day", "50"]);
    assert_eq!(more.code, Some(0), "{more:?}");
    let (status, iterations) = status_and_iteration(&world);
    // The client itself may have cut the first session short.
    assert!(status == "completed" && (3..=4).contains(&iterations), "{status} {iterations}");
}

#[test]
fn one_session_cannot_spend_more_than_what_is_left() {
    let mut world = world(ITEMS);
    // Each answer costs several dollars by the client's own prices.
    let model = ScriptedAgent::new(|turn| {
        Step::bash(format!("echo {} >> steps.txt", turn.step)).usage_parts(600_000, 0, 0).delay(LIFELIKE)
    })
    .with_real_client()
    .start(&mut world);
    let finished = run(&world, &["--max-cost", "4"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let steps = model.main_requests().len();
    assert!(steps <= 3, "the client itself was told the limit: {steps} requests");
    assert_eq!(status_and_iteration(&world), ("budget".to_owned(), 1));
}

#[test]
fn tokens_end_the_run() {
    let mut world = world(ITEMS);
    let _model = ScriptedAgent::new(|turn| honest(turn).delay(LIFELIKE)).start(&mut world);
    let finished = run(&world, &["--max-tokens", "100k"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let state = world.json(STATE);
    assert_eq!((&state["status"], &state["iteration"]), (&json!("budget"), &json!(2)));
    let tokens = state["tokens"].as_u64().unwrap_or(0);
    assert!((100_000..140_000).contains(&tokens), "two sessions of two answers each: {tokens}");
}

#[test]
fn the_deadline_ends_a_session_at_work_and_keeps_what_it_did() {
    let mut world = world(ITEMS);
    let _model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        (2, 0) => Step::bash("sed -i '45,80s/$/ changed/' src/dates.txt").usage(30_000).delay(LIFELIKE),
        (2, _) => Step::text("too late").delay(Duration::from_secs(60)),
        _ => honest(turn).delay(LIFELIKE),
    })
    .start(&mut world);
    let finished = run(&world, &["--deadline", "16s"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.elapsed < Duration::from_secs(40), "{:?}", finished.elapsed);
    let state = world.json(STATE);
    assert_eq!((&state["status"], &state["iteration"]), (&json!("deadline"), &json!(2)));
    let handoff = state["context_checkpoint"]["handoff_file"].as_str().expect("a handoff");
    let handoff = world.read(handoff);
    let files = section(&handoff, "## Files of the item, the one touched last first");
    insta::assert_snapshot!(stable_block(&world, files), @"
    ## Files of the item, the one touched last first

    | File | Lines touched last | Change since [Finish Item one] |
    |---|---|---|
    | src/dates.txt | 45-80 | modified, committed (+36 -36) |
    ");
    let past = resume(&world, &[]);
    assert_eq!(past.code, Some(3), "{past:?}");
    insta::assert_snapshot!(world.stable_text(&past.stderr), @r#"plimsoll: the run "Dates" is over (deadline): plimsoll run --resume --deadline TIME, with a later one"#);
    let bad = world.plimsoll(&["run", "--resume", "--deadline", "2001-01-01 07:00"]).run();
    assert_eq!(bad.code, Some(2), "{bad:?}");
    insta::assert_snapshot!(bad.stderr, @"
    error: invalid value '2001-01-01 07:00' for '--deadline <TIME|DURATION>': 2001-01-01 07:00 is in the past

    For more information, try '--help'.
    ");
}

#[test]
fn a_share_of_the_quota_holds_the_run_until_the_quota_begins_anew() {
    let mut world = subscribed(ITEMS);
    let reset = Reset::default();
    let _model = ScriptedAgent::new(move |turn| {
        let resets_at = reset.at();
        let used = if in_seconds(0) < resets_at { 0.83 } else { 0.04 };
        with_quota(honest(turn), "allowed", used, if used > 0.5 { resets_at } else { resets_at + 18_000 })
            .delay(LIFELIKE)
    })
    .with_real_client_in(&[1])
    .start(&mut world);
    let finished = run(&world, &["--stop-at-limit", "80"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let journal = journal(&world);
    let verdicts = markers(&journal);
    let pauses: Vec<&String> = verdicts.iter().filter(|marker| marker.starts_with("RALPH_PAUSE")).collect();
    assert_eq!(pauses.len(), 1, "{verdicts:?}");
    insta::assert_snapshot!(world.stable_text(pauses[0]), @"RALPH_PAUSE|[DATE-TIME]|83% of the five-hour quota is used, and the run stops at 80%");
    assert_eq!(status_and_iteration(&world), ("completed".to_owned(), 3), "a session that worked is counted");
    let begun: Vec<&Value> =
        events(&journal, "spawned").into_iter().map(|entry| &entry["iteration"]).collect();
    assert_eq!(begun, [1, 2, 3]);
}

#[test]
fn a_larger_share_opens_a_run_that_waits_for_its_quota() {
    let mut world = subscribed(ITEMS);
    let resets_at = in_seconds(7_200);
    let _model =
        ScriptedAgent::new(move |turn| with_quota(honest(turn), "allowed", 0.83, resets_at).delay(LIFELIKE))
            .with_real_client_in(&[1])
            .start(&mut world);
    let held = run(&world, &["--stop-at-limit", "80", "--no-wait"]);
    assert_eq!(held.code, Some(6), "{held:?}");
    assert_eq!(resume(&world, &["--no-wait"]).code, Some(6), "it waits on");
    assert_eq!(status_and_iteration(&world), ("paused".to_owned(), 1));
    let opened = resume(&world, &["--stop-at-limit", "100"]);
    assert_eq!(opened.code, Some(0), "{opened:?}");
    assert_eq!(status_and_iteration(&world), ("completed".to_owned(), 3));
}

#[test]
fn a_quota_figure_without_a_reset_is_forgotten_at_resume() {
    let mut world = world(ITEMS);
    let _model = ScriptedAgent::new(|turn| honest(turn).delay(LIFELIKE)).start(&mut world);
    let stopped = run(&world, &["--max-iterations", "1", "--stop-at-limit", "80"]);
    assert_eq!(stopped.code, Some(3), "{stopped:?}");
    // As a run stands whose client told of a share and of no reset; this client tells of none without.
    let mut state = world.json(STATE);
    let reason = "85% of the five-hour quota is used, and the run stops at 80%";
    state["status"] = json!("budget");
    state["last_verdict"] = json!({"verdict": "stop", "status": "budget", "reason": reason});
    state["max_iterations"] = json!(50);
    state["quota"] = json!({"five_hour": {"percent": 85.0}});
    world.put_run(&state);
    let status = world.plimsoll(&["status"]).run().stdout;
    insta::assert_snapshot!(world.stable_text(&status), @"
    Dates ([ID])
    Status       out of quota (budget): 85% of the five-hour quota is used, and the run stops at 80%
    Items        1 of 3 done, 2 open
      [x] Item one
      [ ] Item two
      [ ] Item three
    Sessions     1 of at most 50
    Peaks        3%
    Cost         $0.01, 61k tokens
    Quota        five-hour 85%; waits at 80%
    Time         started [TIME], ended [TIME], took [DURATION]
    Next         plimsoll run --resume, when the quota has room again (or with a larger --stop-at-limit
                 PERCENT)
    More         plimsoll report, plimsoll log, or .claude/plimsoll/journal.jsonl; recorded: [SIZE]
    ");
    let opened = resume(&world, &[]);
    assert_eq!(opened.code, Some(0), "{opened:?}");
    assert_eq!(status_and_iteration(&world), ("completed".to_owned(), 3));
}
