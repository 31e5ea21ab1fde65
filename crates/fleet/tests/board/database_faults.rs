//! Faults between a fleet and its database, and between two of its operations.
//!
//! Tests commands shown in docs/fleet.md.

use crate::harness::{MemberSteps, client, connect, create_fleet, open_fleet};
use plimsoll_domain::board::ItemStage;
use plimsoll_fleet::{DatabaseError, Fleet, FleetError};
use plimsoll_policy::workers::{LEASE_DURATION_MS, StaleEpoch};
use plimsoll_testkit::postgres::{ADMIN_ROLE, Postgres, ServerSetup, role_and_grant_statements_from_docs};
use plimsoll_testkit::proxy::Proxy;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn expect_database_fault<T>(result: Result<T, FleetError>) -> DatabaseError {
    match result {
        Err(FleetError::Database { database_error: fault, .. }) => fault,
        Err(other_error) => panic!("{other_error}"),
        Ok(_) => panic!("it was done"),
    }
}

#[test]
fn finished_operations_survive_a_server_restart_and_work_continues() {
    let mut server = Postgres::create_cluster_and_start(ServerSetup::default());
    let mut fleet = create_fleet(&server.socket_connection_string(), "x", &["a", "b", "c"]);
    let first_claim = fleet.claim_next_item("one").expect("an answer").expect("an item");
    let second_claim = fleet.claim_next_item("one").expect("an answer").expect("an item");
    fleet.offer(first_claim, "c0ffee0000000000000000000000000000000000").expect("mine");
    let merger = fleet.acquire_or_renew_merger_lease("m").expect("an answer").expect("nobody else");
    fleet
        .record_merge_candidate_commit(merger, 0, "beef000000000000000000000000000000000000")
        .expect("the merger");
    let before = fleet.read_board().expect("an answer");
    server.restart_immediately();
    let error = fleet.give_back(second_claim).expect_err("the connection is gone");
    assert!(error.is_transient(), "{error}");
    assert_eq!(
        error.to_string(),
        format!(
            "cannot give an item back (PostgreSQL at {}/.s.PGSQL.{}): the connection was lost before the answer came",
            server.folder().display(),
            server.port()
        )
    );
    assert_eq!(fleet.read_board().expect("a connection of its own accord"), before);
    fleet.renew_claim_unless_stale_or_overlapping(second_claim).expect("still mine");
    assert_eq!(fleet.acquire_or_renew_merger_lease("m").expect("an answer"), Some(merger));
    assert_eq!(
        fleet
            .mark_landed_merged(|commit| commit == "beef000000000000000000000000000000000000")
            .expect("an answer"),
        [0]
    );
    server.restart_immediately();
    assert!(matches!(
        expect_database_fault(fleet.offer(second_claim, "c0de000000000000000000000000000000000000")),
        DatabaseError::ConnectionLost | DatabaseError::Restarting
    ));
    fleet.offer(second_claim, "c0de000000000000000000000000000000000000").expect("it had not arrived");
}

#[test]
fn a_read_only_or_stopped_server_is_reported() {
    let mut server = Postgres::create_cluster_and_start(ServerSetup::default());
    let mut fleet = create_fleet(&server.socket_connection_string(), "x", &["a", "b"]);
    let claim = fleet.claim_next_item("one").expect("an answer").expect("an item");
    let before = fleet.read_board().expect("an answer");
    client(&server)
        .batch_execute(&format!("alter role {ADMIN_ROLE} set default_transaction_read_only = on"))
        .expect("a role");
    // Read-only, as on a standby. An existing connection is not affected, so another one is opened.
    let mut late_fleet = open_fleet(&server.socket_connection_string(), "x");
    for result in [
        late_fleet.claim_next_item("two").map(|_| ()),
        late_fleet.renew_claim_unless_stale_or_overlapping(claim),
        late_fleet.offer(claim, "c0ffee0000000000000000000000000000000000"),
        late_fleet.give_back(claim),
        late_fleet.acquire_or_renew_merger_lease("m").map(|_| ()),
        late_fleet.record_worker_report(&plimsoll_fleet::WorkerReport {
            worker_name: "two".to_owned(),
            ..Default::default()
        }),
        late_fleet.pause_claims_for_at_least(Duration::from_secs(1)),
        Fleet::create_if_name_free(
            connect(&server.socket_connection_string()).expect("it can be read"),
            &crate::harness::new_plan("y"),
            &[],
        )
        .map(|_| ()),
    ] {
        let error = result.expect_err("read-only");
        assert!(
            matches!(&error, FleetError::Database { database_error: DatabaseError::ReadOnly, .. }),
            "{error}"
        );
        assert!(error.hint().expect("what to do").contains("primary"), "{error}");
    }
    assert_eq!(late_fleet.read_board().expect("it can be read"), before);
    let primary = format!("{} target_session_attrs=read-write", server.socket_connection_string());
    assert!(
        matches!(expect_database_fault(connect(&primary)), DatabaseError::Unreachable(reason) if reason.contains("does not allow writes"))
    );
    server.restart_immediately();
    drop(server);
    assert!(matches!(
        expect_database_fault(fleet.claim_next_item("one")),
        DatabaseError::ConnectionLost | DatabaseError::Restarting
    ));
    assert!(matches!(expect_database_fault(fleet.claim_next_item("one")), DatabaseError::Unreachable(_)));
}

