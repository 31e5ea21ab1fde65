//! What precedes a compaction or a fresh conversation: the checkpoint, and the message that takes the place of the
//! conversation. The client's PreCompact event and our module inside the client use the same checkpoint.

use crate::checkpoint::{CheckpointRequest, WrittenHandoff, write_checkpoint};
use crate::context::measure::Measurement;
use plimsoll_domain::handoff::{HandoffMessage, HandoffNotes};
use plimsoll_domain::state::CheckpointCause;
use plimsoll_domain::{RunState, SessionId, Settings};
use plimsoll_policy::last_exchanges::{ConversationEnd, ExchangeLimits, render_conversation_end};
use plimsoll_policy::unresolved_failures::render_unresolved_failures;
use plimsoll_protocol::client_report::ClientReport;
use plimsoll_protocol::handoff_message::HandoffMessageKind;
use plimsoll_protocol::transcript_content::{HANDOFF_MESSAGE, TranscriptLine, TranscriptLineKind};
use plimsoll_protocol::user_request::parse_request_in_prompt;
use plimsoll_store::{Project, StoreError, tail};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The session whose conversation is about to be replaced.
#[derive(Debug)]
pub struct Replacement<'a> {
    pub project: &'a Project,
    pub settings: &'a Settings,
    pub session_id: &'a SessionId,
    pub transcript_path: Option<PathBuf>,
    /// The run that owns the session.
    pub run: Option<&'a RunState>,
    pub measurement: &'a Measurement,
}

/// Writes the checkpoint before a conversation is replaced.
pub fn write_checkpoint_before_replacement(
    replacement: &Replacement<'_>,
    cause: CheckpointCause,
) -> Result<WrittenHandoff, StoreError> {
    write_checkpoint(&CheckpointRequest {
        project: replacement.project,
        settings: replacement.settings,
        session_id: replacement.session_id,
        transcript_path: replacement.transcript_path.clone(),
        run: replacement.run,
        cause,
        level: replacement.measurement.projected_level().unwrap_or_default(),
        reading: replacement.measurement.reading.as_ref(),
        thresholds: replacement.measurement.thresholds.as_ref(),
        transcript_wait: None,
        pending_calls: &[],
        notes: HandoffNotes::default(),
    })
}

/// The size of a message in tokens at which it holds the facts of almost every conversation and leaves the new one
/// room ([why](../../../docs/decisions/handoff-as-message.md)).
pub const EXCHANGE_TOKENS: usize = 20_000;
const BYTES_PER_TOKEN: usize = 4;
const EARLIER_TEXT_BYTES: usize = 16 * 1024;
/// How much of a transcript is read. The end of a full window of a million tokens is in it.
const MAX_TRANSCRIPT_BYTES: u64 = 32 * 1024 * 1024;
/// The client (2.1.329) writes its transcript up to 106 ms late, and later on a busy machine. It may write a prompt only
/// after the compaction, but every result before it.
const PROMPT_TIMEOUT: Duration = Duration::from_millis(600);
const RESULT_TIMEOUT: Duration = Duration::from_secs(3);
const TRANSCRIPT_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The client has not written a result that belongs to the conversation.
#[derive(Debug, thiserror::Error)]
#[error("Claude Code has not yet written the end of the conversation to its transcript")]
pub struct IncompleteTranscript;

/// Waits until the transcript has what the client's report names as the end of the conversation. Returns the prompt of
/// the report if the transcript still lacks it.
pub fn wait_for_end_and_return_missing_prompt(
    transcript_path: &Path,
    report: &ClientReport,
) -> Result<Option<String>, IncompleteTranscript> {
    let started_at = Instant::now();
    let last_request = report.last_prompt.as_deref().and_then(parse_request_in_prompt);
    loop {
        let lines = tail::read_last_lines_with_content(transcript_path, MAX_END_BYTES).unwrap_or_default();
        let missing_prompt = last_request.as_deref().filter(|request| !ends_with_request(&lines, request));
        let has_last_result =
            report.last_tool_use_id.as_deref().is_none_or(|tool_use_id| has_result(&lines, tool_use_id));
        let elapsed = started_at.elapsed();
        if has_last_result && (missing_prompt.is_none() || elapsed >= PROMPT_TIMEOUT) {
            return Ok(missing_prompt.map(str::to_owned));
        }
        if elapsed >= RESULT_TIMEOUT {
            return Err(IncompleteTranscript);
        }
        std::thread::sleep(TRANSCRIPT_POLL_INTERVAL);
    }
}

