//! What the workers of a fleet may spend next of what all of them may.

use super::{Fleet, lock_plan};
use crate::database::Parameter;
use crate::fault::FleetError;
use crate::rows::number;
use plimsoll_flows::workers::shared::Reserved;
use plimsoll_policy::workers::LEASE;
use postgres::types::Type;
use postgres::{Error, Row, Transaction};

const MONEY: &str = "
    select name, cost, allowance, seen > plimsoll.moment() - $2 as is_there from plimsoll.worker where plan = $1";
const MOST: &str = "select max_cost from plimsoll.plan where id = $1";
const ALLOW: &str = "update plimsoll.worker set allowance = cost + $3 where plan = $1 and name = $2";

impl Fleet {
    /// One after the other: two that looked at the same moment would share the same money.
    pub(super) fn reserve(&mut self, name: &str, least: f64) -> Result<Reserved, FleetError> {
        let Fleet { database, plan, name: fleet, .. } = self;
        database.transaction("set money aside", |transaction| {
            lock_plan(transaction, *plan, fleet)?;
            let most: Option<f64> =
                transaction.query_typed_one(MOST, &[(plan, Type::INT8)])?.try_get("max_cost")?;
            let Some(most) = most else { return Ok(Reserved::Unlimited) };
            let purses = purses(transaction, *plan)?;
            let reserved = share(&purses, name, most, least);
            if let Reserved::Share(share) = reserved {
                let parameters: [Parameter<'_>; 3] =
                    [(plan, Type::INT8), (&name, Type::TEXT), (&share, Type::FLOAT8)];
                transaction.execute_typed(ALLOW, &parameters)?;
            }
            Ok(reserved)
        })
    }
}

/// A worker's money.
#[derive(Debug, Clone, PartialEq)]
struct Purse {
    name: String,
    cost: f64,
    /// It may come to so much.
    allowance: Option<f64>,
    /// It was heard of within a lease: what a dead one had set aside is free.
    is_there: bool,
}

fn purses(transaction: &mut Transaction<'_>, plan: i64) -> Result<Vec<Purse>, Error> {
    let rows = transaction.query_typed(MONEY, &[(&plan, Type::INT8), (&number(LEASE), Type::INT8)])?;
    let purse = |row: &Row| {
        Ok(Purse {
            name: row.try_get("name")?,
            cost: row.try_get("cost")?,
            allowance: row.try_get("allowance")?,
            is_there: row.try_get("is_there")?,
        })
    };
    rows.iter().map(purse).collect()
}

/// What one worker may spend next. All that was ever allowed is never more than the plan may spend.
fn share(purses: &[Purse], name: &str, most: f64, least: f64) -> Reserved {
    let spent: f64 = purses.iter().map(|purse| purse.cost).sum();
    let others = || purses.iter().filter(|purse| purse.name != name && purse.is_there);
    let set_aside = |purse: &Purse| (purse.allowance.unwrap_or_default() - purse.cost).max(0.0);
    let reserved: f64 = others().map(set_aside).sum();
    let free = most - spent - reserved;
    let idle = others().filter(|purse| set_aside(purse) < least).count();
    let share = free / (1 + idle) as f64;
    // A rest that is too small to be shared is the last one's.
    let share = if share < least && reserved < least { free } else { share };
    match () {
        () if share >= least => Reserved::Share(share),
        () if reserved >= least => Reserved::Later,
        () => Reserved::Nothing(spent, most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_may_spend_together_is_never_more_than_the_plan_may() {
        let mut purses: Vec<Purse> = ["a", "b", "c"]
            .map(|name| Purse { name: name.to_owned(), cost: 0.0, allowance: None, is_there: true })
            .into();
        for place in 0..3 {
            let name = purses[place].name.clone();
            let Reserved::Share(share) = share(&purses, &name, 6.0, 0.01) else { panic!("there is enough") };
            assert!((share - 2.0).abs() < 1e-9, "{share}");
            purses[place].allowance = Some(purses[place].cost + share);
        }
        purses[0].cost = 2.0;
        assert_eq!(share(&purses, "a", 6.0, 0.01), Reserved::Later);
        // The machine of the second is gone: what it had set aside and not spent is free.
        (purses[1].cost, purses[1].is_there) = (0.5, false);
        assert_eq!(share(&purses, "a", 6.0, 0.01), Reserved::Share(1.5));
        (purses[2].cost, purses[1].cost) = (2.0, 2.0);
        assert_eq!(share(&purses, "a", 6.0, 0.01), Reserved::Nothing(6.0, 6.0));
        // Too little for two is the last one's.
        purses[2].cost = 1.985;
        purses[2].allowance = Some(1.985);
        assert!(
            matches!(share(&purses, "a", 6.0, 0.01), Reserved::Share(share) if (share - 0.015).abs() < 1e-9)
        );
    }
}
