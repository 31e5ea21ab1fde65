//! The monitor: measures the session's usage after each batch of tools, and warns, writes a checkpoint or ends the session.

use crate::checkpoint::facts;
use crate::checkpoint::{self, CheckpointRequest};
use crate::context::measure;
use crate::context::measure::Measurement;
use crate::handoffs::continue_slash_command_or_prompt;
use crate::hook_invocation::HookInvocation;
use crate::hook_response::HookResponse;
use crate::hooks::model_switch::warn_about_model_switch_if_interactive;
use crate::turns::capture;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::journal::{JournalEntry, JournalEvent, LevelReached, NextStepSizeEstimate};
use plimsoll_domain::level::{Level, Thresholds};
use plimsoll_domain::marker::NO_HANDOFF;
use plimsoll_domain::state::CheckpointCause;
use plimsoll_domain::status::RunStatus;
use plimsoll_domain::verdict::ContinueKind;
use plimsoll_domain::{Marker, RunState, SessionRecord, UsageReading};
use plimsoll_launcher::git;
use plimsoll_policy::current_item::current_unparked_item;
use plimsoll_policy::messages;
use plimsoll_policy::monitor::{Commit, MonitorAction, MonitorInput};
use plimsoll_policy::step::NextStepTooLarge;
use plimsoll_protocol::HookReply;
use plimsoll_protocol::event::HookEvent;
use plimsoll_protocol::tool::ToolCall;
use plimsoll_store::{Durability, clock, config, journal, sessions, tail};
use std::mem::ManuallyDrop;
use std::time::Duration;

/// Each writer holds the lock for only a millisecond or two; even twenty concurrent hooks finish within this time.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);
/// How many bytes at the end of the transcript are searched for the session's last message.
const MAX_TRANSCRIPT_TAIL_BYTES: u64 = 2 * 1024 * 1024;
/// An older claim was left by a hook that died: git has a timeout of five seconds, and the other steps are fast.
const MAX_CLAIM_AGE_SECONDS: i64 = 20;

/// Runs PostToolBatch, PostToolUse on clients that do not support PostToolBatch, and PreModelSwitch.
pub fn run_post_tool_hook(invocation: &HookInvocation) -> HookResponse {
    if let HookEvent::PreModelSwitch(switch) = invocation.event() {
        return warn_about_model_switch_if_interactive(invocation, switch);
    }
    let turn_log_warning = capture::capture_turns_after_hook_or_explain_failure(invocation);
    monitor_usage_unless_in_subagent(invocation).with_stderr_line(turn_log_warning)
}

fn monitor_usage_unless_in_subagent(invocation: &HookInvocation) -> HookResponse {
    // A subagent's event contains the path of the parent's transcript, so the subagent's usage cannot be measured.
    let is_supported_event =
        matches!(invocation.event(), HookEvent::PostToolBatch(_) | HookEvent::PostToolUse(_));
    if !is_supported_event
        || invocation.payload.is_in_subagent()
        || is_subagent_event_by_transcript(invocation)
        || invocation.session_id.is_empty()
    {
        return HookResponse::empty().with_stderr_line(invocation.settings_error.as_ref());
    }
    match measure_usage_and_act(invocation) {
        Ok(response) => response.with_stderr_line(invocation.settings_error.as_ref()),
        Err(error) => HookResponse::from_error(format!("{error}; {}", error.hint())),
    }
}

/// Determines from the transcript whether the event is from a subagent. Old clients do not mark such events, and a message
/// in the response would not reach the main session.
fn is_subagent_event_by_transcript(invocation: &HookInvocation) -> bool {
    let HookEvent::PostToolUse(tool_event) = invocation.event() else { return false };
    let last_entries = invocation
        .transcript_path()
        .and_then(|path| tail::read_last_entries(path, MAX_TRANSCRIPT_TAIL_BYTES).ok())
        .unwrap_or_default();
    plimsoll_policy::subagent_event::is_event_of_running_subagent(
        tool_event.tool_name.as_deref().unwrap_or_default(),
        &last_entries,
    )
}

