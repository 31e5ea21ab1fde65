//! The run of one child process: its input, its output, and its timeout.

use crate::{CommandOutcome, MAX_OUTPUT_BYTES, process};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Pid;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The options for running a child process.
pub(crate) struct ChildOptions<'a> {
    /// The standard input; nothing if `None`.
    pub(crate) input: Option<Vec<u8>>,
    /// The time after which its process group is ended.
    pub(crate) timeout: Duration,
    /// How long its process group may clean up after it has been asked to end.
    pub(crate) grace_period: Duration,
    /// The most output that is kept of each stream; the rest is read and discarded.
    pub(crate) max_output_bytes: usize,
    /// Called a few times a second; the child is ended once this returns true.
    pub(crate) should_cancel: &'a dyn Fn() -> bool,
}

impl ChildOptions<'_> {
    /// Returns options with this timeout and no standard input.
    pub(crate) fn with_timeout(timeout: Duration) -> ChildOptions<'static> {
        ChildOptions {
            input: None,
            timeout,
            grace_period: Duration::from_millis(500),
            max_output_bytes: MAX_OUTPUT_BYTES,
            should_cancel: &|| false,
        }
    }
}

// Used where the end of the child cannot be polled. Git answers in milliseconds: with a longer interval most
// of the wait would be idle.
const CHILD_POLL_INTERVAL: Duration = Duration::from_millis(2);
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// A grandchild may keep the pipe open forever, so reading stops this long after the child has ended.
const REMAINING_OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);

/// Runs a command in a new process group and collects its output.
pub(crate) fn run(command: Command, options: ChildOptions<'_>) -> CommandOutcome {
    match start_in_new_process_group(command, options) {
        Ok(running_child) => running_child.wait_with_output(),
        Err(outcome) => outcome,
    }
}

/// Starts a command in a new process group. It runs concurrently as long as its unread output fits into the
/// pipes (64 KiB each).
pub(crate) fn start_in_new_process_group(
    mut command: Command,
    options: ChildOptions<'_>,
) -> Result<RunningChild<'_>, CommandOutcome> {
    let stdin = if options.input.is_some() { Stdio::piped() } else { Stdio::null() };
    let child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn();
    let mut child = child.map_err(|error| CommandOutcome {
        start_error: Some(error.to_string()),
        ..CommandOutcome::default()
    })?;
    let stdout = OutputStream::new(child.stdout.take().map(OwnedFd::from), options.max_output_bytes);
    let stderr = OutputStream::new(child.stderr.take().map(OwnedFd::from), options.max_output_bytes);
    write_input_in_thread(&mut child, options.input);
    Ok(RunningChild {
        child_exit_fd: plimsoll_system::child_exit_descriptor(Pid::from_child(&child)),
        child,
        streams: [stdout, stderr],
        started_at: Instant::now(),
        timeout: options.timeout,
        grace_period: options.grace_period,
        should_cancel: options.should_cancel,
    })
}

/// Writes the input from a separate thread, because a child may print before it reads. A child that does not
/// read its input is no error.
fn write_input_in_thread(child: &mut Child, input: Option<Vec<u8>>) {
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        std::thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
    }
}

/// A running child process. Its streams and its exit are polled together, with one system call and without a
/// thread.
pub(crate) struct RunningChild<'a> {
    child: Child,
    /// A file descriptor that becomes readable when the child ends; `None` if the system provides none.
    child_exit_fd: Option<OwnedFd>,
    streams: [OutputStream; 2],
    started_at: Instant,
    timeout: Duration,
    grace_period: Duration,
    should_cancel: &'a dyn Fn() -> bool,
}

