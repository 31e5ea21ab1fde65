//! A session's record as its file has it: all fields side by side, in this order.

use super::{
    Announced, CheckpointProgress, Claim, ClientProcess, ClientSettings, Commits, Continuation, EndEvidence,
    FailureEvidence, SessionRecord, StartFacts, StopEvidence, UsageSeen, WriterWaits,
};
use crate::format::Format;
use crate::ids::{RunId, SessionId};
use crate::level::Level;
use crate::reading::Reading;
use crate::time::Timestamp;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

/// The file's fields, to be read; what they hold is said where [`SessionRecord`] has them.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct StoredRecord {
    // To read it refuses a newer one.
    format: Format,
    session_id: SessionId,
    run_id: Option<RunId>,
    iteration: Option<u32>,
    transcript_path: Option<String>,
    client: Option<ClientProcess>,
    started_at: Option<Timestamp>,
    head_at_start: Option<String>,
    client_settings: Option<ClientSettings>,
    reading: Option<Reading>,
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
    commits: Commits,
    claim: Option<Claim>,
    handoff: Option<String>,
    cancelled: bool,
    ended_by_us: Option<String>,
    stop: Option<StopEvidence>,
    failure: Option<FailureEvidence>,
    continuation: Option<Continuation>,
    waits: u32,
    waited_ms: u64,
    ended_at: Option<Timestamp>,
    end_reason: Option<String>,
}

impl From<StoredRecord> for SessionRecord {
    fn from(stored: StoredRecord) -> SessionRecord {
        SessionRecord {
            session_id: stored.session_id,
            unreadable: false,
            start: StartFacts {
                run_id: stored.run_id,
                iteration: stored.iteration,
                transcript_path: stored.transcript_path,
                client: stored.client,
                started_at: stored.started_at,
                head_at_start: stored.head_at_start,
                client_settings: stored.client_settings,
            },
            usage: UsageSeen {
                reading: stored.reading,
                percent: stored.percent,
                percent_used: stored.percent_used,
                peak_percent: stored.peak_percent,
                largest_step: stored.largest_step,
            },
            announced: Announced { level: stored.announced, percent: stored.announced_percent },
            compactions: stored.compactions,
            checkpoint: CheckpointProgress {
                tokens: stored.checkpoint_tokens,
                batches_since: stored.batches_since_checkpoint,
                counted_message: stored.counted_message,
                claim: stored.claim,
                handoff: stored.handoff,
            },
            commits: stored.commits,
            continuation: stored.continuation,
            waits: WriterWaits { count: stored.waits, total_ms: stored.waited_ms },
            end: EndEvidence {
                cancelled: stored.cancelled,
                ended_by_us: stored.ended_by_us,
                stop: stored.stop,
                failure: stored.failure,
                ended_at: stored.ended_at,
                end_reason: stored.end_reason,
            },
        }
    }
}

/// Written field by field: to move them into a struct as the file has it, the record would have to be cloned.
impl Serialize for SessionRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let SessionRecord { start, usage, announced, checkpoint, waits, end, .. } = self;
        let mut fields = Fields(serializer.serialize_map(None)?);
        fields.put("format", &Format)?;
        fields.put("session_id", &self.session_id)?;
        fields.put_some("run_id", &start.run_id)?;
        fields.put_some("iteration", &start.iteration)?;
        fields.put_some("transcript_path", &start.transcript_path)?;
        fields.put_some("client", &start.client)?;
        fields.put_some("started_at", &start.started_at)?;
        fields.put_some("head_at_start", &start.head_at_start)?;
        fields.put_some("client_settings", &start.client_settings)?;
        fields.put_some("reading", &usage.reading)?;
        fields.put_some("percent", &usage.percent)?;
        fields.put_some("percent_used", &usage.percent_used)?;
        fields.put("peak_percent", &usage.peak_percent)?;
        fields.put_unless_default("largest_step", &usage.largest_step)?;
        fields.put_unless_default("announced", &announced.level)?;
        fields.put_some("announced_percent", &announced.percent)?;
        fields.put_unless_default("compactions", &self.compactions)?;
        fields.put_unless_default("checkpoint_tokens", &checkpoint.tokens)?;
        fields.put_unless_default("batches_since_checkpoint", &checkpoint.batches_since)?;
        fields.put_some("counted_message", &checkpoint.counted_message)?;
        fields.put_unless_default("commits", &self.commits)?;
        fields.put_some("claim", &checkpoint.claim)?;
        fields.put_some("handoff", &checkpoint.handoff)?;
        fields.put_unless_default("cancelled", &end.cancelled)?;
        fields.put_some("ended_by_us", &end.ended_by_us)?;
        fields.put_some("stop", &end.stop)?;
        fields.put_some("failure", &end.failure)?;
        fields.put_some("continuation", &self.continuation)?;
        fields.put("waits", &waits.count)?;
        fields.put("waited_ms", &waits.total_ms)?;
        fields.put_some("ended_at", &end.ended_at)?;
        fields.put_some("end_reason", &end.end_reason)?;
        fields.0.end()
    }
}

/// The fields of a file that is being written.
struct Fields<M>(M);

impl<M: SerializeMap> Fields<M> {
    fn put(&mut self, name: &str, value: &impl Serialize) -> Result<(), M::Error> {
        self.0.serialize_entry(name, value)
    }

    fn put_some(&mut self, name: &str, value: &Option<impl Serialize>) -> Result<(), M::Error> {
        value.as_ref().map_or(Ok(()), |value| self.put(name, value))
    }

    fn put_unless_default<T: Serialize + Default + PartialEq>(
        &mut self,
        name: &str,
        value: &T,
    ) -> Result<(), M::Error> {
        if *value == T::default() { Ok(()) } else { self.put(name, value) }
    }
}
