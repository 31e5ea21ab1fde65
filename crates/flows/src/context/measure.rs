//! Measures the context usage of a session. Uses the best source for *this* session and never another
//! session's; an unknown value stays unknown instead of being guessed.

use crate::hook_invocation::HookInvocation;
use plimsoll_domain::level::{AutoCompactAction, AutoCompactThreshold, Level, Thresholds};
use plimsoll_domain::reading::{UsageReading, UsageSource, WindowSize, WindowSource};
use plimsoll_domain::record::{ClientCompactionSettings, StatusLineRecord};
use plimsoll_domain::{SessionRecord, Settings};
use plimsoll_policy::monitor::should_wait_for_transcript;
use plimsoll_policy::thresholds::{self, CompactionConfig};
use plimsoll_policy::window::{self, WindowEvidence};
use plimsoll_protocol::client_environment;
use plimsoll_protocol::client_report::ClientReport;
use plimsoll_protocol::tool::{ToolCall, VisibleSize};
use plimsoll_store::tail::{self, TranscriptTail};
use plimsoll_store::{Project, StoreError, config, context_windows, disk, environment, sessions};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Input of a measurement.
#[derive(Debug)]
pub struct MeasureInput<'a> {
    pub project: &'a Project,
    pub settings: &'a Settings,
    /// The record of the session.
    pub record: &'a SessionRecord,
    pub transcript_path: Option<&'a Path>,
    /// Tool calls of the current message; empty if there is none.
    pub pending_calls: &'a [ToolCall],
}

#[derive(Debug, Default)]
pub struct Measurement {
    /// The reading; `None` if no source has one.
    pub reading: Option<UsageReading>,
    /// The thresholds; `None` while the size of the window is unknown.
    pub thresholds: Option<Thresholds>,
    /// How long the hook waited for the client to write the transcript.
    pub transcript_wait: Option<Duration>,
    /// Why the transcript could not be read.
    pub transcript_error: Option<StoreError>,
}

impl Measurement {
    /// Returns the level that the next request will probably reach. Returns `None` while that is unknown.
    pub fn projected_level(&self) -> Option<Level> {
        Some(self.thresholds?.level_at(self.reading.as_ref()?.projected_tokens()))
    }
}

/// A token of English has about four characters, a token of code fewer; four is the usual estimate.
pub(crate) const BYTES_PER_TOKEN: u64 = 4;
/// An image costs the model a few hundred to about 1,600 tokens, regardless of the size of its base64 text.
const TOKENS_PER_IMAGE: u64 = 1_600;
const TRANSCRIPT_POLL_INTERVAL: Duration = Duration::from_millis(3);
/// How many bytes at the end of a transcript contain its last response and the results of its calls.
const MAX_LAST_RESPONSE_BYTES: u64 = 1024 * 1024;
/// How long a Plimsoll tool waits until the response that called it is in the transcript. The client (2.1.329)
/// writes within about 100 ms, and later on a busy machine.
const CALL_IN_TRANSCRIPT_TIMEOUT: Duration = Duration::from_secs(2);

/// Measures a session. Near a threshold, waits for the client to write the current message to the transcript.
pub fn measure_usage_waiting_near_threshold(input: &MeasureInput<'_>) -> Measurement {
    let pending_call_ids: Vec<&str> =
        input.pending_calls.iter().filter_map(|call| call.tool_use_id.as_deref()).collect();
    let mut measurement = Measurement::default();
    let first_tail =
        read_tail_or_set_transcript_error(input.transcript_path, &pending_call_ids, &mut measurement);
    measurement.update_reading_and_thresholds(input, &first_tail, &pending_call_ids);
    if let Some(newer_tail) =
        wait_for_response_near_threshold_or_commit(input, &first_tail, &pending_call_ids, &mut measurement)
    {
        measurement.update_reading_and_thresholds(input, &newer_tail, &pending_call_ids);
    }
    measurement
}

