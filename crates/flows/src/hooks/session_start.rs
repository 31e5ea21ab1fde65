//! SessionStart: claims the run for the session, records the session, and returns a briefing for the model.

use crate::checkpoint::facts;
use crate::checkpoint::recorded_handoff_if_owned_by_session;
use crate::hook_invocation::HookInvocation;
use crate::hook_response::HookResponse;
use crate::hooks::handoff_offer::claim_offer_of_newest_unread_handoff;
use crate::hooks::pre_compact;
use crate::hooks::resume_cost::write_handoff_and_compare_costs_if_resuming_is_expensive;
use crate::install::git_exclude::add_run_files_to_git_exclude;
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
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_domain::{RunState, SessionRecord, promise};
use plimsoll_launcher::process::{self, ProcessIdentity};
use plimsoll_policy::current_item::current_unparked_item;
use plimsoll_protocol::HookReply;
use plimsoll_protocol::event::{HookEvent, SessionSource, SessionStart};
use plimsoll_store::{
    Durability, Project, StoreError, TurnLog, clock, config, environment, journal, ledger, sessions,
    state_file, unread_sessions,
};
use serde_json::json;
use std::time::Duration;

/// Runs SessionStart. If a plugin or a team's shared entry started this hook, `init` may not have been run in this clone.
/// Then the hook adds our exclude lines, so that an agent's `git add -A` does not add our files.
pub fn run_session_start_hook(invocation: &HookInvocation, origin: HookOrigin) -> HookResponse {
    let HookEvent::SessionStart(start) = invocation.event() else { return HookResponse::empty() };
    if invocation.payload.is_in_subagent() || invocation.session_id.is_empty() {
        return HookResponse::empty();
    }
    let exclude_error = match origin {
        HookOrigin::Plugin | HookOrigin::TeamSettings => {
            add_run_files_to_git_exclude(invocation.project.root(), &[]).err()
        }
        HookOrigin::PersonalSettingsOrRun => None,
    };
    match register_session_and_build_briefing(invocation, start.source) {
        Ok(briefing) => {
            let turn_log_warning = log_start_and_catch_up_other_sessions(invocation, start.source)
                .err()
                .map(|error| capture::turn_log_failure_message(&error));
            HookResponse::from_reply(&reply_with_briefing_and_claimed_handoff_offer(
                invocation, start, briefing,
            ))
            .with_stderr_line(invocation.settings_error.as_ref())
            .with_stderr_line(exclude_error)
            .with_stderr_line(turn_log_warning)
        }
        Err(error) => HookResponse::from_error(format!("{error}; {}", error.hint())),
    }
}

/// Returns a reply with the briefing and, if there is one, the offer of an earlier session's handoff. The
/// offer is claimed, so that only one session makes it. A resumed session has neither, and may learn what it costs.
fn reply_with_briefing_and_claimed_handoff_offer(
    invocation: &HookInvocation,
    start: &SessionStart,
    briefing: String,
) -> HookReply {
    let reply = HookReply::default().with_model_context("SessionStart", briefing);
    match claim_offer_of_newest_unread_handoff(invocation, start.source, client_process_from_environment()) {
        Some(offer) => {
            reply.with_model_context("SessionStart", offer.for_model).with_user_message(offer.for_user)
        }
        None => reply.with_user_message(
            write_handoff_and_compare_costs_if_resuming_is_expensive(invocation, start).unwrap_or_default(),
        ),
    }
}

