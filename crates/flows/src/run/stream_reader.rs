//! Follows the file to which a client writes its output stream.

use crate::run::observer::RunEvent;
use crate::session_result::SessionResult;
use plimsoll_domain::ProcessExit;
use plimsoll_domain::limits::{QuotaWindow, SubscriptionQuotas};
use plimsoll_domain::state::ApiRetryState;
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_policy::session_usage::SessionUsage;
use plimsoll_policy::silence::{ExceededTimeout, SilenceTimeouts, exceeded_timeout_after_silence};
use plimsoll_protocol::rate_limit::RateLimit;
use plimsoll_protocol::result::ClientResult;
use plimsoll_protocol::stream::StreamLine;
use plimsoll_protocol::transcript::{ContentBlock, Message};
use plimsoll_store::clock;
use plimsoll_store::disk::GrowingReader;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long Plimsoll's SessionStart hook may take to be recorded after the client's first output. The client
/// waits for the hook before that output, so this only covers the time until a write is visible to the other
/// process.
const HOOK_START_TIMEOUT: Duration = Duration::from_millis(500);

const STATE_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Reads a client's stream and collects what it reports.
#[derive(Debug)]
pub(super) struct StreamReader {
    path: PathBuf,
    file: Option<GrowingReader>,
    partial_line: Vec<u8>,
    result: Option<ClientResult>,
    /// How long the stream has been followed. All times below are measured on this clock.
    active_time: ActiveTime,
    /// When the result came, if no session output followed it.
    final_result_at: Option<Duration>,
    client_version: String,
    started_at: Option<Duration>,
    last_state_check_at: Instant,
    /// When the last output came.
    last_output_at: Duration,
    quota: Option<SubscriptionQuotas>,
    /// When the limit that rejected the client resets, in seconds since 1970.
    exceeded_limit_resets_at: Option<u64>,
    /// The usage so far, which counts if the session ends without a result.
    usage: SessionUsage,
    /// Tool calls that have no result yet, including those of subagents: the id, and a label of the tool with
    /// its main argument.
    running_calls: Vec<(String, String)>,
    /// The API error for which the client is retrying; `None` once the API responds.
    api_retry: Option<ApiRetryState>,
    /// True once the model has answered in this session.
    has_answered: bool,
    /// True once Plimsoll's SessionStart hook has been recorded. It stays true, whatever an agent later
    /// writes into the state.
    has_hooks_running: bool,
}

impl StreamReader {
    /// Creates a reader. The version is used for a client that does not report it in its stream (before 2.0).
    pub(super) fn new(path: PathBuf, client_version: &str) -> StreamReader {
        StreamReader {
            file: GrowingReader::open(&path),
            path,
            partial_line: Vec::new(),
            result: None,
            active_time: ActiveTime::default(),
            final_result_at: None,
            client_version: client_version.to_owned(),
            started_at: None,
            last_state_check_at: Instant::now(),
            last_output_at: Duration::ZERO,
            quota: None,
            exceeded_limit_resets_at: None,
            usage: SessionUsage::default(),
            running_calls: Vec::new(),
            api_retry: None,
            has_answered: false,
            has_hooks_running: false,
        }
    }

    /// Creates a reader for a client that another process started. If `path` has been deleted, it reads
    /// `fallback_output_path`, the file to which the client still writes.
    pub(super) fn for_adopted_client(
        path: PathBuf,
        client_version: &str,
        fallback_output_path: Option<&Path>,
    ) -> StreamReader {
        let mut reader = StreamReader::new(path, client_version);
        reader.file = reader.file.or_else(|| GrowingReader::open(fallback_output_path?));
        reader
    }

