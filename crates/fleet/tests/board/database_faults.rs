//! What happens between a fleet and its database, and between two of its operations.
//!
//! Tests commands shown in docs/fleet.md.

use crate::harness::{Member, client, create, database, open};
use plimsoll_domain::board::Stage;
use plimsoll_fleet::{Fault, Fleet, FleetError};
use plimsoll_policy::workers::{Fenced, LEASE};
use plimsoll_testkit::postgres::{Postgres, ROLE, Setup, of_the_page};
use plimsoll_testkit::proxy::Proxy;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn fault<T>(said: Result<T, FleetError>) -> Fault {
    match said {
        Err(FleetError::Database { fault, .. }) => fault,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was done"),
    }
}

#[test]
fn what_was_done_before_the_server_is_gone_stays_done_and_work_goes_on_after() {
    let mut server = Postgres::start(Setup::default());
    let mut fleet = create(&server.socket(), "x", &["a", "b", "c"]);
    let first = fleet.claim("one").expect("an answer").expect("an item");
    let second = fleet.claim("one").expect("an answer").expect("an item");
    fleet.offer(first, "c0ffee0000000000000000000000000000000000").expect("mine");
    let merger = fleet.become_merger("m").expect("an answer").expect("nobody else");
    fleet.land(merger, 0, "beef000000000000000000000000000000000000").expect("the merger");
    let before = fleet.board().expect("an answer");
    server.restart_immediately();
    let lost = fleet.give_back(second).expect_err("the connection is gone");
    assert!(lost.may_pass(), "{lost}");
    assert_eq!(
        lost.to_string(),
        format!(
            "cannot give an item back (PostgreSQL at {}/.s.PGSQL.{}): the connection was lost before the answer came",
            server.folder().display(),
            server.port()
        )
    );
    assert_eq!(fleet.board().expect("a connection of its own accord"), before);
    fleet.renew(second).expect("still mine");
    assert_eq!(fleet.become_merger("m").expect("an answer"), Some(merger));
    assert_eq!(
        fleet.settle(|commit| commit == "beef000000000000000000000000000000000000").expect("an answer"),
        [0]
    );
    server.restart_immediately();
    assert!(matches!(
        fault(fleet.offer(second, "c0de000000000000000000000000000000000000")),
        Fault::Lost | Fault::Restarting
    ));
    fleet.offer(second, "c0de000000000000000000000000000000000000").expect("it had not arrived");
}

#[test]
fn a_server_that_is_away_or_takes_nothing_is_named() {
    let mut server = Postgres::start(Setup::default());
    let mut fleet = create(&server.socket(), "x", &["a", "b"]);
    let mine = fleet.claim("one").expect("an answer").expect("an item");
    let before = fleet.board().expect("an answer");
    client(&server)
        .batch_execute(&format!("alter role {ROLE} set default_transaction_read_only = on"))
        .expect("a role");
    // As on a standby; the connection that is there does not know yet.
    let mut late = open(&server.socket(), "x");
    for said in [
        late.claim("two").map(|_| ()),
        late.renew(mine),
        late.offer(mine, "c0ffee0000000000000000000000000000000000"),
        late.give_back(mine),
        late.become_merger("m").map(|_| ()),
        late.report(&plimsoll_fleet::WorkerReport { name: "two".to_owned(), ..Default::default() }),
        late.pause(Duration::from_secs(1)),
        Fleet::create(database(&server.socket()).expect("it can be read"), &crate::harness::plan("y"), &[])
            .map(|_| ()),
    ] {
        let error = said.expect_err("read-only");
        assert!(matches!(&error, FleetError::Database { fault: Fault::ReadOnly, .. }), "{error}");
        assert!(error.hint().expect("what to do").contains("primary"), "{error}");
    }
    assert_eq!(late.board().expect("it can be read"), before);
    let primary = format!("{} target_session_attrs=read-write", server.socket());
    assert!(
        matches!(fault(database(&primary)), Fault::Unreachable(why) if why.contains("does not allow writes"))
    );
    server.restart_immediately();
    drop(server);
    assert!(matches!(fault(fleet.claim("one")), Fault::Lost | Fault::Restarting));
    assert!(matches!(fault(fleet.claim("one")), Fault::Unreachable(_)));
}

