//! One plan's board in the database, and how a decision is made on it.

pub(crate) mod claims;
pub(crate) mod examined;
pub(crate) mod joining;
pub(crate) mod journal;
pub(crate) mod machine_board;
pub(crate) mod members;
mod merging;
mod money;
pub(crate) mod plan;
pub(crate) mod standing;
mod steering;
pub(crate) mod watched;

use crate::database::{Database, Parameter, Stopped};
use crate::fault::FleetError;
use crate::rows::{COLUMNS, Part, Placed, columns, item, moment, number, small, whole};
use plimsoll_domain::board::{BoardItem, BoardState, Moment, Stage};
use plimsoll_policy::workers::Fenced;
use postgres::Transaction;
use postgres::types::Type;

/// A plan's board in the database.
#[derive(Debug)]
pub struct Fleet {
    database: Database,
    /// The number of its row.
    plan: i64,
    name: String,
    /// Some item states areas.
    has_areas: bool,
}

const PLAN: &str = "select paused_until, merger, merger_until, merger_epoch from plimsoll.plan where id = $1";
const NOW: &str = "select plimsoll.moment()";
const WRITE_PLAN: &str = "
    update plimsoll.plan set paused_until = $2, merger = $3, merger_until = $4, merger_epoch = $5 where id = $1";
const WRITE_ITEM: &str = "
    update plimsoll.item set stage = $3, epoch = $4, tries = $5, worker = $6, lease_until = $7, sha = $8, aside = $9, reason = $10,
      note = $11, landings = $12
    where plan = $1 and place = $2";

/// What a decision is about: these rows are locked and loaded.
#[derive(Debug, Clone, Copy)]
enum Rows {
    /// One item, whatever becomes of the others.
    Own(usize),
    /// The plan.
    Plan,
    /// The plan and one item.
    PlanAnd(usize),
    /// The plan, one item, and all that somebody works on.
    Leased(usize),
    /// The plan, and what may have landed.
    Landing,
}

impl Rows {
    fn has_plan(self) -> bool {
        !matches!(self, Rows::Own(_))
    }

    fn items(self) -> Option<(&'static str, usize)> {
        match self {
            Rows::Own(item) | Rows::PlanAnd(item) => Some(("place = $2", item)),
            Rows::Plan => None,
            Rows::Leased(item) => Some(("(place = $2 or stage = 'leased')", item)),
            // The second parameter has to be there.
            Rows::Landing => Some(("stage <> 'merged' and landings <> '{}' and $2 >= 0", 0)),
        }
    }
}

/// A change of the board: what it is called in errors, and in the journal.
#[derive(Debug, Clone, Copy)]
struct Change<'a> {
    doing: &'static str,
    kind: &'static str,
    detail: &'a str,
}

impl Fleet {
    /// The whole board as it is.
    pub fn board(&mut self) -> Result<BoardState, FleetError> {
        let Fleet { database, plan, name, .. } = self;
        let select = format!("select {COLUMNS} from plimsoll.item where plan = $1 order by place");
        database.transaction("read the board", |transaction| {
            let whole = plan_row(transaction, PLAN, *plan, name)?;
            let rows = transaction.query_typed(&select, &[(plan, Type::INT8)])?;
            let items: Vec<Placed> = rows.iter().map(item).collect::<Result<_, _>>()?;
            Ok(BoardState { items: items.into_iter().map(|(_, item)| item).collect(), ..whole })
        })
    }

    /// Lets the policy decide on some rows, and writes what it changed.
    fn decide<T>(
        &mut self,
        change: Change<'_>,
        rows: Rows,
        decision: impl FnOnce(&mut Part, Moment) -> Result<T, Fenced>,
    ) -> Result<T, FleetError> {
        self.decide_and(change, rows, decision, |_| Ok(()))
    }