    /// Reads the output since the last call. An agent's `git clean` may delete the file, but an open file stays
    /// readable.
    pub(super) fn read_new_events(&mut self) -> Vec<RunEvent<'static>> {
        self.active_time.advance();
        if self.file.is_none() {
            self.file = GrowingReader::open(&self.path);
        }
        let bytes =
            self.file.as_mut().and_then(|stream| stream.read_appended_bytes().ok()).unwrap_or_default();
        if !bytes.is_empty() {
            self.last_output_at = self.active_time.total;
        }
        // The client may be in the middle of a line: bytes without a line end wait for the next read.
        self.partial_line.extend(bytes);
        let complete_length = self
            .partial_line
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |newline_index| newline_index + 1);
        let lines: Vec<u8> = self.partial_line.drain(..complete_length).collect();
        let mut events = Vec::new();
        for line in lines.split(|byte| *byte == b'\n') {
            self.usage.add_response_or_reported_usage_from_line(line);
            events.extend(self.apply_line_and_return_events(StreamLine::parse(line)));
        }
        events
    }

    fn apply_line_and_return_events(&mut self, line: StreamLine) -> Vec<RunEvent<'static>> {
        let is_session_output = !matches!(line, StreamLine::Other | StreamLine::RateLimit(_));
        if is_session_output {
            self.final_result_at = None;
        }
        match line {
            StreamLine::Init { model, version, .. } => {
                self.started_at.get_or_insert(self.active_time.total);
                if let Some(version) = version {
                    self.client_version = version;
                }
                vec![RunEvent::ClientStarted {
                    model: model.unwrap_or_default(),
                    version: self.client_version.clone(),
                }]
            }
            StreamLine::Assistant { message, is_from_subagent } => {
                let has_retried = self.api_retry.take().is_some();
                let is_first_answer = !std::mem::replace(&mut self.has_answered, true);
                self.running_calls.extend(tool_call_ids_and_labels(&message));
                // The client writes an error of the API as a message of its own.
                let is_answer = message.model.as_deref() != Some("<synthetic>");
                let answered = is_answer && (has_retried || is_first_answer);
                let tool_events = if is_from_subagent { Vec::new() } else { tool_used_events(&message) };
                answered.then_some(RunEvent::ApiAnswered).into_iter().chain(tool_events).collect()
            }
            StreamLine::User { message, .. } => {
                let blocks = message.blocks();
                let has_result =
                    |id: &str| blocks.iter().any(|block| block.tool_use_id.as_deref() == Some(id));
                self.running_calls.retain(|(id, _)| !has_result(id));
                Vec::new()
            }
            StreamLine::RateLimit(limit) => {
                self.exceeded_limit_resets_at =
                    if limit.is_rejected() { limit.reset_seconds() } else { None };
                self.quota.get_or_insert_default().update_from(&quotas_from_rate_limit(&limit));
                Vec::new()
            }
            StreamLine::ApiRetry { error_status, .. } => {
                self.record_api_retry_if_status_changed(error_status.unwrap_or(0)).into_iter().collect()
            }
            StreamLine::CompactBoundary => vec![RunEvent::Compacted],
            StreamLine::Result(result) => {
                self.api_retry = None;
                self.final_result_at = Some(self.active_time.total);
                // With background tasks a stream contains several results (2.1.329): the last one counts.
                self.result = Some(*result);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Records an API retry. The client retries every few seconds, so an event is returned only for the first
    /// retry and for another status.
    fn record_api_retry_if_status_changed(&mut self, http_status: u64) -> Option<RunEvent<'static>> {
        let current_retry = self.api_retry.as_ref();
        if current_retry.is_some_and(|retry| retry.http_status == http_status) {
            return None;
        }
        let failing_since = current_retry
            .map_or_else(|| clock::to_timestamp(clock::now()), |retry| retry.failing_since.clone());
        self.api_retry = Some(ApiRetryState { failing_since: failing_since.clone(), http_status });
        Some(RunEvent::ApiRetry { status: http_status, first_failed_at: failing_since })
    }

    /// Returns the API error for which the client is retrying, if it is.
    pub(super) fn api_retry(&self) -> Option<&ApiRetryState> {
        self.api_retry.as_ref()
    }

    /// Returns the session's result, from the stream and the exit. It ended at the time of the last output, even
    /// if the stream is read only now.
    pub(super) fn session_result(&self, exit: ProcessExit) -> SessionResult {
        let ended_at = self.file.as_ref().and_then(GrowingReader::modified_at);
        let reported_result = SessionResult::from_client_result(self.result.as_ref(), exit, ended_at);
        let reset_from_event =
            self.exceeded_limit_resets_at.and_then(clock::from_unix_seconds).map(clock::to_timestamp);
        // A session that continued after its result has used more than the result reports. The client's reported
        // cost only grows, and a session can write into this file, so a last result with a lower cost than an
        // earlier one is ignored.
        let highest_cost = self.usage.reported_cost_usd().unwrap_or(0.0);
        let cost =
            reported_result.cost.filter(|cost| self.final_result_at.is_some() && cost.usd >= highest_cost);
        let are_tokens_reported = cost.is_some() && reported_result.tokens > 0;
        let tokens = if are_tokens_reported { reported_result.tokens } else { self.usage.total_tokens() };
        SessionResult {
            limit_resets_at: reset_from_event.or(reported_result.limit_resets_at),
            cost,
            output_usage: Some(self.usage.clone()),
            tokens,
            quota: self.quota.clone(),
            ..reported_result
        }
    }

    /// Returns true, and restarts the interval, a few times a second: the caller then reads the state and the
    /// session record again.
    pub(super) fn restart_state_check_interval_if_due(&mut self) -> bool {
        let is_due = self.last_state_check_at.elapsed() >= STATE_CHECK_INTERVAL;
        if is_due {
            self.last_state_check_at = Instant::now();
        }
        is_due
    }

    /// Records whether Plimsoll's hooks run according to the state; returns true if they have ever been
    /// recorded.
    pub(super) fn record_hooks_running(&mut self, are_hooks_recorded: bool) -> bool {
        self.has_hooks_running |= are_hooks_recorded;
        self.has_hooks_running
    }

    /// Returns true if the client runs and Plimsoll's SessionStart hook has not been recorded in time.
    pub(super) fn runs_without_hooks(&self) -> bool {
        !self.has_hooks_running
            && self
                .started_at
                .is_some_and(|started_at| self.active_time.elapsed_since(started_at) > HOOK_START_TIMEOUT)
    }

    /// Returns true if the result came longer ago than `limit`, and no session output followed it.
    pub(super) fn lingers_after_result(&self, limit: Duration) -> bool {
        self.final_result_at.is_some_and(|result_at| self.active_time.elapsed_since(result_at) > limit)
    }

    /// Returns the exceeded timeout if there has been no output for too long, and no result yet. If several tools
    /// are running, the timeout names the last one called, because the others may be waiting for it.
    pub(super) fn exceeded_silence_timeout_before_result(
        &self,
        timeouts: SilenceTimeouts,
    ) -> Option<ExceededTimeout> {
        if self.final_result_at.is_some() {
            return None;
        }
        let tool = self.running_calls.last().map(|(_, tool)| tool.as_str());
        exceeded_timeout_after_silence(self.active_time.elapsed_since(self.last_output_at), tool, timeouts)
    }

    pub(super) fn was_stopped_by_hook(&self) -> bool {
        self.result.as_ref().and_then(|result| result.terminal_reason.as_deref()) == Some("hook_stopped")
    }

    /// Returns true once the client has reported a session or a result.
    pub(super) fn has_reported_session(&self) -> bool {
        self.started_at.is_some() || self.result.is_some()
    }

    /// Returns true once the session has ended with a result.
    pub(super) fn has_result(&self) -> bool {
        self.result.is_some()
    }

    /// Returns true once the client has reported its model and version.
    pub(super) fn has_started(&self) -> bool {
        self.started_at.is_some()
    }

    pub(super) fn client_version(&self) -> String {
        self.client_version.clone()
    }

    /// Returns the context windows that the client has reported, by model.
    pub(super) fn context_windows(&self) -> Vec<(&str, u64)> {
        let usage = self.result.iter().flat_map(|result| &result.model_usage);
        usage.filter_map(|(model, usage)| Some((model.as_str(), usage.context_window?))).collect()
    }
}

