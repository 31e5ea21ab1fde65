//! Claiming and renewing items.

use super::Fleet;
use super::members::Member;
use crate::database::Parameter;
use crate::database_error::FleetError;
use crate::rows::{from_i64_or_zero, index_to_i32_saturating, to_i64_saturating};
use plimsoll_policy::workers::Claim;
use postgres::types::Type;
use postgres::{Error, Row};

const CLAIM_ITEM: &str = "select claimed_place, claimed_epoch from {fleet}.claim_item($1, $2, $3, $4)";
const RENEW_LEASE: &str = "select {fleet}.renew_lease($1, $2, $3, $4)";
const RENEW_EXPIRED_LEASE: &str = "select {fleet}.renew_expired_lease($1, $2, $3, $4)";

impl Fleet {
    /// Claims the first available item for a worker of the member, unless the plan is paused, draining or ended, or its cost limit
    /// is reached. An item that needs one of `unconfirmed_items` is not available.
    pub fn claim_next_item(
        &mut self,
        member: &Member,
        worker_number: usize,
        unconfirmed_items: &[usize],
    ) -> Result<Option<Claim>, FleetError> {
        let worker_number = index_to_i32_saturating(worker_number);
        let unconfirmed_items: Vec<i32> =
            unconfirmed_items.iter().map(|item| index_to_i32_saturating(*item)).collect();
        let [name, token] = member.parameters();
        let parameters: [Parameter<'_>; 4] =
            [name, token, (&worker_number, Type::INT4), (&unconfirmed_items, Type::INT4_ARRAY)];
        let claim = self.query_and_map("claim an item", CLAIM_ITEM, &parameters, claim_from_row)?.pop();
        Ok(claim.flatten())
    }

    /// Renews the lease on an item. An expired lease is renewed only if no item with an overlapping area is leased.
    pub fn renew_claim_unless_stale_or_overlapping(
        &mut self,
        member: &Member,
        claim: Claim,
    ) -> Result<(), FleetError> {
        const ACTION: &str = "renew a lease";
        let (epoch, place) = (to_i64_saturating(claim.epoch), index_to_i32_saturating(claim.item_index));
        let [name, token] = member.parameters();
        let parameters: [Parameter<'_>; 4] = [name, token, (&place, Type::INT4), (&epoch, Type::INT8)];
        // Only an expired lease needs a lock of the whole plan.
        if self.query_value(ACTION, RENEW_LEASE, &parameters)? {
            return Ok(());
        }
        self.query_unless_stale_epoch(ACTION, RENEW_EXPIRED_LEASE, &parameters)
    }
}

/// Returns `None` if the columns are null, because nothing was claimed.
fn claim_from_row(row: &Row) -> Result<Option<Claim>, Error> {
    let (place, epoch): (Option<i32>, Option<i64>) =
        (row.try_get("claimed_place")?, row.try_get("claimed_epoch")?);
    let to_claim = |(place, epoch): (i32, i64)| Claim {
        item_index: usize::try_from(place).unwrap_or(usize::MAX),
        epoch: from_i64_or_zero(epoch),
    };
    Ok(place.zip(epoch).map(to_claim))
}
