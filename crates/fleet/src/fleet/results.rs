//! The results of attempts at items.

use super::members::Member;
use super::{Fleet, remove_nul_characters};
use crate::database::Parameter;
use crate::database_error::FleetError;
use crate::rows::{index_to_i32_saturating, to_i64_saturating};
use plimsoll_domain::workers::{ItemOutcome, ItemResult};
use plimsoll_policy::workers::to_reason_line;
use postgres::types::Type;

const STORE_RESULT: &str = "select {fleet}.store_result($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";

impl Fleet {
    /// Stores the result and usage of an attempt at an item. Does nothing if another machine has taken the item over. Fails if the
    /// claim's epoch is stale.
    pub fn store_result_unless_outcome_taken_by_other(
        &mut self,
        member: &Member,
        result: &ItemResult,
    ) -> Result<(), FleetError> {
        let (outcome, action, detail) = match &result.outcome {
            ItemOutcome::Offered => ("offered", "offer the work on an item", String::new()),
            ItemOutcome::Failed(reason) => ("failed", "give an item back", to_reason_line(reason)),
            ItemOutcome::WaitsForAnswer(question) => {
                ("set_aside", "set an item aside", to_reason_line(question))
            }
            ItemOutcome::Released => ("given_back", "give an item back", String::new()),
            ItemOutcome::TakenByOther => return Ok(()),
        };
        let (place, epoch) = (index_to_i32_saturating(result.item), to_i64_saturating(result.epoch));
        let (tokens, sessions) = (
            to_i64_saturating(result.usage.tokens),
            i32::try_from(result.usage.sessions).unwrap_or(i32::MAX),
        );
        let detail = remove_nul_characters(&detail);
        let [name, token] = member.parameters();
        let parameters: [Parameter<'_>; 11] = [
            name,
            token,
            (&place, Type::INT4),
            (&epoch, Type::INT8),
            (&outcome, Type::TEXT),
            (&detail, Type::TEXT),
            (&result.start_commit_id, Type::TEXT),
            (&result.base_commit_id, Type::TEXT),
            (&result.usage.cost_usd, Type::FLOAT8),
            (&tokens, Type::INT8),
            (&sessions, Type::INT4),
        ];
        self.query_unless_stale_epoch(action, STORE_RESULT, &parameters)
    }
}
