//! The size of a project's records, and which of them are removed at the user's request (`policy::prune`).
//! The journal, the working memory, settings and the plan always stay.

use crate::handoffs::unopened_handoff_names;
use plimsoll_domain::handoff::HandoffSummary;
use plimsoll_domain::{RunId, RunState, SessionId, SessionRecord, Settings};
use plimsoll_launcher::process::{self, ProcessIdentity};
use plimsoll_policy::prune::{
    PrunableRecord, PrunePlan, RecordKind, RetentionLimits, RetentionReason, plan_pruning,
};
use plimsoll_store::records::{self, RecordSize};
use plimsoll_store::{Project, StoreError, TurnLog, disk, ledger, sessions, state_file};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;
/// The limit that `status` and the doctor propose.
pub const OLDER_THAN_30_DAYS: RetentionLimits =
    RetentionLimits { max_age_seconds: Some(30 * SECONDS_PER_DAY), max_bytes: None };
/// A session that is writing its record is not pruned, so there is no point in waiting longer.
const LOCK_TIMEOUT: Duration = Duration::from_millis(100);

/// The records of a project.
#[derive(Debug, Clone, Default)]
pub struct ProjectRecords {
    /// Records that may be removed.
    pub prunable: Vec<PrunableRecord>,
    /// Bytes of the other records: journal, memory, drafts.
    pub other_bytes: u64,
}

impl ProjectRecords {
    pub fn total_bytes(&self) -> u64 {
        self.prunable.iter().fold(self.other_bytes, |sum, record| sum.saturating_add(record.bytes))
    }

    /// Returns what these limits would remove.
    pub fn plan_pruning(&self, limits: RetentionLimits) -> PrunePlan {
        plan_pruning(&self.prunable, self.other_bytes, limits)
    }
}

/// Lists all records. Fails if a run's state cannot be read, because it says which records the run needs.
pub fn list_records(project: &Project) -> Result<ProjectRecords, StoreError> {
    let needs = RecordNeeds {
        project,
        open_runs: open_runs(project)?,
        unopened_handoffs: unopened_handoff_names(project),
    };
    let (mut prunable, mut handoffs_of_open_sessions) = (Vec::new(), BTreeSet::new());
    for id in records::sessions_with_files(project) {
        let record = load_current_or_earlier_record(project, &id);
        let record_size = records::session_size(project, &id);
        let retention_reason = needs.reason_to_keep_session(&record, record_size.age_seconds);
        if retention_reason.is_some() {
            handoffs_of_open_sessions
                .extend(record.checkpoint_progress.last_handoff.as_deref().map(file_name));
        }
        prunable.push(prunable_record(record_size, RecordKind::Session, id.to_string(), retention_reason));
    }
    for name in records::handoff_names(project) {
        let record_size = records::handoff_size(project, &name);
        let retention_reason = needs.reason_to_keep_handoff(&name, &handoffs_of_open_sessions);
        prunable.push(prunable_record(record_size, RecordKind::Handoff, name, retention_reason));
    }
    for id in records::runs_with_output_or_cache(project) {
        let record_size = records::run_size(project, &id);
        let retention_reason =
            needs.open_runs.iter().any(|run| run.run_id == id).then_some(RetentionReason::UsedByOpenRun);
        prunable.push(prunable_record(record_size, RecordKind::RunOutput, id.to_string(), retention_reason));
    }
    let prunable_bytes = prunable.iter().fold(0_u64, |sum, record| sum.saturating_add(record.bytes));
    Ok(ProjectRecords {
        other_bytes: records::project_bytes(project).saturating_sub(prunable_bytes),
        prunable,
    })
}

/// Returns the runs that have not ended, from the project's state and from the ledger, which an agent's
/// `git clean` does not delete.
fn open_runs(project: &Project) -> Result<Vec<RunState>, StoreError> {
    let mut runs: Vec<RunState> = state_file::load_state(project, None)?.into_iter().collect();
    for id in records::runs_with_output_or_cache(project) {
        if !runs.iter().any(|run| run.run_id == id) {
            runs.extend(ledger::load_ledger_state(project, &id)?);
        }
    }
    runs.retain(|run| !run.lifecycle.is_over());
    Ok(runs)
}

