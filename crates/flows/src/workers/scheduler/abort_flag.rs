//! Decides when threads and commands give up what they are doing.

use crate::run::{Interrupt, InterruptCounter};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The interrupts of the user, and a flag with which this process makes its threads give up.
#[derive(Clone)]
pub(super) struct AbortFlag {
    pub(super) interrupts: InterruptCounter,
    /// True once threads have to give up.
    is_set: Arc<AtomicBool>,
}

impl AbortFlag {
    pub(super) fn new(interrupts: InterruptCounter) -> AbortFlag {
        AbortFlag { interrupts, is_set: Arc::default() }
    }

    /// Returns a check for threads and commands that is true after the second interrupt. The first one only
    /// lets sessions finish.
    pub(super) fn second_interrupt_check(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        self.interrupt_check(Interrupt::EndSession)
    }

    /// Returns a check that is true after the first interrupt, for the time when no session is running.
    pub(super) fn first_interrupt_check(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        self.interrupt_check(Interrupt::AfterSession)
    }

    fn interrupt_check(&self, interrupt: Interrupt) -> impl Fn() -> bool + Send + Sync + 'static {
        let AbortFlag { interrupts, is_set } = self.clone();
        move || interrupts.has_requested(interrupt) || is_set.load(Ordering::Relaxed)
    }

    /// Makes all threads give up.
    pub(super) fn set(&self) {
        self.is_set.store(true, Ordering::Relaxed);
    }
}
