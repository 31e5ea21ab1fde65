//! SessionStart: note the session, claim it for its run, and brief it.

use crate::checkpoint::facts;
use crate::checkpoint::recorded_handoff;
use crate::hook_invocation::HookInvocation;
use crate::hook_response::HookResponse;
use crate::hooks::offer::offer;
use crate::hooks::pre_compact;
use crate::install::git_exclude::exclude_run_files;
use crate::install::plugin::HookOrigin;
use crate::turns::capture;
use crate::turns::capture::CaptureLimits;
use crate::turns::catch_up;
use plimsoll_domain::item_notes::ItemNotes;
use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_domain::record::ClientProcess;
use plimsoll_domain::resume::{self, Staleness};
use plimsoll_domain::state::Phase;
use plimsoll_domain::status::Status;
use plimsoll_domain::text::{clip, one_line};
use plimsoll_domain::{RunState, SessionRecord, promise};
use plimsoll_launcher::process::{self, Identity};
use plimsoll_policy::item_in_hand::item_in_hand;
use plimsoll_protocol::Reply;
use plimsoll_protocol::event::{Event, Source};
use plimsoll_store::{
    Durability, Project, StoreError, TurnLog, clock, config, environment, journal, ledger, sessions,
    state_file, unsettled,
};
use serde_json::json;
use std::time::Duration;

/// SessionStart. If a plugin or a guarded entry starts us, `init` has not been run in this clone: without our lines an
/// agent's `git add -A` would take our files.
pub fn session_start(call: &HookInvocation, origin: HookOrigin) -> HookResponse {
    let Event::SessionStart(start) = call.event() else { return HookResponse::quiet() };
    if call.hook.in_subagent() || call.session_id.is_empty() {
        return HookResponse::quiet();
    }
    let unlisted = match origin {
        HookOrigin::ByPlugin | HookOrigin::Guarded => exclude_run_files(call.project.root(), &[]).err(),
        HookOrigin::ByHand => None,
    };
    match begin(call, start.source) {
        Ok(text) => {
            let untold = record_turns(call, start.source).err().map(|error| capture::complaint(&error));
            HookResponse::reply(&with_offer(call, start.source, text))
                .with_complaint(call.complaint.as_ref())
                .with_complaint(unlisted)
                .with_complaint(untold)
        }
        Err(error) => HookResponse::fault(format!("{error}; {}", error.hint())),
    }
}

/// The briefing, and the handoff of an earlier session where there is one to offer. Neither comes beside the other.
fn with_offer(call: &HookInvocation, source: Source, briefing: String) -> Reply {
    let reply = Reply::default().tell_model("SessionStart", briefing);
    match offer(call, source, client_process()) {
        Some(offer) => reply.tell_model("SessionStart", offer.for_model).tell_user(offer.for_user),
        None => reply,
    }
}

