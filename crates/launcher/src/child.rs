//! The run of one child process: its input, its output, and its timeout.

use crate::{CommandOutcome, MAX_OUTPUT_BYTES};
use plimsoll_system::child_output::ChildOutput;
use plimsoll_system::process_control::{set_new_process_group, terminate_child_group_then_kill_if_alive};
use std::io::Write;
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
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = set_new_process_group(&mut command).spawn();
    let mut child = child.map_err(|error| CommandOutcome {
        start_error: Some(error.to_string()),
        ..CommandOutcome::default()
    })?;
    write_input_in_thread(&mut child, options.input);
    Ok(RunningChild {
        output: ChildOutput::take_streams_of(&mut child, options.max_output_bytes),
        child,
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

/// A running child process.
pub(crate) struct RunningChild<'a> {
    child: Child,
    output: ChildOutput,
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
        [outcome.stdout, outcome.stderr] = self.output.into_bytes_and_discard_later_output();
        outcome
    }

    /// Reads output until the child has ended or `max_wait` has passed.
    fn read_output_for(&mut self, max_wait: Duration) {
        let max_wait = if self.output.reports_exit() { max_wait } else { max_wait.min(CHILD_POLL_INTERVAL) };
        self.output.read_until_output_or_exit(max_wait);
    }

    /// Ends the process group while reading its output, because the child may print while it cleans up and
    /// must not block.
    fn end_process_group_while_reading_output(&mut self) {
        let RunningChild { child, output, grace_period, .. } = self;
        std::thread::scope(|scope| {
            let ending_thread =
                scope.spawn(|| terminate_child_group_then_kill_if_alive(child, *grace_period));
            while !ending_thread.is_finished() {
                output.read_until_output(CHILD_POLL_INTERVAL);
            }
        });
    }

    /// Reads the remaining output. A grandchild may keep the pipe open forever, so only output that arrives soon
    /// is read. Both streams share one deadline, which is not much later than the timeout.
    fn read_remaining_output_until_timeout(&mut self) {
        let max_wait = self.timeout.saturating_sub(self.started_at.elapsed()).max(self.grace_period);
        let read_deadline = Instant::now() + max_wait.min(REMAINING_OUTPUT_TIMEOUT);
        while self.output.has_open_stream() {
            let remaining = read_deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return;
            }
            self.output.read_until_output(remaining);
        }
    }
}
