//! One child from its start to its end: what it is told, what it says, and its deadline.

use crate::{MOST_OUTPUT, Outcome, process};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How a child is run.
pub(crate) struct Terms<'a> {
    /// What it finds on its standard input; none: nothing at all.
    pub(crate) input: Option<Vec<u8>>,
    /// When its group is ended.
    pub(crate) deadline: Duration,
    /// How long its group may tidy up once it has been asked to end.
    pub(crate) grace_period: Duration,
    /// More output of one stream than this is read and thrown away.
    pub(crate) most_output: usize,
    /// Asked a few times a second whether anybody still waits for it.
    pub(crate) give_up: &'a dyn Fn() -> bool,
}

impl Terms<'_> {
    /// Nothing on its input, and this deadline.
    pub(crate) fn within(deadline: Duration) -> Terms<'static> {
        Terms {
            input: None,
            deadline,
            grace_period: Duration::from_millis(500),
            most_output: MOST_OUTPUT,
            give_up: &|| false,
        }
    }
}

// Where its end cannot be waited for. Git answers in milliseconds: a longer nap would be most of the wait.
const LOOKED_EVERY: Duration = Duration::from_millis(2);
const ASKED_EVERY: Duration = Duration::from_millis(250);
/// A grandchild may keep the pipe open for ever: what has come so far must be enough.
const OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);

/// Runs a command in a process group of its own and collects what it prints.
pub(crate) fn run(mut command: Command, terms: Terms<'_>) -> Outcome {
    let stdin = if terms.input.is_some() { Stdio::piped() } else { Stdio::null() };
    let child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return Outcome { trouble: Some(error.to_string()), ..Outcome::default() },
    };
    // Both streams are read from the start: a child that has filled one pipe (64 KiB) would wait for its reader.
    let stdout = Collected::from(child.stdout.take(), terms.most_output);
    let stderr = Collected::from(child.stderr.take(), terms.most_output);
    feed(&mut child, terms.input);
    let started = Instant::now();
    let mut outcome = wait(&mut child, terms.deadline, terms.grace_period, terms.give_up);
    // Who waits for both waits once, and not much longer than until the deadline.
    let left = terms.deadline.saturating_sub(started.elapsed()).max(terms.grace_period);
    let until = Instant::now() + left.min(OUTPUT_TIMEOUT);
    outcome.stdout = stdout.so_far(until);
    outcome.stderr = stderr.so_far(until);
    outcome
}

/// Writes from a thread of its own: a child that prints before it reads must not wait for us. One that does not
/// read at all is free not to.
fn feed(child: &mut Child, input: Option<Vec<u8>>) {
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        std::thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
    }
}

fn wait(
    child: &mut Child,
    deadline: Duration,
    grace_period: Duration,
    give_up: &dyn Fn() -> bool,
) -> Outcome {
    let started = Instant::now();
    let mut asked = started;
    let mut outcome = Outcome::default();
    let end = End::of(child);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => {
                outcome.code = status.code();
                return outcome;
            }
            Ok(None) if started.elapsed() < deadline && !outcome.given_up => {
                end.wait(deadline.saturating_sub(started.elapsed()).min(ASKED_EVERY));
                if asked.elapsed() >= ASKED_EVERY {
                    asked = Instant::now();
                    outcome.given_up = give_up();
                }
            }
            _ => {
                outcome.timed_out = !outcome.given_up;
                process::end_child(child, grace_period);
                return outcome;
            }
        }
    }
}

/// The end of a child, waited for without looking again and again; none where the system has no such thing.
struct End(Option<OwnedFd>);

impl End {
    fn of(child: &Child) -> End {
        End(plimsoll_system::end_of_child(Pid::from_child(child)))
    }

    /// Returns when the child has ended, or after this long.
    fn wait(&self, most: Duration) {
        let timeout = Timespec::try_from(most).ok();
        let waited = match &self.0 {
            Some(end) => poll(&mut [PollFd::new(end, PollFlags::IN)], timeout.as_ref()).is_ok(),
            None => false,
        };
        // Also where a signal came first: the child is looked at again.
        if !waited {
            std::thread::sleep(LOOKED_EVERY.min(most));
        }
    }
}

/// The output of a stream so far; the reader puts it here, piece by piece.
struct Collected {
    /// None once it has been taken: what comes later is thrown away.
    bytes: Arc<Mutex<Option<Vec<u8>>>>,
    at_end: Receiver<()>,
}

impl Collected {
    fn from(stream: Option<impl Read + Send + 'static>, most: usize) -> Collected {
        let (sender, at_end) = mpsc::channel();
        let bytes = Arc::new(Mutex::new(Some(Vec::new())));
        let shared = Arc::clone(&bytes);
        std::thread::spawn(move || {
            if let Some(stream) = stream {
                read_into(&shared, stream, most);
            }
            let _ = sender.send(());
        });
        Collected { bytes, at_end }
    }

    /// Everything if the stream ends in time, else what has come so far.
    fn so_far(self, until: Instant) -> Vec<u8> {
        let _ = self.at_end.recv_timeout(until.saturating_duration_since(Instant::now()));
        locked(&self.bytes).take().unwrap_or_default()
    }
}

fn read_into(shared: &Mutex<Option<Vec<u8>>>, mut stream: impl Read, most: usize) {
    let mut piece = vec![0; 64 * 1024];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return,
            Ok(count) => {
                if let Some(bytes) = locked(shared).as_mut() {
                    let room = most.saturating_sub(bytes.len());
                    bytes.extend_from_slice(&piece[..count.min(room)]);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
