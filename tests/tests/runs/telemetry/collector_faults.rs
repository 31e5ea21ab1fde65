//! Whatever happens to the collector or the exporter, the run ends with the same outcome, and as fast.

use super::{
    TWO_ITEM_PLAN, copy_programs_without_exporter, enable_telemetry, received_spans, run_with_programs,
    spans_named, wait_for_run_span,
};
use plimsoll_testkit::world::{FinishedProgram, World};
use plimsoll_tests::collector::{Collector, CollectorBehavior};
use plimsoll_tests::{
    ScriptedAgent, events_named, honest_agent, read_journal, resume_run, run_cases_in_parallel,
    run_with_objective, world_with_plan_and_dates,
};
use serde_json::Value;
use std::time::{Duration, Instant};

/// A finished run and how long it took.
struct PlayedRun {
    world: World,
    finished: FinishedProgram,
    elapsed: Duration,
}

fn play_run(address: Option<&str>) -> PlayedRun {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    if let Some(address) = address {
        enable_telemetry(&mut world, address);
    }
    let _model = ScriptedAgent::new(honest_agent).start(&mut world);
    let started_at = Instant::now();
    let finished = run_with_objective(&world, &["--verify", "true"]);
    PlayedRun { elapsed: started_at.elapsed(), finished, world }
}

/// Returns exit code, verdicts and ticks.
fn run_outcome(run: &PlayedRun) -> (Option<i32>, Vec<String>, String) {
    let journal = read_journal(&run.world);
    let verdicts = events_named(&journal, "verdict").into_iter();
    let verdicts = verdicts.map(|entry| entry["marker"].as_str().unwrap_or_default().to_owned()).collect();
    (run.finished.code, verdicts, run.world.read("fix_plan.md"))
}

/// Waits for the journal entry about lost telemetry, which is written once the exporter has ended.
fn wait_for_lost_telemetry(world: &World) -> Value {
    let lost_entry =
        || events_named(&read_journal(world), "telemetry_lost").first().map(|entry| (*entry).clone());
    world.wait_until(|| lost_entry().is_some(), "what was lost");
    lost_entry().expect("just seen")
}

#[test]
fn collector_faults_change_neither_outcome_nor_duration_of_a_run() {
    let cases = [
        (None, "cannot be reached"),
        (Some(CollectorBehavior::SlowResponse(Duration::from_secs(8))), "answer"),
        (Some(CollectorBehavior::NeverResponds), "answer"),
        (Some(CollectorBehavior::Status(429, "Retry-After: 3600\r\n")), "status 429"),
        (Some(CollectorBehavior::Status(503, "")), "status 503"),
        (Some(CollectorBehavior::Status(400, "")), "status 400"),
        (Some(CollectorBehavior::Status(302, "Location: http://127.0.0.1:1/\r\n")), "a redirect"),
        (Some(CollectorBehavior::InvalidHttp), "127.0.0.1"),
        (Some(CollectorBehavior::GoneAfter(1)), "127.0.0.1"),
    ];
    run_cases_in_parallel(&cases, |&(behavior, expected_trouble)| {
        let collector = behavior.map(Collector::start);
        let address =
            collector.as_ref().map_or_else(Collector::unreachable_address, |one| one.address().to_owned());
        // In pairs, because other tests load the machine, too. A run that waits for its collector is late in each pair.
        let is_as_fast = (0..3).any(|_| {
            let (without, with) = (play_run(None), play_run(Some(&address)));
            assert_eq!(run_outcome(&with), run_outcome(&without), "{behavior:?}: {:?}", with.finished);
            let lost_entry = wait_for_lost_telemetry(&with.world);
            assert!(
                lost_entry["spans"].as_u64() > Some(0) || lost_entry["logs"].as_u64() > Some(0),
                "{lost_entry}"
            );
            assert!(
                lost_entry["trouble"].as_str().is_some_and(|words| words.contains(expected_trouble)),
                "{behavior:?}: {lost_entry}"
            );
            with.elapsed < without.elapsed + without.elapsed / 2 + Duration::from_millis(500)
        });
        assert!(is_as_fast, "{behavior:?} made the run late three times");
    });
}

