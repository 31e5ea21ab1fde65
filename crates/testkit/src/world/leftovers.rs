//! Ends the processes whose HOME is that of a world: what the test started, and nothing else.

use crate::process_group::process_numbers;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::PathBuf;

/// The processes of one world: hooks and detached programs have left their group but not their HOME.
pub(super) struct Leftovers {
    home: PathBuf,
}

impl Leftovers {
    pub(super) fn of(home: PathBuf) -> Leftovers {
        Leftovers { home }
    }

    pub(super) fn end(&self) {
        for process in self.processes() {
            let _ = kill_process(process, Signal::KILL);
        }
    }

    /// Found by the environment they were started with; nobody else has this HOME (Linux only, else none).
    fn processes(&self) -> Vec<Pid> {
        let wanted = format!("HOME={}", self.home.display()).into_bytes();
        let ours = |number: &i32| {
            let environment = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == wanted)
        };
        process_numbers().into_iter().flatten().filter(ours).filter_map(Pid::from_raw).collect()
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        self.end();
    }
}
