//! Attacks that an earlier version did not withstand. The owner of the fleet is no superuser here.

use crate::harness::{client, connect, create_fleet_with_plan, new_plan, open_fleet, plan_items};
use crate::test_fleet::{TestFleet, member};
use plimsoll_fleet::{NewPlan, WorkerReport, read_all_statuses};
use plimsoll_flows::workers::connection::Reservation;
use plimsoll_testkit::postgres::{Postgres, ServerSetup};
use postgres::{Client, NoTls};

const COMMIT: &str = "c0ffee0000000000000000000000000000000000";
const BAD: &str = "'bad', 'the secret token of the member bad'";

/// A fleet `x` whose owner is no superuser, with an honest member and the connection of a hostile one.
struct Scene {
    server: Postgres,
    owner_address: String,
    good_member: TestFleet,
    attacker: Client,
}

impl Scene {
    fn new(plan: &NewPlan) -> Scene {
        let server = Postgres::create_cluster_and_start(ServerSetup::default());
        server.run_sql("create role admiral login createrole; grant create on database postgres to admiral");
        let owner_address = server.socket_connection_string_for_role("admiral");
        create_fleet_with_plan(&owner_address, plan, &plan_items(&["a", "b", "c"]));
        let member_address = server.socket_connection_string_for_role("plimsoll_x");
        let good_member = open_fleet(&member_address, "x");
        let attacker = Client::connect(&member_address, NoTls).expect("the socket");
        Scene { server, owner_address, good_member, attacker }
    }

    /// Runs statements of the attacker. It does not matter whether they fail, only what they do to the others.
    fn attack(&mut self, statements: &str) {
        let statements = statements.replace("BAD", BAD);
        let _ = self.attacker.batch_execute(&format!("set search_path to plimsoll_x; {statements}"));
    }

    fn report_good_worker(&mut self) {
        let report = WorkerReport { worker_number: 1, item_index: Some(0), ..WorkerReport::default() };
        self.good_member.record_worker_report("good", &report).expect("the honest member reports");
    }
}

fn plan_with_limits() -> NewPlan {
    NewPlan { max_cost_usd: Some(10.0), max_sessions: Some(50), ..new_plan("x") }
}

#[test]
fn an_item_that_a_member_works_on_is_not_voided_by_a_landing_from_before_its_claim() {
    let mut scene = Scene::new(&new_plan("x"));
    scene.attack(&format!("select restore_landing(BAD, 0, '{COMMIT}')"));
    let claim = scene.good_member.claim_next_item("good").expect("an answer").expect("an item");
    scene.attack(&format!("select mark_merged(BAD, array[0], array['{COMMIT}'])"));
    scene.good_member.offer_commit(claim, COMMIT).expect("the honest member offers its work");
}

#[test]
fn usage_near_the_maximum_never_makes_the_result_of_another_member_fail() {
    let mut scene = Scene::new(&new_plan("x"));
    for (epoch, usage) in [(1, "9223372036854775807, 0"), (2, "0, 2147483647")] {
        scene.attack("select claim_item(BAD, 1, '{}')");
        scene.attack(&format!("select store_result(BAD, 0, {epoch}, 'given_back', '', '', '', 0, {usage})"));
    }
    let claim = scene.good_member.claim_next_item("good").expect("an answer").expect("an item");
    let result = plimsoll_domain::workers::ItemResult {
        item: claim.item_index,
        epoch: claim.epoch,
        start_commit_id: COMMIT.to_owned(),
        base_commit_id: COMMIT.to_owned(),
        outcome: plimsoll_domain::workers::ItemOutcome::Offered,
        usage: plimsoll_domain::workers::WorkUsage { tokens: 1, sessions: 1, ..Default::default() },
    };
    scene.good_member.store_result_unless_outcome_taken_by_other(&result).expect("its work is stored");
}

#[test]
fn two_huge_costs_never_make_the_statements_of_the_others_fail() {
    let mut scene = Scene::new(&plan_with_limits());
    for worker in [1, 2] {
        scene.attack(&format!("select report_worker(BAD, {worker}, 'm', 1, 'v', 's', null, 1.7e308, null)"));
    }
    scene.report_good_worker();
    // The limit is reached, which the table of docs/fleet.md says, so nothing is claimed; but it is no error.
    scene.good_member.claim_next_item("good").expect("an answer");
    scene.good_member.read_status().expect("the status");
    // One fleet must not hide the others from their owner.
    read_all_statuses(connect(&scene.owner_address).expect("a connection")).expect("all fleets");
}