/// Measures a session by the client's own figures. Where the client reports none, measures it as everywhere else.
pub fn measure_usage_by_client_report(input: &MeasureInput<'_>, report: &ClientReport) -> Measurement {
    let Some((used_tokens, window_tokens)) = report.tokens.zip(report.window.filter(|tokens| *tokens > 0))
    else {
        return measure_usage_waiting_near_threshold(input);
    };
    let window = WindowSize { tokens: window_tokens, source: WindowSource::Client };
    let computed_thresholds = compute_session_thresholds(input, &window, report.model.as_deref());
    // For models that never compact by themselves, the client (2.1.332) reports a threshold at which nothing happens.
    let compacts = report.auto_compact.enabled != Some(false)
        && computed_thresholds.auto_compact.action != AutoCompactAction::ApiRejectsPrompt;
    let thresholds = match report.auto_compact.threshold.filter(|_| compacts) {
        Some(tokens) => thresholds::compute_thresholds(
            window_tokens,
            AutoCompactThreshold { tokens, action: AutoCompactAction::Compacts },
            &input.settings.levels,
            &input.settings.margins,
            input.record.usage.largest_step,
        ),
        None => computed_thresholds,
    };
    Measurement {
        reading: Some(UsageReading {
            used_tokens,
            output_tokens: 0,
            estimated_added_tokens: 0,
            window: Some(window),
            model: report.model.clone(),
            usage_source: UsageSource::Client,
            message_id: None,
            responded_at: None,
            is_one_request_behind: false,
        }),
        thresholds: Some(thresholds),
        ..Measurement::default()
    }
}

/// Measures a session from within one of its tool calls. First waits until the response that called the tool
/// is in the transcript.
pub fn wait_for_tool_call_and_measure_usage(input: &MeasureInput<'_>) -> Measurement {
    if let Some(transcript) = input.transcript_path {
        wait_until_open_call_is_in_quiet_transcript(transcript);
    }
    measure_usage_waiting_near_threshold(input)
}

/// The client (2.1.329) wrote lines with a delay of up to 106 ms. If the transcript has not grown for this
/// time, it is considered complete.
const TRANSCRIPT_QUIET_PERIOD: Duration = Duration::from_millis(200);

/// Waits until the transcript ends with an open tool call. That call may be an earlier one whose result is
/// not written yet, so it counts only once the file has stopped growing.
fn wait_until_open_call_is_in_quiet_transcript(transcript_path: &Path) {
    let started_at = Instant::now();
    let (mut size, mut last_growth_at) = (None, started_at);
    while started_at.elapsed() < CALL_IN_TRANSCRIPT_TIMEOUT
        && !(last_growth_at.elapsed() >= TRANSCRIPT_QUIET_PERIOD
            && last_response_may_have_open_call(transcript_path))
    {
        std::thread::sleep(TRANSCRIPT_POLL_INTERVAL);
        let current_size = disk::file_size(transcript_path);
        if current_size != size {
            (size, last_growth_at) = (current_size, Instant::now());
        }
    }
}

/// Waits until the last response's calls have results. If the user interrupts a tool, the client may end the
/// session before it has written the result (2.1.329, rarely). A call that never gets a result costs this
/// wait once.
pub(crate) fn wait_for_tool_results(transcript_path: &Path) {
    let (started_at, mut size) = (Instant::now(), None);
    while started_at.elapsed() < TOOL_RESULTS_TIMEOUT {
        let current_size = disk::file_size(transcript_path);
        if current_size.is_none()
            || current_size != size && !last_response_may_have_open_call(transcript_path)
        {
            return;
        }
        size = current_size;
        std::thread::sleep(TRANSCRIPT_POLL_INTERVAL);
    }
}

/// Must fit into the 1.5 s after which the client ends a SessionEnd hook, unless its entry sets a longer
/// timeout.
const TOOL_RESULTS_TIMEOUT: Duration = Duration::from_millis(500);