/// Removes the records beyond the limits. Returns all records and what was removed. A session that is active
/// again is kept.
pub fn prune_records(
    project: &Project,
    limits: RetentionLimits,
) -> Result<(ProjectRecords, PrunePlan), StoreError> {
    let records = list_records(project)?;
    let mut plan = records.plan_pruning(limits);
    let mut removed_indexes = Vec::new();
    for index in std::mem::take(&mut plan.removed_indexes) {
        let record = &records.prunable[index];
        let was_removed = match record.kind {
            RecordKind::Session => remove_closed_session(project, &SessionId::from(record.name.as_str()))?,
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

/// Prunes records and compresses logs as the user's settings say. Does nothing if they keep everything.
pub fn prune_and_compress_by_settings(project: &Project, settings: &Settings) -> Result<(), StoreError> {
    if settings.keep.keeps_everything() {
        return Ok(());
    }
    let (records, _) = prune_records(project, limits_from_settings(settings))?;
    if settings.keep.compress {
        // A log that cannot be compressed stays, and `plimsoll prune` reports the reason.
        compress_closed_logs(project, &records, CompressionLimits::HOOK);
    }
    Ok(())
}

pub fn limits_from_settings(settings: &Settings) -> RetentionLimits {
    RetentionLimits {
        max_age_seconds: settings.keep.days.map(|days| days.saturating_mul(SECONDS_PER_DAY)),
        max_bytes: settings.keep.megabytes.map(|megabytes| megabytes.saturating_mul(1_000_000)),
    }
}

/// Limits for compressing logs in one call.
#[derive(Debug, Clone, Copy)]
pub struct CompressionLimits {
    /// Larger logs are skipped.
    max_log_bytes: u64,
    /// No log is started after this time.
    time_limit: Duration,
}

impl CompressionLimits {
    /// No limits: the user is waiting for the result.
    pub const COMMAND: CompressionLimits =
        CompressionLimits { max_log_bytes: u64::MAX, time_limit: Duration::MAX };
    /// The client ends a SessionEnd hook after 1.5 s, unless its entry sets a longer timeout. The rest is
    /// compressed the next time.
    pub const HOOK: CompressionLimits =
        CompressionLimits { max_log_bytes: 32 * 1024 * 1024, time_limit: Duration::from_millis(300) };
}

/// The result of compressing logs.
#[derive(Debug, Default)]
pub struct CompressionResult {
    pub log_count: usize,
    /// Bytes that this saved.
    pub saved_bytes: u64,
    /// The logs that could not be compressed, and why; they are unchanged.
    pub errors: Vec<(SessionId, StoreError)>,
}

/// Compresses the turn logs of sessions that have ended and are not needed any more. A log that is being
/// written is skipped.
pub fn compress_closed_logs(
    project: &Project,
    records: &ProjectRecords,
    limits: CompressionLimits,
) -> CompressionResult {
    let mut result = CompressionResult::default();
    let started_at = Instant::now();
    let is_within_size_limit =
        |log: &TurnLog| disk::file_size(&log.path()).is_some_and(|size| size <= limits.max_log_bytes);
    for log in compressible_logs(project, records).into_iter().filter(is_within_size_limit) {
        if started_at.elapsed() > limits.time_limit {
            break;
        }
        // Without the session's lock, for which a hook waits. A session that resumes meanwhile decompresses
        // its log.
        if may_be_open(&load_current_or_earlier_record(project, log.session_id()), Some(SECONDS_PER_DAY)) {
            continue;
        }
        match log.compress_log(LOCK_TIMEOUT) {
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

/// Returns the turn logs that may be compressed and are not yet.
pub fn compressible_logs(project: &Project, records: &ProjectRecords) -> Vec<TurnLog> {
    let closed_sessions = records
        .prunable
        .iter()
        .filter(|record| record.kind == RecordKind::Session && record.retention_reason.is_none());
    let logs = closed_sessions
        .filter_map(|record| TurnLog::for_session(project, &SessionId::from(record.name.as_str())));
    logs.filter(TurnLog::is_uncompressed).collect()
}

/// Removes a session's records under its lock. Returns false if it may be open or its lock is taken.
fn remove_closed_session(project: &Project, id: &SessionId) -> Result<bool, StoreError> {
    let lock = match sessions::lock_session(project, id, LOCK_TIMEOUT) {
        Err(StoreError::Locked { .. }) => return Ok(false),
        lock => lock?,
    };
    if may_be_open(&load_current_or_earlier_record(project, id), Some(SECONDS_PER_DAY)) {
        return Ok(false);
    }
    // The turn logs are locked as well, so that no turn is being written.
    let logs = TurnLog::started_logs_of_session(project, id)
        .iter()
        .map(|log| log.acquire_lock(LOCK_TIMEOUT))
        .collect::<Result<Vec<_>, _>>();
    let logs = match logs {
        Err(StoreError::Locked { .. }) => return Ok(false),
        logs => logs?,
    };
    let removed = records::remove_session_files(project, id);
    drop((lock, logs));
    removed.map(|()| true)
}

/// Loads a session's record; if it is missing, the one from before the project had files of ours.
fn load_current_or_earlier_record(project: &Project, id: &SessionId) -> SessionRecord {
    let has_record =
        |project: &Project| project.session_record_path(id).is_some_and(|path| disk::exists(&path));
    if has_record(project) {
        return sessions::load_session_record(project, id);
    }
    let earlier_project = project.earlier_external_project().filter(has_record);
    sessions::load_session_record(earlier_project.as_ref().unwrap_or(project), id)
}

struct RecordNeeds<'a> {
    project: &'a Project,
    open_runs: Vec<RunState>,
    /// Handoffs that no session has opened.
    unopened_handoffs: Vec<String>,
}

impl RecordNeeds<'_> {
    fn reason_to_keep_session(&self, record: &SessionRecord, age: Option<u64>) -> Option<RetentionReason> {
        let belongs_to_run = |run: &RunState| {
            record.start.run_id.as_ref() == Some(&run.run_id)
                || run.session_id.as_ref() == Some(&record.session_id)
        };
        if self.open_runs.iter().any(belongs_to_run) {
            return Some(RetentionReason::UsedByOpenRun);
        }
        may_be_open(record, age).then_some(RetentionReason::SessionOpen)
    }

    fn reason_to_keep_handoff(
        &self,
        name: &str,
        handoffs_of_open_sessions: &BTreeSet<String>,
    ) -> Option<RetentionReason> {
        let path = self.project.handoffs_folder().join(name);
        let belongs_to_open_run = || {
            let text = disk::read_text(&path).ok().flatten().unwrap_or_default();
            let run_text = HandoffSummary::parse(&text).run;
            run_text.is_some_and(|run_text| {
                self.open_runs.iter().any(|run| run_text.contains(run.run_id.as_str()))
            })
        };
        match () {
            () if self.unopened_handoffs.iter().any(|unopened| unopened == name) => {
                Some(RetentionReason::Unread)
            }
            () if handoffs_of_open_sessions.contains(name) => Some(RetentionReason::SessionOpen),
            () if !self.open_runs.is_empty() && belongs_to_open_run() => Some(RetentionReason::UsedByOpenRun),
            () => None,
        }
    }
}

/// Returns true while a session's client is, or may be, alive. A session that named no process, or whose
/// record is lost, counts as open for a day after its last write.
fn may_be_open(record: &SessionRecord, age: Option<u64>) -> bool {
    if record.end.ended_at.is_some() {
        return false;
    }
    match record.start.client {
        Some(client) => !process::liveness_of_process(ProcessIdentity {
            pid: client.pid,
            start_time: client.started_at_ticks,
        })
        .is_gone(),
        None => age.is_none_or(|age| age < SECONDS_PER_DAY),
    }
}

fn prunable_record(
    record_size: RecordSize,
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
