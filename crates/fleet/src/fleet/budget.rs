//! Shares of the fleet's cost limit and session limit for each worker.

use super::members::WorkerReport;
use super::{Fleet, lock_and_read_plan};
use crate::database::Parameter;
use crate::database_error::FleetError;
use crate::rows::{from_i64_or_zero, index_to_i32_saturating, to_i64_saturating};
use plimsoll_flows::workers::connection::{ExhaustedLimit, Reservation};
use plimsoll_policy::workers::LEASE_DURATION_MS;
use postgres::types::Type;
use postgres::{Error, Row, Transaction};

const READ_WORKER_COSTS: &str = "
    select name, cost, allowance, seen > plimsoll.moment() - $2 as is_there from plimsoll.worker where plan = $1";
const READ_LIMITS: &str = "select max_cost, max_sessions from plimsoll.plan where id = $1";
const SET_WORKER_ALLOWANCE: &str =
    "update plimsoll.worker set allowance = cost + $3 where plan = $1 and name = $2";
const READ_SESSION_COUNTS: &str = "
    select coalesce(sum(sessions), 0)::bigint as used,
      coalesce(sum(sessions_allowed) filter (where place <> $2), 0)::bigint as others,
      count(*) filter (where place <> $2 and sessions_allowed > 0) as at_work,
      (select count(*) from plimsoll.worker where plan = $1 and seen > plimsoll.moment() - $3) as workers
    from plimsoll.item where plan = $1";
const SET_ALLOWED_SESSIONS: &str =
    "update plimsoll.item set sessions_allowed = $3 where plan = $1 and place = $2";

impl Fleet {
    /// Reserves money and sessions for a worker. Locks the plan, because concurrent reservations would reserve the same money.
    /// `unreported_sessions` is the number of sessions of the worker's item that have not been reported yet.
    pub(super) fn reserve_money_and_sessions(
        &mut self,
        report: &WorkerReport,
        unreported_sessions: u32,
        min_usd: f64,
    ) -> Result<Reservation, FleetError> {
        let Fleet { database, plan_id, name: fleet_name, .. } = self;
        database.run_in_transaction("set money aside", |transaction| {
            lock_and_read_plan(transaction, *plan_id, fleet_name)?;
            let limits_row = transaction.query_typed_one(READ_LIMITS, &[(plan_id, Type::INT8)])?;
            let money_reservation = match limits_row.try_get::<_, Option<f64>>("max_cost")? {
                None => Reservation::Share { usd: None, sessions: None },
                Some(max_cost_usd) => share_of_free_money_or_wait_for_others(
                    &read_worker_budgets(transaction, *plan_id)?,
                    &report.worker_name,
                    max_cost_usd,
                    min_usd,
                ),
            };
            let Reservation::Share { usd, .. } = money_reservation else { return Ok(money_reservation) };
            let reservation = match (limits_row.try_get::<_, Option<i64>>("max_sessions")?, report.item_index)
            {
                (Some(max_sessions), Some(item_index)) => {
                    let counts = read_sessions_used_and_allowed_to_others(transaction, *plan_id, item_index)?;
                    counts.share_of_free_sessions_or_wait_for_others(
                        from_i64_or_zero(max_sessions),
                        u64::from(unreported_sessions),
                        usd,
                    )
                }
                (None, _) | (_, None) => Reservation::Share { usd, sessions: None },
            };
            let Reservation::Share { usd, sessions } = reservation else { return Ok(reservation) };
            if let Some(share_usd) = usd {
                let parameters: [Parameter<'_>; 3] =
                    [(plan_id, Type::INT8), (&report.worker_name, Type::TEXT), (&share_usd, Type::FLOAT8)];
                transaction.execute_typed(SET_WORKER_ALLOWANCE, &parameters)?;
            }
            if let (Some(share_sessions), Some(item_index)) = (sessions, report.item_index) {
                let allowed_sessions =
                    i32::try_from(unreported_sessions.saturating_add(share_sessions)).unwrap_or(i32::MAX);
                let parameters: [Parameter<'_>; 3] = [
                    (plan_id, Type::INT8),
                    (&index_to_i32_saturating(item_index), Type::INT4),
                    (&allowed_sessions, Type::INT4),
                ];
                transaction.execute_typed(SET_ALLOWED_SESSIONS, &parameters)?;
            }
            Ok(reservation)
        })
    }
}

/// Session counts of a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SessionCounts {
    /// Sessions of attempts that have ended.
    sessions_of_ended_attempts: u64,
    /// Total sessions allowed to the running attempts at other items.
    sessions_allowed_to_others: u64,
    other_running_attempts: u64,
    /// Workers whose last report is no older than a lease.
    active_workers: u64,
}

