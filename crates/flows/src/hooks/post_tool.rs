//! The monitor: after each batch of tools, how full is it, and what follows?

use crate::checkpoint::facts;
use crate::checkpoint::{self, Request};
use crate::context::measure;
use crate::context::measure::Measurement;
use crate::handoffs::continue_command;
use crate::hook_invocation::HookInvocation;
use crate::hook_response::HookResponse;
use crate::turns::capture;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::journal::{JournalEntry, JournalEvent, LevelReached, Room};
use plimsoll_domain::level::{Level, Thresholds};
use plimsoll_domain::state::Cause;
use plimsoll_domain::status::Status;
use plimsoll_domain::verdict::ContinueKind;
use plimsoll_domain::{Marker, Reading, RunState, SessionRecord};
use plimsoll_launcher::git;
use plimsoll_policy::item_in_hand::item_in_hand;
use plimsoll_policy::monitor::{Action, Commit, MonitorInput};
use plimsoll_policy::step::TooSmall;
use plimsoll_policy::words;
use plimsoll_protocol::Reply;
use plimsoll_protocol::event::Event;
use plimsoll_protocol::tool::ToolCall;
use plimsoll_store::{Durability, clock, config, journal, sessions, tail};
use std::mem::ManuallyDrop;
use std::time::Duration;

/// A lock is held for a millisecond or two; twenty hooks at once still pass in this time.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The session's last message is looked for in this much of its transcript's end.
const NEAR: u64 = 2 * 1024 * 1024;
/// A claim older than this was left by a hook that died: git is given five seconds, and the rest is quick.
const CLAIM_LIFE_SECONDS: i64 = 20;

/// PostToolBatch, and PostToolUse on clients that are too old for it.
pub fn post_tool(call: &HookInvocation) -> HookResponse {
    let untold = capture::at_hook(call);
    answer(call).with_complaint(untold)
}

fn answer(call: &HookInvocation) -> HookResponse {
    // A subagent's event names the parent's transcript: it is never measured by it and never announced to.
    let speaks = matches!(call.event(), Event::PostToolBatch(_) | Event::PostToolUse(_));
    if !speaks || call.hook.in_subagent() || is_a_childs(call) || call.session_id.is_empty() {
        return HookResponse::quiet().with_complaint(call.complaint.as_ref());
    }
    match watch(call) {
        Ok(signal) => signal.with_complaint(call.complaint.as_ref()),
        Err(error) => HookResponse::fault(format!("{error}; {}", error.hint())),
    }
}

/// An old client does not say that an event is a subagent's: what is announced there never reaches the session itself.
fn is_a_childs(call: &HookInvocation) -> bool {
    let Event::PostToolUse(tool) = call.event() else { return false };
    let lines = call.transcript().and_then(|path| tail::last_lines(path, NEAR).ok()).unwrap_or_default();
    plimsoll_policy::child_event::is_a_childs(tool.tool_name.as_deref().unwrap_or_default(), &lines)
}

fn watch(call: &HookInvocation) -> Result<HookResponse, plimsoll_store::StoreError> {
    let record = call.record();
    let claimed = call.is_of_run(record)?;
    if claimed && record.end.cancelled {
        return Ok(cancelled(call));
    }
    let measurement = measure::of_call(call, record);
    let complaint = measurement.trouble.as_ref().map(ToString::to_string);
    let Some(sight) = sight(call, record, &measurement, claimed) else {
        note_wait(call, &measurement)?;
        return Ok(HookResponse::quiet().with_complaint(complaint));
    };
    // First without the lock: mostly nothing changes, and then nothing is locked or written.
    // Then the process ends, and nobody needs this memory back piece by piece.
    let (mut draft, sight) = (ManuallyDrop::new(record.clone()), ManuallyDrop::new(sight));
    let expected = plimsoll_policy::monitor::monitor(&mut draft, &sight, &call.settings);
    if *draft == *record && expected == Action::Nothing && measurement.waited.is_none() {
        return Ok(HookResponse::quiet().with_complaint(complaint));
    }
    let (sight, draft) = (ManuallyDrop::into_inner(sight), ManuallyDrop::into_inner(draft));
    let signal = change(call, sight, draft, expected, &measurement, claimed)?;
    Ok(signal.with_complaint(complaint))
}

