//! The board of one plan in the database, and the transactions that change it.

mod budget;
pub(crate) mod claims;
pub(crate) mod database_inspection;
pub(crate) mod fleet_status;
pub(crate) mod journal;
pub(crate) mod machine_board;
pub(crate) mod members;
mod merger;
pub(crate) mod plan;
pub(crate) mod reconnecting_fleet;
pub(crate) mod shared_plan;
mod user_actions;

use crate::database::{Database, Parameter, TransactionError};
use crate::database_error::FleetError;
use crate::rows::{
    ITEM_COLUMNS, IndexedItem, PartialBoard, from_i64_or_zero, index_to_i32_saturating, item_from_row,
    plan_state_from_row, stage_columns, to_i64_saturating,
};
use plimsoll_domain::board::{BoardItem, BoardMillis, BoardState, ItemStage};
use plimsoll_policy::workers::StaleEpoch;
use postgres::Transaction;
use postgres::types::Type;

/// A plan's board in the database.
#[derive(Debug)]
pub struct Fleet {
    database: Database,
    /// The primary key of the plan's row.
    plan_id: i64,
    name: String,
    /// True if any item states the paths (areas) that it touches.
    has_areas: bool,
}

const READ_PLAN_STATE: &str =
    "select paused_until, merger, merger_until, merger_epoch from plimsoll.plan where id = $1";
const READ_NOW: &str = "select plimsoll.moment()";
const WRITE_PLAN: &str = "
    update plimsoll.plan set paused_until = $2, merger = $3, merger_until = $4, merger_epoch = $5 where id = $1";
const WRITE_ITEM: &str = "
    update plimsoll.item set stage = $3, epoch = $4, tries = $5, worker = $6, lease_until = $7, sha = $8, aside = $9, reason = $10,
      note = $11, landings = $12
    where plan = $1 and place = $2";

/// The rows that a decision locks and loads.
#[derive(Debug, Clone, Copy)]
enum LockedRows {
    /// One item, without the plan.
    Item(usize),
    /// The plan.
    Plan,
    /// The plan and one item.
    PlanAndItem(usize),
    /// The plan, one item, and all leased items.
    PlanAndItemAndLeasedItems(usize),
    /// The plan, and all items that are not merged and have merge candidate commits.
    PlanAndMergeCandidates,
}

impl LockedRows {
    fn includes_plan(self) -> bool {
        !matches!(self, LockedRows::Item(_))
    }

    fn item_sql_condition_and_index(self) -> Option<(&'static str, usize)> {
        match self {
            LockedRows::Item(item) | LockedRows::PlanAndItem(item) => Some(("place = $2", item)),
            LockedRows::Plan => None,
            LockedRows::PlanAndItemAndLeasedItems(item) => Some(("(place = $2 or stage = 'leased')", item)),
            // The condition must use the second parameter, which every query passes.
            LockedRows::PlanAndMergeCandidates => {
                Some(("stage <> 'merged' and landings <> '{}' and $2 >= 0", 0))
            }
        }
    }
}

/// Describes a change of the board: the action for error messages, and the event for the journal.
#[derive(Debug, Clone, Copy)]
struct BoardChange<'a> {
    action: &'static str,
    event_kind: &'static str,
    event_detail: &'a str,
}

impl Fleet {
    /// Reads the whole board.
    pub fn read_board(&mut self) -> Result<BoardState, FleetError> {
        let Fleet { database, plan_id, name, .. } = self;
        let select = format!("select {ITEM_COLUMNS} from plimsoll.item where plan = $1 order by place");
        database.run_in_transaction("read the board", |transaction| {
            let plan_state = read_plan_state(transaction, READ_PLAN_STATE, *plan_id, name)?;
            let rows = transaction.query_typed(&select, &[(plan_id, Type::INT8)])?;
            let items: Vec<IndexedItem> = rows.iter().map(item_from_row).collect::<Result<_, _>>()?;
            Ok(BoardState { items: items.into_iter().map(|(_, item)| item).collect(), ..plan_state })
        })
    }

    /// Locks and reads rows, applies `decision` to them, and writes the changed rows and their events, in one transaction.
    fn decide_and_write<T>(
        &mut self,
        change: BoardChange<'_>,
        locked_rows: LockedRows,
        decision: impl FnOnce(&mut PartialBoard, BoardMillis) -> Result<T, StaleEpoch>,
    ) -> Result<T, FleetError> {
        self.decide_and_write_with_extra_writes(change, locked_rows, decision, |_| Ok(()))
    }

