//! A user's decisions about an existing fleet.

use super::{Fleet, remove_nul_characters};
use crate::database::Parameter;
use crate::database_error::FleetError;
use crate::rows::index_to_i32_saturating;
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use postgres::types::Type;

/// Maximum length of an answer in the journal.
const MAX_DETAIL_CHARS: usize = 500;

const SET_DRAINING: &str = "
    with changed as (
      update plimsoll.plan set draining = $2 where id = $1 and draining <> $2 and ended is null returning id
    ),
    told as (
      insert into plimsoll.event (at, plan, kind) select plimsoll.moment(), $1, $3 from changed
    )
    select id from changed";
const END_AS_STOPPED: &str = "
    with changed as (
      update plimsoll.plan set ended = 'stopped' where id = $1 and ended is null returning id
    ),
    told as (
      insert into plimsoll.event (at, plan, kind) select plimsoll.moment(), $1, 'stopped' from changed
    )
    select id from changed";
/// Does what `policy::workers::reopen_set_aside_item` does, but keeps the number of failed merges.
const ANSWER_QUESTION: &str = "
    with answered as (
      update plimsoll.item set stage = 'open', aside = null, question = reason, reason = null, answer = $3
      where plan = $1 and place = $2 and stage = 'aside' and aside = 'question' returning place, epoch
    ),
    told as (
      insert into plimsoll.event (at, plan, item, epoch, kind, detail)
      select plimsoll.moment(), $1, place, epoch, 'answered', $4 from answered
    )
    select place from answered";

impl Fleet {
    /// Stops new claims, or allows them again. Returns false if nothing changes or the fleet has ended.
    pub fn set_draining(&mut self, is_draining: bool) -> Result<bool, FleetError> {
        let event_kind = if is_draining { "draining" } else { "resumed" };
        let parameters: [Parameter<'_>; 3] =
            [(&self.plan_id, Type::INT8), (&is_draining, Type::BOOL), (&event_kind, Type::TEXT)];
        Ok(!self.database.query("drain the fleet", SET_DRAINING, &parameters)?.is_empty())
    }

    /// Ends the fleet permanently. Returns false if it has already ended.
    pub fn end_as_stopped(&mut self) -> Result<bool, FleetError> {
        Ok(!self.database.query("stop the fleet", END_AS_STOPPED, &[(&self.plan_id, Type::INT8)])?.is_empty())
    }

    /// Stores the answer to an item's question and reopens the item, without resetting its failed tries. Returns false if
    /// the item has no open question.
    pub fn answer_question_and_reopen_item(&mut self, item: usize, answer: &str) -> Result<bool, FleetError> {
        let (index, answer) = (index_to_i32_saturating(item), remove_nul_characters(answer));
        let detail = truncate_end(&to_safe_single_line(&answer), MAX_DETAIL_CHARS);
        let parameters: [Parameter<'_>; 4] =
            [(&self.plan_id, Type::INT8), (&index, Type::INT4), (&answer, Type::TEXT), (&detail, Type::TEXT)];
        Ok(!self.database.query("answer a question", ANSWER_QUESTION, &parameters)?.is_empty())
    }
}
