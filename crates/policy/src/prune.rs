//! Which records may go when the user asks for it: by age, then by size, the oldest first. Nothing that is still needed goes,
//! whatever its age.

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// A session: its turn log with the large pieces, and its record.
    Session,
    /// A handoff.
    Handoff,
    /// The captured output of a run, with its report.
    RunOutput,
}

/// Why a record stays, whatever its age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// A run that is not over uses it.
    ByRun,
    /// Its session is still open.
    BySession,
    /// No session has read it.
    Unread,
}

/// One record that goes or stays as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRecord {
    /// What it is.
    pub kind: RecordKind,
    /// The session's or run's id, or the handoff's file name.
    pub name: String,
    /// What it takes on the disk.
    pub bytes: u64,
    /// Seconds since it was written last.
    pub age: u64,
    /// Why it stays, if it must.
    pub needed: Option<Needed>,
}

/// What the user wants to keep. Without either nothing goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    /// What is older goes, in seconds.
    pub older_than: Option<u64>,
    /// The oldest go until no more than this is left, in bytes.
    pub max_bytes: Option<u64>,
}

/// What goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruning {
    /// Places in the list, the oldest first.
    pub going: Vec<usize>,
    /// Bytes that become free.
    pub freed: u64,
    /// Bytes that are left, with what is never pruned.
    pub left: u64,
    /// True if more is left than the bound allows: what is needed takes that much.
    pub is_over: bool,
}

/// Decides; `unpruned` is what the journal, the memory and the like take, which always stay.
pub fn prune(records: &[KeptRecord], unpruned: u64, bounds: Bounds) -> Pruning {
    let mut by_age: Vec<usize> = (0..records.len()).filter(|at| records[*at].needed.is_none()).collect();
    by_age.sort_by_key(|at| std::cmp::Reverse(records[*at].age));
    let mut pruning = Pruning {
        left: records.iter().fold(unpruned, |sum, record| sum.saturating_add(record.bytes)),
        ..Pruning::default()
    };
    for at in by_age {
        let record = &records[at];
        let is_old = bounds.older_than.is_some_and(|most| record.age > most);
        let is_too_much = bounds.max_bytes.is_some_and(|most| pruning.left > most);
        if is_old || is_too_much {
            pruning.going.push(at);
            pruning.freed += record.bytes;
            pruning.left = pruning.left.saturating_sub(record.bytes);
        }
    }
    pruning.is_over = bounds.max_bytes.is_some_and(|most| pruning.left > most);
    pruning
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str, bytes: u64, age: u64, needed: Option<Needed>) -> KeptRecord {
        KeptRecord { kind: RecordKind::Session, name: name.to_owned(), bytes, age, needed }
    }

    #[test]
    fn the_oldest_go_first_and_nothing_that_is_needed() {
        let records = [
            record("new", 10, 5, None),
            record("old", 30, 90, None),
            record("older", 20, 100, None),
            record("unread", 40, 200, Some(Needed::Unread)),
            record("run", 50, 300, Some(Needed::ByRun)),
            record("open", 60, 400, Some(Needed::BySession)),
        ];
        let bounds = |older_than: Option<u64>, max_bytes: Option<u64>| Bounds { older_than, max_bytes };
        for (bounds, going, left, is_over) in [
            (bounds(None, None), &[][..], 217, false),
            (bounds(Some(95), None), &["older"], 197, false),
            (bounds(Some(90), None), &["older"], 197, false),
            (bounds(Some(0), None), &["older", "old", "new"], 157, false),
            (bounds(None, Some(217)), &[], 217, false),
            (bounds(None, Some(216)), &["older"], 197, false),
            (bounds(None, Some(180)), &["older", "old"], 167, false),
            (bounds(None, Some(1)), &["older", "old", "new"], 157, true),
            // Age first: what it frees counts for the size.
            (bounds(Some(95), Some(197)), &["older"], 197, false),
        ] {
            let found = prune(&records, 7, bounds);
            let names: Vec<&str> = found.going.iter().map(|at| records[*at].name.as_str()).collect();
            assert_eq!((names.as_slice(), found.left, found.is_over), (going, left, is_over), "{bounds:?}");
            assert_eq!(found.freed + found.left, 217, "{bounds:?}");
        }
    }
}
