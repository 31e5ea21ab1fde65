//! Whether anybody still waits for what is at work.

use crate::run::Interrupts;
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
        self.after(2)
    }

    /// The same where no session is at work yet: the first Ctrl-C is enough.
    pub(super) fn give_up_at_once(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        self.after(1)
    }

    fn after(&self, interrupts: usize) -> impl Fn() -> bool + Send + Sync + 'static {
        let Stop { interrupts: heard, cut } = self.clone();
        move || heard.count() >= interrupts || cut.load(Ordering::Relaxed)
    }

    /// Threads give up from now on.
    pub(super) fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
    }
}