/// Returns true if the last response of a transcript has a tool call without a result. Also returns true for
/// a transcript that cannot be read.
fn last_response_may_have_open_call(transcript_path: &Path) -> bool {
    let Ok(lines) = tail::read_last_entries(transcript_path, MAX_LAST_RESPONSE_BYTES) else { return true };
    let mut result_ids = BTreeSet::new();
    let mut response_id = None;
    for line in lines.iter().rev().filter(|line| !line.is_sidechain) {
        let is_response = line.kind.as_deref() == Some("assistant");
        // A response has one line for each of its parts.
        if is_response && response_id.get_or_insert(&line.message.id) != &&line.message.id {
            return false;
        }
        for block in line.message.blocks() {
            match block.kind.as_deref() {
                Some("tool_result") => _ = result_ids.insert(&block.tool_use_id),
                Some("tool_use") if is_response && !result_ids.contains(&block.id) => return true,
                _ => {}
            }
        }
    }
    false
}

/// Measures the session of a hook, including the tool calls of its event.
pub(crate) fn measure_hook_session_waiting_near_threshold(
    invocation: &HookInvocation,
    record: &SessionRecord,
) -> Measurement {
    measure_usage_waiting_near_threshold(&MeasureInput {
        project: &invocation.project,
        settings: &invocation.settings,
        record,
        transcript_path: invocation.transcript_path(),
        pending_calls: invocation.event().tool_calls(),
    })
}

impl Measurement {
    fn update_reading_and_thresholds(
        &mut self,
        input: &MeasureInput<'_>,
        tail: &TranscriptTail,
        pending_call_ids: &[&str],
    ) {
        let Some(reading) = read_usage_from_newest_source(input, tail, pending_call_ids) else { return };
        self.thresholds = reading
            .window
            .as_ref()
            .map(|window| compute_session_thresholds(input, window, reading.model.as_deref()));
        self.reading = Some(reading);
    }
}

fn read_tail_or_set_transcript_error(
    transcript_path: Option<&Path>,
    pending_call_ids: &[&str],
    measurement: &mut Measurement,
) -> TranscriptTail {
    match transcript_path.map(|path| tail::find_last_response_or_compaction(path, pending_call_ids)) {
        Some(Ok(tail)) => tail,
        Some(Err(error)) => {
            measurement.transcript_error = Some(error);
            TranscriptTail::default()
        }
        None => TranscriptTail::default(),
    }
}

/// Waits for the current message to be in the transcript, because a fast hook usually runs before the client
/// has written it. Waits only near a threshold or after a commit; otherwise returns `None`.
fn wait_for_response_near_threshold_or_commit(
    input: &MeasureInput<'_>,
    first_tail: &TranscriptTail,
    pending_call_ids: &[&str],
    measurement: &mut Measurement,
) -> Option<TranscriptTail> {
    let last_response_requested_tool_call = |tail: &TranscriptTail| {
        tail.last_response.as_ref().is_some_and(|response| response.has_requested_tool_call)
    };
    if pending_call_ids.is_empty()
        || last_response_requested_tool_call(first_tail)
        || measurement.transcript_error.is_some()
    {
        return None;
    }
    // At a commit the size of the last step is needed. Commits are rare, and only a run needs it.
    let may_contain_commit =
        input.record.start.run_id.is_some() && input.pending_calls.iter().any(ToolCall::mentions_git_commit);
    if !may_contain_commit && !may_be_near_threshold(input, first_tail, measurement) {
        return None;
    }
    let started_at = Instant::now();
    let timeout = Duration::from_millis(input.settings.freshness_wait_ms);
    let mut tail = first_tail.clone();
    // On 2.1.329 only 5 of 90 fast hooks found their message in the transcript at once; it came within 89 ms.
    while !last_response_requested_tool_call(&tail) && started_at.elapsed() < timeout {
        std::thread::sleep(TRANSCRIPT_POLL_INTERVAL);
        if input.transcript_path.and_then(disk::file_size) != Some(tail.file_size) {
            tail = read_tail_or_set_transcript_error(input.transcript_path, pending_call_ids, measurement);
        }
    }
    measurement.transcript_wait = Some(started_at.elapsed());
    Some(tail)
}

