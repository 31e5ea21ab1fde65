//! Reads the transcript lines that are newer than the turn log, and records them in it.
//!
//! If the log is locked or cannot be written, no turn is lost and the session is not delayed: the transcript
//! still has the lines, and the next event continues from the same offset.

mod recorded_events;

use crate::hook_invocation::HookInvocation;
use plimsoll_domain::log_line::{MAIN_STREAM, RecordHeader, RecordKind};
use plimsoll_domain::record::SessionRecord;
use plimsoll_domain::turn::record::{EncodedMemory, encode_fields, encode_turn_and_memory};
use plimsoll_domain::{RunId, SessionId, Timestamp};
use plimsoll_policy::turns::{
    AssembledRecord, EndOfInput, MemoryLookup, TurnAssembler, TurnLogRecord, TurnMemory,
};
use plimsoll_protocol::event::HookEvent;
use plimsoll_protocol::transcript_content::{AgentMetadata, TranscriptLine};
use plimsoll_store::memory::{MemoryHead, PastMemory};
use plimsoll_store::turn_log::{
    ForwardLines, LineStart, LogHead, LogWriter, NewRecord, RecordedMemory, StreamPosition,
};
use plimsoll_store::{Durability, Project, StoreError, TurnLog, clock, disk};
use recorded_events::RecordedEntries;
use serde_json::{Map, Value, json};
use std::cell::OnceCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A hook delays its session, so it waits for the log's lock only for an unnoticeable time.
const HOOK_LOCK_TIMEOUT: Duration = Duration::from_millis(50);
/// A command of the user may wait longer for the lock.
const USER_LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// One transcript of a session.
#[derive(Debug, Clone)]
pub struct TranscriptSource {
    /// `main`, or the subagent's id.
    pub stream_name: String,
    pub path: PathBuf,
}

/// Metadata of a session that its transcript does not contain. It is written into every turn.
#[derive(Debug, Clone, Default)]
pub struct TurnMetadata {
    /// The run and the iteration, if the session belongs to a run.
    pub run_and_iteration: Option<(RunId, u32)>,
    /// The type of the subagent. The client's metadata file takes precedence.
    pub agent_type: Option<String>,
    /// The call that started the subagent.
    pub starting_call_id: Option<String>,
    /// The working memory whose content at that time is stored with each turn.
    pub memory_head: Option<MemoryHead>,
}

impl TranscriptSource {
    fn is_main(&self) -> bool {
        self.stream_name == MAIN_STREAM
    }

    /// Returns the session's main transcript as a source.
    pub fn for_session(transcript: &Path) -> TranscriptSource {
        TranscriptSource { stream_name: MAIN_STREAM.to_owned(), path: transcript.to_owned() }
    }

    /// Returns a subagent's transcript as a source.
    pub fn for_subagent(agent_id: &str, transcript: &Path) -> TranscriptSource {
        TranscriptSource { stream_name: agent_id.to_owned(), path: transcript.to_owned() }
    }

    /// Returns a session's main transcript and those of its subagents, which are in a folder beside it.
    pub fn all_of_session(transcript: &Path) -> Vec<TranscriptSource> {
        let folder = subagents_folder(transcript);
        let source_of_agent_file = |name: String| {
            let agent_id = name.strip_prefix("agent-")?.strip_suffix(".jsonl")?.to_owned();
            Some(TranscriptSource { path: folder.join(&name), stream_name: agent_id })
        };
        let agent_sources = disk::list_names(&folder).into_iter().filter_map(source_of_agent_file);
        std::iter::once(TranscriptSource::for_session(transcript)).chain(agent_sources).collect()
    }
}

