//! `plimsoll gate` and `plimsoll monitor` for a loop of shell scripts whose `ralph-state.json` was not
//! written by one of our runs. They judge sessions, start no process, and write what the loop's scripts would
//! have written. Only these two commands use this module; hooks of a session do not.

use crate::checkpoint::facts;
use crate::checkpoint::facts::HandoffInput;
use crate::checkpoint::{self, CheckpointRequest};
use crate::context::measure;
use crate::context::measure::Measurement;
use crate::hook_invocation::HookInvocation;
use crate::run::fingerprint::read_fingerprint;
use crate::run::prompt::PromptError;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::handoff::HandoffNotes;
use plimsoll_domain::last_gate_judgment::LastGateJudgment;
use plimsoll_domain::level::Level;
use plimsoll_domain::state::{CheckpointCause, WorktreeFingerprint};
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_domain::{
    Marker, ProcessExit, SessionEnding, SessionId, SessionRecord, Settings, UsageReading, prompt,
};
use plimsoll_policy::session_ending::classify_ending;
use plimsoll_policy::shell_loop::{
    self, CheckpointInput, LoopEvidence, LoopVerdict, MonitorAction, ShellLoop,
};
use plimsoll_protocol::event::HookEvent;
use plimsoll_protocol::result::ClientResult;
use plimsoll_protocol::tool::ToolCall;
use plimsoll_store::{
    Durability, Project, StoreError, clock, config, disk, environment, sessions, state_file,
};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The output and the exit status of a command for a shell loop.
#[derive(Debug, Default)]
pub struct LoopCommandOutput {
    pub marker_line: Option<String>,
    /// Warnings for standard error.
    pub warnings: Vec<String>,
    pub exit_status: ExitStatus,
}

/// The variable with the usage percentage, which the loop's scripts also read.
const PERCENT_VARIABLE: &str = "CLAUDE_CONTEXT_PERCENT";
/// How much of the session's last message becomes the summary.
const MAX_SUMMARY_CHARS: usize = 600;

/// Returns true if a loop of shell scripts is running whose state was not written by `plimsoll run`.
pub fn is_shell_loop_running(project: &Project) -> Result<bool, StoreError> {
    Ok(state_file::load_state_document_of_other_program(project)?
        .is_some_and(|document| ShellLoop::from_document_collecting_invalid_fields(&document).is_running()))
}

/// Judges the session that has ended, and updates PROMPT.md and the loop's state; `session_output` is what
/// the session printed, or the JSON of a Stop hook. Returns `None` if the state belongs to a run of
/// `plimsoll run`, or does not exist.
pub fn judge_session_and_update_loop_state(
    project: &Project,
    session_output: Option<&[u8]>,
) -> Result<Option<LoopCommandOutput>, StoreError> {
    let Some(document) = state_file::load_state_document_of_other_program(project)? else { return Ok(None) };
    let loop_state = ShellLoop::from_document_collecting_invalid_fields(&document);
    let last_message =
        session_output.map(LastMessage::parse_hook_input_client_result_or_text).unwrap_or_default();
    let todo = facts::load_default_plan(project);
    let (settings, _) = config::load_settings(project);
    let last_judgment = load_last_judgment(project, &loop_state);
    let is_running = loop_state.is_running();
    let evidence = LoopEvidence {
        last_message: last_message.text.as_deref(),
        fatal_error: last_message.fatal_error,
        todo: todo.as_ref(),
        last_judgment: last_judgment.as_ref(),
        fingerprint: if is_running { read_fingerprint(project) } else { WorktreeFingerprint::default() },
        breaker_limits: settings.breaker,
    };
    let verdict = shell_loop::judge_loop(&loop_state, &evidence);
    if is_running {
        let new_judgment = shell_loop::build_gate_judgment(&loop_state, &evidence);
        // The prompt is written first: after a kill between the two writes it is written again.
        add_prompt_block_at_checkpoint_else_remove(project, &document, &verdict)?;
        save_last_judgment(project, &new_judgment)?;
        state_file::update_state_document_of_other_program(project, |newest_document| {
            shell_loop::write_verdict_into_document(newest_document, &verdict, &new_judgment)
        })?;
    }
    Ok(Some(LoopCommandOutput {
        marker_line: Some(verdict.to_marker_line()),
        warnings: invalid_field_warnings(project, &loop_state),
        exit_status: verdict.exit_status(),
    }))
}

fn invalid_field_warnings(project: &Project, loop_state: &ShellLoop) -> Vec<String> {
    let file = project.relative_to_root(project.state_path());
    loop_state
        .invalid_fields
        .iter()
        .map(|problem| format!("{file}: {problem}; it is treated as missing"))
        .collect()
}

/// The last message of a session, and its fatal error, which no later session can avoid.
#[derive(Default)]
struct LastMessage {
    text: Option<String>,
    fatal_error: Option<String>,
}

