//! Decides which records to remove when the user asks for it: first by age, then by size, the oldest first. Records that
//! are still needed are never removed.

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// A session: its turn log with the large pieces, and its record.
    Session,
    Handoff,
    /// The captured output of a run, with its report.
    RunOutput,
}

/// Why a record must be kept, whatever its age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetentionReason {
    /// A run that has not ended uses it.
    UsedByOpenRun,
    /// Its session is still open.
    SessionOpen,
    /// A handoff that no session has read.
    Unread,
}

/// A record that is removed or kept as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrunableRecord {
    pub kind: RecordKind,
    /// The session's or run's id, or the handoff's file name.
    pub name: String,
    /// Size on the disk.
    pub bytes: u64,
    /// Seconds since the last write.
    pub age_seconds: u64,
    /// Why the record must be kept; `None` if it can be removed.
    pub retention_reason: Option<RetentionReason>,
}

/// The limits that the user sets. Without any limit nothing is removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionLimits {
    /// Records that are older than this many seconds are removed.
    pub max_age_seconds: Option<u64>,
    /// The oldest records are removed until at most this many bytes are left.
    pub max_bytes: Option<u64>,
}

/// The records to remove, and the resulting sizes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrunePlan {
    /// Indexes of the records to remove, the oldest first.
    pub removed_indexes: Vec<usize>,
    /// Bytes that are freed.
    pub freed_bytes: u64,
    /// Bytes that are left, including those that are never pruned.
    pub remaining_bytes: u64,
    /// True if more is left than the limit allows, because the records are needed.
    pub is_over_limit: bool,
}

/// Decides which records to remove. `unprunable_bytes` is the size of files that are always kept, such as the journal and
/// the memory.
pub fn plan_pruning(records: &[PrunableRecord], unprunable_bytes: u64, limits: RetentionLimits) -> PrunePlan {
    let mut indexes_oldest_first: Vec<usize> =
        (0..records.len()).filter(|index| records[*index].retention_reason.is_none()).collect();
    indexes_oldest_first.sort_by_key(|index| std::cmp::Reverse(records[*index].age_seconds));
    let mut plan = PrunePlan {
        remaining_bytes: records
            .iter()
            .fold(unprunable_bytes, |sum, record| sum.saturating_add(record.bytes)),
        ..PrunePlan::default()
    };
    for index in indexes_oldest_first {
        let record = &records[index];
        let is_too_old = limits.max_age_seconds.is_some_and(|max_age| record.age_seconds > max_age);
        let is_over_size = limits.max_bytes.is_some_and(|max_bytes| plan.remaining_bytes > max_bytes);
        if is_too_old || is_over_size {
            plan.removed_indexes.push(index);
            plan.freed_bytes += record.bytes;
            plan.remaining_bytes = plan.remaining_bytes.saturating_sub(record.bytes);
        }
    }
    plan.is_over_limit = limits.max_bytes.is_some_and(|max_bytes| plan.remaining_bytes > max_bytes);
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(
        name: &str,
        bytes: u64,
        age_seconds: u64,
        retention_reason: Option<RetentionReason>,
    ) -> PrunableRecord {
        PrunableRecord {
            kind: RecordKind::Session,
            name: name.to_owned(),
            bytes,
            age_seconds,
            retention_reason,
        }
    }

    #[test]
    fn the_oldest_records_go_first_and_needed_ones_stay() {
        let records = [
            record("new", 10, 5, None),
            record("old", 30, 90, None),
            record("older", 20, 100, None),
            record("unread", 40, 200, Some(RetentionReason::Unread)),
            record("run", 50, 300, Some(RetentionReason::UsedByOpenRun)),
            record("open", 60, 400, Some(RetentionReason::SessionOpen)),
        ];
        let new_limits = |older_than: Option<u64>, max_bytes: Option<u64>| RetentionLimits {
            max_age_seconds: older_than,
            max_bytes,
        };
        for (limits, removed_names, remaining_bytes, is_over_limit) in [
            (new_limits(None, None), &[][..], 217, false),
            (new_limits(Some(95), None), &["older"], 197, false),
            (new_limits(Some(90), None), &["older"], 197, false),
            (new_limits(Some(0), None), &["older", "old", "new"], 157, false),
            (new_limits(None, Some(217)), &[], 217, false),
            (new_limits(None, Some(216)), &["older"], 197, false),
            (new_limits(None, Some(180)), &["older", "old"], 167, false),
            (new_limits(None, Some(1)), &["older", "old", "new"], 157, true),
            // Age comes first: the bytes that it frees count for the size.
            (new_limits(Some(95), Some(197)), &["older"], 197, false),
        ] {
            let plan = plan_pruning(&records, 7, limits);
            let names: Vec<&str> = plan.removed_indexes.iter().map(|at| records[*at].name.as_str()).collect();
            assert_eq!(
                (names.as_slice(), plan.remaining_bytes, plan.is_over_limit),
                (removed_names, remaining_bytes, is_over_limit),
                "{limits:?}"
            );
            assert_eq!(plan.freed_bytes + plan.remaining_bytes, 217, "{limits:?}");
        }
    }
}
