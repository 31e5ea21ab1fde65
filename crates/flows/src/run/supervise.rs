//! Attending to a client that works: what it says, and the reasons to end it that do not come from itself.

use super::{Progress, RunError, Runner};
use crate::run::observer::Interrupt;
use crate::run::stream_reader::StreamReader;
use crate::run::{backup, orphans};
use crate::session_result::{SessionResult, ends_interrupted};
use plimsoll_domain::fatal::{Fatal, FatalKind};
use plimsoll_domain::journal::JournalEvent;
use plimsoll_domain::state::ApiTrouble;
use plimsoll_domain::{Ending, Exit, RunState, SessionRecord, Status, Verdict};
use plimsoll_launcher::client::Client;
use plimsoll_launcher::process;
use plimsoll_policy::silence::{Silence, Timeouts};
use plimsoll_store::{clock, disk};
use std::path::Path;
use std::time::Duration;

/// How long a client that is asked to end may take.
const LONG_GRACE_PERIOD: Duration = Duration::from_secs(10);
/// One that lingers after its result, or is interrupted twice, has nothing more to save.
pub(super) const GRACE_PERIOD: Duration = Duration::from_secs(5);

impl Runner<'_> {
    /// Follows the client's output until it has ended, or has to be.
    pub(super) fn follow(&mut self, state: &RunState, mut client: Client) -> Result<Verdict, RunError> {
        let output = self.output(state, "jsonl");
        let mut follower = match &client {
            Client::Adopted(orphan) => {
                StreamReader::of_adopted(output, &self.version, process::output_of(orphan.pid).as_deref())
            }
            Client::Started(..) => StreamReader::new(output, &self.version),
        };
        let ended = loop {
            // Asked before the output is read: what the client wrote up to its end is then read, too.
            let exit = client.ended();
            for progress in follower.read_on() {
                self.watcher.tell(&progress);
            }
            if let Some(exit) = exit {
                break self.checked_end(state, &mut follower, exit)?;
            }
            if let Some(reason) = self.reason_to_end(state, &mut follower)? {
                break self.end(state, &mut follower, &mut client, reason)?;
            }
            // Twenty times a second: `Awake` takes a much longer gap for a rest of the whole computer.
            std::thread::sleep(Duration::from_millis(50));
        };
        self.watchdog.rest();
        for (model, tokens) in follower.windows() {
            let _ = plimsoll_store::windows::learn(self.context.project, model, tokens);
        }
        if !ended.denied_tools.is_empty() {
            self.watcher.tell(&Progress::Denied { state, tools: &ended.denied_tools });
        }
        // It ended just now, however long it had been silent.
        self.finish(state, &SessionResult { at: None, ..ended })
    }

    /// Why the client must end, if it must: the user, the run, or its own silence.
    fn reason_to_end(
        &mut self,
        state: &RunState,
        follower: &mut StreamReader,
    ) -> Result<Option<Reason>, RunError> {
        if self.watcher.interrupts().has_asked(Interrupt::Twice) {
            return Ok(Some(Reason::Interrupted));
        }
        if !follower.time_to_look() {
            return Ok(None);
        }
        let now = self.context.load_state()?;
        // The state may be gone for a moment (an agent's `git clean`): the client is followed with what was known.
        let now = now.as_ref().unwrap_or(state);
        let record = self.context.session_record(state);
        follower.sees_hooks(self.have_hooks_spoken(now, &record));
        // What keeps copies must not end the run.
        let _ = backup::todo(self.context.project, now);
        self.note_for_others(now, follower)?;
        if now.lifecycle.status() != Status::Cancelled && !follower.is_unguarded() {
            let figures = self.figures.read_sessions(self.context.project, now);
            self.watcher.tell(&Progress::Load { state: now, record: &record, figures: &figures });
        }
        let timeouts = Timeouts {
            idle: now.options.idle_timeout_seconds.unwrap_or(self.context.settings.idle_timeout_seconds),
            tool: now.options.tool_timeout_seconds.unwrap_or(self.context.settings.tool_timeout_seconds),
        };
        let lingers = self.may_linger(&record, follower);
        Ok(match () {
            () if now.lifecycle.status() == Status::Cancelled => Some(Reason::Cancelled),
            () if follower.is_unguarded() => Some(Reason::Unguarded),
            () if plimsoll_policy::bounds::passed(now, &clock::stamp(clock::now())).is_some() => {
                Some(Reason::OutOfTime)
            }
            () if follower.lingers(lingers) => Some(Reason::Lingers(lingers)),
            () => follower.too_silent(timeouts).map(Reason::Silent),
        })
    }

    /// What `plimsoll status` cannot see by itself: that the client retries, and that Ctrl-C was pressed once. Written
    /// only when it changes.
    fn note_for_others(&mut self, now: &RunState, follower: &StreamReader) -> Result<(), RunError> {
        let known = &now.iteration_record;
        let stops_after = self.watcher.interrupts().has_asked(Interrupt::Once);
        let trouble = follower.api_trouble().map(|trouble| ApiTrouble {
            // A `plimsoll run` before this one has seen it begin.
            since: known.api_trouble.as_ref().map_or(&trouble.since, |known| &known.since).clone(),
            ..trouble.clone()
        });
        if known.api_trouble == trouble && known.stops_after == stops_after {
            return Ok(());
        }
        if stops_after && !known.stops_after {
            self.watcher.tell(&Progress::StopRequested);
        }
        self.context.update_lazily(|state| {
            state.iteration_record.api_trouble = trouble;
            state.iteration_record.stops_after = stops_after;
        })?;
        Ok(())
    }

    /// After its result a client waits only for what it has running in the background.
    fn may_linger(&self, record: &SessionRecord, follower: &StreamReader) -> Duration {
        // With a background task or a wakeup pending, `-p` lives on after a stop and takes another turn (2.1.329).
        let is_stopped = record.end.ended_by_us.is_some() || follower.was_stopped_by_hook();
        let has_work =
            record.end.stop.as_ref().is_none_or(|stop| stop.background_tasks > 0 || stop.session_crons > 0);
        let seconds = if has_work && !is_stopped {
            self.context.settings.background_wait_seconds
        } else {
            self.context.settings.end_wait_seconds
        };
        Duration::from_secs(seconds)
    }

    /// Asks the client to end, then ends it, with the tools it would leave working; only ours.
    fn end(
        &self,
        state: &RunState,
        follower: &mut StreamReader,
        client: &mut Client,
        reason: Reason,
    ) -> Result<SessionResult, RunError> {
        if let Some(words) = reason.words() {
            self.context.note(state, JournalEvent::ClientEnded { reason: words })?;
        }
        client.end(reason.grace_period());
        orphans::end_left_behind(state);
        follower.read_on();
        // Without the exit status: it reports our own signal (on 2.1.329 SIGINT ends `-p` with 0, SIGTERM with 143).
        let ended = follower.ended(Exit::default());
        Ok(match reason {
            // Its result came before it lingered, and stands.
            Reason::Lingers(_) => ended,
            Reason::Cancelled => SessionResult { ending: Ending::Cancelled, ..ended },
            Reason::Interrupted => SessionResult { ending: Ending::Interrupted, ..ended },
            Reason::OutOfTime => SessionResult { ending: Ending::OutOfTime, ..ended },
            Reason::Silent(silence) => SessionResult { ending: Ending::Silent(silence.words()), ..ended },
            Reason::Unguarded => self.unguarded(state, follower, ended)?,
        })
    }

    /// A client that came and went before we looked was guarded, or the night ends here.
    fn checked_end(
        &self,
        state: &RunState,
        follower: &mut StreamReader,
        exit: Exit,
    ) -> Result<SessionResult, RunError> {
        let now = self.context.load_state()?;
        let now = now.as_ref().unwrap_or(state);
        let record = self.context.session_record(state);
        let hooks_seen = follower.sees_hooks(self.have_hooks_spoken(now, &record));
        let mut ended = follower.ended(exit);
        // A client that is interrupted in a tool can exit before it has written its result (2.1.329, on a busy computer). Its
        // transcript is complete by then.
        let transcript = record.start.transcript_path.as_deref().map(Path::new);
        if matches!(ended.ending, Ending::Crashed(_))
            && exit.code == Some(0)
            && transcript.is_some_and(ends_interrupted)
        {
            ended.ending = Ending::Interrupted;
        }
        if follower.has_begun() && !hooks_seen {
            return self.unguarded(state, follower, ended);
        }
        match exit.code {
            Some(code) if !follower.has_spoken() && !hooks_seen => {
                Ok(SessionResult { ending: self.never_began(state, code), ..ended })
            }
            _ => Ok(ended),
        }
    }

    /// Whether our SessionStart hook has spoken. An agent may have replaced the state before we have looked once: the session's
    /// record says it, too.
    fn have_hooks_spoken(&self, now: &RunState, record: &SessionRecord) -> bool {
        let start = &record.start;
        let is_recorded = start.started_at.is_some() && start.run_id.as_ref() == Some(self.context.run_id);
        now.iteration_record.hooks_seen || is_recorded
    }

    fn unguarded(
        &self,
        state: &RunState,
        follower: &StreamReader,
        ended: SessionResult,
    ) -> Result<SessionResult, RunError> {
        let version = follower.version();
        self.context.note(state, JournalEvent::Unguarded { client_version: version.clone() })?;
        let words = format!(
            " (client {version}), so nothing would guard it: check for `disableAllHooks` or `--bare`, for hook programs that cannot be started, or for a client too old for its settings"
        );
        Ok(SessionResult { ending: Ending::Fatal(Fatal::new(FatalKind::Hooks, &words)), ..ended })
    }

    /// In a run's first session the next one would fare no better: a wrong option, a broken installation. Later
    /// it may pass (a client that is being updated), and the breaker counts.
    fn never_began(&self, state: &RunState, code: i32) -> Ending {
        let complaint = disk::read_text(&self.output(state, "err")).ok().flatten().unwrap_or_default();
        let complaint =
            plimsoll_domain::text::one_line(&plimsoll_domain::text::clip_start(complaint.trim(), 200));
        let said =
            if complaint.is_empty() { "said nothing".to_owned() } else { format!("said: {complaint}") };
        let words = format!("ended with exit code {code} before its session began, and {said}");
        if state.iteration <= 1 {
            Ending::Fatal(Fatal::from(format!("the client {words}")))
        } else {
            Ending::Crashed(words)
        }
    }
}

/// Why a client is ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reason {
    /// The person pressed Ctrl-C twice.
    Interrupted,
    /// `plimsoll stop`: its next hook ends it, but one that waits for something else has none.
    Cancelled,
    /// Our hooks do not run in it.
    Unguarded,
    /// The run's deadline has come.
    OutOfTime,
    /// How long it lives on after its result.
    Lingers(Duration),
    /// It has said nothing for too long.
    Silent(Silence),
}

impl Reason {
    fn grace_period(&self) -> Duration {
        match self {
            Reason::Interrupted | Reason::Unguarded | Reason::Lingers(_) => GRACE_PERIOD,
            Reason::Cancelled | Reason::OutOfTime | Reason::Silent(_) => LONG_GRACE_PERIOD,
        }
    }

    /// For the journal; none if another line tells it.
    fn words(&self) -> Option<String> {
        match self {
            Reason::Interrupted | Reason::Unguarded => None,
            Reason::Cancelled => Some("the run was cancelled".to_owned()),
            Reason::OutOfTime => Some("the deadline has passed".to_owned()),
            Reason::Lingers(limit) => Some(format!("alive {} s after its result", limit.as_secs())),
            Reason::Silent(silence) => Some(silence.words()),
        }
    }
}
