//! Both boards, step by step: what one answers the other answers, and the rows are the board in memory.

use crate::harness::{Member, client, database, plan};
use crate::interleavings::{Kept, run};
use plimsoll_domain::board::{Aside, BoardState, Moment};
use plimsoll_fleet::{Fleet, FleetError};
use plimsoll_flows::workers::connection::Refused;
use plimsoll_policy::plan::Item;
use plimsoll_policy::workers::{Claim, Fenced, LEASE, board};
use plimsoll_testkit::postgres::{Postgres, ROLE, Setup};
use postgres::Client;
use std::time::Duration;

/// The board in memory and the one in the database.
struct Both {
    local: BoardState,
    fleet: Fleet,
    /// A connection of the test's own, which sets the clock.
    clock: Client,
    now: Moment,
}

/// The clock of the database is one function, and nothing but these tests puts another in its place: production has no way to say
/// what time it is.
const CLOCK: &str = "
    create table if not exists public.clock (now bigint);
    delete from public.clock;
    insert into public.clock values (0);
    create or replace function plimsoll.moment() returns bigint language sql volatile as 'select now from public.clock'";

impl Both {
    fn new(server: &Postgres, address: &str, items: &[Item]) -> Both {
        let mut clock = client(server);
        let database = database(address).expect("a connection");
        // The tables of the plan before are full of rows that are dead.
        let _ = clock.batch_execute("delete from plimsoll.plan; delete from plimsoll.event");
        let fleet = Fleet::create(database, &plan("both"), items).expect("a fleet");
        clock.batch_execute(CLOCK).expect("a clock of the test's");
        Both { local: board(items), fleet, clock, now: 0 }
    }

    fn set_clock(&mut self, now: Moment) {
        if now != self.now {
            self.clock.batch_execute(&format!("update public.clock set now = {now}")).expect("a clock");
            self.now = now;
        }
    }
}

/// The answer of the database: what the policy refuses it refuses, and nothing else goes wrong.
fn answer<T>(said: Result<T, FleetError>) -> Result<T, Fenced> {
    said.map_err(|error| match error {
        FleetError::Fenced(fenced) => fenced,
        other => panic!("{other}"),
    })
}

/// What both answer.
fn same<T: PartialEq + std::fmt::Debug>((local, remote): (T, T)) -> T {
    assert_eq!(remote, local, "the database, and the board in memory");
    local
}

impl Kept for Both {
    fn claim(&mut self, worker: &str, now: Moment) -> Option<Claim> {
        self.set_clock(now);
        same((self.local.claim(worker, now), self.fleet.claim(worker).expect("an answer")))
    }
    fn renew(&mut self, claim: Claim, now: Moment) -> Result<(), Fenced> {
        self.set_clock(now);
        same((self.local.renew(claim, now), answer(self.fleet.renew(claim))))
    }
    fn offer(&mut self, claim: Claim, commit: &str) -> Result<(), Fenced> {
        same((self.local.offer(claim, commit), answer(self.fleet.offer(claim, commit))))
    }
    fn give_back(&mut self, claim: Claim) -> Result<(), Fenced> {
        same((self.local.give_back(claim), answer(self.fleet.give_back(claim))))
    }
    fn fail(&mut self, claim: Claim, reason: &str) -> Result<(), Fenced> {
        same((self.local.fail(claim, reason), answer(self.fleet.fail(claim, reason))))
    }
    fn set_aside(&mut self, claim: Claim, reason: Aside) -> Result<(), Fenced> {
        let Aside::Question(question) = &reason else { panic!("a member sets aside what it asks about") };
        let remote = answer(self.fleet.ask(claim, question));
        same((self.local.set_aside(claim, reason), remote))
    }
    fn become_merger(&mut self, name: &str, now: Moment) -> Option<u64> {
        self.set_clock(now);
        same((self.local.become_merger(name, now), self.fleet.become_merger(name).expect("an answer")))
    }
    fn settle(&mut self, target: &[String]) -> Vec<usize> {
        let is_there = |commit: &str| target.iter().any(|known| known == commit);
        same((self.local.settle(target), self.fleet.settle(is_there).expect("an answer")))
    }
    fn land(&mut self, merger: u64, item: usize, commit: &str) -> Result<(), Fenced> {
        same((self.local.land(merger, item, commit), answer(self.fleet.land(merger, item, commit))))
    }
    fn refuse(&mut self, merger: u64, item: usize, note: &str) -> Result<(), Fenced> {
        let (start, beyond) = (String::new(), String::new());
        let refused = Refused { merger, item, note: note.to_owned(), start, beyond };
        same((self.local.refuse(merger, item, note), answer(self.fleet.refuse(&refused))))
    }
    fn pause(&mut self, now: Moment, until: Moment) {
        self.set_clock(now);
        self.fleet.pause(Duration::from_millis(until - now)).expect("an answer");
        self.local.pause(now, until);
    }
    fn reopen(&mut self, item: usize) -> bool {
        same((self.local.reopen(item), self.fleet.reopen(item).expect("an answer")))
    }
    fn board(&mut self) -> BoardState {
        same((self.local.clone(), self.fleet.board().expect("an answer")))
    }
}

