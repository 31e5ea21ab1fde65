//! Supervises a running client: reads its output, and ends it for external reasons.

use super::{RunError, RunEvent, Runner};
use crate::run::observer::Interrupt;
use crate::run::stream_reader::StreamReader;
use crate::run::{backup, orphans};
use crate::session_result::{SessionResult, ends_with_interruption};
use plimsoll_domain::fatal_error::{FatalError, FatalErrorKind};
use plimsoll_domain::journal::JournalEvent;
use plimsoll_domain::state::ApiRetryState;
use plimsoll_domain::{ProcessExit, RunState, RunStatus, SessionEnding, SessionRecord, Verdict};
use plimsoll_launcher::client::LaunchedClient;
use plimsoll_launcher::process;
use plimsoll_policy::silence::{ExceededTimeout, SilenceTimeouts};
use plimsoll_store::{clock, disk};
use std::path::Path;
use std::time::Duration;

/// How long a client may take to exit after it is asked to.
const LONG_GRACE_PERIOD: Duration = Duration::from_secs(10);
/// The shorter limit for a client that lingers after its result or is interrupted twice: it has nothing more
/// to save.
pub(super) const SHORT_GRACE_PERIOD: Duration = Duration::from_secs(5);

impl Runner<'_> {
    /// Follows the client's output until it has ended or must be ended, then finishes the iteration.
    pub(super) fn follow_client_and_finish_iteration(
        &mut self,
        state: &RunState,
        mut client: LaunchedClient,
    ) -> Result<Verdict, RunError> {
        let output_path = self.output_path(state, "jsonl");
        let mut reader = match &client {
            LaunchedClient::Adopted(orphan) => StreamReader::for_adopted_client(
                output_path,
                &self.client_version,
                process::standard_output_path(orphan.pid).as_deref(),
            ),
            LaunchedClient::Started(..) => StreamReader::new(output_path, &self.client_version),
        };
        let result = loop {
            // Checked before the output is read, so that everything the client wrote until its end is also
            // read.
            let exit = client.exit_if_ended();
            for event in reader.read_new_events() {
                self.observer.on_event(&event);
            }
            if let Some(exit) = exit {
                break self.session_result_after_client_exit(state, &mut reader, exit)?;
            }
            if let Some(reason) = self.report_usage_and_find_reason_to_end_client(state, &mut reader)? {
                break self.end_client_and_return_result(state, &mut reader, &mut client, reason)?;
            }
            // A short interval, because `ActiveTime` treats a much longer gap as a suspended computer.
            std::thread::sleep(Duration::from_millis(50));
        };
        self.watchdog.clear_client();
        for (model, tokens) in reader.context_windows() {
            let _ = plimsoll_store::context_windows::save_nonzero_context_window_if_changed(
                self.context.project,
                model,
                tokens,
            );
        }
        if !result.denied_tools.is_empty() {
            self.observer.on_event(&RunEvent::ToolsDenied { state, tools: &result.denied_tools });
        }
        // The session counts as ended now, however long its client had been silent before.
        self.finish_iteration_and_report_events(state, &SessionResult { ended_at: None, ..result })
    }

    /// Returns the reason to end the client, if there is one: the user, the run, or the client's silence. A few
    /// times a second it also updates the displayed usage, the copy of the plan and the state.
    fn report_usage_and_find_reason_to_end_client(
        &mut self,
        state: &RunState,
        reader: &mut StreamReader,
    ) -> Result<Option<ClientEndReason>, RunError> {
        if self.observer.interrupts().has_requested(Interrupt::EndSession) {
            return Ok(Some(ClientEndReason::Interrupted));
        }
        if !reader.restart_state_check_interval_if_due() {
            return Ok(None);
        }
        let current_state = self.context.load_newest_state()?;
        // The state may be missing for a moment (an agent's `git clean`): the client is then followed with the
        // previous state.
        let current_state = current_state.as_ref().unwrap_or(state);
        let record = self.context.load_session_record_or_default(state);
        reader.record_hooks_running(self.have_hooks_started(current_state, &record));
        // A failed copy must not end the run.
        let _ = backup::load_plan_and_update_copy_and_items(self.context.project, current_state);
        self.record_api_retry_and_stop_request(current_state, reader)?;
        if current_state.lifecycle.status() != RunStatus::Canceled && !reader.runs_without_hooks() {
            let figures =
                self.figures_reader.read_figures_of_sequential_run(self.context.project, current_state);
            self.observer.on_event(&RunEvent::UsageUpdated {
                state: current_state,
                record: &record,
                figures: &figures,
            });
        }
        let timeouts = SilenceTimeouts {
            idle_seconds: current_state
                .options
                .idle_timeout_seconds
                .unwrap_or(self.context.settings.idle_timeout_seconds),
            tool_seconds: current_state
                .options
                .tool_timeout_seconds
                .unwrap_or(self.context.settings.tool_timeout_seconds),
        };
        let linger_timeout = self.linger_timeout_given_background_work(&record, reader);
        Ok(match () {
            () if current_state.lifecycle.status() == RunStatus::Canceled => Some(ClientEndReason::Canceled),
            () if reader.runs_without_hooks() => Some(ClientEndReason::HooksNotRunning),
            () if plimsoll_policy::bounds::passed_deadline(
                current_state,
                &clock::to_timestamp(clock::now()),
            )
            .is_some() =>
            {
                Some(ClientEndReason::DeadlinePassed)
            }
            () if reader.lingers_after_result(linger_timeout) => {
                Some(ClientEndReason::LingersAfterResult(linger_timeout))
            }
            () => {
                reader.exceeded_silence_timeout_before_result(timeouts).map(ClientEndReason::TimeoutExceeded)
            }
        })
    }

    /// Writes into the state what `plimsoll status` cannot detect by itself: that the client retries, and
    /// that Ctrl-C was pressed once. Writes only changes.
    fn record_api_retry_and_stop_request(
        &mut self,
        current_state: &RunState,
        reader: &StreamReader,
    ) -> Result<(), RunError> {
        let record = &current_state.iteration_record;
        let is_stop_requested = self.observer.interrupts().has_requested(Interrupt::AfterSession);
        let api_retry = reader.api_retry().map(|retry| ApiRetryState {
            // An earlier `plimsoll run` may have recorded when the retries began.
            failing_since: record
                .api_retry
                .as_ref()
                .map_or(&retry.failing_since, |recorded_retry| &recorded_retry.failing_since)
                .clone(),
            ..retry.clone()
        });
        if record.api_retry == api_retry && record.stops_run_after_session == is_stop_requested {
            return Ok(());
        }
        if is_stop_requested && !record.stops_run_after_session {
            self.observer.on_event(&RunEvent::StopRequested);
        }
        self.context.update_state_without_sync(|state| {
            state.iteration_record.api_retry = api_retry;
            state.iteration_record.stops_run_after_session = is_stop_requested;
        })?;
        Ok(())
    }

    /// Returns how long the client may stay alive after its result: longer if it has background work.
    fn linger_timeout_given_background_work(
        &self,
        record: &SessionRecord,
        reader: &StreamReader,
    ) -> Duration {
        // With a background task or a wakeup pending, `-p` stays alive after a stop and takes another turn
        // (2.1.329).
        let is_stopped = record.end.hook_end_reason.is_some() || reader.was_stopped_by_hook();
        let has_background_work =
            record.end.stop.as_ref().is_none_or(|stop| stop.background_tasks > 0 || stop.session_crons > 0);
        let seconds = if has_background_work && !is_stopped {
            self.context.settings.background_wait_seconds
        } else {
            self.context.settings.end_wait_seconds
        };
        Duration::from_secs(seconds)
    }

    /// Asks the client to exit, then kills it and the tools it would leave running, and returns the session's
    /// result. Only processes of this session are ended.
    fn end_client_and_return_result(
        &self,
        state: &RunState,
        reader: &mut StreamReader,
        client: &mut LaunchedClient,
        reason: ClientEndReason,
    ) -> Result<SessionResult, RunError> {
        if let Some(reason_text) = reason.journal_text() {
            self.context.journal_session_event(state, JournalEvent::ClientEnded { reason: reason_text })?;
        }
        client.terminate_with_descendants(reason.grace_period());
        orphans::end_surviving_processes(state);
        reader.read_new_events();
        // The exit status is ignored, because it reports the signal that was just sent (on 2.1.329 SIGINT
        // ends `-p` with 0, SIGTERM with 143).
        let result = reader.session_result(ProcessExit::default());
        Ok(match reason {
            // Keeps the result that the client reported before it lingered.
            ClientEndReason::LingersAfterResult(_) => result,
            ClientEndReason::Canceled => SessionResult { ending: SessionEnding::Canceled, ..result },
            ClientEndReason::Interrupted => SessionResult { ending: SessionEnding::Interrupted, ..result },
            ClientEndReason::DeadlinePassed => {
                SessionResult { ending: SessionEnding::DeadlineReached, ..result }
            }
            ClientEndReason::TimeoutExceeded(exceeded_timeout) => {
                SessionResult { ending: SessionEnding::IdleTimeout(exceeded_timeout.describe()), ..result }
            }
            ClientEndReason::HooksNotRunning => {
                self.journal_missing_hooks_as_fatal_result(state, reader, result)?
            }
        })
    }

    /// Returns the result of a client that has ended by itself. Also checks a client that ended before it was
    /// ever checked: if it ran without Plimsoll's hooks, the run stops.
    fn session_result_after_client_exit(
        &self,
        state: &RunState,
        reader: &mut StreamReader,
        exit: ProcessExit,
    ) -> Result<SessionResult, RunError> {
        let current_state = self.context.load_newest_state()?;
        let current_state = current_state.as_ref().unwrap_or(state);
        let record = self.context.load_session_record_or_default(state);
        let are_hooks_running = reader.record_hooks_running(self.have_hooks_started(current_state, &record));
        let mut result = reader.session_result(exit);
        // A client that is interrupted in a tool can exit before it has written its result (2.1.329, on a
        // busy computer). Its transcript is complete by then.
        let transcript_path = record.start.transcript_path.as_deref().map(Path::new);
        if matches!(result.ending, SessionEnding::Crashed(_))
            && exit.code == Some(0)
            && transcript_path.is_some_and(ends_with_interruption)
        {
            result.ending = SessionEnding::Interrupted;
        }
        if reader.has_started() && !are_hooks_running {
            return self.journal_missing_hooks_as_fatal_result(state, reader, result);
        }
        match exit.code {
            Some(code) if !reader.has_reported_session() && !are_hooks_running => Ok(SessionResult {
                ending: self.fatal_ending_if_first_iteration_else_crash(state, code),
                ..result
            }),
            _ => Ok(result),
        }
    }

    /// Returns true if our SessionStart hook has run. An agent may have replaced the state before it was read
    /// once, so the session's record is also checked.
    fn have_hooks_started(&self, current_state: &RunState, record: &SessionRecord) -> bool {
        let start = &record.start;
        let is_recorded = start.started_at.is_some() && start.run_id.as_ref() == Some(self.context.run_id);
        current_state.iteration_record.has_hooks_running || is_recorded
    }

    fn journal_missing_hooks_as_fatal_result(
        &self,
        state: &RunState,
        reader: &StreamReader,
        result: SessionResult,
    ) -> Result<SessionResult, RunError> {
        let client_version = reader.client_version();
        self.context.journal_session_event(
            state,
            JournalEvent::HooksDidNotRun { client_version: client_version.clone() },
        )?;
        let message = format!(
            " (client {client_version}), so nothing would guard it: check for `disableAllHooks` or `--bare`, for hook programs that cannot be started, or for a client too old for its settings"
        );
        Ok(SessionResult {
            ending: SessionEnding::Fatal(FatalError::new(FatalErrorKind::Hooks, &message)),
            ..result
        })
    }

    /// Returns the ending of a client that exited before its session began. In a run's first session this is
    /// fatal, because the next one would fail in the same way: a wrong option, a broken installation. Later
    /// it may be temporary (a client that is being updated), and the breaker counts it.
    fn fatal_ending_if_first_iteration_else_crash(&self, state: &RunState, exit_code: i32) -> SessionEnding {
        let error_output =
            disk::read_text(&self.output_path(state, "err")).ok().flatten().unwrap_or_default();
        let error_output = plimsoll_domain::text::to_safe_single_line(
            &plimsoll_domain::text::truncate_start(error_output.trim(), 200),
        );
        let output_text =
            if error_output.is_empty() { "said nothing".to_owned() } else { format!("said: {error_output}") };
        let message = format!("ended with exit code {exit_code} before its session began, and {output_text}");
        if state.iteration <= 1 {
            SessionEnding::Fatal(FatalError::from(format!("Claude Code {message}")))
        } else {
            SessionEnding::Crashed(message)
        }
    }
}

