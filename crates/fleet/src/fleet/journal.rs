//! The fleet's journal: lines are added in the transaction of what they tell, and never changed.

use super::{Change, Fleet, changed, holder};
use crate::database::{Parameter, Stopped};
use crate::fault::FleetError;
use crate::rows::{Part, moment, number, small};
use plimsoll_domain::board::Moment;
use plimsoll_domain::text::{clip, one_line};
use postgres::types::Type;
use postgres::{Error, Row, Transaction};

/// How much of a note or question stands in a line.
const DETAIL: usize = 500;

const WRITE: &str = "
    insert into plimsoll.event (at, plan, item, epoch, worker, kind, detail) values ($1, $2, $3, $4, $5, $6, $7)";
const READ: &str = "
    select seq, at, item, epoch, worker, kind, detail from plimsoll.event
    where plan = $1 and seq > $2 order by seq limit $3";

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its number: later ones are larger.
    pub number: i64,
    /// When.
    pub at: Moment,
    /// The item's place in the plan, if it is about one.
    pub item: Option<usize>,
    /// The item's epoch.
    pub epoch: Option<u64>,
    /// Who worked on it.
    pub worker: Option<String>,
    /// What happened, in one word.
    pub kind: String,
    /// More of it.
    pub detail: String,
}

impl Fleet {
    /// The next lines after one, so many at most. Lines of transactions that end at the same moment may come a little later than
    /// one with a larger number.
    pub fn events(&mut self, after: i64, most: u32) -> Result<Vec<Event>, FleetError> {
        let most = i64::from(most);
        let parameters: [Parameter<'_>; 3] =
            [(&self.plan, Type::INT8), (&after, Type::INT8), (&most, Type::INT8)];
        self.database.read("read the journal", READ, &parameters, event)
    }
}

fn event(row: &Row) -> Result<Event, Error> {
    let item: Option<i32> = row.try_get("item")?;
    let epoch: Option<i64> = row.try_get("epoch")?;
    Ok(Event {
        number: row.try_get("seq")?,
        at: moment(row.try_get("at")?),
        item: item.and_then(|place| usize::try_from(place).ok()),
        epoch: epoch.map(moment),
        worker: row.try_get("worker")?,
        kind: row.try_get("kind")?,
        detail: row.try_get("detail")?,
    })
}

/// A line for each item that changed, or one for the plan. That a lease goes on is not worth one.
pub(super) fn write(
    transaction: &mut Transaction<'_>,
    plan: i64,
    now: Moment,
    change: Change<'_>,
    before: &Part,
    after: &Part,
) -> Result<(), Stopped> {
    let detail = clip(&one_line(change.detail), DETAIL);
    let mut add = |item: Option<i32>, epoch: Option<i64>, worker: Option<&str>| {
        let parameters: [Parameter<'_>; 7] = [
            (&number(now), Type::INT8),
            (&plan, Type::INT8),
            (&item, Type::INT4),
            (&epoch, Type::INT8),
            (&worker, Type::TEXT),
            (&change.kind, Type::TEXT),
            (&detail, Type::TEXT),
        ];
        transaction.execute_typed(WRITE, &parameters)
    };
    for (place, row) in changed(before, after) {
        let old = &before.board.items[before.place_of(place)];
        if holder(old).is_none() || holder(old) != holder(row) {
            add(Some(small(place)), Some(number(row.epoch)), holder(old))?;
        }
    }
    let (old, new) = (&before.board, &after.board);
    if (old.paused_until, old.merger_epoch) != (new.paused_until, new.merger_epoch) {
        add(None, None, None)?;
    }
    Ok(())
}