    /// Does what [`Fleet::decide_and_write`] does, and runs `extra_writes` in the same transaction.
    fn decide_and_write_with_extra_writes<T>(
        &mut self,
        change: BoardChange<'_>,
        locked_rows: LockedRows,
        decision: impl FnOnce(&mut PartialBoard, BoardMillis) -> Result<T, StaleEpoch>,
        extra_writes: impl FnOnce(&mut Transaction<'_>) -> Result<(), postgres::Error>,
    ) -> Result<T, FleetError> {
        let Fleet { database, plan_id, name, .. } = self;
        database.run_in_transaction(change.action, |transaction| {
            let before = lock_and_read_rows(transaction, *plan_id, name, locked_rows)?;
            // Read only after everything is locked: waiting for a lock may have taken time.
            let now = read_now(transaction)?;
            let mut after = before.clone();
            let value = decision(&mut after, now).map_err(FleetError::from)?;
            write_changed_rows(transaction, *plan_id, &before, &after)?;
            extra_writes(transaction)?;
            journal::write_events_except_lease_renewals(transaction, *plan_id, now, change, &before, &after)?;
            Ok(value)
        })
    }
}

fn read_now(transaction: &mut Transaction<'_>) -> Result<BoardMillis, TransactionError> {
    Ok(from_i64_or_zero(transaction.query_typed_one(READ_NOW, &[])?.try_get(0)?))
}

/// Reads the state of the plan without its items. Fails if the fleet was deleted.
fn read_plan_state(
    transaction: &mut Transaction<'_>,
    query: &str,
    plan_id: i64,
    fleet_name: &str,
) -> Result<BoardState, TransactionError> {
    match transaction.query_typed_opt(query, &[(&plan_id, Type::INT8)])? {
        Some(row) => Ok(plan_state_from_row(&row)?),
        None => Err(FleetError::FleetNotFound(fleet_name.to_owned()).into()),
    }
}

/// Locks the plan's row until the end of the transaction, and reads it.
fn lock_and_read_plan(
    transaction: &mut Transaction<'_>,
    plan_id: i64,
    fleet_name: &str,
) -> Result<BoardState, TransactionError> {
    read_plan_state(transaction, &format!("{READ_PLAN_STATE} for no key update"), plan_id, fleet_name)
}

fn lock_and_read_rows(
    transaction: &mut Transaction<'_>,
    plan_id: i64,
    fleet_name: &str,
    locked_rows: LockedRows,
) -> Result<PartialBoard, TransactionError> {
    let plan_state = if locked_rows.includes_plan() {
        lock_and_read_plan(transaction, plan_id, fleet_name)?
    } else {
        BoardState::default()
    };
    let Some((condition, index)) = locked_rows.item_sql_condition_and_index() else {
        return Ok(PartialBoard::with_local_dependency_indices(plan_state, Vec::new()));
    };
    let select = format!(
        "select {ITEM_COLUMNS} from plimsoll.item where plan = $1 and {condition} order by place for no key update"
    );
    let rows = transaction
        .query_typed(&select, &[(&plan_id, Type::INT8), (&index_to_i32_saturating(index), Type::INT4)])?;
    let items = rows.iter().map(item_from_row).collect::<Result<_, _>>()?;
    Ok(PartialBoard::with_local_dependency_indices(plan_state, items))
}

fn write_changed_rows(
    transaction: &mut Transaction<'_>,
    plan_id: i64,
    before: &PartialBoard,
    after: &PartialBoard,
) -> Result<(), TransactionError> {
    for (plan_index, item) in changed_items_with_plan_index(before, after) {
        let boxed_parameters: Vec<(BoxedSqlValue, Type)> = item_update_parameters(plan_id, plan_index, item);
        let parameters: Vec<Parameter<'_>> =
            boxed_parameters.iter().map(|(value, sql_type)| (&**value, sql_type.clone())).collect();
        transaction.execute_typed(WRITE_ITEM, &parameters)?;
    }
    let (old_board, new_board) = (&before.board, &after.board);
    if (old_board.paused_until, &old_board.merger_lease, old_board.merger_epoch)
        != (new_board.paused_until, &new_board.merger_lease, new_board.merger_epoch)
    {
        let parameters: [Parameter<'_>; 5] = [
            (&plan_id, Type::INT8),
            (&to_i64_saturating(new_board.paused_until), Type::INT8),
            (&new_board.merger_lease.holder, Type::TEXT),
            (&to_i64_saturating(new_board.merger_lease.expires_at), Type::INT8),
            (&to_i64_saturating(new_board.merger_epoch), Type::INT8),
        ];
        transaction.execute_typed(WRITE_PLAN, &parameters)?;
    }
    Ok(())
}

type BoxedSqlValue = Box<dyn postgres::types::ToSql + Sync>;

fn item_update_parameters(plan_id: i64, plan_index: usize, item: &BoardItem) -> Vec<(BoxedSqlValue, Type)> {
    let columns = stage_columns(&item.stage);
    vec![
        (Box::new(plan_id), Type::INT8),
        (Box::new(index_to_i32_saturating(plan_index)), Type::INT4),
        (Box::new(columns.stage), Type::TEXT),
        (Box::new(to_i64_saturating(item.epoch)), Type::INT8),
        (Box::new(i32::try_from(item.failed_merge_count).unwrap_or(i32::MAX)), Type::INT4),
        (Box::new(columns.worker), Type::TEXT),
        (Box::new(columns.lease_expires_at), Type::INT8),
        (Box::new(columns.ready_commit), Type::TEXT),
        (Box::new(columns.set_aside_kind), Type::TEXT),
        (Box::new(columns.reason.as_deref().map(remove_nul_characters)), Type::TEXT),
        (Box::new(remove_nul_characters(&item.next_session_note)), Type::TEXT),
        (Box::new(item.attempted_merge_commits.clone()), Type::TEXT_ARRAY),
    ]
}

/// Returns the items that a decision changed, with their indices in the plan.
fn changed_items_with_plan_index<'a>(
    before: &'a PartialBoard,
    after: &'a PartialBoard,
) -> impl Iterator<Item = (usize, &'a BoardItem)> {
    let item_pairs_with_index = before.board.items.iter().zip(&after.board.items).zip(&after.plan_indices);
    item_pairs_with_index
        .filter(|((old, new), _)| old != new)
        .map(|((_, new), plan_index)| (*plan_index, new))
}

/// Removes NUL characters, which PostgreSQL cannot store in a text.
fn remove_nul_characters(text: &str) -> String {
    text.replace('\0', "")
}

/// Returns the worker that holds the item's lease.
fn lease_holder(item: &BoardItem) -> Option<&str> {
    match &item.stage {
        ItemStage::Leased { lease } => Some(&lease.holder),
        ItemStage::Open | ItemStage::ReadyToMerge { .. } | ItemStage::Merged | ItemStage::SetAside { .. } => {
            None
        }
    }
}