/// Records the new turns after a hook event. Returns an error message if that failed. A log locked by another
/// process is not a failure: the next event continues.
pub fn capture_turns_after_hook_or_explain_failure(invocation: &HookInvocation) -> Option<String> {
    let turn_log =
        TurnLog::for_session_where_started_or_current(&invocation.project, &invocation.session_id)?;
    let transcript = invocation.transcript_path()?;
    let returned_call_ids: Vec<&str> = invocation
        .event()
        .tool_calls()
        .iter()
        .filter_map(|tool_call| tool_call.tool_use_id.as_deref())
        .collect();
    let (source, end_of_input) = match (&invocation.payload.agent_id, invocation.event()) {
        (Some(agent_id), HookEvent::SubagentStop(stop)) => {
            let reported_transcript = stop.agent_transcript_path.as_ref().map(PathBuf::from);
            (
                TranscriptSource::for_subagent(
                    agent_id,
                    &reported_transcript.unwrap_or_else(|| subagent_transcript_path(transcript, agent_id)),
                ),
                EndOfInput::MoreMayFollow,
            )
        }
        (Some(agent_id), _) => (
            TranscriptSource::for_subagent(agent_id, &subagent_transcript_path(transcript, agent_id)),
            EndOfInput::BatchReturned(&returned_call_ids),
        ),
        (None, _) => {
            (TranscriptSource::for_session(transcript), EndOfInput::BatchReturned(&returned_call_ids))
        }
    };
    let load_metadata = || {
        let metadata = TurnMetadata::for_session(invocation.memory_head().clone(), invocation.record());
        TurnMetadata { agent_type: invocation.payload.agent_type.clone(), ..metadata }
    };
    let limits = match invocation.event() {
        HookEvent::PostToolBatch(_) | HookEvent::PostToolUse(_) => CaptureLimits::FOR_TOOL_BATCH_HOOK,
        _ => CaptureLimits::FOR_HOOK,
    };
    match capture_new_turns_syncing_if_durable(&turn_log, &source, load_metadata, end_of_input, limits) {
        Ok(_) | Err(StoreError::Locked { .. }) => None,
        Err(error) => Some(turn_log_failure_message(&error)),
    }
}

/// Records the remaining turns of a session that has ended and of its subagents.
pub fn capture_transcripts_of_ended_session(
    project: &Project,
    session_id: &SessionId,
    transcript: &Path,
    limits: CaptureLimits,
) -> Result<(), StoreError> {
    let Some(turn_log) = TurnLog::for_session_where_started_or_current(project, session_id) else {
        return Ok(());
    };
    let load_metadata = || {
        TurnMetadata::for_session(
            MemoryHead::load(project),
            &plimsoll_store::sessions::load_session_record(project, session_id),
        )
    };
    for source in TranscriptSource::all_of_session(transcript) {
        capture_new_turns_syncing_if_durable(
            &turn_log,
            &source,
            load_metadata,
            EndOfInput::Complete,
            limits,
        )?;
    }
    Ok(())
}

/// Records all turns of a transcript and of its subagents. Returns the number of turns.
pub fn capture_transcript_with_subagents(turn_log: &TurnLog, transcript: &Path) -> Result<u64, StoreError> {
    let mut turn_count = 0;
    for source in TranscriptSource::all_of_session(transcript) {
        turn_count += capture_new_turns_syncing_if_durable(
            turn_log,
            &source,
            TurnMetadata::default,
            EndOfInput::Complete,
            CaptureLimits::FOR_USER_COMMAND_OR_RUN,
        )?;
    }
    Ok(turn_count)
}

/// Returns the folder in which the client keeps the transcripts of a session's subagents.
fn subagents_folder(transcript: &Path) -> PathBuf {
    transcript.with_extension("").join("subagents")
}

fn subagent_transcript_path(transcript: &Path, agent_id: &str) -> PathBuf {
    subagents_folder(transcript).join(format!("agent-{agent_id}.jsonl"))
}

/// Returns the message that a hook shows if the turn log cannot be read or written.
pub fn turn_log_failure_message(error: &StoreError) -> String {
    format!("turn log: {error}; {}", error.hint())
}

/// A backlog up to this size is read before the lock is taken. A longer one is read under the lock, line by
/// line, so that it need not be kept in memory.
const MAX_UNLOCKED_READ_BYTES: u64 = 1024 * 1024;
/// The number of bytes after which a hook stops reading, if it has recorded anything. The next event continues
/// there.
const MAX_HOOK_READ_BYTES: u64 = 8 * 1024 * 1024;

