//! The shares of money and sessions that workers get.

use crate::harness::{client, create_fleet_with_plan, new_plan, plan_items};
use crate::test_fleet::{TestFleet, member};
use plimsoll_domain::workers::{ItemOutcome, ItemResult, WorkUsage};
use plimsoll_fleet::{NewPlan, WorkerReport};
use plimsoll_flows::workers::connection::{ExhaustedLimit, Reservation};
use plimsoll_testkit::postgres::{Postgres, ServerSetup};

fn money_share(usd: f64) -> Reservation {
    Reservation::Share { usd: Some(usd), sessions: None }
}

fn session_share(sessions: u32) -> Reservation {
    Reservation::Share { usd: None, sessions: Some(sessions) }
}

/// Reports a worker with its item, and reserves for it.
fn report_and_reserve(
    fleet: &mut TestFleet,
    member_name: &str,
    item: usize,
    cost: f64,
    unreported_sessions: u32,
) -> Reservation {
    let report = WorkerReport {
        worker_number: 1,
        total_cost_usd: cost,
        item_index: Some(item),
        ..WorkerReport::default()
    };
    fleet.record_worker_report(member_name, &report).expect("an answer");
    fleet
        .reserve_money_and_sessions(&member(member_name), &report, unreported_sessions, 0.01)
        .expect("an answer")
}

#[test]
fn all_workers_together_never_spend_more_than_the_plan_allows() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    let plan = NewPlan { max_cost_usd: Some(6.0), ..new_plan("x") };
    let items = plan_items(&["a", "b", "c"]);
    let mut fleet = create_fleet_with_plan(&server.socket_connection_string(), &plan, &items);
    for name in ["a", "b", "c"] {
        let report = WorkerReport { item_index: Some(0), ..WorkerReport::default() };
        fleet.record_worker_report(name, &report).expect("an answer");
    }
    for (item, name) in ["a", "b", "c"].into_iter().enumerate() {
        assert_eq!(report_and_reserve(&mut fleet, name, item, 0.0, 0), money_share(2.0), "{name}");
    }
    assert_eq!(report_and_reserve(&mut fleet, "a", 0, 2.0, 0), Reservation::WaitForOthers);
    // The machine of the second worker is gone: what it had reserved and not spent is free.
    client(&server)
        .batch_execute("update plimsoll_x.worker set seen = 0, cost = 0.5 where name = 'b/1'")
        .expect("long ago");
    assert_eq!(report_and_reserve(&mut fleet, "a", 0, 2.0, 0), money_share(1.5));
    let set_costs =
        "update plimsoll_x.worker set allowance = 2, cost = case name when 'c/1' then 1.985 else 2 end;
        update plimsoll_x.worker set allowance = 1.985 where name = 'c/1'";
    client(&server).batch_execute(set_costs).expect("workers");
    // A remainder that is too small for two goes to the last one.
    let Reservation::Share { usd: Some(share), .. } = report_and_reserve(&mut fleet, "a", 0, 2.0, 0) else {
        panic!("there is a remainder")
    };
    assert!((share - 0.015).abs() < 1e-9, "{share}");
    client(&server)
        .batch_execute("update plimsoll_x.worker set allowance = null, cost = 2")
        .expect("workers");
    assert_eq!(
        report_and_reserve(&mut fleet, "a", 0, 2.0, 0),
        Reservation::Exhausted(ExhaustedLimit::Money(6.0, 6.0))
    );
}

#[test]
fn all_attempts_together_start_no_more_sessions_than_the_plan_allows() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    let plan = NewPlan { max_sessions: Some(10), ..new_plan("x") };
    let items = plan_items(&["a", "b", "c"]);
    let mut fleet = create_fleet_with_plan(&server.socket_connection_string(), &plan, &items);
    for name in ["one", "two"] {
        fleet.claim_next_item(name).expect("an answer").expect("an item");
        fleet.record_worker_report(name, &WorkerReport::default()).expect("an answer");
    }
    let mut client = client(&server);
    for ((used, allowed_to_other, workers), unreported_sessions, expected) in [
        ((0, 0, 1), 0, session_share(10)),
        ((0, 0, 2), 0, session_share(5)),
        ((0, 5, 2), 0, session_share(5)),
        // A remainder goes to the first worker.
        ((7, 0, 2), 0, session_share(2)),
        ((7, 2, 2), 0, session_share(1)),
        ((7, 3, 2), 0, Reservation::WaitForOthers),
        // A worker that has used its share asks again.
        ((0, 4, 2), 5, session_share(1)),
        ((0, 5, 2), 5, Reservation::WaitForOthers),
        ((5, 0, 2), 5, Reservation::Exhausted(ExhaustedLimit::Sessions(10))),
        ((12, 0, 1), 0, Reservation::Exhausted(ExhaustedLimit::Sessions(12))),
    ] {
        let context = format!("{used} {allowed_to_other} {workers} {unreported_sessions}");
        client
            .batch_execute(&format!(
                "update plimsoll_x.item set sessions_allowed = case place when 1 then {allowed_to_other} else 0 end,
                   sessions = case place when 2 then {used} else 0 end;
                 update plimsoll_x.worker set seen = case when name = 'one/1' or {workers} = 2 then plimsoll_x.moment() else 0 end"
            ))
            .expect("rows");
        assert_eq!(report_and_reserve(&mut fleet, "one", 0, 0.0, unreported_sessions), expected, "{context}");
        let allowed: i32 = client
            .query_one("select sessions_allowed from plimsoll_x.item where place = 0", &[])
            .expect("an item")
            .get(0);
        let expected_allowed = match expected {
            Reservation::Share { sessions, .. } => unreported_sessions + sessions.unwrap_or_default(),
            Reservation::WaitForOthers | Reservation::Exhausted(_) => 0,
        };
        assert_eq!(u32::try_from(allowed), Ok(expected_allowed), "{context}");
    }
}

#[test]
fn an_attempt_that_has_ended_counts_with_what_it_used() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    let plan = NewPlan { max_sessions: Some(4), ..new_plan("x") };
    let mut fleet =
        create_fleet_with_plan(&server.socket_connection_string(), &plan, &plan_items(&["a", "b"]));
    let claim = fleet.claim_next_item("one").expect("an answer").expect("an item");
    assert_eq!(report_and_reserve(&mut fleet, "one", 0, 0.0, 0), session_share(4));
    let other_claim = fleet.claim_next_item("two").expect("an answer").expect("an item");
    assert_eq!(report_and_reserve(&mut fleet, "two", 1, 0.0, 0), Reservation::WaitForOthers);
    let usage = WorkUsage { sessions: 1, cost_usd: 0.25, tokens: 7, ..WorkUsage::default() };
    let result = ItemResult {
        item: claim.item_index,
        epoch: claim.epoch,
        outcome: ItemOutcome::Released,
        usage,
        ..ItemResult::default()
    };
    fleet.store_result_unless_outcome_taken_by_other(&result).expect("mine");
    assert_eq!(
        report_and_reserve(&mut fleet, "two", other_claim.item_index, 0.0, 0),
        session_share(2),
        "three sessions are left for two workers"
    );
    let status = fleet.read_status().expect("an answer");
    assert_eq!((status.session_count, status.token_count), (1, 7));
}
