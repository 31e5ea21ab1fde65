//! `plimsoll gate` and `plimsoll monitor` for a loop of shell scripts whose `ralph-state.json` no run of ours wrote: they
//! judge, start nothing, and write what the loop's own scripts would have written. Only these two commands come here;
//! no hook of a session does.

use crate::checkpoint::facts;
use crate::checkpoint::facts::Asked;
use crate::checkpoint::{self, Request};
use crate::context::measure;
use crate::context::measure::Measurement;
use crate::hook_invocation::HookInvocation;
use crate::run::footing::footing;
use crate::run::prompt::PromptError;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::handoff::Notes;
use plimsoll_domain::last_judgement::LastJudgement;
use plimsoll_domain::level::Level;
use plimsoll_domain::state::{Cause, WorktreeFingerprint};
use plimsoll_domain::text::{clip, one_line};
use plimsoll_domain::{Ending, Exit, Marker, Reading, SessionId, SessionRecord, Settings, prompt};
use plimsoll_policy::foreign::{self, Evidence, Found, Judgement, Loop, Watch};
use plimsoll_policy::session_ending::session_ending;
use plimsoll_protocol::event::Event;
use plimsoll_protocol::result::RunResult;
use plimsoll_protocol::tool::ToolCall;
use plimsoll_store::{
    Durability, Project, StoreError, clock, config, disk, environment, sessions, state_file,
};
use serde_json::{Value, json};
use std::path::PathBuf;

/// What a command prints, and how it exits.
#[derive(Debug, Default)]
pub struct Answer {
    /// The marker line.
    pub line: Option<String>,
    /// Lines for standard error.
    pub complaints: Vec<String>,
    /// The exit code.
    pub exit: ExitStatus,
}

/// A figure that the loop's own scripts know, too.
const PERCENT: &str = "CLAUDE_CONTEXT_PERCENT";
/// How much of the session's last words is a summary.
const SUMMARY: usize = 600;

/// True if a loop of shell scripts is at work whose state no run of ours wrote.
pub fn is_at_work(project: &Project) -> Result<bool, StoreError> {
    Ok(state_file::foreign(project)?.is_some_and(|document| Loop::of(&document).is_running()))
}

/// Judges the session that has ended; `input` is what the session printed, or the JSON of a Stop hook. None if the
/// state is a run's of ours, or there is none.
pub fn gate(project: &Project, input: Option<&[u8]>) -> Result<Option<Answer>, StoreError> {
    let Some(document) = state_file::foreign(project)? else { return Ok(None) };
    let of = Loop::of(&document);
    let last = input.map(Said::of).unwrap_or_default();
    let todo = facts::default_todo(project);
    let (settings, _) = config::load(project);
    let last_judgement = last_judgement(project, &of);
    let is_running = of.is_running();
    let evidence = Evidence {
        last_message: last.words.as_deref(),
        fatal: last.fatal,
        todo: todo.as_ref(),
        last_judgement: last_judgement.as_ref(),
        fingerprint: if is_running { footing(project) } else { WorktreeFingerprint::default() },
        limits: settings.breaker,
    };
    let judgement = foreign::judge(&of, &evidence);
    if is_running {
        let judged = foreign::remember_judgement(&of, &evidence);
        // The prompt first: after a kill between the two it is written again.
        tell_next(project, &document, &judgement)?;
        remember(project, &judged)?;
        state_file::update_foreign(project, |newest| foreign::note_judgement(newest, &judgement, &judged))?;
    }
    Ok(Some(Answer {
        line: Some(judgement.marker()),
        complaints: complaints(project, &of),
        exit: judgement.exit_status(),
    }))
}

fn complaints(project: &Project, of: &Loop) -> Vec<String> {
    let file = project.relative(project.state());
    of.not_understood.iter().map(|what| format!("{file}: {what}; it is treated as missing")).collect()
}

/// What a session said last, and whether no other can do better.
#[derive(Default)]
struct Said {
    words: Option<String>,
    fatal: Option<String>,
}