/// How long a capture waits for the lock, and how much it reads.
#[derive(Debug, Clone, Copy)]
pub struct CaptureLimits {
    /// How long to wait for the lock.
    pub lock_timeout: Duration,
    /// The number of transcript bytes after which reading may stop.
    pub max_bytes: u64,
    /// Whether to wait until the records are on the disk. If not, a power cut may lose records, but the
    /// transcript still has their content.
    pub durability: Durability,
}

impl CaptureLimits {
    /// For a hook, for which its session waits.
    pub const FOR_HOOK: CaptureLimits = CaptureLimits {
        lock_timeout: HOOK_LOCK_TIMEOUT,
        max_bytes: MAX_HOOK_READ_BYTES,
        durability: Durability::Durable,
    };
    /// For a hook after a batch of tool calls, of which a session has hundreds: it does not wait for the
    /// disk.
    pub const FOR_TOOL_BATCH_HOOK: CaptureLimits =
        CaptureLimits { durability: Durability::Lazy, ..CaptureLimits::FOR_HOOK };
    /// Limits for the hook at a session's end. It reads the whole transcript, because no later event of the session
    /// continues the reading.
    pub const FOR_SESSION_END_HOOK: CaptureLimits =
        CaptureLimits { max_bytes: u64::MAX, ..CaptureLimits::FOR_HOOK };
    /// For commands of the user, and for a run between its sessions.
    pub const FOR_USER_COMMAND_OR_RUN: CaptureLimits =
        CaptureLimits { lock_timeout: USER_LOCK_TIMEOUT, ..CaptureLimits::FOR_SESSION_END_HOOK };
}

/// Records the new turns of a transcript. Returns their number.
pub fn capture_new_turns_syncing_if_durable(
    turn_log: &TurnLog,
    source: &TranscriptSource,
    load_metadata: impl Fn() -> TurnMetadata,
    end_of_input: EndOfInput<'_>,
    limits: CaptureLimits,
) -> Result<u64, StoreError> {
    if limits.durability == Durability::Lazy {
        return capture_without_durability(turn_log, source, load_metadata, end_of_input, limits);
    }
    // Before the log's position is read, so that records lost in a power cut are recorded again.
    turn_log.repair_and_merge_pending_if_rebooted(limits.lock_timeout)?;
    let turn_count = capture_without_durability(turn_log, source, load_metadata, end_of_input, limits)?;
    // One sync covers these records and those of the batches before, which did not wait for the disk.
    turn_log.sync_and_merge_pending_if_unsynced(limits.lock_timeout)?;
    Ok(turn_count)
}

fn capture_without_durability(
    turn_log: &TurnLog,
    source: &TranscriptSource,
    load_metadata: impl Fn() -> TurnMetadata,
    end_of_input: EndOfInput<'_>,
    limits: CaptureLimits,
) -> Result<u64, StoreError> {
    let Some(transcript_size) = disk::file_size(&source.path) else { return Ok(0) };
    let turn_context = TurnContext::new(source, &load_metadata);
    let memory_at = |timestamp: &str| turn_context.memory_at(timestamp);
    // The first read does not take the lock: often no turn is complete yet, and then nothing is locked or
    // written.
    let log_head = turn_log.current_head().unwrap_or_default();
    // Whether the blobs to which the recorded memory refers still exist is checked under the lock.
    let memory_reusing_recorded =
        |timestamp: &str| turn_context.memory_reusing_previous(timestamp, log_head.memory.as_ref());
    let position = stream_position(&log_head, source);
    let unread_bytes = transcript_size.checked_sub(position.transcript_offset);
    if unread_bytes == Some(0) {
        return Ok(0);
    }
    let mut records_read_unlocked = None;
    if unread_bytes.is_some_and(|bytes| bytes <= MAX_UNLOCKED_READ_BYTES) {
        let mut records = Vec::new();
        let reader = TranscriptReader {
            source,
            end_of_input,
            max_bytes: MAX_UNLOCKED_READ_BYTES,
            recorded_entries: &RecordedEntries::default(),
        };
        let memory_lookup = MemoryLookup(&memory_reusing_recorded);
        reader.write_new_records_and_return_resume_offset(
            resume_assembler(&position, turn_context.common_ext_fields(), memory_lookup),
            &mut |new_records| {
                records.extend(new_records);
                Ok(())
            },
        )?;
        if records.is_empty() {
            return Ok(0);
        }
        records_read_unlocked = Some(records);
    }
    // No sync here: until the records are on the disk, the transcript still has their content.
    let mut log_writer = turn_log.lock_and_open_writer_without_sync(Some(&log_head), limits.lock_timeout)?;
    let turn_count = match records_read_unlocked {
        // Only if no other hook has written to the log since. Otherwise the log may already have these turns.
        Some(records) if log_writer.is_unchanged_since(&log_head) => {
            append_records_set_memory_and_count_turns(&mut log_writer, records, &turn_context)?
        }
        _ => append_turns_rereading_rewritten_transcript(
            turn_log,
            &mut log_writer,
            &turn_context,
            MemoryLookup(&memory_at),
            end_of_input,
            limits.max_bytes,
        )?,
    };
    log_writer.close()?;
    Ok(turn_count)
}