impl LastMessage {
    /// Parses the JSON of a Stop hook, the output of `claude -p` as `json` or `stream-json`, or plain text.
    fn parse_hook_input_client_result_or_text(input: &[u8]) -> LastMessage {
        if let Ok(payload) = plimsoll_protocol::HookPayload::parse(input)
            && let HookEvent::Stop(stop) = payload.event
        {
            return LastMessage { text: stop.last_assistant_message, fatal_error: None };
        }
        let last_line = input.split(|byte| *byte == b'\n').rfind(|line| !line.trim_ascii().is_empty());
        let parse_result = |bytes: &[u8]| {
            ClientResult::parse(bytes).ok().filter(|result| result.kind.as_deref() == Some("result"))
        };
        match parse_result(input).or_else(|| parse_result(last_line?)) {
            Some(result) => {
                let ending = classify_ending(Some(&result), ProcessExit::default());
                let fatal_error =
                    if let SessionEnding::Fatal(fatal) = ending { Some(fatal.into()) } else { None };
                LastMessage { text: result.result, fatal_error }
            }
            None => {
                LastMessage { text: Some(String::from_utf8_lossy(input).into_owned()), fatal_error: None }
            }
        }
    }
}

/// Loads the gate's last judgment in this loop.
fn load_last_judgment(project: &Project, loop_state: &ShellLoop) -> Option<LastGateJudgment> {
    let bytes = disk::read(&judgment_path(project)).ok().flatten()?;
    let last_judgment: LastGateJudgment = serde_json::from_slice(&bytes).ok()?;
    (last_judgment.loop_started_at == loop_state.started_at).then_some(last_judgment)
}

fn save_last_judgment(project: &Project, judgment: &LastGateJudgment) -> Result<(), StoreError> {
    disk::replace(&judgment_path(project), json!(judgment).to_string().as_bytes(), Durability::Lazy)
}

fn judgment_path(project: &Project) -> PathBuf {
    project.data_folder().join("foreign-loop.json")
}

/// Updates PROMPT.md: a checkpoint is written into a block above the user's own text; any other verdict than a
/// stop removes the block again.
fn add_prompt_block_at_checkpoint_else_remove(
    project: &Project,
    state_document: &Value,
    verdict: &LoopVerdict,
) -> Result<(), StoreError> {
    let Some(prompt_bytes) = disk::read(&project.prompt_path())? else { return Ok(()) };
    let Ok(task) = prompt::strip_prompt_block(&prompt_bytes) else { return Ok(()) };
    let new_prompt_bytes = match verdict {
        LoopVerdict::Stop(..) => return Ok(()),
        LoopVerdict::Checkpoint(_) => prompt_with_resume_block(state_document, task),
        _ => task.to_vec(),
    };
    if new_prompt_bytes == prompt_bytes {
        Ok(())
    } else {
        disk::replace(&project.prompt_path(), &new_prompt_bytes, Durability::Durable)
    }
}

fn prompt_with_resume_block(state_document: &Value, task: &[u8]) -> Vec<u8> {
    prompt::assemble_prompt_file(
        &prompt::PromptBlock::from_body(&shell_loop::render_resume_instructions(state_document)),
        task,
    )
}

/// Writes PROMPT.md for the session that resumes the loop's checkpoint, and returns the handoff that it
/// names. Returns `None` if no shell loop is running here, or its state has no active checkpoint. The state
/// is not changed: the scripts clear the checkpoint.
pub fn write_prompt_and_return_pending_handoff_path(
    project: &Project,
) -> Result<Option<String>, PromptError> {
    let Some(document) = state_file::load_state_document_of_other_program(project)? else { return Ok(None) };
    let loop_state = ShellLoop::from_document_collecting_invalid_fields(&document);
    let Some((handoff_file, _)) = loop_state.pending_checkpoint.clone().filter(|_| loop_state.is_running())
    else {
        return Ok(None);
    };
    let prompt_bytes = disk::read(&project.prompt_path())?;
    let task = match &prompt_bytes {
        Some(prompt_bytes) => {
            prompt::strip_prompt_block(prompt_bytes).map_err(|_| PromptError::MissingEndMarker)?.to_vec()
        }
        None => document["objective"].as_str().unwrap_or_default().as_bytes().to_vec(),
    };
    disk::replace(&project.prompt_path(), &prompt_with_resume_block(&document, &task), Durability::Durable)?;
    Ok(Some(handoff_file))
}

/// The session that the monitor measures.
struct MonitoredSession {
    session_id: SessionId,
    transcript_path: Option<PathBuf>,
    tool_calls: Vec<ToolCall>,
    record: SessionRecord,
    measurement: Measurement,
    level: Level,
    percent: u64,
}

