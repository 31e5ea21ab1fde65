//! The fleet's journal. An event is written in the same transaction as the change that it reports, and is never modified.

use super::{BoardChange, Fleet, changed_items_with_plan_index, lease_holder};
use crate::database::{Parameter, TransactionError};
use crate::database_error::FleetError;
use crate::rows::{PartialBoard, from_i64_or_zero, index_to_i32_saturating, to_i64_saturating};
use plimsoll_domain::board::BoardMillis;
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use postgres::types::Type;
use postgres::{Error, Row, Transaction};

/// Maximum length of a note or question in an event.
const MAX_DETAIL_CHARS: usize = 500;

const INSERT_EVENT: &str = "
    insert into plimsoll.event (at, plan, item, epoch, worker, kind, detail) values ($1, $2, $3, $4, $5, $6, $7)";
const READ_EVENTS_AFTER: &str = "
    select seq, at, item, epoch, worker, kind, detail from plimsoll.event
    where plan = $1 and seq > $2 order by seq limit $3";

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
    /// The worker that had the item.
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
        let parameters: [Parameter<'_>; 3] =
            [(&self.plan_id, Type::INT8), (&after_sequence_number, Type::INT8), (&max_count, Type::INT8)];
        self.database.query_and_map("read the journal", READ_EVENTS_AFTER, &parameters, event_from_row)
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

/// Writes one event for each changed item, and one if the plan's pause or merger changed. A lease renewal writes no event.
pub(super) fn write_events_except_lease_renewals(
    transaction: &mut Transaction<'_>,
    plan_id: i64,
    now: BoardMillis,
    change: BoardChange<'_>,
    before: &PartialBoard,
    after: &PartialBoard,
) -> Result<(), TransactionError> {
    let detail = truncate_end(&to_safe_single_line(change.event_detail), MAX_DETAIL_CHARS);
    let mut insert_event = |item_index: Option<i32>, epoch: Option<i64>, worker: Option<&str>| {
        let parameters: [Parameter<'_>; 7] = [
            (&to_i64_saturating(now), Type::INT8),
            (&plan_id, Type::INT8),
            (&item_index, Type::INT4),
            (&epoch, Type::INT8),
            (&worker, Type::TEXT),
            (&change.event_kind, Type::TEXT),
            (&detail, Type::TEXT),
        ];
        transaction.execute_typed(INSERT_EVENT, &parameters)
    };
    for (plan_index, item) in changed_items_with_plan_index(before, after) {
        let old_item = &before.board.items[before.local_index_or_max(plan_index)];
        if lease_holder(old_item).is_none() || lease_holder(old_item) != lease_holder(item) {
            insert_event(
                Some(index_to_i32_saturating(plan_index)),
                Some(to_i64_saturating(item.epoch)),
                lease_holder(old_item),
            )?;
        }
    }
    let (old_board, new_board) = (&before.board, &after.board);
    if (old_board.paused_until, old_board.merger_epoch) != (new_board.paused_until, new_board.merger_epoch) {
        insert_event(None, None, None)?;
    }
    Ok(())
}
