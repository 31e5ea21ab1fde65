//! Runs the configured verify commands, without holding any lock.

use crate::plimsoll_files;
use crate::run::sandbox::{CommandScope, run_user_command_sandboxed_if_enabled};
use chrono::{DateTime, Utc};
use plimsoll_domain::text::{truncate_end, truncate_start};
use plimsoll_domain::{RunState, Settings};
use plimsoll_launcher::branch::has_tracked_changes;
use plimsoll_launcher::git;
use plimsoll_policy::completion::VerifyOutcome;
use plimsoll_policy::ticks::VerifiedTree;
use plimsoll_store::{Project, clock};
use std::time::{Duration, Instant};

/// The number of characters kept from the beginning of a command's output, and as many from its end. The excerpt
/// goes into the journal and the prompt.
const OUTPUT_EXCERPT_CHARS: usize = 2_000;

/// Returns the head commit and whether tracked files, except Plimsoll's own, have uncommitted changes. Returns
/// the empty default if git fails.
pub(crate) fn head_and_whether_tracked_files_changed(project: &Project) -> VerifiedTree {
    let Some(head) = git::head_commit(project.root()) else { return VerifiedTree::default() };
    match has_tracked_changes(project.root(), &plimsoll_files::is_plimsoll_file) {
        Ok(has_uncommitted) => {
            VerifiedTree { commit: Some(head.into()), has_uncommitted_changes: has_uncommitted }
        }
        Err(_) => VerifiedTree::default(),
    }
}

/// Runs all commands in order, also after a failure, but none beyond the run's deadline. A canceled command and
/// those after it have no outcome.
pub(crate) fn run_verify_commands_until_canceled(
    project: &Project,
    settings: &Settings,
    run_state: &RunState,
    commands: &[String],
    should_cancel: &dyn Fn() -> bool,
) -> Vec<VerifyOutcome> {
    let scope = CommandScope::for_run(run_state);
    let deadline = run_state.options.limits.deadline.as_ref().and_then(clock::parse_timestamp);
    let run_command = |command: &String| {
        let time_limit = CommandTimeLimit::from_settings_and_deadline(settings, deadline);
        let started_at = Instant::now();
        // After the deadline no command is started, not even one that would pass immediately.
        let outcome = if time_limit.duration.is_zero() {
            plimsoll_launcher::CommandOutcome {
                timed_out: true,
                ..plimsoll_launcher::CommandOutcome::default()
            }
        } else {
            run_user_command_sandboxed_if_enabled(
                project,
                &scope,
                command,
                &[],
                time_limit.duration,
                should_cancel,
            )
        };
        (!outcome.was_canceled).then(|| VerifyOutcome {
            command: command.clone(),
            passed: outcome.succeeded(),
            summary: describe_outcome_with_output(&outcome, time_limit, scope.is_sandboxed()),
            seconds: started_at.elapsed().as_secs(),
            is_inconclusive: outcome.start_error.is_some()
                || outcome.timed_out && time_limit.is_set_by_deadline,
        })
    };
    commands.iter().map_while(run_command).collect()
}

/// How long a command may run, and whether the run's deadline sets this limit.
#[derive(Clone, Copy)]
struct CommandTimeLimit {
    duration: Duration,
    is_set_by_deadline: bool,
}

impl CommandTimeLimit {
    fn from_settings_and_deadline(settings: &Settings, deadline: Option<DateTime<Utc>>) -> CommandTimeLimit {
        let timeout = Duration::from_secs(settings.verify_timeout_seconds);
        // A deadline that has passed leaves no time at all.
        let remaining = deadline.map(|deadline| (deadline - clock::now()).to_std().unwrap_or_default());
        match remaining.filter(|remaining_time| *remaining_time < timeout) {
            Some(time_to_deadline) => {
                CommandTimeLimit { duration: time_to_deadline, is_set_by_deadline: true }
            }
            None => CommandTimeLimit { duration: timeout, is_set_by_deadline: false },
        }
    }
}

fn describe_outcome_with_output(
    outcome: &plimsoll_launcher::CommandOutcome,
    time_limit: CommandTimeLimit,
    is_sandboxed: bool,
) -> String {
    let result_text = match (&outcome.start_error, outcome.timed_out, outcome.exit_code) {
        (Some(start_error), ..) => format!("could not be started: {start_error}"),
        (None, true, _) if time_limit.is_set_by_deadline => "was ended at the run's deadline".to_owned(),
        (None, true, _) => format!("took longer than {} s and was ended", time_limit.duration.as_secs()),
        (None, false, Some(code)) => format!("exited with {code}"),
        (None, false, None) => "was ended by a signal".to_owned(),
    };
    // The session that fixes the failure must know that only the sandbox lacks the network.
    let failed_in_sandbox = is_sandboxed && outcome.start_error.is_none() && !outcome.succeeded();
    let result_text =
        if failed_in_sandbox { format!("{result_text} in the sandbox (no network)") } else { result_text };
    let output_bytes = [outcome.stdout.as_slice(), outcome.stderr.as_slice()].concat();
    let output_text = keep_start_and_end_of_output(String::from_utf8_lossy(&output_bytes).trim());
    if output_text.is_empty() { result_text } else { format!("{result_text}; it printed:\n{output_text}") }
}

fn keep_start_and_end_of_output(output: &str) -> String {
    if output.chars().count() <= OUTPUT_EXCERPT_CHARS * 2 {
        return output.to_owned();
    }
    format!(
        "{}\n{}",
        truncate_end(output, OUTPUT_EXCERPT_CHARS),
        truncate_start(output, OUTPUT_EXCERPT_CHARS)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::limits::RunLimits;
    use plimsoll_domain::state::RunOptions;

    /// Runs the commands in a run whose deadline is this many milliseconds away; returns their outcomes.
    fn run_with_deadline(commands: &[&str], milliseconds: i64) -> Vec<(bool, String)> {
        let folder = tempfile::tempdir().unwrap();
        let deadline =
            clock::to_millis_timestamp(clock::now() + chrono::Duration::milliseconds(milliseconds));
        let run = RunState {
            options: RunOptions {
                limits: RunLimits { deadline: Some(deadline), ..RunLimits::default() },
                ..RunOptions::default()
            },
            ..RunState::default()
        };
        let commands: Vec<String> = commands.iter().map(|command| (*command).to_owned()).collect();
        let outcomes = run_verify_commands_until_canceled(
            &Project::with_local_files(folder.path()),
            &Settings::default(),
            &run,
            &commands,
            &|| false,
        );
        let is_correctly_decided =
            |outcome: &VerifyOutcome| outcome.is_inconclusive == outcome.summary.ends_with("deadline");
        assert!(outcomes.iter().all(is_correctly_decided), "{outcomes:?}");
        outcomes.into_iter().map(|outcome| (outcome.passed, outcome.summary)).collect()
    }

    #[test]
    fn no_command_runs_beyond_the_deadline() {
        let started = Instant::now();
        let ended_at_deadline = (false, "was ended at the run's deadline".to_owned());
        let passed = (true, "exited with 0".to_owned());
        assert_eq!(
            run_with_deadline(&["true", "sleep 30", "sleep 30"], 1_500),
            [passed.clone(), ended_at_deadline.clone(), ended_at_deadline.clone()]
        );
        assert_eq!(run_with_deadline(&["sleep 30"], -5_000), [ended_at_deadline]);
        assert_eq!(run_with_deadline(&["true"], 60_000), [passed]);
        assert!(started.elapsed() < Duration::from_secs(15));
    }
}
