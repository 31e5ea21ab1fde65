//! The reading: how full is the session? The best source that speaks for *this* session, never another's, and
//! unknown rather than guessed.

use crate::hook_invocation::HookInvocation;
use plimsoll_domain::level::{Level, Thresholds};
use plimsoll_domain::reading::{Reading, UsedSource, Window, WindowSource};
use plimsoll_domain::record::{ClientSettings, StatusRecord};
use plimsoll_domain::{SessionRecord, Settings};
use plimsoll_policy::monitor::is_worth_waiting;
use plimsoll_policy::thresholds::{self, CompactionConfig};
use plimsoll_policy::window::{self, WindowEvidence};
use plimsoll_protocol::client_environment;
use plimsoll_protocol::tool::{ToolCall, Visible};
use plimsoll_store::tail::{self, Tail};
use plimsoll_store::{Project, StoreError, config, disk, environment, sessions, windows};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// The input of a measurement.
#[derive(Debug)]
pub struct Question<'a> {
    /// The project.
    pub project: &'a Project,
    /// The settings in force.
    pub settings: &'a Settings,
    /// What is remembered of the session.
    pub record: &'a SessionRecord,
    /// Its transcript.
    pub transcript: Option<&'a Path>,
    /// The tool calls of the message at hand; empty when there is none.
    pub calls: &'a [ToolCall],
}

/// A measurement.
#[derive(Debug, Default)]
pub struct Measurement {
    /// The reading; none if nothing is known.
    pub reading: Option<Reading>,
    /// Where the levels begin; none while the window is unknown.
    pub thresholds: Option<Thresholds>,
    /// How long the client's transcript writer was waited for.
    pub waited: Option<Duration>,
    /// Why the transcript could not be read.
    pub trouble: Option<StoreError>,
}

impl Measurement {
    /// The level of what the next request will probably hold; none while that is unknown.
    pub fn level(&self) -> Option<Level> {
        Some(self.thresholds?.level(self.reading.as_ref()?.projected()))
    }
}

/// A token of English has more than three letters, a token of code fewer; four is the usual estimate.
const BYTES_PER_TOKEN: u64 = 4;
/// A picture costs the model a few hundred to about 1,600 tokens, whatever its base64 weighs.
const TOKENS_PER_IMAGE: u64 = 1_600;
/// How often the transcript is looked at while waiting.
const NAP: Duration = Duration::from_millis(3);
/// How much of a transcript's end holds its last answer and the results of what that called.
const LAST_ANSWER: u64 = 1024 * 1024;
/// How long an agent's question waits for the answer that asks it. The client (2.1.329) writes within about 100 ms, and later
/// on a busy machine.
const WRITER_LIMIT: Duration = Duration::from_secs(2);

/// Measures.
pub fn measure(question: &Question<'_>) -> Measurement {
    let ids: Vec<&str> = question.calls.iter().filter_map(|call| call.tool_use_id.as_deref()).collect();
    let mut measurement = Measurement::default();
    let first = read_tail(question.transcript, &ids, &mut measurement);
    measurement.take(question, &first, &ids);
    if let Some(newer) = wait_for_writer(question, &first, &ids, &mut measurement) {
        measurement.take(question, &newer, &ids);
    }
    measurement
}

/// Measures for an agent that asks from one of its tools: it has been answered, so the answer that asked is waited for
/// until the client's writer has put it down.
pub fn measure_once_written(question: &Question<'_>) -> Measurement {
    if let Some(transcript) = question.transcript {
        wait_for_question(transcript);
    }
    measure(question)
}

/// The client's writer was seen to lag up to 106 ms (2.1.329): what it has not written after this time does not come.
const WRITER_LAG: Duration = Duration::from_millis(200);

/// A call without a result may also be the one before ours, whose result the writer has not put down either: it is
/// believed when the file has rested.
fn wait_for_question(transcript: &Path) {
    let started = Instant::now();
    let (mut size, mut grew) = (None, started);
    while started.elapsed() < WRITER_LIMIT && !(grew.elapsed() >= WRITER_LAG && is_asking(transcript)) {
        std::thread::sleep(NAP);
        let now = disk::size(transcript);
        if now != size {
            (size, grew) = (now, Instant::now());
        }
    }
}