#[test]
fn a_lock_held_for_too_long_is_waited_for_and_then_reported() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    let mut fleet = create_fleet(&server.socket_connection_string(), "x", &["a", "b"]);
    let claim = fleet.claim_next_item("one").expect("an answer").expect("an item");
    let mut lock_client = client(&server);
    lock_client.batch_execute("begin; select from plimsoll.item where place = 0 for update").expect("a lock");
    // A claim skips the locked row and does not wait.
    assert_eq!(fleet.claim_next_item("two").expect("an answer").map(|claim| claim.item_index), Some(1));
    let give_back_result = thread::scope(|scope| {
        let give_back_thread = scope.spawn(|| fleet.give_back(claim));
        thread::sleep(Duration::from_millis(300));
        assert!(!give_back_thread.is_finished());
        client(&server)
            .batch_execute(
                "select pg_cancel_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'",
            )
            .expect("an administrator");
        give_back_thread.join().expect("no panic")
    });
    let error = give_back_result.expect_err("it was ended");
    assert!(
        error.is_transient()
            && matches!(&error, FleetError::Database { database_error: DatabaseError::Busy(_), .. }),
        "{error}"
    );
    lock_client.batch_execute("rollback").expect("no lock");
    fleet.give_back(claim).expect("mine, and on the same connection");
}

#[test]
fn a_role_without_rights_is_reported() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    create_fleet(&server.socket_connection_string(), "x", &["a"]);
    client(&server).batch_execute("create role deckhand login").expect("a role");
    let address = server.socket_connection_string_for_role("deckhand");
    let error =
        Fleet::open(connect(&address).expect("a connection"), "x").map(|_| ()).expect_err("no rights");
    assert!(
        matches!(&error, FleetError::Database { database_error: DatabaseError::MissingPermission(_), .. }),
        "{error}"
    );
    let grants = role_and_grant_statements_from_docs("deckhand").replace("create role deckhand login;", "");
    client(&server).batch_execute(&grants).expect("rights");
    // Members must not change verify commands or the text of items.
    let mut member_client = postgres::Client::connect(&address, postgres::NoTls).expect("the socket");
    for change in
        ["plan set verify = '{}'", "plan set target = ''", "item set text = ''", "item set needs = '{}'"]
    {
        let error = member_client.execute(&format!("update plimsoll.{change}"), &[]).expect_err(change);
        assert_eq!(error.code().map(postgres::error::SqlState::code), Some("42501"), "{change}");
    }
    // The documented rights are enough for a worker and a merger, and for no more.
    let mut fleet = open_fleet(&address, "x");
    let claim = fleet.claim_next_item("one").expect("an answer").expect("an item");
    fleet.renew_claim_unless_stale_or_overlapping(claim).expect("mine");
    fleet
        .record_worker_report(&plimsoll_fleet::WorkerReport {
            worker_name: "one".to_owned(),
            ..Default::default()
        })
        .expect("an answer");
    fleet.offer(claim, "c0ffee0000000000000000000000000000000000").expect("mine");
    let merger = fleet.acquire_or_renew_merger_lease("m").expect("an answer").expect("nobody else");
    fleet
        .record_merge_candidate_commit(merger, 0, "beef000000000000000000000000000000000000")
        .expect("the merger");
    assert_eq!(fleet.mark_landed_merged(|_| true).expect("an answer"), [0]);
    assert!(fleet.set_draining(true).expect("an answer") && fleet.set_draining(false).expect("an answer"));
    assert!(!fleet.answer_question_and_reopen_item(0, "x").expect("an answer"));
    assert!(fleet.end_as_stopped().expect("an answer"));
    client(&server).batch_execute("update plimsoll.worker set seen = 0").expect("long ago");
    assert!(matches!(
        expect_database_fault(fleet.delete_if_no_active_workers()),
        DatabaseError::MissingPermission(_)
    ));
    let prepared = plimsoll_fleet::migrate_and_check_write_rights_and_name(
        &mut connect(&address).expect("a connection"),
        "y",
    );
    assert!(matches!(expect_database_fault(prepared), DatabaseError::MissingPermission(_)));
}

