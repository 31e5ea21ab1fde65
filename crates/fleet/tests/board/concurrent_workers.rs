//! Several workers at once, each by a connection of its own.

use crate::harness::{Member, client, create, open};
use plimsoll_fleet::{Fault, FleetError, WorkerReport};
use plimsoll_testkit::postgres::{Postgres, ROLE, Setup};
use std::thread;
use std::time::{Duration, Instant};

const WORKERS: usize = 8;

/// Each worker claims until nothing is left, and says what it got.
fn claimed_by_all(address: &str, name: &str) -> Vec<(usize, u64)> {
    let work = |worker: usize| {
        let mut fleet = open(address, name);
        let mut claimed = Vec::new();
        while let Some(claim) = fleet.claim(&format!("worker {worker}")).expect("an answer") {
            claimed.push((claim.item, claim.epoch));
        }
        claimed
    };
    let work = &work;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|worker| scope.spawn(move || work(worker))).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    })
}

#[test]
fn no_item_is_claimed_twice_by_workers_that_claim_at_once() {
    let server = Postgres::start(Setup::default());
    let texts: Vec<String> = (0..400).map(|item| format!("item {item}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut fleet = create(&server.socket(), "many", &texts);
    let mut claimed = claimed_by_all(&server.socket(), "many");
    claimed.sort_unstable();
    // A row that another claim holds at the moment is passed over, so a worker may have stopped early: the rest is still there.
    while let Some(claim) = fleet.claim("late").expect("an answer") {
        claimed.push((claim.item, claim.epoch));
    }
    claimed.sort_unstable();
    let expected: Vec<(usize, u64)> = (0..texts.len()).map(|item| (item, 1)).collect();
    assert_eq!(claimed, expected);
    let told = fleet.events(0, 10_000).expect("the journal");
    assert_eq!(told.iter().filter(|event| event.kind == "claimed").count(), texts.len());
}

#[test]
fn workers_share_the_few_connections_of_pgbouncer_in_its_transaction_mode() {
    let mut server = Postgres::start(Setup::default());
    let bouncer = server.bouncer(ROLE);
    let texts: Vec<String> = (0..120).map(|item| format!("item {item}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut fleet = create(&bouncer.address(), "many", &texts);
    create(&bouncer.address(), "areas", &["a (area: src)", "b (area: src/x)", "c (area: docs)"]);
    let mut claimed = claimed_by_all(&bouncer.address(), "many");
    while let Some(claim) = fleet.claim("late").expect("an answer") {
        claimed.push((claim.item, claim.epoch));
    }
    claimed.sort_unstable();
    assert_eq!(claimed, (0..texts.len()).map(|item| (item, 1)).collect::<Vec<_>>());
    let mut claimed = claimed_by_all(&bouncer.address(), "areas");
    claimed.sort_unstable();
    assert_eq!(claimed, [(0, 1), (2, 1)]);
    // What is wrong is still named, and the server may go and come back behind it.
    let wrong = bouncer.address().replace(plimsoll_testkit::postgres::PASSWORD, "hunter2");
    let error = crate::harness::database(&wrong).map(|_| ()).expect_err("a wrong password");
    assert!(matches!(&error, FleetError::Database { fault: Fault::Password(_), .. }), "{error}");
    server.restart_immediately();
    let begun = Instant::now();
    while let Err(error) = fleet.board() {
        assert!(error.may_pass(), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{error}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn of_items_that_touch_the_same_place_one_is_claimed_by_workers_that_claim_at_once() {
    let server = Postgres::start(Setup::default());
    for round in 0..10 {
        let name = format!("areas {round}");
        // Each needs the place of the first; by turns a part of it, or all.
        let texts: Vec<String> =
            (0..16).map(|item| format!("item {item} (area: src{})", ["", "/a"][item % 2])).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        create(&server.socket(), &name, &texts);
        assert_eq!(claimed_by_all(&server.socket(), &name), [(0, 1)], "round {round}");
    }
}

#[test]
fn one_limit_of_the_cost_holds_on_all_machines() {
    let server = Postgres::start(Setup::default());
    let database = crate::harness::database(&server.socket()).expect("a connection");
    let plan = plimsoll_fleet::NewPlan { max_cost: Some(10.0), ..crate::harness::plan("dear") };
    let items = crate::harness::items(&["a", "b", "c"]);
    let mut fleet = plimsoll_fleet::Fleet::create(database, &plan, &items).expect("a fleet");
    let mut other = open(&server.socket(), "dear");
    let report = |name: &str, cost| WorkerReport {
        name: name.to_owned(),
        machine: "m".to_owned(),
        pid: 7,
        version: "0.1.0".to_owned(),
        session: "s".to_owned(),
        percent: Some(12.5),
        cost,
        item: None,
    };
    fleet.report(&report("one", 6.0)).expect("an answer");
    other.report(&report("two", 3.5)).expect("an answer");
    // Said twice it counts once, and what comes late takes nothing back.
    other.report(&report("two", 3.5)).expect("an answer");
    other.report(&report("two", 1.0)).expect("an answer");
    assert_eq!(fleet.standing().expect("an answer").cost.to_string(), "9.5");
    assert!(fleet.claim("one").expect("an answer").is_some());
    other.report(&report("two", 4.0)).expect("an answer");
    assert_eq!(fleet.claim("one").expect("an answer"), None);
}

#[test]
fn a_pause_holds_for_all_and_the_journal_tells_everything_in_order() {
    let server = Postgres::start(Setup::default());
    let mut fleet = create(&server.socket(), "told", &["a", "b (after: 1)"]);
    let mut other = open(&server.socket(), "told");
    let mine = fleet.claim("one").expect("an answer").expect("an item");
    fleet.fail(mine, "stuck\nin the mud").expect("mine");
    other.pause(Duration::from_millis(600)).expect("an answer");
    assert_eq!(fleet.claim("one").expect("an answer"), None);
    thread::sleep(Duration::from_millis(700));
    let mine = fleet.claim("one").expect("an answer").expect("an item");
    fleet.offer(mine, "c0ffee0000000000000000000000000000000000").expect("mine");
    let merger = other.become_merger("m").expect("an answer").expect("nobody else");
    other.become_merger("m").expect("an answer").expect("it goes on");
    other.land(merger, 0, "beef000000000000000000000000000000000000").expect("the merger");
    assert_eq!(
        other.settle(|commit| commit == "beef000000000000000000000000000000000000").expect("an answer"),
        [0]
    );
    let told = fleet.events(0, 100).expect("the journal");
    let told: Vec<String> = told
        .iter()
        .map(|event| {
            let words = [event.worker.as_deref().unwrap_or_default(), &event.detail];
            let item = event.item.map(|item| format!(" {item}")).unwrap_or_default();
            format!("{}{item} {}", event.kind, words.join(" ").trim()).trim().to_owned()
        })
        .collect();
    assert_eq!(
        told,
        [
            "created 2 items",
            "claimed 0 one",
            "failed 0 one stuck in the mud",
            "paused",
            "claimed 0 one",
            "offered 0 one c0ffee0000000000000000000000000000000000",
            "merger m",
            "landing 0 beef000000000000000000000000000000000000",
            "merged 0",
        ]
    );
    let changed = client(&server).batch_execute("update plimsoll.event set kind = 'x'");
    assert!(changed.is_err(), "the journal is only added to");
}