#[test]
fn an_item_number_that_no_plan_has_never_makes_the_status_fail() {
    let mut scene = Scene::new(&new_plan("x"));
    scene.attack("select report_worker(BAD, 1, 'm', 1, 'v', 's', null, 0, 2147483647)");
    scene.good_member.read_worker_statuses().expect("the workers");
}

#[test]
fn tokens_of_two_items_never_make_the_status_fail() {
    let mut scene = Scene::new(&new_plan("x"));
    for place in [0, 1] {
        scene.attack("select claim_item(BAD, 1, '{}')");
        scene.attack(&format!(
            "select store_result(BAD, {place}, 1, 'set_aside', 'Which?', '', '', 0, 9223372036854775807, 0)"
        ));
    }
    scene.good_member.read_status().expect("the status");
}

#[test]
fn sessions_are_not_held_back_by_an_item_that_is_recorded_as_merged() {
    let mut scene = Scene::new(&plan_with_limits());
    scene.attack(&format!("select restore_landing(BAD, 0, '{COMMIT}')"));
    scene.attack("select claim_item(BAD, 1, '{}')");
    scene.attack("select reserve_budget(BAD, 1, 0, 0, 0.01)");
    scene.attack("select acquire_merger_lease(BAD)");
    scene.attack(&format!("select mark_merged(BAD, array[0], array['{COMMIT}'])"));
    assert_eq!(scene.server.run_sql("select stage from plimsoll_x.item where place = 0"), "merged");
    let claim = scene.good_member.claim_next_item("good").expect("an answer").expect("an item");
    let report =
        WorkerReport { worker_number: 1, item_index: Some(claim.item_index), ..WorkerReport::default() };
    scene.good_member.record_worker_report("good", &report).expect("an answer");
    let reservation = scene.good_member.reserve_money_and_sessions(&member("good"), &report, 0, 0.01);
    let reservation = reservation.expect("an answer");
    assert!(matches!(reservation, Reservation::Share { .. }), "{reservation:?}");
}

/// A default isolation level of the role, or of the whole server, also holds for the single statements of honest members.
#[test]
fn two_reservations_never_exceed_the_limit_under_repeatable_read() {
    let mut scene = Scene::new(&plan_with_limits());
    scene.attack("alter role plimsoll_x set default_transaction_isolation = 'repeatable read'");
    let address = scene.server.socket_connection_string_for_role("plimsoll_x");
    let worker = WorkerReport { worker_number: 1, item_index: None, ..WorkerReport::default() };
    for name in ["good1", "good2"] {
        scene.good_member.record_worker_report(name, &worker).expect("an answer");
    }
    // Somebody holds the plan for a moment, so that both wait for it at the same time.
    let mut holder = client(&scene.server);
    holder.batch_execute("begin; select from plimsoll_x.plan for update").expect("a lock");
    let reserve = |name: &'static str| {
        let address = address.clone();
        std::thread::spawn(move || {
            let worker = WorkerReport { worker_number: 1, item_index: None, ..WorkerReport::default() };
            open_fleet(&address, "x").reserve_money_and_sessions(&member(name), &worker, 0, 6.0)
        })
    };
    let reservations = ["good1", "good2"].map(reserve);
    let waiting = "count(*) from pg_stat_activity where wait_event_type = 'Lock' and usename = 'plimsoll_x'";
    while scene.server.run_sql(&format!("select {waiting}")) != "2" {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    holder.batch_execute("commit").expect("the lock is free");
    let reservations =
        reservations.map(|reservation| reservation.join().expect("no panic").expect("an answer"));
    let shares = reservations.iter().filter(|reservation| matches!(reservation, Reservation::Share { .. }));
    assert_eq!(shares.count(), 1, "{reservations:?}");
    let reserved = scene.server.run_sql("select coalesce(sum(allowance), 0) <= 10 from plimsoll_x.worker");
    assert_eq!(reserved, "t", "the shares together exceed the limit of $10");
}