#[test]
fn a_dashboard_role_sees_the_views_and_nothing_else() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    create_fleet(&server.socket_connection_string(), "x", &["a"]);
    client(&server).batch_execute(&role_and_grant_statements_from_docs("lookout")).expect("rights");
    let address = server.socket_connection_string_for_role("lookout");
    let mut dashboard_client = postgres::Client::connect(&address, postgres::NoTls).expect("the socket");
    for view in ["fleet_status", "fleet_items", "fleet_workers", "fleet_costs"] {
        dashboard_client.query(&format!("select * from plimsoll.{view}"), &[]).expect(view);
    }
    for table in ["plan", "item", "worker", "event", "migration"] {
        let error = dashboard_client.query(&format!("select * from plimsoll.{table}"), &[]).expect_err(table);
        assert_eq!(error.code().map(postgres::error::SqlState::code), Some("42501"), "{table}");
    }
}

#[test]
fn a_connection_cut_anywhere_leaves_an_operation_done_or_undone() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    let proxy = Proxy::start_for_port(server.port());
    // A claim of the first fleet takes several statements, one of the second is a single statement.
    create_fleet(&server.socket_connection_string(), "x", &["a (area: src)", "b (area: docs)"]);
    create_fleet(&server.socket_connection_string(), "y", &["a", "b"]);
    // Number of bytes that pass in one direction: cuts within a statement, a transaction and a response.
    let request_cuts = (1..20).map(|step| (step * 130, u64::MAX));
    let response_cuts = (0..36).map(|step| (u64::MAX, step * 14));
    let cuts: Vec<(u64, u64)> = request_cuts.chain(response_cuts).collect();
    for name in ["x", "y"] {
        let mut observer_fleet = open_fleet(&server.socket_connection_string(), name);
        let (mut done, mut undone) = (0, 0);
        for (request_bytes, response_bytes) in &cuts {
            match claim_with_cut_connection(
                &server,
                &proxy,
                &mut observer_fleet,
                name,
                *request_bytes,
                *response_bytes,
            ) {
                Some(0) => undone += 1,
                Some(_) => done += 1,
                None => {}
            }
        }
        assert!(done > 0 && undone > 10, "nothing was cut in the middle: {done} done, {undone} not");
    }
}

/// Claims over a connection that is cut. Returns how many items were claimed, or `None` if the response arrived before the cut.
fn claim_with_cut_connection(
    server: &Postgres,
    proxy: &Proxy,
    observer_fleet: &mut Fleet,
    name: &str,
    request_bytes: u64,
    response_bytes: u64,
) -> Option<usize> {
    let mut fleet = open_fleet(&server.tcp_connection_string_for_role(ADMIN_ROLE, proxy.port()), name);
    let before = observer_fleet.read_board().expect("an answer");
    proxy.limit_remaining_bytes(request_bytes, response_bytes);
    let claim_result = fleet.claim_next_item("one");
    proxy.limit_remaining_bytes(u64::MAX, u64::MAX);
    let after = board_when_all_idle(observer_fleet, server);
    let claimed = after.items.iter().zip(&before.items).filter(|(new, old)| new.epoch != old.epoch).count();
    assert!(claimed <= 1);
    // The journal must agree with the rows.
    let events = observer_fleet.read_events_after(0, 10_000).expect("the journal");
    let epochs: u64 = after.items.iter().map(|row| row.epoch).sum();
    assert_eq!(events.iter().filter(|event| event.kind == "claimed").count() as u64, epochs);
    let expire_leases = "update plimsoll.item set lease_until = 0 where stage = 'leased'";
    client(server).batch_execute(expire_leases).expect("over");
    // The fleet reconnects by itself.
    fleet.read_board().expect("a new connection");
    match claim_result {
        Ok(claim) => {
            assert_eq!(claimed, usize::from(claim.is_some()));
            None
        }
        Err(error) => {
            assert!(error.is_transient(), "{request_bytes} {response_bytes}: {error}");
            Some(claimed)
        }
    }
}