/// Measures the session, and writes a checkpoint if one is due; `hook_input` is the JSON of a hook. Returns
/// `None` if the state belongs to a run of `plimsoll run`, or does not exist.
pub fn measure_loop_session_and_checkpoint_if_due(
    project: &Project,
    hook_input: Option<&[u8]>,
) -> Result<Option<LoopCommandOutput>, StoreError> {
    let Some(document) = state_file::load_state_document_of_other_program(project)? else { return Ok(None) };
    let loop_state = ShellLoop::from_document_collecting_invalid_fields(&document);
    if !loop_state.is_running() {
        return Ok(Some(LoopCommandOutput::default()));
    }
    let (settings, _) = config::load_settings(project);
    let Some(session) = measure_usage_from_hook_or_environment(hook_input, &settings) else {
        return Ok(Some(LoopCommandOutput {
            warnings: invalid_field_warnings(project, &loop_state),
            ..LoopCommandOutput::default()
        }));
    };
    let (level, percent) = (session.level, session.percent);
    let render_marker = |handoff| Marker::Checkpoint { level, percent: Some(percent), handoff }.to_string();
    let (marker_line, error) = match shell_loop::monitor_action(&loop_state, level) {
        MonitorAction::Nothing => (None, None),
        MonitorAction::Warn => (Some(Marker::Warning { level, percent }.to_string()), None),
        MonitorAction::RepeatMarker => {
            (loop_state.pending_checkpoint.clone().map(|(handoff, _)| render_marker(handoff)), None)
        }
        MonitorAction::Checkpoint => {
            match write_loop_checkpoint_and_return_handoff_path(project, &settings, &session) {
                Ok(handoff) => (Some(render_marker(handoff)), None),
                // The session must still end at L3 if the checkpoint could not be written.
                Err(error) => (Some(Marker::Warning { level, percent }.to_string()), Some(error.to_string())),
            }
        }
    };
    let warnings = invalid_field_warnings(project, &loop_state).into_iter().chain(error).collect();
    Ok(Some(LoopCommandOutput {
        marker_line,
        warnings,
        exit_status: ExitStatus::failure_if(level == Level::L3),
    }))
}

/// Measures the session by the transcript that a hook's JSON names, else by the percentage in the
/// environment.
fn measure_usage_from_hook_or_environment(
    hook_input: Option<&[u8]>,
    settings: &Settings,
) -> Option<MonitoredSession> {
    let invocation = hook_input.and_then(|input| HookInvocation::parse_input_and_load_project(input).ok());
    if let Some(invocation) = invocation {
        // A subagent's event contains the transcript of its parent.
        let is_measured_event =
            matches!(invocation.event(), HookEvent::PostToolBatch(_) | HookEvent::PostToolUse(_));
        if !is_measured_event || invocation.payload.is_in_subagent() || invocation.session_id.is_empty() {
            return None;
        }
        let record = sessions::load_session_record(&invocation.project, &invocation.session_id);
        let measurement = measure::measure_hook_session_waiting_near_threshold(&invocation, &record);
        let percent = measurement.reading.as_ref().and_then(UsageReading::projected_percent);
        if let Some((level, percent)) = measurement.projected_level().zip(percent) {
            let (session_id, transcript_path) =
                (invocation.session_id.clone(), invocation.transcript_path().map(Into::into));
            let tool_calls = invocation.event().tool_calls().to_vec();
            return Some(MonitoredSession {
                session_id,
                transcript_path,
                tool_calls,
                record,
                measurement,
                level,
                percent,
            });
        }
    }
    let percent = environment::numeric_variable(PERCENT_VARIABLE)
        .filter(|percent| (0.0..=1_000.0).contains(percent))?;
    let percent = percent.round() as u64;
    Some(MonitoredSession {
        session_id: SessionId::default(),
        transcript_path: None,
        tool_calls: Vec::new(),
        record: SessionRecord::default(),
        measurement: Measurement::default(),
        level: shell_loop::level_for_percent(percent, &settings.levels),
        percent,
    })
}

/// Writes the handoff, then records the checkpoint in the loop's state. Returns the handoff's path.
fn write_loop_checkpoint_and_return_handoff_path(
    project: &Project,
    settings: &Settings,
    session: &MonitoredSession,
) -> Result<String, StoreError> {
    let transcript_path = session.transcript_path.as_deref();
    let session_facts = facts::build_handoff_from_git_plan_and_transcript(&HandoffInput {
        project,
        transcript_path,
        record: &session.record,
        run: None,
        cause: CheckpointCause::Level,
        pending_calls: &session.tool_calls,
    });
    // The handoff is written first, because the state names it: a kill in between leaves an unused file, and the
    // next event writes the checkpoint again.
    let handoff = checkpoint::write_checkpoint(&CheckpointRequest {
        project,
        settings,
        session_id: &session.session_id,
        transcript_path: session.transcript_path.clone(),
        run: None,
        cause: CheckpointCause::Level,
        level: session.level,
        reading: session.measurement.reading.as_ref(),
        thresholds: session.measurement.thresholds.as_ref(),
        transcript_wait: session.measurement.transcript_wait,
        pending_calls: &session.tool_calls,
        notes: HandoffNotes::default(),
    })?
    .file;
    let checkpoint_facts = CheckpointInput {
        timestamp: clock::to_timestamp(clock::now()),
        handoff: handoff.clone(),
        summary: session_facts
            .last_message
            .map(|message| truncate_end(&to_safe_single_line(&message), MAX_SUMMARY_CHARS))
            .unwrap_or_default(),
        files: session_facts.changed_files,
    };
    state_file::update_state_document_of_other_program(project, |document| {
        shell_loop::write_checkpoint_and_history_into_document(
            document,
            session.level,
            session.percent,
            &checkpoint_facts,
        );
        true
    })?;
    Ok(handoff)
}
