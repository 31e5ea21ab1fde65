//! Signals wake a thread through a pipe.

use super::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc;

pub(super) const END_SIGNALS: &[i32] = &[SIGINT, SIGTERM, SIGHUP];
const SIGXFSZ: i32 = 25;

pub(super) fn turn_file_size_signal_into_error() {
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

pub(super) struct SignalListener(Signals);

impl SignalListener {
    pub(super) fn new(signals: &[i32]) -> io::Result<SignalListener> {
        Signals::new(signals).map(SignalListener)
    }

    pub(super) fn wait_for_signal(&mut self) -> Option<i32> {
        self.0.forever().next()
    }
}
