//! Rows of the database as items of a board, and back. The board may be a part of the plan's: what is not in it counts as merged,
//! as everything does that a plan names and does not have.

use plimsoll_domain::board::{Aside, BoardItem, BoardState, Lease, Moment, Stage};
use plimsoll_domain::git_names::{CommitId, InvalidCommitId};
use postgres::Row;
use postgres::types::{FromSql, Type};
use std::collections::HashMap;
use std::error::Error;

/// The columns that [`item`] reads.
pub(crate) const COLUMNS: &str =
    "place, text, needs, areas, stage, epoch, tries, worker, lease_until, sha, aside, reason, note, landings";

/// An item with its place in the plan.
pub(crate) type Placed = (usize, BoardItem);

/// Some items of a plan as a board of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) board: BoardState,
    /// The place in the plan of each item of the board.
    pub(crate) places: Vec<usize>,
}

impl Part {
    /// The part that these items are, with what holds for the whole plan.
    pub(crate) fn new(whole: BoardState, items: Vec<Placed>) -> Part {
        let (places, mut items): (Vec<usize>, Vec<BoardItem>) = items.into_iter().unzip();
        let part: HashMap<usize, usize> =
            places.iter().enumerate().map(|(place, of_plan)| (*of_plan, place)).collect();
        for need in items.iter_mut().flat_map(|item| &mut item.needs) {
            *need = part.get(need).copied().unwrap_or(usize::MAX);
        }
        Part { board: BoardState { items, ..whole }, places }
    }

    /// The place in this part of an item of the plan; for one that is not in it a place that no board has.
    pub(crate) fn place_of(&self, item: usize) -> usize {
        self.places.iter().position(|place| *place == item).unwrap_or(usize::MAX)
    }
}

/// What the columns of a stage hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StageColumns {
    pub(crate) stage: &'static str,
    pub(crate) worker: Option<String>,
    pub(crate) lease_until: Option<i64>,
    pub(crate) sha: Option<String>,
    pub(crate) aside: Option<&'static str>,
    pub(crate) reason: Option<String>,
}

/// A stage as its columns.
pub(crate) fn columns(stage: &Stage) -> StageColumns {
    let of = |name| StageColumns { stage: name, ..StageColumns::default() };
    match stage {
        Stage::Open => of("open"),
        Stage::Leased { lease } => StageColumns {
            worker: Some(lease.holder.clone()),
            lease_until: Some(number(lease.until)),
            ..of("leased")
        },
        Stage::Offered { commit } => StageColumns { sha: Some(commit.clone()), ..of("offered") },
        Stage::Merged => of("merged"),
        Stage::Aside { reason } => {
            let (aside, reason) = match reason {
                Aside::Tries => ("tries", None),
                Aside::Question(question) => ("question", Some(question.clone())),
                Aside::Ended(why) => ("ended", Some(why.clone())),
            };
            StageColumns { aside: Some(aside), reason, ..of("aside") }
        }
    }
}

/// A column whose text is parsed where it is read: a row may have been written by anybody who may write the database.
#[derive(Debug)]
pub(crate) struct Parsed<T>(pub(crate) T);

impl<'a, T> FromSql<'a> for Parsed<T>
where
    T: TryFrom<String>,
    T::Error: Into<Box<dyn Error + Sync + Send>>,
{
    fn from_sql(of: &Type, bytes: &'a [u8]) -> Result<Parsed<T>, Box<dyn Error + Sync + Send>> {
        T::try_from(String::from_sql(of, bytes)?).map(Parsed).map_err(Into::into)
    }

    fn accepts(of: &Type) -> bool {
        <String as FromSql>::accepts(of)
    }
}

/// A commit, or nothing for the target's end.
#[derive(Debug)]
pub(crate) struct CommitOrNone(String);

impl TryFrom<String> for CommitOrNone {
    type Error = InvalidCommitId;

    fn try_from(text: String) -> Result<CommitOrNone, InvalidCommitId> {
        if !text.is_empty() {
            CommitId::parse(&text)?;
        }
        Ok(CommitOrNone(text))
    }
}