#[test]
fn a_member_cannot_prevent_that_its_fleet_is_forgotten() {
    for attack in ["select lo_create(0)", "alter default privileges grant select on tables to public"] {
        let mut scene = Scene::new(&new_plan("x"));
        let mut owner = open_fleet(&scene.owner_address, "x");
        owner.end_as_stopped().expect("an answer");
        scene.attack(attack);
        let forgotten = owner.into_fleet().delete_if_no_active_workers();
        assert!(matches!(forgotten, Ok(None)), "{attack}: {forgotten:?}");
    }
}

#[test]
fn a_member_cannot_prevent_that_other_fleets_are_created() {
    let mut scene = Scene::new(&new_plan("x"));
    scene.attack("select pg_advisory_lock(8100965748541713516)");
    create_fleet_with_plan(&scene.owner_address, &new_plan("other"), &plan_items(&["a"]));
}

/// `reopen` of the owner does not change the row of the plan if the fleet has not ended.
#[test]
fn a_fleet_with_an_open_item_is_not_ended_by_an_old_snapshot() {
    let mut scene = Scene::new(&new_plan("x"));
    scene.server.run_sql("update plimsoll_x.item set stage = 'merged'");
    scene.attack("begin isolation level repeatable read; select from item");
    let mut owner = open_fleet(&scene.owner_address, "x");
    assert!(owner.reopen_item_missing_from_target(1).expect("an answer"));
    scene.attack("select end_if_all_merged(BAD); commit");
    assert_eq!(scene.server.run_sql("select ended is null from plimsoll_x.plan"), "t");
}

/// The merger parses `beyond` of an item that waits to be merged, and cannot go on without one.
#[test]
fn work_without_a_base_commit_is_not_accepted() {
    let mut scene = Scene::new(&new_plan("x"));
    scene.attack("select claim_item(BAD, 1, '{}')");
    scene.attack(&format!("select store_result(BAD, 0, 1, 'offered', '', '{COMMIT}', '', 0, 0, 0)"));
    assert_eq!(
        scene.server.run_sql("select count(*) from plimsoll_x.item where stage = 'offered' and beyond = ''"),
        "0"
    );
}

#[test]
fn a_name_that_looks_like_that_of_another_member_is_not_accepted() {
    let mut scene = Scene::new(&new_plan("x"));
    scene.report_good_worker();
    scene.attack(
        "select record_member_event('good ', 'the secret token of the member bad', 'joined', null, '')",
    );
    let lookalikes = "select count(*) from plimsoll_x.event where worker <> 'good' and trim(worker) = 'good'";
    assert_eq!(scene.server.run_sql(lookalikes), "0");
}

/// All members read the landings of an item, so a member must not be able to add any number of them.
#[test]
fn the_landings_of_an_item_have_a_limit() {
    let mut scene = Scene::new(&new_plan("x"));
    scene.attack(
        "select restore_landing(BAD, 0, md5(n::text) || '00000000') from generate_series(1, 3000) as n",
    );
    let count = scene.server.run_sql("select cardinality(landings) from plimsoll_x.item where place = 0");
    assert_eq!(count, "1000");
}

/// The status of a fleet is one answer, and Plimsoll gives up an answer of more than 256 MB.
#[test]
fn many_workers_of_one_member_never_make_the_status_fail() {
    let mut scene = Scene::new(&new_plan("x"));
    for members in ["1, 150", "151, 300"] {
        scene.attack(&format!(
            "select report_worker('bad' || m, 'the secret token of the member bad', n, repeat(chr(128512), 200), 1,
               repeat(chr(128512), 200), repeat(chr(128512), 200), null, 0, null)
             from generate_series({members}) m, generate_series(1, 64) n"
        ));
    }
    // The second statement exceeds the limit, so it has done nothing.
    assert_eq!(scene.server.run_sql("select count(*) from plimsoll_x.worker"), "9600");
    let address = scene.server.tcp_connection_string_for_role("plimsoll_x", scene.server.port());
    let workers = open_fleet(&address, "x").read_worker_statuses();
    assert!(workers.is_ok(), "{}", workers.expect_err("an error"));
}
