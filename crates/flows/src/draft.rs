//! Asks the client for a draft of a plan, in a session of its own that can only read. It belongs to no run.

use crate::hook_invocation::RUN_VARIABLE;
use crate::read_only::{ReadOnlySession, failure};
use crate::run::{ClientError, check_can_confine, check_client};
use crate::session_result::SessionResult;
use plimsoll_domain::text::{clip, one_line};
use plimsoll_domain::{Ending, Exit};
use plimsoll_launcher::Outcome;
use plimsoll_launcher::client::{Query, ask as ask_client};
use plimsoll_policy::read_only::split_arguments;
use plimsoll_protocol::result::RunResult;
use plimsoll_store::Project;
use std::path::Path;
use std::time::Duration;

/// Longer than a session needs that reads a project and answers once.
pub const TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// One answer is all that is wanted of it.
const ONE_ANSWER: [&str; 3] = ["-p", "--output-format", "json"];

/// What to ask, and whom.
#[derive(Debug)]
pub struct Request<'a> {
    /// The project.
    pub project: &'a Project,
    /// The client.
    pub client: &'a Path,
    /// What the user passes on to it.
    pub client_arguments: &'a [String],
    /// The prompt.
    pub prompt: &'a [u8],
}

/// The answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its text.
    pub text: String,
    /// What it cost, US dollars, as reported by the client.
    pub cost_usd: f64,
}

/// Why there is no draft.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// The client cannot be used.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// An argument that is not known to leave the session as it is.
    #[error(
        "`{0}` cannot be passed on: the session of plan --draft can only read inside the project, and ends with one answer; leave it out after `--`"
    )]
    Argument(String),
    /// The client could not be started.
    #[error("cannot start {program}: {why}")]
    NotStarted {
        /// The client.
        program: String,
        /// Why.
        why: String,
    },
    /// It gave no answer in time.
    #[error("the client gave no answer within {} minutes, and was ended", TIMEOUT.as_secs() / 60)]
    TooLate,
    /// The user.
    #[error("interrupted: the client was ended")]
    Interrupted,
    /// It ended without an answer.
    #[error("the client gave no answer: {why}{}", paid(*.cost_usd))]
    Failed {
        /// Why.
        why: String,
        /// What it cost.
        cost_usd: f64,
    },
}

fn paid(cost_usd: f64) -> String {
    if cost_usd > 0.0 { format!(" (${cost_usd:.2})") } else { String::new() }
}

/// A request that can be made.
#[derive(Debug)]
pub struct Checked<'a>(Request<'a>);

/// Could the client be asked? Nothing is started but `claude --version`.
pub fn check(request: Request<'_>) -> Result<Checked<'_>, DraftError> {
    let refused = split_arguments(request.client_arguments).refused;
    if let Some(argument) = refused.into_iter().next() {
        return Err(DraftError::Argument(clip(&one_line(&argument), 80)));
    }
    let version = check_client(request.client)?;
    check_can_confine("plan --draft", request.client, &version)?;
    Ok(Checked(request))
}

/// Asks, and waits for the answer; `is_interrupted` is asked a few times a second.
pub fn ask(checked: &Checked<'_>, is_interrupted: &dyn Fn() -> bool) -> Result<Answer, DraftError> {
    let Checked(request) = checked;
    let ReadOnlySession { arguments, environment } = ReadOnlySession::from_user_settings();
    let arguments: Vec<String> = ONE_ANSWER
        .into_iter()
        .map(str::to_owned)
        .chain(request.client_arguments.iter().cloned())
        .chain(arguments)
        .collect();
    let outcome = ask_client(&Query {
        program: request.client,
        arguments: &arguments,
        folder: request.project.root(),
        environment: &environment,
        // A session with the variable would be taken for one of a run.
        without: &[RUN_VARIABLE],
        input: request.prompt,
        deadline: TIMEOUT,
        give_up: is_interrupted,
    });
    answer(request.client, &outcome)
}

fn answer(client: &Path, outcome: &Outcome) -> Result<Answer, DraftError> {
    if outcome.given_up {
        return Err(DraftError::Interrupted);
    }
    if outcome.timed_out {
        return Err(DraftError::TooLate);
    }
    if let Some(why) = &outcome.trouble {
        return Err(DraftError::NotStarted { program: client.display().to_string(), why: why.clone() });
    }
    let result = RunResult::find(&outcome.stdout);
    let ended = SessionResult::of_result(result.as_ref(), Exit { code: outcome.code, signal: None }, None);
    let cost_usd = ended.cost.map_or(0.0, |cost| cost.usd);
    let text = ended.result_text.unwrap_or_default();
    match ended.ending {
        Ending::Completed if !text.trim().is_empty() => Ok(Answer { text, cost_usd }),
        ending => {
            let why = [&failure(&ending), &last_line(&outcome.stderr)]
                .into_iter()
                .filter(|words| !words.is_empty())
                .cloned()
                .collect::<Vec<_>>()
                .join(": ");
            Err(DraftError::Failed { why, cost_usd })
        }
    }
}

fn last_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    clip(&one_line(last), 300)
}
