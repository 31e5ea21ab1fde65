//! SessionStart: records the session, claims it for its run, and briefs it.

use crate::checkpoint::facts;
use crate::checkpoint::recorded_own_handoff;
use crate::hook_invocation::HookInvocation;
use crate::hook_response::HookResponse;
use crate::hooks::handoff_offer::offer_newest_unread_handoff;
use crate::hooks::pre_compact;
use crate::install::git_exclude::exclude_run_files;
use crate::install::hook_precedence::HookOrigin;
use crate::turns::capture;
use crate::turns::capture::CaptureLimits;
use crate::turns::catch_up;
use plimsoll_domain::item_notes::ItemNotes;
use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_domain::record::ClientProcess;
use plimsoll_domain::resume::{self, Staleness};
use plimsoll_domain::state::IterationPhase;
use plimsoll_domain::status::RunStatus;
use plimsoll_domain::text::{to_single_line, truncate_end};
use plimsoll_domain::{RunState, SessionRecord, promise};
use plimsoll_launcher::process::{self, ProcessIdentity};
use plimsoll_policy::current_item::current_open_item;
use plimsoll_protocol::HookReply;
use plimsoll_protocol::event::{HookEvent, SessionSource};
use plimsoll_store::{
    Durability, Project, StoreError, TurnLog, clock, config, environment, journal, ledger, sessions,
    state_file, unread_sessions,
};
use serde_json::json;
use std::time::Duration;

/// Runs SessionStart. If a plugin or a guarded entry starts us, `init` has not been run in this clone;
/// without our exclude lines an agent's `git add -A` would add our files.
pub fn run_session_start_hook(invocation: &HookInvocation, origin: HookOrigin) -> HookResponse {
    let HookEvent::SessionStart(start) = invocation.event() else { return HookResponse::empty() };
    if invocation.payload.is_in_subagent() || invocation.session_id.is_empty() {
        return HookResponse::empty();
    }
    let exclude_error = match origin {
        HookOrigin::Plugin | HookOrigin::GuardedSettings => {
            exclude_run_files(invocation.project.root(), &[]).err()
        }
        HookOrigin::SettingsOrRun => None,
    };
    match register_session(invocation, start.source) {
        Ok(briefing) => {
            let turn_log_warning = log_start_and_capture_missing_turns(invocation, start.source)
                .err()
                .map(|error| capture::turn_log_failure_message(&error));
            HookResponse::from_reply(&reply_with_handoff_offer(invocation, start.source, briefing))
                .with_stderr_line(invocation.settings_error.as_ref())
                .with_stderr_line(exclude_error)
                .with_stderr_line(turn_log_warning)
        }
        Err(error) => HookResponse::from_fault(format!("{error}; {}", error.hint())),
    }
}

/// Returns the briefing, and the offer of an earlier session's handoff if there is one. The two never occur
/// together.
fn reply_with_handoff_offer(
    invocation: &HookInvocation,
    source: SessionSource,
    briefing: String,
) -> HookReply {
    let reply = HookReply::default().with_model_context("SessionStart", briefing);
    match offer_newest_unread_handoff(invocation, source, client_process()) {
        Some(offer) => {
            reply.with_model_context("SessionStart", offer.for_model).with_user_message(offer.for_user)
        }
        None => reply,
    }
}

