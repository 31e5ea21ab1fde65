//! Running the verify commands, as the user gave them, outside any lock.

use crate::our_files;
use crate::run::sandbox::{CommandScope, run_command};
use chrono::{DateTime, Utc};
use plimsoll_domain::text::{clip, clip_start};
use plimsoll_domain::{RunState, Settings};
use plimsoll_launcher::branch::has_changes;
use plimsoll_launcher::git;
use plimsoll_policy::completion::VerifyOutcome;
use plimsoll_policy::ticks::VerifiedTree;
use plimsoll_store::{Project, clock};
use std::time::{Duration, Instant};

/// How much of a command's output goes into journal and prompt, from its beginning and from its end.
const OUTPUT_KEPT: usize = 2_000;

/// Returns what the working tree is on which commands have just run. Where git cannot say, nothing is claimed of it.
pub(crate) fn verified_tree(project: &Project) -> VerifiedTree {
    let Some(head) = git::head(project.root()) else { return VerifiedTree::default() };
    match has_changes(project.root(), &our_files::is_ours) {
        Ok(has_uncommitted) => VerifiedTree { commit: Some(head.into()), has_uncommitted },
        Err(_) => VerifiedTree::default(),
    }
}

/// Runs these in their order, none beyond the run's deadline. One that was given up, and those after it, have no
/// outcome.
pub(crate) fn verify(
    project: &Project,
    settings: &Settings,
    run: &RunState,
    commands: &[String],
    give_up: &dyn Fn() -> bool,
) -> Vec<VerifyOutcome> {
    let scope = CommandScope::of_run(run);
    let deadline = run.options.limits.deadline.as_ref().and_then(clock::moment);
    let verify_one = |command: &String| {
        let limit = Limit::of(settings, deadline);
        let begun = Instant::now();
        // Not even started: what would pass at once must not pass after the deadline either.
        let outcome = if limit.time.is_zero() {
            plimsoll_launcher::Outcome { timed_out: true, ..plimsoll_launcher::Outcome::default() }
        } else {
            run_command(project, &scope, command, &[], limit.time, give_up)
        };
        (!outcome.given_up).then(|| VerifyOutcome {
            command: command.clone(),
            passed: outcome.succeeded(),
            words: words(&outcome, limit, scope.is_sandboxed()),
            seconds: begun.elapsed().as_secs(),
            is_undecided: outcome.trouble.is_some() || outcome.timed_out && limit.is_deadline,
        })
    };
    commands.iter().map_while(verify_one).collect()
}

/// How long a command may take.
#[derive(Clone, Copy)]
struct Limit {
    time: Duration,
    is_deadline: bool,
}

impl Limit {
    fn of(settings: &Settings, deadline: Option<DateTime<Utc>>) -> Limit {
        let own = Duration::from_secs(settings.verify_timeout_seconds);
        // A deadline that has passed leaves no time at all.
        let left = deadline.map(|deadline| (deadline - clock::now()).to_std().unwrap_or_default());
        match left.filter(|left| *left < own) {
            Some(time) => Limit { time, is_deadline: true },
            None => Limit { time: own, is_deadline: false },
        }
    }
}

fn words(outcome: &plimsoll_launcher::Outcome, limit: Limit, is_sandboxed: bool) -> String {
    let how = match (&outcome.trouble, outcome.timed_out, outcome.code) {
        (Some(trouble), ..) => format!("could not be started: {trouble}"),
        (None, true, _) if limit.is_deadline => "was ended at the run's deadline".to_owned(),
        (None, true, _) => format!("took longer than {} s and was ended", limit.time.as_secs()),
        (None, false, Some(code)) => format!("exited with {code}"),
        (None, false, None) => "was ended by a signal".to_owned(),
    };
    // Whoever repairs it must know that it may lack the network only here.
    let is_by_sandbox = is_sandboxed && outcome.trouble.is_none() && !outcome.succeeded();
    let how = if is_by_sandbox { format!("{how} in the sandbox (no network)") } else { how };
    let output = [outcome.stdout.as_slice(), outcome.stderr.as_slice()].concat();
    let output = shorten(String::from_utf8_lossy(&output).trim());
    if output.is_empty() { how } else { format!("{how}; it printed:\n{output}") }
}

fn shorten(output: &str) -> String {
    if output.chars().count() <= OUTPUT_KEPT * 2 {
        return output.to_owned();
    }
    format!("{}\n{}", clip(output, OUTPUT_KEPT), clip_start(output, OUTPUT_KEPT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::limits::Limits;
    use plimsoll_domain::state::RunOptions;

    /// What the commands said of a run whose deadline is this many milliseconds away.
    fn said(commands: &[&str], milliseconds: i64) -> Vec<(bool, String)> {
        let folder = tempfile::tempdir().unwrap();
        let deadline = clock::fine_stamp(clock::now() + chrono::Duration::milliseconds(milliseconds));
        let run = RunState {
            options: RunOptions {
                limits: Limits { deadline: Some(deadline), ..Limits::default() },
                ..RunOptions::default()
            },
            ..RunState::default()
        };
        let commands: Vec<String> = commands.iter().map(|command| (*command).to_owned()).collect();
        let outcomes = verify(&Project::at(folder.path()), &Settings::default(), &run, &commands, &|| false);
        let is_decided =
            |outcome: &VerifyOutcome| outcome.is_undecided == outcome.words.ends_with("deadline");
        assert!(outcomes.iter().all(is_decided), "{outcomes:?}");
        outcomes.into_iter().map(|outcome| (outcome.passed, outcome.words)).collect()
    }

    #[test]
    fn no_command_runs_beyond_the_deadline() {
        let begun = Instant::now();
        let ended = (false, "was ended at the run's deadline".to_owned());
        let passed = (true, "exited with 0".to_owned());
        assert_eq!(
            said(&["true", "sleep 30", "sleep 30"], 1_500),
            [passed.clone(), ended.clone(), ended.clone()]
        );
        assert_eq!(said(&["sleep 30"], -5_000), [ended]);
        assert_eq!(said(&["true"], 60_000), [passed]);
        assert!(begun.elapsed() < Duration::from_secs(15));
    }
}