#[test]
fn spans_that_a_collector_accepts_on_retry_arrive_once() {
    for headers in ["", "Retry-After: 1\r\n"] {
        let collector = Collector::start(CollectorBehavior::StatusForFirst(503, headers, 2));
        let PlayedRun { world, finished, .. } = play_run(Some(collector.address()));
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let spans = wait_for_run_span(&world, &collector);
        assert_eq!(
            (spans_named(&spans, "plimsoll run").len(), spans_named(&spans, "iteration").len()),
            (1, 2)
        );
        let mut ids: Vec<_> = spans.iter().map(|span| span.id.clone()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), spans.len());
        assert!(events_named(&read_journal(&world), "telemetry_lost").is_empty());
    }
}

#[test]
fn a_stopped_or_ended_exporter_delays_no_run_and_its_end_is_reported() {
    for (script, is_reported) in [("kill -STOP $$", false), ("exit 3", true), ("exec sleep 30 <&-", true)] {
        let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
        let program_folder = copy_programs_without_exporter(&world);
        let pid = world.home().join("pid");
        let script = format!("#!/bin/sh\necho $$ > '{}'\n{script}\n", pid.display());
        world.write_program(program_folder.join("plimsoll-otel"), &script);
        enable_telemetry(&mut world, &Collector::unreachable_address());
        let _model = ScriptedAgent::new(honest_agent).start(&mut world);
        let finished = run_with_programs(&world, &program_folder);
        assert_eq!(finished.code, Some(0), "{script}: {finished:?}");
        let journal = read_journal(&world);
        let lost = events_named(&journal, "telemetry_lost");
        assert_eq!(lost.len(), usize::from(is_reported), "{script}: {journal:#?}");
        for lost in lost {
            assert_eq!(lost["trouble"], "plimsoll-otel ended before the run did", "{script}");
            assert!(lost["spans"].as_u64() > Some(3), "{script}: {lost}");
        }
        // Our exporter, by the process id that it has written itself.
        let pid: i32 = world.read(&pid).trim().parse().expect("it was started");
        let _ = world.command("kill", &["-KILL", &pid.to_string()]).run();
    }
}

#[test]
fn spans_of_a_killed_run_arrive_and_the_resumed_run_is_below_them() {
    let collector = Collector::start(CollectorBehavior::Accepting);
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    enable_telemetry(&mut world, collector.address());
    let _model = ScriptedAgent::new(|turn| honest_agent(turn).with_delay(Duration::from_millis(400)))
        .start(&mut world);
    let arguments = [
        "run",
        "--objective",
        "Do the plan.",
        "--name",
        "Dates",
        "--",
        "--model",
        "opus",
        "--allowedTools",
        "Bash",
    ];
    let mut running = world.plimsoll(&arguments).spawn();
    let is_first_item_done = || world.exists("work.txt");
    world.wait_until(is_first_item_done, "the first item");
    running.kill();
    let spans_of_first = wait_for_run(&world, &collector, 1);
    let first_run = spans_named(&spans_of_first, "plimsoll run")[0].clone();
    assert!(first_run.is_failed && first_run.parent_id.is_empty(), "{first_run:?}");
    let finished = resume_run(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let all_spans = wait_for_run(&world, &collector, 2);
    let second_run = spans_named(&all_spans, "plimsoll run")[1];
    assert_eq!((&second_run.parent_id, second_run.is_failed), (&first_run.id, false));
    assert!(all_spans.iter().all(|span| span.trace_id == first_run.trace_id));
    let mut ids: Vec<_> = all_spans.iter().map(|span| &span.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all_spans.len(), "{all_spans:#?}");
}

fn wait_for_run(world: &World, collector: &Collector, count: usize) -> Vec<super::ReceivedSpan> {
    let has_run_spans = || spans_named(&received_spans(collector), "plimsoll run").len() >= count;
    world.wait_until(has_run_spans, "the span of the run");
    received_spans(collector)
}
