//! `plimsoll run` and `plimsoll-linear`: each delivery is a process of its own, with an end to its time and its output.
//! Whatever becomes of it, the notes stay in the outbox until Linear has answered.

use super::command::LinearCommand;
use super::key::{KeyText, NoKey, VARIABLE};
use super::{failure, key};
use crate::optional_program::{self, LINEAR as PROGRAM, NoProgram};
use plimsoll_domain::linear::Wait;
use plimsoll_domain::text::one_line;
use plimsoll_domain::{RunId, Settings};
use plimsoll_launcher::{Assistance, Outcome};
use plimsoll_store::{Project, StoreError, clock, outbox};
use std::path::PathBuf;
use std::time::Duration;

/// The program looks at address, key and certificates, and asks nobody.
const READY_TIMEOUT: Duration = Duration::from_secs(5);
/// It is told to be ready this much before the time is over, so that mostly it says itself what went wrong.
const TO_REPORT: Duration = Duration::from_millis(500);
/// It is ended this much before the time is over, so that the run is not held up longer than the time.
const TO_END: Duration = Duration::from_millis(250);
/// Its report is one line.
const MOST_OUTPUT: usize = 16 * 1024;

/// `plimsoll-linear`, ready to deliver a run's notes.
#[derive(Debug)]
pub struct Delivery {
    program: PathBuf,
    key: KeyText,
    issue: String,
}