#[test]
fn somebody_who_holds_the_rows_for_too_long_is_waited_for_and_then_named() {
    let server = Postgres::start(Setup::default());
    let mut fleet = create(&server.socket(), "x", &["a", "b"]);
    let mine = fleet.claim("one").expect("an answer").expect("an item");
    let mut holder = client(&server);
    holder.batch_execute("begin; select from plimsoll.item where place = 0 for update").expect("a lock");
    // Who claims passes it over, and is not held up.
    assert_eq!(fleet.claim("two").expect("an answer").map(|claim| claim.item), Some(1));
    let held = thread::scope(|scope| {
        let given_back = scope.spawn(|| fleet.give_back(mine));
        thread::sleep(Duration::from_millis(300));
        assert!(!given_back.is_finished());
        client(&server)
            .batch_execute(
                "select pg_cancel_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'",
            )
            .expect("an administrator");
        given_back.join().expect("no panic")
    });
    let error = held.expect_err("it was ended");
    assert!(
        error.may_pass() && matches!(&error, FleetError::Database { fault: Fault::Busy(_), .. }),
        "{error}"
    );
    holder.batch_execute("rollback").expect("no lock");
    fleet.give_back(mine).expect("mine, and on the same connection");
}

#[test]
fn a_role_without_rights_is_named() {
    let server = Postgres::start(Setup::default());
    create(&server.socket(), "x", &["a"]);
    client(&server).batch_execute("create role deckhand login").expect("a role");
    let address = server.socket_of("deckhand");
    let refused =
        Fleet::open(database(&address).expect("a connection"), "x").map(|_| ()).expect_err("no rights");
    assert!(matches!(&refused, FleetError::Database { fault: Fault::NoRight(_), .. }), "{refused}");
    let rights = of_the_page("deckhand").replace("create role deckhand login;", "");
    client(&server).batch_execute(&rights).expect("rights");
    // What a verify command runs and an item says is not the members' to change.
    let mut member = postgres::Client::connect(&address, postgres::NoTls).expect("the socket");
    for change in
        ["plan set verify = '{}'", "plan set target = ''", "item set text = ''", "item set needs = '{}'"]
    {
        let refused = member.execute(&format!("update plimsoll.{change}"), &[]).expect_err(change);
        assert_eq!(refused.code().map(postgres::error::SqlState::code), Some("42501"), "{change}");
    }
    // What a worker and a merger need, and no more.
    let mut fleet = open(&address, "x");
    let mine = fleet.claim("one").expect("an answer").expect("an item");
    fleet.renew(mine).expect("mine");
    fleet
        .report(&plimsoll_fleet::WorkerReport { name: "one".to_owned(), ..Default::default() })
        .expect("an answer");
    fleet.offer(mine, "c0ffee0000000000000000000000000000000000").expect("mine");
    let merger = fleet.become_merger("m").expect("an answer").expect("nobody else");
    fleet.land(merger, 0, "beef000000000000000000000000000000000000").expect("the merger");
    assert_eq!(fleet.settle(|_| true).expect("an answer"), [0]);
    assert!(fleet.drain(true).expect("an answer") && fleet.drain(false).expect("an answer"));
    assert!(!fleet.answer(0, "x").expect("an answer"));
    assert!(fleet.stop().expect("an answer"));
    client(&server).batch_execute("update plimsoll.worker set seen = 0").expect("long ago");
    assert!(matches!(fault(fleet.forget()), Fault::NoRight(_)));
    let prepared = plimsoll_fleet::prepare(&mut database(&address).expect("a connection"), "y");
    assert!(matches!(fault(prepared), Fault::NoRight(_)));
}