/// The metadata and memory that are stored with each turn and are not in its transcript. Both are loaded
/// once, on first use.
struct TurnContext<'a> {
    source: &'a TranscriptSource,
    load_metadata: &'a dyn Fn() -> TurnMetadata,
    metadata: OnceCell<TurnMetadata>,
    past_memory: OnceCell<PastMemory>,
}

impl<'a> TurnContext<'a> {
    fn new(source: &'a TranscriptSource, load_metadata: &'a dyn Fn() -> TurnMetadata) -> TurnContext<'a> {
        TurnContext { source, load_metadata, metadata: OnceCell::new(), past_memory: OnceCell::new() }
    }

    fn metadata(&self) -> &TurnMetadata {
        self.metadata.get_or_init(self.load_metadata)
    }

    fn common_ext_fields(&self) -> Map<String, Value> {
        self.metadata().clone().with_agent_metadata_read_if_subagent(self.source).run_and_agent_fields()
    }

    fn past_memory(&self) -> &PastMemory {
        self.past_memory.get_or_init(|| {
            self.metadata()
                .memory_head
                .clone()
                .map(PastMemory::from_head_or_log_else_empty)
                .unwrap_or_default()
        })
    }

    /// Returns the working memory as it was at this time.
    fn memory_at(&self, timestamp: &str) -> TurnMemory {
        let memory = self.past_memory().memory_at(&Timestamp::from(timestamp));
        TurnMemory::Snapshot(memory.map(|memory| memory.current_frame_and_heap_to_json()).unwrap_or_default())
    }

    /// Returns a reference to the memory of the previous turn if the memory has not changed since, and the full
    /// memory otherwise.
    fn memory_reusing_previous(
        &self,
        timestamp: &str,
        recorded_memory: Option<&RecordedMemory>,
    ) -> TurnMemory {
        let reusable_memory = recorded_memory.and_then(|recorded_memory| {
            self.past_memory()
                .unchanged_previous_memory_json_with_new_step(&Timestamp::from(timestamp), recorded_memory)
        });
        reusable_memory.map_or_else(|| self.memory_at(timestamp), TurnMemory::SameAsPreviousTurn)
    }
}

/// Returns the position up to which the log has recorded this stream.
fn stream_position(log_head: &LogHead, source: &TranscriptSource) -> StreamPosition {
    log_head.streams.get(&source.stream_name).cloned().unwrap_or_default()
}

fn resume_assembler<'a>(
    position: &StreamPosition,
    common_ext_fields: Map<String, Value>,
    memory_lookup: MemoryLookup<'a>,
) -> TurnAssembler<'a> {
    TurnAssembler::resume_after_turn(
        position.turn_number,
        &position.message_id,
        position.transcript_offset,
        common_ext_fields,
        memory_lookup,
    )
}

