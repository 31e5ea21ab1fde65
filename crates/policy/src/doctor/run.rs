//! The run: whether it can continue.

use super::{Finding, ReadFailure, Section};
use plimsoll_domain::text::{clip, one_line};
use plimsoll_domain::{RunState, Status, Verdict};

/// Who works at the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// A `plimsoll run`, with its process if known.
    Run(Option<u32>),
    /// Only its client: the `plimsoll run` has died.
    Client(u32),
    /// No process.
    Nobody,
}

/// The run.
#[derive(Debug, Clone)]
pub struct RunFacts {
    /// Its state; none if there is no run, or why it cannot be read.
    pub state: Result<Option<Box<RunState>>, ReadFailure>,
    /// Its file.
    pub file: String,
    /// Who works at it.
    pub work: Work,
    /// A newer version wrote the state.
    pub is_newer: bool,
}

pub(super) fn section(facts: &RunFacts) -> Section {
    let state = match &facts.state {
        Err(why) => {
            let todo = if facts.is_newer {
                "update Plimsoll, and continue the run with the version that began it"
            } else {
                "fix the file, or delete it: the copy in .git/plimsoll is taken then"
            };
            let finding = Finding::problem("run.unreadable", clip(&one_line(&why.to_string()), 300), todo);
            return Section::new("Run", "its state cannot be read", vec![finding.at(facts.file.clone())]);
        }
        Ok(None) => return Section::new("Run", "none", Vec::new()),
        Ok(Some(state)) => state,
    };
    let name = clip(&one_line(&state.options.task_name), 60);
    let resume = "`plimsoll run --resume` (or `plimsoll stop` to cancel it)";
    let (summary, finding) = match (state.lifecycle.status(), facts.work) {
        (Status::Running | Status::Paused, Work::Run(pid)) => {
            let pid = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
            (format!("\"{name}\" is at work{pid}"), None)
        }
        (Status::Running, Work::Client(pid)) => {
            let what = format!("its `plimsoll run` has died; its client (process {pid}) is still running");
            (format!("\"{name}\" is running"), Some(Finding::warning("run.orphaned", what, resume)))
        }
        (Status::Running, Work::Nobody) => {
            let what = "no process works on it (a shell loop of your own is not detected)";
            (format!("\"{name}\" is running"), Some(Finding::warning("run.abandoned", what, resume)))
        }
        (Status::Paused, _) => {
            let what = format!("it is paused{}", reason(state));
            (format!("\"{name}\" is paused"), Some(Finding::note("run.paused", what, resume)))
        }
        (status, _) => (format!("\"{name}\" is over ({}){}", status.word(), reason(state)), None),
    };
    Section::new("Run", summary, finding.into_iter().collect())
}

fn reason(state: &RunState) -> String {
    match state.lifecycle.last_verdict() {
        Some(Verdict::Stop { reason, .. } | Verdict::Pause { reason, .. }) if !reason.is_empty() => {
            format!(": {}", clip(&one_line(reason), 200))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::codes;
    use super::*;
    use plimsoll_domain::state::{Lifecycle, RunOptions};

    #[test]
    fn a_run_without_anybody_at_work_is_named() {
        let look = |status: Status, work: Work| {
            let state = RunState {
                lifecycle: Lifecycle::of(status),
                options: RunOptions { task_name: "Dates".to_owned(), ..RunOptions::default() },
                ..RunState::default()
            };
            section(&RunFacts {
                state: Ok(Some(Box::new(state))),
                file: "ralph-state.json".to_owned(),
                work,
                is_newer: false,
            })
        };
        for (section, expected) in [
            (look(Status::Running, Work::Run(Some(7))), vec![]),
            (look(Status::Paused, Work::Run(None)), vec![]),
            (look(Status::Running, Work::Client(7)), vec!["run.orphaned"]),
            (look(Status::Running, Work::Nobody), vec!["run.abandoned"]),
            (look(Status::Paused, Work::Nobody), vec!["run.paused"]),
            (look(Status::Completed, Work::Nobody), vec![]),
        ] {
            assert_eq!(codes(&section), expected, "{section:?}");
        }
        let broken = RunFacts {
            state: Err(ReadFailure("EOF".to_owned())),
            file: String::new(),
            work: Work::Nobody,
            is_newer: false,
        };
        assert_eq!(codes(&section(&broken)), ["run.unreadable"]);
    }
}