/// The text of a column that names a commit, or is empty.
pub(crate) fn commit_or_none(row: &Row, column: &str) -> Result<String, postgres::Error> {
    row.try_get::<_, Option<Parsed<CommitOrNone>>>(column)
        .map(|known| known.map_or(String::new(), |known| known.0.0))
}

/// The commit that a column names.
pub(crate) fn commit(row: &Row, column: &str) -> Result<String, postgres::Error> {
    row.try_get::<_, Parsed<CommitId>>(column).map(|known| known.0.into())
}

/// The commits that a column names.
pub(crate) fn commits(row: &Row, column: &str) -> Result<Vec<String>, postgres::Error> {
    let known = row.try_get::<_, Vec<Parsed<CommitId>>>(column)?;
    Ok(known.into_iter().map(|known| known.0.into()).collect())
}

/// An item of a row.
pub(crate) fn item(row: &Row) -> Result<Placed, postgres::Error> {
    let text = |name: &str| row.try_get::<_, Option<String>>(name).map(Option::unwrap_or_default);
    let lease = Lease {
        holder: text("worker")?,
        until: moment(row.try_get::<_, Option<i64>>("lease_until")?.unwrap_or_default()),
    };
    let stage = match text("stage")?.as_str() {
        "open" => Stage::Open,
        "leased" => Stage::Leased { lease },
        "offered" => Stage::Offered { commit: commit(row, "sha")? },
        "merged" => Stage::Merged,
        // The table has no other.
        _ => Stage::Aside { reason: aside(&text("aside")?, text("reason")?) },
    };
    let needs: Vec<i32> = row.try_get("needs")?;
    let item = BoardItem {
        text: text("text")?,
        needs: needs.into_iter().map(place).collect(),
        areas: row.try_get("areas")?,
        // Only on a board of one machine.
        conflicts: Vec::new(),
        writes: Vec::new(),
        stage,
        epoch: moment(row.try_get("epoch")?),
        tries: u32::try_from(row.try_get::<_, i32>("tries")?).unwrap_or_default(),
        note: text("note")?,
        landings: commits(row, "landings")?,
    };
    Ok((place(row.try_get("place")?), item))
}

fn aside(kind: &str, reason: String) -> Aside {
    match kind {
        "question" => Aside::Question(reason),
        "ended" => Aside::Ended(reason),
        _ => Aside::Tries,
    }
}

/// What holds for the whole plan: the board without its items.
pub(crate) fn whole(row: &Row) -> Result<BoardState, postgres::Error> {
    let merger = Lease { holder: row.try_get("merger")?, until: moment(row.try_get("merger_until")?) };
    Ok(BoardState {
        items: Vec::new(),
        paused_until: moment(row.try_get("paused_until")?),
        merger,
        merger_epoch: moment(row.try_get("merger_epoch")?),
    })
}

/// A count or moment as the database has it. It has no numbers without a sign: the last moment of all is its last number.
pub(crate) fn number(moment: Moment) -> i64 {
    i64::try_from(moment).unwrap_or(i64::MAX)
}

/// A count or moment of the database.
pub(crate) fn moment(number: i64) -> Moment {
    u64::try_from(number).unwrap_or_default()
}

/// A place on the board as the database has it; none of those that it cannot hold is on any board.
pub(crate) fn small(place: usize) -> i32 {
    i32::try_from(place).unwrap_or(i32::MAX)
}

fn place(number: i32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_plan_is_a_board_in_which_the_rest_is_merged() {
        let item = |needs: &[usize]| BoardItem { needs: needs.to_vec(), ..BoardItem::default() };
        let part =
            Part::new(BoardState::default(), vec![(2, item(&[1])), (5, item(&[2, 9])), (7, item(&[5]))]);
        let needs: Vec<&[usize]> = part.board.items.iter().map(|item| item.needs.as_slice()).collect();
        assert_eq!(needs, [&[usize::MAX][..], &[0, usize::MAX], &[1]]);
        assert_eq!((part.place_of(5), part.place_of(1)), (1, usize::MAX));
    }

    #[test]
    fn what_the_database_cannot_hold_is_its_last_number() {
        assert_eq!((number(7), number(u64::MAX), small(usize::MAX)), (7, i64::MAX, i32::MAX));
        assert_eq!((moment(-1), moment(7), place(7)), (0, 7, 7));
    }
}
