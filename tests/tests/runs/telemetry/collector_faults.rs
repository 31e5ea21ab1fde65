//! Whatever becomes of the collector or of the exporter, the run ends as it would, and as soon.

use super::{TWO, named, run_by, set_telemetry, spans, wait_for_end, without_exporter};
use plimsoll_testkit::world::{Finished, World};
use plimsoll_tests::collector::{Collector, Manner};
use plimsoll_tests::{ScriptedAgent, events, honest, journal, resume, run, side_by_side, world};
use serde_json::Value;
use std::time::{Duration, Instant};

/// What a run without telemetry would say, and how long it took.
struct Played {
    world: World,
    finished: Finished,
    time: Duration,
}

fn played(address: Option<&str>) -> Played {
    let mut world = world(TWO);
    if let Some(address) = address {
        set_telemetry(&mut world, address);
    }
    let _model = ScriptedAgent::new(honest).start(&mut world);
    let started = Instant::now();
    let finished = run(&world, &["--verify", "true"]);
    Played { time: started.elapsed(), finished, world }
}

/// Exit code, verdicts and ticks.
fn outcome(played: &Played) -> (Option<i32>, Vec<String>, String) {
    let journal = journal(&played.world);
    let verdicts = events(&journal, "verdict").into_iter();
    let verdicts = verdicts.map(|entry| entry["marker"].as_str().unwrap_or_default().to_owned()).collect();
    (played.finished.code, verdicts, played.world.read("fix_plan.md"))
}

/// The line about what was lost, once the exporter has ended.
fn lost(world: &World) -> Value {
    let found = || events(&journal(world), "telemetry_lost").first().map(|entry| (*entry).clone());
    world.wait_until(|| found().is_some(), "what was lost");
    found().expect("just seen")
}

#[test]
fn the_outcome_and_the_time_of_a_run_are_the_same_with_every_fault_of_a_collector() {
    let faults = [
        (None, "cannot be reached"),
        (Some(Manner::Slow(Duration::from_secs(8))), "answer"),
        (Some(Manner::Silent), "answer"),
        (Some(Manner::Status(429, "Retry-After: 3600\r\n")), "status 429"),
        (Some(Manner::Status(503, "")), "status 503"),
        (Some(Manner::Status(400, "")), "status 400"),
        (Some(Manner::Status(302, "Location: http://127.0.0.1:1/\r\n")), "a redirect"),
        (Some(Manner::Garbage), "127.0.0.1"),
        (Some(Manner::Gone(1)), "127.0.0.1"),
    ];
    side_by_side(&faults, |&(manner, trouble)| {
        let collector = manner.map(Collector::start);
        let address = collector.as_ref().map_or_else(Collector::nowhere, |one| one.address().to_owned());
        // In pairs: other tests take their share of the computer. A run that waits for its collector is late in each.
        let is_as_quick = (0..3).any(|_| {
            let (without, with) = (played(None), played(Some(&address)));
            assert_eq!(outcome(&with), outcome(&without), "{manner:?}: {:?}", with.finished);
            let said = lost(&with.world);
            assert!(said["spans"].as_u64() > Some(0) || said["logs"].as_u64() > Some(0), "{said}");
            assert!(
                said["trouble"].as_str().is_some_and(|words| words.contains(trouble)),
                "{manner:?}: {said}"
            );
            with.time < without.time + without.time / 2 + Duration::from_millis(500)
        });
        assert!(is_as_quick, "{manner:?} made the run late three times");
    });
}

#[test]
fn what_a_collector_takes_later_arrives_once() {
    for headers in ["", "Retry-After: 1\r\n"] {
        let collector = Collector::start(Manner::StatusAtFirst(503, headers, 2));
        let Played { world, finished, .. } = played(Some(collector.address()));
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let spans = wait_for_end(&world, &collector);
        assert_eq!((named(&spans, "plimsoll run").len(), named(&spans, "iteration").len()), (1, 2));
        let mut ids: Vec<_> = spans.iter().map(|span| span.id.clone()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), spans.len());
        assert!(events(&journal(&world), "telemetry_lost").is_empty());
    }
}

#[test]
fn an_exporter_that_is_stopped_or_has_ended_keeps_nobody_waiting_and_its_end_is_told() {
    for (script, is_told) in [("kill -STOP $$", false), ("exit 3", true), ("exec sleep 30 <&-", true)] {
        let mut world = world(TWO);
        let apart = without_exporter(&world);
        let pid = world.home().join("pid");
        let script = format!("#!/bin/sh\necho $$ > '{}'\n{script}\n", pid.display());
        world.write_program(apart.join("plimsoll-otel"), &script);
        set_telemetry(&mut world, &Collector::nowhere());
        let _model = ScriptedAgent::new(honest).start(&mut world);
        let finished = run_by(&world, &apart);
        assert_eq!(finished.code, Some(0), "{script}: {finished:?}");
        let journal = journal(&world);
        let lost = events(&journal, "telemetry_lost");
        assert_eq!(lost.len(), usize::from(is_told), "{script}: {journal:#?}");
        for lost in lost {
            assert_eq!(lost["trouble"], "plimsoll-otel ended before the run did", "{script}");
            assert!(lost["spans"].as_u64() > Some(3), "{script}: {lost}");
        }
        // Ours, by the id that it has written itself.
        let pid: i32 = world.read(&pid).trim().parse().expect("it was started");
        let _ = world.command("kill", &["-KILL", &pid.to_string()]).run();
    }
}

#[test]
fn a_run_that_is_killed_leaves_what_it_did_and_its_next_process_goes_on_below() {
    let collector = Collector::start(Manner::Good);
    let mut world = world(TWO);
    set_telemetry(&mut world, collector.address());
    let _model = ScriptedAgent::new(|turn| honest(turn).delay(Duration::from_millis(400))).start(&mut world);
    let words = [
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
    let mut running = world.plimsoll(&words).spawn();
    let is_at_work = || world.exists("work.txt");
    world.wait_until(is_at_work, "the first item");
    running.kill();
    let spans_of_first = wait_for_run(&world, &collector, 1);
    let first = named(&spans_of_first, "plimsoll run")[0].clone();
    assert!(first.failed && first.parent.is_empty(), "{first:?}");
    let finished = resume(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let all = wait_for_run(&world, &collector, 2);
    let second = named(&all, "plimsoll run")[1];
    assert_eq!((&second.parent, second.failed), (&first.id, false));
    assert!(all.iter().all(|span| span.trace == first.trace));
    let mut ids: Vec<_> = all.iter().map(|span| &span.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all.len(), "{all:#?}");
}

fn wait_for_run(world: &World, collector: &Collector, count: usize) -> Vec<super::Told> {
    let arrived = || named(&spans(collector), "plimsoll run").len() >= count;
    world.wait_until(arrived, "the span of the run");
    spans(collector)
}
