//! What lies between machines and their database: a proxy that delays and cuts, and PgBouncer.

use super::harness::{Fleet, Terms, all_end_well, honest, join};
use plimsoll_testkit::postgres::DECKHAND;
use plimsoll_testkit::proxy::Proxy;
use plimsoll_testkit::story::story;
use plimsoll_testkit::world::Running;
use std::time::Duration;

const ITEMS: [&str; 6] = ["Item 1", "Item 2 (after: 1)", "Item 3", "Item 4", "Item 5", "Item 6 (after: 3)"];
const VERIFY: &[&str] = &["test ! -e done/2.txt || test -e done/1.txt"];

/// Two machines that reach the database by this address do everything; `disturb` begins once both have joined.
fn is_done_by(fleet: &Fleet, address: &str, disturb: impl FnOnce()) {
    let model = story(|turn| honest(turn).delay(Duration::from_millis(150)));
    let mut machines = [fleet.machine(&model), fleet.machine(&model)];
    machines.iter_mut().for_each(|machine| machine.set_env("PLIMSOLL_DATABASE_URL", address));
    let running: Vec<Running> = machines.iter().map(|machine| join(machine, &["--workers", "2"])).collect();
    fleet.source.wait_until(|| fleet.events("joined") == 2, "both have joined");
    disturb();
    all_end_well(&machines, running);
    fleet.assert_landed_once("");
    // Nothing was lost on the way: no session was begun again.
    assert_eq!(fleet.server.sql("select sum(tries), sum(sessions) from plimsoll.item"), "0|6");
}

/// Each connection lives for a few statements, and ends in the middle of one or of its answer.
#[test]
fn machines_whose_connections_are_delayed_and_cut_in_mid_statement_lose_nothing() {
    let fleet = Fleet::new(&ITEMS, &Terms { verify: VERIFY, ..Terms::default() });
    let proxy = Proxy::before(fleet.server.port());
    is_done_by(&fleet, &fleet.server.address_by(DECKHAND, proxy.port()), || {
        proxy.disturb(Duration::from_millis(10), 5_000);
    });
    assert!(proxy.cuts() >= 6, "{} cuts", proxy.cuts());
}

#[test]
fn machines_behind_pgbouncer_in_transaction_mode_do_as_they_do_without_it() {
    let fleet = Fleet::new(&ITEMS, &Terms { verify: VERIFY, ..Terms::default() });
    let bouncer = fleet.server.bouncer(DECKHAND);
    is_done_by(&fleet, &bouncer.address(), || ());
}
