//! The monitor: measures the session's usage after each batch of tools and decides what follows.

use crate::checkpoint::facts;
use crate::checkpoint::{self, CheckpointRequest};
use crate::context::measure;
use crate::context::measure::Measurement;
use crate::handoffs::continue_slash_command_or_prompt;
use crate::hook_invocation::HookInvocation;
use crate::hook_response::HookResponse;
use crate::turns::capture;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::journal::{FitEstimate, JournalEntry, JournalEvent, LevelReached};
use plimsoll_domain::level::{Level, Thresholds};
use plimsoll_domain::state::CheckpointCause;
use plimsoll_domain::status::RunStatus;
use plimsoll_domain::verdict::ContinueKind;
use plimsoll_domain::{Marker, RunState, SessionRecord, UsageReading};
use plimsoll_launcher::git;
use plimsoll_policy::current_item::current_open_item;
use plimsoll_policy::messages;
use plimsoll_policy::monitor::{Commit, MonitorAction, MonitorInput};
use plimsoll_policy::step::NextStepTooLarge;
use plimsoll_protocol::HookReply;
use plimsoll_protocol::event::HookEvent;
use plimsoll_protocol::tool::ToolCall;
use plimsoll_store::{Durability, clock, config, journal, sessions, tail};
use std::mem::ManuallyDrop;
use std::time::Duration;

/// Our writers hold a lock for a millisecond or two; even twenty hooks at once finish within this time.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);
/// The end of the transcript that is searched for the session's last message.
const MAX_TRANSCRIPT_TAIL_BYTES: u64 = 2 * 1024 * 1024;
/// An older claim was left by a hook that died: git is given five seconds, and the rest is quick.
const MAX_CLAIM_AGE_SECONDS: i64 = 20;

/// Runs PostToolBatch, and PostToolUse on clients that are too old for it.
pub fn run_post_tool_hook(invocation: &HookInvocation) -> HookResponse {
    let turn_log_warning = capture::capture_after_hook(invocation);
    respond_to_batch(invocation).with_stderr_line(turn_log_warning)
}

fn respond_to_batch(invocation: &HookInvocation) -> HookResponse {
    // A subagent's event names the parent's transcript, so its usage cannot be measured, and nothing is
    // announced to it.
    let is_supported_event =
        matches!(invocation.event(), HookEvent::PostToolBatch(_) | HookEvent::PostToolUse(_));
    if !is_supported_event
        || invocation.payload.is_in_subagent()
        || is_from_subagent(invocation)
        || invocation.session_id.is_empty()
    {
        return HookResponse::empty().with_stderr_line(invocation.settings_error.as_ref());
    }
    match monitor_usage(invocation) {
        Ok(response) => response.with_stderr_line(invocation.settings_error.as_ref()),
        Err(error) => HookResponse::from_fault(format!("{error}; {}", error.hint())),
    }
}

/// An old client does not mark a subagent's event, and an announcement there would never reach the session
/// itself.
fn is_from_subagent(invocation: &HookInvocation) -> bool {
    let HookEvent::PostToolUse(tool) = invocation.event() else { return false };
    let lines = invocation
        .transcript_path()
        .and_then(|path| tail::read_last_entries(path, MAX_TRANSCRIPT_TAIL_BYTES).ok())
        .unwrap_or_default();
    plimsoll_policy::subagent_event::is_subagent_event(tool.tool_name.as_deref().unwrap_or_default(), &lines)
}

fn monitor_usage(invocation: &HookInvocation) -> Result<HookResponse, plimsoll_store::StoreError> {
    let record = invocation.record();
    let in_run = invocation.belongs_to_run(record)?;
    if in_run && record.end.is_canceled {
        return Ok(end_canceled_session(invocation));
    }
    let measurement = measure::measure_hook_session(invocation, record);
    let transcript_error = measurement.transcript_error.as_ref().map(ToString::to_string);
    let Some(input) = build_monitor_input(invocation, record, &measurement, in_run) else {
        record_transcript_wait(invocation, &measurement)?;
        return Ok(HookResponse::empty().with_stderr_line(transcript_error));
    };
    // First without the lock: mostly nothing changes, and then nothing is locked or written. The process ends
    // soon, so dropping these values piece by piece would be wasted time.
    let (mut draft_record, input) = (ManuallyDrop::new(record.clone()), ManuallyDrop::new(input));
    let expected_action =
        plimsoll_policy::monitor::decide_action(&mut draft_record, &input, &invocation.settings);
    if *draft_record == *record
        && expected_action == MonitorAction::Nothing
        && measurement.transcript_wait.is_none()
    {
        return Ok(HookResponse::empty().with_stderr_line(transcript_error));
    }
    let (input, draft_record) = (ManuallyDrop::into_inner(input), ManuallyDrop::into_inner(draft_record));
    let response = decide_and_act(invocation, input, draft_record, expected_action, &measurement, in_run)?;
    Ok(response.with_stderr_line(transcript_error))
}

