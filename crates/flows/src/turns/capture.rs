//! What the transcripts hold and the turn log does not yet: read on from where the log left off, and recorded.
//!
//! The transcript itself is what waits when the log is locked or the disk in trouble: the next event reads on from
//! the same place, so nothing is lost, and the session is never delayed.

mod known;

use crate::hook_invocation::HookInvocation;
use known::AlreadyRecorded;
use plimsoll_domain::log_line::{Header, MAIN, RecordKind};
use plimsoll_domain::record::SessionRecord;
use plimsoll_domain::turn::record::{PackedMemory, encode_fields, encode_new};
use plimsoll_domain::{RunId, SessionId, Timestamp};
use plimsoll_policy::turns::{AssembledRecord, Assembler, EndOfInput, Record, Remembered, TurnMemory};
use plimsoll_protocol::event::Event;
use plimsoll_protocol::recording::{AgentNote, TranscriptLine};
use plimsoll_store::memory::{Past, Standing};
use plimsoll_store::turn_log::{Forwards, Head, LineStart, NewRecord, NotedMemory, Stream, Writer};
use plimsoll_store::{Durability, Project, StoreError, TurnLog, clock, disk};
use serde_json::{Map, Value, json};
use std::cell::OnceCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A hook waits no longer for the log's lock than its reader would notice.
const HOOK_TIMEOUT: Duration = Duration::from_millis(50);
/// The user waits a little.
const USERS_TIMEOUT: Duration = Duration::from_secs(5);

/// One transcript of a session.
#[derive(Debug, Clone)]
pub struct Source {
    /// `main`, or the subagent's id.
    pub stream: String,
    /// Its file.
    pub path: PathBuf,
}

/// What is known of the session beside its transcript: it goes into every turn.
#[derive(Debug, Clone, Default)]
pub struct Setting {
    /// The run and the iteration, where it belongs to one.
    pub run: Option<(RunId, u32)>,
    /// The kind of subagent, if the client's own record does not say.
    pub agent_type: Option<String>,
    /// The call that started the subagent.
    pub started_by: Option<String>,
    /// The working memory that the turns keep.
    pub memory: Option<Standing>,
}

impl Source {
    fn is_main(&self) -> bool {
        self.stream == MAIN
    }

    /// The session's own transcript.
    pub fn main(path: &Path) -> Source {
        Source { stream: MAIN.to_owned(), path: path.to_owned() }
    }

    /// A subagent's transcript.
    pub fn agent(id: &str, path: &Path) -> Source {
        Source { stream: id.to_owned(), path: path.to_owned() }
    }

    /// A session's transcript and those of its subagents, which are in a folder beside it.
    pub fn all(transcript: &Path) -> Vec<Source> {
        let folder = subagents(transcript);
        let agent = |name: String| {
            let id = name.strip_prefix("agent-")?.strip_suffix(".jsonl")?.to_owned();
            Some(Source { path: folder.join(&name), stream: id })
        };
        let agents = disk::names(&folder).into_iter().filter_map(agent);
        std::iter::once(Source::main(transcript)).chain(agents).collect()
    }
}

/// Records what a hook's event has brought; answers with the trouble, if there was some. A lock that is held is
/// none: the next event reads on.
pub fn at_hook(call: &HookInvocation) -> Option<String> {
    let log = TurnLog::of(&call.project, &call.session_id)?;
    let transcript = call.transcript()?;
    let ids: Vec<&str> =
        call.event().tool_calls().iter().filter_map(|call| call.tool_use_id.as_deref()).collect();
    let (source, closing) = match (&call.hook.agent_id, call.event()) {
        (Some(agent), Event::SubagentStop(stop)) => {
            let own = stop.agent_transcript_path.as_ref().map(PathBuf::from);
            (Source::agent(agent, &own.unwrap_or_else(|| agent_file(transcript, agent))), EndOfInput::Open)
        }
        (Some(agent), _) => (Source::agent(agent, &agent_file(transcript, agent)), EndOfInput::Batch(&ids)),
        (None, _) => (Source::main(transcript), EndOfInput::Batch(&ids)),
    };
    let setting = || {
        let setting = Setting::of(call.memory().clone(), call.record());
        Setting { agent_type: call.hook.agent_type.clone(), ..setting }
    };
    let limits = match call.event() {
        Event::PostToolBatch(_) | Event::PostToolUse(_) => CaptureLimits::BATCH,
        _ => CaptureLimits::HOOK,
    };
    match capture(&log, &source, setting, closing, limits) {
        Ok(_) | Err(StoreError::Busy { .. }) => None,
        Err(error) => Some(complaint(&error)),
    }
}

