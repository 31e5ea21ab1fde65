//! The database's own disk.

use super::harness::{Fleet, Terms, all_end_well, assert_went_on, honest, is_apart, join};
use plimsoll_testkit::postgres::Setup;
use plimsoll_testkit::story::story;
use plimsoll_testkit::world::Running;
use std::io::Write;
use std::time::Duration;

/// A row of the journal that is there, or for which there is no room.
const A_ROW: &str = "do $$ begin
    insert into plimsoll.event (at, plan, kind) values (plimsoll.moment(), 1, 'filler');
  exception when disk_full then null; end $$";

#[test]
fn a_database_whose_disk_is_full_is_waited_for_and_what_is_done_stays_done() {
    let this = &plimsoll_tests::test_name(
        module_path!(),
        "a_database_whose_disk_is_full_is_waited_for_and_what_is_done_stays_done",
    );
    if !is_apart(this, "--mount") {
        return;
    }
    let setup = Setup { disk_megabytes: Some(64), settings: "autovacuum = off\n", ..Setup::default() };
    let fleet = Fleet::new(&["Item 1", "Item 2", "Item 3"], &Terms { setup, ..Terms::default() });
    let model = story(|turn| honest(turn).delay(Duration::from_millis(1_000)));
    let machines = [fleet.machine(&model), fleet.machine(&model)];
    let running: Vec<Running> = machines.iter().map(|machine| join(machine, &[])).collect();
    fleet.source.wait_until(|| model.main_requests().len() >= 2, "both work");
    let ballast = fleet.server.folder().join("data/ballast");
    let mut file = std::fs::File::create(&ballast).expect("room for a name");
    let piece = [0; 4096];
    while file.write_all(&piece).is_ok() {}
    drop(file);
    // What room the last pages of the journal have goes, too: eight rows are a page then.
    fleet.server.sql("alter table plimsoll.event set (fillfactor = 10)");
    for _ in 0..16 {
        fleet.server.sql(A_ROW);
    }
    let offered = fleet.events("offered");
    let is_told = |running: &Running| running.stdout_so_far().contains("it has no space left");
    fleet.source.wait_until(|| running.iter().all(is_told), "both say what they wait for");
    let refused = fleet.source.plimsoll(&["fleet", "drain", "night"]).run();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for words in ["it has no space left", "hint: make room on the disk of the database"] {
        assert!(refused.stderr.contains(words), "{refused:?}");
    }
    assert_eq!((fleet.events("offered"), model.main_requests().len()), (offered, 4), "nothing new begins");
    std::fs::remove_file(&ballast).expect("our own file");
    assert_went_on(&all_end_well(&machines, running));
    fleet.assert_landed_once("");
    assert_eq!(model.main_requests().len(), 6, "no session was repeated");
}
