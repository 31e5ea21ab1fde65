//! Delivery of notes for `plimsoll run` by `plimsoll-linear`. Each delivery is a separate process with
//! limited time and output. Notes stay in the outbox until Linear has confirmed them, whatever happens to the
//! process.

use super::command::LinearCommand;
use super::key::{KEY_VARIABLE, KeyError, KeyText};
use super::{failure, key};
use crate::optional_program::{self, LINEAR as PROGRAM, ProgramNotFound};
use plimsoll_domain::linear::LinearBackoff;
use plimsoll_domain::text::to_single_line;
use plimsoll_domain::{RunId, Settings};
use plimsoll_launcher::{CommandOutcome, HelperCommand};
use plimsoll_store::{Project, StoreError, clock, outbox};
use std::path::PathBuf;
use std::time::Duration;

/// The program only checks address, key and certificates, without a request.
const READY_TIMEOUT: Duration = Duration::from_secs(5);
/// The program's time limit ends this much earlier, so that it can mostly report the error itself.
const REPORT_MARGIN: Duration = Duration::from_millis(500);
/// The program is ended this much before the time is over, so that it does not delay the run any longer.
const END_MARGIN: Duration = Duration::from_millis(250);
/// Its report is one line.
const MAX_OUTPUT_BYTES: usize = 16 * 1024;

/// `plimsoll-linear`, ready to deliver a run's notes.
#[derive(Debug)]
pub struct Delivery {
    program: PathBuf,
    key: KeyText,
    issue: String,
}

