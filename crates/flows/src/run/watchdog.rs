//! A thread that ends the client if the run's loop is blocked and does not end it.
//!
//! The loop normally ends its client itself, but an unresponsive disk or a stalled reader of its output may
//! block it. The watchdog still enforces a second Ctrl-C, SIGTERM and the deadline, and ends the client when it
//! is dropped.

use crate::run::observer::{Interrupt, InterruptCounter};
use crate::run::orphans;
use crate::run::supervise::SHORT_GRACE_PERIOD;
use chrono::{DateTime, Utc};
use plimsoll_launcher::client::LaunchedClient;
use plimsoll_launcher::process::{self, ProcessIdentity};
use plimsoll_store::clock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Watches the running client; shared by the loop and the thread.
#[derive(Debug)]
pub(super) struct Watchdog(Arc<WatchdogState>);

#[derive(Debug, Default)]
struct WatchdogState {
    watched_client: Mutex<Option<WatchedClient>>,
    had_client: AtomicBool,
    is_stopped: AtomicBool,
}

/// A client, and the environment variables that identify every process started inside its session.
#[derive(Debug, Clone)]
struct WatchedClient {
    identity: ProcessIdentity,
    environment_markers: Option<[String; 2]>,
}

/// The limits after which the watchdog acts because the run has not ended by itself, and how it exits.
#[derive(Debug, Clone)]
pub(super) struct WatchdogConfig {
    /// Counts interrupts (Ctrl-C); the second requests an immediate end.
    pub(super) interrupts: InterruptCounter,
    /// The run's deadline.
    pub(super) deadline: Option<DateTime<Utc>>,
    /// How long the loop may take to react to the second Ctrl-C.
    pub(super) interrupt_timeout: Duration,
    /// How long after the deadline the loop may take to end its client.
    pub(super) deadline_timeout: Duration,
    /// How long the client may take to exit.
    pub(super) client_grace_period: Duration,
    /// How long after the second Ctrl-C the program may still run.
    pub(super) exit_timeout: Duration,
    /// Exits the program.
    pub(super) exit_program: fn(),
}

impl Watchdog {
    pub(super) fn start(config: WatchdogConfig) -> Watchdog {
        let state = Arc::new(WatchdogState::default());
        std::thread::spawn({
            let state = Arc::clone(&state);
            move || state.end_overdue_client_or_exit_until_stopped(&config)
        });
        Watchdog(state)
    }

    /// Starts watching this client.
    pub(super) fn watch_client(&self, identity: ProcessIdentity, environment_markers: Option<[String; 2]>) {
        self.0.had_client.store(true, Ordering::SeqCst);
        self.0.set_client(Some(WatchedClient { identity, environment_markers }));
    }

    /// Stops watching, because the client has ended.
    pub(super) fn clear_client(&self) {
        self.0.set_client(None);
    }

    pub(super) fn had_client(&self) -> bool {
        self.0.had_client.load(Ordering::SeqCst)
    }

    pub(super) fn has_running_client(&self) -> bool {
        self.0.watched_client().is_some_and(|client| process::is_alive(client.identity))
    }

    /// Ends the client, if one is running.
    pub(super) fn end_client(&self) {
        self.0.terminate_client_and_its_processes(SHORT_GRACE_PERIOD);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.is_stopped.store(true, Ordering::SeqCst);
        self.end_client();
    }
}