/// Records everything of a session that has ended.
pub fn at_end(
    project: &Project,
    session_id: &SessionId,
    transcript: &Path,
    limits: CaptureLimits,
) -> Result<(), StoreError> {
    let Some(log) = TurnLog::of(project, session_id) else { return Ok(()) };
    let setting = || Setting::of(Standing::of(project), &plimsoll_store::sessions::load(project, session_id));
    for source in Source::all(transcript) {
        capture(&log, &source, setting, EndOfInput::Over, limits)?;
    }
    Ok(())
}

/// Records everything of a transcript that is named by the user; answers how many turns that were.
pub fn whole(log: &TurnLog, transcript: &Path) -> Result<u64, StoreError> {
    let mut turns = 0;
    for source in Source::all(transcript) {
        turns += capture(log, &source, Setting::default, EndOfInput::Over, CaptureLimits::USER)?;
    }
    Ok(turns)
}

/// Where the client keeps the transcripts of a session's subagents.
fn subagents(transcript: &Path) -> PathBuf {
    transcript.with_extension("").join("subagents")
}

fn agent_file(transcript: &Path, agent: &str) -> PathBuf {
    subagents(transcript).join(format!("agent-{agent}.jsonl"))
}

/// What a hook says of a turn log in trouble.
pub fn complaint(error: &StoreError) -> String {
    format!("turn log: {error}; {}", error.hint())
}

/// This much is read before the lock is taken; a longer backlog is read under it, line by line.
const GLANCE: u64 = 1024 * 1024;
/// How much a hook reads at most, if that makes progress: the next event continues from there.
const HOOK_BYTES: u64 = 8 * 1024 * 1024;

/// How long a capture may take.
#[derive(Debug, Clone, Copy)]
pub struct CaptureLimits {
    /// For the lock.
    pub lock: Duration,
    /// For the transcript, in bytes.
    pub bytes: u64,
    /// Whether the disk is waited for. Until it was, the transcript holds what the log may lose.
    pub durability: Durability,
}

impl CaptureLimits {
    /// A hook's: its session waits for it.
    pub const HOOK: CaptureLimits =
        CaptureLimits { lock: HOOK_TIMEOUT, bytes: HOOK_BYTES, durability: Durability::Durable };
    /// That of a batch in the middle of the work, of which there are hundreds.
    pub const BATCH: CaptureLimits = CaptureLimits { durability: Durability::Lazy, ..CaptureLimits::HOOK };
    /// A session's end: its client waits for the hook, and everything is read.
    pub const END: CaptureLimits = CaptureLimits { bytes: u64::MAX, ..CaptureLimits::HOOK };
    /// The user's, and that of a run between its sessions.
    pub const USER: CaptureLimits = CaptureLimits { lock: USERS_TIMEOUT, ..CaptureLimits::END };
}

/// Records what is new; answers how many turns that were.
pub fn capture(
    log: &TurnLog,
    source: &Source,
    setting: impl Fn() -> Setting,
    closing: EndOfInput<'_>,
    limits: CaptureLimits,
) -> Result<u64, StoreError> {
    if limits.durability == Durability::Lazy {
        return capture_new(log, source, setting, closing, limits);
    }
    // Before it is looked at: what a power cut has taken is recorded again.
    log.check_after_restart(limits.lock)?;
    let turns = capture_new(log, source, setting, closing, limits)?;
    // Once, for this and for what the batches before have left.
    log.make_durable(limits.lock)?;
    Ok(turns)
}

fn capture_new(
    log: &TurnLog,
    source: &Source,
    setting: impl Fn() -> Setting,
    closing: EndOfInput<'_>,
    limits: CaptureLimits,
) -> Result<u64, StoreError> {
    let Some(size) = disk::size(&source.path) else { return Ok(0) };
    let surroundings = Surroundings::new(source, &setting);
    let memory_at = |at: &str| surroundings.memory_at(at);
    // First without the lock: often nothing is complete yet, and then nothing is locked or written.
    let head = log.head().unwrap_or_default();
    // Whether the pieces that it names are still there is asked under the lock.
    let memory_like_before = |at: &str| surroundings.memory_like_before(at, head.memory.as_ref());
    let known = known(&head, source);
    let backlog = size.checked_sub(known.read);
    if backlog == Some(0) {
        return Ok(0);
    }
    let mut seen = None;
    if backlog.is_some_and(|bytes| bytes <= GLANCE) {
        let mut made = Vec::new();
        let reader = Reader { source, closing, bytes: GLANCE, recorded: &AlreadyRecorded::default() };
        let memory = Remembered(&memory_like_before);
        reader.read(assembler(&known, surroundings.facts(), memory), &mut |new| {
            made.extend(new);
            Ok(())
        })?;
        if made.is_empty() {
            return Ok(0);
        }
        seen = Some(made);
    }
    // The transcript holds what is read here until it is on the disk.
    let mut writer = log.write_lazily(Some(&head), limits.lock)?;
    let turns = match seen {
        // Only if no other hook has recorded in between: otherwise these turns may be in the log already.
        Some(made) if writer.goes_on_from(&head) => record(&mut writer, made, &surroundings)?,
        _ => read_under_lock(log, &mut writer, &surroundings, Remembered(&memory_at), closing, limits.bytes)?,
    };
    writer.close()?;
    Ok(turns)
}

