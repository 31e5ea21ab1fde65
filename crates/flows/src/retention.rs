//! Lists a project's records with their sizes, and prunes or compresses them (`policy::prune`). The journal,
//! the working memory, the settings and the plan are always kept.

use crate::handoffs::update_read_states_and_list_unopened;
use plimsoll_domain::handoff::HandoffMetadata;
use plimsoll_domain::{RunId, RunState, SessionId, SessionRecord, Settings};
use plimsoll_launcher::process::{self, ProcessIdentity};
use plimsoll_policy::prune::{
    PrunableRecord, PrunePlan, RecordKind, RetentionLimits, RetentionReason, plan_pruning,
};
use plimsoll_store::records::{self, SizeAndAge};
use plimsoll_store::{Project, StoreError, TurnLog, disk, ledger, sessions, state_file};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;
/// The limit that `status` and `doctor` suggest.
pub const OLDER_THAN_30_DAYS: RetentionLimits =
    RetentionLimits { max_age_seconds: Some(30 * SECONDS_PER_DAY), max_bytes: None };
/// A short timeout is enough: a session that holds its lock is active and is not pruned anyway.
const LOCK_TIMEOUT: Duration = Duration::from_millis(100);

/// The records of a project.
#[derive(Debug, Clone, Default)]
pub struct ProjectRecords {
    /// Records of the kinds that can be pruned, including those that are kept for a reason.
    pub prunable: Vec<PrunableRecord>,
    /// Bytes of the other records: journal, memory, drafts.
    pub other_bytes: u64,
}

impl ProjectRecords {
    pub fn total_bytes(&self) -> u64 {
        self.prunable.iter().fold(self.other_bytes, |sum, record| sum.saturating_add(record.bytes))
    }

    /// Returns which records these limits would remove.
    pub fn plan_pruning(&self, limits: RetentionLimits) -> PrunePlan {
        plan_pruning(&self.prunable, self.other_bytes, limits)
    }
}

/// Lists all records, each with the reason to keep it, if any. Fails if a run's state cannot be read, because
/// the state determines which records the run needs.
pub fn list_records_with_reasons_to_keep(project: &Project) -> Result<ProjectRecords, StoreError> {
    let retention_context = RetentionContext {
        project,
        open_runs: load_open_runs(project)?,
        unopened_handoffs: update_read_states_and_list_unopened(project),
    };
    let (mut prunable, mut handoffs_of_kept_sessions) = (Vec::new(), BTreeSet::new());
    for id in records::sessions_with_record_or_turn_log(project) {
        let record = load_record_here_or_in_earlier_location(project, &id);
        let record_size = records::session_size_and_age(project, &id);
        let retention_reason = retention_context.reason_to_keep_session(&record, record_size.age_seconds);
        if retention_reason.is_some() {
            handoffs_of_kept_sessions
                .extend(record.checkpoint_progress.last_handoff.as_deref().map(file_name));
        }
        prunable.push(new_prunable_record(
            record_size,
            RecordKind::Session,
            id.to_string(),
            retention_reason,
        ));
    }
    for name in records::handoff_names(project) {
        let record_size = records::handoff_size_and_age(project, &name);
        let retention_reason =
            retention_context.reason_to_keep_unread_or_used_handoff(&name, &handoffs_of_kept_sessions);
        prunable.push(new_prunable_record(record_size, RecordKind::Handoff, name, retention_reason));
    }
    for id in records::runs_with_output_or_cache(project) {
        let record_size = records::run_size_and_age(project, &id);
        let retention_reason = retention_context
            .open_runs
            .iter()
            .any(|run| run.run_id == id)
            .then_some(RetentionReason::UsedByOpenRun);
        prunable.push(new_prunable_record(
            record_size,
            RecordKind::RunOutput,
            id.to_string(),
            retention_reason,
        ));
    }
    let prunable_bytes = prunable.iter().fold(0_u64, |sum, record| sum.saturating_add(record.bytes));
    Ok(ProjectRecords {
        other_bytes: records::total_plimsoll_bytes(project).saturating_sub(prunable_bytes),
        prunable,
    })
}

/// Loads the runs that have not ended from the project's state and from the ledger, which an agent's
/// `git clean` does not delete.
fn load_open_runs(project: &Project) -> Result<Vec<RunState>, StoreError> {
    let mut runs: Vec<RunState> = state_file::load_state(project, None)?.into_iter().collect();
    for id in records::runs_with_output_or_cache(project) {
        if !runs.iter().any(|run| run.run_id == id) {
            runs.extend(ledger::load_ledger_state(project, &id)?);
        }
    }
    runs.retain(|run| !run.lifecycle.has_ended());
    Ok(runs)
}

