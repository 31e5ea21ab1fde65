//! The last resort: a thread that waits for nothing ends the client where the run's loop does not.
//!
//! The loop ends its client itself; but a disk that does not answer, or a reader that takes none of its output, may hold
//! it up. A second Ctrl-C, SIGTERM and the deadline hold all the same, and whichever way a run is left, no client of its
//! works on.

use crate::run::observer::{Interrupt, Interrupts};
use crate::run::orphans;
use crate::run::supervise::GRACE_PERIOD;
use chrono::{DateTime, Utc};
use plimsoll_launcher::client::Client;
use plimsoll_launcher::process::{self, Identity};
use plimsoll_store::clock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// The client at work, as the loop and the thread both know it.
#[derive(Debug)]
pub(super) struct Watchdog(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    client: Mutex<Option<Worker>>,
    has_seen_client: AtomicBool,
    is_off: AtomicBool,
}

/// A client, and what is in the environment of all that is started inside its session.
#[derive(Debug, Clone)]
struct Worker {
    client: Identity,
    settings: Option<[String; 2]>,
}

/// When a run must have ended by itself.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    /// Counts Ctrl-C; two mean at once.
    pub(super) interrupts: Interrupts,
    /// The run's.
    pub(super) deadline: Option<DateTime<Utc>>,
    /// How long the loop may take to see the second Ctrl-C.
    pub(super) after_interrupt: Duration,
    /// How long it may take to end its client at the deadline, politely.
    pub(super) after_deadline: Duration,
    /// How long the client may tidy up.
    pub(super) grace_period: Duration,
    /// How long after the second Ctrl-C the program may still be there.
    pub(super) to_leave: Duration,
    /// Leaves the program.
    pub(super) leave: fn(),
}

impl Watchdog {
    pub(super) fn start(terms: Terms) -> Watchdog {
        let shared = Arc::new(Shared::default());
        std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.watch(&terms)
        });
        Watchdog(shared)
    }

    /// A client works from now on.
    pub(super) fn watch(&self, client: Identity, settings: Option<[String; 2]>) {
        self.0.has_seen_client.store(true, Ordering::SeqCst);
        self.0.set(Some(Worker { client, settings }));
    }

    /// It has ended.
    pub(super) fn rest(&self) {
        self.0.set(None);
    }

    pub(super) fn has_seen_client(&self) -> bool {
        self.0.has_seen_client.load(Ordering::SeqCst)
    }

    pub(super) fn has_client_at_work(&self) -> bool {
        self.0.worker().is_some_and(|worker| process::is_alive(worker.client))
    }

    /// Ends the client, if one works.
    pub(super) fn end_client(&self) {
        self.0.end_client(GRACE_PERIOD);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.is_off.store(true, Ordering::SeqCst);
        self.end_client();
    }
}

impl Shared {
    fn worker(&self) -> Option<Worker> {
        // A panic in the loop must not keep this thread from ending the client.
        self.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, worker: Option<Worker>) {
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = worker;
    }

    /// Ends it with what it would leave at work. No lock is held meanwhile.
    fn end_client(&self, grace_period: Duration) {
        let Some(Worker { client, settings }) = self.worker() else { return };
        if !process::is_alive(client) {
            return;
        }
        // As if adopted: the child's own handle belongs to the loop, which may be the one that is held up.
        Client::Adopted(client).end(grace_period);
        if let Some(settings) = &settings {
            orphans::end_started_with(settings);
        }
    }

    fn watch(&self, terms: &Terms) {
        let mut asked: Option<Instant> = None;
        while !self.is_off.load(Ordering::SeqCst) {
            std::thread::sleep(LOOK_INTERVAL);
            if terms.interrupts.has_asked(Interrupt::Twice) {
                asked.get_or_insert_with(Instant::now);
            }
            let is_asked = asked.is_some_and(|asked| asked.elapsed() >= terms.after_interrupt);
            if is_asked
                || terms.deadline.is_some_and(|deadline| clock::now() >= deadline + terms.after_deadline)
            {
                self.end_client(terms.grace_period);
            }
            if asked.is_some_and(|asked| asked.elapsed() >= terms.to_leave) {
                (terms.leave)();
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the tests start what is ended")]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    fn sleeper() -> (Child, Identity) {
        let child = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
        let identity = process::identity(child.id()).unwrap();
        (child, identity)
    }

    fn terms() -> Terms {
        Terms {
            interrupts: Interrupts::default(),
            deadline: None,
            after_interrupt: Duration::from_millis(200),
            after_deadline: Duration::from_millis(200),
            grace_period: Duration::from_secs(1),
            to_leave: Duration::from_secs(3600),
            leave: || {},
        }
    }

    fn ends_within(client: Identity, limit: Duration) -> bool {
        let started = Instant::now();
        while process::is_alive(client) && started.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(10));
        }
        !process::is_alive(client)
    }

    const SOON: Duration = Duration::from_secs(10);

    #[test]
    fn the_second_interrupt_and_the_deadline_end_a_client_whose_loop_does_nothing() {
        let (mut child, client) = sleeper();
        let terms_of_one = terms();
        let interrupts = terms_of_one.interrupts.clone();
        let watchdog = Watchdog::start(terms_of_one);
        watchdog.watch(client, None);
        interrupts.add(Interrupt::Once);
        assert!(!ends_within(client, Duration::from_millis(800)), "after one the session may finish");
        interrupts.add(Interrupt::Once);
        assert!(ends_within(client, SOON));
        child.wait().unwrap();

        let (mut child, client) = sleeper();
        let deadline = Some(clock::now() + Duration::from_millis(600));
        let watchdog = Watchdog::start(Terms { deadline, ..terms() });
        watchdog.watch(client, None);
        assert!(!ends_within(client, Duration::from_millis(300)));
        assert!(ends_within(client, SOON));
        child.wait().unwrap();
    }

    #[test]
    fn whichever_way_a_run_is_left_no_client_works_on() {
        let (mut child, client) = sleeper();
        let watchdog = Watchdog::start(terms());
        assert!(!watchdog.has_seen_client());
        watchdog.watch(client, None);
        assert!(watchdog.has_seen_client() && watchdog.has_client_at_work());
        drop(watchdog);
        assert!(ends_within(client, SOON));
        child.wait().unwrap();
    }

    #[test]
    fn what_has_been_ended_or_is_somebody_elses_is_left_alone() {
        let (mut child, client) = sleeper();
        let watchdog = Watchdog::start(terms());
        watchdog.watch(client, None);
        watchdog.rest();
        assert!(watchdog.has_seen_client() && !watchdog.has_client_at_work());
        drop(watchdog);
        let watchdog = Watchdog::start(terms());
        watchdog.watch(Identity { started: client.started + 1, ..client }, None);
        drop(watchdog);
        assert!(process::is_alive(client));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_program_that_does_not_end_after_two_interrupts_is_left() {
        static LEFT: AtomicBool = AtomicBool::new(false);
        let to_leave = Duration::from_millis(300);
        let terms = Terms { to_leave, leave: || LEFT.store(true, Ordering::SeqCst), ..terms() };
        let interrupts = terms.interrupts.clone();
        let _watchdog = Watchdog::start(terms);
        std::thread::sleep(Duration::from_millis(600));
        assert!(!LEFT.load(Ordering::SeqCst));
        interrupts.add(Interrupt::Twice);
        let started = Instant::now();
        while !LEFT.load(Ordering::SeqCst) && started.elapsed() < SOON {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(LEFT.load(Ordering::SeqCst));
    }
}