/// Waits for the result of the last answer's call: the client ends a session that the user interrupted in a tool before its
/// writer has put the result down (2.1.329, rarely). A call that nobody answers any more costs this wait once.
pub(crate) fn wait_for_results(transcript: &Path) {
    let (started, mut size) = (Instant::now(), None);
    while started.elapsed() < RESULTS_LIMIT {
        let now = disk::size(transcript);
        if now.is_none() || now != size && !is_asking(transcript) {
            return;
        }
        size = now;
        std::thread::sleep(NAP);
    }
}

/// The client ends a hook of the session's end after 1.5 s, unless its entry says more.
const RESULTS_LIMIT: Duration = Duration::from_millis(500);

/// True if the last answer of a transcript has a tool call without a result: the one that is asking. A transcript
/// that cannot be read is not waited for.
fn is_asking(transcript: &Path) -> bool {
    let Ok(lines) = tail::last_lines(transcript, LAST_ANSWER) else { return true };
    let mut results = BTreeSet::new();
    let mut answer = None;
    for line in lines.iter().rev().filter(|line| !line.is_sidechain) {
        let is_answer = line.kind.as_deref() == Some("assistant");
        // An answer has a line for each of its parts.
        if is_answer && answer.get_or_insert(&line.message.id) != &&line.message.id {
            return false;
        }
        for block in line.message.blocks() {
            match block.kind.as_deref() {
                Some("tool_result") => _ = results.insert(&block.tool_use_id),
                Some("tool_use") if is_answer && !results.contains(&block.id) => return true,
                _ => {}
            }
        }
    }
    false
}

/// Measures the session that a hook was called in, with the tools that its event speaks of.
pub(crate) fn of_call(call: &HookInvocation, record: &SessionRecord) -> Measurement {
    measure(&Question {
        project: &call.project,
        settings: &call.settings,
        record,
        transcript: call.transcript(),
        calls: call.event().tool_calls(),
    })
}

impl Measurement {
    fn take(&mut self, question: &Question<'_>, tail: &Tail, ids: &[&str]) {
        let Some(reading) = reading(question, tail, ids) else { return };
        self.thresholds =
            reading.window.as_ref().map(|window| thresholds(question, window, reading.model.as_deref()));
        self.reading = Some(reading);
    }
}

fn read_tail(transcript: Option<&Path>, ids: &[&str], measurement: &mut Measurement) -> Tail {
    match transcript.map(|path| tail::read(path, ids)) {
        Some(Ok(tail)) => tail,
        Some(Err(error)) => {
            measurement.trouble = Some(error);
            Tail::default()
        }
        None => Tail::default(),
    }
}

/// A hook that answers in a millisecond is usually faster than the client's own writer. Near a level the
/// message at hand is worth a little wait; far from any it is not.
fn wait_for_writer(
    question: &Question<'_>,
    first: &Tail,
    ids: &[&str],
    measurement: &mut Measurement,
) -> Option<Tail> {
    let is_here = |tail: &Tail| tail.answer.as_ref().is_some_and(|answer| answer.is_the_one);
    if ids.is_empty() || is_here(first) || measurement.trouble.is_some() {
        return None;
    }
    // A commit says how much a step took: it is rare, and only a run asks for it.
    let is_commit = question.record.start.run_id.is_some() && question.calls.iter().any(ToolCall::may_commit);
    if !is_commit && !may_be_near_a_level(question, first, measurement) {
        return None;
    }
    let started = Instant::now();
    let limit = Duration::from_millis(question.settings.freshness_wait_ms);
    let mut tail = first.clone();
    // On 2.1.329 only 5 of 90 fast hooks found their message in the transcript at once; it came within 89 ms.
    while !is_here(&tail) && started.elapsed() < limit {
        std::thread::sleep(NAP);
        if question.transcript.and_then(disk::size) != Some(tail.size) {
            tail = read_tail(question.transcript, ids, measurement);
        }
    }
    measurement.waited = Some(started.elapsed());
    Some(tail)
}