fn append_turns_rereading_rewritten_transcript(
    turn_log: &TurnLog,
    log_writer: &mut LogWriter,
    turn_context: &TurnContext<'_>,
    memory_lookup: MemoryLookup<'_>,
    end_of_input: EndOfInput<'_>,
    max_bytes: u64,
) -> Result<u64, StoreError> {
    let source = turn_context.source;
    let mut position = stream_position(log_writer.head(), source);
    // Checked again under the lock, because another process may have recorded while the file grew.
    let is_rewritten = disk::file_size(&source.path)
        .is_some_and(|transcript_size| position.transcript_offset > transcript_size);
    // A file that is shorter than the recorded offset was rewritten. It is read from the beginning, records
    // that the log already has are skipped, and a repair record stores the new offset.
    let recorded_entries = if is_rewritten {
        RecordedEntries::load_ids_and_hashes_of_stream(turn_log, &source.stream_name)?
    } else {
        RecordedEntries::default()
    };
    if is_rewritten {
        position.transcript_offset = 0;
    }
    let mut turn_count = 0;
    let reader = TranscriptReader { source, end_of_input, max_bytes, recorded_entries: &recorded_entries };
    let read_offset = reader.write_new_records_and_return_resume_offset(
        resume_assembler(&position, turn_context.common_ext_fields(), memory_lookup),
        &mut |mut records| {
            records.retain(|record| !recorded_entries.contains_event(record));
            turn_count += append_records_set_memory_and_count_turns(log_writer, records, turn_context)?;
            Ok(())
        },
    )?;
    if is_rewritten {
        let fields = json!({"transcript": source.path.to_string_lossy(), "read_anew_to": read_offset});
        let fields = fields.as_object().cloned().unwrap_or_default();
        let repair_record = TurnLogRecord::Event { kind: RecordKind::Repair, fields };
        append_records_set_memory_and_count_turns(
            log_writer,
            vec![AssembledRecord { timestamp: Timestamp::UNKNOWN, read_offset, record: repair_record }],
            turn_context,
        )?;
    }
    Ok(turn_count)
}

/// Reads the lines of a transcript, starting at an offset.
struct TranscriptReader<'a> {
    source: &'a TranscriptSource,
    end_of_input: EndOfInput<'a>,
    /// Reading stops after this many bytes if at least one record is finished.
    max_bytes: u64,
    /// The records that the log already has, if the file was rewritten; otherwise empty.
    recorded_entries: &'a RecordedEntries,
}

impl TranscriptReader<'_> {
    /// Passes the finished records to `write_records` in order. Returns the offset at which the next read of
    /// the transcript must start.
    fn write_new_records_and_return_resume_offset(
        &self,
        mut assembler: TurnAssembler<'_>,
        write_records: &mut dyn FnMut(Vec<AssembledRecord>) -> Result<(), StoreError>,
    ) -> Result<u64, StoreError> {
        let start_offset = assembler.read_offset();
        let mut has_finished_records = false;
        let mut write_finished_records = |assembler: &mut TurnAssembler<'_>| {
            let records = assembler.take_finished_records();
            has_finished_records |= !records.is_empty();
            if records.is_empty() { Ok(has_finished_records) } else { write_records(records).map(|()| true) }
        };
        let mut lines =
            ForwardLines::open_at(&self.source.path, LineStart { line_number: 0, offset: start_offset })?;
        let mut line = ForwardLines::empty_line();
        let mut matched_call_ids = HashSet::new();
        // A line without a newline may still be growing; the next event reads it when it is complete.
        while lines.read_line_into(&mut line)? && line.has_newline {
            let end_offset = lines.next_offset();
            let parsed_line = TranscriptLine::parse_utf8_lossy(&line.bytes).filter(|parsed| {
                parsed.is_sidechain != self.source.is_main()
                    && !self
                        .recorded_entries
                        .contains_line_collecting_call_ids(&parsed.kind, &mut matched_call_ids)
            });
            assembler.feed_line(parsed_line, end_offset);
            if write_finished_records(&mut assembler)? && end_offset - start_offset >= self.max_bytes {
                return Ok(assembler.resume_offset());
            }
        }
        assembler.finish_input(self.end_of_input);
        write_finished_records(&mut assembler)?;
        Ok(assembler.resume_offset())
    }
}