/// Plans of 100 steps each; more of them by PLIMSOLL_FLEET_PLANS.
const PLANS: u64 = 12;

#[test]
fn both_boards_go_the_same_way_whatever_comes_between() {
    let server = Postgres::start(Setup::default());
    let plans = std::env::var("PLIMSOLL_FLEET_PLANS").ok().and_then(|number| number.parse().ok());
    let (merged, aside) =
        run(plans.unwrap_or(PLANS), 100, |items| Both::new(&server, &server.socket(), items));
    assert!(merged > 12 && aside > 0, "the runs show nothing: {merged} merged, {aside} aside");
}

#[test]
fn pgbouncer_between_changes_nothing() {
    let server = Postgres::start(Setup::default());
    let bouncer = server.bouncer(ROLE);
    run(4, 100, |items| Both::new(&server, &bouncer.address(), items));
}

/// The orders by chance come to this too seldom.
#[test]
fn a_late_renewal_takes_no_place_that_somebody_else_is_at_by_now() {
    let server = Postgres::start(Setup::default());
    let items = crate::harness::items(&["a (area: src/a)", "b (area: src)", "c"]);
    let mut both = Both::new(&server, &server.socket(), &items);
    let first = both.claim("one", 0).expect("an item");
    both.set_aside(first, Aside::Question("which?".to_owned())).expect("mine");
    let late = both.claim("two", 0).expect("the second");
    both.reopen(0);
    let other = both.claim("three", LEASE).expect("the first, because the lease of the second is over");
    assert_eq!((late.item, other.item), (1, 0));
    assert_eq!(both.renew(late, LEASE), Err(Fenced));
    assert_eq!(both.renew(other, LEASE + 1), Ok(()));
    both.board();
    // Both are over: whoever speaks first has it.
    assert_eq!(both.renew(late, 3 * LEASE), Ok(()));
    assert_eq!(both.renew(other, 3 * LEASE), Err(Fenced));
    both.board();
    assert_eq!(
        both.offer(other, "c0ffee0000000000000000000000000000000000"),
        Ok(()),
        "nobody has taken that item itself"
    );
    both.board();
}

#[test]
fn plans_of_any_shape_are_the_same_board() {
    let server = Postgres::start(Setup::default());
    for texts in [
        &[][..],
        &["done a", "b (after: 1)"],
        &["a (after: 9)", "b (after: 2000)", "c (after: 3)"],
        &["a (area: .)", "b (area: src)", "c"],
        &["a (area: src/dates)", "b (area: src/dates.rs)", "c (area: src/dates/x)", "d (area: ünï/%_)"],
        &["it's \"quoted\" \\ {} \u{1f6a2} $1 (area: a'b)", "x"],
    ] {
        let items = crate::harness::items(texts);
        let mut both = Both::new(&server, &server.socket(), &items);
        both.board();
        for worker in 0..items.len() {
            let Some(claim) = both.claim(&format!("worker {worker}"), 7) else { break };
            both.board();
            if worker % 2 == 1 {
                both.offer(claim, "c0ffee0000000000000000000000000000000000").expect("mine");
            }
        }
        let all_over = 7 + LEASE;
        while both.claim("last", all_over).is_some() {}
        both.board();
    }
}