/// Not inlined into its caller: the records here take some pages of the stack, and most batches need none of
/// them.
#[inline(never)]
fn decide_and_act(
    invocation: &HookInvocation,
    mut input: MonitorInput,
    mut draft_record: SessionRecord,
    mut expected_action: MonitorAction,
    measurement: &Measurement,
    in_run: bool,
) -> Result<HookResponse, plimsoll_store::StoreError> {
    let record = invocation.record();
    // The state is read only when an action is due; the run may have ended by now.
    let needs_run = in_run && expected_action != MonitorAction::Nothing;
    let mut run = if needs_run { owned_open_run(invocation)? } else { None };
    if needs_run && run.is_none() {
        input.in_run = false;
        draft_record.clone_from(record);
        expected_action =
            plimsoll_policy::monitor::decide_action(&mut draft_record, &input, &invocation.settings);
    }
    (input.pid, input.now) = (std::process::id(), clock::to_millis_timestamp(clock::now()));
    let (action, record) = match decide_under_lock(invocation, &input, measurement) {
        Ok(action_and_record) => action_and_record,
        // At L3 the action is performed even without the lock.
        Err(_)
            if matches!(
                expected_action,
                MonitorAction::Checkpoint { ends_session: true, .. } | MonitorAction::EndSession { .. }
            ) =>
        {
            (expected_action, draft_record)
        }
        Err(error) => return Err(error),
    };
    if run.is_none() && input.in_run && action != MonitorAction::Nothing {
        run = owned_open_run(invocation)?;
    }
    let context = ActionContext {
        invocation,
        run: run.as_ref(),
        record: &record,
        measurement,
        thresholds: input.thresholds,
    };
    Ok(context.perform_action(&action))
}

fn owned_open_run(invocation: &HookInvocation) -> Result<Option<RunState>, plimsoll_store::StoreError> {
    Ok(invocation.owned_run()?.filter(|run| !run.lifecycle.is_over()))
}

/// Decides under the session's lock, on the newest record: twenty hooks at once announce a level once.
fn decide_under_lock(
    invocation: &HookInvocation,
    input: &MonitorInput,
    measurement: &Measurement,
) -> Result<(MonitorAction, SessionRecord), plimsoll_store::StoreError> {
    let changed_settings = config::client_settings_if_changed(
        &invocation.project,
        invocation.record().start.client_compaction_settings.as_ref(),
    );
    let _lock = sessions::lock_session(&invocation.project, &invocation.session_id, LOCK_TIMEOUT)?;
    let previous_record = sessions::load_for_update(&invocation.project, &invocation.session_id)?;
    let mut record = previous_record.clone();
    if changed_settings.is_some() {
        record.start.client_compaction_settings = changed_settings;
    }
    let input = MonitorInput { claim_is_orphaned: is_claim_orphaned(&record), ..input.clone() };
    let action = plimsoll_policy::monitor::decide_action(&mut record, &input, &invocation.settings);
    if let Some(transcript_wait) = measurement.transcript_wait {
        record.writer_waits.count += 1;
        record.writer_waits.total_ms += transcript_wait.as_millis() as u64;
    }
    if let MonitorAction::EndSession { reason, .. } = &action {
        record.end.hook_end_reason = Some(reason.clone());
    }
    // The claim is saved before the checkpoint begins: if this hook dies now, a later event finishes it.
    if record != previous_record {
        sessions::save_session_record(&invocation.project, &record, Durability::Lazy)?;
    }
    Ok((action, record))
}

