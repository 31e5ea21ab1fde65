//! What the workers of a fleet may use next of what all of them may.

use super::members::WorkerReport;
use super::{Fleet, lock_plan};
use crate::database::Parameter;
use crate::fault::FleetError;
use crate::rows::{moment, number, small};
use plimsoll_flows::workers::connection::{Reserved, UsedUp};
use plimsoll_policy::workers::LEASE;
use postgres::types::Type;
use postgres::{Error, Row, Transaction};

const MONEY: &str = "
    select name, cost, allowance, seen > plimsoll.moment() - $2 as is_there from plimsoll.worker where plan = $1";
const MOST: &str = "select max_cost, max_sessions from plimsoll.plan where id = $1";
const ALLOW: &str = "update plimsoll.worker set allowance = cost + $3 where plan = $1 and name = $2";
const SESSIONS: &str = "
    select coalesce(sum(sessions), 0)::bigint as used,
      coalesce(sum(sessions_allowed) filter (where place <> $2), 0)::bigint as others,
      count(*) filter (where place <> $2 and sessions_allowed > 0) as at_work,
      (select count(*) from plimsoll.worker where plan = $1 and seen > plimsoll.moment() - $3) as workers
    from plimsoll.item where plan = $1";
const ALLOW_SESSIONS: &str = "update plimsoll.item set sessions_allowed = $3 where plan = $1 and place = $2";

impl Fleet {
    /// One after the other: two that looked at the same moment would share the same money. `taken` sessions of its item were not told
    /// yet.
    pub(super) fn reserve(
        &mut self,
        worker: &WorkerReport,
        taken: u32,
        least: f64,
    ) -> Result<Reserved, FleetError> {
        let Fleet { database, plan, name: fleet, .. } = self;
        database.transaction("set money aside", |transaction| {
            lock_plan(transaction, *plan, fleet)?;
            let most = transaction.query_typed_one(MOST, &[(plan, Type::INT8)])?;
            let usd = match most.try_get::<_, Option<f64>>("max_cost")? {
                None => Reserved::Share { usd: None, sessions: None },
                Some(most) => share(&purses(transaction, *plan)?, &worker.name, most, least),
            };
            let Reserved::Share { usd, .. } = usd else { return Ok(usd) };
            let reserved = match (most.try_get::<_, Option<i64>>("max_sessions")?, worker.item) {
                (Some(most), Some(item)) => {
                    let begun = begun(transaction, *plan, item)?;
                    begun.share(moment(most), u64::from(taken), usd)
                }
                (None, _) | (_, None) => Reserved::Share { usd, sessions: None },
            };
            let Reserved::Share { usd, sessions } = reserved else { return Ok(reserved) };
            if let Some(share) = usd {
                let parameters: [Parameter<'_>; 3] =
                    [(plan, Type::INT8), (&worker.name, Type::TEXT), (&share, Type::FLOAT8)];
                transaction.execute_typed(ALLOW, &parameters)?;
            }
            if let (Some(share), Some(item)) = (sessions, worker.item) {
                let allowed = i32::try_from(taken.saturating_add(share)).unwrap_or(i32::MAX);
                let parameters: [Parameter<'_>; 3] =
                    [(plan, Type::INT8), (&small(item), Type::INT4), (&allowed, Type::INT4)];
                transaction.execute_typed(ALLOW_SESSIONS, &parameters)?;
            }
            Ok(reserved)
        })
    }
}

/// The sessions of a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Begun {
    /// Of attempts that are over.
    used: u64,
    /// What other attempts may take in all, and how many these are.
    others: u64,
    at_work: u64,
    /// That are there.
    workers: u64,
}

fn begun(transaction: &mut Transaction<'_>, plan: i64, item: usize) -> Result<Begun, Error> {
    let parameters: [Parameter<'_>; 3] =
        [(&plan, Type::INT8), (&small(item), Type::INT4), (&number(LEASE), Type::INT8)];
    let row = transaction.query_typed_one(SESSIONS, &parameters)?;
    let count = |name: &str| row.try_get::<_, i64>(name).map(moment);
    Ok(Begun {
        used: count("used")?,
        others: count("others")?,
        at_work: count("at_work")?,
        workers: count("workers")?,
    })
}

impl Begun {
    /// What an attempt may take next that has taken some. All that was ever allowed is never more than the plan may.
    fn share(self, most: u64, taken: u64, usd: Option<f64>) -> Reserved {
        let free = most.saturating_sub(self.used + self.others + taken);
        let idle = self.workers.saturating_sub(self.at_work).max(1);
        match free {
            0 if self.others > 0 => Reserved::Later,
            0 => Reserved::Nothing(UsedUp::Sessions(self.used + taken)),
            free => {
                let share = u32::try_from(free.div_ceil(idle)).unwrap_or(u32::MAX);
                Reserved::Share { usd, sessions: Some(share) }
            }
        }
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
        () if share >= least => Reserved::Share { usd: Some(share), sessions: None },
        () if reserved >= least => Reserved::Later,
        () => Reserved::Nothing(UsedUp::Money(spent, most)),
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
            let Reserved::Share { usd: Some(share), .. } = share(&purses, &name, 6.0, 0.01) else {
                panic!("there is enough")
            };
            assert!((share - 2.0).abs() < 1e-9, "{share}");
            purses[place].allowance = Some(purses[place].cost + share);
        }
        purses[0].cost = 2.0;
        assert_eq!(share(&purses, "a", 6.0, 0.01), Reserved::Later);
        // The machine of the second is gone: what it had set aside and not spent is free.
        (purses[1].cost, purses[1].is_there) = (0.5, false);
        assert_eq!(share(&purses, "a", 6.0, 0.01), Reserved::Share { usd: Some(1.5), sessions: None });
        (purses[2].cost, purses[1].cost) = (2.0, 2.0);
        assert_eq!(share(&purses, "a", 6.0, 0.01), Reserved::Nothing(UsedUp::Money(6.0, 6.0)));
        // Too little for two is the last one's.
        purses[2].cost = 1.985;
        purses[2].allowance = Some(1.985);
        assert!(
            matches!(share(&purses, "a", 6.0, 0.01), Reserved::Share { usd: Some(share), .. } if (share - 0.015).abs() < 1e-9)
        );
    }

    #[test]
    fn all_attempts_together_begin_no_more_sessions_than_the_plan_may() {
        let share = |sessions| Reserved::Share { usd: None, sessions: Some(sessions) };
        for ((used, others, at_work, workers), taken, expected) in [
            ((0, 0, 0, 1), 0, share(10)),
            ((0, 0, 0, 2), 0, share(5)),
            ((0, 5, 1, 2), 0, share(5)),
            // A rest is the first one's.
            ((7, 0, 0, 2), 0, share(2)),
            ((7, 2, 1, 2), 0, share(1)),
            ((7, 3, 1, 2), 0, Reserved::Later),
            // It comes again once it has taken its share.
            ((0, 4, 1, 2), 5, share(1)),
            ((0, 5, 1, 2), 5, Reserved::Later),
            ((5, 0, 0, 2), 5, Reserved::Nothing(UsedUp::Sessions(10))),
            ((12, 0, 0, 0), 0, Reserved::Nothing(UsedUp::Sessions(12))),
        ] {
            let begun = Begun { used, others, at_work, workers };
            assert_eq!(begun.share(10, taken, None), expected, "{begun:?} {taken}");
        }
    }
}
