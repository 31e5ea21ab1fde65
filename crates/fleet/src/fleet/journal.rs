//! The fleet's journal. An event is written in the same transaction as the change that it reports, and is never modified.

use super::Fleet;
use crate::database::Parameter;
use crate::database_error::FleetError;
use crate::rows::from_i64_or_zero;
use plimsoll_domain::board::BoardMillis;
use postgres::types::Type;
use postgres::{Error, Row};

const READ_EVENTS_AFTER: &str = "
    select seq, at, item, epoch, worker, kind, detail from {fleet}.event where seq > $1 order by seq limit $2";

/// An event of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetEvent {
    /// Increases with each event.
    pub sequence_number: i64,
    pub occurred_at: BoardMillis,
    /// Index of the item in the plan, if the event is about one.
    pub item_index: Option<usize>,
    /// The item's epoch.
    pub epoch: Option<u64>,
    /// The worker that had the item, or the member that wrote the event.
    pub worker: Option<String>,
    /// The kind of event, in one word.
    pub kind: String,
    pub detail: String,
}

impl Fleet {
    /// Reads at most `max_count` events with sequence numbers above `after_sequence_number`, in order. An event of a transaction
    /// that commits late may appear after one with a larger number.
    pub fn read_events_after(
        &mut self,
        after_sequence_number: i64,
        max_count: u32,
    ) -> Result<Vec<FleetEvent>, FleetError> {
        let max_count = i64::from(max_count);
        let parameters: [Parameter<'_>; 2] = [(&after_sequence_number, Type::INT8), (&max_count, Type::INT8)];
        self.query_and_map("read the journal", READ_EVENTS_AFTER, &parameters, event_from_row)
    }
}

fn event_from_row(row: &Row) -> Result<FleetEvent, Error> {
    let raw_item_index: Option<i32> = row.try_get("item")?;
    let raw_epoch: Option<i64> = row.try_get("epoch")?;
    Ok(FleetEvent {
        sequence_number: row.try_get("seq")?,
        occurred_at: from_i64_or_zero(row.try_get("at")?),
        item_index: raw_item_index.and_then(|index| usize::try_from(index).ok()),
        epoch: raw_epoch.map(from_i64_or_zero),
        worker: row.try_get("worker")?,
        kind: row.try_get("kind")?,
        detail: row.try_get("detail")?,
    })
}
