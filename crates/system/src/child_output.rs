//! The output of a child process: both of its streams and its exit are waited for together.

#[cfg_attr(unix, path = "child_output/unix.rs")]
#[cfg_attr(windows, path = "child_output/windows.rs")]
mod platform;

use std::process::Child;
use std::time::Duration;

/// The standard output and standard error of a child process, as far as they have been read.
pub struct ChildOutput(platform::ChildOutput);

impl ChildOutput {
    /// Takes the piped output streams of a child. Keeps at most `max_bytes` of each; the rest is read and discarded.
    pub fn take_streams_of(child: &mut Child, max_bytes: usize) -> ChildOutput {
        ChildOutput(platform::ChildOutput::take_streams_of(child, max_bytes))
    }

    /// Returns true if the system reports the end of the child while its output is waited for. Otherwise the child has to
    /// be polled at short intervals.
    pub fn reports_exit(&self) -> bool {
        self.0.reports_exit()
    }

    /// Reads what is available from the streams. Returns once output was read, after the child has ended if that is
    /// reported, or after `max_wait`.
    pub fn read_until_output_or_exit(&mut self, max_wait: Duration) {
        self.0.read_until_output_or_exit(max_wait);
    }

    /// Reads what is available from the streams. Returns once output was read, or after `max_wait`.
    pub fn read_until_output(&mut self, max_wait: Duration) {
        self.0.read_until_output(max_wait);
    }

    /// Returns true if the end of one of the streams has not been reached.
    pub fn has_open_stream(&self) -> bool {
        self.0.has_open_stream()
    }

    /// Returns the collected output, standard output first. A grandchild that still writes must not get a broken pipe, so
    /// a thread reads and discards its later output.
    pub fn into_bytes_and_discard_later_output(self) -> [Vec<u8>; 2] {
        self.0.into_bytes_and_discard_later_output()
    }
}