/// Waits until no transaction of another connection is running, and returns the board.
fn board_when_all_idle(observer_fleet: &mut Fleet, server: &Postgres) -> plimsoll_domain::board::BoardState {
    let mut client = client(server);
    let started_at = Instant::now();
    let count_other_transactions = "select count(*) from pg_stat_activity
        where backend_type = 'client backend' and pid <> pg_backend_pid() and state <> 'idle'";
    while client.query_one(count_other_transactions, &[]).expect("the server's view").get::<_, i64>(0) > 0 {
        assert!(started_at.elapsed() < Duration::from_secs(30), "somebody does not end");
        thread::sleep(Duration::from_millis(2));
    }
    observer_fleet.read_board().expect("an answer")
}

#[test]
fn a_frozen_worker_that_has_locked_the_plan_blocks_others_only_briefly() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    create_fleet(&server.socket_connection_string(), "x", &["a (area: src)", "b (area: docs)"]);
    let proxy = Proxy::start_for_port(server.port());
    let mut frozen_fleet = open_fleet(&server.tcp_connection_string_for_role(ADMIN_ROLE, proxy.port()), "x");
    let mut other_fleet = open_fleet(&server.socket_connection_string(), "x");
    // The worker is frozen while it has locked the plan: the server has executed the lock and receives nothing more.
    let has_locked = AtomicBool::new(false);
    let (proxy, has_locked) = (&proxy, &has_locked);
    let mut watch_client = client(&server);
    thread::scope(|scope| {
        let late_thread = scope.spawn(move || {
            let mut tries = 0;
            while !has_locked.load(Ordering::SeqCst) && tries < 2_000 {
                frozen_fleet.acquire_or_renew_merger_lease("m").expect("an answer");
                tries += 1;
            }
            frozen_fleet.acquire_or_renew_merger_lease("m")
        });
        let count_held_locks = "select count(*) from pg_stat_activity join pg_locks using (pid) where state = 'idle in transaction'
            and relation = 'plimsoll.plan'::regclass and mode = 'RowShareLock'";
        let started_at = Instant::now();
        loop {
            proxy.set_paused(true);
            thread::sleep(Duration::from_millis(30));
            if watch_client.query_one(count_held_locks, &[]).expect("the server's view").get::<_, i64>(0) == 1
            {
                break;
            }
            proxy.set_paused(false);
            thread::sleep(Duration::from_millis(3));
            assert!(started_at.elapsed() < Duration::from_secs(30), "it is never caught");
        }
        has_locked.store(true, Ordering::SeqCst);
        let started_at = Instant::now();
        assert!(other_fleet.claim_next_item("two").expect("the server ends a silent client").is_some());
        let wait_time = started_at.elapsed();
        assert!(wait_time > Duration::from_secs(2) && wait_time < Duration::from_secs(25), "{wait_time:?}");
        proxy.set_paused(false);
        // The frozen transaction was rolled back, or committed before; the worker gets an error or continues.
        let _ = late_thread.join();
    });
    assert!(other_fleet.claim_next_item("two").expect("an answer").is_some());
}

#[test]
fn a_worker_that_returns_after_its_lease_changes_nothing() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    let mut fleet = create_fleet(&server.socket_connection_string(), "x", &["a"]);
    let mut other_fleet = open_fleet(&server.socket_connection_string(), "x");
    let claim = fleet.claim_next_item("one").expect("an answer").expect("an item");
    assert_eq!(other_fleet.claim_next_item("two").expect("an answer"), None);
    let expire_lease = format!("update plimsoll.item set lease_until = lease_until - {LEASE_DURATION_MS}");
    client(&server).batch_execute(&expire_lease).expect("90 seconds later");
    let other_claim = other_fleet.claim_next_item("two").expect("an answer").expect("it is over");
    assert_eq!((other_claim.item_index, other_claim.epoch), (claim.item_index, claim.epoch + 1));
    let before = other_fleet.read_board().expect("an answer");
    for late_result in [
        fleet.renew_claim_unless_stale_or_overlapping(claim),
        fleet.offer(claim, "late"),
        fleet.give_back(claim),
        fleet.fail(claim, "late"),
        fleet.set_aside_with_question(claim, "late"),
    ] {
        assert!(matches!(late_result, Err(FleetError::StaleEpoch(StaleEpoch))), "{late_result:?}");
    }
    assert_eq!(other_fleet.read_board().expect("an answer"), before);
    other_fleet.offer(other_claim, "c0ffee0000000000000000000000000000000000").expect("its own");
    assert_eq!(
        fleet.read_board().expect("an answer").items[0].stage,
        ItemStage::ReadyToMerge { commit: "c0ffee0000000000000000000000000000000000".to_owned() }
    );
    let error = other_fleet
        .offer(other_claim, "c0ffee0000000000000000000000000000000000")
        .expect_err("it has arrived");
    assert!(matches!(error, FleetError::StaleEpoch(_)), "{error}");
}