fn may_be_near_threshold(input: &MeasureInput<'_>, tail: &TranscriptTail, measurement: &Measurement) -> bool {
    let record = input.record;
    let Some((reading, thresholds)) = measurement.reading.as_ref().zip(measurement.thresholds.as_ref())
    else {
        // Before the first response there is no reading, and that response may be large, so the hook waits for
        // it once.
        return tail.file_size > 0
            && measurement.reading.is_none()
            && record.usage.last_reading.is_none()
            && record.writer_waits.count == 0;
    };
    let recorded_tokens = record.usage.last_reading.as_ref().map_or(0, UsageReading::projected_tokens);
    // Content added after the last recorded response: a long prompt, files that it names, tool results.
    let tokens_since_response =
        tail.last_response.as_ref().map_or(0, |response| response.bytes_after / BYTES_PER_TOKEN);
    let measured_tokens =
        if tail.compaction.is_some() { reading.projected_tokens() } else { reading.measured_tokens() };
    let estimated_tokens = measured_tokens.saturating_add(tokens_since_response).max(recorded_tokens);
    should_wait_for_transcript(estimated_tokens, thresholds, record.highest_announcement.level)
}

fn read_usage_from_newest_source(
    input: &MeasureInput<'_>,
    tail: &TranscriptTail,
    pending_call_ids: &[&str],
) -> Option<UsageReading> {
    let status = sessions::load_status_line_record(input.project, &input.record.session_id);
    let mut reading = reading_from_compaction_or_last_response(tail, pending_call_ids);
    let has_responded = !input.pending_calls.is_empty();
    if let Some(status_reading) = status
        .as_ref()
        .and_then(|status| reading_from_status_if_newer(status, tail, reading.as_ref(), has_responded))
    {
        reading = Some(status_reading);
    }
    let mut reading = reading.or_else(reading_from_percent_in_environment)?;
    // A change of the model shows in the status line first, and in the transcript only with the next
    // response.
    if let Some(newer_status) = status.as_ref().filter(|status| is_status_newer(status, &reading)) {
        reading.model = newer_status.model.clone().or(reading.model);
    }
    if reading.window.is_none() {
        let response_version =
            tail.last_response.as_ref().and_then(|response| response.client_version.as_deref());
        let compaction_version =
            || tail.compaction.as_ref().and_then(|compaction| compaction.client_version.as_deref());
        let client_version = response_version.or_else(compaction_version);
        let resolve_window = |evidence: &WindowEvidence<'_>| {
            window::resolve_window_raising_it_to_used_tokens(&WindowEvidence {
                max_used_tokens: reading.used_tokens,
                client_version,
                ..evidence.clone()
            })
        };
        reading.window =
            call_with_window_evidence(input, reading.model.as_deref(), status.as_ref(), resolve_window);
    }
    reading.estimated_added_tokens = estimate_pending_tokens(input.pending_calls);
    if reading.usage_source == UsageSource::Compaction {
        reading.estimated_added_tokens = reading
            .estimated_added_tokens
            .saturating_add(estimate_prompt_overhead_from_first_request(input, reading.window.as_ref()));
    }
    Some(reading)
}

/// Returns the tokens that a fresh session sends with its first request; `None` if the transcript has no first request.
pub(crate) fn estimate_prompt_overhead_if_recorded(input: &MeasureInput<'_>) -> Option<u64> {
    let window = input.record.usage.last_reading.as_ref().and_then(|reading| reading.window.as_ref());
    Some(estimate_prompt_overhead_from_first_request(input, window)).filter(|tokens| *tokens > 0)
}

/// Estimates the tokens of the system prompt and the tools from the session's first request.
#[inline(never)]
fn estimate_prompt_overhead_from_first_request(input: &MeasureInput<'_>, window: Option<&WindowSize>) -> u64 {
    let first_request = input.transcript_path.and_then(tail::read_first_request_tokens_and_prompt_bytes);
    first_request.map_or(0, |request| {
        let prompt_tokens = request.prompt_bytes / BYTES_PER_TOKEN;
        window::estimate_overhead(request.input_tokens, prompt_tokens, window.map(|window| window.tokens))
    })
}