/// Not part of its caller: the records that it holds are some pages of the stack, and most batches need none of them.
#[inline(never)]
fn change(
    call: &HookInvocation,
    mut sight: MonitorInput,
    mut draft: SessionRecord,
    mut expected: Action,
    measurement: &Measurement,
    claimed: bool,
) -> Result<HookResponse, plimsoll_store::StoreError> {
    let record = call.record();
    // The state is read only by those who act on it: the run may be over by now.
    let acts = claimed && expected != Action::Nothing;
    let mut run = if acts { open_run(call)? } else { None };
    if acts && run.is_none() {
        sight.in_run = false;
        draft.clone_from(record);
        expected = plimsoll_policy::monitor::monitor(&mut draft, &sight, &call.settings);
    }
    (sight.pid, sight.now) = (std::process::id(), clock::fine_stamp(clock::now()));
    let (action, record) = match decide(call, &sight, measurement) {
        Ok(decided) => decided,
        // At L3 it acts even if the lock is not available.
        Err(_) if matches!(expected, Action::Checkpoint { ends: true, .. } | Action::End { .. }) => {
            (expected, draft)
        }
        Err(error) => return Err(error),
    };
    if run.is_none() && sight.in_run && action != Action::Nothing {
        run = open_run(call)?;
    }
    let scene =
        ActionContext { call, run: run.as_ref(), record: &record, measurement, thresholds: sight.thresholds };
    Ok(scene.act(&action))
}

fn open_run(call: &HookInvocation) -> Result<Option<RunState>, plimsoll_store::StoreError> {
    Ok(call.owned_run()?.filter(|run| !run.lifecycle.is_over()))
}

/// The decision under the session's lock, on the newest record: twenty hooks at once announce a level once.
fn decide(
    call: &HookInvocation,
    sight: &MonitorInput,
    measurement: &Measurement,
) -> Result<(Action, SessionRecord), plimsoll_store::StoreError> {
    let changed =
        config::changed_client_settings(&call.project, call.record().start.client_settings.as_ref());
    let _lock = sessions::lock(&call.project, &call.session_id, TIMEOUT)?;
    let before = sessions::load_to_change(&call.project, &call.session_id)?;
    let mut record = before.clone();
    if changed.is_some() {
        record.start.client_settings = changed;
    }
    let sight = MonitorInput { claim_is_orphaned: is_orphaned(&record), ..sight.clone() };
    let action = plimsoll_policy::monitor::monitor(&mut record, &sight, &call.settings);
    if let Some(waited) = measurement.waited {
        record.waits.count += 1;
        record.waits.total_ms += waited.as_millis() as u64;
    }
    if let Action::End { reason, .. } = &action {
        record.end.ended_by_us = Some(reason.clone());
    }
    // The claim is in the record before the checkpoint begins: if this hook dies now, a later event finishes it.
    if record != before {
        sessions::save(&call.project, &record, Durability::Lazy)?;
    }
    Ok((action, record))
}

/// A wait without success is remembered: it is not repeated at every batch.
#[inline(never)]
fn note_wait(call: &HookInvocation, measurement: &Measurement) -> Result<(), plimsoll_store::StoreError> {
    let Some(waited) = measurement.waited else { return Ok(()) };
    sessions::update(&call.project, &call.session_id, TIMEOUT, |record| {
        record.waits.count += 1;
        record.waits.total_ms += waited.as_millis() as u64;
    })
}

fn sight(
    call: &HookInvocation,
    record: &SessionRecord,
    measurement: &Measurement,
    in_run: bool,
) -> Option<MonitorInput> {
    let reading = measurement.reading.clone()?;
    let committed = if in_run { committed(call, record, &reading) } else { None };
    Some(MonitorInput {
        is_batch: matches!(call.event(), Event::PostToolBatch(_)),
        reading,
        thresholds: measurement.thresholds,
        in_run,
        item_is_open: committed.is_some() && item_is_open(call),
        committed,
        claim_is_orphaned: is_orphaned(record),
        // Asked for when something changes.
        pid: 0,
        now: plimsoll_domain::Timestamp::UNKNOWN,
    })
}

/// Where HEAD has moved, if a command of this batch may have moved it: only then is git asked. A commit that is older than
/// the message at hand (a subagent's, a branch's) is none of this batch.
#[inline(never)]
fn committed(call: &HookInvocation, record: &SessionRecord, reading: &Reading) -> Option<Commit> {
    if !call.event().tool_calls().iter().any(ToolCall::may_commit) {
        return None;
    }
    let before = record.commits.head.as_ref().or(record.start.head_at_start.as_ref());
    let newest = git::newest(call.project.root())
        .filter(|newest| Some(newest.id.as_str()) != before.map(String::as_str))?;
    let message_at = reading.at.as_ref().and_then(clock::moment);
    let is_of_batch = !reading.behind && message_at.is_some_and(|at| newest.at >= at.timestamp());
    Some(Commit { head: newest.id.into(), fill: is_of_batch.then(|| reading.projected()) })
}

