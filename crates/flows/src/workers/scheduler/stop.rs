//! Whether anybody still waits for what is at work.

use crate::run::{Interrupt, Interrupts};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How the user and this process end what is at work.
#[derive(Clone)]
pub(super) struct Stop {
    pub(super) interrupts: Interrupts,
    /// True when threads give up.
    cut: Arc<AtomicBool>,
}

impl Stop {
    pub(super) fn new(interrupts: Interrupts) -> Stop {
        Stop { interrupts, cut: Arc::default() }
    }

    /// Asked by threads and commands whether they give up: at the second interrupt, for sessions come to their end before.
    pub(super) fn give_up(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        self.after(Interrupt::Twice)
    }

    /// The same where no session is at work yet: the first Ctrl-C is enough.
    pub(super) fn give_up_at_once(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        self.after(Interrupt::Once)
    }

    fn after(&self, interrupt: Interrupt) -> impl Fn() -> bool + Send + Sync + 'static {
        let Stop { interrupts, cut } = self.clone();
        move || interrupts.has_asked(interrupt) || cut.load(Ordering::Relaxed)
    }

    /// Threads give up from now on.
    pub(super) fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
    }
}