fn read_sessions_used_and_allowed_to_others(
    transaction: &mut Transaction<'_>,
    plan_id: i64,
    item_index: usize,
) -> Result<SessionCounts, Error> {
    let parameters: [Parameter<'_>; 3] = [
        (&plan_id, Type::INT8),
        (&index_to_i32_saturating(item_index), Type::INT4),
        (&to_i64_saturating(LEASE_DURATION_MS), Type::INT8),
    ];
    let row = transaction.query_typed_one(READ_SESSION_COUNTS, &parameters)?;
    let read_count = |name: &str| row.try_get::<_, i64>(name).map(from_i64_or_zero);
    Ok(SessionCounts {
        sessions_of_ended_attempts: read_count("used")?,
        sessions_allowed_to_others: read_count("others")?,
        other_running_attempts: read_count("at_work")?,
        active_workers: read_count("workers")?,
    })
}

impl SessionCounts {
    /// Returns how many of the remaining sessions an attempt that has used `unreported_sessions` may use next. All shares together
    /// never exceed the plan's limit. `reserved_usd` is passed on unchanged.
    fn share_of_free_sessions_or_wait_for_others(
        self,
        max_sessions: u64,
        unreported_sessions: u64,
        reserved_usd: Option<f64>,
    ) -> Reservation {
        let free_sessions = max_sessions.saturating_sub(
            self.sessions_of_ended_attempts + self.sessions_allowed_to_others + unreported_sessions,
        );
        let idle_workers = self.active_workers.saturating_sub(self.other_running_attempts).max(1);
        match free_sessions {
            0 if self.sessions_allowed_to_others > 0 => Reservation::WaitForOthers,
            0 => Reservation::Exhausted(ExhaustedLimit::Sessions(
                self.sessions_of_ended_attempts + unreported_sessions,
            )),
            free_sessions => {
                let share_sessions = u32::try_from(free_sessions.div_ceil(idle_workers)).unwrap_or(u32::MAX);
                Reservation::Share { usd: reserved_usd, sessions: Some(share_sessions) }
            }
        }
    }
}

/// The cost of one worker so far, and its limit.
#[derive(Debug, Clone, PartialEq)]
struct WorkerBudget {
    worker_name: String,
    cost_usd: f64,
    /// The worker's total cost must not exceed this.
    max_worker_cost_usd: Option<f64>,
    /// False if its last report is older than a lease; its unspent reservation is then free.
    is_active: bool,
}

fn read_worker_budgets(transaction: &mut Transaction<'_>, plan_id: i64) -> Result<Vec<WorkerBudget>, Error> {
    let rows = transaction.query_typed(
        READ_WORKER_COSTS,
        &[(&plan_id, Type::INT8), (&to_i64_saturating(LEASE_DURATION_MS), Type::INT8)],
    )?;
    let budget_from_row = |row: &Row| {
        Ok(WorkerBudget {
            worker_name: row.try_get("name")?,
            cost_usd: row.try_get("cost")?,
            max_worker_cost_usd: row.try_get("allowance")?,
            is_active: row.try_get("is_there")?,
        })
    };
    rows.iter().map(budget_from_row).collect()
}