/// Records an unsuccessful wait, so that it is not repeated at every batch.
#[inline(never)]
fn record_transcript_wait(
    invocation: &HookInvocation,
    measurement: &Measurement,
) -> Result<(), plimsoll_store::StoreError> {
    let Some(transcript_wait) = measurement.transcript_wait else { return Ok(()) };
    sessions::update_session_record(&invocation.project, &invocation.session_id, LOCK_TIMEOUT, |record| {
        record.writer_waits.count += 1;
        record.writer_waits.total_ms += transcript_wait.as_millis() as u64;
    })
}

fn build_monitor_input(
    invocation: &HookInvocation,
    record: &SessionRecord,
    measurement: &Measurement,
    in_run: bool,
) -> Option<MonitorInput> {
    let reading = measurement.reading.clone()?;
    let new_commit = if in_run { find_new_commit(invocation, record, &reading) } else { None };
    Some(MonitorInput {
        is_batch: matches!(invocation.event(), HookEvent::PostToolBatch(_)),
        reading,
        thresholds: measurement.thresholds,
        in_run,
        item_is_open: new_commit.is_some() && is_current_item_open(invocation),
        new_commit,
        claim_is_orphaned: is_claim_orphaned(record),
        // Both are set when something changes.
        pid: 0,
        now: plimsoll_domain::Timestamp::UNKNOWN,
    })
}

/// Returns the new HEAD, if a command of this batch may have moved it; otherwise git is not run. A commit
/// that is older than the current message, such as a subagent's or a branch's, does not belong to this batch.
#[inline(never)]
fn find_new_commit(
    invocation: &HookInvocation,
    record: &SessionRecord,
    reading: &UsageReading,
) -> Option<Commit> {
    if !invocation.event().tool_calls().iter().any(ToolCall::mentions_git_commit) {
        return None;
    }
    let known_head = record.own_commits.head.as_ref().or(record.start.head_at_start.as_ref());
    let newest_commit = git::newest_commit(invocation.project.root())
        .filter(|commit| Some(commit.id.as_str()) != known_head.map(String::as_str))?;
    let message_at = reading.responded_at.as_ref().and_then(clock::parse_timestamp);
    let is_from_batch = !reading.is_one_request_behind
        && message_at.is_some_and(|at| newest_commit.committed_at >= at.timestamp());
    Some(Commit {
        commit_id: newest_commit.id.into(),
        used_tokens: is_from_batch.then(|| reading.projected_tokens()),
    })
}

/// Returns false if the item is done, or if that is unknown.
#[inline(never)]
fn is_current_item_open(invocation: &HookInvocation) -> bool {
    let run = owned_open_run(invocation).ok().flatten();
    let plan = run.as_ref().and_then(|run| facts::load_plan(&invocation.project, run));
    let item = run.as_ref().and_then(current_open_item);
    plan.zip(item).is_some_and(|(plan, item)| plan.open_items().contains(item))
}

fn is_claim_orphaned(record: &SessionRecord) -> bool {
    let Some(claim) = &record.checkpoint_progress.open_claim else { return false };
    let age = clock::parse_timestamp(&claim.claimed_at).map(|at| (clock::now() - at).num_seconds());
    // Checks the age as well as the pid, which may belong to another process by now.
    age.is_none_or(|age| !(0..MAX_CLAIM_AGE_SECONDS).contains(&age))
        || plimsoll_launcher::process::liveness_of_pid(claim.pid).is_gone()
}

#[inline(never)]
fn end_canceled_session(invocation: &HookInvocation) -> HookResponse {
    let marker = Marker::Stop { status: RunStatus::Canceled, reason: String::new() }.to_string();
    let _ = sessions::update_session_record(
        &invocation.project,
        &invocation.session_id,
        LOCK_TIMEOUT,
        |record| {
            record.end.hook_end_reason = Some("the run was cancelled".to_owned());
        },
    );
    let reply = HookReply::default()
        .end_session("The run was cancelled with `plimsoll stop`.")
        .with_user_message(marker);
    HookResponse::from_reply(&reply)
}

/// The data that an action needs.
struct ActionContext<'a> {
    invocation: &'a HookInvocation,
    run: Option<&'a RunState>,
    record: &'a SessionRecord,
    measurement: &'a Measurement,
    thresholds: Option<Thresholds>,
}

