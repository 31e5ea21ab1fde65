//! What workers do with items.

use super::{Change, Fleet, Rows, lock_plan, storable};
use crate::database::Parameter;
use crate::fault::FleetError;
use crate::rows::{commit, moment, number, small};
use plimsoll_domain::board::Aside;
use plimsoll_policy::workers::{self, Claim, Fenced, LEASE};
use postgres::types::Type;
use postgres::{Error, Row};

/// Work that waits to be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The item's place in the plan.
    pub item: usize,
    /// With which it was claimed.
    pub epoch: u64,
    /// The last commit of its branch.
    pub commit: String,
}

/// `policy::workers::claim`, with the limit of the cost, and nothing where the fleet drains or has ended. An item whose row somebody else has locked at the moment is passed over.
const CLAIM: &str = "
    with clock as materialized (select plimsoll.moment() as now),
    may as materialized (
      select from plimsoll.plan, clock
      where plan.id = $1 and not plan.draining and plan.ended is null
        and plan.paused_until <= clock.now and (plan.max_cost is null or plan.max_cost >
        (select coalesce(sum(worker.cost), 0) from plimsoll.worker where worker.plan = $1))
    ),
    free as (
      select item.place from plimsoll.item, clock
      where item.plan = $1 and item.stage in ('open', 'leased') and exists (select from may)
        and (item.stage = 'open' or item.lease_until <= clock.now)
        and (item.needs = '{}' or not exists (
          select from plimsoll.item needed
          where needed.plan = $1 and needed.place = any (item.needs) and needed.stage <> 'merged'))
        and (item.areas = '{}' or not exists (
          select from plimsoll.item other
          where other.plan = $1 and other.stage = 'leased' and other.lease_until > clock.now
            and plimsoll.overlap(item.areas, other.areas)))
      order by item.place limit 1
      for no key update of item skip locked
    ),
    taken as (
      update plimsoll.item set stage = 'leased', epoch = item.epoch + 1, worker = $2, lease_until = clock.now + $3
      from free, clock where item.plan = $1 and item.place = free.place
      returning item.place, item.epoch
    ),
    told as (
      insert into plimsoll.event (at, plan, item, epoch, worker, kind)
      select clock.now, $1, taken.place, taken.epoch, $2, 'claimed' from taken, clock
    )
    select place, epoch from taken";

/// Renewals go on side by side, and wait for a claim.
const SHARE_PLAN: &str = "select from plimsoll.plan where id = $1 for share";
/// `policy::workers::renew` of a lease that is not over.
const RENEW: &str = "
    with clock as materialized (select plimsoll.moment() as now)
    update plimsoll.item set lease_until = greatest(item.lease_until, clock.now + $4)
    from clock
    where item.plan = $1 and item.place = $2 and item.epoch = $3 and item.stage = 'leased' and item.lease_until > clock.now
    returning item.place";

/// `policy::workers::offer`.
const OFFER: &str = "
    with held as (
      select place, worker from plimsoll.item
      where plan = $1 and place = $2 and epoch = $3 and stage = 'leased' for no key update
    ),
    offered as (
      update plimsoll.item set stage = 'offered', sha = $4, worker = null, lease_until = null
      from held where item.plan = $1 and item.place = held.place
      returning item.place, held.worker
    ),
    told as (
      insert into plimsoll.event (at, plan, item, epoch, worker, kind, detail)
      select plimsoll.moment(), $1, place, $3, worker, 'offered', $4 from offered
    )
    select place from offered";

const OFFERED: &str = "
    select place, epoch, sha from plimsoll.item where plan = $1 and stage = 'offered' order by place";

