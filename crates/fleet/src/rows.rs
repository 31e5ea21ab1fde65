//! Converts rows of the database into items of a board.

use plimsoll_domain::board::{BoardItem, BoardMillis, BoardState, ItemStage, Lease, SetAsideReason};
use plimsoll_domain::git_names::{CommitId, InvalidCommitId};
use postgres::Row;
use postgres::types::{FromSql, Type};
use std::error::Error;

/// The columns that [`item_from_row`] reads.
pub(crate) const ITEM_COLUMNS: &str =
    "place, text, needs, areas, stage, epoch, tries, worker, lease_until, sha, aside, reason, note, landings";

/// An item with its index in the plan.
pub(crate) type IndexedItem = (usize, BoardItem);

/// A text column that is parsed when it is read, because anybody with write access to the database may have written it.
#[derive(Debug)]
pub(crate) struct ParsedColumn<T>(pub(crate) T);

impl<'a, T> FromSql<'a> for ParsedColumn<T>
where
    T: TryFrom<String>,
    T::Error: Into<Box<dyn Error + Sync + Send>>,
{
    fn from_sql(sql_type: &Type, bytes: &'a [u8]) -> Result<ParsedColumn<T>, Box<dyn Error + Sync + Send>> {
        T::try_from(String::from_sql(sql_type, bytes)?).map(ParsedColumn).map_err(Into::into)
    }

    fn accepts(sql_type: &Type) -> bool {
        <String as FromSql>::accepts(sql_type)
    }
}

/// A commit, or an empty text for the head of the target branch.
#[derive(Debug)]
pub(crate) struct CommitOrEmpty(String);

impl TryFrom<String> for CommitOrEmpty {
    type Error = InvalidCommitId;

    fn try_from(text: String) -> Result<CommitOrEmpty, InvalidCommitId> {
        if !text.is_empty() {
            CommitId::parse(&text)?;
        }
        Ok(CommitOrEmpty(text))
    }
}

/// Reads a column with a commit, empty text or null. Returns an empty text if there is no commit.
pub(crate) fn read_commit_or_empty(row: &Row, column: &str) -> Result<String, postgres::Error> {
    row.try_get::<_, Option<ParsedColumn<CommitOrEmpty>>>(column)
        .map(|column_value| column_value.map_or(String::new(), |parsed_commit| parsed_commit.0.0))
}

/// Reads a column with a commit.
pub(crate) fn read_commit(row: &Row, column: &str) -> Result<String, postgres::Error> {
    row.try_get::<_, ParsedColumn<CommitId>>(column).map(|parsed| parsed.0.into())
}

/// Reads a column with a list of commits.
pub(crate) fn read_commits(row: &Row, column: &str) -> Result<Vec<String>, postgres::Error> {
    let parsed_commits = row.try_get::<_, Vec<ParsedColumn<CommitId>>>(column)?;
    Ok(parsed_commits.into_iter().map(|commit| commit.0.into()).collect())
}

/// Converts a row into an item with its index in the plan.
pub(crate) fn item_from_row(row: &Row) -> Result<IndexedItem, postgres::Error> {
    let text_or_empty = |name: &str| row.try_get::<_, Option<String>>(name).map(Option::unwrap_or_default);
    let lease = Lease {
        holder: text_or_empty("worker")?,
        expires_at: from_i64_or_zero(row.try_get::<_, Option<i64>>("lease_until")?.unwrap_or_default()),
    };
    let stage = match text_or_empty("stage")?.as_str() {
        "open" => ItemStage::Open,
        "leased" => ItemStage::Leased { lease },
        "offered" => ItemStage::ReadyToMerge { commit: read_commit(row, "sha")? },
        "merged" => ItemStage::Merged,
        // The table allows no other value.
        _ => ItemStage::SetAside {
            reason: set_aside_reason_from_columns(&text_or_empty("aside")?, text_or_empty("reason")?),
        },
    };
    let raw_dependency_indices: Vec<i32> = row.try_get("needs")?;
    let board_item = BoardItem {
        text: text_or_empty("text")?,
        dependency_indices: raw_dependency_indices.into_iter().map(index_from_i32_or_max).collect(),
        stated_areas: row.try_get("areas")?,
        // Used only on the board of a single machine.
        conflict_files: Vec::new(),
        changed_files: Vec::new(),
        stage,
        epoch: from_i64_or_zero(row.try_get("epoch")?),
        failed_merge_count: u32::try_from(row.try_get::<_, i32>("tries")?).unwrap_or_default(),
        next_session_note: text_or_empty("note")?,
        attempted_merge_commits: read_commits(row, "landings")?,
    };
    Ok((index_from_i32_or_max(row.try_get("place")?), board_item))
}

fn set_aside_reason_from_columns(kind: &str, reason: String) -> SetAsideReason {
    match kind {
        "question" => SetAsideReason::Question(reason),
        "ended" => SetAsideReason::RunEnded(reason),
        _ => SetAsideReason::TooManyFailedMerges,
    }
}

/// Converts a plan's row into a board without items.
pub(crate) fn plan_state_from_row(row: &Row) -> Result<BoardState, postgres::Error> {
    let merger_lease =
        Lease { holder: row.try_get("merger")?, expires_at: from_i64_or_zero(row.try_get("merger_until")?) };
    Ok(BoardState {
        items: Vec::new(),
        paused_until: from_i64_or_zero(row.try_get("paused_until")?),
        merger_lease,
        merger_epoch: from_i64_or_zero(row.try_get("merger_epoch")?),
    })
}

/// Converts a count or timestamp for a `bigint` column. Values above `i64::MAX` become `i64::MAX`.
pub(crate) fn to_i64_saturating(value: BoardMillis) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Converts a `bigint` column into a count or timestamp. Negative values become 0.
pub(crate) fn from_i64_or_zero(number: i64) -> BoardMillis {
    u64::try_from(number).unwrap_or_default()
}

/// Converts an index for an `integer` column. An index that does not fit becomes `i32::MAX`, which no item has.
pub(crate) fn index_to_i32_saturating(index: usize) -> i32 {
    i32::try_from(index).unwrap_or(i32::MAX)
}

/// Converts an `integer` column into an index. A negative number becomes `usize::MAX`, which no item has.
pub(crate) fn index_from_i32_or_max(number: i32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_the_database_cannot_store_become_its_largest_number() {
        assert_eq!(
            (to_i64_saturating(7), to_i64_saturating(u64::MAX), index_to_i32_saturating(usize::MAX)),
            (7, i64::MAX, i32::MAX)
        );
        assert_eq!((from_i64_or_zero(-1), from_i64_or_zero(7), index_from_i32_or_max(7)), (0, 7, 7));
    }
}
