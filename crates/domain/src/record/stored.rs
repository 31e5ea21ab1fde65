//! The file format of a session's record: all fields on one level, in this order.

use super::{
    CheckpointClaim, CheckpointProgress, ClientCompactionSettings, ClientProcess, ContinuationNotice,
    FailureEvidence, LastUsage, LevelAnnouncement, SessionCommits, SessionEndEvidence, SessionRecord,
    StartFacts, StopEvidence, WriterWaits,
};
use crate::format::FormatVersion;
use crate::ids::{RunId, SessionId};
use crate::level::Level;
use crate::reading::UsageReading;
use crate::time::Timestamp;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

/// The fields of the file, for deserialization. They are documented in [`SessionRecord`].
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct StoredRecord {
    // Deserialization of this field fails for a newer format.
    format: FormatVersion,
    session_id: SessionId,
    run_id: Option<RunId>,
    iteration: Option<u32>,
    transcript_path: Option<String>,
    client: Option<ClientProcess>,
    started_at: Option<Timestamp>,
    head_at_start: Option<String>,
    client_settings: Option<ClientCompactionSettings>,
    reading: Option<UsageReading>,
    percent: Option<u64>,
    percent_used: Option<u64>,
    peak_percent: u64,
    largest_step: u64,
    announced: Level,
    announced_percent: Option<u64>,
    compactions: u32,
    checkpoint_tokens: u64,
    batches_since_checkpoint: u32,
    counted_message: Option<String>,
    commits: SessionCommits,
    claim: Option<CheckpointClaim>,
    handoff: Option<String>,
    handoff_continued: bool,
    cancelled: bool,
    ended_by_us: Option<String>,
    stop: Option<StopEvidence>,
    failure: Option<FailureEvidence>,
    continuation: Option<ContinuationNotice>,
    waits: u32,
    waited_ms: u64,
    ended_at: Option<Timestamp>,
    end_reason: Option<String>,
}

impl From<StoredRecord> for SessionRecord {
    fn from(stored: StoredRecord) -> SessionRecord {
        SessionRecord {
            session_id: stored.session_id,
            was_unreadable: false,
            start: StartFacts {
                run_id: stored.run_id,
                iteration: stored.iteration,
                transcript_path: stored.transcript_path,
                client: stored.client,
                started_at: stored.started_at,
                head_at_start: stored.head_at_start,
                client_compaction_settings: stored.client_settings,
            },
            usage: LastUsage {
                last_reading: stored.reading,
                projected_percent: stored.percent,
                percent_used_by_client: stored.percent_used,
                peak_projected_percent: stored.peak_percent,
                largest_step: stored.largest_step,
            },
            highest_announcement: LevelAnnouncement {
                level: stored.announced,
                projected_percent: stored.announced_percent,
            },
            compaction_count: stored.compactions,
            checkpoint_progress: CheckpointProgress {
                announced_at_tokens: stored.checkpoint_tokens,
                tool_batches_since: stored.batches_since_checkpoint,
                counted_message: stored.counted_message,
                open_claim: stored.claim,
                last_handoff: stored.handoff,
                is_handoff_continued: stored.handoff_continued,
            },
            own_commits: stored.commits,
            continuation: stored.continuation,
            writer_waits: WriterWaits { count: stored.waits, total_ms: stored.waited_ms },
            end: SessionEndEvidence {
                is_canceled: stored.cancelled,
                hook_end_reason: stored.ended_by_us,
                stop: stored.stop,
                failure: stored.failure,
                ended_at: stored.ended_at,
                client_end_reason: stored.end_reason,
            },
        }
    }
}

/// Writes the record field by field, because building a `StoredRecord` would require a clone of the record.
impl Serialize for SessionRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let SessionRecord {
            start,
            usage,
            highest_announcement: announcement,
            checkpoint_progress: progress,
            writer_waits: waits,
            end,
            ..
        } = self;
        let mut fields = FieldWriter(serializer.serialize_map(None)?);
        fields.write_field("format", &FormatVersion)?;
        fields.write_field("session_id", &self.session_id)?;
        fields.write_if_some("run_id", &start.run_id)?;
        fields.write_if_some("iteration", &start.iteration)?;
        fields.write_if_some("transcript_path", &start.transcript_path)?;
        fields.write_if_some("client", &start.client)?;
        fields.write_if_some("started_at", &start.started_at)?;
        fields.write_if_some("head_at_start", &start.head_at_start)?;
        fields.write_if_some("client_settings", &start.client_compaction_settings)?;
        fields.write_if_some("reading", &usage.last_reading)?;
        fields.write_if_some("percent", &usage.projected_percent)?;
        fields.write_if_some("percent_used", &usage.percent_used_by_client)?;
        fields.write_field("peak_percent", &usage.peak_projected_percent)?;
        fields.write_unless_default("largest_step", &usage.largest_step)?;
        fields.write_unless_default("announced", &announcement.level)?;
        fields.write_if_some("announced_percent", &announcement.projected_percent)?;
        fields.write_unless_default("compactions", &self.compaction_count)?;
        fields.write_unless_default("checkpoint_tokens", &progress.announced_at_tokens)?;
        fields.write_unless_default("batches_since_checkpoint", &progress.tool_batches_since)?;
        fields.write_if_some("counted_message", &progress.counted_message)?;
        fields.write_unless_default("commits", &self.own_commits)?;
        fields.write_if_some("claim", &progress.open_claim)?;
        fields.write_if_some("handoff", &progress.last_handoff)?;
        fields.write_unless_default("handoff_continued", &progress.is_handoff_continued)?;
        fields.write_unless_default("cancelled", &end.is_canceled)?;
        fields.write_if_some("ended_by_us", &end.hook_end_reason)?;
        fields.write_if_some("stop", &end.stop)?;
        fields.write_if_some("failure", &end.failure)?;
        fields.write_if_some("continuation", &self.continuation)?;
        fields.write_field("waits", &waits.count)?;
        fields.write_field("waited_ms", &waits.total_ms)?;
        fields.write_if_some("ended_at", &end.ended_at)?;
        fields.write_if_some("end_reason", &end.client_end_reason)?;
        fields.0.end()
    }
}

/// Writes the fields of a file.
struct FieldWriter<M>(M);

impl<M: SerializeMap> FieldWriter<M> {
    fn write_field(&mut self, name: &str, value: &impl Serialize) -> Result<(), M::Error> {
        self.0.serialize_entry(name, value)
    }

    fn write_if_some(&mut self, name: &str, value: &Option<impl Serialize>) -> Result<(), M::Error> {
        value.as_ref().map_or(Ok(()), |value| self.write_field(name, value))
    }

    fn write_unless_default<T: Serialize + Default + PartialEq>(
        &mut self,
        name: &str,
        value: &T,
    ) -> Result<(), M::Error> {
        if *value == T::default() { Ok(()) } else { self.write_field(name, value) }
    }
}
