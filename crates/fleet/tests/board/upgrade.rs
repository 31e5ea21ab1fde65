//! Tables of an earlier version, with a fleet in them, and what newer ones add.

use crate::bench::{client, create, database, open};
use plimsoll_domain::board::{Aside, Stage};
use plimsoll_fleet::{Fleet, VERSION, WorkerReport};
use plimsoll_policy::workers::LEASE;
use plimsoll_testkit::postgres::{Postgres, Setup};

/// Version 1, as the first program made it, with a fleet at work.
const OF_VERSION_1: &str = concat!(
    "create schema plimsoll;
     create table plimsoll.migration (version integer primary key, at timestamptz not null default now());",
    include_str!("../../src/migrations/1.sql"),
    "insert into plimsoll.migration (version) values (1);
     insert into plimsoll.plan (name, repo, target, verify, deliver, objective_hash, max_cost, has_areas, created, merger_epoch)
       values ('old', 'git@example.com:x.git', 'main', '{make test}', 'branch', 'f00', 5, false, 1000, 3);
     insert into plimsoll.item (plan, place, text, needs, areas, stage, epoch, tries, worker, lease_until, sha, aside, reason, landings)
       values (1, 0, 'a', '{}', '{}', 'merged', 1, 0, null, null, null, null, null, '{beef000000000000000000000000000000000000}'),
         (1, 1, 'b', '{}', '{}', 'leased', 2, 1, 'one', 9000000000000, null, null, null, '{}'),
         (1, 2, 'c', '{}', '{}', 'offered', 1, 0, null, null, 'c0ffee0000000000000000000000000000000000', null, null, '{}'),
         (1, 3, 'd', '{}', '{}', 'aside', 4, 3, null, null, null, 'question', 'Which?', '{}'),
         (1, 4, 'e', '{0}', '{}', 'open', 0, 0, null, null, null, null, null, '{}');
     insert into plimsoll.worker (plan, name, machine, pid, version, started, seen, cost)
       values (1, 'one', 'm', 7, '0.1.0', 1000, 2000, 1.5);
     insert into plimsoll.event (at, plan, kind, detail) values (1000, 1, 'created', '5 items');"
);

#[test]
fn a_fleet_of_version_1_lives_on_once_somebody_creates_another() {
    let server = Postgres::start(Setup::default());
    client(&server).batch_execute(OF_VERSION_1).expect("the tables of version 1");
    let connect = || database(&server.socket()).expect("a connection");
    let older = Fleet::open(connect(), "old").map(|_| ()).expect_err("an older version");
    assert_eq!(
        older.to_string(),
        format!(
            "the database at {}/.s.PGSQL.{} has tables of version 1; this program knows version {VERSION}",
            server.folder().display(),
            server.port()
        )
    );
    create(&server.socket(), "new", &["x"]);
    let versions = client(&server).query("select version from plimsoll.migration order by version", &[]);
    let versions: Vec<i32> = versions.expect("rows").iter().map(|row| row.get(0)).collect();
    assert_eq!(versions, (1..=VERSION).collect::<Vec<_>>());

    let mut old = open(&server.socket(), "old");
    let board = old.board().expect("an answer");
    let stages: Vec<Stage> = board.items.iter().map(|item| item.stage.clone()).collect();
    assert_eq!(stages[0], Stage::Merged);
    assert!(matches!(&stages[1], Stage::Leased { lease } if lease.holder == "one"));
    assert_eq!(stages[2], Stage::Offered { commit: "c0ffee0000000000000000000000000000000000".to_owned() });
    assert_eq!(stages[3], Stage::Aside { reason: Aside::Question("Which?".to_owned()) });
    assert_eq!((board.items[1].epoch, board.items[1].tries, board.merger_epoch), (2, 1, 3));
    assert_eq!(old.spent().expect("an answer").cost.to_string(), "1.5");
    assert_eq!(old.events(0, 10).expect("the journal").len(), 1);
    // What it waited for is done, and nothing of the new columns holds it up.
    assert_eq!(old.claim("two").expect("an answer").map(|claim| claim.item), Some(4));
}

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
    fleet.set_aside(second, &Aside::Question("Which?".to_owned())).expect("mine");
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
