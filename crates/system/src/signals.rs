//! Handlers for signals that would otherwise end the process.

#[cfg_attr(unix, path = "signals/unix.rs")]
#[cfg_attr(windows, path = "signals/windows.rs")]
mod platform;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

// The numbers are the same on all supported systems.
pub const SIGHUP: i32 = 1;
pub const SIGINT: i32 = 2;
pub const SIGTERM: i32 = 15;

/// The signals by which the user or the system ends a process, as far as the system has them.
pub const END_SIGNALS: &[i32] = platform::END_SIGNALS;

/// Turns exceeding the file size limit (`ulimit -f`) into a write error, like a full disk, instead of a fatal signal. Does
/// nothing if the system has no such limit.
pub fn turn_file_size_signal_into_error() {
    platform::turn_file_size_signal_into_error();
}

/// The signals that have arrived, each by its number.
pub struct SignalListener(platform::SignalListener);

impl SignalListener {
    /// Installs handlers for some of [`END_SIGNALS`].
    ///
    /// # Errors
    /// The system does not have one of the signals.
    pub fn new(signals: &[i32]) -> io::Result<SignalListener> {
        platform::SignalListener::new(signals).map(SignalListener)
    }

    /// Waits for the next signal and returns its number. Returns `None` if no more signals can arrive.
    pub fn wait_for_signal(&mut self) -> Option<i32> {
        self.0.wait_for_signal()
    }
}

/// Installs a handler that sets a flag.
///
/// # Errors
/// The system does not have the signal.
pub fn set_flag_on_signal(signal: i32, flag: Arc<AtomicBool>) -> io::Result<()> {
    signal_hook::flag::register(signal, flag).map(|_| ())
}

/// Installs a handler that ends the process if a flag is set, as the signal does without any handler.
///
/// # Errors
/// The system does not have the signal.
pub fn end_process_on_signal_if_set(signal: i32, flag: Arc<AtomicBool>) -> io::Result<()> {
    signal_hook::flag::register_conditional_default(signal, flag).map(|_| ())
}
