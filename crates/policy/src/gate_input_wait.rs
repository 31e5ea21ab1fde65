//! Decides how long `plimsoll gate` reads a pipe that stays open. In `claude -p … | plimsoll gate` the client's
//! result comes only when its session ends, which may take hours; a pipe that was merely inherited never closes.

use plimsoll_domain::state::IterationPhase;
use plimsoll_domain::{RunState, SessionRecord};
use std::time::Duration;

/// The stage of the session whose result is expected on the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStage {
    /// There is no session to wait for.
    NoSession,
    /// A session is planned and has not started.
    Planned,
    /// The session has started and not ended.
    Running,
    /// The session's SessionEnd hook has run.
    Ended,
}

/// The reason to stop reading a pipe that is still open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReadingReason {
    /// Nothing more was expected, so nothing is printed.
    NothingExpected,
    /// No session started in time.
    SessionNeverStarted,
    /// The session has been inactive for too long.
    SessionInactive,
}

/// Elapsed times, compared with the timeouts in [`stop_reading_reason_if_timed_out`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ElapsedTimes {
    /// Since the start of reading.
    pub since_start: Duration,
    /// Since the last input, or since the start of reading.
    pub since_input: Duration,
    /// Since the end of the session was first observed, or since later input.
    pub since_end: Duration,
    /// Since the last change of the session's record, its transcript or the pipe, or since the start of reading.
    pub since_activity: Duration,
}

/// Timeout for the first byte of a writer that starts together with `plimsoll gate`.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_millis(300);
/// Timeout for the rest of the output, once a writer has begun to write or its session has ended. The client prints
/// its result before its SessionEnd hooks run, or as soon as they have.
const REMAINING_OUTPUT_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for the start of a session. Before its SessionStart hook runs, a client reads its settings, starts MCP
/// servers (30 s each by default) and may update plugins, and the machine may be loaded.
pub const SESSION_START_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// Timeout for a session without activity. It is longer than the longest silence that `plimsoll run` allows by
/// default (2 h for a tool). A client that was killed runs no SessionEnd hook, so only this timeout ends the wait if
/// another process keeps the pipe open.
pub const INACTIVITY_TIMEOUT: Duration = Duration::from_secs(3 * 60 * 60);

/// Returns the stage of the session whose result is expected. A session whose end was already recorded in the run counts
/// as none.
pub fn stage_of_session_with_awaited_result(run: Option<&RunState>, record: &SessionRecord) -> SessionStage {
    let Some(run) = run.filter(|run| !run.lifecycle.has_ended() && !run.run_id.is_empty()) else {
        return SessionStage::NoSession;
    };
    match run.iteration_record.phase {
        IterationPhase::Planned => SessionStage::Planned,
        IterationPhase::Spawned if record.end.ended_at.is_some() => SessionStage::Ended,
        IterationPhase::Spawned => SessionStage::Running,
        IterationPhase::Ended | IterationPhase::Judged => SessionStage::NoSession,
    }
}

/// Returns the reason to stop reading a pipe that is still open once the timeout of the stage has elapsed; `None` to
/// continue reading.
pub fn stop_reading_reason_if_timed_out(
    stage: SessionStage,
    has_received_bytes: bool,
    elapsed: ElapsedTimes,
) -> Option<StopReadingReason> {
    let stop_if = |is_timed_out: bool, reason| is_timed_out.then_some(reason);
    match stage {
        SessionStage::NoSession if has_received_bytes => {
            stop_if(elapsed.since_input >= REMAINING_OUTPUT_TIMEOUT, StopReadingReason::NothingExpected)
        }
        SessionStage::NoSession => {
            stop_if(elapsed.since_input >= FIRST_BYTE_TIMEOUT, StopReadingReason::NothingExpected)
        }
        SessionStage::Planned => {
            stop_if(elapsed.since_start >= SESSION_START_TIMEOUT, StopReadingReason::SessionNeverStarted)
        }
        SessionStage::Running => {
            stop_if(elapsed.since_activity >= INACTIVITY_TIMEOUT, StopReadingReason::SessionInactive)
        }
        SessionStage::Ended => {
            stop_if(elapsed.since_end >= REMAINING_OUTPUT_TIMEOUT, StopReadingReason::NothingExpected)
        }
    }
}