/// Why notes cannot be delivered. Text of another program contains no key. Messages contain no times either,
/// because a message that changes would count as a new error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    #[error("{missing}; {hint}", missing = .0, hint = .0.install_hint())]
    NoProgram(#[from] ProgramNotFound),
    #[error("{missing}; {hint}", missing = .0, hint = .0.hint())]
    NoKey(#[from] KeyError),
    /// The system did not start the program.
    #[error("{PROGRAM} cannot be started: {0}")]
    NotStarted(String),
    /// The program was ended at its timeout.
    #[error("{PROGRAM} did not finish in time")]
    TimedOut,
    /// The program exited with an unexpected code.
    #[error("{PROGRAM} exited with {code}{why}")]
    Exited {
        code: i32,
        /// Its message after a colon; empty if it printed nothing.
        why: String,
    },
    #[error("{PROGRAM} was ended by a signal")]
    KilledBySignal,
    /// The error that the program reported itself.
    #[error("{0}")]
    Reported(String),
}

impl DeliveryError {
    /// Returns the error with another program's text changed by this function.
    fn map_message(self, change_text: impl Fn(&str) -> String) -> DeliveryError {
        match self {
            DeliveryError::NotStarted(message) => DeliveryError::NotStarted(change_text(&message)),
            DeliveryError::Exited { code, why } => DeliveryError::Exited { code, why: change_text(&why) },
            DeliveryError::Reported(message) => DeliveryError::Reported(change_text(&message)),
            error @ (DeliveryError::NoProgram(_)
            | DeliveryError::NoKey(_)
            | DeliveryError::TimedOut
            | DeliveryError::KilledBySignal) => error,
        }
    }
}

/// Finds the program and the key, and checks that the program can deliver.
///
/// # Errors
/// If one is missing, or the program reports that it cannot deliver.
pub fn prepare_delivery(
    project: &Project,
    settings: &Settings,
    issue: &str,
) -> Result<Delivery, DeliveryError> {
    let program = optional_program::find_program(project, PROGRAM)?;
    let (key, source) = key::key_from_variable_or_command(project, settings)?;
    let delivery = Delivery { program, key, issue: issue.to_owned() };
    match delivery.run_program(project, &LinearCommand::Ready { source }, READY_TIMEOUT)? {
        None => Ok(delivery),
        Some(message) => Err(DeliveryError::Reported(message)),
    }
}

impl Delivery {
    /// Delivers the waiting notes within this time. Returns a message for the user, or `None` if all is well,
    /// the error is already known, or it is too early to retry.
    pub fn deliver_waiting_notes(
        &self,
        project: &Project,
        run_id: &RunId,
        time_limit: Duration,
    ) -> Result<Option<String>, StoreError> {
        // Checked here as well, because a hanging program cannot report that the backoff is active.
        if outbox::undelivered_note_count_of_all_runs(project) == 0
            || outbox::load_backoff(project).is_some_and(|backoff| failure::is_backoff_active(&backoff))
        {
            return Ok(None);
        }
        let program_time_limit = time_limit.saturating_sub(REPORT_MARGIN);
        let command = LinearCommand::Deliver { issue: self.issue.clone(), time_limit: program_time_limit };
        match self.run_program(project, &command, time_limit.saturating_sub(END_MARGIN)) {
            Ok(message) => Ok(message),
            Err(error) => record_failure(project, run_id, &error.to_string()),
        }
    }

    /// Runs the program and returns its message.
    fn run_program(
        &self,
        project: &Project,
        command: &LinearCommand,
        timeout: Duration,
    ) -> Result<Option<String>, DeliveryError> {
        let outcome = plimsoll_launcher::run_helper(&HelperCommand {
            program: &self.program,
            arguments: &command.to_arguments(),
            folder: project.root(),
            input: None,
            environment: &[(KEY_VARIABLE, self.key.as_str())],
            timeout,
            max_output_bytes: MAX_OUTPUT_BYTES,
        });
        // Any program of this name on the PATH may run here, so the key is removed from its output.
        let redact_key = |text: &str| self.key.redact_from(text);
        match parse_outcome(&outcome) {
            Ok(message) => Ok(message.as_deref().map(redact_key)),
            Err(error) => Err(error.map_message(redact_key)),
        }
    }
}

/// The program's own failure is treated like a network error: reported once, and retried with growing delays.
fn record_failure(project: &Project, run_id: &RunId, error: &str) -> Result<Option<String>, StoreError> {
    let previous = outbox::load_backoff(project);
    let failure_count = previous.as_ref().map_or(0, |backoff| backoff.failure_count) + 1;
    let retry_at = clock::to_timestamp(failure::retry_time_after_failures(failure_count));
    let backoff =
        LinearBackoff { retry_at, is_rate_limited: false, failure_count, last_error: error.to_owned() };
    let is_new = failure::record_failure(project, run_id, previous.as_ref(), &backoff)?;
    Ok(is_new.then(|| format!("{error}; {RETRY_HINT}")))
}

/// Tells the user what happens next; the end of a sentence.
pub const RETRY_HINT: &str = "Plimsoll retries by itself, or run `plimsoll linear sync`";

/// Returns the program's message, or why there is none.
fn parse_outcome(outcome: &CommandOutcome) -> Result<Option<String>, DeliveryError> {
    match (&outcome.start_error, outcome.timed_out, outcome.exit_code) {
        (Some(error), ..) => Err(DeliveryError::NotStarted(error.clone())),
        (None, true, _) => Err(DeliveryError::TimedOut),
        (None, false, Some(0)) => Ok(first_line(&outcome.stdout)),
        (None, false, Some(1)) if !outcome.stdout.is_empty() => {
            Err(DeliveryError::Reported(first_line(&outcome.stdout).unwrap_or_default()))
        }
        (None, false, Some(code)) => {
            let why = first_line(&outcome.stderr).map(|line| format!(": {line}")).unwrap_or_default();
            Err(DeliveryError::Exited { code, why })
        }
        (None, false, None) => Err(DeliveryError::KilledBySignal),
    }
}

/// Returns the first line; `None` if it is empty.
fn first_line(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    text.lines().next().map(to_single_line).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::linear::LinearNote;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Instant;

    /// Creates a project with a note, and a program that runs this script.
    fn delivery(folder: &std::path::Path, script: &str) -> (Project, Delivery) {
        let project = Project::with_local_files(folder);
        let note = LinearNote {
            run_id: "r1".into(),
            text: "one".into(),
            iteration_or_item_number: 7,
            ..LinearNote::default()
        };
        outbox::append_note(&project, &note).unwrap();
        let program = folder.join("plimsoll-linear");
        let text = format!("#!/bin/sh\n{script}\n");
        plimsoll_store::disk::replace(&program, text.as_bytes(), plimsoll_store::Durability::Lazy).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let key = key::key_with_text("lin_api_secret");
        (project, Delivery { program, key, issue: "ENG-1".to_owned() })
    }

    const TIME_LIMIT: Duration = Duration::from_millis(700);

    fn deliver(project: &Project, delivery: &Delivery) -> Option<String> {
        delivery.deliver_waiting_notes(project, &"r1".into(), TIME_LIMIT).unwrap()
    }

    #[test]
    fn the_key_is_in_the_environment_and_in_no_argument() {
        let folder = tempfile::tempdir().unwrap();
        let (project, delivery) =
            delivery(folder.path(), "echo \"$* with $LINEAR_API_KEY in $PWD\" | tee recorded");
        let delivered = deliver(&project, &delivery);
        let project_folder = plimsoll_store::disk::canonicalize_or_keep(folder.path());
        let expected = format!("deliver ENG-1 200 with lin_api_secret in {}", project_folder.display());
        let recorded = plimsoll_store::disk::read_text(&folder.path().join("recorded")).unwrap().unwrap();
        assert_eq!(
            (delivered, recorded.trim_end()),
            (Some(expected.replace("lin_api_secret", "(key)")), &*expected)
        );
        assert!(!format!("{delivery:?}").contains("secret"), "nor is it shown");
    }

    #[test]
    fn a_failing_program_is_reported_once_and_retried_later() {
        for (script, message) in [
            ("exec sleep 60", "plimsoll-linear did not finish in time"),
            ("trap '' TERM; sleep 60", "plimsoll-linear did not finish in time"),
            ("kill -9 $$", "plimsoll-linear was ended by a signal"),
            (
                "echo 'no \x1b[31mway' >&2; echo more >&2; exit 3",
                "plimsoll-linear exited with 3: no \\u{1b}[31mway",
            ),
            ("exit 2", "plimsoll-linear exited with 2"),
            ("echo 'no certificates'; exit 1", "no certificates"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let (project, delivery) = delivery(folder.path(), &format!("echo x >> started\n{script}"));
            let started = Instant::now();
            assert_eq!(deliver(&project, &delivery), Some(format!("{message}; {RETRY_HINT}")), "{script}");
            assert!(started.elapsed() < Duration::from_secs(30), "{script}: {:?}", started.elapsed());
            assert_eq!(deliver(&project, &delivery), None, "it is not the time");
            let wait = outbox::load_backoff(&project).unwrap();
            assert!(
                failure::is_backoff_active(&wait) && wait.last_error == message && !wait.is_rate_limited,
                "{wait:?}"
            );
            // The delay is over, and the error is the same.
            let expired = LinearBackoff { retry_at: "2026-01-07T11:45:00Z".into(), ..wait };
            outbox::save_backoff(&project, Some(&expired)).unwrap();
            assert_eq!(deliver(&project, &delivery), None);
            assert_eq!(outbox::load_backoff(&project).unwrap().failure_count, 2);
            let start_marks =
                plimsoll_store::disk::read_text(&folder.path().join("started")).unwrap().unwrap();
            assert_eq!(
                (start_marks.as_str(), outbox::undelivered_note_count_of_all_runs(&project)),
                ("x\nx\n", 1),
                "{script}"
            );
        }
    }

    #[test]
    fn endless_output_ends_at_the_time_limit() {
        let folder = tempfile::tempdir().unwrap();
        let (project, delivery) = delivery(folder.path(), "yes | tr -d '\\n'");
        assert_eq!(
            deliver(&project, &delivery),
            Some(format!("plimsoll-linear did not finish in time; {RETRY_HINT}"))
        );
        let (project, delivery) = self::delivery(folder.path(), "head -c 1000000 /dev/zero | tr '\\0' y");
        outbox::save_backoff(&project, None).unwrap();
        assert_eq!(deliver(&project, &delivery).map(|message| message.len()), Some(MAX_OUTPUT_BYTES));
    }

    #[test]
    fn no_program_is_started_without_waiting_notes() {
        let folder = tempfile::tempdir().unwrap();
        let (project, delivery) = delivery(folder.path(), "exit 3");
        outbox::save_comment(
            &project,
            &"r1".into(),
            &plimsoll_domain::linear::LinearComment { delivered_note_count: 1, ..Default::default() },
        )
        .unwrap();
        assert_eq!(deliver(&project, &delivery), None);
        assert_eq!(outbox::load_backoff(&project), None);
    }
}
