//! Attending to a client that works: what it says, and the reasons to end it that do not come from itself.

use super::follow::Follower;
use super::{Progress, RunError, Runner};
use crate::iteration::Ended;
use crate::{keep, start};
use launcher::client::Client;
use launcher::process;
use session::journal::Entry;
use session::{Ending, Exit, RunState, SessionRecord, Status, Verdict};
use std::time::Duration;
use store::{clock, disk, sessions, state_file};

/// How long a client that is asked to end may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// One that lingers after its result, or is interrupted twice, has nothing more to save.
const LITTLE_PATIENCE: Duration = Duration::from_secs(5);

impl Runner<'_> {
    /// Follows the client's output until it has ended, or has to be.
    pub(super) fn follow(&mut self, state: &RunState, mut client: Client) -> Result<Verdict, RunError> {
        let output = self.output(state, "jsonl");
        let mut follower = match &client {
            Client::Adopted(orphan) => {
                Follower::of_adopted(output, &self.version, &process::output_of(orphan.pid))
            }
            Client::Started(..) => Follower::new(output, &self.version),
        };
        let ended = loop {
            let exit = client.ended();
            for progress in follower.read_on() {
                self.watcher.tell(&progress);
            }
            if let Some(exit) = exit {
                break self.checked_end(state, &follower, exit)?;
            }
            if let Some(reason) = self.reason_to_end(state, &mut follower)? {
                break self.end(state, &mut follower, &mut client, reason)?;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        for (model, tokens) in follower.windows() {
            let _ = store::windows::learn(self.project, model, tokens);
        }
        if let Some(words) = follower.denial() {
            self.watcher.tell(&Progress::Note(words));
        }
        // It ended just now, however long it had been silent.
        self.finish(state, &Ended { at: None, ..ended })
    }

    /// Why the client must end, if it must: the person, the run, or its own silence.
    fn reason_to_end(
        &mut self,
        state: &RunState,
        follower: &mut Follower,
    ) -> Result<Option<Reason>, RunError> {
        if self.watcher.interrupts() >= 2 {
            return Ok(Some(Reason::Interrupted));
        }
        if !follower.time_to_look() {
            return Ok(None);
        }
        let now = state_file::load(self.project, Some(&self.run_id))?;
        let now = now.as_ref().unwrap_or(state);
        // What keeps copies must not end the night.
        let _ = keep::todo(self.project, now);
        let record = state.session_id.as_ref().map(|id| sessions::load(self.project, id)).unwrap_or_default();
        if now.status != Status::Cancelled && !follower.is_unguarded(now.iteration_record.hooks_seen) {
            self.watcher.tell(&Progress::Load { state: now, record: &record });
        }
        let idle = now.idle_timeout_seconds.unwrap_or(self.settings.idle_timeout_seconds);
        let lingers = self.may_linger(&record, follower);
        Ok(match () {
            () if now.status == Status::Cancelled => Some(Reason::Cancelled),
            () if follower.is_unguarded(now.iteration_record.hooks_seen) => Some(Reason::Unguarded),
            () if policy::bounds::passed(now, &clock::stamp(clock::now())).is_some() => {
                Some(Reason::OutOfTime)
            }
            () if follower.lingers(lingers) => Some(Reason::Lingers(lingers)),
            () if idle > 0 && follower.is_silent(Duration::from_secs(idle)) => Some(Reason::Silent(idle)),
            () => None,
        })
    }

    /// After its result a client waits only for what it has running in the background.
    fn may_linger(&self, record: &SessionRecord, follower: &Follower) -> Duration {
        let is_stopped = record.ended_by_us.is_some() || follower.was_stopped_by_hook();
        let has_work =
            record.stop.as_ref().is_none_or(|stop| stop.background_tasks > 0 || stop.session_crons > 0);
        let seconds = match has_work && !is_stopped {
            true => self.settings.background_wait_seconds,
            false => self.settings.end_wait_seconds,
        };
        Duration::from_secs(seconds)
    }

    /// Asks the client to end, then ends it, with the tools it would leave working; only ours.
    fn end(
        &self,
        state: &RunState,
        follower: &mut Follower,
        client: &mut Client,
        reason: Reason,
    ) -> Result<Ended, RunError> {
        if let Some(words) = reason.words() {
            self.note(state, Entry::new("client_ended").fact("reason", words))?;
        }
        client.end(reason.patience());
        start::end_left_behind(state);
        follower.read_on();
        let ended = follower.ended(Exit::default());
        Ok(match reason {
            Reason::Cancelled | Reason::Lingers(_) => ended,
            Reason::Interrupted => Ended { ending: Ending::Interrupted, ..ended },
            Reason::OutOfTime => Ended { ending: Ending::OutOfTime, ..ended },
            Reason::Silent(seconds) => {
                Ended { ending: Ending::Silent(format!("no output for {}", minutes(seconds))), ..ended }
            }
            Reason::Unguarded => self.unguarded(state, follower, ended)?,
        })
    }

    /// A client that came and went before we looked was guarded, or the night ends here.
    fn checked_end(&self, state: &RunState, follower: &Follower, exit: Exit) -> Result<Ended, RunError> {
        let now = state_file::load(self.project, Some(&self.run_id))?;
        let hooks_seen = now.as_ref().unwrap_or(state).iteration_record.hooks_seen;
        let ended = follower.ended(exit);
        if follower.has_begun() && !hooks_seen {
            return self.unguarded(state, follower, ended);
        }
        match exit.code.filter(|_| !follower.has_spoken() && !hooks_seen) {
            Some(code) => Ok(Ended { ending: self.never_began(state, code), ..ended }),
            None => Ok(ended),
        }
    }

    fn unguarded(&self, state: &RunState, follower: &Follower, ended: Ended) -> Result<Ended, RunError> {
        let version = follower.version();
        self.note(state, Entry::new("unguarded").fact("client_version", version.clone()))?;
        let words = format!(
            "our hooks did not run in this session (client {version}), so nothing would guard it: look for `disableAllHooks` or `--bare`, for hook programs that cannot be started, or for a client too old for its settings"
        );
        Ok(Ended { ending: Ending::Fatal(words), ..ended })
    }

    /// In a run's first session the next one would fare no better: a wrong option, a broken installation. Later
    /// it may pass (a client that is being updated), and the breaker counts.
    fn never_began(&self, state: &RunState, code: i32) -> Ending {
        let complaint = disk::read_text(&self.output(state, "err")).ok().flatten().unwrap_or_default();
        let complaint = session::text::one_line(&session::text::clip_start(complaint.trim(), 200));
        let said =
            if complaint.is_empty() { "said nothing".to_owned() } else { format!("said: {complaint}") };
        let words = format!("ended with exit code {code} before its session began, and {said}");
        if state.iteration <= 1 {
            Ending::Fatal(format!("the client {words}"))
        } else {
            Ending::Crashed(words)
        }
    }
}

/// Why a client is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// The person pressed Ctrl-C twice.
    Interrupted,
    /// `plimsoll stop`: its next hook ends it, but one that waits for something else has none.
    Cancelled,
    /// Our hooks do not run in it.
    Unguarded,
    /// The run's deadline has come.
    OutOfTime,
    /// It lives on so long after its result.
    Lingers(Duration),
    /// It has said nothing for so many seconds.
    Silent(u64),
}

impl Reason {
    fn patience(self) -> Duration {
        match self {
            Reason::Interrupted | Reason::Unguarded | Reason::Lingers(_) => LITTLE_PATIENCE,
            Reason::Cancelled | Reason::OutOfTime | Reason::Silent(_) => PATIENCE,
        }
    }

    /// For the journal; none where another line tells it.
    fn words(self) -> Option<String> {
        match self {
            Reason::Interrupted | Reason::Unguarded => None,
            Reason::Cancelled => Some("the run was cancelled".to_owned()),
            Reason::OutOfTime => Some("the deadline has come".to_owned()),
            Reason::Lingers(limit) => Some(format!("alive {} s after its result", limit.as_secs())),
            Reason::Silent(seconds) => Some(format!("no output for {}", minutes(seconds))),
        }
    }
}

fn minutes(seconds: u64) -> String {
    if seconds.is_multiple_of(60) { format!("{} min", seconds / 60) } else { format!("{seconds} s") }
}