impl Fleet {
    /// Gives the first item that can be worked on, unless the plan is paused, draining or ended, or its money is spent.
    pub fn claim(&mut self, worker: &str) -> Result<Option<Claim>, FleetError> {
        const DOING: &str = "claim an item";
        let Fleet { database, plan, name, has_areas } = self;
        let lease = number(LEASE);
        let parameters: [Parameter<'_>; 3] =
            [(plan, Type::INT8), (&worker, Type::TEXT), (&lease, Type::INT8)];
        let rows = if *has_areas {
            // Two that are claimed at the same moment would not see each other's areas.
            database.transaction(DOING, |transaction| {
                lock_plan(transaction, *plan, name)?;
                Ok(transaction.query_typed(CLAIM, &parameters)?)
            })?
        } else {
            database.query(DOING, CLAIM, &parameters)?
        };
        rows.first().map(claim_of).transpose().map_err(|error| database.unreadable(DOING, &error))
    }

    /// Keeps an item for its worker; a lease that is over, if nobody has begun meanwhile what touches the same paths.
    pub fn renew(&mut self, claim: Claim) -> Result<(), FleetError> {
        const DOING: &str = "renew a lease";
        let (plan, lease, epoch, place) = (self.plan, number(LEASE), number(claim.epoch), small(claim.item));
        let parameters: [Parameter<'_>; 4] =
            [(&plan, Type::INT8), (&place, Type::INT4), (&epoch, Type::INT8), (&lease, Type::INT8)];
        let Fleet { database, has_areas, .. } = self;
        let rows = if *has_areas {
            // Not between a claim's look at what is leased and its end: that would see the lease as over.
            database.transaction(DOING, |transaction| {
                transaction.query_typed(SHARE_PLAN, &[(&plan, Type::INT8)])?;
                Ok(transaction.query_typed(RENEW, &parameters)?)
            })?
        } else {
            database.query(DOING, RENEW, &parameters)?
        };
        if !rows.is_empty() {
            return Ok(());
        }
        let change = Change { doing: DOING, kind: "renewed", detail: "" };
        self.decide(change, Rows::Leased(claim.item), |part, now| {
            let item = part.place_of(claim.item);
            workers::renew(&mut part.board, Claim { item, ..claim }, now)
        })
    }

    /// Offers the work on an item, whose branch is safe by now.
    pub fn offer(&mut self, claim: Claim, commit: &str) -> Result<(), FleetError> {
        let (epoch, place) = (number(claim.epoch), small(claim.item));
        let parameters: [Parameter<'_>; 4] =
            [(&self.plan, Type::INT8), (&place, Type::INT4), (&epoch, Type::INT8), (&commit, Type::TEXT)];
        let rows = self.database.query("offer the work on an item", OFFER, &parameters)?;
        if rows.is_empty() { Err(Fenced.into()) } else { Ok(()) }
    }

    /// Gives an item back: its worker ended without having done it.
    pub fn give_back(&mut self, claim: Claim) -> Result<(), FleetError> {
        let change = Change { doing: "give an item back", kind: "given_back", detail: "" };
        self.decide_on_own(change, claim, workers::give_back)
    }

    /// Gives an item back that its worker could not do; after some tries it is set aside.
    pub fn fail(&mut self, claim: Claim, reason: &str) -> Result<(), FleetError> {
        let reason = storable(reason);
        let change = Change { doing: "give an item back", kind: "failed", detail: &reason };
        self.decide_on_own(change, claim, |board, claim| workers::fail(board, claim, &reason))
    }

    /// Sets an item aside that its worker cannot go on with.
    pub fn set_aside(&mut self, claim: Claim, reason: &Aside) -> Result<(), FleetError> {
        let detail = match &reason {
            Aside::Tries => String::new(),
            Aside::Question(words) | Aside::Ended(words) => storable(words),
        };
        let change = Change { doing: "set an item aside", kind: "set_aside", detail: &detail };
        self.decide_on_own(change, claim, |board, claim| workers::set_aside(board, claim, reason.clone()))
    }

    /// Opens an item again that was set aside; false if it was not.
    pub fn reopen(&mut self, item: usize) -> Result<bool, FleetError> {
        let change = Change { doing: "open an item again", kind: "reopened", detail: "" };
        self.decide(change, Rows::Own(item), |part, _| {
            let place = part.place_of(item);
            Ok(workers::reopen(&mut part.board, place))
        })
    }

    /// What waits to be merged, in the plan's order.
    pub fn offered(&mut self) -> Result<Vec<Offer>, FleetError> {
        let offer = |row: &Row| {
            let claim = claim_of(row)?;
            Ok(Offer { item: claim.item, epoch: claim.epoch, commit: commit(row, "sha")? })
        };
        self.database.read("read what is offered", OFFERED, &[(&self.plan, Type::INT8)], offer)
    }

    fn decide_on_own(
        &mut self,
        change: Change<'_>,
        claim: Claim,
        decision: impl FnOnce(&mut plimsoll_domain::board::Board, Claim) -> Result<(), Fenced>,
    ) -> Result<(), FleetError> {
        self.decide(change, Rows::Own(claim.item), |part, _| {
            let item = part.place_of(claim.item);
            decision(&mut part.board, Claim { item, ..claim })
        })
    }
}

fn claim_of(row: &Row) -> Result<Claim, Error> {
    let item = usize::try_from(row.try_get::<_, i32>("place")?).unwrap_or(usize::MAX);
    Ok(Claim { item, epoch: moment(row.try_get("epoch")?) })
}
