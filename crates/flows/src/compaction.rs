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
use plimsoll_protocol::transcript_content::{TranscriptLine, TranscriptLineKind};
use plimsoll_store::{Project, StoreError, tail};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The session whose conversation is about to be replaced.
#[derive(Debug)]
pub struct ReplacedConversation<'a> {
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
    conversation: &ReplacedConversation<'_>,
    cause: CheckpointCause,
) -> Result<WrittenHandoff, StoreError> {
    write_checkpoint(&CheckpointRequest {
        project: conversation.project,
        settings: conversation.settings,
        session_id: conversation.session_id,
        transcript_path: conversation.transcript_path.clone(),
        run: conversation.run,
        cause,
        level: conversation.measurement.projected_level().unwrap_or_default(),
        reading: conversation.measurement.reading.as_ref(),
        thresholds: conversation.measurement.thresholds.as_ref(),
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
/// The client (2.1.329) writes its transcript up to 106 ms late, and later on a busy machine.
const TRANSCRIPT_TIMEOUT: Duration = Duration::from_millis(600);
const TRANSCRIPT_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Waits until the transcript has what the client's report names as the end of the conversation. Returns the prompt of
/// the report if the transcript still lacks it.
pub fn wait_for_end_and_return_missing_prompt(
    transcript_path: &Path,
    report: &ClientReport,
) -> Option<String> {
    let started_at = Instant::now();
    loop {
        let lines = tail::read_last_lines_with_content(transcript_path, MAX_END_BYTES).unwrap_or_default();
        let missing_prompt = report.last_prompt.as_deref().filter(|prompt| !ends_with_prompt(&lines, prompt));
        let has_last_result =
            report.last_tool_use_id.as_deref().is_none_or(|tool_use_id| has_result(&lines, tool_use_id));
        if (has_last_result && missing_prompt.is_none()) || started_at.elapsed() >= TRANSCRIPT_TIMEOUT {
            return missing_prompt.map(str::to_owned);
        }
        std::thread::sleep(TRANSCRIPT_POLL_INTERVAL);
    }
}

/// Returns true if the model has not responded since the last handoff message. The message itself must then be too long
/// for the window, and another one would not be shorter.
pub fn is_unanswered_handoff(transcript_path: &Path) -> bool {
    let lines = tail::read_last_lines_with_content(transcript_path, MAX_END_BYTES).unwrap_or_default();
    let last_relevant = lines.iter().rev().find_map(|line| match &line.kind {
        TranscriptLineKind::Response(_) | TranscriptLineKind::ToolResults(_) => Some(false),
        TranscriptLineKind::Prompt { text, .. } | TranscriptLineKind::Context { text, .. } => {
            HandoffMessageKind::of_message(text).map(|_| true)
        }
        _ => None,
    });
    last_relevant.unwrap_or(false)
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

/// Returns true if the prompt stands after the last response, whoever wrote it. The same words further above are an
/// earlier prompt.
fn ends_with_prompt(lines: &[TranscriptLine], prompt: &str) -> bool {
    let is_of_model = |kind: &TranscriptLineKind| {
        matches!(kind, TranscriptLineKind::Response(_) | TranscriptLineKind::ToolResults(_))
    };
    lines.iter().rev().take_while(|line| !is_of_model(&line.kind)).any(|line| match &line.kind {
        TranscriptLineKind::Prompt { text, .. } | TranscriptLineKind::Context { text, .. } => {
            text.contains(prompt.trim())
        }
        _ => false,
    })
}

/// Renders the message that takes the place of a conversation. `missing_prompt` is a prompt that the client has not
/// written to the transcript yet.
pub fn render_replacement_message(
    conversation: &ReplacedConversation<'_>,
    kind: HandoffMessageKind,
    handoff: &WrittenHandoff,
    missing_prompt: Option<String>,
    exchange_tokens: usize,
) -> String {
    let transcript_path = conversation.transcript_path.as_deref();
    let requests = transcript_path
        .and_then(|path| tail::read_requests_and_tasks(path, MAX_TRANSCRIPT_BYTES).ok())
        .unwrap_or_default()
        .requests;
    let requests: Vec<String> = requests
        .into_iter()
        .chain(missing_prompt)
        .map(|request| plimsoll_secrets::redact(&request))
        .collect();
    let lines = transcript_path
        .and_then(|path| tail::read_last_lines_with_content(path, MAX_TRANSCRIPT_BYTES).ok())
        .unwrap_or_default();
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