impl RunningChild<'_> {
    /// Waits until the child ends and returns its output. Ends its process group at the timeout or once
    /// `should_cancel` returns true.
    pub(crate) fn wait_with_output(mut self) -> CommandOutcome {
        let mut outcome = CommandOutcome::default();
        let mut cancel_checked_at = Instant::now();
        loop {
            let remaining = self.timeout.saturating_sub(self.started_at.elapsed());
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    outcome.exit_code = status.code();
                    break;
                }
                Ok(None) if !remaining.is_zero() && !outcome.was_canceled => {
                    self.read_output_for(remaining.min(CANCEL_CHECK_INTERVAL));
                    if cancel_checked_at.elapsed() >= CANCEL_CHECK_INTERVAL {
                        cancel_checked_at = Instant::now();
                        outcome.was_canceled = (self.should_cancel)();
                    }
                }
                _ => {
                    outcome.timed_out = !outcome.was_canceled;
                    self.end_process_group_while_reading_output();
                    break;
                }
            }
        }
        self.read_remaining_output_until_timeout();
        [outcome.stdout, outcome.stderr] =
            self.streams.map(OutputStream::into_bytes_and_discard_later_output);
        outcome
    }

    /// Reads output until the child has ended or `max_wait` has passed.
    fn read_output_for(&mut self, max_wait: Duration) {
        // Without an exit descriptor, the child has to be polled at short intervals.
        let max_wait =
            if self.child_exit_fd.is_some() { max_wait } else { max_wait.min(CHILD_POLL_INTERVAL) };
        read_available_output(&mut self.streams, self.child_exit_fd.as_ref(), max_wait);
    }

    /// Ends the process group while reading its output, because the child may print while it cleans up and
    /// must not block.
    fn end_process_group_while_reading_output(&mut self) {
        let RunningChild { child, streams, grace_period, .. } = self;
        std::thread::scope(|scope| {
            let ending_thread =
                scope.spawn(|| process::terminate_child_group_then_kill_if_alive(child, *grace_period));
            while !ending_thread.is_finished() {
                read_available_output(streams, None, CHILD_POLL_INTERVAL);
            }
        });
    }

    /// Reads the remaining output. A grandchild may keep the pipe open forever, so only output that arrives soon
    /// is read. Both streams share one deadline, which is not much later than the timeout.
    fn read_remaining_output_until_timeout(&mut self) {
        let max_wait = self.timeout.saturating_sub(self.started_at.elapsed()).max(self.grace_period);
        let read_deadline = Instant::now() + max_wait.min(REMAINING_OUTPUT_TIMEOUT);
        while self.streams.iter().any(OutputStream::is_open) {
            let remaining = read_deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return;
            }
            read_available_output(&mut self.streams, None, remaining);
        }
    }
}

/// Reads what is available from the streams. Returns once output was read, after the child has ended, or after
/// `max_wait`.
fn read_available_output(
    streams: &mut [OutputStream; 2],
    child_exit_fd: Option<&OwnedFd>,
    max_wait: Duration,
) {
    let open_pipes = streams.iter().filter_map(|stream| stream.pipe.as_ref());
    let mut poll_fds: Vec<PollFd<'_>> =
        open_pipes.chain(child_exit_fd).map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let timeout = Timespec::try_from(max_wait).ok();
    // `poll` also returns an error if a signal interrupts it; the caller polls again.
    if poll(&mut poll_fds, timeout.as_ref()).is_err() {
        return;
    }
    let mut ready_flags =
        poll_fds.iter().map(|poll_fd| !poll_fd.revents().is_empty()).collect::<Vec<bool>>().into_iter();
    for stream in streams.iter_mut().filter(|stream| stream.is_open()) {
        if ready_flags.next().unwrap_or_default() {
            stream.read_once_or_close_at_end();
        }
    }
}

/// The collected output of one stream of a child.
struct OutputStream {
    /// `None` after the end of the stream.
    pipe: Option<OwnedFd>,
    bytes: Vec<u8>,
    max_bytes: usize,
}

impl OutputStream {
    fn new(pipe: Option<OwnedFd>, max_bytes: usize) -> OutputStream {
        OutputStream { pipe, bytes: Vec::new(), max_bytes }
    }

    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Reads once, and closes the pipe at the end of the stream. Blocks if neither output nor the end of the
    /// stream is available.
    fn read_once_or_close_at_end(&mut self) {
        const CHUNK_BYTES: usize = 4 * 1024;
        let Some(pipe) = &self.pipe else { return };
        self.bytes.reserve(CHUNK_BYTES);
        match rustix::io::read(pipe, spare_capacity(&mut self.bytes)) {
            Ok(0) => self.pipe = None,
            Ok(_) | Err(Errno::INTR) => self.bytes.truncate(self.max_bytes),
            Err(_) => self.pipe = None,
        }
    }

    /// Returns the collected output. A grandchild that still writes must not get a broken pipe, so a thread reads
    /// and discards its later output.
    fn into_bytes_and_discard_later_output(self) -> Vec<u8> {
        if let Some(pipe) = self.pipe {
            std::thread::spawn(move || {
                let mut discard_buffer = Vec::with_capacity(4 * 1024);
                while matches!(
                    rustix::io::read(&pipe, spare_capacity(&mut discard_buffer)),
                    Ok(1..) | Err(Errno::INTR)
                ) {
                    discard_buffer.clear();
                }
            });
        }
        self.bytes
    }
}