impl ActionContext<'_> {
    fn perform_action(&self, action: &MonitorAction) -> HookResponse {
        match action {
            MonitorAction::Nothing => HookResponse::empty(),
            MonitorAction::Warn { level, percent, writes_handoff } => {
                self.warn_and_write_handoff_if_due(*level, *percent, *writes_handoff)
            }
            MonitorAction::Checkpoint { level, percent, ends_session } => {
                self.write_checkpoint_and_notify(*level, *percent, *ends_session)
            }
            MonitorAction::StopAtCommit { percent, reason: step } => {
                self.checkpoint_before_large_step(*percent, *step)
            }
            MonitorAction::EndSession { level, percent, reason } => {
                self.end_session(*level, *percent, reason)
            }
        }
    }

    fn warn_and_write_handoff_if_due(
        &self,
        level: Level,
        percent: u64,
        writes_handoff: bool,
    ) -> HookResponse {
        let Some(thresholds) = &self.thresholds else { return HookResponse::empty() };
        let checkpoint_result =
            writes_handoff.then(|| self.write_checkpoint(CheckpointCause::Level, level, percent));
        let (handoff_file, checkpoint_error) = match checkpoint_result.transpose() {
            Ok(handoff) => (handoff, None),
            Err(error) => {
                // Not retried with every batch: the user is present and has been told.
                self.clear_claim();
                (None, Some(error))
            }
        };
        let handoff_file = handoff_file.as_deref();
        let (text, user_message) = match self.run {
            Some(_) => (
                messages::render_l1_warning(percent, thresholds),
                Marker::Warning { level, percent }.to_string(),
            ),
            None => {
                let command = handoff_file.map(|handoff_file| {
                    continue_slash_command_or_prompt(&self.invocation.project, handoff_file)
                });
                (
                    messages::render_advice_for_model(level, percent, thresholds, handoff_file),
                    messages::render_advice_for_user(level, percent, thresholds, command.as_deref()),
                )
            }
        };
        self.record_event(JournalEvent::Warning(self.level_reached(level, percent, None)));
        let reply = HookReply::default()
            .with_model_context(self.invocation.event().name(), text)
            .with_user_message(user_message);
        HookResponse::from_reply(&reply).with_stderr_line(checkpoint_error)
    }

    fn write_checkpoint_and_notify(&self, level: Level, percent: u64, ends_session: bool) -> HookResponse {
        let (handoff_file, checkpoint_error) =
            match self.write_checkpoint(CheckpointCause::Level, level, percent) {
                Ok(handoff) => (handoff, None),
                // The session must end at L3 all the same, and the model must be told at L2.
                Err(error) => ("(no handoff could be written)".to_owned(), Some(error)),
            };
        let marker =
            Marker::Checkpoint { level, percent: Some(percent), handoff: handoff_file.clone() }.to_string();
        let event_name = self.invocation.event().name();
        if !ends_session {
            let reply = HookReply::default()
                .with_model_context(
                    event_name,
                    messages::render_checkpoint_instructions(level, percent, &handoff_file),
                )
                .with_user_message(marker);
            return HookResponse::from_reply(&reply).with_stderr_line(checkpoint_error);
        }
        // PostToolBatch keeps its context beside `continue:false`; on PostToolUse the client drops it
        // (2.1.329).
        let reason = format!(
            "The context window is {percent}% full. {}",
            messages::render_continues_from(&handoff_file)
        );
        // Recorded before the reply: in a shell loop, the judging process needs it to see that this hook
        // ended the session.
        let _ = sessions::update_session_record(
            &self.invocation.project,
            &self.invocation.session_id,
            LOCK_TIMEOUT,
            |record| {
                record.end.hook_end_reason = Some(format!("{level} at {percent}%"));
            },
        );
        let reply = HookReply::default()
            .end_session(reason)
            .with_model_context(event_name, messages::render_l3_checkpoint(percent, &handoff_file))
            .with_user_message(marker);
        HookResponse::from_reply(&reply)
            .with_exit_status(ExitStatus::Failure)
            .with_stderr_line(checkpoint_error)
    }

    fn checkpoint_before_large_step(&self, percent: u64, step: NextStepTooLarge) -> HookResponse {
        let Some(thresholds) = &self.thresholds else { return HookResponse::empty() };
        let (level, event_name) = (Level::L1, self.invocation.event().name());
        let (marker, text, checkpoint_error) =
            match self.write_checkpoint(CheckpointCause::Step, level, percent) {
                Ok(handoff) => {
                    // Only after the checkpoint is written, because the line explains it.
                    self.record_event(JournalEvent::NoRoomForStep(FitEstimate {
                        estimate_tokens: Some(step.typical_step_tokens),
                        free_tokens: Some(step.tokens_below_l2),
                        ..FitEstimate::default()
                    }));
                    let text = messages::render_stop_at_commit(percent, &handoff, step, thresholds);
                    (Marker::Checkpoint { level, percent: Some(percent), handoff }, text, None)
                }
                // This checkpoint is useful but not required: the session is warned and continues to L2.
                Err(error) => {
                    self.clear_claim();
                    (
                        Marker::Warning { level, percent },
                        messages::render_l1_warning(percent, thresholds),
                        Some(error),
                    )
                }
            };
        let reply =
            HookReply::default().with_model_context(event_name, text).with_user_message(marker.to_string());
        HookResponse::from_reply(&reply).with_stderr_line(checkpoint_error)
    }

    fn end_session(&self, level: Level, percent: u64, reason: &str) -> HookResponse {
        self.record_event(JournalEvent::SessionEndRequested(self.level_reached(
            level,
            percent,
            Some(reason),
        )));
        let handoff_file = checkpoint::recorded_own_handoff(
            &self.invocation.project,
            &self.invocation.session_id,
            self.record,
        );
        // A pending background task gives the client another turn after its end (2.1.329), which leads here
        // again.
        let continue_hint =
            handoff_file.as_ref().map(|file| format!(" {}", messages::render_continues_from(file)));
        let stop_reason = format!("{reason}.{}", continue_hint.unwrap_or_default());
        let handoff_or_empty = handoff_file.unwrap_or_default();
        let marker =
            Marker::Continue { kind: ContinueKind::Checkpoint, reason: handoff_or_empty }.to_string();
        let reply = HookReply::default().end_session(stop_reason).with_user_message(marker);
        HookResponse::from_reply(&reply).with_exit_status(ExitStatus::failure_if(level == Level::L3))
    }

    fn clear_claim(&self) {
        let _ = sessions::update_session_record(
            &self.invocation.project,
            &self.invocation.session_id,
            LOCK_TIMEOUT,
            |record| {
                record.checkpoint_progress.open_claim = None;
            },
        );
    }

    fn write_checkpoint(
        &self,
        cause: CheckpointCause,
        level: Level,
        percent: u64,
    ) -> Result<String, plimsoll_store::StoreError> {
        let request = CheckpointRequest {
            project: &self.invocation.project,
            settings: &self.invocation.settings,
            session_id: &self.invocation.session_id,
            transcript_path: self.invocation.transcript_path().map(Into::into),
            run: self.run,
            cause,
            level,
            reading: self.measurement.reading.as_ref(),
            thresholds: self.thresholds.as_ref(),
            transcript_wait: self.measurement.transcript_wait,
            pending_calls: self.invocation.event().tool_calls(),
            notes: plimsoll_domain::handoff::HandoffNotes::default(),
        };
        debug_assert_eq!(
            self.measurement.reading.as_ref().and_then(UsageReading::projected_percent),
            Some(percent)
        );
        checkpoint::write_checkpoint(&request)
    }

    fn record_event(&self, event: JournalEvent) {
        let run = self.run.map(|run| (&run.run_id, run.iteration));
        let entry = JournalEntry::new(event).with_run(run).with_session(Some(&self.invocation.session_id));
        let _ = journal::append_entry(&self.invocation.project, entry);
    }

    fn level_reached(&self, level: Level, percent: u64, reason: Option<&str>) -> LevelReached {
        LevelReached {
            level,
            percent,
            reading: self.measurement.reading.clone(),
            thresholds: self.thresholds,
            waited_ms: self.measurement.transcript_wait.map(|waited| waited.as_millis() as u64),
            session_message: reason.map(str::to_owned),
        }
    }
}
