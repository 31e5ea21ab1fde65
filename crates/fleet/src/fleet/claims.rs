//! Claiming, renewing and reopening items.

use super::{BoardChange, Fleet, LockedRows, lock_and_read_plan};
use crate::database::Parameter;
use crate::database_error::FleetError;
use crate::rows::{from_i64_or_zero, index_to_i32_saturating, to_i64_saturating};
use plimsoll_policy::workers::{self, Claim, LEASE_DURATION_MS};
use postgres::types::Type;
use postgres::{Error, Row};

/// Does what `policy::workers::claim_next_item` does, and also claims nothing if the cost limit is reached or the fleet is draining
/// or has ended. Skips an item whose row is currently locked.
const CLAIM_NEXT_ITEM: &str = "
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

/// Shared lock: renewals run in parallel, but wait for a claim.
const LOCK_PLAN_SHARED: &str = "select from plimsoll.plan where id = $1 for share";
/// Does what `policy::workers::renew_claim_unless_stale_or_overlapping` does for a lease that has not expired.
const RENEW_ACTIVE_LEASE: &str = "
    with clock as materialized (select plimsoll.moment() as now)
    update plimsoll.item set lease_until = greatest(item.lease_until, clock.now + $4)
    from clock
    where item.plan = $1 and item.place = $2 and item.epoch = $3 and item.stage = 'leased' and item.lease_until > clock.now
    returning item.place";

impl Fleet {
    /// Claims the first available item, unless the plan is paused, draining or ended, or its cost limit is reached.
    pub fn claim_next_item(&mut self, worker_name: &str) -> Result<Option<Claim>, FleetError> {
        const ACTION: &str = "claim an item";
        let Fleet { database, plan_id, name, has_areas } = self;
        let lease_ms = to_i64_saturating(LEASE_DURATION_MS);
        let parameters: [Parameter<'_>; 3] =
            [(plan_id, Type::INT8), (&worker_name, Type::TEXT), (&lease_ms, Type::INT8)];
        let rows = if *has_areas {
            // Two claims at the same time would not see each other's areas.
            database.run_in_transaction(ACTION, |transaction| {
                lock_and_read_plan(transaction, *plan_id, name)?;
                Ok(transaction.query_typed(CLAIM_NEXT_ITEM, &parameters)?)
            })?
        } else {
            database.query(ACTION, CLAIM_NEXT_ITEM, &parameters)?
        };
        rows.first()
            .map(claim_from_row)
            .transpose()
            .map_err(|error| database.unreadable_row_error(ACTION, &error))
    }

    /// Renews the lease on an item. An expired lease is renewed only if no item with an overlapping area is leased.
    pub fn renew_claim_unless_stale_or_overlapping(&mut self, claim: Claim) -> Result<(), FleetError> {
        const ACTION: &str = "renew a lease";
        let (plan_id, lease_ms, epoch, index) = (
            self.plan_id,
            to_i64_saturating(LEASE_DURATION_MS),
            to_i64_saturating(claim.epoch),
            index_to_i32_saturating(claim.item_index),
        );
        let parameters: [Parameter<'_>; 4] =
            [(&plan_id, Type::INT8), (&index, Type::INT4), (&epoch, Type::INT8), (&lease_ms, Type::INT8)];
        let Fleet { database, has_areas, .. } = self;
        let rows = if *has_areas {
            // A claim reads the other leases and then writes its own; it would miss a renewal between the two.
            database.run_in_transaction(ACTION, |transaction| {
                transaction.query_typed(LOCK_PLAN_SHARED, &[(&plan_id, Type::INT8)])?;
                Ok(transaction.query_typed(RENEW_ACTIVE_LEASE, &parameters)?)
            })?
        } else {
            database.query(ACTION, RENEW_ACTIVE_LEASE, &parameters)?
        };
        if !rows.is_empty() {
            return Ok(());
        }
        let change = BoardChange { action: ACTION, event_kind: "renewed", event_detail: "" };
        self.decide_and_write(
            change,
            LockedRows::PlanAndItemAndLeasedItems(claim.item_index),
            |partial_board, now| {
                let item = partial_board.local_index_or_max(claim.item_index);
                workers::renew_claim_unless_expired_and_area_taken(
                    &mut partial_board.board,
                    Claim { item_index: item, ..claim },
                    now,
                )
            },
        )
    }

    /// Reopens an item that was set aside. Returns false if it was not.
    pub fn reopen_set_aside_item(&mut self, item: usize) -> Result<bool, FleetError> {
        let change = BoardChange { action: "open an item again", event_kind: "reopened", event_detail: "" };
        self.decide_and_write(change, LockedRows::Item(item), |partial_board, _| {
            let index = partial_board.local_index_or_max(item);
            Ok(workers::reopen_set_aside_item_and_reset_failures(&mut partial_board.board, index))
        })
    }
}

fn claim_from_row(row: &Row) -> Result<Claim, Error> {
    let item = usize::try_from(row.try_get::<_, i32>("place")?).unwrap_or(usize::MAX);
    Ok(Claim { item_index: item, epoch: from_i64_or_zero(row.try_get("epoch")?) })
}