    /// The same, and writes what goes with it.
    fn decide_and<T>(
        &mut self,
        change: Change<'_>,
        rows: Rows,
        decision: impl FnOnce(&mut Part, Moment) -> Result<T, Fenced>,
        also: impl FnOnce(&mut Transaction<'_>) -> Result<(), postgres::Error>,
    ) -> Result<T, FleetError> {
        let Fleet { database, plan, name, .. } = self;
        database.transaction(change.doing, |transaction| {
            let before = locked(transaction, *plan, name, rows)?;
            // Not before everything is locked: whoever held it may have taken time.
            let now = now(transaction)?;
            let mut after = before.clone();
            let answer = decision(&mut after, now).map_err(FleetError::from)?;
            write(transaction, *plan, &before, &after)?;
            also(transaction)?;
            journal::write(transaction, *plan, now, change, &before, &after)?;
            Ok(answer)
        })
    }
}

fn now(transaction: &mut Transaction<'_>) -> Result<Moment, Stopped> {
    Ok(moment(transaction.query_typed_one(NOW, &[])?.try_get(0)?))
}

/// What holds for the whole plan, unless somebody has forgotten it.
fn plan_row(
    transaction: &mut Transaction<'_>,
    select: &str,
    plan: i64,
    name: &str,
) -> Result<BoardState, Stopped> {
    match transaction.query_typed_opt(select, &[(&plan, Type::INT8)])? {
        Some(row) => Ok(whole(&row)?),
        None => Err(FleetError::NoPlan(name.to_owned()).into()),
    }
}

/// Waits until nobody else decides on the plan.
fn lock_plan(transaction: &mut Transaction<'_>, plan: i64, name: &str) -> Result<BoardState, Stopped> {
    plan_row(transaction, &format!("{PLAN} for no key update"), plan, name)
}

fn locked(transaction: &mut Transaction<'_>, plan: i64, name: &str, rows: Rows) -> Result<Part, Stopped> {
    let whole = if rows.has_plan() { lock_plan(transaction, plan, name)? } else { BoardState::default() };
    let Some((which, place)) = rows.items() else { return Ok(Part::new(whole, Vec::new())) };
    let select = format!(
        "select {COLUMNS} from plimsoll.item where plan = $1 and {which} order by place for no key update"
    );
    let rows = transaction.query_typed(&select, &[(&plan, Type::INT8), (&small(place), Type::INT4)])?;
    let items = rows.iter().map(item).collect::<Result<_, _>>()?;
    Ok(Part::new(whole, items))
}

fn write(transaction: &mut Transaction<'_>, plan: i64, before: &Part, after: &Part) -> Result<(), Stopped> {
    for (place, row) in changed(before, after) {
        let parameters: Vec<(Value, Type)> = item_values(plan, place, row);
        let parameters: Vec<Parameter<'_>> =
            parameters.iter().map(|(value, kind)| (&**value, kind.clone())).collect();
        transaction.execute_typed(WRITE_ITEM, &parameters)?;
    }
    let (old, new) = (&before.board, &after.board);
    if (old.paused_until, &old.merger, old.merger_epoch) != (new.paused_until, &new.merger, new.merger_epoch)
    {
        let parameters: [Parameter<'_>; 5] = [
            (&plan, Type::INT8),
            (&number(new.paused_until), Type::INT8),
            (&new.merger.holder, Type::TEXT),
            (&number(new.merger.until), Type::INT8),
            (&number(new.merger_epoch), Type::INT8),
        ];
        transaction.execute_typed(WRITE_PLAN, &parameters)?;
    }
    Ok(())
}

type Value = Box<dyn postgres::types::ToSql + Sync>;

fn item_values(plan: i64, place: usize, row: &BoardItem) -> Vec<(Value, Type)> {
    let stage = columns(&row.stage);
    vec![
        (Box::new(plan), Type::INT8),
        (Box::new(small(place)), Type::INT4),
        (Box::new(stage.stage), Type::TEXT),
        (Box::new(number(row.epoch)), Type::INT8),
        (Box::new(i32::try_from(row.tries).unwrap_or(i32::MAX)), Type::INT4),
        (Box::new(stage.worker), Type::TEXT),
        (Box::new(stage.lease_until), Type::INT8),
        (Box::new(stage.sha), Type::TEXT),
        (Box::new(stage.aside), Type::TEXT),
        (Box::new(stage.reason.as_deref().map(storable)), Type::TEXT),
        (Box::new(storable(&row.note)), Type::TEXT),
        (Box::new(row.landings.clone()), Type::TEXT_ARRAY),
    ]
}

/// The items that a decision changed, by their places in the plan.
fn changed<'a>(before: &'a Part, after: &'a Part) -> impl Iterator<Item = (usize, &'a BoardItem)> {
    let pairs = before.board.items.iter().zip(&after.board.items).zip(&after.places);
    pairs.filter(|((old, new), _)| old != new).map(|((_, new), place)| (*place, new))
}

/// A text without what PostgreSQL cannot keep in one.
fn storable(text: &str) -> String {
    text.replace('\0', "")
}

/// Who works on an item.
fn holder(row: &BoardItem) -> Option<&str> {
    match &row.stage {
        Stage::Leased { lease } => Some(&lease.holder),
        Stage::Open | Stage::Offered { .. } | Stage::Merged | Stage::Aside { .. } => None,
    }
}