fn may_be_near_a_level(question: &Question<'_>, tail: &Tail, measurement: &Measurement) -> bool {
    let record = question.record;
    let Some((before, thresholds)) = measurement.reading.as_ref().zip(measurement.thresholds.as_ref()) else {
        // Nothing is known before the first answer, and it may be a large one: it is waited for once.
        return tail.size > 0
            && measurement.reading.is_none()
            && record.usage.reading.is_none()
            && record.waits.count == 0;
    };
    let remembered = record.usage.reading.as_ref().map_or(0, Reading::projected);
    // What came since the last answer that is written: a long prompt, files that it names, results of tools.
    let came = tail.answer.as_ref().map_or(0, |answer| answer.bytes_after / BYTES_PER_TOKEN);
    let known = if tail.compaction.is_some() { before.projected() } else { before.measured() };
    let last_known = known.saturating_add(came).max(remembered);
    is_worth_waiting(last_known, thresholds, record.announced.level)
}

fn reading(question: &Question<'_>, tail: &Tail, ids: &[&str]) -> Option<Reading> {
    let status = sessions::load_status(question.project, &question.record.session_id);
    let mut reading = from_transcript(tail, ids);
    let answered = !question.calls.is_empty();
    if let Some(newer) =
        status.as_ref().and_then(|status| from_status(status, tail, reading.as_ref(), answered))
    {
        reading = Some(newer);
    }
    let mut reading = reading.or_else(from_environment)?;
    // A switch of models shows in the status line first, and in the transcript with the next answer.
    if let Some(newer) = status.as_ref().filter(|status| is_newer(status, &reading)) {
        reading.model = newer.model.clone().or(reading.model);
    }
    if reading.window.is_none() {
        let written = tail.answer.as_ref().and_then(|answer| answer.client_version.as_deref());
        let at_boundary =
            || tail.compaction.as_ref().and_then(|compaction| compaction.client_version.as_deref());
        let version = written.or_else(at_boundary);
        let window = |evidence: &WindowEvidence<'_>| {
            window::window(&WindowEvidence {
                used: reading.used,
                client_version: version,
                ..evidence.clone()
            })
        };
        reading.window = with_evidence(question, reading.model.as_deref(), status.as_ref(), window);
    }
    reading.added = added(question.calls);
    if reading.source == UsedSource::Compaction {
        reading.added = reading.added.saturating_add(overhead(question, reading.window.as_ref()));
    }
    Some(reading)
}

/// Estimates the tokens of system prompt and tools by the session's first request.
#[inline(never)]
fn overhead(question: &Question<'_>, window: Option<&Window>) -> u64 {
    let first = question.transcript.and_then(tail::first_request);
    first.map_or(0, |first| {
        let prompt_tokens = first.prompt_bytes / BYTES_PER_TOKEN;
        window::overhead(first.used, prompt_tokens, window.map(|window| window.tokens))
    })
}

fn from_transcript(tail: &Tail, ids: &[&str]) -> Option<Reading> {
    let blank = |source| Reading {
        used: 0,
        output: 0,
        added: 0,
        window: None,
        model: None,
        source,
        message_id: None,
        at: None,
        behind: false,
    };
    if let Some(compaction) = &tail.compaction {
        let behind = !ids.is_empty();
        let used = compaction.metadata.post_tokens?;
        // Usage from before the boundary is stale, and the summarizer's own is not in the file (2.1.329).
        let (model, at) = (compaction.model.clone(), compaction.at.clone());
        return Some(Reading { used, model, at, behind, ..blank(UsedSource::Compaction) });
    }
    let answer = tail.answer.clone()?;
    Some(Reading {
        used: answer.used,
        output: answer.output,
        model: answer.model,
        message_id: answer.message_id,
        at: answer.at,
        behind: !ids.is_empty() && !answer.is_the_one,
        ..blank(UsedSource::Transcript)
    })
}

fn is_newer(status: &StatusRecord, reading: &Reading) -> bool {
    reading.at.as_ref().is_none_or(|at| status.at > *at)
}

