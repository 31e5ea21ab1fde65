//! Reads what the transcripts have gained since the turn log was last written, and records it.
//!
//! If the log is locked or cannot be written, nothing is lost and the session is not delayed: the transcript
//! is still there, and the next event continues from the same offset.

mod recorded_events;

use crate::hook_invocation::HookInvocation;
use plimsoll_domain::log_line::{MAIN_STREAM, RecordHeader, RecordKind};
use plimsoll_domain::record::SessionRecord;
use plimsoll_domain::turn::record::{PackedMemory, encode_fields, encode_turn_with_hints};
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
use recorded_events::AlreadyRecorded;
use serde_json::{Map, Value, json};
use std::cell::OnceCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A hook delays its session, so it waits for the log's lock only for a time that the user does not notice.
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

/// Facts about the session that its transcript does not contain. They are written into every turn.
#[derive(Debug, Clone, Default)]
pub struct TurnSetting {
    /// The run and the iteration, if the session belongs to a run.
    pub run_and_iteration: Option<(RunId, u32)>,
    /// The kind of subagent. The client's own metadata file takes precedence.
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

    /// Returns the session's own transcript as a source.
    pub fn for_session(transcript: &Path) -> TranscriptSource {
        TranscriptSource { stream_name: MAIN_STREAM.to_owned(), path: transcript.to_owned() }
    }

    /// Returns a subagent's transcript as a source.
    pub fn for_subagent(agent_id: &str, transcript: &Path) -> TranscriptSource {
        TranscriptSource { stream_name: agent_id.to_owned(), path: transcript.to_owned() }
    }