#[test]
fn a_dashboards_role_sees_the_views_and_nothing_else() {
    let server = Postgres::start(Setup::default());
    create(&server.socket(), "x", &["a"]);
    client(&server).batch_execute(&of_the_page("lookout")).expect("rights");
    let address = server.socket_of("lookout");
    let mut lookout = postgres::Client::connect(&address, postgres::NoTls).expect("the socket");
    for view in ["fleet_status", "fleet_items", "fleet_workers", "fleet_costs"] {
        lookout.query(&format!("select * from plimsoll.{view}"), &[]).expect(view);
    }
    for table in ["plan", "item", "worker", "event", "migration"] {
        let refused = lookout.query(&format!("select * from plimsoll.{table}"), &[]).expect_err(table);
        assert_eq!(refused.code().map(postgres::error::SqlState::code), Some("42501"), "{table}");
    }
}

#[test]
fn a_connection_that_is_cut_anywhere_leaves_a_step_done_or_not_done_and_never_half() {
    let server = Postgres::start(Setup::default());
    let proxy = Proxy::before(server.port());
    // A claim of the first takes several statements, one of the second is one.
    create(&server.socket(), "x", &["a (area: src)", "b (area: docs)"]);
    create(&server.socket(), "y", &["a", "b"]);
    // So many bytes of the words that go one way: within a statement, within a transaction, within the answer.
    let there = (1..20).map(|step| (step * 130, u64::MAX));
    let back = (0..36).map(|step| (u64::MAX, step * 14));
    let cuts: Vec<(u64, u64)> = there.chain(back).collect();
    for name in ["x", "y"] {
        let mut look = open(&server.socket(), name);
        let (mut done, mut undone) = (0, 0);
        for (there, back) in &cuts {
            match cut_in_a_claim(&server, &proxy, &mut look, name, *there, *back) {
                Some(0) => undone += 1,
                Some(_) => done += 1,
                None => {}
            }
        }
        assert!(done > 0 && undone > 10, "nothing was cut in the middle: {done} done, {undone} not");
    }
}

/// How many items were claimed by a claim whose connection was cut; none if it had its answer before.
fn cut_in_a_claim(
    server: &Postgres,
    proxy: &Proxy,
    look: &mut Fleet,
    name: &str,
    there: u64,
    back: u64,
) -> Option<usize> {
    let mut fleet = open(&server.address_by(ROLE, proxy.port()), name);
    let before = look.board().expect("an answer");
    proxy.let_pass(there, back);
    let said = fleet.claim("one");
    proxy.let_pass(u64::MAX, u64::MAX);
    let after = settled(look, server);
    let claimed = after.items.iter().zip(&before.items).filter(|(new, old)| new.epoch != old.epoch).count();
    assert!(claimed <= 1);
    // The journal says the same as the rows.
    let told = look.events(0, 10_000).expect("the journal");
    let epochs: u64 = after.items.iter().map(|row| row.epoch).sum();
    assert_eq!(told.iter().filter(|event| event.kind == "claimed").count() as u64, epochs);
    let over = "update plimsoll.item set lease_until = 0 where stage = 'leased'";
    client(server).batch_execute(over).expect("over");
    // It goes on by itself, on a new connection.
    fleet.board().expect("a new connection");
    match said {
        Ok(claim) => {
            assert_eq!(claimed, usize::from(claim.is_some()));
            None
        }
        Err(error) => {
            assert!(error.may_pass(), "{there} {back}: {error}");
            Some(claimed)
        }
    }
}

/// The board once no transaction of anybody's is under way.
fn settled(look: &mut Fleet, server: &Postgres) -> plimsoll_domain::board::BoardState {
    let mut client = client(server);
    let begun = Instant::now();
    let others = "select count(*) from pg_stat_activity
        where backend_type = 'client backend' and pid <> pg_backend_pid() and state <> 'idle'";
    while client.query_one(others, &[]).expect("the server's view").get::<_, i64>(0) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "somebody does not end");
        thread::sleep(Duration::from_millis(2));
    }
    look.board().expect("an answer")
}