fn append_records_set_memory_and_count_turns(
    log_writer: &mut LogWriter,
    records: Vec<AssembledRecord>,
    turn_context: &TurnContext<'_>,
) -> Result<u64, StoreError> {
    let turn_count =
        records.iter().filter(|record| matches!(record.record, TurnLogRecord::Turn { .. })).count();
    let (new_records, encoded_memories): (Vec<NewRecord>, Vec<Option<EncodedMemory>>) = records
        .into_iter()
        .map(|record| to_new_record_and_changed_memory(record, turn_context.source))
        .unzip();
    log_writer.append_records_or_roll_back(&new_records)?;
    // Set after the append, because the memory refers to blobs in these records.
    if let Some(last_memory) = encoded_memories.into_iter().flatten().next_back() {
        log_writer.set_memory(turn_context.past_memory().to_recorded_memory_if_current(last_memory));
    }
    Ok(turn_count as u64)
}

/// Converts an assembled record for the log. Also returns the memory of a turn if it differs from that of the
/// previous turn.
fn to_new_record_and_changed_memory(
    record: AssembledRecord,
    source: &TranscriptSource,
) -> (NewRecord, Option<EncodedMemory>) {
    let recorded_at =
        if record.timestamp.is_known() { record.timestamp } else { clock::to_millis_timestamp(clock::now()) };
    match record.record {
        TurnLogRecord::Turn { turn, message_id, tokens: token_usage, failure_reason, encoding_hints } => {
            let (encoded, encoded_memory) = encode_turn_and_memory(&turn, &encoding_hints);
            let new_record =
                NewRecord::empty_in_main_stream(RecordKind::Turn, recorded_at).with_content(encoded);
            // The read offset is part of the record itself, so that a kill cannot separate the two.
            let header = RecordHeader {
                stream: source.stream_name.clone(),
                turn_number: Some(turn.number()),
                message_id: Some(message_id),
                succeeded: Some(turn.is_success()),
                failure_reason,
                usage: token_usage,
                transcript_offset: Some(record.read_offset),
                ..new_record.header
            };
            (NewRecord { header, ..new_record }, encoded_memory)
        }
        TurnLogRecord::Event { kind, fields } => {
            let new_record =
                NewRecord::empty_in_main_stream(kind, recorded_at).with_content(encode_fields(&fields));
            let header = RecordHeader {
                stream: source.stream_name.clone(),
                transcript_offset: Some(record.read_offset),
                ..new_record.header
            };
            (NewRecord { header, ..new_record }, None)
        }
    }
}

/// Records that a session begins or ends, because the transcript does not show that. Defers the record if the
/// log is locked.
pub fn append_or_defer_event_record(
    turn_log: &TurnLog,
    kind: RecordKind,
    event_fields: &Value,
) -> Result<(), StoreError> {
    turn_log.append_or_write_to_pending_file(&NewRecord::event_now(kind, event_fields), HOOK_LOCK_TIMEOUT)
}

impl TurnMetadata {
    /// Takes the run, the iteration and the memory from the session's record.
    pub fn for_session(memory_head: MemoryHead, record: &SessionRecord) -> TurnMetadata {
        let run_and_iteration = record.start.run_id.clone().zip(record.start.iteration);
        TurnMetadata { run_and_iteration, memory_head: Some(memory_head), ..TurnMetadata::default() }
    }

    /// Adds what the client's metadata file says about a subagent. Returns the setting of the main stream
    /// unchanged.
    fn with_agent_metadata_read_if_subagent(self, source: &TranscriptSource) -> TurnMetadata {
        if source.is_main() {
            return self;
        }
        let bytes = disk::read(&source.path.with_extension("meta.json")).ok().flatten().unwrap_or_default();
        let agent_metadata = AgentMetadata::parse(&bytes);
        TurnMetadata {
            agent_type: agent_metadata.agent_type.or(self.agent_type),
            starting_call_id: agent_metadata.tool_use_id.or(self.starting_call_id),
            ..self
        }
    }

    fn run_and_agent_fields(&self) -> Map<String, Value> {
        let run_and_iteration = self.run_and_iteration.as_ref();
        let optional_fields = [
            ("run_id", run_and_iteration.map(|(run_id, _)| json!(run_id))),
            ("iteration", run_and_iteration.map(|(_, iteration)| json!(iteration))),
            ("agent_type", self.agent_type.as_ref().map(|agent_type| json!(agent_type))),
            ("started_by", self.starting_call_id.as_ref().map(|call_id| json!(call_id))),
        ];
        optional_fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }
}