    /// Returns a session's transcript and those of its subagents, which are in a folder beside it.
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

/// Records the new turns after a hook event. Returns a message if that failed. A lock that another process
/// holds is no failure: the next event continues.
pub fn capture_after_hook(invocation: &HookInvocation) -> Option<String> {
    let turn_log = TurnLog::for_session(&invocation.project, &invocation.session_id)?;
    let transcript = invocation.transcript_path()?;
    let returned_call_ids: Vec<&str> = invocation
        .event()
        .tool_calls()
        .iter()
        .filter_map(|tool_call| tool_call.tool_use_id.as_deref())
        .collect();
    let (source, end_of_input) = match (&invocation.payload.agent_id, invocation.event()) {
        (Some(agent_id), HookEvent::SubagentStop(stop)) => {
            let named_transcript = stop.agent_transcript_path.as_ref().map(PathBuf::from);
            (
                TranscriptSource::for_subagent(
                    agent_id,
                    &named_transcript.unwrap_or_else(|| subagent_transcript_path(transcript, agent_id)),
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
    let load_setting = || {
        let setting = TurnSetting::for_session(invocation.memory_head().clone(), invocation.record());
        TurnSetting { agent_type: invocation.payload.agent_type.clone(), ..setting }
    };
    let limits = match invocation.event() {
        HookEvent::PostToolBatch(_) | HookEvent::PostToolUse(_) => CaptureLimits::BATCH,
        _ => CaptureLimits::HOOK,
    };
    match capture_new_turns(&turn_log, &source, load_setting, end_of_input, limits) {
        Ok(_) | Err(StoreError::Locked { .. }) => None,
        Err(error) => Some(turn_log_failure_message(&error)),
    }
}

/// Records everything that is left in the transcripts of a session that has ended.
pub fn capture_ended_session(
    project: &Project,
    session_id: &SessionId,
    transcript: &Path,
    limits: CaptureLimits,
) -> Result<(), StoreError> {
    let Some(turn_log) = TurnLog::for_session(project, session_id) else { return Ok(()) };
    let load_setting = || {
        TurnSetting::for_session(
            MemoryHead::load(project),
            &plimsoll_store::sessions::load_session_record(project, session_id),
        )
    };
    for source in TranscriptSource::all_of_session(transcript) {
        capture_new_turns(&turn_log, &source, load_setting, EndOfInput::Complete, limits)?;
    }
    Ok(())
}

/// Records everything in a transcript that the user names. Returns the number of turns.
pub fn capture_full_transcript(turn_log: &TurnLog, transcript: &Path) -> Result<u64, StoreError> {
    let mut turn_count = 0;
    for source in TranscriptSource::all_of_session(transcript) {
        turn_count += capture_new_turns(
            turn_log,
            &source,
            TurnSetting::default,
            EndOfInput::Complete,
            CaptureLimits::USER,
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

/// Returns the message of a hook about a turn log that cannot be read or written.
pub fn turn_log_failure_message(error: &StoreError) -> String {
    format!("turn log: {error}; {}", error.hint())
}

/// A backlog up to this size is read before the lock is taken. A longer one is read under the lock, line by
/// line, so that it need not be kept in memory.
const MAX_UNLOCKED_READ_BYTES: u64 = 1024 * 1024;
/// The number of bytes after which a hook stops, if it has recorded anything: the next event continues there.
const MAX_HOOK_READ_BYTES: u64 = 8 * 1024 * 1024;

/// How long a capture waits for the lock, and how much it reads.
#[derive(Debug, Clone, Copy)]
pub struct CaptureLimits {
    /// How long to wait for the lock.
    pub lock_timeout: Duration,
    /// The number of transcript bytes after which reading may stop.
    pub max_bytes: u64,
    /// Whether to wait until the disk has the records. Without that, the transcript still has what the log
    /// may lose.
    pub durability: Durability,
}

impl CaptureLimits {
    /// For a hook, for which its session waits.
    pub const HOOK: CaptureLimits = CaptureLimits {
        lock_timeout: HOOK_LOCK_TIMEOUT,
        max_bytes: MAX_HOOK_READ_BYTES,
        durability: Durability::Durable,
    };
    /// For a hook after a batch of tool calls, of which a session has hundreds: it does not wait for the
    /// disk.
    pub const BATCH: CaptureLimits = CaptureLimits { durability: Durability::Lazy, ..CaptureLimits::HOOK };
    /// For the hook at a session's end, which reads everything.
    pub const SESSION_END: CaptureLimits = CaptureLimits { max_bytes: u64::MAX, ..CaptureLimits::HOOK };
    /// For commands of the user, and for a run between its sessions.
    pub const USER: CaptureLimits =
        CaptureLimits { lock_timeout: USER_LOCK_TIMEOUT, ..CaptureLimits::SESSION_END };
}

/// Records the new turns of a transcript. Returns their number.
pub fn capture_new_turns(
    turn_log: &TurnLog,
    source: &TranscriptSource,
    load_setting: impl Fn() -> TurnSetting,
    end_of_input: EndOfInput<'_>,
    limits: CaptureLimits,
) -> Result<u64, StoreError> {
    if limits.durability == Durability::Lazy {
        return capture_without_durability(turn_log, source, load_setting, end_of_input, limits);
    }
    // Before the log's position is read, so that records lost in a power cut are recorded again.
    turn_log.repair_if_system_restarted(limits.lock_timeout)?;
    let turn_count = capture_without_durability(turn_log, source, load_setting, end_of_input, limits)?;
    // One sync covers these records and those of the batches before, which did not wait for the disk.
    turn_log.sync_if_unsynced(limits.lock_timeout)?;
    Ok(turn_count)
}

fn capture_without_durability(
    turn_log: &TurnLog,
    source: &TranscriptSource,
    load_setting: impl Fn() -> TurnSetting,
    end_of_input: EndOfInput<'_>,
    limits: CaptureLimits,
) -> Result<u64, StoreError> {
    let Some(transcript_size) = disk::file_size(&source.path) else { return Ok(0) };
    let turn_context = TurnContext::new(source, &load_setting);
    let memory_at = |timestamp: &str| turn_context.memory_at(timestamp);
    // The first look is without the lock: often no turn is complete yet, and then nothing is locked or
    // written.
    let log_head = turn_log.current_head().unwrap_or_default();
    // Whether the memory pieces that the head names still exist is checked under the lock.
    let memory_like_before =
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
            already_recorded: &AlreadyRecorded::default(),
        };
        let memory_lookup = MemoryLookup(&memory_like_before);
        reader.write_new_records_and_return_offset(
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
    // No sync here: until the disk has the records, the transcript still has what they contain.
    let mut log_writer = turn_log.open_lazy_writer(Some(&log_head), limits.lock_timeout)?;
    let turn_count = match records_read_unlocked {
        // Only if no other hook has recorded in between. Otherwise these turns may be in the log already.
        Some(records) if log_writer.is_unchanged_since(&log_head) => {
            append_records(&mut log_writer, records, &turn_context)?
        }
        _ => read_under_lock(
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

/// Facts that go into each turn and are not in its transcript. They are loaded once, when they are first
/// needed.
struct TurnContext<'a> {
    source: &'a TranscriptSource,
    load_setting: &'a dyn Fn() -> TurnSetting,
    setting: OnceCell<TurnSetting>,
    past_memory: OnceCell<PastMemory>,
}

impl<'a> TurnContext<'a> {
    fn new(source: &'a TranscriptSource, load_setting: &'a dyn Fn() -> TurnSetting) -> TurnContext<'a> {
        TurnContext { source, load_setting, setting: OnceCell::new(), past_memory: OnceCell::new() }
    }

    fn setting(&self) -> &TurnSetting {
        self.setting.get_or_init(self.load_setting)
    }

    fn common_ext_fields(&self) -> Map<String, Value> {
        self.setting().clone().with_agent_metadata(self.source).ext_fields()
    }

    fn past_memory(&self) -> &PastMemory {
        self.past_memory
            .get_or_init(|| self.setting().memory_head.clone().map(PastMemory::from_head).unwrap_or_default())
    }

    /// Returns the working memory as it was at this time.
    fn memory_at(&self, timestamp: &str) -> TurnMemory {
        let memory = self.past_memory().memory_at(&Timestamp::from(timestamp));
        TurnMemory::Snapshot(memory.map(|memory| memory.to_snapshot_json()).unwrap_or_default())
    }

    /// Returns a reference to the memory of the previous turn if it has not changed since, and the full
    /// memory otherwise.
    fn memory_reusing_previous(
        &self,
        timestamp: &str,
        recorded_memory: Option<&RecordedMemory>,
    ) -> TurnMemory {
        let reusable_memory = recorded_memory.and_then(|recorded_memory| {
            self.past_memory().reuse_if_unchanged(&Timestamp::from(timestamp), recorded_memory)
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

fn read_under_lock(
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
    // A file that is shorter than the recorded offset was rewritten. It is read from the beginning without
    // what the log has already, and the new offset is recorded at the end.
    let already_recorded = if is_rewritten {
        AlreadyRecorded::load_stream(turn_log, &source.stream_name)?
    } else {
        AlreadyRecorded::default()
    };
    if is_rewritten {
        position.transcript_offset = 0;
    }
    let mut turn_count = 0;
    let reader = TranscriptReader { source, end_of_input, max_bytes, already_recorded: &already_recorded };
    let read_offset = reader.write_new_records_and_return_offset(
        resume_assembler(&position, turn_context.common_ext_fields(), memory_lookup),
        &mut |mut records| {
            records.retain(|record| !already_recorded.contains_event(record));
            turn_count += append_records(log_writer, records, turn_context)?;
            Ok(())
        },
    )?;
    if is_rewritten {
        let fields = json!({"transcript": source.path.to_string_lossy(), "read_anew_to": read_offset});
        let fields = fields.as_object().cloned().unwrap_or_default();
        let repair_record = TurnLogRecord::Event { kind: RecordKind::Repair, fields };
        append_records(
            log_writer,
            vec![AssembledRecord { timestamp: Timestamp::UNKNOWN, read_offset, record: repair_record }],
            turn_context,
        )?;
    }
    Ok(turn_count)
}

/// Reads the lines of a transcript from an offset on.
struct TranscriptReader<'a> {
    source: &'a TranscriptSource,
    end_of_input: EndOfInput<'a>,
    /// Reading stops after this many bytes if at least one record was made.
    max_bytes: u64,
    /// The records that the log has already, if the file was rewritten; otherwise empty.
    already_recorded: &'a AlreadyRecorded,
}

impl TranscriptReader<'_> {
    /// Passes the finished records on in order. Returns the offset from which the transcript has to be read
    /// next time.
    fn write_new_records_and_return_offset(
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
        // A line without a line break may still be growing: the next event reads it when it is complete.
        while lines.read_line_into(&mut line)? && line.has_newline {
            let end_offset = lines.next_offset();
            let parsed_line = TranscriptLine::parse(&line.bytes).filter(|parsed| {
                parsed.is_sidechain != self.source.is_main()
                    && !self.already_recorded.contains_line(&parsed.kind, &mut matched_call_ids)
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

fn append_records(
    log_writer: &mut LogWriter,
    records: Vec<AssembledRecord>,
    turn_context: &TurnContext<'_>,
) -> Result<u64, StoreError> {
    let turn_count =
        records.iter().filter(|record| matches!(record.record, TurnLogRecord::Turn { .. })).count();
    let (new_records, packed_memories): (Vec<NewRecord>, Vec<Option<PackedMemory>>) =
        records.into_iter().map(|record| to_new_record(record, turn_context.source)).unzip();
    log_writer.append_records(&new_records)?;
    // Set after the append, because the memory refers to pieces in these records.
    if let Some(last_memory) = packed_memories.into_iter().flatten().next_back() {
        log_writer.set_memory(turn_context.past_memory().for_next_turn(last_memory));
    }
    Ok(turn_count as u64)
}

/// Converts an assembled record for the log. Also returns the memory of a turn if it differs from that of the
/// turn before.
fn to_new_record(record: AssembledRecord, source: &TranscriptSource) -> (NewRecord, Option<PackedMemory>) {
    let recorded_at =
        if record.timestamp.is_known() { record.timestamp } else { clock::to_millis_timestamp(clock::now()) };
    match record.record {
        TurnLogRecord::Turn {
            turn,
            message_id,
            tokens: token_usage,
            failure_reason,
            known_facts: encoding_hints,
        } => {
            let (encoded, packed_memory) = encode_turn_with_hints(&turn, &encoding_hints);
            let new_record = NewRecord::new(RecordKind::Turn, recorded_at).with_content(encoded);
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
            (NewRecord { header, ..new_record }, packed_memory)
        }
        TurnLogRecord::Event { kind, fields } => {
            let new_record = NewRecord::new(kind, recorded_at).with_content(encode_fields(&fields));
            let header = RecordHeader {
                stream: source.stream_name.clone(),
                transcript_offset: Some(record.read_offset),
                ..new_record.header
            };
            (NewRecord { header, ..new_record }, None)
        }
    }
}

/// Records that a session begins or ends, which no transcript says.
pub fn append_event_record(
    turn_log: &TurnLog,
    kind: RecordKind,
    event_fields: &Value,
) -> Result<(), StoreError> {
    turn_log.append_or_defer(&NewRecord::event_now(kind, event_fields), HOOK_LOCK_TIMEOUT)
}

impl TurnSetting {
    /// Takes the run, the iteration and the memory from the session's record.
    pub fn for_session(memory_head: MemoryHead, record: &SessionRecord) -> TurnSetting {
        let run_and_iteration = record.start.run_id.clone().zip(record.start.iteration);
        TurnSetting { run_and_iteration, memory_head: Some(memory_head), ..TurnSetting::default() }
    }

    /// Adds what the client's metadata file says about a subagent. Returns the setting of the main stream
    /// unchanged.
    fn with_agent_metadata(self, source: &TranscriptSource) -> TurnSetting {
        if source.is_main() {
            return self;
        }
        let bytes = disk::read(&source.path.with_extension("meta.json")).ok().flatten().unwrap_or_default();
        let agent_metadata = AgentMetadata::parse(&bytes);
        TurnSetting {
            agent_type: agent_metadata.agent_type.or(self.agent_type),
            starting_call_id: agent_metadata.tool_use_id.or(self.starting_call_id),
            ..self
        }
    }

    fn ext_fields(&self) -> Map<String, Value> {
        let run_and_iteration = self.run_and_iteration.as_ref();
        let facts = [
            ("run_id", run_and_iteration.map(|(run_id, _)| json!(run_id))),
            ("iteration", run_and_iteration.map(|(_, iteration)| json!(iteration))),
            ("agent_type", self.agent_type.as_ref().map(|agent_type| json!(agent_type))),
            ("started_by", self.starting_call_id.as_ref().map(|call_id| json!(call_id))),
        ];
        facts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }
}
