//! Faults between machines and their database: a proxy that delays and cuts connections, and PgBouncer.

use super::harness::{Fleet, FleetOptions, assert_all_end_well, honest_agent, spawn_join};
use plimsoll_testkit::postgres::MEMBER_ROLE;
use plimsoll_testkit::proxy::Proxy;
use plimsoll_testkit::scripted_agent::start_model_with_turn_script;
use plimsoll_testkit::world::RunningProgram;
use std::time::Duration;

const ITEMS: [&str; 6] = ["Item 1", "Item 2 (after: 1)", "Item 3", "Item 4", "Item 5", "Item 6 (after: 3)"];
const VERIFY: &[&str] = &["test ! -e done/2.txt || test -e done/1.txt"];

/// Asserts that two machines which reach the database at this address complete the plan; `disturb` runs once both
/// have joined.
fn assert_plan_completed_through(fleet: &Fleet, address: &str, disturb: impl FnOnce()) {
    let model =
        start_model_with_turn_script(|turn| honest_agent(turn).with_delay(Duration::from_millis(150)));
    let mut machines = [fleet.replay_machine(&model), fleet.replay_machine(&model)];
    machines.iter_mut().for_each(|machine| machine.set_env("PLIMSOLL_DATABASE_URL", address));
    let running: Vec<RunningProgram> =
        machines.iter().map(|machine| spawn_join(machine, &["--workers", "2"])).collect();
    fleet.source.wait_until(|| fleet.event_count("joined") == 2, "both have joined");
    disturb();
    assert_all_end_well(&machines, running);
    fleet.assert_landed_once("");
    // Nothing was lost on the way: no session was started again.
    assert_eq!(fleet.server.run_sql("select sum(tries), sum(sessions) from plimsoll_night.item"), "0|6");
}

/// Each connection lives for a few statements, and ends in the middle of a statement or of its result.
#[test]
fn machines_lose_nothing_if_their_connections_are_delayed_and_cut() {
    let fleet = Fleet::new(&ITEMS, &FleetOptions { verify: VERIFY, ..FleetOptions::default() });
    let proxy = Proxy::start_for_port(fleet.server.port());
    assert_plan_completed_through(
        &fleet,
        &fleet.server.tcp_connection_string_for_role(MEMBER_ROLE, proxy.port()),
        || {
            proxy.delay_and_cut(Duration::from_millis(10), 5_000);
        },
    );
    assert!(proxy.cut_count() >= 6, "{} cuts", proxy.cut_count());
}

#[test]
fn machines_behind_pgbouncer_in_transaction_mode_complete_the_plan() {
    let fleet = Fleet::new(&ITEMS, &FleetOptions { verify: VERIFY, ..FleetOptions::default() });
    let pgbouncer = fleet.server.start_pgbouncer(MEMBER_ROLE);
    assert_plan_completed_through(&fleet, &pgbouncer.connection_string(), || ());
}