/// Why notes cannot be delivered. What another program said has no key in it. No time is in it either: a trouble that is worded
/// anew would count as a new one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// The program is missing.
    #[error("{missing}; {hint}", missing = .0, hint = .0.hint())]
    NoProgram(#[from] NoProgram),
    /// The key is missing.
    #[error("{missing}; {hint}", missing = .0, hint = .0.hint())]
    NoKey(#[from] NoKey),
    /// The system did not start the program.
    #[error("{PROGRAM} cannot be started: {0}")]
    NotStarted(String),
    /// It was ended at its deadline.
    #[error("{PROGRAM} did not finish in time")]
    TimedOut,
    /// It exited with another code than its own two.
    #[error("{PROGRAM} exited with {code}{why}")]
    Exited {
        /// The code.
        code: i32,
        /// Its words after a colon; empty if it said nothing.
        why: String,
    },
    /// A signal ended it.
    #[error("{PROGRAM} was ended by a signal")]
    Signalled,
    /// What it reported itself.
    #[error("{0}")]
    Reported(String),
}

impl DeliveryError {
    /// The same, with this done to what another program said.
    fn with_words(self, clean: impl Fn(&str) -> String) -> DeliveryError {
        match self {
            DeliveryError::NotStarted(words) => DeliveryError::NotStarted(clean(&words)),
            DeliveryError::Exited { code, why } => DeliveryError::Exited { code, why: clean(&why) },
            DeliveryError::Reported(words) => DeliveryError::Reported(clean(&words)),
            error @ (DeliveryError::NoProgram(_)
            | DeliveryError::NoKey(_)
            | DeliveryError::TimedOut
            | DeliveryError::Signalled) => error,
        }
    }
}

/// Finds program and key.
///
/// # Errors
/// If one is missing, or the program says that it cannot deliver.
pub fn ready(project: &Project, settings: &Settings, issue: &str) -> Result<Delivery, DeliveryError> {
    let program = optional_program::find(project, PROGRAM)?;
    let (key, source) = key::find(project, settings)?;
    let delivery = Delivery { program, key, issue: issue.to_owned() };
    match delivery.start(project, &LinearCommand::Ready { source }, READY_TIMEOUT)? {
        None => Ok(delivery),
        Some(words) => Err(DeliveryError::Reported(words)),
    }
}

impl Delivery {
    /// Delivers what waits, in no more than this time. Answers with what the user should hear, which is nothing where all
    /// is well, or the trouble is known, or it is not the time to try.
    pub fn deliver(
        &self,
        project: &Project,
        run_id: &RunId,
        time: Duration,
    ) -> Result<Option<String>, StoreError> {
        // Looked at here, too: a program that hangs cannot say that it is not the time.
        if outbox::all_undelivered(project) == 0
            || outbox::wait(project).is_some_and(|wait| failure::lasts(&wait))
        {
            return Ok(None);
        }
        let within = time.saturating_sub(TO_REPORT);
        let command = LinearCommand::Deliver { issue: self.issue.clone(), within };
        match self.start(project, &command, time.saturating_sub(TO_END)) {
            Ok(words) => Ok(words),
            Err(error) => note_trouble(project, run_id, &error.to_string()),
        }
    }

    /// Starts the program; answers with what it has to say.
    fn start(
        &self,
        project: &Project,
        command: &LinearCommand,
        deadline: Duration,
    ) -> Result<Option<String>, DeliveryError> {
        let outcome = plimsoll_launcher::assist(&Assistance {
            program: &self.program,
            arguments: &command.arguments(),
            folder: project.root(),
            input: None,
            environment: &[(VARIABLE, self.key.as_str())],
            deadline,
            most_output: MOST_OUTPUT,
        });
        // It is whatever has this name on the PATH: what it says of the key is not passed on.
        let clean = |words: &str| self.key.taken_out_of(words);
        match reported(&outcome) {
            Ok(words) => Ok(words.as_deref().map(clean)),
            Err(error) => Err(error.with_words(clean)),
        }
    }
}

/// The program's own trouble counts like one of the network: it is said once, and tried again later and later.
fn note_trouble(project: &Project, run_id: &RunId, trouble: &str) -> Result<Option<String>, StoreError> {
    let before = outbox::wait(project);
    let failures = before.as_ref().map_or(0, |wait| wait.failures) + 1;
    let until = clock::stamp(failure::backoff(failures));
    let wait = Wait { until, is_limit: false, failures, trouble: trouble.to_owned() };
    let is_new = failure::note(project, run_id, before.as_ref(), &wait)?;
    Ok(is_new.then(|| format!("{trouble}; {RETRIES}")))
}

/// What comes next, for the end of a sentence.
pub const RETRIES: &str = "Plimsoll retries by itself, or run `plimsoll linear sync`";

/// What the program has to say, or what became of it instead.
fn reported(outcome: &Outcome) -> Result<Option<String>, DeliveryError> {
    match (&outcome.trouble, outcome.timed_out, outcome.code) {
        (Some(trouble), ..) => Err(DeliveryError::NotStarted(trouble.clone())),
        (None, true, _) => Err(DeliveryError::TimedOut),
        (None, false, Some(0)) => Ok(words_of(&outcome.stdout)),
        (None, false, Some(1)) if !outcome.stdout.is_empty() => {
            Err(DeliveryError::Reported(words_of(&outcome.stdout).unwrap_or_default()))
        }
        (None, false, Some(code)) => {
            let why = words_of(&outcome.stderr).map(|words| format!(": {words}")).unwrap_or_default();
            Err(DeliveryError::Exited { code, why })
        }
        (None, false, None) => Err(DeliveryError::Signalled),
    }
}

/// The first line; none if there is nothing in it.
fn words_of(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    text.lines().next().map(one_line).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::linear::Note;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Instant;

    /// A project with a note, and a program that does this.
    fn delivery(folder: &std::path::Path, script: &str) -> (Project, Delivery) {
        let project = Project::at(folder);
        let note = Note { run_id: "r1".into(), words: "one".into(), iteration: 7, ..Note::default() };
        outbox::add(&project, &note).unwrap();
        let program = folder.join("plimsoll-linear");
        let text = format!("#!/bin/sh\n{script}\n");
        plimsoll_store::disk::replace(&program, text.as_bytes(), plimsoll_store::Durability::Lazy).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let key = key::text_of("lin_api_secret");
        (project, Delivery { program, key, issue: "ENG-1".to_owned() })
    }

    const TIME: Duration = Duration::from_millis(700);

    fn said(project: &Project, delivery: &Delivery) -> Option<String> {
        delivery.deliver(project, &"r1".into(), TIME).unwrap()
    }

    #[test]
    fn the_key_is_in_the_environment_and_in_no_argument() {
        let folder = tempfile::tempdir().unwrap();
        let (project, delivery) =
            delivery(folder.path(), "echo \"$* with $LINEAR_API_KEY in $PWD\" | tee recorded");
        let said = said(&project, &delivery);
        let here = plimsoll_store::disk::canonical(folder.path());
        let expected = format!("deliver ENG-1 200 with lin_api_secret in {}", here.display());
        let recorded = plimsoll_store::disk::read_text(&folder.path().join("recorded")).unwrap().unwrap();
        assert_eq!(
            (said, recorded.trim_end()),
            (Some(expected.replace("lin_api_secret", "(key)")), &*expected)
        );
        assert!(!format!("{delivery:?}").contains("secret"), "nor is it shown");
    }

    #[test]
    fn a_program_that_fails_is_named_once_and_left_alone_for_a_while() {
        for (script, words) in [
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
            assert_eq!(said(&project, &delivery), Some(format!("{words}; {RETRIES}")), "{script}");
            assert!(started.elapsed() < Duration::from_secs(30), "{script}: {:?}", started.elapsed());
            assert_eq!(said(&project, &delivery), None, "it is not the time");
            let wait = outbox::wait(&project).unwrap();
            assert!(failure::lasts(&wait) && wait.trouble == words && !wait.is_limit, "{wait:?}");
            // Its time has come, and the trouble is the same.
            let over = Wait { until: "2026-01-07T11:45:00Z".into(), ..wait };
            outbox::save_wait(&project, Some(&over)).unwrap();
            assert_eq!(said(&project, &delivery), None);
            assert_eq!(outbox::wait(&project).unwrap().failures, 2);
            let times = plimsoll_store::disk::read_text(&folder.path().join("started")).unwrap().unwrap();
            assert_eq!((times.as_str(), outbox::all_undelivered(&project)), ("x\nx\n", 1), "{script}");
        }
    }

    #[test]
    fn endless_output_ends_with_the_time() {
        let folder = tempfile::tempdir().unwrap();
        let (project, delivery) = delivery(folder.path(), "yes | tr -d '\\n'");
        assert_eq!(
            said(&project, &delivery),
            Some(format!("plimsoll-linear did not finish in time; {RETRIES}"))
        );
        let (project, delivery) = self::delivery(folder.path(), "head -c 1000000 /dev/zero | tr '\\0' y");
        outbox::save_wait(&project, None).unwrap();
        assert_eq!(said(&project, &delivery).map(|words| words.len()), Some(MOST_OUTPUT));
    }

    #[test]
    fn nothing_is_started_where_nothing_waits() {
        let folder = tempfile::tempdir().unwrap();
        let (project, delivery) = delivery(folder.path(), "exit 3");
        outbox::save_comment(
            &project,
            &"r1".into(),
            &plimsoll_domain::linear::Comment { delivered: 1, ..Default::default() },
        )
        .unwrap();
        assert_eq!(said(&project, &delivery), None);
        assert_eq!(outbox::wait(&project), None);
    }
}