/// The end of the conversation is within this many bytes from the end of the transcript.
const MAX_END_BYTES: u64 = 2 * 1024 * 1024;

fn has_result(lines: &[TranscriptLine], tool_use_id: &str) -> bool {
    lines.iter().rev().any(|line| match &line.kind {
        TranscriptLineKind::ToolResults(results) => {
            results.iter().any(|result| result.tool_use_id == tool_use_id)
        }
        _ => false,
    })
}

fn is_answer(line: &TranscriptLine) -> bool {
    matches!(line.kind, TranscriptLineKind::Response(_) | TranscriptLineKind::ToolResults(_))
}

/// Returns true if the user's request stands after the last response. The same words further above are an earlier request.
fn ends_with_request(lines: &[TranscriptLine], request: &str) -> bool {
    lines.iter().rev().take_while(|line| !is_answer(line)).any(|line| match &line.kind {
        TranscriptLineKind::Prompt { text, .. } => parse_request_in_prompt(text).as_deref() == Some(request),
        // The client puts the words of a queued prompt between words of its own.
        TranscriptLineKind::Context { source, text } => {
            source.starts_with(QUEUED_COMMAND) && text.contains(request)
        }
        _ => false,
    })
}

/// The client's name for a prompt that was typed while the model was working.
const QUEUED_COMMAND: &str = "queued_command";

/// The conversation that is replaced, as its transcript has it.
#[derive(Debug)]
pub struct Conversation {
    requests: Vec<String>,
    lines: Vec<TranscriptLine>,
}

impl Conversation {
    /// Returns true if the model has not responded since the last handoff message. The message itself must then be too
    /// long for the window, and another one would not be shorter.
    pub fn ends_with_unanswered_handoff(&self) -> bool {
        let last_relevant = self.lines.iter().rev().find_map(|line| match &line.kind {
            TranscriptLineKind::Response(_) | TranscriptLineKind::ToolResults(_) => Some(false),
            TranscriptLineKind::Prompt { text, .. } => HandoffMessageKind::of_message(text).map(|_| true),
            TranscriptLineKind::Context { source, .. } => (source == HANDOFF_MESSAGE).then_some(true),
            _ => None,
        });
        last_relevant.unwrap_or(false)
    }
}

/// Reads the conversation. Returns `None` if the transcript is unreadable, or if it has neither a request nor an answer:
/// a handoff would then say that nothing has happened.
pub fn read_conversation_unless_empty(transcript_path: &Path) -> Option<Conversation> {
    let requests = tail::read_requests_and_tasks(transcript_path, MAX_TRANSCRIPT_BYTES).ok()?.requests;
    let lines = tail::read_last_lines_with_content(transcript_path, MAX_TRANSCRIPT_BYTES).ok()?;
    (!requests.is_empty() || lines.iter().any(is_answer)).then_some(Conversation { requests, lines })
}

/// Renders the message that takes the place of a conversation. `missing_prompt` is a prompt that the client has not
/// written to the transcript yet.
pub fn render_replacement_message(
    conversation: Conversation,
    kind: HandoffMessageKind,
    handoff: &WrittenHandoff,
    missing_prompt: Option<String>,
    exchange_tokens: usize,
) -> String {
    let Conversation { requests, lines } = conversation;
    let requests: Vec<String> = requests
        .into_iter()
        .chain(missing_prompt)
        .map(|request| plimsoll_secrets::redact(&request))
        .collect();
    let limits = ExchangeLimits {
        exchange_bytes: exchange_tokens * BYTES_PER_TOKEN,
        earlier_text_bytes: EARLIER_TEXT_BYTES,
    };
    let ConversationEnd { earlier_texts, exchanges } =
        render_conversation_end(&lines, limits, &plimsoll_secrets::redact);
    let message = HandoffMessage {
        kind,
        requests: &requests,
        handoff_file: &handoff.file,
        document: &handoff.document,
        open_items: &handoff.open_items,
        unresolved_failures: &render_unresolved_failures(&lines, &plimsoll_secrets::redact),
        earlier_texts: &earlier_texts,
        last_exchanges: &exchanges,
    };
    plimsoll_secrets::redact(&message.render())
}