/// What goes into each turn beside what its transcript says; looked up once, when it is first needed.
struct Surroundings<'a> {
    source: &'a Source,
    ask: &'a dyn Fn() -> Setting,
    setting: OnceCell<Setting>,
    past: OnceCell<Past>,
}

impl<'a> Surroundings<'a> {
    fn new(source: &'a Source, ask: &'a dyn Fn() -> Setting) -> Surroundings<'a> {
        Surroundings { source, ask, setting: OnceCell::new(), past: OnceCell::new() }
    }

    fn setting(&self) -> &Setting {
        self.setting.get_or_init(self.ask)
    }

    fn facts(&self) -> Map<String, Value> {
        self.setting().clone().beside(self.source).facts()
    }

    fn past(&self) -> &Past {
        self.past.get_or_init(|| self.setting().memory.clone().map(Past::of).unwrap_or_default())
    }

    /// What the working memory held at a moment.
    fn memory_at(&self, at: &str) -> TurnMemory {
        let memory = self.past().at(&Timestamp::from(at));
        TurnMemory::Whole(memory.map(|memory| memory.snapshot()).unwrap_or_default())
    }

    /// The same where the turn before may have had it.
    fn memory_like_before(&self, at: &str, noted: Option<&NotedMemory>) -> TurnMemory {
        let kept = noted.and_then(|noted| self.past().as_before(&Timestamp::from(at), noted));
        kept.map_or_else(|| self.memory_at(at), TurnMemory::AsBefore)
    }
}

/// What the log has of a transcript.
fn known(head: &Head, source: &Source) -> Stream {
    head.streams.get(&source.stream).cloned().unwrap_or_default()
}

fn assembler<'a>(known: &Stream, facts: Map<String, Value>, memory: Remembered<'a>) -> Assembler<'a> {
    Assembler::after(known.number, &known.message, known.read, facts, memory)
}

fn read_under_lock(
    log: &TurnLog,
    writer: &mut Writer,
    surroundings: &Surroundings<'_>,
    memory: Remembered<'_>,
    closing: EndOfInput<'_>,
    bytes: u64,
) -> Result<u64, StoreError> {
    let source = surroundings.source;
    let mut known = known(writer.head(), source);
    // Asked again under the lock: another process may have read on while the file grew.
    let is_anew = disk::size(&source.path).is_some_and(|size| known.read > size);
    // The file was rewritten: what the log has is left out, and the place is noted at the end.
    let recorded =
        if is_anew { AlreadyRecorded::of(log, &source.stream)? } else { AlreadyRecorded::default() };
    if is_anew {
        known.read = 0;
    }
    let mut turns = 0;
    let reader = Reader { source, closing, bytes, recorded: &recorded };
    let read = reader.read(assembler(&known, surroundings.facts(), memory), &mut |mut made| {
        made.retain(|made| !recorded.has_event(made));
        turns += record(writer, made, surroundings)?;
        Ok(())
    })?;
    if is_anew {
        let fields = json!({"transcript": source.path.to_string_lossy(), "read_anew_to": read});
        let fields = fields.as_object().cloned().unwrap_or_default();
        let what = Record::Event { kind: RecordKind::Repair, fields };
        record(writer, vec![AssembledRecord { at: Timestamp::UNKNOWN, read, what }], surroundings)?;
    }
    Ok(turns)
}

/// Reads a transcript on.
struct Reader<'a> {
    source: &'a Source,
    closing: EndOfInput<'a>,
    /// It stops after this many, if they made progress.
    bytes: u64,
    /// What is in the log, where the file was rewritten.
    recorded: &'a AlreadyRecorded,
}

