//! `plimsoll linear`: looks whether notes reach Linear, and delivers those that wait.

mod check;
mod deliver;
mod key;
mod reporter;

pub(crate) use reporter::reporting;

use crate::console::{fail, refused, say, say_error};
use clap::{Args, Subcommand};
use deliver::{Asked, Delivered, Report, body_of, deliver};
use key::KeyError;
use plimsoll_domain::text::{counted, for_terminal};
use plimsoll_domain::{RunId, Settings};
use plimsoll_linear_client::{CourierError, Endpoint, Linear, RetryLimits};
use plimsoll_store::{Project, StoreError, clock, config, environment, outbox};
use std::process::ExitCode;
use std::time::Duration;

/// What is asked about Linear.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LinearArguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Check settings, key, network, issue and permissions; writes nothing to Linear
    Check,
    /// Deliver the notes that wait
    Sync {
        /// Print each comment that would be sent; send nothing (needs no key)
        #[arg(long)]
        dry_run: bool,
    },
}

const EXAMPLES: &str = "\
Examples:
  plimsoll linear check            check key, issue, permissions and network
  plimsoll linear sync             deliver notes that could not be sent
  plimsoll linear sync --dry-run   show what would be sent

The issue is `linear.issue` in your own ~/.config/plimsoll/settings.json, for one project below `projects`;
the key is LINEAR_API_KEY, or what `linear.key_command` there prints. A project's own file can name neither.

Exit codes:
  0  all is well, or everything was delivered
  1  something failed; the output says what to do, and notes stay queued";

/// The user waits this long for a delivery.
const TIMEOUT: Duration = Duration::from_secs(40);
const TRIES: u32 = 4;

/// What is between us and Linear before anything is sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WayError {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Courier(#[from] CourierError),
}

impl WayError {
    fn hint(&self) -> &'static str {
        match self {
            WayError::Key(error) => error.hint(),
            WayError::Courier(error) => error.hint(),
        }
    }
}

/// The way to Linear: where it is, and the key.
fn way(project: &Project, settings: &Settings) -> Result<Linear, WayError> {
    let endpoint = endpoint()?;
    let (key, _) = key::find(project, settings)?;
    Ok(Linear::new(endpoint, key)?)
}

fn endpoint() -> Result<Endpoint, CourierError> {
    Endpoint::new(environment::variable("LINEAR_API_URL").as_deref())
}

/// Looks, or delivers.
pub(crate) fn linear(arguments: &LinearArguments) -> ExitCode {
    let project = Project::of_command();
    let (settings, complaint) = config::load(&project);
    if let Some(complaint) = &complaint {
        return refused(complaint);
    }
    match arguments.verb {
        Verb::Check => check::check(&project, &settings),
        Verb::Sync { dry_run: true } => show(&project).unwrap_or_else(|error| refused(&error)),
        Verb::Sync { dry_run: false } => sync(&project, &settings),
    }
}

/// What would be sent, run by run.
fn show(project: &Project) -> Result<ExitCode, StoreError> {
    let waiting = waiting(project);
    if waiting.is_empty() {
        say("no notes to deliver");
    }
    for run in waiting {
        let notes = outbox::notes(project, &run)?;
        let issue = notes.first().map(|note| note.issue.clone()).unwrap_or_default();
        say(format!("to {}:\n\n{}", for_terminal(&issue), body_of(&notes).trim_end()));
        say("");
    }
    Ok(ExitCode::SUCCESS)
}

fn waiting(project: &Project) -> Vec<RunId> {
    outbox::runs(project).into_iter().filter(|run| outbox::undelivered(project, run) > 0).collect()
}

fn sync(project: &Project, settings: &Settings) -> ExitCode {
    if waiting(project).is_empty() {
        say("no notes to deliver");
        return ExitCode::SUCCESS;
    }
    let Some(issue) = settings.linear.issue.as_deref() else {
        return not_delivered(
            project,
            &"no issue is set",
            "name it as `linear.issue` in your own settings file",
        );
    };
    let linear = match way(project, settings) {
        Ok(linear) => linear,
        Err(error) => return not_delivered(project, &error, error.hint()),
    };
    match deliver(project, &linear, issue, RetryLimits::of(TIMEOUT, TRIES), Asked::ByPerson) {
        Ok(report) => tell(project, &report),
        Err(error) => refused(&error),
    }
}

fn tell(project: &Project, report: &Report) -> ExitCode {
    report.delivered.iter().for_each(|one| say(sentence(one)));
    for warning in report.delivered.iter().flat_map(|one| &one.warnings) {
        say_error(&format!("Linear also says: {}", for_terminal(warning)));
    }
    for (run, other) in &report.elsewhere {
        let words = format!(
            "left: notes of run {run} are for {other}, and your settings name another issue (`linear.issue`)"
        );
        say_error(&for_terminal(&words));
    }
    match (&report.trouble, &report.wait) {
        (Some(error), _) => not_delivered(project, error, error.hint()),
        (None, Some(wait)) => {
            let until =
                clock::moment(&wait.until).map_or_else(|| wait.until.clone().to_string(), clock::for_people);
            not_delivered(project, &format!("Linear asked us to wait until {until}"), "try again then")
        }
        _ if report.is_busy => fail("another plimsoll is delivering now\nhint: try again in a minute", 1),
        _ => ExitCode::SUCCESS,
    }
}

fn sentence(one: &Delivered) -> String {
    let url = if one.url.is_empty() { &one.issue } else { &one.url };
    let (notes, task) = (counted(one.notes, "note"), for_terminal(&one.task));
    format!("delivered {notes} of the run \"{task}\": {}", for_terminal(url))
}

fn not_delivered(project: &Project, error: &impl std::fmt::Display, hint: &str) -> ExitCode {
    let left = counted(outbox::all_undelivered(project), "note");
    fail(format!("{}; {left} not delivered yet\nhint: {hint}", for_terminal(&error.to_string())), 1)
}
