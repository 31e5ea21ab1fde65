//! What holds a fleet's machines up, and what ends one: a usage limit, Ctrl-C twice, SIGTERM, and the sessions that all may begin.

use super::harness::{Fleet, LIMIT, Terms, all_end_well, assert_tidy, honest, join, processes};
use plimsoll_testkit::story::story;
use plimsoll_testkit::world::Running;
use plimsoll_tests::{side_by_side, usage_limit};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs_f64()
}

#[test]
fn a_usage_limit_that_one_machine_meets_holds_all_of_them_until_it_is_over() {
    let fleet = Fleet::new(&["Item 1", "Item 2", "Item 3", "Item 4"], &Terms::default());
    // When the limit is lifted, and when sessions have begun.
    let (reset, begun) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(Vec::new())));
    let model = story({
        let (reset, begun) = (Arc::clone(&reset), Arc::clone(&begun));
        move |turn| {
            let is_met = turn.item.as_deref() == Some("Item 2") && turn.step == 0;
            let mut reset = reset.lock().expect("nobody panics");
            // The other machine is at work by then, and comes to its end.
            let until = *reset.get_or_insert_with(|| now().ceil() + 5.0);
            if is_met && now() < until {
                return usage_limit(until as u64);
            }
            if turn.step == 0 {
                begun.lock().expect("nobody panics").push(now());
            }
            honest(turn).delay(Duration::from_millis(500))
        }
    });
    let machines = [fleet.real_machine(&model), fleet.real_machine(&model)].map(|mut machine| {
        machine.set_env("ANTHROPIC_API_KEY", "");
        machine.set_env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-scripted-model-only-000000");
        machine
    });
    let running: Vec<Running> = machines.iter().map(|machine| join(machine, &[])).collect();
    fleet.source.wait_until(
        || fleet.server.sql("select paused_until > plimsoll.moment() from plimsoll.plan") == "t",
        "the fleet is paused",
    );
    let paused = now();
    let status = fleet.source.plimsoll(&["fleet", "status", "night"]).run().expect_success().stdout;
    assert!(status.contains("a usage limit"), "{status}");
    all_end_well(&machines, running);
    fleet.assert_landed_once("");
    let until = reset.lock().expect("nobody panics").expect("it was met");
    let begun = begun.lock().expect("nobody panics").clone();
    // The other machine's client may have been starting; after that session another one would have followed.
    let early = begun.iter().filter(|at| **at > paused && **at < until).count();
    assert!(early <= 1, "paused from {paused} to {until}: {begun:?}");
    assert!(begun.iter().filter(|at| **at >= until).count() >= 2, "{begun:?}");
    assert_eq!(fleet.server.sql("select sum(tries) from plimsoll.item"), "0", "it costs nobody a try");
}

#[test]
fn all_machines_together_begin_no_more_sessions_than_the_fleet_may() {
    let items = ["Item 1", "Item 2", "Item 3", "Item 4"];
    let fleet = Fleet::new(&items, &Terms { max_iterations: Some(3), ..Terms::default() });
    let model = story(|turn| honest(turn).delay(Duration::from_millis(300)));
    let machines = [fleet.machine(&model), fleet.machine(&model)];
    let running: Vec<Running> = machines.iter().map(|machine| join(machine, &[])).collect();
    for running in running {
        let finished = running.wait(LIMIT);
        assert_eq!(finished.code, Some(3), "{finished:?}");
        assert!(finished.stdout.contains("3 sessions used by the whole fleet"), "{finished:?}");
    }
    assert_eq!(model.main_requests().len(), 6, "three sessions of two answers");
    let stages = "select count(*) filter (where stage = 'merged'), count(*) filter (where stage = 'open') from plimsoll.item";
    assert_eq!(fleet.server.sql(stages), "3|1");
    let late = join(&fleet.machine(&model), &[]).wait(LIMIT);
    assert!(late.code == Some(3) && late.stdout.contains("sessions used by the whole fleet"), "{late:?}");
}

#[test]
fn ctrl_c_twice_or_sigterm_ends_a_machine_now_and_another_goes_on_with_what_it_had() {
    side_by_side(&["twice", "SIGTERM"], |how| {
        let fleet = Fleet::new(&["Item 1", "Item 2"], &Terms::default());
        let mut sessions = 0;
        let model = story(move |turn| {
            sessions += usize::from(turn.step == 0);
            match turn.step {
                // It leaves something, and would go on for long.
                1 if sessions <= 1 => honest(turn).delay(Duration::from_secs(100)),
                _ => honest(turn),
            }
        });
        let machine = fleet.machine(&model);
        let mut running = join(&machine, &[]);
        fleet.source.wait_until(|| model.main_requests().len() >= 2, "it works");
        if *how == "twice" {
            running.interrupt();
            let said = "plimsoll fleet join night continues";
            fleet.source.wait_until(|| running.stdout_so_far().contains(said), "it says what goes on");
            running.interrupt();
        } else {
            running.terminate();
        }
        let ended = running.wait(LIMIT);
        assert_eq!(ended.code, Some(130), "{how}: {ended:?}");
        assert!(processes(&machine).is_empty(), "{how}: {ended:?}");
        // Nobody has to wait for its lease, and nothing of it is lost.
        assert_eq!(
            fleet.server.sql("select string_agg(distinct stage, ' '), sum(tries) from plimsoll.item"),
            "open|0",
            "{how}: {ended:?}"
        );
        let other = fleet.machine(&model);
        let finished = join(&other, &["--workers", "2"]).wait(LIMIT);
        assert_eq!(finished.code, Some(0), "{how}: {finished:?}");
        fleet.assert_landed_once(&format!("{how}: {finished:?}"));
        assert_tidy(&other, &finished);
    });
}