/// That a session begins here, and what a crash has left out of the others.
fn record_turns(call: &HookInvocation, source: Source) -> Result<(), StoreError> {
    let Some(log) = TurnLog::of(&call.project, &call.session_id) else { return Ok(()) };
    let record = sessions::load(&call.project, &call.session_id);
    let fields = json!({
        "source": format!("{source:?}").to_lowercase(),
        "transcript": record.start.transcript_path,
        "run_id": record.start.run_id,
        "iteration": record.start.iteration,
    });
    // The beginning before what other sessions have left out, which may take long.
    capture::note(&log, RecordKind::SessionStart, &fields)?;
    match catch_up::catch_up(&call.project, CaptureLimits::HOOK) {
        Ok(_) | Err(StoreError::Busy { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn begin(call: &HookInvocation, source: Source) -> Result<String, StoreError> {
    // Claimed first: from here on `plimsoll run` sees that our hooks run in this session.
    let run = claim(call)?;
    // Before the record, which says that the session is open: a kill in between leaves a name without a record.
    unsettled::add(&call.project, &call.session_id)?;
    // Before the lock is taken: no process waits for git while it holds the lock.
    let is_first = sessions::load(&call.project, &call.session_id).start.started_at.is_none();
    let head =
        if is_first { plimsoll_launcher::git::head(call.project.root()).map(String::from) } else { None };
    let record = sessions::update(&call.project, &call.session_id, Duration::from_secs(3), |record| {
        if record.start.started_at.is_none() {
            record.start.started_at = Some(clock::stamp(clock::now()));
            record.start.head_at_start = head;
        }
        register(record, call, run.as_ref(), source);
        record.clone()
    })?;
    // Again: another session may have settled this one by its old record, which ended. What it finds from now on says more.
    unsettled::add(&call.project, &call.session_id)?;
    if let Some(run) = &run {
        let entry = JournalEntry::of_run(run, JournalEvent::SessionStart { source });
        journal::note(&call.project, entry.session(Some(&call.session_id)))?;
    }
    Ok(briefing(&call.project, run.as_ref(), &record, source))
}

/// The run that this session owns. In a shell loop the session's id is not known beforehand, so the first session that
/// starts with the run's variable claims the iteration; nested sessions come later.
fn claim(call: &HookInvocation) -> Result<Option<RunState>, StoreError> {
    let Some(run_id) = ledger::run_of_environment() else { return Ok(None) };
    let claimed = state_file::update(&call.project, Some(&run_id), Durability::Lazy, |state| {
        let unclaimed = state.session_id.is_none() && state.iteration_record.phase == Phase::Planned;
        if state.run_id != run_id || state.lifecycle.status() != Status::Running {
            return None;
        }
        if unclaimed {
            state.session_id = Some(call.session_id.clone());
            state.iteration_record.phase = Phase::Spawned;
            state.iteration_record.started_at = Some(clock::stamp(clock::now()));
            // Its pid is not noted: the loop started it, and only the process that started a client may end it.
        }
        if !state.is_owned_by(Some(&run_id), Some(&call.session_id)) {
            return None;
        }
        state.iteration_record.hooks_seen = true;
        Some(state.clone())
    })?;
    Ok(claimed.flatten())
}

fn register(record: &mut SessionRecord, call: &HookInvocation, run: Option<&RunState>, source: Source) {
    record.start.transcript_path.clone_from(&call.hook.transcript_path);
    record.start.client_settings = Some(config::client_settings(&call.project));
    record.start.run_id = run.map(|run| run.run_id.clone());
    record.start.iteration = run.map(|run| run.iteration);
    // A resumed session keeps its id: the end in its record is not the last one.
    record.end.ended_at = None;
    record.end.end_reason = None;
    record.start.client = client_process();
    if source == Source::Compact {
        record.compactions += 1;
        pre_compact::start_over(record);
    }
}

/// The client's process, by which a killed session is known at once.
fn client_process() -> Option<ClientProcess> {
    let pid = environment::number("CLAUDE_PID")? as u32;
    process::identity(pid).map(|Identity { pid, started }| ClientProcess { pid, started })
}

fn briefing(project: &Project, run: Option<&RunState>, record: &SessionRecord, source: Source) -> String {
    let handoff = || recorded_handoff(project, &record.session_id, record);
    match (run, source) {
        (Some(run), Source::Compact) => after_compaction(run, handoff(), &facts::noted(project, run)),
        // At its start the prompt says it, and nothing is sent twice; `/clear` takes that away.
        (Some(run), Source::Clear) if run.iteration_record.resuming => after_clear(run),
        (None, Source::Compact) => handoff().map_or(String::new(), |handoff| {
            format!("The conversation has just been compacted. For information: the facts recorded before it are in {handoff}.")
        }),
        _ => String::new(),
    }
}

fn resumed(run: &RunState) -> String {
    resume::section(&run.context_checkpoint, &Staleness::default(), &run.nonce)
}

/// The first step of the resume, which the prompt names and the section leaves to the text around it.
fn first_step(run: &RunState) -> Option<String> {
    let step = resume::first_step(&run.context_checkpoint, &Staleness::default());
    step.map(|step| format!("{step}.\n"))
}

/// `/clear` has taken the prompt away, which names the item.
fn after_clear(run: &RunState) -> String {
    format!("{}{}\n{}", current_item(run), first_step(run).unwrap_or_default(), resumed(run))
}

fn current_item(run: &RunState) -> String {
    item_in_hand(run).map_or(String::new(), |item| {
        format!(
            "The current item is \"{}\" ({} open, {} done).\n",
            clip(&one_line(item), 200),
            run.items.todo_items.len(),
            run.items.completed_items.len()
        )
    })
}

/// A compaction that cannot be prevented loses nothing that was recorded.
fn after_compaction(run: &RunState, handoff: Option<String>, noted: &ItemNotes) -> String {
    let is_resumed = run.context_checkpoint.iteration == run.iteration;
    let resume = if is_resumed { resumed(run) } else { String::new() };
    let read = || {
        let handoff = handoff?;
        Some(format!("Read {handoff} for the facts of what was done before. Do not start over.\n"))
    };
    // One first step: the section names the handoff, too.
    let step = first_step(run).filter(|_| is_resumed).or_else(read);
    let step = step.unwrap_or_else(|| "Do not start over.\n".to_owned());
    let noted = noted.section(&run.nonce);
    let promised = if run.options.ends_with_last_tick() {
        String::new()
    } else {
        let line = promise::line(&run.options.completion_promise, &run.nonce);
        format!("The line that ends the run, only when everything is done: {line}\n")
    };
    format!(
        "The conversation has just been compacted. This session is iteration {} of the run \"{}\".\n{}{step}Finished items stay finished. Do exactly one item, verify it, tick it, commit, and end your turn.\n{promised}{noted}{resume}",
        run.iteration,
        one_line(&run.options.task_name),
        current_item(run),
    )
}