fn measure_usage_and_act(invocation: &HookInvocation) -> Result<HookResponse, plimsoll_store::StoreError> {
    let record = invocation.record();
    let is_in_run = invocation.belongs_to_run_in_environment(record)?;
    if is_in_run && record.end.is_canceled {
        return Ok(record_cancellation_and_end_session(invocation));
    }
    let measurement = measure::measure_hook_session_waiting_near_threshold(invocation, record);
    let transcript_error = measurement.transcript_error.as_ref().map(ToString::to_string);
    let Some(input) = build_monitor_input_if_usage_was_read(invocation, record, &measurement, is_in_run)
    else {
        add_transcript_wait_to_session_record(invocation, &measurement)?;
        return Ok(HookResponse::empty().with_stderr_line(transcript_error));
    };
    // Decide without the lock first: usually nothing changes, and then no lock and no write are needed. The process exits
    // soon, so these values are not dropped.
    let (mut tentative_record, input) = (ManuallyDrop::new(record.clone()), ManuallyDrop::new(input));
    let expected_action =
        plimsoll_policy::monitor::decide_action(&mut tentative_record, &input, &invocation.settings);
    if *tentative_record == *record
        && expected_action == MonitorAction::Nothing
        && measurement.transcript_wait.is_none()
    {
        return Ok(HookResponse::empty().with_stderr_line(transcript_error));
    }
    let (input, tentative_record) =
        (ManuallyDrop::into_inner(input), ManuallyDrop::into_inner(tentative_record));
    let response = redecide_under_lock_and_perform_action(
        invocation,
        input,
        tentative_record,
        expected_action,
        &measurement,
        is_in_run,
    )?;
    Ok(response.with_stderr_line(transcript_error))
}

