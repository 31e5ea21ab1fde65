//! What pauses the machines of a fleet and what ends one: a usage limit, Ctrl-C twice, SIGTERM, and the session limit
//! of the fleet.

use super::harness::{
    FLEET_TIMEOUT, Fleet, FleetOptions, assert_all_end_well, assert_nothing_left_behind, honest_agent,
    machine_processes, spawn_join,
};
use plimsoll_testkit::scripted_agent::start_model_with_turn_script;
use plimsoll_testkit::world::RunningProgram;
use plimsoll_tests::{run_cases_in_parallel, usage_limit_error};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn unix_seconds_now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs_f64()
}

#[test]
fn a_usage_limit_of_one_machine_pauses_all_machines_until_it_is_reset() {
    let fleet = Fleet::new(&["Item 1", "Item 2", "Item 3", "Item 4"], &FleetOptions::default());
    // When the limit ends, and when sessions started.
    let (reset_at, session_starts) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(Vec::new())));
    let model = start_model_with_turn_script({
        let (reset_at, session_starts) = (Arc::clone(&reset_at), Arc::clone(&session_starts));
        move |turn| {
            let is_limited_session =
                turn.item_text.as_deref() == Some("Item 2") && turn.assistant_message_count == 0;
            let mut reset_at = reset_at.lock().expect("nobody panics");
            // By then the other machine is at work, and its session runs to its end.
            let reset_seconds = *reset_at.get_or_insert_with(|| unix_seconds_now().ceil() + 5.0);
            if is_limited_session && unix_seconds_now() < reset_seconds {
                return usage_limit_error(reset_seconds as u64);
            }
            if turn.assistant_message_count == 0 {
                session_starts.lock().expect("nobody panics").push(unix_seconds_now());
            }
            honest_agent(turn).with_delay(Duration::from_millis(500))
        }
    });
    let machines =
        [fleet.real_client_machine(&model), fleet.real_client_machine(&model)].map(|mut machine| {
            machine.set_env("ANTHROPIC_API_KEY", "");
            machine.set_env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-scripted-model-only-000000");
            machine
        });
    let running: Vec<RunningProgram> = machines.iter().map(|machine| spawn_join(machine, &[])).collect();
    fleet.source.wait_until(
        || {
            fleet.server.run_sql("select paused_until > plimsoll_night.moment() from plimsoll_night.plan")
                == "t"
        },
        "the fleet is paused",
    );
    let paused_at = unix_seconds_now();
    let status = fleet.source.plimsoll(&["fleet", "status", "night"]).run().expect_success().stdout;
    assert!(status.contains("a usage limit"), "{status}");
    assert_all_end_well(&machines, running);
    fleet.assert_landed_once("");
    let reset_seconds = reset_at.lock().expect("nobody panics").expect("it was met");
    let session_starts = session_starts.lock().expect("nobody panics").clone();
    // The other machine's client may have been starting already; without the pause another session would have
    // followed.
    let early_count =
        session_starts.iter().filter(|start| **start > paused_at && **start < reset_seconds).count();
    assert!(early_count <= 1, "paused from {paused_at} to {reset_seconds}: {session_starts:?}");
    assert!(
        session_starts.iter().filter(|start| **start >= reset_seconds).count() >= 2,
        "{session_starts:?}"
    );
    assert_eq!(
        fleet.server.run_sql("select sum(tries) from plimsoll_night.item"),
        "0",
        "it costs nobody a try"
    );
}

#[test]
fn the_session_limit_of_a_fleet_holds_for_all_machines_together() {
    let items = ["Item 1", "Item 2", "Item 3", "Item 4"];
    let fleet = Fleet::new(&items, &FleetOptions { max_iterations: Some(3), ..FleetOptions::default() });
    let model =
        start_model_with_turn_script(|turn| honest_agent(turn).with_delay(Duration::from_millis(300)));
    let machines = [fleet.replay_machine(&model), fleet.replay_machine(&model)];
    let running: Vec<RunningProgram> = machines.iter().map(|machine| spawn_join(machine, &[])).collect();
    for running in running {
        let finished = running.wait_or_kill_and_panic(FLEET_TIMEOUT);
        assert_eq!(finished.code, Some(3), "{finished:?}");
        assert!(finished.stdout.contains("3 sessions used by the whole fleet"), "{finished:?}");
    }
    assert_eq!(model.main_requests().len(), 6, "three sessions of two answers");
    let stage_counts_sql = "select count(*) filter (where stage = 'merged'), count(*) filter (where stage = 'open') from plimsoll_night.item";
    assert_eq!(fleet.server.run_sql(stage_counts_sql), "3|1");
    let late_machine = spawn_join(&fleet.replay_machine(&model), &[]).wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert!(
        late_machine.code == Some(3) && late_machine.stdout.contains("sessions used by the whole fleet"),
        "{late_machine:?}"
    );
}

#[test]
fn ctrl_c_twice_or_sigterm_ends_a_machine_and_another_takes_its_items() {
    run_cases_in_parallel(&["twice", "SIGTERM"], |signal| {
        let fleet = Fleet::new(&["Item 1", "Item 2"], &FleetOptions::default());
        let mut session_count = 0;
        let model = start_model_with_turn_script(move |turn| {
            session_count += usize::from(turn.assistant_message_count == 0);
            match turn.assistant_message_count {
                // The first session leaves something unfinished, and would continue for long.
                1 if session_count <= 1 => honest_agent(turn).with_delay(Duration::from_secs(100)),
                _ => honest_agent(turn),
            }
        });
        let machine = fleet.replay_machine(&model);
        let mut running = spawn_join(&machine, &[]);
        fleet.source.wait_until(|| model.main_requests().len() >= 2, "it works");
        if *signal == "twice" {
            running.interrupt();
            let message = "plimsoll fleet join night continues";
            fleet.source.wait_until(|| running.stdout_so_far().contains(message), "it says what goes on");
            running.interrupt();
        } else {
            running.terminate();
        }
        let interrupted_machine = running.wait_or_kill_and_panic(FLEET_TIMEOUT);
        assert_eq!(interrupted_machine.code, Some(130), "{signal}: {interrupted_machine:?}");
        assert!(machine_processes(&machine).is_empty(), "{signal}: {interrupted_machine:?}");
        // The items are open again at once: nobody has to wait for a lease, and no work is lost.
        assert_eq!(
            fleet
                .server
                .run_sql("select string_agg(distinct stage, ' '), sum(tries) from plimsoll_night.item"),
            "open|0",
            "{signal}: {interrupted_machine:?}"
        );
        let other_machine = fleet.replay_machine(&model);
        let finished = spawn_join(&other_machine, &["--workers", "2"]).wait_or_kill_and_panic(FLEET_TIMEOUT);
        assert_eq!(finished.code, Some(0), "{signal}: {finished:?}");
        fleet.assert_landed_once(&format!("{signal}: {finished:?}"));
        assert_nothing_left_behind(&other_machine, &finished);
    });
}
