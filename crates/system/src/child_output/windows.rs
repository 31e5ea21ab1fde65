//! A pipe cannot be polled on Windows, so a thread for each stream reads it and sends what it has read.

use std::io::Read;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// How many chunks may wait to be received. A child that writes more is held up by its full pipe, as on other systems.
const MAX_WAITING_CHUNKS: usize = 16;
const CHUNK_BYTES: usize = 4 * 1024;

/// The index of a stream and the bytes that a thread has read from it, or `None` at the end of the stream.
type StreamChunk = (usize, Option<Vec<u8>>);

pub(super) struct ChildOutput {
    /// Output is received until both threads have ended and dropped their senders.
    receiver: Receiver<StreamChunk>,
    is_open: [bool; 2],
    bytes: [Vec<u8>; 2],
    max_bytes: usize,
}

impl ChildOutput {
    pub(super) fn take_streams_of(child: &mut Child, max_bytes: usize) -> ChildOutput {
        let (sender, receiver) = sync_channel(MAX_WAITING_CHUNKS);
        let is_stdout_open = read_in_thread(child.stdout.take(), 0, &sender);
        let is_stderr_open = read_in_thread(child.stderr.take(), 1, &sender);
        ChildOutput {
            receiver,
            is_open: [is_stdout_open, is_stderr_open],
            bytes: Default::default(),
            max_bytes,
        }
    }

    pub(super) fn reports_exit(&self) -> bool {
        false
    }

    pub(super) fn read_until_output_or_exit(&mut self, max_wait: Duration) {
        self.read_until_output(max_wait);
    }

    pub(super) fn read_until_output(&mut self, max_wait: Duration) {
        match self.receiver.recv_timeout(max_wait) {
            Ok(chunk) => self.add_chunk(chunk),
            Err(RecvTimeoutError::Timeout) => return,
            Err(RecvTimeoutError::Disconnected) => {
                // Both streams have ended. The caller expects that time passes until the child has ended as well.
                self.is_open = [false; 2];
                std::thread::sleep(max_wait);
                return;
            }
        }
        while let Ok(chunk) = self.receiver.try_recv() {
            self.add_chunk(chunk);
        }
    }

    fn add_chunk(&mut self, (index, chunk): StreamChunk) {
        match chunk {
            Some(chunk) => {
                self.bytes[index].extend_from_slice(&chunk);
                self.bytes[index].truncate(self.max_bytes);
            }
            None => self.is_open[index] = false,
        }
    }

    pub(super) fn has_open_stream(&self) -> bool {
        self.is_open.contains(&true)
    }

    /// Dropping the receiver makes the threads discard what they read from now on.
    pub(super) fn into_bytes_and_discard_later_output(self) -> [Vec<u8>; 2] {
        self.bytes
    }
}

/// Reads a stream to its end in a thread, even after the receiver has been dropped. Returns false if there is no stream.
fn read_in_thread(
    stream: Option<impl Read + Send + 'static>,
    index: usize,
    sender: &SyncSender<StreamChunk>,
) -> bool {
    let Some(mut stream) = stream else { return false };
    let sender = sender.clone();
    std::thread::spawn(move || {
        let mut buffer = [0; CHUNK_BYTES];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => {
                    let _ = sender.send((index, Some(buffer[..length].to_vec())));
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let _ = sender.send((index, None));
    });
    true
}