/// False if the item is done, or if that is unknown.
#[inline(never)]
fn item_is_open(call: &HookInvocation) -> bool {
    let run = open_run(call).ok().flatten();
    let todo = run.as_ref().and_then(|run| facts::todo(&call.project, run));
    let item = run.as_ref().and_then(item_in_hand);
    todo.zip(item).is_some_and(|(todo, item)| todo.open().contains(item))
}

fn is_orphaned(record: &SessionRecord) -> bool {
    let Some(claim) = &record.checkpoint.claim else { return false };
    let age = clock::moment(&claim.at).map(|at| (clock::now() - at).num_seconds());
    // The age too, and not only the pid, which may belong to another process by now.
    age.is_none_or(|age| !(0..CLAIM_LIFE_SECONDS).contains(&age))
        || plimsoll_launcher::process::life_of(claim.pid).is_gone()
}

#[inline(never)]
fn cancelled(call: &HookInvocation) -> HookResponse {
    let marker = Marker::Stop { status: Status::Cancelled, reason: String::new() }.to_string();
    let _ = sessions::update(&call.project, &call.session_id, TIMEOUT, |record| {
        record.end.ended_by_us = Some("the run was cancelled".to_owned());
    });
    let reply = Reply::default().end_session("The run was cancelled with `plimsoll stop`.").tell_user(marker);
    HookResponse::reply(&reply)
}

/// Everything an action needs.
struct ActionContext<'a> {
    call: &'a HookInvocation,
    run: Option<&'a RunState>,
    record: &'a SessionRecord,
    measurement: &'a Measurement,
    thresholds: Option<Thresholds>,
}

