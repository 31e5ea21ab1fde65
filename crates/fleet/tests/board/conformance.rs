//! Runs the board in memory and the one in the database side by side: results and board must be equal after each step.

use crate::harness::{client, create_fleet_with_plan, new_plan, open_fleet};
use crate::interleavings::{BoardUnderTest, run_simulations};
use crate::test_fleet::TestFleet;
use plimsoll_domain::board::{BoardMillis, BoardState, SetAsideReason};
use plimsoll_fleet::FleetError;
use plimsoll_flows::workers::connection::RejectedItem;
use plimsoll_policy::plan::EstimatedItem;
use plimsoll_policy::workers::{Claim, LEASE_DURATION_MS, StaleEpoch, create_board_with_done_items_merged};
use plimsoll_testkit::postgres::{PgBouncer, Postgres, ServerSetup};
use postgres::Client;
use std::time::Duration;

/// The board in memory and the one in the database, which is used as a member uses it.
struct BothBoards {
    local: BoardState,
    fleet: TestFleet,
    /// This fleet for its owner.
    owner_fleet: TestFleet,
    /// A connection of the test itself, which sets the clock.
    clock_client: Client,
    now: BoardMillis,
    /// A pool keeps connections of a role that was dropped, so each fleet has a pool of its own.
    _bouncer: Option<PgBouncer>,
}

/// Replaces the clock of the fleet, which is one function. Only these tests do so: production code cannot set the time.
const REPLACE_FLEET_CLOCK: &str = "
    create table if not exists public.clock (now bigint);
    delete from public.clock;
    insert into public.clock values (0);
    create or replace function plimsoll_both.moment() returns bigint language sql volatile as 'select now from public.clock'";
const DROP_FLEET: &str = "drop schema if exists plimsoll_both cascade; drop role if exists plimsoll_both";
const MEMBER_ROLE: &str = "plimsoll_both";

impl BothBoards {
    fn new(server: &Postgres, items: &[EstimatedItem]) -> BothBoards {
        BothBoards::with_member_address(server, &server.socket_connection_string_for_role(MEMBER_ROLE), items)
    }

    fn behind_pgbouncer(server: &Postgres, items: &[EstimatedItem]) -> BothBoards {
        let bouncer = server.start_pgbouncer(MEMBER_ROLE);
        let boards = BothBoards::with_member_address(server, &bouncer.connection_string(), items);
        BothBoards { _bouncer: Some(bouncer), ..boards }
    }

    /// `member_address` is the address of the database for the role of the members.
    fn with_member_address(server: &Postgres, member_address: &str, items: &[EstimatedItem]) -> BothBoards {
        let mut clock_client = client(server);
        clock_client.batch_execute(DROP_FLEET).expect("no earlier fleet");
        let owner_fleet =
            create_fleet_with_plan(&server.socket_connection_string(), &new_plan("both"), items);
        clock_client.batch_execute(REPLACE_FLEET_CLOCK).expect("a clock of the test's");
        let fleet = open_fleet(member_address, "both");
        let local = create_board_with_done_items_merged(items);
        BothBoards { local, fleet, owner_fleet, clock_client, now: 0, _bouncer: None }
    }

    fn set_clock(&mut self, now: BoardMillis) {
        if now != self.now {
            self.clock_client
                .batch_execute(&format!("update public.clock set now = {now}"))
                .expect("a clock");
            self.now = now;
        }
    }
}

/// Returns the result of the database. A stale epoch is allowed, any other error is not.
fn result_or_stale_epoch<T>(result: Result<T, FleetError>) -> Result<T, StaleEpoch> {
    result.map_err(|error| match error {
        FleetError::StaleEpoch(fenced) => fenced,
        unexpected_error => panic!("{unexpected_error}"),
    })
}

/// Checks that both results are equal, and returns one of them.
fn assert_same<T: PartialEq + std::fmt::Debug>((local, remote): (T, T)) -> T {
    assert_eq!(remote, local, "the database, and the board in memory");
    local
}