fn reading_from_compaction_or_last_response(
    tail: &TranscriptTail,
    pending_call_ids: &[&str],
) -> Option<UsageReading> {
    let empty_reading = |source| UsageReading {
        used_tokens: 0,
        output_tokens: 0,
        estimated_added_tokens: 0,
        window: None,
        model: None,
        usage_source: source,
        message_id: None,
        responded_at: None,
        is_one_request_behind: false,
    };
    if let Some(compaction) = &tail.compaction {
        let has_pending_calls = !pending_call_ids.is_empty();
        let tokens_after_compaction = compaction.metadata.post_tokens?;
        // Usage from before the boundary is stale, and the summarizer's own is not in the file (2.1.329).
        let (model, recorded_at) = (compaction.model.clone(), compaction.recorded_at.clone());
        return Some(UsageReading {
            used_tokens: tokens_after_compaction,
            model,
            responded_at: recorded_at,
            is_one_request_behind: has_pending_calls,
            ..empty_reading(UsageSource::Compaction)
        });
    }
    let response = tail.last_response.clone()?;
    Some(UsageReading {
        used_tokens: response.input_tokens,
        output_tokens: response.output_tokens,
        model: response.model,
        message_id: response.message_id,
        responded_at: response.recorded_at,
        is_one_request_behind: !pending_call_ids.is_empty() && !response.has_requested_tool_call,
        ..empty_reading(UsageSource::Transcript)
    })
}

fn is_status_newer(status: &StatusLineRecord, reading: &UsageReading) -> bool {
    reading.responded_at.as_ref().is_none_or(|responded_at| status.first_seen_at > *responded_at)
}

/// Returns the status line's reading if it is newer than the transcript's. Without a transcript (the client
/// writes none with `CLAUDE_CODE_CHILD_SESSION`), it is the only source for a session that has responded.
fn reading_from_status_if_newer(
    status: &StatusLineRecord,
    tail: &TranscriptTail,
    transcript_reading: Option<&UsageReading>,
    has_responded: bool,
) -> Option<UsageReading> {
    let used = status.used_tokens.filter(|used| *used > 0)?;
    let is_newer = match (transcript_reading, &tail.compaction) {
        (Some(reading), _) => reading.used_tokens != used && is_status_newer(status, reading),
        // The compaction boundary does not record the remaining usage, and the status line's figure may be
        // older than the boundary.
        (None, Some(compaction)) => {
            compaction.recorded_at.as_ref().is_some_and(|recorded_at| status.first_seen_at > *recorded_at)
        }
        // An empty transcript may belong to a session that has just been cleared.
        (None, None) => tail.file_size > 0 || has_responded,
    };
    is_newer.then(|| UsageReading {
        used_tokens: used,
        output_tokens: status.output_tokens.unwrap_or(0),
        estimated_added_tokens: 0,
        window: None,
        model: status.model.clone(),
        usage_source: UsageSource::StatusLine,
        message_id: None,
        responded_at: Some(status.first_seen_at.clone()),
        is_one_request_behind: false,
    })
}

fn reading_from_percent_in_environment() -> Option<UsageReading> {
    let percent = environment::numeric_variable("CLAUDE_CONTEXT_PERCENT")
        .filter(|percent| (0.0..=100.0).contains(percent))?;
    let window = WindowSize { tokens: 1_000_000, source: WindowSource::Assumed };
    Some(UsageReading {
        used_tokens: (window.tokens as f64 * percent / 100.0).round() as u64,
        output_tokens: 0,
        estimated_added_tokens: 0,
        window: Some(window),
        model: None,
        usage_source: UsageSource::Environment,
        message_id: None,
        responded_at: None,
        is_one_request_behind: false,
    })
}

