//! Faults between a fleet and its database, and between two of its operations.
//!
//! Tests commands shown in docs/fleet.md.

use crate::harness::{client, connect, create_fleet, open_fleet};
use crate::test_fleet::TestFleet;
use plimsoll_domain::board::ItemStage;
use plimsoll_fleet::{DatabaseError, Fleet, FleetError, FleetName, read_all_statuses};
use plimsoll_policy::workers::{LEASE_DURATION_MS, StaleEpoch};
use plimsoll_testkit::postgres::{
    ADMIN_ROLE, PASSWORD, Postgres, ServerSetup, role_and_grant_statements_from_docs,
};
use plimsoll_testkit::proxy::Proxy;
use plimsoll_testkit::workspace_root;
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
    fleet.offer_commit(first_claim, "c0ffee0000000000000000000000000000000000").expect("mine");
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
        expect_database_fault(fleet.offer_commit(second_claim, "c0de000000000000000000000000000000000000")),
        DatabaseError::ConnectionLost | DatabaseError::Restarting
    ));
    fleet.offer_commit(second_claim, "c0de000000000000000000000000000000000000").expect("it had not arrived");
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
        late_fleet.offer_commit(claim, "c0ffee0000000000000000000000000000000000"),
        late_fleet.give_back(claim),
        late_fleet.acquire_or_renew_merger_lease("m").map(|_| ()),
        late_fleet.record_worker_report("two", &plimsoll_fleet::WorkerReport::default()),
        late_fleet.pause_claims_for_at_least(Duration::from_secs(1)),
        Fleet::create_if_name_free(
            connect(&server.socket_connection_string()).expect("it can be read"),
            &crate::harness::new_plan("y"),
            &[],
            PASSWORD,
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
    lock_client
        .batch_execute("begin; select from plimsoll_x.item where place = 0 for update")
        .expect("a lock");
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
    create_fleet(&server.socket_connection_string(), "y", &["a"]);
    client(&server).batch_execute("create role deckhand login").expect("a role");
    for role in ["deckhand", "plimsoll_y"] {
        let address = server.socket_connection_string_for_role(role);
        let error =
            Fleet::open(connect(&address).expect("a connection"), "x").map(|_| ()).expect_err("no rights");
        assert!(
            matches!(
                &error,
                FleetError::Database { database_error: DatabaseError::MissingPermission(_), .. }
            ),
            "{error}"
        );
        let statuses = read_all_statuses(connect(&address).expect("a connection")).expect("an answer");
        let names: Vec<String> = statuses.statuses.into_iter().map(|status| status.name).collect();
        assert_eq!(names, if role == "plimsoll_y" { vec!["y".to_owned()] } else { Vec::new() });
    }
    let address = server.socket_connection_string_for_role("deckhand");
    let prepared = plimsoll_fleet::check_fleet_can_be_created(
        &mut connect(&address).expect("a connection"),
        &FleetName::parse("z").expect("a name"),
    );
    assert!(matches!(expect_database_fault(prepared), DatabaseError::MissingPermission(_)));
    // A role of the user's own can be given the rights of the members.
    client(&server).batch_execute("grant plimsoll_x to deckhand").expect("a role");
    assert!(open_fleet(&address, "x").claim_next_item("one").expect("an answer").is_some());
}

#[test]
fn a_machine_can_have_a_role_of_its_own() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    create_fleet(&server.socket_connection_string(), "night", &["a"]);
    let statements = "alter role plimsoll_night nologin;
create role machine_a login;
grant plimsoll_night to machine_a;
grant machine_a to current_user;
";
    let page = std::fs::read_to_string(workspace_root().join("docs/fleet.md")).expect("the page");
    assert!(page.contains(statements), "docs/fleet.md shows other statements");
    client(&server).batch_execute(statements).expect("rights");
    let mut fleet = open_fleet(&server.socket_connection_string_for_role("machine_a"), "night");
    assert!(fleet.claim_next_item("one").expect("an answer").is_some());
    let shared_login = connect(&server.socket_connection_string_for_role("plimsoll_night")).map(|_| ());
    assert!(matches!(expect_database_fault(shared_login), DatabaseError::AccessRefused(_)));
    // The machine cannot change the role that all share so that it logs in again.
    let address = server.socket_connection_string_for_role("machine_a");
    let mut machine_client = postgres::Client::connect(&address, postgres::NoTls).expect("the socket");
    let error = machine_client.batch_execute("set role plimsoll_night; alter role plimsoll_night login");
    assert_eq!(error.expect_err("not allowed").code().map(postgres::error::SqlState::code), Some("42501"));
}