impl WatchdogState {
    fn watched_client(&self) -> Option<WatchedClient> {
        // A panic in the loop must not keep this thread from ending the client.
        self.watched_client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_client(&self, watched_client: Option<WatchedClient>) {
        *self.watched_client.lock().unwrap_or_else(PoisonError::into_inner) = watched_client;
    }

    /// Terminates the client if it is alive, and then the processes that its session started. Holds no lock
    /// while it waits.
    fn terminate_client_and_its_processes(&self, grace_period: Duration) {
        let Some(WatchedClient { identity: client, environment_markers: markers }) = self.watched_client()
        else {
            return;
        };
        if !process::is_alive(client) {
            return;
        }
        // Treated as an adopted client, because the child's handle belongs to the loop, which may be blocked.
        LaunchedClient::Adopted(client).terminate_with_descendants(grace_period);
        if let Some(markers) = &markers {
            orphans::end_processes_with_environment(markers);
        }
    }

    fn end_overdue_client_or_exit_until_stopped(&self, config: &WatchdogConfig) {
        let mut interrupted_at: Option<Instant> = None;
        while !self.is_stopped.load(Ordering::SeqCst) {
            std::thread::sleep(POLL_INTERVAL);
            if config.interrupts.has_requested(Interrupt::EndSession) {
                interrupted_at.get_or_insert_with(Instant::now);
            }
            let is_interrupt_overdue =
                interrupted_at.is_some_and(|requested_at| requested_at.elapsed() >= config.interrupt_timeout);
            if is_interrupt_overdue
                || config.deadline.is_some_and(|deadline| clock::now() >= deadline + config.deadline_timeout)
            {
                self.terminate_client_and_its_processes(config.client_grace_period);
            }
            if interrupted_at.is_some_and(|requested_at| requested_at.elapsed() >= config.exit_timeout) {
                (config.exit_program)();
            }
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the tests start what is ended")]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    fn start_sleep() -> (Child, ProcessIdentity) {
        let child = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
        let identity = process::process_identity(child.id()).unwrap();
        (child, identity)
    }

    fn default_terms() -> WatchdogConfig {
        WatchdogConfig {
            interrupts: InterruptCounter::default(),
            deadline: None,
            interrupt_timeout: Duration::from_millis(200),
            deadline_timeout: Duration::from_millis(200),
            client_grace_period: Duration::from_secs(1),
            exit_timeout: Duration::from_secs(3600),
            exit_program: || {},
        }
    }

    fn ends_within(client: ProcessIdentity, limit: Duration) -> bool {
        let started = Instant::now();
        while process::is_alive(client) && started.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(10));
        }
        !process::is_alive(client)
    }

    const END_TIMEOUT: Duration = Duration::from_secs(10);

    #[test]
    fn the_second_interrupt_and_the_deadline_end_a_client_of_a_blocked_loop() {
        let (mut child, client) = start_sleep();
        let terms = default_terms();
        let interrupts = terms.interrupts.clone();
        let watchdog = Watchdog::start(terms);
        watchdog.watch_client(client, None);
        interrupts.add_interrupt(Interrupt::AfterSession);
        assert!(!ends_within(client, Duration::from_millis(800)), "after one the session may finish");
        interrupts.add_interrupt(Interrupt::AfterSession);
        assert!(ends_within(client, END_TIMEOUT));
        child.wait().unwrap();

        let (mut child, client) = start_sleep();
        let deadline = Some(clock::now() + Duration::from_millis(600));
        let watchdog = Watchdog::start(WatchdogConfig { deadline, ..default_terms() });
        watchdog.watch_client(client, None);
        assert!(!ends_within(client, Duration::from_millis(300)));
        assert!(ends_within(client, END_TIMEOUT));
        child.wait().unwrap();
    }

    #[test]
    fn no_client_keeps_running_however_a_run_is_left() {
        let (mut child, client) = start_sleep();
        let watchdog = Watchdog::start(default_terms());
        assert!(!watchdog.had_client());
        watchdog.watch_client(client, None);
        assert!(watchdog.had_client() && watchdog.has_running_client());
        drop(watchdog);
        assert!(ends_within(client, END_TIMEOUT));
        child.wait().unwrap();
    }

    #[test]
    fn an_ended_client_or_another_process_is_not_ended() {
        let (mut child, client) = start_sleep();
        let watchdog = Watchdog::start(default_terms());
        watchdog.watch_client(client, None);
        watchdog.clear_client();
        assert!(watchdog.had_client() && !watchdog.has_running_client());
        drop(watchdog);
        let watchdog = Watchdog::start(default_terms());
        watchdog.watch_client(ProcessIdentity { start_time: client.start_time + 1, ..client }, None);
        drop(watchdog);
        assert!(process::is_alive(client));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_program_that_does_not_end_after_two_interrupts_is_exited() {
        static LEFT: AtomicBool = AtomicBool::new(false);
        let to_leave = Duration::from_millis(300);
        let terms = WatchdogConfig {
            exit_timeout: to_leave,
            exit_program: || LEFT.store(true, Ordering::SeqCst),
            ..default_terms()
        };
        let interrupts = terms.interrupts.clone();
        let _watchdog = Watchdog::start(terms);
        std::thread::sleep(Duration::from_millis(600));
        assert!(!LEFT.load(Ordering::SeqCst));
        interrupts.add_interrupt(Interrupt::EndSession);
        let started = Instant::now();
        while !LEFT.load(Ordering::SeqCst) && started.elapsed() < END_TIMEOUT {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(LEFT.load(Ordering::SeqCst));
    }
}
