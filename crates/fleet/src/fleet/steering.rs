//! What a user decides about a fleet that is there.

use super::{Fleet, storable};
use crate::database::Parameter;
use crate::fault::FleetError;
use crate::rows::small;
use plimsoll_domain::text::{clip, one_line};
use postgres::types::Type;

/// How much of an answer stands in the journal.
const DETAIL: usize = 500;

const DRAIN: &str = "
    with changed as (
      update plimsoll.plan set draining = $2 where id = $1 and draining <> $2 and ended is null returning id
    ),
    told as (
      insert into plimsoll.event (at, plan, kind) select plimsoll.moment(), $1, $3 from changed
    )
    select id from changed";
const STOP: &str = "
    with changed as (
      update plimsoll.plan set ended = 'stopped' where id = $1 and ended is null returning id
    ),
    told as (
      insert into plimsoll.event (at, plan, kind) select plimsoll.moment(), $1, 'stopped' from changed
    )
    select id from changed";
/// `policy::workers::reopen`, but for the tries.
const ANSWER: &str = "
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
    /// Lets nothing new be claimed, or takes that back; false if it changes nothing, or the fleet is over.
    pub fn drain(&mut self, is_draining: bool) -> Result<bool, FleetError> {
        let kind = if is_draining { "draining" } else { "resumed" };
        let parameters: [Parameter<'_>; 3] =
            [(&self.plan, Type::INT8), (&is_draining, Type::BOOL), (&kind, Type::TEXT)];
        Ok(!self.database.query("drain the fleet", DRAIN, &parameters)?.is_empty())
    }

    /// Ends it for good; false if it is over already.
    pub fn stop(&mut self) -> Result<bool, FleetError> {
        Ok(!self.database.query("stop the fleet", STOP, &[(&self.plan, Type::INT8)])?.is_empty())
    }

    /// Opens an item again that waited for this answer, and keeps its tries; false if it waits for none.
    pub fn answer(&mut self, item: usize, answer: &str) -> Result<bool, FleetError> {
        let (place, answer) = (small(item), storable(answer));
        let detail = clip(&one_line(&answer), DETAIL);
        let parameters: [Parameter<'_>; 4] =
            [(&self.plan, Type::INT8), (&place, Type::INT4), (&answer, Type::TEXT), (&detail, Type::TEXT)];
        Ok(!self.database.query("answer a question", ANSWER, &parameters)?.is_empty())
    }
}
