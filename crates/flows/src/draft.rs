//! Runs the client to draft a plan, in a separate read-only session that belongs to no run.

use crate::hook_invocation::RUN_VARIABLE;
use crate::read_only::{ReadOnlySession, describe_missing_answer};
use crate::run::{ClientError, check_client_supports_restricted_mode, check_client_version};
use crate::session_result::SessionResult;
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_domain::{ProcessExit, SessionEnding};
use plimsoll_launcher::CommandOutcome;
use plimsoll_launcher::client::{ClientQuery, run_client_with_timeout_and_cancel};
use plimsoll_policy::read_only::split_harmless_arguments;
use plimsoll_protocol::result::ClientResult;
use plimsoll_store::Project;
use std::path::Path;
use std::time::Duration;

/// Timeout of the drafting session. Reading a project and responding once takes less time.
pub const DRAFT_TIMEOUT: Duration = Duration::from_secs(15 * 60);

const PRINT_JSON_OPTIONS: [&str; 3] = ["-p", "--output-format", "json"];

#[derive(Debug)]
pub struct DraftRequest<'a> {
    pub project: &'a Project,
    pub client_path: &'a Path,
    /// Arguments from the user, passed on to the client.
    pub client_arguments: &'a [String],
    pub prompt: &'a [u8],
}

#[derive(Debug, Clone)]
pub struct Draft {
    pub text: String,
    /// Cost in US dollars, as reported by the client.
    pub cost_usd: f64,
}

/// The error of a failed draft request.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    #[error(transparent)]
    Client(#[from] ClientError),
    /// An argument that might lift the session's restrictions.
    #[error(
        "`{0}` cannot be passed on: the session of plan --draft can only read inside the project, and ends with one answer; leave it out after `--`"
    )]
    RejectedArgument(String),
    #[error("cannot start {program}: {why}")]
    NotStarted { program: String, why: String },
    /// The client did not respond before the timeout.
    #[error("Claude Code did not answer within {} minutes and was ended", DRAFT_TIMEOUT.as_secs() / 60)]
    TimedOut,
    /// The user interrupted the request.
    #[error("interrupted: Claude Code was ended")]
    Interrupted,
    /// The session ended without a response.
    #[error("Claude Code gave no answer: {why}{}", cost_suffix(*.cost_usd))]
    Failed {
        why: String,
        /// Cost of the session in US dollars.
        cost_usd: f64,
    },
}

fn cost_suffix(cost_usd: f64) -> String {
    if cost_usd > 0.0 { format!(" ({})", plimsoll_domain::cost::format_usd(cost_usd)) } else { String::new() }
}

/// A request that [`check_arguments_and_client_for_draft`] has accepted.
#[derive(Debug)]
pub struct CheckedDraftRequest<'a>(DraftRequest<'a>);

/// Rejects arguments that could change the session, and clients that cannot confine it. Runs only `claude --version`.
pub fn check_arguments_and_client_for_draft(
    request: DraftRequest<'_>,
) -> Result<CheckedDraftRequest<'_>, DraftError> {
    let rejected_arguments = split_harmless_arguments(request.client_arguments).refused;
    if let Some(argument) = rejected_arguments.into_iter().next() {
        return Err(DraftError::RejectedArgument(truncate_end(&to_safe_single_line(&argument), 80)));
    }
    let version = check_client_version(request.client_path)?;
    check_client_supports_restricted_mode("plan --draft", request.client_path, &version)?;
    Ok(CheckedDraftRequest(request))
}

/// Runs the client and waits for its response. `is_interrupted` is called a few times a second.
pub fn run_client_and_parse_draft(
    checked_request: &CheckedDraftRequest<'_>,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<Draft, DraftError> {
    let CheckedDraftRequest(request) = checked_request;
    let ReadOnlySession { arguments: read_only_arguments, environment } =
        ReadOnlySession::from_user_settings_without_permissions();
    let arguments: Vec<String> = PRINT_JSON_OPTIONS
        .into_iter()
        .map(str::to_owned)
        .chain(request.client_arguments.iter().cloned())
        .chain(read_only_arguments)
        .collect();
    let outcome = run_client_with_timeout_and_cancel(&ClientQuery {
        program: request.client_path,
        arguments: &arguments,
        folder: request.project.root(),
        environment: &environment,
        // If this variable were set, our hooks would treat the session as part of a run.
        removed_variables: &[RUN_VARIABLE],
        input: request.prompt,
        timeout: DRAFT_TIMEOUT,
        should_cancel: is_interrupted,
    });
    parse_draft(request.client_path, &outcome)
}

fn parse_draft(client_path: &Path, outcome: &CommandOutcome) -> Result<Draft, DraftError> {
    if outcome.was_canceled {
        return Err(DraftError::Interrupted);
    }
    if outcome.timed_out {
        return Err(DraftError::TimedOut);
    }
    if let Some(start_error) = &outcome.start_error {
        return Err(DraftError::NotStarted {
            program: client_path.display().to_string(),
            why: start_error.clone(),
        });
    }
    let client_result = ClientResult::find_last_in_output(&outcome.stdout);
    let session_result = SessionResult::from_client_result(
        client_result.as_ref(),
        ProcessExit { code: outcome.exit_code, signal: None },
        None,
    );
    let cost_usd = session_result.cost.map_or(0.0, |cost| cost.usd);
    let text = session_result.result_text.unwrap_or_default();
    match session_result.ending {
        SessionEnding::Completed if !text.trim().is_empty() => Ok(Draft { text, cost_usd }),
        ending => {
            let reason = [&describe_missing_answer(&ending), &last_nonempty_line(&outcome.stderr)]
                .into_iter()
                .filter(|text| !text.is_empty())
                .cloned()
                .collect::<Vec<_>>()
                .join(": ");
            Err(DraftError::Failed { why: reason, cost_usd })
        }
    }
}

fn last_nonempty_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    truncate_end(&to_safe_single_line(line), 300)
}