/// Removes the records that exceed the limits. Returns all records, and the plan with those that were removed.
/// A session that has become active is kept.
pub fn prune_records(
    project: &Project,
    limits: RetentionLimits,
) -> Result<(ProjectRecords, PrunePlan), StoreError> {
    let records = list_records_with_reasons_to_keep(project)?;
    let mut plan = records.plan_pruning(limits);
    let mut removed_indexes = Vec::new();
    for index in std::mem::take(&mut plan.removed_indexes) {
        let record = &records.prunable[index];
        let was_removed = match record.kind {
            RecordKind::Session => {
                remove_session_if_closed_and_unlocked(project, &SessionId::from(record.name.as_str()))?
            }
            RecordKind::Handoff => {
                records::remove_handoff_and_index_entry(project, &record.name).map(|()| true)?
            }
            RecordKind::RunOutput => {
                records::remove_run_output_and_cache(project, &RunId::from(record.name.as_str()))
                    .map(|()| true)?
            }
        };
        if was_removed {
            removed_indexes.push(index);
        } else {
            plan.freed_bytes -= record.bytes;
            plan.remaining_bytes += record.bytes;
        }
    }
    Ok((records, PrunePlan { removed_indexes, ..plan }))
}

/// Prunes records and compresses logs according to the user's settings. Does nothing if they keep everything.
pub fn prune_and_compress_by_settings(project: &Project, settings: &Settings) -> Result<(), StoreError> {
    if settings.keep.keeps_everything() {
        return Ok(());
    }
    let (records, _) = prune_records(project, limits_from_settings(settings))?;
    if settings.keep.compress {
        // Errors are ignored here: the log is kept, and `plimsoll prune` reports the reason.
        compress_logs_of_closed_sessions(project, &records, CompressionLimits::FOR_HOOK);
    }
    Ok(())
}

pub fn limits_from_settings(settings: &Settings) -> RetentionLimits {
    RetentionLimits {
        max_age_seconds: settings.keep.days.map(|days| days.saturating_mul(SECONDS_PER_DAY)),
        max_bytes: settings.keep.megabytes.map(|megabytes| megabytes.saturating_mul(1_000_000)),
    }
}

/// Limits for one call of [`compress_logs_of_closed_sessions`].
#[derive(Debug, Clone, Copy)]
pub struct CompressionLimits {
    /// Larger logs are skipped.
    max_log_bytes: u64,
    /// No further log is compressed after this time.
    time_limit: Duration,
}

impl CompressionLimits {
    /// No limits, for a command whose result the user waits for.
    pub const FOR_COMMAND: CompressionLimits =
        CompressionLimits { max_log_bytes: u64::MAX, time_limit: Duration::MAX };
    /// The client kills a SessionEnd hook after 1.5 s, unless its entry sets a longer timeout. The remaining
    /// logs are compressed the next time.
    pub const FOR_HOOK: CompressionLimits =
        CompressionLimits { max_log_bytes: 32 * 1024 * 1024, time_limit: Duration::from_millis(300) };
}

/// The result of compressing logs.
#[derive(Debug, Default)]
pub struct CompressionResult {
    pub log_count: usize,
    /// Bytes saved by the compression.
    pub saved_bytes: u64,
    /// The sessions whose logs could not be compressed, with the error. Their logs are unchanged.
    pub errors: Vec<(SessionId, StoreError)>,
}

/// Compresses the turn logs of sessions that have ended and that no open run needs. Skips logs that are too
/// large or are being written, and stops at the time limit.
pub fn compress_logs_of_closed_sessions(
    project: &Project,
    records: &ProjectRecords,
    limits: CompressionLimits,
) -> CompressionResult {
    let mut result = CompressionResult::default();
    let started_at = Instant::now();
    let is_within_size_limit =
        |log: &TurnLog| disk::file_size(&log.path()).is_some_and(|size| size <= limits.max_log_bytes);
    for log in uncompressed_logs_of_closed_sessions(project, records).into_iter().filter(is_within_size_limit)
    {
        if started_at.elapsed() > limits.time_limit {
            break;
        }
        // The session's lock is not taken, because a hook would have to wait for it. A session that resumes
        // during this call decompresses its log.
        if may_session_be_open(
            &load_record_here_or_in_earlier_location(project, log.session_id()),
            Some(SECONDS_PER_DAY),
        ) {
            continue;
        }
        match log.compress_log_and_blobs(LOCK_TIMEOUT) {
            Ok(saved_bytes) => {
                result.saved_bytes += saved_bytes;
                result.log_count += usize::from(log.is_compressed());
            }
            Err(StoreError::Locked { .. }) => {}
            Err(error) => result.errors.push((log.session_id().to_owned(), error)),
        }
    }
    result
}

