//! Shares of the fleet's cost limit and session limit for each worker.

use super::Fleet;
use super::members::{Member, WorkerReport};
use crate::database::Parameter;
use crate::database_error::FleetError;
use crate::rows::{from_i64_or_zero, index_to_i32_saturating};
use plimsoll_flows::workers::connection::{ExhaustedLimit, Reservation};
use postgres::types::Type;
use postgres::{Error, Row};

const RESERVE_BUDGET: &str = "
    select outcome, cost_share, session_count, spent_cost, cost_limit
    from {fleet}.reserve_budget($1, $2, $3, $4, $5, $6)";

impl Fleet {
    /// Reserves money and sessions for a worker's run of its item. `unreported_sessions` is the number of sessions of that item that
    /// have not been reported yet. A share of less than `min_usd` is not given.
    pub fn reserve_money_and_sessions(
        &mut self,
        member: &Member,
        report: &WorkerReport,
        unreported_sessions: u32,
        min_usd: f64,
    ) -> Result<Reservation, FleetError> {
        let (worker_number, place) =
            (index_to_i32_saturating(report.worker_number), report.item_index.map(index_to_i32_saturating));
        let unreported_sessions = i32::try_from(unreported_sessions).unwrap_or(i32::MAX);
        let [name, token] = member.parameters();
        let parameters: [Parameter<'_>; 6] = [
            name,
            token,
            (&worker_number, Type::INT4),
            (&place, Type::INT4),
            (&unreported_sessions, Type::INT4),
            (&min_usd, Type::FLOAT8),
        ];
        let reservation = self
            .query_and_map("reserve the budget", RESERVE_BUDGET, &parameters, reservation_from_row)?
            .pop();
        reservation.ok_or_else(|| FleetError::FleetNotFound(self.name.to_string()))
    }
}

fn reservation_from_row(row: &Row) -> Result<Reservation, Error> {
    let session_count: Option<u64> = row.try_get::<_, Option<i64>>("session_count")?.map(from_i64_or_zero);
    Ok(match row.try_get("outcome")? {
        "share" => Reservation::Share {
            usd: row.try_get("cost_share")?,
            sessions: session_count.map(|count| u32::try_from(count).unwrap_or(u32::MAX)),
        },
        "money" => {
            let [spent_usd, max_usd] = ["spent_cost", "cost_limit"].map(|column| row.try_get(column));
            Reservation::Exhausted(ExhaustedLimit::Money(spent_usd?, max_usd?))
        }
        "sessions" => Reservation::Exhausted(ExhaustedLimit::Sessions(session_count.unwrap_or_default())),
        _ => Reservation::WaitForOthers,
    })
}
