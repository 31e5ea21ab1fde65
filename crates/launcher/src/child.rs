//! One child from its start to its end: what it is told, what it says, and its deadline.

use crate::{MOST_OUTPUT, Outcome, process};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Pid;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
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
pub(crate) fn run(command: Command, terms: Terms<'_>) -> Outcome {
    match start(command, terms) {
        Ok(running) => running.finish(),
        Err(outcome) => outcome,
    }
}

/// Starts a command in a process group of its own: it works while we do something else, as long as a pipe (64 KiB) takes what
/// it prints.
pub(crate) fn start(mut command: Command, terms: Terms<'_>) -> Result<Running<'_>, Outcome> {
    let stdin = if terms.input.is_some() { Stdio::piped() } else { Stdio::null() };
    let child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn();
    let mut child =
        child.map_err(|error| Outcome { trouble: Some(error.to_string()), ..Outcome::default() })?;
    let stdout = Stream::of(child.stdout.take().map(OwnedFd::from), terms.most_output);
    let stderr = Stream::of(child.stderr.take().map(OwnedFd::from), terms.most_output);
    feed(&mut child, terms.input);
    Ok(Running {
        end: plimsoll_system::end_of_child(Pid::from_child(&child)),
        child,
        streams: [stdout, stderr],
        started: Instant::now(),
        deadline: terms.deadline,
        grace_period: terms.grace_period,
        give_up: terms.give_up,
    })
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

/// A child at work. Its streams and its end are waited for together, by one call and without a thread.
pub(crate) struct Running<'a> {
    child: Child,
    /// The end of the child, where the system tells it without being asked again and again.
    end: Option<OwnedFd>,
    streams: [Stream; 2],
    started: Instant,
    deadline: Duration,
    grace_period: Duration,
    give_up: &'a dyn Fn() -> bool,
}

impl Running<'_> {
    /// Waits for its end, or for its deadline.
    pub(crate) fn finish(mut self) -> Outcome {
        let mut outcome = Outcome::default();
        let mut asked = Instant::now();
        loop {
            let left = self.deadline.saturating_sub(self.started.elapsed());
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    outcome.code = status.code();
                    break;
                }
                Ok(None) if !left.is_zero() && !outcome.given_up => {
                    self.listen(left.min(ASKED_EVERY));
                    if asked.elapsed() >= ASKED_EVERY {
                        asked = Instant::now();
                        outcome.given_up = (self.give_up)();
                    }
                }
                _ => {
                    outcome.timed_out = !outcome.given_up;
                    self.put_an_end_to_it();
                    break;
                }
            }
        }
        self.hear_the_rest();
        [outcome.stdout, outcome.stderr] = self.streams.map(Stream::into_bytes);
        outcome
    }

    /// Takes what comes, until the child has ended or this time is over.
    fn listen(&mut self, most: Duration) {
        // Where its end cannot be waited for it is looked at again soon.
        let most = if self.end.is_some() { most } else { most.min(LOOKED_EVERY) };
        listen(&mut self.streams, self.end.as_ref(), most);
    }

    /// It may print while it tidies up: then it must not wait for us.
    fn put_an_end_to_it(&mut self) {
        let Running { child, streams, grace_period, .. } = self;
        std::thread::scope(|scope| {
            let ending = scope.spawn(|| process::end_child(child, *grace_period));
            while !ending.is_finished() {
                listen(streams, None, LOOKED_EVERY);
            }
        });
    }

    /// A grandchild may keep the pipe open forever, so only what comes soon is read. Both streams share one wait, which ends not much
    /// later than the deadline.
    fn hear_the_rest(&mut self) {
        let left = self.deadline.saturating_sub(self.started.elapsed()).max(self.grace_period);
        let until = Instant::now() + left.min(OUTPUT_TIMEOUT);
        while self.streams.iter().any(Stream::is_open) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            listen(&mut self.streams, None, left);
        }
    }
}

/// Takes what comes from the streams, and returns after something came, at that end, or after this long.
fn listen(streams: &mut [Stream; 2], end: Option<&OwnedFd>, most: Duration) {
    let open = streams.iter().filter_map(|stream| stream.pipe.as_ref());
    let mut awaited: Vec<PollFd<'_>> = open.chain(end).map(|from| PollFd::new(from, PollFlags::IN)).collect();
    let timeout = Timespec::try_from(most).ok();
    // Also where a signal came first: the caller looks again.
    if poll(&mut awaited, timeout.as_ref()).is_err() {
        return;
    }
    let mut came = awaited.iter().map(|one| !one.revents().is_empty()).collect::<Vec<bool>>().into_iter();
    for stream in streams.iter_mut().filter(|stream| stream.is_open()) {
        if came.next().unwrap_or_default() {
            stream.read_on();
        }
    }
}

/// What a child prints.
struct Stream {
    /// None at its end.
    pipe: Option<OwnedFd>,
    bytes: Vec<u8>,
    most: usize,
}

impl Stream {
    fn of(pipe: Option<OwnedFd>, most: usize) -> Stream {
        Stream { pipe, bytes: Vec::new(), most }
    }

    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Reads once: something is there, or it is the end.
    fn read_on(&mut self) {
        const PIECE: usize = 4 * 1024;
        let Some(pipe) = &self.pipe else { return };
        self.bytes.reserve(PIECE);
        match rustix::io::read(pipe, spare_capacity(&mut self.bytes)) {
            Ok(0) => self.pipe = None,
            Ok(_) | Err(Errno::INTR) => self.bytes.truncate(self.most),
            Err(_) => self.pipe = None,
        }
    }

    /// What has come. Who prints later, in the child's place, is not told that nobody listens.
    fn into_bytes(self) -> Vec<u8> {
        if let Some(pipe) = self.pipe {
            std::thread::spawn(move || {
                let mut unheard = Vec::with_capacity(4 * 1024);
                while matches!(
                    rustix::io::read(&pipe, spare_capacity(&mut unheard)),
                    Ok(1..) | Err(Errno::INTR)
                ) {
                    unheard.clear();
                }
            });
        }
        self.bytes
    }
}
