//! Draining, ended fleets, and the views for dashboards.

use crate::harness::{client, create_fleet};
use crate::test_fleet::member;
use plimsoll_fleet::{Fleet, WorkerReport};
use plimsoll_policy::workers::LEASE_DURATION_MS;
use plimsoll_testkit::postgres::{Postgres, ServerSetup};

#[test]
fn nothing_is_claimed_of_a_fleet_that_drains_or_has_ended() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    // A claim of the second fleet locks the plan first, because its items have areas.
    for (name, texts) in [("x", ["a", "b"]), ("y", ["a (area: src)", "b (area: docs)"])] {
        let mut fleet = create_fleet(&server.socket_connection_string(), name, &texts);
        let update_plan = |assignment: &str| {
            let sql = format!("update plimsoll_{name}.plan set {assignment}");
            client(&server).batch_execute(&sql).expect("a plan");
        };
        let claim = fleet.claim_next_item("one").expect("an answer").expect("an item");
        update_plan("draining = true");
        assert_eq!(fleet.claim_next_item("two").expect("an answer"), None);
        // An item that was claimed can still be finished.
        fleet.renew_claim_unless_stale_or_overlapping(claim).expect("mine");
        fleet.offer_commit(claim, "c0ffee0000000000000000000000000000000000").expect("mine");
        update_plan("draining = false");
        assert!(fleet.claim_next_item("two").expect("an answer").is_some());
        for ended in ["done", "stopped"] {
            update_plan(&format!("ended = '{ended}'"));
            assert_eq!(fleet.claim_next_item("three").expect("an answer"), None);
        }
        update_plan("ended = null");
        assert_eq!(fleet.claim_next_item("three").expect("an answer"), None, "nothing is left");
    }
}

#[test]
fn the_views_for_dashboards_count_items_workers_and_costs() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    let mut fleet = create_fleet(&server.socket_connection_string(), "x", &["a", "b", "c", "d"]);
    let mut client = client(&server);
    for (name, worker_number, cost) in [("m", 1, 1.0), ("m", 2, 0.5), ("n", 1, 0.25)] {
        let report = WorkerReport {
            worker_number,
            machine_name: name.to_owned(),
            total_cost_usd: cost,
            ..WorkerReport::default()
        };
        Fleet::record_worker_report(&mut fleet, &member(name), &report).expect("an answer");
    }
    let first_claim = fleet.claim_next_item("m").expect("an answer").expect("an item");
    fleet.offer_commit(first_claim, "c0ffee0000000000000000000000000000000000").expect("mine");
    let merger = fleet.acquire_or_renew_merger_lease("m").expect("an answer").expect("nobody else");
    fleet
        .record_merge_candidate_commit(merger, 0, "beef000000000000000000000000000000000000")
        .expect("the merger");
    fleet.mark_landed_merged(|_| true).expect("an answer");
    let second_claim = fleet.claim_next_item("m").expect("an answer").expect("an item");
    fleet.set_aside_with_question(second_claim, "Which?").expect("mine");
    fleet.claim_next_item("n").expect("an answer").expect("an item");
    let row = client
        .query_one("select * from plimsoll_x.fleet_status where created > now() - interval '1 day'", &[])
        .expect("a line for the fleet");
    let count = |name: &str| row.get::<_, i64>(name);
    let counts =
        ["items", "open", "at_work", "offered", "merged", "aside", "questions", "workers", "machines"];
    assert_eq!(counts.map(count), [4, 1, 1, 0, 1, 1, 1, 3, 2]);
    assert_eq!(row.get::<_, f64>("cost").to_string(), "1.75");
    let items =
        client.query("select item, stage, landings, reason from plimsoll_x.fleet_items order by item", &[]);
    let items: Vec<(i32, String, Vec<String>, Option<String>)> =
        items.expect("rows").iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3))).collect();
    assert_eq!(
        items[0],
        (1, "merged".to_owned(), vec!["beef000000000000000000000000000000000000".to_owned()], None)
    );
    assert_eq!(items[1], (2, "aside".to_owned(), Vec::new(), Some("Which?".to_owned())));
    let costs =
        client.query("select machine, workers, cost from plimsoll_x.fleet_costs order by machine", &[]);
    let costs: Vec<(String, i64, f64)> =
        costs.expect("rows").iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    assert_eq!(costs, [("m".to_owned(), 2, 1.5), ("n".to_owned(), 1, 0.25)]);
    // A worker without a report for a lease does not count.
    let make_silent = format!(
        "update plimsoll_x.worker set seen = plimsoll_x.moment() - {LEASE_DURATION_MS} where name = 'n/1'"
    );
    client.batch_execute(&make_silent).expect("a worker");
    let is_active_row =
        client.query_one("select is_there from plimsoll_x.fleet_workers where worker = 'n/1'", &[]);
    assert!(!is_active_row.expect("a row").get::<_, bool>(0));
    let make_nearly_silent = format!(
        "update plimsoll_x.worker set seen = plimsoll_x.moment() - {LEASE_DURATION_MS} + 60000 where name = 'n/1'"
    );
    client.batch_execute(&make_nearly_silent).expect("a worker");
    let is_active_row =
        client.query_one("select is_there from plimsoll_x.fleet_workers where worker = 'n/1'", &[]);
    assert!(is_active_row.expect("a row").get::<_, bool>(0));
}