impl Reader<'_> {
    /// Gives out what was made, in order; answers up to where the transcript need not be read again.
    fn read(
        &self,
        mut assembler: Assembler<'_>,
        take: &mut dyn FnMut(Vec<AssembledRecord>) -> Result<(), StoreError>,
    ) -> Result<u64, StoreError> {
        let from = assembler.read();
        let mut has_made = false;
        let mut give = |assembler: &mut Assembler<'_>| {
            let made = assembler.take();
            has_made |= !made.is_empty();
            if made.is_empty() { Ok(has_made) } else { take(made).map(|()| true) }
        };
        let mut lines = Forwards::open(&self.source.path, LineStart { line: 0, offset: from })?;
        let mut line = Forwards::buffer();
        let mut passed = HashSet::new();
        // A line without its end may still be growing: the next event reads it whole.
        while lines.read_into(&mut line)? && line.is_ended {
            let to = lines.offset();
            let parsed = TranscriptLine::parse(&line.bytes).filter(|parsed| {
                parsed.is_sidechain != self.source.is_main() && !self.recorded.has(&parsed.what, &mut passed)
            });
            assembler.feed(parsed, to);
            if give(&mut assembler)? && to - from >= self.bytes {
                return Ok(assembler.safe());
            }
        }
        assembler.settle(self.closing);
        give(&mut assembler)?;
        Ok(assembler.safe())
    }
}

fn record(
    writer: &mut Writer,
    made: Vec<AssembledRecord>,
    surroundings: &Surroundings<'_>,
) -> Result<u64, StoreError> {
    let turns = made.iter().filter(|made| matches!(made.what, Record::Turn { .. })).count();
    let (entries, memories): (Vec<NewRecord>, Vec<Option<PackedMemory>>) =
        made.into_iter().map(|made| entry(made, surroundings.source)).unzip();
    writer.append(&entries)?;
    // Only once its pieces are there.
    if let Some(packed) = memories.into_iter().flatten().next_back() {
        writer.note_memory(surroundings.past().to_note(packed));
    }
    Ok(turns as u64)
}

/// The record, and of a turn whose memory is another one than that of the turn before, that.
fn entry(made: AssembledRecord, source: &Source) -> (NewRecord, Option<PackedMemory>) {
    let at = if made.at.is_known() { made.at } else { clock::fine_stamp(clock::now()) };
    match made.what {
        Record::Turn { turn, message, tokens, reason, known } => {
            let (encoded, memory) = encode_new(&turn, &known);
            let entry = NewRecord::new(RecordKind::Turn, at).holding(encoded);
            // The place that was read up to is in the record itself, so that no kill comes between the two.
            let header = Header {
                stream: source.stream.clone(),
                number: Some(turn.number()),
                message: Some(message),
                success: Some(turn.is_success()),
                reason,
                usage: tokens,
                read: Some(made.read),
                ..entry.header
            };
            (NewRecord { header, ..entry }, memory)
        }
        Record::Event { kind, fields } => {
            let entry = NewRecord::new(kind, at).holding(encode_fields(&fields));
            let header = Header { stream: source.stream.clone(), read: Some(made.read), ..entry.header };
            (NewRecord { header, ..entry }, None)
        }
    }
}

/// Notes that a session begins or ends: no transcript says so.
pub fn note(log: &TurnLog, kind: RecordKind, fields: &Value) -> Result<(), StoreError> {
    log.note(&NewRecord::event(kind, fields), HOOK_TIMEOUT)
}

impl Setting {
    /// What the session's record says.
    pub fn of(memory: Standing, record: &SessionRecord) -> Setting {
        let run = record.start.run_id.clone().zip(record.start.iteration);
        Setting { run, memory: Some(memory), ..Setting::default() }
    }

    /// With what the client notes beside a subagent's transcript.
    fn beside(self, source: &Source) -> Setting {
        if source.is_main() {
            return self;
        }
        let bytes = disk::read(&source.path.with_extension("meta.json")).ok().flatten().unwrap_or_default();
        let note = AgentNote::parse(&bytes);
        Setting {
            agent_type: note.agent_type.or(self.agent_type),
            started_by: note.tool_use_id.or(self.started_by),
            ..self
        }
    }

    fn facts(&self) -> Map<String, Value> {
        let run = self.run.as_ref();
        let facts = [
            ("run_id", run.map(|(run_id, _)| json!(run_id))),
            ("iteration", run.map(|(_, iteration)| json!(iteration))),
            ("agent_type", self.agent_type.as_ref().map(|kind| json!(kind))),
            ("started_by", self.started_by.as_ref().map(|call| json!(call))),
        ];
        facts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }
}
