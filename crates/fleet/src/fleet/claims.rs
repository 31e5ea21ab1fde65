//! What workers do with items.

use super::{Change, Fleet, Rows, lock_plan};
use crate::database::Parameter;
use crate::fault::FleetError;
use crate::rows::{moment, number, small};
use plimsoll_policy::workers::{self, Claim, LEASE};
use postgres::types::Type;
use postgres::{Error, Row};

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

    /// Opens an item again that was set aside; false if it was not.
    pub fn reopen(&mut self, item: usize) -> Result<bool, FleetError> {
        let change = Change { doing: "open an item again", kind: "reopened", detail: "" };
        self.decide(change, Rows::Own(item), |part, _| {
            let place = part.place_of(item);
            Ok(workers::reopen(&mut part.board, place))
        })
    }
}

fn claim_of(row: &Row) -> Result<Claim, Error> {
    let item = usize::try_from(row.try_get::<_, i32>("place")?).unwrap_or(usize::MAX);
    Ok(Claim { item, epoch: moment(row.try_get("epoch")?) })
}
