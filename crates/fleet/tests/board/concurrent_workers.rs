//! Several workers at the same time, each with its own connection.

use crate::harness::{client, create_fleet, create_fleet_with_plan, open_fleet};
use plimsoll_fleet::{DatabaseError, FleetError, WorkerReport};
use plimsoll_testkit::postgres::{ADMIN_ROLE, Postgres, ServerSetup};
use std::thread;
use std::time::{Duration, Instant};

const WORKERS: usize = 8;

/// Each worker claims until nothing is left. Returns all claims as item and epoch.
fn claim_until_none_left(address: &str, name: &str) -> Vec<(usize, u64)> {
    let claim_all = |worker: usize| {
        let mut fleet = open_fleet(address, name);
        let mut claimed = Vec::new();
        while let Some(claim) = fleet.claim_next_item(&format!("worker-{worker}")).expect("an answer") {
            claimed.push((claim.item_index, claim.epoch));
        }
        claimed
    };
    let claim_all = &claim_all;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|worker| scope.spawn(move || claim_all(worker))).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    })
}

#[test]
fn no_item_is_claimed_twice_by_simultaneous_workers() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    let texts: Vec<String> = (0..400).map(|item| format!("item {item}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut fleet = create_fleet(&server.socket_connection_string(), "many", &texts);
    let mut claimed = claim_until_none_left(&server.socket_connection_string(), "many");
    claimed.sort_unstable();
    // A claim skips a row that another claim has locked, so a worker may have stopped early: claim what is left.
    while let Some(claim) = fleet.claim_next_item("late").expect("an answer") {
        claimed.push((claim.item_index, claim.epoch));
    }
    claimed.sort_unstable();
    let expected: Vec<(usize, u64)> = (0..texts.len()).map(|item| (item, 1)).collect();
    assert_eq!(claimed, expected);
    let events = fleet.read_events_after(0, 10_000).expect("the journal");
    assert_eq!(events.iter().filter(|event| event.kind == "claimed").count(), texts.len());
}

#[test]
fn workers_share_the_few_connections_of_pgbouncer() {
    let mut server = Postgres::create_cluster_and_start(ServerSetup::default());
    let bouncer = server.start_pgbouncer(ADMIN_ROLE);
    let texts: Vec<String> = (0..120).map(|item| format!("item {item}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut fleet = create_fleet(&bouncer.connection_string(), "many", &texts);
    create_fleet(
        &bouncer.connection_string(),
        "areas",
        &["a (area: src)", "b (area: src/x)", "c (area: docs)"],
    );
    let mut claimed = claim_until_none_left(&bouncer.connection_string(), "many");
    while let Some(claim) = fleet.claim_next_item("late").expect("an answer") {
        claimed.push((claim.item_index, claim.epoch));
    }
    claimed.sort_unstable();
    assert_eq!(claimed, (0..texts.len()).map(|item| (item, 1)).collect::<Vec<_>>());
    let mut claimed = claim_until_none_left(&bouncer.connection_string(), "areas");
    claimed.sort_unstable();
    assert_eq!(claimed, [(0, 1), (2, 1)]);
    // Errors are still specific, and the server may restart behind PgBouncer.
    let wrong = bouncer.connection_string().replace(plimsoll_testkit::postgres::PASSWORD, "hunter2");
    let error = crate::harness::connect(&wrong).map(|_| ()).expect_err("a wrong password");
    assert!(
        matches!(&error, FleetError::Database { database_error: DatabaseError::WrongPassword(_), .. }),
        "{error}"
    );
    server.restart_immediately();
    let started_at = Instant::now();
    while let Err(error) = fleet.read_board() {
        assert!(error.is_transient(), "{error}");
        assert!(started_at.elapsed() < Duration::from_secs(60), "{error}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn simultaneous_workers_claim_only_one_item_of_overlapping_areas() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    for round in 0..10 {
        let name = format!("areas-{round}");
        // Each item needs the path of the first one; every second one only a part of it.
        let texts: Vec<String> =
            (0..16).map(|item| format!("item {item} (area: src{})", ["", "/a"][item % 2])).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        create_fleet(&server.socket_connection_string(), &name, &texts);
        assert_eq!(
            claim_until_none_left(&server.socket_connection_string(), &name),
            [(0, 1)],
            "round {round}"
        );
    }
}

#[test]
fn one_cost_limit_applies_to_all_machines() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    let plan = plimsoll_fleet::NewPlan { max_cost_usd: Some(10.0), ..crate::harness::new_plan("dear") };
    let items = crate::harness::plan_items(&["a", "b", "c"]);
    let mut fleet = create_fleet_with_plan(&server.socket_connection_string(), &plan, &items);
    let mut other_fleet = open_fleet(&server.socket_connection_string(), "dear");
    let report = |cost| WorkerReport {
        worker_number: 1,
        machine_name: "m".to_owned(),
        pid: 7,
        plimsoll_version: "0.1.0".to_owned(),
        session_id: "s".to_owned(),
        context_percent: Some(12.5),
        total_cost_usd: cost,
        item_index: None,
    };
    fleet.record_worker_report("one", &report(6.0)).expect("an answer");
    other_fleet.record_worker_report("two", &report(3.5)).expect("an answer");
    // A repeated report counts once, and a late one does not lower the cost.
    other_fleet.record_worker_report("two", &report(3.5)).expect("an answer");
    other_fleet.record_worker_report("two", &report(1.0)).expect("an answer");
    assert_eq!(fleet.read_status().expect("an answer").cost_usd.to_string(), "9.5");
    assert!(fleet.claim_next_item("one").expect("an answer").is_some());
    other_fleet.record_worker_report("two", &report(4.0)).expect("an answer");
    assert_eq!(fleet.claim_next_item("one").expect("an answer"), None);
}

#[test]
fn a_pause_applies_to_all_and_the_journal_has_every_event_in_order() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    let mut fleet = create_fleet(&server.socket_connection_string(), "told", &["a", "b (after: 1)"]);
    let mut other_fleet = open_fleet(&server.socket_connection_string(), "told");
    let claim = fleet.claim_next_item("one").expect("an answer").expect("an item");
    fleet.fail(claim, "stuck\nin the mud").expect("mine");
    other_fleet.pause_claims_for_at_least(Duration::from_millis(600)).expect("an answer");
    assert_eq!(fleet.claim_next_item("one").expect("an answer"), None);
    thread::sleep(Duration::from_millis(700));
    let claim = fleet.claim_next_item("one").expect("an answer").expect("an item");
    fleet.offer_commit(claim, "c0ffee0000000000000000000000000000000000").expect("mine");
    let merger = other_fleet.acquire_or_renew_merger_lease("m").expect("an answer").expect("nobody else");
    other_fleet.acquire_or_renew_merger_lease("m").expect("an answer").expect("it goes on");
    other_fleet
        .record_merge_candidate_commit(merger, 0, "beef000000000000000000000000000000000000")
        .expect("the merger");
    assert_eq!(
        other_fleet
            .mark_landed_merged(|commit| commit == "beef000000000000000000000000000000000000")
            .expect("an answer"),
        [0]
    );
    let events = fleet.read_events_after(0, 100).expect("the journal");
    let event_lines: Vec<String> = events
        .iter()
        .map(|event| {
            let worker_and_detail = [event.worker.as_deref().unwrap_or_default(), &event.detail];
            let item = event.item_index.map(|item| format!(" {item}")).unwrap_or_default();
            format!("{}{item} {}", event.kind, worker_and_detail.join(" ").trim()).trim().to_owned()
        })
        .collect();
    assert_eq!(
        event_lines,
        [
            "created 2 items",
            "claimed 0 one/1",
            "failed 0 one/1 stuck in the mud",
            "paused limited",
            "claimed 0 one/1",
            "offered 0 one/1 c0ffee0000000000000000000000000000000000",
            "merger m m",
            "landing 0 m beef000000000000000000000000000000000000",
            "merged 0 m",
        ]
    );
    let update_result = client(&server).batch_execute("update plimsoll_told.event set kind = 'x'");
    assert!(update_result.is_err(), "the journal is only added to");
}
