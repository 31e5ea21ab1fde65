//! Polls both pipes and the exit descriptor with one system call and without a thread.

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Pid;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::time::Duration;

pub(super) struct ChildOutput {
    streams: [OutputStream; 2],
    /// Becomes readable when the child ends; `None` if the system has no such descriptor.
    child_exit_fd: Option<OwnedFd>,
}

impl ChildOutput {
    pub(super) fn take_streams_of(child: &mut Child, max_bytes: usize) -> ChildOutput {
        let stdout = OutputStream::new(child.stdout.take().map(OwnedFd::from), max_bytes);
        let stderr = OutputStream::new(child.stderr.take().map(OwnedFd::from), max_bytes);
        ChildOutput {
            streams: [stdout, stderr],
            child_exit_fd: crate::platform::child_exit_descriptor(Pid::from_child(child)),
        }
    }

    pub(super) fn reports_exit(&self) -> bool {
        self.child_exit_fd.is_some()
    }

    pub(super) fn read_until_output_or_exit(&mut self, max_wait: Duration) {
        read_available_output(&mut self.streams, self.child_exit_fd.as_ref(), max_wait);
    }

    pub(super) fn read_until_output(&mut self, max_wait: Duration) {
        read_available_output(&mut self.streams, None, max_wait);
    }

    pub(super) fn has_open_stream(&self) -> bool {
        self.streams.iter().any(OutputStream::is_open)
    }

    pub(super) fn into_bytes_and_discard_later_output(self) -> [Vec<u8>; 2] {
        self.streams.map(OutputStream::into_bytes_and_discard_later_output)
    }
}

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