/// Why a client is ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ClientEndReason {
    /// The user pressed Ctrl-C twice.
    Interrupted,
    /// `plimsoll stop`. The next hook would end the client, but a client that waits for something runs no
    /// hook.
    Canceled,
    /// Plimsoll's hooks do not run in it.
    HooksNotRunning,
    /// The run's deadline has passed.
    DeadlinePassed,
    /// It has stayed alive for this long after its result.
    LingersAfterResult(Duration),
    /// It has printed nothing for too long.
    TimeoutExceeded(ExceededTimeout),
}

impl ClientEndReason {
    fn grace_period(&self) -> Duration {
        match self {
            ClientEndReason::Interrupted
            | ClientEndReason::HooksNotRunning
            | ClientEndReason::LingersAfterResult(_) => SHORT_GRACE_PERIOD,
            ClientEndReason::Canceled
            | ClientEndReason::DeadlinePassed
            | ClientEndReason::TimeoutExceeded(_) => LONG_GRACE_PERIOD,
        }
    }

    /// Returns the text for the journal; `None` if another line reports the reason.
    fn journal_text(&self) -> Option<String> {
        match self {
            ClientEndReason::Interrupted | ClientEndReason::HooksNotRunning => None,
            ClientEndReason::Canceled => Some("the run was canceled".to_owned()),
            ClientEndReason::DeadlinePassed => Some("the deadline has passed".to_owned()),
            ClientEndReason::LingersAfterResult(limit) => {
                Some(format!("still running {} s after its result", limit.as_secs()))
            }
            ClientEndReason::TimeoutExceeded(exceeded_timeout) => Some(exceeded_timeout.describe()),
        }
    }
}
