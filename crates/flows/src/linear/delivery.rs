//! Delivery of notes for `plimsoll run` by `plimsoll-linear`. Each delivery is a separate process with
//! limited time and output. Notes stay in the outbox until Linear has confirmed them, even if the process is
//! killed.

use super::command::LinearCommand;
use super::key::{KEY_VARIABLE, KeyError, KeyText};
use super::{failure, key};
use crate::optional_program::{self, LINEAR_PROGRAM as PROGRAM, ProgramNotFound};
use plimsoll_domain::linear::LinearBackoff;
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_domain::{RunId, Settings};
use plimsoll_launcher::{CommandOutcome, HelperCommand};
use plimsoll_store::{Project, StoreError, clock, outbox};
use std::path::PathBuf;
use std::time::Duration;

/// Timeout of the readiness check, which makes no network request.
const READY_TIMEOUT: Duration = Duration::from_secs(5);
/// The program's own time limit is shorter by this much, so that it can usually report the timeout itself.
const REPORT_MARGIN: Duration = Duration::from_millis(500);
/// The program is killed this much before the time limit, so that the run is not delayed beyond the limit.
const KILL_MARGIN: Duration = Duration::from_millis(250);
/// The program reports one line, so this is ample.
const MAX_OUTPUT_BYTES: usize = 16 * 1024;

/// `plimsoll-linear`, ready to deliver a run's notes.
#[derive(Debug)]
pub struct Delivery {
    program: PathBuf,
    key: KeyText,
    issue: String,
}

