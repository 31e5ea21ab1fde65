//! The C library of Windows has two of the signals that end a process. It calls their handlers in a thread of its own, and
//! offers nothing to wait for, so flags are polled.

use super::{SIGINT, SIGTERM};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub(super) const END_SIGNALS: &[i32] = &[SIGINT, SIGTERM];
/// Short enough that a user does not notice it after Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(super) fn turn_file_size_signal_into_error() {}

pub(super) struct SignalListener {
    /// The signal that arrived last and has not been returned, or 0.
    arrived_signal: Arc<AtomicUsize>,
}

impl SignalListener {
    pub(super) fn new(signals: &[i32]) -> io::Result<SignalListener> {
        let arrived_signal = Arc::new(AtomicUsize::new(0));
        for signal in signals {
            let value = usize::try_from(*signal).unwrap_or_default();
            signal_hook::flag::register_usize(*signal, Arc::clone(&arrived_signal), value)?;
        }
        Ok(SignalListener { arrived_signal })
    }

    pub(super) fn wait_for_signal(&mut self) -> Option<i32> {
        loop {
            match self.arrived_signal.swap(0, Ordering::SeqCst) {
                0 => std::thread::sleep(POLL_INTERVAL),
                signal => return i32::try_from(signal).ok(),
            }
        }
    }
}