impl ActionContext<'_> {
    fn act(&self, action: &Action) -> HookResponse {
        match action {
            Action::Nothing => HookResponse::quiet(),
            Action::Warn { level, percent, handoff } => self.warn(*level, *percent, *handoff),
            Action::Checkpoint { level, percent, ends } => self.checkpoint(*level, *percent, *ends),
            Action::StopHere { percent, why } => self.stop_here(*percent, *why),
            Action::End { level, percent, reason } => self.end(*level, *percent, reason),
        }
    }

    fn warn(&self, level: Level, percent: u64, with_handoff: bool) -> HookResponse {
        let Some(thresholds) = &self.thresholds else { return HookResponse::quiet() };
        let handoff = with_handoff.then(|| self.write_checkpoint(Cause::Level, level, percent));
        let (handoff, complaint) = match handoff.transpose() {
            Ok(handoff) => (handoff, None),
            Err(error) => {
                // It is not retried with every batch: the user works here, and has been told.
                self.drop_claim();
                (None, Some(error))
            }
        };
        let handoff = handoff.as_deref();
        let (text, for_person) = match self.run {
            Some(_) => (words::warning(percent, thresholds), Marker::Warning { level, percent }.to_string()),
            None => {
                let command = handoff.map(|file| continue_command(&self.call.project, file));
                (
                    words::advice(level, percent, thresholds, handoff),
                    words::advice_for_user(level, percent, thresholds, command.as_deref()),
                )
            }
        };
        self.note(JournalEvent::Warning(self.reached(level, percent, None)));
        let reply = Reply::default().tell_model(self.call.event().name(), text).tell_user(for_person);
        HookResponse::reply(&reply).with_complaint(complaint)
    }

    fn checkpoint(&self, level: Level, percent: u64, ends: bool) -> HookResponse {
        let (handoff, complaint) = match self.write_checkpoint(Cause::Level, level, percent) {
            Ok(handoff) => (handoff, None),
            // The session must end at L3 all the same, and the model must be told at L2.
            Err(error) => ("(no handoff could be written)".to_owned(), Some(error)),
        };
        let marker =
            Marker::Checkpoint { level, percent: Some(percent), handoff: handoff.clone() }.to_string();
        let event = self.call.event().name();
        if !ends {
            let reply = Reply::default()
                .tell_model(event, words::wrap_up(level, percent, &handoff))
                .tell_user(marker);
            return HookResponse::reply(&reply).with_complaint(complaint);
        }
        // PostToolBatch keeps its context beside `continue:false`; on PostToolUse the client drops it (2.1.329).
        let reason = format!("The context window is {percent}% full. {}", words::continues_from(&handoff));
        // Before the reply: in a shell loop the process that judges knows by it that we have ended the session.
        let _ = sessions::update(&self.call.project, &self.call.session_id, TIMEOUT, |record| {
            record.end.ended_by_us = Some(format!("{level} at {percent}%"));
        });
        let reply = Reply::default()
            .end_session(reason)
            .tell_model(event, words::emergency(percent, &handoff))
            .tell_user(marker);
        HookResponse::reply(&reply).exit(ExitStatus::Failure).with_complaint(complaint)
    }

    fn stop_here(&self, percent: u64, why: TooSmall) -> HookResponse {
        let Some(thresholds) = &self.thresholds else { return HookResponse::quiet() };
        let (level, event) = (Level::L1, self.call.event().name());
        let (marker, text, complaint) = match self.write_checkpoint(Cause::Step, level, percent) {
            Ok(handoff) => {
                // Only once the checkpoint is written: the line explains it.
                self.note(JournalEvent::NoRoomForStep(Room {
                    estimate_tokens: Some(why.step),
                    room_tokens: Some(why.left),
                    ..Room::default()
                }));
                let text = words::stop_here(percent, &handoff, why, thresholds);
                (Marker::Checkpoint { level, percent: Some(percent), handoff }, text, None)
            }
            // It was better, not needed: the session is warned, and continues to L2.
            Err(error) => {
                self.drop_claim();
                (Marker::Warning { level, percent }, words::warning(percent, thresholds), Some(error))
            }
        };
        let reply = Reply::default().tell_model(event, text).tell_user(marker.to_string());
        HookResponse::reply(&reply).with_complaint(complaint)
    }

    fn end(&self, level: Level, percent: u64, reason: &str) -> HookResponse {
        self.note(JournalEvent::Ended(self.reached(level, percent, Some(reason))));
        let handoff = checkpoint::recorded_handoff(&self.call.project, &self.call.session_id, self.record);
        // A pending background task gives the client another turn after its end (2.1.329): then it comes here again.
        let continues = handoff.as_ref().map(|handoff| format!(" {}", words::continues_from(handoff)));
        let words = format!("{reason}.{}", continues.unwrap_or_default());
        let reason = handoff.unwrap_or_default();
        let marker = Marker::Continue { kind: ContinueKind::Checkpoint, reason }.to_string();
        let reply = Reply::default().end_session(words).tell_user(marker);
        HookResponse::reply(&reply).exit(ExitStatus::failure_if(level == Level::L3))
    }

    fn drop_claim(&self) {
        let _ = sessions::update(&self.call.project, &self.call.session_id, TIMEOUT, |record| {
            record.checkpoint.claim = None;
        });
    }

    fn write_checkpoint(
        &self,
        cause: Cause,
        level: Level,
        percent: u64,
    ) -> Result<String, plimsoll_store::StoreError> {
        let request = Request {
            project: &self.call.project,
            settings: &self.call.settings,
            session_id: &self.call.session_id,
            transcript: self.call.transcript().map(Into::into),
            run: self.run,
            cause,
            level,
            reading: self.measurement.reading.as_ref(),
            thresholds: self.thresholds.as_ref(),
            waited: self.measurement.waited,
            calls: self.call.event().tool_calls(),
            notes: plimsoll_domain::handoff::Notes::default(),
        };
        debug_assert_eq!(self.measurement.reading.as_ref().and_then(Reading::percent), Some(percent));
        checkpoint::write(&request)
    }

    fn note(&self, event: JournalEvent) {
        let run = self.run.map(|run| (&run.run_id, run.iteration));
        let entry = JournalEntry::new(event).run(run).session(Some(&self.call.session_id));
        let _ = journal::note(&self.call.project, entry);
    }

    /// The figures behind a decision.
    fn reached(&self, level: Level, percent: u64, reason: Option<&str>) -> LevelReached {
        LevelReached {
            level,
            percent,
            reading: self.measurement.reading.clone(),
            thresholds: self.thresholds,
            waited_ms: self.measurement.waited.map(|waited| waited.as_millis() as u64),
            reason: reason.map(str::to_owned),
        }
    }
}