/// Writes the session's start to its turn log, and captures turns that are missing from the logs of other sessions after
/// a crash.
fn log_start_and_catch_up_other_sessions(
    invocation: &HookInvocation,
    source: SessionSource,
) -> Result<(), StoreError> {
    let Some(log) =
        TurnLog::for_session_where_started_or_current(&invocation.project, &invocation.session_id)
    else {
        return Ok(());
    };
    let record = sessions::load_session_record(&invocation.project, &invocation.session_id);
    let fields = json!({
        "source": format!("{source:?}").to_lowercase(),
        "transcript": record.start.transcript_path,
        "run_id": record.start.run_id,
        "iteration": record.start.iteration,
    });
    // The start is written first, because capturing the missing turns may take long.
    capture::append_or_defer_event_record(&log, RecordKind::SessionStart, &fields)?;
    match catch_up::record_turns_of_unread_sessions_and_reindex(&invocation.project, CaptureLimits::FOR_HOOK)
    {
        Ok(_) | Err(StoreError::Locked { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn register_session_and_build_briefing(
    invocation: &HookInvocation,
    source: SessionSource,
) -> Result<String, StoreError> {
    // The run is claimed first: from now on, `plimsoll run` knows that our hooks run in this session.
    let run = claim_or_load_run_by_environment_id(invocation)?;
    // Added before the record, which marks the session as open: if this hook is killed in between, only a
    // list entry without a record remains.
    unread_sessions::add_unread_session(&invocation.project, &invocation.session_id)?;
    // git runs before the lock is taken, so that other processes do not have to wait for it.
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
            set_start_and_clear_end_in_record(record, invocation, run.as_ref(), source);
            record.clone()
        },
    )?;
    // Added again, because another session may have removed it while the old record still showed it as ended.
    unread_sessions::add_unread_session(&invocation.project, &invocation.session_id)?;
    if let Some(run) = &run {
        let entry = JournalEntry::for_run(run, JournalEvent::SessionStart { source });
        journal::append_entry(&invocation.project, entry.with_session(Some(&invocation.session_id)))?;
    }
    Ok(briefing_after_compaction_or_clear(&invocation.project, run.as_ref(), &record, source))
}

/// Returns the run that this session owns, and records that the hooks run. In a shell loop the session's id is not known
/// beforehand, so the first session that starts with the run's variable claims the iteration; nested sessions start later.
fn claim_or_load_run_by_environment_id(invocation: &HookInvocation) -> Result<Option<RunState>, StoreError> {
    let Some(run_id) = ledger::run_id_from_environment() else { return Ok(None) };
    let claimed_or_owned_run =
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
    Ok(claimed_or_owned_run.flatten())
}

fn set_start_and_clear_end_in_record(
    record: &mut SessionRecord,
    invocation: &HookInvocation,
    run: Option<&RunState>,
    source: SessionSource,
) {
    record.start.transcript_path.clone_from(&invocation.payload.transcript_path);
    record.start.client_compaction_settings = Some(config::load_client_settings(&invocation.project));
    record.start.run_id = run.map(|run| run.run_id.clone());
    record.start.iteration = run.map(|run| run.iteration);
    // A resumed session keeps its id, so the end in its record no longer applies.
    record.end.ended_at = None;
    record.end.client_end_reason = None;
    record.start.client = client_process_from_environment();
    if source == SessionSource::Compact {
        record.compaction_count += 1;
        pre_compact::clear_usage_open_claim_and_announced_level(record);
    }
}

/// Returns the client's process from `CLAUDE_PID`. It is recorded so that a killed session is detected at once.
fn client_process_from_environment() -> Option<ClientProcess> {
    let pid = environment::numeric_variable("CLAUDE_PID")? as u32;
    process::process_identity(pid)
        .map(|ProcessIdentity { pid, start_time }| ClientProcess { pid, started_at_ticks: start_time })
}

fn briefing_after_compaction_or_clear(
    project: &Project,
    run: Option<&RunState>,
    record: &SessionRecord,
    source: SessionSource,
) -> String {
    let find_handoff_file = || recorded_handoff_if_owned_by_session(project, &record.session_id, record);
    match (run, source) {
        (Some(run), SessionSource::Compact) => briefing_after_compaction(run, find_handoff_file(), &facts::load_item_notes(project, run)),
        // Only after `/clear`, which removes the prompt: at the start of a session, the prompt contains the item.
        (Some(run), SessionSource::Clear) if run.iteration_record.resumes_checkpoint => briefing_after_clear(run),
        (None, SessionSource::Compact) => find_handoff_file().map_or(String::new(), |file| {
            format!("The conversation has just been compacted. For information: the facts recorded before it are in {file}.")
        }),
        _ => String::new(),
    }
}

fn resume_section(run: &RunState) -> String {
    resume::render_resume_section(&run.context_checkpoint, &Staleness::default(), &run.promise_code)
}

/// Returns the first step of resuming a checkpoint. The prompt contains it; the resume section does not.
fn resume_first_step(run: &RunState) -> Option<String> {
    let step = resume::render_first_step_of_takeover(&run.context_checkpoint, &Staleness::default());
    step.map(|step| format!("{step}.\n"))
}

/// Returns the briefing after `/clear`, which has removed the prompt with the item.
fn briefing_after_clear(run: &RunState) -> String {
    format!(
        "{}{}\n{}",
        describe_current_item_with_counts(run),
        resume_first_step(run).unwrap_or_default(),
        resume_section(run)
    )
}

fn describe_current_item_with_counts(run: &RunState) -> String {
    current_unparked_item(run).map_or(String::new(), |item| {
        format!(
            "The current item is \"{}\" ({} open, {} done).\n",
            truncate_end(&to_safe_single_line(item), 200),
            run.plan_items.todo_items.len(),
            run.plan_items.completed_items.len()
        )
    })
}

/// Returns the briefing after a compaction: the item, the first step, the item's notes and the resume section.
fn briefing_after_compaction(run: &RunState, handoff_file: Option<String>, item_notes: &ItemNotes) -> String {
    let resumes_checkpoint = run.context_checkpoint.iteration == run.iteration;
    let resume_text = if resumes_checkpoint { resume_section(run) } else { String::new() };
    let read_handoff_step = || {
        let file = handoff_file?;
        Some(format!("Read {file} for what was done before. Do not start over.\n"))
    };
    // There is only one first step, because the resume section also names the handoff.
    let first_step = resume_first_step(run).filter(|_| resumes_checkpoint).or_else(read_handoff_step);
    let first_step = first_step.unwrap_or_else(|| "Do not start over.\n".to_owned());
    let notes_section = item_notes.render_prompt_sections(&run.promise_code);
    let promise_line = if run.options.completes_without_promise() {
        String::new()
    } else {
        let line = promise::render_completion_line(&run.options.completion_promise, &run.promise_code);
        format!("Only when everything is done, end the run with this line: {line}\n")
    };
    format!(
        "The conversation has just been compacted. This session is iteration {} of the run \"{}\".\n{}{first_step}Finished items stay finished. Do exactly one item, verify it, tick it, commit, and end your turn.\n{promise_line}{notes_section}{resume_text}",
        run.iteration,
        to_safe_single_line(&run.options.task_name),
        describe_current_item_with_counts(run),
    )
}