/// Records the start of the session, and captures the turns that a crash has left out of other sessions'
/// logs.
fn log_start_and_capture_missing_turns(
    invocation: &HookInvocation,
    source: SessionSource,
) -> Result<(), StoreError> {
    let Some(log) = TurnLog::for_session(&invocation.project, &invocation.session_id) else { return Ok(()) };
    let record = sessions::load_session_record(&invocation.project, &invocation.session_id);
    let fields = json!({
        "source": format!("{source:?}").to_lowercase(),
        "transcript": record.start.transcript_path,
        "run_id": record.start.run_id,
        "iteration": record.start.iteration,
    });
    // The start comes first, because catching up may take long.
    capture::append_event_record(&log, RecordKind::SessionStart, &fields)?;
    match catch_up::record_missing_turns_of_unsettled_sessions(&invocation.project, CaptureLimits::HOOK) {
        Ok(_) | Err(StoreError::Locked { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn register_session(invocation: &HookInvocation, source: SessionSource) -> Result<String, StoreError> {
    // Claimed first: from here on `plimsoll run` sees that our hooks run in this session.
    let run = claim_run(invocation)?;
    // Before the record, which marks the session as open: a kill in between leaves a name without a record.
    unread_sessions::add_unread_session(&invocation.project, &invocation.session_id)?;
    // Before the lock is taken, so that no process waits for git while it holds the lock.
    let is_first_start =
        sessions::load_session_record(&invocation.project, &invocation.session_id).start.started_at.is_none();
    let head_commit = if is_first_start {
        plimsoll_launcher::git::head_commit(invocation.project.root()).map(String::from)
    } else {
        None
    };
    let record = sessions::update_session_record(
        &invocation.project,
        &invocation.session_id,
        Duration::from_secs(3),
        |record| {
            if record.start.started_at.is_none() {
                record.start.started_at = Some(clock::to_timestamp(clock::now()));
                record.start.head_at_start = head_commit;
            }
            update_record(record, invocation, run.as_ref(), source);
            record.clone()
        },
    )?;
    // Added again, because another session may have settled this one by its old record, which had ended.
    unread_sessions::add_unread_session(&invocation.project, &invocation.session_id)?;
    if let Some(run) = &run {
        let entry = JournalEntry::for_run(run, JournalEvent::SessionStart { source });
        journal::append_entry(&invocation.project, entry.with_session(Some(&invocation.session_id)))?;
    }
    Ok(build_briefing(&invocation.project, run.as_ref(), &record, source))
}

/// Returns the run that this session owns. In a shell loop the session's id is not known beforehand, so the
/// first session that starts with the run's variable claims the iteration; nested sessions come later.
fn claim_run(invocation: &HookInvocation) -> Result<Option<RunState>, StoreError> {
    let Some(run_id) = ledger::run_id_from_environment() else { return Ok(None) };
    let claimed_run =
        state_file::update_state(&invocation.project, Some(&run_id), Durability::Lazy, |state| {
            let is_unclaimed =
                state.session_id.is_none() && state.iteration_record.phase == IterationPhase::Planned;
            if state.run_id != run_id || state.lifecycle.status() != RunStatus::Running {
                return None;
            }
            if is_unclaimed {
                state.session_id = Some(invocation.session_id.clone());
                state.iteration_record.phase = IterationPhase::Spawned;
                state.iteration_record.started_at = Some(clock::to_timestamp(clock::now()));
                // The pid is not recorded: the loop started the client, and only the process that started a
                // client may end it.
            }
            if !state.is_owned_by(Some(&run_id), Some(&invocation.session_id)) {
                return None;
            }
            state.iteration_record.has_hooks_running = true;
            Some(state.clone())
        })?;
    Ok(claimed_run.flatten())
}

fn update_record(
    record: &mut SessionRecord,
    invocation: &HookInvocation,
    run: Option<&RunState>,
    source: SessionSource,
) {
    record.start.transcript_path.clone_from(&invocation.payload.transcript_path);
    record.start.client_compaction_settings = Some(config::load_client_settings(&invocation.project));
    record.start.run_id = run.map(|run| run.run_id.clone());
    record.start.iteration = run.map(|run| run.iteration);
    // A resumed session keeps its id, so the end in its record is not the last one.
    record.end.ended_at = None;
    record.end.client_end_reason = None;
    record.start.client = client_process();
    if source == SessionSource::Compact {
        record.compaction_count += 1;
        pre_compact::reset_record_after_compaction(record);
    }
}

/// Identifies the client's process, so that a killed session is recognized at once.
fn client_process() -> Option<ClientProcess> {
    let pid = environment::numeric_variable("CLAUDE_PID")? as u32;
    process::process_identity(pid)
        .map(|ProcessIdentity { pid, start_time: started }| ClientProcess { pid, started_at_ticks: started })
}

fn build_briefing(
    project: &Project,
    run: Option<&RunState>,
    record: &SessionRecord,
    source: SessionSource,
) -> String {
    let handoff_file = || recorded_own_handoff(project, &record.session_id, record);
    match (run, source) {
        (Some(run), SessionSource::Compact) => briefing_after_compaction(run, handoff_file(), &facts::load_item_notes(project, run)),
        // At the start the prompt has the item, and nothing is sent twice; `/clear` removes the prompt.
        (Some(run), SessionSource::Clear) if run.iteration_record.resumes_checkpoint => briefing_after_clear(run),
        (None, SessionSource::Compact) => handoff_file().map_or(String::new(), |file| {
            format!("The conversation has just been compacted. For information: the facts recorded before it are in {file}.")
        }),
        _ => String::new(),
    }
}

fn resume_section(run: &RunState) -> String {
    resume::render_resume_section(&run.context_checkpoint, &Staleness::default(), &run.promise_code)
}

/// Returns the first step of the resume. The prompt has it, but the resume section leaves it to the
/// surrounding text.
fn resume_first_step(run: &RunState) -> Option<String> {
    let step = resume::render_first_step_of_takeover(&run.context_checkpoint, &Staleness::default());
    step.map(|step| format!("{step}.\n"))
}

/// Briefs a session after `/clear`, which has removed the prompt with the item.
fn briefing_after_clear(run: &RunState) -> String {
    format!(
        "{}{}\n{}",
        describe_current_item(run),
        resume_first_step(run).unwrap_or_default(),
        resume_section(run)
    )
}

fn describe_current_item(run: &RunState) -> String {
    current_open_item(run).map_or(String::new(), |item| {
        format!(
            "The current item is \"{}\" ({} open, {} done).\n",
            truncate_end(&to_single_line(item), 200),
            run.plan_items.todo_items.len(),
            run.plan_items.completed_items.len()
        )
    })
}

/// Briefs a session after a compaction, so that nothing that was recorded is lost.
fn briefing_after_compaction(run: &RunState, handoff_file: Option<String>, item_notes: &ItemNotes) -> String {
    let is_resumed = run.context_checkpoint.iteration == run.iteration;
    let resume_text = if is_resumed { resume_section(run) } else { String::new() };
    let read_handoff_step = || {
        let file = handoff_file?;
        Some(format!("Read {file} for the facts of what was done before. Do not start over.\n"))
    };
    // Only one first step: the resume section names the handoff, too.
    let first_step = resume_first_step(run).filter(|_| is_resumed).or_else(read_handoff_step);
    let first_step = first_step.unwrap_or_else(|| "Do not start over.\n".to_owned());
    let notes_section = item_notes.render_prompt_sections(&run.promise_code);
    let promise_line = if run.options.ends_with_last_tick() {
        String::new()
    } else {
        let line = promise::render_completion_line(&run.options.completion_promise, &run.promise_code);
        format!("The line that ends the run, only when everything is done: {line}\n")
    };
    format!(
        "The conversation has just been compacted. This session is iteration {} of the run \"{}\".\n{}{first_step}Finished items stay finished. Do exactly one item, verify it, tick it, commit, and end your turn.\n{promise_line}{notes_section}{resume_text}",
        run.iteration,
        to_single_line(&run.options.task_name),
        describe_current_item(run),
    )
}