/// Decides again under the session's lock and performs the action. Not inlined into its caller: the records here take
/// several pages of stack, and most batches do not need them.
#[inline(never)]
fn redecide_under_lock_and_perform_action(
    invocation: &HookInvocation,
    mut input: MonitorInput,
    mut tentative_record: SessionRecord,
    mut expected_action: MonitorAction,
    measurement: &Measurement,
    is_in_run: bool,
) -> Result<HookResponse, plimsoll_store::StoreError> {
    let record = invocation.record();
    // The run's state is read only if there is an action to perform. The run may have ended in the meantime.
    let needs_run = is_in_run && expected_action != MonitorAction::Nothing;
    let mut run = if needs_run { load_owned_open_run(invocation)? } else { None };
    if needs_run && run.is_none() {
        input.is_in_run = false;
        tentative_record.clone_from(record);
        expected_action =
            plimsoll_policy::monitor::decide_action(&mut tentative_record, &input, &invocation.settings);
    }
    (input.pid, input.now) = (std::process::id(), clock::to_millis_timestamp(clock::now()));
    let (action, record) = match decide_and_save_record_under_lock(invocation, &input, measurement) {
        Ok(action_and_record) => action_and_record,
        // An action that ends the session is performed even without the lock.
        Err(_)
            if matches!(
                expected_action,
                MonitorAction::Checkpoint { ends_session: true, .. } | MonitorAction::EndSession { .. }
            ) =>
        {
            (expected_action, tentative_record)
        }
        Err(error) => return Err(error),
    };
    if run.is_none() && input.is_in_run && action != MonitorAction::Nothing {
        run = load_owned_open_run(invocation)?;
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

fn load_owned_open_run(invocation: &HookInvocation) -> Result<Option<RunState>, plimsoll_store::StoreError> {
    Ok(invocation.load_owned_run()?.filter(|run| !run.lifecycle.has_ended()))
}

/// Decides on the latest record under the session's lock and saves the record, so that concurrent hooks announce a level once.
fn decide_and_save_record_under_lock(
    invocation: &HookInvocation,
    input: &MonitorInput,
    measurement: &Measurement,
) -> Result<(MonitorAction, SessionRecord), plimsoll_store::StoreError> {
    let changed_settings = config::read_client_settings_if_modified(
        &invocation.project,
        invocation.record().start.client_compaction_settings.as_ref(),
    );
    let _lock =
        sessions::lock_session_if_id_is_file_name(&invocation.project, &invocation.session_id, LOCK_TIMEOUT)?;
    let previous_record =
        sessions::load_or_new_marked_if_invalid(&invocation.project, &invocation.session_id)?;
    let mut record = previous_record.clone();
    if changed_settings.is_some() {
        record.start.client_compaction_settings = changed_settings;
    }
    let input = MonitorInput {
        is_claim_old_or_process_dead: is_checkpoint_claim_old_or_process_dead(&record),
        ..input.clone()
    };
    let action = plimsoll_policy::monitor::decide_action(&mut record, &input, &invocation.settings);
    if let Some(transcript_wait) = measurement.transcript_wait {
        record.writer_waits.count += 1;
        record.writer_waits.total_ms += transcript_wait.as_millis() as u64;
    }
    if let MonitorAction::EndSession { reason, .. } = &action {
        record.end.hook_end_reason = Some(reason.clone());
    }
    // The claim is saved before the checkpoint is written: if this hook dies, a later event writes the checkpoint.
    if record != previous_record {
        sessions::set_aside_invalid_and_save_record(&invocation.project, &record, Durability::Lazy)?;
    }
    Ok((action, record))
}

/// Counts an unsuccessful wait for the transcript in the session's record, so that it is not repeated at every batch.
#[inline(never)]
fn add_transcript_wait_to_session_record(
    invocation: &HookInvocation,
    measurement: &Measurement,
) -> Result<(), plimsoll_store::StoreError> {
    let Some(transcript_wait) = measurement.transcript_wait else { return Ok(()) };
    sessions::update_session_record(&invocation.project, &invocation.session_id, LOCK_TIMEOUT, |record| {
        record.writer_waits.count += 1;
        record.writer_waits.total_ms += transcript_wait.as_millis() as u64;
    })
}

fn build_monitor_input_if_usage_was_read(
    invocation: &HookInvocation,
    record: &SessionRecord,
    measurement: &Measurement,
    is_in_run: bool,
) -> Option<MonitorInput> {
    let reading = measurement.reading.clone()?;
    let new_commit =
        if is_in_run { find_new_head_if_batch_ran_git_commit(invocation, record, &reading) } else { None };
    Some(MonitorInput {
        is_batch: matches!(invocation.event(), HookEvent::PostToolBatch(_)),
        reading,
        thresholds: measurement.thresholds,
        is_in_run,
        is_current_item_open: new_commit.is_some() && is_current_item_unticked(invocation),
        new_commit,
        is_claim_old_or_process_dead: is_checkpoint_claim_old_or_process_dead(record),
        // The caller sets both before it decides under the lock.
        pid: 0,
        now: plimsoll_domain::Timestamp::UNKNOWN,
    })
}

/// Returns HEAD if it has changed and a tool call of this batch mentions `git commit`; otherwise git is not run. A commit
/// that is older than the current message, for example a subagent's, was not made by this batch and has no usage.
#[inline(never)]
fn find_new_head_if_batch_ran_git_commit(
    invocation: &HookInvocation,
    record: &SessionRecord,
    reading: &UsageReading,
) -> Option<Commit> {
    if !invocation.event().tool_calls().iter().any(ToolCall::mentions_git_commit) {
        return None;
    }
    let previous_head = record.own_commits.head.as_ref().or(record.start.head_at_start.as_ref());
    let newest_commit = git::newest_commit(invocation.project.root())
        .filter(|commit| Some(commit.id.as_str()) != previous_head.map(String::as_str))?;
    let message_time = reading.responded_at.as_ref().and_then(clock::parse_timestamp);
    let is_from_batch = !reading.is_one_request_behind
        && message_time.is_some_and(|time| newest_commit.committed_at >= time.timestamp());
    Some(Commit {
        commit_id: newest_commit.id.into(),
        used_tokens: is_from_batch.then(|| reading.projected_tokens()),
    })
}

/// Returns false if the item is ticked, or if the run or the plan cannot be loaded.
#[inline(never)]
fn is_current_item_unticked(invocation: &HookInvocation) -> bool {
    let run = load_owned_open_run(invocation).ok().flatten();
    let plan = run.as_ref().and_then(|run| facts::load_plan(&invocation.project, run));
    let item = run.as_ref().and_then(current_unparked_item);
    plan.zip(item).is_some_and(|(plan, item)| plan.open_items().contains(item))
}

fn is_checkpoint_claim_old_or_process_dead(record: &SessionRecord) -> bool {
    let Some(claim) = &record.checkpoint_progress.open_claim else { return false };
    let age_seconds =
        clock::parse_timestamp(&claim.claimed_at).map(|claim_time| (clock::now() - claim_time).num_seconds());
    // The age is checked as well, because the pid may have been reused by another process.
    age_seconds.is_none_or(|age| !(0..MAX_CLAIM_AGE_SECONDS).contains(&age))
        || plimsoll_launcher::process::liveness_of_pid(claim.pid).has_ended()
}

#[inline(never)]
fn record_cancellation_and_end_session(invocation: &HookInvocation) -> HookResponse {
    let marker = Marker::Stop { status: RunStatus::Canceled, reason: String::new() };
    let _ = sessions::update_session_record(
        &invocation.project,
        &invocation.session_id,
        LOCK_TIMEOUT,
        |record| {
            record.end.hook_end_reason = Some("the run was canceled".to_owned());
        },
    );
    let reply = HookReply::default()
        .end_session("The run was canceled with `plimsoll stop`.")
        .with_user_message(messages::render_description_and_marker_for_user(
            "the run was canceled with `plimsoll stop`",
            &marker,
            "This session ends now.",
        ));
    HookResponse::from_reply(&reply)
}

/// The state that performing an action requires.
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
                self.write_checkpoint_and_notify_or_end_session(*level, *percent, *ends_session)
            }
            MonitorAction::StopAtCommit { percent, next_step: step } => {
                self.write_checkpoint_before_large_step(*percent, *step)
            }
            MonitorAction::EndSession { level, percent, reason } => {
                self.record_event_and_end_session(*level, *percent, reason)
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
                // Not retried at every batch: the user is present and sees the error.
                self.clear_checkpoint_claim();
                (None, Some(error))
            }
        };
        let handoff_file = handoff_file.as_deref();
        let (text, user_message) = match self.run {
            Some(_) => (
                messages::render_l1_warning(percent, thresholds),
                messages::render_l1_warning_for_user(percent, thresholds),
            ),
            None => {
                let command = handoff_file.map(|handoff_file| {
                    continue_slash_command_or_prompt(&self.invocation.project, handoff_file)
                });
                (
                    messages::render_advice_outside_run_for_model(level, percent, thresholds, handoff_file),
                    messages::render_advice_outside_run_for_user(
                        level,
                        percent,
                        thresholds,
                        command.as_deref(),
                    ),
                )
            }
        };
        self.append_event_to_journal(JournalEvent::Warning(self.build_level_reached(level, percent, None)));
        let reply = HookReply::default()
            .with_model_context(self.invocation.event().name(), text)
            .with_user_message(user_message);
        HookResponse::from_reply(&reply).with_stderr_line(checkpoint_error)
    }

    fn write_checkpoint_and_notify_or_end_session(
        &self,
        level: Level,
        percent: u64,
        ends_session: bool,
    ) -> HookResponse {
        let (handoff_file, checkpoint_error) =
            match self.write_checkpoint(CheckpointCause::Level, level, percent) {
                Ok(handoff) => (handoff, None),
                // Even without a handoff, the session must end at L3, and the model must be notified at L2.
                Err(error) => (NO_HANDOFF.to_owned(), Some(error)),
            };
        let marker = Marker::Checkpoint { level, percent: Some(percent), handoff: handoff_file.clone() };
        let event_name = self.invocation.event().name();
        if !ends_session {
            let reply = HookReply::default()
                .with_model_context(
                    event_name,
                    messages::render_checkpoint_instructions(level, percent, &handoff_file),
                )
                .with_user_message(messages::render_marker_for_user(
                    &marker,
                    "The session finishes its step and ends; the next one continues.",
                ));
            return HookResponse::from_reply(&reply).with_stderr_line(checkpoint_error);
        }
        // The client keeps the context of PostToolBatch if the reply also has `continue:false`, and drops that of
        // PostToolUse (2.1.329).
        let reason = format!(
            "The context window is {percent}% full. {}",
            messages::render_continuation_sentence(&handoff_file)
        );
        // Recorded before the reply: in a shell loop, the process that judges the session reads from the record that this
        // hook ended it.
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
            .with_model_context(event_name, messages::render_l3_session_end_message(percent, &handoff_file))
            .with_user_message(messages::render_marker_for_user(
                &marker,
                "The session ends now; the next one continues.",
            ));
        HookResponse::from_reply(&reply)
            .with_exit_status(ExitStatus::Failure)
            .with_stderr_line(checkpoint_error)
    }

    fn write_checkpoint_before_large_step(&self, percent: u64, step: NextStepTooLarge) -> HookResponse {
        let Some(thresholds) = &self.thresholds else { return HookResponse::empty() };
        let (level, event_name) = (Level::L1, self.invocation.event().name());
        let (user_message, text, checkpoint_error) =
            match self.write_checkpoint(CheckpointCause::Step, level, percent) {
                Ok(handoff) => {
                    // Recorded after the checkpoint, because the journal entry gives the reason for it.
                    self.append_event_to_journal(JournalEvent::NoRoomForStep(NextStepSizeEstimate {
                        estimate_tokens: Some(step.typical_step_tokens),
                        free_tokens: Some(step.tokens_below_l2),
                        ..NextStepSizeEstimate::default()
                    }));
                    let text = messages::render_stop_below_l2_at_commit_instructions(
                        percent, &handoff, step, thresholds,
                    );
                    let user_message = messages::render_marker_for_user(
                        &Marker::Checkpoint { level, percent: Some(percent), handoff },
                        "The next step would not fit. The session ends; the next one continues.",
                    );
                    (user_message, text, None)
                }
                // This checkpoint is optional: if it fails, the session gets a warning and continues until L2.
                Err(error) => {
                    self.clear_checkpoint_claim();
                    (
                        messages::render_l1_warning_for_user(percent, thresholds),
                        messages::render_l1_warning(percent, thresholds),
                        Some(error),
                    )
                }
            };
        let reply = HookReply::default().with_model_context(event_name, text).with_user_message(user_message);
        HookResponse::from_reply(&reply).with_stderr_line(checkpoint_error)
    }

    fn record_event_and_end_session(&self, level: Level, percent: u64, reason: &str) -> HookResponse {
        self.append_event_to_journal(JournalEvent::SessionEndRequested(self.build_level_reached(
            level,
            percent,
            Some(reason),
        )));
        let handoff_file = checkpoint::recorded_handoff_if_owned_by_session(
            &self.invocation.project,
            &self.invocation.session_id,
            self.record,
        );
        // When a background task finishes, the client starts another turn even after its end (2.1.329), and this code
        // runs again.
        let continue_hint =
            handoff_file.as_ref().map(|file| format!(" {}", messages::render_continuation_sentence(file)));
        let stop_reason = format!("{reason}.{}", continue_hint.unwrap_or_default());
        let handoff_file_or_empty = handoff_file.unwrap_or_default();
        let marker = Marker::Continue { kind: ContinueKind::Checkpoint, reason: handoff_file_or_empty };
        let user_message = messages::render_marker_for_user(&marker, "This session ends now.");
        let reply = HookReply::default().end_session(stop_reason).with_user_message(user_message);
        HookResponse::from_reply(&reply).with_exit_status(ExitStatus::failure_if(level == Level::L3))
    }

    fn clear_checkpoint_claim(&self) {
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
        checkpoint::write_checkpoint(&request).map(|handoff| handoff.file)
    }

    fn append_event_to_journal(&self, event: JournalEvent) {
        let run = self.run.map(|run| (&run.run_id, run.iteration));
        let entry = JournalEntry::new(event).with_run(run).with_session(Some(&self.invocation.session_id));
        let _ = journal::append_entry(&self.invocation.project, entry);
    }

    fn build_level_reached(&self, level: Level, percent: u64, reason: Option<&str>) -> LevelReached {
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
