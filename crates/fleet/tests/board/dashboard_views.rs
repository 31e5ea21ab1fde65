//! What a fleet has beside its claims: draining, an end, and the views for dashboards.

use crate::harness::{Member, client, create};
use plimsoll_fleet::WorkerReport;
use plimsoll_policy::workers::LEASE;
use plimsoll_testkit::postgres::{Postgres, Setup};

#[test]
fn nothing_is_claimed_of_a_fleet_that_drains_or_has_ended() {
    let server = Postgres::start(Setup::default());
    // A claim of the second takes the plan's lock first.
    for (name, texts) in [("x", ["a", "b"]), ("y", ["a (area: src)", "b (area: docs)"])] {
        let mut fleet = create(&server.socket(), name, &texts);
        let set = |what: &str| {
            let sql = format!("update plimsoll.plan set {what} where name = '{name}'");
            client(&server).batch_execute(&sql).expect("a plan");
        };
        let mine = fleet.claim("one").expect("an answer").expect("an item");
        set("draining = true");
        assert_eq!(fleet.claim("two").expect("an answer"), None);
        // What is begun is finished.
        fleet.renew(mine).expect("mine");
        fleet.offer(mine, "c0ffee0000000000000000000000000000000000").expect("mine");
        set("draining = false");
        assert!(fleet.claim("two").expect("an answer").is_some());
        for ended in ["done", "stopped"] {
            set(&format!("ended = '{ended}'"));
            assert_eq!(fleet.claim("three").expect("an answer"), None);
        }
        set("ended = null");
        assert_eq!(fleet.claim("three").expect("an answer"), None, "nothing is left");
    }
}

#[test]
fn the_views_for_dashboards_count_what_is_there() {
    let server = Postgres::start(Setup::default());
    let mut fleet = create(&server.socket(), "x", &["a", "b", "c", "d"]);
    let mut client = client(&server);
    for (name, machine, cost) in [("m/1", "m", 1.0), ("m/2", "m", 0.5), ("n/1", "n", 0.25)] {
        let (name, machine) = (name.to_owned(), machine.to_owned());
        fleet.report(&WorkerReport { name, machine, cost, ..WorkerReport::default() }).expect("an answer");
    }
    let first = fleet.claim("m/1").expect("an answer").expect("an item");
    fleet.offer(first, "c0ffee0000000000000000000000000000000000").expect("mine");
    let merger = fleet.become_merger("m").expect("an answer").expect("nobody else");
    fleet.land(merger, 0, "beef000000000000000000000000000000000000").expect("the merger");
    fleet.settle(|_| true).expect("an answer");
    let second = fleet.claim("m/2").expect("an answer").expect("an item");
    fleet.ask(second, "Which?").expect("mine");
    fleet.claim("n/1").expect("an answer").expect("an item");
    let row = client
        .query_one(
            "select * from plimsoll.fleet_status where fleet = 'x' and created > now() - interval '1 day'",
            &[],
        )
        .expect("a line for the fleet");
    let count = |name: &str| row.get::<_, i64>(name);
    let counts =
        ["items", "open", "at_work", "offered", "merged", "aside", "questions", "workers", "machines"];
    assert_eq!(counts.map(count), [4, 1, 1, 0, 1, 1, 1, 3, 2]);
    assert_eq!(row.get::<_, f64>("cost").to_string(), "1.75");
    let items =
        client.query("select item, stage, landings, reason from plimsoll.fleet_items order by item", &[]);
    let items: Vec<(i32, String, Vec<String>, Option<String>)> =
        items.expect("rows").iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3))).collect();
    assert_eq!(
        items[0],
        (1, "merged".to_owned(), vec!["beef000000000000000000000000000000000000".to_owned()], None)
    );
    assert_eq!(items[1], (2, "aside".to_owned(), Vec::new(), Some("Which?".to_owned())));
    let costs = client.query("select machine, workers, cost from plimsoll.fleet_costs order by machine", &[]);
    let costs: Vec<(String, i64, f64)> =
        costs.expect("rows").iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    assert_eq!(costs, [("m".to_owned(), 2, 1.5), ("n".to_owned(), 1, 0.25)]);
    // A worker that has reported nothing for the length of a lease does not count.
    let silent = format!("update plimsoll.worker set seen = plimsoll.moment() - {LEASE} where name = 'n/1'");
    client.batch_execute(&silent).expect("a worker");
    let there = client.query_one("select is_there from plimsoll.fleet_workers where worker = 'n/1'", &[]);
    assert!(!there.expect("a row").get::<_, bool>(0));
    let nearly =
        format!("update plimsoll.worker set seen = plimsoll.moment() - {LEASE} + 60000 where name = 'n/1'");
    client.batch_execute(&nearly).expect("a worker");
    let there = client.query_one("select is_there from plimsoll.fleet_workers where worker = 'n/1'", &[]);
    assert!(there.expect("a row").get::<_, bool>(0));
}