/// Returns how much of the remaining money a worker may spend next. All shares together never exceed the plan's limit.
fn share_of_free_money_or_wait_for_others(
    budgets: &[WorkerBudget],
    worker_name: &str,
    max_cost_usd: f64,
    min_usd: f64,
) -> Reservation {
    let spent_usd: f64 = budgets.iter().map(|budget| budget.cost_usd).sum();
    let other_active_budgets =
        || budgets.iter().filter(|budget| budget.worker_name != worker_name && budget.is_active);
    let unspent_allowance =
        |budget: &WorkerBudget| (budget.max_worker_cost_usd.unwrap_or_default() - budget.cost_usd).max(0.0);
    let reserved_usd: f64 = other_active_budgets().map(unspent_allowance).sum();
    let free_usd = max_cost_usd - spent_usd - reserved_usd;
    let other_workers_without_money =
        other_active_budgets().filter(|budget| unspent_allowance(budget) < min_usd).count();
    let equal_share_usd = free_usd / (1 + other_workers_without_money) as f64;
    // A remainder that is too small to share goes to one worker.
    let share_usd =
        if equal_share_usd < min_usd && reserved_usd < min_usd { free_usd } else { equal_share_usd };
    match () {
        () if share_usd >= min_usd => Reservation::Share { usd: Some(share_usd), sessions: None },
        () if reserved_usd >= min_usd => Reservation::WaitForOthers,
        () => Reservation::Exhausted(ExhaustedLimit::Money(spent_usd, max_cost_usd)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_workers_together_never_spend_more_than_the_plan_allows() {
        let mut budgets: Vec<WorkerBudget> = ["a", "b", "c"]
            .map(|name| WorkerBudget {
                worker_name: name.to_owned(),
                cost_usd: 0.0,
                max_worker_cost_usd: None,
                is_active: true,
            })
            .into();
        for index in 0..3 {
            let name = budgets[index].worker_name.clone();
            let Reservation::Share { usd: Some(share), .. } =
                share_of_free_money_or_wait_for_others(&budgets, &name, 6.0, 0.01)
            else {
                panic!("there is enough")
            };
            assert!((share - 2.0).abs() < 1e-9, "{share}");
            budgets[index].max_worker_cost_usd = Some(budgets[index].cost_usd + share);
        }
        budgets[0].cost_usd = 2.0;
        assert_eq!(
            share_of_free_money_or_wait_for_others(&budgets, "a", 6.0, 0.01),
            Reservation::WaitForOthers
        );
        // The machine of the second worker is gone: what it had reserved and not spent is free.
        (budgets[1].cost_usd, budgets[1].is_active) = (0.5, false);
        assert_eq!(
            share_of_free_money_or_wait_for_others(&budgets, "a", 6.0, 0.01),
            Reservation::Share { usd: Some(1.5), sessions: None }
        );
        (budgets[2].cost_usd, budgets[1].cost_usd) = (2.0, 2.0);
        assert_eq!(
            share_of_free_money_or_wait_for_others(&budgets, "a", 6.0, 0.01),
            Reservation::Exhausted(ExhaustedLimit::Money(6.0, 6.0))
        );
        // A remainder that is too small for two goes to the last one.
        budgets[2].cost_usd = 1.985;
        budgets[2].max_worker_cost_usd = Some(1.985);
        assert!(
            matches!(share_of_free_money_or_wait_for_others(&budgets, "a", 6.0, 0.01), Reservation::Share { usd: Some(share), .. } if (share - 0.015).abs() < 1e-9)
        );
    }

    #[test]
    fn all_attempts_together_start_no_more_sessions_than_the_plan_allows() {
        let session_share = |sessions| Reservation::Share { usd: None, sessions: Some(sessions) };
        for ((used, others, at_work, workers), unreported_sessions, expected) in [
            ((0, 0, 0, 1), 0, session_share(10)),
            ((0, 0, 0, 2), 0, session_share(5)),
            ((0, 5, 1, 2), 0, session_share(5)),
            // A remainder goes to the first worker.
            ((7, 0, 0, 2), 0, session_share(2)),
            ((7, 2, 1, 2), 0, session_share(1)),
            ((7, 3, 1, 2), 0, Reservation::WaitForOthers),
            // A worker that has used its share asks again.
            ((0, 4, 1, 2), 5, session_share(1)),
            ((0, 5, 1, 2), 5, Reservation::WaitForOthers),
            ((5, 0, 0, 2), 5, Reservation::Exhausted(ExhaustedLimit::Sessions(10))),
            ((12, 0, 0, 0), 0, Reservation::Exhausted(ExhaustedLimit::Sessions(12))),
        ] {
            let counts = SessionCounts {
                sessions_of_ended_attempts: used,
                sessions_allowed_to_others: others,
                other_running_attempts: at_work,
                active_workers: workers,
            };
            assert_eq!(
                counts.share_of_free_sessions_or_wait_for_others(10, unreported_sessions, None),
                expected,
                "{counts:?} {unreported_sessions}"
            );
        }
    }
}