impl Said {
    /// Of a Stop hook's JSON, of `claude -p --output-format json` or `stream-json`, or of plain text.
    fn of(input: &[u8]) -> Said {
        if let Ok(hook) = plimsoll_protocol::Hook::parse(input)
            && let Event::Stop(stop) = hook.event
        {
            return Said { words: stop.last_assistant_message, fatal: None };
        }
        let last_line = input.split(|byte| *byte == b'\n').rfind(|line| !line.trim_ascii().is_empty());
        let result = |bytes: &[u8]| {
            RunResult::parse(bytes).ok().filter(|result| result.kind.as_deref() == Some("result"))
        };
        match result(input).or_else(|| result(last_line?)) {
            Some(result) => {
                let ending = session_ending(Some(&result), Exit::default());
                let fatal = if let Ending::Fatal(why) = ending { Some(why.into()) } else { None };
                Said { words: result.result, fatal }
            }
            None => Said { words: Some(String::from_utf8_lossy(input).into_owned()), fatal: None },
        }
    }
}

/// Returns what the gate remembers of its last judgement in this loop.
fn last_judgement(project: &Project, of: &Loop) -> Option<LastJudgement> {
    let bytes = disk::read(&memory_of(project)).ok().flatten()?;
    let last: LastJudgement = serde_json::from_slice(&bytes).ok()?;
    (last.started_at == of.started_at).then_some(last)
}

fn remember(project: &Project, judged: &LastJudgement) -> Result<(), StoreError> {
    disk::replace(&memory_of(project), json!(judged).to_string().as_bytes(), Durability::Lazy)
}

fn memory_of(project: &Project) -> PathBuf {
    project.own().join("foreign-loop.json")
}

/// A checkpoint goes into a block above the user's own PROMPT.md, and leaves it with the next session.
fn tell_next(project: &Project, document: &Value, judgement: &Judgement) -> Result<(), StoreError> {
    let Some(file) = disk::read(&project.prompt())? else { return Ok(()) };
    let Ok(task) = prompt::task_text(&file) else { return Ok(()) };
    let text = match judgement {
        Judgement::Stop(..) => return Ok(()),
        Judgement::Checkpoint(_) => with_resume_block(document, task),
        _ => task.to_vec(),
    };
    if text == file { Ok(()) } else { disk::replace(&project.prompt(), &text, Durability::Durable) }
}

fn with_resume_block(document: &Value, task: &[u8]) -> Vec<u8> {
    prompt::assemble(&prompt::PromptBlock::of(&foreign::resume_block(document)), task)
}

/// Writes PROMPT.md for the session that resumes the loop's checkpoint, and returns the handoff that it names. `None` if no loop of
/// scripts is running here, or its state has no active checkpoint. The state stays as it is: the scripts take the mark back.
pub fn write_checkpoint_prompt(project: &Project) -> Result<Option<String>, PromptError> {
    let Some(document) = state_file::foreign(project)? else { return Ok(None) };
    let of = Loop::of(&document);
    let Some((handoff, _)) = of.checkpoint.clone().filter(|_| of.is_running()) else { return Ok(None) };
    let file = disk::read(&project.prompt())?;
    let task = match &file {
        Some(file) => prompt::task_text(file).map_err(|_| PromptError::NoEndMark)?.to_vec(),
        None => document["objective"].as_str().unwrap_or_default().as_bytes().to_vec(),
    };
    disk::replace(&project.prompt(), &with_resume_block(&document, &task), Durability::Durable)?;
    Ok(Some(handoff))
}

/// The session that the monitor is asked about.
struct Measured {
    session_id: SessionId,
    transcript: Option<PathBuf>,
    calls: Vec<ToolCall>,
    record: SessionRecord,
    measurement: Measurement,
    level: Level,
    percent: u64,
}