/// The time during which both the client and the run were active. Time in which the computer sleeps, or a
/// terminal suspends both, does not count as silence of the client.
#[derive(Debug, Default)]
struct ActiveTime {
    total: Duration,
    last_read_at: Option<Instant>,
}

/// The longest gap between two reads that counts as active time. The loop reads twenty times a second, so a
/// longer gap means that the computer or the process was suspended.
const MAX_READ_GAP: Duration = Duration::from_secs(2);

impl ActiveTime {
    fn advance(&mut self) {
        let now = Instant::now();
        let elapsed = self.last_read_at.replace(now).map_or(Duration::ZERO, |last_read| now - last_read);
        self.add_elapsed_time(elapsed);
    }

    fn add_elapsed_time(&mut self, elapsed: Duration) {
        self.total += elapsed.min(MAX_READ_GAP);
    }

    fn elapsed_since(&self, start: Duration) -> Duration {
        self.total.saturating_sub(start)
    }
}

fn quotas_from_rate_limit(limit: &RateLimit) -> SubscriptionQuotas {
    let to_quota_window = |window: Option<plimsoll_protocol::rate_limit::QuotaWindow>| {
        let window = window?;
        let resets_at = window.resets_at.and_then(clock::from_unix_seconds).map(clock::to_timestamp);
        Some(QuotaWindow { used_percent: window.utilization? * 100.0, resets_at })
    };
    SubscriptionQuotas {
        five_hour: to_quota_window(limit.five_hour_window()),
        seven_day: to_quota_window(limit.seven_day_window()),
    }
}