/// The status line's record, if it is newer than what the transcript has. Where there is no transcript (the client writes none
/// with `CLAUDE_CODE_CHILD_SESSION`), it is all that is known of a session that has answered.
fn from_status(
    status: &StatusRecord,
    tail: &Tail,
    transcript: Option<&Reading>,
    answered: bool,
) -> Option<Reading> {
    let used = status.used.filter(|used| *used > 0)?;
    let newer = match (transcript, &tail.compaction) {
        (Some(reading), _) => reading.used != used && is_newer(status, reading),
        // The boundary did not say what is left, and the figure may be from before it.
        (None, Some(compaction)) => compaction.at.as_ref().is_some_and(|at| status.at > *at),
        // An empty transcript may belong to a session that has just been cleared.
        (None, None) => tail.size > 0 || answered,
    };
    newer.then(|| Reading {
        used,
        output: status.output.unwrap_or(0),
        added: 0,
        window: None,
        model: status.model.clone(),
        source: UsedSource::StatusLine,
        message_id: None,
        at: Some(status.at.clone()),
        behind: false,
    })
}

fn from_environment() -> Option<Reading> {
    let percent =
        environment::number("CLAUDE_CONTEXT_PERCENT").filter(|percent| (0.0..=100.0).contains(percent))?;
    let window = Window { tokens: 1_000_000, source: WindowSource::Assumed };
    Some(Reading {
        used: (window.tokens as f64 * percent / 100.0).round() as u64,
        output: 0,
        added: 0,
        window: Some(window),
        model: None,
        source: UsedSource::Environment,
        message_id: None,
        at: None,
        behind: false,
    })
}

/// Asks with all that is known about the window.
pub(crate) fn with_evidence<T>(
    question: &Question<'_>,
    model: Option<&str>,
    status: Option<&StatusRecord>,
    ask: impl FnOnce(&WindowEvidence<'_>) -> T,
) -> T {
    let remembered = question.record.usage.reading.as_ref();
    let model = model
        .or(remembered.and_then(|old| old.model.as_deref()))
        .or_else(|| status.and_then(|status| status.model.as_deref()));
    let of_status =
        status.filter(|status| status.model.is_none() || model.is_none() || status.model.as_deref() == model);
    ask(&WindowEvidence {
        model,
        settings: Some(&question.settings.windows),
        status_line: of_status.and_then(|status| status.window),
        learned: model.and_then(|model| {
            window::learned_before(remembered, model)
                .or_else(|| windows::load(question.project).get(model).copied())
        }),
        million_disabled: environment::flag("CLAUDE_CODE_DISABLE_1M_CONTEXT"),
        max_context_tokens: environment::variable("CLAUDE_CODE_MAX_CONTEXT_TOKENS")
            .and_then(|text| client_environment::integer(&text)),
        client_version: None,
        used: 0,
    })
}

/// Where the levels begin, by the settings, the environment and the client's own settings.
pub fn thresholds(question: &Question<'_>, window: &Window, model: Option<&str>) -> Thresholds {
    let auto_compact = thresholds::auto_compact(window.tokens, model, &compaction_config(question, model));
    let Settings { levels, margins, .. } = question.settings;
    thresholds::thresholds(window.tokens, auto_compact, levels, margins, question.record.usage.largest_step)
}

/// What moves the auto-compact threshold: the client's variables, which reach hooks by inheritance, and its settings, as the
/// session's record has them unless a settings file was written since.
fn compaction_config(question: &Question<'_>, model: Option<&str>) -> CompactionConfig {
    let recorded = question.record.start.client_settings.as_ref();
    let changed = config::changed_client_settings(question.project, recorded);
    let nothing = ClientSettings::default();
    let client = changed.as_ref().or(recorded).unwrap_or(&nothing);
    let switched_off = environment::flag("DISABLE_AUTO_COMPACT") || environment::flag("DISABLE_COMPACT");
    let variable = |name| environment::variable(name);
    CompactionConfig {
        auto_compact: !switched_off && client.auto_compact_enabled.unwrap_or(true),
        compact_window: variable("CLAUDE_CODE_AUTO_COMPACT_WINDOW")
            .and_then(|text| client_environment::compaction_window(&text))
            .or_else(|| thresholds::compaction_window(&client.compaction_windows, model)),
        percent_override: variable("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE")
            .and_then(|text| client_environment::decimal(&text)),
        max_output: variable("CLAUDE_CODE_MAX_OUTPUT_TOKENS")
            .and_then(|text| client_environment::integer(&text)),
    }
}

fn added(calls: &[ToolCall]) -> u64 {
    let seen = calls.iter().map(ToolCall::visible);
    seen.map(|Visible { bytes, images }| bytes / BYTES_PER_TOKEN + images * TOKENS_PER_IMAGE).sum()
}
