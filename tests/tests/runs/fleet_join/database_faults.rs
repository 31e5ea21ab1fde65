//! Faults of the database: its disk is full.

use super::harness::{
    Fleet, FleetOptions, assert_all_end_well, assert_reported_recovery, honest_agent,
    is_in_namespace_or_rerun, spawn_join,
};
use plimsoll_testkit::postgres::ServerSetup;
use plimsoll_testkit::scripted_agent::start_model_with_turn_script;
use plimsoll_testkit::world::RunningProgram;
use std::io::Write;
use std::time::Duration;

/// Adds a row to the journal, unless there is no room for it.
const FILLER_ROW_SQL: &str = "do $$ begin
    insert into plimsoll_night.event (at, kind) values (plimsoll_night.moment(), 'filler');
  exception when disk_full then null; end $$";

#[test]
fn a_database_with_a_full_disk_is_waited_for_and_no_work_is_lost() {
    let test_name = &plimsoll_tests::exact_test_name(
        module_path!(),
        "a_database_with_a_full_disk_is_waited_for_and_no_work_is_lost",
    );
    if !is_in_namespace_or_rerun(test_name, "--mount") {
        return;
    }
    let setup =
        ServerSetup { disk_megabytes: Some(64), settings: "autovacuum = off\n", ..ServerSetup::default() };
    let fleet =
        Fleet::new(&["Item 1", "Item 2", "Item 3"], &FleetOptions { setup, ..FleetOptions::default() });
    let model =
        start_model_with_turn_script(|turn| honest_agent(turn).with_delay(Duration::from_millis(1_000)));
    let machines = [fleet.replay_machine(&model), fleet.replay_machine(&model)];
    let running: Vec<RunningProgram> = machines.iter().map(|machine| spawn_join(machine, &[])).collect();
    fleet.source.wait_until(|| model.main_requests().len() >= 2, "both work");
    let ballast_path = fleet.server.folder().join("data/ballast");
    let mut file = std::fs::File::create(&ballast_path).expect("room for a name");
    let block = [0; 4096];
    while file.write_all(&block).is_ok() {}
    drop(file);
    // Also uses up the room in the last pages of the journal: with this fill factor a page holds eight rows.
    fleet.server.run_sql("alter table plimsoll_night.event set (fillfactor = 10)");
    for _ in 0..16 {
        fleet.server.run_sql(FILLER_ROW_SQL);
    }
    let offered_before = fleet.event_count("offered");
    let has_reported_full_disk =
        |running: &RunningProgram| running.stdout_so_far().contains("it has no space left");
    fleet.source.wait_until(|| running.iter().all(has_reported_full_disk), "both say what they wait for");
    let refused = fleet.source.plimsoll(&["fleet", "drain", "night"]).run();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for text in ["it has no space left", "hint: make room on the disk of the database"] {
        assert!(refused.stderr.contains(text), "{refused:?}");
    }
    assert_eq!(
        (fleet.event_count("offered"), model.main_requests().len()),
        (offered_before, 4),
        "nothing new begins"
    );
    std::fs::remove_file(&ballast_path).expect("our own file");
    assert_reported_recovery(&assert_all_end_well(&machines, running));
    fleet.assert_landed_once("");
    assert_eq!(model.main_requests().len(), 6, "no session was repeated");
}