/// Looks at the session; `input` is the JSON of a hook. None if the state is a run's of ours, or there is none.
pub fn monitor(project: &Project, input: Option<&[u8]>) -> Result<Option<Answer>, StoreError> {
    let Some(document) = state_file::foreign(project)? else { return Ok(None) };
    let of = Loop::of(&document);
    if !of.is_running() {
        return Ok(Some(Answer::default()));
    }
    let (settings, _) = config::load(project);
    let Some(seen) = measured(input, &settings) else {
        return Ok(Some(Answer { complaints: complaints(project, &of), ..Answer::default() }));
    };
    let (level, percent) = (seen.level, seen.percent);
    let marker = |handoff| Marker::Checkpoint { level, percent: Some(percent), handoff }.to_string();
    let (line, trouble) = match foreign::watch(&of, level) {
        Watch::Quiet => (None, None),
        Watch::Warn => (Some(Marker::Warning { level, percent }.to_string()), None),
        Watch::Again => (of.checkpoint.clone().map(|(handoff, _)| marker(handoff)), None),
        Watch::Checkpoint => match write_checkpoint(project, &settings, &seen) {
            Ok(handoff) => (Some(marker(handoff)), None),
            // The session must end at L3 all the same.
            Err(error) => (Some(Marker::Warning { level, percent }.to_string()), Some(error.to_string())),
        },
    };
    let complaints = complaints(project, &of).into_iter().chain(trouble).collect();
    Ok(Some(Answer { line, complaints, exit: ExitStatus::failure_if(level == Level::L3) }))
}

/// By the transcript that a hook's JSON names, else by the figure in the environment.
fn measured(input: Option<&[u8]>, settings: &Settings) -> Option<Measured> {
    let call = input.and_then(|input| HookInvocation::read(input).ok());
    if let Some(call) = call {
        // A subagent's event names the parent's transcript.
        let speaks = matches!(call.event(), Event::PostToolBatch(_) | Event::PostToolUse(_));
        if !speaks || call.hook.in_subagent() || call.session_id.is_empty() {
            return None;
        }
        let record = sessions::load(&call.project, &call.session_id);
        let measurement = measure::of_call(&call, &record);
        let percent = measurement.reading.as_ref().and_then(Reading::percent);
        if let Some((level, percent)) = measurement.level().zip(percent) {
            let (session_id, transcript) = (call.session_id.clone(), call.transcript().map(Into::into));
            let calls = call.event().tool_calls().to_vec();
            return Some(Measured { session_id, transcript, calls, record, measurement, level, percent });
        }
    }
    let percent = environment::number(PERCENT).filter(|percent| (0.0..=1_000.0).contains(percent))?;
    let percent = percent.round() as u64;
    Some(Measured {
        session_id: SessionId::default(),
        transcript: None,
        calls: Vec::new(),
        record: SessionRecord::default(),
        measurement: Measurement::default(),
        level: foreign::level_of_percent(percent, &settings.levels),
        percent,
    })
}

/// Writes the handoff, then the checkpoint into the loop's state; answers with the handoff.
fn write_checkpoint(project: &Project, settings: &Settings, seen: &Measured) -> Result<String, StoreError> {
    let transcript = seen.transcript.as_deref();
    let facts = facts::of_session(&Asked {
        project,
        transcript,
        record: &seen.record,
        run: None,
        cause: Cause::Level,
        calls: &seen.calls,
    });
    // The handoff first, for the state names it: a kill between them leaves a file without a name, and the next event
    // writes the checkpoint again.
    let handoff = checkpoint::write(&Request {
        project,
        settings,
        session_id: &seen.session_id,
        transcript: seen.transcript.clone(),
        run: None,
        cause: Cause::Level,
        level: seen.level,
        reading: seen.measurement.reading.as_ref(),
        thresholds: seen.measurement.thresholds.as_ref(),
        waited: seen.measurement.waited,
        calls: &seen.calls,
        notes: Notes::default(),
    })?;
    let found = Found {
        timestamp: clock::stamp(clock::now()),
        handoff: handoff.clone(),
        summary: facts.last_words.map(|words| clip(&one_line(&words), SUMMARY)).unwrap_or_default(),
        files: facts.files,
    };
    state_file::update_foreign(project, |document| {
        foreign::note_checkpoint(document, seen.level, seen.percent, &found);
        true
    })?;
    Ok(handoff)
}
