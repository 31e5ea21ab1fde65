//! Checks the run: whether it is active or can continue.

use super::{Finding, InspectionError, Section};
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_domain::{RunState, RunStatus, Verdict};

/// The process that works on the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunProcess {
    /// A `plimsoll run` process, with its id if known.
    PlimsollRun(Option<u32>),
    /// Only the client, with its process id; the `plimsoll run` process has died.
    ClientOnly(u32),
    NoProcess,
}

#[derive(Debug, Clone)]
pub struct RunInfo {
    /// The run's state: `None` if there is no run, an error if it cannot be read.
    pub state: Result<Option<Box<RunState>>, InspectionError>,
    pub state_file: String,
    pub process: RunProcess,
    /// True if a newer version of Plimsoll wrote the state.
    pub is_newer_format: bool,
}

pub(super) fn check_run_state_and_process(run: &RunInfo) -> Section {
    let state = match &run.state {
        Err(error) => {
            let advice = if run.is_newer_format {
                "update Plimsoll, and continue the run with the version that began it"
            } else {
                "fix the file, or delete it: the copy in .git/plimsoll is taken then"
            };
            let finding = Finding::problem(
                "run.unreadable",
                truncate_end(&to_safe_single_line(&error.to_string()), 300),
                advice,
            );
            return Section::new(
                "Run",
                "its state cannot be read",
                vec![finding.with_path(run.state_file.clone())],
            );
        }
        Ok(None) => return Section::new("Run", "none", Vec::new()),
        Ok(Some(state)) => state,
    };
    let name = truncate_end(&to_safe_single_line(&state.options.task_name), 60);
    let resume_advice = "`plimsoll run --resume` (or `plimsoll stop` to cancel it)";
    let (summary, finding) = match (state.lifecycle.status(), run.process) {
        (RunStatus::Running | RunStatus::Paused, RunProcess::PlimsollRun(pid)) => {
            let pid = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
            (format!("\"{name}\" is at work{pid}"), None)
        }
        (RunStatus::Running, RunProcess::ClientOnly(pid)) => {
            let message =
                format!("its `plimsoll run` has crashed; its client (process {pid}) is still running");
            (format!("\"{name}\" is running"), Some(Finding::warning("run.orphaned", message, resume_advice)))
        }
        (RunStatus::Running, RunProcess::NoProcess) => {
            let message = "no process works on it (a shell loop of your own is not detected)";
            (
                format!("\"{name}\" is running"),
                Some(Finding::warning("run.abandoned", message, resume_advice)),
            )
        }
        (RunStatus::Paused, _) => {
            let message = format!("it is paused{}", last_stop_or_pause_reason_suffix(state));
            (format!("\"{name}\" is paused"), Some(Finding::note("run.paused", message, resume_advice)))
        }
        (status, _) => (
            format!("\"{name}\" has ended ({}){}", status.as_str(), last_stop_or_pause_reason_suffix(state)),
            None,
        ),
    };
    Section::new("Run", summary, finding.into_iter().collect())
}

fn last_stop_or_pause_reason_suffix(state: &RunState) -> String {
    match state.lifecycle.last_verdict() {
        Some(Verdict::Stop { reason, .. } | Verdict::Pause { reason, .. }) if !reason.is_empty() => {
            format!(": {}", truncate_end(&to_safe_single_line(reason), 200))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding_codes;
    use super::*;
    use plimsoll_domain::state::{Lifecycle, RunOptions};

    #[test]
    fn an_unfinished_run_without_a_process_is_reported() {
        let check = |status: RunStatus, process: RunProcess| {
            let state = RunState {
                lifecycle: Lifecycle::with_status(status),
                options: RunOptions { task_name: "Dates".to_owned(), ..RunOptions::default() },
                ..RunState::default()
            };
            check_run_state_and_process(&RunInfo {
                state: Ok(Some(Box::new(state))),
                state_file: "ralph-state.json".to_owned(),
                process,
                is_newer_format: false,
            })
        };
        for (section, expected) in [
            (check(RunStatus::Running, RunProcess::PlimsollRun(Some(7))), vec![]),
            (check(RunStatus::Paused, RunProcess::PlimsollRun(None)), vec![]),
            (check(RunStatus::Running, RunProcess::ClientOnly(7)), vec!["run.orphaned"]),
            (check(RunStatus::Running, RunProcess::NoProcess), vec!["run.abandoned"]),
            (check(RunStatus::Paused, RunProcess::NoProcess), vec!["run.paused"]),
            (check(RunStatus::Completed, RunProcess::NoProcess), vec![]),
        ] {
            assert_eq!(finding_codes(&section), expected, "{section:?}");
        }
        let unreadable = RunInfo {
            state: Err(InspectionError("EOF".to_owned())),
            state_file: String::new(),
            process: RunProcess::NoProcess,
            is_newer_format: false,
        };
        assert_eq!(finding_codes(&check_run_state_and_process(&unreadable)), ["run.unreadable"]);
    }
}