impl BoardUnderTest for BothBoards {
    fn claim(&mut self, worker: &str, now: BoardMillis) -> Option<Claim> {
        self.set_clock(now);
        // A fleet names a worker after its member, whose name has no blanks.
        let member_name = worker.replace(' ', "-");
        let local_claim = self.local.claim(&format!("{member_name}/1"), now);
        assert_same((local_claim, self.fleet.claim_next_item(&member_name).expect("an answer")))
    }
    fn renew(&mut self, claim: Claim, now: BoardMillis) -> Result<(), StaleEpoch> {
        self.set_clock(now);
        assert_same((
            self.local.renew(claim, now),
            result_or_stale_epoch(self.fleet.renew_claim_unless_stale_or_overlapping(claim)),
        ))
    }
    fn offer_commit(&mut self, claim: Claim, commit: &str) -> Result<(), StaleEpoch> {
        assert_same((
            self.local.offer_commit(claim, commit),
            result_or_stale_epoch(self.fleet.offer_commit(claim, commit)),
        ))
    }
    fn give_back(&mut self, claim: Claim) -> Result<(), StaleEpoch> {
        assert_same((self.local.give_back(claim), result_or_stale_epoch(self.fleet.give_back(claim))))
    }
    fn fail(&mut self, claim: Claim, reason: &str) -> Result<(), StaleEpoch> {
        assert_same((self.local.fail(claim, reason), result_or_stale_epoch(self.fleet.fail(claim, reason))))
    }
    fn set_aside(&mut self, claim: Claim, reason: SetAsideReason) -> Result<(), StaleEpoch> {
        let SetAsideReason::Question(question) = &reason else {
            panic!("a member sets aside what it asks about")
        };
        let remote = result_or_stale_epoch(self.fleet.set_aside_with_question(claim, question));
        assert_same((self.local.set_aside(claim, reason), remote))
    }
    fn become_merger(&mut self, name: &str, now: BoardMillis) -> Option<u64> {
        self.set_clock(now);
        assert_same((
            self.local.become_merger(&name.replace(' ', "-"), now),
            self.fleet.acquire_or_renew_merger_lease(&name.replace(' ', "-")).expect("an answer"),
        ))
    }
    fn settle(&mut self, target: &[String]) -> Vec<usize> {
        let is_in_target = |commit: &str| target.iter().any(|landed| landed == commit);
        assert_same((
            self.local.settle(target),
            self.fleet.mark_landed_merged(is_in_target).expect("an answer"),
        ))
    }
    fn land(&mut self, merger: u64, item: usize, commit: &str) -> Result<(), StaleEpoch> {
        assert_same((
            self.local.land(merger, item, commit),
            result_or_stale_epoch(self.fleet.record_merge_candidate_commit(merger, item, commit)),
        ))
    }
    fn refuse(&mut self, merger: u64, item: usize, note: &str) -> Result<(), StaleEpoch> {
        let (start, beyond) = (String::new(), String::new());
        let rejected_item = RejectedItem {
            merger_epoch: merger,
            item,
            next_session_note: note.to_owned(),
            start_commit_id: start,
            base_commit_id: beyond,
        };
        assert_same((
            self.local.refuse(merger, item, note),
            result_or_stale_epoch(self.fleet.reopen_or_set_aside_rejected_item(&rejected_item)),
        ))
    }
    fn pause(&mut self, now: BoardMillis, until: BoardMillis) {
        self.set_clock(now);
        self.fleet.pause_claims_for_at_least(Duration::from_millis(until - now)).expect("an answer");
        self.local.pause(now, until);
    }
    fn reopen(&mut self, item: usize) -> bool {
        let was_reopened = self.owner_fleet.reopen_set_aside_item(item).expect("an answer");
        assert_same((self.local.reopen(item), was_reopened))
    }
    fn board(&mut self) -> BoardState {
        assert_same((self.local.clone(), self.fleet.read_board().expect("an answer")))
    }
}

/// Plans of 100 steps each. `PLIMSOLL_FLEET_PLANS` overrides the number.
const DEFAULT_PLAN_COUNT: u64 = 12;

#[test]
fn both_boards_agree_in_every_order_of_operations() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    let plans = std::env::var("PLIMSOLL_FLEET_PLANS").ok().and_then(|number| number.parse().ok());
    let (merged, set_aside) =
        run_simulations(plans.unwrap_or(DEFAULT_PLAN_COUNT), 100, |items| BothBoards::new(&server, items));
    assert!(merged > 12 && set_aside > 0, "the runs show nothing: {merged} merged, {set_aside} aside");
}

#[test]
fn both_boards_agree_through_pgbouncer() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    run_simulations(4, 100, |items| BothBoards::behind_pgbouncer(&server, items));
}

/// Random orders reach this case too rarely.
#[test]
fn a_late_renewal_does_not_take_an_area_that_somebody_else_has() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    let items = crate::harness::plan_items(&["a (area: src/a)", "b (area: src)", "c"]);
    let mut boards = BothBoards::new(&server, &items);
    let first_claim = boards.claim("one", 0).expect("an item");
    boards.set_aside(first_claim, SetAsideReason::Question("which?".to_owned())).expect("mine");
    let late_claim = boards.claim("two", 0).expect("the second");
    boards.reopen(0);
    let other_claim =
        boards.claim("three", LEASE_DURATION_MS).expect("the first, because the lease of the second is over");
    assert_eq!((late_claim.item_index, other_claim.item_index), (1, 0));
    assert_eq!(boards.renew(late_claim, LEASE_DURATION_MS), Err(StaleEpoch));
    assert_eq!(boards.renew(other_claim, LEASE_DURATION_MS + 1), Ok(()));
    boards.board();
    // Both leases are expired: the first renewal wins.
    assert_eq!(boards.renew(late_claim, 3 * LEASE_DURATION_MS), Ok(()));
    assert_eq!(boards.renew(other_claim, 3 * LEASE_DURATION_MS), Err(StaleEpoch));
    boards.board();
    assert_eq!(
        boards.offer_commit(other_claim, "c0ffee0000000000000000000000000000000000"),
        Ok(()),
        "nobody has taken that item itself"
    );
    boards.board();
}

#[test]
fn plans_of_any_shape_give_the_same_board() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    for texts in [
        &[][..],
        &["done a", "b (after: 1)"],
        &["a (after: 9)", "b (after: 2000)", "c (after: 3)"],
        &["a (area: .)", "b (area: src)", "c"],
        &["a (area: src/dates)", "b (area: src/dates.rs)", "c (area: src/dates/x)", "d (area: ünï/%_)"],
        &["it's \"quoted\" \\ {} \u{1f6a2} $1 (area: a'b)", "x"],
    ] {
        let items = crate::harness::plan_items(texts);
        let mut boards = BothBoards::new(&server, &items);
        boards.board();
        for worker in 0..items.len() {
            let Some(claim) = boards.claim(&format!("worker {worker}"), 7) else { break };
            boards.board();
            if worker % 2 == 1 {
                boards.offer_commit(claim, "c0ffee0000000000000000000000000000000000").expect("mine");
            }
        }
        let after_all_leases = 7 + LEASE_DURATION_MS;
        while boards.claim("last", after_all_leases).is_some() {}
        boards.board();
    }
}