/// Returns the uncompressed turn logs of sessions that are not needed any more.
pub fn uncompressed_logs_of_closed_sessions(project: &Project, records: &ProjectRecords) -> Vec<TurnLog> {
    let closed_sessions = records
        .prunable
        .iter()
        .filter(|record| record.kind == RecordKind::Session && record.retention_reason.is_none());
    let logs = closed_sessions.filter_map(|record| {
        TurnLog::for_session_where_started_or_current(project, &SessionId::from(record.name.as_str()))
    });
    logs.filter(TurnLog::is_uncompressed).collect()
}

/// Removes a session's records under its lock. Returns false, without removing anything, if the session may be
/// open or a lock is taken.
fn remove_session_if_closed_and_unlocked(project: &Project, id: &SessionId) -> Result<bool, StoreError> {
    let session_lock = match sessions::lock_session_if_id_is_file_name(project, id, LOCK_TIMEOUT) {
        Err(StoreError::Locked { .. }) => return Ok(false),
        lock_result => lock_result?,
    };
    if may_session_be_open(&load_record_here_or_in_earlier_location(project, id), Some(SECONDS_PER_DAY)) {
        return Ok(false);
    }
    // The turn logs are locked as well, so that no turn is written during the removal.
    let lock_results = TurnLog::started_logs_of_session(project, id)
        .iter()
        .map(|log| log.acquire_lock(LOCK_TIMEOUT))
        .collect::<Result<Vec<_>, _>>();
    let log_locks = match lock_results {
        Err(StoreError::Locked { .. }) => return Ok(false),
        lock_results => lock_results?,
    };
    let removed = records::remove_session_files(project, id);
    drop((session_lock, log_locks));
    removed.map(|()| true)
}

/// Loads a session's record. If it is missing, loads the one from the earlier external folder, which was used
/// before the project had Plimsoll files.
fn load_record_here_or_in_earlier_location(project: &Project, id: &SessionId) -> SessionRecord {
    let has_record =
        |project: &Project| project.session_record_path(id).is_some_and(|path| disk::exists(&path));
    if has_record(project) {
        return sessions::load_session_record(project, id);
    }
    let earlier_project = project.earlier_external_project().filter(has_record);
    sessions::load_session_record(earlier_project.as_ref().unwrap_or(project), id)
}

struct RetentionContext<'a> {
    project: &'a Project,
    open_runs: Vec<RunState>,
    /// Handoffs that no session has opened.
    unopened_handoffs: Vec<String>,
}

impl RetentionContext<'_> {
    fn reason_to_keep_session(
        &self,
        record: &SessionRecord,
        age_seconds: Option<u64>,
    ) -> Option<RetentionReason> {
        let belongs_to_run = |run: &RunState| {
            record.start.run_id.as_ref() == Some(&run.run_id)
                || run.session_id.as_ref() == Some(&record.session_id)
        };
        if self.open_runs.iter().any(belongs_to_run) {
            return Some(RetentionReason::UsedByOpenRun);
        }
        may_session_be_open(record, age_seconds).then_some(RetentionReason::SessionOpen)
    }

    fn reason_to_keep_unread_or_used_handoff(
        &self,
        name: &str,
        handoffs_of_kept_sessions: &BTreeSet<String>,
    ) -> Option<RetentionReason> {
        let path = self.project.handoffs_folder().join(name);
        let belongs_to_open_run = || {
            let text = disk::read_text(&path).ok().flatten().unwrap_or_default();
            let run_line = HandoffMetadata::parse(&text).run;
            run_line.is_some_and(|run_line| {
                self.open_runs.iter().any(|run| run_line.contains(run.run_id.as_str()))
            })
        };
        match () {
            () if self.unopened_handoffs.iter().any(|unopened| unopened == name) => {
                Some(RetentionReason::Unread)
            }
            () if handoffs_of_kept_sessions.contains(name) => Some(RetentionReason::SessionOpen),
            () if !self.open_runs.is_empty() && belongs_to_open_run() => Some(RetentionReason::UsedByOpenRun),
            () => None,
        }
    }
}

/// Returns true if a session has not recorded its end and its client process may still be alive. If the process
/// is unknown or the record is lost, the session counts as open for a day after its last write.
fn may_session_be_open(record: &SessionRecord, age_seconds: Option<u64>) -> bool {
    if record.end.ended_at.is_some() {
        return false;
    }
    match record.start.client {
        Some(client) => !process::liveness_of_process(ProcessIdentity {
            pid: client.pid,
            start_time: client.started_at_ticks,
        })
        .has_ended(),
        None => age_seconds.is_none_or(|age_seconds| age_seconds < SECONDS_PER_DAY),
    }
}

fn new_prunable_record(
    record_size: SizeAndAge,
    kind: RecordKind,
    name: String,
    retention_reason: Option<RetentionReason>,
) -> PrunableRecord {
    // A record of unknown age counts as new.
    PrunableRecord {
        kind,
        name,
        bytes: record_size.bytes,
        age_seconds: record_size.age_seconds.unwrap_or(0),
        retention_reason,
    }
}

fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}