#[test]
fn a_worker_that_is_frozen_with_the_plan_in_its_hand_holds_nobody_up_for_long() {
    let server = Postgres::start(Setup::default());
    create(&server.socket(), "x", &["a (area: src)", "b (area: docs)"]);
    let proxy = Proxy::before(server.port());
    let mut frozen = open(&server.address_by(ROLE, proxy.port()), "x");
    let mut other = open(&server.socket(), "x");
    // It is stopped when it has locked the plan: the server has heard the lock, and hears nothing more.
    let locked = AtomicBool::new(false);
    let (proxy, locked) = (&proxy, &locked);
    let mut watch = client(&server);
    thread::scope(|scope| {
        let late = scope.spawn(move || {
            let mut tries = 0;
            while !locked.load(Ordering::SeqCst) && tries < 2_000 {
                frozen.become_merger("m").expect("an answer");
                tries += 1;
            }
            frozen.become_merger("m")
        });
        let held = "select count(*) from pg_stat_activity join pg_locks using (pid) where state = 'idle in transaction'
            and relation = 'plimsoll.plan'::regclass and mode = 'RowShareLock'";
        let begun = Instant::now();
        loop {
            proxy.hold(true);
            thread::sleep(Duration::from_millis(30));
            if watch.query_one(held, &[]).expect("the server's view").get::<_, i64>(0) == 1 {
                break;
            }
            proxy.hold(false);
            thread::sleep(Duration::from_millis(3));
            assert!(begun.elapsed() < Duration::from_secs(30), "it is never caught");
        }
        locked.store(true, Ordering::SeqCst);
        let begun = Instant::now();
        assert!(other.claim("two").expect("the server ends a silent client").is_some());
        let waited = begun.elapsed();
        assert!(waited > Duration::from_secs(2) && waited < Duration::from_secs(25), "{waited:?}");
        proxy.hold(false);
        // Whatever it was at is undone, or was done before; it is told, and goes on with the next.
        let _ = late.join();
    });
    assert!(other.claim("two").expect("an answer").is_some());
}

#[test]
fn a_worker_that_comes_back_after_its_lease_changes_nothing() {
    let server = Postgres::start(Setup::default());
    let mut fleet = create(&server.socket(), "x", &["a"]);
    let mut other = open(&server.socket(), "x");
    let mine = fleet.claim("one").expect("an answer").expect("an item");
    assert_eq!(other.claim("two").expect("an answer"), None);
    let moved = format!("update plimsoll.item set lease_until = lease_until - {LEASE}");
    client(&server).batch_execute(&moved).expect("90 seconds later");
    let theirs = other.claim("two").expect("an answer").expect("it is over");
    assert_eq!((theirs.item, theirs.epoch), (mine.item, mine.epoch + 1));
    let before = other.board().expect("an answer");
    for late in [
        fleet.renew(mine),
        fleet.offer(mine, "late"),
        fleet.give_back(mine),
        fleet.fail(mine, "late"),
        fleet.ask(mine, "late"),
    ] {
        assert!(matches!(late, Err(FleetError::Fenced(Fenced))), "{late:?}");
    }
    assert_eq!(other.board().expect("an answer"), before);
    other.offer(theirs, "c0ffee0000000000000000000000000000000000").expect("its own");
    assert_eq!(
        fleet.board().expect("an answer").items[0].stage,
        Stage::Offered { commit: "c0ffee0000000000000000000000000000000000".to_owned() }
    );
    let error = other.offer(theirs, "c0ffee0000000000000000000000000000000000").expect_err("it has arrived");
    assert!(matches!(error, FleetError::Fenced(_)), "{error}");
}