#[test]
fn a_dashboard_role_sees_the_views_and_nothing_else() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    create_fleet(&server.socket_connection_string(), "x", &["a"]);
    client(&server)
        .batch_execute(&role_and_grant_statements_from_docs("lookout").replace("night", "x"))
        .expect("rights");
    let address = server.socket_connection_string_for_role("lookout");
    let mut dashboard_client = postgres::Client::connect(&address, postgres::NoTls).expect("the socket");
    for view in ["fleet_status", "fleet_items", "fleet_workers", "fleet_costs"] {
        dashboard_client.query(&format!("select * from plimsoll_x.{view}"), &[]).expect(view);
    }
    for table in ["plan", "item", "worker", "event", "member", "claim_item('a', 'b', 1, '{}')"] {
        let error =
            dashboard_client.query(&format!("select * from plimsoll_x.{table}"), &[]).expect_err(table);
        assert_eq!(error.code().map(postgres::error::SqlState::code), Some("42501"), "{table}");
    }
}

#[test]
fn a_connection_cut_anywhere_leaves_an_operation_done_or_undone() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    let proxy = Proxy::start_for_port(server.port());
    // A claim of the first fleet locks the plan.
    create_fleet(&server.socket_connection_string(), "x", &["a (area: src)", "b (area: docs)"]);
    create_fleet(&server.socket_connection_string(), "y", &["a", "b"]);
    // Number of bytes that pass in one direction: cuts within a statement, a transaction and a response.
    let request_cuts = (1..24).map(|step| (step * 16, u64::MAX));
    let response_cuts = (0..36).map(|step| (u64::MAX, step * 6));
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
    observer_fleet: &mut TestFleet,
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
    let expire_leases = format!("update plimsoll_{name}.item set lease_until = 0 where stage = 'leased'");
    client(server).batch_execute(&expire_leases).expect("over");
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
fn board_when_all_idle(
    observer_fleet: &mut TestFleet,
    server: &Postgres,
) -> plimsoll_domain::board::BoardState {
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
fn a_frozen_worker_blocks_nobody() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    create_fleet(&server.socket_connection_string(), "x", &["a (area: src)"]);
    let proxy = Proxy::start_for_port(server.port());
    let mut frozen_fleet = open_fleet(&server.tcp_connection_string_for_role(ADMIN_ROLE, proxy.port()), "x");
    let mut other_fleet = open_fleet(&server.socket_connection_string(), "x");
    let is_over = AtomicBool::new(false);
    let (proxy, is_over) = (&proxy, &is_over);
    thread::scope(|scope| {
        // Each of these operations locks the plan. The worker is frozen between any two messages.
        scope.spawn(move || {
            while !is_over.load(Ordering::SeqCst) {
                frozen_fleet.acquire_or_renew_merger_lease("m").expect("an answer");
                if let Some(claim) = frozen_fleet.claim_next_item("one").expect("an answer") {
                    frozen_fleet.give_back(claim).expect("mine");
                }
            }
        });
        for round in 0..40 {
            thread::sleep(Duration::from_millis(round % 7));
            proxy.set_paused(true);
            let started_at = Instant::now();
            other_fleet.acquire_or_renew_merger_lease("n").expect("an answer");
            other_fleet.pause_claims_for_at_least(Duration::ZERO).expect("an answer");
            let wait_time = started_at.elapsed();
            assert!(wait_time < Duration::from_secs(2), "{wait_time:?}");
            proxy.set_paused(false);
        }
        is_over.store(true, Ordering::SeqCst);
    });
}

#[test]
fn a_worker_that_returns_after_its_lease_changes_nothing() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    let mut fleet = create_fleet(&server.socket_connection_string(), "x", &["a"]);
    let mut other_fleet = open_fleet(&server.socket_connection_string(), "x");
    let claim = fleet.claim_next_item("one").expect("an answer").expect("an item");
    assert_eq!(other_fleet.claim_next_item("two").expect("an answer"), None);
    let expire_lease = format!("update plimsoll_x.item set lease_until = lease_until - {LEASE_DURATION_MS}");
    client(&server).batch_execute(&expire_lease).expect("90 seconds later");
    let other_claim = other_fleet.claim_next_item("two").expect("an answer").expect("it is over");
    assert_eq!((other_claim.item_index, other_claim.epoch), (claim.item_index, claim.epoch + 1));
    let before = other_fleet.read_board().expect("an answer");
    for late_result in [
        fleet.renew_claim_unless_stale_or_overlapping(claim),
        fleet.offer_commit(claim, "late"),
        fleet.give_back(claim),
        fleet.fail(claim, "late"),
        fleet.set_aside_with_question(claim, "late"),
    ] {
        assert!(matches!(late_result, Err(FleetError::StaleEpoch(StaleEpoch))), "{late_result:?}");
    }
    assert_eq!(other_fleet.read_board().expect("an answer"), before);
    other_fleet.offer_commit(other_claim, "c0ffee0000000000000000000000000000000000").expect("its own");
    assert_eq!(
        fleet.read_board().expect("an answer").items[0].stage,
        ItemStage::ReadyToMerge { commit: "c0ffee0000000000000000000000000000000000".to_owned() }
    );
    let error = other_fleet
        .offer_commit(other_claim, "c0ffee0000000000000000000000000000000000")
        .expect_err("it has arrived");
    assert!(matches!(error, FleetError::StaleEpoch(_)), "{error}");
}