/// An error that prevents the delivery of notes. The key is removed from text of other programs. Messages
/// contain no durations or timestamps, because a message that changes would count as a new error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    #[error("{missing}; {hint}", missing = .0, hint = .0.install_hint())]
    NoProgram(#[from] ProgramNotFound),
    #[error("{missing}; {hint}", missing = .0, hint = .0.hint())]
    NoKey(#[from] KeyError),
    /// The operating system could not start the program.
    #[error("{PROGRAM} cannot be started: {0}")]
    NotStarted(String),
    /// The program was killed at its timeout.
    #[error("{PROGRAM} did not finish in time")]
    TimedOut,
    /// The program exited with an unexpected code.
    #[error("{PROGRAM} exited with {code}{why}")]
    Exited {
        code: i32,
        /// `: ` and the first line of stderr; empty if the program printed nothing.
        why: String,
    },
    #[error("{PROGRAM} was ended by a signal")]
    KilledBySignal,
    /// The program reported this error itself.
    #[error("{0}")]
    Reported(String),
}

impl DeliveryError {
    /// Applies a function to the text that comes from another program.
    fn map_message(self, transform: impl Fn(&str) -> String) -> DeliveryError {
        match self {
            DeliveryError::NotStarted(message) => DeliveryError::NotStarted(transform(&message)),
            DeliveryError::Exited { code, why } => DeliveryError::Exited { code, why: transform(&why) },
            DeliveryError::Reported(message) => DeliveryError::Reported(transform(&message)),
            error @ (DeliveryError::NoProgram(_)
            | DeliveryError::NoKey(_)
            | DeliveryError::TimedOut
            | DeliveryError::KilledBySignal) => error,
        }
    }
}

/// Finds the program and the key, and runs the program's readiness check.
///
/// # Errors
/// If one is missing, or the program reports that it cannot deliver.
pub fn prepare_delivery_if_program_is_ready(
    project: &Project,
    settings: &Settings,
    issue: &str,
) -> Result<Delivery, DeliveryError> {
    let program = optional_program::find_sibling_or_trusted_program(project, PROGRAM)?;
    let (key, source) = key::key_from_variable_or_command(project, settings)?;
    let delivery = Delivery { program, key, issue: issue.to_owned() };
    match delivery.run_program_and_redact_key(project, &LinearCommand::Ready { source }, READY_TIMEOUT)? {
        None => Ok(delivery),
        Some(message) => Err(DeliveryError::Reported(message)),
    }
}

impl Delivery {
    /// Delivers the waiting notes within this time limit. Returns a message for the user, or `None` if there
    /// is nothing to report, the error was already reported, or the backoff is still active.
    pub fn deliver_waiting_notes_unless_backing_off(
        &self,
        project: &Project,
        run_id: &RunId,
        time_limit: Duration,
    ) -> Result<Option<String>, StoreError> {
        // Also checked here, before the process is started: a program that hangs could not check the backoff.
        if outbox::undelivered_note_count_of_all_runs(project) == 0
            || outbox::load_backoff(project).is_some_and(|backoff| failure::is_backoff_active(&backoff))
        {
            return Ok(None);
        }
        let program_time_limit = time_limit.saturating_sub(REPORT_MARGIN);
        let command = LinearCommand::Deliver { issue: self.issue.clone(), time_limit: program_time_limit };
        match self.run_program_and_redact_key(project, &command, time_limit.saturating_sub(KILL_MARGIN)) {
            Ok(message) => Ok(message),
            Err(error) => record_failure_and_message_if_new(project, run_id, &error.to_string()),
        }
    }

    /// Runs the program and returns its message or error, with the key removed from the text.
    fn run_program_and_redact_key(
        &self,
        project: &Project,
        command: &LinearCommand,
        timeout: Duration,
    ) -> Result<Option<String>, DeliveryError> {
        let outcome = plimsoll_launcher::run_helper_with_short_grace_period(&HelperCommand {
            program: &self.program,
            arguments: &command.to_arguments(),
            folder: project.root(),
            input: None,
            environment: &[(KEY_VARIABLE, self.key.as_str())],
            timeout,
            max_output_bytes: MAX_OUTPUT_BYTES,
        });
        // The program may be any program of this name on the PATH, so the key is removed from its output.
        let redact_key = |text: &str| self.key.redact_in(text);
        match first_output_line_or_delivery_error(&outcome) {
            Ok(message) => Ok(message.as_deref().map(redact_key)),
            Err(error) => Err(error.map_message(redact_key)),
        }
    }
}

/// Records a failure of the program and when to retry, with growing delays as for a network error. Returns a
/// message for the user if the error is new.
fn record_failure_and_message_if_new(
    project: &Project,
    run_id: &RunId,
    error: &str,
) -> Result<Option<String>, StoreError> {
    let previous_backoff = outbox::load_backoff(project);
    let failure_count = previous_backoff.as_ref().map_or(0, |backoff| backoff.failure_count) + 1;
    let retry_at = clock::to_timestamp(failure::retry_time_after_failures(failure_count));
    let backoff =
        LinearBackoff { retry_at, is_rate_limited: false, failure_count, last_error: error.to_owned() };
    let is_new_error =
        failure::save_backoff_and_journal_new_error(project, run_id, previous_backoff.as_ref(), &backoff)?;
    Ok(is_new_error.then(|| format!("{error}; {RETRY_HINT}")))
}

/// Explains what happens next, for the end of an error message.
pub const RETRY_HINT: &str = "Plimsoll retries by itself, or run `plimsoll linear sync`";

/// Returns the first line of stdout (`None` if it is empty), or the error if the program failed.
fn first_output_line_or_delivery_error(outcome: &CommandOutcome) -> Result<Option<String>, DeliveryError> {
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

/// Returns the first line, or `None` if it is empty.
fn first_line(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    text.lines().next().map(to_safe_single_line).filter(|line| !line.is_empty())
}

#[cfg(unix)]
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
        outbox::append_note_with_best_effort_lock(&project, &note).unwrap();
        let program = folder.join("plimsoll-linear");
        let text = format!("#!/bin/sh\n{script}\n");
        plimsoll_store::disk::replace(&program, text.as_bytes(), plimsoll_store::Durability::Lazy).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let key = key::key_with_text("lin_api_secret");
        (project, Delivery { program, key, issue: "ENG-1".to_owned() })
    }

    const TIME_LIMIT: Duration = Duration::from_millis(700);

    fn deliver(project: &Project, delivery: &Delivery) -> Option<String> {
        delivery.deliver_waiting_notes_unless_backing_off(project, &"r1".into(), TIME_LIMIT).unwrap()
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
            outbox::save_or_remove_backoff(&project, Some(&expired)).unwrap();
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
        outbox::save_or_remove_backoff(&project, None).unwrap();
        assert_eq!(deliver(&project, &delivery).map(|message| message.len()), Some(MAX_OUTPUT_BYTES));
    }

    #[test]
    fn no_program_is_started_without_waiting_notes() {
        let folder = tempfile::tempdir().unwrap();
        let (project, delivery) = delivery(folder.path(), "exit 3");
        outbox::save_comment_state(
            &project,
            &"r1".into(),
            &plimsoll_domain::linear::LinearComment { delivered_note_count: 1, ..Default::default() },
        )
        .unwrap();
        assert_eq!(deliver(&project, &delivery), None);
        assert_eq!(outbox::load_backoff(&project), None);
    }
}
