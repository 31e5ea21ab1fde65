//! A user's decisions about an existing fleet. Only its owner may make them.

use super::{Fleet, remove_nul_characters};
use crate::database::Parameter;
use crate::database_error::{
    ANSWER_ACTION, DRAIN_ACTION, FleetError, REOPEN_ACTION, RESUME_ACTION, STOP_ACTION,
};
use crate::rows::index_to_i32_saturating;
use postgres::types::Type;

const SET_DRAINING: &str = "select {fleet}.set_draining($1)";
const STOP_FLEET: &str = "select {fleet}.stop_fleet()";
const ANSWER_QUESTION: &str = "select {fleet}.answer_question($1, $2)";
const REOPEN_ITEM: &str = "select {fleet}.reopen_item($1, $2)";

impl Fleet {
    /// Stops new claims, or allows them again, which also ends a pause. Returns false if nothing changes or the fleet has ended.
    pub fn set_draining(&mut self, is_draining: bool) -> Result<bool, FleetError> {
        let action = if is_draining { DRAIN_ACTION } else { RESUME_ACTION };
        self.query_value(action, SET_DRAINING, &[(&is_draining, Type::BOOL)])
    }

    /// Ends the fleet permanently. Returns false if it has already ended.
    pub fn end_as_stopped(&mut self) -> Result<bool, FleetError> {
        self.query_value(STOP_ACTION, STOP_FLEET, &[])
    }

    /// Stores the answer to an item's question and reopens the item, without resetting its failed tries. Returns false if
    /// the item has no open question.
    pub fn answer_question_and_reopen_item(&mut self, item: usize, answer: &str) -> Result<bool, FleetError> {
        let (place, answer) = (index_to_i32_saturating(item), remove_nul_characters(answer));
        let parameters: [Parameter<'_>; 2] = [(&place, Type::INT4), (&answer, Type::TEXT)];
        self.query_value(ANSWER_ACTION, ANSWER_QUESTION, &parameters)
    }

    /// Reopens an item that was set aside. Returns false if it was not.
    pub fn reopen_set_aside_item(&mut self, item: usize) -> Result<bool, FleetError> {
        self.reopen_item(item, false)
    }

    /// Reopens an item that is recorded as merged although the target branch does not contain it. Returns false if it is not
    /// recorded as merged or set aside.
    pub fn reopen_item_missing_from_target(&mut self, item: usize) -> Result<bool, FleetError> {
        self.reopen_item(item, true)
    }

    fn reopen_item(&mut self, item: usize, also_merged: bool) -> Result<bool, FleetError> {
        let place = index_to_i32_saturating(item);
        let parameters: [Parameter<'_>; 2] = [(&place, Type::INT4), (&also_merged, Type::BOOL)];
        self.query_value(REOPEN_ACTION, REOPEN_ITEM, &parameters)
    }
}
