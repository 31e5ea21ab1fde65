//! How long `plimsoll gate` reads a pipe that stays open. In `claude -p … | plimsoll gate` the client's result comes
//! only when its session ends, which may take hours; a pipe that was merely inherited never ends.

use plimsoll_domain::state::Phase;
use plimsoll_domain::{RunState, SessionRecord};
use std::time::Duration;

/// What the session is doing whose result may come through the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// There is no session to wait for.
    None,
    /// It is planned and has not begun.
    Planned,
    /// It has begun and not ended.
    AtWork,
    /// Its SessionEnd hook has run.
    Ended,
}

/// Why the pipe is not read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenUp {
    /// Nothing was expected any more: no word about it.
    Quietly,
    /// No session began in time.
    NeverBegan,
    /// The session has shown no sign of life for too long.
    NoSign,
}

/// How much time has passed, for the rules that need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Elapsed {
    /// Since the reading began.
    pub reading: Duration,
    /// Since the pipe brought something, or since the reading began.
    pub quiet: Duration,
    /// Since the session was first seen to have ended, or since the pipe brought something after that.
    pub ended: Duration,
    /// Since the session's record, its transcript or the pipe changed, or since the reading began.
    pub sign: Duration,
}

/// A writer that starts together with us is given this long for its first byte.
const FIRST_BYTE: Duration = Duration::from_millis(300);
/// One that has begun to write, or whose session has ended, is given this long for the rest. The client prints its
/// result before its SessionEnd hooks run, or as soon as they have.
const REST: Duration = Duration::from_secs(5);
/// A client reads its settings, starts MCP servers (30 s each by default) and perhaps updates plugins before its
/// SessionStart hook runs, and the machine may be loaded.
pub const TO_BEGIN: Duration = Duration::from_secs(5 * 60);
/// Longer than the longest silence that `plimsoll run` allows by default (a tool for 2 h). A client that was killed
/// runs no SessionEnd hook; only this ends the wait if another process keeps the pipe open.
pub const WITHOUT_SIGN: Duration = Duration::from_secs(3 * 60 * 60);

/// What there is to wait for.
pub fn stage(run: Option<&RunState>, record: &SessionRecord) -> Stage {
    let Some(run) = run.filter(|run| !run.lifecycle.is_over() && !run.run_id.is_empty()) else {
        return Stage::None;
    };
    match run.iteration_record.phase {
        Phase::Planned => Stage::Planned,
        Phase::Spawned if record.end.ended_at.is_some() => Stage::Ended,
        Phase::Spawned => Stage::AtWork,
        Phase::Ended | Phase::Judged => Stage::None,
    }
}

/// Whether to stop reading a pipe that is still open.
pub fn gives_up(stage: Stage, has_bytes: bool, elapsed: Elapsed) -> Option<GivenUp> {
    let rule = |is_over: bool, why| is_over.then_some(why);
    match stage {
        Stage::None if has_bytes => rule(elapsed.quiet >= REST, GivenUp::Quietly),
        Stage::None => rule(elapsed.quiet >= FIRST_BYTE, GivenUp::Quietly),
        Stage::Planned => rule(elapsed.reading >= TO_BEGIN, GivenUp::NeverBegan),
        Stage::AtWork => rule(elapsed.sign >= WITHOUT_SIGN, GivenUp::NoSign),
        Stage::Ended => rule(elapsed.ended >= REST, GivenUp::Quietly),
    }
}

impl GivenUp {
    /// For standard error; none if there is nothing to report.
    pub fn words(self) -> Option<&'static str> {
        match self {
            GivenUp::Quietly => None,
            GivenUp::NeverBegan => Some(
                "no session began within 5 minutes, and standard input is still open: judged without a result; start the client with PLIMSOLL_RUN_ID in its environment, or give `plimsoll gate` < /dev/null",
            ),
            GivenUp::NoSign => Some(
                "the session has written nothing for 3 hours, and standard input is still open: judged without a result",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::Status;
    use plimsoll_domain::state::Lifecycle;

    #[test]
    fn a_session_is_waited_for_only_in_an_open_run_while_it_is_planned_or_at_work() {
        let run = |phase, status| {
            let mut run =
                RunState { run_id: "r1".into(), lifecycle: Lifecycle::of(status), ..RunState::default() };
            run.iteration_record.phase = phase;
            run
        };
        let mut ended = SessionRecord::default();
        ended.end.ended_at = Some("2026-01-07T05:00:00Z".into());
        let alive = SessionRecord::default();
        for (phase, status, record, expected) in [
            (Phase::Planned, Status::Running, &alive, Stage::Planned),
            (Phase::Spawned, Status::Running, &alive, Stage::AtWork),
            (Phase::Spawned, Status::Running, &ended, Stage::Ended),
            (Phase::Spawned, Status::Cancelled, &alive, Stage::None),
            (Phase::Ended, Status::Running, &alive, Stage::None),
            (Phase::Judged, Status::Paused, &alive, Stage::None),
            (Phase::Planned, Status::Completed, &alive, Stage::None),
        ] {
            assert_eq!(stage(Some(&run(phase, status)), record), expected, "{phase:?} {status:?}");
        }
        assert_eq!(stage(None, &alive), Stage::None);
        let foreign = RunState { run_id: String::new().into(), ..run(Phase::Spawned, Status::Running) };
        assert_eq!(stage(Some(&foreign), &alive), Stage::None);
    }

    #[test]
    fn how_long_an_open_pipe_is_read_follows_from_what_the_session_does() {
        let after = |seconds| {
            let time = Duration::from_secs(seconds);
            Elapsed { reading: time, quiet: time, ended: time, sign: time }
        };
        for (stage, has_bytes, seconds, expected) in [
            (Stage::None, false, 0, None),
            (Stage::None, false, 1, Some(GivenUp::Quietly)),
            (Stage::None, true, 4, None),
            (Stage::None, true, 5, Some(GivenUp::Quietly)),
            (Stage::Planned, false, 299, None),
            (Stage::Planned, false, 300, Some(GivenUp::NeverBegan)),
            (Stage::AtWork, false, 10_799, None),
            (Stage::AtWork, false, 10_800, Some(GivenUp::NoSign)),
            (Stage::Ended, false, 4, None),
            (Stage::Ended, true, 5, Some(GivenUp::Quietly)),
        ] {
            assert_eq!(
                gives_up(stage, has_bytes, after(seconds)),
                expected,
                "{stage:?} {has_bytes} {seconds}"
            );
        }
        // A session that works is waited for, however long it takes.
        let long = Elapsed {
            reading: Duration::from_secs(100_000),
            quiet: Duration::from_secs(100_000),
            ..after(60)
        };
        assert_eq!(gives_up(Stage::AtWork, true, long), None);
    }
}