fn tool_used_events(message: &Message) -> Vec<RunEvent<'static>> {
    let tool_uses = message.blocks().iter().filter(|block| block.kind.as_deref() == Some("tool_use"));
    tool_uses
        .map(|block| RunEvent::ToolUsed {
            detail: command_or_file_path_of_call(block),
            name: block.name.clone().unwrap_or_default(),
        })
        .collect()
}

fn tool_call_ids_and_labels(message: &Message) -> Vec<(String, String)> {
    let tool_uses = message.blocks().iter().filter(|block| block.kind.as_deref() == Some("tool_use"));
    tool_uses
        .filter_map(|block| {
            let (name, detail) =
                (block.name.clone().unwrap_or_default(), command_or_file_path_of_call(block));
            let label = if detail.is_empty() { name } else { format!("{name}: {detail}") };
            Some((block.id.clone()?, label))
        })
        .collect()
}

fn command_or_file_path_of_call(block: &ContentBlock) -> String {
    let text = block.input.command.as_ref().or(block.input.file_path.as_ref());
    truncate_end(&to_safe_single_line(text.map_or("", String::as_str)), 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_reported_once_and_again_with_another_status() {
        let mut reader = StreamReader::new(PathBuf::from("/nowhere"), "");
        let reported: Vec<u64> = [0, 0, 0, 529, 529, 0]
            .into_iter()
            .filter_map(|status| match reader.record_api_retry_if_status_changed(status)? {
                RunEvent::ApiRetry { status, .. } => Some(status),
                _ => None,
            })
            .collect();
        assert_eq!(reported, [0, 529, 0]);
    }

    #[test]
    fn a_suspended_computer_makes_no_client_silent() {
        let mut active_time = ActiveTime::default();
        for _ in 0..100 {
            active_time.add_elapsed_time(Duration::from_millis(50));
        }
        assert_eq!(active_time.elapsed_since(Duration::from_secs(1)), Duration::from_secs(4));
        active_time.add_elapsed_time(Duration::from_secs(8 * 3600));
        assert_eq!(active_time.elapsed_since(Duration::from_secs(1)), Duration::from_secs(4) + MAX_READ_GAP);
    }

    #[test]
    fn a_result_has_the_cost_unless_the_session_continued_after_it() {
        const RESULT: &str =
            r#"{"type":"result","total_cost_usd":0.5,"modelUsage":{"claude-opus-5-5":{"inputTokens":100}}}"#;
        let response = |id: &str| {
            format!(
                r#"{{"type":"assistant","message":{{"id":"{id}","model":"claude-opus-5-5","usage":{{"input_tokens":100}}}}}}"#
            )
        };
        let run_reader = |lines: &[String]| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("output.jsonl");
            let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            plimsoll_store::disk::replace(&path, text.as_bytes(), plimsoll_store::Durability::Lazy).unwrap();
            let mut reader = StreamReader::new(path, "2.1.329");
            reader.read_new_events();
            let result = reader.session_result(ProcessExit::default());
            (
                result.cost.map(|cost| cost.usd),
                result.tokens,
                result.output_usage.map(|usage| usage.total_cost().usd),
            )
        };
        let finished = [response("m1"), RESULT.to_owned()];
        assert_eq!(run_reader(&finished), (Some(0.5), 100, Some(0.5)));
        let continued = [response("m1"), RESULT.to_owned(), response("m2")];
        assert_eq!(run_reader(&continued), (None, 200, Some(0.5 + 100.0 * 4.0 / 1e6)));
        assert_eq!(run_reader(&[response("m1")]), (None, 100, Some(100.0 * 4.0 / 1e6)));
        // A result that a session appends to its own output does not make it cheaper.
        let forged = r#"{"type":"result","total_cost_usd":0,"modelUsage":{}}"#.to_owned();
        let cheaper = [response("m1"), RESULT.to_owned(), forged];
        assert_eq!(run_reader(&cheaper), (None, 100, Some(0.5)));
    }
}