impl StopReadingReason {
    /// Returns the message for standard error, or `None` if there is nothing to report.
    pub fn stderr_message(self) -> Option<&'static str> {
        match self {
            StopReadingReason::NothingExpected => None,
            StopReadingReason::SessionNeverStarted => Some(
                "no session began within 5 minutes, and standard input is still open: judged without a result; start Claude Code with PLIMSOLL_RUN_ID in its environment, or give `plimsoll gate` < /dev/null",
            ),
            StopReadingReason::SessionInactive => Some(
                "the session has written nothing for 3 hours, and standard input is still open: judged without a result",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::RunStatus;
    use plimsoll_domain::state::Lifecycle;

    #[test]
    fn only_a_planned_or_running_session_of_an_open_run_is_waited_for() {
        let run = |phase, status| {
            let mut run = RunState {
                run_id: "r1".into(),
                lifecycle: Lifecycle::with_status(status),
                ..RunState::default()
            };
            run.iteration_record.phase = phase;
            run
        };
        let mut ended = SessionRecord::default();
        ended.end.ended_at = Some("2026-01-07T05:00:00Z".into());
        let running = SessionRecord::default();
        for (phase, status, record, expected) in [
            (IterationPhase::Planned, RunStatus::Running, &running, SessionStage::Planned),
            (IterationPhase::Spawned, RunStatus::Running, &running, SessionStage::Running),
            (IterationPhase::Spawned, RunStatus::Running, &ended, SessionStage::Ended),
            (IterationPhase::Spawned, RunStatus::Canceled, &running, SessionStage::NoSession),
            (IterationPhase::Ended, RunStatus::Running, &running, SessionStage::NoSession),
            (IterationPhase::Judged, RunStatus::Paused, &running, SessionStage::NoSession),
            (IterationPhase::Planned, RunStatus::Completed, &running, SessionStage::NoSession),
        ] {
            assert_eq!(
                stage_of_session_with_awaited_result(Some(&run(phase, status)), record),
                expected,
                "{phase:?} {status:?}"
            );
        }
        assert_eq!(stage_of_session_with_awaited_result(None, &running), SessionStage::NoSession);
        let without_run_id =
            RunState { run_id: String::new().into(), ..run(IterationPhase::Spawned, RunStatus::Running) };
        assert_eq!(
            stage_of_session_with_awaited_result(Some(&without_run_id), &running),
            SessionStage::NoSession
        );
    }

    #[test]
    fn the_timeout_of_an_open_pipe_depends_on_the_stage_of_the_session() {
        let all_elapsed = |seconds| {
            let time = Duration::from_secs(seconds);
            ElapsedTimes { since_start: time, since_input: time, since_end: time, since_activity: time }
        };
        for (stage, has_bytes, seconds, expected) in [
            (SessionStage::NoSession, false, 0, None),
            (SessionStage::NoSession, false, 1, Some(StopReadingReason::NothingExpected)),
            (SessionStage::NoSession, true, 4, None),
            (SessionStage::NoSession, true, 5, Some(StopReadingReason::NothingExpected)),
            (SessionStage::Planned, false, 299, None),
            (SessionStage::Planned, false, 300, Some(StopReadingReason::SessionNeverStarted)),
            (SessionStage::Running, false, 10_799, None),
            (SessionStage::Running, false, 10_800, Some(StopReadingReason::SessionInactive)),
            (SessionStage::Ended, false, 4, None),
            (SessionStage::Ended, true, 5, Some(StopReadingReason::NothingExpected)),
        ] {
            assert_eq!(
                stop_reading_reason_if_timed_out(stage, has_bytes, all_elapsed(seconds)),
                expected,
                "{stage:?} {has_bytes} {seconds}"
            );
        }
        // A running session is waited for, however long it takes.
        let long_running = ElapsedTimes {
            since_start: Duration::from_secs(100_000),
            since_input: Duration::from_secs(100_000),
            ..all_elapsed(60)
        };
        assert_eq!(stop_reading_reason_if_timed_out(SessionStage::Running, true, long_running), None);
    }
}