/// Calls `callback` with all evidence about the size of the context window. Returns the result of the call.
pub(crate) fn call_with_window_evidence<T>(
    input: &MeasureInput<'_>,
    model: Option<&str>,
    status: Option<&StatusLineRecord>,
    callback: impl FnOnce(&WindowEvidence<'_>) -> T,
) -> T {
    let recorded_reading = input.record.usage.last_reading.as_ref();
    let model = model
        .or(recorded_reading.and_then(|reading| reading.model.as_deref()))
        .or_else(|| status.and_then(|status| status.model.as_deref()));
    let status_of_model =
        status.filter(|status| status.model.is_none() || model.is_none() || status.model.as_deref() == model);
    callback(&WindowEvidence {
        model,
        user_windows: Some(&input.settings.windows),
        status_line_window: status_of_model.and_then(|status| status.window_tokens),
        learned_window: model.and_then(|model| {
            window::last_learned_window_of_model_if_above_200k(recorded_reading, model)
                .or_else(|| context_windows::load_context_windows(input.project).get(model).copied())
        }),
        is_1m_disabled: environment::is_variable_on("CLAUDE_CODE_DISABLE_1M_CONTEXT"),
        max_context_tokens: environment::variable("CLAUDE_CODE_MAX_CONTEXT_TOKENS")
            .and_then(|text| client_environment::parse_leading_positive_integer(&text)),
        client_version: None,
        max_used_tokens: 0,
    })
}

/// Returns the window of a model that has not responded in this session yet; `None` if the model is unknown.
pub(crate) fn resolve_window_of_model(input: &MeasureInput<'_>, model: Option<&str>) -> Option<WindowSize> {
    call_with_window_evidence(input, Some(model?), None, window::resolve_window_raising_it_to_used_tokens)
}

/// Computes the thresholds from the settings, the environment and the client's settings.
pub fn compute_session_thresholds(
    input: &MeasureInput<'_>,
    window: &WindowSize,
    model: Option<&str>,
) -> Thresholds {
    let auto_compact = thresholds::compute_auto_compact_threshold_and_action(
        window.tokens,
        model,
        &load_compaction_config(input, model),
    );
    let Settings { levels, margins, .. } = input.settings;
    thresholds::compute_thresholds(
        window.tokens,
        auto_compact,
        levels,
        margins,
        input.record.usage.largest_step,
    )
}

/// Returns what affects the auto-compact threshold: the client's variables, which hooks inherit, and its
/// settings, taken from the session's record unless a settings file has changed since.
fn load_compaction_config(input: &MeasureInput<'_>, model: Option<&str>) -> CompactionConfig {
    let recorded_settings = input.record.start.client_compaction_settings.as_ref();
    let changed_settings = config::read_client_settings_if_modified(input.project, recorded_settings);
    let default_settings = ClientCompactionSettings::default();
    let client_settings = changed_settings.as_ref().or(recorded_settings).unwrap_or(&default_settings);
    let is_disabled =
        environment::is_variable_on("DISABLE_AUTO_COMPACT") || environment::is_variable_on("DISABLE_COMPACT");
    let variable = |name| environment::variable(name);
    CompactionConfig {
        is_auto_compact_on: !is_disabled && client_settings.auto_compact_enabled.unwrap_or(true),
        compaction_window: variable("CLAUDE_CODE_AUTO_COMPACT_WINDOW")
            .and_then(|text| client_environment::parse_compaction_window_raised_to_minimum(&text))
            .or_else(|| thresholds::configured_compaction_window(&client_settings.compaction_windows, model)),
        percent_override: variable("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE")
            .and_then(|text| client_environment::parse_leading_decimal(&text)),
        max_output_tokens: variable("CLAUDE_CODE_MAX_OUTPUT_TOKENS")
            .and_then(|text| client_environment::parse_leading_positive_integer(&text)),
    }
}

fn estimate_pending_tokens(pending_calls: &[ToolCall]) -> u64 {
    let visible_sizes = pending_calls.iter().map(ToolCall::visible_size);
    visible_sizes
        .map(|VisibleSize { text_bytes: bytes, image_count: images }| {
            bytes / BYTES_PER_TOKEN + images * TOKENS_PER_IMAGE
        })
        .sum()
}
